/* rounding.c: see rounding.h. */
#include "run/rounding.h"

#include <math.h>

rounding_rule rounding_rule_of(int64_t valid_every, int64_t warmup) {
    int64_t apart = (ROUNDING_STEPS + valid_every - 1) / valid_every;
    return (rounding_rule){.every = apart * valid_every,
                           .from = warmup,
                           .fewest = ROUNDING_FEWEST,
                           .distance = ROUNDING_DISTANCE,
                           .shift = ROUNDING_SHIFT};
}

void rounding_begin(rounding_record *r) {
    const rounding_check none = {NAN, NAN, NAN};
    *r = (rounding_record){.latest = none, .judged = none};
}

bool rounding_due(const rounding_rule *rule, int64_t step) {
    return rule->every > 0 && step % rule->every == 0;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static int64_t kept(const rounding_record *r) {
    return r->counted < ROUNDING_KEPT ? r->counted : ROUNDING_KEPT;
}

/* v: (n), n at most ROUNDING_KEPT; sorted afterwards */
static double median(double *v, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = i; j > 0 && v[j - 1] > v[j]; j--) {
            double larger = v[j - 1];
            v[j - 1] = v[j], v[j] = larger;
        }
    return n > 0 ? 0.5 * (v[(n - 1) / 2] + v[n / 2]) : NAN;
}

rounding_check rounding_median(const rounding_record *r) {
    double distance[ROUNDING_KEPT], sampling[ROUNDING_KEPT], shift[ROUNDING_KEPT];
    int64_t n = kept(r);
    for (int64_t k = 0; k < n; k++) {
        distance[k] = r->last[k].distance;
        sampling[k] = r->last[k].sampling;
        shift[k] = r->last[k].shift;
    }
    return (rounding_check){median(distance, n), median(sampling, n), median(shift, n)};
}

static bool is_finite(const rounding_check *c) {
    return isfinite(c->distance) && isfinite(c->sampling) && isfinite(c->shift);
}

bool rounding_take(const rounding_rule *rule, rounding_record *r, rounding_check c, int64_t step) {
    const rounding_check none = {NAN, NAN, NAN};
    r->latest = is_finite(&c) ? c : none; /* one that was measured in part is none */
    r->checks++;
    if (step < rule->from || !is_finite(&c)) return false;
    r->last[r->counted % ROUNDING_KEPT] = c;
    r->counted++;
    if (r->verdict > 0 || r->counted < rule->fewest) return false;
    rounding_check m = rounding_median(r);
    if (m.distance < rule->distance && m.shift < rule->shift) return false;
    r->judged = m;
    r->verdict = step + 1;
    return true;
}

/* ---- as numbers ------------------------------------------------------------------------------ */

static double *put(double *to, const rounding_check *c) {
    to[0] = c->distance, to[1] = c->sampling, to[2] = c->shift;
    return to + 3;
}

static const double *get(const double *from, rounding_check *c) {
    *c = (rounding_check){from[0], from[1], from[2]};
    return from + 3;
}

void rounding_write(const rounding_record *r, double out[ROUNDING_NUMBERS]) {
    out = put(put(out, &r->latest), &r->judged);
    for (int k = 0; k < ROUNDING_KEPT; k++) out = put(out, &r->last[k]);
    out[0] = (double)r->checks, out[1] = (double)r->counted, out[2] = (double)r->verdict;
}

static bool is_count(double v) {
    return v >= 0 && v <= (double)UINT32_MAX && v == floor(v);
}

/* Norms are not negative; where there is no check all three are NaN. */
static bool is_check(const rounding_check *c) {
    return is_finite(c) ? c->distance >= 0 && c->sampling >= 0
                        : isnan(c->distance) && isnan(c->sampling) && isnan(c->shift);
}

bool rounding_read(rounding_record *r, const double in[ROUNDING_NUMBERS]) {
    rounding_record read;
    const double *from = get(get(in, &read.latest), &read.judged);
    for (int k = 0; k < ROUNDING_KEPT; k++) from = get(from, &read.last[k]);
    if (!is_count(from[0]) || !is_count(from[1]) || !is_count(from[2])) return false;
    read.checks = (int64_t)from[0], read.counted = (int64_t)from[1];
    read.verdict = (int64_t)from[2];
    bool good = is_check(&read.latest) && is_check(&read.judged);
    for (int64_t k = 0; k < kept(&read); k++)
        good = good && is_finite(&read.last[k]) && is_check(&read.last[k]);
    if (good) *r = read;
    return good;
}
