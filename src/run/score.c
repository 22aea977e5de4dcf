/* score.c: see score.h. */
#include "run/score.h"

#include <math.h>

/* ---- recording ------------------------------------------------------------------------------- */

static process_score_opts options_of(const score_key *key) {
    return (process_score_opts){.scored = key->protocol == EVAL_STRICT ? ROWS_REST : ROWS_ALL,
                                .points = key->points,
                                .draws = key->draws,
                                .latents = key->latents};
}

void score_record_bound(graph *g, const model_spec *s, void *key) {
    process_score_opts o = options_of(key);
    process_at(s->kind)->bound(g, s, &o);
}

void score_record_predictive(graph *g, const model_spec *s, void *key) {
    process_score_opts o = options_of(key);
    process_at(s->kind)->predictive(g, s, &o);
}

/* log (1/L) sum exp(a_s), and the effective sample size of the weights exp(a_s). */
double score_log_mean_exp(const double *a, int64_t count, double *ess) {
    double top = -INFINITY, sum = 0, squares = 0;
    for (int64_t s = 0; s < count; s++) {
        if (isnan(a[s])) return NAN;
        if (a[s] > top) top = a[s];
    }
    if (!isfinite(top)) return top;
    for (int64_t s = 0; s < count; s++) {
        double w = exp(a[s] - top);
        sum += w;
        squares += w * w;
    }
    if (ess) *ess = sum * sum / squares;
    return top + log(sum / (double)count);
}

mnp_status score_check_samples(env *e, int64_t samples) {
    if (samples >= 1 && samples <= SAMPLES_MAX) return MNP_OK;
    return env_fail(e, MNP_EINVAL,
                    "between 1 and %d samples can be drawn, not %lld: beyond that the draws would "
                    "repeat (average the results of several seeds)",
                    SAMPLES_MAX, (long long)samples);
}

/* ---- one function ---------------------------------------------------------------------------- */

struct scorer {
    env *env;
    const model *m;
    score_key key;
    runner *bound, *predictive;
    double *x, *y; /* scaled copies, (capacity) */
    double *sums;  /* (3, samples)              */
    int64_t capacity;
};

mnp_status scorer_create(env *e, const model *m, pool *pool, backend_choice device, int64_t n,
                         int64_t samples, scorer **out) {
    *out = NULL;
    MNP_TRY(score_check_samples(e, samples));
    if (process_is_exact(&m->spec)) samples = 1;
    scorer *s = env_alloc(e, 1, sizeof *s, "a scorer");
    if (!s) return MNP_ENOMEM;
    *s = (scorer){
        .env = e, .m = m, .key = {EVAL_STRICT, samples, true, false, false}, .capacity = n};
    runner_opts o = {.pool = pool, .device = device, .capacity = {n, n, samples}};
    size_t dims = (size_t)m->spec.x_dim;
    s->x = env_alloc(e, (size_t)n * dims, sizeof *s->x, "a set");
    s->y = env_alloc(e, (size_t)n, sizeof *s->y, "a set");
    s->sums = env_alloc(e, 3 * (size_t)samples, sizeof *s->sums, "a score");
    mnp_status status = s->x && s->y && s->sums ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) status = runner_make(e, m, &o, score_record_bound, &s->key, &s->bound);
    if (status == MNP_OK)
        status = runner_make(e, m, &o, score_record_predictive, &s->key, &s->predictive);
    if (status != MNP_OK) {
        scorer_destroy(s);
        return status;
    }
    *out = s;
    return MNP_OK;
}

void scorer_destroy(scorer *s) {
    if (!s) return;
    runner_destroy(s->bound);
    runner_destroy(s->predictive);
    env_free(s->env, s->x);
    env_free(s->env, s->y);
    env_free(s->env, s->sums);
    env_free(s->env, s);
}

