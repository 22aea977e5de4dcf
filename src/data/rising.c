/* rising.c: see rising.h. */
#include "data/rising.h"

/* w (count) ~ Dirichlet(alpha), as normalised Gammas; a draw that underflows is drawn again. */
static void dirichlet(rng_stream *s, double alpha, int64_t count, double *w) {
    double sum;
    do {
        sum = 0;
        for (int64_t i = 0; i < count; i++) sum += w[i] = rng_gamma(s, alpha);
    } while (!(sum > 0));
    for (int64_t i = 0; i < count; i++) w[i] /= sum;
}

void rising_draw(rng_stream *s, const rising_law *law, rising *out) {
    int64_t inner;
    do inner = rng_poisson(s, law->knots);
    while (inner > RISING_NODES_MAX - 2);
    int64_t n = inner + 2;
    double *gaps = out->slope; /* free until the interpolant is made */
    dirichlet(s, law->alpha, n - 1, gaps);
    double total = 1 + law->gap * (double)(n - 1), span = law->x.hi - law->x.lo, sum = 0;
    out->x[0] = law->x.lo;
    for (int64_t k = 1; k < n; k++) {
        sum += (gaps[k - 1] + law->gap) / total;
        out->x[k] = law->x.lo + span * sum;
    }
    out->x[n - 1] = law->x.hi;
    double y = 0;
    for (int64_t k = 0; k < n; k++) out->y[k] = y += rng_gamma(s, law->shape);
    out->curve = (pchip){n, out->x, out->y, out->slope, out->area};
    pchip_make(&out->curve);
}
