/* cuda_ops.h: which ops the device has (cuda_ops.def). */
#ifndef MNP_CUDA_PROGRAM_CUDA_OPS_H
#define MNP_CUDA_PROGRAM_CUDA_OPS_H

#include <stdbool.h>
#include <stdint.h>

bool cuda_has_op(int32_t op);

/* May a team of a block run it, beside other small ones (schedule.h)? */
bool cuda_op_for_teams(int32_t op);

#endif
