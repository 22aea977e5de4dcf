/* runtime.cpp: the CUDA runtime of the emulator. Device memory is the host's; a stream does at once
 * what it is asked for, or notes it while it is being captured. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <atomic>
#include <vector>

#include "block.h"
#include "cuda_runtime.h"

struct emulated_graph {
    std::vector<std::function<void()>> work;
};
struct emulated_stream {
    emulated_graph *capture; /* NULL: not being captured */
};
struct emulated_event {
    double seconds;
};

const char *cudaGetErrorString(cudaError_t e) {
    return e == cudaErrorMemoryAllocation ? "out of memory" : "an error of the emulator";
}

/* As on a GPU whoever asks next is told of an error once more, unless somebody has asked before. */
static thread_local cudaError_t last_error = cudaSuccess;

cudaError_t cudaGetLastError(void) {
    const cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

/* ---- the device ------------------------------------------------------------------------------ */

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int *at) {
    *at = 0;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int) {
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int) {
    const int of = emulated_capability();
    *p = {"emulated GPU", EMULATED_PROCESSORS, of / 10, of % 10};
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = *greatest = 0;
    return cudaSuccess;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static std::atomic<size_t> used; /* by cudaMalloc, bytes */

/* Bytes of the device: MNP_EMULATED_MEMORY, asked each time, or 4 GB. */
static size_t memory_of_device() {
    const char *asked = getenv("MNP_EMULATED_MEMORY");
    return asked ? (size_t)strtoull(asked, nullptr, 10) : (size_t)4 << 30;
}

cudaError_t cudaMemGetInfo(size_t *spare, size_t *all) {
    *all = memory_of_device();
    *spare = *all > used ? *all - used : 0;
    return cudaSuccess;
}
cudaError_t cudaMalloc(void **out, size_t bytes) {
    *out = nullptr;
    if (used + bytes > memory_of_device() || posix_memalign(out, 256, bytes))
        return last_error = cudaErrorMemoryAllocation;
    used += malloc_usable_size(*out);
    return cudaSuccess;
}
cudaError_t cudaFree(void *p) {
    used -= p ? malloc_usable_size(p) : 0;
    free(p);
    return cudaSuccess;
}
cudaError_t cudaMallocHost(void **out, size_t bytes) {
    return posix_memalign(out, 256, bytes) ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFreeHost(void *p) {
    free(p);
    return cudaSuccess;
}
cudaError_t cudaMemset(void *p, int byte, size_t bytes) {
    memset(p, byte, bytes);
    return cudaSuccess;
}

/* ---- streams, events, graphs ----------------------------------------------------------------- */

static cudaError_t submit(cudaStream_t s, std::function<void()> work) {
    if (s->capture)
        s->capture->work.push_back(std::move(work));
    else
        work();
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int, cudaStream_t s) {
    return submit(s, [=] {
        if (bytes) memcpy(to, from, bytes);
    });
}

cudaError_t emulated_launch(const cudaLaunchConfig_t &how, std::function<void()> kernel) {
    const unsigned blocks = how.gridDim.x, threads = how.blockDim.x;
    const uint32_t shared = (uint32_t)how.dynamicSmemBytes;
    if (how.dynamicSmemBytes > (size_t)emulated_shared_limit()) return cudaErrorUnknown;
    return submit(how.stream, [=] {
        emulated_grid_size = {blocks, 1, 1};
        for (unsigned b = 0; b < blocks; b++) emulated_run_block(b, threads, shared, kernel);
    });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned) {
    *out = new emulated_stream{};
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
    delete s;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) {
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out) {
    *out = new emulated_event{};
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
    delete e;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    e->seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
    *milliseconds = (float)(1e3 * (to->seconds - from->seconds));
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, int) {
    s->capture = new emulated_graph{};
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out) {
    *out = s->capture;
    s->capture = nullptr;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned) {
    *out = new emulated_graph(*g);
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t) {
    for (const auto &work : g->work) work();
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
    delete g;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g) {
    delete g;
    return cudaSuccess;
}
