/* average.c: mixed models of several forms as one process (mixed.h). A member is a form, and a
 * scale of y: a curve is of member k with the probability w_k, and then one of its curves. Given
 * points the members' weights are proportional to w_k p_k(points): what is asked of the process is
 * exact, and which member is right may differ from curve to curve.
 *
 * The shares w are those under which curves that the members have not learned from are likely. The
 * parameters of each member are estimated without some of the curves. Its form is not: the numbers
 * of knots, and the spread of y that the knees are in units of, are found once, with all curves.
 * Each curve left out is asked three times: all its points, those after its first three, and all
 * but three at random. Of several outputs, three are those at three times. With C the points given
 * and T those asked for, w has the greatest
 *
 *   sum_tasks ( log sum_k w_k p_k(y_C, y_T) - log sum_k w_k p_k(y_C) ) + DOUBT mean_k log w_k
 *
 * where the last part is a prior that says next to nothing, and keeps w from choosing one member by
 * chance. A member then gets as many of the laws as its share says. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/linalg.h"
#include "base/mixed_math.h"
#include "base/rng.h"
#include "model/mixed/mixed.h"
#include "util/least.h"

/* Knots of the curves' own parts; as many as AIC chooses, and those of a smooth one, come after. */
static const int32_t sizes[] = {1, 2, 3, 4, 6};
/* Knees of the scale of y, in units of its spread; 0: y itself. */
static const double knees[] = {0, 1, 0.2};
enum { SIZES = sizeof sizes / sizeof *sizes, KNEES = sizeof knees / sizeof *knees };
enum { MEMBERS = 2 * (SIZES + 2) * KNEES };

enum { FOLDS = 4, FOLD_CURVES = 60, HELD_MOST = 40, LEARN_MOST = 240, CHOOSE_MOST = 100 };
enum { TRIAL_DRAWS = 16, GIVEN = 3, GIVEN_MOST = 60, ASKED_MOST = 100 };
enum { ASK_ALL, ASK_LATER, ASK_OTHERS, ASKS }; /* given nothing, the first points, random ones */
#define DOUBT 2.0

typedef struct member {
    mixed_form form;
    double knee, share;
} member;

mixed_form mixed_average_most(int64_t x_dim) {
    mixed_form any = mixed_choose_most(x_dim, false), smooth = mixed_choose_most(x_dim, true);
    return (mixed_form){.fixed = any.fixed, .random = (int32_t)most(any.random, smooth.random)};
}

/* ---- some of the curves, y on a scale -------------------------------------------------------- */

typedef struct part {
    data_view view;
    int64_t *start;
    float *x, *y;
    double slopes; /* sum of log |du / dy| */
} part;

static void part_free(env *e, part *p) {
    env_free(e, p->start);
    env_free(e, p->x);
    env_free(e, p->y);
    *p = (part){0};
}

static mnp_status part_make(env *e, const data_view *d, const int64_t *which, int64_t count,
                            double knee, part *out) {
    int64_t points = 0, X = d->x_dim;
    for (int64_t i = 0; i < count; i++) points += d->start[which[i] + 1] - d->start[which[i]];
    *out = (part){
        .start = env_alloc(e, (size_t)count + 1, sizeof(int64_t), "curves"),
        .y = env_alloc(e, (size_t)points + 1, sizeof(float), "curves"),
        .x = env_alloc(e, d->shared_x ? 1 : (size_t)(points * X) + 1, sizeof(float), "curves")};
    if (!out->start || !out->x || !out->y) {
        part_free(e, out);
        return MNP_ENOMEM;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t from = d->start[which[i]], n = d->start[which[i] + 1] - from, to = out->start[i];
        out->start[i + 1] = to + n;
        if (!d->shared_x) memcpy(out->x + to * X, d->x + from * X, (size_t)(n * X) * sizeof(float));
        for (int64_t k = 0; k < n; k++) {
            double y = (double)d->y[from + k];
            out->y[to + k] = (float)mixed_knee_to(y, knee);
            out->slopes += mixed_knee_slope(y, knee);
        }
    }
    out->view = *d;
    out->view.functions = count, out->view.start = out->start, out->view.y = out->y;
    if (!d->shared_x) out->view.x = out->x;
    return MNP_OK;
}

