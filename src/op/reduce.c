/* reduce.c: from numbers per point to one number, always in double.
 *
 *   sum_rows:     y[s] = sum_{r in range} x[s,r]
 *   logmeanexp:   y = log (1/S) sum_s exp(x[s])          dx[s] += g softmax(x)[s]
 *   mean_samples: y = (1/S) sum_s x[s]
 *   per_point:    y[s] = factor x[s] / max(1, rows in range)
 *
 * range: all rows [0,n), the rest [m,n), the context [0,m) or the unseen [k,n). Sums go in the
 * order of the rows. */
#include "op/reduce.h"

#include <math.h>

#include "op/op.h"

_Static_assert(ROWS_ALL == 0 && ROWS_REST == 1 && ROWS_CONTEXT == 2 && ROWS_UNSEEN == 3,
               "reduce.h counts on it");

static val record(graph *g, int32_t op, val x, bool sampled, row_range range, double factor) {
    val y = graph_scalar(g, op_name(op), sampled);
    instr *ins = graph_append(g, op);
    if (!ins) return VAL_NONE;
    ins->in[0] = x, ins->out[0] = y;
    ins->i[REDUCE_RANGE] = (int32_t)range;
    ins->f[REDUCE_FACTOR] = factor;
    graph_done(g, ins);
    return y;
}

static bool is_scalar(const value *v) {
    return v->type == TYPE_F64 && v->ext == EXT_FIXED && v->rows == 1 && v->cols == 1;
}

val op_sum_rows(graph *g, val per_point, row_range range) {
    if (!graph_ok(g)) return VAL_NONE;
    value v = *graph_at(g, per_point);
    if (v.type != TYPE_F32 || v.cols != 1 || (range != ROWS_ALL && v.ext != EXT_N)) {
        graph_fail(g, "sum_rows: %s is not a number per point", v.name);
        return VAL_NONE;
    }
    return record(g, OP_sum_rows, per_point, v.sampled, range, 0);
}

static val record_scalar(graph *g, int32_t op, val x, bool keep_samples, row_range range,
                         double factor) {
    if (!graph_ok(g)) return VAL_NONE;
    value v = *graph_at(g, x);
    if (!is_scalar(&v)) {
        graph_fail(g, "%s: %s is not a double scalar", op_name(op), v.name);
        return VAL_NONE;
    }
    return record(g, op, x, keep_samples && v.sampled, range, factor);
}

val op_logmeanexp(graph *g, val x) {
    return record_scalar(g, OP_logmeanexp, x, false, ROWS_ALL, 0);
}

val op_mean_samples(graph *g, val x) {
    return record_scalar(g, OP_mean_samples, x, false, ROWS_ALL, 0);
}

val op_per_point(graph *g, val x, row_range range, double factor) {
    return record_scalar(g, OP_per_point, x, true, range, factor);
}

static void record_grad(graph *g, int32_t op, const instr *fwd) {
    instr *ins = graph_append(g, op);
    if (!ins) return;
    ins->in[0] = graph_grad(g, fwd->out[0]);
    ins->i[REDUCE_RANGE] = fwd->i[REDUCE_RANGE];
    ins->f[REDUCE_FACTOR] = fwd->f[REDUCE_FACTOR];
    if (op == OP_logmeanexp_grad) ins->in[LOGMEANEXP_GRAD_X] = fwd->in[0];
    graph_wire_grad(g, ins, 0, fwd->in[0]);
}

static void grad_sum_rows(graph *g, const instr *fwd) {
    record_grad(g, OP_sum_rows_grad, fwd);
}

static void grad_logmeanexp(graph *g, const instr *fwd) {
    record_grad(g, OP_logmeanexp_grad, fwd);
}

static void grad_mean_samples(graph *g, const instr *fwd) {
    record_grad(g, OP_mean_samples_grad, fwd);
}

