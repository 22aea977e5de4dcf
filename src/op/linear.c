/* linear.c: the dense layer, with bias, activation and residual in one op.
 *
 *   h = act(x W + b),   y = h + residual          x (R,K), W (K,N), b (1,N), y and h (R,N)
 *
 * Reverse: with g = dy,  d residual += g;  a = g * act'(h);  dx += a W^T,  dW += x^T a,  db += 1^T
 * a. ReLU's derivative is read off its own output h, so h is kept when there is a residual. */
#include "op/linear.h"

#include "op/op.h"

val op_linear(graph *g, val x, val w, val b, act_kind act, val residual) {
    if (!graph_ok(g)) return VAL_NONE;
    value vx = *graph_at(g, x), vw = *graph_at(g, w), vb = *graph_at(g, b);
    if (vx.cols != vw.rows || (b != VAL_NONE && vb.cols != vw.cols)) {
        graph_fail(g, "linear: %s has %d columns, the weight %s is %d x %d", vx.name, vx.cols,
                   vw.name, vw.rows, vw.cols);
        return VAL_NONE;
    }
    const value *vr = graph_at(g, residual);
    if (residual != VAL_NONE &&
        (vr->cols != vw.cols || vr->sampled != vx.sampled || vr->ext != vx.ext)) {
        graph_fail(g, "linear: the residual %s does not have the output's shape", vr->name);
        return VAL_NONE;
    }
    val y = graph_matrix(g, vw.name, vx.ext, vx.rows, vw.cols, vx.sampled);
    val h = act != ACT_NONE && residual != VAL_NONE
                ? graph_matrix(g, vw.name, vx.ext, vx.rows, vw.cols, vx.sampled)
                : VAL_NONE;
    instr *ins = graph_append(g, OP_linear);
    if (!ins) return VAL_NONE;
    ins->in[LINEAR_X] = x, ins->in[LINEAR_W] = w, ins->in[LINEAR_B] = b,
    ins->in[LINEAR_RES] = residual;
    ins->out[LINEAR_Y] = y, ins->out[LINEAR_H] = h;
    ins->i[LINEAR_ACT] = (int32_t)act;
    graph_done(g, ins);
    return y;
}

static void grad_linear(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_linear_grad);
    if (!ins) return;
    ins->in[LINEAR_GRAD_X] = fwd->in[LINEAR_X];
    ins->in[LINEAR_GRAD_W] = fwd->in[LINEAR_W];
    ins->in[LINEAR_GRAD_G] = graph_grad(g, fwd->out[LINEAR_Y]);
    if (fwd->i[LINEAR_ACT] == ACT_RELU)
        ins->in[LINEAR_GRAD_H] =
            fwd->out[LINEAR_H] != VAL_NONE ? fwd->out[LINEAR_H] : fwd->out[LINEAR_Y];
    ins->i[LINEAR_ACT] = fwd->i[LINEAR_ACT];
    ins->i[LINEAR_SKIP] = fwd->in[LINEAR_RES] == fwd->in[LINEAR_X];
    if (!ins->i[LINEAR_SKIP]) graph_wire_grad(g, ins, LINEAR_GRES, fwd->in[LINEAR_RES]);
    graph_wire_grad(g, ins, LINEAR_GX, fwd->in[LINEAR_X]);
    graph_wire_grad(g, ins, LINEAR_GW, fwd->in[LINEAR_W]);
    graph_wire_grad(g, ins, LINEAR_GB, fwd->in[LINEAR_B]);
}

/* ---- reference ------------------------------------------------------------------------------- */

static void ref_linear(ref_run *r) {
    ref_array x = ref_in(r, LINEAR_X), w = ref_in(r, LINEAR_W), b = ref_in(r, LINEAR_B);
    ref_array res = ref_in(r, LINEAR_RES), y = ref_out(r, LINEAR_Y), h = ref_out(r, LINEAR_H);
    if (r->failed) return;
    for (int64_t i = 0; i < x.samples * x.rows; i++)
        for (int64_t c = 0; c < w.cols; c++) {
            double a = b.at ? b.at[c] : 0.0;
            for (int64_t k = 0; k < x.cols; k++) a += x.at[i * x.cols + k] * w.at[k * w.cols + c];
            if (r->ins->i[LINEAR_ACT] == ACT_RELU && !(a > 0.0)) a = 0.0;
            if (h.at) h.at[i * h.cols + c] += a;
            y.at[i * y.cols + c] += a + (res.at ? res.at[i * res.cols + c] : 0.0);
        }
}

