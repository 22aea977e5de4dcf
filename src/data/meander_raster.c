/* meander_raster.c: painting a channel and shrinking a picture. See meander_raster.h. */
#include "data/meander_raster.h"

#include <math.h>

typedef struct span {
    int64_t lo, hi; /* lo .. hi - 1 */
} span;

/* Pixels whose centre (k + 1/2) may lie between lo and hi, both in pixels from the edge. */
static span pixels_between(double lo, double hi, int64_t count) {
    double first = floor(lo - 0.5), last = ceil(hi - 0.5);
    span s = {0, 0};
    if (!(last >= 0) || !(first < (double)count)) return s;
    s.lo = first > 0 ? (int64_t)first : 0;
    s.hi = last < (double)count - 1 ? (int64_t)last + 1 : count;
    return s;
}

/* One segment from (ax, ay) over (dx, dy); all in pixels, y downwards. */
static void paint_segment(meander_raster *r, double ax, double ay, double dx, double dy,
                          double reach) {
    double length2 = dx * dx + dy * dy, inverse = length2 > 0 ? 1 / length2 : 0;
    span rows = pixels_between(fmin(ay, ay + dy) - reach, fmax(ay, ay + dy) + reach, r->rows);
    span cols = pixels_between(fmin(ax, ax + dx) - reach, fmax(ax, ax + dx) + reach, r->cols);
    for (int64_t row = rows.lo; row < rows.hi; row++) {
        uint8_t *mask = r->mask + row * r->cols;
        double py = (double)row + 0.5 - ay;
        for (int64_t col = cols.lo; col < cols.hi; col++) {
            double px = (double)col + 0.5 - ax, t = (px * dx + py * dy) * inverse;
            t = t < 0 ? 0 : t > 1 ? 1 : t;
            double ex = px - t * dx, ey = py - t * dy;
            mask[col] |= ex * ex + ey * ey <= reach * reach;
        }
    }
}

void meander_paint(meander_raster *r, int64_t n, const double *x, const double *y, double reach) {
    for (int64_t i = 0; i + 1 < n; i++)
        paint_segment(r, (x[i] - r->x0) / r->cell, (r->y1 - y[i]) / r->cell,
                      (x[i + 1] - x[i]) / r->cell, (y[i] - y[i + 1]) / r->cell, reach / r->cell);
}

/* In units of 1/size of an input pixel, input pixel c covers [c size, (c + 1) size) and output
 * pixel j covers [j side, (j + 1) side): overlaps are whole numbers, and so are all sums. */
static int32_t overlap(int64_t c, int64_t j, int64_t side, int64_t size) {
    int64_t lo = c * size > j * side ? c * size : j * side;
    int64_t hi = (c + 1) * size < (j + 1) * side ? (c + 1) * size : (j + 1) * side;
    return (int32_t)(hi - lo);
}

void meander_shrink(const uint8_t *mask, int64_t stride, int64_t side, int64_t size, int32_t *sums,
                    float *gray) {
    double area = (double)side * (double)side;
    for (int64_t i = 0; i < size; i++) {
        for (int64_t j = 0; j < size; j++) sums[j] = 0;
        for (int64_t r = i * side / size; r * size < (i + 1) * side; r++) {
            int32_t height = overlap(r, i, side, size);
            const uint8_t *row = mask + r * stride;
            for (int64_t j = 0; j < size; j++) {
                int32_t covered = 0;
                for (int64_t c = j * side / size; c * size < (j + 1) * side; c++)
                    if (row[c]) covered += overlap(c, j, side, size);
                sums[j] += height * covered;
            }
        }
        for (int64_t j = 0; j < size; j++) gray[i * size + j] = (float)((double)sums[j] / area);
    }
}
