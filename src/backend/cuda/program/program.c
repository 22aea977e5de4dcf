/* program.c: see program.h. The passes in order: find fused parts (fuse/fuse.h), put operands into
 * instructions, choose the precision of products, find wide instructions (stages.h), set small ones
 * side by side (schedule.h). check.h has what each leaves.
 *
 * Where there are wide instructions the draft is made twice: first to find them, then with their
 * reverse passes in two pieces and a place of its own for each value.
 *
 * The first instruction that writes a weight's gradient overwrites, so slots need no zeroing. The
 * reverse pass of a small dense layer becomes two instructions: only the input's gradient is waited
 * for. */
#include "backend/cuda/program/program.h"

#include <string.h>

#include "backend/cuda/fuse/fp16_weights.h"
#include "backend/cuda/fuse/fuse.h"
#include "backend/cuda/fuse/saved_rows.h"
#include "backend/cuda/fuse/wgrad_tasks.h"
#include "backend/cuda/program/arena.h"
#include "backend/cuda/program/check.h"
#include "backend/cuda/program/cuda_ops.h"
#include "backend/cuda/program/grad_spans.h"
#include "backend/cuda/program/schedule.h"
#include "backend/cuda/program/stages.h"
#include "op/affine.h"
#include "op/attention.h"
#include "op/gauss.h"
#include "op/join.h"
#include "op/linear.h"
#include "op/map.h"
#include "op/pool.h"
#include "op/reduce.h"
#include "op/rqs.h"
#include "op/update.h"

/* device.h repeats these. */
_Static_assert((int)OPCODE_COUNT == (int)OP_COUNT && (int)OPCODE_tick == (int)OP_tick, "ops.def");
_Static_assert((int)DEV_EXT_N == (int)EXT_N && (int)DEV_EXT_M == (int)EXT_M &&
                   (int)DEV_EXT_K == (int)EXT_K,
               "extent");
_Static_assert((int)DEV_STORE_PARAM == (int)STORE_PARAM && (int)DEV_STORE_PGRAD == (int)STORE_PGRAD,
               "store");
_Static_assert((int)DEV_FEEDS == (int)EXEC_FEEDS && (int)DEV_EMITS == (int)EXEC_EMITS, "bindings");
_Static_assert(sizeof(dev_step) == sizeof(step_block) &&
                   offsetof(dev_step, bad_item) == offsetof(step_block, bad_item) &&
                   offsetof(dev_step, rate_max) == offsetof(step_block, rate_max),
               "step block");
_Static_assert((int)DATT_KEYS == (int)ATTENTION_KEYS && (int)DATT_VCOL == (int)ATTENTION_VCOL &&
                   (int)DATT_G_G == (int)ATTENTION_GRAD_G && (int)DATT_G_O == (int)ATTENTION_GRAD_O,
               "attention");
_Static_assert((int)DMAP_LOGDET == (int)MAP_LOGDET && (int)DMAP_G_LOGDET == (int)MAP_GRAD_LOGDET &&
                   (int)DMAP_GLOGDET == (int)MAP_GLOGDET,
               "maps");
_Static_assert((int)DRQS_MIN_DERIVATIVE == (int)RQS_MIN_DERIVATIVE && RQS_BINS == 0, "rqs");
_Static_assert(AFFINE_KIND == 0 && AFFINE_KAPPA == 0 && AFFINE_FLOOR == 1 && AFFINE_EXP_TANH == 0 &&
                   AFFINE_SCALE == 1,
               "affine");
_Static_assert((int)DSAMPLE_TAG == (int)SAMPLE_TAG && GAUSS_KIND == 0 && SIGMA_SIGMOID == 0 &&
                   SAMPLE_GRAD_G == 3 && RATIO_GRAD_G == 3 && KL_GRAD_G == 2,
               "gauss");
_Static_assert(POOL_OVER == 0 && POOL_MEAN == 1 && REDUCE_RANGE == 0 && REDUCE_FACTOR == 0,
               "pool, reduce");
