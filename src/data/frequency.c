/* frequency.c: see frequency.h. For each curve and frequency f: by how much of its variance, beyond
 * what a sine explains of noise, does a sine of f fit better than the line alone? That is an
 * adjusted R^2, whose mean over curves without structure is 0 whatever their number of points. A
 * frequency counts where the mean over curves is above zero by more than chance explains. */
#include "data/frequency.h"

#include <math.h>
#include <stdlib.h>

#include "base/curves.h"
#include "base/rng.h"
#include "util/least.h"

enum {
    CURVES = 200, /* at most, spread over the data; of long ones fewer, */
    SOME = 20,    /* but so many                                        */
    POINTS = 512, /* of a curve, at most                                */
    FEWEST = 8,   /* points of a curve that has a say                   */
    FREQUENCIES = POINTS,
    LEAST_CURVES = 5,
    LEAST_TURNS = 2 /* of a peak, in the range of a curve */
};
#define WORK       (200.0 * 128 * 128) /* sines of all curves */
#define ERRORS     4.0 /* standard errors that are no chance, of as many frequencies as here */
#define LEAST_PEAK 0.1 /* share of the variance */
#define LEAST_SUM  0.1 /* of all shares: less may be chance */
#define TOP        2   /* times the valley before it */
#define TWO_PI     6.28318530717958647693

/* A column of numbers beside the constant 1 and x. */
typedef struct column {
    double v[POINTS];
} column;

typedef struct curve {
    int64_t n;
    double x[POINTS]; /* from -1/2 to 1/2 of its range */
    double range;
    column y; /* without its line */
} curve;

/* Of equal points x with mean 0: what a line leaves. */
static void take_off_line(const curve *c, column *a) {
    double mean = 0, xx = 0, xy = 0;
    for (int64_t i = 0; i < c->n; i++) mean += a->v[i] / (double)c->n;
    for (int64_t i = 0; i < c->n; i++) {
        xx += c->x[i] * c->x[i];
        xy += c->x[i] * (a->v[i] - mean);
    }
    for (int64_t i = 0; i < c->n; i++) a->v[i] -= mean + c->x[i] * xy / xx;
}

static double product(const curve *c, const column *a, const column *b) {
    double sum = 0;
    for (int64_t i = 0; i < c->n; i++) sum += a->v[i] * b->v[i];
    return sum;
}

/* Of the i-th part of so many points, of POINTS parts, any one: evenly chosen ones would make a
 * fast wave look like a slow one. */
static int64_t one_of(rng_stream *s, int64_t i, int64_t all) {
    const double size = (double)all / POINTS;
    return least((int64_t)(((double)i + rng_u01(s)) * size), all - 1);
}

/* In input `time`. false: too short, or a line. */
static bool take_curve(const dataset *d, int32_t time, int64_t k, curve *c) {
    const int64_t first = d->start[k];
    double lo = INFINITY, hi = -INFINITY, mean = 0;
    const int64_t all = d->start[k + 1] - first;
    rng_stream s = rng_stream_make((rng_key){0}, RNG_FREQ, (uint32_t)k);
    c->n = least(all, POINTS);
    for (int64_t i = 0; i < c->n; i++) {
        const int64_t at = all > POINTS ? one_of(&s, i, all) : i;
        c->x[i] = dataset_raw_x(d, k, at, time);
        c->y.v[i] = (double)d->y[first + at];
        lo = fmin(lo, c->x[i]), hi = fmax(hi, c->x[i]);
        mean += c->x[i] / (double)c->n;
    }
    c->range = hi - lo;
    if (c->n < FEWEST || !(c->range > 0)) return false;
    for (int64_t i = 0; i < c->n; i++) c->x[i] = (c->x[i] - mean) / c->range;
    const double before = product(c, &c->y, &c->y);
    take_off_line(c, &c->y);
    return product(c, &c->y, &c->y) > 1e-12 * before;
}

/* The share of y's variance that cosine and sine of f turns over the range explain, adjusted for
 * their two numbers. */
