/* fourier.cuh: a Fourier feature, for the op and the fused first layer. */
#ifndef MNP_CUDA_FOURIER_CUH
#define MNP_CUDA_FOURIER_CUH

#include "backend/cuda/frame.cuh"

/* How far frequency times x is from a whole number: all digits of the product count, and what is
 * left of it is rounded once. */
FN float part_of_turn(float frequency, float x) {
    return fmaf(frequency, x, -rintf(frequency * x));
}

FN void wave(float turns, float *cosine, float *sine) {
    sincospif(2.0f * turns, sine, cosine);
}

/* The same within 5e-7 by the unit for such functions, for numbers that lose digits in products. */
FN void rough_wave(float turns, float *cosine, float *sine) {
    *cosine = fast_cosine(6.283185307f * turns), *sine = fast_sine(6.283185307f * turns);
}

#endif
