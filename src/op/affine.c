/* affine.c: the linear flow, one scale and one shift per point.
 *
 *   data = alpha noise + beta,    a = log alpha
 *   exp_tanh   a = kappa tanh(raw / kappa): alpha stays in (e^-kappa, e^kappa)
 *   softplus   alpha = floor + (1 - floor) softplus(raw): a Gaussian's sigma
 *
 *   to_data    out = alpha y + beta       log |d out / d y| =  a
 *   to_noise   out = (y - beta) / alpha   log |d out / d y| = -a
 *
 * raw (rows, 2) = beta, raw scale. Reverse, with (G, H) = gradients of (out, logdet_out) and
 * a' = d a / d raw:
 *   to_data    dy = G alpha,   dbeta = G,          draw = a' (G alpha y + H)
 *   to_noise   dy = G / alpha, dbeta = -G / alpha, draw = -a' (G out + H) */
#include "op/affine.h"

#include <math.h>

static mapped record(graph *g, int32_t op, val y, val raw, val logdet, const affine_opts *o) {
    if (graph_ok(g) && o->kind == AFFINE_EXP_TANH && !(o->kappa > 0 && o->kappa <= 40))
        graph_fail(g, "%s: kappa is %g, not in (0, 40]", op_name(op), o->kappa);
    if (graph_ok(g) && o->kind == AFFINE_SOFTPLUS && !(o->floor >= 0 && o->floor < 1))
        graph_fail(g, "%s: the floor is %g, not in [0, 1)", op_name(op), o->floor);
    instr *ins;
    mapped out = map_record(g, op, y, raw, logdet, 2, &ins);
    if (!ins) return out;
    ins->i[AFFINE_KIND] = (int32_t)o->kind;
    ins->f[AFFINE_KAPPA] = o->kappa;
    ins->f[AFFINE_FLOOR] = o->floor;
    return out;
}

mapped op_affine_to_noise(graph *g, val y, val raw, val logdet, const affine_opts *o) {
    return record(g, OP_affine_to_noise, y, raw, logdet, o);
}

mapped op_affine_to_data(graph *g, val y, val raw, val logdet, const affine_opts *o) {
    return record(g, OP_affine_to_data, y, raw, logdet, o);
}

static void grad_to_noise(graph *g, const instr *fwd) {
    map_record_grad(g, OP_affine_to_noise_grad, fwd);
}

static void grad_to_data(graph *g, const instr *fwd) {
    map_record_grad(g, OP_affine_to_data_grad, fwd);
}

/* ---- reference ------------------------------------------------------------------------------- */

/* log alpha and its slope with respect to the raw number. */
static double log_scale(const instr *ins, double raw, double *slope) {
    if (ins->i[AFFINE_KIND] == AFFINE_EXP_TANH) {
        double kappa = ins->f[AFFINE_KAPPA], t = tanh(raw / kappa);
        *slope = 1 - t * t;
        return kappa * t;
    }
    double floor = ins->f[AFFINE_FLOOR], u = exp(-fabs(raw));
    double alpha = floor + (1 - floor) * (fmax(raw, 0) + log1p(u));
    *slope = (1 - floor) * (raw < 0 ? u : 1) / (1 + u) / alpha;
    return log(alpha);
}

static void forward(ref_run *r, bool to_noise) {
    ref_array y = ref_in(r, MAP_Y), raw = ref_in(r, MAP_RAW), logdet = ref_in(r, MAP_LOGDET);
    ref_array out = ref_out(r, MAP_OUT), logdet_out = ref_out(r, MAP_LOGDET_OUT);
    if (r->failed) return;
    for (int64_t s = 0; s < out.samples; s++)
        for (int64_t i = 0; i < out.rows; i++) {
            double v = *ref_el(y, s, i, 0), beta = *ref_el(raw, s, i, AFFINE_BETA);
            double slope, a = log_scale(r->ins, *ref_el(raw, s, i, AFFINE_SCALE), &slope);
            *ref_el(out, s, i, 0) += to_noise ? (v - beta) * exp(-a) : exp(a) * v + beta;
            *ref_el(logdet_out, s, i, 0) +=
                (logdet.at ? *ref_el(logdet, s, i, 0) : 0.0) + (to_noise ? -a : a);
        }
}

