/* meander_resample.c: nodes at even distances again.
 *
 * An interpolating cubic spline over the chord length u, "not-a-knot" at both ends, one for x and
 * one for y with the same matrix: with h_i = u_{i+1} - u_i, secants e_i and second derivatives M_i
 *
 *     h_{i-1} M_{i-1} + 2 (h_{i-1} + h_i) M_i + h_i M_{i+1} = 6 (e_i - e_{i-1}),  i = 1 .. n-2
 *     M_0 = (1 + h_0/h_1) M_1 - (h_0/h_1) M_2, and its mirror image at the other end
 *
 * which stays tridiagonal when M_0 and M_{n-1} are put in. The new line has 1 + round(s / ds0)
 * nodes at equal steps of u, where s is the length by central differences; its ends stay where they
 * are. */
#include <math.h>

#include "data/meander.h"

static const double TOO_NEAR = 1e-6; /* m: a node this close to the one before it is dropped */

/* Drops double nodes; fills u and h. */
static void chords(meander *m) {
    double *x = m->x, *y = m->y;
    int64_t kept = 1;
    m->u[0] = 0;
    for (int64_t i = 1; i < m->n; i++) {
        double dx = x[i] - x[kept - 1], dy = y[i] - y[kept - 1], h = sqrt(dx * dx + dy * dy);
        if (h <= TOO_NEAR) continue;
        x[kept] = x[i];
        y[kept] = y[i];
        m->h[kept - 1] = h;
        m->u[kept] = m->u[kept - 1] + h;
        kept++;
    }
    m->n = kept;
}

/* Mx, My (n): second derivatives at the nodes, by elimination without pivoting: the matrix is
 * diagonally dominant but for its first and last row, which are harmless. */
static void second_derivatives(meander *m) {
    int64_t n = m->n;
    const double *x = m->x, *y = m->y, *h = m->h;
    double *upper = m->upper, *Mx = m->Mx, *My = m->My;
    double first = h[0] / h[1], last = h[n - 2] / h[n - 3];
    double ex = (x[1] - x[0]) / h[0], ey = (y[1] - y[0]) / h[0];
    upper[0] = Mx[0] = My[0] = 0;
    for (int64_t i = 1; i <= n - 2; i++) {
        double below = i > 1 ? h[i - 1] : 0, diagonal = 2 * (h[i - 1] + h[i]), above = h[i];
        if (i == 1) {
            diagonal += h[0] * (1 + first);
            above -= h[0] * first;
        }
        if (i == n - 2) {
            diagonal += h[n - 2] * (1 + last);
            below -= h[n - 2] * last;
            above = 0;
        }
        double inverse = 1 / h[i], fx = (x[i + 1] - x[i]) * inverse,
               fy = (y[i + 1] - y[i]) * inverse;
        double pivot = 1 / (diagonal - below * upper[i - 1]);
        upper[i] = above * pivot;
        Mx[i] = (6 * (fx - ex) - below * Mx[i - 1]) * pivot;
        My[i] = (6 * (fy - ey) - below * My[i - 1]) * pivot;
        ex = fx;
        ey = fy;
    }
    for (int64_t i = n - 3; i >= 1; i--) {
        Mx[i] -= upper[i] * Mx[i + 1];
        My[i] -= upper[i] * My[i + 1];
    }
    Mx[0] = (1 + first) * Mx[1] - first * Mx[2];
    My[0] = (1 + first) * My[1] - first * My[2];
    Mx[n - 1] = (1 + last) * Mx[n - 2] - last * Mx[n - 3];
    My[n - 1] = (1 + last) * My[n - 2] - last * My[n - 3];
}

/* The spline at `count` equal steps into new_x, new_y. */
static void evaluate(meander *m, int64_t count) {
    int64_t last = m->n - 1, i = 0;
    const double *x = m->x, *y = m->y, *u = m->u, *Mx = m->Mx, *My = m->My;
    double width = u[last] / (double)(count - 1);
    for (int64_t k = 0; k < count; k++) {
        double at = width * (double)k;
        while (i < last - 1 && at > u[i + 1]) i++;
        double h = m->h[i], b = (at - u[i]) / h, a = 1 - b, sixth = h * h / 6;
        double ca = (a * a * a - a) * sixth, cb = (b * b * b - b) * sixth;
        m->new_x[k] = a * x[i] + b * x[i + 1] + (ca * Mx[i] + cb * Mx[i + 1]);
        m->new_y[k] = a * y[i] + b * y[i + 1] + (ca * My[i] + cb * My[i + 1]);
    }
    m->new_x[0] = x[0];
    m->new_y[0] = y[0];
    m->new_x[count - 1] = x[last];
    m->new_y[count - 1] = y[last];
}

static mnp_status degenerate(meander *m) {
    return env_fail(m->e, MNP_ENUMERIC,
                    "step %lld: the river has shrunk to a few nodes or grown to more than %d",
                    (long long)m->step, MEANDER_NODES_MAX);
}

static void swap(double **a, double **b) {
    double *t = *a;
    *a = *b;
    *b = t;
}

mnp_status meander_resample(meander *m) {
    double nodes = 1 + nearbyint(meander_arc(m) / m->o.ds0); /* half to even */
    if (!(nodes >= 4 && nodes <= MEANDER_NODES_MAX)) return degenerate(m);
    int64_t count = (int64_t)nodes;
    MNP_TRY(meander_reserve(m, count));
    chords(m);
    if (m->n < 4) return degenerate(m);
    second_derivatives(m);
    evaluate(m, count);
    swap(&m->x, &m->new_x);
    swap(&m->y, &m->new_y);
    m->n = count;
    return MNP_OK;
}
