/* grad_spans.h: the gradient in spans, as its sum over functions is formed (kernels/sums.cuh): a
 * block each, of words that lie in the slots, or of one weight whose gradient is outer products
 * (fuse/saved_rows.h). Words that kernels/products.cu wrote lie in few of the slots.
 *
 * Most are complete before the end of the reverse pass: those of conditioners and latents are when
 * the sets of their transition begin theirs. At such places, the last DEV_RELEASES of them, a
 * function "releases" what is complete. Products of a release are formed on multiprocessors that
 * have no function, or none any more, while the others go on, and with them the sums of outer
 * products; the other sums come after, those with the most slots first. Without products sums
 * follow the releases.
 */
#ifndef MNP_CUDA_PROGRAM_GRAD_SPANS_H
#define MNP_CUDA_PROGRAM_GRAD_SPANS_H

#include "backend/cuda/program/program.h"

/* Products begin this many releases before the functions' end. Earlier they take multiprocessors
 * that have nothing to do, but slow functions down, and in runs that share a GPU a block that waits
 * takes the place of a function: the step is as long with 1 as with 3 (lab/notebook/gpu.md). */
enum { RELEASES_AHEAD = 1 };

/* Finds the instructions that release: the last ones of sets, unless conditioners or latents come
 * after them; where there are none, all is complete at the end. */
void grad_spans_release(cuda_program *program);
/* The release with which what instruction k writes is complete. */
int32_t grad_spans_complete(const cuda_program *program, int32_t k);

/* Of a finished program that updates, after saved_rows_place(): lists the spans and marks the
 * instructions that release. */
mnp_status grad_spans_list(env *e, const params *weights, cuda_program *program);

#endif
