/* npy.c: the reader and writer of NumPy arrays. See npy.h for the contract.
 *
 * Layout: "\x93NUMPY", version (2 bytes), header length (2 bytes in version 1, 4 later), a Python
 * dict such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } padded with blanks, then
 * the elements. */
#include "util/npy.h"

#include <inttypes.h>
#include <string.h>

#include "util/fsio.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "file data is used in place");

static const struct {
    const char *descr;
    size_t size;
} types[] = {
    [NPY_F4] = {"<f4", 4}, [NPY_F8] = {"<f8", 8}, [NPY_I4] = {"<i4", 4},
    [NPY_I8] = {"<i8", 8}, [NPY_U1] = {"|u1", 1}, [NPY_B1] = {"|b1", 1},
};
enum { TYPES = sizeof types / sizeof types[0] };

size_t npy_size(npy_type type) {
    return types[type].size;
}

/* Elements of a shape; false where a dimension is negative or the bytes overflow. */
static bool shape_count(const npy_array *a, size_t *count) {
    size_t n = 1, most = SIZE_MAX / 4 / types[a->type].size;
    bool empty = false;
    for (int i = 0; i < a->ndim; i++) {
        if (a->shape[i] < 0) return false;
        if (a->shape[i] == 0) {
            empty = true;
            continue;
        }
        if ((uint64_t)a->shape[i] > most / n) return false;
        n *= (size_t)a->shape[i];
    }
    *count = empty ? 0 : n;
    return true;
}

/* ---- the header ------------------------------------------------------------------------------ */

typedef struct header {
    env *e;
    const char *at, *end;
    bool fortran;
    unsigned seen; /* a bit for each of the three keys */
} header;

static mnp_status bad(header *h, const char *what) {
    return env_fail(h->e, MNP_EFORMAT, "damaged .npy header: %s", what);
}

static bool accept(header *h, const char *token) {
    size_t n = strlen(token);
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t')) h->at++;
    if ((size_t)(h->end - h->at) < n || memcmp(h->at, token, n) != 0) return false;
    h->at += n;
    return true;
}

/* A quoted text without escapes, as descr and the keys are. */
static bool read_text(header *h, char *out, size_t room) {
    char quote = accept(h, "'") ? '\'' : accept(h, "\"") ? '"' : '\0';
    if (!quote) return false;
    const char *close = memchr(h->at, quote, (size_t)(h->end - h->at));
    if (!close || (size_t)(close - h->at) >= room) return false;
    memcpy(out, h->at, (size_t)(close - h->at));
    out[close - h->at] = '\0';
    h->at = close + 1;
    return true;
}

static mnp_status read_type(header *h, npy_array *a) {
    char descr[16] = "";
    if (!read_text(h, descr, sizeof descr))
        return env_fail(h->e, MNP_EUNSUPPORTED,
                        "the array holds records or text (only plain numbers can be read)");
    if (descr[0] == '>')
        return env_fail(h->e, MNP_EUNSUPPORTED,
                        "big-endian type %s (save it as a.astype('<f4') or similar)", descr);
    if (descr[0] == '<' && descr[2] == '1') descr[0] = '|'; /* a byte has no order */
    for (int i = 0; i < TYPES; i++)
        if (strcmp(descr, types[i].descr) == 0) {
            a->type = (npy_type)i;
            return MNP_OK;
        }
    return env_fail(h->e, MNP_EUNSUPPORTED,
                    "type %s cannot be read (save it as float32, float64, int32, int64, uint8 or "
                    "bool)",
                    descr);
}

static mnp_status read_dimension(header *h, int64_t *out) {
    int64_t v = 0;
    int digits = 0;
    for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++, digits++) {
        if (v > (INT64_MAX - 9) / 10) return bad(h, "a dimension is too large");
        v = v * 10 + (*h->at - '0');
    }
    if (!digits) return bad(h, "a dimension is not a whole number");
    *out = v;
    return MNP_OK;
}

