/* cuda_runtime.h: what the kernels and host/runtime.cu use of CUDA, for a C++ compiler; emulator.h
 * says how it runs. In the emulated build this file is found in place of CUDA's; a function that it
 * lacks is added here. */
#ifndef MNP_EMULATED_CUDA_RUNTIME_H
#define MNP_EMULATED_CUDA_RUNTIME_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <functional>

#include "emulator.h"

#define __device__
#define __host__
#define __grid_constant__
#define __global__
#define __shared__      static
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)

#define threadIdx emulated_thread
#define blockIdx  emulated_block
#define blockDim  emulated_block_size
#define gridDim   emulated_grid_size

/* What the compiler may assume is of no use here. */
#define __builtin_assume(truth) ((void)0)

/* ---- vectors --------------------------------------------------------------------------------- */

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static inline float2 make_float2(float x, float y) {
    return {x, y};
}
static inline float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}
static inline uint2 make_uint2(unsigned x, unsigned y) {
    return {x, y};
}
static inline int4 make_int4(int x, int y, int z, int w) {
    return {x, y, z, w};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return {x, y, z, w};
}

/* ---- numbers --------------------------------------------------------------------------------- */

using std::isfinite;
using std::isnan;

static inline int min(int a, int b) {
    return a < b ? a : b;
}
static inline int max(int a, int b) {
    return a > b ? a : b;
}
static inline unsigned min(unsigned a, unsigned b) {
    return a < b ? a : b;
}
static inline unsigned max(unsigned a, unsigned b) {
    return a > b ? a : b;
}
static inline int64_t min(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static inline int64_t max(int64_t a, int64_t b) {
    return a > b ? a : b;
}
static inline float min(float a, float b) {
    return fminf(a, b);
}
static inline float max(float a, float b) {
    return fmaxf(a, b);
}
static inline double min(double a, double b) {
    return fmin(a, b);
}
static inline double max(double a, double b) {
    return fmax(a, b);
}
static inline unsigned __float_as_uint(float x) {
    unsigned u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline float __uint_as_float(unsigned u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline float __fmul_rn(float a, float b) {
    return a * b;
}
static inline float __fdividef(float a, float b) {
    return a / b;
}
static inline float rsqrtf(float x) {
    return 1.0f / sqrtf(x);
}
static inline void sincospif(float x, float *sine, float *cosine) {
    *sine = (float)sin(M_PI * (double)x), *cosine = (float)cos(M_PI * (double)x);
}

/* ---- memory ---------------------------------------------------------------------------------- */

template <class T> static inline T __ldg(const T *p) {
    return *p;
}
template <class T> static inline T __ldcg(const T *p) {
    return *p;
}
template <class T> static inline T __ldcs(const T *p) {
    return *p;
}
template <class T> static inline void __stcg(T *p, T v) {
    *p = v;
}
static inline int atomicAdd(int *p, int v) {
    return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
static inline int atomicMin(int *p, int v) {
    int old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (v < old &&
           !__atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return old;
}
static inline void __nanosleep(unsigned) {}
static inline void __threadfence() {} /* blocks run one after the other */
static inline int64_t clock64() {
    return (int64_t)__builtin_ia32_rdtsc();
}

/* ---- threads together ------------------------------------------------------------------------ */

static inline void __syncthreads(emulated_place here = EMULATED_HERE) {
    emulated_barrier(0, (int)blockDim.x, true, here);
}
static inline void __syncwarp(unsigned mask = ~0u, emulated_place here = EMULATED_HERE) {
    emulated_together(emulated_nothing, mask, nullptr, here);
}
template <class T>
static inline T emulated_from_lane(unsigned mask, T v, int from, emulated_place here) {
    emulated_exchange x = {0, from};
    memcpy(&x.value, &v, sizeof v);
    emulated_together(emulated_shuffle, mask, &x, here);
    memcpy(&v, &x.value, sizeof v);
    return v;
}
template <class T>
static inline T __shfl_sync(unsigned mask, T v, int lane, int width = 32,
                            emulated_place here = EMULATED_HERE) {
    const int own = (int)threadIdx.x % 32;
    return emulated_from_lane(mask, v, (own & ~(width - 1)) | (lane & (width - 1)), here);
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T v, int with, int width = 32,
                                emulated_place here = EMULATED_HERE) {
    const int own = (int)threadIdx.x % 32, from = own ^ with;
    return emulated_from_lane(mask, v, from / width <= own / width ? from : own, here);
}
static inline unsigned __ballot_sync(unsigned mask, bool yes, emulated_place here = EMULATED_HERE) {
    emulated_vote x = {yes, 0};
    emulated_together(emulated_ballot, mask, &x, here);
    return x.all;
}
static inline bool __any_sync(unsigned mask, bool yes, emulated_place here = EMULATED_HERE) {
    return __ballot_sync(mask, yes, here) != 0;
}

/* ---- the host's side ------------------------------------------------------------------------- */

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorMemoryAllocation = 2,
    cudaErrorNoDevice = 100,
    cudaErrorNotReady = 600,
    cudaErrorUnknown = 999
};
enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum { cudaStreamNonBlocking = 1, cudaStreamCaptureModeThreadLocal = 1 };
enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

struct emulated_graph;
struct emulated_stream;
struct emulated_event;
typedef emulated_graph *cudaGraph_t, *cudaGraphExec_t;
typedef emulated_stream *cudaStream_t;
typedef emulated_event *cudaEvent_t;

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned across = 1) : x(across), y(1), z(1) {}
};
enum { cudaLaunchAttributeProgrammaticStreamSerialization = 6, cudaLaunchAttributePriority = 8 };
struct cudaLaunchAttribute {
    int id;
    struct {
        int programmaticStreamSerializationAllowed, priority;
    } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};
struct cudaDeviceProp {
    char name[256];
    int multiProcessorCount, major, minor;
};

const char *cudaGetErrorString(cudaError_t e);
cudaError_t cudaGetLastError(void);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *at);
cudaError_t cudaSetDevice(int at);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int at);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaMemGetInfo(size_t *spare, size_t *all);
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *p);
cudaError_t cudaMallocHost(void **out, size_t bytes);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaMemset(void *p, int byte, size_t bytes);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t s);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaStreamQuery(cudaStream_t s);
cudaError_t cudaEventCreate(cudaEvent_t *out);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaStreamBeginCapture(cudaStream_t s, int mode);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s);
cudaError_t cudaGraphDestroy(cudaGraph_t g);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g);

cudaError_t emulated_launch(const cudaLaunchConfig_t &how, std::function<void()> kernel);

template <class F> static inline cudaError_t cudaFuncSetAttribute(F *, int, int bytes) {
    return bytes <= emulated_shared_limit() ? cudaSuccess : cudaErrorUnknown;
}
template <class... P, class... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *how, void (*kernel)(P...),
                                             A... args) {
    return emulated_launch(*how, [=] { kernel(args...); });
}

#endif
