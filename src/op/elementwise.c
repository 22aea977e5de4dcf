/* elementwise.c: add and scale, element by element.               a, b and y (R,C)
 *
 *   add:   y = a + b               da += g,    db += g
 *   scale: y = factor a + shift    da += factor g
 *
 * b may be shared over the samples of a (or a over those of b: the two change places); its
 * gradient is then the sum over samples. Works on matrices, numbers per row and double scalars, but
 * not on a mixture of float and double. */
#include "op/elementwise.h"

#include "op/op.h"

/* A fresh value of v's kind. */
static val like(graph *g, const char *name, const value *v) {
    if (v->type == TYPE_F64) {
        if (v->ext != EXT_FIXED || v->rows != 1 || v->cols != 1)
            graph_fail(g, "%s: %s is not a single double", name, v->name);
        return graph_scalar(g, name, v->sampled);
    }
    return v->ld == 1 ? graph_scalars(g, name, v->ext, v->rows, v->sampled)
                      : graph_matrix(g, name, v->ext, v->rows, v->cols, v->sampled);
}

val op_add(graph *g, val a, val b) {
    if (!graph_ok(g)) return VAL_NONE;
    value va = *graph_at(g, a), vb = *graph_at(g, b);
    if (va.ext != vb.ext || va.rows != vb.rows || va.cols != vb.cols || va.type != vb.type) {
        graph_fail(g, "add: %s and %s do not have the same shape", va.name, vb.name);
        return VAL_NONE;
    }
    if (vb.sampled && !va.sampled) return op_add(g, b, a);
    val y = like(g, "add", &va);
    instr *ins = graph_append(g, OP_add);
    if (!ins) return VAL_NONE;
    ins->in[ELEMENT_A] = a, ins->in[ELEMENT_B] = b, ins->out[0] = y;
    graph_done(g, ins);
    return y;
}

static void record_grad(graph *g, const instr *fwd, bool to_a, bool to_b) {
    instr *ins = graph_append(g, OP_add_grad);
    if (!ins) return;
    ins->in[ELEMENT_GRAD_G] = graph_grad(g, fwd->out[0]);
    if (to_a) graph_wire_grad(g, ins, ELEMENT_GA, fwd->in[ELEMENT_A]);
    if (to_b) graph_wire_grad(g, ins, ELEMENT_GB, fwd->in[ELEMENT_B]);
}

static void grad_add(graph *g, const instr *fwd) {
    bool same = fwd->in[ELEMENT_A] == fwd->in[ELEMENT_B]; /* then one after the other */
    record_grad(g, fwd, true, !same);
    if (same) record_grad(g, fwd, false, true);
}

val op_scale(graph *g, val a, double factor, double shift) {
    if (!graph_ok(g)) return VAL_NONE;
    value va = *graph_at(g, a);
    val y = like(g, "scale", &va);
    instr *ins = graph_append(g, OP_scale);
    if (!ins) return VAL_NONE;
    ins->in[0] = a, ins->out[0] = y;
    ins->f[SCALE_FACTOR] = factor, ins->f[SCALE_SHIFT] = shift;
    graph_done(g, ins);
    return y;
}

static void grad_scale(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_scale_grad);
    if (!ins) return;
    ins->in[0] = graph_grad(g, fwd->out[0]);
    ins->f[SCALE_FACTOR] = fwd->f[SCALE_FACTOR];
    graph_wire_grad(g, ins, 0, fwd->in[0]);
}

/* ---- reference ------------------------------------------------------------------------------- */

static void ref_add(ref_run *r) {
    ref_array a = ref_in(r, ELEMENT_A), b = ref_in(r, ELEMENT_B), y = ref_out(r, 0);
    if (r->failed) return;
    for (int64_t s = 0; s < y.samples; s++)
        for (int64_t i = 0; i < y.rows; i++)
            for (int64_t c = 0; c < y.cols; c++)
                *ref_el(y, s, i, c) += *ref_el(a, s, i, c) + *ref_el(b, s, i, c);
}

