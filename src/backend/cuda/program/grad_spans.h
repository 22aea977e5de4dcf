/* grad_spans.h: the gradient in spans of words, each summed over functions by one block
 * (kernels/sums.cuh). A span lies in the gradient slots, or belongs to one weight whose gradient is
 * a sum of outer products (fuse/saved_rows.h). What kernels/products.cu wrote lies in few slots.
 *
 * Most gradients are complete before the reverse pass ends: those of a conditioner and a latent are
 * when the sets of their transition begin their reverse pass. There, at the last DEV_MILESTONES of
 * these points, a function passes a milestone: what is complete may be summed. Multiprocessors that
 * have no function form the products of a milestone, and the sums of outer products, while others
 * go on. The other sums come after, those with the most slots first. */
#ifndef MNP_CUDA_PROGRAM_GRAD_SPANS_H
#define MNP_CUDA_PROGRAM_GRAD_SPANS_H

#include "backend/cuda/program/program.h"

/* Products begin this many milestones before the functions' end. More would use idle
 * multiprocessors but slow the functions down, and a waiting block takes the place of another run's
 * function: a step takes as long with 1 as with 3 (lab/notebook/gpu.md). */
enum { MILESTONES_AHEAD = 1 };

/* Finds the instructions that pass a milestone: the last ones of sets, unless conditioners or
 * latents come after them; where there are none, all is complete at the end. */
void grad_spans_milestones(cuda_program *program);
/* The milestone with which what instruction k writes is complete. */
int32_t grad_spans_complete(const cuda_program *program, int32_t k);

/* Of a finished program that updates, after saved_rows_place(): lists the spans and marks the
 * instructions that pass a milestone. */
mnp_status grad_spans_list(env *e, const params *weights, cuda_program *program);

#endif
