/* choose.c: the numbers of knots by AIC (mixed.h).
 *
 *   AIC = -2 loglik + 2 (p + v) + 2 v (v + 1) / (N - v - 1),   v = r (r + 1) / 2 + 1
 *
 * with the ML likelihood, because REML likelihoods of different columns X are densities of
 * different numbers and cannot be compared. The correction for small N counts the variances alone:
 * with p in it, a table of few short curves got a straight line for its population curve. */
#include <math.h>

#include "model/mixed/mixed.h"
#include "util/least.h"

enum { FIXED_MOST = 14, FIXED_COLUMNS = 64, RANDOM_MOST = 10, SMOOTH_KNOTS = 8 };
enum { CURVES_MOST = 400, PATIENCE = 3 };
#define ROUGH 1e-6 /* a hundredth, where the log-likelihood is ten thousand */

/* Infinite: more parameters than numbers, or a likelihood that is none. */
static mnp_status criterion(env *e, const data_view *d, const mixed_form *form, double *out) {
    mixed_bases b;
    mixed_design m;
    mixed_parameters p;
    *out = INFINITY;
    bool smooth = form->smooth;
    MNP_TRY(mixed_place(e, d, form, &b));
    mnp_status status = mixed_design_make(e, d, &b, &m);
    if (status != MNP_OK) {
        mixed_bases_free(e, &b);
        return status;
    }
    double v = 1 + (smooth ? mixed_smooth_parameters() : (double)m.r * (m.r + 1) / 2);
    double k = (double)m.p + v, N = (double)m.points;
    status = mixed_parameters_make(e, &m, &p);
    if (status == MNP_OK && N > k + 1) {
        status =
            smooth ? mixed_smooth(e, &b, &m, false, &p) : mixed_maximise(e, &m, false, ROUGH, &p);
        if (status == MNP_OK) *out = -2 * p.loglik + 2 * k + 2 * v * (v + 1) / (N - v - 1);
        if (status == MNP_ENUMERIC) status = MNP_OK;
    }
    mixed_parameters_free(e, &p);
    mixed_design_free(e, &m);
    mixed_bases_free(e, &b);
    return status;
}

mnp_status mixed_population(env *e, const data_view *d, const mixed_bases *b, float *out) {
    mixed_design m;
    mixed_parameters p = {0};
    MNP_TRY(mixed_design_make(e, d, b, &m));
    int64_t P = mixed_fixed_columns(b), Q = mixed_random_columns(b);
    double *mean = env_alloc(e, (size_t)(P + P * P + Q * Q), sizeof *mean, "a population curve");
    mnp_status status = mean ? mixed_parameters_make(e, &m, &p) : MNP_ENOMEM;
    if (status == MNP_OK) status = mixed_maximise(e, &m, true, MIXED_TIGHT, &p);
    if (status == MNP_OK) mixed_unturn(&m, &p, mean, mean + P, mean + P + P * P);
    for (int64_t j = 0; status == MNP_OK && j < P; j++) out[j] = (float)mean[j];
    env_free(e, mean);
    mixed_parameters_free(e, &p);
    mixed_design_free(e, &m);
    return status;
}

typedef struct range {
    int32_t lo, hi;
} range;

/* The numbers to try: the one asked for, or all. */
static range numbers(int32_t asked, int32_t most_knots) {
    return asked ? (range){asked, asked} : (range){1, most_knots};
}

/* As many as make so many columns. */
static int32_t knots_of(int64_t x_dim, int64_t columns, int64_t most_knots) {
    return (int32_t)least(most_knots, 1 + (columns - 1) / x_dim);
}

mixed_form mixed_choose_most(int64_t x_dim, bool smooth) {
    return (mixed_form){.fixed = knots_of(x_dim, most(FIXED_COLUMNS, 1 + x_dim), FIXED_MOST),
                        .random = smooth ? knots_of(x_dim, MIXED_RANDOM_MAX, SMOOTH_KNOTS)
                                         : knots_of(x_dim, RANDOM_MOST, RANDOM_MOST)};
}

typedef struct best {
    double aic;
    int32_t fixed, random;
} best;

/* Of the population's knots, as many more as the AIC falls, with so many of a curve. */
static mnp_status choose_fixed(env *e, const data_view *d, mixed_form form, range fixed,
                               best *out) {
    int32_t random = form.random;
    *out = (best){INFINITY, fixed.lo, random};
    for (int32_t f = fixed.lo, idle = 0; f <= fixed.hi && idle < PATIENCE; f++) {
        double aic;
        form.fixed = f;
        MNP_TRY(criterion(e, d, &form, &aic));
        if (env_cancelled(e)) return env_fail(e, MNP_ECANCELLED, "training was cancelled");
        idle = aic < out->aic ? 0 : idle + 1;
        if (aic < out->aic) *out = (best){aic, f, random};
    }
    return MNP_OK;
}

/* Numbers rise until three in a row have not been better; those of the population from two below
 * what was best with one knot less of the curves'. */
mnp_status mixed_choose(env *e, const data_view *d, mixed_form *form) {
    data_view some = *d;
    mixed_form try = *form;
    some.functions = least(d->functions, CURVES_MOST);
    mixed_form top = mixed_choose_most(d->x_dim, form->smooth);
    range fixes = numbers(form->fixed, top.fixed);
    range randoms = numbers(form->random, top.random);
    if (form->smooth) randoms.lo = randoms.hi;
    best all = {INFINITY, fixes.lo, randoms.lo};
    for (int32_t r = randoms.lo, idle = 0; r <= randoms.hi && idle < PATIENCE; r++) {
        best here;
        try.random = r;
        MNP_TRY(choose_fixed(e, &some, try, fixes, &here));
        if (fixes.hi > fixes.lo) fixes.lo = here.fixed > 3 ? here.fixed - 2 : 1;
        idle = here.aic < all.aic ? 0 : idle + 1;
        if (here.aic < all.aic) all = here;
    }
    form->fixed = all.fixed, form->random = all.random;
    return MNP_OK;
}
