/* concat.c: columns side by side, y[s,r,:] = [a[s,r,:], b[s,r,:]].      a (R,A), b (R,B), y (R,A+B)
 *
 * Either may be shared over samples. Reverse: the gradient is cut at column A; a shared input
 * gets the sum over samples. */
#include "op/concat.h"

#include "op/op.h"

val op_concat(graph *g, val a, val b) {
    if (!graph_ok(g)) return VAL_NONE;
    value va = *graph_at(g, a), vb = *graph_at(g, b);
    if (va.ext != vb.ext || va.rows != vb.rows || va.type != TYPE_F32 || vb.type != TYPE_F32) {
        graph_fail(g, "concat: %s and %s do not have the same rows", va.name, vb.name);
        return VAL_NONE;
    }
    val y = graph_matrix(g, "concat", va.ext, va.rows, va.cols + vb.cols, va.sampled || vb.sampled);
    instr *ins = graph_append(g, OP_concat);
    if (!ins) return VAL_NONE;
    ins->in[CONCAT_A] = a, ins->in[CONCAT_B] = b, ins->out[0] = y;
    ins->i[CONCAT_SPLIT] = va.cols;
    graph_done(g, ins);
    return y;
}

static void record_grad(graph *g, const instr *fwd, bool to_a, bool to_b) {
    instr *ins = graph_append(g, OP_concat_grad);
    if (!ins) return;
    ins->in[0] = graph_grad(g, fwd->out[0]);
    ins->i[CONCAT_SPLIT] = fwd->i[CONCAT_SPLIT];
    if (to_a) graph_wire_grad(g, ins, CONCAT_GA, fwd->in[CONCAT_A]);
    if (to_b) graph_wire_grad(g, ins, CONCAT_GB, fwd->in[CONCAT_B]);
}

static void grad_concat(graph *g, const instr *fwd) {
    bool same = fwd->in[CONCAT_A] == fwd->in[CONCAT_B]; /* then one after the other */
    record_grad(g, fwd, true, !same);
    if (same) record_grad(g, fwd, false, true);
}

/* ---- reference ------------------------------------------------------------------------------- */

static void ref_concat(ref_run *r) {
    ref_array a = ref_in(r, CONCAT_A), b = ref_in(r, CONCAT_B), y = ref_out(r, 0);
    if (r->failed) return;
    for (int64_t s = 0; s < y.samples; s++)
        for (int64_t i = 0; i < y.rows; i++)
            for (int64_t c = 0; c < y.cols; c++)
                *ref_el(y, s, i, c) +=
                    c < a.cols ? *ref_el(a, s, i, c) : *ref_el(b, s, i, c - a.cols);
}

static void ref_concat_grad(ref_run *r) {
    ref_array gy = ref_in(r, 0), ga = ref_out(r, CONCAT_GA), gb = ref_out(r, CONCAT_GB);
    int64_t split = r->ins->i[CONCAT_SPLIT];
    if (r->failed) return;
    for (int64_t s = 0; s < gy.samples; s++)
        for (int64_t i = 0; i < gy.rows; i++)
            for (int64_t c = 0; c < gy.cols; c++) {
                double d = *ref_el(gy, s, i, c);
                if (c < split && ga.at) *ref_el(ga, s, i, c) += d;
                if (c >= split && gb.at) *ref_el(gb, s, i, c - split) += d;
            }
}

/* ---- cases: a, b = columns, c = which input is shared over samples, d = numbers per row -------
 */

enum { NEITHER, SHARED_A, SHARED_B, TWICE };

static void build(case_build *b, const op_case *c) {
    bool sampled = c->S > 1;
    val u =
        case_matrix(b, "a", EXT_N, 0, c->a, sampled && c->c != SHARED_A, true, CASE_NORMAL(0, 1));
    if (c->c == TWICE) {
        case_output(b, op_concat(b->g, u, u));
        return;
    }
    bool other = sampled && c->c != SHARED_B;
    val v = c->d ? case_scalars(b, "b", EXT_N, other, true, CASE_NORMAL(0, 1))
                 : case_matrix(b, "b", EXT_N, 0, c->b, other, true, CASE_NORMAL(0, 1));
    case_output(b, op_concat(b->g, u, v));
}

static const op_case cases[] = {
    {"128 + 33", 128, 50, 1, 128, 33, NEITHER, 0, CASE_BENCH, 0, 0},
    {"32 + number", 128, 50, 1, 32, 1, NEITHER, 1, 0, 0, 0},
    {"one point", 1, 0, 1, 3, 5, NEITHER, 0, 0, 0, 0},
    {"shared a", 9, 9, 3, 16, 7, SHARED_A, 0, 0, 0, 0},
    {"shared b", 9, 0, 4, 5, 1, SHARED_B, 1, 0, 0, 0},
    {"sampled", 17, 3, 2, 15, 17, NEITHER, 0, 0, 0, 0},
    {"with itself", 6, 2, 2, 5, 5, TWICE, 0, 0, 0, 0},
    {"n = 1000", 1000, 400, 1, 64, 64, NEITHER, 0, CASE_NO_FD, 0, 0},
};

const op_def op_concat_def = {.name = "concat",
                              .grad = grad_concat,
                              .ref = ref_concat,
                              .build = build,
                              .cases = cases,
                              .n_cases = sizeof cases / sizeof *cases};
const op_def op_concat_grad_def = {.name = "concat_grad", .ref = ref_concat_grad};
