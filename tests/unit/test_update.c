/* test_update.c: the step of training (slot_sum, grad_norm, grad_total, adam, tick) against a plain
 * Adam in double, for both elements and for the CPU's vector loops; schedule, clipping, averaged
 * weights; and that a batch with a NaN changes nothing. */
#include "backend/cpu/step.h"
#include "check.h"
#include "op/update.h"

enum { SLOTS = 3, ITEMS = 5, RANGE = 40, STEPS = 50, MAX_WORDS = 512 };

typedef enum how { REF_DOUBLE, REF_FLOAT, CPU_BASE, CPU_AVX2, CPU_AVX512, HOWS } how;
static const char *const names[HOWS] = {"double", "float", "base", "avx2", "avx512"};

typedef struct fixture {
    env env;
    params params;
    graph graph;
    plan *plan;
    how by;
    const cpu_kernels *kernels; /* NULL: the ops' own step */
    size_t element;
    step_block step;
    exec_io io;
    double w[MAX_WORDS], m[MAX_WORDS], v[MAX_WORDS],
        average[MAX_WORDS]; /* the blocks, any element */
    double slots[SLOTS * MAX_WORDS], partial[MAX_WORDS], reports[ITEMS * 3];
} fixture;

static double get(const fixture *t, const void *block, int64_t at) {
    return t->element == 8 ? ((const double *)block)[at] : (double)((const float *)block)[at];
}

static void set(const fixture *t, void *block, int64_t at, double x) {
    if (t->element == 8)
        ((double *)block)[at] = x;
    else
        ((float *)block)[at] = (float)x;
}

/* A number that a float holds exactly, different for every place. */
static double noise(int64_t step, int64_t slot, int64_t at) {
    uint32_t h = (uint32_t)(step * 7919 + slot * 104729 + at * 31 + 17) * 2654435761u;
    return ((double)(h >> 16 & 0xfff) - 2048.0) / 1024.0;
}

