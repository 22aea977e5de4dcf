/* arena.c: see arena.h. */
#include "backend/cuda/program/arena.h"

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
