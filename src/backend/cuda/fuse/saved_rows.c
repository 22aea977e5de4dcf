/* saved_rows.c: see saved_rows.h. */
#include "backend/cuda/fuse/saved_rows.h"

#include "backend/cuda/program/grad_spans.h"

_Static_assert(FUSED_FEATURES == 160 && FUSED_ENC_WIDTH == 64 && FUSED_HEADS == 4 &&
                   FUSED_D_R == 64 && FUSED_D_Z == 128 && FUSED_HEAD_HIDDEN == 64 &&
                   FUSED_FLOW_HIDDEN == 128 && FUSED_RAW_LD == 32,
               "shapes below, and SAVED_ in paper/fused.h");

/* ---- the latent: outer products -------------------------------------------------------------- */

/* Weights of a part whose gradients are outer products of rows it saves. */
typedef struct saved_row {
    int32_t operand; /* the gradient's operand */
    dev_outer outer;
} saved_row;

#define NETWORK(s, net)                                                                            \
    {s + NETG_DWR, {0, 64, 64, 2, SAVED_STACK, 64, SAVED_G0 + (net)*128, 64}},                     \
        {s + NETG_DWZ, {0, 128, 64, 2, SAVED_BEFORE, 0, SAVED_G0 + (net)*128, 64}},                \
        {s + NETG_DW1, {0, 64, 64, 2, SAVED_H0 + (net)*128, 64, SAVED_G1 + (net)*128, 64}}, {      \
        s + NETG_DW2, {                                                                            \
            0, 64, 128, 2, SAVED_H1 + (net)*128, 64, SAVED_GOUT + (net)*256, 128                   \
        }                                                                                          \
    }
static const saved_row latent_rows[] = {
    NETWORK(LATENTG_MU, 0),
    NETWORK(LATENTG_SIGMA, 1),
    {LATENTG_DWF, {0, 128, 128, 1, SAVED_Z, 0, SAVED_GPZ, 0}},
};
enum { LATENT_ROWS = sizeof latent_rows / sizeof *latent_rows };

/* ---- who writes gradients -------------------------------------------------------------------- */

/* Where the gradient of operand k begins, in pieces of DEV_OUTER_WORDS words; -1: it is none. */
static int64_t gradient_at(const dev_fused *f, int32_t k) {
    const uint32_t first = fused_addr(DEV_STORE_PGRAD, 0), addr = f->addr[k];
    return fused_in(addr, DEV_STORE_PGRAD) ? (int64_t)(addr - first) / DEV_OUTER_WORDS : -1;
}

/* How many instructions write to a gradient, by its first words. */
static void count_writers(const cuda_program *p, int32_t *writers) {
    for (int32_t k = 0; k < p->count; k++) {
        const dev_instr *ins = &p->code[k];
        const bool fused = ins->op >= OPCODE_COUNT;
        for (int32_t j = 0; fused && j < FUSED_OPERANDS; j++)
            if (gradient_at(&ins->fused, j) >= 0) writers[gradient_at(&ins->fused, j)]++;
        for (int j = 0; !fused && j < DEV_OUT; j++)
            if (ins->out[j].present && ins->out[j].store == DEV_STORE_PGRAD)
                writers[ins->out[j].offset / DEV_OUTER_WORDS]++;
    }
}

/* ---- latents --------------------------------------------------------------------------------- */

static bool latent_alone(const dev_fused *f, const int32_t *writers) {
    bool alone = true;
    for (int32_t k = 0; k < LATENT_ROWS; k++) {
        const int64_t at = gradient_at(f, latent_rows[k].operand);
        alone &= at < 0 || writers[at] == 1;
    }
    return alone;
}

static void save_latent(cuda_program *p, dev_fused *f) {
    for (int32_t k = 0; k < LATENT_ROWS; k++) {
        const int64_t at = gradient_at(f, latent_rows[k].operand);
        if (at < 0) continue;
        dev_outer *o = &p->outer[p->n_outer++];
        *o = latent_rows[k].outer;
        o->at = at * DEV_OUTER_WORDS;
        o->x += (int32_t)p->saved_words, o->g += (int32_t)p->saved_words;
    }
    f->addr[LATENTG_SAVED] = fused_addr(DEV_STORE_SAVED, p->saved_words);
    p->saved_words += LATENT_SAVED;
}

