/* wgrad_tasks.h: the work of kernels/products.cu: weight gradients from saved rows (saved_rows.h),
 * formed while other functions are still in their reverse pass. Tasks are listed in the order in
 * which their rows are complete (program/grad_spans.h), because blocks start in the order of their
 * numbers; within a milestone the large ones come first, so that no block ends late. */
#ifndef MNP_CUDA_FUSE_WGRAD_TASKS_H
#define MNP_CUDA_FUSE_WGRAD_TASKS_H

#include "backend/cuda/program/program.h"

/* Of a finished program, after grad_spans_list(); one without products has no wgrad tasks. */
mnp_status wgrad_tasks_list(env *e, cuda_program *program);

#endif
