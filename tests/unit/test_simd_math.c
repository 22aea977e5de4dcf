/* test_simd_math.c: the vector functions against double precision, for every instruction set this
 * processor has: dense sweeps over the range of floats, the special values, and independence of an
 * element's place in the array. vexp2_neg and vsincos2pi, which have no array form, are tested in
 * the flavour this file is compiled for. */
#include "check.h"

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/simd_math.h"

static const char *const ISAS[] = {"base", "avx2", "avx512"};

enum { CHUNK = 4096 };

static float from_bits(uint32_t b) {
    float f;
    memcpy(&f, &b, sizeof f);
    return f;
}

/* |got - want| in units of the last place of want as a float (subnormal spacing at the bottom). */
static double ulps(float got, double want) {
    if (isnan(want)) return isnan(got) ? 0 : 1e9;
    float rounded = (float)want;
    if (isinf(rounded) || isinf(got)) return rounded == got ? 0 : 1e9;
    int e;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

static double ref_softplus(double x) {
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double ref_sigmoid(double x) {
    return x > 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

typedef void array_fn(int64_t n, const float *x, float *y);

/* Every `step`-th float bit pattern, NaNs and infinities among them. */
static double sweep(array_fn *f, double (*ref)(double), uint32_t step) {
    static float x[CHUNK], y[CHUNK];
    double worst = 0;
    float at = 0;
    uint64_t bits = 0;
    while (bits <= UINT32_MAX) {
        int n = 0;
        for (; n < CHUNK && bits <= UINT32_MAX; bits += step) x[n++] = from_bits((uint32_t)bits);
        f(n, x, y);
        for (int i = 0; i < n; i++) {
            double u = ulps(y[i], ref((double)x[i]));
            if (u > worst) {
                worst = u;
                at = x[i];
            }
        }
    }
    if (getenv("MNP_TEST_VERBOSE")) printf("    %-8s %.2f ulp at %.9g\n", check_.where, worst, at);
    return worst;
}

static uint32_t step(void) {
    return getenv("MNP_TEST_LONG") ? 37 : 4099;
}

static void errors_stay_below_the_stated_bounds(void) {
    for (int i = 0; i < 3; i++) {
        const cpu_kernels *k = cpu_kernels_best(ISAS[i]);
        if (!k) continue;
        CASE(ISAS[i]);
        CHECK(sweep(k->exp, exp, step()) <= 2);
        CHECK(sweep(k->log, log, step()) <= 2);
        CHECK(sweep(k->softplus, ref_softplus, step()) <= 3);
        CHECK(sweep(k->sigmoid, ref_sigmoid, step()) <= 3);
        CHECK(sweep(k->tanh, tanh, step()) <= 2.5);
    }
}

/* The middle of the range, where the functions bend: far denser than the sweep over all floats. */
static double sweep_line(array_fn *f, double (*ref)(double), double lo, double hi, int count) {
    static float x[CHUNK], y[CHUNK];
    double worst = 0;
    for (int i = 0; i < count; i += CHUNK) {
        for (int j = 0; j < CHUNK; j++) x[j] = (float)(lo + (hi - lo) * (i + j) / count);
        f(CHUNK, x, y);
        for (int j = 0; j < CHUNK; j++) worst = fmax(worst, ulps(y[j], ref((double)x[j])));
    }
    if (getenv("MNP_TEST_VERBOSE")) printf("    %-8s %.2f ulp\n", check_.where, worst);
    return worst;
}

static void errors_stay_below_the_bounds_near_the_origin(void) {
    for (int i = 0; i < 3; i++) {
        const cpu_kernels *k = cpu_kernels_best(ISAS[i]);
        if (!k) continue;
        CASE(ISAS[i]);
        const int n = 100 * CHUNK;
        CHECK(sweep_line(k->exp, exp, -105, 90, n) <= 2);
        CHECK(sweep_line(k->log, log, 0.3, 3, n) <= 2);
        CHECK(sweep_line(k->softplus, ref_softplus, -20, 20, n) <= 3);
        CHECK(sweep_line(k->softplus, ref_softplus, -110, 110, n) <= 3);
        CHECK(sweep_line(k->sigmoid, ref_sigmoid, -20, 20, n) <= 3);
        CHECK(sweep_line(k->tanh, tanh, -10, 10, n) <= 2.5);
    }
}

static float one(array_fn *f, float x) {
    float y;
    f(1, &x, &y);
    return y;
}

static void special_values_are_exact(void) {
    for (int i = 0; i < 3; i++) {
        const cpu_kernels *k = cpu_kernels_best(ISAS[i]);
        if (!k) continue;
        CASE(ISAS[i]);
        CHECK(one(k->exp, -INFINITY) == 0);
        CHECK(one(k->exp, -104.0f) == 0);
        CHECK(one(k->exp, 0) == 1);
        CHECK(isinf(one(k->exp, 89)) && isinf(one(k->exp, INFINITY)));
        CHECK(one(k->log, 1) == 0);
        CHECK(one(k->log, 0) == -INFINITY && one(k->log, -0.0f) == -INFINITY);
        CHECK(one(k->log, INFINITY) == INFINITY && isnan(one(k->log, -1)));
        CHECK(one(k->softplus, INFINITY) == INFINITY && one(k->softplus, -INFINITY) == 0);
        CHECK(one(k->sigmoid, INFINITY) == 1 && one(k->sigmoid, -INFINITY) == 0);
        CHECK(one(k->sigmoid, 0) == 0.5f);
        CHECK(one(k->tanh, INFINITY) == 1 && one(k->tanh, -INFINITY) == -1);
        CHECK(one(k->tanh, -0.0f) == 0 && signbit(one(k->tanh, -0.0f)));
        array_fn *all[] = {k->exp, k->log, k->softplus, k->sigmoid, k->tanh};
        for (int f = 0; f < 5; f++) CHECK(isnan(one(all[f], NAN)));
    }
}

static void every_length_and_place_gives_the_same_bits(void) {
    for (int i = 0; i < 3; i++) {
        const cpu_kernels *k = cpu_kernels_best(ISAS[i]);
        if (!k) continue;
        CASE(ISAS[i]);
        array_fn *all[] = {k->exp, k->log, k->softplus, k->sigmoid, k->tanh};
        for (int f = 0; f < 5; f++)
            for (int n = 0; n < 40; n++) {
                float x[41], want[40];
                for (int j = 0; j < 40; j++) {
                    x[j] = 0.37f * (float)(j + 1);
                    want[j] = one(all[f], x[j]);
                }
                x[n] = 77;
                all[f](n, x, x); /* in place, and not one element further */
                CHECK(x[n] == 77 && memcmp(x, want, (size_t)n * sizeof *x) == 0);
            }
    }
}

static void softmax_exponential_is_within_two_ulp(void) {
    double worst = 0;
    for (int i = 0; i < 2000000; i += VL) {
        float x[VL], y[VL];
        for (int j = 0; j < VL; j++) x[j] = 0.5f - 126.5f * (float)(i + j) / 2000000.0f;
        vstore(y, vexp2_neg(vload(x)));
        for (int j = 0; j < VL; j++) worst = fmax(worst, ulps(y[j], exp2((double)x[j])));
    }
    if (getenv("MNP_TEST_VERBOSE")) printf("    vexp2_neg %.2f ulp\n", worst);
    CHECK(worst <= 2);
    CHECK(vexp2_neg(vset(0))[0] == 1);
    CHECK(vexp2_neg(vset(-1000))[0] == 0x1p-126f && vexp2_neg(vset(-INFINITY))[0] == 0x1p-126f);
    CHECK(isnan(vexp2_neg(vset(NAN))[0]));
}

static void sine_and_cosine_of_turns(void) {
    const double pi = 3.14159265358979323846;
    double worst = 0;
    for (int i = 0; i < 1000000; i += VL) {
        float t[VL], s[VL], c[VL];
        for (int j = 0; j < VL; j++) {
            double u = (i + j - 500000) / 500000.0; /* -1..1, half of it stretched to 2^20 */
            t[j] = (float)(i % 3 ? u * 2 : u * fabs(u) * 1048576);
        }
        vf vs, vc;
        vsincos2pi(vload(t), &vs, &vc);
        vstore(s, vs);
        vstore(c, vc);
        for (int j = 0; j < VL; j++) {
            double r = (double)t[j] - rint((double)t[j]);
            worst = fmax(worst, fabs((double)s[j] - sin(2 * pi * r)));
            worst = fmax(worst, fabs((double)c[j] - cos(2 * pi * r)));
        }
    }
    if (getenv("MNP_TEST_VERBOSE")) printf("    vsincos2pi %.3g\n", worst);
    CHECK(worst <= 1.2e-7);
}

static void helpers_do_what_they_say(void) {
    float x[VL], y[VL];
    for (int i = 0; i < VL; i++) {
        x[i] = (float)(i * i) - 5;
        y[i] = (float)i;
    }
    vf a = vload(x), b = vload(y);
    float most = x[0];
    for (int i = 0; i < VL; i++) {
        most = x[i] > most ? x[i] : most;
        CHECK(vmax(a, b)[i] == (x[i] > y[i] ? x[i] : y[i]));
        CHECK(vmin(a, b)[i] == (x[i] < y[i] ? x[i] : y[i]));
        CHECK(vselect(a < b, a, b)[i] == (x[i] < y[i] ? x[i] : y[i]));
        CHECK(vcopysign(b, a)[i] == copysignf(y[i], x[i]) && vabs(a)[i] == fabsf(x[i]));
    }
    CHECK(vhmax(a) == most);
}

int main(void) {
    RUN(errors_stay_below_the_stated_bounds);
    RUN(errors_stay_below_the_bounds_near_the_origin);
    RUN(special_values_are_exact);
    RUN(every_length_and_place_gives_the_same_bits);
    RUN(softmax_exponential_is_within_two_ulp);
    RUN(sine_and_cosine_of_turns);
    RUN(helpers_do_what_they_say);
    return check_done();
}
