/* drawn.h: draws of functions, by any backend on the CPU, for test_draw.c and test_draw_options.c.
 * The y of a point is its place in the data set, so a drawn function tells where it came from. */
#ifndef MNP_TESTS_DRAWN_H
#define MNP_TESTS_DRAWN_H

#include "backend/cpu/cpu.h"
#include "check.h"
#include "op/draw.h"
#include "op/permute.h"

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
    t->data = (data_view){FUNCTIONS, X, t->start, t->x, t->y, false, 0, 0};
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

static const draw_opts train = {.train = true, .x_dim = X, .lo = 2, .hi = 9};
static const draw_opts eval = {.x_dim = X, .lo = 2, .hi = 9};

#endif
