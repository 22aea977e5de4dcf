/* sheet.c: see sheet.h. */
#include "util/sheet.h"

#include <string.h>

enum { GAP = 4, GROUND = 128 };

mnp_status sheet_begin(env *e, int64_t pictures, int64_t rows, int64_t cols, sheet *s) {
    *s = (sheet){.count = pictures < SHEET_MAX ? pictures : SHEET_MAX, .rows = rows, .cols = cols};
    s->across = s->count < SHEET_COLS ? s->count : SHEET_COLS;
    s->width = s->across * (cols + GAP) + GAP;
    s->height = (s->count + s->across - 1) / s->across * (rows + GAP) + GAP;
    s->pixels = env_alloc(e, (size_t)(s->width * s->height), 1, "a contact sheet");
    if (!s->pixels) return MNP_ENOMEM;
    memset(s->pixels, GROUND, (size_t)(s->width * s->height));
    return MNP_OK;
}

uint8_t *sheet_pixel(const sheet *s, int64_t k, int64_t row, int64_t col) {
    int64_t top = GAP + k / s->across * (s->rows + GAP);
    int64_t left = GAP + k % s->across * (s->cols + GAP);
    return s->pixels + (top + row) * s->width + left + col;
}

mnp_status sheet_write(env *e, const char *path, const sheet *s) {
    return png_write_gray(e, path, s->width, s->height, 8, s->pixels);
}

void sheet_free(env *e, sheet *s) {
    env_free(e, s->pixels);
    s->pixels = NULL;
}
