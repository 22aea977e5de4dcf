/* rising.h: a random increasing function, for the families monotonic and convex. */
#ifndef MNP_DATA_RISING_H
#define MNP_DATA_RISING_H

#include "data/family.h"
#include "data/pchip.h"

/* Poisson(mean 100) exceeds this with probability below 1e-300. */
enum { RISING_NODES_MAX = 1024, RISING_MEAN_MAX = 100 };

typedef struct rising_law {
    option_range x;
    double knots, alpha, gap, shape;
} rising_law;

/* The constants of the law, for a family's table. */
#define RISING_OPTIONS(S)                                                                          \
    OPTION_REAL(S, knots, "5", 0, RISING_MEAN_MAX, "mean number of inner knots (Poisson)"),        \
        OPTION_REAL(S, alpha, "1", 1e-2, 1e6, "Dirichlet concentration of the knots' gaps"),       \
        OPTION_REAL(S, gap, "0.01", 1e-9, 1e6, "least gap before normalisation"),                  \
        OPTION_REAL(S, shape, "2", 1e-2, 1e6, "Gamma shape of the rises between knots")

typedef struct rising {
    double x[RISING_NODES_MAX], y[RISING_NODES_MAX];
    double slope[RISING_NODES_MAX], area[RISING_NODES_MAX];
    pchip curve; /* points into the arrays above: not to be copied */
} rising;

/* N ~ Poisson(knots) inner knots. The N + 1 gaps between the ends of the range are Dirichlet(alpha)
 * plus `gap`, normalised; the values at the N + 2 nodes are cumulative Gamma(shape) rises; PCHIP in
 * between. */
void rising_draw(rng_stream *s, const rising_law *law, rising *out);

#endif