static void backward(ref_run *r, bool to_noise) {
    ref_array y = ref_in(r, MAP_GRAD_Y), raw = ref_in(r, MAP_GRAD_RAW);
    ref_array up = ref_in(r, MAP_GRAD_OUT), up_log = ref_in(r, MAP_GRAD_LOGDET);
    ref_array gy = ref_out(r, MAP_GY), graw = ref_out(r, MAP_GRAW), glog = ref_out(r, MAP_GLOGDET);
    if (r->failed) return;
    int64_t samples = up.at ? up.samples : up_log.samples, rows = y.rows;
    for (int64_t s = 0; s < samples; s++)
        for (int64_t i = 0; i < rows; i++) {
            double v = *ref_el(y, s, i, 0), beta = *ref_el(raw, s, i, AFFINE_BETA);
            double slope, alpha = exp(log_scale(r->ins, *ref_el(raw, s, i, AFFINE_SCALE), &slope));
            double G = up.at ? *ref_el(up, s, i, 0) : 0.0;
            double H = up_log.at ? *ref_el(up_log, s, i, 0) : 0.0;
            if (gy.at) *ref_el(gy, s, i, 0) += to_noise ? G / alpha : G * alpha;
            if (glog.at) *ref_el(glog, s, i, 0) += H;
            if (!graw.at) continue;
            *ref_el(graw, s, i, AFFINE_BETA) += to_noise ? -G / alpha : G;
            *ref_el(graw, s, i, AFFINE_SCALE) +=
                slope * (to_noise ? -(G * (v - beta) / alpha + H) : G * alpha * v + H);
        }
}

static void ref_to_noise(ref_run *r) {
    forward(r, true);
}
static void ref_to_data(ref_run *r) {
    forward(r, false);
}
static void ref_to_noise_grad(ref_run *r) {
    backward(r, true);
}
static void ref_to_data_grad(ref_run *r) {
    backward(r, false);
}

/* ---- cases: a = kappa, or 0 for softplus; b = bits of map.h ---------------------------------- */

static mapped build(case_build *b, const op_case *c,
                    mapped (*op)(graph *, val, val, val, const affine_opts *)) {
    const affine_opts o = {c->a ? AFFINE_EXP_TANH : AFFINE_SOFTPLUS, c->a, 0.05};
    val in[3];
    map_case_inputs(b, c, 2, 1.0, 1.5, in);
    return op(b->g, in[MAP_Y], in[MAP_RAW], in[MAP_LOGDET], &o);
}

static void build_to_noise(case_build *b, const op_case *c) {
    map_case_outputs(b, c, build(b, c, op_affine_to_noise));
}

static void build_to_data(case_build *b, const op_case *c) {
    map_case_outputs(b, c, build(b, c, op_affine_to_data));
}

static const op_case cases[] = {
    {"128 points", 128, 50, 1, 5, 0, 0, 0, CASE_BENCH, 0, 0},
    {"kappa 1", 33, 33, 1, 1, MAP_NO_LOGDET, 0, 0, 0, 0, 0},
    {"one point", 1, 0, 1, 5, 0, 0, 0, 0, 0, 0},
    {"all sampled", 21, 5, 3, 5, MAP_SAMPLED_Y | MAP_SAMPLED_RAW | MAP_SAMPLED_LOGDET, 0, 0, 0, 0,
     0},
    {"shared y", 19, 0, 4, 5, MAP_SAMPLED_RAW, 0, 0, 0, 0, 0},
    {"shared raw", 17, 17, 4, 5, MAP_SAMPLED_Y, 0, 0, 0, 0, 0},
    {"only out", 40, 9, 2, 5, MAP_SAMPLED_LOGDET | MAP_ONLY_OUT, 0, 0, 0, 0, 0},
    {"only logdet", 40, 9, 2, 5, MAP_SAMPLED_RAW | MAP_ONLY_LOGDET, 0, 0, 0, 0, 0},
    {"softplus", 128, 50, 1, 0, 0, 0, 0, CASE_BENCH, 0, 0},
    {"softplus, sampled", 21, 5, 3, 0, MAP_SAMPLED_Y | MAP_SAMPLED_RAW, 0, 0, 0, 0, 0},
    {"softplus, shared y", 19, 0, 4, 0, MAP_SAMPLED_RAW | MAP_NO_LOGDET, 0, 0, 0, 0, 0},
    {"n = 1000", 1000, 400, 1, 5, 0, 0, 0, CASE_NO_FD, 0, 0},
};

const op_def op_affine_to_noise_def = {.name = "affine_to_noise",
                                       .grad = grad_to_noise,
                                       .ref = ref_to_noise,
                                       .build = build_to_noise,
                                       .cases = cases,
                                       .n_cases = sizeof cases / sizeof *cases};
const op_def op_affine_to_data_def = {.name = "affine_to_data",
                                      .grad = grad_to_data,
                                      .ref = ref_to_data,
                                      .build = build_to_data,
                                      .cases = cases,
                                      .n_cases = sizeof cases / sizeof *cases};
const op_def op_affine_to_noise_grad_def = {.name = "affine_to_noise_grad",
                                            .ref = ref_to_noise_grad};
const op_def op_affine_to_data_grad_def = {.name = "affine_to_data_grad", .ref = ref_to_data_grad};
