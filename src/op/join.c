/* join.c: a layer on a concatenation, from its already multiplied parts.
 *
 *   y[s,r,:] = act(a[s,r,:] + row[s,0,:] + p[s,r] w[0,:])      a and y (R,C), row and w (1,C), p
 * (R)
 *
 * a, row and p may each be sampled or shared over samples; row may be absent, p and w both. The
 * parts of a point that do not change (its features) are multiplied once, those of the function (a
 * latent) once per function, and a number per point (the output y) needs no product at all.
 *
 * Reverse: with g = dy * act'(y),  da += g,  d row += sum_r g,  dp[r] += g[r] . w,
 * dw += sum_{s,r} p[s,r] g[s,r]; what is shared over samples collects the sum over them. */
#include "op/join.h"

#include "op/op.h"

static bool same_rows(const value *a, const value *b) {
    return a->ext == b->ext && a->rows == b->rows;
}

static bool is_row(const value *v, const value *like) {
    return v->ext == EXT_FIXED && v->rows == 1 && v->cols == like->cols && v->ld == like->ld;
}

val op_join(graph *g, val a, val row, val p, val w, act_kind act) {
    if (!graph_ok(g)) return VAL_NONE;
    value va = *graph_at(g, a), vrow = *graph_at(g, row), vp = *graph_at(g, p);
    const value *vw = graph_at(g, w);
    if (a == VAL_NONE || va.ld != graph_pad(va.cols)) {
        graph_fail(g, "join: %s is not a matrix", va.name);
        return VAL_NONE;
    }
    if (row != VAL_NONE && !is_row(&vrow, &va)) {
        graph_fail(g, "join: %s is not one row of %d columns", vrow.name, va.cols);
        return VAL_NONE;
    }
    if ((p == VAL_NONE) != (w == VAL_NONE)) {
        graph_fail(g, "join: a number per row and its weight come together");
        return VAL_NONE;
    }
    if (p != VAL_NONE &&
        (vp.cols != 1 || !same_rows(&vp, &va) || !is_row(vw, &va) || vw->sampled)) {
        graph_fail(g, "join: %s and %s do not fit %s", vp.name, vw->name, va.name);
        return VAL_NONE;
    }
    bool sampled = va.sampled || vrow.sampled || vp.sampled;
    val y = graph_matrix(g, "join", va.ext, va.rows, va.cols, sampled);
    instr *ins = graph_append(g, OP_join);
    if (!ins) return VAL_NONE;
    ins->in[JOIN_A] = a, ins->in[JOIN_ROW] = row, ins->in[JOIN_P] = p, ins->in[JOIN_W] = w;
    ins->out[JOIN_Y] = y;
    ins->i[JOIN_ACT] = (int32_t)act;
    graph_done(g, ins);
    return y;
}

static void grad_join(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_join_grad);
    if (!ins) return;
    if (fwd->i[JOIN_ACT] == ACT_RELU) ins->in[JOIN_GRAD_Y] = fwd->out[JOIN_Y];
    ins->in[JOIN_GRAD_P] = fwd->in[JOIN_P];
    ins->in[JOIN_GRAD_W] = fwd->in[JOIN_W];
    ins->in[JOIN_GRAD_G] = graph_grad(g, fwd->out[JOIN_Y]);
    graph_wire_grad(g, ins, JOIN_GA, fwd->in[JOIN_A]);
    graph_wire_grad(g, ins, JOIN_GROW, fwd->in[JOIN_ROW]);
    graph_wire_grad(g, ins, JOIN_GP, fwd->in[JOIN_P]);
    graph_wire_grad(g, ins, JOIN_GW, fwd->in[JOIN_W]);
}

/* ---- reference ------------------------------------------------------------------------------- */

static void ref_join(ref_run *r) {
    ref_array a = ref_in(r, JOIN_A), row = ref_in(r, JOIN_ROW), p = ref_in(r, JOIN_P);
    ref_array w = ref_in(r, JOIN_W), y = ref_out(r, JOIN_Y);
    if (r->failed) return;
    for (int64_t s = 0; s < y.samples; s++)
        for (int64_t i = 0; i < y.rows; i++)
            for (int64_t c = 0; c < y.cols; c++) {
                double v = *ref_el(a, s, i, c);
                if (row.at) v += *ref_el(row, s, 0, c);
                if (p.at) v += *ref_el(p, s, i, 0) * w.at[c];
                if (r->ins->i[JOIN_ACT] == ACT_RELU && !(v > 0.0)) v = 0.0;
                *ref_el(y, s, i, c) += v;
            }
}

