/* gauss.c: diagonal Gaussians over latents: draw, analytic KL, sampled log-ratio.
 *
 *   sigma = floor + (1 - floor) sigmoid(raw)   or   floor + softplus(raw);     mu, raw (rows, Z)
 *
 *   gauss_sample   z = mu[row] + sigma[row] eps
 *   gauss_noise    eps = (z - mu[0]) / sigma[0]
 *   gauss_kl       sum_d log(s1/s0) + (s0^2 + (m0 - m1)^2) / (2 s1^2) - 1/2       KL(row 0 || row
 * 1) gauss_ratio    sum_d log N(z; m1, s1) - log N(z; m0, s0)
 *
 * Reverse: dz -> dmu = dz, dsigma = dz eps, deps = dz sigma; the scalars as written in the kernels
 * below; then draw = dsigma * (d sigma / d raw). */
#include "op/gauss.h"

#include <math.h>

#include "base/rng_normal.h"

static bool pair_fits(graph *g, int32_t op, val mu, val raw, int32_t least_rows) {
    if (!graph_ok(g)) return false;
    const value *m = graph_at(g, mu), *r = graph_at(g, raw);
    if (m->ext != EXT_FIXED || r->ext != EXT_FIXED || m->rows != r->rows || m->cols != r->cols ||
        m->rows < least_rows)
        graph_fail(g, "%s: %s (%d x %d) and %s (%d x %d) must agree and have at least %d rows",
                   op_name(op), m->name, m->rows, m->cols, r->name, r->rows, r->cols, least_rows);
    return graph_ok(g);
}

static bool floor_fits(graph *g, int32_t op, double floor) {
    if (graph_ok(g) && !(floor >= 0 && floor < 1))
        graph_fail(g, "%s: the floor of sigma is %g, not in [0, 1)", op_name(op), floor);
    return graph_ok(g);
}

/* ---- record ---------------------------------------------------------------------------------- */

val op_gauss_sample(graph *g, val mu, val raw, int32_t row, val eps, int32_t purpose, int32_t tag,
                    sigma_kind kind, double floor) {
    if (!pair_fits(g, OP_gauss_sample, mu, raw, row + 1) || !floor_fits(g, OP_gauss_sample, floor))
        return VAL_NONE;
    int32_t Z = graph_at(g, mu)->cols;
    const value *e = graph_at(g, eps);
    if (row < 0 || purpose < 0 || purpose >= RNG_PURPOSES || (eps == VAL_NONE && Z > RNG_DIM_MAX) ||
        (eps != VAL_NONE && (e->ext != EXT_FIXED || e->rows != 1 || e->cols != Z))) {
        graph_fail(g, "gauss_sample: row %d, purpose %d, width %d or the noise does not fit", row,
                   purpose, Z);
        return VAL_NONE;
    }
    val z = graph_matrix(g, "z", EXT_FIXED, 1, Z, true);
    val noise = eps == VAL_NONE ? graph_matrix(g, "eps", EXT_FIXED, 1, Z, true) : VAL_NONE;
    instr *ins = graph_append(g, OP_gauss_sample);
    if (!ins) return VAL_NONE;
    ins->in[GAUSS_MU] = mu, ins->in[GAUSS_RAW] = raw, ins->in[SAMPLE_EPS] = eps;
    ins->out[SAMPLE_Z] = z, ins->out[SAMPLE_NOISE] = noise;
    ins->i[GAUSS_KIND] = (int32_t)kind, ins->i[SAMPLE_ROW] = row;
    ins->i[SAMPLE_PURPOSE] = purpose, ins->i[SAMPLE_TAG] = tag;
    ins->f[GAUSS_FLOOR] = floor;
    graph_done(g, ins);
    return z;
}

val op_gauss_noise(graph *g, val z, val mu, val raw, sigma_kind kind, double floor) {
    if (!pair_fits(g, OP_gauss_noise, mu, raw, 1) || !floor_fits(g, OP_gauss_noise, floor))
        return VAL_NONE;
    const value *vz = graph_at(g, z), *vm = graph_at(g, mu);
    if (vz->ext != EXT_FIXED || vz->rows != 1 || vz->cols != vm->cols) {
        graph_fail(g, "gauss_noise: %s is not one row of %d numbers", vz->name, vm->cols);
        return VAL_NONE;
    }
    val eps = graph_matrix(g, "eps", EXT_FIXED, 1, vm->cols, true);
    instr *ins = graph_append(g, OP_gauss_noise);
    if (!ins) return VAL_NONE;
    ins->in[GAUSS_MU] = mu, ins->in[GAUSS_RAW] = raw, ins->in[NOISE_Z] = z;
    ins->out[0] = eps;
    ins->i[GAUSS_KIND] = (int32_t)kind;
    ins->f[GAUSS_FLOOR] = floor;
    return eps;
}

