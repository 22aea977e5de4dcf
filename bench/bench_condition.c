/* bench_condition.c: 100 particles of p(z | C) given 10 points, paper preset. Rounds of: the
 * multiply-add peak of all threads, then two moves. How many gradients exact draws take depends on
 * the weights (about 80 for mnp-rbf), so a fixed number is timed; the work of a gradient is the
 * same. It is counted from the recording: products of matrices, once each; what attention
 * recomputes is not counted. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/cpu/kernels.h"
#include "bench/bench_model.h"
#include "bench/peak.h"
#include "bench/work.h"
#include "run/sampler_internal.h"

enum { POINTS = 10, PARTICLES = 100, GRADIENTS = 10, ROUNDS_MAX = 400, ROUNDS_MIN = 3 };
enum { EXACT = 80 }; /* gradients of an exact draw */

/* ---- the rounds ------------------------------------------------------------------------------ */

typedef struct place {
    env env;
    pool *pool;
    model *m;
    sampler *sampler;
    backend_choice device;
} place;

static mnp_status open_place(const bench_setup *s, int threads, place *p) {
    model_spec spec;
    sampler_shape shape = {.points = POINTS, .particles = PARTICLES, .contexts = 1};
    char device[64];
    const bool named = strcmp(s->math, "all") != 0 && strcmp(s->device, "cpu") != 0;
    snprintf(device, sizeof device, "%.31s%s%s", s->device, named ? ":" : "", named ? s->math : "");
    env_init(&p->env);
    MNP_TRY(backend_choose(&p->env, device, &p->device));
    MNP_TRY(pool_create(&p->env, threads, &p->pool));
    MNP_TRY(spec_preset(&p->env, "mnp", "paper", &spec));
    MNP_TRY(model_create(&p->env, &spec, s->seed, &p->m));
    return sampler_create(&p->env, p->m, p->pool, p->device, &shape, &p->sampler);
}

static void close_place(place *p) {
    sampler_destroy(p->sampler);
    if (p->m) model_destroy(p->m);
    pool_destroy(p->pool);
}

typedef struct rounds {
    double wall[ROUNDS_MAX], best_wall, best_cpu, best_peak;
    int count;
} rounds;

static mnp_status run_rounds(const bench_setup *s, place *p, rounds *r) {
    double x[POINTS], y[POINTS];
    for (int i = 0; i < POINTS; i++) x[i] = -1.9 + 0.41 * i, y[i] = sin(2 * x[i]);
    sampler_set set = {x, y, POINTS, 0};
    sampler_opts o = {.kind = SAMPLER_REFINE, .gradients = GRADIENTS, .seed = s->seed};
    const char *isa = cpu_kernels_best(NULL)->isa;
    *r = (rounds){.best_wall = INFINITY, .best_cpu = INFINITY};
    MNP_TRY(sampler_begin(p->sampler, &o, &set, 1));
    const double end = bench_seconds() + s->seconds;
    while (r->count < ROUNDS_MIN || (r->count < ROUNDS_MAX && bench_seconds() < end)) {
        r->best_peak = fmax(r->best_peak, bench_peak_threads(p->pool, isa));
        const double cpu = bench_cpu_seconds(), start = bench_seconds();
        MNP_TRY(sampler_begin(p->sampler, &o, &set, 1));
        r->wall[r->count] = bench_seconds() - start;
        r->best_wall = fmin(r->best_wall, r->wall[r->count++]);
        r->best_cpu = fmin(r->best_cpu, bench_cpu_seconds() - cpu);
    }
    return MNP_OK;
}

static void tell(const bench_setup *s, place *p, rounds *r, int threads) {
    bench_report *to = s->report;
    const work_counts counts = {POINTS, POINTS, POINTS, PARTICLES};
    const double one = work_flop(p->sampler->gradient->plan, &counts);
    const double flop = one * (GRADIENTS + 1), part = flop / (r->best_wall * r->best_peak);
    const double rate = flop / r->best_wall;
    fprintf(to->out, "conditioning, paper preset, %d particles, %d points, %s\n", PARTICLES, POINTS,
            s->device);
    fprintf(to->out, "  work           %8.1f GFLOP of %d gradients, %.2f MFLOP a particle each\n",
            1e-9 * flop, GRADIENTS + 1, 1e-6 * one / PARTICLES);
    fprintf(to->out, "  time           %8.1f ms best, %.1f ms median of %d\n", 1e3 * r->best_wall,
            1e3 * bench_median(r->wall, r->count), r->count);
    fprintf(to->out, "  rate           %8.1f GFLOP/s\n", 1e-9 * rate);
    report_add(to, "condition_gflop", "work of 100 draws with 80 gradients",
               1e-9 * one * (EXACT + 1), "GFLOP");
    report_add(to, "condition_ms", "their time at the measured rate",
               1e3 * one * (EXACT + 1) / rate, "ms");
    report_add(to, "condition_gflops", "rate of conditioning", 1e-9 * rate, "GFLOP/s");
    if (p->device.b && p->device.b != backend_find("cpu")) return;
    fprintf(to->out, "  peak           %8.1f GFLOP/s of %d threads\n", 1e-9 * r->best_peak,
            threads);
    report_add(to, "condition_cpu_part", "conditioning by processor time",
               flop * threads / (r->best_cpu * r->best_peak), "of peak");
    report_held(to, "condition_part", "conditioning, work / (time x peak)", part, "of peak",
                REPORT_AT_LEAST, 0.4);
}

mnp_status bench_condition(bench_setup *s) {
    place p = {0};
    rounds r;
    int threads = s->threads > 0 ? s->threads : pool_default_threads() > 1 ? 2 : 1;
    mnp_status status = open_place(s, threads, &p);
    if (status == MNP_OK) status = run_rounds(s, &p, &r);
    if (status == MNP_OK)
        tell(s, &p, &r, threads);
    else
        snprintf(s->error, sizeof s->error, "%.500s", p.env.error);
    close_place(&p);
    return status;
}
