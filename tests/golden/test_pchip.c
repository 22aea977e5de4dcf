/* test_pchip.c: the monotone interpolant and its integral against an independent implementation
 * (pchip.json: own numpy code in float64, checked against scipy's PchipInterpolator), to 1e-12. */
#include "data/pchip.h"

#include "check.h"
#include "data/family.h"
#include "util/json.h"

static env world;
static json_doc *doc;

enum { MOST = 64 };

static size_t numbers(const json_value *v, const char *key, double out[MOST]) {
    const json_value *list = json_get(v, key);
    size_t count = 0;
    CHECK(json_array(&world, list, key, &count) == MNP_OK && count <= MOST);
    CHECK(json_numbers(&world, list, key, out, count) == MNP_OK);
    return count;
}

static void near_all(const char *what, const double *got, const double *want, size_t count) {
    for (size_t i = 0; i < count; i++)
        check_near(__FILE__, __LINE__, what, got[i], want[i], 1e-12, 1e-12);
}

static void check_case(const json_value *one) {
    double x[MOST], y[MOST], slope[MOST], area[MOST], want[MOST], q[MOST];
    double value[MOST], integral[MOST];
    const char *name = "";
    CHECK(json_string(&world, json_get(one, "name"), "name", &name) == MNP_OK);
    CASE(name);
    size_t n = numbers(one, "node_x", x);
    CHECK(numbers(one, "node_y", y) == n);
    pchip p = {(int64_t)n, x, y, slope, area};
    pchip_make(&p);
    CHECK(numbers(one, "node_slope", want) == n);
    near_all("slope", slope, want, n);

    size_t count = numbers(one, "q", q);
    for (size_t i = 0; i < count; i++) {
        value[i] = pchip_value(&p, q[i]);
        integral[i] = pchip_integral(&p, q[i]);
    }
    CHECK(numbers(one, "value", want) == count);
    near_all("value", value, want, count);
    CHECK(numbers(one, "integral_from_first_node", want) == count);
    near_all("integral", integral, want, count);

    family_min_max(value, (int64_t)count);
    family_min_max(integral, (int64_t)count);
    CHECK(numbers(one, "value_normalised", want) == count);
    near_all("normalised value", value, want, count);
    CHECK(numbers(one, "integral_normalised", want) == count);
    near_all("normalised integral", integral, want, count);
}

static void matches_the_reference(void) {
    const json_value *cases = json_get(json_root(doc), "cases");
    CHECK(cases && cases->count == 8);
    for (size_t i = 0; cases && i < cases->count; i++) check_case(json_at(cases, i));
}

int main(void) {
    env_init(&world);
    if (json_read(&world, "tests/golden/pchip.json", 1 << 20, &doc) != MNP_OK) {
        fprintf(stderr, "%s\n", world.error);
        return 1;
    }
    RUN(matches_the_reference);
    json_destroy(doc);
    return check_done();
}
