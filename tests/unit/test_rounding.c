/* test_rounding.c: when rounding is looked at, medians against sorted numbers, when the verdict
 * falls and when it does not, records as numbers; the loss of score that a shift comes with,
 * simulated. */
#include "run/rounding.h"

#include "base/rng.h"
#include "check.h"

static const rounding_rule rule = {
    .every = 10, .from = 30, .fewest = 3, .distance = 0.3, .shift = 0.05};

static rounding_check check_of(double distance, double shift) {
    return (rounding_check){distance, 0.5, shift};
}

static void at_validations_a_thousand_steps_apart(void) {
    CHECK(rounding_rule_of(600, 600).every == 1200);
    CHECK(rounding_rule_of(3000, 1000).every == 3000);
    CHECK(rounding_rule_of(1, 0).every == 1000);
    CHECK(rounding_rule_of(999, 7).every == 1998 && rounding_rule_of(999, 7).from == 7);
    rounding_rule r = rounding_rule_of(600, 600);
    CHECK(rounding_due(&r, 0) && rounding_due(&r, 2400) && !rounding_due(&r, 600));
    CHECK(!rounding_due(&(rounding_rule){0}, 0));
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of all checks so far, or of the last five, against qsort. */
static void medians(void) {
    const rounding_rule never = {.every = 1, .fewest = 1, .distance = 1e9, .shift = 1e9};
    double all[40];
    rounding_record r;
    rounding_begin(&r);
    CHECK(isnan(rounding_median(&r).distance) && isnan(r.latest.shift));
    rng_stream s = rng_stream_make((rng_key){4}, RNG_TEST, 1);
    for (int k = 0; k < 40; k++) {
        all[k] = rng_u01(&s);
        CHECK(!rounding_take(&never, &r, (rounding_check){all[k], 2 * all[k], -all[k]}, k));
        CHECK(r.latest.distance == all[k] && r.checks == k + 1);
        double last[ROUNDING_KEPT];
        int n = k + 1 < ROUNDING_KEPT ? k + 1 : ROUNDING_KEPT;
        for (int j = 0; j < n; j++) last[j] = all[k + 1 - n + j];
        qsort(last, (size_t)n, sizeof *last, by_size);
        double want = n % 2 ? last[n / 2] : 0.5 * (last[n / 2 - 1] + last[n / 2]);
        rounding_check m = rounding_median(&r);
        CHECK(m.distance == want && m.sampling == 2 * want && m.shift == -want);
    }
    CHECK(r.verdict == 0 && r.counted == 40);
}

/* Checks (distance, shift), a row each from step 0 on; the row after which the verdict falls. */
typedef struct course {
    const char *what;
    int count, falls; /* -1: never */
    double at[8][2];
} course;

static void verdicts(void) {
    static const course courses[] = {
        {"small all the time", 8, -1, {{.1, 0}, {.1, 0}, {.2, .01}, {.29, .04}, {.1, 0}, {.1, 0}}},
        {"large in the warm-up alone", 8, -1, {{9, 1}, {9, 1}, {9, 1}, {.1, 0}, {.1, 0}, {.1, 0}}},
        {"not before three count", 8, 5, {{9, 1}, {9, 1}, {9, 1}, {9, 1}, {9, 1}, {9, 1}, {9, 1}}},
        {"by the distance alone", 8, 5, {{0, 0}, {0, 0}, {0, 0}, {.3, 0}, {.31, 0}, {.4, 0}}},
        {"by the shift alone", 8, 5, {{0, 0}, {0, 0}, {0, 0}, {0, .05}, {0, .06}, {0, .07}}},
        {"one of three is chance", 8, -1, {{0, 0}, {0, 0}, {0, 0}, {.1, 0}, {99, 3}, {.1, 0}}},
        {"a loss that rounding lowers", 8, -1, {{0, 0}, {0, 0}, {0, 0}, {0, -1}, {0, -1}, {0, -1}}},
        {"it grows", 8, 7, {{0, 0}, {0, 0}, {0, 0}, {.1, 0}, {.1, 0}, {.4, 0}, {.5, 0}, {.6, 0}}},
        {"what was not measured does not count",
         8,
         7,
         {{0, 0}, {0, 0}, {0, 0}, {9, NAN}, {NAN, NAN}, {9, 0}, {9, 0}, {9, 0}}},
    };
    for (size_t k = 0; k < sizeof courses / sizeof *courses; k++) {
        rounding_record r;
        int fell = -1;
        CASE(courses[k].what);
        rounding_begin(&r);
        for (int i = 0; i < courses[k].count; i++)
            if (rounding_take(&rule, &r, check_of(courses[k].at[i][0], courses[k].at[i][1]),
                              10 * i)) {
                CHECK(fell < 0); /* once */
                fell = i;
            }
        CHECK(fell == courses[k].falls);
        CHECK(r.verdict == (fell < 0 ? 0 : 10 * fell + 1));
        CHECK(fell < 0 ? isnan(r.judged.distance)
                       : r.judged.distance >= rule.distance || r.judged.shift >= rule.shift);
    }
}

static bool same(const rounding_record *a, const rounding_record *b) {
    double x[ROUNDING_NUMBERS], y[ROUNDING_NUMBERS];
    rounding_write(a, x);
    rounding_write(b, y);
    return memcmp(x, y, sizeof x) == 0;
}

static void records_come_back(void) {
    double numbers[ROUNDING_NUMBERS];
    rounding_record r, back;
    rounding_begin(&r);
    for (int k = 0; k < 9; k++) {
        rounding_begin(&back);
        rounding_write(&r, numbers);
        CHECK(rounding_read(&back, numbers) && same(&r, &back));
        rounding_check m = rounding_median(&r), n = rounding_median(&back);
        CHECK(memcmp(&m, &n, sizeof m) == 0);
        rounding_take(&rule, &r, check_of(0.1 * k, 0.01 * k), 10 * k);
    }
    CHECK(r.verdict > 0 && back.verdict == r.verdict);
}

/* A gradient of length zero: what is found of it is no number, and the state can be read again. */
static void a_check_without_a_gradient(void) {
    static const rounding_check odd[] = {{INFINITY, NAN, 0}, {NAN, NAN, 0.1}, {0.1, INFINITY, 0}};
    for (int k = 0; k < 3; k++) {
        double numbers[ROUNDING_NUMBERS];
        rounding_record r, back;
        rounding_begin(&r);
        CHECK(!rounding_take(&rule, &r, odd[k], 40));
        CHECK(r.checks == 1 && r.counted == 0 && isnan(r.latest.shift) && isnan(r.latest.distance));
        rounding_write(&r, numbers);
        CHECK(rounding_read(&back, numbers) && same(&r, &back));
    }
}

/* Every number in turn becomes one that no run can have. */
static void damage_is_refused(void) {
    double numbers[ROUNDING_NUMBERS];
    rounding_record r, before;
    rounding_begin(&r);
    for (int k = 0; k < 9; k++) rounding_take(&rule, &r, check_of(0.1 * k, 0.01 * k), 10 * k);
    before = r;
    for (int k = 0; k < ROUNDING_NUMBERS; k++) {
        const double bad[] = {INFINITY, k < ROUNDING_NUMBERS - 3 ? NAN : -1, NAN};
        for (int j = 0; j < 3; j++) {
            rounding_write(&before, numbers);
            numbers[k] = bad[j];
            CHECK(!rounding_read(&r, numbers) && same(&r, &before));
        }
    }
    rounding_write(&before, numbers);
    numbers[0] = -0.1; /* a distance */
    CHECK(!rounding_read(&r, numbers));
    rounding_write(&before, numbers);
    numbers[ROUNDING_NUMBERS - 1] = 2.5;
    CHECK(!rounding_read(&r, numbers));
}

/* Values of sd s0 that are read with a noise of sd r: a normal density fitted to what is read
 * scores ln(s / s0) less, and without the noise its loss would be lower by d. Then the former is
 * -ln(1 - 2 d) / 2, which the header says; here from draws. */
static void a_shift_in_nats(void) {
    enum { DRAWS = 400000 };
    const double s0 = 0.7, noise[] = {0.1, 0.7, 1.7};
    for (int k = 0; k < 3; k++) {
        double exact = 0, read = 0;
        rng_stream s = rng_stream_make((rng_key){8}, RNG_TEST, (uint32_t)k);
        for (int i = 0; i < DRAWS; i++) {
            double y = s0 * rng_normal(&s), seen = y + noise[k] * rng_normal(&s);
            exact += y * y / DRAWS, read += seen * seen / DRAWS;
        }
        double fitted = sqrt(read); /* the sd that is best for what is read */
        double shift = 0.5 * (read - exact) / (fitted * fitted);
        double lost = log(fitted / sqrt(exact));
        NEAR(-0.5 * log(1 - 2 * shift), lost, 1e-9, 0);
        NEAR(lost, 0.5 * log(1 + noise[k] * noise[k] / (s0 * s0)), 0.01, 0);
    }
}

int main(void) {
    RUN(at_validations_a_thousand_steps_apart);
    RUN(medians);
    RUN(verdicts);
    RUN(records_come_back);
    RUN(a_check_without_a_gradient);
    RUN(damage_is_refused);
    RUN(a_shift_in_nats);
    return check_done();
}
