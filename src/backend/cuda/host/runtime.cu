/* runtime.cu: the functions of api.h: memory, copies, launches, and the captured step. */
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/host/api.h"
#include "backend/cuda/kernels/kernels.cuh"

/* Steps that are captured together: within a graph a kernel is set up while the one before it ends.
 */
enum { GROUP = 10 };

struct cuda_queue {
    const kernel_set *kernels;
    cudaStream_t stream;
    cudaEvent_t begun, ended;
    cudaGraphExec_t one, many; /* captured: a step, and GROUP of them, of ... */
    const dev_run *run;
    step_shape shape;
    cuda_stage *stages;
    int n_stages;
    int shares; /* `shared` holds */
    cuda_shared_step shared;
};

static const char *error_text(int error) {
    return cudaGetErrorString((cudaError_t)error);
}

static int probe(cuda_device_info *info) {
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess) return (int)e;
    if (count == 0) return (int)cudaErrorNoDevice;
    cudaDeviceProp p;
    int at = 0;
    e = cudaGetDevice(&at);
    if (e == cudaSuccess) e = cudaGetDeviceProperties(&p, at);
    if (e != cudaSuccess) return (int)e;
    memcpy(info->name, p.name, sizeof info->name - 1);
    info->name[sizeof info->name - 1] = '\0';
    info->processors = p.multiProcessorCount;
    info->major = p.major, info->minor = p.minor;
    return (int)cudaMemGetInfo(&info->spare, &info->memory);
}

static void forget_steps(cuda_queue *q) {
    if (q->one) cudaGraphExecDestroy(q->one);
    if (q->many) cudaGraphExecDestroy(q->many);
    q->one = q->many = NULL;
}

static void queue_destroy(cuda_queue *q) {
    if (!q) return;
    forget_steps(q);
    if (q->begun) cudaEventDestroy(q->begun);
    if (q->ended) cudaEventDestroy(q->ended);
    if (q->stream) cudaStreamDestroy(q->stream);
    free(q->stages);
    free(q);
}

static const kernel_set *const sets[] = {&kernels, &general_fp32::kernels, &general_16::kernels};
static_assert(CUDA_FULL == 0 && CUDA_GENERAL_FP32 == 1 && CUDA_GENERAL_16 == 2, "sets");

static int queue_make(cuda_queue **out, int which) {
    *out = NULL;
    cuda_queue *q = (cuda_queue *)calloc(1, sizeof *q);
    if (!q) return (int)cudaErrorMemoryAllocation;
    const kernel_set *set = q->kernels = sets[which];
    cudaError_t e = cudaStreamCreateWithFlags(&q->stream, cudaStreamNonBlocking);
    if (e == cudaSuccess) e = cudaEventCreate(&q->begun);
    if (e == cudaSuccess) e = cudaEventCreate(&q->ended);
    if (e == cudaSuccess) e = set->functions_prepare();
    if (e == cudaSuccess && set->products) e = set->products_prepare();
    if (e == cudaSuccess && set->wide_prepare) e = set->wide_prepare();
    if (e != cudaSuccess) {
        queue_destroy(q);
        return (int)e;
    }
    *out = q;
    return 0;
}

static int alloc(void **out, size_t bytes) {
    *out = NULL;
    cudaError_t e = cudaMalloc(out, bytes ? bytes : 16);
    if (e == cudaSuccess) e = cudaMemset(*out, 0, bytes ? bytes : 16);
    /* memset of the default stream: queues do not wait for it by themselves */
    if (e == cudaSuccess) e = cudaStreamSynchronize(0);
    if (e == cudaErrorMemoryAllocation) cudaGetLastError(); /* no launch is to answer for it */
    return (int)e;
}

static void release(void *p) {
    if (p) cudaFree(p);
}

static int alloc_host(void **out, size_t bytes) {
    *out = NULL;
    return (int)cudaMallocHost(out, bytes ? bytes : 16);
}

static void release_host(void *p) {
    if (p) cudaFreeHost(p);
}

static int upload(cuda_queue *q, void *to, const void *from, size_t bytes) {
    return (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, q->stream);
}

static int download(cuda_queue *q, void *to, const void *from, size_t bytes) {
    return (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, q->stream);
}

static int sync_queue(cuda_queue *q) {
    return (int)cudaStreamSynchronize(q->stream);
}

static int to_fp16(cuda_queue *q, const float *weights, uint32_t *fp16, const int32_t *fp16_at,
                   int64_t words) {
    q->kernels->update_fp16(weights, fp16, fp16_at, words, q->stream);
    return (int)cudaGetLastError();
}

/* early: the first one may begin while the kernel before it ends */
static void launch_stages(cuda_queue *q, const dev_run *run, const cuda_stage *stages, int count,
                          bool early) {
    for (int k = 0; k < count; k++) {
        const int kind = stages[k].stage.kind;
        if (kind == STAGE_FUNCTIONS)
            q->kernels->functions(run, &stages[k].stage, early || k > 0, q->stream);
        else
            q->kernels->wide[kind](&stages[k].wide, q->stream);
    }
}

static int functions(cuda_queue *q, const dev_run *run, const cuda_stage *stages, int count) {
    launch_stages(q, run, stages, count, false);
    return (int)cudaGetLastError();
}

/* alone: no ranks share the step */
static void form_products(cuda_queue *q, bool alone) {
    if (q->kernels->products) q->kernels->products(q->run, &q->shape, alone, q->stream);
}

