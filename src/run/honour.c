/* honour.c: see honour.h. Wells are kept in the order of rows, so that those near a place are
 * found between two bounds, and in the same order whatever the caller's was. */
#include "run/honour.h"

#include <math.h>
#include <stdlib.h>

#include "base/linalg.h"

typedef struct well {
    double place[2], y;
    int64_t index; /* of the caller */
} well;

struct honour {
    env *e;
    int64_t wells, samples;
    double range, lo, hi; /* lo, hi: of the measurements */
    well *well;           /* (wells) by row, column and value */
    double *misfit;       /* (wells, samples) */
};

static int by_place(const void *a, const void *b) {
    const well *p = a, *q = b;
    const double left[] = {p->place[0], p->place[1], p->y};
    const double right[] = {q->place[0], q->place[1], q->y};
    for (int k = 0; k < 3; k++)
        if (left[k] != right[k]) return left[k] < right[k] ? -1 : 1;
    return p->index < q->index ? -1 : p->index > q->index;
}

mnp_status honour_make(env *e, const honour_opts *o, honour **out) {
    *out = NULL;
    if (o->wells < 0 || o->samples < 1 || !(o->range > 0) || !isfinite(o->range))
        return env_fail(e, MNP_EINVAL, "%lld measurements, %lld functions and a range of %g",
                        (long long)o->wells, (long long)o->samples, o->range);
    honour *h = env_alloc(e, 1, sizeof *h, "honoured measurements");
    if (!h) return MNP_ENOMEM;
    *h = (honour){.e = e, .wells = o->wells, .samples = o->samples, .range = o->range};
    h->lo = INFINITY, h->hi = -INFINITY;
    size_t wells = (size_t)o->wells;
    h->well = env_alloc(e, wells + 1, sizeof *h->well, "honoured measurements");
    h->misfit = env_alloc(e, wells * (size_t)o->samples + 1, sizeof *h->misfit, "misfits");
    if (!h->well || !h->misfit) {
        honour_destroy(h);
        return MNP_ENOMEM;
    }
    for (int64_t i = 0; i < o->wells; i++) {
        h->well[i] = (well){{o->place[2 * i], o->place[2 * i + 1]}, o->y[i], i};
        h->lo = fmin(h->lo, o->y[i]), h->hi = fmax(h->hi, o->y[i]);
    }
    qsort(h->well, wells, sizeof *h->well, by_place);
    for (int64_t i = 0; i < o->wells; i++)
        for (int64_t s = 0; s < o->samples; s++)
            h->misfit[i * o->samples + s] =
                h->well[i].y - o->smooth[s * o->wells + h->well[i].index];
    *out = h;
    return MNP_OK;
}

void honour_destroy(honour *h) {
    if (!h) return;
    env_free(h->e, h->well);
    env_free(h->e, h->misfit);
    env_free(h->e, h);
}

/* ---- weights --------------------------------------------------------------------------------- */

static double covariance(double distance, double range) {
    double h = distance / range;
    return h < 1 ? 1 - 1.5 * h + 0.5 * h * h * h : 0;
}

static double apart(const double a[2], const double b[2]) {
    return hypot(a[0] - b[0], a[1] - b[1]);
}

/* The first well whose row is not below `row`. */
static int64_t first_from(const honour *h, double row) {
    int64_t lo = 0, hi = h->wells;
    while (lo < hi) {
        int64_t middle = lo + (hi - lo) / 2;
        if (h->well[middle].place[0] < row)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* Wells within the range, nearest first; equally near ones in their order. */
static int64_t find_near(const honour *h, const double place[2], int64_t at[HONOUR_NEAR],
                         double distance[HONOUR_NEAR]) {
    int64_t count = 0;
    for (int64_t k = first_from(h, place[0] - h->range);
         k < h->wells && h->well[k].place[0] < place[0] + h->range; k++) {
        if (fabs(h->well[k].place[1] - place[1]) >= h->range) continue;
        double d = apart(h->well[k].place, place);
        if (d >= h->range || (count == HONOUR_NEAR && d >= distance[count - 1])) continue;
        int64_t i = count < HONOUR_NEAR ? count++ : count - 1;
        for (; i > 0 && distance[i - 1] > d; i--) {
            distance[i] = distance[i - 1];
            at[i] = at[i - 1];
        }
        distance[i] = d;
        at[i] = k;
    }
    return count;
}

/* out->well: places in h->well. The nugget keeps C regular whatever the wells are. */
static void weigh(const honour *h, const double place[2], honour_weights *out) {
    double distance[HONOUR_NEAR], c[HONOUR_NEAR], l[HONOUR_NEAR * HONOUR_NEAR], explained = 0;
    int64_t m = find_near(h, place, out->well, distance);
    for (int64_t i = 0; i < m; i++) {
        const double *here = h->well[out->well[i]].place;
        for (int64_t j = 0; j < i; j++)
            l[i * m + j] = covariance(apart(here, h->well[out->well[j]].place), h->range);
        l[i * m + i] = 1 + HONOUR_NUGGET;
        out->w[i] = c[i] = covariance(distance[i], h->range);
    }
    out->count = m;
    if (m > 0) {
        linalg_cholesky(l, m, m);
        linalg_solve_lower(l, m, m, out->w, 1, 1);
        linalg_solve_lower_t(l, m, m, out->w, 1, 1);
    }
    for (int64_t i = 0; i < m; i++) explained += out->w[i] * c[i];
    out->noise = sqrt(fmax(1 - explained, 0));
}

void honour_at(const honour *h, const double place[2], honour_weights *out) {
    weigh(h, place, out);
    for (int64_t i = 0; i < out->count; i++) out->well[i] = h->well[out->well[i]].index;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* y: the values of one place, `stride` from sample to sample, `level` from level to level. */
static void correct(const honour *h, const honour_weights *near, int64_t levels, int64_t stride,
                    int64_t level, double *y) {
    double lo = h->lo, hi = h->hi;
    for (int64_t s = 0; s < h->samples; s++) {
        lo = fmin(lo, y[s * stride]);
        hi = fmax(hi, y[s * stride]);
    }
    for (int64_t s = 0; s < h->samples; s++) {
        double *at = y + s * stride, was = at[0], now = was;
        for (int64_t i = 0; i < near->count; i++)
            now += near->w[i] * h->misfit[near->well[i] * h->samples + s];
        at[0] = fmin(fmax(now, lo), hi);
        for (int64_t k = 1; k < levels; k++)
            at[k * level] = at[0] + near->noise * (at[k * level] - was);
    }
}

void honour_apply(const honour *h, const double *place, int64_t n, int64_t levels, double *y) {
    honour_weights near;
    for (int64_t i = 0; i < n; i++) {
        weigh(h, place + 2 * i, &near);
        if (near.count > 0) correct(h, &near, levels, n, h->samples * n, y + i);
    }
}
