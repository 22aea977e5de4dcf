/* gp_math.h: Gaussian processes in double precision: kernels, log densities with gradients,
 * conditionals. For the GP ops, the GP models and the data generators.
 *
 *   RBF           v exp(-d^2 / (2 l^2))
 *   Matern-5/2    v (1 + u + u^2/3) exp(-u),  u = sqrt(5) d / l
 *   periodic      v exp(-2 q / l^2),  q = sum_j sin^2(pi d_j / p)
 *   fading        the periodic part times exp(-d^2 / (2 l^2)), l that of the RBF part: a weakly
 *                 periodic function
 *
 * d is the Euclidean distance of two inputs, d_j its components. A kernel is the sum of the parts
 * asked for, each with its variance v and lengthscale l; observations add a noise variance on the
 * diagonal, and the process has a constant mean. */
#ifndef MNP_BASE_GP_MATH_H
#define MNP_BASE_GP_MATH_H

#include "util/env.h"

enum {
    GP_RBF = 1,
    GP_MATERN = 2,
    GP_PERIODIC = 4,
    GP_SUM = GP_RBF | GP_MATERN | GP_PERIODIC,
    GP_UNSQUARED = 8, /* the periodic part divides by l, not l^2, as some libraries do */
    GP_FADING = 16,   /* the periodic part fades with the distance                     */
    GP_BITS = GP_SUM | GP_UNSQUARED | GP_FADING
};

/* The hyper-parameters, in this order; all but the mean are logarithms. Those of parts that a
 * kernel does not have are not read and have no gradient. */
typedef enum gp_hyper {
    GP_LOG_VARIANCE_RBF,
    GP_LOG_LENGTH_RBF,
    GP_LOG_VARIANCE_MATERN,
    GP_LOG_LENGTH_MATERN,
    GP_LOG_VARIANCE_PERIODIC,
    GP_LOG_LENGTH_PERIODIC,
    GP_LOG_PERIOD,
    GP_LOG_NOISE, /* variance */
    GP_MEAN,
    GP_HYPERS
} gp_hyper;

typedef struct gp_kernel {
    int32_t parts;
    double hyper[GP_HYPERS];
} gp_kernel;

/* Variances, lengthscales and period one, no noise, mean zero. */
gp_kernel gp_kernel_make(int32_t parts);

/* K (na, nb) between xa (na, x_dim) and xb (nb, x_dim), without noise. */
void gp_cross(const gp_kernel *k, const double *xa, int64_t na, const double *xb, int64_t nb,
              int32_t x_dim, double *out, int64_t ld);
/* K (n, n) of x with itself plus `diagonal` on the diagonal; both triangles. */
void gp_gram(const gp_kernel *k, const double *x, int64_t n, int32_t x_dim, double diagonal,
             double *out, int64_t ld);

/* L (n, n), lower, of K + noise. 0, or the number of the pivot that failed (from 1). */
int64_t gp_factor(const gp_kernel *k, const double *x, int64_t n, int32_t x_dim, double *l);
/* log p(u_first .. u_n-1 | u_0 .. u_first-1) with L from gp_factor; first = 0: the joint density.
 * white (n) = L^-1 (u - mean) comes along. */
double gp_logp(const gp_kernel *k, const double *l, int64_t n, int64_t first, const double *u,
               double *white);

/* Gradients of sum_s up[s] logp(u_s), `first` as above, added to gu and hyper (GP_HYPERS). The
 * cubic work is done once for all samples: set weight (n, n) to zero, call `sample` for each,
 * `finish` at the end. sample   gu (n; or NULL), the mean in hyper, and the outer products in
 * weight; work: 2 n doubles finish   the other hyper-parameters; l becomes L^-1 */
void gp_grad_sample(const gp_kernel *k, const double *l, int64_t n, int64_t first, const double *u,
                    double up, double *gu, double *hyper, double *weight, double *work);
void gp_grad_finish(const gp_kernel *k, const double *x, int64_t n, int32_t x_dim, int64_t first,
                    double up_sum, double *l, double *weight, double *hyper);

/* Mean (nt) and covariance (nt, nt; or NULL) of new noisy observations at xt given u at xc.
 * MNP_ENUMERIC when the covariance of the context is not positive definite. */
mnp_status gp_conditional(env *e, const gp_kernel *k, const double *xc, const double *uc, int64_t m,
                          const double *xt, int64_t nt, int32_t x_dim, double *mean,
                          double *covariance);

#endif
