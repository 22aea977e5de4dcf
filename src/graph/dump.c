/* dump.c: a plan as text, for people. */
#include "graph/plan.h"

static const char *extent_name(const value *v, char *scratch, size_t size) {
    const char *s = v->sampled ? "S," : "";
    if (v->ext == EXT_FIXED)
        snprintf(scratch, size, "(%s%d,%d)", s, v->rows, v->cols);
    else
        snprintf(scratch, size, "(%s%s,%d)", s,
                 v->ext == EXT_N   ? "n"
                 : v->ext == EXT_M ? "m"
                                   : "k",
                 v->cols);
    return scratch;
}

static void print_value(const plan *p, val id, buf *to) {
    const value *v = &p->values[id];
    char shape[48];
    static const char *const mark[] = {"", "'", "d'", "~"};
    buf_printf(to, " %s%s.%d%s", mark[v->store], v->name ? v->name : "?", id,
               extent_name(v, shape, sizeof shape));
}

void plan_dump(const plan *p, const char *(*op_name)(int32_t op), buf *to) {
    for (int32_t k = 0; k < p->n_instrs; k++) {
        const instr *ins = &p->instrs[k];
        if (k == p->n_function) buf_printf(to, "-- once per step --\n");
        buf_printf(to, "%4d %-18s", k, op_name(ins->op));
        for (int j = 0; j < INSTR_IN; j++)
            if (ins->in[j] != VAL_NONE) print_value(p, ins->in[j], to);
        buf_printf(to, "  ->");
        for (int j = 0; j < INSTR_OUT; j++) {
            if (ins->out[j] == VAL_NONE) continue;
            print_value(p, ins->out[j], to);
            if (ins->acc >> j & 1u) buf_printf(to, "+");
        }
        buf_printf(to, "\n");
    }
    buf_printf(to, "arena %lld kB a worker, weights %lld kB\n", (long long)p->act_words / 250,
               (long long)p->params->words / 250);
}