val op_gauss_kl(graph *g, val mu, val raw, sigma_kind kind, double floor) {
    if (!pair_fits(g, OP_gauss_kl, mu, raw, 2) || !floor_fits(g, OP_gauss_kl, floor))
        return VAL_NONE;
    bool sampled = graph_at(g, mu)->sampled || graph_at(g, raw)->sampled;
    val kl = graph_scalar(g, "kl", sampled);
    instr *ins = graph_append(g, OP_gauss_kl);
    if (!ins) return VAL_NONE;
    ins->in[GAUSS_MU] = mu, ins->in[GAUSS_RAW] = raw;
    ins->out[0] = kl;
    ins->i[GAUSS_KIND] = (int32_t)kind;
    ins->f[GAUSS_FLOOR] = floor;
    graph_done(g, ins);
    return kl;
}

val op_gauss_ratio(graph *g, val z, val mu, val raw, sigma_kind kind, double floor) {
    if (!pair_fits(g, OP_gauss_ratio, mu, raw, 2) || !floor_fits(g, OP_gauss_ratio, floor))
        return VAL_NONE;
    const value *vz = graph_at(g, z), *vm = graph_at(g, mu);
    if (vz->ext != EXT_FIXED || vz->rows != 1 || vz->cols != vm->cols) {
        graph_fail(g, "gauss_ratio: %s is not one row of %d numbers", vz->name, vm->cols);
        return VAL_NONE;
    }
    bool sampled = vz->sampled || vm->sampled || graph_at(g, raw)->sampled;
    val ratio = graph_scalar(g, "log ratio", sampled);
    instr *ins = graph_append(g, OP_gauss_ratio);
    if (!ins) return VAL_NONE;
    ins->in[GAUSS_MU] = mu, ins->in[GAUSS_RAW] = raw, ins->in[RATIO_Z] = z;
    ins->out[0] = ratio;
    ins->i[GAUSS_KIND] = (int32_t)kind;
    ins->f[GAUSS_FLOOR] = floor;
    graph_done(g, ins);
    return ratio;
}

/* ---- reverse rules --------------------------------------------------------------------------- */

static instr *append_grad(graph *g, int32_t op, const instr *fwd) {
    instr *ins = graph_append(g, op);
    if (!ins) return NULL;
    ins->in[GAUSS_MU] = fwd->in[GAUSS_MU], ins->in[GAUSS_RAW] = fwd->in[GAUSS_RAW];
    for (int k = 0; k < INSTR_INT; k++) ins->i[k] = fwd->i[k];
    ins->f[GAUSS_FLOOR] = fwd->f[GAUSS_FLOOR];
    graph_wire_grad(g, ins, GAUSS_GMU, fwd->in[GAUSS_MU]);
    graph_wire_grad(g, ins, GAUSS_GRAW, fwd->in[GAUSS_RAW]);
    return ins;
}

static void grad_sample(graph *g, const instr *fwd) {
    instr *ins = append_grad(g, OP_gauss_sample_grad, fwd);
    if (!ins) return;
    bool fed = fwd->in[SAMPLE_EPS] != VAL_NONE;
    ins->in[SAMPLE_GRAD_NOISE] = fed ? fwd->in[SAMPLE_EPS] : fwd->out[SAMPLE_NOISE];
    ins->in[SAMPLE_GRAD_G] = graph_grad(g, fwd->out[SAMPLE_Z]);
    graph_wire_grad(g, ins, SAMPLE_GEPS, fwd->in[SAMPLE_EPS]);
}

static void grad_kl(graph *g, const instr *fwd) {
    instr *ins = append_grad(g, OP_gauss_kl_grad, fwd);
    if (ins) ins->in[KL_GRAD_G] = graph_grad(g, fwd->out[0]);
}

