/* prefix.h: operands of the prefix instructions, for backends. */
#ifndef MNP_OP_PREFIX_H
#define MNP_OP_PREFIX_H

enum { PREFIX_X };      /* in              */
enum { PREFIX_Y };      /* out             */
enum { PREFIX_GRAD_G }; /* in of the grad  */
enum { PREFIX_GX };     /* out of the grad */

#endif
