/* test_draw.c: the draw of a function: which one, how many points, in which order; and that nothing
 * but the seed, the step and the item decides it. The y of a point is its place in the data set, so
 * a drawn function tells where it came from. */
#include "backend/cpu/cpu.h"
#include "check.h"
#include "op/draw.h"
#include "op/mirror.h"
#include "op/permute.h"
#include "op/region.h"

void cpu_draw(frame *f, const instr *ins);
size_t cpu_draw_scratch(const plan *p, const instr *ins, const cpu_kernels *k);

enum { FUNCTIONS = 20, MOST = 3000, POINTS = 8000, X = 2 };

typedef struct fixture {
    env env;
    params params;
    graph graph;
    plan *plan;
    int64_t start[FUNCTIONS + 1];
    float x[POINTS * X], y[POINTS];
    data_view data;
    step_block step;
    exec_io io;
    void *act, *scratch;
} fixture;

/* What an item got: lengths, and for each point its place in the data set. */
typedef struct result {
    int64_t n, k, m, place[MOST];
} result;

static const int64_t sizes[FUNCTIONS] = {128, 1, 40, 2, 3000, 7};

static fixture *open_fixture(const draw_opts *o, int64_t n_cap, int64_t m_cap) {
    fixture *t = calloc(1, sizeof *t);
    env_init(&t->env);
    for (int k = 0; k < FUNCTIONS; k++)
        t->start[k + 1] = t->start[k] + (sizes[k] ? sizes[k] : 11 + k);
    for (int p = 0; p < POINTS; p++) {
        t->y[p] = (float)p;
        t->x[p * X] = (float)-p, t->x[p * X + 1] = (float)(p + 1);
    }
    t->data = (data_view){FUNCTIONS, X, t->start, t->x, t->y, false};
    t->step = (step_block){.seed = 42};
    t->io = (exec_io){.step = &t->step, .data = &t->data};
    params_init(&t->params);
    graph_init(&t->graph, &t->env, &t->params);
    val x, y;
    op_draw(&t->graph, o, &x, &y);
    op_emit(&t->graph, x); /* what nobody reads would be dropped from the plan */
    op_emit(&t->graph, y);
    plan_opts capacity = {.n = n_cap, .m = m_cap, .samples = 1};
    CHECK(plan_make(&t->graph, &capacity, op_is_step, &t->plan) == MNP_OK);
    t->act = env_alloc(&t->env, (size_t)t->plan->act_words + 16, sizeof(double), "test");
    t->scratch = env_alloc(&t->env, cpu_draw_scratch(t->plan, t->plan->instrs, NULL), 1, "test");
    return t;
}

static void close_fixture(fixture *t) {
    env_free(&t->env, t->act);
    env_free(&t->env, t->scratch);
    plan_destroy(t->plan);
    graph_free(&t->graph);
    params_free(&t->env, &t->params);
    free(t);
}

static double word(const frame *f, const value *v, int64_t at) {
    const void *p = frame_at(f, v);
    return f->element == 8 ? ((const double *)p)[at] : (double)((const float *)p)[at];
}

typedef enum how { REF_DOUBLE, REF_FLOAT, CPU } how;

static result draw(fixture *t, int64_t item, int64_t items, how by) {
    frame f = {.plan = t->plan,
               .io = &t->io,
               .item = item,
               .items = items,
               .n = -5, /* the draw must not look at these */
               .k = -5,
               .m = -5,
               .S = 1,
               .element = by == REF_DOUBLE ? 8 : 4,
               .act = t->act,
               .scratch = t->scratch};
    memset(t->act, 0x7f, (size_t)t->plan->act_words * f.element);
    const instr *ins = &t->plan->instrs[0];
    if (by == CPU)
        cpu_draw(&f, ins);
    else
        CHECK(ref_execute(&f, ins, &t->env) == MNP_OK);
    const value *vx = &t->plan->values[ins->out[DRAW_X]], *vy = &t->plan->values[ins->out[DRAW_Y]];
    static result r;
    r.n = f.n, r.k = f.k, r.m = f.m;
    bool right = f.n >= 0 && f.n <= MOST;
    for (int64_t i = 0; right && i < f.n; i++) {
        double y = word(&f, vy, i);
        r.place[i] = (int64_t)y;
        right &= word(&f, vx, i * vx->ld) == -y && word(&f, vx, i * vx->ld + 1) == y + 1;
        for (int32_t c = X; c < vx->ld; c++) right &= word(&f, vx, i * vx->ld + c) == 0.0;
    }
    CHECK(right); /* x and y belong together, the padding is zero */
    return r;
}

