/* mixed_math.c: see mixed_math.h. */
#include "base/mixed_math.h"

#include <math.h>
#include <string.h>

#include "base/linalg.h"

#define HALF_LOG_2PI 0.91893853320467274178

static int32_t width(const mixed_law *law) {
    return law->p + law->r;
}

/* out = A^T v / scale, A (n, n) */
static void transposed(const double *a, int32_t n, const double *v, double scale, double *out) {
    memset(out, 0, (size_t)n * sizeof *out);
    for (int32_t i = 0; i < n; i++) {
        if (v[i] == 0) continue; /* splines are local, and columns may not be in use */
        for (int32_t j = 0; j < n; j++) out[j] += v[i] / scale * a[i * n + j];
    }
}

double mixed_row(const mixed_law *law, const double *h, double *g) {
    double mean = 0;
    for (int32_t i = 0; i < law->p; i++) mean += h[i] * law->mean[i];
    transposed(law->spread, law->p, h, law->noise, g);
    transposed(law->curve, law->r, h + law->p, law->noise, g + law->p);
    return mean;
}

void mixed_start(const mixed_law *law, mixed_seen *seen) {
    int64_t R = width(law);
    memset(seen->l, 0, (size_t)(R * R) * sizeof(double));
    memset(seen->w, 0, (size_t)R * sizeof(double));
    for (int64_t i = 0; i < R; i++) seen->l[i * R + i] = 1;
    seen->squares = 0;
    seen->count = 0;
}

void mixed_add(const mixed_law *law, mixed_seen *seen, const double *g, double d) {
    int64_t R = width(law);
    for (int64_t i = 0; i < R; i++) {
        if (g[i] == 0) continue;
        for (int64_t j = 0; j <= i; j++) seen->l[i * R + j] += g[i] * g[j];
        seen->w[i] += g[i] * d;
    }
    seen->squares += d * d;
    seen->count++;
}

double mixed_solve(const mixed_law *law, mixed_seen *seen) {
    int64_t R = width(law);
    if (linalg_cholesky(seen->l, R, R) != 0) return NAN;
    linalg_solve_lower(seen->l, R, R, seen->w, 1, 1);
    double known = 0, logdet = 0;
    for (int64_t i = 0; i < R; i++) {
        known += seen->w[i] * seen->w[i];
        logdet += log(seen->l[i * R + i]);
    }
    return -0.5 * (seen->squares - known) - logdet -
           (double)seen->count * (log(law->noise) + HALF_LOG_2PI);
}

double mixed_given(const mixed_law *law, const mixed_seen *seen, double *g) {
    int64_t R = width(law);
    double sum = 0;
    linalg_solve_lower(seen->l, R, R, g, 1, 1);
    for (int64_t i = 0; i < R; i++) sum += g[i] * seen->w[i];
    return sum;
}

double mixed_knee_to(double y, double knee) {
    return knee > 0 ? asinh(y / knee) : y;
}

double mixed_knee_from(double u, double knee) {
    enum { FAR = 80 }; /* its sinh is a number in single precision too */
    return knee > 0 ? knee * sinh(fmax(-FAR, fmin(FAR, u))) : u;
}

double mixed_knee_slope(double y, double knee) {
    return knee > 0 ? -log(hypot(y, knee)) : 0;
}

double mixed_log_sum(const double *a, int64_t count) {
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(a[i])) return NAN;
        if (a[i] > top) top = a[i];
    }
    if (!isfinite(top)) return top;
    for (int64_t i = 0; i < count; i++) sum += exp(a[i] - top);
    return top + log(sum);
}
