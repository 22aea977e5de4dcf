/* fourier.c: cosines and sines of 2 pi t. The number of turns t is summed in double and loses its
 * whole turns there, exactly; what is left, |t| <= 1/2, goes on in float. Rounding by adding and
 * subtracting 1.5 2^52 needs no instruction that an old processor lacks (|t| < 2^51). */
#include "backend/cpu/simd/simd_math.h"
#include "backend/cpu/simd/table.h"

/* The fractions of a turn for VL frequencies. freq (X, ld) */
SIMD_INLINE vf turns(int64_t X, const float *x, const double *freq, int64_t ld) {
    const double magic = 6755399441055744.0;
    double t[VL] = {0};
    float left[VL];
    for (int64_t k = 0; k < X; k++) {
        const double xk = (double)x[k];
        for (int i = 0; i < VL; i++) t[i] += xk * freq[k * ld + i];
    }
    for (int i = 0; i < VL; i++) left[i] = (float)(t[i] - ((t[i] + magic) - magic));
    return vload(left);
}

void ISA(cpu_fourier)(int64_t rows, int64_t X, int64_t F, const float *x, int64_t ldx,
                      const double *freq, float *y, int64_t ldy) {
    const int64_t ld = (F + 15) / 16 * 16;
    for (int64_t r = 0; r < rows; r++) {
        float *c = y + r * ldy, *s = c + F;
        for (int64_t k = 0; k < F; k += VL) {
            vf sine, cosine;
            vsincos2pi(turns(X, x + r * ldx, freq + k, ld), &sine, &cosine);
            if (k + VL <= F) {
                vstore(c + k, cosine);
                vstore(s + k, sine);
            } else {
                memcpy(c + k, &cosine, (size_t)(F - k) * sizeof(float));
                memcpy(s + k, &sine, (size_t)(F - k) * sizeof(float));
            }
        }
    }
}
