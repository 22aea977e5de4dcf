/* program.h: a plan as the device reads it. */
#ifndef MNP_CUDA_PROGRAM_PROGRAM_H
#define MNP_CUDA_PROGRAM_PROGRAM_H

#include "backend/backend.h"
#include "backend/cuda/program/device.h"

typedef struct cuda_program {
    dev_instr *code;         /* in the order in which they run              */
    int32_t *from;           /* the instruction of the plan each one is     */
    const char **fused_name; /* the name of a fused one, else NULL        */
    int32_t count;
    int32_t n_fused;       /* of them are parts (paper/fused.h) */
    int64_t *offset;       /* where each value of the plan lies           */
    int64_t act_words;     /* of one arena                                */
    int64_t scratch_words; /* of one block                                */
    dev_outer *outer;      /* weight gradients left as rows (fuse/saved_rows.h)      */
    int32_t n_outer;
    dev_product *products; /* or formed from rows (fuse/saved_rows.h)                */
    dev_term *terms;
    int32_t n_products, n_terms;
    int32_t product_pieces;    /* of one gradient, at most (dev_product)    */
    int64_t saved_words;       /* of one function                             */
    dev_grad_span *grad_spans; /* of the gradient (grad_spans.h), where it updates */
    int32_t n_grad_spans;
    int32_t task_spans;          /* so many, the first ones, are summed by wgrad tasks    */
    dev_wgrad_task *wgrad_tasks; /* (fuse/wgrad_tasks.h)                                       */
    int32_t n_wgrad_tasks;
    int32_t release[DEV_RELEASES]; /* the instructions that do (grad_spans.h) */
    int32_t n_releases;
    bool has_grad;    /* it writes weight gradients                  */
    bool updates;     /* the step part is the update of op/update.h  */
    bool reads_fp16;  /* of weights (fuse/fp16_weights.h)                       */
    int32_t *fp16_at; /* where four weights lie among them, in fours */
} cuda_program;

static inline bool is_part(const dev_instr *ins, fused_kind kind) {
    return ins->op == OPCODE_COUNT + (int32_t)kind;
}

/* Does an instruction that is no part read what begins at a place of the arena? */
static inline bool op_reads(const dev_instr *ins, uint32_t place) {
    bool reads = false;
    for (int j = 0; ins->op < OPCODE_COUNT && j < DEV_IN; j++)
        reads |= ins->in[j].present && ins->in[j].store == DEV_STORE_ACT &&
                 fused_addr(DEV_STORE_ACT, ins->in[j].offset) == place;
    return reads;
}

/* Parts of the kinds whose bit is set are fused (fuse/fuse.h). MNP_EUNSUPPORTED names an op the
 * device does not have. */
enum { PROGRAM_FUSE_ALL = (1 << FUSED_COUNT) - 1 };
mnp_status program_make(env *e, const plan *p, exec_math math, uint32_t kinds, cuda_program *out);
void program_free(env *e, cuda_program *p);

#endif
