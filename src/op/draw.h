/* draw.h: operands of the draw instruction, for backends. permute.h has the logic. */
#ifndef MNP_OP_DRAW_H
#define MNP_OP_DRAW_H

enum { DRAW_X, DRAW_Y }; /* out */
enum {
    DRAW_TRAIN,
    DRAW_LO,
    DRAW_HI,
    DRAW_MAX,
    DRAW_FEW,
    DRAW_MIRROR,
    DRAW_SEEN,
    DRAW_TIME
};                                                             /* i */
enum { DRAW_P_EMPTY, DRAW_P_REGION, DRAW_NOISE, DRAW_PREFIX }; /* f   */

#endif
