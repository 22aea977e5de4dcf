/* scores.c: normal scores: the map between an image's values and a standard normal variable.
 *
 * F(y) is the mean over training values v of Phi((y - v) / noise): exactly the distribution of a
 * noisy value. It is smooth, so u(y) = Phi^-1(F(y)) has a slope everywhere:
 * du/dy = F'(y) / phi(u). Both tails are summed for themselves, so u is exact far out. */
#include <math.h>
#include <string.h>

#include "lab/kriging/krige.h"

#define HALF_LOG_2PI 0.91893853320467274178

enum { CELLS = 1001 }; /* training values counted in cells over -1 .. 1, far finer than the noise */

/* The u with Phi(-u) = tail, 0 < tail <= 1/2. */
static double upper_quantile(double tail) {
    double lo = 0, hi = 40;
    for (int k = 0; k < 70; k++) {
        double mid = (lo + hi) / 2;
        if (0.5 * erfc(mid / sqrt(2.0)) > tail)
            lo = mid;
        else
            hi = mid;
    }
    return (lo + hi) / 2;
}

static double table_y(int64_t i) {
    return -KRIGE_EDGE + 2 * KRIGE_EDGE * (double)i / (KRIGE_TABLE - 1);
}

void krige_scores_make(const float *y, int64_t count, double noise, krige_scores *out) {
    double cells[CELLS] = {0};
    for (int64_t i = 0; i < count; i++) {
        double at = ((double)y[i] + 1) / 2 * (CELLS - 1) + 0.5;
        cells[(int)fmin(fmax(at, 0), CELLS - 1)] += 1 / (double)count;
    }
    for (int64_t i = 0; i < KRIGE_TABLE; i++) {
        double below = 0, above = 0, density = 0;
        for (int k = 0; k < CELLS; k++) {
            double z = (table_y(i) - (-1 + 2.0 * k / (CELLS - 1))) / noise;
            below += cells[k] * 0.5 * erfc(-z / sqrt(2.0));
            above += cells[k] * 0.5 * erfc(z / sqrt(2.0));
            density += cells[k] * exp(-z * z / 2 - HALF_LOG_2PI) / noise;
        }
        double tail = fmin(below, above);
        double u = tail > 0 ? upper_quantile(fmin(tail, 0.5)) : 40;
        out->u[i] = below < above ? -u : u;
        out->log_slope[i] = log(fmax(density, 1e-300)) + u * u / 2 + HALF_LOG_2PI;
    }
}

double krige_score_of(const krige_scores *s, double y, double *log_slope) {
    double at = (y + KRIGE_EDGE) / (2 * KRIGE_EDGE) * (KRIGE_TABLE - 1);
    at = fmin(fmax(at, 0), KRIGE_TABLE - 1.000001);
    int64_t i = (int64_t)at;
    double t = at - (double)i;
    if (log_slope) *log_slope = (1 - t) * s->log_slope[i] + t * s->log_slope[i + 1];
    return (1 - t) * s->u[i] + t * s->u[i + 1];
}

double krige_unscore(const krige_scores *s, double u) {
    int64_t lo = 0, hi = KRIGE_TABLE - 1;
    while (hi - lo > 1) {
        int64_t mid = (lo + hi) / 2;
        if (s->u[mid] <= u)
            lo = mid;
        else
            hi = mid;
    }
    double width = s->u[hi] - s->u[lo];
    double t = width > 0 ? fmin(fmax((u - s->u[lo]) / width, 0), 1) : 0;
    return (1 - t) * table_y(lo) + t * table_y(hi);
}
