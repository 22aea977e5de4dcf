/* least.h: the smaller and the larger of two counts. */
#ifndef MNP_UTIL_LEAST_H
#define MNP_UTIL_LEAST_H

#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static inline int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

#endif