static void ref_add_grad(ref_run *r) {
    ref_array gy = ref_in(r, ELEMENT_GRAD_G);
    ref_array ga = ref_out(r, ELEMENT_GA), gb = ref_out(r, ELEMENT_GB);
    if (r->failed) return;
    for (int64_t s = 0; s < gy.samples; s++)
        for (int64_t i = 0; i < gy.rows; i++)
            for (int64_t c = 0; c < gy.cols; c++) {
                double d = *ref_el(gy, s, i, c);
                if (ga.at) *ref_el(ga, s, i, c) += d;
                if (gb.at) *ref_el(gb, s, i, c) += d;
            }
}

static void ref_scale(ref_run *r) {
    ref_array a = ref_in(r, 0), y = ref_out(r, 0);
    for (int64_t i = 0; !r->failed && i < y.samples * y.rows * y.cols; i++)
        y.at[i] += r->ins->f[SCALE_FACTOR] * a.at[i] + r->ins->f[SCALE_SHIFT];
}

static void ref_scale_grad(ref_run *r) {
    ref_array gy = ref_in(r, 0), ga = ref_out(r, 0);
    for (int64_t i = 0; !r->failed && i < gy.samples * gy.rows * gy.cols; i++)
        ga.at[i] += r->ins->f[SCALE_FACTOR] * gy.at[i];
}

/* ---- cases: a = columns, b = kind -------------------------------------------------------------
 */

enum { PLAIN, SHARED_A, SHARED_B, NUMBERS, MIXED, DOUBLES, TWICE };

static val operand(case_build *b, const op_case *c, const char *name, bool sampled) {
    if (c->b == NUMBERS || c->b == DOUBLES || (c->b == MIXED && name[0] == 'a')) {
        val v = case_scalars(b, name, EXT_N, sampled, true, CASE_NORMAL(0, 1));
        return c->b == DOUBLES ? op_sum_rows(b->g, v, ROWS_ALL) : v;
    }
    return case_matrix(b, name, EXT_N, 0, c->b == MIXED ? 1 : c->a, sampled, true,
                       CASE_NORMAL(0, 1));
}

static void build_add(case_build *b, const op_case *c) {
    val u = operand(b, c, "a", c->S > 1 && c->b != SHARED_A);
    val v = c->b == TWICE ? u : operand(b, c, "b", c->S > 1 && c->b != SHARED_B);
    case_output(b, op_add(b->g, u, v));
}

static void build_scale(case_build *b, const op_case *c) {
    case_output(b, op_scale(b->g, operand(b, c, "a", c->S > 1), -1.75, 0.3));
}

static const op_case cases[] = {
    {"128 columns", 128, 50, 1, 128, PLAIN, 0, 0, CASE_BENCH, 0, 0},
    {"one point", 1, 0, 1, 5, PLAIN, 0, 0, 0, 0, 0},
    {"numbers", 33, 33, 3, 1, NUMBERS, 0, 0, 0, 0, 0},
    {"number and column", 7, 0, 2, 1, MIXED, 0, 0, 0, 0, 0},
    {"doubles", 7, 2, 3, 1, DOUBLES, 0, 0, 0, 0, 0},
    {"shared a", 9, 0, 4, 17, SHARED_A, 0, 0, 0, 0, 0},
    {"shared b", 9, 3, 4, 33, SHARED_B, 0, 0, 0, 0, 0},
    {"with itself", 9, 3, 2, 5, TWICE, 0, 0, 0, 0, 0},
    {"n = 1000", 1000, 400, 1, 64, PLAIN, 0, 0, CASE_NO_FD, 0, 0},
};

#define CASES .cases = cases, .n_cases = sizeof cases / sizeof *cases
const op_def op_add_def = {
    .name = "add", .grad = grad_add, .ref = ref_add, .build = build_add, CASES};
const op_def op_scale_def = {
    .name = "scale", .grad = grad_scale, .ref = ref_scale, .build = build_scale, CASES};
const op_def op_add_grad_def = {.name = "add_grad", .ref = ref_add_grad};
const op_def op_scale_grad_def = {.name = "scale_grad", .ref = ref_scale_grad};