static void ref_join_grad(ref_run *r) {
    ref_array y = ref_in(r, JOIN_GRAD_Y), p = ref_in(r, JOIN_GRAD_P), w = ref_in(r, JOIN_GRAD_W);
    ref_array gy = ref_in(r, JOIN_GRAD_G), ga = ref_out(r, JOIN_GA), grow = ref_out(r, JOIN_GROW);
    ref_array gp = ref_out(r, JOIN_GP), gw = ref_out(r, JOIN_GW);
    if (r->failed) return;
    for (int64_t s = 0; s < gy.samples; s++)
        for (int64_t i = 0; i < gy.rows; i++)
            for (int64_t c = 0; c < gy.cols; c++) {
                if (y.at && !(*ref_el(y, s, i, c) > 0.0)) continue;
                double v = *ref_el(gy, s, i, c);
                if (ga.at) *ref_el(ga, s, i, c) += v;
                if (grow.at) *ref_el(grow, s, 0, c) += v;
                if (gp.at) *ref_el(gp, s, i, 0) += v * w.at[c];
                if (gw.at) gw.at[c] += v * *ref_el(p, s, i, 0);
            }
}

/* ---- cases: a = columns, b = parts, c = what is sampled --------------------------------------
 * WIDE_P: the numbers per row are a matrix of one column; TWICE: gradients of two readers meet. */

enum { WITH_ROW = 1, WITH_P = 2, WITH_RELU = 4, WIDE_P = 8, TWICE = 16 };
enum { SAMPLED_A = 1, SAMPLED_ROW = 2, SAMPLED_P = 4 };

static void build(case_build *b, const op_case *c) {
    val row = VAL_NONE, p = VAL_NONE, w = VAL_NONE;
    val a = case_matrix(b, "a", EXT_N, 0, c->a, c->c & SAMPLED_A, true, CASE_NORMAL(0, 1));
    if (c->b & WITH_ROW)
        row =
            case_matrix(b, "row", EXT_FIXED, 1, c->a, c->c & SAMPLED_ROW, true, CASE_NORMAL(0, 1));
    if (c->b & WITH_P) {
        bool sampled = c->c & SAMPLED_P;
        p = c->b & WIDE_P ? case_matrix(b, "p", EXT_N, 0, 1, sampled, true, CASE_NORMAL(0, 1))
                          : case_scalars(b, "p", EXT_N, sampled, true, CASE_NORMAL(0, 1));
        w = case_weight(b, "w", 1, c->a, 1.0);
    }
    if (c->b & TWICE) case_output(b, op_join(b->g, a, row, p, w, ACT_NONE));
    case_output(b, op_join(b->g, a, row, p, w, c->b & WITH_RELU ? ACT_RELU : ACT_NONE));
}

#define ALL_PARTS   (WITH_ROW | WITH_P | WITH_RELU)
#define ALL_SAMPLED (SAMPLED_A | SAMPLED_ROW | SAMPLED_P)
static const op_case cases[] = {
    {"a + p w, 192", 128, 50, 1, 192, WITH_P, SAMPLED_P, 0, CASE_BENCH, 2.0 * 128 * 192, 0},
    {"a + row, relu, 128", 128, 50, 1, 128, WITH_ROW | WITH_RELU, SAMPLED_ROW, 0, CASE_BENCH,
     2.0 * 128 * 128, 0},
    {"a + row, 8 samples", 128, 50, 8, 128, WITH_ROW | WITH_RELU, SAMPLED_ROW, 0, CASE_BENCH,
     16.0 * 128 * 128, 0},
    {"one point, one column", 1, 0, 1, 1, ALL_PARTS, ALL_SAMPLED, 0, 0, 0, 0},
    {"a alone", 7, 7, 2, 5, WITH_RELU, SAMPLED_A, 0, 0, 0, 0},
    {"all, nothing sampled", 33, 12, 1, 17, ALL_PARTS, 0, 0, 0, 0, 0},
    {"shared a", 13, 5, 3, 21, ALL_PARTS, SAMPLED_ROW | SAMPLED_P, 0, 0, 0, 0},
    {"shared row and p", 6, 6, 4, 19, ALL_PARTS, SAMPLED_A, 0, 0, 0, 0},
    {"shared a and p", 9, 2, 3, 33, WITH_ROW | WITH_P, SAMPLED_ROW, 0, 0, 0, 0},
    {"p in a matrix", 9, 2, 3, 18, WITH_P | WIDE_P, SAMPLED_A | SAMPLED_P, 0, 0, 0, 0},
    {"shared p in a matrix", 9, 2, 3, 18, WITH_P | WIDE_P | WITH_RELU, SAMPLED_A, 0, 0, 0, 0},
    {"two readers", 7, 2, 3, 18, ALL_PARTS | TWICE, SAMPLED_P, 0, 0, 0, 0},
    {"two readers, matrix", 7, 2, 2, 18, ALL_PARTS | TWICE | WIDE_P, SAMPLED_A, 0, 0, 0, 0},
    {"n = 1000", 1000, 400, 2, 48, ALL_PARTS, ALL_SAMPLED, 0, CASE_NO_FD, 0, 0},
    {"n = 8192", 8192, 4096, 1, 16, ALL_PARTS, 0, 0, CASE_NO_FD | CASE_LARGE, 0, 0},
};

const op_def op_join_def = {.name = "join",
                            .grad = grad_join,
                            .ref = ref_join,
                            .build = build,
                            .cases = cases,
                            .n_cases = sizeof cases / sizeof *cases};
const op_def op_join_grad_def = {.name = "join_grad", .ref = ref_join_grad};
