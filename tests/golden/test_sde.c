/* test_sde.c: paths of the stochastic differential equation against an independent implementation
 * (sde_paths.json: own numpy code in float64, Newton checked against a bracketing root finder) from
 * the same Wiener increments, to 1e-12; and the family's distribution against quantiles of that
 * implementation's own 2000 paths; and the ceiling of the data set. */
#include "data/sde.h"

#include "check.h"
#include "data/truth.h"
#include "util/json.h"

static env world;
static json_doc *doc;

enum { MOST = 128 };

static double number(const json_value *v, const char *key) {
    double x = NAN;
    CHECK(json_number(&world, json_get(v, key), key, &x) == MNP_OK);
    return x;
}

static void paths(void) {
    const json_value *root = json_root(doc), *list = json_get(root, "paths");
    double a = number(root, "a"), b = number(root, "b");
    CHECK(list && list->count == 4);
    for (size_t i = 0; list && i < list->count; i++) {
        const json_value *one = json_at(list, i);
        double dw[MOST], want[MOST], got[MOST];
        size_t n = (size_t)number(one, "n_points");
        CHECK(n <= MOST);
        CHECK(json_numbers(&world, json_get(one, "dW"), "dW", dw, n - 1) == MNP_OK);
        CHECK(json_numbers(&world, json_get(one, "x"), "x", want, n) == MNP_OK);
        sde_path(a, b, number(one, "h"), (int64_t)n, number(one, "x0"), dw, got);
        for (size_t k = 0; k < n; k++) NEAR(got[k], want[k], 1e-12, 0);
    }
}

/* The share of our paths below a quantile of the other sample. Whatever the law, the difference of
 * the two shares has variance p (1 - p) (1/ours + 1/theirs); 4.5 sd is a level of 7e-6 for each of
 * the 15 comparisons. */
static void quantiles(void) {
    const json_value *q = json_get(json_root(doc), "dataset_quantiles_2000_paths");
    const double p[3] = {0.05, 0.5, 0.95}, theirs = 2000;
    enum { OURS = 5000, POINTS = 128 };
    dataset *d = NULL;
    data_source s = {.split = DATA_TEST, .seed = 3, .functions = OURS};
    CHECK(dataset_open(&world, NULL, "sde", &s, &d) == MNP_OK);
    double index[5];
    CHECK(json_numbers(&world, json_get(q, "index"), "index", index, 5) == MNP_OK);
    for (size_t i = 0; d && i < 5; i++) {
        double five[5];
        const json_value *row = json_at(json_get(q, "q0_q05_q50_q95_q100"), i);
        CHECK(json_numbers(&world, row, "quantiles", five, 5) == MNP_OK);
        for (int k = 0; k < 3; k++) {
            double below = 0;
            for (int64_t f = 0; f < OURS; f++)
                below += (double)d->y[f * POINTS + (int64_t)index[i]] < five[k + 1];
            NEAR(below / OURS, p[k], 4.5 * sqrt(p[k] * (1 - p[k]) * (1.0 / OURS + 1 / theirs)), 0);
        }
    }
    dataset_destroy(d);
}

/* The near-exact ceiling of the data set: 2.446 nats per target with 128 points and contexts of 2
 * to 50, known to 0.005 from 600 paths of another implementation; here 600 paths more. */
static void ceiling(void) {
    enum { PATHS = 600, N = 128 };
    family f;
    CHECK(family_parse(&world, "sde", &f) == MNP_OK);
    static float x[PATHS * N], y[PATHS * N];
    CHECK(family_draw(&world, NULL, &f, 3, DATA_TEST, 0, PATHS, x, y) == MNP_OK);
    double sum = 0, squares = 0;
    for (int i = 0; i < PATHS; i++) {
        rng_stream s = rng_stream_make((rng_key){4}, RNG_TEST, (uint32_t)i);
        int32_t order[N];
        double px[N], py[N], logp = NAN;
        for (int32_t k = 0; k < N; k++) order[k] = k;
        rng_shuffle(&s, order, N);
        for (int k = 0; k < N; k++) px[k] = x[i * N + order[k]], py[k] = y[i * N + order[k]];
        int64_t m = 2 + (int64_t)rng_below(&s, 49);
        CHECK(truth_ask(&world, &f, px, py, N, m, &logp, NULL) == MNP_OK);
        logp /= (double)(N - m);
        sum += logp;
        squares += logp * logp;
    }
    double mean = sum / PATHS, se = sqrt((squares / PATHS - mean * mean) / PATHS);
    NEAR(mean, 2.4457, 4 * sqrt(se * se + 0.0051 * 0.0051), 0);
    family_free(&world, &f);
}

int main(void) {
    env_init(&world);
    if (json_read(&world, "tests/golden/sde_paths.json", 1 << 20, &doc) != MNP_OK) {
        fprintf(stderr, "%s\n", world.error);
        return 1;
    }
    RUN(paths);
    RUN(quantiles);
    RUN(ceiling);
    json_destroy(doc);
    return check_done();
}
