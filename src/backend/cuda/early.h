/* early.h: which weight gradients are complete before the end of the reverse pass. Those of the
 * conditioners and latents are when the last transition's sets begin theirs: from there on their
 * sum over functions is formed on multiprocessors that have no function, or none any more
 * (update.cu), while the others finish. */
#ifndef MNP_CUDA_EARLY_H
#define MNP_CUDA_EARLY_H

#include "backend/cuda/program.h"

/* Marks the instruction of a finished program that updates, and lists the ranges of DEV_STEP_WORDS
 * words in the order in which they are summed: first the n_early that are complete there. */
mnp_status early_find(env *e, const params *weights, cuda_program *program);

#endif