static void grad_ratio(graph *g, const instr *fwd) {
    instr *ins = append_grad(g, OP_gauss_ratio_grad, fwd);
    if (!ins) return;
    ins->in[RATIO_Z] = fwd->in[RATIO_Z];
    ins->in[RATIO_GRAD_G] = graph_grad(g, fwd->out[0]);
    graph_wire_grad(g, ins, RATIO_GZ, fwd->in[RATIO_Z]);
}

/* ---- reference ------------------------------------------------------------------------------- */

static double sigmoid(double v) {
    return v < 0 ? exp(v) / (1 + exp(v)) : 1 / (1 + exp(-v));
}
static double softplus(double v) {
    return fmax(v, 0) + log1p(exp(-fabs(v)));
}

/* sigma of one raw value, and its derivative. */
static double sigma_of(const instr *ins, double raw, double *slope) {
    double s = sigmoid(raw), floor = ins->f[GAUSS_FLOOR];
    sigma_kind kind = (sigma_kind)ins->i[GAUSS_KIND];
    double scale = gauss_scale(kind, floor);
    *slope = scale * (kind == SIGMA_SIGMOID ? s * sigmoid(-raw) : s);
    return floor + scale * (kind == SIGMA_SIGMOID ? s : softplus(raw));
}

static void ref_sample(ref_run *r) {
    ref_array mu = ref_in(r, GAUSS_MU), raw = ref_in(r, GAUSS_RAW), eps = ref_in(r, SAMPLE_EPS);
    ref_array z = ref_out(r, SAMPLE_Z), noise = ref_out(r, SAMPLE_NOISE);
    int32_t row = r->ins->i[SAMPLE_ROW];
    if (r->failed) return;
    for (int64_t s = 0; s < z.samples; s++)
        for (int64_t d = 0; d < z.cols; d++) {
            rng_at at = gauss_place(r->f, r->ins->i[SAMPLE_PURPOSE], r->f->sample0 + s);
            at.point = (uint32_t)r->ins->i[SAMPLE_TAG], at.dim = (uint32_t)d;
            double e = eps.at ? *ref_el(eps, s, 0, d) : (double)rng_normal_at(gauss_key(r->f), at);
            double slope, sigma = sigma_of(r->ins, *ref_el(raw, s, row, d), &slope);
            if (noise.at) *ref_el(noise, s, 0, d) += e;
            *ref_el(z, s, 0, d) += *ref_el(mu, s, row, d) + sigma * e;
        }
}

static void ref_noise(ref_run *r) {
    ref_array mu = ref_in(r, GAUSS_MU), raw = ref_in(r, GAUSS_RAW), z = ref_in(r, NOISE_Z);
    ref_array eps = ref_out(r, 0);
    if (r->failed) return;
    for (int64_t s = 0; s < eps.samples; s++)
        for (int64_t d = 0; d < eps.cols; d++) {
            double slope, sigma = sigma_of(r->ins, *ref_el(raw, s, 0, d), &slope);
            *ref_el(eps, s, 0, d) += (*ref_el(z, s, 0, d) - *ref_el(mu, s, 0, d)) / sigma;
        }
}

static void ref_sample_grad(ref_run *r) {
    ref_array raw = ref_in(r, GAUSS_RAW), eps = ref_in(r, SAMPLE_GRAD_NOISE);
    ref_array up = ref_in(r, SAMPLE_GRAD_G);
    ref_array gmu = ref_out(r, GAUSS_GMU), graw = ref_out(r, GAUSS_GRAW);
    ref_array geps = ref_out(r, SAMPLE_GEPS);
    int32_t row = r->ins->i[SAMPLE_ROW];
    if (r->failed) return;
    for (int64_t s = 0; s < up.samples; s++)
        for (int64_t d = 0; d < up.cols; d++) {
            double slope, G = *ref_el(up, s, 0, d);
            double sigma = sigma_of(r->ins, *ref_el(raw, s, row, d), &slope);
            if (geps.at) *ref_el(geps, s, 0, d) += G * sigma;
            if (gmu.at) *ref_el(gmu, s, row, d) += G;
            if (graw.at) *ref_el(graw, s, row, d) += G * *ref_el(eps, s, 0, d) * slope;
        }
}

