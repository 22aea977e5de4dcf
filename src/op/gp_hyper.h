/* gp_hyper.h: operands of the gp_hyper instructions, for backends. */
#ifndef MNP_OP_GP_HYPER_H
#define MNP_OP_GP_HYPER_H

#include "op/op.h"

/* in of both, and out of the grad; the upstream gradient comes after the weights */
enum { HYPER_VARIANCE, HYPER_LENGTH, HYPER_PERIOD, HYPER_NOISE, HYPER_MEAN, HYPER_WEIGHTS };
enum { HYPER_GRAD_G = HYPER_WEIGHTS };
enum { HYPER_SOFTPLUS };          /* i */
enum { HYPER_RATE, HYPER_FLOOR }; /* f */

#endif
