/* match.c: see fuse.h. Patterns are tried at every instruction that may be their anchor; each
 * further step is the one instruction that agrees with the operands found so far. */
#include "backend/cuda/fuse/fuse.h"

#include <string.h>

#include "op/op.h"

typedef struct search {
    const plan *plan;
    const task *tasks;
    int64_t *where, *words;
    int32_t *owner; /* (n_function) part that has the instruction, -1: none */
    fuse_list *list;
    int32_t *members; /* (FUSE_OPERANDS) instructions of the present match, by step */
} search;

/* ---- matching -------------------------------------------------------------------------------- */

static bool has_shape(const search *s, const fuse_pattern *f, uint8_t operand, val v) {
    const value *at = &s->plan->values[v];
    for (int32_t k = 0; k < f->n_shapes; k++) {
        const fuse_shape *want = &f->shapes[k];
        if (want->operand == operand)
            return at->ext == want->ext && at->cols == want->cols &&
                   (at->ext != EXT_FIXED || at->rows == want->rows) &&
                   (!want->weight || at->store == STORE_PARAM);
    }
    return true;
}

/* The operand is this value: it was before, or is from now on. */
static bool bind(const search *s, const fuse_pattern *f, uint8_t code, val v, val *operand) {
    if (code == FUSE_ABSENT) return v == VAL_NONE;
    const uint8_t k = code & (FUSE_MAYBE - 1);
    if (v == VAL_NONE) return (code & FUSE_MAYBE) != 0;
    if (operand[k] != VAL_NONE) return operand[k] == v;
    operand[k] = v;
    return has_shape(s, f, k, v);
}

static bool attributes_fit(const search *s, const fuse_step *step, const instr *ins) {
    const instr *first = &s->plan->instrs[s->members[0]];
    for (int j = 0; j < step->n_ints; j++)
        if (step->ints[j] != FUSE_ANY && ins->i[j] != step->ints[j]) return false;
    if (step->real != 0 && ins->f[0] != step->real) return false;
    return !step->as_first || (ins->i[0] == first->i[0] && ins->f[0] == first->f[0]);
}

static bool step_fits(const search *s, const fuse_pattern *f, const fuse_step *step, int32_t at,
                      val operand[FUSE_OPERANDS]) {
    const instr *ins = &s->plan->instrs[at];
    val bound[FUSE_OPERANDS];
    if (ins->op != step->op || s->owner[at] >= 0 || !attributes_fit(s, step, ins)) return false;
    for (int j = FUSE_IN; j < INSTR_IN; j++)
        if (ins->in[j] != VAL_NONE) return false;
    for (int j = FUSE_OUT; j < INSTR_OUT; j++)
        if (ins->out[j] != VAL_NONE) return false;
    memcpy(bound, operand, sizeof bound);
    bool same = true;
    for (int j = 0; j < FUSE_IN; j++) same = same && bind(s, f, step->in[j], ins->in[j], bound);
    for (int j = 0; j < FUSE_OUT; j++) same = same && bind(s, f, step->out[j], ins->out[j], bound);
    if (same) memcpy(operand, bound, sizeof bound);
    return same;
}

/* The first instruction that fits as step k and is none of the steps before it; -1: there is none.
 */
static int32_t find_step(const search *s, const fuse_pattern *f, int32_t k,
                         val operand[FUSE_OPERANDS]) {
    for (int32_t at = 0; at < s->plan->n_function; at++) {
        bool taken = false;
        for (int32_t j = 0; j < k; j++) taken |= s->members[j] == at;
        if (!taken && step_fits(s, f, &f->steps[k], at, operand)) return at;
    }
    return -1;
}

/* members[0] is the anchor. */
static bool match_steps(search *s, const fuse_pattern *f, fuse_part *part) {
    for (int32_t k = 0; k < FUSE_OPERANDS; k++) part->operand[k] = VAL_NONE;
    if (!step_fits(s, f, &f->steps[0], s->members[0], part->operand)) return false;
    for (int32_t k = 1; k < f->n_steps; k++) {
        s->members[k] = find_step(s, f, k, part->operand);
        if (s->members[k] < 0) return false;
    }
    return true;
}

