/* bench_observe.c: particles that follow a growing set, one thread. Rounds of: 64 particles given
 * 20 points, then one point more: the time where weights are enough, and that of a move. How often
 * which is needed is a matter of the model and its data: with a model given, functions drawn from
 * it are observed point by point. */
#include <math.h>

#include "base/rng.h"
#include "bench/bench_model.h"
#include "bench/peak.h"
#include "run/particles.h"
#include "run/predict.h"

enum { POINTS = 20, MORE = 20, PARTICLES = 64, ROUNDS_MIN = 2, ROUNDS_MAX = 100 };
enum { MOVE_MOST = 10 }; /* gradients; a new beginning takes dozens */

typedef struct place {
    env env;
    model *m;
    predictor *prior, *seen;
    particles *particles;
    sampler *sampler;
    double *z; /* (T, PARTICLES, Z) */
} place;

static mnp_status open_model(const bench_setup *s, place *p) {
    model_spec spec;
    if (s->model) MNP_TRY(model_load(&p->env, s->model, &p->m));
    if (s->model && (p->m->spec.x_dim != 1 || !process_at(p->m->spec.kind)->particle))
        return env_fail(&p->env, MNP_EUNSUPPORTED,
                        "%s: give a model with latents and one input, such as mnp-rbf", s->model);
    if (s->model) return MNP_OK;
    MNP_TRY(spec_preset(&p->env, "mnp", "paper", &spec));
    return model_create(&p->env, &spec, s->seed, &p->m);
}

static mnp_status open_place(const bench_setup *s, place *p) {
    sampler_shape shape = {.points = POINTS + 1, .particles = PARTICLES, .contexts = 1};
    backend_choice cpu = {0};
    env_init(&p->env);
    MNP_TRY(open_model(s, p));
    MNP_TRY(predictor_create(&p->env, p->m, NULL, cpu, &p->prior));
    MNP_TRY(predictor_create(&p->env, p->m, NULL, cpu, &p->seen));
    MNP_TRY(
        particles_create(&p->env, p->m, NULL, cpu, PARTICLES, (int64_t)POINTS + 1, &p->particles));
    MNP_TRY(sampler_create(&p->env, p->m, NULL, cpu, &shape, &p->sampler));
    int64_t T = process_at(p->m->spec.kind)->latents(&p->m->spec);
    p->z = env_alloc(&p->env, (size_t)(T * PARTICLES * p->m->spec.d_z), sizeof *p->z, "latents");
    return p->z ? MNP_OK : MNP_ENOMEM;
}

static void close_place(place *p) {
    env_free(&p->env, p->z);
    sampler_destroy(p->sampler);
    particles_destroy(p->particles);
    predictor_destroy(p->seen);
    predictor_destroy(p->prior);
    if (p->m) model_destroy(p->m);
}

/* ---- one point more -------------------------------------------------------------------------- */

typedef struct times {
    double weigh, move; /* seconds, the best */
    int64_t gradients;
} times;

/* The move is made whether or not the weights ask for it. */
static mnp_status one_round(place *p, const double *x, const double *y, uint64_t seed, times *t) {
    static const double even[PARTICLES] = {0};
    sampler_opts o = {.kind = SAMPLER_EXACT, .gradients = 60, .seed = seed};
    sampler_set set = {x, y, POINTS, 0};
    double rise;
    MNP_TRY(particles_condition(p->particles, &o, x, y, POINTS, POINTS));
    double start = bench_seconds();
    MNP_TRY(particles_condition(p->particles, &o, x, y, POINTS + 1, POINTS + 1));
    if (!particles_look(p->particles)->moved) t->weigh = fmin(t->weigh, bench_seconds() - start);
    MNP_TRY(sampler_begin(p->sampler, &o, &set, 1));
    MNP_TRY(sampler_latents(p->sampler, 0, p->z));
    set.n++;
    sampler_growth to = {set, p->z, even};
    start = bench_seconds();
    MNP_TRY(sampler_extend(p->sampler, &to, &rise));
    MNP_TRY(sampler_latents(p->sampler, 0, p->z));
    t->move = fmin(t->move, bench_seconds() - start);
    t->gradients = sampler_look(p->sampler, 0)->gradients;
    return MNP_OK;
}

/* A wave that an untrained model takes for as likely as any other. */
static void wave(double *x, double *y) {
    for (int i = 0; i <= POINTS; i++) x[i] = 1.9 * sin(1.0 + 2.3 * i), y[i] = sin(2 * x[i]);
}

