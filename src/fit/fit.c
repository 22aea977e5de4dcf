/* fit.c: see fit.h. */
#include "fit/fit.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "util/least.h"

typedef struct run {
    fit *f;
    const fit_opts *o;
    double started;
    int64_t *which; /* (curves) scratch */
    int candidate;  /* at work */
    bool trial;     /* to see how long it takes */
    int64_t done, total;
} run; /* one call of fit_run() */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the curves ------------------------------------------------------------------------------ */

int64_t fit_thin(const dataset *d, bool *keep) {
    int64_t curves = 0;
    for (int64_t i = 0; i < d->functions; i++) {
        int64_t n = d->start[i + 1] - d->start[i];
        curves += n > task_thin(d, i, FIT_POINTS_MAX, keep);
    }
    return curves;
}

static mnp_status take_curves(fit *f, const dataset *d) {
    env *e = f->e;
    bool *keep = env_alloc(e, (size_t)d->points, sizeof *keep, "the points of curves");
    int64_t *all = env_alloc(e, (size_t)d->functions, sizeof *all, "the curves");
    mnp_status status = keep && all ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) {
        for (int64_t i = 0; i < d->functions; i++) all[i] = i;
        int64_t long_ones = fit_thin(d, keep);
        if (long_ones)
            buf_printf(&f->warnings,
                       "%lld curves have more than %d points: at most %d of each, spread evenly, "
                       "are learned from and scored\n",
                       (long long)long_ones, FIT_POINTS_MAX, FIT_POINTS_MAX);
        status = dataset_part(e, d, all, d->functions, keep, &f->curves);
    }
    env_free(e, keep);
    env_free(e, all);
    return status;
}

static mnp_status check_curves(env *e, const dataset *d) {
    if (d->rows > 0 || d->builtin)
        return env_fail(e, MNP_EINVAL, "%s is no table of curves: fit takes those alone", d->name);
    if (d->roles && d->x_dim > roles_dims(d->roles))
        return env_fail(e, MNP_EINVAL, "%s has a column of actions: fit takes curves without one",
                        d->name);
    if (d->functions >= FIT_CURVES_MIN) return MNP_OK;
    return env_fail(
        e, MNP_EINVAL,
        "%s has %lld curve%s with two points or more: at least %d are needed to see how "
        "curves differ (which columns tell curves apart? --group C, or --group A,B; mnp train "
        "fits a single curve)",
        d->name, (long long)d->functions, d->functions == 1 ? "" : "s", FIT_CURVES_MIN);
}

static void warn_curves(fit *f) {
    const dataset *d = f->curves;
    float lo = d->y[0], hi = d->y[0];
    for (int64_t i = 0; i < d->points; i++) lo = fminf(lo, d->y[i]), hi = fmaxf(hi, d->y[i]);
    if (!(lo < hi) && !d->roles) /* of a table it is among its own warnings */
        buf_printf(&f->warnings, "%s is the same at every point: there is nothing to learn\n",
                   d->y_name);
    if (d->functions < FIT_CURVES_FEW)
        buf_printf(&f->warnings,
                   "%lld curves are few: the scores are rough, and so is the choice between the "
                   "models\n",
                   (long long)d->functions);
}

/* ---- progress -------------------------------------------------------------------------------- */

/* Work is counted in hundredths of a fit of the mixed model; the network's takes as long as 30. */
static int64_t weight_of(int k) {
    return candidate_at(k)->condition == MNP_NETWORK ? 100 : 3000;
}

/* A share of the present fit is done; scoring is the last tenth. */
static void on_share(void *user, double share) {
    const run *r = user;
    int64_t done = r->done + (int64_t)(0.9 * share * (double)weight_of(r->candidate));
    if (r->o->progress)
        r->o->progress(r->o->user, candidate_at(r->candidate)->title, done, r->total);
}

static void tell_done(const run *r, int k) {
    if (r->o->progress) r->o->progress(r->o->user, candidate_at(k)->title, r->done, r->total);
}

static void step(run *r, int k) {
    r->done += weight_of(k);
    tell_done(r, k);
}

/* ---- one candidate --------------------------------------------------------------------------- */

