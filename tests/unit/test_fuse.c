/* test_fuse.c: the parts of the paper's model are found in its training plan, every one of them;
 * what is nearly such a part is not taken for one, and other models stay as they are. That programs
 * with parts compute the same is for tests/contract/test_cuda.c. */
#include "backend/cuda/fuse/fuse.h"
#include "backend/cuda/fuse/saved_rows.h"
#include "backend/cuda/program/cuda_ops.h"
#include "backend/cuda/program/grad_spans.h"
#include "check.h"
#include "model/model.h"
#include "model/process/process.h"
#include "op/attention.h"
#include "op/gauss.h"
#include "op/linear.h"
#include "op/op.h"

static env world;

typedef struct recorded {
    model *m;
    graph graph;
    plan *plan;
} recorded;

/* T: transitions; 0: as many as the preset has */
static void record_T(recorded *r, const char *preset, int64_t T, int64_t n, int64_t m,
                     int64_t samples) {
    model_spec spec;
    *r = (recorded){0};
    CHECK(spec_preset(&world, "mnp", preset, &spec) == MNP_OK);
    spec.x_dim = 1;
    if (T > 0) spec.T = T;
    CHECK(model_create(&world, &spec, 5, &r->m) == MNP_OK);
    process_train_opts c = {.update = true, .draw = {.train = true, .x_dim = 1, .lo = 2, .hi = 50}};
    graph_init(&r->graph, &world, &r->m->params);
    process_at(spec.kind)->train_step(&r->graph, &r->m->spec, &c);
    plan_opts o = {.n = n, .m = m, .samples = samples};
    CHECK(plan_make(&r->graph, &o, op_is_step, &r->plan) == MNP_OK);
}

static void record(recorded *r, const char *preset, int64_t n, int64_t m, int64_t samples) {
    record_T(r, preset, 0, n, m, samples);
}

static void forget(recorded *r) {
    plan_destroy(r->plan);
    graph_free(&r->graph);
    model_destroy(r->m);
}

/* Seven transitions have each kind once; what they share and the end come once a step. */
enum { ALL_PARTS = 7 * (FUSED_COUNT - 3) + 3 };
static int32_t usual(int kind) {
    return kind == FUSED_END || kind == FUSED_FIRST || kind == FUSED_FIRST_GRAD ? 1 : 7;
}

static void count_kinds(const cuda_program *p, int32_t count[FUSED_COUNT]) {
    for (int k = 0; k < FUSED_COUNT; k++) count[k] = 0;
    for (int32_t k = 0; k < p->count; k++)
        if (p->code[k].op >= OPCODE_COUNT) count[p->code[k].op - OPCODE_COUNT]++;
}

static int32_t parts_of(const char *preset, int64_t n, int64_t m, int64_t samples, uint32_t kinds,
                        int32_t count[FUSED_COUNT]) {
    recorded r;
    cuda_program p;
    record(&r, preset, n, m, samples);
    CHECK(program_make(&world, r.plan, MATH_TF32, kinds, WIDE_NEVER, &p) == MNP_OK);
    const int32_t parts = p.n_fused;
    count_kinds(&p, count);
    program_free(&world, &p);
    forget(&r);
    return parts;
}

static void paper_parts(void) {
    int32_t count[FUSED_COUNT];
    CHECK(parts_of("paper", 128, 50, 1, PROGRAM_FUSE_ALL, count) == ALL_PARTS);
    for (int k = 0; k < FUSED_COUNT; k++) CHECK(count[k] == usual(k));
    CHECK(parts_of("paper", 128, 50, 1, 0, count) == 0);
    /* what encoder and conditioner keep is for their fused reverse passes alone (fuse/match.c) */
    static const uint32_t pairs[2][2] = {{1u << FUSED_SET, 1u << FUSED_SET_GRAD},
                                         {1u << FUSED_FLOW, 1u << FUSED_FLOW_GRAD}};
    for (int k = 0; k < 2; k++) {
        CHECK(parts_of("paper", 128, 50, 1, pairs[k][0] | pairs[k][1], count) == 14);
        CHECK(parts_of("paper", 128, 50, 1, pairs[k][0], count) == 0);
        CHECK(parts_of("paper", 128, 50, 1, pairs[k][1], count) == 0);
    }
}

/* The slot of pre, which the first layer writes; -1: the part has none. */
static int pre_of(int32_t kind) {
    return kind == FUSED_FIRST      ? FIRST_PRE
           : kind == FUSED_SET      ? SET_PRE
           : kind == FUSED_SET_GRAD ? SETG_PRE
                                    : -1;
}

/* The sets' reverse pass reads pre, which no op of it does: it has the place that the forward pass
 * had, and nothing else of the plan ever lies there. */
static void pre_outlives_forward(void) {
    recorded r;
    cuda_program p;
    record(&r, "paper", 128, 50, 1);
    CHECK(program_make(&world, r.plan, MATH_TF32, PROGRAM_FUSE_ALL, WIDE_NEVER, &p) == MNP_OK);
    uint32_t pre = FUSED_ABSENT;
    int32_t parts = 0, values = 0;
    for (int32_t k = 0; k < p.count; k++) {
        const int32_t kind = p.code[k].op - OPCODE_COUNT;
        if (kind < 0 || pre_of(kind) < 0) continue;
        if (kind == FUSED_FIRST) pre = p.code[k].fused.addr[FIRST_PRE];
        CHECK(p.code[k].fused.addr[pre_of(kind)] == pre);
        parts++;
    }
    CHECK(parts == 1 + 7 + 7);
    const int64_t words = FUSED_POINTS * 192, at = pre;
    CHECK(pre >> FUSED_OFFSET_BITS == DEV_STORE_ACT && at + words <= p.act_words);
    for (val v = 0; v < r.plan->n_values; v++) {
        const value *of = &r.plan->values[v];
        const int64_t end = p.offset[v] + plan_words(r.plan, of);
        values += of->store == STORE_ACT && p.offset[v] < at + words && end > at;
    }
    CHECK(values == 1);
    program_free(&world, &p);
    forget(&r);
}

