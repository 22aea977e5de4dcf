/* scores.c: see scores.h. The workers share the curves; each has a predictor of its own. */
#include "fit/scores.h"

#include <math.h>
#include <string.h>

#include "base/pool_errors.h"
#include "run/predict.h"
#include "run/score.h"
#include "util/least.h"

enum { ROUGH_POINTS = ROUGH_PLACES + 2 }; /* of a pair, its ends included */

typedef struct worker {
    pool_seat seat;
    env env;
    predictor *p; /* NULL until its first curve */
    int64_t *order;
    double *x, *y;    /* (longest, X), (longest): those given, then the targets; raw units */
    double *draws;    /* (S, longest) */
    double *column;   /* (S) */
    double *places;   /* (ROUGH_PAIRS ROUGH_POINTS, X) */
    double *function; /* (ROUGH_DRAWS, ROUGH_PAIRS ROUGH_POINTS) */
} worker;

typedef struct work {
    const score_request *q;
    curve_score *out;
    worker *workers;
    pool_errors errors;
} work;

static double *numbers(worker *w, int64_t count) {
    return env_alloc(&w->env, (size_t)count, sizeof(double), "scores of curves");
}

static mnp_status prepare(const score_request *q, worker *w) {
    int64_t X = q->d->x_dim, longest = q->d->longest, places = ROUGH_PAIRS * ROUGH_POINTS;
    w->order = env_alloc(&w->env, (size_t)longest, sizeof *w->order, "scores of curves");
    w->x = numbers(w, longest * X);
    w->y = numbers(w, longest);
    w->draws = numbers(w, q->draws * longest);
    w->column = numbers(w, q->draws);
    w->places = numbers(w, places * X);
    w->function = numbers(w, most(ROUGH_DRAWS, q->draws) * places);
    bool all = w->order && w->x && w->y && w->draws && w->column && w->places && w->function;
    return all ? predictor_create(&w->env, q->m, NULL, (backend_choice){0}, &w->p) : MNP_ENOMEM;
}

static void release(worker *w) {
    void *arrays[] = {w->order, w->x, w->y, w->draws, w->column, w->places, w->function};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) env_free(&w->env, arrays[k]);
    predictor_destroy(w->p);
}

/* The curve's points into x and y, in the order of the task. */
static void take_points(const dataset *d, int64_t curve, worker *w) {
    int64_t n = d->start[curve + 1] - d->start[curve];
    for (int64_t k = 0; k < n; k++) {
        for (int32_t c = 0; c < d->x_dim; c++)
            w->x[k * d->x_dim + c] = dataset_raw_x(d, curve, w->order[k], c);
        w->y[k] = dataset_raw_y(d, d->start[curve] + w->order[k]);
    }
}

/* ---- targets --------------------------------------------------------------------------------- */

static mnp_status score_draws(const score_request *q, worker *w, int64_t m, int64_t n,
                              curve_score *to) {
    int64_t S = q->draws, count = n - m;
    MNP_TRY(predictor_predict(w->p, w->x + m * q->d->x_dim, count, PREDICT_NORMAL, w->draws));
    for (int64_t i = 0; i < count; i++) {
        double y = w->y[m + i];
        for (int64_t s = 0; s < S; s++) w->column[s] = w->draws[s * count + i];
        marginals_sort(w->column, S);
        to->crps += marginals_crps(w->column, S, y) / (double)count;
        int64_t rank = marginals_rank(w->column, S, y);
        marginals_cover(rank, S, to->covered);
        marginals_pit(rank, S, to->pit);
    }
    for (int k = 0; k < MARGINAL_LEVELS; k++) to->covered[k] /= (double)count;
    for (int k = 0; k < PIT_BINS; k++) to->pit[k] /= (double)count;
    return MNP_OK;
}

/* Without latents every function would give the same exact number: one is asked. */
static mnp_status score_density(const score_request *q, worker *w, int64_t m, int64_t n,
                                uint64_t seed, curve_score *to) {
    int64_t S = q->draws, count = n - m;
    if (process_is_exact(&q->m->spec)) {
        S = 1;
        MNP_TRY(predictor_draw_latents(w->p, seed, 1));
    }
    MNP_TRY(predictor_logp(w->p, w->x + m * q->d->x_dim, w->y + m, count, w->draws));
    for (int64_t i = 0; i < count; i++) {
        for (int64_t s = 0; s < S; s++) w->column[s] = w->draws[s * count + i];
        to->logp += score_log_mean_exp(w->column, S, NULL) / (double)count;
    }
    return MNP_OK;
}

