/* wheel.h: the wheel: a context in the unit disc, five actions, and what they pay. Action 0
 * pays 1.2 everywhere; outside the radius delta the quadrant's action pays 50: 1 (+,+), 2 (+,-), 3
 * (-,+), 4 (-,-), where + means greater than 0; all else pays 1. */
#ifndef MNP_DATA_WHEEL_H
#define MNP_DATA_WHEEL_H

#include "base/rng.h"

enum { WHEEL_DIMS = 2, WHEEL_ACTIONS = 5 };
#define WHEEL_NOISE 0.01 /* standard deviation of every reward */

/* Uniform in the unit disc. */
void wheel_context(rng_stream *s, double x[WHEEL_DIMS]);
/* The mean reward of every action, and the best of them. */
int32_t wheel_means(double delta, const double x[WHEEL_DIMS], double means[WHEEL_ACTIONS]);

#endif
