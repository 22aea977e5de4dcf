/* plan.c: lifetimes and offsets. Activations whose lifetimes do not overlap share memory: values
 * are placed largest first, each at the lowest gap that is free for its whole life. */
#include "graph/plan.h"

#include <stdlib.h>
#include <string.h>

typedef struct life {
    val v;
    int32_t first, last; /* instructions that write and read it */
    int64_t words;
} life;

static int64_t rows_at_capacity(const plan *p, const value *v) {
    int64_t rows = plan_rows(p, v->ext, v->rows);
    return v->sampled ? rows * p->opts.samples : rows;
}

int64_t plan_words(const plan *p, const value *v) {
    int64_t elements = rows_at_capacity(p, v) * v->ld;
    int64_t words = v->type == TYPE_F64 ? 2 * elements : elements;
    return (words + 15) / 16 * 16; /* every value starts on a cache line */
}

static void touch(life *lives, val v, int32_t at) {
    if (v == VAL_NONE) return;
    if (lives[v].first < 0) lives[v].first = at;
    lives[v].last = at;
}

static void find_lives(const plan *p, life *lives) {
    for (val v = 0; v < p->n_values; v++)
        lives[v] = (life){v, -1, -1, plan_words(p, &p->values[v])};
    for (int32_t k = 0; k < p->n_function; k++) {
        for (int j = 0; j < INSTR_IN; j++) touch(lives, p->instrs[k].in[j], k);
        for (int j = 0; j < INSTR_OUT; j++) touch(lives, p->instrs[k].out[j], k);
    }
}

static int larger_first(const void *a, const void *b) {
    const life *x = a, *y = b;
    if (x->words != y->words) return x->words < y->words ? 1 : -1;
    return x->v < y->v ? -1 : 1;
}

static bool overlap(const life *a, const life *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest offset at which `it` fits among those already placed (sorted by offset). */
static int64_t lowest_gap(const plan *p, const life *placed, int32_t count, const life *it) {
    int64_t at = 0;
    for (int32_t j = 0; j < count; j++) {
        if (!overlap(&placed[j], it)) continue;
        int64_t start = p->values[placed[j].v].offset;
        if (start >= at + it->words) break;
        if (start + placed[j].words > at) at = start + placed[j].words;
    }
    return at;
}

static void place_acts(plan *p, life *lives, life *placed) {
    qsort(lives, (size_t)p->n_values, sizeof *lives, larger_first);
    int32_t count = 0;
    int64_t end = 0;
    for (int32_t k = 0; k < p->n_values; k++) {
        value *v = &p->values[lives[k].v];
        if (v->store != STORE_ACT || lives[k].first < 0) continue;
        v->offset = lowest_gap(p, placed, count, &lives[k]);
        if (v->offset + lives[k].words > end) end = v->offset + lives[k].words;
        int32_t at = count++;
        for (; at > 0 && p->values[placed[at - 1].v].offset > v->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = lives[k];
    }
    p->act_words = end;
}

static mnp_status place(plan *p) {
    for (val k = 0; k < p->n_values; k++) {
        value *v = &p->values[k];
        if (v->store == STORE_PARAM || v->store == STORE_PGRAD)
            v->offset = p->params->list[v->param].offset;
    }
    life *lives = env_alloc(p->env, (size_t)p->n_values + 1, 2 * sizeof *lives, "the planner");
    if (!lives) return MNP_ENOMEM;
    find_lives(p, lives);
    place_acts(p, lives, lives + p->n_values);
    env_free(p->env, lives);
    return MNP_OK;
}

/* Instructions of the step go after those of the function, each group in recorded order. */
static void split_phases(plan *p, const graph *g, bool (*is_step)(int32_t)) {
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t k = 0; k < g->n_instrs; k++)
            if (is_step(g->instrs[k].op) == (pass == 1)) p->instrs[p->n_instrs++] = g->instrs[k];
        if (pass == 0) p->n_function = p->n_instrs;
    }
}

