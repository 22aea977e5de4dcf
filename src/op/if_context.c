/* if_context.c: what stands for the context when there is none.        x, empty and y (1,C)
 *
 *   y[s,0,:] = x[s,0,:] when m > 0, otherwise empty[0,:]
 *
 * m is run-time data, so both branches are recorded and one is read. Reverse: the gradient goes to
 * the one that was used, the other gets zeros (or nothing, where it is added to). */
#include "op/if_context.h"

#include "op/op.h"

val op_if_context(graph *g, val x, val empty) {
    if (!graph_ok(g)) return VAL_NONE;
    value vx = *graph_at(g, x), ve = *graph_at(g, empty);
    if (vx.ext != EXT_FIXED || vx.rows != 1 || ve.ext != EXT_FIXED || ve.rows != 1 ||
        vx.cols != ve.cols || x == empty || vx.type != TYPE_F32 || ve.type != TYPE_F32) {
        graph_fail(g, "if_context: %s and %s are not two single rows of equal width", vx.name,
                   ve.name);
        return VAL_NONE;
    }
    val y = graph_matrix(g, "if_context", EXT_FIXED, 1, vx.cols, vx.sampled || ve.sampled);
    instr *ins = graph_append(g, OP_if_context);
    if (!ins) return VAL_NONE;
    ins->in[IF_CONTEXT_X] = x, ins->in[IF_CONTEXT_EMPTY] = empty, ins->out[0] = y;
    graph_done(g, ins);
    return y;
}

static void grad_if_context(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_if_context_grad);
    if (!ins) return;
    ins->in[0] = graph_grad(g, fwd->out[0]);
    graph_wire_grad(g, ins, IF_CONTEXT_GX, fwd->in[IF_CONTEXT_X]);
    graph_wire_grad(g, ins, IF_CONTEXT_GEMPTY, fwd->in[IF_CONTEXT_EMPTY]);
}

/* ---- reference ------------------------------------------------------------------------------- */

static void ref_if_context(ref_run *r) {
    ref_array used = ref_in(r, r->f->m > 0 ? IF_CONTEXT_X : IF_CONTEXT_EMPTY), y = ref_out(r, 0);
    if (r->failed) return;
    for (int64_t s = 0; s < y.samples; s++)
        for (int64_t c = 0; c < y.cols; c++) *ref_el(y, s, 0, c) += *ref_el(used, s, 0, c);
}

static void ref_if_context_grad(ref_run *r) {
    ref_array gy = ref_in(r, 0);
    ref_array used = ref_out(r, r->f->m > 0 ? IF_CONTEXT_GX : IF_CONTEXT_GEMPTY);
    if (r->failed || !used.at) return;
    for (int64_t s = 0; s < gy.samples; s++)
        for (int64_t c = 0; c < gy.cols; c++) *ref_el(used, s, 0, c) += *ref_el(gy, s, 0, c);
}

/* ---- cases: a = columns, b: x is shared, c: `empty` is sampled --------------------------------
 */

static void build(case_build *b, const op_case *c) {
    val x = case_matrix(b, "x", EXT_FIXED, 1, c->a, c->S > 1 && !c->b, true, CASE_NORMAL(0, 1));
    val e = c->c ? case_matrix(b, "empty", EXT_FIXED, 1, c->a, true, true, CASE_NORMAL(0, 1))
                 : case_weight(b, "empty", 1, c->a, 0.5);
    case_output(b, op_if_context(b->g, x, e));
}

static const op_case cases[] = {
    {"context", 8, 3, 1, 64, 0, 0, 0, 0, 0, 0},
    {"no context", 8, 0, 1, 64, 0, 0, 0, 0, 0, 0},
    {"samples, context", 1, 1, 4, 17, 0, 0, 0, 0, 0, 0},
    {"samples, no context", 1, 0, 4, 17, 0, 0, 0, 0, 0, 0},
    {"shared x, context", 8, 8, 3, 5, 1, 1, 0, 0, 0, 0},
    {"shared x, no context", 8, 0, 3, 5, 1, 1, 0, 0, 0, 0},
};

const op_def op_if_context_def = {.name = "if_context",
                                  .grad = grad_if_context,
                                  .ref = ref_if_context,
                                  .build = build,
                                  .cases = cases,
                                  .n_cases = sizeof cases / sizeof *cases};
const op_def op_if_context_grad_def = {.name = "if_context_grad", .ref = ref_if_context_grad};
