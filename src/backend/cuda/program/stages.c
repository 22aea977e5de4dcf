/* stages.c: see stages.h. */
#include "backend/cuda/program/stages.h"

#include <string.h>

#include "backend/cuda/wide/attention.h"
#include "op/attention.h"
#include "op/linear.h"

/* ---- which instructions can be wide ---------------------------------------------------------- */

enum { FEWEST_ROWS = 16, FEWEST_COLS = 5 };

/* An activation in single precision with the rows of all samples, or of none, as `like`. */
static bool is_rows(const dev_operand *o, const dev_operand *like) {
    return !o->present ||
           (o->store == DEV_STORE_ACT && !o->is_double && o->sampled == like->sampled);
}
static bool is_gradient(const dev_operand *o) {
    return !o->present || o->store == DEV_STORE_PGRAD;
}
static bool has_many_rows(const dev_operand *o) {
    return o->ext != DEV_EXT_FIXED || o->rows >= FEWEST_ROWS;
}

static bool linear_can(const dev_instr *ins) {
    const dev_operand *x = &ins->in[LINEAR_X], *w = &ins->in[LINEAR_W];
    bool can = has_many_rows(x) && x->ld > 1 && w->store == DEV_STORE_PARAM;
    can = can && w->cols >= FEWEST_COLS && is_rows(x, x);
    if (ins->op == OPCODE_linear)
        return can && is_rows(&ins->in[LINEAR_RES], x) && is_rows(&ins->out[LINEAR_Y], x) &&
               is_rows(&ins->out[LINEAR_H], x);
    return can && is_rows(&ins->in[LINEAR_GRAD_H], x) && is_rows(&ins->in[LINEAR_GRAD_G], x) &&
           is_rows(&ins->out[LINEAR_GX], x) && is_rows(&ins->out[LINEAR_GRES], x) &&
           is_gradient(&ins->out[LINEAR_GW]) && is_gradient(&ins->out[LINEAR_GB]);
}
_Static_assert((int)LINEAR_X == (int)LINEAR_GRAD_X && (int)LINEAR_W == (int)LINEAR_GRAD_W,
               "the reverse pass has x and w in the same places");

static bool attention_can(const plan *p, const dev_instr *ins) {
    bool can = wide_attention_fits(ins) && has_many_rows(&ins->in[ATTENTION_QV]) &&
               has_many_rows(&ins->in[ATTENTION_KV]);
    for (int j = 0; j < DEV_IN + DEV_OUT; j++) {
        const dev_operand *o = j < DEV_IN ? &ins->in[j] : &ins->out[j - DEV_IN];
        can &= !o->present || (o->store == DEV_STORE_ACT && !o->is_double &&
                               (!o->sampled || p->opts.samples == 1));
    }
    return can;
}

/* In fp32 none: products take three times as long, and nothing else would be gained. */
static int32_t kind_of(const plan *p, const dev_instr *ins) {
    if (ins->math == DEV_FP32) return STAGE_FUNCTIONS;
    switch (ins->op) {
    case OPCODE_linear:
        return linear_can(ins) ? STAGE_LINEAR : STAGE_FUNCTIONS;
    case OPCODE_linear_grad:
        if (!linear_can(ins)) return STAGE_FUNCTIONS;
        return ins->out[LINEAR_GW].present || ins->out[LINEAR_GB].present ? STAGE_LINEAR_TO_W
                                                                          : STAGE_LINEAR_TO_X;
    case OPCODE_attention:
        return attention_can(p, ins) ? STAGE_ATTENTION : STAGE_FUNCTIONS;
    case OPCODE_attention_grad:
        return attention_can(p, ins) ? STAGE_ATTENTION_GRAD : STAGE_FUNCTIONS;
    default:
        return STAGE_FUNCTIONS;
    }
}

bool stages_whole(const dev_instr *ins) {
    return ins->op == OPCODE_linear_grad &&
           (ins->out[LINEAR_GX].present || ins->out[LINEAR_GRES].present) &&
           (ins->out[LINEAR_GW].present || ins->out[LINEAR_GB].present);
}

