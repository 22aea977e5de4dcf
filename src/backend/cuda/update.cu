/* update.cu: the step that follows a batch (equations in op/update.h): sum of the slots, its norm
 * and the numbers of the step in one kernel, Adam in another. Ranges and orders of summation are
 * fixed. */
#include "backend/cuda/kernels.cuh"
#include "backend/cuda/ptx.cuh"

/* Words at .. at + 3 of `count` blocks of numbers, added in order; so many are asked for at once.
 */
static __device__ float4 ordered_words(const float *from, int64_t count, int64_t stride) {
    enum { BATCH = 20 };
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 1
    for (int64_t s = 0; s < count; s += BATCH) {
        float4 v[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            v[k] = s + k < count ? __ldcs((const float4 *)(from + (s + k) * stride))
                                 : make_float4(0, 0, 0, 0);
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            sum.x += v[k].x, sum.y += v[k].y, sum.z += v[k].z, sum.w += v[k].w;
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
#pragma unroll(16 / ROWS)
    for (int64_t s = 0; s < functions; s++, x += stride, g += stride)
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float k = x[r * o.x_step];
            const float4 v = *(const float4 *)(g + r * o.g_step);
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

/* Sum over the block in a fixed order; all threads get it. */
static __device__ double block_sum(double v, double *room) {
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < DEV_STEP_THREADS / 32; w++) v += room[w];
    return v;
}

static __device__ double list_sum(const double *list, int64_t count, int64_t stride, double *room) {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += DEV_STEP_THREADS)
        sum += __ldcg(list + i * stride);
    return block_sum(sum, room);
}

/* slot_sum: words at .. at + 3 over all slots, or over the sums of the ranks where there are such,
 * into slot 0. Returns the sum of their squares. */
static __device__ double sum_words(const dev_run *run, const float *sums, int ranks, int64_t at) {
    float4 sum = sums ? ordered_words(sums + at, ranks, run->slot_words) : function_words(run, at);
    const float items = (float)run->items;
    sum.x /= items, sum.y /= items, sum.z /= items, sum.w /= items;
    *(float4 *)(run->slots + at) = sum;
    return (double)sum.x * sum.x + (double)sum.y * sum.y + (double)sum.z * sum.z +
           (double)sum.w * sum.w;
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

/* What adam needs, but for the norm: known before the functions are done. */
static __device__ void prepare_adam(const dev_run *run) {
    dev_step *b = run->step;
    dev_adam *a = run->adam;
    const double t = (double)b->step + 1.0;
    b->rate = rate_of(b, b->step);
    a->next_rate = rate_of(b, b->step + 1);
    a->beta1 = (float)b->beta1, a->mix1 = (float)(1.0 - b->beta1);
    a->beta2 = (float)b->beta2, a->mix2 = (float)(1.0 - b->beta2);
    a->rate = (float)(b->rate / (1.0 - pow(b->beta1, t)));
    a->inv_c2 = (float)(1.0 / (1.0 - pow(b->beta2, t)));
    a->eps = (float)b->eps;
    a->first = b->step == 0;
    a->blend = (float)(a->first ? 1.0 : 1.0 - b->ema);
    a->averages = b->ema > 0 && run->average;
}

/* What the step says of its functions. */
static __device__ void report_functions(const dev_run *run, double *room) {
    __shared__ int bad;
    dev_step *b = run->step;
    double mean[DREPORT_COUNT];
    if (threadIdx.x == 0) bad = 0x7fffffff;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < run->items; i += DEV_STEP_THREADS)
        if (!isfinite(run->item_scalars[i * DREPORT_COUNT])) atomicMin(&bad, (int)i);
    for (int j = 0; j < DREPORT_COUNT; j++)
        mean[j] =
            list_sum(run->item_scalars + j, run->items, DREPORT_COUNT, room) / (double)run->items;
    if (threadIdx.x != 0) return;
    b->bad_item = bad == 0x7fffffff ? -1 : bad;
    b->loss = mean[0], b->kl = mean[1], b->loglik = mean[2];
}

/* grad_total and tick, by the block that is done last; nothing that follows reads the counter. */
static __device__ void finish_step(const dev_run *run, int ranges, double *room) {
    const double squares = list_sum(run->partial, ranges, 1, room);
    if (threadIdx.x != 0) return;
    dev_step *b = run->step;
    dev_adam *a = run->adam;
    a->done = a->released = 0;
    b->grad_norm = sqrt(squares);
    a->go = b->bad_item < 0 && isfinite(b->grad_norm);
    if (!a->go) return;
    a->clip = (float)(b->clip > 0 && b->grad_norm > b->clip ? b->clip / b->grad_norm : 1.0);
    b->step++;
    b->rate = a->next_rate;
}

/* Until all functions are past the place where the first ranges are complete (early.h). */
static __device__ void wait_released(const dev_run *run) {
    if (threadIdx.x == 0) {
        while (atomicAdd(&run->adam->released, 0) < run->n_slots) {
        }
        __threadfence();
    }
    __syncthreads();
}

/* A block sums the DEV_STEP_WORDS words of a range, one reports. Those of early ranges come first;
 * the others wait for the end of the functions. */
__global__ void __launch_bounds__(DEV_STEP_THREADS, 2)
    sum_kernel(const dev_run *run, const float *sums, int ranks) {
    __shared__ double room[DEV_STEP_THREADS / 32];
    __shared__ int last;
    const int n_early = (int)run->n_early, place = (int)blockIdx.x;
    if (place == n_early && threadIdx.x == 0) prepare_adam(run);
    if (place < n_early) {
        wait_released(run);
    } else {
        grid_wait();
        grid_release();
    }
    if (place == n_early) {
        report_functions(run, room);
    } else {
        const int range = run->ranges[place - (place > n_early)];
        const int64_t at = (int64_t)range * DEV_STEP_WORDS + threadIdx.x * 4;
        const double square = at < run->trainable ? sum_words(run, sums, ranks, at) : 0;
        const double total = block_sum(square, room);
        if (threadIdx.x == 0) run->partial[range] = total;
    }
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(&run->adam->done, 1) == (int)gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last) finish_step(run, (int)gridDim.x - 1, room);
}

