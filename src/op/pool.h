/* pool.h: operands of the pooling instructions, for backends. */
#ifndef MNP_OP_POOL_H
#define MNP_OP_POOL_H

#include "op/frame.h"

enum { POOL_H };               /* in              */
enum { POOL_Y };               /* out             */
enum { POOL_OVER, POOL_MEAN }; /* i: extent; bool */
enum { POOL_GRAD_G };          /* in of the grad  */
enum { POOL_GH };              /* out of the grad */

/* How many rows of h are pooled, given the extent recorded for it. */
static inline int64_t pool_rows(const frame *f, const value *h, int32_t over) {
    return frame_extent(f, over == EXT_FIXED ? h->ext : (extent)over, h->rows);
}

#endif
