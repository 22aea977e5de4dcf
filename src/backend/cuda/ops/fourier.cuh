/* fourier.cuh: Fourier features: one, as the fused first layer computes it too, and the op.
 *
 *   x (n, X), freq (F, X):   y (n, 2 F) = [cos 2 pi x freq^T, sin 2 pi x freq^T]
 *                            y (n, 2 F + X), with x after it, where that is asked for
 *
 * It has no gradient. Shared memory: x of all samples (S n, ld), then freq (F, ld), if both fit. */
#ifdef CUDA_OP
CUDA_OP(BLOCK, fourier, op_fourier(ins))
#elif !defined(MNP_CUDA_OPS_FOURIER_CUH)
#define MNP_CUDA_OPS_FOURIER_CUH

#include "backend/cuda/device/frame.cuh"
#include "op/fourier.h"

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

/* Threads are (row, frequency) and stay at their frequency; x and the frequencies are read from
 * shared memory where they fit. */
OP_FN void op_fourier(const dev_instr &ins) {
    const Frame &f = frame();
    const View x = view_in(ins, FOURIER_X), w = view_in(ins, FOURIER_FREQ);
    const View y = view_out(ins, FOURIER_Y);
    const int rows = x.all_rows(f.S), F = w.rows, cols = x.cols, rest = y.ld - 2 * F;
    const bool fits = rows * x.ld + F * w.ld <= WORK_WORDS;
    float *buf = work(), *buf_w = buf + rows * x.ld;
    const float *xs = fits ? buf : x.p, *ws = fits ? buf_w : w.p;
#pragma unroll 1
    for (int i = threadIdx.x; fits && i < F * w.ld; i += THREADS) buf_w[i] = w.p[i];
#pragma unroll 1
    for (int i = threadIdx.x; fits && i < rows * x.ld; i += THREADS) buf[i] = x.p[i];
    __syncthreads();
    constexpr int FLIGHT = 4; /* rows of a thread, so that their chains of sums run side by side */
    const int side = max(1, THREADS / F); /* rows at a time; threads left over have none */
    const int first = side > 1 ? (int)threadIdx.x / F : 0;
#pragma unroll 1
    for (int k = (int)threadIdx.x - first * F; first < side && k < F; k += THREADS)
#pragma unroll 1
        for (int r0 = first; r0 < rows; r0 += FLIGHT * side) {
            float turns[FLIGHT] = {};
#pragma unroll 1
            for (int c = 0; c < cols; c++)
#pragma unroll
                for (int j = 0; j < FLIGHT; j++)
                    turns[j] +=
                        part_of_turn(ws[k * w.ld + c], xs[min(r0 + j * side, rows - 1) * x.ld + c]);
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) {
                float cosine, sine, *to = y.p + (int64_t)(r0 + j * side) * y.ld + k;
                wave(turns[j], &cosine, &sine);
                if (r0 + j * side < rows) to[0] = cosine, to[F] = sine;
            }
        }
#pragma unroll 1
    for (int i = threadIdx.x; i < rows * rest; i += THREADS) {
        const int r = i / rest, c = i % rest;
        const bool own = ins.i[FOURIER_APPEND] && c < cols;
        y.p[(int64_t)r * y.ld + 2 * F + c] = own ? xs[r * x.ld + c] : 0.0f;
    }
}

#endif