static void ref_kl(ref_run *r) {
    ref_array mu = ref_in(r, GAUSS_MU), raw = ref_in(r, GAUSS_RAW), kl = ref_out(r, 0);
    if (r->failed) return;
    for (int64_t s = 0; s < kl.samples; s++)
        for (int64_t d = 0; d < mu.cols; d++) {
            double slope, s0 = sigma_of(r->ins, *ref_el(raw, s, 0, d), &slope);
            double s1 = sigma_of(r->ins, *ref_el(raw, s, 1, d), &slope);
            double apart = *ref_el(mu, s, 0, d) - *ref_el(mu, s, 1, d);
            kl.at[s] += log(s1 / s0) + (s0 * s0 + apart * apart) / (2 * s1 * s1) - 0.5;
        }
}

static void ref_kl_grad(ref_run *r) {
    ref_array mu = ref_in(r, GAUSS_MU), raw = ref_in(r, GAUSS_RAW), up = ref_in(r, KL_GRAD_G);
    ref_array gmu = ref_out(r, GAUSS_GMU), graw = ref_out(r, GAUSS_GRAW);
    if (r->failed) return;
    for (int64_t s = 0; s < up.samples; s++)
        for (int64_t d = 0; d < mu.cols; d++) {
            double slope0, slope1, G = up.at[s];
            double s0 = sigma_of(r->ins, *ref_el(raw, s, 0, d), &slope0);
            double s1 = sigma_of(r->ins, *ref_el(raw, s, 1, d), &slope1);
            double apart = *ref_el(mu, s, 0, d) - *ref_el(mu, s, 1, d);
            if (gmu.at) {
                *ref_el(gmu, s, 0, d) += G * apart / (s1 * s1);
                *ref_el(gmu, s, 1, d) -= G * apart / (s1 * s1);
            }
            if (graw.at) {
                *ref_el(graw, s, 0, d) += G * slope0 * (s0 / (s1 * s1) - 1 / s0);
                *ref_el(graw, s, 1, d) +=
                    G * slope1 * (1 - (s0 * s0 + apart * apart) / (s1 * s1)) / s1;
            }
        }
}

static void ref_ratio(ref_run *r) {
    ref_array mu = ref_in(r, GAUSS_MU), raw = ref_in(r, GAUSS_RAW), z = ref_in(r, RATIO_Z);
    ref_array ratio = ref_out(r, 0);
    if (r->failed) return;
    for (int64_t s = 0; s < ratio.samples; s++)
        for (int64_t d = 0; d < mu.cols; d++) {
            double slope, s0 = sigma_of(r->ins, *ref_el(raw, s, 0, d), &slope);
            double s1 = sigma_of(r->ins, *ref_el(raw, s, 1, d), &slope);
            double e0 = (*ref_el(z, s, 0, d) - *ref_el(mu, s, 0, d)) / s0;
            double e1 = (*ref_el(z, s, 0, d) - *ref_el(mu, s, 1, d)) / s1;
            ratio.at[s] += log(s0 / s1) + 0.5 * (e0 * e0 - e1 * e1);
        }
}

static void ref_ratio_grad(ref_run *r) {
    ref_array mu = ref_in(r, GAUSS_MU), raw = ref_in(r, GAUSS_RAW), z = ref_in(r, RATIO_Z);
    ref_array up = ref_in(r, RATIO_GRAD_G), gz = ref_out(r, RATIO_GZ);
    ref_array gmu = ref_out(r, GAUSS_GMU), graw = ref_out(r, GAUSS_GRAW);
    if (r->failed) return;
    for (int64_t s = 0; s < up.samples; s++)
        for (int64_t d = 0; d < mu.cols; d++)
            for (int i = 0; i < 2; i++) {
                double slope, sigma = sigma_of(r->ins, *ref_el(raw, s, i, d), &slope);
                double e = (*ref_el(z, s, 0, d) - *ref_el(mu, s, i, d)) / sigma;
                double G = i == 0 ? -up.at[s] : up.at[s]; /* of log N(z; row i) */
                if (gz.at) *ref_el(gz, s, 0, d) -= G * e / sigma;
                if (gmu.at) *ref_el(gmu, s, i, d) += G * e / sigma;
                if (graw.at) *ref_el(graw, s, i, d) += G * slope * (e * e - 1) / sigma;
            }
}

/* ---- cases: a = Z, b = sampled inputs, c = sigma_kind, d = other rows or a fed eps ----------- */

