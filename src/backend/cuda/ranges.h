/* ranges.h: the gradient in ranges, as its sum over functions is formed (update.cu): a block each,
 * of words that lie in the slots, or of one weight whose gradient is outer products (kept.h). Words
 * that products.cu wrote lie in few of the slots.
 *
 * Some are complete before the end of the reverse pass: those of conditioners and latents are when
 * the last transition's sets begin theirs. From there on their sum is formed on multiprocessors
 * that have no function, or none any more, while the others finish. Gradients that are products of
 * rows (kept.h) are complete a little later than those rows. */
#ifndef MNP_CUDA_RANGES_H
#define MNP_CUDA_RANGES_H

#include "backend/cuda/program.h"

/* The instruction where the early ones are complete, or the program's end. */
int32_t ranges_release(const cuda_program *program);

/* Of a finished program that updates, behind kept_place(): lists the ranges, first the n_early that
 * are complete at an instruction, which it marks (dev_instr.releases). */
mnp_status ranges_list(env *e, const params *weights, cuda_program *program);

#endif
