/* png_read.c: see png_read.h. */
#include "util/png_read.h"

#include <string.h>

#include "util/fsio.h"
#include "util/inflate.h"
#include "util/limits.h"

enum { HEAD = 8, CHUNK_EXTRA = 12, IHDR_BYTES = 13, IHDR_END = HEAD + CHUNK_EXTRA + IHDR_BYTES };
enum { INFLATE_MOST = 1032 }; /* bytes that one byte of deflated data can become */
enum { GRAY = 0, COLOUR = 2, PALETTE = 3, GRAY_ALPHA = 4, COLOUR_ALPHA = 6 };

typedef struct reading {
    env *e;
    const char *name;
    int64_t rows, cols;
    int depth, kind;
    const uint8_t *palette;
    size_t palette_bytes;
    buf packed; /* the data of all IDAT chunks */
} reading;

static mnp_status damaged(const reading *r, const char *what) {
    return env_fail(r->e, MNP_EFORMAT, "%s: %s", r->name, what);
}

static uint32_t big_endian(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int channels(int kind) {
    return kind == COLOUR ? 3 : kind == GRAY_ALPHA ? 2 : kind == COLOUR_ALPHA ? 4 : 1;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static mnp_status read_header(reading *r, const uint8_t *p, size_t bytes) {
    if (bytes != IHDR_BYTES) return damaged(r, "a damaged PNG file (its header)");
    r->cols = big_endian(p);
    r->rows = big_endian(p + 4);
    r->depth = p[8];
    r->kind = p[9];
    bool small = r->kind == GRAY || r->kind == PALETTE;
    bool depth = r->depth == 8 || (r->depth == 16 && r->kind != PALETTE) ||
                 (small && (r->depth == 1 || r->depth == 2 || r->depth == 4));
    bool kind = small || r->kind == COLOUR || r->kind == GRAY_ALPHA || r->kind == COLOUR_ALPHA;
    if (!kind || !depth || p[10] || p[11]) return damaged(r, "a damaged PNG file (its header)");
    if (p[12]) return damaged(r, "an interlaced PNG file; save it without interlacing");
    if (r->rows < 1 || r->cols < 1 || r->rows > IMAGE_SIDE_MAX || r->cols > IMAGE_SIDE_MAX)
        return env_fail(r->e, MNP_EFORMAT,
                        "%s: a picture of %lld x %lld pixels; sides are 1 to %d (make it smaller)",
                        r->name, (long long)r->rows, (long long)r->cols, IMAGE_SIDE_MAX);
    return MNP_OK;
}

static const uint8_t magic[HEAD] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

static mnp_status read_chunks(reading *r, const uint8_t *p, size_t size) {
    if (size < HEAD || memcmp(p, magic, HEAD) != 0) return damaged(r, "not a PNG file");
    for (size_t at = HEAD; size - at >= CHUNK_EXTRA;) {
        size_t bytes = big_endian(p + at);
        const uint8_t *type = p + at + 4, *data = p + at + 8;
        if (bytes > size - at - CHUNK_EXTRA) break;
        if (memcmp(type, "IHDR", 4) == 0) MNP_TRY(read_header(r, data, bytes));
        if (memcmp(type, "PLTE", 4) == 0) r->palette = data, r->palette_bytes = bytes;
        if (memcmp(type, "IDAT", 4) == 0) MNP_TRY(buf_append(&r->packed, data, bytes));
        if (memcmp(type, "IEND", 4) == 0)
            return r->rows ? MNP_OK : damaged(r, "a PNG file without a header");
        at += bytes + CHUNK_EXTRA;
    }
    return damaged(r, "a PNG file that is cut short");
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static uint8_t paeth(int a, int b, int c) {
    int p = a + b - c, pa = p > a ? p - a : a - p, pb = p > b ? p - b : b - p;
    int pc = p > c ? p - c : c - p;
    return (uint8_t)(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

/* Each row is a filter's number and `width` bytes; a byte is told by those to the left, above, and
 * above left of it, `step` bytes apart. */
static bool unfilter(uint8_t *rows, int64_t count, size_t width, size_t step) {
    for (int64_t r = 0; r < count; r++) {
        uint8_t *row = rows + (size_t)r * (width + 1), filter = *row++;
        const uint8_t *above = r ? row - width - 1 : NULL;
        if (filter > 4) return false;
        for (size_t k = 0; k < width && filter; k++) {
            int a = k >= step ? row[k - step] : 0, b = above ? above[k] : 0;
            int c = above && k >= step ? above[k - step] : 0;
            int guess = filter == 1 ? a : filter == 2 ? b : filter == 3 ? (a + b) / 2 : 0;
            row[k] = (uint8_t)(row[k] + (filter == 4 ? paeth(a, b, c) : guess));
        }
    }
    return true;
}

/* Sample k of a row, 0 .. 2^depth - 1. */
static uint32_t sample_at(const uint8_t *row, int64_t k, int depth) {
    if (depth == 16) return (uint32_t)row[2 * k] << 8 | row[2 * k + 1];
    int64_t bit = k * depth;
    return row[bit / 8] >> (8 - depth - bit % 8) & ((1u << depth) - 1);
}

static double brightness(double red, double green, double blue) {
    return 0.299 * red + 0.587 * green + 0.114 * blue;
}

static mnp_status pixel(const reading *r, const uint8_t *row, int64_t c, float *out) {
    int n = channels(r->kind);
    double top = (double)((1u << r->depth) - 1), v[3];
    uint32_t first = sample_at(row, c * n, r->depth);
    if (r->kind == PALETTE) {
        if (3 * (size_t)first + 3 > r->palette_bytes)
            return damaged(r, "a damaged PNG file (its palette)");
        const uint8_t *p = r->palette + 3 * first;
        *out = (float)(brightness(p[0], p[1], p[2]) / 255.0);
        return MNP_OK;
    }
    for (int k = 0; k < 3; k++) v[k] = sample_at(row, c * n + (n >= 3 ? k : 0), r->depth) / top;
    *out = (float)(n >= 3 ? brightness(v[0], v[1], v[2]) : v[0]);
    return MNP_OK;
}

/* Bits of a pixel, bytes of a row without its filter, bytes of all rows with it. */
typedef struct layout {
    size_t bits, width, bytes;
} layout;

static layout layout_of(const reading *r) {
    layout l = {.bits = (size_t)channels(r->kind) * (size_t)r->depth};
    l.width = ((size_t)r->cols * l.bits + 7) / 8;
    l.bytes = (size_t)r->rows * (l.width + 1);
    return l;
}

/* A header may promise what the data cannot hold: no memory is taken for that. */
static mnp_status check_promise(const reading *r, size_t packed) {
    size_t bytes = layout_of(r).bytes;
    if (bytes / INFLATE_MOST <= packed) return MNP_OK;
    return env_fail(r->e, MNP_EFORMAT,
                    "%s: a damaged PNG file (%lld x %lld pixels need %zu bytes, and its %zu hold "
                    "%zu at most)",
                    r->name, (long long)r->rows, (long long)r->cols, bytes, packed,
                    packed * INFLATE_MOST);
}

static mnp_status read_pixels(reading *r, png_picture *out) {
    layout l = layout_of(r);
    size_t bits = l.bits, width = l.width, bytes = l.bytes;
    MNP_TRY(check_promise(r, r->packed.len));
    uint8_t *rows = env_alloc(r->e, bytes, 1, "a picture");
    out->gray = env_alloc(r->e, (size_t)(r->rows * r->cols), sizeof *out->gray, "a picture");
    mnp_status status = rows && out->gray ? MNP_OK : MNP_ENOMEM;
    const uint8_t *packed = (const uint8_t *)buf_str(&r->packed);
    if (status == MNP_OK && (!inflate_zlib(packed, r->packed.len, rows, bytes) ||
                             !unfilter(rows, r->rows, width, (bits + 7) / 8)))
        status = damaged(r, "a damaged PNG file (its pixels)");
    for (int64_t i = 0; i < r->rows * r->cols && status == MNP_OK; i++)
        status =
            pixel(r, rows + (size_t)(i / r->cols) * (width + 1) + 1, i % r->cols, &out->gray[i]);
    env_free(r->e, rows);
    out->rows = r->rows, out->cols = r->cols;
    return status;
}

mnp_status png_parse(env *e, const char *name, const void *bytes, size_t size, png_picture *out) {
    reading r = {.e = e, .name = name};
    *out = (png_picture){0};
    buf_init(&r.packed, e);
    mnp_status status = read_chunks(&r, bytes, size);
    if (status == MNP_OK) status = read_pixels(&r, out);
    buf_free(&r.packed);
    if (status != MNP_OK) png_free(e, out);
    return status;
}

mnp_status png_measure(env *e, const char *path, int64_t *rows, int64_t *cols) {
    uint8_t head[IHDR_END] = {0};
    size_t got = 0, size = 0;
    reading r = {.e = e, .name = path};
    MNP_TRY(fsio_read_head(e, path, head, sizeof head, &got, &size));
    if (got < HEAD || memcmp(head, magic, HEAD) != 0) return damaged(&r, "not a PNG file");
    if (got < IHDR_END || memcmp(head + HEAD + 4, "IHDR", 4) != 0)
        return damaged(&r, "a PNG file that is cut short");
    MNP_TRY(read_header(&r, head + HEAD + 8, big_endian(head + HEAD)));
    MNP_TRY(check_promise(&r, size));
    *rows = r.rows, *cols = r.cols;
    return MNP_OK;
}

mnp_status png_read(env *e, const char *path, png_picture *out) {
    char *bytes = NULL;
    size_t size = 0;
    *out = (png_picture){0};
    MNP_TRY(fsio_read(e, path, PNG_FILE_MAX, &bytes, &size));
    mnp_status status = png_parse(e, path, bytes, size, out);
    env_free(e, bytes);
    return status;
}

void png_free(env *e, png_picture *p) {
    env_free(e, p->gray);
    *p = (png_picture){0};
}
