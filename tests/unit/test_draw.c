/* test_draw.c: the draw of a function: which one, how many points, in which order; and that nothing
 * but the seed, the step and the item decides it (drawn.h). */
#include "drawn.h"

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
    RUN(permutations_are_uniform);
    RUN(prefixes_agree);
    RUN(bad_options);
    return check_done();
}
