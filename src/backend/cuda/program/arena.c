/* arena.c: see arena.h. */
#include "backend/cuda/program/arena.h"

#include <stdlib.h>
#include <string.h>

/* The arena in pieces of 16 words: values begin at such (plan_words). */
enum { PIECE = 16 };

/* What is known of a piece: does an instruction have a value that begins there; does such a value
 * lie there; where is it moved to. */
typedef struct piece {
    bool begins, used;
    int64_t to;
} piece;

/* The places of an instruction in the arena, as do_each(piece, at) sees and may change them. */
typedef void each_place(piece *all, int64_t *at);

static void visit(dev_instr *ins, piece *all, each_place *do_each) {
    for (int k = 0; ins->op >= OPCODE_COUNT && k < FUSED_OPERANDS; k++) {
        int64_t at = ins->fused.addr[k]; /* the arena is the store with number 0 */
        if (!fused_in(ins->fused.addr[k], DEV_STORE_ACT)) continue;
        do_each(all, &at);
        ins->fused.addr[k] = fused_addr(DEV_STORE_ACT, at);
    }
    if (ins->op >= OPCODE_COUNT) return;
    dev_operand *lists[] = {ins->in, ins->out};
    for (int k = 0; k < DEV_IN + DEV_OUT; k++) {
        dev_operand *o = k < DEV_IN ? &lists[0][k] : &lists[1][k - DEV_IN];
        if (o->present && o->store == DEV_STORE_ACT) do_each(all, &o->offset);
    }
}
_Static_assert(DEV_STORE_ACT == 0, "an address in the arena is its offset");

static void note(piece *all, int64_t *at) {
    all[*at / PIECE].begins = true;
}
static void move(piece *all, int64_t *at) {
    *at = all[*at / PIECE].to;
}

static bool lies_there(const plan *p, const cuda_program *program, val v) {
    return p->values[v].store == STORE_ACT && program->offset[v] >= 0;
}

static void mark_used(const plan *p, const cuda_program *program, piece *all) {
    for (val v = 0; v < p->n_values; v++) {
        if (!lies_there(p, program, v) || !all[program->offset[v] / PIECE].begins) continue;
        const int64_t at = program->offset[v] / PIECE;
        const int64_t end = at + plan_words(p, &p->values[v]) / PIECE;
        for (int64_t k = at; k < end; k++) all[k].used = true;
    }
}

mnp_status arena_shorten(env *e, const plan *p, cuda_program *program) {
    const int64_t count = (program->act_words + PIECE - 1) / PIECE;
    piece *all = env_alloc(e, (size_t)count + 1, sizeof *all, "a program");
    if (!all) return MNP_ENOMEM;
    for (int32_t k = 0; k < program->count; k++) visit(&program->code[k], all, note);
    mark_used(p, program, all);
    int64_t words = 0;
    for (int64_t k = 0; k < count; k++) {
        all[k].to = words;
        words += all[k].used ? PIECE : 0;
    }
    for (int32_t k = 0; k < program->count; k++) visit(&program->code[k], all, move);
    for (val v = 0; v < p->n_values; v++) {
        if (!lies_there(p, program, v)) continue;
        const piece *at = &all[program->offset[v] / PIECE];
        program->offset[v] = at->begins ? at->to : words;
    }
    program->act_words = words;
    env_free(e, all);
    return MNP_OK;
}

/* ---- packing --------------------------------------------------------------------------------- */

/* A value from its first instruction to its last one; where it lies and where it will. */
typedef struct life {
    int64_t at, words, to;
    int32_t first, last;
} life;

typedef struct lives {
    life *list;
    int32_t count;
    int32_t *of_piece; /* the value that begins at a piece; -1: none does */
} lives;

static void mark_life(const lives *l, int64_t at, int32_t first, int32_t last) {
    const int32_t which = l->of_piece[at / PIECE];
    if (which < 0) return;
    life *v = &l->list[which];
    if (v->first < 0 || first < v->first) v->first = first;
    if (last > v->last) v->last = last;
}

