/* unfold.c: rows beside their neighbours, so that a product with a weight is a convolution.
 *
 *   y[s,r, k C + c] = x[s, r + (k - K/2) dilation, c],  zero outside       x (R,C), y (R, K C)
 *
 * Reverse: dx[s,r,c] += sum_k dy[s, r - (k - K/2) dilation, k C + c] over the rows there are. */
#include "op/grid.h"
#include "op/op.h"

val op_unfold(graph *g, val x, int32_t taps, int32_t dilation) {
    if (!graph_ok(g)) return VAL_NONE;
    value vx = *graph_at(g, x);
    if (x == VAL_NONE || vx.ext != EXT_FIXED || vx.ld != graph_pad(vx.cols) || taps < 1 ||
        taps % 2 == 0 || dilation < 1) {
        graph_fail(g, "unfold: %d neighbours of %s, %d apart", taps, vx.name, dilation);
        return VAL_NONE;
    }
    val y = graph_matrix(g, "unfold", EXT_FIXED, vx.rows, taps * vx.cols, vx.sampled);
    instr *ins = graph_append(g, OP_unfold);
    if (!ins) return VAL_NONE;
    ins->in[UNFOLD_X] = x;
    ins->out[0] = y;
    ins->i[UNFOLD_TAPS] = taps, ins->i[UNFOLD_DILATION] = dilation;
    graph_done(g, ins);
    return y;
}

static void grad_unfold(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_unfold_grad);
    if (!ins) return;
    ins->in[UNFOLD_X] = graph_grad(g, fwd->out[0]);
    ins->i[UNFOLD_TAPS] = fwd->i[UNFOLD_TAPS], ins->i[UNFOLD_DILATION] = fwd->i[UNFOLD_DILATION];
    graph_wire_grad(g, ins, 0, fwd->in[UNFOLD_X]);
}

/* ---- reference ------------------------------------------------------------------------------- */

static void ref_unfold(ref_run *run) {
    ref_array x = ref_in(run, UNFOLD_X), y = ref_out(run, 0);
    const int32_t K = run->ins->i[UNFOLD_TAPS], apart = run->ins->i[UNFOLD_DILATION];
    if (run->failed) return;
    for (int64_t s = 0; s < y.samples; s++)
        for (int64_t r = 0; r < y.rows; r++)
            for (int32_t k = 0; k < K; k++) {
                int64_t from = r + (int64_t)(k - K / 2) * apart;
                if (from < 0 || from >= x.rows) continue;
                for (int64_t c = 0; c < x.cols; c++)
                    *ref_el(y, s, r, k * x.cols + c) += *ref_el(x, s, from, c);
            }
}

static void ref_unfold_grad(ref_run *run) {
    ref_array gy = ref_in(run, UNFOLD_X), gx = ref_out(run, 0);
    const int32_t K = run->ins->i[UNFOLD_TAPS], apart = run->ins->i[UNFOLD_DILATION];
    if (run->failed || !gx.at) return;
    for (int64_t s = 0; s < gy.samples; s++)
        for (int64_t r = 0; r < gy.rows; r++)
            for (int32_t k = 0; k < K; k++) {
                int64_t to = r + (int64_t)(k - K / 2) * apart;
                if (to < 0 || to >= gx.rows) continue;
                for (int64_t c = 0; c < gx.cols; c++)
                    *ref_el(gx, s, to, c) += *ref_el(gy, s, r, k * gx.cols + c);
            }
}

/* ---- cases: a = columns, b = taps, c = dilation, d = rows; a negative d: two readers ----------
 */

static void build(case_build *b, const op_case *c) {
    bool twice = c->d < 0;
    val x = case_matrix(b, "x", EXT_FIXED, twice ? -c->d : c->d, c->a, c->S > 1, true,
                        CASE_NORMAL(0, 1));
    if (twice) case_output(b, op_unfold(b->g, x, 1, 1));
    case_output(b, op_unfold(b->g, x, c->b, c->c));
}

static const op_case cases[] = {
    {"5 of 32, 128 places", 1, 0, 1, 32, 5, 2, 128, CASE_BENCH | CASE_NO_FD, 0, 0},
    {"3 taps", 1, 0, 1, 5, 3, 1, 9, 0, 0, 0},
    {"5 taps, 2 apart", 1, 0, 2, 17, 5, 2, 7, 0, 0, 0},
    {"beyond the ends", 1, 0, 1, 3, 5, 4, 3, 0, 0, 0},
    {"one tap", 1, 0, 1, 4, 1, 1, 4, 0, 0, 0},
    {"two readers", 1, 0, 2, 6, 3, 1, -5, 0, 0, 0},
};

const op_def op_unfold_def = {.name = "unfold",
                              .grad = grad_unfold,
                              .ref = ref_unfold,
                              .build = build,
                              .cases = cases,
                              .n_cases = sizeof cases / sizeof *cases};
const op_def op_unfold_grad_def = {.name = "unfold_grad", .ref = ref_unfold_grad};
