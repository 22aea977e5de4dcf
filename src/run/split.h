/* split.h: which points of a curve are context and which are targets: the one place that decides
 * it, for scores and for test sets that other programs read. */
#ifndef MNP_RUN_SPLIT_H
#define MNP_RUN_SPLIT_H

#include "data/dataset.h"

/* Numbers of points, both ends included. */
typedef struct split_sizes {
    int64_t lo, hi;                 /* of the context; at least one point stays a target */
    int64_t targets_lo, targets_hi; /* of the targets, as far as there are points; 0: all others */
} split_sizes;

typedef struct curve_split {
    const int32_t *order; /* (n) points of the function: the context, then the targets */
    int64_t m, n;
} curve_split;

/* The data set's own sizes. */
split_sizes split_usual(const dataset *d);
/* Of function i, a random choice that depends on the seed and i. The context of a larger size
 * has the points of a smaller one. memory: permute_words(longest), where the order is left. */
curve_split split_curve(const dataset *d, const split_sizes *sizes, uint64_t seed, int64_t i,
                        int32_t *memory);

#endif
