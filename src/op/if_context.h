/* if_context.h: operands of the if_context instructions, for backends. */
#ifndef MNP_OP_IF_CONTEXT_H
#define MNP_OP_IF_CONTEXT_H

enum { IF_CONTEXT_X, IF_CONTEXT_EMPTY };   /* in                                          */
enum { IF_CONTEXT_GX, IF_CONTEXT_GEMPTY }; /* out of the grad; in[0] is the gradient of y */

#endif
