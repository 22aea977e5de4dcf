/* png.c: see png.h. A PNG file is a signature and chunks: length, name, data, CRC-32 of name and
 * data. The picture is the chunk IDAT: a zlib stream (RFC 1950) of stored blocks (RFC 1951), in
 * which every row follows a byte 0, "no filter". */
#include "util/png.h"

#include <string.h>

#include "util/crc32.h"

static void put_u32(buf *out, uint32_t v) {
    uint8_t bytes[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    buf_append(out, bytes, sizeof bytes);
}

static uint32_t adler32(const uint8_t *data, size_t bytes) {
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < bytes; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* Length and name; the data follow, then end_chunk with where the name is. */
static size_t begin_chunk(buf *out, const char *name, size_t bytes) {
    put_u32(out, (uint32_t)bytes);
    size_t at = out->len;
    buf_append(out, name, 4);
    return at;
}

static void end_chunk(buf *out, size_t at) {
    if (out->status == MNP_OK) put_u32(out, crc32((const uint8_t *)out->data + at, out->len - at));
}

static void put_header(buf *out, int64_t width, int64_t height, int bits) {
    buf_append(out, "\x89PNG\r\n\x1a\n", 8);
    size_t at = begin_chunk(out, "IHDR", 13);
    put_u32(out, (uint32_t)width);
    put_u32(out, (uint32_t)height);
    uint8_t rest[5] = {(uint8_t)bits, 0, 0, 0, 0}; /* grey, deflate, the usual filters, not woven */
    buf_append(out, rest, sizeof rest);
    end_chunk(out, at);
}

enum { BLOCK = 65535 }; /* most bytes of a stored block */

static void put_data(buf *out, const uint8_t *data, size_t bytes) {
    size_t blocks = (bytes + BLOCK - 1) / BLOCK;
    size_t at = begin_chunk(out, "IDAT", 2 + 5 * blocks + bytes + 4);
    buf_append(out, "\x78\x01", 2);
    for (size_t k = 0; k < blocks; k++) {
        size_t left = bytes - k * BLOCK, n = left < BLOCK ? left : BLOCK;
        uint8_t head[5] = {k + 1 == blocks, (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)~n,
                           (uint8_t)(~n >> 8)};
        buf_append(out, head, sizeof head);
        buf_append(out, data + k * BLOCK, n);
    }
    put_u32(out, adler32(data, bytes));
    end_chunk(out, at);
}

/* Row by row into the filtered form. */
static void pack_row(const uint8_t *pixels, int64_t width, int bits, uint8_t *row) {
    if (bits == 8) {
        memcpy(row, pixels, (size_t)width);
        return;
    }
    for (int64_t i = 0; i < width; i++)
        if (pixels[i]) row[i / 8] |= (uint8_t)(0x80 >> i % 8);
}

mnp_status png_gray(buf *out, int64_t width, int64_t height, int bits, const uint8_t *pixels) {
    if (width < 1 || height < 1 || width > PNG_SIDE_MAX || height > PNG_SIDE_MAX ||
        width * height > PNG_PIXELS_MAX || (bits != 1 && bits != 8))
        return env_fail(out->e, MNP_EINVAL, "no PNG of %lld x %lld pixels of %d bits",
                        (long long)width, (long long)height, bits);
    size_t row = 1 + (size_t)(width * bits + 7) / 8, bytes = row * (size_t)height;
    uint8_t *data = env_alloc(out->e, bytes, 1, "a PNG picture");
    if (!data) return MNP_ENOMEM;
    for (int64_t r = 0; r < height; r++)
        pack_row(pixels + r * width, width, bits, data + (size_t)r * row + 1);
    put_header(out, width, height, bits);
    put_data(out, data, bytes);
    end_chunk(out, begin_chunk(out, "IEND", 0));
    env_free(out->e, data);
    return out->status;
}

mnp_status png_write_gray(env *e, const char *path, int64_t width, int64_t height, int bits,
                          const uint8_t *pixels) {
    buf b;
    buf_init(&b, e);
    mnp_status status = png_gray(&b, width, height, bits, pixels);
    if (status == MNP_OK) status = fsio_write(e, path, b.data, b.len);
    buf_free(&b);
    return status;
}