/* ---- conditioners ---------------------------------------------------------------------------- */

/* The part of a kind that has a given address as operand k; NULL: none. */
static dev_instr *part_with(const cuda_program *p, fused_kind kind, int32_t k, uint32_t addr) {
    for (int32_t i = 0; i < p->count; i++)
        if (is_part(&p->code[i], kind) && p->code[i].fused.addr[k] == addr) return &p->code[i];
    return NULL;
}

static bool flow_alone(const dev_fused *f, const int32_t *writers) {
    static const int32_t operands[] = {FLOWG_DWX, FLOWG_DW1, FLOWG_DW2};
    bool alone = true;
    for (int k = 0; k < 3; k++) {
        const int64_t at = gradient_at(f, operands[k]);
        alone &= at >= 0 && writers[at] == 1;
    }
    return alone;
}

/* The gradient `operand`, so far without terms. All products of a milestone together have about as
 * many pieces as multiprocessors without a function can take. */
enum { SPLIT = 2 };
static dev_product *add_product(cuda_program *p, const dev_fused *f, int32_t operand, int32_t rows,
                                int32_t cols, int32_t milestone) {
    dev_product *to = &p->products[p->n_products++];
    *to =
        (dev_product){.at = gradient_at(f, operand) * DEV_OUTER_WORDS, .rows = rows, .cols = cols};
    to->ld = cols, to->first = p->n_terms, to->split = SPLIT, to->math = DEV_TF32,
    to->milestone = milestone;
    return to;
}

static void add_term(cuda_program *p, dev_product *to, dev_term term) {
    p->terms[p->n_terms++] = term;
    to->terms++;
}

static void add_flow_product(cuda_program *p, const dev_fused *f, int32_t operand, int32_t rows,
                             int32_t cols, int64_t x, int64_t g, int32_t milestone) {
    enum { STEP = FUSED_POINTS };
    add_term(p, add_product(p, f, operand, rows, cols, milestone),
             (dev_term){.x = {(int32_t)x, STEP}, .g = {(int32_t)g, STEP}, .side = DEV_SIDE_ALL});
}

/* x as fp16, once for all transitions, by the part that makes or packs it: its operand. */
static int64_t save_features(cuda_program *p, uint32_t *operand) {
    const uint32_t base = fused_addr(DEV_STORE_SAVED, 0);
    if (*operand == FUSED_ABSENT) {
        *operand = base + (uint32_t)p->saved_words;
        p->saved_words += FIRST_ROWS_SAVED;
    }
    return *operand - base;
}

/* Who leaves x for conditioners: the first layer, or where it is no part the first conditioner that
 * saves rows: those that do not are in fp32. */
static uint32_t *features_of(const cuda_program *p, uint32_t x) {
    dev_instr *first = part_with(p, FUSED_FIRST, FIRST_X, x);
    if (first) return &first->fused.addr[FIRST_SAVED];
    for (int32_t k = 0; k < p->count; k++)
        if (is_part(&p->code[k], FUSED_FLOW) && p->code[k].fused.addr[FLOW_X] == x &&
            p->code[k].math != DEV_FP32)
            return &p->code[k].fused.addr[FLOW_LEAVES];
    return NULL;
}

