/* stack.c: fixed rows on top of each other, y = [a; b] per sample.      a (A,C), b (B,C), y (A+B,C)
 *
 * Either may be shared over samples. Reverse: the gradient is cut at row A; a shared input gets
 * the sum over samples. */
#include "op/stack.h"

#include "op/op.h"

val op_stack(graph *g, val a, val b) {
    if (!graph_ok(g)) return VAL_NONE;
    value va = *graph_at(g, a), vb = *graph_at(g, b);
    if (va.ext != EXT_FIXED || vb.ext != EXT_FIXED || va.cols != vb.cols || va.type != TYPE_F32 ||
        vb.type != TYPE_F32) {
        graph_fail(g, "stack: %s and %s need fixed rows and the same columns", va.name, vb.name);
        return VAL_NONE;
    }
    val y =
        graph_matrix(g, "stack", EXT_FIXED, va.rows + vb.rows, va.cols, va.sampled || vb.sampled);
    instr *ins = graph_append(g, OP_stack);
    if (!ins) return VAL_NONE;
    ins->in[STACK_A] = a, ins->in[STACK_B] = b, ins->out[0] = y;
    ins->i[STACK_SPLIT] = va.rows;
    graph_done(g, ins);
    return y;
}

static void record_grad(graph *g, const instr *fwd, bool to_a, bool to_b) {
    instr *ins = graph_append(g, OP_stack_grad);
    if (!ins) return;
    ins->in[0] = graph_grad(g, fwd->out[0]);
    ins->i[STACK_SPLIT] = fwd->i[STACK_SPLIT];
    if (to_a) graph_wire_grad(g, ins, STACK_GA, fwd->in[STACK_A]);
    if (to_b) graph_wire_grad(g, ins, STACK_GB, fwd->in[STACK_B]);
}

static void grad_stack(graph *g, const instr *fwd) {
    bool same = fwd->in[STACK_A] == fwd->in[STACK_B]; /* then one after the other */
    record_grad(g, fwd, true, !same);
    if (same) record_grad(g, fwd, false, true);
}

/* ---- reference ------------------------------------------------------------------------------- */

static void ref_stack(ref_run *r) {
    ref_array a = ref_in(r, STACK_A), b = ref_in(r, STACK_B), y = ref_out(r, 0);
    if (r->failed) return;
    for (int64_t s = 0; s < y.samples; s++)
        for (int64_t i = 0; i < y.rows; i++)
            for (int64_t c = 0; c < y.cols; c++)
                *ref_el(y, s, i, c) +=
                    i < a.rows ? *ref_el(a, s, i, c) : *ref_el(b, s, i - a.rows, c);
}

static void ref_stack_grad(ref_run *r) {
    ref_array gy = ref_in(r, 0), ga = ref_out(r, STACK_GA), gb = ref_out(r, STACK_GB);
    int64_t split = r->ins->i[STACK_SPLIT];
    if (r->failed) return;
    for (int64_t s = 0; s < gy.samples; s++)
        for (int64_t i = 0; i < gy.rows; i++)
            for (int64_t c = 0; c < gy.cols; c++) {
                double d = *ref_el(gy, s, i, c);
                if (i < split && ga.at) *ref_el(ga, s, i, c) += d;
                if (i >= split && gb.at) *ref_el(gb, s, i - split, c) += d;
            }
}

/* ---- cases: a, b = rows, c = columns, d = what is stacked -------------------------------------
 */

enum { NEITHER, SHARED_A, SHARED_B, TWICE, WEIGHT_B };

static void build(case_build *b, const op_case *c) {
    bool sampled = c->S > 1;
    val u = case_matrix(b, "a", EXT_FIXED, c->a, c->c, sampled && c->d != SHARED_A, true,
                        CASE_NORMAL(0, 1));
    val v = c->d == TWICE      ? u
            : c->d == WEIGHT_B ? case_weight(b, "b", c->b, c->c, 0.5)
                               : case_matrix(b, "b", EXT_FIXED, c->b, c->c,
                                             sampled && c->d != SHARED_B, true, CASE_NORMAL(0, 1));
    case_output(b, op_stack(b->g, u, v));
}

static const op_case cases[] = {
    {"two rows", 8, 3, 1, 1, 1, 64, NEITHER, 0, 0, 0},
    {"sampled", 8, 0, 3, 2, 3, 17, NEITHER, 0, 0, 0},
    {"shared a", 1, 1, 4, 1, 1, 64, SHARED_A, 0, 0, 0},
    {"shared b", 8, 8, 4, 3, 1, 5, SHARED_B, 0, 0, 0},
    {"weight b", 8, 3, 2, 1, 2, 33, WEIGHT_B, 0, 0, 0},
    {"with itself", 8, 3, 2, 2, 2, 7, TWICE, 0, 0, 0},
};

const op_def op_stack_def = {.name = "stack",
                             .grad = grad_stack,
                             .ref = ref_stack,
                             .build = build,
                             .cases = cases,
                             .n_cases = sizeof cases / sizeof *cases};
const op_def op_stack_grad_def = {.name = "stack_grad", .ref = ref_stack_grad};