/* ---- one member ------------------------------------------------------------------------------ */

typedef struct taker {
    mixed_take_share *take;
    void *arg;
    int64_t first; /* number of the first law */
    const mixed_design *design;
    mixed_share at;
    double *space; /* mean (p), spread (p, p), curve (q, q) */
} taker;

static void take_draw(void *arg, int64_t draw, const mixed_parameters *p) {
    taker *t = arg;
    int64_t P = mixed_fixed_columns(t->at.bases);
    double *spread = t->space + P, *curve = spread + P * P;
    mixed_unturn(t->design, p, t->space, spread, curve);
    t->at.mean = t->space, t->at.spread = spread, t->at.curve = curve;
    t->at.noise = sqrt(p->variance);
    t->take(t->arg, t->first + draw, &t->at);
}

static mnp_status fit_design(env *e, const member *m, const mixed_bases *b, const mixed_design *d,
                             uint64_t seed, int64_t draws, taker *t, double *loglik) {
    mixed_parameters best;
    double r = (double)d->r, v = m->form.smooth ? mixed_smooth_parameters() : r * (r + 1) / 2;
    if (!((double)d->points > (double)d->p + v + 2))
        return env_fail(e, MNP_ENUMERIC, "there are fewer points than parameters");
    MNP_TRY(mixed_parameters_make(e, d, &best));
    mnp_status status = m->form.smooth ? mixed_smooth(e, b, d, true, &best)
                                       : mixed_maximise(e, d, true, MIXED_TIGHT, &best);
    if (status == MNP_OK) status = mixed_density(e, d, &best, loglik);
    if (status == MNP_OK)
        status = m->form.smooth ? mixed_smooth_posterior(e, b, d, seed, draws, take_draw, t)
                                : mixed_posterior(e, d, &best, seed, draws, take_draw, t);
    mixed_parameters_free(e, &best);
    return status;
}

/* `draws` laws of a member, from the curves named; loglik: of y at the estimate. */
static mnp_status fit_member(env *e, const data_view *d, const int64_t *which, int64_t count,
                             const member *m, uint64_t seed, int64_t draws, taker *t,
                             double *loglik) {
    part some;
    mixed_bases b = {0};
    mixed_design design = {0};
    MNP_TRY(part_make(e, d, which, count, m->knee, &some));
    mnp_status status = mixed_place(e, &some.view, &m->form, &b);
    if (status == MNP_OK) status = mixed_design_make(e, &some.view, &b, &design);
    if (status == MNP_OK) {
        size_t P = (size_t)mixed_fixed_columns(&b), Q = (size_t)mixed_random_columns(&b);
        t->space = env_alloc(e, P + P * P + Q * Q, sizeof(double), "a mixed model");
        t->design = &design, t->at = (mixed_share){.bases = &b, .knee = m->knee};
        status = t->space ? fit_design(e, m, &b, &design, seed, draws, t, loglik) : MNP_ENOMEM;
        if (status == MNP_OK) *loglik += some.slopes;
        env_free(e, t->space);
    }
    mixed_design_free(e, &design);
    mixed_bases_free(e, &b);
    part_free(e, &some);
    return status;
}

/* ---- members --------------------------------------------------------------------------------- */

typedef struct average {
    env *e;
    const data_view *d;
    uint64_t seed;
    int64_t *order; /* (curves) at random */
    member members[MEMBERS];
    int count;
} average;

/* The numbers of knots that are 0 by AIC, from some of the curves. */
static mnp_status choose_knots(average *a, member *m) {
    part some;
    int64_t count = least(a->d->functions, CHOOSE_MOST);
    MNP_TRY(part_make(a->e, a->d, a->order, count, m->knee, &some));
    mnp_status status = mixed_choose(a->e, &some.view, &m->form);
    part_free(a->e, &some);
    return status;
}

