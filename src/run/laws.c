/* laws.c: see laws.h. Each function is cut in three parts, C | A | B; the parts and the orders are
 * drawn from its own stream. */
#include "run/laws.h"

#include <math.h>
#include <string.h>

#include "op/permute.h"
#include "run/predict.h"
#include "util/least.h"

enum { POINTS_MAX = 128 }; /* of one function that are used */
enum { REPLICATES = 2 };   /* of a gap, to tell it from the noise of its estimate */

typedef struct bench {
    env *env;
    const model *m;
    const dataset *d;
    scorer *scorer;
    predictor *predictor;
    double *x, *y, *x2, *y2, *logp, *logp2;
    int32_t *memory;
    int64_t samples;
    uint64_t seed;
} bench;

/* A score's place among those of a check. */
typedef struct draw_place {
    int64_t function;
    uint32_t part;
} draw_place;

/* The seed of its noise: one Philox word pair there, beside the stream that cuts the function. */
static uint64_t seed_at(const bench *b, draw_place at, uint32_t term) {
    rng_at place = {.purpose = RNG_SPLIT_EVAL,
                    .step = 2 + at.part,
                    .function = (uint32_t)at.function,
                    .sample = term};
    rng_words w = rng_words_at((rng_key){b->seed}, place);
    return (uint64_t)w.w[0] << 32 | w.w[1];
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

static mnp_status measure_permutation(bench *b, int64_t i, int64_t n, int64_t m, rng_stream *s,
                                      laws *out) {
    int32_t order[POINTS_MAX];
    for (int32_t k = 0; k < n; k++) order[k] = k;
    rng_shuffle(s, order, (size_t)m); /* the context among itself, the rest among itself */
    rng_shuffle(s, order + m, (size_t)(n - m));
    reorder(b, order, n);
    uint64_t seed = seed_at(b, (draw_place){i, 2 * REPLICATES}, 0); /* the same for both */
    MNP_TRY(scorer_logp(b->scorer, b->x, b->y, n, m, seed, b->logp));
    MNP_TRY(scorer_logp(b->scorer, b->x2, b->y2, n, m, seed, b->logp2));
    for (int64_t k = 0; k < b->samples * n; k++) {
        double off = fabs(b->logp2[k] - b->logp[k / n * n + order[k % n]]);
        if (!(off <= out->permutation)) out->permutation = off; /* a NaN stays */
    }
    return MNP_OK;
}

static mnp_status measure_marginal(bench *b, int64_t i, int64_t n, int64_t m, laws *out) {
    const double *x = b->x + m * b->d->x_dim, *y = b->y + m;
    int64_t targets = n - m, kept = (targets + 1) / 2;
    MNP_TRY(predictor_condition(b->predictor, b->x, b->y, m));
    uint64_t seed = seed_at(b, (draw_place){i, 2 * REPLICATES + 1}, 0);
    MNP_TRY(predictor_draw_latents(b->predictor, seed, b->samples));
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
                             int64_t first, draw_place at, double *out) {
    double near = 0, far = 0;
    MNP_TRY(scorer_unbiased(b->scorer, x, y, m + first, m, seed_at(b, at, 0), &near));
    MNP_TRY(scorer_unbiased(b->scorer, x, y, n, m + first, seed_at(b, at, 1), &far));
    *out = near + far;
    return MNP_OK;
}

/* The signed gap per point, REPLICATES times; no two of its terms share noise. */
static mnp_status measure_conditional(bench *b, int64_t i, int64_t n, int64_t m, double *gap) {
    int64_t a = (n - m) / 2, rest = n - m - a;
    int32_t order[POINTS_MAX];
    for (int64_t k = 0; k < m; k++) order[k] = (int32_t)k;
    for (int64_t k = 0; k < rest; k++) order[m + k] = (int32_t)(m + a + k);
    for (int64_t k = 0; k < a; k++) order[m + rest + k] = (int32_t)(m + k);
    reorder(b, order, n);
    for (uint32_t r = 0; r < REPLICATES; r++) {
        double ab = 0, ba = 0;
        MNP_TRY(chain_rule(b, b->x, b->y, n, m, a, (draw_place){i, 2 * r}, &ab));
        MNP_TRY(chain_rule(b, b->x2, b->y2, n, m, rest, (draw_place){i, 2 * r + 1}, &ba));
        gap[r] = (ab - ba) / (double)(n - m);
    }
    return MNP_OK;
}

/* Sums over functions of what the gaps g and h of two replicates say: g h has the mean of the
 * squared gap, whatever the noise; (g - h)^2 / 2 that of the noise. */
typedef struct gap_sums {
    double product, squares, noise; /* of g h, (g h)^2, (g - h)^2 / 2 */
} gap_sums;

static void summarise(const gap_sums *s, laws *out) {
    double k = (double)out->functions, mean = s->product / k;
    double variance = fmax(s->squares / k - mean * mean, 0);
    double se = k > 1 ? sqrt(variance / (k - 1)) : NAN; /* of the mean product */
    out->conditional = sqrt(fmax(mean, 0));
    /* by the slope of the root, or by its change over one error where that is steeper than it goes
     */
    out->conditional_se = mean > se ? se / (2 * out->conditional) : sqrt(se);
    out->conditional_noise = sqrt(s->noise / k);
}

/* A size that the data's contexts have, which leaves a point for A and one for B. */
static int64_t draw_context(const bench *b, int64_t n, rng_stream *s) {
    int64_t hi = least(b->d->policy.context_hi, n - 2), lo = least(b->d->policy.context_lo, hi);
    return lo + (int64_t)rng_below(s, (uint64_t)(hi - lo + 1));
}

static mnp_status measure_all(bench *b, int64_t functions, laws *out) {
    gap_sums sums = {0};
    for (int64_t i = 0; i < functions; i++) {
        rng_at at = {.purpose = RNG_SPLIT_EVAL, .step = 1, .function = (uint32_t)i};
        rng_stream s = rng_stream_at((rng_key){b->seed}, at);
        int64_t n = load(b, i, &s);
        if (n < 3) continue;
        int64_t m = draw_context(b, n, &s);
        double gap[REPLICATES] = {0};
        MNP_TRY(measure_permutation(b, i, n, m, &s, out));
        MNP_TRY(measure_marginal(b, i, n, m, out));
        MNP_TRY(measure_conditional(b, i, n, m, gap));
        double product = gap[0] * gap[1];
        sums.product += product;
        sums.squares += product * product;
        sums.noise += (gap[0] - gap[1]) * (gap[0] - gap[1]) / 2;
        out->functions++;
        if (env_cancelled(b->env))
            return env_fail(b->env, MNP_ECANCELLED, "the check was cancelled");
    }
    if (out->functions < 1)
        return env_fail(b->env, MNP_EINVAL, "no function has the three points a check needs");
    summarise(&sums, out);
    return MNP_OK;
}

mnp_status laws_measure(env *e, const model *m, const dataset *d, pool *pool, int64_t functions,
                        int64_t samples, uint64_t seed, laws *out) {
    if (process_is_exact(&m->spec)) samples = 1;
    *out = (laws){.samples = samples};
    if (d->x_dim != m->spec.x_dim)
        return env_fail(e, MNP_EINVAL, "the data have %d inputs per point, the model %lld",
                        d->x_dim, (long long)m->spec.x_dim);
    bench b = {.env = e, .m = m, .d = d, .samples = samples, .seed = seed};
    mnp_status status = make(&b, pool);
    if (status == MNP_OK) status = measure_all(&b, least(functions, d->functions), out);
    release(&b);
    if (status == MNP_OK &&
        !(isfinite(out->permutation) && isfinite(out->marginal) && isfinite(out->conditional)))
        status = env_fail(e, MNP_ENUMERIC,
                          "the model's densities are not finite, so there is nothing to compare "
                          "(are its weights or its data out of all proportion?)");
    return status;
}
