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
#include "backend/cuda/program/schedule.h"

/* kind[k]: who runs instruction k of `code` (dev_stage_kind), and code[k].wide. All are
 * STAGE_FUNCTIONS where wide instructions would gain less than their launches cost, unless
 * `always`. sums: slots are summed afterwards, so there may be several. */
mnp_status stages_find(env *e, const plan *p, dev_instr *code, int32_t count, bool always,
                       bool sums, int32_t *kind);

/* Of a finished program whose `kind` stands: lists the stages. The first and the last one are of
 * functions. */
mnp_status stages_list(env *e, cuda_program *program);

/* Dev_instr.math of a wide instruction's kernel. */
static inline int32_t stages_math(const dev_instr *ins) {
    return ins->math == DEV_FP32 ? DEV_FP32 : DEV_TF32;
}

#endif
