/* mixture.c: a mixture of K normals at each row. raw (rows, 3K) has K logits, K means, K raw
 * numbers of the standard deviations:
 *
 *   w = softmax(raw[0..K)),  mu = raw[K..2K),  s = floor + (1 - floor) softplus(raw[2K..3K))
 *   mixture_logp   log sum_k w_k N(y; mu_k, s_k^2)
 *   mixture_draw   mu_k + s_k eps, with the first k whose w_1 + .. + w_k reaches Phi(pick); without
 *                  `pick` the mean sum_k w_k mu_k
 *
 * Every result is a number per row. Reverse of the density: with r_k the share of part k in it and
 * e_k = (y - mu_k) / s_k,  d logit_k += g (r_k - w_k),  d mu_k += g r_k e_k / s_k,
 * d raw s_k += g r_k (e_k^2 - 1) / s_k s_k',  dy -= g sum_k r_k e_k / s_k. Draws have no gradient.
 */
#include "op/mixture.h"

#include <math.h>

#include "op/normal.h"
#include "util/limits.h"

static bool fits(const value *v, const value *raw) {
    return v->cols == 1 && v->ld == 1 && v->ext == raw->ext && v->rows == raw->rows;
}

static bool is_raw(const value *v) {
    return v->cols >= 3 && v->cols % 3 == 0 && v->cols / 3 <= MIXTURE_PARTS_MAX &&
           v->ld == graph_pad(v->cols);
}

val op_mixture_logp(graph *g, val y, val raw, double floor) {
    if (!graph_ok(g)) return VAL_NONE;
    value vy = *graph_at(g, y), vr = *graph_at(g, raw);
    if (!is_raw(&vr) || !fits(&vy, &vr)) {
        graph_fail(g, "mixture_logp: %s and %s do not fit", vy.name, vr.name);
        return VAL_NONE;
    }
    val out = graph_scalars(g, "logp", vy.ext, vy.rows, vy.sampled || vr.sampled);
    instr *ins = graph_append(g, OP_mixture_logp);
    if (!ins) return VAL_NONE;
    ins->in[MIXTURE_RAW] = raw, ins->in[MIXTURE_Y] = y;
    ins->out[0] = out;
    ins->f[MIXTURE_FLOOR] = floor;
    graph_done(g, ins);
    return out;
}

val op_mixture_draw(graph *g, val raw, val eps, val pick, double floor) {
    if (!graph_ok(g)) return VAL_NONE;
    value ve = *graph_at(g, eps), vr = *graph_at(g, raw), vp = *graph_at(g, pick);
    if (!is_raw(&vr) || !fits(&ve, &vr) || (pick != VAL_NONE && !fits(&vp, &vr))) {
        graph_fail(g, "mixture_draw: %s and %s do not fit", ve.name, vr.name);
        return VAL_NONE;
    }
    val out = graph_scalars(g, "draw", ve.ext, ve.rows, ve.sampled || vr.sampled || vp.sampled);
    instr *ins = graph_append(g, OP_mixture_draw);
    if (!ins) return VAL_NONE;
    ins->in[MIXTURE_RAW] = raw, ins->in[MIXTURE_EPS] = eps, ins->in[MIXTURE_PICK] = pick;
    ins->out[0] = out;
    ins->f[MIXTURE_FLOOR] = floor;
    return out;
}

static void grad_logp(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_mixture_logp_grad);
    if (!ins) return;
    ins->in[MIXTURE_GRAD_RAW] = fwd->in[MIXTURE_RAW];
    ins->in[MIXTURE_GRAD_Y] = fwd->in[MIXTURE_Y];
    ins->in[MIXTURE_G] = graph_grad(g, fwd->out[0]);
    ins->f[MIXTURE_FLOOR] = fwd->f[MIXTURE_FLOOR];
    graph_wire_grad(g, ins, MIXTURE_GRAW, fwd->in[MIXTURE_RAW]);
    graph_wire_grad(g, ins, MIXTURE_GY, fwd->in[MIXTURE_Y]);
}