/* The knots of the population curve by AIC. A form that cannot be fitted leaves in try_members. */
static mnp_status add_member(average *a, member m) {
    int32_t most_fixed = m.form.fixed;
    m.form.fixed = 0;
    MNP_TRY(choose_knots(a, &m));
    m.form.fixed = (int32_t)least(m.form.fixed, most_fixed);
    a->members[a->count++] = m;
    return MNP_OK;
}

/* Of y: the standard deviation of a normal with the same quartiles, or its own where they are
 * equal. 0 where y is negative somewhere: a scale with a knee needs a zero that nothing is below.
 */
static mnp_status spread_above_zero(env *e, const data_view *d, double *out) {
    int64_t n = d->start[d->functions];
    float *y = env_alloc(e, (size_t)n, sizeof *y, "values");
    double sum = 0, squares = 0;
    if (!y) return MNP_ENOMEM;
    memcpy(y, d->y, (size_t)n * sizeof *y);
    qsort(y, (size_t)n, sizeof *y, mixed_by_size);
    for (int64_t i = 0; i < n; i++) sum += (double)y[i];
    for (int64_t i = 0; i < n; i++) squares += pow((double)y[i] - sum / (double)n, 2);
    double quartiles = ((double)y[(3 * n) / 4] - (double)y[n / 4]) / 1.349;
    *out = !(y[0] >= 0) ? 0 : quartiles > 0 ? quartiles : sqrt(squares / (double)n);
    env_free(e, y);
    return MNP_OK;
}

/* Knots of the curves' own parts: those of `sizes` up to the most, the number that AIC chooses
 * where it is another, and those of a smooth one, the last. */
typedef struct size_list {
    int32_t knots[SIZES + 2];
    int count;
} size_list;

static mnp_status list_sizes(average *a, int32_t most_random, size_list *out) {
    member chosen = {.form = {.at_points = true}};
    *out = (size_list){0};
    MNP_TRY(choose_knots(a, &chosen));
    int32_t own = (int32_t)least(chosen.form.random, most_random);
    bool there = false;
    for (int s = 0; s < SIZES && sizes[s] <= most_random; s++) {
        out->knots[out->count++] = sizes[s];
        there |= sizes[s] == own;
    }
    if (!there) out->knots[out->count++] = own;
    int32_t smooth = mixed_choose_most(a->d->x_dim, true).random;
    bool asked = most_random > mixed_average_most(a->d->x_dim).random;
    if (most_random > 1)
        out->knots[out->count++] = asked ? most_random : (int32_t)least(smooth, most_random);
    return MNP_OK;
}

static mnp_status add_members(average *a, const mixed_form *most_knots) {
    double spread;
    size_list own;
    bool told_apart = false; /* by an input that is the same along a curve */
    MNP_TRY(spread_above_zero(a->e, a->d, &spread));
    MNP_TRY(list_sizes(a, most_knots->random, &own));
    for (int32_t c = 0; c < a->d->x_dim; c++) told_apart |= !mixed_changes(a->d, c);
    for (int k = 0; k < (spread > 0 ? KNEES : 1); k++)
        for (int bare = 0; bare < 1 + told_apart; bare++)
            for (int s = 0; s < own.count; s++)
                MNP_TRY(add_member(a, (member){.form = {.fixed = most_knots->fixed,
                                                        .random = own.knots[s],
                                                        .smooth = s > 0 && s == own.count - 1,
                                                        .at_points = true,
                                                        .bare = bare},
                                               .knee = knees[k] * spread}));
    return MNP_OK;
}

/* ---- curves that a member has not learned from ----------------------------------------------- */

/* Points of a curve, those given first; its place in the order of curves. */
typedef struct question {
    int64_t curve, place, n, m;
    int64_t *point; /* (n) */
} question;

typedef struct trial {
    question *ask; /* (tasks) */
    int64_t tasks;
    int64_t *points;       /* of all questions */
    double *given, *whole; /* (tasks, members): log p_k(y_C), log p_k(y_C, y_T) */
} trial;

typedef struct at_time {
    double x; /* or another number by which points are in order */
    int64_t point;
} at_time;

static int by_time(const void *a, const void *b) {
    const at_time *u = a, *v = b;
    if (u->x != v->x) return u->x < v->x ? -1 : 1;
    return (u->point > v->point) - (u->point < v->point);
}

