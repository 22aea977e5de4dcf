/* kept.h: weight gradients that are never written per function. Those of the latent are outer
 * products of one or two rows: 262 KB per function and transition that would only be written to be
 * read once by the sum over functions. Where nothing else touches these weights a function leaves
 * the rows (8 KB), and the sum is formed from them (update.cu). */
#ifndef MNP_CUDA_KEPT_H
#define MNP_CUDA_KEPT_H

#include "backend/cuda/program.h"

/* Finds them in a finished program that updates, gives their rows places, and tells the parts. */
mnp_status kept_place(env *e, int64_t trainable, cuda_program *program);

#endif
