/* fuzz_png.c: any bytes as the only picture of a folder of images. Where the first byte is odd, the
 * bytes are the file; else they are its header, its palette and its rows, from which a file is made
 * that is packed as it should be. */
#include <math.h>

#include "fuzz/pictures.h"
#include "fuzz/world.h"

static const uint8_t packed[] = {/* 64 x 64, by another program: codes of its own, copies */
                                 137, 80,  78,  71,  13,  10,  26,  10,  0,   0,   0,   13,  73,
                                 72,  68,  82,  0,   0,   0,   64,  0,   0,   0,   64,  8,   0,
                                 0,   0,   0,   143, 2,   46,  2,   0,   0,   0,   58,  73,  68,
                                 65,  84,  120, 218, 237, 204, 65,  17,  128, 48,  16,  0,   177,
                                 147, 82,  41,  72,  65,  74,  165, 32,  5,   41,  149, 194, 103,
                                 85,  48,  137, 128, 204, 100, 229, 202, 157, 157, 39,  111, 78,
                                 70,  32,  16,  8,   4,   2,   129, 64,  32,  16,  8,   4,   2,
                                 193, 223, 131, 15,  96,  161, 0,   106, 136, 128, 26,  232, 0,
                                 0,   0,   0,   73,  69,  78,  68,  174, 66,  96,  130};

/* Header, colours, palette, rows. */
static size_t parts_seed(uint8_t *out) {
    static const uint8_t parts[] = {0, 0, 0, 0, 3,    0, 0,    0,   4,    2, 3, 0,
                                    0, 0, 4, 0, 0,    0, 255,  255, 255,  9, 9, 9,
                                    1, 2, 3, 0, 0x40, 1, 0x80, 2,   0xc0, 4, 0};
    memcpy(out, parts, sizeof parts);
    return sizeof parts;
}

size_t fuzz_seed(size_t i, uint8_t *out) {
    static const uint8_t kinds[][2] = {{8, 0}, {1, 0}, {8, 2}, {4, 3}, {16, 4}, {8, 6}};
    out[0] = 1;
    if (i < 6) return 1 + picture_seed(out + 1, 5, 4, kinds[i][0], kinds[i][1]);
    if (i == 6) memcpy(out + 1, packed, sizeof packed);
    if (i == 6) return 1 + sizeof packed;
    return i == 7 ? parts_seed(out) : 0;
}

int fuzz_rounds(void) {
    return 3000;
}

static size_t from_parts(const uint8_t *data, size_t bytes, uint8_t *out) {
    uint8_t head[PICTURE_HEAD] = {0};
    if (bytes < 2 + PICTURE_HEAD) return 0;
    size_t rest = bytes - 2 - PICTURE_HEAD, colours = 3 * (size_t)data[1 + PICTURE_HEAD];
    const uint8_t *palette = data + 2 + PICTURE_HEAD;
    if (colours > rest) colours = rest;
    memcpy(head, data + 1, PICTURE_HEAD);
    return picture_make(out, head, palette, colours, palette + colours, rest - colours);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static uint8_t made[4 * PICTURE_MOST];
    char path[WORLD_PATH], what[WORLD_PATH + 8];
    if (bytes < 1 || bytes > PICTURE_MOST) return 0;
    mnp_ctx *ctx = world_open();
    size_t size = data[0] % 2 ? 0 : from_parts(data, bytes, made);
    mkdir(world_path(path, "pictures"), 0700);
    snprintf(what, sizeof what, "images:%s", path);
    if (data[0] % 2)
        world_write(path, "pictures/a.png", data + 1, bytes - 1);
    else
        world_write(path, "pictures/a.png", made, size);
    mnp_data *images = NULL;
    mnp_data_opts o = {.size = sizeof o, .holdout = -1};
    mnp_status status = mnp_data_open(ctx, what, &o, &images);
    FUZZ_CHECK((status == MNP_OK) == (images != NULL));
    if (world_said(ctx, status) == MNP_OK) {
        int64_t rows, cols, n;
        const float *x, *y;
        mnp_data_grid(images, &rows, &cols);
        FUZZ_CHECK(mnp_data_function(ctx, images, 0, &n, &x, &y) == MNP_OK && n == rows * cols);
        for (int64_t i = 0; i < n; i++) FUZZ_CHECK(y[i] >= 0 && y[i] <= 1 && fabsf(x[i]) <= 1);
    }
    mnp_data_destroy(images);
    world_close(ctx);
    return 0;
}
