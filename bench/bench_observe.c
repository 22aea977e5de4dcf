/* bench_observe.c: particles of the paper preset that follow a growing set, one thread. Rounds of:
 * 64 particles given 20 points, then one point more: the time where weights are enough, and the
 * time of going on to 21 points. How many gradients that takes depends on the weights (30 to 40 for
 * mnp-rbf, 16 at least), so the time of one is told too. */
#include <math.h>

#include "bench/bench_model.h"
#include "bench/peak.h"
#include "run/particles.h"

enum { POINTS = 20, MORE = 4, PARTICLES = 64, ROUNDS_MIN = 2, ROUNDS_MAX = 100 };

typedef struct place {
    env env;
    model *m;
    particles *particles;
    sampler *sampler;
} place;

static mnp_status open_place(const bench_setup *s, place *p) {
    model_spec spec;
    sampler_shape shape = {.points = POINTS + 1, .particles = PARTICLES, .contexts = 1};
    backend_choice cpu = {0};
    env_init(&p->env);
    MNP_TRY(spec_preset(&p->env, "mnp", "paper", &spec));
    MNP_TRY(model_create(&p->env, &spec, s->seed, &p->m));
    MNP_TRY(particles_create(&p->env, p->m, NULL, cpu, PARTICLES, (int64_t)POINTS + MORE,
                             &p->particles));
    return sampler_create(&p->env, p->m, NULL, cpu, &shape, &p->sampler);
}

static void close_place(place *p) {
    sampler_destroy(p->sampler);
    particles_destroy(p->particles);
    if (p->m) model_destroy(p->m);
}

typedef struct times {
    double weigh, move, gradient; /* seconds, the best */
    int64_t gradients;
} times;

static mnp_status one_round(place *p, const double *x, const double *y, uint64_t seed, times *t) {
    sampler_opts o = {.kind = SAMPLER_EXACT, .gradients = 60, .seed = seed};
    sampler_set set = {x, y, POINTS, 0};
    double rise;
    MNP_TRY(particles_condition(p->particles, &o, x, y, POINTS, POINTS));
    for (int64_t n = POINTS + 1; n <= POINTS + MORE; n++) {
        double start = bench_seconds();
        MNP_TRY(particles_condition(p->particles, &o, x, y, n, n));
        if (!particles_look(p->particles)->moved)
            t->weigh = fmin(t->weigh, bench_seconds() - start);
    }
    MNP_TRY(sampler_begin(p->sampler, &o, &set, 1));
    set.n++;
    double start = bench_seconds();
    MNP_TRY(sampler_extend(p->sampler, &set, &rise));
    double took = bench_seconds() - start;
    int64_t gradients = sampler_look(p->sampler, 0)->gradients;
    if (took < t->move) t->move = took, t->gradients = gradients;
    t->gradient = fmin(t->gradient, took / (double)gradients);
    return MNP_OK;
}

static mnp_status run_rounds(const bench_setup *s, place *p, times *t) {
    double x[POINTS + MORE], y[POINTS + MORE];
    for (int i = 0; i < POINTS + MORE; i++) x[i] = 1.9 * sin(1.0 + 2.3 * i), y[i] = sin(2 * x[i]);
    *t = (times){.weigh = INFINITY, .move = INFINITY, .gradient = INFINITY};
    const double end = bench_seconds() + s->seconds;
    for (int r = 0; r < ROUNDS_MIN || (r < ROUNDS_MAX && bench_seconds() < end); r++)
        MNP_TRY(one_round(p, x, y, s->seed + (uint64_t)r, t));
    return MNP_OK;
}

static void tell(const bench_setup *s, const times *t) {
    bench_report *to = s->report;
    fprintf(to->out, "observing, paper preset, %d particles, %d points, one thread\n", PARTICLES,
            POINTS);
    fprintf(to->out, "  weights        %8.2f ms\n", 1e3 * t->weigh);
    fprintf(to->out, "  with moves     %8.1f ms, %lld gradients of all particles\n", 1e3 * t->move,
            (long long)t->gradients);
    report_held(to, "observe_ms", "observe, without a move", 1e3 * t->weigh, "ms", REPORT_AT_MOST,
                3);
    report_add(to, "observe_gradient_ms", "one gradient of 64 particles at 21 points",
               1e3 * t->gradient, "ms");
    report_held(to, "observe_moves_ms", "observe, with moves", 1e3 * t->move, "ms", REPORT_AT_MOST,
                200);
}

mnp_status bench_observe(bench_setup *s) {
    place p = {0};
    times t;
    mnp_status status = open_place(s, &p);
    if (status == MNP_OK) status = run_rounds(s, &p, &t);
    if (status == MNP_OK)
        tell(s, &t);
    else
        snprintf(s->error, sizeof s->error, "%.500s", p.env.error);
    close_place(&p);
    return status;
}
