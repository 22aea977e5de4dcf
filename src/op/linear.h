/* linear.h: operands of the linear instructions, for backends. */
#ifndef MNP_OP_LINEAR_H
#define MNP_OP_LINEAR_H

enum { LINEAR_X, LINEAR_W, LINEAR_B, LINEAR_RES };                   /* in              */
enum { LINEAR_Y, LINEAR_H };                                         /* out             */
enum { LINEAR_ACT, LINEAR_SKIP };                                    /* i               */
enum { LINEAR_GX, LINEAR_GW, LINEAR_GB, LINEAR_GRES };               /* out of the grad */
enum { LINEAR_GRAD_X, LINEAR_GRAD_W, LINEAR_GRAD_H, LINEAR_GRAD_G }; /* in of the grad  */
/* LINEAR_SKIP (grad): the residual was x itself, so its gradient goes into dx. */

#endif
