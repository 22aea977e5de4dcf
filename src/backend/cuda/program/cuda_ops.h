/* cuda_ops.h: which ops the device code has (kernels/functions.cu). */
#ifndef MNP_CUDA_PROGRAM_CUDA_OPS_H
#define MNP_CUDA_PROGRAM_CUDA_OPS_H

#include <stdbool.h>
#include <stdint.h>

/* Not among them: chunks of keys and pooled sums that are kept between runs (for sets that do not
 * fit), and Gaussian processes, which compute in double. */
bool known_op(int32_t op);

/* May a team of a block run it, beside other small ones (schedule.h)? */
bool known_to_teams(int32_t op);

#endif
