/* kept.c: see kept.h. */
#include "backend/cuda/kept.h"

#include "backend/cuda/ranges.h"

/* ---- the latent: outer products -------------------------------------------------------------- */

/* Weights of a part whose gradients are outer products of what it keeps. */
typedef struct kept_row {
    int32_t slot; /* the gradient's operand */
    dev_outer outer;
} kept_row;

#define NETWORK(s, net)                                                                            \
    {s + NETG_DWR, {0, 64, 64, 2, KEPT_STACK, 64, KEPT_G0 + (net)*128, 64}},                       \
        {s + NETG_DWZ, {0, 128, 64, 2, KEPT_BEFORE, 0, KEPT_G0 + (net)*128, 64}},                  \
        {s + NETG_DW1, {0, 64, 64, 2, KEPT_H0 + (net)*128, 64, KEPT_G1 + (net)*128, 64}}, {        \
        s + NETG_DW2, {                                                                            \
            0, 64, 128, 2, KEPT_H1 + (net)*128, 64, KEPT_GOUT + (net)*256, 128                     \
        }                                                                                          \
    }
static const kept_row latent_rows[] = {
    NETWORK(LATENTG_MU, 0),
    NETWORK(LATENTG_SIGMA, 1),
    {LATENTG_DWF, {0, 128, 128, 1, KEPT_Z, 0, KEPT_GPZ, 0}},
};
enum { LATENT_ROWS = sizeof latent_rows / sizeof *latent_rows };

/* ---- who writes gradients -------------------------------------------------------------------- */

/* Where the gradient of operand k begins, in pieces of DEV_OUTER_WORDS words; -1: it is none. */
static int64_t gradient_at(const dev_fused *f, int32_t k) {
    const uint32_t first = fused_place(DEV_STORE_PGRAD, 0), place = f->place[k];
    const bool is = place != FUSED_ABSENT && place >> FUSED_OFFSET_BITS == DEV_STORE_PGRAD;
    return is ? (int64_t)(place - first) / DEV_OUTER_WORDS : -1;
}

/* How many instructions write to a gradient, by its first words. */
static void count_writers(const cuda_program *p, int32_t *writers) {
    for (int32_t k = 0; k < p->count; k++) {
        const dev_instr *ins = &p->code[k];
        const bool fused = ins->op >= OPCODE_COUNT;
        for (int32_t j = 0; fused && j < FUSED_SLOTS; j++)
            if (gradient_at(&ins->fused, j) >= 0) writers[gradient_at(&ins->fused, j)]++;
        for (int j = 0; !fused && j < DEV_OUT; j++)
            if (ins->out[j].present && ins->out[j].store == DEV_STORE_PGRAD)
                writers[ins->out[j].offset / DEV_OUTER_WORDS]++;
    }
}

static bool is_part(const dev_instr *ins, fused_kind kind) {
    return ins->op == OPCODE_COUNT + (int32_t)kind;
}

/* ---- latents --------------------------------------------------------------------------------- */

static bool latent_alone(const dev_fused *f, const int32_t *writers) {
    bool alone = true;
    for (int32_t k = 0; k < LATENT_ROWS; k++) {
        const int64_t at = gradient_at(f, latent_rows[k].slot);
        alone &= at < 0 || writers[at] == 1;
    }
    return alone;
}

static void keep_latent(cuda_program *p, dev_fused *f) {
    for (int32_t k = 0; k < LATENT_ROWS; k++) {
        const int64_t at = gradient_at(f, latent_rows[k].slot);
        if (at < 0) continue;
        dev_outer *o = &p->outer[p->n_outer++];
        *o = latent_rows[k].outer;
        o->at = at * DEV_OUTER_WORDS;
        o->x += (int32_t)p->kept_words, o->g += (int32_t)p->kept_words;
    }
    f->place[LATENTG_KEPT] = fused_place(DEV_STORE_KEPT, p->kept_words);
    p->kept_words += LATENT_KEPT;
}

/* ---- conditioners ---------------------------------------------------------------------------- */

/* The part of a kind that has a given place as operand k; NULL: none. */
static dev_instr *part_with(const cuda_program *p, fused_kind kind, int32_t k, uint32_t place) {
    for (int32_t i = 0; i < p->count; i++)
        if (is_part(&p->code[i], kind) && p->code[i].fused.place[k] == place) return &p->code[i];
    return NULL;
}

static bool flow_alone(const dev_fused *f, const int32_t *writers) {
    static const int32_t slots[] = {FLOWG_DWX, FLOWG_DW1, FLOWG_DW2};
    bool alone = true;
    for (int k = 0; k < 3; k++) {
        const int64_t at = gradient_at(f, slots[k]);
        alone &= at >= 0 && writers[at] == 1;
    }
    return alone;
}