/* ---- gradients of weights -------------------------------------------------------------------- */

/* What writes to a gradient, by its first DEV_OUTER_WORDS words. */
typedef enum writer {
    BY_FUNCTIONS = 1,
    WIDE_CONTEXT = 2, /* wide, with the rows of the context */
    WIDE_OTHERS = 4
} writer;

static uint8_t *writers_at(uint8_t *writers, const dev_operand *o) {
    return o->present && o->store == DEV_STORE_PGRAD ? &writers[o->offset / DEV_OUTER_WORDS] : NULL;
}

static uint8_t writer_of(const dev_instr *ins, int32_t kind) {
    if (kind == STAGE_FUNCTIONS) return BY_FUNCTIONS;
    return ins->in[LINEAR_X].ext == DEV_EXT_M ? WIDE_CONTEXT : WIDE_OTHERS;
}

static void note_writers(const dev_instr *code, int32_t count, const int32_t *kind,
                         uint8_t *writers) {
    const uint32_t first = fused_addr(DEV_STORE_PGRAD, 0);
    for (int32_t k = 0; k < count; k++) {
        const dev_instr *ins = &code[k];
        for (int j = 0; ins->op < OPCODE_COUNT && j < DEV_OUT; j++) {
            uint8_t *at = writers_at(writers, &ins->out[j]);
            if (at) *at |= writer_of(ins, kind[k]);
        }
        for (int j = 0; ins->op >= OPCODE_COUNT && j < FUSED_OPERANDS; j++)
            if (fused_in(ins->fused.addr[j], DEV_STORE_PGRAD))
                writers[(ins->fused.addr[j] - first) / DEV_OUTER_WORDS] |= BY_FUNCTIONS;
    }
}

/* A sum over functions lies in slots of chunks or in those of functions, not in both: where one
 * instruction that writes a gradient is not wide, none is. True: some were taken back. */
static bool take_back(const dev_instr *code, int32_t count, uint8_t *writers, int32_t *kind) {
    bool some = false;
    for (int32_t k = 0; k < count; k++) {
        bool mixed = false;
        for (int j = 0; kind[k] == STAGE_LINEAR_TO_W && j < DEV_OUT; j++) {
            const uint8_t *at = writers_at(writers, &code[k].out[j]);
            mixed |= at && (*at & BY_FUNCTIONS);
        }
        if (!mixed) continue;
        kind[k] = STAGE_FUNCTIONS;
        some = true;
    }
    return some;
}

/* A weight and its bias have the same slots, or all have the first ones. */
static void choose_slots(dev_instr *code, int32_t count, uint8_t *writers, const int32_t *kind) {
    bool paired = true;
    for (int32_t k = 0; k < count; k++) {
        if (kind[k] != STAGE_LINEAR_TO_W) continue;
        const uint8_t *w = writers_at(writers, &code[k].out[LINEAR_GW]);
        const uint8_t *b = writers_at(writers, &code[k].out[LINEAR_GB]);
        paired &= !w || !b || *w == *b;
    }
    for (int32_t k = 0; k < count && paired; k++) {
        if (kind[k] != STAGE_LINEAR_TO_W) continue;
        const uint8_t *w = writers_at(writers, &code[k].out[LINEAR_GW]);
        if (!w) w = writers_at(writers, &code[k].out[LINEAR_GB]);
        const bool both = w && (*w & WIDE_CONTEXT) && (*w & WIDE_OTHERS);
        code[k].wide = both && writer_of(&code[k], kind[k]) == WIDE_CONTEXT;
    }
}

/* ---- is it worth it? ------------------------------------------------------------------------- */

/* In the interpreter, measured on an H200: operations a cycle and multiprocessor that large ops
 * reach, and the cycles that every instruction takes for its barriers and to ask for its data. */
enum { RATE = 300, LEAST = 3000 };
/* A launch, with what the functions do to begin again, in cycles: 3.4 microseconds. */
enum { LAUNCH = 6000 };
/* What a kernel takes of the time in the interpreter, not measured: it has all multiprocessors, not
 * one for each function, and should work at twice the rate. */