static void ref_linear_grad(ref_run *r) {
    ref_array x = ref_in(r, LINEAR_GRAD_X), w = ref_in(r, LINEAR_GRAD_W),
              h = ref_in(r, LINEAR_GRAD_H);
    ref_array gy = ref_in(r, LINEAR_GRAD_G);
    ref_array gx = ref_out(r, LINEAR_GX), gw = ref_out(r, LINEAR_GW), gb = ref_out(r, LINEAR_GB);
    ref_array gres = r->ins->i[LINEAR_SKIP] ? gx : ref_out(r, LINEAR_GRES);
    if (r->failed) return;
    for (int64_t i = 0; i < x.samples * x.rows; i++)
        for (int64_t c = 0; c < w.cols; c++) {
            double a = gy.at[i * gy.cols + c];
            if (gres.at) gres.at[i * gres.cols + c] += a;
            if (h.at && !(h.at[i * h.cols + c] > 0.0)) continue;
            if (gb.at) gb.at[c] += a;
            for (int64_t k = 0; k < x.cols; k++) {
                if (gx.at) gx.at[i * gx.cols + k] += a * w.at[k * w.cols + c];
                if (gw.at) gw.at[k * gw.cols + c] += a * x.at[i * x.cols + k];
            }
        }
}

/* ---- cases: a = K, b = N, c = activation and residual ----------------------------------------
 * SILENT: no gradient comes to the layer, and x has one near 1e10 from another reader. */

enum { PLAIN, RELU, RELU_RESIDUAL, NO_BIAS, RESIDUAL, SILENT };

static void build(case_build *b, const op_case *c) {
    val x = case_matrix(b, "x", EXT_N, 0, c->a, c->S > 1, true, CASE_NORMAL(0, 1));
    val w = case_weight(b, "w", c->a, c->b, 0.3);
    val bias = c->c == NO_BIAS ? VAL_NONE : case_weight(b, "b", 1, c->b, 0.3);
    if (c->c == SILENT) {
        case_output(b, op_scale(b->g, op_linear(b->g, x, w, bias, ACT_NONE, VAL_NONE), 0, 0));
        case_output(b, op_scale(b->g, x, 1e10, 0));
        return;
    }
    act_kind act = c->c == RELU || c->c == RELU_RESIDUAL ? ACT_RELU : ACT_NONE;
    case_output(b, op_linear(b->g, x, w, bias, act,
                             c->c == RELU_RESIDUAL || c->c == RESIDUAL ? x : VAL_NONE));
}

#define FLOP(n, k, m) (2.0 * (n) * (k) * (m))
static const op_case cases[] = {
    {"160x128", 128, 50, 1, 160, 128, RELU, 0, CASE_BENCH, FLOP(128, 160, 128), 0},
    {"128x128", 128, 50, 1, 128, 128, RELU, 0, CASE_BENCH, FLOP(128, 128, 128), 0},
    {"128x29", 128, 50, 1, 128, 29, PLAIN, 0, CASE_BENCH | CASE_MODES, FLOP(128, 128, 29), 0},
    {"64x64 residual", 128, 50, 1, 64, 64, RELU_RESIDUAL, 0, CASE_BENCH, FLOP(128, 64, 64), 0},
    {"161x64", 128, 50, 1, 161, 64, PLAIN, 0, CASE_BENCH | CASE_MODES, FLOP(128, 161, 64), 0},
    {"one point", 1, 0, 1, 7, 5, RELU, 0, 0, 0, 0},
    {"one output", 17, 17, 1, 9, 1, NO_BIAS, 0, CASE_MODES, 0, 0},
    {"odd widths", 33, 12, 3, 13, 21, RELU, 0, 0, 0, 0},
    {"samples, residual", 20, 20, 4, 6, 6, RELU_RESIDUAL, 0, 0, 0, 0},
    {"n = 1000", 1000, 400, 1, 64, 64, RELU, 0, CASE_NO_FD, 0, 0},
    {"n = 700, residual", 700, 40, 1, 80, 80, RESIDUAL, 0, CASE_NO_FD | CASE_MODES, 0, 0},
    {"wide", 130, 40, 1, 128, 384, PLAIN, 0, CASE_NO_FD | CASE_MODES, 0, 0},
    {"wide, samples", 50, 20, 3, 250, 270, NO_BIAS, 0, CASE_NO_FD | CASE_MODES, 0, 0},
    {"deep", 40, 20, 1, 530, 40, PLAIN, 0, CASE_NO_FD | CASE_MODES, 0, 0},
    {"n = 3300, to many", 3300, 40, 1, 12, 1024, PLAIN, 0, CASE_NO_FD | CASE_MODES, 0, 0},
    {"n = 3300, from many", 3300, 40, 1, 1024, 12, PLAIN, 0, CASE_NO_FD | CASE_MODES, 0, 0},
    {"few rows, deep", 3, 1, 1, 160, 20, PLAIN, 0, 0, 0, 0},
    {"without a gradient", 40, 20, 1, 48, 32, SILENT, 0, CASE_NO_FD | CASE_MODES, 0, 0},
};

const op_def op_linear_def = {.name = "linear",
                              .grad = grad_linear,
                              .ref = ref_linear,
                              .build = build,
                              .cases = cases,
                              .n_cases = sizeof cases / sizeof *cases};
const op_def op_linear_grad_def = {.name = "linear_grad", .ref = ref_linear_grad};
