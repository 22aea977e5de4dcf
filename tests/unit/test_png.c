/* test_png.c: PNG pictures taken apart by an independent, slow reader: chunks and their checksums,
 * the stored blocks, and every pixel. */
#include "util/png.h"

#include "base/rng.h"
#include "check.h"

static env E;

static uint32_t u32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Bit by bit, as the definition has it. */
static uint32_t slow_crc(const uint8_t *p, size_t n) {
    uint32_t c = 0xFFFFFFFFu;
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++) {
            uint32_t low = (c ^ (uint32_t)(p[i] >> bit)) & 1;
            c = c >> 1 ^ (low ? 0xEDB88320u : 0);
        }
    return ~c;
}

/* The chunk at *at must be `name`; returns its data and moves on. */
static const uint8_t *chunk(const buf *b, size_t *at, const char *name, size_t *bytes) {
    const uint8_t *p = (const uint8_t *)b->data + *at;
    *bytes = u32(p);
    CHECK(*at + 12 + *bytes <= b->len && memcmp(p + 4, name, 4) == 0);
    CHECK(u32(p + 8 + *bytes) == slow_crc(p + 4, *bytes + 4));
    *at += 12 + *bytes;
    return p + 8;
}

/* The zlib stream of stored blocks. */
static size_t inflate(const uint8_t *z, size_t bytes, uint8_t *out) {
    CHECK((z[0] & 15) == 8 && (z[0] * 256 + z[1]) % 31 == 0 && !(z[1] & 32));
    size_t at = 2, n = 0;
    uint64_t a = 1, b = 0;
    for (bool last = false; !last;) {
        last = z[at] == 1;
        CHECK(z[at] <= 1);
        size_t length = z[at + 1] + 256u * z[at + 2];
        CHECK((length ^ 0xFFFF) == z[at + 3] + 256u * z[at + 4]);
        memcpy(out + n, z + at + 5, length);
        n += length;
        at += 5 + length;
    }
    for (size_t i = 0; i < n; i++) {
        a += out[i];
        b += a;
    }
    CHECK(at + 4 == bytes && u32(z + at) == ((b % 65521) << 16 | a % 65521));
    return n;
}

static void round_trip(int64_t width, int64_t height, int bits) {
    rng_stream s = rng_stream_make((rng_key){1}, RNG_TEST, (uint32_t)width);
    uint8_t *pixels = env_alloc(&E, (size_t)(width * height), 1, "pixels");
    for (int64_t i = 0; i < width * height; i++)
        pixels[i] = (uint8_t)(bits == 8 ? rng_u32(&s) : rng_u32(&s) & 1);
    buf b;
    buf_init(&b, &E);
    CHECK(png_gray(&b, width, height, bits, pixels) == MNP_OK);
    CHECK(memcmp(b.data, "\x89PNG\r\n\x1a\n", 8) == 0);
    size_t at = 8, n = 0, row = 1 + (size_t)(width * bits + 7) / 8;
    const uint8_t *head = chunk(&b, &at, "IHDR", &n);
    CHECK(n == 13 && u32(head) == width && u32(head + 4) == height && head[8] == bits);
    CHECK(head[9] == 0 && head[10] == 0 && head[11] == 0 && head[12] == 0);
    const uint8_t *data = chunk(&b, &at, "IDAT", &n);
    uint8_t *rows = env_alloc(&E, row * (size_t)height, 1, "rows");
    CHECK(inflate(data, n, rows) == row * (size_t)height);
    for (int64_t i = 0; i < width * height; i++) {
        const uint8_t *r = rows + (size_t)(i / width) * row;
        int64_t c = i % width;
        int got = bits == 8 ? r[1 + c] : r[1 + c / 8] >> (7 - c % 8) & 1;
        CHECK(r[0] == 0 && got == pixels[i]);
    }
    chunk(&b, &at, "IEND", &n);
    CHECK(n == 0 && at == b.len);
    buf_free(&b);
    env_free(&E, rows);
    env_free(&E, pixels);
}

static void pictures_can_be_read(void) {
    round_trip(1, 1, 1);
    round_trip(1, 1, 8);
    round_trip(13, 7, 1);
    round_trip(13, 7, 8);
    round_trip(128, 128, 1);
    round_trip(254, 257, 8); /* 255 * 257 = 65535 bytes: exactly one block */
    round_trip(300, 500, 8); /* several */
}

static void bad_sizes_are_refused(void) {
    buf b;
    uint8_t pixel = 0;
    buf_init(&b, &E);
    CHECK(png_gray(&b, 0, 1, 8, &pixel) == MNP_EINVAL);
    CHECK(png_gray(&b, 1, -1, 8, &pixel) == MNP_EINVAL);
    CHECK(png_gray(&b, 1, 1, 4, &pixel) == MNP_EINVAL);
    CHECK(png_gray(&b, 1 << 20, 1 << 20, 8, &pixel) == MNP_EINVAL);
    CHECK(png_write_gray(&E, "/nonexistent/a.png", 1, 1, 8, &pixel) == MNP_EIO);
    buf_free(&b);
}

int main(void) {
    env_init(&E);
    RUN(pictures_can_be_read);
    RUN(bad_sizes_are_refused);
    return check_done();
}