/* ---- reference ------------------------------------------------------------------------------- */

static double scale_of(double floor, double raw, double *slope) {
    double u = exp(-fabs(raw));
    *slope = (1 - floor) * (raw < 0 ? u : 1) / (1 + u);
    return floor + (1 - floor) * (fmax(raw, 0) + log1p(u));
}

/* w (K): the softmax of the logits. */
static void weigh(const double *logit, int64_t K, double *w) {
    double top = logit[0], sum = 0;
    for (int64_t k = 1; k < K; k++) top = fmax(top, logit[k]);
    for (int64_t k = 0; k < K; k++) sum += w[k] = exp(logit[k] - top);
    for (int64_t k = 0; k < K; k++) w[k] /= sum;
}

/* The log-density at y, and the parts' shares in it, r (K). */
static double density(const double *raw, int64_t K, double floor, double y, const double *w,
                      double *r) {
    double top = -INFINITY, sum = 0, slope;
    for (int64_t k = 0; k < K; k++) {
        double s = scale_of(floor, raw[2 * K + k], &slope), e = (y - raw[K + k]) / s;
        r[k] = log(w[k]) - 0.5 * e * e - log(s) - NORMAL_HALF_LOG_2PI;
        top = fmax(top, r[k]);
    }
    for (int64_t k = 0; k < K; k++) sum += r[k] = exp(r[k] - top);
    for (int64_t k = 0; k < K; k++) r[k] /= sum;
    return top + log(sum);
}

static void ref_logp(ref_run *run) {
    ref_array raw = ref_in(run, MIXTURE_RAW), y = ref_in(run, MIXTURE_Y), out = ref_out(run, 0);
    double w[MIXTURE_PARTS_MAX], r[MIXTURE_PARTS_MAX];
    int64_t K = raw.cols / 3;
    if (run->failed) return;
    for (int64_t s = 0; s < out.samples; s++)
        for (int64_t i = 0; i < out.rows; i++) {
            const double *from = ref_el(raw, s, i, 0);
            weigh(from, K, w);
            *ref_el(out, s, i, 0) +=
                density(from, K, run->ins->f[MIXTURE_FLOOR], *ref_el(y, s, i, 0), w, r);
        }
}

static void ref_logp_grad(ref_run *run) {
    ref_array raw = ref_in(run, MIXTURE_GRAD_RAW), y = ref_in(run, MIXTURE_GRAD_Y);
    ref_array up = ref_in(run, MIXTURE_G);
    ref_array graw = ref_out(run, MIXTURE_GRAW), gy = ref_out(run, MIXTURE_GY);
    double w[MIXTURE_PARTS_MAX], r[MIXTURE_PARTS_MAX], floor = run->ins->f[MIXTURE_FLOOR];
    int64_t K = raw.cols / 3;
    if (run->failed) return;
    for (int64_t s = 0; s < up.samples; s++)
        for (int64_t i = 0; i < up.rows; i++) {
            const double *from = ref_el(raw, s, i, 0);
            double v = *ref_el(y, s, i, 0), G = *ref_el(up, s, i, 0), slope;
            weigh(from, K, w);
            density(from, K, floor, v, w, r);
            for (int64_t k = 0; k < K; k++) {
                double sd = scale_of(floor, from[2 * K + k], &slope), e = (v - from[K + k]) / sd;
                if (gy.at) *ref_el(gy, s, i, 0) -= G * r[k] * e / sd;
                if (!graw.at) continue;
                *ref_el(graw, s, i, k) += G * (r[k] - w[k]);
                *ref_el(graw, s, i, K + k) += G * r[k] * e / sd;
                *ref_el(graw, s, i, 2 * K + k) += G * r[k] * (e * e - 1) / sd * slope;
            }
        }
}