/* Values that no instruction has take no room, and all others fit. */
static void arena_is_short(void) {
    recorded r;
    cuda_program parts, ops;
    record(&r, "paper", 128, 50, 1);
    CHECK(program_make(&world, r.plan, MATH_TF32, PROGRAM_FUSE_ALL, WIDE_NEVER, &parts) == MNP_OK);
    CHECK(program_make(&world, r.plan, MATH_TF32, 0, WIDE_NEVER, &ops) == MNP_OK);
    CHECK(parts.act_words < ops.act_words);
    const cuda_program *both[] = {&parts, &ops};
    for (int k = 0; k < 2; k++)
        for (val v = 0; v < r.plan->n_values; v++) {
            const int64_t at = both[k]->offset[v], words = plan_words(r.plan, &r.plan->values[v]);
            if (r.plan->values[v].store != STORE_ACT || at < 0 || at == both[k]->act_words)
                continue;
            CHECK(at % 16 == 0 && at + words <= both[k]->act_words);
        }
    program_free(&world, &parts);
    program_free(&world, &ops);
    forget(&r);
}

/* Other widths, larger sets and several samples run op by op; other widths have the usual end. */
static void others_stay(void) {
    int32_t count[FUSED_COUNT];
    CHECK(parts_of("tiny", 128, 50, 1, PROGRAM_FUSE_ALL, count) == 1 && count[FUSED_END] == 1);
    CHECK(parts_of("paper", FUSED_POINTS + 1, 50, 1, PROGRAM_FUSE_ALL, count) == 0);
    CHECK(parts_of("paper", 128, FUSED_CONTEXT + 1, 1, PROGRAM_FUSE_ALL, count) == 0);
    CHECK(parts_of("paper", 128, 50, 2, PROGRAM_FUSE_ALL, count) == 0);
}

/* ---- nearly a part ----------------------------------------------------------------------------
 */

/* The paper's plan with something changed: one part less, of one kind. */
static void one_less(recorded *r, fused_kind kind) {
    cuda_program p;
    int32_t count[FUSED_COUNT];
    CHECK(program_make(&world, r->plan, MATH_TF32, PROGRAM_FUSE_ALL, WIDE_NEVER, &p) == MNP_OK);
    count_kinds(&p, count);
    for (int k = 0; k < FUSED_COUNT; k++) CHECK(count[k] == usual(k) - (k == (int)kind));
    program_free(&world, &p);
    forget(r);
}

/* The paper's plan with something changed in a part that keeps values for its fused reverse pass
 * alone: neither of the two is fused, everything else is. */
static void no_pairs(recorded *r, fused_kind forward, fused_kind reverse) {
    cuda_program p;
    int32_t count[FUSED_COUNT];
    CHECK(program_make(&world, r->plan, MATH_TF32, PROGRAM_FUSE_ALL, WIDE_NEVER, &p) == MNP_OK);
    count_kinds(&p, count);
    for (int k = 0; k < FUSED_COUNT; k++)
        CHECK(count[k] == (k == (int)forward || k == (int)reverse ? 0 : usual(k)));
    program_free(&world, &p);
    forget(r);
}
static void no_sets(recorded *r) {
    no_pairs(r, FUSED_SET, FUSED_SET_GRAD);
}
static void no_flows(recorded *r) {
    no_pairs(r, FUSED_FLOW, FUSED_FLOW_GRAD);
}

/* The first instruction of an op; its first output has so many columns, or 0: any. */
static instr *first_of(const recorded *r, op_id op, int32_t cols) {
    for (int32_t k = 0; k < r->plan->n_function; k++) {
        instr *ins = &r->plan->instrs[k];
        if (ins->op == (int32_t)op && (cols == 0 || r->plan->values[ins->out[0]].cols == cols))
            return ins;
    }
    CHECK(false);
    return &r->plan->instrs[0];
}

static void record_paper(recorded *r) {
    record(r, "paper", 128, 50, 1);
}

/* One op of a part is another: it stays op by op, with all the others it would have had. */
static void another_op(void) {
    recorded r;
    record_paper(&r);
    first_of(&r, OP_rqs_to_noise, 0)->i[0] = 9; /* bins */
    no_flows(&r);
    record_paper(&r);
    first_of(&r, OP_linear, 29)->i[0] = ACT_RELU;
    no_flows(&r);
    record_paper(&r);
    first_of(&r, OP_gauss_sample, 0)->i[SAMPLE_ROW] = 1;
    one_less(&r, FUSED_LATENT);
    record_paper(&r); /* two sigmas of one latent */
    first_of(&r, OP_gauss_kl, 0)->f[GAUSS_FLOOR] *= 2;
    one_less(&r, FUSED_LATENT);
    record_paper(&r);
    first_of(&r, OP_gauss_kl_grad, 0)->i[GAUSS_KIND] ^= 1;
    one_less(&r, FUSED_LATENT_GRAD);
    record_paper(&r); /* the loss is that of the targets */
    first_of(&r, OP_per_point, 0)->i[0] = ROWS_REST;
    one_less(&r, FUSED_END);
    record_paper(&r); /* or another one */
    first_of(&r, OP_per_point, 0)->f[0] = -2.0;
    one_less(&r, FUSED_END);
}

