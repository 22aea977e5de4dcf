/* layernorm.h: operands of the layer norm instructions, for backends. */
#ifndef MNP_OP_LAYERNORM_H
#define MNP_OP_LAYERNORM_H

enum { LAYERNORM_X, LAYERNORM_GAIN, LAYERNORM_SHIFT };            /* in              */
enum { LAYERNORM_Y };                                             /* out             */
enum { LAYERNORM_GRAD_X, LAYERNORM_GRAD_GAIN, LAYERNORM_GRAD_G }; /* in of the grad  */
enum { LAYERNORM_GX, LAYERNORM_GGAIN, LAYERNORM_GSHIFT };         /* out of the grad */
#define LAYERNORM_EPS 1e-5                                        /* added to the variance */

#endif
