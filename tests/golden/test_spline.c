/* test_spline.c: the spline against values and gradients of an independent implementation
 * (spline.json: own numpy code in float64, its gradients checked against automatic
 * differentiation): knots, both directions with tails and knots among the points, gradients.
 *
 * Double precision must agree to 1e-10. Single precision is allowed what its conditioning costs:
 * values 2e-5 times the slope, log-derivatives 5e-4, and 1e-2 in the case with wild parameters,
 * where they change by thousands per unit next to narrow bins. */
#include "backend/cpu/kernels.h"
#include "check.h"
#include "op/rqs_math.h"
#include "util/json.h"

static env world;
static json_doc *doc;

enum { COLS = 64 }; /* row stride of raw */

typedef struct golden {
    const json_value *json;
    rqs_opts o;
    int32_t K;
    double raw[COLS];
    rqs_spline f;
    double tol_log; /* single precision */
} golden;

static double number(const json_value *v, const char *key) {
    double x = NAN;
    CHECK(json_number(&world, json_get(v, key), key, &x) == MNP_OK);
    return x;
}

static void numbers(const json_value *v, const char *key, double *out, int32_t count) {
    CHECK(json_numbers(&world, json_get(v, key), key, out, (size_t)count) == MNP_OK);
}

static golden load(size_t i) {
    golden g = {.json = json_at(json_get(json_root(doc), "cases"), i)};
    const char *name = "";
    CHECK(json_string(&world, json_get(g.json, "name"), "name", &name) == MNP_OK);
    CASE(name);
    g.K = (int32_t)number(g.json, "K");
    g.o = (rqs_opts){g.K, number(g.json, "B"), number(g.json, "min_width"),
                     number(g.json, "min_height"), number(g.json, "min_derivative")};
    numbers(g.json, "raw_widths", g.raw, g.K);
    numbers(g.json, "raw_heights", g.raw + g.K, g.K);
    numbers(g.json, "raw_derivatives", g.raw + 2 * g.K, g.K - 1);
    rqs_build(&g.o, g.raw, &g.f);
    g.tol_log = strstr(name, "wild") ? 1e-2 : 5e-4;
    return g;
}

static size_t n_cases(void) {
    return json_get(json_root(doc), "cases")->count;
}

/* ---- double precision ------------------------------------------------------------------------ */

static void knots(void) {
    for (size_t i = 0; i < n_cases(); i++) {
        golden g = load(i);
        double x[RQS_BINS_MAX + 1], y[RQS_BINS_MAX + 1], d[RQS_BINS_MAX + 1];
        numbers(g.json, "knots_x", x, g.K + 1);
        numbers(g.json, "knots_y", y, g.K + 1);
        numbers(g.json, "knots_d", d, g.K + 1);
        for (int32_t k = 0; k <= g.K; k++) {
            NEAR(g.f.x[k], x[k], 1e-13, 0);
            NEAR(g.f.y[k], y[k], 1e-13, 0);
            NEAR(g.f.d[k], d[k], 1e-13, 1e-13);
        }
        CHECK(g.f.x[g.K] == g.o.bound && g.f.y[g.K] == g.o.bound);
    }
}

static void values_in_double(void) {
    for (size_t i = 0; i < n_cases(); i++) {
        golden g = load(i);
        const json_value *points = json_get(g.json, "points");
        for (size_t p = 0; p < points->count; p++) {
            const json_value *at = json_at(points, p);
            double v = number(at, "v");
            rqs_place a = rqs_place_x(&g.f, v), b = rqs_place_y(&g.f, v);
            CHECK(a.inside == (number(at, "fwd_bin") >= 0));
            CHECK(b.inside == (number(at, "inv_bin") >= 0));
            NEAR(a.inside ? rqs_y_of(&g.f, &a) : v, number(at, "fwd"), 1e-10, 0);
            NEAR(a.inside ? rqs_log_slope(&a) : 0, number(at, "fwd_logderiv"), 1e-10, 0);
            NEAR(b.inside ? rqs_x_of(&g.f, &b) : v, number(at, "inv"), 1e-10, 0);
            NEAR(b.inside ? -rqs_log_slope(&b) : 0, number(at, "inv_logderiv"), 1e-10, 0);
        }
    }
}

/* ---- single precision: the kernels of every instruction set ---------------------------------- */

static const char *const isas[] = {"avx512", "avx2", "base"};

/* One call of the kernels on `rows` points that share the case's raw numbers. */
enum { ROWS = 64 };
typedef struct batch {
    float y[ROWS], raw[ROWS * COLS], out[ROWS], logdet[ROWS], up[ROWS], up_log[ROWS];
    float gy[ROWS], graw[ROWS * COLS];
    rqs_args args;
} batch;

static void prepare(batch *b, const golden *g, bool by_y, int64_t rows) {
    int64_t ld = (3 * g->K - 1 + 15) / 16 * 16;
    memset(b, 0, sizeof *b);
    for (int64_t r = 0; r < rows; r++)
        for (int32_t c = 0; c < 3 * g->K - 1; c++) b->raw[r * ld + c] = (float)g->raw[c];
    b->args = (rqs_args){.rows = rows,
                         .bins = g->K,
                         .by_y = by_y,
                         .bound = (float)g->o.bound,
                         .min_width = (float)g->o.min_width,
                         .min_height = (float)g->o.min_height,
                         .min_derivative = (float)g->o.min_derivative,
                         .room_x = (float)g->f.room_x,
                         .room_y = (float)g->f.room_y,
                         .y = b->y,
                         .raw = b->raw,
                         .ldr = ld,
                         .out = b->out,
                         .logdet_out = b->logdet};
}

