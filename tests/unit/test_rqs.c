/* test_rqs.c: properties of the spline map that hold for any parameters: finite for finite input
 * however extreme, NaN in gives NaN out, monotone, both directions undo each other. */
#include <float.h>

#include "backend/cpu/kernels.h"
#include "base/rng.h"
#include "check.h"
#include "op/rqs_math.h"

enum { K = 10, COLS = 3 * K - 1, LD = 32, ROWS = 37 };
static const rqs_opts opts = {K, 5.0, 1e-3, 1e-3, 1e-3};
static const char *const isas[] = {"avx512", "avx2", "base"};

static float y[ROWS], raw[ROWS * LD], up[ROWS], up_log[ROWS];
static float out[ROWS], logdet[ROWS], gy[ROWS], graw[ROWS * LD], glogdet[ROWS];

static rqs_args args(bool by_y) {
    const double room = 2 * opts.bound * (1 - K * opts.min_width);
    return (rqs_args){.rows = ROWS,
                      .bins = K,
                      .by_y = by_y,
                      .bound = (float)opts.bound,
                      .min_width = (float)opts.min_width,
                      .min_height = (float)opts.min_height,
                      .min_derivative = (float)opts.min_derivative,
                      .room_x = (float)room,
                      .room_y = (float)room,
                      .y = y,
                      .raw = raw,
                      .ldr = LD,
                      .out = out,
                      .logdet_out = logdet};
}

static rqs_grad_args grad_args(bool by_y) {
    return (rqs_grad_args){
        .map = args(by_y), .up = up, .up_log = up_log, .gy = gy, .graw = graw, .glogdet = glogdet};
}

static void fill(rng_stream *s, double spread) {
    static const float odd[] = {0,      -5,         5,     4.9999995f, -4.9999995f,
                                1e-38f, 5.0000005f, 1e30f, -1e30f};
    for (int i = 0; i < ROWS; i++) {
        uint64_t pick = rng_below(s, 18);
        y[i] = pick < 9 ? odd[pick] : (float)(3 * rng_normal(s));
        up[i] = (float)rng_normal(s), up_log[i] = (float)rng_normal(s);
        for (int c = 0; c < COLS; c++) {
            uint64_t kind = rng_below(s, 4);
            double sign = rng_below(s, 2) ? 1 : -1;
            raw[i * LD + c] = (float)(kind == 0 ? sign * spread : spread * rng_normal(s));
        }
    }
}

/* Moves a third of the points onto a knot of their own spline. */
static void put_on_knots(rng_stream *s, bool by_y) {
    for (int i = 0; i < ROWS; i += 3) {
        double r[COLS];
        rqs_spline f;
        for (int c = 0; c < COLS; c++) r[c] = (double)raw[i * LD + c];
        rqs_build(&opts, r, &f);
        y[i] = (float)(by_y ? f.y : f.x)[rng_below(s, K + 1)];
    }
}

