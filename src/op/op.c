/* op.c: the table of ops, and the walk that appends the reverse pass. */
#include "op/op.h"

#define OP(name) extern const op_def op_##name##_def;
#include "op/ops.def"
#undef OP

const op_def *op_at(int32_t id) {
    static const op_def *const table[OP_COUNT] = {
#define OP(name) [OP_##name] = &op_##name##_def,
#include "op/ops.def"
#undef OP
    };
    return id >= 0 && id < OP_COUNT ? table[id] : NULL;
}

const char *op_name(int32_t id) {
    const op_def *d = op_at(id);
    return d ? d->name : "(unknown op)";
}

bool op_is_step(int32_t id) {
    const op_def *d = op_at(id);
    return d && d->phase != PHASE_FUNCTION;
}

/* The objective's own gradient is one. */
static void seed(graph *g, val objective) {
    instr *ins = graph_append(g, OP_fill_one);
    if (ins) graph_wire_grad(g, ins, 0, objective);
}

static bool reached(const graph *g, const instr *ins) {
    for (int j = 0; j < INSTR_OUT; j++)
        if (graph_grad(g, ins->out[j]) != VAL_NONE) return true;
    return false;
}

void op_append_grad(graph *g, val objective) {
    if (!graph_ok(g)) return;
    if (!graph_at(g, objective)->needs_grad) {
        graph_fail(g, "the objective depends on no trainable weight");
        return;
    }
    graph_merge(g);
    int32_t recorded = g->n_instrs;
    seed(g, objective);
    for (int32_t k = recorded - 1; k >= 0 && graph_ok(g); k--) {
        const instr fwd = g->instrs[k]; /* a copy: appending may move the list */
        if (!reached(g, &fwd)) continue;
        const op_def *d = op_at(fwd.op);
        if (d->grad)
            d->grad(g, &fwd);
        else
            graph_fail(g, "op '%s' has no gradient", d->name);
    }
}