static const double kernel_share = 0.25;
/* Products of attention's reverse pass beside those of the forward pass: five and two. */
static const double attention_reverse = 2.5;

/* Cycles of a block that an instruction takes in the interpreter, roughly. */
static double cycles_of(const plan *p, const dev_instr *ins) {
    const dev_operand *x = &ins->in[0];
    const double rows = (double)plan_rows(p, (extent)x->ext, x->rows) *
                        (x->sampled ? (double)p->opts.samples : 1.0);
    double flops;
    if (ins->op == OPCODE_linear || ins->op == OPCODE_linear_grad) {
        flops = 2.0 * rows * ins->in[LINEAR_W].rows * ins->in[LINEAR_W].cols;
        if (stages_whole(ins)) flops *= 2.0;
    } else {
        const dev_operand *kv = &ins->in[ATTENTION_KV];
        flops =
            4.0 * rows * (double)plan_rows(p, (extent)kv->ext, kv->rows) * ins->i[ATTENTION_WIDTH];
        if (ins->op == OPCODE_attention_grad) flops *= attention_reverse;
    }
    return LEAST + flops / RATE;
}

/* All of them or none: a few kernels among many instructions for functions would save little. Each
 * instruction counts as a launch of its own. In truth some share one, and a reverse pass of a dense
 * layer has two. The general set of kernels goes by the same numbers although its launches do not
 * overlap: it has not been measured. */
static bool worth(const plan *p, const dev_instr *code, int32_t count, const int32_t *kind) {
    double gain = 0;
    for (int32_t k = 0; k < count; k++)
        if (kind[k] != STAGE_FUNCTIONS)
            gain += (1.0 - kernel_share) * cycles_of(p, &code[k]) - LAUNCH;
    return gain > 0;
}

mnp_status stages_find(env *e, const plan *p, dev_instr *code, int32_t count, stages_how how,
                       int32_t *kind) {
    const size_t pieces = (size_t)p->params->words / DEV_OUTER_WORDS + 1;
    uint8_t *writers = env_alloc(e, pieces, sizeof *writers, "a program");
    if (!writers) return MNP_ENOMEM;
    for (int32_t k = 0; k < count; k++)
        kind[k] = how.split && stages_whole(&code[k]) ? STAGE_FUNCTIONS : kind_of(p, &code[k]);
    do {
        memset(writers, 0, pieces);
        note_writers(code, count, kind, writers);
    } while (take_back(code, count, writers, kind));
    if (!how.always && !worth(p, code, count, kind)) memset(kind, 0, (size_t)count * sizeof *kind);
    if (how.sums) choose_slots(code, count, writers, kind);
    env_free(e, writers);
    return MNP_OK;
}
_Static_assert(STAGE_FUNCTIONS == 0, "cleared kinds");

/* ---- the list -------------------------------------------------------------------------------- */

mnp_status stages_list(env *e, cuda_program *p) {
    p->stages = env_alloc(e, (size_t)p->count + 3, sizeof *p->stages, "a program");
    if (!p->stages) return MNP_ENOMEM;
    p->n_stages = 1;
    p->stages[0] = (dev_stage){.kind = STAGE_FUNCTIONS};
    for (int32_t k = 0; k <= p->count;) {
        const int32_t kind = k < p->count ? p->kind[k] : STAGE_FUNCTIONS;
        dev_stage *s = &p->stages[p->n_stages];
        const int32_t count = k < p->count ? p->code[k].together : 0;
        if (kind == STAGE_FUNCTIONS && s[-1].kind == STAGE_FUNCTIONS) {
            s[-1].count += count;
        } else {
            *s = (dev_stage){.kind = kind, .first = k, .count = count};
            p->n_stages++;
        }
        if (k == p->count) break;
        k += count;
    }
    p->stages[0].begins = p->stages[p->n_stages - 1].ends = 1;
    for (int32_t k = 0; k < p->n_stages; k++) p->stages[k].staged = p->n_stages > 1;
    return MNP_OK;
}
