/* stages.h: a program as a sequence of kernels. Functions walk through their instructions by
 * themselves, a block each; but a dense layer or an attention that has much to do is a *wide*
 * instruction: a kernel of its own (wide/) takes it for all functions at once and deals its work to
 * all multiprocessors. Stages are what is launched one after the other: a stretch of instructions
 * for functions, or up to DEV_WIDE wide instructions of one kind that do not depend on each other.
 * The reverse pass of a dense layer is two of them: nobody waits for gradients of weights, so these
 * are put off until there are DEV_WIDE.
 *
 * A staged program needs an arena for every function, since each stage has all of them. Gradients
 * of weights that wide instructions form are summed over functions in chunks, each in a slot of its
 * own: chunk c in slot c, or, of a weight that both all points and the context pass through, in
 * slots c and wide_chunks + c (dev_instr.wide is 0 and 1), so that the two can run side by side. */
#ifndef MNP_CUDA_PROGRAM_STAGES_H
#define MNP_CUDA_PROGRAM_STAGES_H

#include "backend/cuda/program/program.h"

/* always: wide wherever that can be; else all are STAGE_FUNCTIONS where wide instructions would
 * gain less than their launches cost. split: the reverse passes of dense layers that are to be wide
 * are two instructions each already, so those that are one are not; before, such a one counts as
 * STAGE_LINEAR_TO_W. sums: slots are summed afterwards, so there may be several. */
typedef struct stages_how {
    bool always, split, sums;
} stages_how;

/* kind[k]: who runs instruction k of `code` (dev_stage_kind), and code[k].wide. */
mnp_status stages_find(env *e, const plan *p, dev_instr *code, int32_t count, stages_how how,
                       int32_t *kind);

/* Of a finished program whose `kind` stands: lists the stages. The first and the last one are of
 * functions. */
mnp_status stages_list(env *e, cuda_program *program);

/* Is it the reverse pass of a dense layer, for its input and for its weights? */
bool stages_whole(const dev_instr *ins);

#endif
