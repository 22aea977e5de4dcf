/* weights.h: how the gradients of a dense layer's weights, of all functions (weights.cu), are cut
 * into blocks, for the host that launches them and for the kernels. C and CUDA. */
#ifndef MNP_CUDA_WIDE_WEIGHTS_H
#define MNP_CUDA_WIDE_WEIGHTS_H

#include "backend/cuda/wide/wide.h"
#include "op/linear.h"

enum { WIDE_WEIGHTS_LARGE = 128, WIDE_WEIGHTS_SMALL = 64 };

/* Tiles of `size` x `size` numbers of dW, `down` x `across` of them, for each chunk of the
 * functions. Large ones read x and g less often, and that is what the time goes into; small weights
 * would leave them half empty. Where db alone is wanted, tiles are columns of g. */
typedef struct wide_weights_cut {
    int32_t size, down, across;
} wide_weights_cut;
WIDE_FN wide_weights_cut wide_weights_cut_of(const wide_op *op) {
    const wide_operand *w = &op->in[LINEAR_GRAD_W];
    const int32_t rows = op->out[LINEAR_GW].p ? w->rows : 1;
    const int32_t least = rows < w->ld ? rows : w->ld;
    wide_weights_cut c;
    c.size = least > WIDE_WEIGHTS_SMALL ? WIDE_WEIGHTS_LARGE : WIDE_WEIGHTS_SMALL;
    c.down = (rows + c.size - 1) / c.size;
    c.across = (w->ld + c.size - 1) / c.size;
    return c;
}

/* Every chunk is written, even one without functions. */
WIDE_FN int32_t wide_weights_blocks(const wide_op *op, int32_t chunks) {
    const wide_weights_cut c = wide_weights_cut_of(op);
    return op->out[LINEAR_GW].p || op->out[LINEAR_GB].p ? c.down * c.across * chunks : 0;
}

#endif
