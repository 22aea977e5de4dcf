/* gp.c: the log density of a Gaussian process at n points, in double precision on every backend.
 *
 *   ROWS_ALL    log N(u; mean, Sigma)                       x (n, X), u a number per row
 *   ROWS_REST   log p(u_m .. u_n-1 | u_0 .. u_m-1), the joint minus the context's
 *
 * Sigma and its hyper-parameters are those of base/gp_math.h. When Sigma is not positive definite
 * the result and its gradients are NaN: nothing is added to the diagonal unasked.
 *
 * Reverse: to u and to hyper; x is data and gets none. */
#include "op/gp.h"

#include <math.h>

static bool is_range(row_range range) {
    return range == ROWS_ALL || range == ROWS_REST;
}

val op_gp_logp(graph *g, val x, val u, val hyper, row_range range, int32_t kernel) {
    if (!graph_ok(g)) return VAL_NONE;
    const value *vx = graph_at(g, x), *vu = graph_at(g, u), *vh = graph_at(g, hyper);
    if (vx->ext != EXT_N || vx->sampled || vx->needs_grad || vu->ext != EXT_N || vu->ld != 1)
        graph_fail(g, "gp_logp: %s must be the inputs of all points, %s a number per point",
                   vx->name, vu->name);
    else if (vh->ext != EXT_FIXED || vh->rows != 1 || vh->cols != GP_HYPERS || vh->sampled)
        graph_fail(g, "gp_logp: %s must be one row of %d numbers", vh->name, GP_HYPERS);
    else if (!(kernel & GP_SUM) || kernel & ~GP_BITS || !is_range(range))
        graph_fail(g, "gp_logp: there is no kernel %d on range %d", kernel, (int)range);
    val out = graph_scalar(g, "gp logp", vu->sampled);
    instr *ins = graph_append(g, OP_gp_logp);
    if (!ins) return VAL_NONE;
    ins->in[GP_X] = x, ins->in[GP_U] = u, ins->in[GP_HYPER] = hyper;
    ins->out[0] = out;
    ins->i[GP_RANGE] = (int32_t)range, ins->i[GP_KERNEL] = kernel;
    graph_done(g, ins);
    return out;
}

static void grad_gp_logp(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_gp_logp_grad);
    if (!ins) return;
    for (int j = 0; j < GP_GRAD_G; j++) ins->in[j] = fwd->in[j];
    ins->in[GP_GRAD_G] = graph_grad(g, fwd->out[0]);
    ins->i[GP_RANGE] = fwd->i[GP_RANGE], ins->i[GP_KERNEL] = fwd->i[GP_KERNEL];
    graph_wire_grad(g, ins, GP_GU, fwd->in[GP_U]);
    graph_wire_grad(g, ins, GP_GHYPER, fwd->in[GP_HYPER]);
}

/* ---- reference ------------------------------------------------------------------------------- */

static gp_kernel kernel_of(ref_run *r) {
    gp_kernel k = gp_kernel_make(r->ins->i[GP_KERNEL]);
    ref_array hyper = ref_in(r, GP_HYPER);
    for (int j = 0; hyper.at && j < GP_HYPERS; j++) k.hyper[j] = hyper.at[j];
    return k;
}

static void ref_gp_logp(ref_run *r) {
    ref_array x = ref_in(r, GP_X), u = ref_in(r, GP_U), out = ref_out(r, 0);
    gp_kernel k = kernel_of(r);
    int64_t n = x.rows;
    double *l = ref_scratch(r, n * n), *white = ref_scratch(r, n);
    if (r->failed) return;
    bool bad = gp_factor(&k, x.at, n, (int32_t)x.cols, l) != 0;
    for (int64_t s = 0; s < out.samples; s++) {
        double logp = bad ? NAN : gp_logp(&k, l, n, gp_first(r->f, r->ins), u.at + s * n, white);
        out.at[s] += logp;
    }
}

