/* gp_given.c: a Gaussian process given the context, rows 0 .. m-1, with values u there. All in
 * double precision; none has a gradient.
 *
 *   gp_again      log N(u; mu, K_AA - V^T V + noise) over all rows A: as if each, the context's
 * too, were observed afresh gp_marginal   the same of every row alone: a number per row gp_draw
 * rows m .. n-1: mu + L eps with L L^T their joint conditional covariance, with or without the
 * noise; rows of the context: u
 *
 * mu and V are those of base/gp_math.h. A covariance that is not positive definite gives NaN; only
 * draws add a little to the diagonal first (1e-10 of the variance, up to 1e-6). */
#include "op/gp.h"

#include <math.h>
#include <string.h>

#include "base/linalg.h"

enum { GIVEN_EPS = GP_GRAD_G };  /* in: after x, u, hyper */
enum { GIVEN_NOISY = GP_RANGE }; /* i */
#define HALF_LOG_2PI 0.91893853320467274178

/* ---- record ---------------------------------------------------------------------------------- */

static void check(graph *g, const char *op, val x, val u, val hyper, int32_t kernel) {
    if (!graph_ok(g)) return;
    const value *vx = graph_at(g, x), *vu = graph_at(g, u), *vh = graph_at(g, hyper);
    if (vx->ext != EXT_N || vx->sampled || vu->ext != EXT_N || vu->ld != 1 || vu->sampled)
        graph_fail(g, "%s: %s must be the inputs of all points, %s a number per point", op,
                   vx->name, vu->name);
    else if (vh->ext != EXT_FIXED || vh->rows != 1 || vh->cols != GP_HYPERS || vh->sampled)
        graph_fail(g, "%s: %s must be one row of %d numbers", op, vh->name, GP_HYPERS);
    else if (!(kernel & GP_SUM) || kernel & ~GP_BITS)
        graph_fail(g, "%s: there is no kernel %d", op, kernel);
}

static val record(graph *g, int32_t op, val x, val u, val hyper, val eps, int32_t kernel,
                  bool noisy, val out) {
    instr *ins = graph_append(g, op);
    if (!ins) return VAL_NONE;
    ins->in[GP_X] = x, ins->in[GP_U] = u, ins->in[GP_HYPER] = hyper, ins->in[GIVEN_EPS] = eps;
    ins->out[0] = out;
    ins->i[GIVEN_NOISY] = noisy, ins->i[GP_KERNEL] = kernel;
    return out;
}

val op_gp_again(graph *g, val x, val u, val hyper, int32_t kernel) {
    check(g, "gp_again", x, u, hyper, kernel);
    val out = graph_scalar(g, "gp again", false);
    return record(g, OP_gp_again, x, u, hyper, VAL_NONE, kernel, true, out);
}

val op_gp_marginal(graph *g, val x, val u, val hyper, int32_t kernel) {
    check(g, "gp_marginal", x, u, hyper, kernel);
    val out = graph_scalars(g, "gp marginal", EXT_N, 1, false);
    return record(g, OP_gp_marginal, x, u, hyper, VAL_NONE, kernel, true, out);
}

val op_gp_draw(graph *g, val x, val u, val hyper, val eps, bool noisy, int32_t kernel) {
    check(g, "gp_draw", x, u, hyper, kernel);
    if (graph_ok(g) && (graph_at(g, eps)->ext != EXT_N || graph_at(g, eps)->ld != 1))
        graph_fail(g, "gp_draw: %s must be a number per point", graph_at(g, eps)->name);
    bool sampled = graph_ok(g) && graph_at(g, eps)->sampled;
    val out = graph_scalars(g, "gp draw", EXT_N, 1, sampled);
    return record(g, OP_gp_draw, x, u, hyper, eps, kernel, noisy, out);
}

/* ---- reference ------------------------------------------------------------------------------- */

typedef struct given {
    gp_kernel kernel;
    ref_array x, u;
    int64_t n, m, nt; /* nt places that are asked about */
    double *mean, *cov, noise;
    bool bad; /* the context's covariance is not positive definite */
} given;

