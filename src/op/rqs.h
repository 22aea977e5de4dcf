/* rqs.h: attributes of the spline instructions, for backends; operands as in map.h. */
#ifndef MNP_OP_RQS_H
#define MNP_OP_RQS_H

#include "op/map.h"
#include "util/limits.h"

enum { RQS_BINS };                                                     /* i */
enum { RQS_BOUND, RQS_MIN_WIDTH, RQS_MIN_HEIGHT, RQS_MIN_DERIVATIVE }; /* f */
/* raw (rows, 3K-1): K widths, K heights, K-1 inner derivatives. */

#endif
