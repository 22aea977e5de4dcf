/* cols.c: a slice of the columns, copied: y[s,r,c] = a[s,r,col + c].      a (R,A), y (R,count)
 *
 * The result is a matrix (padded), also for count = 1. Reverse: the slice's gradient goes into its
 * columns, the others get nothing. */
#include "op/cols.h"

#include "op/op.h"

val op_cols(graph *g, val a, int32_t col, int32_t count) {
    if (!graph_ok(g)) return VAL_NONE;
    value va = *graph_at(g, a);
    if (col < 0 || count < 1 || col > va.cols - count || va.type != TYPE_F32) {
        graph_fail(g, "cols: %s has %d columns, not %d from %d on", va.name, va.cols, count, col);
        return VAL_NONE;
    }
    val y = graph_matrix(g, "cols", va.ext, va.rows, count, va.sampled);
    instr *ins = graph_append(g, OP_cols);
    if (!ins) return VAL_NONE;
    ins->in[0] = a, ins->out[0] = y;
    ins->i[COLS_FIRST] = col;
    graph_done(g, ins);
    return y;
}

static void grad_cols(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_cols_grad);
    if (!ins) return;
    ins->in[0] = graph_grad(g, fwd->out[0]);
    ins->i[COLS_FIRST] = fwd->i[COLS_FIRST];
    graph_wire_grad(g, ins, 0, fwd->in[0]);
}

/* ---- reference ------------------------------------------------------------------------------- */

static void ref_cols(ref_run *r) {
    ref_array a = ref_in(r, 0), y = ref_out(r, 0);
    if (r->failed) return;
    for (int64_t i = 0; i < y.samples * y.rows; i++)
        for (int64_t c = 0; c < y.cols; c++)
            y.at[i * y.cols + c] += a.at[i * a.cols + r->ins->i[COLS_FIRST] + c];
}

static void ref_cols_grad(ref_run *r) {
    ref_array gy = ref_in(r, 0), ga = ref_out(r, 0);
    if (r->failed) return;
    for (int64_t i = 0; i < gy.samples * gy.rows; i++)
        for (int64_t c = 0; c < gy.cols; c++)
            ga.at[i * ga.cols + r->ins->i[COLS_FIRST] + c] += gy.at[i * gy.cols + c];
}

/* ---- cases: a = columns, b = first, c = count, d: another slice overlaps it -------------------
 */

static void build(case_build *b, const op_case *c) {
    val a = case_matrix(b, "a", EXT_N, 0, c->a, c->S > 1, true, CASE_NORMAL(0, 1));
    case_output(b, op_cols(b->g, a, c->b, c->c));
    if (c->d) case_output(b, op_cols(b->g, a, 0, c->b + 1));
}

static const op_case cases[] = {
    {"half", 128, 50, 1, 128, 64, 64, 0, CASE_BENCH, 0, 0},
    {"one point, one column", 1, 0, 1, 3, 1, 1, 0, 0, 0, 0},
    {"all", 9, 9, 1, 21, 0, 21, 0, 0, 0, 0},
    {"samples, overlapping", 7, 0, 3, 19, 4, 13, 1, 0, 0, 0},
    {"n = 1000", 1000, 400, 1, 33, 16, 16, 0, CASE_NO_FD, 0, 0},
};

const op_def op_cols_def = {.name = "cols",
                            .grad = grad_cols,
                            .ref = ref_cols,
                            .build = build,
                            .cases = cases,
                            .n_cases = sizeof cases / sizeof *cases};
const op_def op_cols_grad_def = {.name = "cols_grad", .ref = ref_cols_grad};
