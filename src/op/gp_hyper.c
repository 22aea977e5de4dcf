/* gp_hyper.c: the hyper-parameters of a Gaussian process from its weights. With t = rate raw,
 *
 *   variance, length, period   log P(t)            P = exp (then simply t) or softplus
 *   noise                      log(floor + P(t))
 *   mean                       t
 *
 * in the order of base/gp_math.h. The rate lets a hyper-parameter move faster or slower than the
 * other weights under an optimiser whose steps have a fixed size. */
#include "op/gp_hyper.h"

#include <math.h>

#include "base/gp_math.h"

/* Which weight, and which of its columns, each hyper-parameter comes from. */
static const struct {
    int weight, col;
} source[GP_HYPERS] = {[GP_LOG_VARIANCE_RBF] = {HYPER_VARIANCE, 0},
                       [GP_LOG_LENGTH_RBF] = {HYPER_LENGTH, 0},
                       [GP_LOG_VARIANCE_MATERN] = {HYPER_VARIANCE, 1},
                       [GP_LOG_LENGTH_MATERN] = {HYPER_LENGTH, 1},
                       [GP_LOG_VARIANCE_PERIODIC] = {HYPER_VARIANCE, 2},
                       [GP_LOG_LENGTH_PERIODIC] = {HYPER_LENGTH, 2},
                       [GP_LOG_PERIOD] = {HYPER_PERIOD, 0},
                       [GP_LOG_NOISE] = {HYPER_NOISE, 0},
                       [GP_MEAN] = {HYPER_MEAN, 0}};

static const int32_t cols_of[HYPER_WEIGHTS] = {3, 3, 1, 1, 1};

val op_gp_hyper(graph *g, const gp_raw *raw, const gp_raw_opts *o) {
    const val in[HYPER_WEIGHTS] = {raw->variance, raw->length, raw->period, raw->noise, raw->mean};
    for (int j = 0; j < HYPER_WEIGHTS && graph_ok(g); j++) {
        const value *v = graph_at(g, in[j]);
        if (v->ext != EXT_FIXED || v->rows != 1 || v->cols != cols_of[j] || v->sampled)
            graph_fail(g, "gp_hyper: %s must be one row of %d", v->name, cols_of[j]);
    }
    val out = graph_matrix(g, "gp hyper", EXT_FIXED, 1, GP_HYPERS, false);
    instr *ins = graph_append(g, OP_gp_hyper);
    if (!ins) return VAL_NONE;
    for (int j = 0; j < HYPER_WEIGHTS; j++) ins->in[j] = in[j];
    ins->out[0] = out;
    ins->i[HYPER_SOFTPLUS] = o->softplus;
    ins->f[HYPER_RATE] = o->rate, ins->f[HYPER_FLOOR] = o->floor;
    graph_done(g, ins);
    return out;
}

static void grad_gp_hyper(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_gp_hyper_grad);
    if (!ins) return;
    for (int j = 0; j < HYPER_WEIGHTS; j++) ins->in[j] = fwd->in[j];
    ins->in[HYPER_GRAD_G] = graph_grad(g, fwd->out[0]);
    ins->i[HYPER_SOFTPLUS] = fwd->i[HYPER_SOFTPLUS];
    ins->f[HYPER_RATE] = fwd->f[HYPER_RATE], ins->f[HYPER_FLOOR] = fwd->f[HYPER_FLOOR];
    for (int j = 0; j < HYPER_WEIGHTS; j++) graph_wire_grad(g, ins, j, fwd->in[j]);
}

/* ---- reference ------------------------------------------------------------------------------- */

static double softplus(double t) {
    return fmax(t, 0) + log1p(exp(-fabs(t)));
}

/* Hyper-parameter j, and its derivative by the raw number. */
static double natural(const instr *ins, int j, double raw, double *slope) {
    double rate = ins->f[HYPER_RATE], t = rate * raw;
    double floor = j == GP_LOG_NOISE ? ins->f[HYPER_FLOOR] : 0;
    *slope = rate;
    if (j == GP_MEAN || (!ins->i[HYPER_SOFTPLUS] && floor == 0)) return t;
    double positive = ins->i[HYPER_SOFTPLUS] ? softplus(t) : exp(t);
    double by_t = ins->i[HYPER_SOFTPLUS] ? exp(t - positive) : positive; /* sigmoid = e^(t - sp) */
    *slope = rate * by_t / (floor + positive);
    return log(floor + positive);
}

static void ref_gp_hyper(ref_run *r) {
    ref_array out = ref_out(r, 0);
    double slope;
    for (int j = 0; out.at && j < GP_HYPERS; j++) {
        ref_array in = ref_in(r, source[j].weight);
        if (!r->failed) out.at[j] += natural(r->ins, j, in.at[source[j].col], &slope);
    }
}

static void ref_gp_hyper_grad(ref_run *r) {
    ref_array up = ref_in(r, HYPER_GRAD_G);
    for (int j = 0; up.at && j < GP_HYPERS; j++) {
        ref_array in = ref_in(r, source[j].weight), to = ref_out(r, source[j].weight);
        double slope;
        if (r->failed || !to.at) continue;
        natural(r->ins, j, in.at[source[j].col], &slope);
        to.at[source[j].col] += up.at[j] * slope;
    }
}

/* ---- cases: a = softplus, b = with a floor, c = rate ------------------------------------------
 */

static void build(case_build *b, const op_case *c) {
    gp_raw raw = {case_weight(b, "variance", 1, 3, 1), case_weight(b, "length", 1, 3, 1),
                  case_weight(b, "period", 1, 1, 1), case_weight(b, "noise", 1, 1, 1),
                  case_weight(b, "mean", 1, 1, 1)};
    gp_raw_opts o = {.softplus = c->a != 0, .floor = c->b ? 0.1 : 0, .rate = c->c};
    case_output(b, op_gp_hyper(b->g, &raw, &o));
}

static const op_case cases[] = {
    {"logarithms", 3, 1, 1, 0, 0, 1, 0, 0, 0, 0},
    {"logarithms, floor, rate", 3, 1, 1, 0, 1, 3, 0, 0, 0, 0},
    {"softplus, floor", 3, 1, 1, 1, 1, 1, 0, 0, 0, 0},
};

const op_def op_gp_hyper_def = {.name = "gp_hyper",
                                .grad = grad_gp_hyper,
                                .ref = ref_gp_hyper,
                                .build = build,
                                .cases = cases,
                                .n_cases = sizeof cases / sizeof *cases};
const op_def op_gp_hyper_grad_def = {.name = "gp_hyper_grad", .ref = ref_gp_hyper_grad};