/* 0, or an error of the link. */
static int shared_update(cuda_queue *q) {
    const cuda_shared_step *s = &q->shared;
    const int64_t row = 3 * (int64_t)sizeof(double), lo = s->items * s->rank / s->ranks;
    form_products(q, false);
    q->kernels->update_local(q->run, &q->shape, q->stream);
    int e = s->api->gather(s->link, (char *)s->reports + lo * row, s->all, (size_t)(s->most * row),
                           q->stream);
    q->kernels->update_reports(q->run, s->all, s->ranks, s->most, q->stream);
    if (!e && s->fast) e = s->api->sum(s->link, s->own, s->words, q->stream);
    if (!e && !s->fast)
        e = s->api->gather(s->link, s->own, s->sums, s->words * sizeof(float), q->stream);
    q->kernels->update_linked(q->run, &q->shape, s->fast ? s->own : s->sums, s->fast ? 1 : s->ranks,
                              q->stream);
    return e;
}

static int one_step(cuda_queue *q, bool first) {
    launch_stages(q, q->run, q->stages, q->n_stages, !first);
    if (q->shares) return shared_update(q) ? (int)cudaErrorUnknown : 0;
    form_products(q, true);
    q->kernels->update(q->run, &q->shape, q->stream);
    return 0;
}

static void share(cuda_queue *q, const cuda_shared_step *s) {
    const int same = q->shares == (s != NULL) && (!s || memcmp(&q->shared, s, sizeof *s) == 0);
    if (same) return;
    q->shares = s != NULL;
    if (s) q->shared = *s;
    forget_steps(q);
}

static int busy(cuda_queue *q, int *yes) {
    const cudaError_t e = cudaStreamQuery(q->stream);
    *yes = e == cudaErrorNotReady;
    return *yes ? 0 : (int)e;
}

static int select_device(int ordinal) {
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e == cudaSuccess && count > 0) e = cudaSetDevice(ordinal % count);
    return (int)e;
}

static cudaError_t capture(cuda_queue *q, int count, cudaGraphExec_t *out) {
    cudaGraph_t graph;
    cudaError_t e = cudaStreamBeginCapture(q->stream, cudaStreamCaptureModeThreadLocal);
    if (e != cudaSuccess) return e;
    int failed = 0;
    for (int k = 0; k < count && !failed; k++) failed = one_step(q, k == 0);
    e = cudaStreamEndCapture(q->stream, &graph);
    if (e == cudaSuccess && failed) cudaGraphDestroy(graph);
    if (failed) return (cudaError_t)failed;
    if (e != cudaSuccess) return e;
    e = cudaGraphInstantiate(out, graph, 0);
    cudaGraphDestroy(graph);
    return e;
}

static cudaError_t captured_steps(cuda_queue *q, int64_t count) {
    cudaError_t e = cudaSuccess;
    while (count > 0 && e == cudaSuccess) {
        const int group = count < GROUP ? 1 : GROUP;
        cudaGraphExec_t *graph = group == 1 ? &q->one : &q->many;
        if (!*graph) e = capture(q, group, graph);
        if (e == cudaSuccess) e = cudaGraphLaunch(*graph, q->stream);
        count -= group;
    }
    return e;
}

static cudaError_t plain_steps(cuda_queue *q, int64_t count) {
    cudaError_t e = cudaSuccess;
    for (int64_t k = 0; k < count && e == cudaSuccess; k++) {
        e = (cudaError_t)one_step(q, k == 0);
        if (e == cudaSuccess) e = cudaGetLastError();
    }
    return e;
}

/* A copy of the stages; false: there is no memory. */
static bool keep_stages(cuda_queue *q, const cuda_stage *stages, int count) {
    const size_t bytes = (size_t)count * sizeof *stages;
    if (q->n_stages == count && memcmp(q->stages, stages, bytes) == 0) return true;
    forget_steps(q);
    free(q->stages);
    q->stages = (cuda_stage *)malloc(bytes);
    q->n_stages = q->stages ? count : 0;
    if (q->stages) memcpy(q->stages, stages, bytes);
    return q->stages;
}

static int steps(cuda_queue *q, const dev_run *run, const step_shape *shape,
                 const cuda_stage *stages, int n_stages, int64_t count, int captured) {
    if (!keep_stages(q, stages, n_stages)) return (int)cudaErrorMemoryAllocation;
    if (q->run != run || memcmp(&q->shape, shape, sizeof *shape) != 0) forget_steps(q);
    q->run = run, q->shape = *shape;
    cudaError_t e = cudaEventRecord(q->begun, q->stream);
    if (e == cudaSuccess) e = captured ? captured_steps(q, count) : plain_steps(q, count);
    if (e == cudaSuccess) e = cudaEventRecord(q->ended, q->stream);
    return (int)e;
}

static int elapsed(cuda_queue *q, float *milliseconds) {
    return (int)cudaEventElapsedTime(milliseconds, q->begun, q->ended);
}

extern "C" __attribute__((visibility("default"))) const cuda_api *mnp_cuda_api(void) {
    static const cuda_api table = {
        CUDA_API_VERSION, error_text, probe,        queue_make, queue_destroy, alloc,
        release,          alloc_host, release_host, upload,     download,      sync_queue,
        to_fp16,          functions,  steps,        share,      busy,          select_device,
        elapsed};
    return &table;
}