/* All points look at the context alone in one op; or something else reads a layer's ReLU, of which
 * a part would keep the signs. */
static void sets_differ(void) {
    recorded r;
    record_paper(&r);
    first_of(&r, OP_attention, 64)->i[ATTENTION_KEYS] = EXT_M;
    no_sets(&r);
    record_paper(&r);
    for (int32_t k = 0; k < r.plan->n_function; k++) {
        const instr *ins = &r.plan->instrs[k];
        if (ins->op != OP_linear || ins->out[LINEAR_H] == VAL_NONE) continue;
        first_of(&r, OP_draw, 0)->in[FUSE_IN - 1] = ins->out[LINEAR_H];
        break;
    }
    no_sets(&r);
}

/* What stays inside a part is not stored, so nobody else may read it, nor what is stored in a form
 * of its own; anything else that is stored, anybody may. */
static void read_elsewhere(void) {
    for (int k = 0; k < 3; k++) {
        recorded r;
        record_paper(&r);
        instr *reader = first_of(&r, OP_draw, 0); /* in no part */
        const instr *last = first_of(&r, OP_linear, 29);
        const val raw = last->out[LINEAR_Y], h1 = last->in[LINEAR_X];
        val h0 = VAL_NONE, sum = VAL_NONE; /* h0 = relu(sum + pz) */
        for (int32_t i = 0; i < r.plan->n_function; i++)
            if (r.plan->instrs[i].out[0] == h1) h0 = r.plan->instrs[i].in[LINEAR_X];
        for (int32_t i = 0; i < r.plan->n_function; i++)
            if (r.plan->instrs[i].out[0] == h0) sum = r.plan->instrs[i].in[0];
        CHECK(h0 != VAL_NONE && sum != VAL_NONE && reader->in[FUSE_IN - 1] == VAL_NONE);
        reader->in[FUSE_IN - 1] = k == 0 ? sum : k == 1 ? h0 : raw;
        if (k < 2) {
            no_flows(&r);
            continue;
        }
        cuda_program p;
        CHECK(program_make(&world, r.plan, MATH_TF32, PROGRAM_FUSE_ALL, WIDE_NEVER, &p) == MNP_OK);
        CHECK(p.n_fused == ALL_PARTS);
        program_free(&world, &p);
        forget(&r);
    }
}

/* Two layers of the encoder that share a weight add to one gradient: a part would write it twice.
 */
static void gradient_of_two(void) {
    recorded r;
    cuda_program p;
    int32_t count[FUSED_COUNT];
    val own[2] = {VAL_NONE, VAL_NONE};
    record_paper(&r);
    for (int32_t k = 0; k < r.plan->n_function; k++) { /* of 64 x 64, in the encoder */
        instr *ins = &r.plan->instrs[k];
        const val w = ins->op == OP_linear_grad ? ins->out[LINEAR_GW] : VAL_NONE;
        if (w == VAL_NONE || ins->in[LINEAR_GRAD_H] == VAL_NONE || !ins->i[LINEAR_SKIP]) continue;
        if (own[0] == VAL_NONE) own[0] = w;
        if (own[1] == VAL_NONE && w != own[0]) own[1] = w;
        if (w == own[1]) ins->out[LINEAR_GW] = own[0];
    }
    CHECK(own[1] != VAL_NONE);
    CHECK(program_make(&world, r.plan, MATH_TF32, PROGRAM_FUSE_ALL, WIDE_NEVER, &p) == MNP_OK);
    count_kinds(&p, count);
    for (int k = 0; k < FUSED_COUNT; k++)
        CHECK(count[k] == (k == FUSED_SET_GRAD || k == FUSED_SET ? 0 : usual(k)));
    for (val v = 0; v < r.plan->n_values; v++) /* and gradients stay where they are */
        if (r.plan->values[v].store == STORE_PGRAD) CHECK(p.offset[v] == r.plan->values[v].offset);
    program_free(&world, &p);
    forget(&r);
}

/* ---- rows that are saved -----------------------------------------------------------------------
 */

/* Weight gradients of the latent are left as rows: nine weights a transition, but the first has no
 * latent before it. Each word of a slot belongs to one of them at most. */
static void latent_rows(void) {
    recorded r;
    cuda_program p;
    record(&r, "paper", 128, 50, 1);
    CHECK(program_make(&world, r.plan, MATH_TF32, PROGRAM_FUSE_ALL, WIDE_NEVER, &p) == MNP_OK);
    CHECK(p.n_outer == 7 * 9 - 2);
    CHECK(p.saved_words >= 7 * LATENT_SAVED);
    int64_t words = 0, summed = 0;
    for (int32_t j = 0; j < p.n_outer; j++) {
        const dev_outer *o = &p.outer[j];
        words += o->rows * o->cols;
        CHECK(o->at % DEV_OUTER_WORDS == 0 && o->at + o->rows * o->cols <= r.m->params.trainable);
        CHECK(o->x + o->x_step * (o->count - 1) + o->rows <= p.saved_words);
        CHECK(o->g + o->g_step * (o->count - 1) + o->cols <= p.saved_words);
    }
    for (int32_t k = 0; k < p.n_grad_spans; k++)
        if (p.grad_spans[k].outer >= 0) summed += p.grad_spans[k].words;
    CHECK(summed == words);
    program_free(&world, &p);
    CHECK(program_make(&world, r.plan, MATH_TF32, 0, WIDE_NEVER, &p) == MNP_OK);
    CHECK(p.n_outer == 0 && p.saved_words == 0);
    program_free(&world, &p);
    forget(&r);
}