/* Instructions [first, last] run side by side. */
static void mark_instruction(const lives *l, const dev_instr *ins, int32_t first, int32_t last) {
    for (int k = 0; ins->op >= OPCODE_COUNT && k < FUSED_OPERANDS; k++)
        if (fused_in(ins->fused.addr[k], DEV_STORE_ACT))
            mark_life(l, ins->fused.addr[k], first, last);
    for (int k = 0; ins->op < OPCODE_COUNT && k < DEV_IN + DEV_OUT; k++) {
        const dev_operand *o = k < DEV_IN ? &ins->in[k] : &ins->out[k - DEV_IN];
        if (o->present && o->store == DEV_STORE_ACT) mark_life(l, o->offset, first, last);
    }
}

static int by_first(const void *a, const void *b) {
    const life *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Values that lie in the arena at some instruction, by their places. */
typedef struct living {
    life **list;
    int32_t count;
} living;

static void forget_dead(living *now, int32_t instruction) {
    int32_t kept = 0;
    for (int32_t k = 0; k < now->count; k++)
        if (now->list[k]->last >= instruction) now->list[kept++] = now->list[k];
    now->count = kept;
}

/* The lowest place with room. */
static void place_life(living *now, life *v) {
    int32_t k = 0;
    v->to = 0;
    for (; k < now->count && now->list[k]->to < v->to + v->words; k++)
        v->to = now->list[k]->to + now->list[k]->words;
    memmove(now->list + k + 1, now->list + k, (size_t)(now->count - k) * sizeof *now->list);
    now->list[k] = v;
    now->count++;
}

static mnp_status find_lives(env *e, const plan *p, const cuda_program *program, lives *l) {
    const int64_t pieces = program->act_words / PIECE + 1;
    l->list = env_alloc(e, (size_t)p->n_values + 1, sizeof *l->list, "a program");
    l->of_piece = env_alloc(e, (size_t)pieces, sizeof *l->of_piece, "a program");
    if (!l->list || !l->of_piece) return MNP_ENOMEM;
    for (int64_t k = 0; k < pieces; k++) l->of_piece[k] = -1;
    for (val v = 0; v < p->n_values; v++) {
        if (!lies_there(p, program, v)) continue;
        l->of_piece[program->offset[v] / PIECE] = l->count;
        l->list[l->count++] = (life){.at = program->offset[v],
                                     .words = plan_words(p, &p->values[v]),
                                     .first = -1,
                                     .last = -1};
    }
    for (int32_t k = 0; k < program->count; k += program->code[k].together)
        for (int32_t j = 0; j < program->code[k].together; j++)
            mark_instruction(l, &program->code[k + j], k, k + program->code[k].together - 1);
    return MNP_OK;
}

mnp_status arena_pack(env *e, const plan *p, cuda_program *program) {
    lives l = {0};
    living now = {.list = env_alloc(e, (size_t)p->n_values + 1, sizeof *now.list, "a program")};
    const int64_t pieces = program->act_words / PIECE + 1;
    piece *all = env_alloc(e, (size_t)pieces, sizeof *all, "a program");
    mnp_status status = all && now.list ? find_lives(e, p, program, &l) : MNP_ENOMEM;
    int64_t words = 0;
    if (status == MNP_OK) qsort(l.list, (size_t)l.count, sizeof *l.list, by_first);
    for (int32_t k = 0; status == MNP_OK && k < l.count; k++) {
        life *v = &l.list[k];
        if (v->first < 0) continue;
        forget_dead(&now, v->first);
        place_life(&now, v);
        all[v->at / PIECE] = (piece){.begins = true, .to = v->to};
        if (v->to + v->words > words) words = v->to + v->words;
    }
    for (int32_t k = 0; status == MNP_OK && k < program->count; k++)
        visit(&program->code[k], all, move);
    for (val v = 0; status == MNP_OK && v < p->n_values; v++) {
        if (!lies_there(p, program, v)) continue;
        const piece *at = &all[program->offset[v] / PIECE];
        program->offset[v] = at->begins ? at->to : words;
    }
    if (status == MNP_OK) program->act_words = words;
    env_free(e, now.list);
    env_free(e, l.list);
    env_free(e, l.of_piece);
    env_free(e, all);
    return status;
}
