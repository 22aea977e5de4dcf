/* test_png_read.c: PNG files written by another program (zlib's compression, all filters), our own
 * files read back, and damaged ones. The pictures have pixels that a formula tells. */
#include "util/png_read.h"

#include "check.h"
#include "util/png.h"

static env E;

static const uint8_t gray8[] = {
    137, 80,  78,  71,  13,  10,  26,  10,  0,   0,   0,   13,  73,  72,  68,  82,  0,   0,
    0,   20,  0,   0,   0,   11,  8,   0,   0,   0,   0,   90,  98,  242, 159, 0,   0,   0,
    194, 73,  68,  65,  84,  120, 218, 99,  96,  96,  230, 145, 54,  240, 206, 153, 124, 224,
    179, 78,  246, 134, 223, 62,  139, 25,  146, 207, 88,  51,  178, 179, 112, 9,   136, 201,
    40,  105, 232, 153, 88,  57,  184, 249, 4,   69,  196, 165, 100, 21,  48,  177, 115, 112,
    114, 113, 243, 240, 242, 241, 11,  8,   10,  9,   139, 136, 138, 137, 75,  72,  74,  49,
    243, 177, 115, 243, 9,   137, 74,  202, 40,  44,  86,  215, 210, 219, 104, 106, 177, 199,
    222, 217, 141, 133, 157, 29,  83,  37,  131, 178, 182, 165, 111, 122, 251, 218, 155, 220,
    206, 141, 71,  249, 227, 183, 10,  22,  223, 246, 220, 203, 168, 197, 201, 47,  42,  173,
    168, 174, 107, 108, 105, 239, 234, 29,  24,  30,  155, 156, 153, 95,  138, 221, 34,  5,
    46,  94,  65,  17,  9,   105, 121, 37,  53,  77,  221, 13,  38,  230, 187, 237, 14,  185,
    122, 178, 32,  171, 244, 19,  17,  77,  0,   91,  228, 22,  156, 86,  63,  239, 240, 59,
    249, 176, 201, 215, 228, 243, 14,  203, 213, 63,  11,  62,  102, 15,  0,   184, 157, 50,
    55,  34,  10,  67,  131, 0,   0,   0,   0,   73,  69,  78,  68,  174, 66,  96,  130};
static const uint8_t repeats[] = {
    137, 80,  78,  71,  13,  10, 26, 10,  0,   0,   0,   13,  73,  72,  68,  82, 0,   0,  0,   64,
    0,   0,   0,   64,  8,   0,  0,  0,   0,   143, 2,   46,  2,   0,   0,   0,  58,  73, 68,  65,
    84,  120, 218, 237, 204, 65, 17, 128, 48,  16,  0,   177, 147, 82,  41,  72, 65,  74, 165, 32,
    5,   41,  149, 194, 103, 85, 48, 137, 128, 204, 100, 229, 202, 157, 157, 39, 111, 78, 70,  32,
    16,  8,   4,   2,   129, 64, 32, 16,  8,   4,   2,   193, 223, 131, 15,  96, 161, 0,  106, 136,
    128, 26,  232, 0,   0,   0,  0,  73,  69,  78,  68,  174, 66,  96,  130};