/* Weights of latents, conditioners and sets are read as fp16, but not in fp32: a word has two. */
static void weights_as_halves(void) {
    recorded r;
    cuda_program p[2];
    record(&r, "paper", 128, 50, 1);
    for (int k = 0; k < 2; k++)
        CHECK(program_make(&world, r.plan, k ? MATH_TF32 : MATH_FP32, PROGRAM_FUSE_ALL, WIDE_NEVER,
                           &p[k]) == MNP_OK);
    CHECK(!p[0].reads_fp16 && p[1].reads_fp16 && p[0].count == p[1].count);
    const uint32_t floats = fused_addr(DEV_STORE_PARAM, 0);
    const uint32_t fp16 = fused_addr(DEV_STORE_FP16, 0);
    int32_t found = 0;
    for (int32_t k = 0; k < p[1].count; k++) {
        const dev_instr *one = &p[0].code[k], *other = &p[1].code[k];
        for (int j = 0; one->op >= OPCODE_COUNT && j < FUSED_OPERANDS; j++) {
            const uint32_t addr = other->fused.addr[j];
            if (!fused_in(addr, DEV_STORE_FP16)) continue;
            CHECK(one->fused.addr[j] >> FUSED_OFFSET_BITS == DEV_STORE_PARAM);
            CHECK(2 * (addr - fp16) == one->fused.addr[j] - floats);
            CHECK((addr - fp16) % 4 == 0); /* 16 bytes */
            found++;
        }
    }
    /* latents, of which the first has less; conditioners; sets, both ways; features */
    CHECK(found == 2 * (7 * 9 - 2) + 7 * 5 + 7 * 12 + 1);
    for (int k = 0; k < 2; k++) program_free(&world, &p[k]);
    forget(&r);
}

/* Every four weights have a place of their own in the fp16 copy; those of a conditioner's w1 lie in
 * blocks of 32 rows, in col8 layout of columns. */
static void halves_in_blocks(void) {
    recorded r;
    cuda_program p;
    record(&r, "paper", 128, 50, 1);
    CHECK(program_make(&world, r.plan, MATH_TF32, PROGRAM_FUSE_ALL, WIDE_NEVER, &p) == MNP_OK);
    const int64_t fours = r.plan->params->words / 4;
    char *taken = env_alloc(&world, (size_t)fours, 1, "a test");
    for (int64_t k = 0; k < fours; k++) {
        const int32_t at = p.fp16_at[k];
        CHECK(at >= 0 && at < fours && !taken[at]);
        taken[at] = 1;
    }
    env_free(&world, taken);
    int32_t k = 0;
    while (p.code[k].op != OPCODE_COUNT + FUSED_FLOW) k++;
    const int64_t at = 2 * (int64_t)(p.code[k].fused.addr[FLOW_W1] - fused_addr(DEV_STORE_FP16, 0));
    for (int32_t row = 0; row < 128; row++)
        for (int32_t c = 0; c < 128; c += 4)
            CHECK(4 * (int64_t)p.fp16_at[(at + row * 128 + c) / 4] ==
                  at + ((row / 32 * 16 + c / 8) * 32 + row % 32) * 8 + c % 8);
    program_free(&world, &p);
    forget(&r);
}

/* A weight that something else adds to has its gradient in the slot. */
static void shared_weight(void) {
    for (int shared = 0; shared < 2; shared++) {
        dev_instr code[2] = {{.op = OPCODE_COUNT + FUSED_LATENT_GRAD}, {.op = OPCODE_linear_grad}};
        for (int k = 0; k < FUSED_OPERANDS; k++) code[0].fused.addr[k] = FUSED_ABSENT;
        code[0].fused.addr[LATENTG_DWF] = fused_addr(DEV_STORE_PGRAD, 64);
        code[1].out[0] = (dev_operand){
            .present = 1, .store = DEV_STORE_PGRAD, .offset = shared ? 64 : 64 + 128 * 128};
        cuda_program p = {.code = code, .count = 2, .n_fused = 1, .updates = true};
        CHECK(saved_rows_place(&world, 64 + 2 * 128 * 128, &p) == MNP_OK);
        CHECK(p.n_outer == !shared);
        CHECK((code[0].fused.addr[LATENTG_SAVED] == FUSED_ABSENT) == shared);
        env_free(&world, p.outer);
        env_free(&world, p.products);
        env_free(&world, p.terms);
    }
}

/* Two conditioners of the same x, where something else adds to a weight of the first one: that one
 * leaves no rows, so the other leaves x for itself. */