/* ---- roughness ------------------------------------------------------------------------------- */

/* Do two points differ in time alone, as far as categories and outputs go? */
static bool same_kind(const dataset *d, const float *a, const float *b) {
    for (int32_t c = 0; c < d->x_dim && d->roles; c++)
        if (roles_at(d->roles, c)->unit == ROLE_CATEGORY && a[c] != b[c]) return false;
    return true;
}

/* The next point in time after the k-th that is of the same kind and later; n: none. */
static int64_t next_of(const dataset *d, int64_t curve, int32_t time, const int64_t *order,
                       int64_t n, int64_t k) {
    const float *x = dataset_x(d, curve), *own = x + order[k] * d->x_dim;
    int64_t j = k + 1;
    while (j < n && !(x[order[j] * d->x_dim + time] > own[time] &&
                      same_kind(d, own, x + order[j] * d->x_dim)))
        j++;
    return j;
}

/* From the first point of a pair to the second in equal steps; other inputs stay at the first's. */
static void put_pair(const dataset *d, int64_t curve, int32_t time, int64_t from, int64_t to,
                     double *places) {
    for (int k = 0; k < ROUGH_POINTS; k++)
        for (int32_t c = 0; c < d->x_dim; c++) {
            double a = dataset_raw_x(d, curve, from, c), b = dataset_raw_x(d, curve, to, c);
            double part = (double)k / (ROUGH_POINTS - 1);
            places[k * d->x_dim + c] = c == time ? a + part * (b - a) : a;
        }
}

/* Of a long curve some pairs, spread evenly. Returns how many. */
static int64_t put_pairs(const score_request *q, int64_t curve, worker *w) {
    const dataset *d = q->d;
    int64_t n = d->start[curve + 1] - d->start[curve], pairs = 0;
    int64_t step = (n - 2) / ROUGH_PAIRS + 1;
    task_order(d, curve, q->time, w->order);
    for (int64_t k = 0; k < n && pairs < ROUGH_PAIRS; k += step) {
        int64_t j = next_of(d, curve, q->time, w->order, n, k);
        if (j < n)
            put_pair(d, curve, q->time, w->order[k], w->order[j],
                     w->places + pairs++ * ROUGH_POINTS * d->x_dim);
    }
    return pairs;
}

static mnp_status score_rough(const score_request *q, int64_t curve, worker *w, uint64_t seed,
                              curve_score *to) {
    int64_t pairs = put_pairs(q, curve, w), places = pairs * ROUGH_POINTS;
    int64_t S = process_is_exact(&q->m->spec) ? ROUGH_DRAWS : least(q->draws, ROUGH_DRAWS);
    double sum = 0;
    to->rough = NAN;
    if (pairs == 0) return MNP_OK;
    /* the functions of a model with latents are there already, all S of them */
    if (process_is_exact(&q->m->spec)) MNP_TRY(predictor_draw_latents(w->p, seed, S));
    MNP_TRY(predictor_predict(w->p, w->places, places, PREDICT_ZERO, w->function));
    for (int64_t s = 0; s < S; s++)
        for (int64_t i = 0; i < places; i++) {
            const double *f = w->function + s * places + i;
            if (i % ROUGH_POINTS == 0 || i % ROUGH_POINTS == ROUGH_POINTS - 1) continue;
            sum += fabs(f[1] - 2 * f[0] + f[-1]);
        }
    to->rough = sum / (double)(S * pairs * ROUGH_PLACES);
    return MNP_OK;
}

/* ---- curves ---------------------------------------------------------------------------------- */

static mnp_status score_curve(const score_request *q, worker *w, int64_t curve, curve_score *to) {
    int64_t n = q->d->start[curve + 1] - q->d->start[curve];
    uint64_t seed = q->seed + (uint64_t)curve;
    mnp_draw_opts o = {.condition = q->condition, .samples = q->draws, .seed = seed};
    mnp_draw_report report;
    if (!w->p) MNP_TRY(prepare(q, w));
    int64_t m = task_split(q->d, curve, q->task, q->time, q->seed, w->order);
    *to = (curve_score){.given = m, .targets = n - m};
    take_points(q->d, curve, w);
    MNP_TRY(predictor_condition(w->p, w->x, w->y, m));
    MNP_TRY(predictor_draw(w->p, &o, &report));
    to->warned = report.warnings != 0;
    MNP_TRY(score_draws(q, w, m, n, to));
    MNP_TRY(score_density(q, w, m, n, seed, to));
    return score_rough(q, curve, w, seed, to);
}