/* ---- may it be taken? ------------------------------------------------------------------------ */

static bool is_member(const search *s, const fuse_pattern *f, int32_t at) {
    for (int32_t k = 0; k < f->n_steps; k++)
        if (s->members[k] == at) return true;
    return false;
}

/* What stays inside is neither read nor written by anybody else. */
static bool inner_are_private(const search *s, const fuse_pattern *f, const fuse_part *part) {
    for (int32_t at = 0; at < s->plan->n_function; at++) {
        const instr *ins = &s->plan->instrs[at];
        if (is_member(s, f, at)) continue;
        for (int32_t k = FUSE_INNER; k < FUSE_OPERANDS; k++) {
            const val v = part->operand[k];
            if (v == VAL_NONE || s->plan->values[v].store != STORE_ACT) continue;
            for (int j = 0; j < INSTR_IN; j++)
                if (ins->in[j] == v) return false;
            for (int j = 0; j < INSTR_OUT; j++)
                if (ins->out[j] == v) return false;
        }
    }
    return true;
}

/* Which operands are written, and what the first op that writes one does with what is there. */
static void find_outputs(const search *s, const fuse_pattern *f, fuse_part *part) {
    int32_t first[FUSED_OPERANDS];
    for (int32_t k = 0; k < f->n_steps; k++) {
        const fuse_step *step = &f->steps[k];
        const instr *ins = &s->plan->instrs[s->members[k]];
        for (int j = 0; j < FUSE_OUT; j++) {
            const uint8_t operand = step->out[j] & (FUSE_MAYBE - 1);
            if (step->out[j] == FUSE_ABSENT || operand >= FUSED_OPERANDS || ins->out[j] == VAL_NONE)
                continue;
            const uint64_t bit = (uint64_t)1 << operand;
            if ((part->outs & bit) && first[operand] < s->members[k]) continue;
            first[operand] = s->members[k];
            part->outs |= bit;
            part->acc = ins->acc >> j & 1u ? part->acc | bit : part->acc & ~bit;
        }
    }
}

/* What is written is no other operand too (a weight that two layers share): the part would lose
 * one of the two. */
static bool outputs_are_single(const fuse_part *part) {
    for (int a = 0; a < FUSED_OPERANDS; a++)
        for (int b = 0; b < FUSED_OPERANDS && (part->outs >> a & 1u); b++)
            if (a != b && part->operand[a] == part->operand[b]) return false;
    return true;
}

static span span_of(const search *s, val v) {
    const value *at = &s->plan->values[v];
    return (span){(int32_t)at->store, s->where[v], s->where[v] + plan_words(s->plan, at)};
}

static bool meets(const search *s, val v, val w) {
    const span x = span_of(s, v), y = span_of(s, w);
    return x.store == y.store && x.from < y.to && y.from < x.to;
}

/* The plan lets values share memory for ops that run one after the other. What a part writes gets a
 * place of its own where it would lie on something else that the part has. */
static void set_apart(search *s, const fuse_part *part) {
    for (int a = 0; a < FUSED_OPERANDS; a++) {
        const val v = part->operand[a];
        bool alone = true;
        for (int b = 0; b < FUSED_OPERANDS && (part->outs >> a & 1u); b++)
            alone &= a == b || part->operand[b] == VAL_NONE || !meets(s, v, part->operand[b]);
        if (alone) continue;
        s->where[v] = *s->words;
        *s->words += plan_words(s->plan, &s->plan->values[v]);
    }
}

/* ---- its place ------------------------------------------------------------------------------- */

/* Does what unit b touches keep it after instruction a? */
static bool unit_depends(const search *s, int32_t a, int32_t b) {
    if (b >= 0) return schedule_depends(&s->tasks[a], &s->tasks[b]);
    for (int32_t at = 0; at < s->plan->n_function; at++)
        if (s->owner[at] == ~b && schedule_depends(&s->tasks[a], &s->tasks[at])) return true;
    return false;
}
static bool units_depend(const search *s, int32_t a, int32_t b) {
    if (a >= 0) return unit_depends(s, a, b);
    for (int32_t at = 0; at < s->plan->n_function; at++)
        if (s->owner[at] == ~a && unit_depends(s, at, b)) return true;
    return false;
}