static void shared_weight_of_conditioner(void) {
    enum { X = 64, H0 = 128, DW = 4096, EACH = 65536 };
    dev_instr code[5] = {{.op = OPCODE_COUNT + FUSED_FLOW},
                         {.op = OPCODE_COUNT + FUSED_FLOW},
                         {.op = OPCODE_COUNT + FUSED_FLOW_GRAD},
                         {.op = OPCODE_COUNT + FUSED_FLOW_GRAD},
                         {.op = OPCODE_linear_grad}};
    for (int k = 0; k < 4; k++) {
        dev_fused *f = &code[k].fused;
        const uint32_t which = k == 0 || k == 3 ? 0 : 1; /* the last one comes back first */
        const uint32_t first = fused_addr(DEV_STORE_PGRAD, DW + which * EACH);
        code[k].math = DEV_TF32;
        for (int j = 0; j < FUSED_OPERANDS; j++) f->addr[j] = FUSED_ABSENT;
        f->addr[k < 2 ? (int)FLOW_X : (int)FLOWG_X] = X;
        f->addr[k < 2 ? (int)FLOW_H0 : (int)FLOWG_H0] = H0 + which * EACH;
        if (k < 2) continue;
        f->addr[FLOWG_DWX] = first, f->addr[FLOWG_DW1] = first + 160 * 128;
        f->addr[FLOWG_DW2] = first + 288 * 128;
    }
    code[4].out[0] = (dev_operand){.present = 1, .store = DEV_STORE_PGRAD, .offset = DW};
    cuda_program p = {.code = code, .count = 5, .n_fused = 4, .updates = true};
    CHECK(saved_rows_place(&world, DW + 2 * EACH, &p) == MNP_OK);
    CHECK(code[0].math == DEV_FP32 && code[3].math == DEV_FP32 && p.n_products == 3);
    CHECK(code[1].math == DEV_TF32 && code[2].math == DEV_TF32);
    CHECK(code[0].fused.addr[FLOW_LEAVES] == FUSED_ABSENT);
    CHECK(code[1].fused.addr[FLOW_LEAVES] != FUSED_ABSENT);
    CHECK(code[1].fused.addr[FLOW_XH] == FUSED_ABSENT);
    env_free(&world, p.outer);
    env_free(&world, p.products);
    env_free(&world, p.terms);
}

/* A part of a kind that has an address as operand k. */
static const dev_instr *part_with(const cuda_program *p, fused_kind kind, int k, uint32_t addr) {
    for (int32_t i = 0; i < p->count; i++)
        if (p->code[i].op == OPCODE_COUNT + (int32_t)kind && p->code[i].fused.addr[k] == addr)
            return &p->code[i];
    return NULL;
}

/* The words of a term's matrix, in col8 layout. */
static bool has_col8_of(const cuda_program *p, const dev_rows *of, int32_t cols, int32_t step,
                        int32_t rows) {
    return of->step == step && of->at % 4 == 0 && of->at >= DEV_SAVED_HEAD &&
           of->at + ((cols / 8 - 1) * step + rows) * 4 <= p->saved_words;
}
static bool has_col8(const cuda_program *p, const dev_rows *of, int32_t cols) {
    return has_col8_of(p, of, cols, FUSED_POINTS, FUSED_POINTS);
}

/* In tf32 conditioners leave rows: three products a transition, each the gradient of a weight,
 * complete with its milestone in the order of the reverse pass; forward part, reverse part and
 * first layer agree about their places. */
static void conditioner_rows(void) {
    recorded r;
    cuda_program p;
    int32_t products = 0;
    record(&r, "paper", 128, 50, 1);
    CHECK(program_make(&world, r.plan, MATH_BF16, PROGRAM_FUSE_ALL, WIDE_NEVER, &p) == MNP_OK);
    for (int32_t j = 0; j < p.n_products; j++) {
        const dev_product *of = &p.products[j];
        if (of->rows == 64 || of->milestone == DEV_ENDED)
            continue; /* of sets, of the first layer */
        CHECK(of->milestone == products / 3 && of->math == DEV_TF32 && of->terms == 1);
        CHECK(of->split == 2 && of->base == 0 && of->first < p.n_terms);
        products++;
        CHECK(has_col8(&p, &p.terms[of->first].x, of->rows));
        CHECK(has_col8(&p, &p.terms[of->first].g, of->cols));
    }
    CHECK(products == 3 * 7);
    for (int32_t k = 0; k < p.count; k++) {
        const dev_fused *f = &p.code[k].fused;
        if (p.code[k].op != OPCODE_COUNT + FUSED_FLOW_GRAD) continue;
        const dev_instr *forward = part_with(&p, FUSED_FLOW, FLOW_SAVED, f->addr[FLOWG_SAVED]);
        CHECK(f->addr[FLOWG_SAVED] >> FUSED_OFFSET_BITS == DEV_STORE_SAVED);
        CHECK(forward && forward->fused.addr[FLOW_OUT] != FUSED_ABSENT);
        CHECK(forward && part_with(&p, FUSED_FIRST, FIRST_SAVED, forward->fused.addr[FLOW_XH]));
    }
    program_free(&world, &p);
    forget(&r);
}

/* Three layers of the sets leave rows: sums of both sides, of one transition a milestone, each in
 * slots of its own; the last transition's at the functions' end, in more parts. */