/* Points by time, or at random; of several outputs those of one time together. */
static void order_points(const average *a, int64_t curve, int64_t n, bool random, at_time *sorted) {
    const data_view *d = a->d;
    const float *x = d->shared_x ? d->x : d->x + d->start[curve] * d->x_dim;
    rng_perm p = rng_perm_make((rng_key){a->seed},
                               (rng_at){.purpose = RNG_SPLIT_EVAL, .function = (uint32_t)curve},
                               (uint64_t)n);
    for (int64_t k = 0; k < n; k++)
        sorted[k] = random && !d->outputs
                        ? (at_time){(double)k, (int64_t)rng_perm_apply(&p, (uint64_t)k)}
                        : (at_time){(double)x[k * d->x_dim + d->time], k};
    qsort(sorted, (size_t)n, sizeof *sorted, by_time);
    if (!random || !d->outputs) return;
    double time = 0, place = 0;
    for (int64_t k = 0; k < n; k++) {
        if (k == 0 || sorted[k].x != time)
            place = (double)rng_perm_apply(&p, (uint64_t)sorted[k].point);
        time = sorted[k].x, sorted[k].x = place;
    }
    qsort(sorted, (size_t)n, sizeof *sorted, by_time);
}

/* Where the points given end: after three, or of several outputs after three times. */
static int64_t given_end(const data_view *d, int64_t n, const at_time *sorted) {
    int64_t few = least(GIVEN, n - 1), end = 1;
    if (!d->outputs) return few;
    for (int times = 1; end < n; end++) {
        times += sorted[end].x != sorted[end - 1].x;
        if (times > GIVEN) break;
    }
    return end < n ? least(end, GIVEN_MOST) : few;
}

/* The points in a task's order; of many that are asked for, some. */
static void put_points(const average *a, question *q, int kind, at_time *sorted) {
    const data_view *d = a->d;
    int64_t n = d->start[q->curve + 1] - d->start[q->curve], asked;
    order_points(a, q->curve, n, kind != ASK_LATER, sorted);
    q->m = kind == ASK_ALL ? 0 : given_end(d, n, sorted);
    asked = least(n - q->m, ASKED_MOST), q->n = q->m + asked;
    for (int64_t k = 0; k < q->n; k++) {
        int64_t at = k < q->m ? k : q->m + (k - q->m) * (n - q->m) / asked;
        q->point[k] = sorted[at].point;
    }
}

static void trial_free(env *e, trial *t) {
    env_free(e, t->ask);
    env_free(e, t->points);
    env_free(e, t->given);
    *t = (trial){0};
}

static mnp_status trial_make(const average *a, int64_t curves, trial *t) {
    int64_t longest = 1, each = GIVEN_MOST + ASKED_MOST;
    for (int64_t i = 0; i < a->d->functions; i++)
        longest = most(longest, a->d->start[i + 1] - a->d->start[i]);
    size_t room = ASKS * (size_t)curves, table = room * (size_t)most(a->count, 1);
    at_time *sorted = env_alloc(a->e, (size_t)longest, sizeof *sorted, "points of a curve");
    *t = (trial){.ask = env_alloc(a->e, room + 1, sizeof *t->ask, "questions"),
                 .points = env_alloc(a->e, room * (size_t)each + 1, sizeof *t->points, "questions"),
                 .given = env_alloc(a->e, 2 * table + 1, sizeof *t->given, "questions")};
    bool there = sorted && t->ask && t->points && t->given;
    if (there) t->whole = t->given + table;
    for (int64_t i = 0; there && i < curves; i++)
        for (int kind = 0; kind < ASKS; kind++) {
            question *q = &t->ask[t->tasks];
            *q = (question){.curve = a->order[i], .place = i, .point = t->points + t->tasks * each};
            if (a->d->start[q->curve + 1] - a->d->start[q->curve] < 2) continue;
            put_points(a, q, kind, sorted);
            t->tasks++;
        }
    env_free(a->e, sorted);
    if (there) return MNP_OK;
    trial_free(a->e, t);
    return MNP_ENOMEM;
}