static bool equal(const result *a, const result *b) {
    return a->n == b->n && a->k == b->k && a->m == b->m &&
           memcmp(a->place, b->place, (size_t)a->n * sizeof *a->place) == 0;
}

static int function_of(const fixture *t, const result *r) {
    for (int k = 0; k < FUNCTIONS; k++)
        if (r->place[0] >= t->start[k] && r->place[0] < t->start[k + 1]) return k;
    return -1;
}

/* Every point of one function exactly once (or of its first r->n permuted points, none twice). */
static bool no_point_twice(const fixture *t, const result *r) {
    static bool seen[POINTS];
    memset(seen, 0, sizeof seen);
    int k = function_of(t, r);
    for (int64_t i = 0; i < r->n; i++) {
        int64_t p = r->place[i];
        if (p < t->start[k] || p >= t->start[k + 1] || seen[p]) return false;
        seen[p] = true;
    }
    return true;
}

/* ---- tests -------------------------------------------------------------------------------------
 */

static const draw_opts train = {.train = true, .x_dim = X, .lo = 2, .hi = 9};
static const draw_opts eval = {.x_dim = X, .lo = 2, .hi = 9};

static void every_point_once(void) {
    fixture *t = open_fixture(&eval, MOST, MOST);
    for (int64_t k = 0; k < FUNCTIONS; k++) {
        result r = draw(t, k, FUNCTIONS, CPU);
        int64_t points = t->start[k + 1] - t->start[k];
        CHECK(function_of(t, &r) == k);
        CHECK(r.n == points);
        CHECK(no_point_twice(t, &r));
        CHECK(r.m >= (points < 2 ? points : 2) && r.m <= (points < 9 ? points : 9));
    }
    close_fixture(t);
}

static void context_sizes(void) {
    draw_opts o = train;
    o.lo = 3, o.hi = 6, o.p_empty = 0.25;
    fixture *t = open_fixture(&o, MOST, MOST);
    int count[16] = {0}, large = 0;
    for (t->step.step = 0; t->step.step < 200; t->step.step++)
        for (int64_t item = 0; item < FUNCTIONS; item++) {
            result r = draw(t, item, FUNCTIONS, CPU);
            if (r.n < 7) continue;
            count[r.m < 15 ? r.m : 15]++;
            large++;
        }
    NEAR(count[0] / (double)large, 0.25, 0.03, 0);
    for (int m = 3; m <= 6; m++) NEAR(count[m] / (double)large, 0.75 / 4, 0.03, 0);
    CHECK(count[0] + count[3] + count[4] + count[5] + count[6] == large);
    close_fixture(t);

    o.lo = o.hi = 0; /* never any context */
    t = open_fixture(&o, MOST, 0);
    for (int64_t item = 0; item < FUNCTIONS; item++) CHECK(draw(t, item, FUNCTIONS, CPU).m == 0);
    close_fixture(t);

    o = eval, o.p_empty = 1; /* evaluation never drops the context */
    t = open_fixture(&o, MOST, 5);
    for (int64_t item = 0; item < FUNCTIONS; item++) {
        result r = draw(t, item, FUNCTIONS, CPU);
        CHECK(r.m >= 1 && r.m <= 5); /* the plan has room for five */
    }
    close_fixture(t);
}

static void epochs_are_permutations(void) {
    enum { EPOCHS = 4, BATCH = 7 };
    fixture *t = open_fixture(&train, MOST, MOST);
    int list[EPOCHS * FUNCTIONS + BATCH], at = 0;
    for (t->step.step = 0; at < EPOCHS * FUNCTIONS; t->step.step++)
        for (int64_t item = 0; item < BATCH; item++) {
            result r = draw(t, item, BATCH, CPU);
            list[at++] = function_of(t, &r);
        }
    for (int e = 0; e < EPOCHS; e++) {
        int seen[FUNCTIONS] = {0};
        for (int k = 0; k < FUNCTIONS; k++) seen[list[e * FUNCTIONS + k]]++;
        for (int k = 0; k < FUNCTIONS; k++) CHECK(seen[k] == 1);
        if (e) CHECK(memcmp(list, list + e * FUNCTIONS, FUNCTIONS * sizeof *list) != 0);
    }
    close_fixture(t);
}

