/* pictures.h: PNG files for the targets that read them. */
#ifndef MNP_TESTS_FUZZ_PICTURES_H
#define MNP_TESTS_FUZZ_PICTURES_H

#include "fuzz/fuzz.h"

enum { PICTURE_HEAD = 13, PICTURE_MOST = 1 << 15 };

static void picture_u32(uint8_t *to, size_t v) {
    for (int k = 0; k < 4; k++) to[k] = (uint8_t)(v >> (24 - 8 * k));
}

static size_t picture_chunk(uint8_t *to, const char *type, const uint8_t *data, size_t bytes) {
    picture_u32(to, bytes);
    memcpy(to + 4, type, 4);
    if (bytes) memcpy(to + 8, data, bytes);
    picture_u32(to + 8 + bytes, 0); /* the checksum is not looked at */
    return bytes + 12;
}

/* A PNG file with this header (the 13 bytes of IHDR), palette and rows (each with its filter), the
 * rows as they are: one stored block. `out` has room for PICTURE_MOST more than both. */
static size_t picture_make(uint8_t *out, const uint8_t *head, const uint8_t *palette,
                           size_t colours, const uint8_t *rows, size_t bytes) {
    static uint8_t packed[PICTURE_MOST + 16];
    uint32_t a = 1, b = 0;
    if (bytes > PICTURE_MOST) bytes = PICTURE_MOST;
    memcpy(packed, "\x78\x01\x01", 3);
    packed[3] = (uint8_t)bytes, packed[4] = (uint8_t)(bytes >> 8);
    packed[5] = (uint8_t)~packed[3], packed[6] = (uint8_t)~packed[4];
    if (bytes) memcpy(packed + 7, rows, bytes);
    for (size_t k = 0; k < bytes; k++) {
        a = (a + rows[k]) % 65521;
        b = (b + a) % 65521;
    }
    picture_u32(packed + 7 + bytes, b << 16 | a);
    memcpy(out, "\x89PNG\r\n\x1a\n", 8);
    size_t at = 8 + picture_chunk(out + 8, "IHDR", head, PICTURE_HEAD);
    if (colours) at += picture_chunk(out + at, "PLTE", palette, colours);
    at += picture_chunk(out + at, "IDAT", packed, bytes + 11);
    return at + picture_chunk(out + at, "IEND", NULL, 0);
}

/* A picture of rows x cols, `depth` bits, PNG's colour type `kind`, any pixels. */
static size_t picture_seed(uint8_t *out, uint8_t rows, uint8_t cols, uint8_t depth, uint8_t kind) {
    uint8_t head[PICTURE_HEAD] = {0, 0, 0, cols, 0, 0, 0, rows, depth, kind}, pixels[1024];
    uint8_t palette[12] = {0, 0, 0, 255, 255, 255, 255, 0, 0, 9, 90, 200};
    size_t samples = kind == 2 ? 3 : kind == 4 ? 2 : kind == 6 ? 4 : 1;
    size_t width = 1 + (cols * samples * depth + 7) / 8;
    for (size_t k = 0; k < rows * width; k++)
        pixels[k] = (uint8_t)(k % width ? kind == 3 ? 0x1b : 37 * k : k / width % 5);
    return picture_make(out, head, palette, kind == 3 ? 12 : 0, pixels, rows * width);
}

#endif
