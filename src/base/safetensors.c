/* safetensors.c: the reader and writer of named arrays. See safetensors.h for the contract. */
#include "base/safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/fsio.h"
#include "util/json.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "file data is used in place");

static const char meta_key[] = "__metadata__";

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [SAFETENSORS_F32] = {"F32", 4}, [SAFETENSORS_F64] = {"F64", 8},
    [SAFETENSORS_I64] = {"I64", 8}, [SAFETENSORS_I32] = {"I32", 4},
    [SAFETENSORS_U8] = {"U8", 1},   [SAFETENSORS_BF16] = {"BF16", 2},
    [SAFETENSORS_F16] = {"F16", 2},
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

size_t safetensors_dtype_size(safetensors_dtype dtype) {
    return dtypes[dtype].size;
}

/* Elements of a shape; false where a dimension is negative or the bytes overflow. */
static bool shape_count(const safetensors_tensor *t, size_t *count) {
    size_t n = 1, most = SIZE_MAX / 4 / dtypes[t->dtype].size;
    bool empty = false;
    for (int i = 0; i < t->ndim; i++) {
        if (t->shape[i] < 0) return false;
        if (t->shape[i] == 0) {
            empty = true; /* the other dimensions must still make sense */
            continue;
        }
        if ((uint64_t)t->shape[i] > most / n) return false;
        n *= (size_t)t->shape[i];
    }
    *count = empty ? 0 : n;
    return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Where a tensor lies in the data of the file. */
typedef struct extent {
    size_t begin, end, index;
} extent;

static mnp_status read_shape(env *e, const json_value *v, safetensors_tensor *t) {
    size_t ndim;
    MNP_TRY(json_array(e, v, "shape", &ndim));
    if (ndim > SAFETENSORS_DIMS_MAX)
        return env_fail(e, MNP_EFORMAT, "%zu dimensions, more than %d", ndim, SAFETENSORS_DIMS_MAX);
    t->ndim = (int)ndim;
    for (size_t i = 0; i < ndim; i++)
        MNP_TRY(json_integer(e, json_at(v, i), "a dimension", &t->shape[i]));
    if (!shape_count(t, &t->count))
        return env_fail(e, MNP_EFORMAT, "the shape is negative or too large");
    return MNP_OK;
}

static mnp_status read_tensor(env *e, const json_value *v, size_t data_bytes, safetensors_tensor *t,
                              extent *where) {
    const char *dtype;
    MNP_TRY(json_string(e, json_get(v, "dtype"), "dtype", &dtype));
    int d = 0;
    while (d < DTYPES && strcmp(dtypes[d].name, dtype) != 0) d++;
    if (d == DTYPES)
        return env_fail(
            e, MNP_EUNSUPPORTED,
            "dtype %.20s is not supported (save it as F32, F64, F16, BF16, I64, I32 or U8)", dtype);
    t->dtype = (safetensors_dtype)d;
    MNP_TRY(read_shape(e, json_get(v, "shape"), t));
    const json_value *offsets = json_get(v, "data_offsets");
    int64_t begin, end;
    size_t two;
    MNP_TRY(json_array(e, offsets, "data_offsets", &two));
    if (two != 2 || v->count != 3)
        return env_fail(e, MNP_EFORMAT, "not exactly dtype, shape and two data_offsets");
    MNP_TRY(json_integer(e, json_at(offsets, 0), "an offset", &begin));
    MNP_TRY(json_integer(e, json_at(offsets, 1), "an offset", &end));
    if (begin < 0 || end < begin || (uint64_t)end > data_bytes)
        return env_fail(e, MNP_EFORMAT,
                        "the data [%" PRId64 ", %" PRId64 ") is outside the file, which has %zu "
                        "bytes of data (is the file cut short?)",
                        begin, end, data_bytes);
    if ((size_t)(end - begin) != t->count * dtypes[d].size)
        return env_fail(e, MNP_EFORMAT, "%" PRId64 " bytes of data where the shape needs %zu",
                        end - begin, t->count * dtypes[d].size);
    where->begin = (size_t)begin;
    where->end = (size_t)end;
    return MNP_OK;
}

static mnp_status read_meta(env *e, const json_value *v, safetensors_file *f) {
    if (v->kind != JSON_OBJECT) return env_fail(e, MNP_EFORMAT, "__metadata__ is not an object");
    f->meta = env_alloc(e, v->count, sizeof *f->meta, "metadata");
    if (!f->meta) return MNP_ENOMEM;
    f->meta_count = v->count;
    for (size_t i = 0; i < v->count; i++) {
        MNP_TRY(json_string(e, json_key_at(v, i), "a metadata key", &f->meta[i].key));
        MNP_TRY(json_string(e, json_value_at(v, i), "a metadata value", &f->meta[i].value));
    }
    return MNP_OK;
}

static int by_place(const void *a, const void *b) {
    const extent *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* The tensors must tile the data; each is then copied to the next multiple of 8. */
static mnp_status place_data(env *e, safetensors_file *f, extent *where, const char *data,
                             size_t bytes) {
    qsort(where, f->count, sizeof *where, by_place);
    size_t at = 0, room = 0;
    for (size_t i = 0; i < f->count; i++) {
        const char *name = f->tensors[where[i].index].name;
        if (where[i].begin != at)
            return env_fail(e, MNP_EFORMAT, "the data of \"%.80s\" %s", name,
                            where[i].begin < at ? "overlaps another tensor" : "leaves a gap");
        at = where[i].end;
        room += (where[i].end - where[i].begin + 7) & ~(size_t)7;
    }
    if (at != bytes) return env_fail(e, MNP_EFORMAT, "%zu bytes after the last tensor", bytes - at);
    char *copy = f->data = env_alloc(e, room, 1, "tensors");
    if (!copy) return MNP_ENOMEM;
    for (size_t i = 0; i < f->count; i++) {
        size_t n = where[i].end - where[i].begin;
        memcpy(copy, data + where[i].begin, n);
        f->tensors[where[i].index].data = copy;
        copy += (n + 7) & ~(size_t)7;
    }
    return MNP_OK;
}

static mnp_status read_entries(env *e, const json_value *root, safetensors_file *f,
                               const char *data, size_t bytes, extent *where) {
    for (size_t i = 0; i < root->count; i++) {
        const json_value *v = json_value_at(root, i);
        const char *name;
        MNP_TRY(json_string(e, json_key_at(root, i), "a tensor name", &name));
        if (strcmp(name, meta_key) == 0) {
            MNP_TRY(read_meta(e, v, f));
            continue;
        }
        where[f->count].index = f->count;
        safetensors_tensor *t = &f->tensors[f->count];
        t->name = name;
        mnp_status status = read_tensor(e, v, bytes, t, &where[f->count]);
        if (status != MNP_OK) return env_context(e, status, "tensor \"%.80s\"", name);
        f->count++;
    }
    return place_data(e, f, where, data, bytes);
}

static mnp_status parse_into(env *e, const char *bytes, size_t size, safetensors_file *f) {
    uint64_t header = 0;
    if (size < 8) return env_fail(e, MNP_EFORMAT, "too short for a safetensors file");
    memcpy(&header, bytes, 8);
    if (header > size - 8)
        return env_fail(e, MNP_EFORMAT,
                        "not a safetensors file, or cut short: the header claims "
                        "%" PRIu64 " bytes, the file has %zu",
                        header, size - 8);
    if (header > SAFETENSORS_HEADER_MAX)
        return env_fail(e, MNP_EFORMAT, "a header of %" PRIu64 " bytes; the limit is %d", header,
                        SAFETENSORS_HEADER_MAX);
    if (header == 0 || bytes[8] != '{')
        return env_fail(e, MNP_EFORMAT, "not a safetensors file: the header is not an object");
    json_doc *doc = NULL;
    MNP_TRY(json_parse(e, "header", bytes + 8, (size_t)header, &doc));
    f->doc = doc;
    size_t entries = json_root(doc)->count;
    f->tensors = env_alloc(e, entries, sizeof *f->tensors, "the list of tensors");
    extent *where = env_alloc(e, entries, sizeof *where, "the list of tensors");
    mnp_status status = MNP_ENOMEM;
    if (f->tensors && where)
        status = read_entries(e, json_root(doc), f, bytes + 8 + header, size - 8 - (size_t)header,
                              where);
    env_free(e, where);
    return status;
}

mnp_status safetensors_parse(env *e, const char *name, const void *bytes, size_t size,
                             safetensors_file **out) {
    *out = NULL;
    safetensors_file *f = env_alloc(e, 1, sizeof *f, "a safetensors file");
    if (!f) return MNP_ENOMEM;
    f->e = e;
    mnp_status status = parse_into(e, bytes, size, f);
    if (status == MNP_OK) {
        *out = f;
        return MNP_OK;
    }
    safetensors_destroy(f);
    return env_context(e, status, "%s", name);
}

mnp_status safetensors_read(env *e, const char *path, size_t limit, safetensors_file **out) {
    char *bytes;
    size_t size;
    *out = NULL;
    MNP_TRY(fsio_read(e, path, limit, &bytes, &size));
    mnp_status status = safetensors_parse(e, path, bytes, size, out);
    env_free(e, bytes);
    return status;
}

void safetensors_destroy(safetensors_file *f) {
    if (!f) return;
    json_destroy(f->doc);
    env_free(f->e, f->tensors);
    env_free(f->e, f->meta);
    env_free(f->e, f->data);
    env_free(f->e, f);
}

const safetensors_tensor *safetensors_find(const safetensors_file *f, const char *name) {
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->tensors[i].name, name) == 0) return &f->tensors[i];
    return NULL;
}