static fixture *open_fixture(how by) {
    fixture *t = calloc(1, sizeof *t);
    t->by = by;
    t->kernels = by >= CPU_BASE ? cpu_kernels_best(names[by]) : NULL;
    t->element = by == REF_DOUBLE ? 8 : 4;
    env_init(&t->env);
    params_init(&t->params);
    graph_init(&t->graph, &t->env, &t->params);
    graph_param(&t->graph, "frozen", 3, 5, (param_init){.frozen = true});
    graph_param(&t->graph, "a", 7, 17, (param_init){0});
    graph_param(&t->graph, "b", 1, 3, (param_init){0});
    op_update(&t->graph);
    plan_opts capacity = {.n = 1, .m = 0, .samples = 1};
    CHECK(plan_make(&t->graph, &capacity, op_is_step, &t->plan) == MNP_OK);
    CHECK(t->plan->n_instrs == 5 && t->plan->n_function == 0);
    t->step = (step_block){.rate_max = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    t->io = (exec_io){
        .weights = t->w, .moment1 = t->m, .moment2 = t->v, .average = t->average, .step = &t->step};
    for (int64_t i = 0; i < t->params.words; i++) set(t, t->w, i, noise(-1, 0, i));
    for (int64_t i = 0; i < ITEMS; i++)
        for (int64_t j = 0; j < 3; j++) t->reports[3 * i + j] = (double)(i + 1) * (double)(j + 1);
    return t;
}

static void close_fixture(fixture *t) {
    plan_destroy(t->plan);
    graph_free(&t->graph);
    params_free(&t->env, &t->params);
    free(t);
}

/* Runs `test` for each way of running a step that this machine has. */
static void for_each(void (*test)(fixture *t)) {
    for (how by = 0; by < HOWS; by++) {
        if (by >= CPU_BASE && !cpu_kernels_best(names[by])) continue;
        CASE(names[by]);
        fixture *t = open_fixture(by);
        test(t);
        close_fixture(t);
    }
}

static void fill_slots(fixture *t, int64_t step) {
    int64_t words = t->params.trainable;
    for (int64_t s = 0; s < SLOTS; s++)
        for (int64_t i = 0; i < words; i++)
            set(t, t->slots, s * words + i, noise(step, s, i) * (i % 3 ? 1.0 : 0x1p-10));
}

/* The gradient of the batch, from the same numbers. */
static double gradient(int64_t step, int64_t at) {
    double sum = 0;
    for (int64_t s = 0; s < SLOTS; s++) sum += noise(step, s, at) * (at % 3 ? 1.0 : 0x1p-10);
    return sum / ITEMS;
}

static void run_step(fixture *t) {
    int64_t words = t->params.trainable;
    step_view view = {.plan = t->plan,
                      .io = &t->io,
                      .element = t->element,
                      .items = ITEMS,
                      .n_slots = SLOTS,
                      .slots = t->slots,
                      .words = words,
                      .partial = t->partial,
                      .n_ranges = (words + RANGE - 1) / RANGE,
                      .item_scalars = t->reports};
    for (int32_t k = 0; k < t->plan->n_instrs; k++) {
        const instr *ins = &t->plan->instrs[k];
        bool once = op_at(ins->op)->phase == PHASE_ONCE;
        for (int64_t range = once ? 0 : view.n_ranges - 1; range >= 0; range--) { /* any order */
            view.range = range;
            view.lo = range * RANGE, view.hi = once ? words : (range + 1) * RANGE;
            if (t->kernels)
                cpu_step(&view, ins, t->kernels);
            else
                op_at(ins->op)->step(&view, ins);
        }
    }
}

/* ---- tests -------------------------------------------------------------------------------------
 */

/* Adam written down once more, with every setting on. */
static void fifty_steps(fixture *t) {
    static double w[MAX_WORDS], m[MAX_WORDS], v[MAX_WORDS], average[MAX_WORDS];
    int64_t words = t->params.trainable;
    memset(m, 0, sizeof m), memset(v, 0, sizeof v);
    for (int64_t i = 0; i < words; i++) w[i] = get(t, t->w, i);
    t->step.clip = 2.0, t->step.ema = 0.9;
    t->step.warmup = 10, t->step.schedule = 1, t->step.total = STEPS;
    double tol = t->element == 8 ? 1e-13 : 2e-5, loosest = 0, tightest = 1e9;
    for (int64_t k = 0; k < STEPS; k++) {
        double norm2 = 0;
        for (int64_t i = 0; i < words; i++) norm2 += gradient(k, i) * gradient(k, i);
        double norm = sqrt(norm2), clip = norm > 2.0 ? 2.0 / norm : 1.0;
        double rate = 0.01 * (k < 10 ? (double)(k + 1) / 10 : 1.0) * 0.5 *
                      (1 + cos(3.14159265358979323846 * (double)k / STEPS));
        double c1 = 1 - pow(0.9, (double)(k + 1)), c2 = 1 - pow(0.999, (double)(k + 1));
        for (int64_t i = 0; i < words; i++) {
            double g = gradient(k, i) * clip;
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            w[i] -= rate * (m[i] / c1) / (sqrt(v[i] / c2) + 1e-8);
            average[i] = k == 0 ? w[i] : 0.9 * average[i] + 0.1 * w[i];
        }
        fill_slots(t, k);
        run_step(t);
        NEAR(t->step.grad_norm, norm, 0, tol);
        loosest = fmax(loosest, norm), tightest = fmin(tightest, norm);
    }
    CHECK(loosest > 2.0 && tightest < loosest); /* the clip was at work */
    CHECK(t->step.step == STEPS && t->step.bad_item == -1);
    for (int64_t i = 0; i < words; i++) {
        NEAR(get(t, t->w, i), w[i], tol, tol);
        NEAR(get(t, t->m, i), m[i], tol, tol);
        NEAR(get(t, t->v, i), v[i], tol, tol);
        NEAR(get(t, t->average, i), average[i], tol, tol);
    }
    for (int64_t i = words; i < t->params.words; i++) { /* frozen */
        CHECK(get(t, t->w, i) == (double)(float)noise(-1, 0, i));
        CHECK(get(t, t->average, i) == get(t, t->w, i));
        CHECK(get(t, t->m, i) == 0.0);
    }
}

/* Without a gradient a weight is a product: w (1 - r_0 d) (1 - r_1 d) .. with the rates of the
 * schedule, whatever the moments do. The frozen ones stay. */
static void only_decay(fixture *t) {
    int64_t words = t->params.trainable;
    double left = 1, d = 0.3, tol = t->element == 8 ? 1e-14 : 1e-5;
    t->step.decay = d, t->step.rate_max = 0.1;
    t->step.warmup = 10, t->step.schedule = 1, t->step.total = STEPS;
    memset(t->slots, 0, sizeof t->slots);
    for (int64_t k = 0; k < STEPS; k++) {
        double rate = 0.1 * (k < 10 ? (double)(k + 1) / 10 : 1.0) * 0.5 *
                      (1 + cos(3.14159265358979323846 * (double)k / STEPS));
        left *= 1 - rate * d;
        run_step(t);
    }
    CHECK(left < 0.6);
    for (int64_t i = 0; i < words; i++) NEAR(get(t, t->w, i), left * noise(-1, 0, i), 0, tol);
    for (int64_t i = words; i < t->params.words; i++)
        CHECK(get(t, t->w, i) == (double)(float)noise(-1, 0, i));
}

/* Decoupled: the decay is no part of the gradient, so the moments do not know of it, and one step
 * is that of plain Adam less rate d w. */
static void decay_beside_adam(fixture *t) {
    fixture *plain = open_fixture(t->by);
    int64_t words = t->params.trainable;
    double tol = t->element == 8 ? 1e-14 : 2e-7;
    t->step.decay = 2;
    fill_slots(t, 0), run_step(t);
    fill_slots(plain, 0), run_step(plain);
    for (int64_t i = 0; i < words; i++) {
        CHECK(get(t, t->m, i) == get(plain, plain->m, i));
        CHECK(get(t, t->v, i) == get(plain, plain->v, i));
        NEAR(get(t, t->w, i), get(plain, plain->w, i) - 0.01 * 2 * noise(-1, 0, i), tol, tol);
    }
    close_fixture(plain);
}

static void weight_decay(void) {
    for_each(only_decay);
    for_each(decay_beside_adam);
}

static void against_plain_adam(void) {
    for_each(fifty_steps);
}

static void clip_one(fixture *t) {
    int64_t words = t->params.trainable;
    for (int64_t i = 0; i < words; i++) set(t, t->slots, i, 5.0 * ITEMS);
    t->step.clip = 0.5;
    run_step(t);
    double norm = 5.0 * sqrt((double)words), g = 5.0 * 0.5 / norm;
    NEAR(t->step.grad_norm, norm, 0, 1e-6);
    NEAR(get(t, t->m, 3), 0.1 * g, 0, 1e-5);
    NEAR(get(t, t->v, words - 1), 0.001 * g * g, 0, 1e-5);
    memset(t->slots, 0, sizeof t->slots); /* a small gradient is not scaled up, zero is harmless */
    set(t, t->slots, 0, 0.25 * ITEMS);
    memset(t->m, 0, sizeof t->m);
    run_step(t);
    NEAR(get(t, t->m, 0), 0.025, 0, 1e-6);
    CHECK(t->step.step == 2 && isfinite(get(t, t->w, 1)));
}

static void clipping(void) {
    for_each(clip_one);
}

static void nothing_changes(fixture *t, const fixture *before) {
    size_t bytes = (size_t)t->params.words * t->element;
    CHECK(memcmp(t->w, before->w, bytes) == 0);
    CHECK(memcmp(t->m, before->m, bytes) == 0);
    CHECK(memcmp(t->v, before->v, bytes) == 0);
    CHECK(memcmp(t->average, before->average, bytes) == 0);
    CHECK(t->step.step == before->step.step);
    CHECK(!update_ok(&t->step));
}

static void bad_batch(fixture *t) {
    static fixture before;
    t->step.ema = 0.99;
    fill_slots(t, 0);
    run_step(t);
    CHECK(update_ok(&t->step));
    before = *t;

    fill_slots(t, 1); /* a loss that is not finite: the first one is named */
    t->reports[3 * 3] = NAN, t->reports[2 * 3] = INFINITY;
    run_step(t);
    nothing_changes(t, &before);
    CHECK(t->step.bad_item == 2);

    memcpy(t->reports, before.reports, sizeof t->reports);
    fill_slots(t, 1); /* a gradient that is not finite, somewhere in the last slot */
    set(t, t->slots, (SLOTS - 1) * t->params.trainable + 77, NAN);
    run_step(t);
    nothing_changes(t, &before);
    CHECK(t->step.bad_item == -1);

    fill_slots(t, 1); /* and on it goes */
    run_step(t);
    CHECK(update_ok(&t->step) && t->step.step == 2);
    CHECK(memcmp(t->w, before.w, sizeof t->w) != 0);
}

static void nan_batch_leaves_everything(void) {
    for_each(bad_batch);
}

static void means(fixture *t) {
    fill_slots(t, 0);
    run_step(t);
    NEAR(t->step.loss, 3.0, 0, 1e-15);
    NEAR(t->step.kl, 6.0, 0, 1e-15);
    NEAR(t->step.loglik, 9.0, 0, 1e-15);
}

static void reports_are_averaged(void) {
    for_each(means);
}

static void schedule(void) {
    step_block b = {.rate_max = 2.0, .warmup = 4, .total = 100};
    NEAR(update_rate(&b, 0), 0.5, 0, 1e-15);
    NEAR(update_rate(&b, 3), 2.0, 0, 1e-15);
    NEAR(update_rate(&b, 1000), 2.0, 0, 1e-15);
    b.schedule = 1;
    NEAR(update_rate(&b, 50), 1.0, 0, 1e-12);
    NEAR(update_rate(&b, 100), 0.0, 1e-15, 0);
    NEAR(update_rate(&b, 150), 0.0, 1e-15, 0); /* and stays there */
    b.warmup = 0;
    NEAR(update_rate(&b, 0), 2.0, 0, 1e-15);
}

/* report() puts the scalars where the step finds them, an absent one as zero. */
static void report_op(void) {
    env e;
    env_init(&e);
    params p;
    params_init(&p);
    graph g;
    graph_init(&g, &e, &p);
    val x = op_feed_scalars(&g, "x", EXT_N, false, false);
    op_report(&g, op_sum_rows(&g, x, ROWS_ALL), VAL_NONE, op_sum_rows(&g, x, ROWS_REST));
    plan *made = NULL;
    CHECK(plan_make(&g, &(plan_opts){.n = 4, .m = 4, .samples = 1}, op_is_step, &made) == MNP_OK);
    double *act = env_alloc(&e, (size_t)made->act_words + 1, sizeof(double), "test");
    double feed[8] = {0, 0, 0, 0, 1, 2, 4, 8}, reports[6] = {-1, -1, -1, -1, -1, -1};
    exec_io io = {.feed = {feed}, .feed_stride = {4}};
    frame f = {.plan = made, .io = &io, .item = 1, .items = 2, .n = 4, .m = 1, .S = 1};
    f.element = 8, f.act = act, f.item_scalars = reports;
    for (int32_t k = 0; k < made->n_instrs; k++)
        CHECK(ref_execute(&f, &made->instrs[k], &e) == MNP_OK);
    CHECK(reports[2] == -1 && reports[3] == 15 && reports[4] == 0 && reports[5] == 14);
    op_report(&g, x, VAL_NONE, VAL_NONE); /* not a double scalar */
    CHECK(g.status == MNP_EINVAL);
    env_free(&e, act);
    plan_destroy(made);
    graph_free(&g);
    params_free(&e, &p);
}

int main(void) {
    RUN(against_plain_adam);
    RUN(weight_decay);
    RUN(clipping);
    RUN(nan_batch_leaves_everything);
    RUN(reports_are_averaged);
    RUN(schedule);
    RUN(report_op);
    return check_done();
}
