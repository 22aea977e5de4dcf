/* wheel.c: see wheel.h; and the wheels as a family of functions to train on: a function is one
 * delta, its points are contexts with a uniformly random action and the reward of it, inputs
 * [x1, x2, one-hot(action)]. */
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
    if (sqrt(x[0] * x[0] + x[1] * x[1]) <= delta) return 0;
    int32_t quadrant = 1 + (x[0] > 0 ? 0 : 2) + (x[1] > 0 ? 0 : 1);
    means[quadrant] = 50.0;
    return quadrant;
}
