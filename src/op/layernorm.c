/* layernorm.c: rows brought to mean 0 and variance 1, then scaled and shifted per column.
 *
 *   mu = mean_c x,  v = mean_c (x - mu)^2,  u = (x - mu) / sqrt(v + eps),  y = u gain + shift
 *
 * x and y (R,C), gain and shift (1,C), eps = 1e-5.
 * Reverse: with g = dy,  h = g gain,  dx += (h - mean_c h - u mean_c (h u)) / sqrt(v + eps),
 * d gain += sum_r g u,  d shift += sum_r g. The statistics of a row are computed again. */
#include "op/layernorm.h"

#include <math.h>

#include "op/op.h"

static bool is_row(const value *v, int32_t cols) {
    return v->ext == EXT_FIXED && v->rows == 1 && v->cols == cols && !v->sampled;
}

val op_layernorm(graph *g, val x, val gain, val shift) {
    if (!graph_ok(g)) return VAL_NONE;
    value vx = *graph_at(g, x);
    if (x == VAL_NONE || vx.ld != graph_pad(vx.cols) || !is_row(graph_at(g, gain), vx.cols) ||
        !is_row(graph_at(g, shift), vx.cols)) {
        graph_fail(g, "layernorm: %s, %s and %s do not fit", vx.name, graph_at(g, gain)->name,
                   graph_at(g, shift)->name);
        return VAL_NONE;
    }
    val y = graph_matrix(g, "layernorm", vx.ext, vx.rows, vx.cols, vx.sampled);
    instr *ins = graph_append(g, OP_layernorm);
    if (!ins) return VAL_NONE;
    ins->in[LAYERNORM_X] = x, ins->in[LAYERNORM_GAIN] = gain, ins->in[LAYERNORM_SHIFT] = shift;
    ins->out[LAYERNORM_Y] = y;
    graph_done(g, ins);
    return y;
}

static void grad_layernorm(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_layernorm_grad);
    if (!ins) return;
    ins->in[LAYERNORM_GRAD_X] = fwd->in[LAYERNORM_X];
    ins->in[LAYERNORM_GRAD_GAIN] = fwd->in[LAYERNORM_GAIN];
    ins->in[LAYERNORM_GRAD_G] = graph_grad(g, fwd->out[LAYERNORM_Y]);
    graph_wire_grad(g, ins, LAYERNORM_GX, fwd->in[LAYERNORM_X]);
    graph_wire_grad(g, ins, LAYERNORM_GGAIN, fwd->in[LAYERNORM_GAIN]);
    graph_wire_grad(g, ins, LAYERNORM_GSHIFT, fwd->in[LAYERNORM_SHIFT]);
}

/* ---- reference ------------------------------------------------------------------------------- */

/* mu and 1 / sqrt(v + eps) of one row */
static void moments(const double *x, int64_t cols, double *mu, double *inv) {
    double sum = 0.0, square = 0.0;
    for (int64_t c = 0; c < cols; c++) sum += x[c];
    *mu = sum / (double)cols;
    for (int64_t c = 0; c < cols; c++) square += (x[c] - *mu) * (x[c] - *mu);
    *inv = 1.0 / sqrt(square / (double)cols + LAYERNORM_EPS);
}

static void ref_layernorm(ref_run *r) {
    ref_array x = ref_in(r, LAYERNORM_X), gain = ref_in(r, LAYERNORM_GAIN);
    ref_array shift = ref_in(r, LAYERNORM_SHIFT), y = ref_out(r, LAYERNORM_Y);
    if (r->failed) return;
    for (int64_t i = 0; i < x.samples * x.rows; i++) {
        const double *from = x.at + i * x.cols;
        double mu, inv;
        moments(from, x.cols, &mu, &inv);
        for (int64_t c = 0; c < x.cols; c++)
            y.at[i * y.cols + c] += (from[c] - mu) * inv * gain.at[c] + shift.at[c];
    }
}

static void ref_layernorm_grad(ref_run *r) {
    ref_array x = ref_in(r, LAYERNORM_GRAD_X), gain = ref_in(r, LAYERNORM_GRAD_GAIN);
    ref_array gy = ref_in(r, LAYERNORM_GRAD_G), gx = ref_out(r, LAYERNORM_GX);
    ref_array ggain = ref_out(r, LAYERNORM_GGAIN), gshift = ref_out(r, LAYERNORM_GSHIFT);
    if (r->failed) return;
    for (int64_t i = 0; i < x.samples * x.rows; i++) {
        const double *from = x.at + i * x.cols, *g = gy.at + i * gy.cols;
        double mu, inv, mean_h = 0.0, mean_hu = 0.0;
        moments(from, x.cols, &mu, &inv);
        for (int64_t c = 0; c < x.cols; c++) {
            double u = (from[c] - mu) * inv, h = g[c] * gain.at[c];
            mean_h += h / (double)x.cols;
            mean_hu += h * u / (double)x.cols;
            if (ggain.at) ggain.at[c] += g[c] * u;
            if (gshift.at) gshift.at[c] += g[c];
        }
        for (int64_t c = 0; gx.at && c < x.cols; c++) {
            double u = (from[c] - mu) * inv, h = g[c] * gain.at[c];
            gx.at[i * gx.cols + c] += (h - mean_h - u * mean_hu) * inv;
        }
    }
}

/* ---- cases: a = columns, b = 1 for two readers ----------------------------------------------- */

static void build(case_build *b, const op_case *c) {
    val x = case_matrix(b, "x", EXT_N, 0, c->a, c->S > 1, true, CASE_NORMAL(0.5, 2));
    val gain = case_weight(b, "gain", 1, c->a, 1.0);
    val shift = case_weight(b, "shift", 1, c->a, 1.0);
    if (c->b) case_output(b, op_layernorm(b->g, x, shift, gain));
    case_output(b, op_layernorm(b->g, x, gain, shift));
}

static const op_case cases[] = {
    {"64 columns", 128, 50, 1, 64, 0, 0, 0, CASE_BENCH, 0, 0},
    {"one point", 1, 0, 1, 16, 0, 0, 0, 0, 0, 0},
    {"one column", 5, 5, 1, 1, 0, 0, 0, 0, 0, 0}, /* the variance is zero: y = shift */
    {"odd width", 33, 12, 1, 21, 0, 0, 0, 0, 0, 0},
    {"samples", 10, 4, 3, 37, 0, 0, 0, 0, 0, 0},
    {"two readers", 10, 4, 2, 19, 1, 0, 0, 0, 0, 0},
    {"n = 1000", 1000, 400, 1, 64, 0, 0, 0, CASE_NO_FD, 0, 0},
    {"wide", 37, 12, 1, 300, 0, 0, 0, CASE_NO_FD, 0, 0},
    {"very wide", 19, 12, 1, 1900, 1, 0, 0, CASE_NO_FD, 0, 0},
};

const op_def op_layernorm_def = {.name = "layernorm",
                                 .grad = grad_layernorm,
                                 .ref = ref_layernorm,
                                 .build = build,
                                 .cases = cases,
                                 .n_cases = sizeof cases / sizeof *cases};
const op_def op_layernorm_grad_def = {.name = "layernorm_grad", .ref = ref_layernorm_grad};