static void ref_draw(ref_run *run) {
    ref_array raw = ref_in(run, MIXTURE_RAW), eps = ref_in(run, MIXTURE_EPS);
    ref_array pick = ref_in(run, MIXTURE_PICK), out = ref_out(run, 0);
    double w[MIXTURE_PARTS_MAX], slope, floor = run->ins->f[MIXTURE_FLOOR];
    int64_t K = raw.cols / 3;
    if (run->failed) return;
    for (int64_t s = 0; s < out.samples; s++)
        for (int64_t i = 0; i < out.rows; i++) {
            const double *from = ref_el(raw, s, i, 0);
            double *to = ref_el(out, s, i, 0);
            weigh(from, K, w);
            for (int64_t k = 0; !pick.at && k < K; k++) *to += w[k] * from[K + k];
            if (!pick.at) continue;
            double level = 0.5 * erfc(-*ref_el(pick, s, i, 0) * M_SQRT1_2);
            int64_t k = 0;
            for (double below = w[0]; k < K - 1 && below < level; below += w[++k]) {
            }
            *to += from[K + k] + scale_of(floor, from[2 * K + k], &slope) * *ref_el(eps, s, i, 0);
        }
}

/* ---- cases: a = K, b = what is sampled, c = 1: the mean -------------------------------------- */

enum { SAMPLED_RAW = 1, SAMPLED_Y = 2 };

static val build_raw(case_build *b, const op_case *c) {
    return case_matrix(b, "raw", EXT_N, 0, 3 * c->a, (c->b & SAMPLED_RAW) != 0, true,
                       CASE_NORMAL(0, 1));
}

static val build_numbers(case_build *b, const op_case *c, const char *name, bool grad) {
    return case_scalars(b, name, EXT_N, (c->b & SAMPLED_Y) != 0, grad, CASE_NORMAL(0, 1.5));
}

static void build_logp(case_build *b, const op_case *c) {
    val raw = build_raw(b, c);
    case_output(b, op_mixture_logp(b->g, build_numbers(b, c, "y", true), raw, 0.02));
}

static void build_draw(case_build *b, const op_case *c) {
    val raw = build_raw(b, c), eps = build_numbers(b, c, "eps", false);
    val pick = c->c ? VAL_NONE : build_numbers(b, c, "pick", false);
    case_output(b, op_mixture_draw(b->g, raw, eps, pick, 0.02));
}

static const op_case cases[] = {
    {"10 parts", 128, 50, 1, 10, 0, 0, 0, CASE_BENCH, 0, 0},
    {"one part", 9, 4, 1, 1, 0, 0, 0, 0, 0, 0},
    {"one point", 1, 0, 1, 3, 0, 0, 0, 0, 0, 0},
    {"all sampled", 11, 4, 3, 4, SAMPLED_RAW | SAMPLED_Y, 0, 0, 0, 0, 0},
    {"shared y", 9, 2, 3, 5, SAMPLED_RAW, 0, 0, 0, 0, 0},
    {"shared raw", 9, 2, 3, 6, SAMPLED_Y, 0, 0, 0, 0, 0},
    {"n = 1000", 1000, 400, 1, 10, 0, 0, 0, CASE_NO_FD, 0, 0},
};
static const op_case draw_cases[] = {
    {"10 parts", 128, 50, 1, 10, 0, 0, 0, CASE_BENCH | CASE_NO_FD, 0, 0},
    {"one part, sampled", 9, 4, 3, 1, SAMPLED_Y, 0, 0, CASE_NO_FD, 0, 0},
    {"all sampled", 11, 4, 3, 4, SAMPLED_RAW | SAMPLED_Y, 0, 0, CASE_NO_FD, 0, 0},
    {"the mean", 17, 5, 3, 7, SAMPLED_Y, 1, 0, CASE_NO_FD, 0, 0},
};

#define CASES(list) .cases = list, .n_cases = sizeof list / sizeof *list
const op_def op_mixture_logp_def = {
    .name = "mixture_logp", .grad = grad_logp, .ref = ref_logp, .build = build_logp, CASES(cases)};
const op_def op_mixture_draw_def = {
    .name = "mixture_draw", .ref = ref_draw, .build = build_draw, CASES(draw_cases)};
const op_def op_mixture_logp_grad_def = {.name = "mixture_logp_grad", .ref = ref_logp_grad};
