/* choose.c: which model is the best, and what is doubtful about the table.
 *
 * The best has the lowest CRPS, the mean over both tasks: unlike the log-density it is in units of
 * y, one far value does not decide it, and its estimate from draws is unbiased for every model. The
 * average of mixed models holds most of the others already, with shares that curves decided: among
 * a dozen curves another one is the lowest by chance more often than not, so it is taken in place
 * of the average where it wins by two standard errors of the paired difference over curves. A model
 * with latents, which has thousands of parameters, must have a lower CRPS than all of these, win by
 * more than one standard error of the paired difference over curves, and be as smooth between the
 * measured times as the mixed model: what happens there no score can see. */
#include <math.h>

#include "fit/fit.h"

#define ROUGH_MAX      1.5
#define COVERAGE_LEAST 0.85
enum { COVERAGE_CURVES = 10 };

static double crps_of(const fit *f, int k) {
    double sum = 0;
    for (int t = 0; t < FIT_TASKS; t++) sum += f->row[k].task[t].crps.mean / FIT_TASKS;
    return sum;
}

static bool is_simple(int k) {
    return candidate_at(k)->condition == MNP_NETWORK; /* exact by itself: no latents */
}

static int lowest_simple(const fit *f) {
    int best = -1;
    for (int k = 0; k < CANDIDATES; k++)
        if (f->row[k].there && is_simple(k) && (best < 0 || crps_of(f, k) < crps_of(f, best)))
            best = k;
    return best;
}

static score_mean gap_of(const fit *f, int a, int b) {
    return scores_compare(f->row[a].scores, f->row[b].scores, f->curves->functions);
}

#define SURELY 2.0 /* standard errors */

static int best_simple(const fit *f) {
    int lowest = lowest_simple(f);
    if (lowest < 0 || lowest == CANDIDATE_average || !f->row[CANDIDATE_average].there)
        return lowest;
    score_mean gap = gap_of(f, CANDIDATE_average, lowest);
    return isfinite(gap.se) && gap.mean <= SURELY * gap.se ? CANDIDATE_average : lowest;
}

static double roughest(const fit *f, int k) {
    double most = 0;
    for (int t = 0; t < FIT_TASKS; t++) most = fmax(most, fit_roughness(f, k, (fit_task)t));
    return most;
}

/* One curve alone has no standard error. */
static void print_gap(fit *f, score_mean gap) {
    buf_printf(&f->why, "%.2g", gap.mean);
    if (isfinite(gap.se)) buf_printf(&f->why, " (standard error %.2g)", gap.se);
}

/* The average stays, though another is lower. */
static void say_average(fit *f, int lowest) {
    score_mean gap = gap_of(f, CANDIDATE_average, lowest);
    buf_printf(&f->why,
               "the %s: the CRPS of the %s is lower by %.2g, which is within two standard errors "
               "(%.2g each)",
               candidate_at(CANDIDATE_average)->title, candidate_at(lowest)->title, gap.mean,
               gap.se);
}

static void say_simple(fit *f, int best) {
    int lowest = lowest_simple(f);
    if (lowest != best) {
        say_average(f, lowest);
        return;
    }
    buf_printf(&f->why, "the %s has the lowest CRPS, %.3g", candidate_at(best)->title,
               crps_of(f, best));
    int second = -1;
    for (int k = 0; k < CANDIDATES; k++)
        if (k != best && f->row[k].there && is_simple(k) &&
            (second < 0 || crps_of(f, k) < crps_of(f, second)))
            second = k;
    if (second < 0) return;
    score_mean gap = gap_of(f, second, best);
    if (gap.mean == 0)
        buf_printf(&f->why, ", the same as the %s, and is simpler", candidate_at(second)->title);
    else {
        buf_printf(&f->why, ", by ");
        print_gap(f, gap);
        buf_printf(&f->why, " below that of the %s", candidate_at(second)->title);
    }
}

