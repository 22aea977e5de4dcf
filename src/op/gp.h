/* gp.h: operands of the gp_logp instructions, for backends. hyper (1, GP_HYPERS) and the kernel
 * numbers are those of base/gp_math.h. */
#ifndef MNP_OP_GP_H
#define MNP_OP_GP_H

#include "base/gp_math.h"
#include "op/op.h"

enum { GP_X, GP_U, GP_HYPER, GP_GRAD_G }; /* in of both; the last of the grad only */
enum { GP_GU, GP_GHYPER };                /* out of the grad                       */
enum { GP_RANGE, GP_KERNEL };             /* i: row_range, parts                   */

/* The first row that is scored. */
static inline int64_t gp_first(const frame *f, const instr *ins) {
    return ins->i[GP_RANGE] == ROWS_REST ? f->m : 0;
}

#endif
