/* eval.h: scoring a model on a data set.
 *
 * For each function a split into context and targets is drawn from its own stream, then
 *   loglik   importance-weighted bound with L samples from the posterior, per scored point
 *   elbo     mean over samples of log-likelihood minus KL, per scored point
 *   ess      effective sample size of the importance weights
 *   prior    log (1/L) sum p(y|z), z ~ q(z | context): the prior-sampling estimate
 *   coverage of central intervals and CRPS at the points outside the context, from draws with noise
 *   truth    the same targets under the process that made the data (families, strict protocol)
 * The protocol says which points are scored: strict = those outside the context, authors = all.
 *
 * Images are large, and their targets carry noise. Context and targets are then separate sets (a
 * pixel of the context that is scored is scored with noise, as any other); the latents come from
 * q(z | context and a random part of the targets), a proposal like any other for the bound; and
 * given the latents the log-densities of all targets add up block by block. Coverage and CRPS are
 * those of the same random part. */
#ifndef MNP_RUN_EVAL_H
#define MNP_RUN_EVAL_H

#include "data/dataset.h"
#include "run/runner.h"

typedef enum eval_protocol { EVAL_STRICT, EVAL_AUTHORS } eval_protocol;

typedef enum eval_context { EVAL_UNIFORM, EVAL_TOP, EVAL_LEFT, EVAL_CENTER } eval_context;

typedef struct eval_opts {
    int64_t functions; /* 0: all                                          */
    int64_t samples;   /* L                                               */
    int64_t draws;     /* for coverage and CRPS; 0: skip them (39 is exact for 50/80/95 %) */
    eval_protocol protocol;
    int64_t lo, hi;       /* context sizes, both included                    */
    const int64_t *sizes; /* instead: every function once with each of these, in rising order */
    int64_t n_sizes;      /* 0: none                                                          */
    int64_t targets_lo, targets_hi; /* curves: numbers of targets, drawn; 0: all other points */
    /* images */
    eval_context context; /* where the context comes from; a region gives all its pixels       */
    int64_t targets;      /* pixels scored, a random choice; 0: all                             */
    int64_t seen;         /* pixels of a larger context that the model looks at; 0: 1024        */
    int64_t proposal;     /* pixels that the posterior sees beside the context; 0: 2048        */
    double noise;         /* sd of the noise on targets, raw units; the context has none        */
    int64_t orders; /* > 0: targets in turn as well (turns.h), in so many orders of this kind */
    mnp_order order;
    uint64_t seed;
    bool no_truth;   /* the truth's scores are left out */
    bool bound_only; /* only loglik, elbo, kl, and not to be cancelled: for validation, which a */
                     /* resumed run would not repeat                                            */
} eval_opts;

enum { EVAL_BINS = 8 };

typedef struct eval_scores {
    double loglik, se, elbo, kl, ess, prior, prior_se;
    double alone,
        alone_se; /* images: mean over pixels of log p(pixel | context), each by itself, */
                  /* z ~ q(z | context); over those beside the proposal's; else NaN      */
    double turn, turn_se, order_sd; /* targets in turn; else NaN */
    double truth, truth_se; /* of the process that made the data; NaN where it is not known */
    double coverage50, coverage80, coverage95, crps; /* NaN when not asked for */
    int64_t functions, points;                       /* scored                 */
    int64_t samples;                                 /* L; 0: the scores are exact */
    /* the score by context size: bins of equal width between lo and hi */
    int n_bins;
    int64_t bin_lo[EVAL_BINS], bin_hi[EVAL_BINS], bin_functions[EVAL_BINS];
    double bin_loglik[EVAL_BINS], bin_se[EVAL_BINS];
} eval_scores;

/* "uniform:40", "uniform:20:160", "top", "left", "center" as a context of d's functions. */
mnp_status eval_read_context(env *e, const char *text, const dataset *d, eval_opts *o);

/* A score as a model's note keeps it, rounded to 4 decimals. */
typedef struct eval_noted {
    double loglik, se;
    int64_t functions, samples; /* functions 0: there is none */
    uint64_t seed;
} eval_noted;
/* NULL: the note goes. */
mnp_status eval_note(env *e, model *m, eval_protocol protocol, const eval_noted *s);
mnp_status eval_noted_score(env *e, const model *m, eval_protocol protocol, eval_noted *out);

typedef struct evaluator evaluator; /* compiled plans, kept between calls */

/* Weights may be given apart from the model's (validation of averages); NULL = the model's. */
mnp_status evaluator_create(env *e, const model *m, const dataset *d, pool *pool,
                            backend_choice device, evaluator **out);
mnp_status evaluator_run(evaluator *v, const float *weights, const eval_opts *o, eval_scores *out);
/* After a score: what the bound of its first functions gains in fp32, in nats per point. NaN where
 * products are exact, and where it could not be found (for want of memory, say), which is logged:
 * the score is good without it. Nobody is told of progress any more. */
double evaluator_rounding(evaluator *v, const eval_opts *o);
void evaluator_destroy(evaluator *v);

/* Called with the number of functions done, between chunks. */
typedef void (*eval_progress)(void *user, int64_t done, int64_t total);
void evaluator_on_progress(evaluator *v, eval_progress fn, void *user);
/* Called with what was found of each function (curves), in their order. */
typedef void (*eval_each)(void *user, const mnp_function_scores *scores);
void evaluator_on_each(evaluator *v, eval_each fn, void *user);

#endif
