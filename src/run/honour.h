/* honour.h: functions of a model made to pass through the measurements they are conditioned on, by
 * kriging of the misfit: what geostatistics does with simulations.
 *
 * A network's functions come near their measurements but do not go through them. For function s
 * with smooth part f_s (base noise zero) and noisy values g_s(e) at levels e of the base noise,
 * wells x_i with values y_i, misfit r_i = y_i - f_s(x_i), and
 *   c_i = k(|x - x_i|),  C_ij = k(|x_i - x_j|) + HONOUR_NUGGET [i = j],  w = C^-1 c
 * the honoured function is
 *   f*_s(x)    = clamp(f_s(x) + sum_i w_i r_i)
 *   g*_s(x, e) = f*_s(x) + sqrt(1 - w'c) (g_s(x, e) - f_s(x)).
 * k is the spherical covariance 1 - 3/2 h + 1/2 h^3 of h = distance / range, 0 from the range on:
 * there nothing changes, bit for bit. Where a pixel has more than HONOUR_NEAR wells within the
 * range, it takes the nearest. The mean of the misfit is known to be zero (simple kriging), so a
 * correction fades with the distance instead of becoming a constant. clamp() keeps f* within what
 * the wells and the functions at that place span: no correction leaves the range of the data.
 *
 * The rule is the same for every place and does not depend on which others are asked about, so the
 * functions are still one process: consistent, and exchangeable in the wells (same bits in any
 * order of the wells, given the same functions). Nothing is said about densities: scores are those
 * of the model itself. */
#ifndef MNP_RUN_HONOUR_H
#define MNP_RUN_HONOUR_H

#include "util/env.h"

enum { HONOUR_NEAR = 32 };
/* Share of a measurement's own error in the variance of the misfit: 0.05^2 beside 0.7^2. */
#define HONOUR_NUGGET 0.005
/* The usual range, as a share of the longer side: of all from 2 to 64 pixels of 128 the one with
 * the best CRPS of held-out pixels (docs/user/maps.md). */
#define HONOUR_RANGE 0.1

typedef struct honour honour;

/* `wells` measurements y at places (wells, 2), any number and twice the same place too; `smooth`
 * (samples, wells) are the functions there. Copies all. range > 0 is in the units of places. */
typedef struct honour_opts {
    int64_t wells, samples;
    const double *place, *y, *smooth;
    double range;
} honour_opts;
mnp_status honour_make(env *e, const honour_opts *o, honour **out);
void honour_destroy(honour *h); /* accepts NULL */

/* Weights of the wells near a place: how many, which (an index of the opts' wells, nearest first),
 * and the share sqrt(1 - w'c) of the noise that is left. For honour_apply and tests. */
typedef struct honour_weights {
    int64_t count;
    int64_t well[HONOUR_NEAR];
    double w[HONOUR_NEAR], noise;
} honour_weights;
void honour_at(const honour *h, const double place[2], honour_weights *out);

/* y (levels, samples, n) at n places (n, 2), in place; level 0 is the smooth function. */
void honour_apply(const honour *h, const double *place, int64_t n, int64_t levels, double *y);

#endif
