/* test_set.h: functions with their contexts and targets in a file that other programs read. */
#ifndef MNP_RUN_TEST_SET_H
#define MNP_RUN_TEST_SET_H

#include "data/dataset.h"

/* An .npz file (util/npz.h) of the curves of d, split as a score with this seed does it:
 *   x (functions, longest, x_dim), y (functions, longest)   float32: the context, then the targets,
 *                                                           then zeros
 *   context, targets (functions)                            int64: how many
 *   mask (functions, longest)                               uint8: 1 context, 2 target, 0 neither
 */
mnp_status test_set_write(env *e, const dataset *d, uint64_t seed, const char *path);

#endif
