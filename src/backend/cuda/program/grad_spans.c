/* grad_spans.c: see grad_spans.h. */
#include "backend/cuda/program/grad_spans.h"

/* ---- who writes what ------------------------------------------------------------------------- */

/* Instructions are visited in order: what remains is the last that writes to a gradient, by its
 * first DEV_OUTER_WORDS words. */
static void note_part(const dev_instr *ins, int32_t k, int32_t *last) {
    const uint32_t first = fused_addr(DEV_STORE_PGRAD, 0);
    for (int j = 0; j < FUSED_OPERANDS; j++) {
        const uint32_t addr = ins->fused.addr[j];
        if (!fused_in(addr, DEV_STORE_PGRAD)) continue;
        last[(addr - first) / DEV_OUTER_WORDS] = k;
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

/* ---- spans ---------------------------------------------------------------------------------- */

void grad_spans_milestones(cuda_program *p) {
    int32_t sets[DEV_MILESTONES], found = 0, other = -1;
    for (int32_t k = p->count - 1; k >= 0 && found < DEV_MILESTONES; k--) {
        const int32_t kind = p->code[k].op - OPCODE_COUNT;
        if (kind == FUSED_SET_GRAD) sets[found++] = k;
        if (found == 0 && (kind == FUSED_LATENT_GRAD || kind == FUSED_FLOW_GRAD)) other = k;
    }
    p->n_milestones = other < 0 ? found : 0;
    for (int32_t r = 0; r < p->n_milestones; r++) p->milestone[r] = sets[found - 1 - r];
}

int32_t grad_spans_complete(const cuda_program *p, int32_t k) {
    for (int32_t r = 0; r < p->n_milestones; r++)
        if (k < p->milestone[r]) return r;
    return DEV_ENDED;
}

static void mark_releases(cuda_program *p) {
    const int32_t ahead = p->n_products > 0 ? MILESTONES_AHEAD : 1;
    for (int32_t r = 0; r < p->n_milestones; r++) {
        p->code[p->milestone[r]].milestone = r + 1;
        p->code[p->milestone[r]].lets = r + ahead >= p->n_milestones;
    }
}

/* Words next to each other that are summed in the same way and at the same time. */
typedef struct stretch {
    int64_t at, end;
    int32_t outer, parts, wide, milestone; /* as in dev_grad_span */
} stretch;

static int32_t outer_at(const cuda_program *p, int64_t at) {
    for (int32_t j = 0; j < p->n_outer; j++)
        if (p->outer[j].at == at) return j;
    return -1;
}

/* How many times wide_chunks slots hold the sums of wide instructions. */
static int32_t wide_slots(const cuda_program *p, int64_t at) {
    int32_t slots = 0;
    for (int32_t k = 0; k < p->count; k++) {
        const dev_instr *ins = &p->code[k];
        for (int j = 0; p->kind[k] == STAGE_LINEAR_TO_W && j < DEV_OUT; j++)
            if (ins->out[j].present && ins->out[j].store == DEV_STORE_PGRAD &&
                ins->out[j].offset == at && ins->wide >= slots)
                slots = ins->wide + 1;
    }
    return slots;
}

/* Products begin at a gradient's first word, or inside it. */
static stretch stretch_of(const cuda_program *p, const param *w, int32_t milestone) {
    const int64_t end = w->offset + (int64_t)w->rows * w->ld;
    stretch s = {.at = w->offset,
                 .end = end,
                 .outer = outer_at(p, w->offset),
                 .wide = wide_slots(p, w->offset),
                 .milestone = milestone};
    for (int32_t j = 0; j < p->n_products; j++) {
        const dev_product *of = &p->products[j];
        if (of->at < s.at || of->at >= end) continue;
        if (of->base + of->split > s.parts) s.parts = of->base + of->split;
    }
    return s;
}

/* After products all sums wait, and then are formed at once: long ones of few slots and short ones
 * of many, so that all blocks have a place. */
static int64_t most_words(const stretch *s, bool products) {
    enum { FEW = 4 };
    if (s->outer >= 0) return DEV_TILE_WORDS;
    if (!products) return DEV_GRAD_SPAN_WORDS / 2;
    return s->parts > 0 && s->parts <= FEW ? DEV_GRAD_SPAN_WORDS : DEV_GRAD_SPAN_WORDS / 4;
}

static void list_stretch(const stretch *s, cuda_program *p) {
    const int64_t most = most_words(s, p->n_products > 0);
    for (int64_t at = s->at; at < s->end; at += most) {
        const int64_t words = s->end - at < most ? s->end - at : most;
        p->grad_spans[p->n_grad_spans++] = (dev_grad_span){.at = (int32_t)at,
                                                           .words = (int32_t)words,
                                                           .outer = s->outer,
                                                           .parts = s->parts,
                                                           .wide = s->wide,
                                                           .milestone = s->milestone};
    }
}

/* The spans of a milestone: of outer products, or the others. */
static void list_weights(const params *weights, const int32_t *last, int32_t milestone, bool outer,
                         cuda_program *p) {
    stretch now = {.outer = -1};
    for (int32_t i = 0; i <= weights->count; i++) {
        const param *w = i < weights->count ? &weights->list[i] : NULL;
        if (w && w->init.frozen) continue;
        stretch next = {.outer = -1, .milestone = -1};
        if (w) next = stretch_of(p, w, grad_spans_complete(p, last_writer(w, last)));
        const bool joins = now.outer < 0 && next.outer < 0 && now.parts == next.parts &&
                           now.wide == next.wide && now.milestone == next.milestone;
        if (!joins && now.milestone == milestone && (now.outer >= 0) == outer)
            list_stretch(&now, p);
        if (joins) next.at = now.at;
        now = next;
    }
}

mnp_status grad_spans_list(env *e, const params *weights, cuda_program *p) {
    const size_t pieces = (size_t)weights->words / DEV_OUTER_WORDS + 1;
    const size_t most =
        (size_t)(weights->trainable / (DEV_GRAD_SPAN_WORDS / 4) + weights->count + 1);
    int32_t *last = env_alloc(e, pieces, sizeof *last, "a program");
    p->grad_spans = env_alloc(e, most, sizeof *p->grad_spans, "a program");
    if (!last || !p->grad_spans) {
        env_free(e, last);
        return MNP_ENOMEM;
    }
    for (size_t k = 0; k < pieces; k++) last[k] = -1;
    for (int32_t k = 0; k < p->count; k++)
        (p->code[k].op >= OPCODE_COUNT ? note_part : note_op)(&p->code[k], k, last);
    mark_releases(p);
    for (int32_t r = 0; r <= DEV_ENDED; r++) list_weights(weights, last, r, true, p);
    p->task_spans = p->n_products > 0 ? p->n_grad_spans : 0;
    for (int32_t k = 0; k <= DEV_ENDED; k++)
        list_weights(weights, last, p->n_products > 0 ? DEV_ENDED - k : k, false, p);
    env_free(e, last);
    return MNP_OK;
}
