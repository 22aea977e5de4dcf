/* arena.h: drops unused memory from a program's arena. The plan gave every value an address. Values
 * that stay inside fused parts, or are saved as rows (fuse/saved_rows.h), need none. */
#ifndef MNP_CUDA_PROGRAM_ARENA_H
#define MNP_CUDA_PROGRAM_ARENA_H

#include "backend/cuda/program/program.h"

/* Moves the values of a finished program together; values that no instruction uses go to the end.
 */
mnp_status arena_shorten(env *e, const plan *p, cuda_program *program);

/* The same where all values have places of their own (stages.h): those that are never needed at the
 * same time share memory. */
mnp_status arena_pack(env *e, const plan *p, cuda_program *program);

#endif
