/* test_families.c: quantiles of monotonic and convex against an independent implementation
 * (families.json, made by families.py beside it: 20 000 functions of its own).
 *
 * Each check compares the share of our functions below one of the other sample's quantiles.
 * Whatever the law, the difference of the shares has variance p (1 - p) (1/ours + 1/theirs). The
 * bound of 4.5 standard deviations is a level of 7e-6 for each of the 105 comparisons, 7e-4 for all
 * together; seeds are fixed, so the outcome is too. */
#include "check.h"
#include "data/dataset.h"
#include "util/json.h"

static env world;
static json_doc *doc;

enum { OURS = 10000, POINTS = 128, LEVELS = 5, PLACES = 5 };

static double theirs, level[LEVELS], place[PLACES];

static void compare(const double *ours, const json_value *quantiles) {
    double q[LEVELS];
    CHECK(json_numbers(&world, quantiles, "quantiles", q, LEVELS) == MNP_OK);
    for (int k = 0; k < LEVELS; k++) {
        double below = 0, p = level[k];
        for (int i = 0; i < OURS; i++) below += ours[i] < q[k];
        NEAR(below / OURS, p, 4.5 * sqrt(p * (1 - p) * (1.0 / OURS + 1 / theirs)), 0);
    }
}

static void compare_family(const json_value *one) {
    static double v[OURS];
    const char *name = "";
    dataset *d = NULL;
    data_source s = {.split = DATA_TRAIN, .seed = 11, .functions = OURS};
    CHECK(json_string(&world, json_get(one, "name"), "name", &name) == MNP_OK);
    CASE(name);
    CHECK(dataset_open(&world, NULL, name, &s, &d) == MNP_OK);
    if (!d) return;
    for (size_t k = 0; k < PLACES; k++) {
        for (int i = 0; i < OURS; i++) v[i] = (double)d->y[i * POINTS + (int)place[k]];
        compare(v, json_at(json_get(one, "y"), k));
    }
    for (int i = 0; i < OURS; i++) {
        const float *y = d->y + i * POINTS;
        int least = 0;
        for (int j = 1; j < POINTS; j++)
            if (y[j] < y[least]) least = j;
        v[i] = (double)d->x[i * POINTS + least];
    }
    compare(v, json_get(one, "x_of_least_y"));
    for (int i = 0; i < OURS; i++) {
        v[i] = 0;
        for (int j = 0; j < POINTS; j++) v[i] += (double)d->y[i * POINTS + j] / POINTS;
    }
    compare(v, json_get(one, "mean_y"));
    dataset_destroy(d);
}

static void quantiles(void) {
    const json_value *root = json_root(doc), *list = json_get(root, "families");
    CHECK(json_number(&world, json_get(root, "functions"), "functions", &theirs) == MNP_OK);
    CHECK(json_numbers(&world, json_get(root, "levels"), "levels", level, LEVELS) == MNP_OK);
    CHECK(json_numbers(&world, json_get(root, "index"), "index", place, PLACES) == MNP_OK);
    CHECK(list && list->count == 3);
    for (size_t i = 0; list && i < list->count; i++) compare_family(json_at(list, i));
}

int main(void) {
    env_init(&world);
    if (json_read(&world, "tests/golden/families.json", 1 << 20, &doc) != MNP_OK) {
        fprintf(stderr, "%s\n", world.error);
        return 1;
    }
    RUN(quantiles);
    json_destroy(doc);
    return check_done();
}