_Static_assert((int)ATTENTION_GRAD_QV == (int)ATTENTION_QV, "attention");
_Static_assert((int)DREPORT_COUNT == (int)REPORT_COUNT && ACT_RELU == 1, "report, act");

static dev_operand operand_of(const plan *p, const cuda_program *out, val v) {
    if (v == VAL_NONE) return (dev_operand){0};
    const value *at = &p->values[v];
    return (dev_operand){.offset = out->offset[v],
                         .rows = at->rows,
                         .cols = at->cols,
                         .ld = at->ld,
                         .present = 1,
                         .store = (uint8_t)at->store,
                         .ext = (uint8_t)at->ext,
                         .sampled = at->sampled,
                         .is_double = at->type == TYPE_F64};
}

/* The instruction that makes v; NULL: it is no result. */
static const instr *maker_of(const plan *p, val v) {
    for (int32_t i = 0; i < p->n_instrs; i++)
        for (int j = 0; j < INSTR_OUT; j++)
            if (p->instrs[i].out[j] == v) return &p->instrs[i];
    return NULL;
}

static bool has_encoder_weight(const plan *p, const instr *linear) {
    const value *w = &p->values[linear->in[LINEAR_W]];
    return w->store == STORE_PARAM && strncmp(p->params->list[w->param].name, "enc.", 4) == 0;
}

/* Products with weights of the encoder, and attention whose queries such a product made: maps that
 * see the context, and tnp, have attention of their own. */
static bool in_encoder(const plan *p, const instr *ins) {
    if (ins->op == OP_linear || ins->op == OP_linear_grad) return has_encoder_weight(p, ins);
    if (ins->op != OP_attention && ins->op != OP_attention_grad) return false;
    const instr *q = maker_of(p, ins->in[ATTENTION_QV]);
    return !q || q->op != OP_linear || has_encoder_weight(p, q);
}

static int32_t math_of(const plan *p, const instr *ins, exec_math math) {
    if (math == MATH_FP32 || (math == MATH_MIXED && !in_encoder(p, ins))) return DEV_FP32;
    return math == MATH_BF16 && in_encoder(p, ins) ? DEV_BF16 : DEV_TF32;
}

static mnp_status translate(env *e, const plan *p, const cuda_program *program, const instr *ins,
                            exec_math math, dev_instr *out) {
    if (!cuda_has_op(ins->op))
        return env_fail(e, MNP_EUNSUPPORTED, "the op '%s' is not there on cuda", op_name(ins->op));
    bool fits = true;
    for (int j = DEV_IN; j < INSTR_IN; j++) fits &= ins->in[j] == VAL_NONE;
    for (int j = DEV_OUT; j < INSTR_OUT; j++) fits &= ins->out[j] == VAL_NONE;
    if (!fits)
        return env_fail(e, MNP_EUNSUPPORTED, "the op '%s' has too many operands for cuda",
                        op_name(ins->op));
    *out = (dev_instr){.op = ins->op, .acc = ins->acc, .math = math_of(p, ins, math)};
    for (int j = 0; j < DEV_INT; j++) out->i[j] = ins->i[j];
    for (int j = 0; j < DEV_REAL; j++) out->f[j] = ins->f[j];
    for (int j = 0; j < DEV_IN; j++) out->in[j] = operand_of(p, program, ins->in[j]);
    for (int j = 0; j < DEV_OUT; j++) out->out[j] = operand_of(p, program, ins->out[j]);
    return MNP_OK;
}

/* ---- scratch --------------------------------------------------------------------------------- */

static int64_t rows_of(const plan *p, const value *v) {
    return plan_rows(p, v->ext, v->rows);
}

