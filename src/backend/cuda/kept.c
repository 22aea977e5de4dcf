/* kept.c: see kept.h. */
#include "backend/cuda/kept.h"

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
        const bool is_part = ins->op >= OPCODE_COUNT;
        for (int32_t j = 0; is_part && j < FUSED_SLOTS; j++)
            if (gradient_at(&ins->fused, j) >= 0) writers[gradient_at(&ins->fused, j)]++;
        for (int j = 0; !is_part && j < DEV_OUT; j++)
            if (ins->out[j].present && ins->out[j].store == DEV_STORE_PGRAD)
                writers[ins->out[j].offset / DEV_OUTER_WORDS]++;
    }
}

static bool writes_alone(const dev_fused *f, const int32_t *writers) {
    bool alone = true;
    for (int32_t k = 0; k < LATENT_ROWS; k++) {
        const int64_t at = gradient_at(f, latent_rows[k].slot);
        alone &= at < 0 || writers[at] == 1;
    }
    return alone;
}

static void keep_rows(cuda_program *p, dev_fused *f) {
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

mnp_status kept_place(env *e, int64_t trainable, cuda_program *p) {
    const int64_t pieces = trainable / DEV_OUTER_WORDS + 1;
    int32_t *writers = env_alloc(e, (size_t)pieces, sizeof *writers, "a program");
    p->outer = env_alloc(e, (size_t)p->n_fused * LATENT_ROWS + 1, sizeof *p->outer, "a program");
    if (!writers || !p->outer) {
        env_free(e, writers);
        return MNP_ENOMEM;
    }
    count_writers(p, writers);
    for (int32_t k = 0; k < p->count; k++) {
        if (p->code[k].op != OPCODE_COUNT + FUSED_LATENT_GRAD) continue;
        if (writes_alone(&p->code[k].fused, writers)) keep_rows(p, &p->code[k].fused);
    }
    env_free(e, writers);
    return MNP_OK;
}