static void ref_gp_logp_grad(ref_run *r) {
    ref_array x = ref_in(r, GP_X), u = ref_in(r, GP_U), up = ref_in(r, GP_GRAD_G);
    ref_array gu = ref_out(r, GP_GU), ghyper = ref_out(r, GP_GHYPER);
    gp_kernel k = kernel_of(r);
    int64_t n = x.rows, first = gp_first(r->f, r->ins);
    double *l = ref_scratch(r, n * n), *weight = ref_scratch(r, n * n);
    double *work = ref_scratch(r, 2 * n), hyper[GP_HYPERS] = {0}, up_sum = 0;
    if (r->failed) return;
    bool bad = gp_factor(&k, x.at, n, (int32_t)x.cols, l) != 0;
    for (int64_t s = 0; !bad && s < up.samples; s++) {
        gp_grad_sample(&k, l, n, first, u.at + s * n, up.at[s], gu.at ? gu.at + s * n : NULL, hyper,
                       weight, work);
        up_sum += up.at[s];
    }
    if (!bad && ghyper.at)
        gp_grad_finish(&k, x.at, n, (int32_t)x.cols, first, up_sum, l, weight, hyper);
    for (int64_t i = 0; bad && gu.at && i < gu.samples * n; i++) gu.at[i] = NAN;
    for (int j = 0; ghyper.at && j < GP_HYPERS; j++) ghyper.at[j] += bad ? NAN : hyper[j];
}

/* ---- cases: a = X, b = kernel, c = range, d = u is sampled ----------------------------------- */

static void build(case_build *b, const op_case *c) {
    val x = case_matrix(b, "x", EXT_N, 0, c->a, false, false, CASE_NORMAL(0, 1));
    val u = case_scalars(b, "u", EXT_N, c->d != 0, true, CASE_NORMAL(0, 1));
    val hyper = case_weight(b, "hyper", 1, GP_HYPERS, 0.3);
    case_output(b, op_gp_logp(b->g, x, u, hyper, (row_range)c->c, c->b));
}

static const op_case cases[] = {
    {"128 points", 128, 50, 1, 1, GP_SUM, ROWS_ALL, 0, CASE_BENCH | CASE_DOUBLE, 0, 0},
    {"128 points given 50", 128, 50, 1, 1, GP_SUM, ROWS_REST, 0, CASE_BENCH | CASE_DOUBLE, 0, 0},
    {"RBF, two dimensions", 20, 7, 1, 2, GP_RBF, ROWS_REST, 0, CASE_DOUBLE, 0, 0},
    {"Matern, samples", 17, 17, 3, 1, GP_MATERN, ROWS_ALL, 1, CASE_DOUBLE, 0, 0},
    {"periodic", 15, 0, 1, 3, GP_PERIODIC, ROWS_REST, 0, CASE_DOUBLE, 0, 0},
    {"periodic, unsquared", 15, 4, 2, 1, GP_PERIODIC | GP_UNSQUARED, ROWS_REST, 1, CASE_DOUBLE, 0,
     0},
    {"periodic, fading, beside RBF", 15, 4, 1, 2, GP_RBF | GP_PERIODIC | GP_FADING, ROWS_REST, 0,
     CASE_DOUBLE, 0, 0},
    {"no targets", 9, 9, 1, 1, GP_SUM, ROWS_REST, 0, CASE_DOUBLE, 0, 0},
    {"one point", 1, 0, 1, 1, GP_SUM, ROWS_ALL, 0, CASE_DOUBLE, 0, 0},
    {"n = 1000", 1000, 400, 1, 1, GP_SUM, ROWS_REST, 0, CASE_DOUBLE | CASE_NO_FD | CASE_LARGE, 0,
     0},
};

const op_def op_gp_logp_def = {.name = "gp_logp",
                               .grad = grad_gp_logp,
                               .ref = ref_gp_logp,
                               .build = build,
                               .cases = cases,
                               .n_cases = sizeof cases / sizeof *cases};
const op_def op_gp_logp_grad_def = {.name = "gp_logp_grad", .ref = ref_gp_logp_grad};
