/* check.h: what each pass over a program leaves, checked where the library is built to be tested
 * (sanitizers, or -DMNP_CHECK_PASSES): a pass that breaks a promise is named at once, not found by
 * wrong numbers on a GPU. The passes stand in program.c, fill() and finish(), in this order; each
 * needs what those before it leave:
 *
 *   translate        ops and parts that exist, operands inside their stores, groups of at most
 *                    DEV_TOGETHER neighbours, or DEV_WIDE wide ones, that do not share what one
 *                    of them writes
 *   mark_fresh       of a weight's gradient the first writer fresh, all others adding
 *   saved rows       rows inside a function's part of dev_run.saved, gradients inside the trainable
 *                    words
 *   arena            values inside the shorter arena, and still there when an op reads them
 *   stages           every instruction in one stage, in order, functions first and last, a draw
 *                    before all; those of a kernel of one group and one kind, and
 *                    gradients of weights apart from those of inputs
 *   gradient spans   every trainable word in one span, those of wgrad tasks first; slots of wide
 *                    instructions summed as such, and no others
 *   wgrad tasks      every part of a product and every span of theirs once, by milestones
 *   fp16             every group of four weights at a place of its own
 */
#ifndef MNP_CUDA_PROGRAM_CHECK_H
#define MNP_CUDA_PROGRAM_CHECK_H

#include "backend/cuda/program/program.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(MNP_CHECK_PASSES)
#define PROGRAM_CHECKS 1
#else
#define PROGRAM_CHECKS 0
#endif

typedef mnp_status program_check(env *e, const plan *p, const cuda_program *program);
program_check program_check_code, program_check_fresh, program_check_rows, program_check_arena,
    program_check_stages, program_check_spans, program_check_tasks, program_check_fp16;

#endif