/* The laws of one member, and what they say about the questions of some curves. */
typedef struct scorer {
    const average *a;
    trial *t;
    int64_t lo, hi; /* tasks */
    int member;
    double *features, *g, *l, *w;   /* (each, R), (R), (R, R), (R) */
    double (*logp)[2][TRIAL_DRAWS]; /* (tasks): given, whole */
} scorer;

static void fill_features(const scorer *s, const mixed_bases *b, const question *q, int64_t R) {
    const data_view *d = s->a->d;
    int32_t X = d->x_dim, P = mixed_fixed_columns(b);
    for (int64_t k = 0; k < q->n; k++) {
        int64_t point = q->point[k] + (d->shared_x ? 0 : d->start[q->curve]);
        double at[MODEL_X_MAX];
        for (int32_t c = 0; c < X; c++) at[c] = (double)d->x[point * X + c];
        natural_row(b->inputs, X, b->fixed, at, s->features + k * R);
        natural_row(b->inputs + X, X, b->random, at, s->features + k * R + P);
    }
}

static double density(const scorer *s, const mixed_law *law, double knee, const question *q,
                      int64_t rows) {
    mixed_seen seen = {.l = s->l, .w = s->w};
    int64_t R = (int64_t)law->p + law->r;
    double slopes = 0;
    mixed_start(law, &seen);
    for (int64_t k = 0; k < rows; k++) {
        double y = (double)s->a->d->y[s->a->d->start[q->curve] + q->point[k]];
        double mean = mixed_row(law, s->features + k * R, s->g);
        mixed_add(law, &seen, s->g, (mixed_knee_to(y, knee) - mean) / law->noise);
        slopes += mixed_knee_slope(y, knee);
    }
    return mixed_solve(law, &seen) + slopes;
}

static void score_law(void *arg, int64_t draw, const mixed_share *m) {
    scorer *s = arg;
    mixed_law law = {mixed_fixed_columns(m->bases),
                     mixed_random_columns(m->bases),
                     m->mean,
                     m->spread,
                     m->curve,
                     m->noise};
    for (int64_t i = s->lo; i < s->hi; i++) {
        const question *q = &s->t->ask[i];
        fill_features(s, m->bases, q, (int64_t)law.p + law.r);
        s->logp[i][0][draw] = density(s, &law, m->knee, q, q->m);
        s->logp[i][1][draw] = density(s, &law, m->knee, q, q->n);
    }
}

/* All members without the curves of tasks lo .. hi - 1, from `count` others. */
static mnp_status try_members(average *a, trial *t, const int64_t *others, int64_t count,
                              scorer *s) {
    for (s->member = 0; s->member < a->count; s->member++) {
        member *m = &a->members[s->member];
        taker taken = {.take = score_law, .arg = s};
        double loglik;
        mnp_status status = m->share < 0 ? MNP_ENUMERIC
                                         : fit_member(a->e, a->d, others, count, m, a->seed,
                                                      TRIAL_DRAWS, &taken, &loglik);
        if (status == MNP_ENUMERIC) m->share = -1; /* too much for so few curves */
        if (status != MNP_OK && status != MNP_ENUMERIC) return status;
        for (int64_t i = s->lo; i < s->hi && status == MNP_OK; i++)
            for (int k = 0; k < 2; k++)
                (k ? t->whole : t->given)[i * a->count + s->member] =
                    mixed_log_sum(s->logp[i][k], TRIAL_DRAWS) - log(TRIAL_DRAWS);
    }
    return MNP_OK;
}

/* Tasks of curves order[lo .. hi). */
static void task_range(const trial *t, int64_t lo, int64_t hi, scorer *s) {
    for (s->lo = 0; s->lo < t->tasks && t->ask[s->lo].place < lo;) s->lo++;
    for (s->hi = s->lo; s->hi < t->tasks && t->ask[s->hi].place < hi;) s->hi++;
}

