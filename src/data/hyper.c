/* hyper.c: see hyper.h. A cell's share is its prior mass times the likelihood at its centre. How
 * steep the log-likelihood is across a cell, v in each direction, is known from the cells that it
 * was cut from: along a line of slope v the mean of the likelihood is sinh(v/2) / (v/2) times that
 * at the centre, so that much of the share, less 1, is taken for its error. */
#include "data/hyper.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/least.h"

enum { CELLS_MAX = 65536 };
#define STEEP_MAX  30.0  /* sinh of it is as good as infinite */
#define ON_THE_WAY 0.1   /* tolerance where more points follow: no peak may be lost */
#define LEFT_OUT   1e-10 /* cells that could hold no more than this are dropped */
#define TOO_SMALL  1e-8  /* and points of the posterior that do */

typedef struct cell {
    double centre[HYPER_DIMS], half[HYPER_DIMS]; /* on the scale of each number     */
    double steep[HYPER_DIMS];                    /* v, as far as it was measured    */
    double volume;                               /* log of the prior mass           */
    double logp;                                 /* of the points so far            */
    int root;
} cell;

typedef struct cells {
    env *e;
    const hyper_law *law;
    const hyper_effort *effort;
    const double *x, *y;
    int64_t n; /* points so far */
    bool last; /* cells are as they stay: the law itself at their centres is asked for */
    cell *list;
    int64_t count;
    double *share, *error, *sorted; /* (CELLS_MAX) */
    double *work;
    double log_z;
} cells;

hyper_effort hyper_usual(void) {
    return (hyper_effort){.tolerance = 0.01, .cells = 1};
}

int64_t hyper_work(int64_t n) {
    return 2 * n * n + 4 * n;
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* From a place on the scale of direction d to the number, and back. */
static double number_at(const hyper_law *law, int d, double at) {
    hyper_scale scale = law->scale[d];
    return scale == HYPER_LOG ? exp(at) : scale == HYPER_INVERSE ? 1 / at : at;
}

static double place_at(const hyper_law *law, int d, double number) {
    hyper_scale scale = law->scale[d];
    return scale == HYPER_LOG ? log(number) : scale == HYPER_INVERSE ? 1 / number : number;
}

static void measure(const cells *s, cell *c) {
    const hyper_law *law = s->law;
    c->volume = -log((double)law->roots);
    for (int d = 0; d < law->dims; d++) {
        double width = law->range[d].hi - law->range[d].lo;
        if (!(width > 0)) continue; /* a number that is known */
        double a = number_at(law, d, c->centre[d] - c->half[d]);
        double b = number_at(law, d, c->centre[d] + c->half[d]);
        c->volume += log(fabs(a - b) / width);
    }
}

static hyper_cell place_of(const hyper_law *law, const cell *c) {
    hyper_cell at = {.root = c->root};
    for (int d = 0; d < law->dims; d++) at.theta[d] = number_at(law, d, c->centre[d]);
    return at;
}

static void evaluate(const cells *s, cell *c) {
    hyper_cell at = place_of(s->law, c);
    for (int d = 0; d < s->law->dims && !s->last; d++) at.half[d] = c->half[d];
    c->logp = s->n ? s->law->logp(s->law, &at, s->x, s->y, s->n, s->work) : 0;
    if (isnan(c->logp)) c->logp = -INFINITY; /* singular to rounding */
}

static void begin(cells *s) {
    const hyper_law *law = s->law;
    for (int root = 0; root < law->roots; root++) {
        cell c = {.root = root};
        for (int d = 0; d < law->dims; d++) {
            double a = place_at(law, d, law->range[d].lo), b = place_at(law, d, law->range[d].hi);
            c.centre[d] = (a + b) / 2;
            c.half[d] = fabs(b - a) / 2;
        }
        measure(s, &c);
        s->list[s->count++] = c;
    }
}

/* v across the cell in direction d: measured, and at least what the law is known for. */
static double steepness(const hyper_law *law, const cell *c, int d) {
    option_range r = law->range[d];
    double whole = fabs(place_at(law, d, r.hi) - place_at(law, d, r.lo));
    if (!(whole > 0)) return 0;
    return fmin(fmax(c->steep[d], law->pieces[d] * 2 * c->half[d] / whole), STEEP_MAX);
}

static double error_of(const hyper_law *law, const cell *c) {
    double sum = 0;
    for (int d = 0; d < law->dims; d++) {
        double v = steepness(law, c, d) / 2;
        sum += v > 1e-3 ? sinh(v) / v - 1 : v * v / 6;
    }
    return sum;
}

/* Shares of sum 1, and their errors; log_z. */
static void weigh(cells *s) {
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < s->count; i++) top = fmax(top, s->list[i].logp + s->list[i].volume);
    for (int64_t i = 0; i < s->count; i++)
        sum += s->share[i] = exp(s->list[i].logp + s->list[i].volume - top);
    for (int64_t i = 0; i < s->count; i++) {
        s->share[i] /= sum;
        s->error[i] = s->share[i] * error_of(s->law, &s->list[i]);
    }
    s->log_z = top + log(sum);
}