static void save_flow(cuda_program *p, uint32_t *features, dev_fused *forward, dev_fused *f,
                      int32_t milestone) {
    const int64_t x = save_features(p, features), at = p->saved_words;
    if (features != &forward->addr[FLOW_LEAVES]) forward->addr[FLOW_XH] = *features;
    forward->addr[FLOW_SAVED] = f->addr[FLOWG_SAVED] = fused_addr(DEV_STORE_SAVED, at);
    p->saved_words += FLOW_ROWS_SAVED;
    forward->addr[FLOW_H0] = forward->addr[FLOW_H1] = FUSED_ABSENT;
    f->addr[FLOWG_H0] = f->addr[FLOWG_H1] = FUSED_ABSENT;
    add_flow_product(p, f, FLOWG_DWX, 160, 128, x, at + SAVED_DH0, milestone);
    add_flow_product(p, f, FLOWG_DW1, 128, 128, at + SAVED_FH0, at + SAVED_DH1, milestone);
    add_flow_product(p, f, FLOWG_DW2, 128, 32, at + SAVED_FH1, at + SAVED_DRAW, milestone);
}

/* Rows of sets and of the first layer are for programs that update and have milestones
 * (program/grad_spans.h). */
static bool saves_rows(const cuda_program *p) {
    return p->updates && p->n_milestones > 0;
}

static dev_instr *flow_of(const cuda_program *p, const dev_instr *reverse) {
    return part_with(p, FUSED_FLOW, FLOW_H0, reverse->fused.addr[FLOWG_H0]);
}

