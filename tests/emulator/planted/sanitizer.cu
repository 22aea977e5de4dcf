/* sanitizer.cu: what compute-sanitizer's racecheck and synccheck say of small kernels that are
 * right, and of one that is not. Not built by make: it shows where their reports about our kernels
 * come from (docs/dev/gpu.md, "Races"; recorded in lab/results/h200-sanitizer.txt).
 *
 *   nvcc -arch=sm_90a -Isrc -Iinclude -o sanitizer tests/emulator/planted/sanitizer.cu
 *   compute-sanitizer --tool racecheck ./sanitizer NAME */
#include <stdio.h>
#include <string.h>

#include <cuda_runtime.h>

#include "backend/cuda/device/ptx.cuh"

enum { THREADS = 512, HALF = THREADS / 2, TURNS = 20, ROOM = 2048, ARRIVALS = 8 };

__shared__ float s[THREADS];
__shared__ alignas(16) float room[ROOM];
__shared__ alignas(8) uint64_t arrivals[ARRIVALS];

/* Halves of a block, each at a barrier of its own. */
__global__ void halves(float *out, const float *) {
    const int t = threadIdx.x, h = t / HALF;
    float v = 0;
    for (int k = 0; k < TURNS; k++) {
        s[t] = t + k;
        barrier(1 + h, HALF);
        v += s[h * HALF + (t + 77) % HALF];
        barrier(1 + h, HALF);
    }
    out[t] = v;
}

/* One half meets three times while the other waits for it; then all exchange. */
__global__ void one_half(float *out, const float *) {
    const int t = threadIdx.x;
    float v = 0;
    for (int k = 0; k < TURNS; k++) {
        for (int i = 0; t >= HALF && i < 3; i++) {
            s[t] = t + i;
            barrier(1, HALF);
            v += s[HALF + (t + 77) % HALF];
            barrier(1, HALF);
        }
        __syncthreads();
        s[t] = t;
        __syncthreads();
        v += s[(t + 300) % THREADS];
        __syncthreads();
    }
    out[t] = v;
}

/* All threads meet at one barrier, from two places of the program. */
__global__ void two_places(float *out, const float *) {
    const int t = threadIdx.x;
    float v = 0;
    for (int k = 0; k < TURNS; k++) {
        if (t >= HALF) {
            s[t] = t * k;
            barrier(2, THREADS);
            v += s[t - HALF];
            barrier(2, THREADS);
        } else {
            s[t] = t + k;
            barrier(2, THREADS);
            v += s[t + HALF] * 2;
            barrier(2, THREADS);
        }
    }
    out[t] = v;
}

/* Copies by the copy engine, waited for by all; then their place is written to again. */
__global__ void copies(float *out, const float *from) {
    const int t = threadIdx.x;
    const uint32_t arrival = shared_at((const float *)&arrivals[3]);
    float v = 0;
    if (t == 0) arrival_make(arrival);
    __syncthreads();
    for (int k = 0; k < TURNS; k++) {
        room[t] = k;
        if (t == 0) arrival_renew(arrival);
        bulk_fence();
        __syncthreads();
        if (t == 0) arrival_expect(arrival, ROOM * 4);
        if (t % 128 == 0) bulk_load(shared_at(room + t * 4), from + t * 4, 128 * 16, arrival);
        __syncthreads();
        arrival_wait(arrival);
        v += room[(t * 4 + 5) % ROOM];
        __syncthreads();
    }
    out[t] = v;
}

/* A race. */
__global__ void race(float *out, const float *) {
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[(threadIdx.x + 100) % THREADS];
}

static const struct {
    const char *name;
    void (*kernel)(float *out, const float *from);
} kernels[] = {{"halves", halves},
               {"one_half", one_half},
               {"two_places", two_places},
               {"copies", copies},
               {"race", race}};

int main(int argc, char **argv) {
    float *out, *from;
    cudaMalloc(&out, THREADS * sizeof *out);
    cudaMalloc(&from, ROOM * sizeof *from);
    cudaMemset(from, 0, ROOM * sizeof *from);
    for (const auto &k : kernels) {
        if (argc != 2 || strcmp(argv[1], k.name) != 0) continue;
        k.kernel<<<2, THREADS>>>(out, from);
        printf("%s: %s\n", k.name, cudaGetErrorString(cudaDeviceSynchronize()));
        return 0;
    }
    fprintf(stderr, "usage: sanitizer NAME\n");
    return 2;
}
