/* meander_migrate.c: the sideways motion of the nodes.
 *
 *     kappa  = (x' y'' - y' x'') / (x'^2 + y'^2)^(3/2)             G: central differences by index,
 *     R0_i   = kl W kappa_i                                        one-sided at the ends;
 *     R1_i   = S^e (Omega R0_i + Gamma A_i / B_i)                  x' = G x, x'' = G G x
 *     A_i    = sum_j R0_{i-j} exp(-alpha sigma_ij),  B_i = sum_j exp(-alpha sigma_ij)
 *
 * sigma_ij is the distance upstream from node i to node i - j, so both sums follow from those of
 * node i - 1 by one factor exp(-alpha ds_{i-1}): the cost is linear. A positive rate moves the line
 * to the right of the flow, which is outwards in a left turn. */
#include <math.h>

#include "data/meander.h"
#include "data/meander_math.h"

static const double YEAR = 365.0 * 24 * 3600; /* s */

/* d = G f. */
static void difference(const double *f, int64_t n, double *d) {
    d[0] = f[1] - f[0];
    for (int64_t i = 1; i + 1 < n; i++) d[i] = (f[i + 1] - f[i - 1]) / 2;
    d[n - 1] = f[n - 1] - f[n - 2];
}

/* Fills dx, dy, ds and R0; returns s_{n-1}. */
static double nominal_rates(meander *m) {
    int64_t n = m->n;
    double *dx = m->dx, *dy = m->dy, *ds = m->ds, *R0 = m->R0, *ddx = m->Mx, *ddy = m->My, s = 0;
    difference(m->x, n, dx);
    difference(m->y, n, dy);
    difference(dx, n, ddx);
    difference(dy, n, ddy);
    double rate = m->o.kl / YEAR * m->o.W;
    for (int64_t i = 0; i < n; i++) {
        double square = dx[i] * dx[i] + dy[i] * dy[i];
        ds[i] = sqrt(square);
        R0[i] = rate * ((dx[i] * ddy[i] - dy[i] * ddx[i]) / (square * ds[i]));
    }
    for (int64_t i = 1; i < n; i++) s += ds[i];
    return s;
}

mnp_status meander_migrate(meander *m) {
    const meander_opts *o = &m->o;
    int64_t n = m->n, last = n - o->pad - 1;
    double s = nominal_rates(m);
    m->sinuosity = s / (m->x[n - 1] - m->x[0]);
    if (!(m->sinuosity > 0) || !isfinite(m->sinuosity))
        return env_fail(m->e, MNP_ENUMERIC, "step %lld: the river's line is no longer finite",
                        (long long)m->step);
    double factor = meander_exp(o->sinuosity_exponent * meander_log(m->sinuosity));
    double alpha = 2 * o->k * o->Cf / o->D;
    double seconds = o->dt * YEAR, A = m->R0[0], B = 1;
    for (int64_t i = 0; i < n; i++) {
        if (i > 0) {
            double q = meander_exp(-alpha * m->ds[i - 1]);
            A = m->R0[i] + q * A;
            B = 1 + q * B;
        }
        bool moves = i >= o->pad1 && i <= last;
        m->R1[i] = moves ? factor * (o->Omega * m->R0[i] + o->Gamma * (A / B)) : 0;
    }
    for (int64_t i = o->pad1; i <= last; i++) {
        double step = seconds * m->R1[i] / m->ds[i];
        m->x[i] += step * m->dy[i];
        m->y[i] -= step * m->dx[i];
    }
    return MNP_OK;
}
