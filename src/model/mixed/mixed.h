/* mixed.h: fitting a linear mixed model to curves.
 *
 *   y_i = X_i beta + Z_i b_i + e_i,   b_i ~ N(0, Psi),   e_i ~ N(0, sigma^2 I),   i = 1 .. J
 *
 * X_i and Z_i are natural splines of the inputs (base/natural.h): the population's basis and the
 * curve's own, smaller one. docs/dev/math.md, "The mixed model of curves", derives what is computed
 * here. From the data to the weights of a model:
 *
 *   mixed_choose     how many knots each basis has, by AIC
 *   mixed_place      where they are
 *   mixed_design     each curve as products Z^T Z, Z^T X, Z^T y in columns without correlation
 *   mixed_maximise   Psi / sigma^2 by REML or ML; beta and sigma^2 follow from it
 *   mixed_posterior  draws of (Psi, sigma^2) given the data
 *   mixed_smooth     both with a Psi of four parameters
 *   mixed_average    all of it for several forms of the model at once, each with its share
 *
 * All in double precision, on one thread, the same for every number of threads. */
#ifndef MNP_MODEL_MIXED_H
#define MNP_MODEL_MIXED_H

#include "base/natural.h"
#include "op/frame.h"

typedef struct mixed_form {
    int32_t fixed, random; /* knots of the population's basis and the curves'; 0: to be chosen   */
    bool smooth;           /* Psi has four parameters (smooth.c)                                  */
    bool at_points;        /* knots at equal shares of all points, not of the different values    */
    bool bare;             /* inputs that never change within a curve have no part at all         */
} mixed_form;

/* The two bases of a data set, X inputs with room for `knots` knots each. */
typedef struct mixed_bases {
    int32_t x_dim, fixed, random, knots; /* knots = the larger of the two    */
    float *places;                       /* (2 X, knots), the last repeated  */
    natural *inputs;                     /* (2 X)                            */
} mixed_bases;

static inline int32_t mixed_fixed_columns(const mixed_bases *b) {
    return natural_columns(b->x_dim, b->fixed);
}
static inline int32_t mixed_random_columns(const mixed_bases *b) {
    return natural_columns(b->x_dim, b->random);
}

/* Knots at equal shares of an input's different values (at_points: each counts as often as it was
 * measured), the ends among them, as many as there are values at most. An input that never changes
 * within a curve has no part in the curves' basis. In the population's it has two knots, and one
 * more for every ten curves from twenty on: with more it would know the curves by their names. */
mnp_status mixed_place(env *e, const data_view *d, const mixed_form *form, mixed_bases *out);
void mixed_bases_free(env *e, mixed_bases *b);
bool mixed_changes(const data_view *d, int32_t c); /* input c, along any curve? */
int mixed_by_size(const void *a, const void *b);   /* floats, for qsort         */

/* Columns that are not sums of others, turned so that over all points their squares have the mean
 * one and their products the mean zero: kept columns of a row of the basis, times `turn`. */
typedef struct mixed_frame {
    int32_t columns, rank;
    int64_t *kept; /* (rank) */
    double *turn;  /* (rank, rank), upper */
} mixed_frame;

/* y is what is left by `pooled`, the least squares fit of all points to the population's basis. */
typedef struct mixed_design {
    int64_t curves, points;
    int32_t p, r; /* ranks */
    mixed_frame x, z;
    double *zz;     /* (curves, r, r)                                 */
    double *zx;     /* (curves, r, p + 1): Z^T [X y]                   */
    double *xx;     /* (p + 1, p + 1), lower: [X y]^T [X y]            */
    double *pooled; /* (p)                                             */
    double spread;  /* root mean square of that y                      */
    double floor;   /* least sigma^2: 1e-8 of the variance of y        */
} mixed_design;

mnp_status mixed_design_make(env *e, const data_view *d, const mixed_bases *b, mixed_design *out);
void mixed_design_free(env *e, mixed_design *d);

