/* dot.h: operands of the dot instructions, for backends. */
#ifndef MNP_OP_DOT_H
#define MNP_OP_DOT_H

enum { DOT_A, DOT_W };                       /* in              */
enum { DOT_GA, DOT_GW };                     /* out of the grad */
enum { DOT_GRAD_A, DOT_GRAD_W, DOT_GRAD_G }; /* in of the grad  */

#endif
