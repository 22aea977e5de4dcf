/* trend.c: a population curve added to or taken from the outputs.
 *
 *   out_i = y_i + sign sum_j phi_j(x_i) c_j          phi: the natural splines of base/natural.h
 *
 * Reverse: dy += dout; dc_j += sign sum_i phi_j(x_i) dout_i; x and the knots are data. */
#include "base/natural.h"
#include "op/op.h"

enum { TREND_X, TREND_Y, TREND_KNOTS, TREND_C, TREND_G }; /* in; G: of the grad */
enum { TREND_GY, TREND_GC };                              /* out of the grad    */
enum { TREND_SIGN };                                      /* f */

val op_trend(graph *g, val x, val y, val knots, val coefficients, double sign) {
    if (!graph_ok(g)) return VAL_NONE;
    const value *vx = graph_at(g, x), *vy = graph_at(g, y), *vk = graph_at(g, knots);
    const value *vc = graph_at(g, coefficients);
    if (vx->ext != EXT_N || vx->sampled || vy->ext != EXT_N || vy->ld != 1)
        graph_fail(g, "trend: %s must be the inputs of all points, %s a number per point", vx->name,
                   vy->name);
    else if (vk->ext != EXT_FIXED || vk->rows != vx->cols || vk->cols > NATURAL_KNOTS_MAX ||
             vc->ext != EXT_FIXED || vc->rows != 1 ||
             vc->cols != natural_columns(vx->cols, vk->cols))
        graph_fail(g, "trend: %s and %s do not fit %d inputs", vk->name, vc->name, vx->cols);
    val out = graph_scalars(g, "trend", EXT_N, 1, vy->sampled);
    instr *ins = graph_append(g, OP_trend);
    if (!ins) return VAL_NONE;
    ins->in[TREND_X] = x, ins->in[TREND_Y] = y, ins->in[TREND_KNOTS] = knots;
    ins->in[TREND_C] = coefficients, ins->out[0] = out, ins->f[TREND_SIGN] = sign;
    graph_done(g, ins);
    return out;
}

static void grad_trend(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_trend_grad);
    if (!ins) return;
    for (int j = 0; j < TREND_G; j++) ins->in[j] = fwd->in[j];
    ins->in[TREND_G] = graph_grad(g, fwd->out[0]);
    ins->f[TREND_SIGN] = fwd->f[TREND_SIGN];
    graph_wire_grad(g, ins, TREND_GY, fwd->in[TREND_Y]);
    graph_wire_grad(g, ins, TREND_GC, fwd->in[TREND_C]);
}

/* ---- reference ------------------------------------------------------------------------------- */

static natural *bases_of(ref_run *r) {
    ref_array x = ref_in(r, TREND_X), knots = ref_in(r, TREND_KNOTS);
    natural *bases = (natural *)(void *)ref_scratch(
        r, x.cols * ((int64_t)(sizeof(natural) / sizeof(double)) + 1));
    for (int64_t c = 0; !r->failed && c < x.cols; c++)
        natural_make(&bases[c], knots.at + c * knots.cols, (int32_t)knots.cols);
    return bases;
}

static void ref_trend(ref_run *r) {
    ref_array x = ref_in(r, TREND_X), y = ref_in(r, TREND_Y), c = ref_in(r, TREND_C);
    ref_array out = ref_out(r, 0);
    natural *bases = bases_of(r);
    double *row = ref_scratch(r, c.cols);
    if (r->failed) return;
    int32_t X = (int32_t)x.cols, knots = (int32_t)ref_in(r, TREND_KNOTS).cols;
    for (int64_t i = 0; i < x.rows; i++) {
        double sum = 0;
        natural_row(bases, X, knots, x.at + i * X, row);
        for (int64_t j = 0; j < c.cols; j++) sum += row[j] * c.at[j];
        for (int64_t s = 0; s < out.samples; s++)
            *ref_el(out, s, i, 0) += *ref_el(y, s, i, 0) + r->ins->f[TREND_SIGN] * sum;
    }
}

static void ref_trend_grad(ref_run *r) {
    ref_array x = ref_in(r, TREND_X), up = ref_in(r, TREND_G);
    ref_array gy = ref_out(r, TREND_GY), gc = ref_out(r, TREND_GC);
    natural *bases = bases_of(r);
    int32_t X = (int32_t)x.cols, knots = (int32_t)ref_in(r, TREND_KNOTS).cols;
    int32_t columns = natural_columns(X, knots);
    double *row = ref_scratch(r, columns);
    if (r->failed) return;
    for (int64_t i = 0; i < x.rows; i++) {
        double sum = 0;
        for (int64_t s = 0; s < up.samples; s++) {
            sum += *ref_el(up, s, i, 0);
            if (gy.at) *ref_el(gy, s, i, 0) += *ref_el(up, s, i, 0);
        }
        if (!gc.at) continue;
        natural_row(bases, X, knots, x.at + i * X, row);
        for (int32_t j = 0; j < columns; j++) gc.at[j] += r->ins->f[TREND_SIGN] * sum * row[j];
    }
}

/* ---- cases: a = X, b = knots, c = sign; S > 1: y is sampled */

static const double rising[] = {-1.5, -0.7, 0.1, 0.8, 1.6};

static void build(case_build *b, const op_case *c) {
    val x = case_matrix(b, "x", EXT_N, 0, c->a, false, false, CASE_NORMAL(0, 1));
    val y = case_scalars(b, "y", EXT_N, c->S > 1, true, CASE_NORMAL(0, 1));
    case_fill fill = {.values = rising, .count = 5};
    val knots = case_matrix(b, "knots", EXT_FIXED, c->a, 5, false, false, fill);
    val coefficients = case_weight(b, "coefficients", 1, natural_columns(c->a, 5), 1);
    case_output(b, op_trend(b->g, x, y, knots, coefficients, c->c));
}

static const op_case cases[] = {
    {"24 points", 24, 3, 1, 1, 5, -1, 0, CASE_BENCH, 0, 0},
    {"two inputs", 20, 7, 1, 2, 5, 1, 0, 0, 0, 0},
    {"samples", 9, 4, 3, 1, 5, 1, 0, 0, 0, 0},
    {"one point", 1, 0, 1, 1, 5, -1, 0, 0, 0, 0},
};

const op_def op_trend_def = {.name = "trend",
                             .grad = grad_trend,
                             .ref = ref_trend,
                             .build = build,
                             .cases = cases,
                             .n_cases = sizeof cases / sizeof *cases};
const op_def op_trend_grad_def = {.name = "trend_grad", .ref = ref_trend_grad};
