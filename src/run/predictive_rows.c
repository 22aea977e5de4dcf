/* predictive_rows.c: from the scores of functions to rows of a table, over all functions and by
 * context size. */
#include <math.h>

#include "run/predictive_internal.h"
#include "util/least.h"

/* The functions of one row, and scratch for a number of each. */
typedef struct row_of {
    const function_score *f; /* (sizes, functions) */
    int64_t functions, all, lo, hi;
    bool shared; /* log p(y_C, y_T) of a function, by all of its contexts */
    double *number;
} row_of;

static bool in_row(const row_of *r, int64_t i) {
    return r->f[i].m >= r->lo && r->f[i].m <= r->hi;
}

static double difference(const function_score *f, int a, int b) {
    return f->v[a] - (b < 0 ? 0 : f->v[b]);
}

/* a - b of every function (b < 0: a alone) that has them; how many. */
static int64_t gather(const row_of *r, int a, int b) {
    int64_t count = 0;
    for (int64_t i = 0; i < r->all; i++) {
        if (!in_row(r, i)) continue;
        double v = difference(&r->f[i], a, b);
        if (!isnan(v)) r->number[count++] = v;
    }
    return count;
}

/* The mean of a - b, and its standard error: contexts of one function err together, functions
 * apart.
 */
static double mean_of(const row_of *r, int a, int b, double *se) {
    int64_t count = gather(r, a, b);
    double mean = 0, squares = 0, functions = 0;
    if (se) *se = NAN;
    if (count == 0) return NAN;
    for (int64_t i = 0; i < count; i++) mean += r->number[i] / (double)count;
    for (int64_t i = 0; se && i < r->functions; i++) {
        double off = 0;
        bool there = false;
        for (int64_t k = i; k < r->all; k += r->functions) {
            double v = difference(&r->f[k], a, b);
            if (!in_row(r, k) || isnan(v)) continue;
            off += v - mean, there = true;
        }
        squares += off * off, functions += there;
    }
    if (se && functions > 1)
        *se = sqrt(squares / (functions - 1) / functions) * (functions / (double)count);
    return mean;
}

static double median_of(const row_of *r, int a) {
    int64_t count = gather(r, a, -1);
    if (count == 0) return NAN;
    marginals_sort(r->number, count);
    return (r->number[(count - 1) / 2] + r->number[count / 2]) / 2;
}

/* The standard error of the mean joint score. Two contexts of one function that share the term of
 * all points err together: covariance V / (targets targets'). */
static double joint_error(const row_of *r) {
    double sum = 0, count = 0;
    for (int64_t i = 0; i < r->functions; i++) {
        double whole = 0, rates = 0, squares = 0;
        for (int64_t k = i; k < r->all; k += r->functions) {
            const double *v = r->f[k].v, rate = 1 / (double)r->f[k].targets;
            if (!in_row(r, k) || isnan(v[JOINT])) continue;
            sum += v[JOINT_VARIANCE], count++;
            whole = v[WHOLE_VARIANCE], rates += rate, squares += rate * rate;
        }
        if (r->shared) sum += whole * (rates * rates - squares);
    }
    return count > 0 ? sqrt(sum) / count : NAN;
}

static void count_targets(const row_of *r, mnp_predictive *to) {
    double covered[MARGINAL_LEVELS] = {0}, pit[PIT_BINS] = {0};
    for (int64_t i = 0; i < r->all; i++) {
        const function_score *f = &r->f[i];
        if (!in_row(r, i)) continue;
        to->functions++;
        to->targets += f->targets;
        for (int k = 0; k < MARGINAL_LEVELS; k++) covered[k] += f->covered[k];
        for (int k = 0; k < PIT_BINS; k++) pit[k] += f->pit[k];
    }
    double targets = (double)to->targets;
    to->coverage50 = covered[0] / targets;
    to->coverage80 = covered[1] / targets;
    to->coverage95 = covered[2] / targets;
    for (int k = 0; k < PIT_BINS; k++) to->pit[k] = pit[k] / targets;
}

static void summarise(const row_of *r, mnp_predictive *to) {
    count_targets(r, to);
    to->marginal = mean_of(r, MARGINAL, -1, &to->marginal_se);
    to->marginal_mixture = mean_of(r, MIXTURE, -1, NULL);
    to->marginal_mixture_half = mean_of(r, MIXTURE_HALF, -1, NULL);
    to->marginal_true = mean_of(r, MARGINAL_TRUE, -1, NULL);
    to->marginal_short = mean_of(r, MARGINAL_TRUE, MARGINAL, &to->marginal_short_se);
    to->crps = mean_of(r, CRPS, -1, NULL);
    to->crps_true = mean_of(r, CRPS_TRUE, -1, NULL);
    to->kl_true = mean_of(r, KL_TRUE, -1, NULL);
    to->context_off = median_of(r, CONTEXT_OFF);
    to->joint_exact = mean_of(r, JOINT, -1, NULL);
    to->joint_exact_se = joint_error(r);
    to->joint_exact_bias = mean_of(r, JOINT_BIAS, -1, NULL);
    to->joint_true = mean_of(r, JOINT_TRUE, -1, NULL);
    to->joint_hurried = mean_of(r, JOINT_HURRIED, -1, NULL);
    to->joint_short = mean_of(r, JOINT_TRUE, JOINT, &to->joint_short_se);
    to->gradients = mean_of(r, GRADIENTS, -1, NULL);
    to->acceptance = mean_of(r, ACCEPTANCE, -1, NULL);
    to->particle_ess = mean_of(r, ESS, -1, NULL);
    to->rhat = mean_of(r, RHAT, -1, NULL);
    to->sandwich_lower = mean_of(r, LOWER, -1, NULL);
    to->sandwich_upper = mean_of(r, UPPER, -1, NULL);
    to->sandwich_gap = mean_of(r, UPPER, LOWER, &to->sandwich_se);
    double warned = mean_of(r, WARNED, -1, NULL) * (double)gather(r, WARNED, -1);
    to->warned = isnan(warned) ? 0 : (int64_t)llround(warned);
}

mnp_status predictive_rows(evaluator *v, const eval_opts *o, const function_score *f, int64_t all,
                           mnp_predictive rows[PREDICTIVE_ROWS]) {
    int64_t lo[EVAL_BINS], hi[EVAL_BINS];
    int bins = eval_bins(o, lo, hi);
    row_of r = {.f = f,
                .functions = all / most(o->n_sizes, 1),
                .all = all,
                .lo = INT64_MIN,
                .hi = INT64_MAX,
                .shared = predictive_all_points(v, o),
                .number = env_alloc(v->env, (size_t)all, sizeof *r.number, "scores")};
    if (!r.number) return MNP_ENOMEM;
    for (int k = 0; k <= bins; k++) {
        if (k > 0) r.lo = lo[k - 1], r.hi = hi[k - 1];
        rows[k].context_lo = k > 0 ? r.lo : bins ? lo[0] : 0;
        rows[k].context_hi = k > 0 ? r.hi : bins ? hi[bins - 1] : 0;
        summarise(&r, &rows[k]);
    }
    env_free(v->env, r.number);
    return MNP_OK;
}
