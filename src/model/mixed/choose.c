/* choose.c: the numbers of knots by AIC (mixed.h).
 *
 *   AIC = -2 loglik + 2 k + 2 k (k + 1) / (N - k - 1),   k = p + r (r + 1) / 2 + 1
 *
 * with the ML likelihood, because REML likelihoods of different columns X are densities of
 * different numbers and cannot be compared, and with the correction for small N. */
#include <math.h>

#include "model/mixed/mixed.h"
#include "util/least.h"

enum { FIXED_MOST = 10, RANDOM_MOST = 6, CURVES_MOST = 2000, PATIENCE = 2 };

/* Infinite: more parameters than numbers, or a likelihood that is none. */
static mnp_status criterion(env *e, const data_view *d, int32_t fixed, int32_t random,
                            double *out) {
    mixed_bases b;
    mixed_design m;
    mixed_parameters p;
    *out = INFINITY;
    MNP_TRY(mixed_place(e, d, fixed, random, &b));
    mnp_status status = mixed_design_make(e, d, &b, &m);
    mixed_bases_free(e, &b);
    if (status != MNP_OK) return status;
    double k = (double)m.p + (double)m.r * (m.r + 1) / 2 + 1, N = (double)m.points;
    status = mixed_parameters_make(e, &m, &p);
    if (status == MNP_OK && N > k + 1) {
        status = mixed_maximise(e, &m, false, &p);
        if (status == MNP_OK) *out = -2 * p.loglik + 2 * k + 2 * k * (k + 1) / (N - k - 1);
        if (status == MNP_ENUMERIC) status = MNP_OK;
    }
    mixed_parameters_free(e, &p);
    mixed_design_free(e, &m);
    return status;
}

mnp_status mixed_population(env *e, const data_view *d, const mixed_bases *b, float *out) {
    mixed_design m;
    mixed_parameters p = {0};
    MNP_TRY(mixed_design_make(e, d, b, &m));
    int64_t P = mixed_fixed_columns(b), Q = mixed_random_columns(b);
    double *mean = env_alloc(e, (size_t)(P + P * P + Q * Q), sizeof *mean, "a population curve");
    mnp_status status = mean ? mixed_parameters_make(e, &m, &p) : MNP_ENOMEM;
    if (status == MNP_OK) status = mixed_maximise(e, &m, true, &p);
    if (status == MNP_OK) mixed_unturn(&m, &p, mean, mean + P, mean + P + P * P);
    for (int64_t j = 0; status == MNP_OK && j < P; j++) out[j] = (float)mean[j];
    env_free(e, mean);
    mixed_parameters_free(e, &p);
    mixed_design_free(e, &m);
    return status;
}

static int32_t most_knots(int64_t x_dim, int64_t columns, int64_t most) {
    return (int32_t)least(most, 1 + (columns - 1) / x_dim);
}

/* Every number of a curve's knots, each with numbers of the population's that rise until two in a
 * row have not been better. */
mnp_status mixed_choose(env *e, const data_view *d, int32_t *fixed, int32_t *random) {
    data_view some = *d;
    some.functions = least(d->functions, CURVES_MOST);
    int32_t fixed_most = most_knots(d->x_dim, 64, FIXED_MOST);
    int32_t random_most = most_knots(d->x_dim, 8, RANDOM_MOST);
    int32_t asked_fixed = *fixed, asked_random = *random;
    double best = INFINITY;
    *fixed = asked_fixed ? asked_fixed : 1, *random = asked_random ? asked_random : 1;
    for (int32_t r = asked_random ? asked_random : 1; r <= (asked_random ? r : random_most); r++) {
        double best_here = INFINITY;
        int32_t last = asked_fixed ? asked_fixed : fixed_most;
        for (int32_t f = asked_fixed ? asked_fixed : 1, idle = 0; f <= last && idle < PATIENCE;
             f++) {
            double aic;
            MNP_TRY(criterion(e, &some, f, r, &aic));
            if (env_cancelled(e)) return env_fail(e, MNP_ECANCELLED, "training was cancelled");
            idle = aic < best_here ? 0 : idle + 1;
            best_here = fmin(best_here, aic);
            if (aic < best) best = aic, *fixed = f, *random = r;
        }
        if (asked_random) break;
    }
    return MNP_OK;
}
