/* elementwise.h: operands of add and scale and of their reverse instructions, for backends. */
#ifndef MNP_OP_ELEMENTWISE_H
#define MNP_OP_ELEMENTWISE_H

/* add: y = a + b; b may be shared over samples where a is not. */
enum { ELEMENT_A, ELEMENT_B };   /* in              */
enum { ELEMENT_GA, ELEMENT_GB }; /* out of the grad */
enum { ELEMENT_GRAD_G };         /* in of the grad  */

/* scale: y = factor a + shift (in[0], out[0]); its grad is factor g into out[0]. */
enum { SCALE_FACTOR, SCALE_SHIFT }; /* f */

#endif
