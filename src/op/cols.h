/* cols.h: operands of the cols instructions, for backends. in[0] is the matrix (forward) or the
 * gradient of the slice (reverse); out[0] the slice, or the gradient of the matrix. */
#ifndef MNP_OP_COLS_H
#define MNP_OP_COLS_H

enum { COLS_FIRST }; /* i: the first column of the slice */

#endif
