/* update.cu: the step that follows a batch (equations in op/update.h): the sums that wgrad tasks
 * did not form (fuse/wgrad_tasks.h), what the step says of its functions, and Adam. */
#include "backend/cuda/kernels/kernels.cuh"

TARGET_BEGIN
#include "backend/cuda/kernels/sums.cuh"

/* ---- the step -------------------------------------------------------------------------------- */

static __device__ double rate_of(const dev_step *b, int64_t step) {
    double rate = b->rate_max;
    if (step + 1 < b->warmup) rate *= (double)(step + 1) / (double)b->warmup;
    if (b->schedule == 1 && b->total > 0) {
        const double done = step < b->total ? (double)step / (double)b->total : 1.0;
        rate *= 0.5 * (1.0 + cos(3.14159265358979323846 * done));
    }
    return rate;
}

/* What adam needs, but for the norm: known before the functions are done. */
static __device__ void prepare_adam(const dev_run *run) {
    dev_step *b = run->step;
    dev_adam *a = run->adam;
    const double t = (double)b->step + 1.0;
    b->rate = rate_of(b, b->step);
    a->next_rate = rate_of(b, b->step + 1), a->next_step = b->step + 1;
    a->beta1 = (float)b->beta1, a->mix1 = (float)(1.0 - b->beta1);
    a->beta2 = (float)b->beta2, a->mix2 = (float)(1.0 - b->beta2);
    a->rate = (float)(b->rate / (1.0 - pow(b->beta1, t)));
    a->inv_c2 = (float)(1.0 / (1.0 - pow(b->beta2, t)));
    a->eps = (float)b->eps;
    a->keep = (float)(1.0 - b->rate * b->decay);
    a->first = b->step == 0;
    a->blend = (float)(a->first ? 1.0 : 1.0 - b->ema);
    a->averages = b->ema > 0 && run->average;
}

/* What the step says of its functions. */
static __device__ void report_functions(const dev_run *run, double *buf) {
    __shared__ int bad;
    dev_step *b = run->step;
    double mean[DREPORT_COUNT];
    if (threadIdx.x == 0) bad = 0x7fffffff;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < run->items; i += DEV_STEP_THREADS)
        if (!isfinite(run->item_scalars[i * DREPORT_COUNT])) atomicMin(&bad, (int)i);
    for (int j = 0; j < DREPORT_COUNT; j++)
        mean[j] =
            list_sum(run->item_scalars + j, run->items, DREPORT_COUNT, buf) / (double)run->items;
    if (threadIdx.x != 0) return;
    b->bad_item = bad == 0x7fffffff ? -1 : bad;
    b->loss = mean[0], b->kl = mean[1], b->loglik = mean[2];
}

/* The block that has no span. It lets Adam's blocks come when the functions have ended, not
 * before: they would wait where other runs have functions. It waits for the kernel before this one,
 * so that whoever waits for this one has waited for all. */
static __device__ void direct(const dev_run *run, double *buf) {
    if (threadIdx.x == 0) prepare_adam(run);
    wait_count(&run->adam->passed[DEV_ENDED], (int)run->n_slots);
    grid_release();
    report_functions(run, buf);
    count_done(run, buf);
    grid_wait();
}

enum { SUM_ROWS = 32, SUM_BYTES = 2 * SUM_ROWS * SUM_ROW * 16 };

/* One block that directs, then a block to a span, from `first` on. What products form is there
 * when they are done. */
__global__ void __launch_bounds__(DEV_STEP_THREADS, 4)
    sum_kernel(const dev_run *run, int first, const float *sums, int ranks) {
    float4 *buf = (float4 *)smem;
    if (blockIdx.x == 0) {
        direct(run, (double *)buf);
        return;
    }
    const int which = first + (int)blockIdx.x - 1;
    grid_release();
    wait_count(&run->adam->passed[run->grad_spans[which].milestone], (int)run->n_slots);
    if (run->grad_spans[which].parts > 0) grid_wait();
    sum_block<SUM_ROWS>(run, which, sums, ranks, buf);
}

static __device__ float adam_word(const dev_adam &a, float gradient, float &m, float &v, float w) {
    const float d = a.clip * gradient;
    m = a.beta1 * m + a.mix1 * d;
    v = a.beta2 * v + a.mix2 * (d * d);
    return a.keep * w - a.rate * m / (sqrtf(v * a.inv_c2) + a.eps);
}

static __device__ float blended(const dev_adam &a, float old, float w) {
    return a.first ? w : old + a.blend * (w - old);
}

/* Four weights as fp16 (fuse/fp16_weights.h). */
static __device__ void put_fp16(uint32_t *fp16, int32_t at, const float4 &w) {
    ((uint2 *)fp16)[at] = make_uint2(pack_fp16(w.x, w.y), pack_fp16(w.z, w.w));
}

__global__ void __launch_bounds__(DEV_STEP_THREADS)
    fp16_kernel(const float *weights, uint32_t *fp16, const int32_t *fp16_at, int64_t words) {
    const int64_t at = ((int64_t)blockIdx.x * DEV_STEP_THREADS + threadIdx.x) * 4;
    if (at < words) put_fp16(fp16, fp16_at[at / 4], *(const float4 *)(weights + at));
}

