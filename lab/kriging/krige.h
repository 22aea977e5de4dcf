/* krige.h: kriging of images from measured pixels: what a geostatistician would compare with.
 *
 * A value u at a pixel is a random field with an unknown constant mean and the covariance
 *   sill k(h),  h^2 = (rows apart / range[0])^2 + (columns apart / range[1])^2,
 * k(h) = exp(-h) or (1 + h) exp(-h), plus an independent part: nugget_well at measured pixels,
 * nugget_pixel at those to be predicted. The mean is estimated with the weights (ordinary kriging).
 *
 *   KRIGE_ORDINARY  u = y, the image's own values; nugget_pixel = nugget_well + noise^2.
 *   KRIGE_SCORES    u = normal score of y: u(y) = Phi^-1(F(y)), F the distribution of all noisy
 *                   values of the training images. A latent Gaussian field seen through u^-1; the
 *                   density of y is that of u times du/dy. Both nuggets are fitted.
 *
 * Ranges, sill and nuggets maximise the restricted likelihood (mean integrated out) of pixels of
 * training images, scattered and in clusters, half of them as measured, half with noise.
 *
 * Two predictive densities of an image given measured pixels:
 *   KRIGE_PIXELS  each pixel by itself: N(kriging mean, kriging variance). With up to KRIGE_EXACT
 *                 wells all of them are used, with more the KRIGE_NEAR nearest (a moving
 *                 neighbourhood).
 *   KRIGE_JOINT   all pixels together, by the chain rule along a path from coarse to fine grids:
 *                 each pixel given its KRIGE_NEAR nearest among the wells and the pixels before it.
 *                 That is the density of sequential Gaussian simulation. */
#ifndef MNP_LAB_KRIGING_H
#define MNP_LAB_KRIGING_H

#include "util/env.h"

enum { KRIGE_EXACT = 200, KRIGE_NEAR = 32, KRIGE_TABLE = 2801 };

typedef enum krige_kind { KRIGE_ORDINARY, KRIGE_SCORES } krige_kind;
typedef enum krige_law { KRIGE_PIXELS, KRIGE_JOINT } krige_law;
typedef enum krige_shape { KRIGE_EXPONENTIAL, KRIGE_MATERN32, KRIGE_SHAPES } krige_shape;

/* u and log du/dy at KRIGE_TABLE values of y from -KRIGE_EDGE to KRIGE_EDGE. */
#define KRIGE_EDGE 1.4
typedef struct krige_scores {
    double u[KRIGE_TABLE], log_slope[KRIGE_TABLE];
} krige_scores;

typedef struct krige {
    krige_kind kind;
    krige_shape shape;
    int64_t rows, cols;
    double range[2]; /* pixels */
    double sill, nugget_well, nugget_pixel;
    double noise;        /* sd of the noise on pixels to be predicted */
    double loglik;       /* restricted, per pixel of the fit          */
    krige_scores scores; /* of KRIGE_SCORES */
} krige;

/* Images y (count, rows, cols). The fit takes `points` pixels of each; those and their noise depend
 * on the seed alone. */
typedef struct krige_fit_opts {
    krige_kind kind;
    int64_t rows, cols, count, points;
    double noise;
    uint64_t seed;
} krige_fit_opts;
mnp_status krige_fit(env *e, int threads, const krige_fit_opts *o, const float *y, krige *out);

/* Restricted log-likelihood of the fit's points; for krige_fit and tests. u (n), place (n, 2), well
 * (n); work: n (n + 2) doubles. -INFINITY where the covariance is singular. */
double krige_restricted(const krige *k, int64_t n, const double *u, const int32_t *place,
                        const uint8_t *well, double *work);

double krige_covariance(const krige *k, double rows_apart, double cols_apart);

/* ---- normal scores --------------------------------------------------------------------------- */

void krige_scores_make(const float *y, int64_t count, double noise, krige_scores *out);
double krige_score_of(const krige_scores *s, double y,
                      double *log_slope);              /* log_slope may be NULL */
double krige_unscore(const krige_scores *s, double u); /* the y of a score */

/* ---- prediction ------------------------------------------------------------------------------ */

/* The weights of every pixel for one set of wells; the same for all images with these wells. */
typedef struct krige_plan krige_plan;

/* well (rows cols): 1 where a pixel is measured; at least one. */
mnp_status krige_plan_make(env *e, int threads, const krige *k, const uint8_t *well, krige_law law,
                           krige_plan **out);
void krige_plan_destroy(krige_plan *p);

/* Sum over all pixels, wells included, of the log-density of `target`, given `measured` at the
 * wells; both (rows cols), raw values. work: 3 rows cols doubles. */
double krige_logp(const krige_plan *p, const float *measured, const float *target, double *work);
/* Maps (rows cols) of a plan of KRIGE_PIXELS: mean, sd (with the noise) and P(y < 0). */
void krige_map(const krige_plan *p, const float *measured, double *work, double *mean, double *sd,
               double *below);
/* A realisation of a plan of KRIGE_JOINT by sequential simulation: y (rows cols). */
void krige_draw(const krige_plan *p, const float *measured, uint64_t seed, int64_t sample,
                double *work, float *y);

/* ---- scores ---------------------------------------------------------------------------------- */

/* As the library scores a network on images: the same contexts and the same noise on the targets
 * for the same seed; all pixels are scored, those of the context too. */
typedef enum krige_context { KRIGE_UNIFORM, KRIGE_TOP, KRIGE_LEFT, KRIGE_CENTER } krige_context;

typedef struct krige_eval_opts {
    krige_context context;
    int64_t wells; /* KRIGE_UNIFORM: how many */
    uint64_t seed;
    double noise; /* of the noisy targets */
    int threads;
    void (*progress)(void *user, int64_t done, int64_t total);
    void *user;
} krige_eval_opts;

enum { KRIGE_NOISY, KRIGE_CLEAN, KRIGE_TARGETS }; /* targets with noise, and without */
enum { KRIGE_LAWS = 2 };

/* Nats per pixel: mean and standard error over images. */
typedef struct krige_score {
    double loglik[KRIGE_TARGETS][KRIGE_LAWS], se[KRIGE_TARGETS][KRIGE_LAWS];
} krige_score;

/* image (count): each (rows, cols) of the fit. */
mnp_status krige_evaluate(env *e, const krige *k, const float *const *image, int64_t count,
                          const krige_eval_opts *o, krige_score *out);
/* The measured pixels of image i: well (rows cols) becomes 0 or 1. order: memory of rows cols. */
void krige_wells(const krige *k, const krige_eval_opts *o, int64_t i, int32_t *order,
                 uint8_t *well);

#endif