static void same_bits_everywhere(void) {
    const draw_opts *kinds[] = {&train, &eval};
    for (int kind = 0; kind < 2; kind++) {
        fixture *t = open_fixture(kinds[kind], MOST, MOST);
        fixture *wide = open_fixture(kinds[kind], 3 * MOST, MOST); /* another plan, more room */
        t->step.step = wide->step.step = 5;
        for (int64_t item = FUNCTIONS - 1; item >= 0; item--) { /* any order */
            result want = draw(t, item, FUNCTIONS, REF_DOUBLE);
            result got = draw(t, item, FUNCTIONS, REF_FLOAT);
            CHECK(equal(&got, &want));
            got = draw(t, item, FUNCTIONS, CPU);
            CHECK(equal(&got, &want));
            got = draw(wide, item, FUNCTIONS, CPU);
            CHECK(equal(&got, &want));
            wide->io.chunks = 3; /* the chunks of a function share its draw */
            for (int64_t c = 0; c < 3; c++) {
                got = draw(wide, 3 * item + c, 3 * FUNCTIONS, CPU);
                CHECK(equal(&got, &want));
            }
            wide->io.chunks = 0;
        }
        close_fixture(wide);
        close_fixture(t);
    }
}

static void seed_and_step_matter(void) {
    fixture *t = open_fixture(&train, MOST, MOST);
    t->step.step = 3;
    result a = draw(t, 0, 1, CPU);
    t->step.step = 3 + FUNCTIONS;
    result b = draw(t, 0, 1, CPU);
    t->step = (step_block){.seed = 43, .step = 3};
    result c = draw(t, 0, 1, CPU);
    CHECK(!equal(&a, &b));
    CHECK(!equal(&a, &c));
    close_fixture(t);
}

/* An evaluation split belongs to the function: not to its place in a run, nor to the step. */
static void evaluation_splits(void) {
    fixture *t = open_fixture(&eval, MOST, MOST);
    for (int64_t k = 0; k < FUNCTIONS; k++) {
        t->io.first_function = 0, t->step.step = 0;
        result want = draw(t, k, FUNCTIONS, CPU);
        t->io.first_function = k, t->step.step = 77;
        result got = draw(t, 0, 1, CPU);
        CHECK(equal(&got, &want));
    }
    close_fixture(t);
}

static void large_functions_are_cut(void) {
    draw_opts some = eval;
    some.max_points = 60;
    fixture *t = open_fixture(&eval, MOST, MOST);
    fixture *cut = open_fixture(&some, MOST, MOST), *small = open_fixture(&eval, 60, 20);
    for (int64_t k = 0; k < FUNCTIONS; k++) {
        result all = draw(t, k, FUNCTIONS, CPU);
        result a = draw(cut, k, FUNCTIONS, CPU), b = draw(small, k, FUNCTIONS, CPU);
        CHECK(equal(&a, &b));
        CHECK(a.n == (all.n < 60 ? all.n : 60) && a.m == all.m);
        CHECK(memcmp(a.place, all.place, (size_t)a.n * sizeof *a.place) == 0);
    }
    close_fixture(small);
    close_fixture(cut);
    close_fixture(t);
}

static void few_targets(void) {
    draw_opts o = train;
    o.few_targets = 1, o.p_empty = 0.2;
    fixture *t = open_fixture(&o, MOST, MOST);
    int64_t least = MOST, most = 0;
    for (t->step.step = 0; t->step.step < 50; t->step.step++)
        for (int64_t item = 0; item < FUNCTIONS; item++) {
            result r = draw(t, item, FUNCTIONS, CPU);
            CHECK(no_point_twice(t, &r));
            CHECK(r.n <= 9 + 1);
            int k = function_of(t, &r);
            if (t->start[k + 1] - t->start[k] <= 10) continue;
            CHECK(r.n - r.m >= 1);
            if (r.n - r.m < least) least = r.n - r.m;
            if (r.n - r.m > most) most = r.n - r.m;
        }
    CHECK(least == 1 && most == 10); /* 10 where the context was empty */
    close_fixture(t);
}

