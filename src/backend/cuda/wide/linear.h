/* linear.h: how the dense layer of all functions (linear.cu) is cut into blocks, for the host that
 * launches them and for the kernels. C and CUDA.
 *
 * The rows of all functions are tiles of 128. A function of up to 64 rows has 64, 32, 16 or 8 of a
 * tile's, so that others fit beside it; a longer one has tiles of its own. The columns are panels
 * of 128 or 64. A block has one panel and goes through every so many tiles. */
#ifndef MNP_CUDA_WIDE_LINEAR_H
#define MNP_CUDA_WIDE_LINEAR_H

#include "backend/cuda/wide/wide.h"
#include "op/linear.h"

/* Rows of a tile. Blocks of an instruction that run at once: two on a multiprocessor of an H200, or
 * one if their part of the weights is large (values of k: more than _ONE; more than _DEEP: the
 * weights come piece by piece, and need little room). Panels are narrow where wide ones would be
 * fewer than _FEW blocks. */
enum { WIDE_LINEAR_ROWS = 128, WIDE_LINEAR_SLOTS = 264 };
enum { WIDE_LINEAR_ONE = 128, WIDE_LINEAR_DEEP = 256, WIDE_LINEAR_FEW = 200 };

WIDE_FN int32_t wide_linear_parts(int32_t of, int32_t size) {
    return (of + size - 1) / size;
}

typedef struct wide_linear_cut {
    int32_t shift;  /* a function has 1 << shift rows of a tile          */
    int32_t groups; /* tiles that have the first rows of all functions   */
    int32_t tiles;
    int32_t width, across; /* of a panel; panels                         */
    int32_t down;          /* blocks of a panel                          */
} wide_linear_cut;

/* depth: values of k */
WIDE_FN wide_linear_cut wide_linear_cut_of(const wide_operand *rows, int32_t columns, int32_t depth,
                                           int32_t items) {
    wide_linear_cut c;
    for (c.shift = 3; 1 << c.shift < WIDE_LINEAR_ROWS && 1 << c.shift < rows->most;) c.shift++;
    c.groups = wide_linear_parts(items, WIDE_LINEAR_ROWS >> c.shift);
    c.tiles = c.groups * wide_linear_parts(rows->most, WIDE_LINEAR_ROWS);
    const int32_t wide = wide_linear_parts(columns, 128);
    c.width = columns > 64 && c.tiles * wide >= WIDE_LINEAR_FEW ? 128 : 64;
    c.across = wide_linear_parts(columns, c.width);
    const bool one = depth > WIDE_LINEAR_ONE && depth <= WIDE_LINEAR_DEEP;
    const int32_t most = WIDE_LINEAR_SLOTS / (one ? 2 : 1) / c.across;
    c.down = c.tiles < most ? c.tiles : most > 0 ? most : 1;
    if (c.tiles == 0) c.down = 0;
    return c;
}

WIDE_FN wide_linear_cut wide_linear_forward(const wide_op *op, int32_t items) {
    return wide_linear_cut_of(&op->in[LINEAR_X], op->out[LINEAR_Y].ld, op->in[LINEAR_X].ld, items);
}
WIDE_FN int32_t wide_linear_blocks(const wide_op *op, int32_t items) {
    const wide_linear_cut c = wide_linear_forward(op, items);
    return c.across * c.down;
}

/* Of dx and dres; where there is no dx one panel's blocks give dres. */
WIDE_FN wide_linear_cut wide_linear_to_x(const wide_op *op, int32_t items) {
    const wide_operand *gx = &op->out[LINEAR_GX];
    return wide_linear_cut_of(&op->in[LINEAR_GRAD_X], gx->p ? gx->ld : 1, op->in[LINEAR_GRAD_G].ld,
                              items);
}
WIDE_FN int32_t wide_linear_to_x_blocks(const wide_op *op, int32_t items) {
    if (!op->out[LINEAR_GX].p && !op->out[LINEAR_GRES].p) return 0;
    const wide_linear_cut c = wide_linear_to_x(op, items);
    return c.across * c.down;
}

#endif