static bool depends_on_any(const search *s, const int32_t *units, int32_t count, int32_t b) {
    for (int32_t k = 0; k < count; k++)
        if (units_depend(s, units[k], b)) return true;
    return false;
}

/* The units in a new order with the part at one place: others that do not depend on its ops go
 * before it, the rest after it, and no op may depend on one of those. scratch: 3 lists. */
static bool put_in_place(search *s, const fuse_pattern *f, int32_t *scratch) {
    fuse_list *list = s->list;
    const int32_t most = s->plan->n_function + 1;
    int32_t *head = scratch, *own = scratch + most, *tail = scratch + 2 * most;
    int32_t n_head = 0, n_own = 0, n_tail = 0;
    for (int32_t k = 0; k < list->n_units; k++) {
        const int32_t unit = list->units[k];
        const bool after = depends_on_any(s, tail, n_tail, unit);
        if (unit >= 0 && is_member(s, f, unit)) {
            if (after) return false;
            own[n_own++] = unit;
        } else if (n_own == f->n_steps || after || depends_on_any(s, own, n_own, unit)) {
            tail[n_tail++] = unit;
        } else {
            head[n_head++] = unit;
        }
    }
    memcpy(list->units, head, (size_t)n_head * sizeof *head);
    list->units[n_head] = ~list->n_parts;
    memcpy(list->units + n_head + 1, tail, (size_t)n_tail * sizeof *tail);
    list->n_units = n_head + 1 + n_tail;
    return true;
}

static void try_at(search *s, const fuse_pattern *f, int32_t anchor, int32_t *scratch) {
    fuse_list *list = s->list;
    fuse_part *part = &list->parts[list->n_parts];
    *part = (fuse_part){.pattern = f};
    s->members[0] = anchor;
    if (!match_steps(s, f, part)) return;
    find_outputs(s, f, part);
    if (!inner_are_private(s, f, part) || !outputs_are_single(part)) return;
    if (!put_in_place(s, f, scratch)) return;
    set_apart(s, part);
    for (int32_t k = 0; k < f->n_steps; k++) s->owner[s->members[k]] = list->n_parts;
    part->like = s->members[f->like];
    list->n_parts++;
}

static bool sizes_fit(const plan *p) {
    return p->opts.samples == 1 && p->opts.n <= FUSED_POINTS && p->opts.m <= FUSED_CONTEXT;
}

/* All parts of the allowed kinds. scratch: 3 lists. */
static void find_parts(search *s, uint32_t kinds, int32_t *scratch) {
    s->list->n_units = s->plan->n_function, s->list->n_parts = 0;
    for (int32_t k = 0; k < s->plan->n_function; k++) s->list->units[k] = k, s->owner[k] = -1;
    for (int32_t j = 0; sizes_fit(s->plan) && j < fuse_pattern_count; j++) {
        if (!(kinds >> fuse_patterns[j].kind & 1u)) continue;
        for (int32_t k = 0; k < s->plan->n_function; k++) try_at(s, &fuse_patterns[j], k, scratch);
    }
}

/* ---- parts and their reverse passes ---------------------------------------------------------- */

/* What these parts keep is for their fused reverse passes alone: there is less of it than the ops
 * would store, and some has another form (paper/fused.h). So there are both of them or none. Slots
 * [from, to) are saved; the reverse pass of a part is the one that has operand `from` as operand
 * `back`.
 */
typedef struct pairing {
    fused_kind forward, reverse;
    int from, to, back;
} pairing;
static const pairing pairings[] = {
    {FUSED_SET, FUSED_SET_GRAD, SET_J, SET_STACK, SETG_J},
    {FUSED_FLOW, FUSED_FLOW_GRAD, FLOW_H0, FLOW_RAW, FLOWG_H0},
};
enum { PAIRINGS = sizeof pairings / sizeof *pairings };

static bool is_kind(const fuse_part *part, fused_kind kind) {
    return part->pattern->kind == kind;
}

