/* row.h: operands of the row instructions, for backends. in[0] is the matrix (forward) or the
 * gradient of the row (reverse); out[0] the row, or the gradient of the matrix. */
#ifndef MNP_OP_ROW_H
#define MNP_OP_ROW_H

enum { ROW_INDEX }; /* i: which row */

#endif