enum { SAMPLED_MU = 1, SAMPLED_RAW = 2, SAMPLED_Z = 4, FED_EPS = 1 };

static void build_pair(case_build *b, const op_case *c, int32_t rows, val *mu, val *raw) {
    *mu = case_matrix(b, "mu", EXT_FIXED, rows, c->a, (c->b & SAMPLED_MU) != 0, true,
                      CASE_NORMAL(0, 1));
    *raw = case_matrix(b, "raw", EXT_FIXED, rows, c->a, (c->b & SAMPLED_RAW) != 0, true,
                       CASE_NORMAL(0, 1));
}

static void build_sample(case_build *b, const op_case *c) {
    val mu, raw, eps = VAL_NONE;
    build_pair(b, c, 2, &mu, &raw);
    if (c->d & FED_EPS)
        eps = case_matrix(b, "eps", EXT_FIXED, 1, c->a, true, true, CASE_NORMAL(0, 1));
    case_output(
        b, op_gauss_sample(b->g, mu, raw, c->d >> 1, eps, RNG_LATENT, 3, (sigma_kind)c->c, 0.05));
}

static void build_noise(case_build *b, const op_case *c) {
    val mu, raw;
    build_pair(b, c, 2, &mu, &raw);
    val z =
        case_matrix(b, "z", EXT_FIXED, 1, c->a, (c->b & SAMPLED_Z) != 0, false, CASE_NORMAL(0, 1));
    case_output(b, op_gauss_noise(b->g, z, mu, raw, (sigma_kind)c->c, 0.05));
}

static void build_kl(case_build *b, const op_case *c) {
    val mu, raw;
    build_pair(b, c, 2, &mu, &raw);
    case_output(b, op_gauss_kl(b->g, mu, raw, (sigma_kind)c->c, 0.05));
}

static void build_ratio(case_build *b, const op_case *c) {
    val mu, raw;
    build_pair(b, c, 2, &mu, &raw);
    val z =
        case_matrix(b, "z", EXT_FIXED, 1, c->a, (c->b & SAMPLED_Z) != 0, true, CASE_NORMAL(0, 1));
    case_output(b, op_gauss_ratio(b->g, z, mu, raw, (sigma_kind)c->c, 0.05));
}

static const op_case cases[] = {
    {"Z = 128", 4, 2, 1, 128, 0, SIGMA_SIGMOID, 0, CASE_BENCH, 0, 0},
    {"Z = 128, 8 samples", 4, 2, 8, 128, 7, SIGMA_SIGMOID, 0, CASE_BENCH, 0, 0},
    {"shared heads, row 1", 4, 2, 3, 13, SAMPLED_Z, SIGMA_SIGMOID, 2, 0, 0, 0},
    {"softplus, fed noise", 1, 0, 2, 5, 7, SIGMA_SOFTPLUS, 3, 0, 0, 0},
    {"shared raw", 1, 1, 4, 17, SAMPLED_MU | SAMPLED_Z, SIGMA_SOFTPLUS, 0, 0, 0, 0},
    {"shared mu", 1, 1, 4, 32, SAMPLED_RAW, SIGMA_SIGMOID, 1, 0, 0, 0},
    {"one dimension", 3, 3, 1, 1, 0, SIGMA_SIGMOID, 1, 0, 0, 0},
};

#define CASES .cases = cases, .n_cases = sizeof cases / sizeof *cases
const op_def op_gauss_sample_def = {
    .name = "gauss_sample", .grad = grad_sample, .ref = ref_sample, .build = build_sample, CASES};
const op_def op_gauss_noise_def = {
    .name = "gauss_noise", .ref = ref_noise, .build = build_noise, CASES};
const op_def op_gauss_kl_def = {
    .name = "gauss_kl", .grad = grad_kl, .ref = ref_kl, .build = build_kl, CASES};
const op_def op_gauss_ratio_def = {
    .name = "gauss_ratio", .grad = grad_ratio, .ref = ref_ratio, .build = build_ratio, CASES};
const op_def op_gauss_sample_grad_def = {.name = "gauss_sample_grad", .ref = ref_sample_grad};
const op_def op_gauss_kl_grad_def = {.name = "gauss_kl_grad", .ref = ref_kl_grad};
const op_def op_gauss_ratio_grad_def = {.name = "gauss_ratio_grad", .ref = ref_ratio_grad};