/* Noise lies on y outside the context alone, and is normal; x does not change. */
static void noise_on_targets(void) {
    draw_opts o = train;
    o.noise = 0.5;
    fixture *t = open_fixture(&o, MOST, MOST), *clean = open_fixture(&train, MOST, MOST);
    double sum = 0, squares = 0;
    int64_t count = 0;
    for (t->step.step = 0; t->step.step < 8; t->step.step++)
        for (int64_t item = 0; item < FUNCTIONS; item++) {
            clean->step.step = t->step.step;
            result want = draw(clean, item, FUNCTIONS, CPU);
            frame f = {.plan = t->plan,
                       .io = &t->io,
                       .item = item,
                       .items = FUNCTIONS,
                       .S = 1,
                       .element = 4,
                       .act = t->act,
                       .scratch = t->scratch};
            cpu_draw(&f, &t->plan->instrs[0]);
            const value *vy = &t->plan->values[t->plan->instrs[0].out[DRAW_Y]];
            CHECK(f.n == want.n && f.m == want.m);
            for (int64_t i = 0; i < f.n; i++) {
                double off = word(&f, vy, i) - (double)want.place[i];
                if (i < f.m) CHECK(off == 0);
                if (i < f.m) continue;
                sum += off, squares += off * off, count++;
            }
        }
    NEAR(sum / (double)count, 0, 0.02, 0);
    NEAR(sqrt(squares / (double)count), 0.5, 0.02, 0);
    close_fixture(clean);
    close_fixture(t);
}

/* Context inside what is seen inside what is drawn: the same points in the same order as without.
 */
static void seen_points(void) {
    draw_opts o = train;
    o.max_points = 100;
    fixture *plain = open_fixture(&o, MOST, MOST);
    o.seen = 5; /* contexts have 2 to 9 points */
    fixture *few = open_fixture(&o, MOST, MOST);
    o.seen = 40;
    fixture *t = open_fixture(&o, MOST, MOST);
    for (int64_t step = 0; step < 20; step++)
        for (int64_t item = 0; item < FUNCTIONS; item++) {
            t->step.step = plain->step.step = few->step.step = step;
            result want = draw(plain, item, FUNCTIONS, CPU), got = draw(t, item, FUNCTIONS, CPU);
            CHECK(want.k == want.n);
            CHECK(got.k == (got.n < 40 ? got.n : 40) && got.m <= got.k);
            for (int by = 0; by < 3; by++) {
                result same = draw(t, item, FUNCTIONS, (how)by);
                CHECK(equal(&same, &got));
            }
            got.k = got.n;
            CHECK(equal(&got, &want));
            got = draw(few, item, FUNCTIONS, CPU);
            int64_t least = got.m > 5 ? got.m : 5;
            CHECK(got.k == (got.n < least ? got.n : least));
            got.k = got.n;
            CHECK(equal(&got, &want));
        }
    close_fixture(plain);
    close_fixture(few);
    close_fixture(t);
}

/* All functions on one grid of 20 x 20; y tells the place of a point in the data set. Only points
 * that are seen are sorted by region. */
