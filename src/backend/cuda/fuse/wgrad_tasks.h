/* wgrad_tasks.h: what the blocks of kernels/products.cu do while functions are in their reverse
 * pass: products of rows (saved_rows.h) and the sums of outer products, in the order of releases
 * (program/grad_spans.h), since blocks begin in the order of their numbers; of one release large
 * ones first, so that no block ends late. */
#ifndef MNP_CUDA_FUSE_WGRAD_TASKS_H
#define MNP_CUDA_FUSE_WGRAD_TASKS_H

#include "backend/cuda/program/program.h"

/* Of a finished program, after grad_spans_list(); one without products has no wgrad tasks. */
mnp_status wgrad_tasks_list(env *e, cuda_program *program);

#endif
