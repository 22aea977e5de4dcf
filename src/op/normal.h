/* normal.h: operands of the normal densities and the base noise, for backends. */
#ifndef MNP_OP_NORMAL_H
#define MNP_OP_NORMAL_H

#include "op/gauss.h"

enum { NORMAL_Y, NORMAL_LOGDET };      /* in of normal_logp; the second may be absent */
enum { NORMAL_GRAD_Y, NORMAL_GRAD_G }; /* in of its grad                              */
enum { NORMAL_GY, NORMAL_GLOGDET };    /* out of its grad                             */
enum { BASE_PURPOSE, BASE_ZERO };      /* i of base_noise                             */

#define NORMAL_HALF_LOG_2PI 0.91893853320467274178

#endif