/* A candidate that these curves are too few or too odd for is left out, with a word. */
static bool is_own_failure(mnp_status status) {
    return status == MNP_ENUMERIC || status == MNP_EINVAL;
}

static void leave_out(fit *f, int k) {
    fit_row *row = &f->row[k];
    model_destroy(row->whole);
    row->whole = NULL;
    for (int64_t i = 0; i < f->folds.count; i++) {
        model_destroy(row->fold[i]);
        row->fold[i] = NULL;
    }
    row->there = false;
}

/* Fold -1 is all curves. */
static mnp_status fit_one(run *r, int k, int64_t fold, model **out) {
    fit *f = r->f;
    dataset *part = NULL;
    const model *before[CANDIDATES];
    for (int j = 0; j < CANDIDATES; j++)
        before[j] = !f->row[j].there ? NULL : fold < 0 ? f->row[j].whole : f->row[j].fold[fold];
    int64_t count = folds_learned(&f->folds, fold < 0 ? INT64_MAX : fold, r->which);
    MNP_TRY(dataset_part(f->e, f->curves, r->which, count, NULL, &part));
    candidate_input in = {.curves = part,
                          .before = before,
                          .part = fold >= 0,
                          .effort = f->effort,
                          .seed = r->o->seed + (uint64_t)(fold + 1),
                          .pool = r->o->pool,
                          .warnings = fold < 0 && !r->trial ? &f->warnings : NULL,
                          .progress = r->trial ? NULL : on_share,
                          .progress_user = r};
    r->candidate = k;
    mnp_status status = candidate_at(k)->fit(f->e, &in, out);
    dataset_destroy(part);
    if (status == MNP_OK && env_cancelled(f->e))
        status = env_fail(f->e, MNP_ECANCELLED, "fit was cancelled");
    return status;
}

static mnp_status score_fold(run *r, int k, int64_t fold) {
    fit *f = r->f;
    fit_row *row = &f->row[k];
    int64_t count = folds_scored(&f->folds, fold, r->which);
    int64_t scored = least(count, FIT_SCORED_MAX);
    for (int64_t i = 0; i < scored; i++) r->which[i] = r->which[i * count / scored];
    for (int t = 0; t < FIT_TASKS; t++) {
        score_request q = {.m = row->fold[fold],
                           .condition = candidate_at(k)->condition,
                           .draws = FIT_DRAWS,
                           .d = f->curves,
                           .which = r->which,
                           .count = scored,
                           .task = (fit_task)t,
                           .time = f->time,
                           .seed = r->o->seed,
                           .pool = r->o->pool};
        MNP_TRY(scores_make(f->e, &q, row->scores + t * f->curves->functions));
    }
    return MNP_OK;
}

/* All curves, then fold by fold. */
static mnp_status run_candidate(run *r, int k) {
    fit *f = r->f;
    fit_row *row = &f->row[k];
    size_t numbers = (size_t)FIT_TASKS * (size_t)f->curves->functions;
    row->fold = env_alloc(f->e, (size_t)f->folds.count, sizeof *row->fold, "the models");
    row->scores = env_alloc(f->e, numbers, sizeof *row->scores, "scores of curves");
    if (!row->fold || !row->scores) return MNP_ENOMEM;
    MNP_TRY(fit_one(r, k, -1, &row->whole));
    if (!row->whole) { /* for curves of another kind */
        r->total -= weight_of(k) * (f->folds.count + 1);
        tell_done(r, k);
        return MNP_OK;
    }
    step(r, k);
    for (int64_t fold = 0; fold < f->folds.count; fold++) {
        MNP_TRY(fit_one(r, k, fold, &row->fold[fold]));
        MNP_TRY(score_fold(r, k, fold));
        step(r, k);
    }
    for (int t = 0; t < FIT_TASKS; t++)
        row->task[t] = scores_mean(row->scores + t * f->curves->functions, f->curves->functions);
    row->there = true;
    return MNP_OK;
}

static void say_failed(fit *f, int k) {
    buf_printf(&f->warnings, "the %s could not be fitted: %s\n", candidate_at(k)->title,
               f->e->error);
}