const char *safetensors_meta_get(const safetensors_file *f, const char *key) {
    for (size_t i = 0; i < f->meta_count; i++)
        if (strcmp(f->meta[i].key, key) == 0) return f->meta[i].value;
    return NULL;
}

/* ---- conversion ------------------------------------------------------------------------------ */

/* A bfloat16 is the upper half of a float. */
static float from_bf16(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* IEEE half precision: a sign, 5 bits of exponent, 10 of fraction. Every value is a float. */
static float from_f16(uint16_t half) {
    int exponent = half >> 10 & 31, fraction = half & 1023;
    float v = exponent == 31  ? (fraction ? NAN : INFINITY)
              : exponent == 0 ? ldexpf((float)fraction, -24) /* subnormal */
                              : ldexpf((float)(1024 + fraction), exponent - 25);
    return half >> 15 ? -v : v;
}

/* Steps of 2^-24 below 2^-14, else 10 bits after the first. The scaled number is at most 2048, so
 * that rint() is exact, and a carry into the exponent is right as it is. */
uint16_t safetensors_f16(float v) {
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    double size = fabs((double)v);
    if (isnan(v)) return sign | 0x7E00;
    if (size >= 65520) return sign | 0x7C00;
    int exponent = size >= 0x1p-14 ? ilogb(size) : -14;
    int bits = (int)rint(ldexp(size, 10 - exponent)) + ((exponent + 14) << 10);
    return (uint16_t)(sign | bits);
}

static double element(const safetensors_tensor *t, size_t i) {
    switch (t->dtype) {
    case SAFETENSORS_F32:
        return (double)((const float *)t->data)[i];
    case SAFETENSORS_F64:
        return ((const double *)t->data)[i];
    case SAFETENSORS_I64:
        return (double)((const int64_t *)t->data)[i];
    case SAFETENSORS_I32:
        return (double)((const int32_t *)t->data)[i];
    case SAFETENSORS_U8:
        return (double)((const uint8_t *)t->data)[i];
    case SAFETENSORS_BF16:
        return (double)from_bf16(((const uint16_t *)t->data)[i]);
    case SAFETENSORS_F16:
        return (double)from_f16(((const uint16_t *)t->data)[i]);
    }
    return 0;
}

static mnp_status same_count(env *e, const safetensors_tensor *t, size_t count) {
    if (t->count == count) return MNP_OK;
    return env_fail(e, MNP_EFORMAT, "tensor \"%.80s\" has %zu elements, not %zu", t->name, t->count,
                    count);
}

static mnp_status all_finite(env *e, const safetensors_tensor *t) {
    for (size_t i = 0; i < t->count; i++)
        if (!isfinite((float)element(t, i)))
            return env_fail(e, MNP_EFORMAT,
                            "tensor \"%.80s\": number %zu of %zu is %g, not finite (the file is "
                            "damaged, or the run that wrote it had failed)",
                            t->name, i + 1, t->count, element(t, i));
    return MNP_OK;
}

mnp_status safetensors_floats(env *e, const safetensors_tensor *t, float *out, size_t count) {
    MNP_TRY(same_count(e, t, count));
    if (t->dtype != SAFETENSORS_F32 && t->dtype != SAFETENSORS_F64 &&
        t->dtype != SAFETENSORS_BF16 && t->dtype != SAFETENSORS_F16)
        return env_fail(e, MNP_EFORMAT, "tensor \"%.80s\" holds %s where real numbers are expected",
                        t->name, dtypes[t->dtype].name);
    MNP_TRY(all_finite(e, t));
    for (size_t i = 0; i < count; i++) out[i] = (float)element(t, i);
    return MNP_OK;
}

mnp_status safetensors_doubles(env *e, const safetensors_tensor *t, double *out, size_t count) {
    MNP_TRY(same_count(e, t, count));
    for (size_t i = 0; i < count; i++) out[i] = element(t, i);
    return MNP_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool is_utf8(const char *s) {
    size_t left = strlen(s), n = 0;
    for (; left && (n = fsio_utf8_len(s, left)) != 0; left -= n) s += n;
    return left == 0;
}

static mnp_status check_meta(env *e, const safetensors_meta *meta, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!is_utf8(meta[i].key) || !is_utf8(meta[i].value))
            return env_fail(e, MNP_EINVAL, "the metadata \"%.80s\" is not UTF-8", meta[i].key);
        for (size_t j = 0; j < i; j++)
            if (strcmp(meta[i].key, meta[j].key) == 0)
                return env_fail(e, MNP_EINVAL, "the metadata \"%.80s\" is given twice",
                                meta[i].key);
    }
    return MNP_OK;
}

