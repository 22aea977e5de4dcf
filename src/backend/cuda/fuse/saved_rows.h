/* saved_rows.h: weight gradients that are never written per function. A function leaves rows in its
 * part of dev_run.saved instead, and the sum over functions is formed from them, where nothing else
 * touches these weights:
 *
 * - Those of the latent are outer products of one or two rows: 262 KB per function and transition
 *   that would only be written to be read once by the sum over functions. It leaves the rows, 8 KB,
 *   and the sum takes them as they are (kernels/sums.cuh).
 * - Those of the conditioner, of three layers of the sets and of the first layer (tf32, bf16) are
 *   products over all points, which take a function as long as the rest of the reverse pass. It
 *   leaves 16-bit rows, and products of all functions are formed by multiprocessors that have no
 *   function (kernels/products.cu). The sets' weights are shared by all transitions: a product for
 * each. */
#ifndef MNP_CUDA_FUSE_SAVED_ROWS_H
#define MNP_CUDA_FUSE_SAVED_ROWS_H

#include "backend/cuda/program/program.h"

/* Finds them in a finished program, gives their rows places, and tells the parts. Conditioners and
 * sets with a reverse pass that leaves no rows are computed in fp32: they have no other way in tf32
 * (paper/fused.h). */
mnp_status saved_rows_place(env *e, int64_t trainable, cuda_program *program);

#endif