static int64_t scratch_of(const plan *p, const instr *ins) {
    if (ins->op == OP_draw) return 3 * p->opts.n; /* an order, its draws, where numbers came from */
    if (ins->op == OP_attention_grad)
        return rows_of(p, &p->values[ins->in[ATTENTION_GRAD_QV]]) * ins->i[ATTENTION_HEADS] *
               p->opts.samples;
    return 0;
}

static mnp_status check_step(env *e, const plan *p, cuda_program *out) {
    static const op_id update[] = {OP_slot_sum, OP_grad_norm, OP_grad_total, OP_adam, OP_tick};
    const int32_t count = p->n_instrs - p->n_function, all = sizeof update / sizeof *update;
    bool same = count == all;
    for (int32_t k = 0; same && k < all; k++)
        same = p->instrs[p->n_function + k].op == (int32_t)update[k];
    out->updates = same;
    if (count == 0 || same) return MNP_OK;
    return env_fail(e, MNP_EUNSUPPORTED, "cuda has no step but the usual update");
}

/* ---- small instructions, side by side -------------------------------------------------------- */

_Static_assert((int)SCHEDULE_TOGETHER == (int)DEV_TOGETHER && (int)SCHEDULE_WIDE == (int)DEV_WIDE &&
                   (int)SCHEDULE_SPANS >= (int)FUSED_OPERANDS,
               "schedule");

static bool is_small_value(const plan *p, val v) {
    if (v == VAL_NONE) return true;
    const value *at = &p->values[v];
    if (at->store != STORE_ACT) return at->ld <= DEV_FEW_WIDTH;
    return at->ext == EXT_FIXED && at->rows <= DEV_FEW_ROWS && at->ld <= DEV_FEW_WIDTH;
}

static bool is_small(const plan *p, const instr *ins) {
    bool small = cuda_op_for_teams(ins->op) && p->opts.samples == 1;
    for (int j = 0; j < INSTR_IN; j++) small &= is_small_value(p, ins->in[j]);
    for (int j = 0; j < INSTR_OUT; j++) small &= is_small_value(p, ins->out[j]);
    /* the join with a column of points has a product, which goes by warps of the whole block */
    return small && !(ins->op == OP_join_grad && ins->in[JOIN_GRAD_P] != VAL_NONE);
}

/* The reverse pass of a small or wide dense layer as two instructions: to the input, and to the
 * weights. */
static int split_reverse(const plan *p, const instr *ins, bool wide, instr piece[2]) {
    piece[0] = piece[1] = *ins;
    const bool to_x = ins->out[LINEAR_GX] != VAL_NONE || ins->out[LINEAR_GRES] != VAL_NONE;
    const bool to_w = ins->out[LINEAR_GW] != VAL_NONE || ins->out[LINEAR_GB] != VAL_NONE;
    if (ins->op != OP_linear_grad || !to_x || !to_w || !(wide || is_small(p, ins))) return 1;
    piece[0].out[LINEAR_GW] = piece[0].out[LINEAR_GB] = VAL_NONE;
    piece[1].out[LINEAR_GX] = piece[1].out[LINEAR_GRES] = VAL_NONE;
    piece[1].i[LINEAR_SKIP] = 0;
    return 2;
}

/* Small values get places of their own after the plan's arena: sharing memory would tie together
 * instructions that have nothing else in common. apart: all values do. */
static mnp_status place_values(env *e, const plan *p, bool apart, cuda_program *out) {
    out->offset = env_alloc(e, (size_t)p->n_values + 1, sizeof *out->offset, "a program");
    if (!out->offset) return MNP_ENOMEM;
    out->act_words = apart ? 0 : p->act_words;
    for (val v = 0; v < p->n_values; v++) {
        const value *at = &p->values[v];
        out->offset[v] = at->offset;
        if (at->store != STORE_ACT || at->offset < 0 || !(apart || is_small_value(p, v))) continue;
        out->offset[v] = out->act_words;
        out->act_words += plan_words(p, at);
    }
    return MNP_OK;
}

