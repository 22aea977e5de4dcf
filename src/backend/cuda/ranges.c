/* ranges.c: see ranges.h. */
#include "backend/cuda/ranges.h"

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
int32_t ranges_release(const cuda_program *p) {
    int32_t at = p->count;
    for (int32_t k = 0; k < p->count; k++) {
        if (p->code[k].op == OPCODE_COUNT + FUSED_SET_GRAD) at = k;
        if (p->code[k].op == OPCODE_COUNT + FUSED_LATENT_GRAD) at = p->count;
    }
    return at;
}

/* Words next to each other that are summed in the same way and at the same time. */
typedef struct stretch {
    int64_t at, end;
    int32_t outer, parts; /* as in dev_range */
    bool late;
} stretch;

static int32_t outer_at(const cuda_program *p, int64_t at) {
    for (int32_t j = 0; j < p->n_outer; j++)
        if (p->outer[j].at == at) return j;
    return -1;
}

static int32_t parts_at(const cuda_program *p, int64_t at) {
    int32_t parts = 0;
    for (int32_t j = 0; j < p->n_products; j++) parts += p->products[j].at == at;
    return parts;
}

static void list_stretch(const stretch *s, bool late, cuda_program *p) {
    for (int64_t at = s->at; s->late == late && at < s->end; at += DEV_RANGE_WORDS) {
        const int64_t words = s->end - at < DEV_RANGE_WORDS ? s->end - at : DEV_RANGE_WORDS;
        p->ranges[p->n_ranges++] = (dev_range){(int32_t)at, (int32_t)words, s->outer, s->parts};
    }
}

static void list_weights(const params *weights, int32_t release, const int32_t *last, bool late,
                         cuda_program *p) {
    stretch now = {.outer = -1};
    for (int32_t i = 0; i < weights->count; i++) {
        const param *w = &weights->list[i];
        if (w->init.frozen) continue;
        stretch next = {w->offset, w->offset + (int64_t)w->rows * w->ld, outer_at(p, w->offset),
                        parts_at(p, w->offset), last_writer(w, last) >= release};
        next.late |= next.parts > 0; /* products end with the functions */
        const bool joins =
            now.outer < 0 && next.outer < 0 && now.parts == next.parts && now.late == next.late;
        if (!joins) list_stretch(&now, late, p);
        if (joins) next.at = now.at;
        now = next;
    }
    list_stretch(&now, late, p);
}

mnp_status ranges_list(env *e, const params *weights, cuda_program *p) {
    const size_t pieces = (size_t)weights->words / DEV_OUTER_WORDS + 1;
    const size_t most = (size_t)(weights->trainable / DEV_RANGE_WORDS + weights->count + 1);
    int32_t *last = env_alloc(e, pieces, sizeof *last, "a program");
    p->ranges = env_alloc(e, most, sizeof *p->ranges, "a program");
    if (!last || !p->ranges) {
        env_free(e, last);
        return MNP_ENOMEM;
    }
    for (size_t k = 0; k < pieces; k++) last[k] = -1;
    for (int32_t k = 0; k < p->count; k++)
        (p->code[k].op >= OPCODE_COUNT ? note_part : note_op)(&p->code[k], k, last);
    const int32_t release = ranges_release(p);
    if (release < p->count) {
        p->code[release].releases = 1;
        list_weights(weights, release, last, false, p);
    }
    p->n_early = p->n_ranges;
    list_weights(weights, release < p->count ? release : -1, last, true, p);
    env_free(e, last);
    return MNP_OK;
}