static __device__ float adam_word(const dev_adam &a, float gradient, float &m, float &v, float w) {
    const float d = a.clip * gradient;
    m = a.beta1 * m + a.mix1 * d;
    v = a.beta2 * v + a.mix2 * (d * d);
    return w - a.rate * m / (sqrtf(v * a.inv_c2) + a.eps);
}

static __device__ float blended(const dev_adam &a, float old, float w) {
    return a.first ? w : old + a.blend * (w - old);
}

/* Four words a thread; what the sum does not change is read before it is there. */
__global__ void __launch_bounds__(DEV_STEP_THREADS) adam_kernel(const dev_run *run) {
    const int64_t at = (int64_t)blockIdx.x * DEV_STEP_WORDS + threadIdx.x * 4;
    grid_release();
    if (at >= run->words) return;
    const float4 zero = make_float4(0, 0, 0, 0);
    const bool frozen = at >= run->trainable;
    float4 w = *(const float4 *)(run->weights + at);
    float4 m = frozen ? zero : *(const float4 *)(run->moment1 + at);
    float4 v = frozen ? zero : *(const float4 *)(run->moment2 + at);
    float4 average = run->average ? *(const float4 *)(run->average + at) : zero;
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
    if (!a.averages) return;
    average.x = blended(a, average.x, w.x), average.y = blended(a, average.y, w.y);
    average.z = blended(a, average.z, w.z), average.w = blended(a, average.w, w.w);
    *(float4 *)(run->average + at) = average;
}

/* The sum of this rank's slots into the first; the batch's size comes in later. */
__global__ void __launch_bounds__(DEV_STEP_THREADS, 2) local_kernel(const dev_run *run) {
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

template <class K, class... A>
static void launch_update(K kernel, int blocks, bool early, cudaStream_t stream, A... args) {
    launch_as(launch_of(blocks, DEV_STEP_THREADS, 0, stream), true, early, kernel, args...);
}

void update_local_launch(const dev_run *run, int64_t words, cudaStream_t stream) {
    launch_update(local_kernel, ranges_of(words), false, stream, run);
}

void update_reports_launch(const dev_run *run, const double *all, int ranks, int64_t most,
                           cudaStream_t stream) {
    launch_update(reports_kernel, 1, false, stream, run, all, ranks, most);
}

void update_launch(const dev_run *run, int64_t words, cudaStream_t stream) {
    launch_update(sum_kernel, 1 + ranges_of(words), true, stream, run, (const float *)nullptr, 1);
    launch_update(adam_kernel, ranges_of(words), true, stream, run);
}

void update_linked_launch(const dev_run *run, int64_t words, const float *sums, int ranks,
                          cudaStream_t stream) {
    launch_update(sum_kernel, 1 + ranges_of(words), false, stream, run, sums, ranks);
    launch_update(adam_kernel, ranges_of(words), true, stream, run);
}