static bool all_finite(const float *x, int count) {
    for (int i = 0; i < count; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

static const double spreads[] = {0, 1, 30, 1e4, 1e12, (double)FLT_MAX / 16};
enum { SPREADS = sizeof spreads / sizeof *spreads };

static void finite_in_single(void) {
    rng_stream s = rng_stream_make((rng_key){1}, RNG_TEST, 0);
    for (int j = 0; j < 3; j++) {
        const cpu_kernels *k = cpu_kernels_best(isas[j]);
        for (int round = 0; k && round < 400; round++) {
            bool by_y = round % 2;
            fill(&s, spreads[round / 2 % SPREADS]);
            put_on_knots(&s, by_y);
            rqs_args a = args(by_y);
            k->rqs(&a);
            rqs_grad_args g = grad_args(by_y);
            k->rqs_grad(&g);
            CHECK(all_finite(out, ROWS) && all_finite(logdet, ROWS));
            CHECK(all_finite(gy, ROWS) && all_finite(graw, ROWS * LD));
            for (int i = 0; i < ROWS; i++)
                if (fabsf(y[i]) > 5) CHECK(out[i] == y[i] && logdet[i] == 0 && gy[i] == up[i]);
        }
    }
}

static void finite_in_double(void) {
    rng_stream s = rng_stream_make((rng_key){2}, RNG_TEST, 0);
    for (int round = 0; round < 400; round++) {
        fill(&s, spreads[round / 2 % SPREADS]);
        put_on_knots(&s, round % 2);
        for (int i = 0; i < ROWS; i++) {
            double r[COLS], dr[COLS] = {0};
            rqs_spline f;
            for (int c = 0; c < COLS; c++) r[c] = (double)raw[i * LD + c];
            rqs_build(&opts, r, &f);
            double v = (double)y[i];
            rqs_place a = round % 2 ? rqs_place_y(&f, v) : rqs_place_x(&f, v);
            if (!a.inside) continue;
            rqs_partials dy, dL;
            rqs_derive(&a, &dy, &dL);
            rqs_raw_grad(&f, a.k, &dy, dr);
            rqs_raw_grad(&f, a.k, &dL, dr);
            CHECK(isfinite(rqs_y_of(&f, &a)) && isfinite(rqs_x_of(&f, &a)));
            CHECK(isfinite(rqs_log_slope(&a)) && isfinite(dL.x / dy.x));
            for (int c = 0; c < COLS; c++) CHECK(isfinite(dr[c]));
        }
    }
}

static void nan_stays_visible(void) {
    rng_stream s = rng_stream_make((rng_key){3}, RNG_TEST, 0);
    for (int j = 0; j < 3; j++) {
        const cpu_kernels *k = cpu_kernels_best(isas[j]);
        for (int by_y = 0; k && by_y < 2; by_y++) {
            fill(&s, 1);
            y[0] = y[20] = NAN;
            rqs_args a = args(by_y);
            k->rqs(&a);
            CHECK(isnan(out[0]) && isnan(logdet[0]) && isnan(out[20]) && isnan(logdet[20]));
            CHECK(!isnan(out[1]) && !isnan(out[19]));
        }
    }
}

/* |f(f^-1(y)) - y| <= 1e-5 (1 + g / 20): rounding x once is multiplied by the slope g. */
static void single_round_trip(void) {
    rng_stream s = rng_stream_make((rng_key){4}, RNG_TEST, 0);
    static float x[ROWS];
    for (int j = 0; j < 3; j++) {
        const cpu_kernels *k = cpu_kernels_best(isas[j]);
        for (int round = 0; k && round < 300; round++) {
            fill(&s, 0.5 + 2.5 * (round % 6) / 5);
            rqs_args a = args(true);
            k->rqs(&a);
            memcpy(x, out, sizeof x);
            a = args(false);
            a.y = x;
            k->rqs(&a);
            for (int i = 0; i < ROWS; i++)
                NEAR(out[i], y[i], 1e-5 * (1 + exp((double)logdet[i]) / 20), 0);
        }
    }
}

static void double_round_trip_and_order(void) {
    rng_stream s = rng_stream_make((rng_key){5}, RNG_TEST, 0);
    for (int round = 0; round < 200; round++) {
        double r[COLS], last = -INFINITY;
        rqs_spline f;
        for (int c = 0; c < COLS; c++) r[c] = (1 + round % 4) * rng_normal(&s);
        rqs_build(&opts, r, &f);
        for (int i = 0; i <= 200; i++) {
            double v = -5 + i * 0.05;
            v = v > 5 ? 5 : v;
            rqs_place b = rqs_place_y(&f, v);
            double x = rqs_x_of(&f, &b);
            rqs_place a = rqs_place_x(&f, x);
            NEAR(rqs_y_of(&f, &a), v, 1e-10, 0);
            CHECK(x > last);
            last = x;
        }
    }
}

/* The same bits wherever a point stands in its block, and added where asked. */
static void place_and_accumulation(void) {
    rng_stream s = rng_stream_make((rng_key){6}, RNG_TEST, 0);
    for (int j = 0; j < 3; j++) {
        const cpu_kernels *k = cpu_kernels_best(isas[j]);
        if (!k) continue;
        fill(&s, 1);
        rqs_grad_args g = grad_args(false);
        k->rqs_grad(&g);
        static float once[ROWS * LD], row[LD];
        memcpy(once, graw, sizeof once);
        g.acc_raw = true;
        k->rqs_grad(&g);
        for (int i = 0; i < ROWS * LD; i++) CHECK(graw[i] == 2 * once[i]);
        float one_y = y[20], G = up[20], H = up_log[20], d = 0;
        g = grad_args(false);
        g.map.rows = 1, g.map.y = &one_y, g.map.raw = raw + 20 * LD;
        g.up = &G, g.up_log = &H, g.gy = &d, g.graw = row, g.glogdet = NULL;
        k->rqs_grad(&g);
        CHECK(d == gy[20] && memcmp(row, once + 20 * LD, sizeof row) == 0);
    }
}

int main(void) {
    RUN(finite_in_single);
    RUN(finite_in_double);
    RUN(nan_stays_visible);
    RUN(single_round_trip);
    RUN(double_round_trip_and_order);
    RUN(place_and_accumulation);
    return check_done();
}