static mnp_status try_candidate(run *r, int k) {
    fit *f = r->f;
    mnp_status status = run_candidate(r, k);
    if (is_own_failure(status)) {
        say_failed(f, k);
        leave_out(f, k);
        return MNP_OK;
    }
    if (status == MNP_OK && f->row[k].there && r->o->scored) r->o->scored(r->o->user, k);
    return status;
}

/* ---- beside the mixed model ------------------------------------------------------------------ */

/* The noise of the mixed model, mean over its draws of the parameters. */
static void take_noise(fit *f) {
    const model *m = f->row[CANDIDATE_lmm].whole;
    int32_t at = m ? params_find(&m->params, "lmm.noise") : -1;
    f->noise = 0;
    if (at < 0) return;
    const param *p = &m->params.list[at];
    for (int32_t r = 0; r < p->rows; r++)
        f->noise += m->scaling.y_scale * (double)m->weights[p->offset + r * p->ld] / p->rows;
}

double fit_roughness(const fit *f, int candidate, fit_task task) {
    const fit_row *mixed = &f->row[CANDIDATE_lmm];
    if (!mixed->there) return NAN;
    return f->row[candidate].task[task].rough / fmax(mixed->task[task].rough, 0.1 * f->noise);
}

/* Those with latents are trained by steps. */
static bool is_wanted(const run *r, int k) {
    return r->f->effort > 0 || candidate_at(k)->condition == MNP_NETWORK;
}

/* ---- the clock ------------------------------------------------------------------------------- */

enum { CLOCK_CURVES = 2 }; /* scored to see how long that takes */
#define EFFORT_LEAST 0.05

/* Seconds of one fit of candidate k to all curves with this effort, and of scoring one curve. */
static mnp_status time_one(run *r, int k, double effort, double *fitting, double *scoring) {
    fit *f = r->f;
    model *m = NULL;
    curve_score *scores =
        env_alloc(f->e, (size_t)f->curves->functions, sizeof *scores, "scores of curves");
    if (!scores) return MNP_ENOMEM;
    double began = now();
    f->effort = effort;
    r->trial = true;
    mnp_status status = fit_one(r, k, -1, &m);
    r->trial = false;
    *fitting = now() - began;
    for (int64_t i = 0; i < CLOCK_CURVES; i++) r->which[i] = i;
    score_request q = {.m = m,
                       .condition = candidate_at(k)->condition,
                       .draws = FIT_DRAWS,
                       .d = f->curves,
                       .which = r->which,
                       .count = CLOCK_CURVES,
                       .time = f->time,
                       .seed = r->o->seed,
                       .pool = r->o->pool};
    if (status == MNP_OK) status = scores_make(f->e, &q, scores);
    *scoring = (now() - began - *fitting) / CLOCK_CURVES;
    model_destroy(m);
    env_free(f->e, scores);
    return status;
}

/* The effort that the seconds which are left allow, between two short trials and the usual. */
static mnp_status choose_effort(run *r, int k) {
    fit *f = r->f;
    double lo, hi, scoring, few = 0.02, more = 0.06, spent = now() - r->started;
    if (spent >= r->o->seconds) { /* no time for a trial either */
        f->effort = -1;
        buf_printf(&f->warnings,
                   "%g s is too short a time: the simpler models alone took %.2g s; the %s is left "
                   "out\n",
                   r->o->seconds, spent, candidate_at(k)->title);
        return MNP_OK;
    }
    MNP_TRY(time_one(r, k, few, &lo, &scoring));
    MNP_TRY(time_one(r, k, more, &hi, &scoring));
    int64_t scored = 0;
    for (int64_t fold = 0; fold < f->folds.count; fold++)
        scored += least(folds_scored(&f->folds, fold, r->which), FIT_SCORED_MAX);
    double left = r->o->seconds - (now() - r->started);
    left -= FIT_TASKS * scoring * (double)scored;
    double slope = fmax(hi - lo, 1e-6) / (more - few), start = fmax(lo - few * slope, 0);
    double effort = (left / (double)(f->folds.count + 1) - start) / slope;
    f->effort = fmin(floor(100 * effort) / 100, 1);
    if (f->effort >= EFFORT_LEAST) return MNP_OK;
    f->effort = -1;
    buf_printf(&f->warnings, "%g seconds are too few for the %s: it is left out\n", r->o->seconds,
               candidate_at(k)->title);
    return MNP_OK;
}