static mnp_status run_folds(average *a, trial *t, int64_t held, int64_t folds, scorer *s) {
    int64_t J = a->d->functions;
    int64_t *others = env_alloc(a->e, (size_t)J, sizeof *others, "the folds");
    mnp_status status = others ? MNP_OK : MNP_ENOMEM;
    for (int64_t f = 0; f < folds && status == MNP_OK; f++) {
        int64_t lo = f * held / folds, hi = (f + 1) * held / folds, count = 0;
        for (int64_t k = 0; k < J && count < LEARN_MOST; k++)
            if (k < lo || k >= hi) others[count++] = a->order[k];
        task_range(t, lo, hi, s);
        if (count > 0 && s->hi > s->lo) status = try_members(a, t, others, count, s);
    }
    env_free(a->e, others);
    return status;
}

/* Of a member's two bases together. */
static size_t most_columns(const average *a) {
    int64_t R = 1;
    for (int k = 0; k < a->count; k++) {
        const mixed_form *form = &a->members[k].form;
        R = most(R, (int64_t)natural_columns(a->d->x_dim, form->fixed) +
                        natural_columns(a->d->x_dim, form->random));
    }
    return (size_t)R;
}

/* What members say about curves that they have not learned from: by folds, or, of many curves, of
 * some of them. */
static mnp_status try_all(average *a, trial *t) {
    int64_t J = a->d->functions, folds = J > FOLD_CURVES ? 1 : least(FOLDS, J);
    int64_t held = J > FOLD_CURVES ? least(J / 3, HELD_MOST) : J;
    size_t R = most_columns(a);
    MNP_TRY(trial_make(a, J > 1 ? held : 0, t));
    scorer s = {.a = a, .t = t};
    size_t rows = GIVEN_MOST + ASKED_MOST;
    s.features = env_alloc(a->e, (rows + R + 2) * R, sizeof(double), "questions");
    s.logp = env_alloc(a->e, (size_t)t->tasks + 1, sizeof *s.logp, "questions");
    mnp_status status = s.features && s.logp ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) {
        s.g = s.features + rows * R, s.w = s.g + R, s.l = s.w + R;
        status = run_folds(a, t, t->tasks ? held : 0, folds, &s);
    }
    env_free(a->e, s.features);
    env_free(a->e, s.logp);
    return status;
}

/* ---- shares ---------------------------------------------------------------------------------- */

enum { CLIMB = 600 };

/* Adds sign times each member's part of the mixture to pull. */
static void add_parts(const double *logp, const double *w, int count, double sign, double *pull) {
    double sum[MEMBERS] = {0}, total;
    for (int k = 0; k < count; k++) sum[k] = logp[k] + log(w[k]);
    total = mixed_log_sum(sum, count);
    for (int k = 0; k < count && isfinite(total); k++) pull[k] += sign * exp(sum[k] - total);
}

/* Gradient ascent in logarithms of w, where the objective is smooth. */
static void climb(average *a, const trial *t) {
    double at[MEMBERS] = {0}, w[MEMBERS], step = 0.3 / sqrt((double)most(t->tasks, 1));
    int K = a->count;
    for (int turn = 0; turn <= CLIMB; turn++) {
        double pull[MEMBERS] = {0}, total = mixed_log_sum(at, K);
        for (int k = 0; k < K; k++) w[k] = exp(at[k] - total);
        if (turn == CLIMB) break;
        for (int64_t i = 0; i < t->tasks; i++) {
            add_parts(t->whole + i * K, w, K, 1, pull);
            add_parts(t->given + i * K, w, K, -1, pull);
        }
        for (int k = 0; k < K; k++)
            at[k] = fmax(at[k] + step * (pull[k] + DOUBT * (1.0 / K - w[k])), total - 12);
    }
    for (int k = 0; k < K; k++) a->members[k].share = w[k];
}

