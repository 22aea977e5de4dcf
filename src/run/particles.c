/* particles.c: see particles.h. */
#include "run/particles.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "util/least.h"

enum { ROWS = 16 };        /* new points that are weighed at a time                          */
#define EFFECTIVE      0.5 /* share of the particles that must be: fewer, and they move      */
#define ENOUGH         0.1 /* share that a move can restore them from: fewer, they begin afresh */
#define ACCEPTANCE_MIN 0.3 /* of that move: less, and they begin afresh                      */

struct particles {
    env *env;
    const model *m;
    pool *pool;
    backend_choice device;
    int64_t T, Z, P, chunks;
    sampler *sampler;
    runner *density;
    int64_t *lengths;   /* (2, chunks)                                          */
    double *z;          /* (T, P, Z)                                            */
    double *log_p;      /* (P, ROWS): log p(y_i | z)                            */
    double *log_weight; /* (P): since they moved                                */
    double log_mean;    /* log of the mean weight                               */
    int64_t points;     /* that they know; 0: none                              */
    sampler_opts o;
    sampler_report report;
};

/* ---- making ---------------------------------------------------------------------------------- */

static void record_density(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    process_at(s->kind)->query(g, s, QUERY_LOGP);
}

static double *numbers(particles *p, int64_t count) {
    return env_alloc(p->env, (size_t)count, sizeof(double), "particles");
}

static mnp_status make(particles *p) {
    p->z = numbers(p, p->T * p->P * p->Z);
    p->log_p = numbers(p, p->P * ROWS);
    p->log_weight = numbers(p, p->P);
    p->lengths = env_alloc(p->env, 2 * (size_t)p->chunks, sizeof *p->lengths, "particles");
    if (!p->z || !p->log_p || !p->log_weight || !p->lengths) return MNP_ENOMEM;
    runner_opts o = {.pool = p->pool, .device = p->device, .capacity = {ROWS, 0, p->P / p->chunks}};
    return runner_make(p->env, p->m, &o, record_density, NULL, &p->density);
}

mnp_status particles_create(env *e, const model *m, pool *pool, backend_choice device,
                            int64_t count, int64_t room, particles **out) {
    *out = NULL;
    particles *p = env_alloc(e, 1, sizeof *p, "particles");
    if (!p) return MNP_ENOMEM;
    *p = (particles){.env = e, .m = m, .pool = pool, .device = device};
    p->T = process_at(m->spec.kind)->latents(&m->spec);
    p->Z = m->spec.d_z;
    sampler_shape shape = {.points = room, .particles = count, .contexts = 1};
    mnp_status status = sampler_create(e, m, pool, device, &shape, &p->sampler);
    if (status == MNP_OK) {
        p->P = sampler_particles(p->sampler);
        p->chunks = sampler_chunks(p->sampler);
        status = make(p);
    }
    if (status != MNP_OK) {
        particles_destroy(p);
        return status;
    }
    *out = p;
    return MNP_OK;
}

void particles_destroy(particles *p) {
    if (!p) return;
    sampler_destroy(p->sampler);
    runner_destroy(p->density);
    env_free(p->env, p->lengths);
    env_free(p->env, p->z);
    env_free(p->env, p->log_p);
    env_free(p->env, p->log_weight);
    env_free(p->env, p);
}

void particles_forget(particles *p) {
    p->points = 0;
}

void particles_on_progress(particles *p, sampler_progress call, void *user) {
    sampler_on_progress(p->sampler, call, user);
}

const sampler_report *particles_look(const particles *p) {
    return &p->report;
}

/* ---- weights --------------------------------------------------------------------------------- */

/* log p(y_i | z) of `rows` points for every particle, added to its weight. */
static mnp_status weigh_rows(particles *p, const double *x, const double *y, int64_t rows) {
    exec_io *io = &p->density->io;
    int64_t chunk = p->P / p->chunks;
    io->feed[0] = x;
    for (int64_t t = 0; t < p->T; t++) {
        io->feed[1 + t] = p->z + t * p->P * p->Z;
        io->feed_stride[1 + t] = chunk * p->Z;
    }
    io->feed[1 + p->T] = y;
    io->emit[0] = p->log_p;
    io->emit_stride[0] = chunk * rows;
    for (int64_t c = 0; c < p->chunks; c++) p->lengths[c] = rows, p->lengths[p->chunks + c] = 0;
    io->n = p->lengths, io->m = p->lengths + p->chunks;
    io->samples = chunk;
    io->chunks = p->chunks;
    MNP_TRY(runner_run(p->density, p->o.seed, p->chunks));
    for (int64_t k = 0; k < p->P; k++)
        for (int64_t i = 0; i < rows; i++) p->log_weight[k] += p->log_p[k * rows + i];
    return MNP_OK;
}

/* A particle that takes the points for impossible, or not for a number, has no weight. */
static double weight(const particles *p, int64_t k, double top) {
    double v = p->log_weight[k];
    return isnan(v) || v == -INFINITY ? 0 : exp(v - top);
}

static double top_weight(const particles *p) {
    double top = -INFINITY;
    for (int64_t k = 0; k < p->P; k++) top = fmax(top, p->log_weight[k]);
    return top;
}

/* The effective number of particles, and the log of their mean weight. */
static double effective(const particles *p, double *log_mean) {
    double top = top_weight(p), sum = 0, squares = 0;
    *log_mean = top;
    if (top == -INFINITY) return 0;
    for (int64_t k = 0; k < p->P; k++) {
        double w = weight(p, k, top);
        sum += w, squares += w * w;
    }
    *log_mean = top + log(sum / (double)p->P);
    return sum * sum / squares;
}

