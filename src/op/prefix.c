/* prefix.c: the first rows of a matrix: the context's, or those that are seen.
 *
 *   y[s,r,:] = x[s,r,:] for r < R                       x (n,C), y (R,C), R = m or k
 *
 * Reverse: dx[s,r,:] += dy[s,r,:] for r < R. */
#include "op/prefix.h"

#include "op/op.h"

val op_prefix(graph *g, val x, extent rows) {
    if (!graph_ok(g)) return VAL_NONE;
    value vx = *graph_at(g, x);
    if (x == VAL_NONE || rows == EXT_FIXED || !graph_has_rows(&vx, rows) ||
        vx.ld != graph_pad(vx.cols)) {
        graph_fail(g, "prefix: %s is not a matrix with the rows asked for", vx.name);
        return VAL_NONE;
    }
    val y = graph_matrix(g, "prefix", rows, 0, vx.cols, vx.sampled);
    instr *ins = graph_append(g, OP_prefix);
    if (!ins) return VAL_NONE;
    ins->in[PREFIX_X] = x;
    ins->out[PREFIX_Y] = y;
    graph_done(g, ins);
    return y;
}

static void grad_prefix(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_prefix_grad);
    if (!ins) return;
    ins->in[PREFIX_GRAD_G] = graph_grad(g, fwd->out[PREFIX_Y]);
    graph_wire_grad(g, ins, PREFIX_GX, fwd->in[PREFIX_X]);
}

static void ref_prefix(ref_run *r) {
    ref_array x = ref_in(r, PREFIX_X), y = ref_out(r, PREFIX_Y);
    if (r->failed) return;
    for (int64_t s = 0; s < y.samples; s++)
        for (int64_t i = 0; i < y.rows; i++)
            for (int64_t c = 0; c < y.cols; c++) *ref_el(y, s, i, c) += *ref_el(x, s, i, c);
}

static void ref_prefix_grad(ref_run *r) {
    ref_array gy = ref_in(r, PREFIX_GRAD_G), gx = ref_out(r, PREFIX_GX);
    if (r->failed || !gx.at) return;
    for (int64_t s = 0; s < gy.samples; s++)
        for (int64_t i = 0; i < gy.rows; i++)
            for (int64_t c = 0; c < gy.cols; c++) *ref_el(gx, s, i, c) += *ref_el(gy, s, i, c);
}

/* ---- cases: a = columns, b = extent, c = 1: gradients of two readers meet -------------------- */

static void build(case_build *b, const op_case *c) {
    val x = case_matrix(b, "x", EXT_N, 0, c->a, c->S > 1, true, CASE_NORMAL(0, 1));
    if (c->c) case_output(b, op_pool(b->g, x, EXT_N, true));
    case_output(b, op_prefix(b->g, x, (extent)c->b));
}

static const op_case cases[] = {
    {"context, 64", 128, 50, 1, 64, EXT_M, 0, 0, CASE_BENCH, 0, 0},
    {"seen", 17, 6, 2, 5, EXT_K, 0, 0, 0, 0, 0},
    {"no context", 5, 0, 1, 9, EXT_M, 0, 0, 0, 0, 0},
    {"context is all", 6, 6, 3, 17, EXT_M, 0, 0, 0, 0, 0},
    {"two readers", 9, 4, 2, 18, EXT_M, 1, 0, 0, 0, 0},
    {"two readers, no context", 9, 0, 1, 3, EXT_M, 1, 0, 0, 0, 0},
};

const op_def op_prefix_def = {.name = "prefix",
                              .grad = grad_prefix,
                              .ref = ref_prefix,
                              .build = build,
                              .cases = cases,
                              .n_cases = sizeof cases / sizeof *cases};
const op_def op_prefix_grad_def = {.name = "prefix_grad", .ref = ref_prefix_grad};
