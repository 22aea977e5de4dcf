/* test_sde.c: paths of the stochastic differential equation against an independent implementation
 * (sde_paths.json: own numpy code in float64, Newton checked against a bracketing root finder) from
 * the same Wiener increments, to 1e-12; and the family's distribution against quantiles of that
 * implementation's own 2000 paths. */
#include "data/sde.h"

#include "base/json.h"
#include "check.h"
#include "data/dataset.h"

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

int main(void) {
    env_init(&world);
    if (json_read(&world, "tests/golden/sde_paths.json", 1 << 20, &doc) != MNP_OK) {
        fprintf(stderr, "%s\n", world.error);
        return 1;
    }
    RUN(paths);
    RUN(quantiles);
    json_destroy(doc);
    return check_done();
}