static span span_of(const plan *p, const cuda_program *out, val v) {
    const value *at = &p->values[v];
    return (span){(int32_t)at->store, out->offset[v], out->offset[v] + plan_words(p, at)};
}

/* Cycles on an H200, roughly; only their proportions matter. */
static int32_t cost_of(const plan *p, const instr *ins, bool small) {
    if (small) return ins->op == OP_linear_grad ? 1500 : 1000;
    const bool attention = ins->op == OP_attention || ins->op == OP_attention_grad;
    const bool reverse = ins->op == OP_attention_grad || ins->op == OP_linear_grad;
    int32_t cost = (attention ? 8000 : 4000) * (reverse ? 2 : 1);
    val v = ins->out[0]; /* else its first operand: a join without ReLU begins with none */
    for (int j = 0; j < INSTR_IN && v == VAL_NONE; j++) v = ins->in[j];
    return v != VAL_NONE && p->values[v].ext == EXT_M ? cost / 2 : cost;
}

static task task_of(const plan *p, const cuda_program *out, const instr *ins) {
    task t = {.small = is_small(p, ins), .fence = ins->op == OP_draw};
    t.cost = ins->op == OP_draw ? 0 : cost_of(p, ins, t.small);
    for (int j = 0; j < DEV_IN; j++)
        if (ins->in[j] != VAL_NONE) t.in[t.n_in++] = span_of(p, out, ins->in[j]);
    for (int j = 0; j < DEV_OUT; j++)
        if (ins->out[j] != VAL_NONE) t.out[t.n_out++] = span_of(p, out, ins->out[j]);
    return t;
}

/* ---- fused parts ----------------------------------------------------------------------------- */

static task task_of_part(const plan *p, const cuda_program *out, const fuse_part *part) {
    task t = {.cost = 60000}; /* about the mean of them */
    for (int k = 0; k < FUSED_OPERANDS; k++) {
        if (part->operand[k] == VAL_NONE) continue;
        const span at = span_of(p, out, part->operand[k]);
        if (part->outs >> k & 1u)
            t.out[t.n_out++] = at;
        else
            t.in[t.n_in++] = at;
    }
    return t;
}

static dev_fused operands_of(const plan *p, const cuda_program *out, const fuse_part *part) {
    dev_fused d = {.acc = part->acc};
    for (int k = 0; k < FUSED_OPERANDS; k++) {
        const val v = part->operand[k];
        d.addr[k] =
            v == VAL_NONE ? FUSED_ABSENT : fused_addr((int)p->values[v].store, out->offset[v]);
    }
    return d;
}

/* The instruction for a part, with the attributes of one of its ops. */
static dev_instr call_part(const plan *p, const cuda_program *out, const fuse_part *part,
                           exec_math math) {
    const instr *like = &p->instrs[part->like];
    dev_instr d = {.op = OPCODE_COUNT + (int32_t)part->pattern->kind,
                   .math = math_of(p, like, math)};
    for (int j = 0; j < DEV_INT; j++) d.i[j] = like->i[j];
    for (int j = 0; j < DEV_REAL; j++) d.f[j] = like->f[j];
    d.fused = operands_of(p, out, part);
    return d;
}

/* Do the addresses of all operands fit, even if every value gets one of its own (fuse/fuse.h)?
 */
