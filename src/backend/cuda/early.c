/* early.c: see early.h. */
#include "backend/cuda/early.h"

/* ---- who writes what ------------------------------------------------------------------------- */

/* Instructions are visited in order: what remains is the last that writes to a gradient, by its
 * first DEV_OUTER_WORDS words. */
static void note_part(const dev_instr *ins, int32_t k, int32_t *last) {
    const uint32_t first = fused_place(DEV_STORE_PGRAD, 0);
    for (int j = 0; j < FUSED_SLOTS; j++) {
        const uint32_t place = ins->fused.place[j];
        if (place == FUSED_ABSENT || place >> FUSED_OFFSET_BITS != DEV_STORE_PGRAD) continue;
        last[(place - first) / DEV_OUTER_WORDS] = k;
    }
}

static void note_op(const dev_instr *ins, int32_t k, int32_t *last) {
    for (int j = 0; j < DEV_OUT; j++)
        if (ins->out[j].present && ins->out[j].store == DEV_STORE_PGRAD)
            last[ins->out[j].offset / DEV_OUTER_WORDS] = k;
}

static int32_t last_writer(const param *w, const int32_t *last) {
    int32_t writer = -1;
    const int64_t end = w->offset + (int64_t)w->rows * w->ld;
    for (int64_t at = w->offset; at < end; at += DEV_OUTER_WORDS)
        if (last[at / DEV_OUTER_WORDS] > writer) writer = last[at / DEV_OUTER_WORDS];
    return writer;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* The last transition's sets, if no rows are kept behind them; otherwise the program's end. */
static int32_t place_of_release(const cuda_program *p) {
    int32_t at = p->count;
    for (int32_t k = 0; k < p->count; k++) {
        if (p->code[k].op == OPCODE_COUNT + FUSED_SET_GRAD) at = k;
        if (p->code[k].op == OPCODE_COUNT + FUSED_LATENT_GRAD) at = p->count;
    }
    return at;
}

static void mark_late(const params *weights, int32_t release, const int32_t *last, bool *late) {
    for (int32_t i = 0; i < weights->count; i++) {
        const param *w = &weights->list[i];
        if (w->init.frozen || last_writer(w, last) < release) continue;
        const int64_t end = w->offset + (int64_t)w->rows * w->ld;
        for (int64_t r = w->offset / DEV_STEP_WORDS; r * DEV_STEP_WORDS < end; r++) late[r] = true;
    }
}

static void list_ranges(const bool *late, int32_t ranges, cuda_program *p) {
    int32_t at = 0;
    for (int32_t r = 0; r < ranges; r++)
        if (!late[r]) p->ranges[at++] = r;
    p->n_early = at;
    for (int32_t r = 0; r < ranges; r++)
        if (late[r]) p->ranges[at++] = r;
}

mnp_status early_find(env *e, const params *weights, cuda_program *p) {
    const size_t pieces = (size_t)weights->words / DEV_OUTER_WORDS + 1;
    const size_t ranges = (size_t)(weights->words + DEV_STEP_WORDS - 1) / DEV_STEP_WORDS;
    int32_t *last = env_alloc(e, pieces, sizeof *last, "a program");
    bool *late = env_alloc(e, ranges, sizeof *late, "a program");
    p->ranges = env_alloc(e, ranges, sizeof *p->ranges, "a program");
    if (last && late && p->ranges) {
        for (size_t k = 0; k < pieces; k++) last[k] = -1;
        for (int32_t k = 0; k < p->count; k++)
            (p->code[k].op >= OPCODE_COUNT ? note_part : note_op)(&p->code[k], k, last);
        const int32_t release = place_of_release(p);
        const bool any = release < p->count;
        for (size_t r = 0; r < ranges; r++) late[r] = !any;
        if (any) p->code[release].releases = 1;
        mark_late(weights, release, last, late);
        list_ranges(late, (int32_t)ranges, p);
    }
    const bool ok = last && late && p->ranges;
    env_free(e, last);
    env_free(e, late);
    return ok ? MNP_OK : MNP_ENOMEM;
}