/* (), (3,), (3, 4) or (3, 4,) */
static mnp_status read_shape(header *h, npy_array *a) {
    if (!accept(h, "(")) return bad(h, "shape is not a tuple");
    bool comma = true;
    while (!accept(h, ")")) {
        if (!comma) return bad(h, "shape is not a tuple");
        if (a->ndim == NPY_DIMS_MAX)
            return env_fail(h->e, MNP_EUNSUPPORTED, "more than %d dimensions", NPY_DIMS_MAX);
        MNP_TRY(read_dimension(h, &a->shape[a->ndim++]));
        comma = accept(h, ",");
        accept(h, ""); /* blanks */
    }
    if (a->ndim == 1 && !comma) return bad(h, "shape is not a tuple");
    return MNP_OK;
}

static mnp_status read_entry(header *h, npy_array *a) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char key[16];
    if (!read_text(h, key, sizeof key) || !accept(h, ":")) return bad(h, "a key is missing");
    unsigned which = 0;
    while (which < 3 && strcmp(key, keys[which]) != 0) which++;
    if (which == 3) return bad(h, "an unknown key");
    if (h->seen & (1u << which)) return bad(h, "a key appears twice");
    h->seen |= 1u << which;
    if (which == 0) return read_type(h, a);
    if (which == 2) return read_shape(h, a);
    h->fortran = accept(h, "True");
    if (!h->fortran && !accept(h, "False"))
        return bad(h, "fortran_order is neither True nor False");
    return MNP_OK;
}

static mnp_status read_header(header *h, npy_array *a) {
    if (!accept(h, "{")) return bad(h, "it is not a dict");
    bool comma = true;
    while (!accept(h, "}")) {
        if (!comma) return bad(h, "a comma is missing");
        MNP_TRY(read_entry(h, a));
        comma = accept(h, ",");
    }
    accept(h, ""); /* blanks */
    if (h->at != h->end) return bad(h, "text after the dict");
    if (h->seen != 7) return bad(h, "descr, fortran_order or shape is missing");
    if (!shape_count(a, &a->count)) return bad(h, "the shape is too large");
    return MNP_OK;
}