/* ---- cutting and leaving out ----------------------------------------------------------------- */

static double difference(double a, double b) {
    return a == b ? 0 : fabs(a - b); /* two that are impossible do not differ */
}

/* In three along the steepest direction. How steep it is there: between neighbours, and where the
 * parts say something else than the whole. */
static void cut(cells *s, int64_t i) {
    const hyper_law *law = s->law;
    cell whole = s->list[i], *part[3] = {&s->list[s->count], &s->list[i], &s->list[s->count + 1]};
    int along = 0;
    for (int d = 1; d < law->dims; d++)
        if (steepness(law, &whole, d) > steepness(law, &whole, along)) along = d;
    double sum = 0;
    s->count += 2;
    for (int k = 0; k < 3; k++) {
        *part[k] = whole;
        part[k]->half[along] = whole.half[along] / 3;
        part[k]->centre[along] += 2 * (k - 1) * part[k]->half[along];
        measure(s, part[k]);
        evaluate(s, part[k]);
        sum += exp(part[k]->logp + part[k]->volume - whole.logp - whole.volume);
    }
    double change = fmin(fabs(log(sum)), STEEP_MAX);
    for (int k = 0; k < 3; k++) {
        double left = k > 0 ? difference(part[k]->logp, part[k - 1]->logp) : 0;
        double right = k < 2 ? difference(part[k]->logp, part[k + 1]->logp) : 0;
        part[k]->steep[along] = fmax(fmax(left, right), change);
        if (isnan(part[k]->steep[along])) part[k]->steep[along] = 0;
    }
}

static int descending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x > y ? -1 : x < y;
}

/* The k-th largest of v (count). */
static double largest(const cells *s, const double *v, int64_t k) {
    memcpy(s->sorted, v, (size_t)s->count * sizeof *v);
    qsort(s->sorted, (size_t)s->count, sizeof *v, descending);
    return s->sorted[least(k, s->count - 1)];
}

/* Cells that so many points can pay for. */
static int64_t most_cells(const cells *s) {
    double few = fmax(32 / (double)most(s->n, 1), 1);
    double cells = s->effort->cells * (double)s->law->cells * pow(few, s->law->growth);
    return (int64_t)fmin(cells, CELLS_MAX);
}

/* Until the error is small, no cell holds more than its part, or there are enough cells. */
static void refine(cells *s, double tolerance, int64_t parts) {
    for (weigh(s);; weigh(s)) {
        double total = 0;
        for (int64_t i = 0; i < s->count; i++) {
            bool heavy = parts && s->share[i] > 1 / (double)parts;
            if (heavy) s->error[i] = fmax(s->error[i], s->share[i]);
            total += s->error[i];
        }
        int64_t room = (most_cells(s) - s->count) / 2, before = s->count;
        if (!(total >= tolerance) || room < 1) return; /* also where it is not a number */
        double least_error = fmax(total / (2 * (double)s->count), largest(s, s->error, room));
        for (int64_t i = 0; i < before && room > 0; i++)
            if (s->error[i] >= least_error) cut(s, i), room--;
    }
}

