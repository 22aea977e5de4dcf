/* attention.h: how wide attention (wide/attention.cu) is dealt to blocks, for the host and for the
 * kernels. C and CUDA.
 *
 * One side of the scores are a block's own rows: queries in the forward pass and for dq, keys for
 * dk and dv. The rows of the other side pass by in tiles. A unit is a head of a function, or so
 * many of its own rows as there is room for. Operands are fp16, as in all attention of mode tf32.
 */
#ifndef MNP_CUDA_WIDE_ATTENTION_H
#define MNP_CUDA_WIDE_ATTENTION_H

#include "backend/cuda/wide/wide.h"

enum { ATTENTION_WARPS = 8, ATTENTION_FORWARD_WARPS = 4 }; /* of a block: in reverse, forward */
/* Queries or keys of which there are fewer for sure are left to the interpreter. */
enum { ATTENTION_DEEPEST = 64, ATTENTION_FEW = 8 };

/* A head is padded with zeros to this depth: the template that it takes. */
WIDE_FN int32_t attention_depth(const wide_op *op) {
    const int32_t dh = op->i[DATT_WIDTH] / op->i[DATT_HEADS];
    return dh <= 16 ? 16 : dh <= 32 ? 32 : 64;
}

WIDE_FN int wide_attention_fits(const dev_instr *ins) {
    const int32_t *i = ins->i, dh = i[DATT_WIDTH] / i[DATT_HEADS];
    for (int side = 0; side < 2; side++) {
        const dev_operand *o = &ins->in[side];
        const int32_t ext = i[side ? DATT_KEYS : DATT_QUERIES];
        if (ext == DEV_EXT_FIXED && o->ext == DEV_EXT_FIXED && o->rows < ATTENTION_FEW) return 0;
    }
    return dh <= ATTENTION_DEEPEST &&
           (dh | i[DATT_QCOL] | i[DATT_KCOL] | i[DATT_VCOL] | ins->in[0].ld | ins->in[1].ld) % 4 ==
               0;
}

/* Self-attention: one gradient takes all that it gives. */
WIDE_FN int attention_of_itself(const wide_op *op) {
    return op->in[DATT_G_QV].p == op->in[DATT_G_KV].p;
}
/* Is there a gradient of what has the own rows? */
WIDE_FN int attention_wanted(const wide_op *op, int32_t own) {
    return op->out[attention_of_itself(op) ? 0 : own].p != 0;
}

/* ---- teams ----------------------------------------------------------------------------------- */

/* A team of some warps takes a unit: all but `tiles` and `blocks` are powers of two. */
typedef struct attention16_deal {
    int32_t warps; /* of a team             */
    int32_t units; /* teams of a block      */
    int32_t tiles; /* teams that a head has */
    int32_t blocks;
} attention16_deal;

/* each: own rows of a warp; narrowest, widest: warps of a team. */
WIDE_FN attention16_deal attention16_deal_of(int32_t most, int32_t each, int32_t narrowest,
                                             int32_t widest, int32_t heads) {
    attention16_deal d = {narrowest, 1, 1, 0};
    while (d.warps < widest && d.warps * each < most) d.warps *= 2;
    d.units = widest / d.warps;
    if (most > d.warps * each) d.tiles = (most + d.warps * each - 1) / (d.warps * each);
    d.blocks = (heads * d.tiles + d.units - 1) / d.units;
    return d;
}
/* Own rows of a warp in the forward pass: what it reads of keys and values serves all of them. */
WIDE_FN int32_t attention16_each(const wide_op *op) {
    return attention_depth(op) <= 32 && op->in[0].most > 16 * ATTENTION_FORWARD_WARPS ? 32 : 16;
}
WIDE_FN attention16_deal attention16_forward_deal(const wide_op *op, int32_t items) {
    return attention16_deal_of(op->in[0].most, attention16_each(op), 2, ATTENTION_FORWARD_WARPS,
                               items * op->i[DATT_HEADS]);
}
/* Reverse: all rows of a head at once? */
WIDE_FN int attention16_once(const wide_op *op) {
    return op->in[0].most <= 16 * ATTENTION_WARPS && op->in[1].most <= 16 * ATTENTION_WARPS &&
           attention_depth(op) <= 32 && attention_wanted(op, 0) && attention_wanted(op, 1);
}
WIDE_FN attention16_deal attention16_grad_deal(const wide_op *op, int32_t most, int32_t items) {
    return attention16_deal_of(most, 16, attention_depth(op) == 64 ? 4 : 2, ATTENTION_WARPS,
                               items * op->i[DATT_HEADS]);
}
WIDE_FN attention16_deal attention16_once_deal(const wide_op *op, int32_t items) {
    const int32_t q = op->in[0].most, k = op->in[1].most;
    return attention16_grad_deal(op, q > k ? q : k, items);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

WIDE_FN int32_t wide_attention_blocks(const wide_op *op, int32_t items) {
    return attention16_forward_deal(op, items).blocks;
}

/* Blocks whose own rows are queries (own: 0), or keys (1), which come first. */
WIDE_FN int32_t attention_own_blocks(const wide_op *op, int32_t own, int32_t items) {
    return attention_wanted(op, own) ? attention16_grad_deal(op, op->in[own].most, items).blocks
                                     : 0;
}
WIDE_FN int32_t wide_attention_grad_blocks(const wide_op *op, int32_t items) {
    if (attention16_once(op)) return attention16_once_deal(op, items).blocks;
    return attention_own_blocks(op, 1, items) + attention_own_blocks(op, 0, items);
}

#endif
