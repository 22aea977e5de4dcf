/* check.c: see check.h. */
#include "backend/cuda/program/check.h"

#include "backend/cuda/program/stages.h"

/* Pass `pass` has left instruction or entry k as it must not be. */
static mnp_status broken(env *e, const char *pass, int64_t k, const char *what) {
    return env_fail(e, MNP_EDEVICE, "a program for the GPU is wrong after pass '%s': %s (%lld)",
                    pass, what, (long long)k);
}

/* ---- instructions ---------------------------------------------------------------------------- */

static bool is_op(const dev_instr *ins) {
    return ins->op < OPCODE_COUNT;
}

static int64_t words_of(const plan *p, const dev_operand *o) {
    const int64_t rows = plan_rows(p, (extent)o->ext, o->rows);
    return rows * o->ld * (o->sampled ? p->opts.samples : 1) * (o->is_double ? 2 : 1);
}

/* Words of a store; -1: unknown to the program. */
static int64_t store_words(const plan *p, const cuda_program *program, int32_t store) {
    switch (store) {
    case DEV_STORE_ACT:
        return program->act_words;
    case DEV_STORE_PARAM:
        return p->params->words;
    case DEV_STORE_PGRAD:
        return p->params->trainable;
    default:
        return -1;
    }
}

static bool op_inside(const plan *p, const cuda_program *program, const dev_instr *ins) {
    for (int j = 0; j < DEV_IN + DEV_OUT; j++) {
        const dev_operand *o = j < DEV_IN ? &ins->in[j] : &ins->out[j - DEV_IN];
        const int64_t end = o->present ? store_words(p, program, o->store) : -1;
        if (end >= 0 && (o->offset < 0 || o->offset + words_of(p, o) > end)) return false;
    }
    return true;
}

static bool part_inside(const plan *p, const cuda_program *program, const dev_instr *ins) {
    for (int k = 0; k < FUSED_OPERANDS; k++) {
        const uint32_t addr = ins->fused.addr[k];
        if (addr == FUSED_ABSENT) continue;
        const int32_t store = (int32_t)(addr >> FUSED_OFFSET_BITS);
        const int64_t end = store_words(p, program, store);
        if (end >= 0 && addr - fused_addr(store, 0) >= end) return false;
    }
    return true;
}

/* Do two operands share memory? Gradients in other slots (dev_instr.wide) do not. */
static bool meet(const plan *p, const dev_operand *a, int32_t a_slots, const dev_operand *b,
                 int32_t b_slots) {
    if (!a->present || !b->present || a->store != b->store) return false;
    if (a->store == DEV_STORE_PGRAD && a_slots != b_slots) return false;
    return a->offset < b->offset + words_of(p, b) && b->offset < a->offset + words_of(p, a);
}

/* Into what another one, or it itself, has to do with. */
static bool writes_into(const plan *p, const dev_instr *a, const dev_instr *b) {
    bool into = false;
    for (int j = 0; j < DEV_OUT; j++) {
        for (int k = 0; k < DEV_IN; k++) into |= meet(p, &a->out[j], a->wide, &b->in[k], b->wide);
        for (int k = 0; k < DEV_OUT; k++)
            into |= (a != b || j != k) && meet(p, &a->out[j], a->wide, &b->out[k], b->wide);
    }
    return into;
}

/* The ops from k on that run side by side, or one alone. */
static bool group_apart(const plan *p, const cuda_program *program, int32_t k) {
    const dev_instr *group = &program->code[k];
    bool apart = true;
    for (int32_t a = 0; a < group->together; a++)
        for (int32_t b = 0; b < group->together; b++)
            apart &= !is_op(&group[a]) || !writes_into(p, &group[a], &group[b]);
    return apart;
}

static mnp_status check_places(env *e, const plan *p, const cuda_program *program,
                               const char *pass) {
    for (int32_t k = 0; k < program->count; k++) {
        const dev_instr *ins = &program->code[k];
        if (!(is_op(ins) ? op_inside : part_inside)(p, program, ins))
            return broken(e, pass, k, "an operand lies outside its store");
        if (!group_apart(p, program, k))
            return broken(e, pass, k, "it writes into what it reads, or one beside it");
    }
    return MNP_OK;
}

mnp_status program_check_code(env *e, const plan *p, const cuda_program *program) {
    static const char pass[] = "translate";
    for (int32_t k = 0; k < program->count;) {
        const int32_t here = program->code[k].together;
        const int32_t most = program->kind[k] == STAGE_FUNCTIONS ? DEV_TOGETHER : DEV_WIDE;
        if (here < 1 || here > most || k + here > program->count)
            return broken(e, pass, k, "a group of no or too many instructions");
        for (int32_t j = k; j < k + here; j++) {
            const dev_instr *ins = &program->code[j];
            if (ins->op < 0 || ins->op >= OPCODE_COUNT + FUSED_COUNT)
                return broken(e, pass, j, "no such op");
            if (j > k && ins->together != 0) return broken(e, pass, j, "a group inside a group");
            if (here > 1 && !is_op(ins)) return broken(e, pass, j, "a part in a group");
        }
        k += here;
    }
    return check_places(e, p, program, pass);
}

