/* test_digits.c: numbers as text in whole-number arithmetic, against printf and strtod of the C
 * library: the same bytes, for numbers of every kind that has an edge. */
#include "check.h"
#include "util/digits.h"

/* The fewest digits that read back, as the C library prints and reads. */
static void plain(double v, bool narrow, char out[DIGITS_TEXT]) {
    for (int digits = narrow ? 6 : 15;; digits++) {
        snprintf(out, DIGITS_TEXT, "%.*g", digits, v);
        double back = strtod(out, NULL);
        if (narrow ? (float)back == (float)v : back == v) return;
    }
}

static uint64_t state = 42;

static uint64_t bits(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static double share(void) {
    return (double)(bits() >> 11) * 0x1p-53;
}

/* Any bits near 1; short decimals; floats; powers of two, whose neighbours below are nearer; the
 * neighbours of powers of ten, where digits carry over; whole numbers; halves at the last digit. */
static double number(int kind) {
    int k = (int)(bits() % 40);
    switch (kind) {
    case 0:
        return ldexp(1 + share(), k - 20) * (bits() % 2 ? 1 : -1);
    case 1:
        return (double)(int64_t)(bits() % 2000001 - 1000000) / pow(10, k % 12);
    case 2:
        return (double)(float)(8 * share() - 4);
    case 3:
        return ldexp(1, k - 20);
    case 4:
        return nextafter(pow(10, k % 28 - 14), bits() % 2 ? 0 : 1e30);
    case 5:
        return (double)(bits() % 100000000000000);
    default:
        return (double)(bits() % 1000000) + ldexp((double)(bits() % 64), -6);
    }
}

static void the_bytes_are_those_of_printf(void) {
    char got[DIGITS_TEXT], want[DIGITS_TEXT];
    int wide = 0, narrow = 0;
    for (int i = 0; i < 200000; i++) {
        double v = number(i % 7);
        if (digits_double(v, got)) {
            plain(v, false, want);
            STREQ(got, want);
            wide++;
        }
        if (digits_float((float)v, got)) {
            plain((double)(float)v, true, want);
            STREQ(got, want);
            narrow++;
        }
    }
#ifdef __SIZEOF_INT128__
    CHECK(wide > 180000 && narrow > 120000); /* the rest lies outside */
#endif
}

static void the_rest_is_left_alone(void) {
    static const double outside[] = {1e14, 9e30, 1e-16, 1e-30, INFINITY, NAN};
    char text[DIGITS_TEXT] = "untouched";
    for (size_t k = 0; k < sizeof outside / sizeof *outside; k++) {
        CHECK(!digits_double(outside[k], text) && !digits_double(-outside[k], text));
        CHECK(!digits_float((float)outside[k], text));
        STREQ(text, "untouched");
    }
}

int main(void) {
    RUN(the_bytes_are_those_of_printf);
    RUN(the_rest_is_left_alone);
    return check_done();
}
