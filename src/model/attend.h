/* attend.h: what a point is told of the context C by attention: a vector h_C(x) for every row x, of
 * its features and of the set C alone, whatever other rows there are. Every point is a token: one
 * of the context of its features and its y, a target of its features alone. All tokens attend to
 * the context's, block by block; so a target sees the context and, by the residuals, itself.
 *
 *   c_j = E(phi(x_j) W_x + y_j w_y + w_c + b),   t_i = E(phi(x_i) W_x + b),   E(u) = relu(u) W + b'
 *   a block:  h <- h + [q + softmax(q k^T / sqrt(D)) v] W_o,  h <- h + relu(norm(h) W_1) W_2
 *             with q of norm(h), and k, v of the normed context tokens
 *
 * Rows of the context are targets too: they are asked about as if not observed. Without a context a
 * target attends to nothing, and its vector depends on x alone. */
#ifndef MNP_MODEL_ATTEND_H
#define MNP_MODEL_ATTEND_H

#include "model/spec.h"

typedef struct attend_opts {
    const char *prefix; /* of the names of its weights */
    int64_t width, heads, blocks;
    double y_gain; /* initial gain of the weights on y */
} attend_opts;

/* Those of a chain with attend=on. */
attend_opts attend_of(const model_spec *s);
mnp_status attend_check(env *e, const attend_opts *o);
/* h (n, width) of the features phi (n, F) and the values y of all rows, of which the first m are
 * the context; other values are not read. */
val attend_record(graph *g, const attend_opts *o, val phi, val y);

#endif