/* ---- dead instructions ----------------------------------------------------------------------- */

/* Does it act on something that outlives the function: a caller's buffer, a slot? */
static bool has_effect(const plan *p, const instr *ins) {
    bool writes = false;
    for (int j = 0; j < INSTR_OUT; j++) {
        if (ins->out[j] == VAL_NONE) continue;
        if (p->values[ins->out[j]].store != STORE_ACT) return true;
        writes = true;
    }
    return !writes;
}

/* Drop what nobody reads: a model may record more than an objective needs. */
static mnp_status drop_dead(plan *p) {
    bool *read = env_alloc(p->env, (size_t)p->n_values + 1, sizeof *read, "the planner");
    bool *keep = env_alloc(p->env, (size_t)p->n_instrs + 1, sizeof *keep, "the planner");
    if (read && keep) {
        for (int32_t k = p->n_instrs - 1; k >= 0; k--) {
            const instr *ins = &p->instrs[k];
            keep[k] = has_effect(p, ins);
            for (int j = 0; j < INSTR_OUT; j++)
                keep[k] |= ins->out[j] != VAL_NONE && read[ins->out[j]];
            for (int j = 0; keep[k] && j < INSTR_IN; j++)
                if (ins->in[j] != VAL_NONE) read[ins->in[j]] = true;
        }
        int32_t kept = 0, functions = 0;
        for (int32_t k = 0; k < p->n_instrs; k++) {
            if (!keep[k]) continue;
            if (k < p->n_function) functions++;
            p->instrs[kept++] = p->instrs[k];
        }
        p->n_instrs = kept;
        p->n_function = functions;
    }
    mnp_status status = read && keep ? MNP_OK : MNP_ENOMEM;
    env_free(p->env, read);
    env_free(p->env, keep);
    return status;
}

static mnp_status check_opts(graph *g, const plan_opts *o) {
    if (o->n < 1 || o->m < 0 || o->m > o->n || o->samples < 1)
        return env_fail(g->env, MNP_EINVAL, "a plan for n=%lld, m=%lld, S=%lld is impossible",
                        (long long)o->n, (long long)o->m, (long long)o->samples);
    if (o->n > INT32_MAX / 64 || o->samples > INT32_MAX / 64 || o->n * o->samples > INT64_MAX >> 24)
        return env_fail(g->env, MNP_EINVAL, "a plan for %lld points and %lld samples is too large",
                        (long long)o->n, (long long)o->samples);
    return MNP_OK;
}

mnp_status plan_make(graph *g, const plan_opts *opts, bool (*is_step)(int32_t op), plan **out) {
    *out = NULL;
    MNP_TRY(g->status);
    MNP_TRY(check_opts(g, opts));
    graph_merge(g);
    params_seal(g->params);
    plan *p = env_alloc(g->env, 1, sizeof *p, "a plan");
    if (!p) return MNP_ENOMEM;
    *p = (plan){.env = g->env, .opts = *opts, .params = g->params, .n_values = g->n_values};
    p->n_feeds = g->n_feeds;
    p->n_emits = g->n_emits;
    p->values = env_alloc(g->env, (size_t)g->n_values + 1, sizeof *p->values, "a plan's values");
    p->instrs = env_alloc(g->env, (size_t)g->n_instrs + 1, sizeof *p->instrs, "a plan's code");
    mnp_status status = p->values && p->instrs ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) {
        if (g->n_values) memcpy(p->values, g->values, (size_t)g->n_values * sizeof *p->values);
        split_phases(p, g, is_step);
        status = drop_dead(p);
        if (status == MNP_OK) status = place(p);
    }
    if (status != MNP_OK) {
        plan_destroy(p);
        return status;
    }
    *out = p;
    return MNP_OK;
}

void plan_destroy(plan *p) {
    if (!p) return;
    env_free(p->env, p->values);
    env_free(p->env, p->instrs);
    env_free(p->env, p);
}