static mnp_status run_rounds(const bench_setup *s, place *p, times *t) {
    double x[POINTS + 1], y[POINTS + 1];
    wave(x, y);
    *t = (times){.weigh = INFINITY, .move = INFINITY};
    const double end = bench_seconds() + s->seconds;
    for (int r = 0; r < ROUNDS_MIN || (r < ROUNDS_MAX && bench_seconds() < end); r++)
        MNP_TRY(one_round(p, x, y, s->seed + (uint64_t)r, t));
    return MNP_OK;
}

static void tell(const bench_setup *s, const times *t) {
    bench_report *to = s->report;
    fprintf(to->out, "observing, %s, %d particles, %d points, one thread\n",
            s->model ? s->model : "paper preset", PARTICLES, POINTS);
    if (isfinite(t->weigh)) fprintf(to->out, "  weights        %8.2f ms\n", 1e3 * t->weigh);
    fprintf(to->out, "  with a move    %8.1f ms, %lld gradients of all particles\n", 1e3 * t->move,
            (long long)t->gradients);
    if (isfinite(t->weigh))
        report_held(to, "observe_ms", "observe, without a move", 1e3 * t->weigh, "ms",
                    REPORT_AT_MOST, 3);
    report_held(to, "observe_move_ms", "observe, with a move", 1e3 * t->move, "ms", REPORT_AT_MOST,
                200);
}

/* ---- whole streams --------------------------------------------------------------------------- */

enum { WEIGHED, MOVED, AFRESH, WAYS };

typedef struct shares {
    int64_t count[WAYS];
    double seconds[WAYS]; /* in all */
} shares;

/* Points of one function that the model draws, at places of -2 .. 2. */
static mnp_status own_function(place *p, uint64_t seed, double *x, double *y) {
    rng_stream r = rng_stream_at((rng_key){seed}, (rng_at){.purpose = RNG_TEST});
    for (int i = 0; i < POINTS + MORE; i++) x[i] = 4 * rng_u01(&r) - 2;
    MNP_TRY(predictor_draw_latents(p->prior, seed, 1));
    return predictor_predict(p->prior, x, POINTS + MORE, PREDICT_NORMAL, y);
}

static mnp_status observe_function(place *p, uint64_t seed, shares *to) {
    double x[POINTS + MORE], y[POINTS + MORE];
    sampler_opts o = {SAMPLER_EXACT, EXACT_GRADIENTS, seed};
    sampler_report r;
    MNP_TRY(own_function(p, seed, x, y));
    MNP_TRY(predictor_condition(p->seen, x, y, POINTS));
    MNP_TRY(predictor_draw_exact(p->seen, &o, PARTICLES, &r));
    for (int i = POINTS; i < POINTS + MORE; i++) {
        double start = bench_seconds();
        MNP_TRY(predictor_observe(p->seen, x + i, y[i]));
        MNP_TRY(predictor_draw_exact(p->seen, &o, PARTICLES, &r));
        int way = !r.moved ? WEIGHED : r.gradients <= MOVE_MOST ? MOVED : AFRESH;
        to->count[way]++;
        to->seconds[way] += bench_seconds() - start;
    }
    return MNP_OK;
}

static mnp_status run_streams(const bench_setup *s, place *p) {
    static const char *const ways[WAYS] = {"weights alone", "a move", "begun afresh"};
    static const char *const keys[WAYS] = {"observe_weighed", "observe_moved", "observe_afresh"};
    shares all = {0};
    int functions = 0;
    const double end = bench_seconds() + s->seconds;
    do MNP_TRY(observe_function(p, s->seed + (uint64_t)functions++, &all));
    while (bench_seconds() < end);
    fprintf(s->report->out, "%d functions of the model, from %d to %d points\n", functions, POINTS,
            POINTS + MORE);
    for (int k = 0; k < WAYS; k++) {
        double share = (double)all.count[k] / (double)(functions * MORE);
        fprintf(s->report->out, "  %-14s %5.1f %% of the points, %8.1f ms on average\n", ways[k],
                100 * share, all.count[k] ? 1e3 * all.seconds[k] / (double)all.count[k] : 0);
        report_add(s->report, keys[k], ways[k], share, "of points");
    }
    return MNP_OK;
}

mnp_status bench_observe(bench_setup *s) {
    place p = {0};
    times t;
    mnp_status status = open_place(s, &p);
    if (status == MNP_OK) status = run_rounds(s, &p, &t);
    if (status == MNP_OK) tell(s, &t);
    if (status == MNP_OK && s->model) status = run_streams(s, &p);
    if (status != MNP_OK) snprintf(s->error, sizeof s->error, "%.500s", p.env.error);
    close_place(&p);
    return status;
}
