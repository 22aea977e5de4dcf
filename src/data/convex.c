/* convex.c: convex curves: the integral of a random rising function (rising.h) less its value at a
 * uniform place, so that the minimum lies anywhere; values mapped onto [-1, 1]. The integral is
 * exact; there is no noise unless asked for. */
#include "data/rising.h"

typedef struct convex_opts {
    int64_t points;
    option_range x;
    double knots, alpha, gap, shape, noise;
    option_span context;
} convex_opts;

static const option_def table[] = {
    FAMILY_POINTS(convex_opts),
    FAMILY_X(convex_opts, "-2:2"),
    RISING_OPTIONS(convex_opts),
    OPTION_REAL(convex_opts, noise, "0", 0, 1e6, "standard deviation of the observation noise"),
    FAMILY_CONTEXT(convex_opts, "2:20"),
};

static int64_t points(const void *opts) {
    return ((const convex_opts *)opts)->points;
}

static option_span context(const void *opts) {
    const convex_opts *o = opts;
    return family_context(o->context, o->points);
}

static double rff_std(const void *opts) {
    return family_rff_std(((const convex_opts *)opts)->x);
}

static mnp_status check(env *e, const void *opts) {
    return family_check_range(e, ((const convex_opts *)opts)->x);
}

static void draw_one(const convex_opts *o, rng_stream s, rising *f, double *x, double *y) {
    rising_law law = {o->x, o->knots, o->alpha, o->gap, o->shape};
    rising_draw(&s, &law, f);
    family_inputs(&s, o->x, o->points, x);
    double turn = pchip_value(&f->curve, o->x.lo + (o->x.hi - o->x.lo) * rng_u01(&s));
    for (int64_t i = 0; i < o->points; i++)
        y[i] = pchip_integral(&f->curve, x[i]) - turn * (x[i] - o->x.lo);
    family_min_max(y, o->points);
    for (int64_t i = 0; o->noise > 0 && i < o->points; i++) y[i] += o->noise * rng_normal(&s);
}

static mnp_status draw(env *e, const void *opts, uint64_t seed, data_split split, int64_t first,
                       int64_t count, float *x, float *y) {
    const convex_opts *o = opts;
    int64_t n = o->points;
    mnp_status status = MNP_ENOMEM;
    rising *f = env_alloc(e, 1, sizeof *f, "a function");
    double *xy = env_alloc(e, (size_t)(2 * n), sizeof *xy, "a function");
    if (!f || !xy) goto done;
    for (int64_t i = 0; i < count; i++) {
        draw_one(o, family_stream(seed, split, first + i, FAMILY_OWN), f, xy, xy + n);
        for (int64_t j = 0; j < n; j++) {
            x[i * n + j] = (float)xy[j];
            y[i * n + j] = (float)xy[n + j];
        }
    }
    status = MNP_OK;
done:
    env_free(e, f);
    env_free(e, xy);
    return status;
}

const family_def family_convex = {.name = "convex",
                                  .help = "convex curves, values in [-1, 1]; noise=0.01 adds noise",
                                  .options = table,
                                  .n_options = OPTION_COUNT(table),
                                  .opts_size = sizeof(convex_opts),
                                  .points = points,
                                  .context = context,
                                  .rff_std = rff_std,
                                  .draw = draw,
                                  .group = 1,
                                  .check = check};