/* ---- following the set ----------------------------------------------------------------------- */

/* They are at n points with equal weights. */
static mnp_status settle(particles *p, int64_t n) {
    MNP_TRY(sampler_latents(p->sampler, 0, p->z));
    memset(p->log_weight, 0, (size_t)p->P * sizeof *p->log_weight);
    p->log_mean = 0;
    p->points = n;
    return MNP_OK;
}

static mnp_status begin(particles *p, const sampler_set *set) {
    MNP_TRY(sampler_begin(p->sampler, &p->o, set, 1));
    p->report = *sampler_look(p->sampler, 0);
    p->report.log_added = NAN;
    return settle(p, set->n);
}

/* Where too few particles allow the new points, or moving goes badly, a new beginning: that costs
 * more, and does not need the old place. */
static mnp_status go_on(particles *p, const sampler_set *set, bool enough, double *rise) {
    const sampler_report *r = sampler_look(p->sampler, 0);
    double before = r->log_evidence;
    if (enough) {
        sampler_growth to = {*set, p->z, p->log_weight};
        MNP_TRY(sampler_extend(p->sampler, &to, rise));
    }
    if (!enough || !(r->acceptance >= ACCEPTANCE_MIN)) {
        MNP_TRY(sampler_begin(p->sampler, &p->o, set, 1));
        *rise = r->log_evidence - before;
    }
    p->report = *r;
    return settle(p, set->n);
}

/* Weights alone: acceptance and rhat stay those of the last moves. The mean of P weights has the
 * relative variance 1 / ess - 1 / P. */
static void report_weighted(particles *p, double ess) {
    const double *fit = sampler_fits(p->sampler, 0);
    double top = top_weight(p), sum = 0, fits = 0;
    for (int64_t k = 0; k < p->P; k++) {
        double w = weight(p, k, top);
        sum += w;
        if (w > 0) fits += w * (fit[k] + p->log_weight[k]);
    }
    p->report.fit_after = fits / sum;
    p->report.gradients = p->report.temperatures = 0;
    p->report.ess *= ess / (double)p->P;
    p->report.log_evidence += p->log_mean;
    double variance = fmax(1 / ess - 1 / (double)p->P, 0);
    p->report.log_evidence_sd = hypot(p->report.log_evidence_sd, sqrt(variance));
}

static mnp_status follow(particles *p, const sampler_set *set) {
    int64_t added = set->n - p->points, X = p->m->spec.x_dim;
    double earlier = p->log_mean, rise, ess;
    for (int64_t i = p->points; i < set->n; i += ROWS)
        MNP_TRY(weigh_rows(p, set->x + i * X, set->y + i, least(ROWS, set->n - i)));
    ess = effective(p, &rise);
    p->log_mean = rise;
    p->points = set->n;
    bool moves = !(ess >= EFFECTIVE * (double)p->P);
    if (moves)
        MNP_TRY(go_on(p, set, ess >= ENOUGH * (double)p->P, &rise));
    else
        p->report = *sampler_look(p->sampler, 0);
    p->report.added = added;
    p->report.log_added = rise - earlier;
    p->report.moved = moves;
    p->report.fit_before = NAN; /* the network drew nothing */
    if (!moves) report_weighted(p, ess);
    return MNP_OK;
}

static bool same(const sampler_opts *a, const sampler_opts *b) {
    return a->kind == b->kind && a->gradients == b->gradients && a->seed == b->seed;
}

mnp_status particles_condition(particles *p, const sampler_opts *o, const double *x,
                               const double *y, int64_t n, int64_t room) {
    int64_t have = p->points, added = n - have;
    bool follows = o->kind == SAMPLER_EXACT && have > 0 && added > 0 &&
                   2 * added <= most(have, 2) && same(o, &p->o);
    sampler_set set = {x, y, n, 0};
    if (o->kind == SAMPLER_EXACT && have > 0 && added == 0 && same(o, &p->o)) {
        p->report.added = 0, p->report.log_added = NAN, p->report.moved = false;
        return MNP_OK; /* they are there already */
    }
    p->points = 0; /* until all has gone well */
    p->o = *o;
    MNP_TRY(sampler_reserve(p->sampler, room));
    p->points = follows ? have : 0;
    mnp_status status = follows ? follow(p, &set) : begin(p, &set);
    if (status != MNP_OK) p->points = 0;
    return status;
}

/* ---- draws ----------------------------------------------------------------------------------- */

void particles_draw(const particles *p, int64_t samples, int64_t S, double *z) {
    rng_stream r = rng_stream_at(
        (rng_key){p->o.seed},
        (rng_at){.purpose = RNG_PARTICLE, .step = (uint32_t)p->points, .function = 1});
    double top = top_weight(p), sum = 0, u = rng_u01(&r);
    for (int64_t k = 0; k < p->P; k++) sum += weight(p, k, top);
    double below = weight(p, 0, top);
    size_t bytes = (size_t)p->Z * sizeof *z;
    for (int64_t s = 0, from = 0; s < samples; s++) {
        double tooth = ((double)s + u) / (double)samples * sum;
        while (below < tooth && from < p->P - 1) below += weight(p, ++from, top);
        for (int64_t t = 0; t < p->T; t++)
            memcpy(z + (t * S + s) * p->Z, p->z + (t * p->P + from) * p->Z, bytes);
    }
    for (int64_t t = 0; t < p->T; t++)
        for (int64_t s = samples; s < S; s++)
            memcpy(z + (t * S + s) * p->Z, z + t * S * p->Z, bytes);
}