static void add_product(cuda_program *p, const dev_fused *f, int32_t slot, int32_t rows,
                        int32_t cols, int64_t x, int64_t g) {
    enum { STEP = FUSED_POINTS };
    p->terms[p->n_terms] = (dev_term){.x = {(int32_t)x, STEP, DEV_ROWS_OCTETS},
                                      .g = {(int32_t)g, STEP, DEV_ROWS_OCTETS},
                                      .side = DEV_SIDE_ALL};
    p->products[p->n_products++] = (dev_product){.at = gradient_at(f, slot) * DEV_OUTER_WORDS,
                                                 .rows = rows,
                                                 .cols = cols,
                                                 .ld = cols,
                                                 .first = p->n_terms++,
                                                 .terms = 1,
                                                 .split = 1,
                                                 .math = DEV_TF32};
}

/* x as halves, once for all transitions. */
static int64_t keep_features(cuda_program *p, dev_fused *first) {
    const uint32_t base = fused_place(DEV_STORE_KEPT, 0);
    if (first->place[FIRST_KEPT] == FUSED_ABSENT) {
        first->place[FIRST_KEPT] = base + (uint32_t)p->kept_words;
        p->kept_words += FIRST_ROWS_KEPT;
    }
    return first->place[FIRST_KEPT] - base;
}

static void keep_flow(cuda_program *p, dev_fused *first, dev_fused *forward, dev_fused *f) {
    const int64_t x = keep_features(p, first), at = p->kept_words;
    forward->place[FLOW_XH] = first->place[FIRST_KEPT];
    forward->place[FLOW_KEPT] = f->place[FLOWG_KEPT] = fused_place(DEV_STORE_KEPT, at);
    p->kept_words += FLOW_ROWS_KEPT;
    forward->place[FLOW_H0] = forward->place[FLOW_H1] = FUSED_ABSENT;
    f->place[FLOWG_H0] = f->place[FLOWG_H1] = FUSED_ABSENT;
    add_product(p, f, FLOWG_DWX, 160, 128, x, at + KEPT_DH0);
    add_product(p, f, FLOWG_DW1, 128, 128, at + KEPT_FH0, at + KEPT_DH1);
    add_product(p, f, FLOWG_DW2, 128, 32, at + KEPT_FH1, at + KEPT_DRAW);
}

/* Rows are read from the instruction on that releases: one that comes later leaves none. */
static void place_flows(cuda_program *p, const int32_t *writers) {
    const int32_t at = ranges_release(p), release = p->updates && at < p->count ? at : 0;
    for (int32_t k = 0; k < p->count; k++) {
        dev_instr *ins = &p->code[k];
        if (!is_part(ins, FUSED_FLOW_GRAD) || ins->math == DEV_FP32) continue;
        dev_instr *forward = part_with(p, FUSED_FLOW, FLOW_H0, ins->fused.place[FLOWG_H0]);
        dev_instr *first = part_with(p, FUSED_FIRST, FIRST_X, ins->fused.place[FLOWG_X]);
        if (first && forward && k < release && flow_alone(&ins->fused, writers)) {
            keep_flow(p, &first->fused, &forward->fused, &ins->fused);
            continue;
        }
        ins->math = DEV_FP32;
        if (forward) forward->math = DEV_FP32;
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Large ones first, so that no block ends late. */
static void sort_products(cuda_program *p) {
    for (int32_t k = 1; k < p->n_products; k++)
        for (int32_t j = k; j > 0; j--) {
            dev_product *a = &p->products[j - 1], *b = &p->products[j], keep = *a;
            if (a->rows * a->cols >= b->rows * b->cols) break;
            *a = *b, *b = keep;
        }
}

static void count_products(cuda_program *p) {
    for (int32_t k = 0; k < p->n_products; k++) {
        const dev_product *of = &p->products[k];
        p->early_products += !of->late;
        *(of->late ? &p->late_splits : &p->early_splits) += of->split;
        if (of->base + of->split > p->product_parts) p->product_parts = of->base + of->split;
    }
}

static mnp_status room_for(env *e, cuda_program *p) {
    const size_t parts = (size_t)p->n_fused;
    p->outer = env_alloc(e, parts * LATENT_ROWS + 1, sizeof *p->outer, "a program");
    p->products = env_alloc(e, parts * 3 + 1, sizeof *p->products, "a program");
    p->terms = env_alloc(e, parts * 3 + 1, sizeof *p->terms, "a program");
    return p->outer && p->products && p->terms ? MNP_OK : MNP_ENOMEM;
}

mnp_status kept_place(env *e, int64_t trainable, cuda_program *p) {
    const int64_t pieces = trainable / DEV_OUTER_WORDS + 1;
    int32_t *writers = env_alloc(e, (size_t)pieces, sizeof *writers, "a program");
    mnp_status status = writers ? room_for(e, p) : MNP_ENOMEM;
    if (status == MNP_OK) {
        count_writers(p, writers);
        p->kept_words = DEV_KEPT_HEAD;
        place_flows(p, writers);
        sort_products(p);
        count_products(p);
        if (p->n_products == 0) p->kept_words = 0;
        for (int32_t k = 0; p->updates && k < p->count; k++)
            if (is_part(&p->code[k], FUSED_LATENT_GRAD) && latent_alone(&p->code[k].fused, writers))
                keep_latent(p, &p->code[k].fused);
    }
    env_free(e, writers);
    return status;
}
