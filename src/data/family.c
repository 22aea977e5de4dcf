/* family.c: see family.h. */
#include "data/family.h"

#include <math.h>

rng_stream family_stream(uint64_t seed, data_split split, int64_t function, uint32_t which) {
    return rng_stream_at((rng_key){seed}, (rng_at){.purpose = RNG_DATA,
                                                   .step = (uint32_t)split,
                                                   .function = (uint32_t)function,
                                                   .sample = which});
}

double family_uniform(rng_stream *s, option_range range) {
    return range.lo + (range.hi - range.lo) * rng_u01(s);
}

/* The partial sums of n + 1 exponentials, divided by the last one, are n sorted uniforms. */
void family_inputs(rng_stream *s, option_range range, int64_t n, double *x) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum -= log(rng_u01(s));
        x[i] = sum;
    }
    sum -= log(rng_u01(s));
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)(float)(range.lo + (range.hi - range.lo) * (x[i] / sum));
}

void family_min_max(double *y, int64_t n) {
    double lo = y[0], hi = y[0];
    for (int64_t i = 1; i < n; i++) {
        lo = fmin(lo, y[i]);
        hi = fmax(hi, y[i]);
    }
    for (int64_t i = 0; i < n; i++) y[i] = hi > lo ? 2 * (y[i] - lo) / (hi - lo) - 1 : 0;
}

/* ---- the common constants -------------------------------------------------------------------- */

int64_t family_points(const void *opts) {
    return ((const family_common *)opts)->points;
}

option_span family_context(const void *opts) {
    const family_common *c = opts;
    option_span s = c->context;
    if (s.hi > c->points - 1) s.hi = c->points - 1;
    if (s.lo > s.hi) s.lo = s.hi;
    return s;
}

option_span family_targets(const void *opts) {
    return ((const family_common *)opts)->targets;
}

double family_rff_std(const void *opts) {
    const family_common *c = opts;
    return 4 / (c->x.hi - c->x.lo);
}

option_range family_range(const void *opts) {
    return ((const family_common *)opts)->x;
}

mnp_status family_check(env *e, const void *opts) {
    const family_common *c = opts;
    option_range x = c->x;
    if (c->targets.hi > 0 && c->targets.lo < 1)
        return env_fail(e, MNP_EINVAL,
                        "targets=0:%lld: a function needs a target; write targets=1:%lld, or "
                        "targets=0 for all points outside the context",
                        (long long)c->targets.hi, (long long)c->targets.hi);
    if ((float)x.lo < (float)x.hi) return MNP_OK;
    char lo[FSIO_NUMBER_TEXT], hi[FSIO_NUMBER_TEXT];
    fsio_format_double(x.lo, lo);
    fsio_format_double(x.hi, hi);
    return env_fail(e, MNP_EINVAL, "x=%s:%s: the range is empty", lo, hi);
}
