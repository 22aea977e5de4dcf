/* meander_math.h: exp and log made of IEEE additions, multiplications and divisions alone.
 *
 * A river is chaotic: a last bit that differs at step 0 is another river by step 1500, and C
 * libraries do differ in last bits, even one library on two processors. With these two functions
 * (and no contraction of a*b + c, which the build forbids) a seed means the same river everywhere.
 * Both are right to about 1e-15 relative. */
#ifndef MNP_DATA_MEANDER_MATH_H
#define MNP_DATA_MEANDER_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* log 2 in two parts; the first has so few bits that its product with an exponent is exact. */
#define MEANDER_LN2_HIGH 0x1.62e42feep-1
#define MEANDER_LN2_LOW  0x1.a39ef35793c76p-33

/* e^x = 2^k e^r with |r| <= log(2)/2, and e^r by its series. 0 below -700, infinite above 700. */
static inline double meander_exp(double x) {
    if (!(x > -700)) return 0;
    if (x > 700) return INFINITY;
    int64_t k = (int64_t)(x * 1.4426950408889634 + (x < 0 ? -0.5 : 0.5));
    double r = x - (double)k * MEANDER_LN2_HIGH - (double)k * MEANDER_LN2_LOW, r2 = r * r;
    double odd = 1.0 / 6227020800, even = 1.0 / 479001600, scale; /* 1/13!, 1/12! */
    odd = odd * r2 + 1.0 / 39916800;
    even = even * r2 + 1.0 / 3628800;
    odd = odd * r2 + 1.0 / 362880;
    even = even * r2 + 1.0 / 40320;
    odd = odd * r2 + 1.0 / 5040;
    even = even * r2 + 1.0 / 720;
    odd = odd * r2 + 1.0 / 120;
    even = even * r2 + 1.0 / 24;
    odd = odd * r2 + 1.0 / 6;
    even = even * r2 + 0.5;
    uint64_t bits = (uint64_t)(k + 1023) << 52; /* 2^k */
    memcpy(&scale, &bits, sizeof scale);
    return scale * (1 + (r + (r2 * r * odd + r2 * even)));
}

/* log(m 2^k) = k log 2 + 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.18. x > 0. */
static inline double meander_log(double x) {
    int k;
    double m = frexp(x, &k);
    if (m < 0.70710678118654752) {
        m *= 2;
        k--;
    }
    double s = (m - 1) / (m + 1), t = s * s, sum = 0;
    for (int n = 23; n >= 1; n -= 2) sum = sum * t + 1.0 / n;
    return k * MEANDER_LN2_HIGH + (2 * s * sum + k * MEANDER_LN2_LOW);
}

#endif
