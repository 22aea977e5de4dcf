/* laws.c: see laws.h. Each function is cut in three parts, C | A | B; the parts and the orders are
 * drawn from its own stream. */
#include "run/laws.h"

#include <math.h>
#include <string.h>

#include "op/permute.h"
#include "run/predict.h"

enum { POINTS_MAX = 128 }; /* of one function that are used */

typedef struct bench {
    env *env;
    const model *m;
    const dataset *d;
    scorer *scorer;
    predictor *predictor;
    double *x, *y, *x2, *y2, *logp, *logp2;
    int32_t *memory;
    int64_t samples;
} bench;

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static mnp_status make(bench *b, pool *pool) {
    size_t n = POINTS_MAX, dims = (size_t)b->d->x_dim, S = (size_t)b->samples;
    double **arrays[] = {&b->x, &b->x2, &b->y, &b->y2, &b->logp, &b->logp2};
    size_t counts[] = {n * dims, n * dims, n, n, S * n, S * n};
    for (int k = 0; k < 6; k++) {
        *arrays[k] = env_alloc(b->env, counts[k], sizeof(double), "a check");
        if (!*arrays[k]) return MNP_ENOMEM;
    }
    b->memory =
        env_alloc(b->env, (size_t)permute_words(b->d->longest), sizeof *b->memory, "a check");
    if (!b->memory) return MNP_ENOMEM;
    const backend_choice cpu = {0};
    MNP_TRY(scorer_create(b->env, b->m, pool, cpu, POINTS_MAX, b->samples, &b->scorer));
    return predictor_create(b->env, b->m, pool, cpu, &b->predictor);
}

static void release(bench *b) {
    scorer_destroy(b->scorer);
    predictor_destroy(b->predictor);
    double *arrays[] = {b->x, b->x2, b->y, b->y2, b->logp, b->logp2};
    for (int k = 0; k < 6; k++) env_free(b->env, arrays[k]);
    env_free(b->env, b->memory);
}

/* Up to POINTS_MAX points of function i in random order; returns how many. */
static int64_t load(bench *b, int64_t i, rng_stream *s) {
    const dataset *d = b->d;
    int64_t total = d->start[i + 1] - d->start[i], n = least(total, POINTS_MAX);
    const int32_t *order = permute_prefix(s, total, n, b->memory);
    for (int64_t k = 0; k < n; k++) {
        int64_t from = d->start[i] + order[k];
        for (int32_t c = 0; c < d->x_dim; c++)
            b->x[k * d->x_dim + c] = dataset_raw_x(d, i, order[k], c);
        b->y[k] = dataset_raw_y(d, from);
    }
    return n;
}

/* Row k of the second copy is row order[k] of the first. */
static void reorder(bench *b, const int32_t *order, int64_t n) {
    size_t dims = (size_t)b->d->x_dim;
    for (int64_t k = 0; k < n; k++) {
        memcpy(b->x2 + (size_t)k * dims, b->x + (size_t)order[k] * dims, dims * sizeof(double));
        b->y2[k] = b->y[order[k]];
    }
}

static mnp_status measure_permutation(bench *b, int64_t n, int64_t m, rng_stream *s, laws *out) {
    int32_t order[POINTS_MAX];
    for (int32_t k = 0; k < n; k++) order[k] = k;
    rng_shuffle(s, order, (size_t)m); /* the context among itself, the rest among itself */
    rng_shuffle(s, order + m, (size_t)(n - m));
    reorder(b, order, n);
    MNP_TRY(scorer_logp(b->scorer, b->x, b->y, n, m, 1, b->logp));
    MNP_TRY(scorer_logp(b->scorer, b->x2, b->y2, n, m, 1, b->logp2));
    for (int64_t k = 0; k < b->samples * n; k++) {
        double off = fabs(b->logp2[k] - b->logp[k / n * n + order[k % n]]);
        if (!(off <= out->permutation)) out->permutation = off; /* a NaN stays */
    }
    return MNP_OK;
}