static void check_regions(int32_t seen) {
    enum { SIDE = 20, PIXELS = SIDE * SIDE };
    draw_opts o = train;
    o.p_region = 0.6, o.p_empty = 0.1, o.max_points = 200, o.mirror = 2, o.seen = seen;
    fixture *t = open_fixture(&o, PIXELS, PIXELS);
    instr never = t->plan->instrs[0]; /* the same draws, but no region */
    never.f[DRAW_P_REGION] = 1e-300;
    for (int k = 0; k <= FUNCTIONS; k++) t->start[k] = k * PIXELS;
    for (int p = 0; p < PIXELS; p++)
        t->x[2 * p] = (float)(2 * (p / SIDE)) / (SIDE - 1) - 1,
                 t->x[2 * p + 1] = (float)(2 * (p % SIDE)) / (SIDE - 1) - 1;
    t->data.shared_x = true;
    int count[4] = {0}, empty = 0, all = 0;
    for (t->step.step = 0; t->step.step < 100; t->step.step++)
        for (int64_t item = 0; item < FUNCTIONS; item++) {
            static int32_t memory[20000];
            frame f = {.plan = t->plan, .io = &t->io, .item = item, .items = FUNCTIONS};
            drawn d = permute_draw(&f, &t->plan->instrs[0], memory);
            CHECK(d.n == 200 && d.first_x == 0 && d.first % PIXELS == 0);
            CHECK(d.k == (seen ? seen : 200));
            static int32_t other[20000];
            drawn plain = permute_draw(&f, &never, other);
            CHECK(memcmp(plain.order + d.k, d.order + d.k, sizeof *d.order * (size_t)(d.n - d.k)) ==
                  0);
            int64_t inside[3] = {0}, last[3] = {0};
            for (int64_t i = 0; i < d.k; i++)
                for (int which = 0; which < REGION_COUNT; which++) {
                    const float *x = t->x + 2 * d.order[i];
                    if (!region_holds(which, mirror_input(d.mirrored, 0, x[0]),
                                      mirror_input(d.mirrored, 1, x[1])))
                        continue;
                    inside[which]++, last[which] = i + 1;
                }
            int kind = REGION_COUNT;
            for (int which = 0; which < REGION_COUNT; which++)
                if (last[which] == inside[which]) kind = which; /* they come first */
            if (kind < REGION_COUNT)
                CHECK(d.m <= inside[kind] && d.m >= inside[kind] - inside[kind] / 2 - 1);
            else
                CHECK(d.m == 0 || (d.m >= 2 && d.m <= 9));
            count[kind]++, all++;
            empty += d.m == 0;
        }
    NEAR(empty / (double)all, 0.1, 0.03, 0);
    for (int which = 0; which < REGION_COUNT; which++)
        NEAR(count[which] / (double)all, 0.9 * 0.6 / 3, 0.03, 0);
    close_fixture(t);
}

static void regions(void) {
    check_regions(0);
    check_regions(120);
}

/* Which inputs of an item's function have the other sign, two bits; the points themselves, their
 * order and their y are those of the unmirrored draw. -1 where they are not. */
static int mirrored(fixture *t, const fixture *plain, int64_t item, how by) {
    frame f = {.plan = t->plan,
               .io = &t->io,
               .item = item,
               .items = FUNCTIONS,
               .S = 1,
               .element = by == REF_DOUBLE ? 8 : 4,
               .act = t->act,
               .scratch = t->scratch};
    const instr *ins = &t->plan->instrs[0];
    if (by == CPU)
        cpu_draw(&f, ins);
    else
        CHECK(ref_execute(&f, ins, &t->env) == MNP_OK);
    result want = draw((fixture *)plain, item, FUNCTIONS, CPU);
    const value *vx = &t->plan->values[ins->out[DRAW_X]], *vy = &t->plan->values[ins->out[DRAW_Y]];
    bool same = f.n == want.n && f.m == want.m;
    int signs = -1;
    for (int64_t i = 0; same && i < f.n; i++) {
        double y = word(&f, vy, i), a = word(&f, vx, i * vx->ld), b = word(&f, vx, i * vx->ld + 1);
        same &= (int64_t)y == want.place[i] && fabs(a) == y && fabs(b) == y + 1;
        if (y == 0) continue; /* a zero tells nothing of its sign */
        int here = (a > 0) + 2 * (b < 0);
        same &= signs < 0 || here == signs;
        signs = here;
    }
    return same ? signs : -1;
}

static void mirrors(void) {
    draw_opts o = train;
    o.mirror = 2;
    fixture *t = open_fixture(&o, MOST, MOST), *plain = open_fixture(&train, MOST, MOST);
    o.mirror = 1;
    fixture *first = open_fixture(&o, MOST, MOST);
    int count[4] = {0}, all = 0, other_step = 0;
    for (int64_t step = 0; step < 30; step++)
        for (int64_t item = 0; item < FUNCTIONS; item++) {
            t->step.step = plain->step.step = first->step.step = step;
            int signs = mirrored(t, plain, item, CPU);
            CHECK(signs >= 0);
            CHECK(mirrored(t, plain, item, REF_FLOAT) == signs);
            CHECK(mirrored(t, plain, item, REF_DOUBLE) == signs);
            CHECK(mirrored(first, plain, item, CPU) == (signs & 1));
            count[signs & 3]++, all++;
            t->step.step = plain->step.step = step + 1;
            other_step += mirrored(t, plain, item, CPU) != signs;
        }
    for (int k = 0; k < 4; k++) NEAR(count[k] / (double)all, 0.25, 0.07, 0);
    NEAR(other_step / (double)all, 0.75, 0.07, 0);
    close_fixture(first);
    close_fixture(plain);
    close_fixture(t);

    o = eval, o.mirror = 2; /* never in evaluation */
    t = open_fixture(&o, MOST, MOST), plain = open_fixture(&eval, MOST, MOST);
    for (int64_t item = 0; item < FUNCTIONS; item++)
        CHECK(mirrored(t, plain, item, CPU) == 0 || t->start[item + 1] - t->start[item] < 2);
    close_fixture(plain);
    close_fixture(t);
}

