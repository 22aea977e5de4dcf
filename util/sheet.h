/* sheet.h: a contact sheet: small grey pictures of one size side by side. */
#ifndef MNP_UTIL_SHEET_H
#define MNP_UTIL_SHEET_H

#include "util/png.h"

enum { SHEET_COLS = 8, SHEET_MAX = 48 };

typedef struct sheet {
    int64_t count; /* pictures there is room for: those asked for, up to SHEET_MAX */
    int64_t rows, cols, across, width, height;
    uint8_t *pixels; /* env memory */
} sheet;

/* For `pictures` of rows x cols; the ground is grey. */
mnp_status sheet_begin(env *e, int64_t pictures, int64_t rows, int64_t cols, sheet *s);
/* Where pixel (row, col) of picture k is: 0 black, 255 white. */
uint8_t *sheet_pixel(const sheet *s, int64_t k, int64_t row, int64_t col);
mnp_status sheet_write(env *e, const char *path, const sheet *s);
void sheet_free(env *e, sheet *s); /* accepts zeros */

#endif