static void grad_per_point(graph *g, const instr *fwd) {
    record_grad(g, OP_per_point_grad, fwd);
}

/* ---- log-mean-exp, for every backend on the host ----------------------------------------------
 */

static double largest(const double *x, int64_t samples) {
    double top = -INFINITY;
    for (int64_t s = 0; s < samples; s++)
        if (x[s] > top) top = x[s];
    return top;
}

double reduce_logmeanexp(const double *x, int64_t samples) {
    double top = largest(x, samples), sum = 0.0;
    if (!isfinite(top)) { /* all are -inf or NaN, or one is +inf: the plain sum says which */
        for (int64_t s = 0; s < samples; s++) sum += x[s];
        return sum;
    }
    for (int64_t s = 0; s < samples; s++) sum += exp(x[s] - top);
    return top + log(sum / (double)samples);
}

void reduce_logmeanexp_grad(const double *x, int64_t samples, double g, double *gx, bool add) {
    double top = largest(x, samples), sum = 0.0;
    for (int64_t s = 0; s < samples; s++) sum += exp(x[s] - top);
    for (int64_t s = 0; s < samples; s++) {
        /* where every x is -inf the softmax has no meaning: all equal */
        double weight = top == -INFINITY ? 1.0 / (double)samples : exp(x[s] - top) / sum;
        gx[s] = (add ? gx[s] : 0.0) + g * weight;
    }
}

/* ---- reference ------------------------------------------------------------------------------- */

static void ref_sum_rows(ref_run *r) {
    ref_array x = ref_in(r, 0), y = ref_out(r, 0);
    if (r->failed) return;
    int32_t range = r->ins->i[REDUCE_RANGE];
    for (int64_t s = 0; s < x.samples; s++)
        for (int64_t i = reduce_lo(r->f, range); i < reduce_hi(r->f, range, x.rows); i++)
            y.at[s] += *ref_el(x, s, i, 0);
}

static void ref_sum_rows_grad(ref_run *r) {
    ref_array gy = ref_in(r, 0), gx = ref_out(r, 0);
    if (r->failed) return;
    int32_t range = r->ins->i[REDUCE_RANGE];
    for (int64_t s = 0; s < gx.samples; s++)
        for (int64_t i = reduce_lo(r->f, range); i < reduce_hi(r->f, range, gx.rows); i++)
            *ref_el(gx, s, i, 0) += gy.at[s];
}

static void ref_logmeanexp(ref_run *r) {
    ref_array x = ref_in(r, 0), y = ref_out(r, 0);
    if (!r->failed) y.at[0] += reduce_logmeanexp(x.at, x.samples);
}

static void ref_logmeanexp_grad(ref_run *r) {
    ref_array gy = ref_in(r, LOGMEANEXP_GRAD_G), x = ref_in(r, LOGMEANEXP_GRAD_X);
    ref_array gx = ref_out(r, 0);
    if (!r->failed) reduce_logmeanexp_grad(x.at, x.samples, gy.at[0], gx.at, true);
}

static void ref_mean_samples(ref_run *r) {
    ref_array x = ref_in(r, 0), y = ref_out(r, 0);
    for (int64_t s = 0; !r->failed && s < x.samples; s++) y.at[0] += x.at[s] / (double)x.samples;
}

static void ref_mean_samples_grad(ref_run *r) {
    ref_array gy = ref_in(r, 0), gx = ref_out(r, 0);
    for (int64_t s = 0; !r->failed && s < gx.samples; s++)
        gx.at[s] += gy.at[0] / (double)gx.samples;
}

/* Linear, so the reverse is the same map. */
static void ref_per_point(ref_run *r) {
    ref_array x = ref_in(r, 0), y = ref_out(r, 0);
    double scale = r->ins->f[REDUCE_FACTOR] / reduce_count(r->f, r->ins->i[REDUCE_RANGE]);
    for (int64_t s = 0; !r->failed && s < x.samples; s++) y.at[s] += scale * x.at[s];
}

