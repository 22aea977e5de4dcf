/* stack.h: operands of the stack instructions, for backends. */
#ifndef MNP_OP_STACK_H
#define MNP_OP_STACK_H

enum { STACK_A, STACK_B };   /* in              */
enum { STACK_GA, STACK_GB }; /* out of the grad */
/* in[0] of the grad is the gradient of the result; i[0] is where b's rows start. */
enum { STACK_SPLIT };

#endif
