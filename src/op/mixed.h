/* mixed.h: operands of the instructions of a mixed model, for backends. The model has `draws` laws
 * (base/mixed_math.h), all as likely as each other before anything is seen.
 *
 *   knots  (2 X, K)      of every input: first of the population's basis, then of the curves'
 *   mean   (draws, p)    spread (draws, p p)    curve (draws, r r)    noise (draws, 1)
 *
 * With a knee the laws differ in their knots too, and law k is one of mixed_knee_to(y, knee_k):
 *
 *   knots  (2 X draws, K)    knee (draws, 1) */
#ifndef MNP_OP_MIXED_H
#define MNP_OP_MIXED_H

#include "op/op.h"

enum {
    MIXED_X,
    MIXED_Y,
    MIXED_KNOTS,
    MIXED_MEAN,
    MIXED_SPREAD,
    MIXED_CURVE,
    MIXED_NOISE,
    MIXED_EPS,          /* of a draw: a normal per row, for the noise                       */
    MIXED_COEFFICIENTS, /* and (1, 1 + p + r) of them: for the choice of a law, and its curve */
    MIXED_KNEE
};                                              /* in */
enum { MIXED_FIXED, MIXED_RANDOM, MIXED_WHAT }; /* i: knots of the two bases; range or noisy */

#endif
