/* service_score.h: log-densities of targets given a context, of one curve: the same for the command
 * and for a request. */
#ifndef MNP_SERVE_SCORE_H
#define MNP_SERVE_SCORE_H

#include "serve/service_condition.h"

/* Of a curve's targets: in nats, or divided by their number. What was not asked for is NaN. */
typedef struct estimates {
    double bound, prior;
    double draws;            /* by functions drawn in another way than by the network: log of the */
                             /* mean density of the targets over them                             */
    double evidence, spread; /* log p(context and targets) - log p(context), and its sd           */
} estimates;

estimates estimates_none(void);
estimates estimates_per_point(const estimates *sum, double n);
/* Those by functions: `p` has those of `o` given part[0], the context, with the report `before`;
 * part[1] are the targets. For the evidence (ask: exact) it draws others. */
mnp_status estimates_by_functions(env *e, const mnp_ctx *ctx, mnp_predictor *p,
                                  const mnp_set part[2], int64_t x_dim, const condition_ask *ask,
                                  const mnp_draw_opts *o, const mnp_draw_report *before,
                                  estimates *out);
/* log of the mean of exp(v[0]), exp(v[stride]) ... of n numbers. */
double log_mean_exp(const double *v, int64_t n, int64_t stride);
/* Members of the object that is open; `functions`: also those by functions. */
void estimates_members(json_writer *w, bool functions, const estimates *each, const estimates *sum);

#endif