/* Finds the header by the preamble; *skip is where the data starts. */
static mnp_status find_header(header *h, const char *bytes, size_t size, size_t *skip) {
    const unsigned char *b = (const unsigned char *)bytes;
    if (size < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return env_fail(h->e, MNP_EFORMAT, "not a .npy file");
    if (b[6] < 1 || b[6] > 3 || b[7] != 0)
        return env_fail(h->e, MNP_EUNSUPPORTED, ".npy version %d.%d is unknown", b[6], b[7]);
    size_t start = b[6] == 1 ? 10 : 12;
    if (size < start) return bad(h, "cut short");
    size_t length = (size_t)b[8] | (size_t)b[9] << 8;
    if (start == 12) length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (length > size - start) return bad(h, "cut short");
    h->at = bytes + start;
    h->end = h->at + length;
    *skip = start + length;
    return MNP_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The first index runs fastest in the file and slowest in memory: walk memory in order and keep the
 * place in the file up to date like an odometer. */
static void copy_fortran(const npy_array *a, const char *from) {
    size_t size = types[a->type].size, place = 0;
    size_t stride[NPY_DIMS_MAX], index[NPY_DIMS_MAX] = {0};
    for (int d = 0; d < a->ndim; d++) stride[d] = d ? stride[d - 1] * (size_t)a->shape[d - 1] : 1;
    for (size_t i = 0; i < a->count; i++) {
        memcpy((char *)a->data + i * size, from + place * size, size);
        for (int d = a->ndim - 1; d >= 0; d--) {
            place += stride[d];
            if (++index[d] < (size_t)a->shape[d]) break;
            place -= stride[d] * (size_t)a->shape[d];
            index[d] = 0;
        }
    }
}

static mnp_status parse_into(env *e, const char *bytes, size_t size, npy_array *a) {
    header h = {.e = e};
    size_t skip = 0;
    MNP_TRY(find_header(&h, bytes, size, &skip));
    MNP_TRY(read_header(&h, a));
    size_t want = a->count * types[a->type].size, have = size - skip;
    if (want != have)
        return env_fail(e, MNP_EFORMAT, "%zu bytes of data where the shape needs %zu%s", have, want,
                        have < want ? " (is the file cut short?)" : "");
    a->data = env_alloc(e, want, 1, "an array");
    if (!a->data) return MNP_ENOMEM;
    if (h.fortran)
        copy_fortran(a, bytes + skip);
    else
        memcpy(a->data, bytes + skip, want);
    for (size_t i = 0; a->type == NPY_B1 && i < a->count; i++)
        if (((const uint8_t *)a->data)[i] > 1)
            return env_fail(e, MNP_EFORMAT, "a bool that is neither 0 nor 1");
    return MNP_OK;
}

mnp_status npy_parse(env *e, const char *name, const void *bytes, size_t size, npy_array *out) {
    *out = (npy_array){0};
    mnp_status status = parse_into(e, bytes, size, out);
    if (status == MNP_OK) return MNP_OK;
    npy_free(e, out);
    return env_context(e, status, "%s", name);
}

mnp_status npy_read(env *e, const char *path, size_t limit, npy_array *out) {
    char *bytes;
    size_t size;
    *out = (npy_array){0};
    MNP_TRY(fsio_read(e, path, limit, &bytes, &size));
    mnp_status status = npy_parse(e, path, bytes, size, out);
    env_free(e, bytes);
    return status;
}

void npy_free(env *e, npy_array *a) {
    env_free(e, a->data);
    *a = (npy_array){0};
}

static double element(const npy_array *a, size_t i) {
    switch (a->type) {
    case NPY_F4:
        return (double)((const float *)a->data)[i];
    case NPY_F8:
        return ((const double *)a->data)[i];
    case NPY_I4:
        return (double)((const int32_t *)a->data)[i];
    case NPY_I8:
        return (double)((const int64_t *)a->data)[i];
    case NPY_U1:
    case NPY_B1:
        return (double)((const uint8_t *)a->data)[i];
    }
    return 0;
}

void npy_doubles(const npy_array *a, double *out) {
    for (size_t i = 0; i < a->count; i++) out[i] = element(a, i);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The preamble and the header of a version 1 file into `out`; its length, a multiple of 64 so that
 * the data starts there. 0: the shape is impossible. */
enum { HEADER_MAX = 384 }; /* 8 dimensions of at most 20 characters each fit */
static size_t header_of(const npy_array *a, size_t *count, char out[HEADER_MAX]) {
    if (a->ndim < 0 || a->ndim > NPY_DIMS_MAX || !shape_count(a, count)) return 0;
    char text[256];
    int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                     types[a->type].descr);
    for (int d = 0; d < a->ndim; d++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%" PRId64 "%s", a->shape[d],
                      a->ndim == 1      ? ","
                      : d + 1 < a->ndim ? ", "
                                        : "");
    n += snprintf(text + n, sizeof text - (size_t)n, "), }");
    size_t whole = (10 + (size_t)n + 1 + 63) / 64 * 64, length = whole - 10;
    const char preamble[10] = {
        '\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(length & 0xff), (char)(length >> 8)};
    memset(out, ' ', whole);
    memcpy(out, preamble, sizeof preamble);
    memcpy(out + sizeof preamble, text, (size_t)n);
    out[whole - 1] = '\n';
    return whole;
}

static mnp_status impossible(env *e, const char *path) {
    return env_fail(e, MNP_EINVAL, "%s: an array with an impossible shape", path);
}

mnp_status npy_encode(buf *out, const npy_array *a) {
    char header[HEADER_MAX];
    size_t count, bytes = header_of(a, &count, header);
    if (bytes == 0) return impossible(out->e, "npy");
    buf_append(out, header, bytes);
    return buf_append(out, a->data, count * types[a->type].size);
}

mnp_status npy_write(env *e, const char *path, const npy_array *a) {
    char header[HEADER_MAX];
    size_t count, bytes = header_of(a, &count, header);
    fsio_writer w;
    if (bytes == 0) return impossible(e, path);
    MNP_TRY(fsio_begin(e, path, &w));
    fsio_append(&w, header, bytes); /* failures stick to the writer */
    fsio_append(&w, a->data, count * types[a->type].size);
    return fsio_commit(&w);
}
