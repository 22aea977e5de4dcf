/* fuzz_images.c: any bytes as images: an array, a folder of river images (settings and array), or a
 * folder of two pictures. The first byte chooses; where there are two files, the next two bytes are
 * the length of the first. */
#include <math.h>

#include "fuzz/pictures.h"
#include "fuzz/world.h"

static size_t npy_seed(uint8_t *out, const char *descr, int count, int rows, int cols,
                       size_t size) {
    char header[128];
    int n = snprintf(header, sizeof header,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d, %d), }\n", descr,
                     count, rows, cols);
    size_t bytes = (size_t)(count * rows * cols) * size;
    memcpy(out, "\x93NUMPY\x01\0", 8);
    out[8] = (uint8_t)n, out[9] = 0;
    memcpy(out + 10, header, (size_t)n);
    for (size_t k = 0; k < bytes; k++)
        out[10 + (size_t)n + k] = (uint8_t)(size > 1 ? k % 4 == 3 ? 0x3f : 0 : 51 * k);
    return 10 + (size_t)n + bytes;
}

static size_t river_seed(uint8_t *out) {
    static const char text[] =
        "{\"format\":\"mnp-geofluvial-1\",\"seed\":\"1\",\"options\":\"size=8 crop=100 "
        "crops=2\",\"train\":3,\"valid\":1,\"test\":0,\"complete\":true}";
    size_t length = sizeof text - 1;
    out[0] = 1, out[1] = (uint8_t)length, out[2] = (uint8_t)(length >> 8);
    memcpy(out + 3, text, length);
    return 3 + length + npy_seed(out + 3 + length, "|u1", 3, 8, 1, 1);
}

size_t fuzz_seed(size_t i, uint8_t *out) {
    out[0] = 0;
    if (i == 0) return 1 + npy_seed(out + 1, "|u1", 4, 3, 5, 1);
    if (i == 1) return 1 + npy_seed(out + 1, "<f4", 3, 2, 2, 4);
    if (i == 2) return 1 + npy_seed(out + 1, "<f8", 2, 4, 2, 8);
    if (i == 3) return river_seed(out);
    if (i > 4) return 0;
    size_t first = picture_seed(out + 3, 4, 3, 8, 0);
    out[0] = 2, out[1] = (uint8_t)first, out[2] = (uint8_t)(first >> 8);
    return 3 + first + picture_seed(out + 3 + first, 4, 3, 1, 0);
}

int fuzz_rounds(void) {
    return 4000;
}

static void write_two(const char *folder, const char *one, const char *two, const uint8_t *data,
                      size_t bytes) {
    char path[WORLD_PATH];
    size_t first = bytes > 2 ? data[1] | (size_t)data[2] << 8 : 0, rest = bytes > 3 ? bytes - 3 : 0;
    if (first > rest) first = rest;
    mkdir(world_path(path, folder), 0700);
    world_write(path, one, data + (bytes > 3 ? 3 : 0), first);
    world_write(path, two, data + (bytes > 3 ? 3 : 0) + first, rest - first);
}

static const char *write_images(const uint8_t *data, size_t bytes) {
    char path[WORLD_PATH];
    switch (data[0] % 3) {
    case 0:
        world_write(path, "array.npy", data + 1, bytes - 1);
        return "array.npy";
    case 1:
        write_two("rivers", "rivers/geofluvial.json", "rivers/train-00000.npy", data, bytes);
        return "rivers";
    default:
        write_two("two", "two/a.png", "two/b.png", data, bytes);
        return "two";
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char path[WORLD_PATH], what[WORLD_PATH + 8];
    if (bytes < 1) return 0;
    mnp_ctx *ctx = world_open();
    snprintf(what, sizeof what, "images:%s", world_path(path, write_images(data, bytes)));
    mnp_data *images = NULL;
    mnp_data_opts o = {.size = sizeof o, .holdout = bytes % 2 ? -1 : 0.3};
    mnp_status status = mnp_data_open(ctx, what, &o, &images);
    FUZZ_CHECK((status == MNP_OK) == (images != NULL));
    if (world_said(ctx, status) == MNP_OK) {
        int64_t rows, cols, n, functions = mnp_data_functions(images);
        const float *x, *y;
        mnp_data_grid(images, &rows, &cols);
        FUZZ_CHECK(functions > 0 && mnp_data_points(images) == functions * rows * cols);
        for (int64_t i = 0; i < functions; i++) {
            FUZZ_CHECK(mnp_data_function(ctx, images, i, &n, &x, &y) == MNP_OK);
            for (int64_t k = 0; k < n; k++) FUZZ_CHECK(isfinite(y[k]));
        }
    }
    mnp_data_destroy(images);
    world_close(ctx);
    return 0;
}
