/* score.h: log-densities of one function's targets given its context, and the graphs and sums that
 * evaluation shares with it. */
#ifndef MNP_RUN_SCORE_H
#define MNP_RUN_SCORE_H

#include "base/rng.h"
#include "run/eval.h"
#include "util/limits.h"

/* What a scoring graph was recorded for; the argument of the two record functions, which record
 * what the model's process says (model/process/process.h). */
typedef struct score_key {
    eval_protocol protocol;
    int64_t samples;
    bool points, draws, latents;
} score_key;

void score_record_bound(graph *g, const model_spec *s, void *key);
void score_record_predictive(graph *g, const model_spec *s, void *key);

/* Draws are numbered in a field of RNG_SAMPLE_MAX places (base/rng.h); a device may draw a few more
 * than are asked for. */
_Static_assert(SAMPLES_MAX <= RNG_SAMPLE_MAX / 2, "draws would repeat");
mnp_status score_check_samples(env *e, int64_t samples);

/* log (1/L) sum exp(a_s), and the effective sample size of the weights exp(a_s) (may be NULL). */
double score_log_mean_exp(const double *a, int64_t count, double *ess);

/* ---- one function ---------------------------------------------------------------------------- */

typedef struct scorer scorer;

/* For sets of up to n points, `samples` draws each (one where densities are exact). */
mnp_status scorer_create(env *e, const model *m, pool *pool, backend_choice device, int64_t n,
                         int64_t samples, scorer **out);
void scorer_destroy(scorer *s);
/* log p(points m..n-1 | points 0..m-1) in raw units, nats: the importance-weighted bound and the
 * prior-sampling estimate (NULL: not wanted). */
mnp_status scorer_score(scorer *s, const double *x, const double *y, int64_t n, int64_t m,
                        uint64_t seed, double *bound, double *prior);
/* The bound with the first order of its bias in 1 / samples removed: twice the log mean of all
 * weights minus the mean of its halves' (where there are two). */
mnp_status scorer_unbiased(scorer *s, const double *x, const double *y, int64_t n, int64_t m,
                           uint64_t seed, double *out);
/* log p(y_i | z_s) of all points with latents from the posterior: logp (samples, n). */
mnp_status scorer_logp(scorer *s, const double *x, const double *y, int64_t n, int64_t m,
                       uint64_t seed, double *logp);

#endif