/* Leaves out cells that hold next to nothing, and the smallest of too many. */
static void thin(cells *s) {
    int64_t kept = 0, room = most_cells(s);
    weigh(s);
    for (int64_t i = 0; i < s->count; i++) s->error[i] += s->share[i];
    double floor = LEFT_OUT;
    if (s->count > room) floor = fmax(floor, largest(s, s->error, room));
    for (int64_t i = 0; i < s->count; i++)
        if (s->error[i] >= floor) s->list[kept++] = s->list[i];
    s->count = kept;
}

/* The next number of points to look at: two fifths more, but not beyond `end`. */
static int64_t next_points(int64_t n, int64_t end) {
    return least(n + most(1, n * 2 / 5), end);
}

static void advance(cells *s, int64_t end) {
    while (s->n < end) {
        int64_t before = s->n;
        s->n = next_points(before, end);
        for (int64_t i = 0; i < s->count; i++) {
            cell *c = &s->list[i];
            evaluate(s, c);
            for (int d = 0; before && d < s->law->dims; d++)
                c->steep[d] *= (double)s->n / (double)before;
        }
        thin(s);
        refine(s, s->n < end ? ON_THE_WAY : s->effort->tolerance, 0);
    }
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static mnp_status keep_posterior(const cells *s, hyper_posterior *out) {
    size_t count = (size_t)s->count;
    *out = (hyper_posterior){0};
    out->at = env_alloc(s->e, count, sizeof *out->at, "a posterior");
    out->weight = env_alloc(s->e, count, sizeof *out->weight, "a posterior");
    if (!out->at || !out->weight) {
        hyper_posterior_free(s->e, out);
        return MNP_ENOMEM;
    }
    double sum = 0;
    for (int64_t i = 0; i < s->count; i++) {
        if (s->share[i] < TOO_SMALL) continue;
        out->at[out->count] = place_of(s->law, &s->list[i]);
        sum += out->weight[out->count++] = s->share[i];
    }
    for (int64_t i = 0; i < out->count; i++) out->weight[i] /= sum;
    return MNP_OK;
}

void hyper_posterior_free(env *e, hyper_posterior *p) {
    env_free(e, p->at);
    env_free(e, p->weight);
    *p = (hyper_posterior){0};
}

/* The evidence by the law at the centres: where cells are too wide for it that is right on average,
 * which the wider law is not. */
static double settle(cells *s) {
    s->last = true;
    for (int64_t i = 0; i < s->count; i++) evaluate(s, &s->list[i]);
    s->last = false;
    weigh(s);
    return s->log_z;
}

static mnp_status integrate(cells *s, int64_t n, int64_t m, double *logp,
                            hyper_posterior *posterior) {
    begin(s);
    refine(s, m > 0 ? ON_THE_WAY : s->effort->tolerance, 0);
    advance(s, m);
    if (posterior) refine(s, s->effort->tolerance, s->law->parts);
    double context = settle(s);
    if (posterior) MNP_TRY(keep_posterior(s, posterior));
    if (!logp) return MNP_OK;
    advance(s, n);
    *logp = settle(s) - context;
    return MNP_OK;
}

mnp_status hyper_integrate(env *e, const hyper_law *law, const hyper_effort *effort,
                           const double *x, const double *y, int64_t n, int64_t m, double *logp,
                           hyper_posterior *posterior) {
    cells s = {.e = e, .law = law, .effort = effort, .x = x, .y = y};
    s.list = env_alloc(e, CELLS_MAX, sizeof *s.list, "cells of a prior");
    s.share = env_alloc(e, (size_t)3 * CELLS_MAX, sizeof *s.share, "cells of a prior");
    s.work = env_alloc(e, (size_t)hyper_work(n), sizeof *s.work, "a likelihood");
    mnp_status status = s.list && s.share && s.work ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) {
        s.error = s.share + CELLS_MAX;
        s.sorted = s.error + CELLS_MAX;
        status = integrate(&s, n, m, logp, posterior);
    }
    env_free(e, s.list);
    env_free(e, s.share);
    env_free(e, s.work);
    return status;
}