static mnp_status check_tensors(env *e, const safetensors_tensor *tensors, size_t count,
                                size_t *counts) {
    for (size_t i = 0; i < count; i++) {
        const safetensors_tensor *t = &tensors[i];
        if (!is_utf8(t->name) || strcmp(t->name, meta_key) == 0)
            return env_fail(e, MNP_EINVAL, "\"%.80s\" cannot be the name of a tensor", t->name);
        for (size_t j = 0; j < i; j++)
            if (strcmp(t->name, tensors[j].name) == 0)
                return env_fail(e, MNP_EINVAL, "two tensors are called \"%.80s\"", t->name);
        if (t->ndim < 0 || t->ndim > SAFETENSORS_DIMS_MAX || !shape_count(t, &counts[i]))
            return env_fail(e, MNP_EINVAL, "tensor \"%.80s\" has an impossible shape", t->name);
        for (size_t k = 0; t->dtype == SAFETENSORS_F32 && k < counts[i]; k++)
            if (!isfinite(((const float *)t->data)[k]))
                return env_fail(
                    e, MNP_ENUMERIC,
                    "tensor \"%.80s\": number %zu of %zu is %g, not finite: nothing was "
                    "written (has the training diverged? try a smaller lr)",
                    t->name, k + 1, counts[i], (double)((const float *)t->data)[k]);
    }
    return MNP_OK;
}

