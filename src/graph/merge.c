/* merge.c: what depends on weights alone is computed once, however often it was recorded: the
 * query of a learned seed, for one, is the same at every step of a chain. */
#include <string.h>

#include "graph/graph.h"

static bool from_weights(const graph *g, const instr *ins) {
    bool any = false;
    for (int j = 0; j < INSTR_IN; j++) {
        if (ins->in[j] == VAL_NONE) continue;
        if (graph_at(g, ins->in[j])->store != STORE_PARAM) return false;
        any = true;
    }
    for (int j = 0; j < INSTR_OUT; j++)
        if (ins->out[j] != VAL_NONE && graph_at(g, ins->out[j])->store != STORE_ACT) return false;
    return any && ins->acc == 0;
}

/* Of twins of which one passes no gradient on, both stay. */
static bool same_work(const graph *g, const instr *a, const instr *b) {
    bool same = a->op == b->op && memcmp(a->in, b->in, sizeof a->in) == 0 &&
                memcmp(a->i, b->i, sizeof a->i) == 0;
    for (int j = 0; j < INSTR_REAL; j++) same &= a->f[j] == b->f[j];
    for (int j = 0; j < INSTR_OUT; j++) {
        same &= (a->out[j] == VAL_NONE) == (b->out[j] == VAL_NONE);
        same &= graph_at(g, a->out[j])->needs_grad == graph_at(g, b->out[j])->needs_grad;
    }
    return same;
}

static void replace(graph *g, int32_t from, val old, val by) {
    for (int32_t k = from; k < g->n_instrs && old != VAL_NONE; k++)
        for (int j = 0; j < INSTR_IN; j++)
            if (g->instrs[k].in[j] == old) g->instrs[k].in[j] = by;
}

void graph_merge(graph *g) {
    int32_t kept = 0;
    for (int32_t k = 0; k < g->n_instrs; k++) {
        const instr ins = g->instrs[k];
        int32_t twin = from_weights(g, &ins) ? 0 : kept;
        while (twin < kept && !same_work(g, &g->instrs[twin], &ins)) twin++;
        if (twin == kept) {
            g->instrs[kept++] = ins;
            continue;
        }
        for (int j = 0; j < INSTR_OUT; j++) replace(g, k + 1, ins.out[j], g->instrs[twin].out[j]);
    }
    g->n_instrs = kept;
}
