/* test_fuse.c: the parts of the paper's model are found in its training plan, every one of them,
 * and the program that has them keeps what depends on what; other models stay as they are. */
#include "backend/cuda/program.h"
#include "check.h"
#include "model/model.h"
#include "model/process/process.h"

static env world;

typedef struct recorded {
    model *m;
    graph graph;
    plan *plan;
} recorded;

static void record(recorded *r, const char *preset, int64_t n, int64_t m, int64_t samples) {
    model_spec spec;
    *r = (recorded){0};
    CHECK(spec_preset(&world, "mnp", preset, &spec) == MNP_OK);
    spec.x_dim = 1;
    CHECK(model_create(&world, &spec, 5, &r->m) == MNP_OK);
    process_train_opts c = {.update = true,
                            .draw = {.train = true, .x_dim = 1, .lo = 2, .hi = 50}};
    graph_init(&r->graph, &world, &r->m->params);
    process_at(spec.kind)->train_step(&r->graph, &r->m->spec, &c);
    plan_opts o = {.n = n, .m = m, .samples = samples};
    CHECK(plan_make(&r->graph, &o, op_is_step, &r->plan) == MNP_OK);
}

static void forget(recorded *r) {
    plan_destroy(r->plan);
    graph_free(&r->graph);
    model_destroy(r->m);
}

static void count_kinds(const cuda_program *p, int32_t count[FUSED_COUNT]) {
    for (int k = 0; k < FUSED_COUNT; k++) count[k] = 0;
    for (int32_t k = 0; k < p->count; k++)
        if (p->code[k].op >= OPCODE_COUNT) count[p->code[k].op - OPCODE_COUNT]++;
}

static void paper_parts(void) {
    recorded r;
    cuda_program p;
    int32_t count[FUSED_COUNT];
    record(&r, "paper", 128, 50, 1);
    CHECK(program_make(&world, r.plan, MATH_TF32, PROGRAM_FUSE_ALL, &p) == MNP_OK);
    count_kinds(&p, count);
    for (int k = 0; k < FUSED_COUNT; k++) { printf("     kind %d: %d\n", k, count[k]); CHECK(count[k] == 7); }
    CHECK(p.n_fused == 7 * FUSED_COUNT);
    CHECK(p.count < 100);
    program_free(&world, &p);
    forget(&r);
}

/* Words that one place of a program reads or writes. */
typedef struct touched {
    int64_t from[FUSED_SLOTS], to[FUSED_SLOTS];
    bool write[FUSED_SLOTS];
    int count;
} touched;

int main(void) {
    env_init(&world);
    RUN(paper_parts);
    return check_done();
}
