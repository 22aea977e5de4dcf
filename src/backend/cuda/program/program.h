/* program.h: a plan as the device reads it. */
#ifndef MNP_CUDA_PROGRAM_PROGRAM_H
#define MNP_CUDA_PROGRAM_PROGRAM_H

#include "backend/backend.h"
#include "backend/cuda/program/device.h"

typedef struct cuda_program {
    dev_instr *code;         /* in the order in which they run               */
    int32_t *from;           /* the plan's instruction that each one is      */
    const char **fused_name; /* of a fused part, else NULL                   */
    int32_t *kind;           /* who runs each one (dev_stage_kind)           */
    dev_stage *stages;       /* what is launched, one after the other (stages.h) */
    int32_t n_stages;        /* 1: functions alone                           */
    int32_t count, n_fused;  /* instructions; fused parts among them         */
    int64_t *offset;         /* where each value of the plan lies            */
    int64_t act_words;       /* words of one arena                           */
    int64_t scratch_words;   /* words of one block                           */
    /* gradients from saved rows (fuse/saved_rows.h): outer products, and products with their terms
     */
    dev_outer *outer;
    int32_t n_outer;
    dev_product *products;
    dev_term *terms;
    int32_t n_products, n_terms;
    int32_t product_pieces; /* of one gradient, at most (dev_product) */
    int64_t saved_words;    /* of one function                        */
    /* of a program that updates: spans of the gradient (grad_spans.h), the first task_spans of
     * which are summed by wgrad tasks (fuse/wgrad_tasks.h) */
    dev_grad_span *grad_spans;
    int32_t n_grad_spans, task_spans;
    dev_wgrad_task *wgrad_tasks;
    int32_t n_wgrad_tasks;
    int32_t milestone[DEV_MILESTONES]; /* the instructions that pass a milestone (grad_spans.h) */
    int32_t n_milestones;
    bool has_grad;    /* it writes weight gradients                                     */
    bool updates;     /* its step part is the update of op/update.h                     */
    bool reads_fp16;  /* it reads the fp16 copy of the weights (fuse/fp16_weights.h)    */
    int32_t *fp16_at; /* where each group of four weights lies in the copy, / 4         */
} cuda_program;

static inline bool is_part(const dev_instr *ins, fused_kind kind) {
    return ins->op == OPCODE_COUNT + (int32_t)kind;
}

/* Does an instruction that is no part read what begins at an address of the arena? */
static inline bool op_reads(const dev_instr *ins, uint32_t addr) {
    bool reads = false;
    for (int j = 0; ins->op < OPCODE_COUNT && j < DEV_IN; j++)
        reads |= ins->in[j].present && ins->in[j].store == DEV_STORE_ACT &&
                 fused_addr(DEV_STORE_ACT, ins->in[j].offset) == addr;
    return reads;
}

/* Parts of the kinds whose bit is set are fused (fuse/fuse.h); wide: are there wide instructions
 * (stages.h)? MNP_EUNSUPPORTED names an op the device does not have. */
enum { PROGRAM_FUSE_ALL = (1 << FUSED_COUNT) - 1 };
mnp_status program_make(env *e, const plan *p, exec_math math, uint32_t kinds, exec_wide wide,
                        cuda_program *out);
void program_free(env *e, cuda_program *p);

#endif