/* Four words a thread; what the sum does not change is read before it is there. */
__global__ void __launch_bounds__(DEV_STEP_THREADS) adam_kernel(const dev_run *run) {
    const int64_t at = ((int64_t)blockIdx.x * DEV_STEP_THREADS + threadIdx.x) * 4;
    grid_release();
    if (at >= run->words) return;
    const float4 zero = make_float4(0, 0, 0, 0);
    const bool frozen = at >= run->trainable;
    float4 w = *(const float4 *)(run->weights + at);
    float4 m = frozen ? zero : *(const float4 *)(run->moment1 + at);
    float4 v = frozen ? zero : *(const float4 *)(run->moment2 + at);
    float4 average = run->average ? *(const float4 *)(run->average + at) : zero;
    const int32_t at16 = run->fp16 ? run->fp16_at[at / 4] : 0;
    grid_wait();
    const dev_adam a = *run->adam;
    const float4 g = frozen ? zero : *(const float4 *)(run->slots + at);
    if (!a.go) return;
    if (frozen) { /* their own average */
        if (a.averages && a.first) *(float4 *)(run->average + at) = w;
        return;
    }
    w.x = adam_word(a, g.x, m.x, v.x, w.x), w.y = adam_word(a, g.y, m.y, v.y, w.y);
    w.z = adam_word(a, g.z, m.z, v.z, w.z), w.w = adam_word(a, g.w, m.w, v.w, w.w);
    *(float4 *)(run->moment1 + at) = m;
    *(float4 *)(run->moment2 + at) = v;
    *(float4 *)(run->weights + at) = w;
    if (run->fp16) put_fp16(run->fp16, at16, w);
    if (!a.averages) return;
    average.x = blended(a, average.x, w.x), average.y = blended(a, average.y, w.y);
    average.z = blended(a, average.z, w.z), average.w = blended(a, average.w, w.w);
    *(float4 *)(run->average + at) = average;
}

/* The sum of this rank's slots into the first; the batch's size comes in later. */
__global__ void __launch_bounds__(DEV_STEP_THREADS, 4) local_kernel(const dev_run *run) {
    float4 *buf = (float4 *)smem;
    function_words<SUM_ROWS>(run, run->grad_spans[blockIdx.x], buf, [=](int64_t word, float4 sum) {
        *(float4 *)(run->slots + word) = sum;
    });
}

/* Rank r's reports are those of functions items r / ranks .. items (r + 1) / ranks. */
__global__ void __launch_bounds__(DEV_STEP_THREADS)
    reports_kernel(const dev_run *run, const double *all, int ranks, int64_t most) {
    for (int r = 0; r < ranks; r++) {
        const int64_t lo = run->items * r / ranks, hi = run->items * (r + 1) / ranks;
        for (int64_t i = threadIdx.x; i < (hi - lo) * DREPORT_COUNT; i += blockDim.x)
            run->item_scalars[lo * DREPORT_COUNT + i] = all[r * most * DREPORT_COUNT + i];
    }
}

static int adam_blocks(int64_t words) {
    return (int)((words + 4 * DEV_STEP_THREADS - 1) / (4 * DEV_STEP_THREADS));
}

template <class K, class... A>
static void launch_update(K kernel, int blocks, int bytes, bool early, cudaStream_t stream,
                          A... args) {
    launch_as(launch_of(blocks, DEV_STEP_THREADS, (size_t)bytes, stream), true, early, kernel,
              args...);
}

void update_fp16_launch(const float *weights, uint32_t *fp16, const int32_t *fp16_at, int64_t words,
                        cudaStream_t stream) {
    launch_update(fp16_kernel, adam_blocks(words), 0, false, stream, weights, fp16, fp16_at, words);
}

void update_local_launch(const dev_run *run, const step_shape *s, cudaStream_t stream) {
    launch_update(local_kernel, s->grad_spans, SUM_BYTES, false, stream, run);
}

void update_reports_launch(const dev_run *run, const double *all, int ranks, int64_t most,
                           cudaStream_t stream) {
    launch_update(reports_kernel, 1, 0, false, stream, run, all, ranks, most);
}

void update_launch(const dev_run *run, const step_shape *s, cudaStream_t stream) {
    launch_update(sum_kernel, s->grad_spans - s->task_spans + 1, SUM_BYTES, true, stream, run,
                  s->task_spans, (const float *)nullptr, 1);
    launch_update(adam_kernel, adam_blocks(s->words), 0, true, stream, run);
}

void update_linked_launch(const dev_run *run, const step_shape *s, const float *sums, int ranks,
                          cudaStream_t stream) {
    launch_update(sum_kernel, s->grad_spans + 1, SUM_BYTES, false, stream, run, 0, sums, ranks);
    launch_update(adam_kernel, adam_blocks(s->words), 0, true, stream, run);
}
TARGET_END