static mnp_status load_set(scorer *s, const double *x, const double *y, int64_t n, int64_t m) {
    if (n < 1 || n > s->capacity || m < 0 || m > n)
        return env_fail(s->env, MNP_EINVAL, "%lld points with %lld of context cannot be scored",
                        (long long)n, (long long)m);
    MNP_TRY(runner_check_points(s->env, s->m, x, y, n, "point"));
    runner_scale_x(s->m, x, n, s->x);
    runner_scale_y(s->m, y, n, s->y);
    return MNP_OK;
}

static mnp_status run(scorer *s, runner *r, int64_t n, int64_t m, uint64_t seed) {
    r->io.feed[0] = s->x;
    r->io.feed[1] = s->y;
    r->io.n = &n;
    r->io.m = &m;
    return runner_run(r, seed, 1);
}

static mnp_status check_score(scorer *s, double score) {
    if (!isnan(score)) return MNP_OK;
    const model_spec *of = &s->m->spec;
    return env_fail(s->env, MNP_ENUMERIC, "the score is not a number: %s",
                    process_is_exact(of) && !process_factorises(of)
                        ? "the covariance of the points is singular"
                        : "a point lies too far from the training data");
}

/* The log importance weights of a set that is loaded, into s->sums. */
static mnp_status run_bound(scorer *s, int64_t n, int64_t m, uint64_t seed) {
    int64_t L = s->key.samples;
    for (int k = 0; k < 3; k++) s->bound->io.emit[k] = s->sums + k * L;
    s->bound->io.emit[BOUND_LOGP] = NULL;
    MNP_TRY(run(s, s->bound, n, m, seed));
    for (int64_t k = 0; k < L; k++) s->sums[k] += s->sums[BOUND_RATIO * L + k];
    return MNP_OK;
}

mnp_status scorer_score(scorer *s, const double *x, const double *y, int64_t n, int64_t m,
                        uint64_t seed, double *bound, double *prior) {
    MNP_TRY(load_set(s, x, y, n, m));
    int64_t L = s->key.samples;
    double shift = (double)(n - m) * log(s->m->scaling.y_scale);
    if (bound) {
        MNP_TRY(run_bound(s, n, m, seed));
        *bound = score_log_mean_exp(s->sums, L, NULL) - shift;
        MNP_TRY(check_score(s, *bound));
    }
    if (prior) {
        s->predictive->io.emit[PREDICTIVE_LOGLIK] = s->sums;
        MNP_TRY(run(s, s->predictive, n, m, seed));
        *prior = score_log_mean_exp(s->sums, L, NULL) - shift;
        MNP_TRY(check_score(s, *prior));
    }
    return MNP_OK;
}

mnp_status scorer_unbiased(scorer *s, const double *x, const double *y, int64_t n, int64_t m,
                           uint64_t seed, double *out) {
    MNP_TRY(load_set(s, x, y, n, m));
    MNP_TRY(run_bound(s, n, m, seed));
    int64_t L = s->key.samples, half = L / 2;
    double all = score_log_mean_exp(s->sums, L, NULL);
    if (half > 0)
        all = 2 * all - (score_log_mean_exp(s->sums, half, NULL) +
                         score_log_mean_exp(s->sums + half, L - half, NULL)) /
                            2;
    *out = all - (double)(n - m) * log(s->m->scaling.y_scale);
    return check_score(s, *out);
}

mnp_status scorer_logp(scorer *s, const double *x, const double *y, int64_t n, int64_t m,
                       uint64_t seed, double *logp) {
    MNP_TRY(load_set(s, x, y, n, m));
    for (int k = 0; k < 3; k++) s->bound->io.emit[k] = NULL;
    s->bound->io.emit[BOUND_LOGP] = logp;
    MNP_TRY(run(s, s->bound, n, m, seed));
    double shift = log(s->m->scaling.y_scale);
    for (int64_t i = 0; i < s->key.samples * n; i++) logp[i] -= shift;
    return MNP_OK;
}
