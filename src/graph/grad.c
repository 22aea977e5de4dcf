/* grad.c: where gradients live. Gradients that meet (a value with several readers) are added in a
 * fixed order: the first writer overwrites, later ones accumulate. The walk over the ops' own rules
 * is op_append_grad() in op/op.c: this folder knows no op by name. */
#include "graph/graph.h"

val graph_grad(const graph *g, val v) {
    return graph_at(g, v)->grad;
}

static val make_grad(graph *g, val v) {
    val made = graph_scalars(g, graph_at(g, v)->name, EXT_FIXED, 1, false);
    if (made == VAL_NONE) return VAL_NONE;
    value like = g->values[v];
    like.store = like.store == STORE_PARAM ? STORE_PGRAD : STORE_ACT;
    like.grad = VAL_NONE;
    like.needs_grad = false;
    g->values[made] = like;
    g->values[v].grad = made;
    return made;
}

/* Where to put the gradient of input v: made on first use. VAL_NONE if v needs none. *acc says
 * whether something is there already (then the op must add). */
static val grad_to(graph *g, val v, bool *acc) {
    *acc = false;
    const value *at = graph_at(g, v);
    if (v == VAL_NONE || !at->needs_grad || !graph_ok(g)) return VAL_NONE;
    /* A slot's weight gradients collect over the functions of a batch: always added to. */
    *acc = at->store == STORE_PARAM || at->grad != VAL_NONE;
    return at->grad != VAL_NONE ? at->grad : make_grad(g, v);
}

void graph_wire_grad(graph *g, instr *ins, int output, val v) {
    if (!ins) return;
    bool acc = false;
    ins->out[output] = grad_to(g, v, &acc);
    if (acc) ins->acc |= 1u << output;
}
