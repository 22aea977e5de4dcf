/* mlp.h: a small multilayer perceptron with hand-written gradients, for the agents that are not
 * processes. ReLU after every layer but the last.
 *
 * A net is a description without memory; its weights are one block of floats that the caller owns,
 * so that a copy of them (an adapted learner) is a memcpy. Matrices are laid out as the CPU kernels
 * want them: rows padded to 16 floats with zeros, 64-byte aligned (env_alloc). */
#ifndef MNP_BANDIT_MLP_H
#define MNP_BANDIT_MLP_H

#include "backend/cpu/kernels.h"
#include "util/env.h"
#include "util/limits.h"

typedef struct mlp {
    int layers;
    int32_t width[MLP_LAYERS_MAX + 1]; /* inputs, hidden, ..., outputs */
    int64_t ld[MLP_LAYERS_MAX + 1];    /* the widths, padded           */
    int64_t weight[MLP_LAYERS_MAX];    /* places in the block: (width[l], ld[l+1]) */
    int64_t bias[MLP_LAYERS_MAX];      /* and (ld[l+1])                */
    int64_t words;                     /* of the block                 */
} mlp;

/* inputs -> hidden -> hidden -> ... -> outputs with `layers` matrices. */
mlp mlp_make(int layers, int32_t inputs, int32_t hidden, int32_t outputs);
/* Normal weights of variance 2 / inputs of their layer, those of the last layer divided by 10;
 * biases zero. */
void mlp_init(const mlp *net, uint64_t seed, uint32_t stream, float *weights);

/* What a pass over up to `rows` inputs needs. */
typedef struct mlp_pass {
    env *e;
    const mlp *net;
    const cpu_kernels *kernels;
    int64_t rows;
    float *h[MLP_LAYERS_MAX + 1]; /* (rows, ld[l]): h[0] the inputs, filled by the caller */
    float *g[MLP_LAYERS_MAX + 1]; /* their gradients; the last is filled by the caller    */
    float *turned;                /* a transposed weight */
} mlp_pass;

mnp_status mlp_pass_create(env *e, const mlp *net, int64_t rows, mlp_pass *p);
void mlp_pass_free(mlp_pass *p); /* accepts one that is all zero */

/* h[layers] from h[0], n rows. */
void mlp_forward(mlp_pass *p, const float *weights, int64_t n);
/* After mlp_forward with the same weights: adds the gradient of the weights to `gradient` (words),
 * given g[layers]. */
void mlp_backward(mlp_pass *p, const float *weights, int64_t n, float *gradient);

/* Adam with a global clip of the gradient's norm; moments (words) each, zero at the start. */
typedef struct mlp_adam {
    int64_t words, step;
    float *m, *v;
} mlp_adam;

mnp_status mlp_adam_create(env *e, int64_t words, mlp_adam *a);
void mlp_adam_free(env *e, mlp_adam *a);
void mlp_adam_step(mlp_adam *a, double rate, double clip, const float *gradient, float *weights);

#endif
