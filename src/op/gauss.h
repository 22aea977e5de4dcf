/* gauss.h: operands of the Gaussian instructions on latents (rows fixed, Z), for backends, and the
 * place of their random numbers. */
#ifndef MNP_OP_GAUSS_H
#define MNP_OP_GAUSS_H

#include "base/rng.h"
#include "op/op.h"

/* mu and raw come first in every op of this family; so do their gradients. */
enum { GAUSS_MU, GAUSS_RAW };   /* in, of the grads too */
enum { GAUSS_GMU, GAUSS_GRAW }; /* out of the grads     */
enum { GAUSS_KIND };            /* i[0]: sigma_kind     */
enum { GAUSS_FLOOR };           /* f[0]                 */

/* gauss_sample. The noise that was drawn is kept for the reverse pass (absent when it was fed). */
enum { SAMPLE_EPS = 2 };                             /* in                     */
enum { SAMPLE_Z, SAMPLE_NOISE };                     /* out                    */
enum { SAMPLE_ROW = 1, SAMPLE_PURPOSE, SAMPLE_TAG }; /* i                      */
enum { SAMPLE_GRAD_NOISE = 2, SAMPLE_GRAD_G };       /* in of the grad         */
enum { SAMPLE_GEPS = 2 };                            /* out of the grad: of noise that was fed */

/* gauss_noise */
enum { NOISE_Z = 2 }; /* in */

/* gauss_kl */
enum { KL_GRAD_G = 2 }; /* in of the grad: upstream, a double */

/* gauss_ratio */
enum { RATIO_Z = 2, RATIO_GRAD_G }; /* in; in of the grad: z too */
enum { RATIO_GZ = 2 };              /* out of the grad           */

/* The scale in front of sigmoid or softplus: sigma = floor + scale f(raw). */
static inline double gauss_scale(sigma_kind kind, double floor) {
    return kind == SIGMA_SIGMOID ? 1 - floor : 1;
}

static inline rng_at gauss_place(const frame *f, int32_t purpose, int64_t sample) {
    return (rng_at){.purpose = (rng_purpose)purpose,
                    .step = rng_moves_on(purpose) && f->io->step ? (uint32_t)f->io->step->step : 0,
                    .function = (uint32_t)f->function,
                    .sample = (uint32_t)sample};
}
static inline rng_key gauss_key(const frame *f) {
    return (rng_key){f->io->step ? f->io->step->seed : 0};
}

#endif
