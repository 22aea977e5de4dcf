/* join.h: operands of the join instructions, for backends. */
#ifndef MNP_OP_JOIN_H
#define MNP_OP_JOIN_H

enum { JOIN_A, JOIN_ROW, JOIN_P, JOIN_W };                   /* in              */
enum { JOIN_Y };                                             /* out             */
enum { JOIN_ACT };                                           /* i               */
enum { JOIN_GRAD_Y, JOIN_GRAD_P, JOIN_GRAD_W, JOIN_GRAD_G }; /* in of the grad  */
enum { JOIN_GA, JOIN_GROW, JOIN_GP, JOIN_GW };               /* out of the grad */
/* JOIN_GRAD_Y is there only for ReLU, JOIN_GRAD_P and JOIN_GRAD_W only when p was. */

#endif
