/* test_natural.c: natural splines against what defines them: values at knots, lines outside, two
 * continuous derivatives, no curvature at the ends; a closed form; and rows of several inputs. */
#include "base/natural.h"

#include "base/rng.h"
#include "check.h"

enum { MOST = NATURAL_KNOTS_MAX, CASES = 100 };

static int32_t draw_knots(uint32_t i, double *knots) {
    rng_stream s = rng_stream_make((rng_key){9}, RNG_TEST, i);
    int32_t count = 1 + (int32_t)(i % MOST);
    double at = -3 + 2 * rng_u01(&s);
    for (int32_t k = 0; k < count; k++) knots[k] = at += 0.05 + rng_gamma(&s, 1);
    return count;
}

/* The spline with values sin(3 j) at the knots. */
static double value(const natural *s, double x) {
    double at[MOST], sum = 0;
    natural_at(s, x, at);
    for (int32_t j = 0; j < s->count; j++) sum += at[j] * sin(3.0 * j);
    return sum;
}

static void one_at_its_knot(void) {
    double knots[MOST], at[MOST];
    natural s;
    for (uint32_t i = 0; i < CASES; i++) {
        int32_t count = draw_knots(i, knots);
        natural_make(&s, knots, count);
        CHECK(s.count == count);
        for (int32_t k = 0; k < count; k++) {
            natural_at(&s, knots[k], at);
            for (int32_t j = 0; j < count; j++) NEAR(at[j], count == 1 || j == k ? 1 : 0, 1e-12, 0);
        }
    }
}

/* Constants and lines are splines themselves: so the l_j sum to one, and k_j l_j to x. */
static void keeps_lines(void) {
    double knots[MOST], at[MOST];
    natural s;
    for (uint32_t i = 0; i < CASES; i++) {
        int32_t count = draw_knots(i, knots);
        natural_make(&s, knots, count);
        for (double x = knots[0] - 2; x < knots[count - 1] + 2; x += 0.37) {
            double one = 0, line = 0;
            natural_at(&s, x, at);
            for (int32_t j = 0; j < count; j++) one += at[j], line += knots[j] * at[j];
            NEAR(one, 1, 1e-11, 0);
            if (count > 1) NEAR(line, x, 1e-11, 0);
        }
    }
}

/* Slope and curvature from both sides of every knot, by differences that are exact for a cubic. */
static void two_derivatives(void) {
    double knots[MOST];
    natural s;
    for (uint32_t i = 0; i < CASES; i++) {
        int32_t count = draw_knots(i, knots);
        natural_make(&s, knots, count);
        for (int32_t k = 0; k < count && count > 1; k++) {
            double slope[2], bend[2], x = knots[k];
            for (int side = 0; side < 2; side++) {
                double h = side ? 1e-2 : -1e-2, f[4];
                for (int j = 0; j < 4; j++) f[j] = value(&s, x + j * h);
                slope[side] = (-11 * f[0] + 18 * f[1] - 9 * f[2] + 2 * f[3]) / (6 * h);
                bend[side] = (2 * f[0] - 5 * f[1] + 4 * f[2] - f[3]) / (h * h);
            }
            NEAR(slope[0], slope[1], 1e-8, 1e-8);
            NEAR(bend[0], bend[1], 1e-7, 1e-7);
            if (k == 0 || k == count - 1) NEAR(bend[1], 0, 1e-7, 0);
        }
    }
}

/* 1 at 0, 0 at -1 and 1: s = 1 - (3 x^2 - |x|^3) / 2 inside, slopes of 3/2 outside. */
static void closed_form(void) {
    const double knots[] = {-1, 0, 1};
    double at[3];
    natural s;
    natural_make(&s, knots, 3);
    for (double x = -2; x <= 2; x += 0.25) {
        double a = fabs(x);
        natural_at(&s, x, at);
        NEAR(at[1], a > 1 ? 1.5 - 1.5 * a : 1 - (3 * a * a - a * a * a) / 2, 1e-15, 0);
    }
}

static void knots_that_do_not_rise(void) {
    const double repeated[] = {0, 1, 1, 1}, falling[] = {0, -1, 2}, nan[] = {0, NAN, 1};
    natural s;
    natural_make(&s, repeated, 4);
    CHECK(s.count == 2);
    natural_make(&s, falling, 3);
    CHECK(s.count == 1);
    natural_make(&s, nan, 3);
    CHECK(s.count == 1);
}

/* Input 0 with three knots, input 1 with two, room for four: columns 1, two and a zero, one and two
 * zeros. */
static void rows(void) {
    const double first[] = {-1, 0, 1, 1}, second[] = {0, 4, 4, 4}, x[] = {0.25, 3};
    natural inputs[2];
    double out[7], at[3];
    natural_make(&inputs[0], first, 4);
    natural_make(&inputs[1], second, 4);
    CHECK(natural_columns(2, 4) == 7);
    natural_row(inputs, 2, 4, x, out);
    natural_at(&inputs[0], 0.25, at);
    const double want[] = {1, at[1], at[2], 0, 0.75, 0, 0};
    for (int j = 0; j < 7; j++) NEAR(out[j], want[j], 1e-15, 0);
}

int main(void) {
    RUN(one_at_its_knot);
    RUN(keeps_lines);
    RUN(two_derivatives);
    RUN(closed_form);
    RUN(knots_that_do_not_rise);
    RUN(rows);
    return check_done();
}