static mnp_status measure_marginal(bench *b, int64_t n, int64_t m, laws *out) {
    const double *x = b->x + m * b->d->x_dim, *y = b->y + m;
    int64_t targets = n - m, kept = (targets + 1) / 2;
    MNP_TRY(predictor_condition(b->predictor, b->x, b->y, m));
    MNP_TRY(predictor_draw_latents(b->predictor, 1, b->samples));
    MNP_TRY(predictor_logp(b->predictor, x, y, targets, b->logp));
    MNP_TRY(predictor_logp(b->predictor, x, y, kept, b->logp2));
    for (int64_t s = 0; s < b->samples; s++)
        for (int64_t k = 0; k < kept; k++) {
            double all = b->logp[s * targets + k], some = b->logp2[s * kept + k];
            double off = fabs(some - all) / (fabs(all) + 1.0);
            if (!(off <= out->marginal)) out->marginal = off;
        }
    return MNP_OK;
}

/* log p(A | C) + log p(B | C, A), with the rows in the order C A B. */
static mnp_status chain_rule(bench *b, const double *x, const double *y, int64_t n, int64_t m,
                             int64_t first, double *out) {
    double near = 0, far = 0;
    MNP_TRY(scorer_score(b->scorer, x, y, m + first, m, 2, &near, NULL));
    MNP_TRY(scorer_score(b->scorer, x, y, n, m + first, 2, &far, NULL));
    *out = near + far;
    return MNP_OK;
}

static mnp_status measure_conditional(bench *b, int64_t n, int64_t m, double *gap) {
    int64_t a = (n - m) / 2, rest = n - m - a;
    int32_t order[POINTS_MAX];
    for (int64_t k = 0; k < m; k++) order[k] = (int32_t)k;
    for (int64_t k = 0; k < rest; k++) order[m + k] = (int32_t)(m + a + k);
    for (int64_t k = 0; k < a; k++) order[m + rest + k] = (int32_t)(m + k);
    reorder(b, order, n);
    double ab = 0, ba = 0;
    MNP_TRY(chain_rule(b, b->x, b->y, n, m, a, &ab));
    MNP_TRY(chain_rule(b, b->x2, b->y2, n, m, rest, &ba));
    *gap = fabs(ab - ba) / (double)(n - m);
    return MNP_OK;
}

static mnp_status measure_all(bench *b, int64_t functions, uint64_t seed, laws *out) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < functions; i++) {
        rng_at at = {.purpose = RNG_SPLIT_EVAL, .step = 1, .function = (uint32_t)i};
        rng_stream s = rng_stream_at((rng_key){seed}, at);
        int64_t n = load(b, i, &s);
        if (n < 3) continue;
        int64_t m = least(b->d->context_hi, n / 2);
        m = m > 0 ? (int64_t)rng_below(&s, (uint64_t)m) : 0;
        double gap = 0;
        MNP_TRY(measure_permutation(b, n, m, &s, out));
        MNP_TRY(measure_marginal(b, n, m, out));
        MNP_TRY(measure_conditional(b, n, m, &gap));
        sum += gap;
        squares += gap * gap;
        out->functions++;
        if (env_cancelled(b->env))
            return env_fail(b->env, MNP_ECANCELLED, "the check was cancelled");
    }
    double k = (double)out->functions;
    if (k < 1)
        return env_fail(b->env, MNP_EINVAL, "no function has the three points a check needs");
    out->conditional = sum / k;
    double variance = squares / k - out->conditional * out->conditional;
    out->conditional_se = k > 1 ? sqrt(fmax(variance, 0) / (k - 1)) : NAN;
    return MNP_OK;
}

mnp_status laws_measure(env *e, const model *m, const dataset *d, pool *pool, int64_t functions,
                        int64_t samples, uint64_t seed, laws *out) {
    if (process_is_exact(&m->spec)) samples = 1;
    *out = (laws){.samples = samples};
    if (d->x_dim != m->spec.x_dim)
        return env_fail(e, MNP_EINVAL, "the data have %d inputs per point, the model %lld",
                        d->x_dim, (long long)m->spec.x_dim);
    bench b = {.env = e, .m = m, .d = d, .samples = samples};
    mnp_status status = make(&b, pool);
    if (status == MNP_OK) status = measure_all(&b, least(functions, d->functions), seed, out);
    release(&b);
    if (status == MNP_OK &&
        !(isfinite(out->permutation) && isfinite(out->marginal) && isfinite(out->conditional)))
        status = env_fail(e, MNP_ENUMERIC,
                          "the model's densities are not finite, so there is nothing to compare "
                          "(are its weights or its data out of all proportion?)");
    return status;
}