static given set_up(ref_run *r) {
    given c = {
        .kernel = gp_kernel_make(r->ins->i[GP_KERNEL]), .x = ref_in(r, GP_X), .u = ref_in(r, GP_U)};
    ref_array hyper = ref_in(r, GP_HYPER);
    if (r->failed) return c;
    for (int j = 0; j < GP_HYPERS; j++) c.kernel.hyper[j] = hyper.at[j];
    c.n = c.x.rows, c.m = r->f->m;
    c.noise = exp(c.kernel.hyper[GP_LOG_NOISE]);
    return c;
}

/* Mean and covariance (with noise) at the nt places x given the context. */
static void condition_at(ref_run *r, const double *x, int64_t nt, given *c) {
    if (r->failed) return;
    c->nt = nt;
    c->mean = ref_scratch(r, nt);
    c->cov = ref_scratch(r, nt * nt);
    if (r->failed) return;
    mnp_status status = gp_conditional(r->env, &c->kernel, c->x.at, c->u.at, c->m, x, nt,
                                       (int32_t)c->x.cols, c->mean, c->cov);
    r->failed = status == MNP_ENOMEM;
    c->bad = status != MNP_OK;
}

/* At all rows, or at those outside the context. */
static given condition(ref_run *r, bool all) {
    given c = set_up(r);
    int64_t first = all ? 0 : c.m;
    if (!r->failed) condition_at(r, c.x.at + first * c.x.cols, c.n - first, &c);
    return c;
}

static void ref_gp_again(ref_run *r) {
    given c = condition(r, true);
    ref_array out = ref_out(r, 0);
    if (r->failed) return;
    if (c.bad || linalg_cholesky(c.cov, c.n, c.n) != 0) {
        out.at[0] = NAN;
        return;
    }
    for (int64_t i = 0; i < c.n; i++) c.mean[i] = c.u.at[i] - c.mean[i];
    linalg_solve_lower(c.cov, c.n, c.n, c.mean, 1, 1);
    for (int64_t i = 0; i < c.n; i++)
        out.at[0] -= 0.5 * c.mean[i] * c.mean[i] + log(c.cov[i * c.n + i]) + HALF_LOG_2PI;
}

/* Is row i at the place of the row before? Bands ask about many values there. */
static bool same_place(const ref_array *x, int64_t i) {
    const double *at = x->at + i * x->cols;
    return i > 0 && memcmp(at - x->cols, at, (size_t)x->cols * sizeof *at) == 0;
}

static void ref_gp_marginal(ref_run *r) {
    given c = set_up(r);
    ref_array out = ref_out(r, 0);
    double *places = r->failed ? NULL : ref_scratch(r, c.n * c.x.cols);
    int64_t nt = 0;
    for (int64_t i = 0; !r->failed && i < c.n; i++)
        if (!same_place(&c.x, i))
            memcpy(places + nt++ * c.x.cols, c.x.at + i * c.x.cols,
                   (size_t)c.x.cols * sizeof *places);
    condition_at(r, places, nt, &c);
    if (r->failed) return;
    for (int64_t i = 0, k = -1; i < c.n; i++) {
        if (!same_place(&c.x, i)) k++;
        double variance = c.cov[k * nt + k], off = c.u.at[i] - c.mean[k];
        out.at[i] += c.bad || !(variance > 0)
                         ? NAN
                         : -0.5 * (off * off / variance + log(variance)) - HALF_LOG_2PI;
    }
}

/* The factor of the targets' covariance; false: not even with more on the diagonal. */
static bool factor(const given *c, bool noisy, double *l) {
    double variance;
    gp_cross(&c->kernel, c->x.at, 1, c->x.at, 1, (int32_t)c->x.cols, &variance, 1);
    for (double extra = 0;
         extra<2e-6 * variance; extra = extra> 0 ? 10 * extra : 1e-10 * variance) {
        memcpy(l, c->cov, (size_t)(c->nt * c->nt) * sizeof *l);
        for (int64_t i = 0; i < c->nt; i++) l[i * c->nt + i] += extra - (noisy ? 0 : c->noise);
        if (linalg_cholesky(l, c->nt, c->nt) == 0) return true;
    }
    return false;
}