static void run_task(void *arg, int64_t k, int number) {
    work *w = arg;
    worker *own = &w->workers[number];
    int64_t curve = w->q->which[k];
    mnp_status status = MNP_ECANCELLED;
    if (pool_errors_stopped(&w->errors, number))
        env_fail(&own->env, status, "scoring was cancelled");
    else
        status = score_curve(w->q, own, curve, &w->out[curve]);
    if (status != MNP_OK) pool_errors_fail(&w->errors, k, status, own->env.error);
}

mnp_status scores_make(env *e, const score_request *q, curve_score *out) {
    int workers = q->pool ? pool_threads(q->pool) : 1;
    work w = {.q = q, .out = out};
    w.workers = env_alloc(e, (size_t)workers, sizeof *w.workers, "scores of curves");
    if (!w.workers) return MNP_ENOMEM;
    pool_errors_begin(&w.errors, e);
    for (int k = 0; k < workers; k++)
        pool_errors_env(&w.errors, k, &w.workers[k].seat, &w.workers[k].env);
    pool_run(q->pool, q->count, run_task, &w);
    for (int k = 0; k < workers; k++) release(&w.workers[k]);
    mnp_status status = pool_errors_end(&w.errors);
    if (status != MNP_OK) env_fail(e, status, "%s", w.errors.error);
    env_free(e, w.workers);
    return status;
}

/* ---- over curves ----------------------------------------------------------------------------- */

/* The k-th number of a curve's score. */
enum { LOGP, SCORED_CRPS, COVERED, NUMBERS = COVERED + MARGINAL_LEVELS };

static double number_of(const curve_score *s, int k) {
    return k == LOGP ? s->logp : k == SCORED_CRPS ? s->crps : s->covered[k - COVERED];
}

static score_mean mean_of(double sum, double squares, int64_t n) {
    double count = (double)n, mean = sum / count;
    double variance = (squares - count * mean * mean) / (count - 1);
    return (score_mean){mean, n > 1 ? sqrt(fmax(variance, 0) / count) : (double)NAN};
}

task_score scores_mean(const curve_score *s, int64_t curves) {
    task_score out = {0};
    double sum[NUMBERS] = {0}, squares[NUMBERS] = {0}, rough = 0;
    int64_t smooth = 0;
    for (int64_t i = 0; i < curves; i++) {
        if (s[i].targets == 0) continue;
        out.curves++;
        out.targets += s[i].targets;
        out.warned += s[i].warned;
        for (int k = 0; k < NUMBERS; k++) {
            double v = number_of(&s[i], k);
            sum[k] += v, squares[k] += v * v;
        }
        for (int k = 0; k < PIT_BINS; k++) out.pit[k] += s[i].pit[k];
        if (isfinite(s[i].rough)) rough += s[i].rough, smooth++;
    }
    for (int k = 0; k < PIT_BINS; k++) out.pit[k] /= (double)most(out.curves, 1);
    out.logp = mean_of(sum[LOGP], squares[LOGP], out.curves);
    out.crps = mean_of(sum[SCORED_CRPS], squares[SCORED_CRPS], out.curves);
    for (int k = 0; k < MARGINAL_LEVELS; k++)
        out.covered[k] = mean_of(sum[COVERED + k], squares[COVERED + k], out.curves);
    out.rough = smooth ? rough / (double)smooth : (double)NAN;
    return out;
}

score_mean scores_compare(const curve_score *a, const curve_score *b, int64_t curves) {
    double sum = 0, squares = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < curves; i++) {
        double gap = 0;
        if (a[i].targets == 0 || b[i].targets == 0) continue;
        for (int t = 0; t < FIT_TASKS; t++)
            gap += (a[t * curves + i].crps - b[t * curves + i].crps) / FIT_TASKS;
        sum += gap, squares += gap * gap, count++;
    }
    return mean_of(sum, squares, count);
}