/* Members that could not be tried leave; if that are all, all stay. */
static void set_shares(average *a, trial *t) {
    int kept = 0;
    for (int k = 0; k < a->count; k++) kept += a->members[k].share >= 0;
    if (kept == 0) {
        t->tasks = 0;
        for (int k = 0; k < a->count; k++) a->members[k].share = 0;
    }
    int K = 0;
    for (int k = 0; k < a->count; k++) {
        if (a->members[k].share < 0) continue;
        for (int64_t i = 0; i < t->tasks; i++) { /* columns move to the front, row by row below */
            t->given[i * a->count + K] = t->given[i * a->count + k];
            t->whole[i * a->count + K] = t->whole[i * a->count + k];
        }
        a->members[K++] = a->members[k];
    }
    for (int64_t i = 0; i < t->tasks; i++)
        for (int k = 0; k < K; k++) {
            t->given[i * K + k] = t->given[i * a->count + k];
            t->whole[i * K + k] = t->whole[i * a->count + k];
        }
    a->count = K;
    climb(a, t);
}

/* ---- laws ------------------------------------------------------------------------------------ */

/* Law j belongs to the member in whose part of [0, 1] the middle of its own lies. */
static void allot(const average *a, int64_t draws, int64_t *laws) {
    double total = 0, sum = 0;
    int64_t used = 0;
    for (int k = 0; k < a->count; k++) total += a->members[k].share;
    for (int k = 0; k < a->count; k++) {
        sum += a->members[k].share / total;
        int64_t to = k + 1 < a->count ? (int64_t)floor(sum * (double)draws + 0.5) : draws;
        laws[k] = least(to, draws) - used;
        used += laws[k];
    }
}

/* Of each member its laws. A member that fails leaves its laws to the others: false in done. */
static mnp_status take_laws(average *a, int64_t draws, mixed_take_share *take, void *arg,
                            double *loglik, bool *done) {
    int64_t laws[MEMBERS], J = a->d->functions, first = 0;
    double sums[MEMBERS] = {0};
    int used = 0;
    allot(a, draws, laws);
    *done = true;
    for (int k = 0; k < a->count; k++) {
        if (laws[k] == 0) continue;
        taker t = {.take = take, .arg = arg, .first = first};
        double logp;
        mnp_status status =
            fit_member(a->e, a->d, a->order, J, &a->members[k], a->seed, laws[k], &t, &logp);
        if (status == MNP_ENUMERIC) {
            a->members[k].share = 0;
            *done = false;
            return MNP_OK;
        }
        MNP_TRY(status);
        sums[used++] = logp + log((double)laws[k] / (double)draws);
        first += laws[k];
    }
    *loglik = mixed_log_sum(sums, used);
    return MNP_OK;
}

static bool any_left(const average *a) {
    double sum = 0;
    for (int k = 0; k < a->count; k++) sum += a->members[k].share;
    return sum > 0;
}

static mnp_status average_make(average *a, const mixed_form *most_knots, int64_t draws,
                               mixed_take_share *take, void *arg, double *loglik) {
    trial t = {0};
    bool done = false;
    rng_perm p =
        rng_perm_make((rng_key){a->seed}, (rng_at){.purpose = RNG_DATA}, (uint64_t)a->d->functions);
    for (int64_t i = 0; i < a->d->functions; i++)
        a->order[i] = (int64_t)rng_perm_apply(&p, (uint64_t)i);
    MNP_TRY(add_members(a, most_knots));
    mnp_status status = try_all(a, &t);
    if (status == MNP_OK) set_shares(a, &t);
    trial_free(a->e, &t);
    while (status == MNP_OK && !done)
        status = any_left(a)
                     ? take_laws(a, draws, take, arg, loglik, &done)
                     : env_fail(a->e, MNP_ENUMERIC, "no mixed model can be fitted to these curves");
    return status;
}

mnp_status mixed_average(env *e, const data_view *d, const mixed_form *most_knots, uint64_t seed,
                         int64_t draws, mixed_take_share *take, void *arg, double *loglik) {
    average *a = env_alloc(e, 1, sizeof *a, "an average");
    if (!a) return MNP_ENOMEM;
    *a = (average){.e = e, .d = d, .seed = seed};
    a->order = env_alloc(e, (size_t)d->functions, sizeof *a->order, "an average");
    mnp_status status =
        a->order ? average_make(a, most_knots, draws, take, arg, loglik) : MNP_ENOMEM;
    env_free(e, a->order);
    env_free(e, a);
    return status;
}
