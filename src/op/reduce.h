/* reduce.h: operands of the instructions that sum points and average samples, for backends.
 * All have one input in[0] and one output out[0] unless said otherwise. */
#ifndef MNP_OP_REDUCE_H
#define MNP_OP_REDUCE_H

#include "op/frame.h"

/* sum_rows, per_point and their grads: which rows (a row_range of op.h). */
enum { REDUCE_RANGE };  /* i */
enum { REDUCE_FACTOR }; /* f, per_point */

/* logmeanexp_grad: in[0] is the upstream gradient, in[1] the forward input. */
enum { LOGMEANEXP_GRAD_G, LOGMEANEXP_GRAD_X };

/* Rows [lo, hi) of a value with `rows` rows that a range (ROWS_ALL, ROWS_REST, ROWS_CONTEXT,
 * ROWS_UNSEEN) names, and per_point's divisor. */
static inline int64_t reduce_lo(const frame *f, int32_t range) {
    return range == 1 ? f->m : range == 3 ? f->k : 0;
}
static inline int64_t reduce_hi(const frame *f, int32_t range, int64_t rows) {
    return range == 2 ? f->m : rows;
}
static inline double reduce_count(const frame *f, int32_t range) {
    int64_t count = reduce_hi(f, range, f->n) - reduce_lo(f, range);
    return count > 1 ? (double)count : 1.0;
}

/* log (1/S) sum_s exp(x_s), shifted by the largest. Infinities and NaN come through as such. */
double reduce_logmeanexp(const double *x, int64_t samples);
/* The weights of its gradient, softmax(x) times g, added to (or put into) gx. */
void reduce_logmeanexp_grad(const double *x, int64_t samples, double g, double *gx, bool add);

#endif
