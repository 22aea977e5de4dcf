/* attention.h: how wide attention (wide/attention.cu) is dealt to blocks, for the host and for the
 * kernels. C and CUDA.
 *
 * One side of the scores are a block's own rows: queries in the forward pass and for dq, keys for
 * dk and dv. The rows of the other side pass by in tiles. A unit is a head of a function, or so
 * many of its rows as a block has room for. */
#ifndef MNP_CUDA_WIDE_ATTENTION_H
#define MNP_CUDA_WIDE_ATTENTION_H

#include "backend/cuda/wide/wide.h"

/* Queries or keys of which there are fewer for sure are left to the interpreter. */
enum { ATTENTION_WARPS = 8, ATTENTION_DEEPEST = 64, ATTENTION_FEW = 8 };
enum { ATTENTION_STEP = 32, ATTENTION_GRAD_STEP = 16 }; /* other rows that a warp takes at once */

/* A head is padded with zeros to this depth: the template that it takes. */
WIDE_FN int32_t attention_depth(const dev_instr *ins) {
    const int32_t dh = ins->i[DATT_WIDTH] / ins->i[DATT_HEADS];
    return dh <= 16 ? 16 : dh <= 32 ? 32 : 64;
}

/* Own rows of a warp are so many sixteens: what it reads of the other side serves all of them. In
 * fp32 there are no registers for two. */
WIDE_FN int32_t attention_sixteens(int32_t depth, int32_t math) {
    return depth == 16 && math != DEV_FP32 ? 2 : 1;
}

/* Rows of the other side in a tile, of all units; sixteens side by side at most: what fits in
 * shared memory. */
#define ATTENTION_TILE(depth)         ((depth) == 64 ? 32 : 64)
#define ATTENTION_GROUPS(depth, grad) ((grad) && (depth) == 64 ? 4 : 8)

/* 0: in[0], queries; 1: in[1], keys. Rows in one function at most. */
WIDE_FN int32_t attention_most(const dev_instr *ins, int32_t side, wide_size z) {
    dev_operand o = ins->in[side];
    const int32_t ext = ins->i[side ? DATT_KEYS : DATT_QUERIES];
    if (ext != DEV_EXT_FIXED) o.ext = (uint8_t)ext;
    o.sampled = 0;
    return wide_most_rows(&o, z);
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

/* Warp w of a block is of unit w / (groups parts), has its rows' group w / parts % groups, and
 * takes every parts-th step of the other side. All but `tiles` and `blocks` are powers of two. */
typedef struct attention_deal {
    int32_t rows;   /* own rows of a warp                                */
    int32_t groups; /* warps that have own rows of a unit                */
    int32_t parts;  /* warps that have the same own rows                 */
    int32_t units;  /* of a block                                        */
    int32_t tile;   /* rows of the other side of a unit that pass at once */
    int32_t tiles;  /* units of a head                                   */
    int32_t blocks;
} attention_deal;

/* own, other: 0 or 1, see attention_most(). */
WIDE_FN attention_deal attention_deal_of(const dev_instr *ins, int32_t own, int grad, wide_size z) {
    const int32_t depth = attention_depth(ins), step = grad ? ATTENTION_GRAD_STEP : ATTENTION_STEP;
    const int32_t room = ATTENTION_TILE(depth), widest = ATTENTION_GROUPS(depth, grad);
    const int32_t mine = attention_most(ins, own, z), theirs = attention_most(ins, !own, z);
    attention_deal d = {16 * attention_sixteens(depth, ins->math), 1, 1, 1, 0, 1, 0};
    while (d.groups < widest && d.groups * d.rows < mine) d.groups *= 2;
    while (2 * d.units * d.groups <= widest && room / (2 * d.units) >= step &&
           theirs <= room / d.units)
        d.units *= 2;
    d.tile = room / d.units;
    while (2 * d.parts * d.groups * d.units <= ATTENTION_WARPS && 2 * d.parts * step <= d.tile)
        d.parts *= 2;
    if (mine > d.groups * d.rows) d.tiles = (mine + d.groups * d.rows - 1) / (d.groups * d.rows);
    d.blocks = (z.items * ins->i[DATT_HEADS] * d.tiles + d.units - 1) / d.units;
    return d;
}

WIDE_FN int32_t wide_attention_blocks(const dev_instr *ins, wide_size z) {
    return attention_deal_of(ins, 0, 0, z).blocks;
}

/* Self-attention: one gradient takes all that it gives. */
WIDE_FN int attention_of_itself(const dev_instr *ins) {
    const dev_operand *qv = &ins->in[DATT_G_QV], *kv = &ins->in[DATT_G_KV];
    return qv->store == kv->store && qv->offset == kv->offset;
}
/* Blocks for dk and dv, which come first, and for dq. */
WIDE_FN int32_t attention_key_blocks(const dev_instr *ins, wide_size z) {
    if (!ins->out[attention_of_itself(ins) ? 0 : 1].present) return 0;
    return attention_deal_of(ins, 1, 1, z).blocks;
}
WIDE_FN int32_t wide_attention_grad_blocks(const dev_instr *ins, wide_size z) {
    const int32_t keys = attention_key_blocks(ins, z);
    return ins->out[0].present ? keys + attention_deal_of(ins, 0, 1, z).blocks : keys;
}

#endif
