/* wide.h: how the rows of all functions are dealt to the blocks of a wide instruction, for the host
 * that launches them and for the kernels. C and CUDA.
 *
 * A wide instruction is one op for all functions at once (program/stages.h): a kernel whose blocks
 * share its work, where the interpreter (kernels/functions.cu) has a block walk through one
 * function. A block takes a tile of rows: of one function, or of several that have few. */
#ifndef MNP_CUDA_WIDE_WIDE_H
#define MNP_CUDA_WIDE_WIDE_H

#include "backend/cuda/program/device.h"

#ifdef __cplusplus
#define WIDE_FN static inline __host__ __device__
#else
#define WIDE_FN static inline
#endif

/* What the number of blocks depends on: items of the stage, lengths at most, samples (1 or more),
 * dev_run.wide_chunks. */
typedef struct wide_size {
    int32_t items, cap_n, cap_m, samples, chunks;
} wide_size;

/* Rows of an operand in one function at most, of all samples. */
WIDE_FN int32_t wide_most_rows(const dev_operand *o, wide_size z) {
    const int32_t rows = o->ext == DEV_EXT_FIXED ? o->rows : o->ext == DEV_EXT_M ? z.cap_m : z.cap_n;
    return o->sampled ? rows * z.samples : rows;
}

/* Tiles of `height` rows, a power of two. A function has `room` rows of a tile, a power of two:
 * `across` functions share a tile, or a function has `down` tiles, one after the other. Tile t
 * begins with function t / down * across, at its row t % down * room. */
typedef struct wide_deal {
    int32_t room, across, down, tiles;
} wide_deal;
WIDE_FN wide_deal wide_deal_of(int32_t most_rows, int32_t height, int32_t items) {
    wide_deal d = {1, 1, 1, 0};
    while (d.room < most_rows && d.room < height) d.room *= 2;
    d.across = height / d.room;
    if (most_rows > height) d.down = (most_rows + height - 1) / height;
    d.tiles = (items + d.across - 1) / d.across * d.down;
    return d;
}

#endif