static double share_of(const curve *c, double f) {
    column a, b;
    for (int64_t i = 0; i < c->n; i++) {
        a.v[i] = cos(TWO_PI * f * c->x[i]);
        b.v[i] = sin(TWO_PI * f * c->x[i]);
    }
    take_off_line(c, &a);
    take_off_line(c, &b);
    const double aa = product(c, &a, &a), ab = product(c, &a, &b), bb = product(c, &b, &b);
    const double ay = product(c, &a, &c->y), by = product(c, &b, &c->y);
    const double yy = product(c, &c->y, &c->y), det = aa * bb - ab * ab;
    if (!(det > 1e-9 * aa * bb)) return 0; /* at these points one of them is the other */
    const double explained = (bb * ay * ay - 2 * ab * ay * by + aa * by * by) / det / yy;
    const double left = (double)(c->n - 2) / (double)(c->n - 4);
    return 1 - (1 - explained) * left;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

typedef struct spectrum {
    int64_t curves;
    double range[CURVES];
    double sum[FREQUENCIES], squares[FREQUENCIES]; /* of shares, over curves */
    double count[FREQUENCIES];
} spectrum;

/* Half a turn over the range and each further half, up to where the points, equally spaced, could
 * tell it from a slower one: a spacing in `unit`, the range that all curves share. */
static void add_curve(const curve *c, double unit, spectrum *s) {
    for (int k = 0; k < FREQUENCIES; k++) {
        const double f = 0.5 * (k + 1) * c->range / unit;
        if (f < 0.5 || f > 0.5 * (double)(c->n - 1)) continue;
        const double share = share_of(c, f);
        s->sum[k] += share, s->squares[k] += share * share, s->count[k]++;
    }
}

static double mean_share(const spectrum *s, int k) {
    return s->sum[k] / s->count[k];
}

/* The mean share of frequency k; 0 where it may be chance. */
static double beyond_chance(const spectrum *s, int k) {
    const double n = s->count[k];
    if (n < LEAST_CURVES) return 0;
    const double mean = mean_share(s, k), variance = fmax(s->squares[k] / n - mean * mean, 0);
    return mean > ERRORS * sqrt(variance / (n - 1)) ? mean : 0;
}

/* Where the top of a parabola through the peak and its neighbours lies, in steps from the peak. */
static double beside(const spectrum *s, int peak) {
    if (peak < 1 || peak + 1 >= FREQUENCIES || s->count[peak - 1] < 1 || s->count[peak + 1] < 1)
        return 0;
    const double below = mean_share(s, peak - 1), at = mean_share(s, peak);
    const double above = mean_share(s, peak + 1), bend = below - 2 * at + above;
    return bend < 0 ? fmin(fmax(0.5 * (below - above) / bend, -0.5), 0.5) : 0;
}

/* The highest top after a valley: of slow curves and of bends the spectrum only falls. The valley
 * is as high as it looks: of few curves much of a falling spectrum may be chance. -1: none. */
static int peak_of(const spectrum *s) {
    double valley = INFINITY, top = LEAST_PEAK;
    int peak = -1;
    for (int k = LEAST_TURNS - 1; k < FREQUENCIES; k++) {
        if (s->count[k] < LEAST_CURVES) continue;
        const double share = beyond_chance(s, k);
        valley = fmin(valley, fmax(mean_share(s, k), 0));
        if (k + 1 >= 2 * LEAST_TURNS && share > top && share > TOP * valley) top = share, peak = k;
    }
    return peak;
}

static void describe(const spectrum *s, double unit, curve_frequency *out) {
    double sum = 0, squares = 0;
    const int peak = peak_of(s);
    for (int k = 0; k < FREQUENCIES; k++) {
        const double share = beyond_chance(s, k), f = 0.5 * (k + 1) / unit;
        sum += share, squares += share * f * f;
    }
    if (sum < LEAST_SUM) return;
    out->mean = sqrt(squares / sum);
    if (peak < 0) return;
    out->share = beyond_chance(s, peak);
    out->turns = 0.5 * (peak + 1 + beside(s, peak));
    out->peak = out->turns / unit;
}

static int64_t some_curves(const dataset *d) {
    const double points = fmin((double)d->points / (double)d->functions, POINTS);
    return (int64_t)fmin(fmax(WORK / (points * points), SOME), CURVES);
}

static bool next_curve(const dataset *d, int32_t time, int64_t *k, curve *c) {
    const int64_t some = some_curves(d), step = (d->functions + some - 1) / some;
    for (; *k < d->functions; *k += step)
        if (take_curve(d, time, *k, c)) {
            *k += step;
            return true;
        }
    return false;
}

/* Does no other input change within a curve? */
static bool alone(const dataset *d, int32_t time) {
    bool others = false;
    for (int32_t c = 0; c < d->x_dim; c++)
        others |=
            c != time && curves_change(d->functions, d->start, d->x, d->x_dim, d->shared_x, c);
    return !others;
}

mnp_status frequency_find(env *e, const dataset *d, curve_frequency *out) {
    const int32_t time = dataset_time(d);
    *out = (curve_frequency){0};
    if (d->functions < LEAST_CURVES || !alone(d, time)) return MNP_OK;
    spectrum *s = env_alloc(e, 1, sizeof *s, "frequencies");
    curve *c = env_alloc(e, 1, sizeof *c, "frequencies");
    if (!s || !c) {
        env_free(e, s);
        env_free(e, c);
        return MNP_ENOMEM;
    }
    *s = (spectrum){0};
    for (int64_t k = 0; s->curves < CURVES && next_curve(d, time, &k, c);)
        s->range[s->curves++] = c->range;
    qsort(s->range, (size_t)s->curves, sizeof *s->range, ascending);
    const double unit = s->curves ? s->range[s->curves / 2] : 1;
    int64_t some = s->curves;
    for (int64_t k = 0; some > 0 && next_curve(d, time, &k, c); some--) add_curve(c, unit, s);
    describe(s, unit, out);
    env_free(e, s);
    env_free(e, c);
    return MNP_OK;
}
