/* convex.c: convex curves: the integral of a random rising function (rising.h) less its value at a
 * uniform place, so that the minimum lies anywhere; values mapped onto [-1, 1]. The integral is
 * exact, and there is no noise unless asked for. */
#include "data/rising.h"

static const option_def table[] = {RISING_OPTIONS("0")};

static void values(const rising_opts *o, const pchip *f, rng_stream *s, const double *x,
                   double *y) {
    option_range range = o->common.x;
    double turn = pchip_value(f, range.lo + (range.hi - range.lo) * rng_u01(s));
    for (int64_t i = 0; i < o->common.points; i++)
        y[i] = pchip_integral(f, x[i]) - turn * (x[i] - range.lo);
}

static mnp_status draw(env *e, const void *opts, uint64_t seed, data_split split, int64_t first,
                       int64_t count, float *x, float *y) {
    return rising_draw(e, opts, values, seed, split, first, count, x, y);
}

const family_def family_convex = {
    .name = "convex",
    .help = "convex curves, values in [-1, 1], without noise unless asked for",
    FAMILY_DEF(rising_opts, table),
    .draw = draw,
    .group = 1,
    .ceiling = rising_ceiling};
