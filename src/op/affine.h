/* affine.h: attributes of the affine instructions, for backends; operands as in map.h. */
#ifndef MNP_OP_AFFINE_H
#define MNP_OP_AFFINE_H

#include "op/map.h"

enum { AFFINE_KIND };                /* i                             */
enum { AFFINE_KAPPA, AFFINE_FLOOR }; /* f                             */
enum { AFFINE_BETA, AFFINE_SCALE };  /* columns of raw (rows, 2)      */

#endif
