/* races.cpp: kernels whose races are known, for tests/long/test_races.sh: the thread sanitizer must
 * report the first of each pair and not the second.
 *
 *   races NAME              runs one of them on a block of 64 threads */
#include <stdio.h>

#include "backend/cuda/device/ptx.cuh"
#include "block.h"

#define ROOM ((float *)smem)
enum { ARRIVAL_AT = 8192, COPY_AT = 1024, COPY_BYTES = 256, THREADS = 64 };

static float memory[THREADS], taken[THREADS];

/* A thread reads what another one wrote. */
static void exchange(bool barrier) {
    const unsigned t = threadIdx.x;
    ROOM[t] = (float)t;
    if (barrier) __syncthreads();
    taken[t] = ROOM[(t + 40) % THREADS];
}
/* The same in a warp, with a shuffle between, which orders nothing. */
static void exchange_in_warp(bool sync) {
    const unsigned t = threadIdx.x;
    ROOM[t] = (float)t;
    taken[t] = __shfl_xor_sync(~0u, 1.0f, 1);
    if (sync) __syncwarp();
    taken[t] += ROOM[t ^ 1u];
}
/* Warps that each meet at a barrier of their own read what both wrote, or the own alone. */
static void named_barriers(bool own) {
    const int t = (int)threadIdx.x, warp = t / 32;
    ROOM[t] = (float)t;
    emulated_barrier(1 + warp, 32, false, EMULATED_HERE);
    taken[t] = ROOM[own ? warp * 32 + (t + 5) % 32 : (t + 32) % THREADS];
}
/* A copy into shared memory, read without and with waiting for it. */
static void copied(bool waits) {
    const uint32_t arrival = shared_at(ROOM) + ARRIVAL_AT;
    if (threadIdx.x == 0) arrival_make(arrival);
    __syncthreads();
    if (threadIdx.x == 0) {
        arrival_expect(arrival, COPY_BYTES);
        bulk_load(shared_at(ROOM) + COPY_AT, memory, COPY_BYTES, arrival);
    }
    if (waits) __syncthreads();
    if (waits) arrival_wait(arrival);
    taken[threadIdx.x] = ROOM[COPY_AT / 4 + threadIdx.x];
}
/* A copy out of shared memory, whose place is written to before and after it has been read. */
static void sent(bool waits) {
    ROOM[threadIdx.x] = 1.0f;
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_store(memory, shared_at(ROOM), COPY_BYTES);
        bulk_commit();
        if (waits) bulk_wait();
    }
    __syncthreads();
    ROOM[threadIdx.x] = 2.0f;
    if (threadIdx.x == 0) bulk_wait();
}

static const struct {
    const char *name;
    void (*kernel)(bool right);
} kernels[] = {{"exchange", exchange},
               {"warp", exchange_in_warp},
               {"named", named_barriers},
               {"copied", copied},
               {"sent", sent}};

int main(int argc, char **argv) {
    for (const auto &k : kernels) {
        const size_t length = strlen(k.name);
        if (argc != 2 || strncmp(argv[1], k.name, length) != 0) continue;
        const bool right = strcmp(argv[1] + length, "-right") == 0;
        emulated_run_block(0, THREADS, EMULATED_SHARED_BYTES, [&] { k.kernel(right); });
        return 0;
    }
    fprintf(stderr, "usage: races NAME[-right]\n");
    return 2;
}
