/* update.cu: the step that follows a batch (equations in op/update.h): sum of the slots and its
 * norm, then the numbers of the step, then Adam. Ranges and orders of summation are fixed. */
#include "backend/cuda/kernels.cuh"

/* Words at .. at + 3 of `count` blocks of numbers, added in order. */
static __device__ float4 ordered_words(const float *from, int64_t count, int64_t stride) {
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int64_t s = 0; s < count; s++) {
        const float4 v = __ldcs((const float4 *)(from + s * stride));
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    return sum;
}

/* The same of a gradient that is made of ROWS outer products per function. */
template <int ROWS>
static __device__ float4 outer_words(const dev_run *run, const dev_outer &o, int64_t at) {
    const int within = (int)(at - o.at), k = within / o.cols;
    const float *x = run->kept + o.x + k, *g = run->kept + o.g + (within - k * o.cols);
    const int64_t functions = run->item_hi - run->item_lo, stride = run->kept_words;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll(8 / ROWS)
    for (int64_t s = 0; s < functions; s++, x += stride, g += stride)
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float k = __ldg(x + r * o.x_step);
            const float4 v = __ldg((const float4 *)(g + r * o.g_step));
            sum.x += k * v.x, sum.y += k * v.y, sum.z += k * v.z, sum.w += k * v.w;
        }
    return sum;
}

/* The sum over this process's functions. */
static __device__ float4 function_words(const dev_run *run, int64_t at) {
    const int which = run->outer_of ? run->outer_of[at / DEV_OUTER_WORDS] : -1;
    if (which < 0) return ordered_words(run->slots + at, run->n_slots, run->slot_words);
    const dev_outer o = run->outer[which];
    return o.count == 1 ? outer_words<1>(run, o, at) : outer_words<2>(run, o, at);
}

/* slot_sum and grad_norm: a block sums DEV_STEP_WORDS words over all slots, or over the sums of the
 * ranks where there are such. */
__global__ void __launch_bounds__(DEV_STEP_THREADS, 4)
    sum_kernel(const dev_run *run, const float *sums, int ranks) {
    __shared__ double room[DEV_STEP_THREADS / 32];
    const int64_t at = (int64_t)blockIdx.x * DEV_STEP_WORDS + threadIdx.x * 4;
    double square = 0;
    if (at < run->trainable) {
        float4 sum =
            sums ? ordered_words(sums + at, ranks, run->slot_words) : function_words(run, at);
        const float items = (float)run->items;
        sum.x /= items, sum.y /= items, sum.z /= items, sum.w /= items;
        *(float4 *)(run->slots + at) = sum;
        square = (double)sum.x * sum.x + (double)sum.y * sum.y + (double)sum.z * sum.z +
                 (double)sum.w * sum.w;
    }
    for (int d = 16; d > 0; d >>= 1) square += __shfl_xor_sync(~0u, square, d);
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = square;
    __syncthreads();
    if (threadIdx.x == 0) {
        double total = 0;
        for (int w = 0; w < DEV_STEP_THREADS / 32; w++) total += room[w];
        run->partial[blockIdx.x] = total;
    }
}

static __device__ double rate_of(const dev_step *b, int64_t step) {
    double rate = b->rate_max;
    if (step + 1 < b->warmup) rate *= (double)(step + 1) / (double)b->warmup;
    if (b->schedule == 1 && b->total > 0) {
        const double done = step < b->total ? (double)step / (double)b->total : 1.0;
        rate *= 0.5 * (1.0 + cos(3.14159265358979323846 * done));
    }
    return rate;
}

/* Each warp's sum of a strided list, then the warps in order. */
static __device__ double ordered_sum(const double *list, int64_t count, int64_t stride,
                                     double *room) {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += list[i * stride];
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int w = 0; w < (int)blockDim.x / 32; w++) sum += room[w];
    return sum;
}

