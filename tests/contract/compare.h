/* compare.h: results of one backend against those of another, for the tests of the contract. */
#ifndef MNP_TESTS_CONTRACT_COMPARE_H
#define MNP_TESTS_CONTRACT_COMPARE_H

#include "check.h"

/* Off by tol of the largest number at most; of `size` where that is larger. */
static void compare(const char *what, const double *got, const double *want, int64_t count,
                    double size, double tol) {
    double largest = size, worst = 0;
    for (int64_t i = 0; i < count; i++) {
        if (fabs(want[i]) > largest) largest = fabs(want[i]);
        double off = fabs(got[i] - want[i]);
        if (!(off <= worst)) worst = off;
    }
    check_near(__FILE__, __LINE__, what, worst, 0.0, tol * (largest + 1e-3), 0.0);
}

static double *copy(const double *from, int64_t count) {
    double *to = calloc((size_t)count + 1, sizeof *to);
    if (to && count) memcpy(to, from, (size_t)count * sizeof *to);
    return to;
}

#endif
