/* natural.c: see natural.h. The second derivatives M_i of a natural spline at its knots solve, with
 * h_i = k_(i+1) - k_i and M_0 = M_(K-1) = 0,
 *
 *   h_(i-1) M_(i-1) + 2 (h_(i-1) + h_i) M_i + h_i M_(i+1)
 *                                    = 6 ((v_(i+1) - v_i) / h_i - (v_i - v_(i-1)) / h_(i-1)) */
#include "base/natural.h"

#include <math.h>
#include <string.h>

/* Elimination without pivoting: the matrix is diagonally dominant. All right-hand sides at once. */
static void solve_bends(natural *s) {
    int32_t K = s->count;
    double pivot[NATURAL_KNOTS_MAX] = {0};
    for (int32_t i = 1; i + 1 < K; i++) {
        double before = s->knot[i] - s->knot[i - 1], after = s->knot[i + 1] - s->knot[i];
        s->bend[i][i - 1] += 6 / before;
        s->bend[i][i] -= 6 / before + 6 / after;
        s->bend[i][i + 1] += 6 / after;
        pivot[i] = 2 * (before + after);
        if (i == 1) continue;
        double f = before / pivot[i - 1];
        pivot[i] -= f * before;
        for (int32_t j = 0; j < K; j++) s->bend[i][j] -= f * s->bend[i - 1][j];
    }
    for (int32_t i = K - 2; i >= 1; i--) {
        double after = s->knot[i + 1] - s->knot[i];
        for (int32_t j = 0; j < K; j++)
            s->bend[i][j] = (s->bend[i][j] - after * s->bend[i + 1][j]) / pivot[i];
    }
}

void natural_make(natural *s, const double *knots, int32_t count) {
    *s = (natural){.count = 1};
    s->knot[0] = knots[0];
    while (s->count < count && s->count < NATURAL_KNOTS_MAX &&
           knots[s->count] > s->knot[s->count - 1]) {
        s->knot[s->count] = knots[s->count];
        s->count++;
    }
    solve_bends(s);
}

/* The line that goes on from the end knot `at`, whose neighbour inside is `next`. Bends at the ends
 * are zero, so the slope there is that of the chord less a sixth of the neighbour's bend. */
static void along_line(const natural *s, int32_t at, int32_t next, double x, double *out) {
    double h = s->knot[next] - s->knot[at], away = x - s->knot[at];
    for (int32_t j = 0; j < s->count; j++) {
        double value = j == at ? 1 : 0, rise = (j == next ? 1 : 0) - value;
        out[j] = value + away * (rise / h - h / 6 * s->bend[next][j]);
    }
}

void natural_at(const natural *s, double x, double *out) {
    int32_t K = s->count, i = 0;
    if (K == 1) {
        out[0] = 1;
        return;
    }
    if (!(x > s->knot[0])) {
        along_line(s, 0, 1, x, out);
        return;
    }
    if (!(x < s->knot[K - 1])) {
        along_line(s, K - 1, K - 2, x, out);
        return;
    }
    while (x >= s->knot[i + 1]) i++;
    double h = s->knot[i + 1] - s->knot[i], b = (x - s->knot[i]) / h, a = 1 - b;
    double left = (a * a * a - a) * h * h / 6, right = (b * b * b - b) * h * h / 6;
    for (int32_t j = 0; j < K; j++)
        out[j] = (j == i ? a : 0) + (j == i + 1 ? b : 0) + left * s->bend[i][j] +
                 right * s->bend[i + 1][j];
}

void natural_row(const natural *inputs, int32_t x_dim, int32_t knots, const double *x,
                 double *out) {
    memset(out, 0, (size_t)natural_columns(x_dim, knots) * sizeof *out);
    out[0] = 1;
    for (int32_t c = 0; c < x_dim; c++) {
        double at[NATURAL_KNOTS_MAX];
        natural_at(&inputs[c], x[c], at);
        int32_t used = inputs[c].count < knots ? inputs[c].count : knots;
        for (int32_t j = 1; j < used; j++) out[1 + c * (knots - 1) + j - 1] = at[j];
    }
}
