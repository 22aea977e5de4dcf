/* deflated.h: a PNG file of black pixels packed as tightly as deflate allows, a thousand to one:
 * what a small file may ask for. */
#ifndef MNP_TESTS_DEFLATED_H
#define MNP_TESTS_DEFLATED_H

#include "util/fsio.h"

typedef struct bit_writer {
    buf *out;
    uint32_t bits;
    int held;
} bit_writer;

static void put_bits(bit_writer *w, uint32_t value, int count) { /* lowest first */
    w->bits |= value << w->held;
    for (w->held += count; w->held >= 8; w->held -= 8, w->bits >>= 8)
        buf_append(w->out, &(uint8_t){(uint8_t)w->bits}, 1);
}

/* `count` zero bytes as one zlib stream. Codes of the block: literal 0 has two bits (10), the end
 * of the block too (11), a copy of 258 bytes one (0), and so has the distance 1 (0). */
static void put_zeros(buf *out, size_t count) {
    static const uint8_t of_18 = 0, of_1 = 1, of_2 = 3; /* 0, 10 and 11, first bit lowest */
    bit_writer w = {.out = out};
    buf_append(out, "\x78\xda", 2);
    put_bits(&w, 1 | 2 << 1, 3); /* the last block, with codes of its own */
    put_bits(&w, 286 - 257, 5);  /* lengths of literals and copies        */
    put_bits(&w, 0, 5);          /* one of distances                      */
    put_bits(&w, 18 - 4, 4);     /* lengths of the lengths: 16, 17, 18, 0, ... */
    for (int k = 0; k < 18; k++) put_bits(&w, k == 2 ? 1 : k == 15 || k == 17 ? 2 : 0, 3);
    put_bits(&w, of_2, 2);                    /* literal 0                             */
    put_bits(&w, of_18 | (138 - 11) << 1, 8); /* 255 that are not used                 */
    put_bits(&w, of_18 | (117 - 11) << 1, 8);
    put_bits(&w, of_2, 2); /* the end                               */
    put_bits(&w, of_18 | (28 - 11) << 1, 8);
    put_bits(&w, of_1, 2); /* a copy of 258                         */
    put_bits(&w, of_1, 2); /* distance 1                            */
    size_t literals = count ? 1 + (count - 1) % 258 : 0;
    for (size_t k = 0; k < literals; k++) put_bits(&w, 1, 2);
    for (size_t k = literals; k < count; k += 258) put_bits(&w, 0, 2);
    put_bits(&w, 3, 2);
    put_bits(&w, 0, 7); /* to the next byte */
    uint32_t b = (uint32_t)(count % 65521), sum = b << 16 | 1;
    for (int k = 24; k >= 0; k -= 8) buf_append(out, &(uint8_t){(uint8_t)(sum >> k)}, 1);
}

static void put_chunk(buf *out, const char *type, const void *data, size_t bytes) {
    uint8_t head[4] = {(uint8_t)(bytes >> 24), (uint8_t)(bytes >> 16), (uint8_t)(bytes >> 8),
                       (uint8_t)bytes};
    buf_append(out, head, 4);
    buf_text(out, type);
    buf_append(out, data, bytes);
    buf_append(out, "\0\0\0\0", 4); /* the checksum, which is not looked at */
}

/* One bit a pixel; `bytes` of pixels, where `whole` is false none. */
static void put_black_png(buf *out, uint32_t rows, uint32_t cols, bool whole) {
    uint8_t head[13] = {0};
    for (int k = 0; k < 4; k++) {
        head[k] = (uint8_t)(cols >> (24 - 8 * k));
        head[4 + k] = (uint8_t)(rows >> (24 - 8 * k));
    }
    head[8] = 1;
    buf pixels;
    buf_init(&pixels, out->e);
    put_zeros(&pixels, whole ? (size_t)rows * (1 + (cols + 7) / 8) : 1);
    buf_append(out, "\x89PNG\r\n\x1a\n", 8);
    put_chunk(out, "IHDR", head, sizeof head);
    put_chunk(out, "IDAT", pixels.data, pixels.len);
    put_chunk(out, "IEND", "", 0);
    buf_free(&pixels);
}

#endif