static void permutations_are_uniform(void) {
    enum { DRAWS = 24000 };
    int count[27] = {0}, pairs[36] = {0};
    int32_t memory[256];
    rng_stream s = rng_stream_make((rng_key){5}, RNG_TEST, 0);
    for (int k = 0; k < DRAWS; k++) {
        const int32_t *p = permute_prefix(&s, 3, 3, memory);
        count[9 * p[0] + 3 * p[1] + p[2]]++;
        p = permute_prefix(&s, 6, 2, memory); /* goes through the table of far positions */
        pairs[6 * p[0] + p[1]]++;
    }
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++)
            if (a != b)
                NEAR(count[9 * a + 3 * b + 3 - a - b], DRAWS / 6.0, 5 * sqrt(DRAWS / 6.0), 0);
    for (int a = 0; a < 6; a++)
        for (int b = 0; b < 6; b++)
            NEAR(pairs[6 * a + b], a == b ? 0 : DRAWS / 30.0, a == b ? 0 : 5 * sqrt(DRAWS / 30.0),
                 0);
}

static void prefixes_agree(void) {
    enum { COUNT = 500 };
    int32_t *memory = calloc((size_t)permute_words(COUNT), sizeof *memory);
    int32_t *part = calloc((size_t)permute_words(COUNT), sizeof *part);
    rng_stream s = rng_stream_make((rng_key){6}, RNG_TEST, 1);
    rng_stream whole = s;
    const int32_t *all = permute_prefix(&whole, COUNT, COUNT, memory);
    for (int64_t k = 0; k <= COUNT; k += 20) {
        rng_stream again = s;
        const int32_t *some = permute_prefix(&again, COUNT, k, part);
        CHECK(memcmp(some, all, (size_t)k * sizeof *all) == 0);
    }
    free(part);
    free(memory);
}

static void bad_options(void) {
    const draw_opts bad[] = {{.x_dim = 1, .lo = -1, .hi = 2},
                             {.x_dim = 1, .lo = 3, .hi = 2},
                             {.x_dim = 0, .lo = 1, .hi = 2},
                             {.x_dim = 1, .lo = 1, .hi = 2, .p_empty = 1.5},
                             {.x_dim = 1, .lo = 1, .hi = 2, .p_empty = NAN},
                             {.x_dim = 1, .lo = 1, .hi = 2, .p_region = 0.5},
                             {.x_dim = 2, .lo = 1, .hi = 2, .noise = -1},
                             {.x_dim = 2, .lo = 1, .hi = 2, .mirror = 3},
                             {.x_dim = 1, .lo = 1, .hi = 2, .seen = -1}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        env e;
        env_init(&e);
        params p;
        params_init(&p);
        graph g;
        graph_init(&g, &e, &p);
        val x, y;
        op_draw(&g, &bad[k], &x, &y);
        CHECK(g.status == MNP_EINVAL && x == VAL_NONE && y == VAL_NONE);
        graph_free(&g);
        params_free(&e, &p);
    }
}

int main(void) {
    RUN(every_point_once);
    RUN(context_sizes);
    RUN(epochs_are_permutations);
    RUN(same_bits_everywhere);
    RUN(seed_and_step_matter);
    RUN(evaluation_splits);
    RUN(large_functions_are_cut);
    RUN(few_targets);
    RUN(noise_on_targets);
    RUN(seen_points);
    RUN(regions);
    RUN(mirrors);
    RUN(permutations_are_uniform);
    RUN(prefixes_agree);
    RUN(bad_options);
    return check_done();
}
