/* nn.h: layers of several ops: they declare weights and record, and do no arithmetic.
 *
 * Weights are named by dotted paths below the name given: nn_dense(g, x, "flow.3.1", ...) declares
 * flow.3.1.w (in, out) and flow.3.1.b (1, out). A layer on a concatenation [a, b] is recorded as
 * two blocks whose products are added, so its weight is split: flow.3.0.wx and flow.3.0.wz. */
#ifndef MNP_NN_NN_H
#define MNP_NN_NN_H

#include "op/op.h"

/* How weights start. */
typedef enum nn_init {
    NN_XAVIER, /* uniform +-sqrt(6/(in+out)), zero biases                     */
    NN_AUTHORS /* attention layers uniform +-1/sqrt(in), biases too; rest as above */
} nn_init;

enum { NN_PATH = 128 };
/* "name.suffix"; too long a path is a recording error. Returns out. */
const char *nn_path(graph *g, char out[NN_PATH], const char *name, const char *suffix);

/* A weight matrix `name.suffix` that is a block of a layer with the given fans. */
val nn_weight(graph *g, const char *name, const char *suffix, int32_t in, int32_t out,
              int32_t fan_in, double gain);
val nn_bias(graph *g, const char *name, int32_t out);

/* act(x W + b) with weights name.w and name.b; gain multiplies the initial W. */
val nn_dense(graph *g, val x, const char *name, int32_t out, act_kind act, double gain);

/* y + x W + b: the way back onto a residual stream y, half as large at the start. */
val nn_dense_onto(graph *g, val x, const char *name, val y);
/* Rows of x with mean 0 and variance 1, times name.gain, plus name.shift. */
val nn_norm(graph *g, val x, const char *name);

/* `layers` hidden layers of width `hidden` (ReLU), then a linear one to `out`; the first layer is
 * given as its pre-activation parts (nn_first). name.1.w ... follow name.0. */
typedef struct nn_mlp_opts {
    int32_t hidden, layers, out;
    double last_gain, last_bias; /* where the last layer starts */
    const struct nn_also *also;  /* nn_mlp_beside: more columns of x; or NULL */
} nn_mlp_opts;
/* Columns (rows of x, C) that the first layer reads too, by the weight name.0.<suffix>. */
typedef struct nn_also {
    val of;
    const char *suffix;
    double gain;
} nn_also;
/* Layers after the first: h is the activated first hidden layer. */
val nn_mlp_rest(graph *g, val h, const char *name, const nn_mlp_opts *o);
/* The whole network on [x, row] at every row of x: its first layer is x W_x + b, shared by all
 * samples, plus the one row times the weight name.0.<of_row>. */
val nn_mlp_beside(graph *g, val x, val row, const char *name, const char *of_row,
                  const nn_mlp_opts *o);

/* Options of the attention blocks. */
typedef struct nn_attn_opts {
    int32_t width, heads;
    bool layer_norm;
    nn_init init;
    double gain; /* of initial weights; 0 means 1 */
} nn_attn_opts;

/* The packed projection [q k v] (or any subset, `parts` blocks of width D) of x. */
val nn_project(graph *g, val x, const char *name, const nn_attn_opts *o, int32_t parts);
/* Weights of a projection for an input that comes in blocks: name.suffix (in, parts D). */
val nn_project_weight(graph *g, const char *name, const char *suffix, int32_t in, int32_t fan_in,
                      int32_t parts, const nn_attn_opts *o);
val nn_project_bias(graph *g, const char *name, int32_t fan_in, int32_t parts,
                    const nn_attn_opts *o);
/* What follows the projections: attention, residual, optional norms, feed-forward with residual. */
val nn_mab(graph *g, val qv, int32_t q_col, val kv, int32_t k_col, extent queries, extent keys,
           const char *name, const nn_attn_opts *o);
/* Learned points (inducing points, seeds): name (count, D), Xavier. */
val nn_points(graph *g, const char *name, int32_t count, int32_t width);

/* Fills the weight block (params.words elements of float) from the seed. */
void nn_init_weights(const params *p, uint64_t seed, float *weights);

#endif