/* The part that computed what this one takes back; NULL: there is none. */
static const fuse_part *forward_of(const fuse_list *list, const pairing *p,
                                   const fuse_part *reverse) {
    for (int32_t k = 0; k < list->n_parts; k++)
        if (is_kind(&list->parts[k], p->forward) &&
            list->parts[k].operand[p->from] == reverse->operand[p->back])
            return &list->parts[k];
    return NULL;
}

static bool reads_saved(const instr *ins, const pairing *p, const fuse_part *part) {
    for (int j = 0; j < INSTR_IN; j++)
        for (int k = p->from; k < p->to && ins->in[j] != VAL_NONE; k++)
            if (ins->in[j] == part->operand[k]) return true;
    return false;
}

static bool pairs_agree(const search *s, const pairing *p) {
    const fuse_list *list = s->list;
    for (int32_t k = 0; k < list->n_parts; k++)
        if (is_kind(&list->parts[k], p->reverse) && !forward_of(list, p, &list->parts[k]))
            return false;
    for (int32_t at = 0; at < s->plan->n_function; at++) {
        const fuse_part *own = s->owner[at] >= 0 ? &list->parts[s->owner[at]] : NULL;
        if (own && (is_kind(own, p->forward) || is_kind(own, p->reverse))) continue;
        for (int32_t k = 0; k < list->n_parts; k++)
            if (is_kind(&list->parts[k], p->forward) &&
                reads_saved(&s->plan->instrs[at], p, &list->parts[k]))
                return false;
    }
    return true;
}

/* Parts without those that would keep for others than their reverse pass. */
static void find_pairs(search *s, uint32_t kinds, int32_t *scratch) {
    find_parts(s, kinds, scratch);
    for (int k = 0; k < PAIRINGS; k++) {
        if (pairs_agree(s, &pairings[k])) continue;
        kinds &= ~(1u << pairings[k].forward | 1u << pairings[k].reverse);
        find_parts(s, kinds, scratch);
    }
}

/* The reverse pass makes j again from pre, which no op of it reads: it gets pre as an operand, and
 * pre a place of its own, where it outlives the forward pass. */
static void link_sets(search *s) {
    for (int32_t k = 0; k < s->list->n_parts; k++) {
        fuse_part *part = &s->list->parts[k];
        if (!is_kind(part, FUSED_SET_GRAD)) continue;
        const val pre = forward_of(s->list, &pairings[0], part)->operand[SET_PRE];
        bool moved = false;
        for (int32_t j = 0; j < k; j++)
            moved |= is_kind(&s->list->parts[j], FUSED_SET_GRAD) &&
                     s->list->parts[j].operand[SETG_PRE] == pre;
        part->operand[SETG_PRE] = pre;
        if (moved || s->plan->values[pre].store != STORE_ACT) continue;
        s->where[pre] = *s->words;
        *s->words += plan_words(s->plan, &s->plan->values[pre]);
    }
}

mnp_status fuse_find(env *e, const plan *p, const task *tasks, uint32_t kinds, int64_t *where,
                     int64_t *words, fuse_list *out) {
    const size_t most = (size_t)p->n_function + 1;
    *out = (fuse_list){.units = env_alloc(e, most, sizeof *out->units, "a program"),
                       .parts = env_alloc(e, most, sizeof *out->parts, "a program")};
    int32_t members[FUSE_OPERANDS];
    search s = {.plan = p,
                .tasks = tasks,
                .where = where,
                .words = words,
                .list = out,
                .members = members,
                .owner = env_alloc(e, 4 * most, sizeof *s.owner, "a program")};
    const bool ok = out->units && out->parts && s.owner;
    if (ok) find_pairs(&s, kinds, s.owner + most);
    if (ok) link_sets(&s);
    env_free(e, s.owner);
    if (!ok) fuse_free(e, out);
    return ok ? MNP_OK : MNP_ENOMEM;
}

void fuse_free(env *e, fuse_list *list) {
    env_free(e, list->units);
    env_free(e, list->parts);
    *list = (fuse_list){0};
}
