/* mixture.h: operands of the mixtures of normals, for backends. */
#ifndef MNP_OP_MIXTURE_H
#define MNP_OP_MIXTURE_H

enum { MIXTURE_RAW, MIXTURE_Y };                      /* in of mixture_logp            */
enum { MIXTURE_GRAD_RAW, MIXTURE_GRAD_Y, MIXTURE_G }; /* in of its grad                */
enum { MIXTURE_GRAW, MIXTURE_GY };                    /* out of its grad               */
enum { MIXTURE_EPS = 1, MIXTURE_PICK };               /* in of mixture_draw, after raw */
enum { MIXTURE_FLOOR };                               /* f[0]                          */

#endif