/* grad_total, what adam needs, and tick: nothing that follows in the step reads the counter. */
__global__ void __launch_bounds__(DEV_STEP_THREADS) total_kernel(const dev_run *run, int ranges) {
    __shared__ double room[DEV_STEP_THREADS / 32];
    __shared__ int bad;
    dev_step *b = run->step;
    const double squares = ordered_sum(run->partial, ranges, 1, room);
    double mean[DREPORT_COUNT];
    for (int j = 0; j < DREPORT_COUNT; j++)
        mean[j] = ordered_sum(run->item_scalars + j, run->items, DREPORT_COUNT, room) /
                  (double)run->items;
    if (threadIdx.x == 0) bad = 0x7fffffff;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < run->items; i += blockDim.x)
        if (!isfinite(run->item_scalars[i * DREPORT_COUNT])) atomicMin(&bad, (int)i);
    __syncthreads();
    if (threadIdx.x != 0) return;
    b->grad_norm = sqrt(squares);
    b->bad_item = bad == 0x7fffffff ? -1 : bad;
    b->loss = mean[0], b->kl = mean[1], b->loglik = mean[2];
    b->rate = rate_of(b, b->step);
    dev_adam *a = run->adam;
    a->go = b->bad_item < 0 && isfinite(b->grad_norm);
    if (!a->go) return;
    const double t = (double)b->step + 1.0;
    a->clip = (float)(b->clip > 0 && b->grad_norm > b->clip ? b->clip / b->grad_norm : 1.0);
    a->beta1 = (float)b->beta1, a->mix1 = (float)(1.0 - b->beta1);
    a->beta2 = (float)b->beta2, a->mix2 = (float)(1.0 - b->beta2);
    a->rate = (float)(rate_of(b, b->step) / (1.0 - pow(b->beta1, t)));
    a->inv_c2 = (float)(1.0 / (1.0 - pow(b->beta2, t)));
    a->eps = (float)b->eps;
    a->first = b->step == 0;
    a->blend = (float)(a->first ? 1.0 : 1.0 - b->ema);
    a->averages = b->ema > 0 && run->average;
    b->step++;
    b->rate = rate_of(b, b->step);
}

__global__ void __launch_bounds__(DEV_STEP_THREADS) adam_kernel(const dev_run *run) {
    const dev_adam a = *run->adam;
    const int64_t at = (int64_t)blockIdx.x * DEV_STEP_THREADS + threadIdx.x;
    if (!a.go || at >= run->words) return;
    if (at >= run->trainable) { /* frozen weights are their own average */
        if (a.averages && a.first) run->average[at] = run->weights[at];
        return;
    }
    const float d = a.clip * run->slots[at];
    const float m = a.beta1 * run->moment1[at] + a.mix1 * d;
    const float v = a.beta2 * run->moment2[at] + a.mix2 * (d * d);
    const float w = run->weights[at] - a.rate * m / (sqrtf(v * a.inv_c2) + a.eps);
    run->moment1[at] = m;
    run->moment2[at] = v;
    run->weights[at] = w;
    if (!a.averages) return;
    const float old = run->average[at];
    run->average[at] = a.first ? w : old + a.blend * (w - old);
}

/* The sum of this rank's slots into the first; the batch's size comes in later. */
__global__ void __launch_bounds__(DEV_STEP_THREADS, 4) local_kernel(const dev_run *run) {
    const int64_t at = (int64_t)blockIdx.x * DEV_STEP_WORDS + threadIdx.x * 4;
    if (at < run->trainable) *(float4 *)(run->slots + at) = function_words(run, at);
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

static int ranges_of(int64_t words) {
    return (int)((words + DEV_STEP_WORDS - 1) / DEV_STEP_WORDS);
}

void update_local_launch(const dev_run *run, int64_t words, cudaStream_t stream) {
    const cudaLaunchConfig_t how = launch_of(ranges_of(words), DEV_STEP_THREADS, 0, stream);
    cudaLaunchKernelEx(&how, local_kernel, run);
}

void update_reports_launch(const dev_run *run, const double *all, int ranks, int64_t most,
                           cudaStream_t stream) {
    const cudaLaunchConfig_t how = launch_of(1, DEV_STEP_THREADS, 0, stream);
    cudaLaunchKernelEx(&how, reports_kernel, run, all, ranks, most);
}

void update_launch(const dev_run *run, int64_t words, cudaStream_t stream) {
    update_linked_launch(run, words, nullptr, 1, stream);
}

void update_linked_launch(const dev_run *run, int64_t words, const float *sums, int ranks,
                          cudaStream_t stream) {
    const int ranges = ranges_of(words);
    const int blocks = (int)((words + DEV_STEP_THREADS - 1) / DEV_STEP_THREADS);
    cudaLaunchConfig_t how = launch_of(ranges, DEV_STEP_THREADS, 0, stream);
    cudaLaunchKernelEx(&how, sum_kernel, run, sums, ranks);
    how.gridDim.x = 1;
    cudaLaunchKernelEx(&how, total_kernel, run, ranges);
    how.gridDim.x = (unsigned)blocks;
    cudaLaunchKernelEx(&how, adam_kernel, run);
}
