/* sampler_temper.c: beta rises, and the particles are resampled. */
#include <math.h>

#include "run/sampler_internal.h"

/* exp(delta (v - top)); a particle beyond what floats hold has none. */
static double weight(double v, double top, double delta) {
    return isnan(v) ? 0 : exp(delta * (v - top));
}

static double largest(const double *v, int64_t P) {
    double top = -INFINITY;
    for (int64_t p = 0; p < P; p++) top = fmax(top, v[p]);
    return top;
}

/* Effective number of particles with weights exp(delta v). */
static double effective(const double *v, int64_t P, double delta) {
    double top = largest(v, P), sum = 0, squares = 0;
    for (int64_t p = 0; p < P; p++) {
        double w = weight(v[p], top, delta);
        sum += w, squares += w * w;
    }
    return sum * sum / squares;
}

/* The largest rise of beta, at most `most`, that leaves half of the particles effective. */
static double largest_rise(const double *v, int64_t P, double most) {
    double lo = 0, hi = most, half = 0.5 * (double)P;
    if (effective(v, P, most) >= half) return most;
    for (int i = 0; i < 50; i++) {
        double mid = (lo + hi) / 2;
        if (effective(v, P, mid) >= half)
            lo = mid;
        else
            hi = mid;
    }
    return lo > 0 ? lo : hi;
}

/* The chances of slot k's particles, ~ exp(delta v), as a comb of P equal teeth picks them. Returns
 * the log of their mean. */
static double pick(sampler *s, int64_t k, const double *v, double delta) {
    double top = largest(v, s->P), sum = 0;
    for (int64_t p = 0; p < s->P; p++) sum += s->weights[p] = weight(v[p], top, delta);
    rng_stream r = sampler_stream(s, k, s->P + 1);
    double u = rng_u01(&r), below = s->weights[0];
    for (int64_t p = 0, from = 0; p < s->P; p++) {
        double tooth = ((double)p + u) / (double)s->P * sum;
        while (below < tooth && from < s->P - 1) below += s->weights[++from];
        s->picks[p] = from;
    }
    return delta * top + log(sum / (double)s->P);
}

static void resample(sampler *s, int64_t k) {
    int32_t *ancestor = s->ancestor + k * s->P;
    for (int64_t p = 0; p < s->P; p++) sampler_copy(s, k, &s->next, p, &s->now, s->picks[p]);
    for (int64_t p = 0; p < s->P; p++) sampler_copy(s, k, &s->now, p, &s->next, p);
    for (int64_t p = 0; p < s->P; p++) s->weights[p] = (double)ancestor[s->picks[p]];
    for (int64_t p = 0; p < s->P; p++) ancestor[p] = (int32_t)s->weights[p];
}

/* Particles of slot k by chances ~ exp(delta v). Where the points are impossible there is nothing
 * to choose by, and no evidence. */
static void weigh_in(sampler *s, int64_t k, const double *v, double delta) {
    slot *l = &s->slot[k];
    double rise = -INFINITY;
    if (largest(v, s->P) > -INFINITY) {
        rise = pick(s, k, v, delta);
        resample(s, k);
    }
    l->rise += rise, l->report.log_evidence += rise;
}

/* The next beta of slot k. Where the gradients would end before beta = 1 the last rise is too
 * large, and that is noted. */
void sampler_heat(sampler *s, int64_t k) {
    slot *l = &s->slot[k];
    if (l->beta == 1) return;
    double *v = s->energy + k * s->P; /* of no use between moves */
    for (int64_t p = 0; p < s->P; p++) v[p] = s->now.log_w[k * s->P + p];
    int64_t left = sampler_moves(s) - sampler_last(s) - l->paid;
    double whole = 1 - l->beta, delta = largest_rise(v, s->P, whole);
    if (left <= 1 && delta < whole) delta = whole, l->report.hurried = true;
    if (largest(v, s->P) == -INFINITY) delta = whole; /* impossible points */
    weigh_in(s, k, v, delta);
    l->beta = delta == whole ? 1 : l->beta + delta;
    l->report.temperatures++;
}

void sampler_pick(sampler *s, int64_t k, const double *log_p) {
    weigh_in(s, k, log_p, 1);
}
