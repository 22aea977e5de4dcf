/* dot.c: a weighted sum over rows and columns, y[s] = sum_rc a[s,r,c] w[s,r,c], in double.
 *
 * a and w have the same rows and columns; either may be shared over samples, may be numbers per
 * row, a padded matrix or a double scalar. Reverse: da += g w, dw += g a. */
#include "op/dot.h"

#include "op/op.h"

val op_dot(graph *g, val a, val weights) {
    if (!graph_ok(g)) return VAL_NONE;
    value va = *graph_at(g, a), vw = *graph_at(g, weights);
    if (va.ext != vw.ext || va.rows != vw.rows || va.cols != vw.cols) {
        graph_fail(g, "dot: %s and %s do not have the same shape", va.name, vw.name);
        return VAL_NONE;
    }
    val y = graph_scalar(g, "dot", va.sampled || vw.sampled);
    instr *ins = graph_append(g, OP_dot);
    if (!ins) return VAL_NONE;
    ins->in[DOT_A] = a, ins->in[DOT_W] = weights, ins->out[0] = y;
    graph_done(g, ins);
    return y;
}

static void record_grad(graph *g, const instr *fwd, bool to_a, bool to_w) {
    instr *ins = graph_append(g, OP_dot_grad);
    if (!ins) return;
    ins->in[DOT_GRAD_A] = fwd->in[DOT_A], ins->in[DOT_GRAD_W] = fwd->in[DOT_W];
    ins->in[DOT_GRAD_G] = graph_grad(g, fwd->out[0]);
    if (to_a) graph_wire_grad(g, ins, DOT_GA, fwd->in[DOT_A]);
    if (to_w) graph_wire_grad(g, ins, DOT_GW, fwd->in[DOT_W]);
}

static void grad_dot(graph *g, const instr *fwd) {
    bool same = fwd->in[DOT_A] == fwd->in[DOT_W]; /* then one after the other */
    record_grad(g, fwd, true, !same);
    if (same) record_grad(g, fwd, false, true);
}

/* ---- reference ------------------------------------------------------------------------------- */

static void ref_dot(ref_run *r) {
    ref_array a = ref_in(r, DOT_A), w = ref_in(r, DOT_W), y = ref_out(r, 0);
    if (r->failed) return;
    for (int64_t s = 0; s < y.samples; s++)
        for (int64_t i = 0; i < a.rows; i++)
            for (int64_t c = 0; c < a.cols; c++)
                y.at[s] += *ref_el(a, s, i, c) * *ref_el(w, s, i, c);
}

static void ref_dot_grad(ref_run *r) {
    ref_array a = ref_in(r, DOT_GRAD_A), w = ref_in(r, DOT_GRAD_W), gy = ref_in(r, DOT_GRAD_G);
    ref_array ga = ref_out(r, DOT_GA), gw = ref_out(r, DOT_GW);
    if (r->failed) return;
    for (int64_t s = 0; s < gy.samples; s++)
        for (int64_t i = 0; i < a.rows; i++)
            for (int64_t c = 0; c < a.cols; c++) {
                if (ga.at) *ref_el(ga, s, i, c) += gy.at[s] * *ref_el(w, s, i, c);
                if (gw.at) *ref_el(gw, s, i, c) += gy.at[s] * *ref_el(a, s, i, c);
            }
}

/* ---- cases: a = columns, b = kind -------------------------------------------------------------
 */

enum { PLAIN, SHARED_W, SHARED_A, NUMBERS, SQUARE, WEIGHT };

static void build(case_build *b, const op_case *c) {
    bool sampled = c->S > 1;
    if (c->b == NUMBERS) { /* ld 1 against a padded column */
        val a = case_scalars(b, "a", EXT_N, sampled, true, CASE_NORMAL(0, 1));
        val w = case_matrix(b, "w", EXT_N, 0, 1, sampled, true, CASE_NORMAL(0, 1));
        case_output(b, op_dot(b->g, a, w));
        return;
    }
    extent ext = c->b == WEIGHT ? EXT_FIXED : EXT_N;
    val a = case_matrix(b, "a", ext, 2, c->a, sampled && c->b != SHARED_A, true, CASE_NORMAL(0, 1));
    val w = c->b == SQUARE   ? a
            : c->b == WEIGHT ? case_weight(b, "w", 2, c->a, 1)
                             : case_matrix(b, "w", ext, 2, c->a, sampled && c->b != SHARED_W, true,
                                           CASE_NORMAL(0, 1));
    case_output(b, op_dot(b->g, a, w));
}

static const op_case cases[] = {
    {"128 columns", 128, 50, 1, 128, PLAIN, 0, 0, 0, 0, 0},
    {"one point", 1, 0, 1, 1, PLAIN, 0, 0, 0, 0, 0},
    {"numbers", 33, 33, 3, 1, NUMBERS, 0, 0, 0, 0, 0},
    {"shared weights", 9, 0, 4, 17, SHARED_W, 0, 0, 0, 0, 0},
    {"shared a", 9, 3, 4, 17, SHARED_A, 0, 0, 0, 0, 0},
    {"square", 9, 3, 2, 5, SQUARE, 0, 0, 0, 0, 0},
    {"weight", 9, 3, 2, 21, WEIGHT, 0, 0, 0, 0, 0},
    {"n = 1000", 1000, 400, 1, 3, PLAIN, 0, 0, CASE_NO_FD, 0, 0},
};

const op_def op_dot_def = {.name = "dot",
                           .grad = grad_dot,
                           .ref = ref_dot,
                           .build = build,
                           .cases = cases,
                           .n_cases = sizeof cases / sizeof *cases};
const op_def op_dot_grad_def = {.name = "dot_grad", .ref = ref_dot_grad};