/* ---- the arena ------------------------------------------------------------------------------- */

/* held: whose numbers lie in each 16 words of the arena: a value's, nobody's, or what a part has to
 * do with, of which a program does not say what it reads and what it writes. made: the first
 * instruction of the plan that writes a value. */
enum { PIECE = 16, OF_PART = -2 };
typedef struct arena_state {
    const plan *p;
    const cuda_program *program;
    val *held;
    int32_t *made;
} arena_state;

static bool in_arena(const dev_operand *o) {
    return o->present && o->store == DEV_STORE_ACT;
}

/* Is v where instruction `from` of the plan looks for it, if the plan has made it by then? */
static bool still_there(const arena_state *a, val v, int32_t from) {
    const int64_t at = a->program->offset[v] / PIECE;
    const int64_t count = plan_words(a->p, &a->p->values[v]) / PIECE;
    bool there = true;
    if (a->made[v] >= from || a->held[at] == OF_PART) return true;
    for (int64_t k = at; k < at + count; k++) there &= a->held[k] == v;
    return there;
}

/* Does an op find what it reads, and what it adds to? */
static bool finds_all(const arena_state *a, int32_t k) {
    const dev_instr *ins = &a->program->code[k];
    const int32_t from = a->program->from[k];
    const instr *of = &a->p->instrs[from];
    bool finds = true;
    for (int j = 0; is_op(ins) && j < DEV_IN; j++)
        if (in_arena(&ins->in[j]))
            finds &= ins->in[j].offset == a->program->offset[of->in[j]] &&
                     still_there(a, of->in[j], from);
    for (int j = 0; is_op(ins) && j < DEV_OUT; j++)
        if (in_arena(&ins->out[j]) && (ins->acc >> j & 1u))
            finds &= still_there(a, of->out[j], from);
    return finds;
}

static void put_all(const arena_state *a, int32_t k) {
    const dev_instr *ins = &a->program->code[k];
    const instr *of = &a->p->instrs[a->program->from[k]];
    for (int j = 0; is_op(ins) && j < DEV_OUT; j++) {
        if (!in_arena(&ins->out[j])) continue;
        const int64_t at = ins->out[j].offset / PIECE;
        const int64_t count = plan_words(a->p, &a->p->values[of->out[j]]) / PIECE;
        for (int64_t w = at; w < at + count; w++) a->held[w] = of->out[j];
    }
    for (int j = 0; !is_op(ins) && j < FUSED_OPERANDS; j++)
        if (fused_in(ins->fused.addr[j], DEV_STORE_ACT))
            a->held[ins->fused.addr[j] / PIECE] = OF_PART;
}

static void note_makers(const plan *p, int32_t *made) {
    for (val v = 0; v < p->n_values; v++) made[v] = p->n_instrs;
    for (int32_t k = p->n_instrs - 1; k >= 0; k--)
        for (int j = 0; j < INSTR_OUT; j++)
            if (p->instrs[k].out[j] != VAL_NONE) made[p->instrs[k].out[j]] = k;
}

mnp_status program_check_arena(env *e, const plan *p, const cuda_program *program) {
    static const char pass[] = "arena";
    MNP_TRY(check_places(e, p, program, pass));
    const size_t pieces = (size_t)program->act_words / PIECE + 1;
    arena_state a = {.p = p,
                     .program = program,
                     .held = env_alloc(e, pieces, sizeof *a.held, "a check"),
                     .made = env_alloc(e, (size_t)p->n_values + 1, sizeof *a.made, "a check")};
    mnp_status status = a.held && a.made ? MNP_OK : MNP_ENOMEM;
    for (size_t k = 0; status == MNP_OK && k < pieces; k++) a.held[k] = VAL_NONE;
    if (status == MNP_OK) note_makers(p, a.made);
    for (int32_t k = 0; k < program->count && status == MNP_OK; k++) {
        if (!finds_all(&a, k))
            status = broken(e, pass, k, "what it reads is not what was written there");
        put_all(&a, k);
    }
    env_free(e, a.held);
    env_free(e, a.made);
    return status;
}

/* ---- stages ---------------------------------------------------------------------------------- */

static bool kernel_well(const cuda_program *program, const dev_stage *s) {
    bool well = s->count == program->code[s->first].together;
    for (int32_t k = s->first; well && k < s->first + s->count; k++) {
        const dev_instr *ins = &program->code[k];
        well &= program->kind[k] == s->kind && !stages_whole(ins);
    }
    return well;
}