static const uint8_t rgb8[] = {
    137, 80,  78,  71,  13,  10,  26,  10,  0,   0,   0,   13,  73,  72,  68,  82,  0,   0,   0,
    20,  0,   0,   0,   11,  8,   2,   0,   0,   0,   240, 107, 58,  20,  0,   0,   0,   40,  73,
    68,  65,  84,  120, 218, 157, 145, 73,  79,  219, 96,  16,  134, 145, 28,  240, 146, 221, 217,
    109, 103, 115, 136, 157, 205, 129, 16,  59,  142, 161, 137, 179, 200, 73,  88,  90,  1,   23,
    184, 80,  85,  165, 23,  9,   7,   208, 231, 0,   0,   1,   155, 73,  68,  65,  84,  122, 1,
    85,  234, 177, 191, 133, 150, 244, 220, 38,  61,  161, 36,  167, 16,  144, 104, 249, 81,  188,
    32,  69,  202, 133, 67,  185, 126, 243, 206, 60,  223, 60,  99,  91,  34,  9,   194, 70,  211,
    140, 219, 237, 9,   4,   130, 60,  47,  36,  147, 162, 44,  103, 20,  165, 88,  46,  171, 134,
    177, 105, 154, 13,  203, 234, 236, 238, 238, 29,  28,  28,  30,  29,  29,  159, 156, 188, 63,
    61,  253, 116, 118, 246, 249, 252, 252, 226, 43,  65,  218, 153, 21,  146, 97,  24,  167, 211,
    229, 245, 122, 253, 254, 64,  56,  28,  198, 136, 120, 60,  46,  138, 125, 73,  146, 178, 217,
    156, 162, 40,  235, 235, 67,  85,  85,  117, 189, 58,  30,  143, 235, 117, 179, 213, 106, 221,
    222, 222, 109, 219, 72,  146, 90,  94,  161, 129, 102, 24,  187, 221, 238, 112, 56,  156, 24,
    227, 114, 185, 241, 19,  143, 7,   227, 88,  150, 245, 249, 124, 126, 76,  197, 199, 130, 193,
    80,  40,  132, 233, 145, 72,  132, 227, 190, 240, 132, 139, 101, 73,  10,  109, 200, 35,  135,
    0,   10,  130, 16,  77,  36,  18,  253, 254, 79,  89,  150, 115, 185, 124, 177, 88,  28,  14,
    255, 104, 154, 86,  173, 26,  147, 201, 4,   139, 180, 219, 55,  157, 78,  119, 231, 137, 76,
    82,  47,  144, 171, 11,  228, 253, 57,  249, 227, 156, 204, 241, 68,  32,  194, 81,  52,  122,
    16,  70,  8,   85,  188, 70,  163, 177, 100, 242, 199, 234, 106, 58,  147, 201, 228, 243, 133,
    181, 181, 223, 27,  27,  229, 74,  165, 98,  24,  163, 90,  173, 214, 104, 52,  103, 179, 89,
    183, 219, 251, 247, 68,  166, 168, 255, 223, 249, 226, 153, 44,  36,  68,  26,  170, 157, 72,
    34,  129, 18,  207, 243, 177, 88,  252, 234, 74,  76,  167, 161, 58,  91,  40,  40,  131, 193,
    0,   103, 211, 117, 125, 52,  130, 234, 122, 179, 57,  181, 44,  171, 215, 219, 126, 120, 137,
    172, 105, 139, 228, 119, 115, 242, 135, 5,   219, 220, 55,  34,  37,  231, 24,  168, 198, 145,
    161, 26,  71,  134, 106, 225, 242, 242, 123, 42,  149, 146, 36,  168, 198, 145, 127, 149, 74,
    37,  85,  133, 234, 235, 173, 173, 55,  166, 105, 78,  167, 80,  221, 185, 191, 255, 251, 246,
    181, 59,  63,  219, 126, 4,   133, 134, 105, 211, 165, 15,  114, 217, 0,   0,   0,   0,   73,
    69,  78,  68,  174, 66,  96,  130};
static const uint8_t palette4[] = {
    137, 80, 78,  71,  13,  10, 26,  10,  0,   0,   0,   13, 73,  72,  68,  82,  0,  0,  0,
    5,   0,  0,   0,   3,   4,  3,   0,   0,   0,   169, 24, 216, 203, 0,   0,   0,  12, 80,
    76,  84, 69,  0,   0,   0,  255, 255, 255, 255, 0,   0,  0,   0,   255, 1,   29, 51, 74,
    0,   0,  0,   14,  73,  68, 65,  84,  120, 1,   99,  96, 84,  102, 96,  128, 98, 0,  2,
    151, 0,  109, 103, 129, 30, 232, 0,   0,   0,   0,   73, 69,  78,  68,  174, 66, 96, 130};
static const uint8_t gray16[] = {
    137, 80,  78,  71,  13,  10,  26,  10, 0,   0,   0,   13,  73,  72,  68,  82,  0,   0,  0,  3,
    0,   0,   0,   2,   16,  0,   0,   0,  0,   232, 143, 229, 133, 0,   0,   0,   22,  73, 68, 65,
    84,  120, 218, 99,  98,  96,  104, 96, 248, 255, 159, 137, 129, 177, 145, 145, 225, 63, 0,  25,
    178, 4,   5,   192, 128, 183, 209, 0,  0,   0,   0,   73,  69,  78,  68,  174, 66,  96, 130};

static int value(int64_t r, int64_t c) {
    return (int)(7 * r + 3 * c * c + r * c) & 255;
}

static png_picture read(const uint8_t *bytes, size_t size, int64_t rows, int64_t cols) {
    png_picture p;
    CHECK(png_parse(&E, "test.png", bytes, size, &p) == MNP_OK);
    CHECK(p.rows == rows && p.cols == cols);
    return p;
}