static void set_rows(void) {
    recorded r;
    cuda_program p;
    int32_t products = 0;
    record(&r, "paper", 128, 50, 1);
    CHECK(program_make(&world, r.plan, MATH_BF16, PROGRAM_FUSE_ALL, WIDE_NEVER, &p) == MNP_OK);
    for (int32_t j = 0; j < p.n_products; j++) {
        const dev_product *of = &p.products[j];
        if (of->rows != 64) continue;
        const int32_t set = products % 7;
        const bool last = set == 6;
        CHECK(of->milestone == (last ? DEV_ENDED : set + 1));
        CHECK(of->math == DEV_BF16 && of->terms == 2);
        CHECK(of->base == set * 2 && of->split == (last ? 12 : 2));
        CHECK(of->base + of->split <= p.product_pieces);
        products++;
        for (int32_t k = of->first; k < of->first + of->terms; k++) {
            const dev_term *t = &p.terms[k];
            const int32_t rows = t->side == DEV_SIDE_ALL ? FUSED_POINTS : FUSED_CONTEXT;
            CHECK(t->side == (k - of->first) % 2);
            CHECK(has_col8_of(&p, &t->x, 64, FUSED_POINTS + FUSED_CONTEXT, rows));
            CHECK(has_col8_of(&p, &t->g, of->cols, FUSED_POINTS + FUSED_CONTEXT, rows));
        }
    }
    CHECK(products == 3 * 7);
    uint32_t saved = 0; /* of the set before */
    int32_t sets = 0;
    for (int32_t k = 0; k < p.count; k++) {
        const dev_fused *f = &p.code[k].fused;
        if (p.code[k].op != OPCODE_COUNT + FUSED_SET_GRAD) continue;
        /* the last one forms sums of what all have left */
        CHECK(sets++ == 0 || f->addr[SETG_SAVED] == saved + SET_STEP);
        CHECK(p.code[k].i[0] == (sets == 7 ? 7 : 0));
        CHECK(sets < 7 || (f->fresh >> SETG_DWKV & 1 && !(f->acc >> SETG_GPQ & 1)));
        saved = f->addr[SETG_SAVED];
        const dev_instr *forward =
            part_with(&p, FUSED_SET, SET_ALL + SIDE_A0, f->addr[SETG_ALL + SIDE_A0]);
        CHECK(f->addr[SETG_SAVED] >> FUSED_OFFSET_BITS == DEV_STORE_SAVED);
        for (int s = 0; forward && s < SIDE_OPERANDS; s++) {
            CHECK(forward->fused.addr[SET_ALL + s] == f->addr[SETG_ALL + s]);
            CHECK(forward->fused.addr[SET_SOME + s] == f->addr[SETG_SOME + s]);
        }
        CHECK(forward != NULL);
    }
    program_free(&world, &p);
    forget(&r);
}

/* The first layer's gradient is two products at the functions' end, of 128 and of 64 columns; then
 * nobody reads its features as floats. */
static void first_layer_rows(void) {
    recorded r;
    cuda_program p;
    record(&r, "paper", 128, 50, 1);
    CHECK(program_make(&world, r.plan, MATH_TF32, PROGRAM_FUSE_ALL, WIDE_NEVER, &p) == MNP_OK);
    int64_t at[2] = {-1, -1};
    int32_t found = 0;
    for (int32_t j = 0; j < p.n_products; j++) {
        const dev_product *of = &p.products[j];
        if (of->rows != 160 || of->milestone != DEV_ENDED) continue;
        CHECK(of->ld == 192 && of->math == DEV_TF32 && of->terms == 1 && of->base == 0);
        CHECK(has_col8(&p, &p.terms[of->first].x, of->rows));
        CHECK(has_col8(&p, &p.terms[of->first].g, of->cols));
        CHECK(of->cols == 128 || of->cols == 64);
        at[of->cols == 64] = of->at;
        found++;
    }
    CHECK(found == 2 && at[0] >= 0 && at[1] == at[0] + 128);
    for (int32_t k = 0; k < p.count; k++) {
        const dev_fused *f = &p.code[k].fused;
        if (p.code[k].op == OPCODE_COUNT + FUSED_FIRST) CHECK(f->addr[FIRST_X] == FUSED_ABSENT);
        if (p.code[k].op != OPCODE_COUNT + FUSED_FIRST_GRAD) continue;
        CHECK(f->addr[FIRSTG_SAVED] >> FUSED_OFFSET_BITS == DEV_STORE_SAVED);
        CHECK(f->addr[FIRSTG_X] == FUSED_ABSENT && f->addr[FIRSTG_GPRE] == FUSED_ABSENT);
        for (int32_t j = 0; j < p.count; j++) /* the sets add up gpre there */
            if (p.code[j].op == OPCODE_COUNT + FUSED_SET_GRAD) {
                CHECK(p.code[j].fused.addr[SETG_GPREH] == f->addr[FIRSTG_SAVED]);
                CHECK(p.code[j].fused.addr[SETG_PREH] == p.code[j].fused.addr[SETG_PRE]);
            }
    }
    program_free(&world, &p);
    forget(&r);
}

/* Words that products write are summed over their slots, all of them. */
static void product_ranges(void) {
    recorded r;
    cuda_program p;
    int64_t words = 0, summed = 0;
    record(&r, "paper", 128, 50, 1);
    CHECK(program_make(&world, r.plan, MATH_TF32, PROGRAM_FUSE_ALL, WIDE_NEVER, &p) == MNP_OK);
    for (int32_t j = 0; j < p.n_products; j++)
        words += p.products[j].rows * p.products[j].cols * p.products[j].split;
    for (int32_t k = 0; k < p.n_grad_spans; k++) {
        summed += p.grad_spans[k].parts * p.grad_spans[k].words;
        CHECK(p.grad_spans[k].parts == 0 || p.grad_spans[k].outer < 0);
        CHECK(p.grad_spans[k].parts <= 4 || p.grad_spans[k].milestone == DEV_ENDED);
    }
    CHECK(summed == words && words > 0);
    program_free(&world, &p);
    forget(&r);
}