/* Those that cannot save rows go first: nobody is to count on them. */
static void save_flows(cuda_program *p, const int32_t *writers) {
    for (int32_t k = 0; k < p->count; k++) {
        dev_instr *ins = &p->code[k], *forward;
        if (!is_part(ins, FUSED_FLOW_GRAD) || ins->math == DEV_FP32) continue;
        forward = flow_of(p, ins);
        const bool same = forward && forward->fused.addr[FLOW_X] == ins->fused.addr[FLOWG_X];
        if (same && p->updates && flow_alone(&ins->fused, writers)) continue;
        ins->math = DEV_FP32;
        if (forward) forward->math = DEV_FP32;
    }
    for (int32_t k = 0; k < p->count; k++) {
        dev_instr *ins = &p->code[k];
        if (!is_part(ins, FUSED_FLOW_GRAD) || ins->math == DEV_FP32) continue;
        save_flow(p, features_of(p, ins->fused.addr[FLOWG_X]), &flow_of(p, ins)->fused, &ins->fused,
                  grad_spans_complete(p, k));
    }
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* Weights that all transitions share: a product of each has rows of all of them. x: what the
 * forward part saves; g: where rows of the gradient lie in SETG_SAVED. */
typedef struct set_row {
    int32_t operand, cols, x, g;
} set_row;
static const set_row set_rows[] = {{SETG_DWQ, 192, SIDE_X1, SAVED_DQ1},
                                   {SETG_DW1, 64, SIDE_A1, SAVED_DH1S},
                                   {SETG_DW0, 64, SIDE_A0, SAVED_DH0S}};
/* What a forward part saves for the reverse one, and its columns. */
static const int32_t set_saved[][2] = {
    {SIDE_X1, 64}, {SIDE_A1, 64}, {SIDE_A0, 64}, {SIDE_X2, 64}, {SIDE_Q1, 192}};
enum { SET_SAVED = sizeof set_saved / sizeof *set_saved };
enum { SET_ROWS = sizeof set_rows / sizeof *set_rows, SET_WIDTH = FUSED_ENC_WIDTH };
/* Gradients that the last set forms for all (POOL_* in paper/fused.h). */
static const int32_t set_sums[] = {SETG_DWKV, SETG_DWO, SETG_DWR, SETG_GPQ};
enum { SET_SUMS = sizeof set_sums / sizeof *set_sums };

/* Do the sets' reverse passes, all of them, and nobody else, write the same gradients? */
static bool sets_alone(const cuda_program *p, const int32_t *writers) {
    const dev_instr *like = NULL;
    int32_t sets = 0;
    bool alone = saves_rows(p);
    for (int32_t k = 0; k < p->count; k++) {
        const dev_instr *ins = &p->code[k];
        if (!is_part(ins, FUSED_SET_GRAD)) continue;
        if (!like) like = ins;
        sets++;
        alone &= ins->math != DEV_FP32 && ins->math == like->math;
        for (int j = 0; j < SET_ROWS; j++)
            alone &= ins->fused.addr[set_rows[j].operand] == like->fused.addr[set_rows[j].operand];
        for (int j = 0; j < SET_SUMS; j++)
            alone &= ins->fused.addr[set_sums[j]] == like->fused.addr[set_sums[j]];
    }
    for (int j = 0; like && j < SET_ROWS; j++) {
        const int64_t at = gradient_at(&like->fused, set_rows[j].operand);
        alone &= at >= 0 && writers[at] == sets;
    }
    for (int j = 0; like && j < SET_SUMS; j++) {
        const int64_t at = gradient_at(&like->fused, set_sums[j]);
        alone &= at < 0 || writers[at] == sets; /* that of pq is no weight's */
    }
    return alone && like;
}

/* A matrix that the forward part saves goes where products find it, in col8 layout: rows of all
 * points, then those of the context. */
static void move_side(dev_fused *forward, dev_fused *f, int32_t which, uint32_t to) {
    const uint32_t after = FUSED_POINTS * 4;
    forward->addr[SET_ALL + which] = f->addr[SETG_ALL + which] = to;
    forward->addr[SET_SOME + which] = f->addr[SETG_SOME + which] = to + after;
}
/* Or nowhere, where there is no reverse pass. */
static void drop_sides(dev_fused *forward) {
    for (int j = 0; j < SET_SAVED; j++)
        forward->addr[SET_ALL + set_saved[j][0]] = forward->addr[SET_SOME + set_saved[j][0]] =
            FUSED_ABSENT;
}

static void move_set(cuda_program *p, dev_instr *ins) {
    dev_fused *f = &ins->fused;
    dev_instr *forward = part_with(p, FUSED_SET, SET_ALL + SIDE_A0, f->addr[SETG_ALL + SIDE_A0]);
    for (int j = 0; j < SET_SAVED; j++) {
        move_side(&forward->fused, f, set_saved[j][0], fused_addr(DEV_STORE_SAVED, p->saved_words));
        p->saved_words += set_saved[j][1] / 8 * SET_COL8;
    }
    f->addr[SETG_SAVED] = fused_addr(DEV_STORE_SAVED, p->saved_words);
    p->saved_words += SET_ROWS_SAVED;
    ins->i[0] = 0;
}

/* The last set adds to a gradient where the first one would have. */
static void form_sums(const dev_instr *first, dev_instr *last, int32_t sets) {
    for (int j = 0; j < SET_SUMS; j++) {
        const uint64_t bit = (uint64_t)1 << set_sums[j];
        last->fused.acc = (last->fused.acc & ~bit) | (first->fused.acc & bit);
        last->fused.fresh = (last->fused.fresh & ~bit) | (first->fused.fresh & bit);
    }
    last->i[0] = sets;
}

static void add_set_terms(cuda_program *p, const dev_instr *ins, const set_row *row,
                          dev_product *to) {
    const uint32_t base = fused_addr(DEV_STORE_SAVED, 0);
    const int32_t x = (int32_t)(ins->fused.addr[SETG_ALL + row->x] - base);
    const int32_t g = (int32_t)(ins->fused.addr[SETG_SAVED] - base) + row->g;
    const int32_t step = SET_COL8 / 4;
    for (int32_t side = 0; side < 2; side++) {
        const int32_t down = side * FUSED_POINTS;
        add_term(p, to,
                 (dev_term){.x = {x + down * 4, step},
                            .g = {g + down * 4, step},
                            .side = side == 0 ? DEV_SIDE_ALL : DEV_SIDE_CONTEXT});
    }
}

/* A sum for each milestone, of the sets that are complete with it, in slots of its own. The last
 * one has short pieces, since the update waits for it. */
static void add_set_products(cuda_program *p, const set_row *row) {
    enum { LAST_SPLIT = 12 };
    int32_t splits = 0;
    for (int32_t milestone = 0; milestone <= DEV_ENDED; milestone++) {
        dev_product *to = NULL;
        for (int32_t k = 0; k < p->count; k++) {
            const dev_instr *ins = &p->code[k];
            if (!is_part(ins, FUSED_SET_GRAD) || grad_spans_complete(p, k) != milestone) continue;
            if (!to)
                to = add_product(p, &ins->fused, row->operand, SET_WIDTH, row->cols, milestone);
            to->math = ins->math;
            add_set_terms(p, ins, row, to);
        }
        if (!to) continue;
        if (milestone == DEV_ENDED) to->split = LAST_SPLIT;
        to->base = splits, splits += to->split;
    }
}

static void save_sets(cuda_program *p, const int32_t *writers) {
    const bool saves = sets_alone(p, writers);
    dev_instr *first = NULL, *last = NULL;
    int32_t sets = 0;
    for (int32_t k = 0; k < p->count; k++) {
        dev_instr *ins = &p->code[k];
        if (!is_part(ins, FUSED_SET_GRAD)) continue;
        if (!first) first = ins;
        last = ins, sets++;
        if (saves)
            move_set(p, ins);
        else
            ins->math = DEV_FP32;
    }
    if (saves) form_sums(first, last, sets);
    for (int32_t k = 0; !saves && k < p->count; k++) {
        dev_instr *ins = &p->code[k];
        if (!is_part(ins, FUSED_SET)) continue;
        if (first) ins->math = DEV_FP32;
        if (ins->math != DEV_FP32) drop_sides(&ins->fused);
    }
    for (int j = 0; saves && j < SET_ROWS; j++) add_set_products(p, &set_rows[j]);
}

/* ---- the first layer ------------------------------------------------------------------------- */

/* Does an instruction read x as floats, other than the first layer's reverse pass? */
static bool reads_features(const dev_instr *ins, uint32_t x) {
    const dev_fused *f = &ins->fused;
    bool reads = false;
    if (is_part(ins, FUSED_FLOW))
        reads = f->addr[FLOW_X] == x && (ins->math == DEV_FP32 || f->addr[FLOW_XH] == FUSED_ABSENT);
    else if (is_part(ins, FUSED_FLOW_GRAD))
        reads = f->addr[FLOWG_X] == x && ins->math == DEV_FP32;
    return reads || op_reads(ins, x);
}

/* dw = x^T gpre, the last thing that a function leaves. A product has 128 columns at most, so there
 * are two: columns 0 .. 127 and the others. */
static void save_first(cuda_program *p, dev_fused *first, dev_fused *f) {
    enum { COLUMNS = 192, WIDE = 128, LAST_SPLIT = 12, STEP = FUSED_POINTS };
    const int32_t x = (int32_t)save_features(p, &first->addr[FIRST_SAVED]);
    const int32_t g = (int32_t)p->saved_words;
    f->addr[FIRSTG_SAVED] = fused_addr(DEV_STORE_SAVED, g);
    p->saved_words += FIRSTG_ROWS_SAVED;
    for (int32_t from = 0; from < COLUMNS; from += WIDE) {
        const int32_t cols = from + WIDE <= COLUMNS ? WIDE : COLUMNS - from;
        dev_product *to = add_product(p, f, FIRSTG_DW, 160, cols, DEV_ENDED);
        to->at += from, to->ld = COLUMNS, to->split = LAST_SPLIT;
        add_term(
            p, to,
            (dev_term){.x = {x, STEP}, .g = {g + from * STEP / 2, STEP}, .side = DEV_SIDE_ALL});
    }
}

/* Does an instruction that is no part write there? */
static bool writes_to(const dev_instr *ins, uint32_t addr) {
    bool writes = false;
    for (int j = 0; ins->op < OPCODE_COUNT && j < DEV_OUT; j++)
        writes |= ins->out[j].present && ins->out[j].store == DEV_STORE_ACT &&
                  fused_addr(DEV_STORE_ACT, ins->out[j].offset) == addr;
    return writes;
}
/* Where sets that leave rows, and nobody else, make the gpre of instruction `end`, they add it up
 * where its rows are saved. */
static void add_up_in_rows(cuda_program *p, int32_t end) {
    dev_fused *f = &p->code[end].fused;
    const uint32_t gpre = f->addr[FIRSTG_GPRE];
    int32_t sets = 0;
    for (int32_t k = 0; k < end; k++) {
        const dev_instr *ins = &p->code[k];
        const bool set = is_part(ins, FUSED_SET_GRAD) && ins->fused.addr[SETG_GPRE] == gpre;
        if (set ? ins->fused.addr[SETG_SAVED] == FUSED_ABSENT : sets > 0 && writes_to(ins, gpre))
            return;
        sets += set;
    }
    if (sets == 0) return;
    for (int32_t k = 0; k < end; k++) {
        dev_instr *ins = &p->code[k];
        if (is_part(ins, FUSED_SET_GRAD) && ins->fused.addr[SETG_GPRE] == gpre)
            ins->fused.addr[SETG_GPREH] = f->addr[FIRSTG_SAVED];
    }
    f->addr[FIRSTG_GPRE] = FUSED_ABSENT;
}

static void save_first_layers(cuda_program *p, const int32_t *writers) {
    for (int32_t k = 0; saves_rows(p) && k < p->count; k++) {
        dev_instr *ins = &p->code[k];
        if (!is_part(ins, FUSED_FIRST_GRAD) || ins->math == DEV_FP32) continue;
        const uint32_t addr = ins->fused.addr[FIRSTG_X];
        dev_instr *first = part_with(p, FUSED_FIRST, FIRST_X, addr);
        const int64_t at = gradient_at(&ins->fused, FIRSTG_DW);
        if (!first || first->math == DEV_FP32 || at < 0 || writers[at] != 1) continue;
        save_first(p, &first->fused, &ins->fused);
        add_up_in_rows(p, k);
        ins->fused.addr[FIRSTG_X] = FUSED_ABSENT;
        bool read = false;
        for (int32_t j = 0; j < p->count; j++) read |= reads_features(&p->code[j], addr);
        if (!read) first->fused.addr[FIRST_X] = FUSED_ABSENT;
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void count_pieces(cuda_program *p) {
    for (int32_t k = 0; k < p->n_products; k++) {
        const int32_t end = p->products[k].base + p->products[k].split;
        if (end > p->product_pieces) p->product_pieces = end;
    }
}

static mnp_status alloc_rows(env *e, cuda_program *p) {
    const size_t parts = (size_t)p->n_fused;
    p->outer = env_alloc(e, parts * LATENT_ROWS + 1, sizeof *p->outer, "a program");
    p->products =
        env_alloc(e, parts * 3 + (DEV_ENDED + 1) * SET_ROWS, sizeof *p->products, "a program");
    p->terms = env_alloc(e, parts * 2 * SET_ROWS + 1, sizeof *p->terms, "a program");
    return p->outer && p->products && p->terms ? MNP_OK : MNP_ENOMEM;
}

mnp_status saved_rows_place(env *e, int64_t trainable, cuda_program *p) {
    const int64_t pieces = trainable / DEV_OUTER_WORDS + 1;
    int32_t *writers = env_alloc(e, (size_t)pieces, sizeof *writers, "a program");
    mnp_status status = writers ? alloc_rows(e, p) : MNP_ENOMEM;
    if (status == MNP_OK) {
        count_writers(p, writers);
        grad_spans_milestones(p);
        p->saved_words = DEV_SAVED_HEAD;
        save_flows(p, writers);
        save_sets(p, writers);
        save_first_layers(p, writers);
        count_pieces(p);
        for (int32_t k = 0; p->updates && k < p->count; k++)
            if (is_part(&p->code[k], FUSED_LATENT_GRAD) && latent_alone(&p->code[k].fused, writers))
                save_latent(p, &p->code[k].fused);
        if (p->saved_words == DEV_SAVED_HEAD) p->saved_words = 0;
    }
    env_free(e, writers);
    return status;
}
