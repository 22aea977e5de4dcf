/* predictive_internal.h: what predictive.c finds for each function, and predictive_rows.c sums up.
 */
#ifndef MNP_RUN_PREDICTIVE_INTERNAL_H
#define MNP_RUN_PREDICTIVE_INTERNAL_H

#include "run/eval_internal.h"
#include "run/marginals.h"
#include "run/predictive.h"

/* What one function is given: means over its targets, in nats and in units of y. */
enum {
    MARGINAL,
    MIXTURE,
    MIXTURE_HALF,
    MARGINAL_TRUE,
    CRPS,
    CRPS_TRUE,
    KL_TRUE,
    CONTEXT_OFF,
    WHOLE, /* log p(y_C, y_T), and the variance of that estimate */
    WHOLE_VARIANCE,
    JOINT,
    JOINT_VARIANCE, /* of the estimate */
    JOINT_BIAS,
    JOINT_TRUE,
    JOINT_HURRIED, /* share of its runs */
    GRADIENTS,
    ACCEPTANCE,
    ESS,
    RHAT,
    WARNED,
    LOWER,
    UPPER,
    SCORES
};

typedef struct function_score {
    double v[SCORES];
    double covered[MARGINAL_LEVELS], pit[PIT_BINS]; /* sums over targets */
    int64_t m, targets;
} function_score;

/* Has a function the same points, context and targets together, whatever its context? */
static inline bool predictive_all_points(const evaluator *v, const eval_opts *o) {
    return !v->d->policy.apart && o->targets_hi == 0;
}

/* The scores f (sizes, functions), `all` in number, of one run: rows[0] over all of them, the
 * others by context size. */
mnp_status predictive_rows(evaluator *v, const eval_opts *o, const function_score *f, int64_t all,
                           mnp_predictive rows[PREDICTIVE_ROWS]);

#endif
