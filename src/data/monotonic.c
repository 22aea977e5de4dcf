/* monotonic.c: increasing curves: a random rising function at sorted uniform inputs, its values
 * mapped onto [-1, 1], plus noise. See rising.h. */
#include "data/rising.h"

static const option_def table[] = {RISING_OPTIONS("0.01")};

static void values(const rising_opts *o, const pchip *f, rng_stream *s, const double *x,
                   double *y) {
    (void)s;
    for (int64_t i = 0; i < o->common.points; i++) y[i] = pchip_value(f, x[i]);
}

static mnp_status draw(env *e, const void *opts, uint64_t seed, data_split split, int64_t first,
                       int64_t count, float *x, float *y) {
    return rising_draw(e, opts, values, seed, split, first, count, x, y);
}

const family_def family_monotonic = {.name = "monotonic",
                                     .help = "increasing curves, values in [-1, 1] plus noise",
                                     FAMILY_DEF(rising_opts, table),
                                     .draw = draw,
                                     .group = 1,
                                     .ceiling = rising_ceiling};
