/* program.c: see program.h. Operands are inlined, products get their precision, and the first
 * instruction that writes a weight's gradient is told to overwrite it: slots then need no zeroing.
 */
#include "backend/cuda/program.h"

#include <string.h>

#include "op/affine.h"
#include "op/attention.h"
#include "op/gauss.h"
#include "op/linear.h"
#include "op/map.h"
#include "op/pool.h"
#include "op/reduce.h"
#include "op/rqs.h"
#include "op/update.h"

/* device.h repeats these. */
_Static_assert((int)OPCODE_COUNT == (int)OP_COUNT && (int)OPCODE_tick == (int)OP_tick, "ops.def");
_Static_assert((int)DEV_EXT_N == (int)EXT_N && (int)DEV_EXT_M == (int)EXT_M, "extent");
_Static_assert((int)DEV_STORE_PARAM == (int)STORE_PARAM &&
                   (int)DEV_STORE_PGRAD == (int)STORE_PGRAD &&
                   (int)DEV_STORE_STATE == (int)STORE_STATE,
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
_Static_assert((int)DREPORT_COUNT == (int)REPORT_COUNT && ACT_RELU == 1, "report, act");

/* Ops the device has. Not among them: chunks of keys and pooled sums that are kept between runs
 * (for sets that do not fit), and Gaussian processes, which compute in double. */
static bool is_known(int32_t op) {
    static const op_id known[] = {OP_feed,
                                  OP_emit,
                                  OP_zeros,
                                  OP_fill_one,
                                  OP_draw,
                                  OP_fourier,
                                  OP_linear,
                                  OP_linear_grad,
                                  OP_join,
                                  OP_join_grad,
                                  OP_attention,
                                  OP_attention_grad,
                                  OP_pool,
                                  OP_pool_grad,
                                  OP_layernorm,
                                  OP_layernorm_grad,
                                  OP_concat,
                                  OP_concat_grad,
                                  OP_stack,
                                  OP_stack_grad,
                                  OP_row,
                                  OP_row_grad,
                                  OP_if_context,
                                  OP_if_context_grad,
                                  OP_add,
                                  OP_add_grad,
                                  OP_mul,
                                  OP_mul_grad,
                                  OP_scale,
                                  OP_scale_grad,
                                  OP_dot,
                                  OP_dot_grad,
                                  OP_cols,
                                  OP_cols_grad,
                                  OP_rqs_to_noise,
                                  OP_rqs_to_noise_grad,
                                  OP_rqs_to_data,
                                  OP_rqs_to_data_grad,
                                  OP_affine_to_noise,
                                  OP_affine_to_noise_grad,
                                  OP_affine_to_data,
                                  OP_affine_to_data_grad,
                                  OP_gauss_sample,
                                  OP_gauss_sample_grad,
                                  OP_gauss_kl,
                                  OP_gauss_kl_grad,
                                  OP_gauss_ratio,
                                  OP_gauss_ratio_grad,
                                  OP_normal_logp,
                                  OP_normal_logp_grad,
                                  OP_base_noise,
                                  OP_sum_rows,
                                  OP_sum_rows_grad,
                                  OP_logmeanexp,
                                  OP_logmeanexp_grad,
                                  OP_mean_samples,
                                  OP_mean_samples_grad,
                                  OP_per_point,
                                  OP_per_point_grad,
                                  OP_report};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (op == (int32_t)known[k]) return true;
    return false;
}

static dev_operand operand_of(const plan *p, val v) {
    if (v == VAL_NONE) return (dev_operand){0};
    const value *at = &p->values[v];
    return (dev_operand){.offset = at->offset,
                         .rows = at->rows,
                         .cols = at->cols,
                         .ld = at->ld,
                         .present = 1,
                         .store = (uint8_t)at->store,
                         .ext = (uint8_t)at->ext,
                         .sampled = at->sampled,
                         .is_double = at->type == TYPE_F64};
}

/* bfloat16 is for the encoder alone: attention, and products with its weights. */
static bool in_encoder(const plan *p, const instr *ins) {
    if (ins->op == OP_attention || ins->op == OP_attention_grad) return true;
    if (ins->op != OP_linear && ins->op != OP_linear_grad) return false;
    const value *w = &p->values[ins->in[LINEAR_W]];
    return w->store == STORE_PARAM && strncmp(p->params->list[w->param].name, "enc.", 4) == 0;
}

static int32_t math_of(const plan *p, const instr *ins, exec_math math) {
    if (math == MATH_FP32) return DEV_FP32;
    return math == MATH_BF16 && in_encoder(p, ins) ? DEV_BF16 : DEV_TF32;
}

static mnp_status translate(env *e, const plan *p, const instr *ins, exec_math math,
                            dev_instr *out) {
    if (!is_known(ins->op))
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
    for (int j = 0; j < DEV_IN; j++) out->in[j] = operand_of(p, ins->in[j]);
    for (int j = 0; j < DEV_OUT; j++) out->out[j] = operand_of(p, ins->out[j]);
    return MNP_OK;
}

/* ---- scratch --------------------------------------------------------------------------------- */

static int64_t rows_of(const plan *p, const value *v) {
    return v->ext == EXT_N ? p->opts.n : v->ext == EXT_M ? p->opts.m : v->rows;
}

static int64_t scratch_of(const plan *p, const instr *ins) {
    if (ins->op == OP_draw) { /* an order, its draws, and a table of at most 4 n pairs */
        return 2 * p->opts.n + 8 * p->opts.n + 16;
    }
    if (ins->op == OP_attention_grad)
        return rows_of(p, &p->values[ins->in[ATTENTION_GRAD_QV]]) * ins->i[ATTENTION_HEADS] *
               p->opts.samples;
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

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

static mnp_status mark_fresh(env *e, const plan *p, cuda_program *out) {
    bool *seen = env_alloc(e, (size_t)p->n_values + 1, sizeof *seen, "a program");
    if (!seen) return MNP_ENOMEM;
    for (int32_t k = 0; k < p->n_function; k++)
        for (int j = 0; j < DEV_OUT; j++) {
            val v = p->instrs[k].out[j];
            if (v == VAL_NONE || p->values[v].store != STORE_PGRAD) continue;
            out->has_grad = true;
            if (!seen[v]) out->code[k].fresh |= 1u << j;
            seen[v] = true;
        }
    env_free(e, seen);
    return MNP_OK;
}

mnp_status program_make(env *e, const plan *p, exec_math math, cuda_program *out) {
    *out = (cuda_program){.count = p->n_function};
    out->code = env_alloc(e, (size_t)p->n_function + 1, sizeof *out->code, "a program");
    mnp_status status = out->code ? check_step(e, p, out) : MNP_ENOMEM;
    for (int32_t k = 0; k < p->n_function && status == MNP_OK; k++) {
        const int64_t words = scratch_of(p, &p->instrs[k]);
        if (words > out->scratch_words) out->scratch_words = words;
        status = translate(e, p, &p->instrs[k], math, &out->code[k]);
    }
    if (status == MNP_OK) status = mark_fresh(e, p, out);
    if (status != MNP_OK) program_free(e, out);
    return status;
}

void program_free(env *e, cuda_program *p) {
    env_free(e, p->code);
    *p = (cuda_program){0};
}
