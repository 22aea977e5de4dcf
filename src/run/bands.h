/* bands.h: mean, spread and quantiles of what would be measured at each target by itself, for
 * pictures: without the roughness that as many plain draws would have from target to target. */
#ifndef MNP_RUN_BANDS_H
#define MNP_RUN_BANDS_H

#include "run/predict.h"

/* mean, sd and quantiles of `out`, noise included; draws are left alone. A process without latents
 * has densities, which are integrated, with care where they are skewed or have long tails. Of one
 * with latents, each of the S functions is taken at fixed levels of the noise, the same at all
 * targets. */
mnp_status predictor_bands(predictor *p, const double *x, int64_t n, const mnp_summary *out);

#endif