/* Lengths that a draw sets are known to the stages after the first if it begins the program. */
static bool draws_late(const cuda_program *program) {
    bool late = false;
    for (int32_t k = 1; k < program->count && program->n_stages > 1; k++)
        late |= program->code[k].op == OPCODE_draw;
    return late;
}

mnp_status program_check_stages(env *e, const plan *p, const cuda_program *program) {
    static const char pass[] = "stages";
    const int32_t last = program->n_stages - 1;
    int32_t next = 0;
    (void)p;
    for (int32_t k = 0; k <= last; k++) {
        const dev_stage *s = &program->stages[k];
        if (s->first != next) return broken(e, pass, k, "an instruction in no stage or in two");
        next = s->first + s->count;
        if (s->kind == STAGE_FUNCTIONS) {
            for (int32_t j = s->first; j < next; j++)
                if (program->kind[j] != STAGE_FUNCTIONS)
                    return broken(e, pass, j, "a wide instruction for functions");
        } else if (!kernel_well(program, s)) {
            return broken(e, pass, k, "instructions that one kernel cannot take together");
        }
        if (s->begins != (k == 0) || s->ends != (k == last) || s->staged != (last > 0))
            return broken(e, pass, k, "a stage that does not know its place");
    }
    if (next != program->count) return broken(e, pass, next, "an instruction in no stage");
    if (program->stages[0].kind != STAGE_FUNCTIONS || program->stages[last].kind != STAGE_FUNCTIONS)
        return broken(e, pass, 0, "no functions at the beginning or the end");
    if (draws_late(program)) return broken(e, pass, 0, "a draw that does not begin the program");
    return MNP_OK;
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* One write to the gradient at word `at`; seen: what has been written to before. */
static bool writes_well(bool *seen, int64_t at, bool fresh, bool adds) {
    const bool well = seen[at] ? adds && !fresh : fresh || !adds;
    seen[at] = true;
    return well;
}

static bool fresh_well(const dev_instr *ins, int64_t trainable, bool *seen) {
    bool well = true;
    const uint32_t first = fused_addr(DEV_STORE_PGRAD, 0);
    seen += ins->wide * trainable; /* other slots */
    for (int j = 0; is_op(ins) && j < DEV_OUT; j++)
        if (ins->out[j].present && ins->out[j].store == DEV_STORE_PGRAD)
            well &= writes_well(seen, ins->out[j].offset, ins->fresh >> j & 1u, ins->acc >> j & 1u);
    for (int j = 0; !is_op(ins) && j < FUSED_OPERANDS; j++)
        if (fused_in(ins->fused.addr[j], DEV_STORE_PGRAD))
            well &= writes_well(seen, ins->fused.addr[j] - first, ins->fused.fresh >> j & 1u,
                                ins->fused.acc >> j & 1u);
    return well;
}

mnp_status program_check_fresh(env *e, const plan *p, const cuda_program *program) {
    const int64_t trainable = p->params->trainable;
    bool *seen = env_alloc(e, 2 * (size_t)trainable + 1, sizeof *seen, "a check");
    if (!seen) return MNP_ENOMEM;
    mnp_status status = MNP_OK;
    for (int32_t k = 0; k < program->count && status == MNP_OK; k++)
        if (!fresh_well(&program->code[k], trainable, seen))
            status = broken(e, "mark_fresh", k,
                            "a gradient's first writer adds, or a later one does not");
    env_free(e, seen);
    return status;
}

static bool row_inside(const cuda_program *program, int64_t at) {
    return at >= DEV_SAVED_HEAD && at < program->saved_words;
}

mnp_status program_check_rows(env *e, const plan *p, const cuda_program *program) {
    static const char pass[] = "saved rows";
    const int64_t end = p->params->trainable;
    for (int32_t k = 0; k < program->n_products; k++) {
        const dev_product *d = &program->products[k];
        if (d->at < 0 || d->at + (int64_t)(d->rows - 1) * d->ld + d->cols > end)
            return broken(e, pass, k, "a product outside the gradient");
        if (d->terms < 1 || d->first < 0 || d->first + d->terms > program->n_terms)
            return broken(e, pass, k, "a product without terms");
        if (d->base + d->split > program->product_pieces)
            return broken(e, pass, k, "a product with more pieces than there are");
    }
    for (int32_t k = 0; k < program->n_terms; k++)
        if (!row_inside(program, program->terms[k].x.at) ||
            !row_inside(program, program->terms[k].g.at))
            return broken(e, pass, k, "a term's rows are not saved");
    for (int32_t k = 0; k < program->n_outer; k++) {
        const dev_outer *o = &program->outer[k];
        if (o->at < 0 || o->at + (int64_t)o->rows * o->cols > end)
            return broken(e, pass, k, "outer products outside the gradient");
        if (!row_inside(program, o->x) || !row_inside(program, o->g))
            return broken(e, pass, k, "rows of outer products are not saved");
    }
    return MNP_OK;
}

static mnp_status cover(env *e, const cuda_program *program, int64_t trainable, bool *seen) {
    static const char pass[] = "gradient spans";
    for (int32_t k = 0; k < program->n_grad_spans; k++) {
        const dev_grad_span *s = &program->grad_spans[k];
        if (s->at < 0 || s->words < 1 || s->at + (int64_t)s->words > trainable)
            return broken(e, pass, k, "a span outside the gradient");
        for (int32_t j = s->at; j < s->at + s->words; j++) {
            if (seen[j]) return broken(e, pass, k, "a word in two spans");
            seen[j] = true;
        }
    }
    return MNP_OK;
}

static const dev_grad_span *span_at(const cuda_program *program, int64_t at) {
    for (int32_t k = 0; k < program->n_grad_spans; k++)
        if (program->grad_spans[k].at <= at &&
            at < program->grad_spans[k].at + program->grad_spans[k].words)
            return &program->grad_spans[k];
    return NULL;
}

/* Are the slots that an instruction writes to those that are summed? */
static bool slots_summed(const cuda_program *program, int32_t k) {
    const dev_instr *ins = &program->code[k];
    const bool wide = program->kind[k] == STAGE_LINEAR_TO_W;
    bool summed = true;
    for (int j = 0; is_op(ins) && j < DEV_OUT; j++) {
        if (!ins->out[j].present || ins->out[j].store != DEV_STORE_PGRAD) continue;
        const dev_grad_span *s = span_at(program, ins->out[j].offset);
        summed &= s && (wide ? ins->wide < s->wide && s->parts == 0 : s->wide == 0);
    }
    return summed;
}

mnp_status program_check_spans(env *e, const plan *p, const cuda_program *program) {
    const params *weights = p->params;
    bool *seen = env_alloc(e, (size_t)weights->trainable + 1, sizeof *seen, "a check");
    if (!seen) return MNP_ENOMEM;
    mnp_status status = cover(e, program, weights->trainable, seen);
    for (int32_t i = 0; i < weights->count && status == MNP_OK; i++) {
        const param *w = &weights->list[i];
        const int64_t end = w->offset + (int64_t)w->rows * w->ld;
        for (int64_t j = w->offset; !w->init.frozen && j < end && status == MNP_OK; j++)
            if (!seen[j]) status = broken(e, "gradient spans", i, "a weight in no span");
    }
    if (status == MNP_OK && program->task_spans > program->n_grad_spans)
        status = broken(e, "gradient spans", program->task_spans, "more spans of tasks than spans");
    for (int32_t k = 0; k < program->count && status == MNP_OK; k++)
        if (!slots_summed(program, k))
            status = broken(e, "gradient spans", k, "slots that nobody sums");
    env_free(e, seen);
    return status;
}

mnp_status program_check_tasks(env *e, const plan *p, const cuda_program *program) {
    static const char pass[] = "wgrad tasks";
    int64_t parts = 0, spans = 0;
    (void)p;
    for (int32_t k = 0; k < program->n_products; k++) parts += program->products[k].split;
    for (int32_t k = 0; k < program->n_wgrad_tasks; k++) {
        const dev_wgrad_task *t = &program->wgrad_tasks[k];
        if (k > 0 && t->milestone < program->wgrad_tasks[k - 1].milestone)
            return broken(e, pass, k, "a task before its turn");
        if (t->product >= program->n_products) return broken(e, pass, k, "no such product");
        if (t->product >= 0 && t->part >= program->products[t->product].split)
            return broken(e, pass, k, "no such part");
        if (t->product < 0 && t->part + t->count > program->task_spans)
            return broken(e, pass, k, "no such span");
        if (t->product >= 0)
            parts--;
        else
            spans += t->count;
    }
    if (parts != 0 || spans != program->task_spans)
        return broken(e, pass, program->n_wgrad_tasks, "parts or spans that no task has");
    return MNP_OK;
}

mnp_status program_check_fp16(env *e, const plan *p, const cuda_program *program) {
    const int64_t fours = p->params->words / 4;
    bool *seen = env_alloc(e, (size_t)fours + 1, sizeof *seen, "a check");
    if (!seen) return MNP_ENOMEM;
    mnp_status status = MNP_OK;
    for (int64_t k = 0; k < fours && status == MNP_OK; k++) {
        const int32_t at = program->fp16_at[k];
        if (at < 0 || at >= fours || seen[at])
            status = broken(e, "fp16", k, "two groups of weights at one place");
        else
            seen[at] = true;
    }
    env_free(e, seen);
    return status;
}
