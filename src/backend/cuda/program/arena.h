/* arena.h: the arena of a program without what nobody uses. The plan gave a place to every value;
 * those that stay inside parts, or are left as rows (fuse/saved_rows.h), need none, and where no
 * other value lies either the arena becomes shorter. */
#ifndef MNP_CUDA_PROGRAM_ARENA_H
#define MNP_CUDA_PROGRAM_ARENA_H

#include "backend/cuda/program/program.h"

/* Moves values of a finished program together; those that no instruction has lie at its end. */
mnp_status arena_shorten(env *e, const plan *p, cuda_program *program);

#endif
