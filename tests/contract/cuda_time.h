/* cuda_time.h: test_cuda --time: milliseconds of a step on the GPU, or of a gradient of exact
 * conditioning, and where they go. */
#ifndef MNP_TESTS_CUDA_TIME_H
#define MNP_TESTS_CUDA_TIME_H

#include <time.h>

#include "backend/cuda/host/cuda.h"
#include "contract/training.h"
#include "run/runner.h"

typedef struct cost {
    const char *what;
    int64_t cycles, count;
} cost;

static int dearest(const void *a, const void *b) {
    int64_t x = ((const cost *)a)->cycles, y = ((const cost *)b)->cycles;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The k-th value of the array, or the first that is there. */
static val at_or_first(const val *v, int count, int k) {
    for (int j = k; j >= 0; j--)
        if (v[j] != VAL_NONE) return v[j];
    for (int j = k + 1; j < count; j++)
        if (v[j] != VAL_NONE) return v[j];
    return VAL_NONE;
}

/* Cycles by op and size of its first output or weight. */
static void print_profile(exec *x, const plan *p, int64_t steps) {
    static const char EXTENT[] = {[EXT_FIXED] = '-', [EXT_N] = 'n', [EXT_M] = 'm', [EXT_K] = 'k'};
    static char names[512][96];
    cost costs[512];
    int n = 0;
    int64_t all = 0;
    cuda_cost at;
    for (int32_t k = 0; cuda_profile(x, k, &at); k++) {
        if (at.together == 0) continue;
        const instr *ins = &p->instrs[at.from];
        const val in = at_or_first(ins->in, INSTR_IN, 0), out = at_or_first(ins->out, INSTR_OUT, 0);
        const value *v = &p->values[in != VAL_NONE ? in : out];
        const value *w = &p->values[in != VAL_NONE ? at_or_first(ins->in, INSTR_IN, 1) : out];
        const value *o = &p->values[out != VAL_NONE ? out : in];
        char name[96];
        snprintf(name, sizeof name, "%-18s %c%d x %d, %c%d x %d -> %c%d", op_name(ins->op),
                 EXTENT[v->ext], v->rows, v->cols, EXTENT[w->ext], w->rows, w->cols, EXTENT[o->ext],
                 o->cols);
        if (at.part) snprintf(name, sizeof name, "%s", at.part);
        if (at.together > 1) snprintf(name, sizeof name, "%d small ones side by side", at.together);
        int j = 0;
        while (j < n && strcmp(names[j], name) != 0) j++;
        if (j == n) {
            if (n == 512) continue;
            snprintf(names[n], sizeof names[n], "%s", name);
            costs[n++] = (cost){names[j], 0, 0};
        }
        costs[j].cycles += at.cycles;
        costs[j].count++;
        all += at.cycles;
    }
    qsort(costs, (size_t)n, sizeof *costs, dearest);
    printf("  cycles of block 0 a step: %.0f\n", (double)all / (double)steps);
    for (int j = 0; j < n && j < 70; j++)
        printf("  %5.1f%%  %8.0f cycles each, %3lld of  %s\n",
               100.0 * (double)costs[j].cycles / (double)all,
               (double)costs[j].cycles / (double)(steps * costs[j].count),
               (long long)costs[j].count, costs[j].what);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void time_steps(const char *preset, int64_t batch, int profile_math) {
    static const char *const names[] = {"fp32", "tf32", "bf16"};
    enum { ROUNDS = 25, STEPS = 10 };
    const bool alone = profile_math >= 3;
    profile_math %= 3;
    for (int math = 0; math < 3; math++) {
        training t;
        if (alone && math != profile_math) continue;
        if (training_open(&t, "cuda", preset, (exec_opts){.math = (exec_math)math}, 0)) {
            double ms[ROUNDS];
            training_steps(&t, batch, 20);
            for (int k = 0; k < ROUNDS; k++) {
                training_steps(&t, batch, STEPS);
                ms[k] = cuda_milliseconds(t.exec) / STEPS;
            }
            qsort(ms, ROUNDS, sizeof *ms, ascending);
            printf("%s%s%s, %lld points, contexts up to %lld, batch %lld %s: %.4f ms a step "
                   "(median of %d x %d; %.4f to %.4f), loss %.4f, "
                   "%.0f MB\n",
                   preset, *changes ? " " : "", changes, (long long)points, (long long)longest,
                   (long long)batch, names[math], ms[ROUNDS / 2], ROUNDS, STEPS, ms[0],
                   ms[ROUNDS - 1], t.step.loss, (double)t.b->memory(t.exec) / 1e6);
        }
        training_close(&t);
        fflush(stdout);
        if (math != profile_math) continue;
        if (training_open(&t, "cuda", preset, (exec_opts){.math = (exec_math)math, .profile = true},
                          0)) {
            training_steps(&t, batch, 20);
            print_profile(t.exec, t.plan, 20);
        }
        training_close(&t);
    }
}

/* ---- exact conditioning ---------------------------------------------------------------------- */

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void record_gradient(graph *g, const model_spec *s, void *what) {
    (void)what;
    process_at(s->kind)->particle(g, s, PARTICLE_GRADIENT);
}

/* Gradients of particles, given some points of a sine: wall time of one, and where it goes. */
static void time_gradient(const char *preset, int64_t particles, exec_math math, bool profile) {
    enum { RUNS = 60, WARM = 5 };
    model_spec spec;
    model *m = NULL;
    runner *r = NULL;
    const int64_t n = points;
    runner_opts o = {.capacity = {n, n, 1}, .wide = with_wide, .profile = profile};
    o.device = (backend_choice){.b = backend_find("cuda"), .math = math, .general = with_general};
    CHECK(spec_preset(&world, "mnp", preset, &spec) == MNP_OK);
    option_view view = spec_view(&spec);
    CHECK(options_parse(&world, &view, 1, changes) == MNP_OK);
    CHECK(model_create(&world, &spec, 1, &m) == MNP_OK);
    if (!m || runner_make(&world, m, &o, record_gradient, NULL, &r) != MNP_OK) {
        printf("%s\n", world.error);
        return;
    }
    const int64_t T = process_at(spec.kind)->latents(&spec), Z = spec.d_z;
    double *x = calloc((size_t)n, sizeof *x), *y = calloc((size_t)n, sizeof *y);
    double *eps = calloc((size_t)(T * particles * Z), sizeof *eps);
    double *grad = calloc((size_t)(T * particles * Z), sizeof *grad);
    double *numbers = calloc((size_t)(2 * particles), sizeof *numbers);
    int64_t *lengths = calloc((size_t)particles, sizeof *lengths);
    rng_stream s = rng_stream_make((rng_key){3}, RNG_TEST, 1);
    for (int64_t k = 0; k < T * particles * Z; k++) eps[k] = rng_normal(&s);
    for (int64_t k = 0; k < n; k++) x[k] = -1.9 + 3.8 * (double)k / (double)n, y[k] = sin(2 * x[k]);
    for (int64_t k = 0; k < particles; k++) lengths[k] = n;
    exec_io *io = &r->io;
    io->feed[PARTICLE_X] = x, io->feed[PARTICLE_Y] = y;
    io->feed_stride[PARTICLE_X] = io->feed_stride[PARTICLE_Y] = 0;
    io->n = io->m = lengths;
    io->samples = 1;
    for (int j = 0; j < PARTICLE_EMITS; j++)
        io->emit[j] = numbers + j * particles, io->emit_stride[j] = 1;
    for (int64_t t = 0; t < T; t++) {
        io->feed[PARTICLE_FEEDS + t] = eps + t * particles * Z;
        io->emit[PARTICLE_EMITS + t] = grad + t * particles * Z;
        io->feed_stride[PARTICLE_FEEDS + t] = io->emit_stride[PARTICLE_EMITS + t] = Z;
    }
    double ms[RUNS];
    for (int k = -WARM; k < RUNS; k++) {
        const double start = seconds();
        CHECK(runner_run(r, 1, particles) == MNP_OK);
        if (k >= 0) ms[k] = 1e3 * (seconds() - start);
    }
    qsort(ms, RUNS, sizeof *ms, ascending);
    static const char *const names[] = {"fp32", "tf32", "bf16", "mixed"};
    printf("a gradient of %lld particles, %lld points, %s: %.3f ms (median of %d; from %.3f), %.0f "
           "MB\n",
           (long long)particles, (long long)n, names[math], ms[RUNS / 2], RUNS, ms[0],
           (double)r->b->memory(r->exec) / 1e6);
    if (profile) print_profile(r->exec, r->plan, RUNS + WARM);
    fflush(stdout);
    runner_destroy(r);
    model_destroy(m);
    void *all[] = {x, y, eps, grad, numbers, lengths};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) free(all[k]);
}

/* In fp32 and tf32; the second time with a profile, which costs a little. */
static void time_gradients(const char *preset, int64_t particles) {
    for (int math = 0; math < 2; math++)
        for (int profile = 0; profile < 2; profile++)
            time_gradient(preset, particles, (exec_math)math, profile);
}

#endif