/* Is k, which has latents, worth its place beside `best`? */
static bool earns(fit *f, int k, int best) {
    int lowest = lowest_simple(f);
    score_mean gap = gap_of(f, best, k);
    const char *title = candidate_at(k)->title, *other = candidate_at(best)->title;
    if (lowest != best && !(crps_of(f, k) < crps_of(f, lowest))) {
        buf_printf(&f->why, "; that of the %s is by %.2g above that of the %s", title,
                   crps_of(f, k) - crps_of(f, lowest), candidate_at(lowest)->title);
        return false;
    }
    buf_clear(&f->why);
    if (!(gap.mean > 0)) {
        buf_printf(&f->why, "the %s has the lowest CRPS, %.3g; that of the %s is higher by %.2g",
                   other, crps_of(f, best), title, -gap.mean);
        return false;
    }
    if (!isfinite(gap.se)) {
        buf_printf(&f->why,
                   "the %s: the CRPS of the %s is lower by %.2g, but on a single curve, so the "
                   "simpler one is taken",
                   other, title, gap.mean);
        return false;
    }
    if (!(gap.mean > gap.se)) {
        buf_printf(&f->why,
                   "the %s: the CRPS of the %s is lower by %.2g, which is within one standard "
                   "error (%.2g), so the simpler one is taken",
                   other, title, gap.mean, gap.se);
        return false;
    }
    if (roughest(f, k) > ROUGH_MAX) {
        buf_printf(&f->why,
                   "the %s: the %s scores better, but between the measured times its curves are "
                   "%.1f times as rough as those of the mixed model",
                   other, title, roughest(f, k));
        return false;
    }
    buf_printf(&f->why,
               "the %s: its CRPS, %.3g, is by %.2g (standard error %.2g) below that of the %s",
               title, crps_of(f, k), gap.mean, gap.se, other);
    return true;
}

/* ---- doubts ---------------------------------------------------------------------------------- */

static void warn_coverage(fit *f) {
    const fit_row *row = &f->row[f->best];
    for (int t = 0; t < FIT_TASKS; t++) {
        const task_score *s = &row->task[t];
        double share = s->covered[MARGINAL_LEVELS - 1].mean;
        double error = s->covered[MARGINAL_LEVELS - 1].se;
        if (s->curves >= COVERAGE_CURVES && share < COVERAGE_LEAST)
            buf_printf(
                &f->warnings,
                "the 95 %% intervals of the %s hold only %.0f +- %.0f %% of the targets given "
                "the %s points: they are too narrow\n",
                candidate_at(f->best)->title, 100 * share, 100 * error,
                t == TASK_FIRST ? "first" : "random");
    }
}

/* The sampler's own doubts about the draws that were scored. */
static void warn_sampler(fit *f) {
    const fit_row *row = &f->row[f->best];
    for (int t = 0; t < FIT_TASKS; t++)
        if (5 * row->task[t].warned > row->task[t].curves)
            buf_printf(
                &f->warnings,
                "exact conditioning had doubts about its draws for %lld of %lld curves given "
                "the %s points (mnp predict names them)\n",
                (long long)row->task[t].warned, (long long)row->task[t].curves,
                t == TASK_FIRST ? "first" : "random");
}

static void warn_worse(fit *f) {
    for (int k = 0; k < CANDIDATES; k++) {
        if (!f->row[k].there || is_simple(k) || !f->row[CANDIDATE_lmm].there) continue;
        score_mean gap = gap_of(f, k, CANDIDATE_lmm);
        if (gap.mean > 2 * gap.se)
            buf_printf(&f->warnings,
                       "the %s is worse than the mixed model: its CRPS is higher by %.2g "
                       "(standard error %.2g)\n",
                       candidate_at(k)->title, gap.mean, gap.se);
        if (roughest(f, k) > ROUGH_MAX)
            buf_printf(&f->warnings,
                       "between the measured times the curves of the %s are %.1f times as rough "
                       "as those of the mixed model\n",
                       candidate_at(k)->title, roughest(f, k));
    }
}

void fit_choose(fit *f) {
    int best = best_simple(f);
    if (best >= 0) say_simple(f, best);
    for (int k = 0; k < CANDIDATES; k++) {
        if (!f->row[k].there || is_simple(k)) continue;
        if (best < 0 || earns(f, k, best)) best = k;
    }
    f->best = best;
    warn_coverage(f);
    warn_sampler(f);
    warn_worse(f);
}
