/* attention.h: operands of the attention instructions, for backends. */
#ifndef MNP_OP_ATTENTION_H
#define MNP_OP_ATTENTION_H

#include "op/frame.h"

enum { ATTENTION_QV, ATTENTION_KV }; /* in  */
enum { ATTENTION_O, ATTENTION_LSE }; /* out */
enum {                               /* i, of both instructions */
       ATTENTION_WIDTH,
       ATTENTION_HEADS,
       ATTENTION_QCOL,
       ATTENTION_KCOL,
       ATTENTION_VCOL,
       ATTENTION_QUERIES, /* extents: see attention_rows() */
       ATTENTION_KEYS
};
enum { /* in of the grad */
       ATTENTION_GRAD_QV,
       ATTENTION_GRAD_KV,
       ATTENTION_GRAD_O,
       ATTENTION_GRAD_LSE,
       ATTENTION_GRAD_G
};
enum { ATTENTION_GQ, ATTENTION_GK }; /* out of the grad */
/* In self-attention (qv is kv) ATTENTION_GQ takes all three blocks and ATTENTION_GK is absent. */

/* How many rows of v an attention uses, given the extent recorded for it. */
static inline int64_t attention_rows(const frame *f, const value *v, int32_t ext) {
    return frame_extent(f, ext == EXT_FIXED ? v->ext : (extent)ext, v->rows);
}

#endif