static void place_tensors(const safetensors_tensor *tensors, size_t count, const size_t *counts,
                          size_t *begin) {
    size_t at = 0;
    for (size_t size = 8; size; size /= 2)
        for (size_t i = 0; i < count; i++)
            if (dtypes[tensors[i].dtype].size == size) {
                begin[i] = at;
                at += counts[i] * size;
            }
}

static mnp_status make_header(buf *b, const safetensors_meta *meta, size_t meta_count,
                              const safetensors_tensor *tensors, size_t count, const size_t *counts,
                              const size_t *begin) {
    json_writer w;
    json_writer_init(&w, b, 0);
    json_object_begin(&w);
    if (meta_count) {
        json_key(&w, meta_key);
        json_object_begin(&w);
        for (size_t i = 0; i < meta_count; i++) {
            json_key(&w, meta[i].key);
            json_put_string(&w, meta[i].value);
        }
        json_object_end(&w);
    }
    for (size_t i = 0; i < count; i++) {
        const safetensors_tensor *t = &tensors[i];
        size_t end = begin[i] + counts[i] * dtypes[t->dtype].size;
        json_key(&w, t->name);
        json_object_begin(&w);
        json_key(&w, "dtype");
        json_put_string(&w, dtypes[t->dtype].name);
        json_key(&w, "shape");
        json_array_begin(&w);
        for (int d = 0; d < t->ndim; d++) json_put_integer(&w, t->shape[d]);
        json_array_end(&w);
        json_key(&w, "data_offsets");
        json_array_begin(&w);
        json_put_integer(&w, (int64_t)begin[i]);
        json_put_integer(&w, (int64_t)end);
        json_array_end(&w);
        json_object_end(&w);
    }
    json_object_end(&w);
    while (b->status == MNP_OK && b->len % 8) buf_text(b, " "); /* the data starts aligned */
    return b->status;
}

