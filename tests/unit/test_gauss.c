/* test_gauss.c: the noise of latents and points: the same bits on every instruction set, and the
 * place of a draw in training and in evaluation. */
#include "backend/cpu/kernels.h"
#include "base/rng_normal.h"
#include "check.h"
#include "op/gauss.h"

static const char *const isas[] = {"avx512", "avx2", "base"};
enum { COUNT = 300 };

static void normals_have_the_same_bits(void) {
    const rng_key key = {0x123456789abcdefull};
    const rng_at at = {RNG_LATENT, 5, 77, 3, 11, 0};
    for (int j = 0; j < 3; j++) {
        const cpu_kernels *k = cpu_kernels_best(isas[j]);
        for (int count = 1; k && count <= COUNT; count += 23) {
            float dims[COUNT + 1], points[COUNT + 1];
            dims[count] = points[count] = 99;
            k->normals(key, at, count, false, dims);
            k->normals(key, at, count, true, points);
            for (int i = 0; i < count; i++) {
                rng_at dim = at, point = at;
                dim.dim += (uint32_t)i, point.point += (uint32_t)i;
                CHECK(dims[i] == rng_normal_at(key, dim));
                CHECK(points[i] == rng_normal_at(key, point));
            }
            CHECK(dims[count] == 99 && points[count] == 99);
        }
    }
}

static void sigma_and_its_slope(void) {
    for (int j = 0; j < 3; j++) {
        const cpu_kernels *k = cpu_kernels_best(isas[j]);
        for (int sigmoid = 0; k && sigmoid < 2; sigmoid++) {
            float raw[41], sigma[41], slope[41];
            for (int i = 0; i < 41; i++) raw[i] = (float)(i - 20) * 1.5f;
            k->sigma(41, raw, sigmoid, 0.05f, 0.95f, sigma, slope);
            for (int i = 0; i < 41; i++) {
                double v = (double)raw[i], s = 1 / (1 + exp(-v));
                double plus = fmax(v, 0) + log1p(exp(-fabs(v)));
                NEAR(sigma[i], 0.05 + 0.95 * (sigmoid ? s : plus), 0, 1e-6);
                NEAR(slope[i], 0.95 * (sigmoid ? s / (1 + exp(v)) : s), 0, 2e-6);
            }
        }
    }
}

static void places(void) {
    step_block step = {.seed = 9, .step = 1234};
    exec_io io = {.step = &step};
    frame f = {.io = &io, .function = 6};
    CHECK(gauss_key(&f).seed == 9);
    CHECK(gauss_place(&f, RNG_LATENT, 4).step == 1234);
    CHECK(gauss_place(&f, RNG_LATENT_EVAL, 4).step == 0);
    CHECK(gauss_place(&f, RNG_BASE, 4).step == 0);
    CHECK(gauss_place(&f, RNG_BASE, 4).function == 6 && gauss_place(&f, RNG_BASE, 4).sample == 4);
}

int main(void) {
    RUN(normals_have_the_same_bits);
    RUN(sigma_and_its_slope);
    RUN(places);
    return check_done();
}