/* It leaves none in fp32. */
static void conditioner_keeps_none(void) {
    recorded r;
    cuda_program p;
    record(&r, "paper", 128, 50, 1);
    CHECK(program_make(&world, r.plan, MATH_FP32, PROGRAM_FUSE_ALL, WIDE_NEVER, &p) == MNP_OK);
    CHECK(p.n_products == 0 && p.product_pieces == 0);
    for (int32_t k = 0; k < p.count; k++)
        if (is_part(&p.code[k], FUSED_FLOW_GRAD))
            CHECK(p.code[k].fused.addr[FLOWG_SAVED] == FUSED_ABSENT);
    program_free(&world, &p);
    forget(&r);
}

/* Beside sets that are no parts it leaves its rows too: they are complete when the function ends.
 * The features are left by the first layer, or where that is no part by the first conditioner, and
 * read by all others. */
static void conditioner_alone(void) {
    for (int first = 0; first < 2; first++) {
        recorded r;
        cuda_program p;
        const uint32_t flows = 1u << FUSED_FLOW | 1u << FUSED_FLOW_GRAD;
        int32_t leave = 0, read = 0, count = 0;
        record(&r, "paper", 128, 50, 1);
        CHECK(program_make(&world, r.plan, MATH_TF32, first ? flows | 1u << FUSED_FIRST : flows,
                           WIDE_NEVER, &p) == MNP_OK);
        for (int32_t k = 0; k < p.count; k++) {
            const dev_fused *f = &p.code[k].fused;
            if (is_part(&p.code[k], FUSED_FLOW_GRAD)) CHECK(p.code[k].math == DEV_TF32);
            if (!is_part(&p.code[k], FUSED_FLOW)) continue;
            CHECK(p.code[k].math == DEV_TF32 && f->addr[FLOW_SAVED] != FUSED_ABSENT);
            CHECK(f->addr[FLOW_LEAVES] == FUSED_ABSENT || leave + read == 0);
            leave += f->addr[FLOW_LEAVES] != FUSED_ABSENT;
            read += f->addr[FLOW_XH] != FUSED_ABSENT;
            count++;
        }
        CHECK(count > 1 && leave == (first ? 0 : 1) && leave + read == count);
        CHECK(p.n_products == 3 * count && p.n_milestones == 0);
        for (int32_t j = 0; j < p.n_products; j++) CHECK(p.products[j].milestone == DEV_ENDED);
        program_free(&world, &p);
        forget(&r);
    }
}

/* Teams run no op that the device does not have. */
static void teams_know_less(void) {
    int32_t ops = 0, of_teams = 0;
    for (int32_t op = 0; op < OP_COUNT; op++) {
        CHECK(cuda_has_op(op) || !cuda_op_for_teams(op));
        ops += cuda_has_op(op), of_teams += cuda_op_for_teams(op);
    }
    CHECK(of_teams > 0 && of_teams < ops && ops < OP_COUNT);
}

/* ---- spans -----------------------------------------------------------------------------------
 */

/* The span among [lo, hi) that holds a word, or -1. */
static int32_t span_at(const cuda_program *p, int32_t lo, int32_t hi, int64_t word) {
    for (int32_t k = lo; k < hi; k++)
        if (word >= p->grad_spans[k].at && word < p->grad_spans[k].at + p->grad_spans[k].words)
            return k;
    return -1;
}

/* Every word is in one span, and one that holds rows' products is a whole part of its weight. */
static void covers_all(const recorded *r, const cuda_program *p) {
    int64_t words = 0;
    for (int32_t k = 0; k < p->n_grad_spans; k++) {
        const dev_grad_span *at = &p->grad_spans[k];
        words += at->words;
        CHECK(at->words > 0 && at->at % DEV_OUTER_WORDS == 0);
        CHECK(at->words <= (at->outer < 0 ? DEV_GRAD_SPAN_WORDS : DEV_TILE_WORDS));
        if (at->outer < 0) continue;
        const dev_outer *o = &p->outer[at->outer];
        CHECK(at->words == DEV_TILE_WORDS && (o->cols == 64 || o->cols == 128));
        CHECK((at->at - o->at) % DEV_TILE_WORDS == 0 && at->at >= o->at);
    }
    CHECK(words == r->m->params.trainable);
    for (int64_t at = 0; at < words; at += 16) CHECK(span_at(p, 0, p->n_grad_spans, at) >= 0);
}

/* Every part of a product and every span of outer products is in one wgrad task, in the order of
 * milestones. */
static void tasks_have_all(const cuda_program *p) {
    int32_t parts = 0, splits = 0, grad_spans = 0;
    for (int32_t j = 0; j < p->n_products; j++) splits += p->products[j].split;
    for (int32_t k = 0; k < p->n_wgrad_tasks; k++) {
        const dev_wgrad_task *task = &p->wgrad_tasks[k];
        CHECK(k == 0 || task->milestone >= p->wgrad_tasks[k - 1].milestone);
        for (int32_t i = 0; i < k; i++)
            CHECK(p->wgrad_tasks[i].product != task->product ||
                  p->wgrad_tasks[i].part != task->part);
        if (task->product >= 0) {
            parts++;
            CHECK(task->product < p->n_products && task->part < p->products[task->product].split);
            CHECK(task->milestone == p->products[task->product].milestone);
            continue;
        }
        CHECK(task->part == grad_spans && task->count > 0);
        for (int32_t i = grad_spans; i < grad_spans + task->count; i++)
            CHECK(p->grad_spans[i].outer >= 0 && p->grad_spans[i].milestone == task->milestone);
        grad_spans += task->count;
    }
    CHECK(parts == splits && grad_spans == p->task_spans && grad_spans > 0);
    for (int32_t k = grad_spans; k < p->n_grad_spans; k++) CHECK(p->grad_spans[k].outer < 0);
}

