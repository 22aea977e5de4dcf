/* wheel.c: see wheel.h; and the wheels as a family of functions to train on: a function is one
 * delta, its points are contexts with an action (uniformly random, or with `played` partly that of
 * a player) and the reward of it, inputs [x1, x2, one-hot(action)]. */
#include "data/wheel.h"

#include <math.h>

#include "data/family.h"

void wheel_context(rng_stream *s, double x[WHEEL_DIMS]) {
    do {
        for (int k = 0; k < WHEEL_DIMS; k++) x[k] = 2 * rng_u01(s) - 1;
    } while (x[0] * x[0] + x[1] * x[1] > 1);
}

int32_t wheel_means(double delta, const double x[WHEEL_DIMS], double means[WHEEL_ACTIONS]) {
    means[0] = 1.2;
    for (int k = 1; k < WHEEL_ACTIONS; k++) means[k] = 1.0;
    if (hypot(x[0], x[1]) <= delta) return 0;
    int32_t quadrant = 1 + (x[0] > 0 ? 0 : 2) + (x[1] > 0 ? 0 : 1);
    means[quadrant] = 50.0;
    return quadrant;
}

/* ---- the family ------------------------------------------------------------------------------ */

enum { INPUTS = WHEEL_DIMS + WHEEL_ACTIONS };

typedef struct wheel_opts {
    family_common common; /* must come first */
    option_range delta;
    option_range played;
} wheel_opts;

static const option_def table[] = {
    FAMILY_FIELD_(wheel_opts, points, OPTION_TYPE_INT, "562", 2, FAMILY_POINTS_MAX,
                  "points of a function"),
    OPTION_RANGE(wheel_opts, delta, "0:1", 0, 1, "radii of the wheels, uniform"),
    OPTION_RANGE(wheel_opts, played, "0", 0, 1,
                 "share of a wheel's actions that a player chose, uniform; the rest are random"),
    FAMILY_CONTEXT(wheel_opts, "10:512"),
};

static double between(rng_stream *s, option_range r) {
    return r.lo + (r.hi - r.lo) * rng_u01(s);
}

/* The action of a player who believes in the radius rho. */
static int32_t choice(double rho, const double at[WHEEL_DIMS]) {
    double ignored[WHEEL_ACTIONS];
    return wheel_means(rho, at, ignored);
}

/* x (points, INPUTS), y (points). The means belong to the stored contexts exactly. A player knows
 * the wheel, or (every second one) still believes in a smaller radius: who explores is never far
 * from one or the other. */
static void draw_one(const wheel_opts *o, rng_stream s, float *x, float *y) {
    double delta = between(&s, o->delta), rho = delta;
    double played = o->played.hi > 0 ? between(&s, o->played) : 0;
    if (played > 0 && rng_u01(&s) < 0.5) rho *= rng_u01(&s);
    for (int64_t i = 0; i < o->common.points; i++) {
        double at[WHEEL_DIMS], means[WHEEL_ACTIONS];
        wheel_context(&s, at);
        for (int k = 0; k < WHEEL_DIMS; k++) at[k] = (double)(x[i * INPUTS + k] = (float)at[k]);
        wheel_means(delta, at, means);
        int32_t action = (int32_t)rng_below(&s, WHEEL_ACTIONS);
        if (played > 0 && rng_u01(&s) < played) action = choice(rho, at);
        for (int k = 0; k < WHEEL_ACTIONS; k++)
            x[i * INPUTS + WHEEL_DIMS + k] = k == action ? 1.0f : 0.0f;
        y[i] = (float)(means[action] + WHEEL_NOISE * rng_normal(&s));
    }
}

static mnp_status draw(env *e, const void *opts, uint64_t seed, data_split split, int64_t first,
                       int64_t count, float *x, float *y) {
    const wheel_opts *o = opts;
    (void)e;
    for (int64_t i = 0; i < count; i++) {
        float *to = x + i * o->common.points * INPUTS;
        draw_one(o, family_stream(seed, split, first + i, FAMILY_OWN), to,
                 y + i * o->common.points);
    }
    return MNP_OK;
}

static double rff_std(const void *opts) {
    (void)opts;
    return 1;
}

static const char *const names[INPUTS] = {"x1", "x2", "a0", "a1", "a2", "a3", "a4"};

const family_def family_wheel = {.name = "wheel",
                                 .help = "wheel bandits: context and one-hot action to reward",
                                 .options = table,
                                 .n_options = OPTION_COUNT(table),
                                 .opts_size = sizeof(wheel_opts),
                                 .x_dim = INPUTS,
                                 .x_names = names,
                                 .y_name = "reward",
                                 .train_functions = 64,
                                 .points = family_points,
                                 .context = family_context,
                                 .rff_std = rff_std,
                                 .draw = draw,
                                 .group = 1};
