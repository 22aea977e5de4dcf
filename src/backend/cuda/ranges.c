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

/* When words are complete: where the program releases, when early products are formed, or when the
 * functions have ended. They are listed in this order. */
typedef enum completion { AT_RELEASE, AT_PRODUCTS, AT_END, COMPLETIONS } completion;

/* Words next to each other that are summed in the same way and at the same time. */
typedef struct stretch {
    int64_t at, end;
    int32_t outer, parts; /* as in dev_range */
    completion when;
} stretch;

static int32_t outer_at(const cuda_program *p, int64_t at) {
    for (int32_t j = 0; j < p->n_outer; j++)
        if (p->outer[j].at == at) return j;
    return -1;
}

/* Products are listed at a gradient's first word, or inside it. */
static stretch stretch_of(const cuda_program *p, const param *w, bool late) {
    const int64_t end = w->offset + (int64_t)w->rows * w->ld;
    stretch s = {w->offset, end, outer_at(p, w->offset), 0, late ? AT_END : AT_RELEASE};
    for (int32_t j = 0; j < p->n_products; j++) {
        const dev_product *of = &p->products[j];
        if (of->at < s.at || of->at >= end) continue;
        if (of->base + of->split > s.parts) s.parts = of->base + of->split;
        if (of->late) s.when = AT_END;
        if (s.when == AT_RELEASE) s.when = AT_PRODUCTS;
    }
    return s;
}

static void list_stretch(const stretch *s, cuda_program *p) {
    for (int64_t at = s->at; at < s->end; at += DEV_RANGE_WORDS) {
        const int64_t words = s->end - at < DEV_RANGE_WORDS ? s->end - at : DEV_RANGE_WORDS;
        p->ranges[p->n_ranges++] = (dev_range){(int32_t)at, (int32_t)words, s->outer, s->parts};
    }
}

static void list_weights(const params *weights, int32_t release, const int32_t *last,
                         completion when, cuda_program *p) {
    stretch now = {.outer = -1};
    for (int32_t i = 0; i < weights->count; i++) {
        const param *w = &weights->list[i];
        if (w->init.frozen) continue;
        stretch next = stretch_of(p, w, last_writer(w, last) >= release);
        const bool joins =
            now.outer < 0 && next.outer < 0 && now.parts == next.parts && now.when == next.when;
        if (!joins && now.when == when) list_stretch(&now, p);
        if (joins) next.at = now.at;
        now = next;
    }
    if (now.when == when) list_stretch(&now, p);
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
    const int32_t at = ranges_release(p), release = at < p->count ? at : -1;
    if (release >= 0) p->code[release].releases = 1;
    for (completion when = AT_RELEASE; when < COMPLETIONS; when++) {
        if (when == AT_END) p->n_early = p->n_ranges;
        list_weights(weights, release, last, when, p);
    }
    env_free(e, last);
    return MNP_OK;
}