/* ---- cases: a = range, b: a padded column instead of numbers per row --------------------------
 */

static val points(case_build *b, const op_case *c, double sd) {
    if (c->b) return case_matrix(b, "x", EXT_N, 0, 1, c->S > 1, true, CASE_NORMAL(0, sd));
    return case_scalars(b, "x", EXT_N, c->S > 1, true, CASE_NORMAL(0, sd));
}

static void build_sum_rows(case_build *b, const op_case *c) {
    case_output(b, op_sum_rows(b->g, points(b, c, 1), (row_range)c->a));
}

static void build_logmeanexp(case_build *b, const op_case *c) {
    case_output(b, op_logmeanexp(b->g, op_sum_rows(b->g, points(b, c, 1), ROWS_ALL)));
}

static void build_mean_samples(case_build *b, const op_case *c) {
    case_output(b, op_mean_samples(b->g, op_sum_rows(b->g, points(b, c, 1), ROWS_ALL)));
}

static void build_per_point(case_build *b, const op_case *c) {
    val x = op_sum_rows(b->g, points(b, c, 1), ROWS_ALL);
    case_output(b, op_per_point(b->g, x, (row_range)c->a, -2.5));
}

static const op_case cases[] = {
    {"all", 128, 50, 1, ROWS_ALL, 0, 0, 0, 0, 0, 0},
    {"rest", 128, 50, 3, ROWS_REST, 0, 0, 0, 0, 0, 0},
    {"context", 128, 50, 3, ROWS_CONTEXT, 0, 0, 0, 0, 0, 0},
    {"unseen", 128, 50, 3, ROWS_UNSEEN, 0, 0, 0, 0, 0, 0},
    {"unseen, all seen", 17, 17, 2, ROWS_UNSEEN, 0, 0, 0, 0, 0, 0},
    {"unseen, padded column", 9, 0, 2, ROWS_UNSEEN, 1, 0, 0, 0, 0, 0},
    {"rest, m = n", 17, 17, 2, ROWS_REST, 0, 0, 0, 0, 0, 0},
    {"context, m = 0", 17, 0, 2, ROWS_CONTEXT, 0, 0, 0, 0, 0, 0},
    {"one point", 1, 0, 1, ROWS_REST, 0, 0, 0, 0, 0, 0},
    {"padded column", 9, 4, 2, ROWS_REST, 1, 0, 0, 0, 0, 0},
    {"n = 8192", 8192, 4096, 2, ROWS_REST, 0, 0, 0, CASE_NO_FD, 0, 0},
};

#define CASES .cases = cases, .n_cases = sizeof cases / sizeof *cases
const op_def op_sum_rows_def = {
    .name = "sum_rows", .grad = grad_sum_rows, .ref = ref_sum_rows, .build = build_sum_rows, CASES};
const op_def op_logmeanexp_def = {.name = "logmeanexp",
                                  .grad = grad_logmeanexp,
                                  .ref = ref_logmeanexp,
                                  .build = build_logmeanexp,
                                  CASES};
const op_def op_mean_samples_def = {.name = "mean_samples",
                                    .grad = grad_mean_samples,
                                    .ref = ref_mean_samples,
                                    .build = build_mean_samples,
                                    CASES};
const op_def op_per_point_def = {.name = "per_point",
                                 .grad = grad_per_point,
                                 .ref = ref_per_point,
                                 .build = build_per_point,
                                 CASES};
const op_def op_sum_rows_grad_def = {.name = "sum_rows_grad", .ref = ref_sum_rows_grad};
const op_def op_logmeanexp_grad_def = {.name = "logmeanexp_grad", .ref = ref_logmeanexp_grad};
const op_def op_mean_samples_grad_def = {.name = "mean_samples_grad", .ref = ref_mean_samples_grad};
const op_def op_per_point_grad_def = {.name = "per_point_grad", .ref = ref_per_point};
