/* test_mixed.c: the mixed model against another library (mixed.json: statsmodels' MixedLM on curves
 * simulated there, basis by scipy): log-likelihoods, fixed effects and their covariance, variance
 * components and fitted values, by REML and by ML. The other search stops at about 1e-7 of the
 * log-likelihood, so parameters agree to 1e-4 of their size; ours must not be lower. */
#include "base/mixed_math.h"
#include "check.h"
#include "model/mixed/mixed.h"
#include "util/json.h"

static env world;
static json_doc *doc;

enum { MOST = 400, COLUMNS = 8 };

typedef struct golden {
    const json_value *json;
    int64_t start[64], curves, points, fixed, random, inputs;
    float x[2 * MOST], y[MOST];
    data_view view;
    mixed_bases bases;
    mixed_design design;
} golden;

static void numbers(const json_value *v, const char *key, double *out, int64_t count) {
    CHECK(json_numbers(&world, json_get(v, key), key, out, (size_t)count) == MNP_OK);
}

static int64_t integer(const json_value *v, const char *key) {
    int64_t n = 0;
    CHECK(json_integer(&world, json_get(v, key), key, &n) == MNP_OK);
    return n;
}

static void load(size_t k, golden *g) {
    static double read[2 * MOST];
    const char *name = NULL;
    *g = (golden){.json = json_at(json_get(json_root(doc), "cases"), k)};
    CHECK(json_string(&world, json_get(g->json, "name"), "name", &name) == MNP_OK);
    CASE(name);
    const json_value *starts = json_get(g->json, "start");
    g->curves = (int64_t)starts->count - 1;
    for (size_t i = 0; i < starts->count; i++)
        CHECK(json_integer(&world, json_at(starts, i), "start", &g->start[i]) == MNP_OK);
    g->points = g->start[g->curves];
    CHECK(g->points <= MOST && g->curves < 64);
    g->fixed = integer(g->json, "fixed"), g->random = integer(g->json, "random");
    g->inputs = integer(g->json, "inputs");
    numbers(g->json, "x", read, g->points * g->inputs);
    for (int64_t i = 0; i < g->points * g->inputs; i++) g->x[i] = (float)read[i];
    numbers(g->json, "y", read, g->points);
    for (int64_t i = 0; i < g->points; i++) g->y[i] = (float)read[i];
    g->view = (data_view){g->curves, (int32_t)g->inputs, g->start, g->x, g->y, false, 0, 0};
    CHECK(mixed_place(&world, &g->view,
                      &(mixed_form){.fixed = (int32_t)g->fixed, .random = (int32_t)g->random},
                      &g->bases) == MNP_OK);
    CHECK(mixed_design_make(&world, &g->view, &g->bases, &g->design) == MNP_OK);
    CHECK(g->design.p == mixed_fixed_columns(&g->bases));
    CHECK(g->design.r == mixed_random_columns(&g->bases));
}

static void unload(golden *g) {
    mixed_bases_free(&world, &g->bases);
    mixed_design_free(&world, &g->design);
}

/* REML is that of X, not of the turned columns: they differ by the determinant of the turn. */
static double in_columns_of_x(const mixed_design *d, double loglik) {
    for (int32_t i = 0; i < d->p; i++) loglik += log(fabs(d->x.turn[i * (d->p + 1)]));
    return loglik;
}

typedef struct found {
    double mean[COLUMNS], spread[COLUMNS * COLUMNS], curve[COLUMNS * COLUMNS];
} found;

/* a a^T against what the other library found, to 1e-4 of the largest entry. */
static void same_covariance(const json_value *v, const char *key, const double *a, int64_t n,
                            double tolerance) {
    double want[COLUMNS * COLUMNS], largest = 0;
    numbers(v, key, want, n * n);
    for (int64_t i = 0; i < n * n; i++) largest = fmax(largest, fabs(want[i]));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < n; k++) sum += a[i * n + k] * a[j * n + k];
            NEAR(sum, want[i * n + j], tolerance * largest, 0);
        }
}

/* X beta + Z b with b the mean given the curve: the law without doubt about beta. */
static void same_fitted(const golden *g, const json_value *v, const found *f, double noise) {
    static double want[MOST], zero[COLUMNS * COLUMNS];
    int32_t X = (int32_t)g->inputs, p = mixed_fixed_columns(&g->bases);
    mixed_law law = {p, mixed_random_columns(&g->bases), f->mean, zero, f->curve, noise};
    double l[4 * COLUMNS * COLUMNS], w[2 * COLUMNS], h[2 * COLUMNS], row[2 * COLUMNS];
    numbers(v, "fitted", want, g->points);
    for (int64_t i = 0; i < g->curves; i++) {
        mixed_seen seen = {.l = l, .w = w};
        mixed_start(&law, &seen);
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t k = g->start[i]; k < g->start[i + 1]; k++) {
                double x[2];
                for (int32_t c = 0; c < X; c++) x[c] = (double)g->x[k * X + c];
                natural_row(g->bases.inputs, X, (int32_t)g->fixed, x, h);
                natural_row(g->bases.inputs + X, X, (int32_t)g->random, x, h + p);
                double mean = mixed_row(&law, h, row);
                if (pass == 0)
                    mixed_add(&law, &seen, row, ((double)g->y[k] - mean) / noise);
                else
                    NEAR(mean + noise * mixed_given(&law, &seen, row), want[k], 1e-4, 0);
            }
            if (pass == 0) CHECK(isfinite(mixed_solve(&law, &seen)));
        }
    }
}

static void compare(const golden *g, bool reml) {
    const json_value *v = json_get(g->json, reml ? "reml" : "ml");
    mixed_parameters p;
    found f;
    double loglik, variance, beta[COLUMNS];
    CHECK(mixed_parameters_make(&world, &g->design, &p) == MNP_OK);
    CHECK(mixed_maximise(&world, &g->design, reml, MIXED_TIGHT, &p) == MNP_OK);
    numbers(v, "beta", beta, g->design.p);
    CHECK(json_number(&world, json_get(v, "loglik"), "loglik", &loglik) == MNP_OK);
    CHECK(json_number(&world, json_get(v, "variance"), "variance", &variance) == MNP_OK);
    double ours = reml ? in_columns_of_x(&g->design, p.loglik) : p.loglik;
    NEAR(ours, loglik, 1e-6, 0);
    CHECK(ours > loglik - 1e-8);
    NEAR(p.variance, variance, 0, 1e-4);
    mixed_unturn(&g->design, &p, f.mean, f.spread, f.curve);
    for (int32_t j = 0; j < g->design.p; j++) NEAR(f.mean[j], beta[j], 1e-4, 1e-4);
    same_covariance(v, "psi", f.curve, g->design.r, 1e-4);
    same_covariance(v, "beta_covariance", f.spread, g->design.p, 1e-4);
    same_fitted(g, v, &f, sqrt(p.variance));
    mixed_parameters_free(&world, &p);
}

static void as_statsmodels(void) {
    golden g;
    CHECK(json_read(&world, "tests/golden/mixed.json", 1 << 20, &doc) == MNP_OK);
    size_t cases = json_get(json_root(doc), "cases")->count;
    CHECK(cases == 4);
    for (size_t k = 0; k < cases; k++) {
        load(k, &g);
        compare(&g, true);
        compare(&g, false);
        unload(&g);
    }
    json_destroy(doc);
}

int main(void) {
    env_init(&world);
    RUN(as_statsmodels);
    return check_done();
}
