/* rising.c: see rising.h. */
#include "data/rising.h"

#include <math.h>

/* w (count) ~ Dirichlet(alpha), as normalised Gammas; a draw that underflows is drawn again. */
static void dirichlet(rng_stream *s, double alpha, int64_t count, double *w) {
    double sum;
    do {
        sum = 0;
        for (int64_t i = 0; i < count; i++) sum += w[i] = rng_gamma(s, alpha);
    } while (!(sum > 0));
    for (int64_t i = 0; i < count; i++) w[i] /= sum;
}

void rising_make(rng_stream *s, const rising_opts *o, rising *out) {
    option_range range = o->common.x;
    int64_t inner;
    do inner = rng_poisson(s, o->knots);
    while (inner > RISING_NODES_MAX - 2);
    int64_t n = inner + 2;
    double *gaps = out->slope; /* free until the interpolant is made */
    dirichlet(s, o->alpha, n - 1, gaps);
    double total = 1 + o->gap * (double)(n - 1), span = range.hi - range.lo, sum = 0;
    out->x[0] = range.lo;
    for (int64_t k = 1; k < n; k++) {
        sum += (gaps[k - 1] + o->gap) / total;
        out->x[k] = range.lo + span * sum;
    }
    out->x[n - 1] = range.hi;
    double y = 0;
    for (int64_t k = 0; k < n; k++) out->y[k] = y += rng_gamma(s, o->shape);
    out->curve = (pchip){n, out->x, out->y, out->slope, out->area};
    pchip_make(&out->curve);
}

static void draw_one(const rising_opts *o, rising_values values, rng_stream s, rising *f, double *x,
                     double *y) {
    int64_t n = o->common.points;
    rising_make(&s, o, f);
    family_inputs(&s, o->common.x, n, x);
    values(o, &f->curve, &s, x, y);
    family_min_max(y, n);
    for (int64_t i = 0; o->noise > 0 && i < n; i++) y[i] += o->noise * rng_normal(&s);
}

mnp_status rising_draw(env *e, const rising_opts *o, rising_values values, uint64_t seed,
                       data_split split, int64_t first, int64_t count, float *x, float *y) {
    int64_t n = o->common.points;
    mnp_status status = MNP_ENOMEM;
    rising *f = env_alloc(e, 1, sizeof *f, "a function");
    double *xy = env_alloc(e, (size_t)(2 * n), sizeof *xy, "a function");
    if (!f || !xy) goto done;
    for (int64_t i = 0; i < count; i++) {
        draw_one(o, values, family_stream(seed, split, first + i, FAMILY_OWN), f, xy, xy + n);
        for (int64_t j = 0; j < n; j++) {
            x[i * n + j] = (float)xy[j];
            y[i * n + j] = (float)xy[n + j];
        }
    }
    status = MNP_OK;
done:
    env_free(e, f);
    env_free(e, xy);
    return status;
}

double rising_ceiling(const void *opts) {
    const double half_log_2pi_e = 1.41893853320467274178;
    double noise = ((const rising_opts *)opts)->noise;
    return noise > 0 ? -log(noise) - half_log_2pi_e : NAN;
}
