/* test_pchip.c: properties of the monotone interpolant that hold for any nodes: it passes through
 * them, rises where they rise, has one slope at a node, and its integral is the integral. */
#include "data/pchip.h"

#include "base/rng.h"
#include "check.h"

enum { MOST = 12, CASES = 300 };

typedef struct nodes {
    double x[MOST], y[MOST], slope[MOST], area[MOST];
    pchip p;
} nodes;

static void draw(uint32_t i, bool rising, nodes *f) {
    rng_stream s = rng_stream_make((rng_key){8}, RNG_TEST, i);
    int64_t n = 2 + (int64_t)rng_below(&s, MOST - 1);
    double x = -2, y = 0;
    for (int64_t k = 0; k < n; k++) {
        f->x[k] = x += 0.01 + rng_gamma(&s, 0.5);
        f->y[k] = y += rising ? rng_gamma(&s, 2) : rng_normal(&s);
    }
    f->p = (pchip){n, f->x, f->y, f->slope, f->area};
    pchip_make(&f->p);
}

static void passes_through_the_nodes(void) {
    static nodes f;
    for (uint32_t i = 0; i < CASES; i++) {
        draw(i, i % 2, &f);
        for (int64_t k = 0; k < f.p.n; k++) NEAR(pchip_value(&f.p, f.x[k]), f.y[k], 1e-11, 1e-12);
    }
}

static void keeps_the_shape(void) {
    static nodes f;
    for (uint32_t i = 0; i < CASES; i++) {
        draw(i, true, &f);
        double before = -INFINITY, last = f.x[f.p.n - 1];
        for (int k = 0; k <= 500; k++) {
            double v = pchip_value(&f.p, f.x[0] + (last - f.x[0]) * k / 500);
            CHECK(v >= before - 1e-12);
            before = v;
        }
    }
}

static void slopes_agree_at_nodes(void) {
    static nodes f;
    const double h = 1e-6;
    for (uint32_t i = 0; i < CASES; i++) {
        draw(i, i % 2, &f);
        for (int64_t k = 1; k + 1 < f.p.n; k++) {
            double v = f.y[k], w0 = f.x[k] - f.x[k - 1], w1 = f.x[k + 1] - f.x[k];
            double m0 = (v - f.y[k - 1]) / w0, m1 = (f.y[k + 1] - v) / w1;
            double left = (v - pchip_value(&f.p, f.x[k] - h)) / h;
            double right = (pchip_value(&f.p, f.x[k] + h) - v) / h;
            /* |y''| <= 12 max|m| / width, since no slope exceeds three secants; times h / 2 */
            double tol = 8 * h * fmax(fabs(m0), fabs(m1)) / fmin(w0, w1) + 1e-7;
            NEAR(left, f.slope[k], tol, 0);
            NEAR(right, f.slope[k], tol, 0);
        }
    }
}

/* Simpson's rule is exact on each cubic. */
static void integral_is_the_integral(void) {
    static nodes f;
    for (uint32_t i = 0; i < CASES; i++) {
        draw(i, i % 2, &f);
        double sum = 0;
        for (int64_t k = 0; k + 1 < f.p.n; k++) {
            double a = f.x[k], b = f.x[k + 1], c = a + 0.3 * (b - a);
            double part =
                (c - a) / 6 * (f.y[k] + 4 * pchip_value(&f.p, (a + c) / 2) + pchip_value(&f.p, c));
            NEAR(pchip_integral(&f.p, c), sum + part, 1e-10, 1e-10);
            sum += (b - a) / 6 * (f.y[k] + 4 * pchip_value(&f.p, (a + b) / 2) + f.y[k + 1]);
            NEAR(pchip_integral(&f.p, b), sum, 1e-10, 1e-10);
        }
    }
}

static void two_nodes_are_a_line(void) {
    double x[2] = {0, 2}, y[2] = {1, 5}, slope[2], area[2];
    pchip p = {2, x, y, slope, area};
    pchip_make(&p);
    CHECK(slope[0] == 2 && slope[1] == 2);
    NEAR(pchip_value(&p, 0.5), 2, 1e-15, 0);
    NEAR(pchip_value(&p, 3), 7, 1e-14, 0); /* goes on */
    NEAR(pchip_integral(&p, 2), 6, 1e-15, 0);
}

int main(void) {
    RUN(passes_through_the_nodes);
    RUN(keeps_the_shape);
    RUN(slopes_agree_at_nodes);
    RUN(integral_is_the_integral);
    RUN(two_nodes_are_a_line);
    return check_done();
}
