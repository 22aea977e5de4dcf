/* jobs.h: what the blocks of products.cu do while functions are in their reverse pass: products of
 * rows (kept.h) and the sums of outer products, in the order of releases (ranges.h), since blocks
 * begin in the order of their numbers; of one release large ones first, so that no block ends
 * late. */
#ifndef MNP_CUDA_JOBS_H
#define MNP_CUDA_JOBS_H

#include "backend/cuda/program.h"

/* Of a finished program, after ranges_list(); one without products has no jobs. */
mnp_status jobs_list(env *e, cuda_program *program);

#endif
