/* linear.h: how the dense layer of all functions (linear.cu) is cut into blocks, for the host that
 * launches them and for the kernels. C and CUDA. */
#ifndef MNP_CUDA_WIDE_LINEAR_H
#define MNP_CUDA_WIDE_LINEAR_H

#include "backend/cuda/wide/wide.h"
#include "op/linear.h"

/* Rows of a tile; blocks that keep a GPU busy, two to a multiprocessor; blocks of a weight's
 * gradient from which on they may take larger tiles. */
enum { WIDE_LINEAR_ROWS = 128, WIDE_LINEAR_MANY = 264, WIDE_LINEAR_SOME = 96 };

WIDE_FN int32_t wide_linear_parts(int32_t of, int32_t size) {
    return (of + size - 1) / size;
}

/* Tiles of rows times tiles of columns. `width`: columns of a tile, 128 or 64: wide ones read less,
 * but there must be enough of them and they must not be half empty. */
typedef struct wide_linear_cut {
    wide_deal rows;
    int32_t width, across, blocks;
} wide_linear_cut;
WIDE_FN wide_linear_cut wide_linear_cut_of(const dev_operand *rows, int32_t columns, wide_size z) {
    wide_linear_cut c;
    c.rows = wide_deal_of(wide_most_rows(rows, z), WIDE_LINEAR_ROWS, z.items);
    const int32_t wide = wide_linear_parts(columns, 128), narrow = wide_linear_parts(columns, 64);
    c.width = narrow == 2 * wide && c.rows.tiles * wide >= WIDE_LINEAR_MANY ? 128 : 64;
    c.across = c.width == 128 ? wide : narrow;
    c.blocks = c.rows.tiles * c.across;
    return c;
}

WIDE_FN wide_linear_cut wide_linear_forward(const dev_instr *ins, wide_size z) {
    return wide_linear_cut_of(&ins->in[LINEAR_X], ins->out[LINEAR_Y].ld, z);
}
WIDE_FN int32_t wide_linear_blocks(const dev_instr *ins, wide_size z) {
    return wide_linear_forward(ins, z).blocks;
}

/* The reverse pass. First come the blocks of the weight's gradient and of the bias's: tiles of
 * `height` x 64, for each chunk of the functions. Then those of the gradients of x and of the
 * residual: tiles of rows as in the forward pass. */
typedef struct wide_linear_grad_cut {
    int32_t height, down, across, of_weight; /* of_weight: blocks */
    wide_linear_cut of_rows;
} wide_linear_grad_cut;
WIDE_FN wide_linear_grad_cut wide_linear_reverse(const dev_instr *ins, wide_size z) {
    const dev_operand *w = &ins->in[LINEAR_GRAD_W], *gw = &ins->out[LINEAR_GW];
    const dev_operand *gx = &ins->out[LINEAR_GX];
    wide_linear_grad_cut c;
    c.across = wide_linear_parts(w->ld, 64);
    const int32_t tall = gw->present ? wide_linear_parts(w->rows, 128) : 1; /* 1: db alone */
    c.height = w->rows > 64 && tall * c.across * z.chunks >= WIDE_LINEAR_SOME ? 128 : 64;
    c.down = gw->present ? wide_linear_parts(w->rows, c.height) : 1;
    c.of_weight = gw->present || ins->out[LINEAR_GB].present ? c.down * c.across * z.chunks : 0;
    c.of_rows = wide_linear_cut_of(&ins->in[LINEAR_GRAD_X], gx->present ? gx->ld : 1, z);
    if (!gx->present && !ins->out[LINEAR_GRES].present) c.of_rows.blocks = 0;
    return c;
}
WIDE_FN int32_t wide_linear_grad_blocks(const dev_instr *ins, wide_size z) {
    const wide_linear_grad_cut c = wide_linear_reverse(ins, z);
    return c.of_weight + c.of_rows.blocks;
}

#endif