/* Parameters in the design's turned columns. */
typedef struct mixed_parameters {
    double *lambda; /* (r, r), lower: Psi = sigma^2 lambda lambda^T            */
    double *beta;   /* (p), on top of `pooled`                                 */
    double *factor; /* (p, p), lower: beta has the precision factor factor^T / sigma^2 */
    double *room;   /* (p, p), for mixed_unturn */
    double variance;
    double loglik; /* REML or ML */
} mixed_parameters;

mnp_status mixed_parameters_make(env *e, const mixed_design *d, mixed_parameters *out);
void mixed_parameters_free(env *e, mixed_parameters *p);

/* Ends where steps gain less than `tolerance` of the log-likelihood. */
#define MIXED_TIGHT 1e-9
mnp_status mixed_maximise(env *e, const mixed_design *d, bool reml, double tolerance,
                          mixed_parameters *out);
/* log p(y) with these parameters. */
mnp_status mixed_density(env *e, const mixed_design *d, mixed_parameters *p, double *out);

/* For lambda: beta, factor, the log-likelihood and, unless it is given, the best variance. gradient
 * (r, r; or NULL), lower: of -2 times the log-likelihood. */
typedef struct mixed_work mixed_work;
mnp_status mixed_work_make(env *e, const mixed_design *d, mixed_work **out);
void mixed_work_free(env *e, mixed_work *w);
void mixed_evaluate(const mixed_design *d, mixed_work *w, bool reml, double given_variance,
                    mixed_parameters *p, double *gradient);
/* The factor (r, r) of I + lambda^T Z^T Z lambda of a curve, from the last mixed_evaluate. */
const double *mixed_work_factor(const mixed_work *w, int64_t curve);

/* Draws of lambda and the variance given the data, with the mean and the factor of beta given them:
 * take(arg, k, p) for k = 0 .. draws - 1. */
typedef void mixed_take(void *arg, int64_t draw, const mixed_parameters *p);
mnp_status mixed_posterior(env *e, const mixed_design *d, const mixed_parameters *start,
                           uint64_t seed, int64_t draws, mixed_take *take, void *arg);

/* Curves whose own parts are smooth: Psi has four parameters (smooth.c), for few curves or many
 * knots. The mode, instead of mixed_maximise; and draws, instead of mixed_posterior. */
mnp_status mixed_smooth(env *e, const mixed_bases *b, const mixed_design *d, bool reml,
                        mixed_parameters *out);
mnp_status mixed_smooth_posterior(env *e, const mixed_bases *b, const mixed_design *d,
                                  uint64_t seed, int64_t draws, mixed_take *take, void *arg);
int32_t mixed_smooth_parameters(void);

/* The numbers of knots with the least AIC, of those that are 0. Smooth curves have as many as can
 * be fitted, up to eight: only those of the population are chosen. */
mnp_status mixed_choose(env *e, const data_view *d, mixed_form *form);
/* The most knots that it chooses, of inputs in this number. */
mixed_form mixed_choose_most(int64_t x_dim, bool smooth);

/* One law of an average: a mixed model of mixed_knee_to(y, knee) (base/mixed_math.h). */
typedef struct mixed_share {
    const mixed_bases *bases;
    double knee; /* 0: of y itself */
    const double *mean, *spread, *curve;
    double noise;
} mixed_share;

/* Mixed models of several forms with at most the knots of `most`, and of y on several scales where
 * y is never negative: take(arg, k, law) for k = 0 .. draws - 1. A member's number of laws is its
 * share (average.c). loglik: log-density of the data. */
typedef void mixed_take_share(void *arg, int64_t law, const mixed_share *s);
mnp_status mixed_average(env *e, const data_view *d, const mixed_form *most, uint64_t seed,
                         int64_t draws, mixed_take_share *take, void *arg, double *loglik);
/* The most knots that its members have by themselves; where more are asked for, the smooth ones
 * have them. */
mixed_form mixed_average_most(int64_t x_dim);

/* The REML estimate of the population curve in the columns of its basis. */
mnp_status mixed_population(env *e, const data_view *d, const mixed_bases *b, float *out);

/* The parameters in the columns of the bases: mean (P), spread (P, P) with S S^T the covariance of
 * beta, curve (Q, Q) with C C^T = Psi. */
void mixed_unturn(const mixed_design *d, const mixed_parameters *p, double *mean, double *spread,
                  double *curve);

#endif
