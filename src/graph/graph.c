/* graph.c: recording values and instructions. See graph.h. */
#include "graph/graph.h"

#include <string.h>

void graph_init(graph *g, env *e, params *p) {
    *g = (graph){.env = e, .params = p};
}

void graph_free(graph *g) {
    env_free(g->env, g->values);
    env_free(g->env, g->instrs);
    graph_init(g, g->env, g->params);
}

bool graph_ok(const graph *g) {
    return g->status == MNP_OK;
}

mnp_status graph_fail(graph *g, const char *fmt, ...) {
    if (g->status != MNP_OK) return g->status; /* the first error is the one to report */
    va_list ap;
    va_start(ap, fmt);
    char text[ENV_ERROR_MAX];
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return g->status = env_fail(g->env, MNP_EINVAL, "%s", text);
}

const value *graph_at(const graph *g, val v) {
    static const value absent = {.name = "(none)", .grad = VAL_NONE};
    return v >= 0 && v < g->n_values ? &g->values[v] : &absent;
}

/* ---- values ---------------------------------------------------------------------------------- */

static val add_value(graph *g, value fresh) {
    if (!graph_ok(g)) return VAL_NONE;
    if (g->n_values == g->cap_values) {
        int32_t cap = g->cap_values ? 2 * g->cap_values : 256;
        value *list =
            env_grow(g->env, g->values, (size_t)g->cap_values, (size_t)cap, sizeof *list, "values");
        if (!list) {
            g->status = MNP_ENOMEM;
            return VAL_NONE;
        }
        g->values = list;
        g->cap_values = cap;
    }
    fresh.grad = VAL_NONE;
    fresh.offset = -1;
    g->values[g->n_values] = fresh;
    return g->n_values++;
}

static val add_act(graph *g, const char *name, extent ext, int32_t rows, int32_t cols, int32_t ld,
                   bool sampled, dtype type) {
    if (cols < 1 || (ext == EXT_FIXED && rows < 1)) {
        graph_fail(g, "value '%s' would have %d rows and %d columns", name, rows, cols);
        return VAL_NONE;
    }
    return add_value(g, (value){.name = name,
                                .store = STORE_ACT,
                                .type = type,
                                .ext = ext,
                                .rows = ext == EXT_FIXED ? rows : 0,
                                .cols = cols,
                                .ld = ld,
                                .sampled = sampled,
                                .param = -1});
}

val graph_matrix(graph *g, const char *name, extent ext, int32_t rows, int32_t cols, bool sampled) {
    return add_act(g, name, ext, rows, cols, graph_pad(cols), sampled, TYPE_F32);
}

val graph_scalars(graph *g, const char *name, extent ext, int32_t rows, bool sampled) {
    return add_act(g, name, ext, rows, 1, 1, sampled, TYPE_F32);
}

val graph_scalar(graph *g, const char *name, bool sampled) {
    return add_act(g, name, EXT_FIXED, 1, 1, 1, sampled, TYPE_F64);
}

val graph_param(graph *g, const char *name, int32_t rows, int32_t cols, param_init init) {
    if (!graph_ok(g)) return VAL_NONE;
    int32_t index = -1;
    g->status = params_get(g->env, g->params, name, rows, cols, init, &index);
    if (!graph_ok(g)) return VAL_NONE;
    for (val v = 0; v < g->n_values; v++) /* one value per weight, so gradients meet */
        if (g->values[v].store == STORE_PARAM && g->values[v].param == index) return v;
    return add_value(g, (value){.name = g->params->list[index].name,
                                .store = STORE_PARAM,
                                .type = TYPE_F32,
                                .ext = EXT_FIXED,
                                .rows = rows,
                                .cols = cols,
                                .ld = graph_pad(cols),
                                .needs_grad = !init.frozen && !g->frozen,
                                .param = index});
}

/* ---- instructions ---------------------------------------------------------------------------- */

instr *graph_append(graph *g, int32_t op) {
    if (!graph_ok(g)) return NULL;
    if (g->n_instrs == g->cap_instrs) {
        int32_t cap = g->cap_instrs ? 2 * g->cap_instrs : 256;
        instr *list = env_grow(g->env, g->instrs, (size_t)g->cap_instrs, (size_t)cap, sizeof *list,
                               "instructions");
        if (!list) {
            g->status = MNP_ENOMEM;
            return NULL;
        }
        g->instrs = list;
        g->cap_instrs = cap;
    }
    instr *ins = &g->instrs[g->n_instrs++];
    *ins = (instr){.op = op};
    for (int j = 0; j < INSTR_IN; j++) ins->in[j] = VAL_NONE;
    for (int j = 0; j < INSTR_OUT; j++) ins->out[j] = VAL_NONE;
    return ins;
}

void graph_done(graph *g, instr *ins) {
    bool needs = false;
    if (g->detached) return;
    for (int j = 0; j < INSTR_IN; j++) needs |= graph_at(g, ins->in[j])->needs_grad;
    for (int j = 0; j < INSTR_OUT; j++)
        if (ins->out[j] != VAL_NONE) g->values[ins->out[j]].needs_grad |= needs;
}