static void check_points(const cpu_kernels *k, const golden *g, bool by_y) {
    static batch b;
    const json_value *points = json_get(g->json, "points");
    prepare(&b, g, by_y, (int64_t)points->count);
    for (size_t p = 0; p < points->count; p++) b.y[p] = (float)number(json_at(points, p), "v");
    k->rqs(&b.args);
    for (size_t p = 0; p < points->count; p++) {
        const json_value *at = json_at(points, p);
        double log_slope = number(at, by_y ? "inv_logderiv" : "fwd_logderiv");
        NEAR(b.out[p], number(at, by_y ? "inv" : "fwd"), 2e-5 * fmax(1, exp(log_slope)), 0);
        NEAR(b.logdet[p], log_slope, g->tol_log, 0);
    }
}

static void values_in_single(void) {
    for (size_t j = 0; j < sizeof isas / sizeof *isas; j++) {
        const cpu_kernels *k = cpu_kernels_best(isas[j]);
        for (size_t i = 0; k && i < n_cases(); i++) {
            golden g = load(i);
            check_points(k, &g, false);
            check_points(k, &g, true);
        }
    }
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* The gradient of the entry `at` in double precision. */
static double gradient(const golden *g, const json_value *at, bool by_y, double *graw) {
    double v = number(at, "v"), G = number(at, "gout"), H = number(at, "glog");
    rqs_place a = by_y ? rqs_place_y(&g->f, v) : rqs_place_x(&g->f, v);
    if (!a.inside) return G;
    rqs_partials y, L, q;
    rqs_derive(&a, &y, &L);
    double E = (G - H * L.x) / y.x, wy = by_y ? -E : G, wl = by_y ? -H : H;
    q = (rqs_partials){.xk = wy * y.xk + wl * L.xk,
                       .yk = wy * y.yk + wl * L.yk,
                       .w = wy * y.w + wl * L.w,
                       .h = wy * y.h + wl * L.h,
                       .d0 = wy * y.d0 + wl * L.d0,
                       .d1 = wy * y.d1 + wl * L.d1};
    rqs_raw_grad(&g->f, a.k, &q, graw);
    return by_y ? E : G * y.x + H * L.x;
}

static void expected_raw(const golden *g, const json_value *at, double *want) {
    numbers(at, "grad_raw_widths", want, g->K);
    numbers(at, "grad_raw_heights", want + g->K, g->K);
    numbers(at, "grad_raw_derivatives", want + 2 * g->K, g->K - 1);
}

static bool is_inverse(const json_value *at) {
    bool inverse = false;
    CHECK(json_bool(&world, json_get(at, "inverse"), "inverse", &inverse) == MNP_OK);
    return inverse;
}

static void gradients_in_double(void) {
    for (size_t i = 0; i < n_cases(); i++) {
        golden g = load(i);
        const json_value *grads = json_get(g.json, "grads");
        for (size_t p = 0; p < grads->count; p++) {
            const json_value *at = json_at(grads, p);
            double want[COLS] = {0}, got[COLS] = {0};
            expected_raw(&g, at, want);
            NEAR(gradient(&g, at, is_inverse(at), got), number(at, "grad_in"), 1e-10, 1e-10);
            for (int32_t c = 0; c < 3 * g.K - 1; c++) NEAR(got[c], want[c], 1e-10, 1e-10);
        }
    }
}

static void check_gradient(const cpu_kernels *k, const golden *g, const json_value *at) {
    static batch b;
    double want[COLS] = {0}, largest = fabs(number(at, "grad_in")), tol = g->tol_log;
    expected_raw(g, at, want);
    for (int32_t c = 0; c < 3 * g->K - 1; c++) largest = fmax(largest, fabs(want[c]));
    prepare(&b, g, is_inverse(at), 1);
    b.y[0] = (float)number(at, "v");
    b.up[0] = (float)number(at, "gout"), b.up_log[0] = (float)number(at, "glog");
    k->rqs_grad(&(rqs_grad_args){
        .map = b.args, .up = b.up, .up_log = b.up_log, .gy = b.gy, .graw = b.graw});
    NEAR(b.gy[0], number(at, "grad_in"), tol * largest, 0);
    for (int32_t c = 0; c < (int32_t)b.args.ldr; c++) NEAR(b.graw[c], want[c], tol * largest, 0);
}

static void gradients_in_single(void) {
    for (size_t j = 0; j < sizeof isas / sizeof *isas; j++) {
        const cpu_kernels *k = cpu_kernels_best(isas[j]);
        for (size_t i = 0; k && i < n_cases(); i++) {
            golden g = load(i);
            const json_value *grads = json_get(g.json, "grads");
            for (size_t p = 0; p < grads->count; p++) check_gradient(k, &g, json_at(grads, p));
        }
    }
}

int main(void) {
    env_init(&world);
    if (json_read(&world, "tests/golden/spline.json", 1 << 20, &doc) != MNP_OK) {
        fprintf(stderr, "%s\n", world.error);
        return 1;
    }
    RUN(knots);
    RUN(values_in_double);
    RUN(values_in_single);
    RUN(gradients_in_double);
    RUN(gradients_in_single);
    json_destroy(doc);
    return check_done();
}
