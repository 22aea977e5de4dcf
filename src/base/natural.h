/* natural.h: natural cubic splines by their values at knots, and sums of such splines over several
 * inputs. With knots k_0 < .. < k_K-1 the spline through (k_j, v_j) is sum_j v_j l_j(x): l_j is the
 * natural spline that is one at k_j and zero at the other knots. It is a line outside the knots, a
 * line everywhere for two knots, and the number one for a single knot. The l_j sum to one.
 *
 * A basis of X inputs with room for K knots each has 1 + X (K - 1) columns: one, then K - 1 for
 * every input, of which input c uses l_1 .. l_(count_c - 1); the others are zero. So the spans of
 * the inputs share the constant alone. */
#ifndef MNP_BASE_NATURAL_H
#define MNP_BASE_NATURAL_H

#include <stdint.h>

#include "util/limits.h"

typedef struct natural {
    int32_t count;
    double knot[NATURAL_KNOTS_MAX];
    double bend[NATURAL_KNOTS_MAX][NATURAL_KNOTS_MAX]; /* [i][j]: second derivative of l_j at k_i */
} natural;

/* Takes the leading knots that ascend strictly, at least one and at most the maximum: knots after
 * them (as the file of a model has them, which repeats the last one) are left out. */
void natural_make(natural *s, const double *knots, int32_t count);
/* l_0 .. l_(count - 1) at x. */
void natural_at(const natural *s, double x, double *out);

static inline int32_t natural_columns(int64_t x_dim, int64_t knots) {
    return (int32_t)(1 + x_dim * (knots - 1));
}
/* One row of the basis: x (x_dim) and the splines of the inputs, out (natural_columns). */
void natural_row(const natural *inputs, int32_t x_dim, int32_t knots, const double *x, double *out);

#endif