/* What is known before the first byte is written. */
typedef struct layout {
    buf header;
    size_t *counts; /* elements of each tensor */
} layout;

static mnp_status lay_out(env *e, const safetensors_meta *meta, size_t meta_count,
                          const safetensors_tensor *tensors, size_t count, layout *l) {
    buf_init(&l->header, e);
    l->counts = env_alloc(e, count, sizeof *l->counts, "a safetensors header");
    size_t *begin = env_alloc(e, count, sizeof *begin, "a safetensors header");
    mnp_status status = l->counts && begin ? check_meta(e, meta, meta_count) : MNP_ENOMEM;
    if (status == MNP_OK) status = check_tensors(e, tensors, count, l->counts);
    if (status == MNP_OK) {
        place_tensors(tensors, count, l->counts, begin);
        status = make_header(&l->header, meta, meta_count, tensors, count, l->counts, begin);
    }
    env_free(e, begin);
    return status;
}

static void forget(env *e, layout *l) {
    buf_free(&l->header);
    env_free(e, l->counts);
}

/* The whole file, piece by piece; failures stick to what `put` writes to. Tensors in the order of
 * their data: element sizes 8, 4, 2, 1, and as given within. */
typedef void put_fn(void *to, const void *data, size_t bytes);

static void put_all(const layout *l, const safetensors_tensor *tensors, size_t count, put_fn *put,
                    void *to) {
    uint64_t length = l->header.len;
    put(to, &length, sizeof length);
    put(to, l->header.data, l->header.len);
    for (size_t size = 8; size; size /= 2)
        for (size_t i = 0; i < count; i++)
            if (dtypes[tensors[i].dtype].size == size)
                put(to, tensors[i].data, l->counts[i] * size);
}

static void put_file(void *to, const void *data, size_t bytes) {
    fsio_append(to, data, bytes);
}

static void put_buf(void *to, const void *data, size_t bytes) {
    buf_append(to, data, bytes);
}

mnp_status safetensors_write(env *e, const char *path, const safetensors_meta *meta,
                             size_t meta_count, const safetensors_tensor *tensors, size_t count) {
    layout l;
    fsio_writer w;
    mnp_status status = lay_out(e, meta, meta_count, tensors, count, &l);
    if (status == MNP_OK) status = fsio_begin(e, path, &w);
    if (status == MNP_OK) {
        put_all(&l, tensors, count, put_file, &w);
        status = fsio_commit(&w);
    }
    forget(e, &l);
    return status;
}

mnp_status safetensors_print(buf *out, const safetensors_meta *meta, size_t meta_count,
                             const safetensors_tensor *tensors, size_t count) {
    layout l;
    mnp_status status = lay_out(out->e, meta, meta_count, tensors, count, &l);
    if (status == MNP_OK) {
        put_all(&l, tensors, count, put_buf, out);
        status = out->status;
    }
    forget(out->e, &l);
    return status;
}
