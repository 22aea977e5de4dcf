/* update.c: the end of a function (report) and the step that follows a batch. update.h has the
 * equations. The step functions here are the reference: they work for both elements, in double,
 * and word by word. Only trainable words are touched; the slots are zeroed by the backend. */
#include "op/update.h"

#include <string.h>

#include "op/op.h"

/* ---- report ---------------------------------------------------------------------------------- */

void op_report(graph *g, val loss, val kl, val loglik) {
    instr *ins = graph_append(g, OP_report);
    if (!ins) return;
    const val given[REPORT_COUNT] = {loss, kl, loglik};
    for (int j = 0; j < REPORT_COUNT; j++) {
        const value *v = graph_at(g, given[j]);
        if (given[j] == VAL_NONE ? j == REPORT_LOSS : v->type != TYPE_F64 || v->sampled) {
            graph_fail(g, "report: %s is not one double per function", v->name);
            return;
        }
        ins->in[j] = given[j];
    }
}

static void ref_report(ref_run *r) {
    double *to = r->f->item_scalars;
    if (!to) return;
    for (int j = 0; j < REPORT_COUNT; j++) {
        ref_array v = ref_in(r, j);
        to[r->f->item * REPORT_COUNT + j] = v.at ? v.at[0] : 0.0;
    }
}

const op_def op_report_def = {.name = "report", .ref = ref_report};

/* ---- the step -------------------------------------------------------------------------------- */

void op_update(graph *g) {
    static const op_id order[] = {OP_slot_sum, OP_grad_norm, OP_grad_total, OP_adam, OP_tick};
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) graph_append(g, (int32_t)order[k]);
}

static double get(const step_view *s, const void *block, int64_t at) {
    return s->element == sizeof(double) ? ((const double *)block)[at]
                                        : (double)((const float *)block)[at];
}

static void set(const step_view *s, void *block, int64_t at, double x) {
    if (s->element == sizeof(double))
        ((double *)block)[at] = x;
    else
        ((float *)block)[at] = (float)x;
}

static int64_t end_of(const step_view *s) {
    int64_t trainable = s->plan->params->trainable;
    return s->hi < trainable ? s->hi : trainable;
}

static void step_slot_sum(const step_view *s, const instr *ins) {
    (void)ins;
    for (int64_t at = s->lo; at < end_of(s); at++) {
        double sum = 0.0;
        for (int64_t slot = 0; slot < s->n_slots; slot++)
            sum += get(s, s->slots, slot * s->words + at);
        set(s, s->slots, at, sum / (double)s->items);
    }
}

static void step_grad_norm(const step_view *s, const instr *ins) {
    (void)ins;
    double sum = 0.0;
    for (int64_t at = s->lo; at < end_of(s); at++) {
        double g = get(s, s->slots, at);
        sum += g * g;
    }
    s->partial[s->range] = sum;
}

static void step_grad_total(const step_view *s, const instr *ins) {
    (void)ins;
    step_block *b = s->io->step;
    double sum = 0.0, mean[REPORT_COUNT] = {0};
    for (int64_t range = 0; range < s->n_ranges; range++) sum += s->partial[range];
    b->grad_norm = sqrt(sum);
    b->bad_item = -1;
    for (int64_t item = 0; s->item_scalars && item < s->items; item++) {
        const double *report = s->item_scalars + item * REPORT_COUNT;
        if (b->bad_item < 0 && !isfinite(report[REPORT_LOSS])) b->bad_item = item;
        for (int j = 0; j < REPORT_COUNT; j++) mean[j] += report[j] / (double)s->items;
    }
    b->loss = mean[REPORT_LOSS], b->kl = mean[REPORT_KL], b->loglik = mean[REPORT_LOGLIK];
    b->rate = update_rate(b, b->step);
}

static void step_adam(const step_view *s, const instr *ins) {
    (void)ins;
    exec_io *io = s->io;
    if (!update_ok(io->step)) return;
    update_adam a = update_adam_of(io->step);
    bool averages = io->step->ema > 0 && io->average;
    for (int64_t at = s->lo; at < end_of(s); at++) {
        double g = a.clip * get(s, s->slots, at);
        double m = a.beta1 * get(s, io->moment1, at) + a.mix1 * g;
        double v = a.beta2 * get(s, io->moment2, at) + a.mix2 * g * g;
        double w = a.keep * get(s, io->weights, at) - a.rate * m / (sqrt(v * a.inv_c2) + a.eps);
        set(s, io->moment1, at, m);
        set(s, io->moment2, at, v);
        set(s, io->weights, at, w);
        if (!averages) continue;
        double old = get(s, io->average, at);
        set(s, io->average, at, a.blend == 1.0 ? w : old + a.blend * (w - old));
    }
}

static void step_tick(const step_view *s, const instr *ins) {
    (void)ins;
    step_block *b = s->io->step;
    if (!update_ok(b)) return;
    if (b->step == 0 && b->ema > 0 && s->io->average) { /* frozen weights are their own average */
        size_t from = (size_t)s->plan->params->trainable * s->element;
        size_t bytes = (size_t)s->plan->params->words * s->element - from;
        memcpy((char *)s->io->average + from, (const char *)s->io->weights + from, bytes);
    }
    b->step++;
    b->rate = update_rate(b, b->step);
}

const op_def op_slot_sum_def = {.name = "slot_sum", .phase = PHASE_BLOCK, .step = step_slot_sum};
const op_def op_grad_norm_def = {.name = "grad_norm", .phase = PHASE_BLOCK, .step = step_grad_norm};
const op_def op_grad_total_def = {
    .name = "grad_total", .phase = PHASE_ONCE, .step = step_grad_total};
const op_def op_adam_def = {.name = "adam", .phase = PHASE_BLOCK, .step = step_adam};
const op_def op_tick_def = {.name = "tick", .phase = PHASE_ONCE, .step = step_tick};
