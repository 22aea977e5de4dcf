/* row.c: one fixed row of a matrix, y[s,0,:] = a[s,row,:].             a (A,C), y (1,C)
 *
 * Reverse: the gradient of row `row` is that of y, all other rows get nothing. */
#include "op/row.h"

#include "op/op.h"

val op_row(graph *g, val a, int32_t row) {
    if (!graph_ok(g)) return VAL_NONE;
    value va = *graph_at(g, a);
    if (va.ext != EXT_FIXED || row < 0 || row >= va.rows || va.type != TYPE_F32) {
        graph_fail(g, "row: %s has no fixed row %d", va.name, row);
        return VAL_NONE;
    }
    val y = graph_matrix(g, "row", EXT_FIXED, 1, va.cols, va.sampled);
    instr *ins = graph_append(g, OP_row);
    if (!ins) return VAL_NONE;
    ins->in[0] = a, ins->out[0] = y;
    ins->i[ROW_INDEX] = row;
    graph_done(g, ins);
    return y;
}

static void grad_row(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_row_grad);
    if (!ins) return;
    ins->in[0] = graph_grad(g, fwd->out[0]);
    ins->i[ROW_INDEX] = fwd->i[ROW_INDEX];
    graph_wire_grad(g, ins, 0, fwd->in[0]);
}

/* ---- reference ------------------------------------------------------------------------------- */

static void ref_row(ref_run *r) {
    ref_array a = ref_in(r, 0), y = ref_out(r, 0);
    if (r->failed) return;
    for (int64_t s = 0; s < y.samples; s++)
        for (int64_t c = 0; c < y.cols; c++)
            *ref_el(y, s, 0, c) += *ref_el(a, s, r->ins->i[ROW_INDEX], c);
}

static void ref_row_grad(ref_run *r) {
    ref_array gy = ref_in(r, 0), ga = ref_out(r, 0);
    if (r->failed) return;
    for (int64_t s = 0; s < gy.samples; s++)
        for (int64_t c = 0; c < gy.cols; c++)
            *ref_el(ga, s, r->ins->i[ROW_INDEX], c) += *ref_el(gy, s, 0, c);
}

/* ---- cases: a = rows, b = columns, c = which row, d: two rows of the same matrix --------------
 */

static void build(case_build *b, const op_case *c) {
    val a = case_matrix(b, "a", EXT_FIXED, c->a, c->b, c->S > 1, true, CASE_NORMAL(0, 1));
    case_output(b, op_row(b->g, a, c->c));
    if (c->d) case_output(b, op_row(b->g, a, 0));
}

static const op_case cases[] = {
    {"only row", 8, 3, 1, 1, 64, 0, 0, 0, 0, 0},
    {"last of three", 1, 0, 1, 3, 17, 2, 0, 0, 0, 0},
    {"samples, two rows", 8, 8, 4, 4, 5, 2, 1, 0, 0, 0},
};

const op_def op_row_def = {.name = "row",
                           .grad = grad_row,
                           .ref = ref_row,
                           .build = build,
                           .cases = cases,
                           .n_cases = sizeof cases / sizeof *cases};
const op_def op_row_grad_def = {.name = "row_grad", .ref = ref_row_grad};
