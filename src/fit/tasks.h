/* tasks.h: what the models are asked about a curve that they did not see.
 *
 *   first    given its first 3 points in time, what comes after them
 *   random   given 3 random points, all others
 *
 * A shorter curve gives fewer, so that one target at least is left. Of several outputs, the 3 are
 * times, and all that was measured then is given. */
#ifndef MNP_FIT_TASKS_H
#define MNP_FIT_TASKS_H

#include "data/dataset.h"

typedef enum fit_task { TASK_FIRST, TASK_RANDOM, FIT_TASKS } fit_task;
enum { TASK_GIVEN = 3 };

/* Marks points of a curve (keep, zeroed, of all points of d), at most `limit` of them, spread
 * evenly. Of several outputs whole rows of the table are marked, one at least, so that none is
 * lost. Returns how many points are marked. */
int64_t task_thin(const dataset *d, int64_t curve, int64_t limit, bool *keep);

/* The points of a curve in the order of time, ties in the order of the table. */
void task_order(const dataset *d, int64_t curve, int32_t time, int64_t *order);
/* The points of a curve into order (all of them), those given first; returns how many those are.
 * The seed and the curve's number fix the random ones. */
int64_t task_split(const dataset *d, int64_t curve, fit_task task, int32_t time, uint64_t seed,
                   int64_t *order);

#endif
