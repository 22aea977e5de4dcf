/* saved_rows.h: some weight gradients are never written per function. The function saves the rows
 * they are made of, in its share of dev_run.saved, and the sum over functions is formed from rows.
 * This is done for weights whose gradient no other instruction adds to:
 *
 * - The latent's gradients are outer products of one or two rows: 262 KB per function and
 *   transition, written to be read once. The rows are 8 KB (kernels/sums.cuh).
 * - In tf32 and bf16 the gradients of the conditioner, of three layers of the sets and of the first
 *   layer are products over all points, and would take as long as the rest of the reverse pass. The
 *   function saves 16-bit rows, and multiprocessors without a function form the products
 *   (kernels/products.cu). All transitions share the sets' weights: a product for each. */
#ifndef MNP_CUDA_FUSE_SAVED_ROWS_H
#define MNP_CUDA_FUSE_SAVED_ROWS_H

#include "backend/cuda/program/program.h"

/* Finds these gradients in a finished program, gives their rows addresses, and sets the operands of
 * the fused parts. Conditioners and sets whose reverse pass saves no rows are computed in fp32: the
 * 16-bit code has no other way (paper/fused.h). */
mnp_status saved_rows_place(env *e, int64_t trainable, cuda_program *program);

#endif
