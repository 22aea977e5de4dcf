/* rising.h: random increasing functions, for the families monotonic and convex. */
#ifndef MNP_DATA_RISING_H
#define MNP_DATA_RISING_H

#include "data/family.h"
#include "data/pchip.h"

typedef struct rising_opts {
    family_common common;
    double knots, alpha, gap, shape, noise;
} rising_opts;

/* Poisson(RISING_MEAN_MAX) exceeds RISING_NODES_MAX with probability below 1e-300. */
enum { RISING_NODES_MAX = 1024, RISING_MEAN_MAX = 100 };

/* The table; the families differ in the noise. */
#define RISING_OPTIONS(noise_std)                                                                  \
    FAMILY_POINTS(rising_opts), FAMILY_X(rising_opts, "-2:2"),                                     \
        OPTION_REAL(rising_opts, knots, "5", 0, RISING_MEAN_MAX, "mean number of inner knots"),    \
        OPTION_REAL(rising_opts, alpha, "1", 1e-2, 1e6, "Dirichlet concentration of the gaps"),    \
        OPTION_REAL(rising_opts, gap, "0.01", 1e-9, 1e6, "least gap before normalisation"),        \
        OPTION_REAL(rising_opts, shape, "2", 1e-2, 1e6, "Gamma shape of the rises at the knots"),  \
        OPTION_REAL(rising_opts, noise, noise_std, 0, 1e6, "standard deviation of the noise"),     \
        FAMILY_CONTEXT(rising_opts, "2:20")

typedef struct rising {
    double x[RISING_NODES_MAX], y[RISING_NODES_MAX];
    double slope[RISING_NODES_MAX], area[RISING_NODES_MAX];
    pchip curve; /* points into the arrays above: not to be copied */
} rising;

/* N ~ Poisson(knots) inner knots. The N + 1 gaps between the ends of the range are Dirichlet(alpha)
 * plus `gap`, normalised; the values at the N + 2 nodes are cumulative Gamma(shape) rises; PCHIP in
 * between. */
void rising_make(rng_stream *s, const rising_opts *o, rising *out);

/* Values y (n) at x (n) made from the rising function; further random numbers from s. */
typedef void (*rising_values)(const rising_opts *o, const pchip *f, rng_stream *s, const double *x,
                              double *y);

/* A family's draw: for each function a rising function, sorted uniform inputs, the values mapped
 * onto [-1, 1], and noise. */
mnp_status rising_draw(env *e, const rising_opts *o, rising_values values, uint64_t seed,
                       data_split split, int64_t first, int64_t count, float *x, float *y);
/* Noise of standard deviation s allows no more than -log s - log(2 pi e)/2 nats per point. */
double rising_ceiling(const void *opts);

#endif
