/* meander_raster.h: from lines to pictures: the band of a channel on a grid of pixels, exact
 * shrinking of a square, and the signed distance to the bank. */
#ifndef MNP_DATA_MEANDER_RASTER_H
#define MNP_DATA_MEANDER_RASTER_H

#include "util/env.h"
#include "util/limits.h"

/* A mask of rows x cols square pixels; row 0 is the top, at the largest y. The centre of (r, c) is
 * (x0 + (c + 1/2) cell, y1 - (r + 1/2) cell). */
typedef struct meander_raster {
    int64_t rows, cols;
    double x0, y1, cell;
    uint8_t *mask; /* (rows, cols), 1 = river */
} meander_raster;

/* Sets the pixels whose centre is no further than `reach` from the polyline; what lies outside the
 * raster is left out. */
void meander_paint(meander_raster *r, int64_t n, const double *x, const double *y, double reach);

/* A square of side x side pixels of a mask with `stride` pixels a row, shrunk to size x size: each
 * output pixel is the covered share of its area, exact up to one rounding. sums (size): scratch.
 * side <= MEANDER_SIDE_MAX. */
void meander_shrink(const uint8_t *mask, int64_t stride, int64_t side, int64_t size, int32_t *sums,
                    float *gray);

/* Signed distance of each pixel centre of mask (size, size) to the nearest pixel centre of the
 * other kind, in units of the image side: negative in the river (mask 1), positive outside. False
 * where the mask has one kind only. scratch (size + 2, size). size <= MEANDER_SIDE_MAX. */
bool meander_signed_distance(const uint8_t *mask, int64_t size, int32_t *scratch, double *sdf);

#endif