static mnp_status run_other(run *r, int k) {
    mnp_status status = MNP_OK;
    if (r->o->seconds > 0 && candidate_at(k)->condition != MNP_NETWORK)
        status = choose_effort(r, k);
    if (is_own_failure(status)) {
        say_failed(r->f, k);
        r->f->effort = -1;
        return MNP_OK;
    }
    MNP_TRY(status);
    return is_wanted(r, k) ? try_candidate(r, k) : MNP_OK;
}

/* ---- what the models keep -------------------------------------------------------------------- */

/* How it was scored, so that it is asked in the same way later; and what came of it. */
static mnp_status note_models(fit *f) {
    static const char *const conditions[] = {"network", "refine", "exact"};
    char text[200];
    for (int k = 0; k < CANDIDATES; k++) {
        model *m = f->row[k].whole;
        if (!f->row[k].there) continue;
        const task_score *first = &f->row[k].task[TASK_FIRST], *rest = &f->row[k].task[TASK_RANDOM];
        snprintf(text, sizeof text,
                 "%s; on %lld curves that it had not seen: CRPS %.4g given the first 3 points, "
                 "%.4g given 3 random ones",
                 candidate_at(k)->title, (long long)first->curves, first->crps.mean,
                 rest->crps.mean);
        MNP_TRY(model_note_set(f->e, m, "fit", text));
        if (candidate_at(k)->condition != MNP_NETWORK)
            MNP_TRY(model_note_set(f->e, m, "condition", conditions[candidate_at(k)->condition]));
    }
    return MNP_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The mixed model first: it is quick, and what the others are compared with. */
static mnp_status run_all(run *r) {
    fit *f = r->f;
    MNP_TRY(try_candidate(r, CANDIDATE_lmm));
    take_noise(f);
    for (int k = 0; k < CANDIDATES; k++)
        if (k != CANDIDATE_lmm) MNP_TRY(run_other(r, k));
    bool any = false;
    for (int k = 0; k < CANDIDATES; k++) any |= f->row[k].there;
    if (!any) return MNP_ENUMERIC; /* the last one has said why */
    fit_choose(f);
    MNP_TRY(note_models(f));
    MNP_TRY(f->why.status);
    return f->warnings.status;
}

mnp_status fit_run(env *e, const dataset *d, const fit_opts *o, fit *out) {
    run r = {.f = out, .o = o, .started = now()};
    *out = (fit){.e = e, .seed = o->seed, .effort = o->effort == 0 ? 1 : o->effort};
    buf_init(&out->why, e);
    buf_init(&out->warnings, e);
    mnp_log_fn log = e->log;
    e->log = NULL; /* every fold would say what the warnings say once */
    mnp_status status = check_curves(e, d);
    if (status == MNP_OK) status = take_curves(out, d);
    if (status == MNP_OK) {
        warn_curves(out);
        out->time = dataset_time(out->curves);
        status = folds_make(e, out->curves->functions, o->folds, o->seed, &out->folds);
    }
    if (status == MNP_OK) {
        for (int k = 0; k < CANDIDATES; k++)
            r.total += is_wanted(&r, k) * weight_of(k) * (out->folds.count + 1);
        r.which = env_alloc(e, (size_t)d->functions, sizeof *r.which, "the curves");
        status = r.which ? run_all(&r) : MNP_ENOMEM;
    }
    env_free(e, r.which);
    e->log = log;
    if (status != MNP_OK) fit_free(out);
    return status;
}

void fit_free(fit *f) {
    if (!f->e) return;
    for (int k = 0; k < CANDIDATES; k++) {
        fit_row *row = &f->row[k];
        model_destroy(row->whole);
        for (int64_t i = 0; row->fold && i < f->folds.count; i++) model_destroy(row->fold[i]);
        env_free(f->e, row->fold);
        env_free(f->e, row->scores);
    }
    folds_free(&f->folds);
    dataset_destroy(f->curves);
    buf_free(&f->why);
    buf_free(&f->warnings);
    *f = (fit){0};
}
