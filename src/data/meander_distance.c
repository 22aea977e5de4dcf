/* meander_distance.c: the exact Euclidean distance transform in two passes (Felzenszwalb and
 * Huttenlocher 2012; Meijster, Roerdink and Hesselink 2000). First, in every column, the distance g
 * to the nearest feature pixel above or below; then, in every row, the least of (c - k)^2 + g_k^2
 * over all k, as the lower envelope of parabolas. Squared distances are whole numbers, so the
 * result is exact. */
#include <math.h>

#include "data/meander_raster.h"

/* g (size, size): distance along the column to a pixel of the kind `feature`, at most `far`. */
static void along_columns(const uint8_t *mask, int64_t size, uint8_t feature, int32_t far,
                          int32_t *g) {
    for (int64_t c = 0; c < size; c++) {
        int32_t away = far;
        for (int64_t r = 0; r < size; r++) {
            away = mask[r * size + c] == feature ? 0 : away < far ? away + 1 : far;
            g[r * size + c] = away;
        }
        for (int64_t r = size - 1; r >= 0; r--) {
            if (g[r * size + c] < away) away = g[r * size + c];
            g[r * size + c] = away;
            if (away < far) away++;
        }
    }
}

/* The first column from which the parabola of column b (> a) is no higher than that of column a. */
static int64_t takes_over(const int32_t *g, int64_t a, int64_t b) {
    int64_t rise = (int64_t)g[b] * g[b] - (int64_t)g[a] * g[a] + b * b - a * a, run = 2 * (b - a);
    return rise <= 0 ? 0 : (rise + run - 1) / run;
}

/* Adds `scale` times the distances of one row. top, from (size): the parabolas of the envelope and
 * where each begins. */
static void along_row(const int32_t *g, int64_t size, int32_t *top, int32_t *from, double scale,
                      double *out) {
    int64_t q = 0;
    top[0] = from[0] = 0;
    for (int64_t c = 1; c < size; c++) {
        int64_t begin = takes_over(g, top[q], c);
        while (q > 0 && begin <= from[q]) begin = takes_over(g, top[--q], c);
        if (begin <= from[q])
            q = -1; /* lower than the only one from the first column on */
        else if (begin >= size)
            continue;
        top[++q] = (int32_t)c;
        from[q] = q == 0 ? 0 : (int32_t)begin;
    }
    for (int64_t c = size - 1; c >= 0; c--) {
        double across = (double)(c - top[q]), along = (double)g[top[q]];
        out[c] += scale * sqrt(across * across + along * along);
        if (c == from[q] && q > 0) q--;
    }
}

/* Adds `scale` times the distance to the nearest pixel of the kind `feature`, which there is. */
static void add_distance(const uint8_t *mask, int64_t size, uint8_t feature, double scale,
                         int32_t *scratch, double *out) {
    int32_t *g = scratch, *top = g + size * size, *from = top + size;
    along_columns(mask, size, feature, (int32_t)(2 * size), g); /* 2 size: beyond any distance */
    for (int64_t r = 0; r < size; r++)
        along_row(g + r * size, size, top, from, scale, out + r * size);
}

bool meander_signed_distance(const uint8_t *mask, int64_t size, int32_t *scratch, double *sdf) {
    int64_t pixels = size * size, river = 0;
    for (int64_t i = 0; i < pixels; i++) {
        river += mask[i];
        sdf[i] = 0;
    }
    if (river == 0 || river == pixels) return false;
    add_distance(mask, size, 1, 1 / (double)size, scratch, sdf);
    add_distance(mask, size, 0, -1 / (double)size, scratch, sdf);
    return true;
}
