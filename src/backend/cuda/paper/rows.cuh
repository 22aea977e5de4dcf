/* rows.cuh: matrices that travel between global and shared memory row by row, moved by the copy
 * engine: nothing of it goes through registers or the queue of loads and stores. The engine takes a
 * row in about 14 cycles and writes 20 bytes a cycle to memory when all multiprocessors do; a warp
 * that asks is held up for 60 cycles a row and longer when the engine is late (measured, H200).
 * So rows should be long, and few warps ask, or all of them a row or two now and then. An arrival
 * is a number below ARRIVALS; each is good for one wait in an instruction. That an arrival orders a
 * copy is not seen by compute-sanitizer's racecheck, which reports what comes before and after it
 * (docs/dev/gpu.md, "Races"). */
#ifndef MNP_CUDA_PAPER_ROWS_CUH
#define MNP_CUDA_PAPER_ROWS_CUH

#include "backend/cuda/device/resident.cuh"

FN uint32_t arrival_at(int k) {
    return shared_at((const float *)&((Head *)smem)->arrivals[k]);
}

/* Once for a kernel; a barrier follows. */
FN void make_arrivals() {
    if (threadIdx.x < ARRIVALS) arrival_make(arrival_at((int)threadIdx.x));
}

/* All threads, before anything is asked for; copies see what they wrote to shared memory. */
FN void begin_rows() {
    if (threadIdx.x < ARRIVALS) arrival_renew(arrival_at((int)threadIdx.x));
    bulk_fence();
    __syncthreads();
}

/* How many words arrival k waits for; by one thread. */
FN void expect_words(int k, int words) {
    arrival_expect(arrival_at(k), words * 4);
}

FN void wait_rows(int k) {
    arrival_wait(arrival_at(k));
}

/* Rows [n, up16(n)) become zeros: sums over points go that far. `words` is a multiple of 4. */
FN void zero_rows(float *to, int pitch, int words, int n) {
    const int quads = words / 4;
#pragma unroll 1
    for (int i = threadIdx.x; i < (up16(n) - n) * quads; i += THREADS)
        st4(to + (n + i / quads) * pitch + i % quads * 4, make_float4(0, 0, 0, 0));
}

#endif