static void grey_with_all_filters(void) {
    png_picture p = read(gray8, sizeof gray8, 11, 20);
    for (int64_t i = 0; p.gray && i < 11 * 20; i++)
        NEAR(p.gray[i], value(i / 20, i % 20) / 255.0, 1e-6, 0);
    png_free(&E, &p);
    p = read(repeats, sizeof repeats, 64, 64);
    for (int64_t i = 0; p.gray && i < 64 * 64; i++)
        NEAR(p.gray[i], (double)(i % 64 / 8 * 32) / 255.0, 1e-6, 0);
    png_free(&E, &p);
}

static void colours_become_brightness(void) {
    png_picture p = read(rgb8, sizeof rgb8, 11, 20);
    for (int64_t i = 0; p.gray && i < 11 * 20; i++) {
        int64_t r = i / 20, c = i % 20;
        double want = 0.299 * value(r, c) + 0.587 * value(r + 1, c) + 0.114 * value(r, c + 1);
        NEAR(p.gray[i], want / 255.0, 1e-6, 0);
    }
    png_free(&E, &p);
    static const double colour[] = {0, 1, 0.299, 0.114, 0};
    p = read(palette4, sizeof palette4, 3, 5);
    for (int64_t i = 0; p.gray && i < 15; i++) NEAR(p.gray[i], colour[i % 5], 1e-6, 0);
    png_free(&E, &p);
}

static void deep_grey(void) {
    static const double want[] = {0, 32768, 65535, 1, 257, 65534};
    png_picture p = read(gray16, sizeof gray16, 2, 3);
    for (int64_t i = 0; p.gray && i < 6; i++) NEAR(p.gray[i], want[i] / 65535.0, 1e-6, 0);
    png_free(&E, &p);
}

static void own_files_come_back(void) {
    enum { ROWS = 7, COLS = 13 };
    uint8_t pixels[ROWS * COLS];
    for (int64_t i = 0; i < ROWS * COLS; i++) pixels[i] = (uint8_t)value(i / COLS, i % COLS);
    for (int bits = 1; bits <= 8; bits += 7) {
        buf b;
        buf_init(&b, &E);
        CHECK(png_gray(&b, COLS, ROWS, bits, pixels) == MNP_OK);
        png_picture p = read((const uint8_t *)b.data, b.len, ROWS, COLS);
        for (int64_t i = 0; p.gray && i < ROWS * COLS; i++)
            NEAR(p.gray[i], bits == 8 ? pixels[i] / 255.0 : pixels[i] != 0, 1e-6, 0);
        png_free(&E, &p);
        buf_free(&b);
    }
}

/* No byte, whatever its value, leads outside the arrays; a file cut short is refused. */
static void *modest(void *user, size_t bytes, size_t align) {
    (void)user;
    return bytes > 1 << 20 ? NULL : aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void damaged_files(void) {
    uint8_t copy[sizeof rgb8];
    png_picture p;
    for (size_t cut = 0; cut < sizeof rgb8; cut += 3) {
        CHECK(png_parse(&E, "cut.png", rgb8, cut, &p) == MNP_EFORMAT && !p.gray);
        memcpy(copy, rgb8, sizeof copy);
        for (int bit = 0; bit < 8; bit++) {
            copy[cut] = (uint8_t)(rgb8[cut] ^ 1 << bit);
            if (png_parse(&E, "bad.png", copy, sizeof copy, &p) == MNP_OK) png_free(&E, &p);
        }
    }
    memcpy(copy, rgb8, sizeof copy);
    copy[60] ^= 4; /* within the pixels: the checksum tells */
    CHECK(png_parse(&E, "bad.png", copy, sizeof copy, &p) == MNP_EFORMAT);
    CHECK(strstr(E.error, "bad.png: a damaged PNG file") != NULL);
    memcpy(copy, rgb8, sizeof copy);
    copy[18] = copy[22] = 0x7F; /* a billion pixels, which so few bytes cannot hold */
    E.allocator.alloc = modest;
    CHECK(png_parse(&E, "vast.png", copy, sizeof copy, &p) == MNP_EFORMAT);
    env_init(&E);
    memcpy(copy, rgb8, sizeof copy);
    copy[28] = 1;
    CHECK(png_parse(&E, "woven.png", copy, sizeof copy, &p) == MNP_EFORMAT);
    CHECK(strstr(E.error, "interlac") != NULL);
    CHECK(png_parse(&E, "text.png", "hello, world", 12, &p) == MNP_EFORMAT);
}

int main(void) {
    env_init(&E);
    RUN(grey_with_all_filters);
    RUN(colours_become_brightness);
    RUN(deep_grey);
    RUN(own_files_come_back);
    RUN(damaged_files);
    return check_done();
}