static void job_order(void) {
    recorded r;
    cuda_program p;
    record_paper(&r);
    CHECK(program_make(&world, r.plan, MATH_TF32, PROGRAM_FUSE_ALL, WIDE_NEVER, &p) == MNP_OK);
    tasks_have_all(&p);
    program_free(&world, &p);
    forget(&r);
}

/* One transition, two, and more than there are milestones: sets that come before the first
 * milestone are complete with it, all together. */
static void transitions_and_releases(void) {
    static const int32_t all[] = {1, 2, DEV_MILESTONES + 2};
    for (int i = 0; i < 3; i++) {
        recorded r;
        cuda_program p;
        const int32_t T = all[i], early = T - 1 < DEV_MILESTONES ? T - 1 : DEV_MILESTONES;
        int32_t sets = 0, terms = 0, passed = 0;
        record_T(&r, "paper", T, 128, 50, 1);
        CHECK(program_make(&world, r.plan, MATH_BF16, PROGRAM_FUSE_ALL, WIDE_NEVER, &p) == MNP_OK);
        CHECK(p.n_milestones == (T < DEV_MILESTONES ? T : DEV_MILESTONES));
        for (int32_t k = 0; k < p.count; k++) {
            if (p.code[k].op != OPCODE_COUNT + FUSED_SET_GRAD) continue;
            sets++;
            passed += p.code[k].milestone > 0;
            CHECK(p.code[k].milestone == (sets > T - p.n_milestones ? passed : 0));
            CHECK(p.code[k].i[0] == (sets == T ? T : 0));
        }
        for (int32_t j = 0; j < p.n_products; j++) {
            const dev_product *of = &p.products[j];
            if (of->rows != 64) continue;
            terms += of->terms;
            CHECK(of->terms ==
                  2 * (T > DEV_MILESTONES && of->milestone == 0 ? T - DEV_MILESTONES : 1));
        }
        CHECK(sets == T && passed == p.n_milestones && terms == 3 * 2 * T);
        CHECK(p.product_pieces == 2 * early + 12);
        covers_all(&r, &p);
        tasks_have_all(&p);
        program_free(&world, &p);
        forget(&r);
    }
}

/* What the last sets still write to comes at the end: the encoder. Conditioners and latents of a
 * transition are complete where its sets begin. */
static void milestones(void) {
    recorded r;
    cuda_program p;
    int32_t sets = 0, early = 0;
    record_paper(&r);
    CHECK(program_make(&world, r.plan, MATH_TF32, PROGRAM_FUSE_ALL, WIDE_NEVER, &p) == MNP_OK);
    for (int32_t k = 0; k < p.count; k++) {
        const bool is_set = p.code[k].op == OPCODE_COUNT + FUSED_SET_GRAD;
        sets += is_set;
        CHECK(p.code[k].milestone == (is_set ? sets : 0));
        CHECK(p.code[k].lets == (is_set && sets > 7 - MILESTONES_AHEAD));
    }
    covers_all(&r, &p);
    for (int32_t i = 0; i < r.m->params.count; i++) {
        const param *w = &r.m->params.list[i];
        const bool encoder = strncmp(w->name, "enc.", 4) == 0;
        const int32_t span = span_at(&p, 0, p.n_grad_spans, w->offset);
        if (w->init.frozen) continue;
        CHECK((p.grad_spans[span].milestone == DEV_ENDED) == encoder);
        early += !encoder;
    }
    CHECK(early > 0);
    program_free(&world, &p);
    CHECK(program_make(&world, r.plan, MATH_TF32, 0, WIDE_NEVER, &p) == MNP_OK);
    covers_all(&r, &p);
    CHECK(p.n_wgrad_tasks == 0); /* op by op there is no milestone */
    for (int32_t k = 0; k < p.n_grad_spans; k++) CHECK(p.grad_spans[k].milestone == DEV_ENDED);
    for (int32_t k = 0; k < p.count; k++) CHECK(p.code[k].milestone == 0);
    program_free(&world, &p);
    forget(&r);
}

int main(void) {
    env_init(&world);
    RUN(paper_parts);
    RUN(pre_outlives_forward);
    RUN(arena_is_short);
    RUN(others_stay);
    RUN(another_op);
    RUN(sets_differ);
    RUN(read_elsewhere);
    RUN(gradient_of_two);
    RUN(latent_rows);
    RUN(weights_as_halves);
    RUN(halves_in_blocks);
    RUN(shared_weight);
    RUN(shared_weight_of_conditioner);
    RUN(conditioner_rows);
    RUN(set_rows);
    RUN(first_layer_rows);
    RUN(product_ranges);
    RUN(conditioner_keeps_none);
    RUN(conditioner_alone);
    RUN(teams_know_less);
    RUN(job_order);
    RUN(transitions_and_releases);
    RUN(milestones);
    return check_done();
}