static bool addresses_fit(const plan *p, const cuda_program *out) {
    const int64_t most = (int64_t)1 << FUSED_OFFSET_BITS;
    int64_t words = out->act_words;
    for (val v = 0; v < p->n_values; v++)
        if (p->values[v].store == STORE_ACT) words += plan_words(p, &p->values[v]);
    return words < most && p->params->words < most;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* What is made ready: the plan's instructions, some of them split in two, and its fused parts. */
typedef struct draft {
    fuse_list units;
    instr *list;
    int32_t *from; /* the plan's instruction it is, or a piece of it; ~k: part k */
    task *tasks;
    dev_instr *code;
    int32_t *kind; /* dev_stage_kind */
    int32_t count;
    const bool *wide; /* (the plan's instructions) those to be wide, or NULL */
} draft;

static void add_instruction(const plan *p, const cuda_program *out, draft *d, int32_t k) {
    instr piece[2];
    const int parts = split_reverse(p, &p->instrs[k], d->wide && d->wide[k], piece);
    for (int j = 0; j < parts; j++) {
        d->list[d->count] = piece[j];
        d->from[d->count] = k;
        d->tasks[d->count++] = task_of(p, out, &piece[j]);
    }
}

static void add_part(const plan *p, const cuda_program *out, draft *d, int32_t unit) {
    d->from[d->count] = unit;
    d->tasks[d->count++] = task_of_part(p, out, &d->units.parts[~unit]);
}

static mnp_status draft_translate(env *e, const plan *p, exec_math math, const cuda_program *out,
                                  draft *d) {
    for (int32_t k = 0; k < d->count; k++) {
        if (d->from[k] < 0)
            d->code[k] = call_part(p, out, &d->units.parts[~d->from[k]], math);
        else
            MNP_TRY(translate(e, p, out, &d->list[k], math, &d->code[k]));
    }
    return MNP_OK;
}

/* wide: the plan's instructions that are to be wide; then no values share memory, so that
 * instructions stand side by side where they can. NULL: there are none. */
static mnp_status draft_make(env *e, const plan *p, exec_math math, uint32_t kinds,
                             const bool *wide, cuda_program *out, draft *d) {
    d->wide = wide;
    const size_t most = 2 * (size_t)p->n_function + 1;
    d->list = env_alloc(e, most, sizeof *d->list, "a program");
    d->from = env_alloc(e, most, sizeof *d->from, "a program");
    d->tasks = env_alloc(e, most, sizeof *d->tasks, "a program");
    d->code = env_alloc(e, most, sizeof *d->code, "a program");
    d->kind = env_alloc(e, most, sizeof *d->kind, "a program");
    if (!d->list || !d->from || !d->tasks || !d->code || !d->kind) return MNP_ENOMEM;
    MNP_TRY(place_values(e, p, wide != NULL, out));
    for (int32_t k = 0; k < p->n_function; k++) d->tasks[k] = task_of(p, out, &p->instrs[k]);
    if (!addresses_fit(p, out)) kinds = 0;
    MNP_TRY(fuse_find(e, p, d->tasks, kinds, out->offset, &out->act_words, &d->units));
    for (int32_t k = 0; k < d->units.n_units; k++) {
        const int32_t unit = d->units.units[k];
        if (unit < 0)
            add_part(p, out, d, unit);
        else
            add_instruction(p, out, d, unit);
    }
    return draft_translate(e, p, math, out, d);
}

static void draft_free(env *e, draft *d) {
    fuse_free(e, &d->units);
    env_free(e, d->list);
    env_free(e, d->from);
    env_free(e, d->tasks);
    env_free(e, d->code);
    env_free(e, d->kind);
    *d = (draft){0};
}

/* Wide instructions, and which of them a kernel can take together: those of a kind.
 * Of chains side by side the one with more kernels before it is the more urgent, so that they go in
 * step. Gradients of weights in other slots are other memory. */
static mnp_status draft_stages(env *e, const plan *p, exec_wide wide, const cuda_program *out,
                               draft *d, bool *staged) {
    enum { WIDE_COST = 1000000 }; /* far more than that of functions */
    const stages_how how = {
        .always = wide == WIDE_ALWAYS, .split = d->wide != NULL, .sums = out->updates};
    MNP_TRY(stages_find(e, p, d->code, d->count, how, d->kind));
    *staged = false;
    for (int32_t k = 0; k < d->count; k++) {
        if (d->kind[k] == STAGE_FUNCTIONS) continue;
        *staged = true;
        d->tasks[k].cost = WIDE_COST;
        d->tasks[k].late = d->kind[k] == STAGE_LINEAR_TO_W;
        d->tasks[k].wide = 1 + d->kind[k];
        for (int32_t j = 0; d->code[k].wide && j < d->tasks[k].n_out; j++)
            if (d->tasks[k].out[j].store == STORE_PGRAD) d->tasks[k].out[j].store = DEV_STORES;
    }
    return MNP_OK;
}

/* Once more, with the wide instructions that were found. */
static mnp_status draft_again(env *e, const plan *p, exec_math math, uint32_t kinds,
                              cuda_program *out, draft *d) {
    bool staged, *found = env_alloc(e, (size_t)p->n_function + 1, sizeof *found, "a program");
    if (!found) return MNP_ENOMEM;
    for (int32_t k = 0; k < d->count; k++)
        if (d->from[k] >= 0) found[d->from[k]] |= d->kind[k] != STAGE_FUNCTIONS;
    draft_free(e, d);
    env_free(e, out->offset);
    out->offset = NULL;
    mnp_status status = draft_make(e, p, math, kinds, found, out, d);
    if (status == MNP_OK) status = draft_stages(e, p, WIDE_ALWAYS, out, d, &staged);
    env_free(e, found);
    return status;
}

static mnp_status draft_program(env *e, const plan *p, exec_math math, uint32_t kinds,
                                exec_wide wide, cuda_program *out, draft *d) {
    bool staged = false;
    MNP_TRY(draft_make(e, p, math, kinds, NULL, out, d));
    if (wide == WIDE_NEVER) return MNP_OK;
    MNP_TRY(draft_stages(e, p, wide, out, d, &staged));
    return staged ? draft_again(e, p, math, kinds, out, d) : MNP_OK;
}

/* Is v a weight's gradient that nothing has written so far, in these slots of its (stages.h)? */
static bool is_fresh(const plan *p, val v, int32_t slots, bool *seen, cuda_program *out) {
    if (v == VAL_NONE || p->values[v].store != STORE_PGRAD) return false;
    bool *at = &seen[slots * p->n_values + v];
    const bool fresh = !*at;
    out->has_grad = *at = true;
    return fresh;
}

static mnp_status mark_fresh(env *e, const plan *p, const draft *d, const int32_t *order,
                             cuda_program *out) {
    bool *seen = env_alloc(e, 2 * (size_t)p->n_values + 1, sizeof *seen, "a program");
    if (!seen) return MNP_ENOMEM;
    for (int32_t k = 0; k < d->count; k++) {
        const int32_t from = d->from[order[k]];
        if (from < 0) {
            const fuse_part *part = &d->units.parts[~from];
            for (int j = 0; j < FUSED_OPERANDS; j++)
                if ((part->outs >> j & 1u) && is_fresh(p, part->operand[j], 0, seen, out))
                    out->code[k].fused.fresh |= (uint64_t)1 << j;
        } else {
            for (int j = 0; j < DEV_OUT; j++)
                if (is_fresh(p, d->list[order[k]].out[j], out->code[k].wide, seen, out))
                    out->code[k].fresh |= 1u << j;
        }
    }
    env_free(e, seen);
    return MNP_OK;
}

static mnp_status alloc_program(env *e, const draft *d, cuda_program *out) {
    const size_t words = (size_t)d->count + 1;
    out->count = d->count, out->n_fused = d->units.n_parts;
    out->code = env_alloc(e, words, sizeof *out->code, "a program");
    out->from = env_alloc(e, words, sizeof *out->from, "a program");
    out->fused_name = env_alloc(e, words, sizeof *out->fused_name, "a program");
    out->kind = env_alloc(e, words, sizeof *out->kind, "a program");
    return out->code && out->from && out->fused_name && out->kind ? MNP_OK : MNP_ENOMEM;
}

/* What stands at place k of the program: task number `at` of the draft. */
static void fill_place(const plan *p, const draft *d, int32_t at, int32_t k, cuda_program *out) {
    const int32_t from = d->from[at];
    out->code[k] = d->code[at], out->kind[k] = d->kind[at];
    if (from < 0) {
        const fuse_part *part = &d->units.parts[~from];
        out->from[k] = part->like;
        out->fused_name[k] = part->pattern->name;
        return;
    }
    const int64_t scratch = d->kind[at] == STAGE_FUNCTIONS ? scratch_of(p, &d->list[at]) : 0;
    if (scratch > out->scratch_words) out->scratch_words = scratch;
    out->from[k] = from;
}

static mnp_status checked(env *e, const plan *p, const cuda_program *program,
                          program_check *check) {
    return PROGRAM_CHECKS ? check(e, p, program) : MNP_OK;
}

static mnp_status fill(env *e, const plan *p, const draft *d, cuda_program *out) {
    const size_t words = (size_t)d->count + 1;
    int32_t *order = env_alloc(e, words, 2 * sizeof *order, "a program");
    mnp_status status = order ? alloc_program(e, d, out) : MNP_ENOMEM;
    if (status == MNP_OK) status = schedule_make(e, d->tasks, d->count, order, order + words);
    for (int32_t k = 0; k < d->count && status == MNP_OK; k++) {
        fill_place(p, d, order[k], k, out);
        out->code[k].together = order[words + (size_t)k];
    }
    if (status == MNP_OK) status = checked(e, p, out, program_check_code);
    if (status == MNP_OK) status = mark_fresh(e, p, d, order, out);
    env_free(e, order);
    return status == MNP_OK ? checked(e, p, out, program_check_fresh) : status;
}

static bool is_staged(const cuda_program *p) {
    bool staged = false;
    for (int32_t k = 0; k < p->count; k++) staged |= p->kind[k] != STAGE_FUNCTIONS;
    return staged;
}

/* The passes over a program whose instructions stand. */
static mnp_status finish(env *e, const plan *p, cuda_program *out) {
    MNP_TRY(saved_rows_place(e, p->params->trainable, out));
    MNP_TRY(checked(e, p, out, program_check_rows));
    MNP_TRY((is_staged(out) ? arena_pack : arena_shorten)(e, p, out));
    MNP_TRY(checked(e, p, out, program_check_arena));
    MNP_TRY(stages_list(e, out));
    MNP_TRY(checked(e, p, out, program_check_stages));
    if (out->updates) {
        MNP_TRY(grad_spans_list(e, p->params, out));
        MNP_TRY(checked(e, p, out, program_check_spans));
        MNP_TRY(wgrad_tasks_list(e, out));
        MNP_TRY(checked(e, p, out, program_check_tasks));
    }
    MNP_TRY(fp16_weights_place(e, p->params->words, out));
    return checked(e, p, out, program_check_fp16);
}

mnp_status program_make(env *e, const plan *p, exec_math math, uint32_t kinds, exec_wide wide,
                        cuda_program *out) {
    *out = (cuda_program){0};
    draft d = {0};
    mnp_status status = check_step(e, p, out);
    if (status == MNP_OK) status = draft_program(e, p, math, kinds, wide, out, &d);
    if (status == MNP_OK) status = fill(e, p, &d, out);
    if (status == MNP_OK) status = finish(e, p, out);
    draft_free(e, &d);
    if (status != MNP_OK) program_free(e, out);
    return status;
}

void program_free(env *e, cuda_program *p) {
    env_free(e, p->code);
    env_free(e, p->from);
    env_free(e, p->fused_name);
    env_free(e, p->kind);
    env_free(e, p->stages);
    env_free(e, p->outer);
    env_free(e, p->products);
    env_free(e, p->terms);
    env_free(e, p->grad_spans);
    env_free(e, p->wgrad_tasks);
    env_free(e, p->fp16_at);
    env_free(e, p->offset);
    *p = (cuda_program){0};
}