static void ref_gp_draw(ref_run *r) {
    given c = condition(r, false);
    ref_array eps = ref_in(r, GIVEN_EPS), out = ref_out(r, 0);
    double *l = r->failed ? NULL : ref_scratch(r, c.nt * c.nt);
    if (r->failed) return;
    bool bad = c.bad || !factor(&c, r->ins->i[GIVEN_NOISY] != 0, l);
    for (int64_t s = 0; s < out.samples; s++) {
        for (int64_t i = 0; i < c.m; i++) *ref_el(out, s, i, 0) += c.u.at[i];
        for (int64_t i = 0; i < c.nt; i++) {
            double sum = bad ? NAN : c.mean[i];
            for (int64_t j = 0; j <= i; j++) sum += l[i * c.nt + j] * *ref_el(eps, s, c.m + j, 0);
            *ref_el(out, s, c.m + i, 0) += sum;
        }
    }
}

/* ---- cases: a = X, b = kernel, c = noisy, d = eps is sampled --------------------------------- */

typedef struct operands {
    val x, u, hyper;
} operands;

static operands inputs(case_build *b, const op_case *c) {
    return (operands){
        case_matrix(b, "x", EXT_N, 0, c->a, false, false, CASE_NORMAL(0, 1)),
        case_scalars(b, "u", EXT_N, false, false, CASE_NORMAL(0, 1)),
        case_matrix(b, "hyper", EXT_FIXED, 1, GP_HYPERS, false, false, CASE_NORMAL(0, 0.3))};
}

static void build_again(case_build *b, const op_case *c) {
    operands o = inputs(b, c);
    case_output(b, op_gp_again(b->g, o.x, o.u, o.hyper, c->b));
}

static void build_marginal(case_build *b, const op_case *c) {
    operands o = inputs(b, c);
    case_output(b, op_gp_marginal(b->g, o.x, o.u, o.hyper, c->b));
}

static void build_draw(case_build *b, const op_case *c) {
    operands o = inputs(b, c);
    val eps = case_scalars(b, "eps", EXT_N, c->d != 0, false, CASE_NORMAL(0, 1));
    case_output(b, op_gp_draw(b->g, o.x, o.u, o.hyper, eps, c->c != 0, c->b));
}

static const op_case cases[] = {
    {"128 points given 50", 128, 50, 1, 1, GP_SUM, 1, 0, CASE_BENCH | CASE_DOUBLE, 0, 0},
    {"two dimensions", 20, 7, 3, 2, GP_RBF, 1, 1, CASE_DOUBLE, 0, 0},
    {"nothing given", 15, 0, 2, 1, GP_PERIODIC | GP_UNSQUARED, 1, 1, CASE_DOUBLE, 0, 0},
    {"fading", 15, 6, 1, 1, GP_MATERN | GP_PERIODIC | GP_FADING, 1, 0, CASE_DOUBLE, 0, 0},
    {"all given", 9, 9, 1, 3, GP_MATERN, 1, 0, CASE_DOUBLE, 0, 0},
    {"one point", 1, 0, 1, 1, GP_SUM, 1, 0, CASE_DOUBLE, 0, 0},
};
static const op_case draw_cases[] = {
    {"128 points given 50", 128, 50, 39, 1, GP_SUM, 1, 1, CASE_BENCH | CASE_DOUBLE, 0, 0},
    {"the function itself", 12, 4, 2, 1, GP_MATERN, 0, 1, CASE_DOUBLE, 0, 1e-4},
    {"two dimensions", 20, 7, 1, 2, GP_SUM, 1, 0, CASE_DOUBLE, 0, 0},
    {"nothing given", 15, 0, 2, 1, GP_PERIODIC | GP_UNSQUARED, 1, 1, CASE_DOUBLE, 0, 0},
    {"fading", 15, 6, 2, 1, GP_MATERN | GP_PERIODIC | GP_FADING, 1, 0, CASE_DOUBLE, 0, 0},
    {"all given", 9, 9, 1, 3, GP_MATERN, 1, 0, CASE_DOUBLE, 0, 0},
};

#define CASES(list) .cases = list, .n_cases = sizeof list / sizeof *list
const op_def op_gp_again_def = {
    .name = "gp_again", .ref = ref_gp_again, .build = build_again, CASES(cases)};
const op_def op_gp_marginal_def = {
    .name = "gp_marginal", .ref = ref_gp_marginal, .build = build_marginal, CASES(cases)};
const op_def op_gp_draw_def = {
    .name = "gp_draw", .ref = ref_gp_draw, .build = build_draw, CASES(draw_cases)};
