/* update.cu: the step that follows a batch (equations in op/update.h): sum of the slots, its norm
 * and the numbers of the step in one kernel for every stage (ranges.h), Adam in another. Ranges and
 * orders of summation are fixed. */
#include "backend/cuda/kernels.cuh"
#include "backend/cuda/ptx.cuh"

/* ---- a range of the gradient, summed over functions ------------------------------------------ */

/* Four words to a thread; what remains of the threads takes a part of the functions each. */
enum { COLUMNS = DEV_RANGE_WORDS / 4, HALVES = DEV_STEP_THREADS / COLUMNS };
enum { WARPS = DEV_STEP_THREADS / 32 };

static __device__ void add4(float4 &to, const float4 &v) {
    to.x += v.x, to.y += v.y, to.z += v.z, to.w += v.w;
}

static __device__ float4 scaled(float k, const float4 &v) {
    return make_float4(k * v.x, k * v.y, k * v.z, k * v.w);
}

/* Four words of `count` blocks of numbers, added in order; so many are asked for at once. */
static __device__ float4 ordered_words(const float *from, int64_t count, int64_t stride) {
    enum { BATCH = 25 };
    const float4 zero = make_float4(0, 0, 0, 0);
    float4 sum = zero;
#pragma unroll 1
    for (int64_t s = 0; s < count; s += BATCH) {
        float4 v[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            v[k] = s + k < count ? __ldcg((const float4 *)(from + (s + k) * stride)) : zero;
#pragma unroll
        for (int k = 0; k < BATCH; k++) add4(sum, v[k]);
    }
    return sum;
}

/* Partial sums of a range, (parts, DEV_RANGE_WORDS) in room, added in order: words 4 column .. + 3.
 */
static __device__ float4 join_parts(const float4 *room, int parts) {
    __syncthreads();
    float4 sum = make_float4(0, 0, 0, 0);
    for (int k = 0; k < parts; k++) add4(sum, room[k * COLUMNS + threadIdx.x % COLUMNS]);
    return sum;
}

static __device__ float4 slot_words(const float *slots, int64_t count, int64_t stride,
                                    const dev_range &range, float4 *room) {
    const int column = threadIdx.x % COLUMNS, half = threadIdx.x / COLUMNS;
    const int64_t lo = count * half / HALVES, hi = count * (half + 1) / HALVES;
    if (4 * column < range.words)
        room[threadIdx.x] =
            ordered_words(slots + range.at + 4 * column + lo * stride, hi - lo, stride);
    return join_parts(room, HALVES);
}

/* A gradient that is made of ROWS outer products per function: a warp has a part of the functions,
 * a lane four rows and four columns. */
template <int ROWS>
static __device__ float4 outer_words(const dev_run *run, const dev_range &range, float4 *room) {
    enum { BATCH = 8 / ROWS };
    const dev_outer o = run->outer[range.outer];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, across = o.cols / 4;
    const int row = lane / across * 4, column = lane % across;
    const int64_t functions = run->item_hi - run->item_lo, stride = run->kept_words;
    const int64_t lo = functions * warp / WARPS, hi = functions * (warp + 1) / WARPS;
    const float *x = run->kept + o.x + (range.at - o.at) / o.cols + row;
    const float *g = run->kept + o.g + 4 * column;
    const float4 zero = make_float4(0, 0, 0, 0);
    float4 sum[4] = {zero, zero, zero, zero};
#pragma unroll 1
    for (int64_t s = lo; s < hi; s += BATCH) {
        float4 a[BATCH * ROWS], b[BATCH * ROWS];
#pragma unroll
        for (int k = 0; k < BATCH * ROWS; k++) {
            const int64_t at = (s + k / ROWS) * stride;
            const bool is = s + k / ROWS < hi;
            a[k] = is ? __ldcg((const float4 *)(x + at + k % ROWS * o.x_step)) : zero;
            b[k] = is ? __ldcg((const float4 *)(g + at + k % ROWS * o.g_step)) : zero;
        }
#pragma unroll
        for (int k = 0; k < BATCH * ROWS; k++) {
            add4(sum[0], scaled(a[k].x, b[k])), add4(sum[1], scaled(a[k].y, b[k]));
            add4(sum[2], scaled(a[k].z, b[k])), add4(sum[3], scaled(a[k].w, b[k]));
        }
    }
#pragma unroll
    for (int r = 0; r < 4; r++) room[warp * COLUMNS + (row + r) * across + column] = sum[r];
    return join_parts(room, WARPS);
}

/* Words 4 column .. + 3 of a range, summed over this process's functions; all threads call it. */
static __device__ float4 function_words(const dev_run *run, const dev_range &range, float4 *room) {
    const int64_t slots = range.parts ? range.parts * run->product_chunks : run->n_slots;
    if (range.outer < 0) return slot_words(run->slots, slots, run->slot_words, range, room);
    if (run->outer[range.outer].count == 1) return outer_words<1>(run, range, room);
    return outer_words<2>(run, range, room);
}

static __device__ bool has_words(const dev_range &range) {
    return 4 * (int)threadIdx.x < range.words;
}

/* ---- the step -------------------------------------------------------------------------------- */

/* Sum over the block in a fixed order; all threads get it. */
static __device__ double block_sum(double v, double *room) {
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < WARPS; w++) v += room[w];
    return v;
}

static __device__ double list_sum(const double *list, int64_t count, int64_t stride, double *room) {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += DEV_STEP_THREADS)
        sum += __ldcg(list + i * stride);
    return block_sum(sum, room);
}

/* slot_sum of a range, over the slots or over the sums of the ranks where there are such, into slot
 * 0. Returns the thread's share of the sum of squares. */
static __device__ double sum_range(const dev_run *run, const dev_range &range, const float *sums,
                                   int ranks, float4 *room) {
    float4 sum = sums ? slot_words(sums, ranks, run->slot_words, range, room)
                      : function_words(run, range, room);
    if (!has_words(range)) return 0;
    const float items = (float)run->items;
    sum.x /= items, sum.y /= items, sum.z /= items, sum.w /= items;
    *(float4 *)(run->slots + range.at + 4 * threadIdx.x) = sum;
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
    a->next_rate = rate_of(b, b->step + 1), a->next_step = b->step + 1;
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
static __device__ void finish_step(const dev_run *run, double *room) {
    const double squares = list_sum(run->partial, run->n_ranges, 1, room);
    if (threadIdx.x != 0) return;
    dev_step *b = run->step;
    dev_adam *a = run->adam;
    for (int k = 0; k <= DEV_ENDED; k++) a->released[k] = 0;
    a->done = 0;
    b->grad_norm = sqrt(squares);
    a->go = b->bad_item < 0 && isfinite(b->grad_norm);
    if (!a->go) return;
    a->clip = (float)(b->clip > 0 && b->grad_norm > b->clip ? b->clip / b->grad_norm : 1.0);
    b->step++;
    b->rate = a->next_rate;
}

/* The block that is done last ends the step: all ranges and the report. */
static __device__ void count_done(const dev_run *run, double *room) {
    __shared__ int last;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(&run->adam->done, 1) == run->n_ranges;
        __threadfence();
    }
    __syncthreads();
    if (last) finish_step(run, room);
}

/* A block sums a range, of all functions of this process or of all ranks (`sums`). */
static __device__ void sum_block(const dev_run *run, int which, const float *sums, int ranks) {
    __shared__ float4 parts[WARPS * COLUMNS];
    __shared__ double room[WARPS];
    const double square = sum_range(run, run->ranges[which], sums, ranks, parts);
    const double total = block_sum(square, room);
    if (threadIdx.x == 0) run->partial[which] = total;
    count_done(run, room);
}

/* Until the kernel before this one is done, and with it all before that one, unless it is the
 * functions': one block of every kernel waits. The functions count their end themselves. */
static __device__ void wait_before(const dev_run *run, int stage) {
    if (stage > run->first_stage || run->stages[stage].product_blocks > 0) grid_wait();
}

/* The block of the first stage that has no range. It lets the next kernel begin at the functions'
 * end: nobody else waits for that, so that meanwhile other runs have the multiprocessors. */
static __device__ void direct(const dev_run *run, int stage, double *room) {
    if (threadIdx.x == 0) prepare_adam(run);
    wait_count(&run->adam->released[DEV_ENDED], (int)run->n_slots);
    grid_release();
    report_functions(run, room);
    count_done(run, room);
    wait_before(run, stage);
}

/* A block to a range of a stage, and one that directs. */
__global__ void __launch_bounds__(DEV_STEP_THREADS, 2)
    sum_kernel(const dev_run *run, int stage, const float *sums, int ranks) {
    __shared__ double room[WARPS];
    const dev_stage own = run->stages[stage];
    if ((int)blockIdx.x == own.ranges) {
        direct(run, stage, room);
        return;
    }
    const int which = own.first_range + (int)blockIdx.x;
    grid_release();
    wait_count(&run->adam->released[own.release], (int)run->n_slots);
    if (blockIdx.x == 0 || run->ranges[which].parts > 0) wait_before(run, stage);
    sum_block(run, which, sums, ranks);
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

/* Four weights as halves (halves.h). */
static __device__ void put_halves(uint32_t *halves, int32_t at, const float4 &w) {
    ((uint2 *)halves)[at] = make_uint2(pack_half(w.x, w.y), pack_half(w.z, w.w));
}

__global__ void __launch_bounds__(DEV_STEP_THREADS)
    halve_kernel(const float *weights, uint32_t *halves, const int32_t *half_at, int64_t words) {
    const int64_t at = ((int64_t)blockIdx.x * DEV_STEP_THREADS + threadIdx.x) * 4;
    if (at < words) put_halves(halves, half_at[at / 4], *(const float4 *)(weights + at));
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
    const int32_t half = run->halves ? run->half_at[at / 4] : 0;
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
    if (run->halves) put_halves(run->halves, half, w);
    if (!a.averages) return;
    average.x = blended(a, average.x, w.x), average.y = blended(a, average.y, w.y);
    average.z = blended(a, average.z, w.z), average.w = blended(a, average.w, w.w);
    *(float4 *)(run->average + at) = average;
}

/* The sum of this rank's slots into the first; the batch's size comes in later. */
__global__ void __launch_bounds__(DEV_STEP_THREADS, 2) local_kernel(const dev_run *run) {
    __shared__ float4 parts[WARPS * COLUMNS];
    const dev_range range = run->ranges[blockIdx.x];
    const float4 sum = function_words(run, range, parts);
    if (has_words(range)) *(float4 *)(run->slots + range.at + 4 * threadIdx.x) = sum;
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
static void launch_update(K kernel, int blocks, bool early, cudaStream_t stream, A... args) {
    launch_as(launch_of(blocks, DEV_STEP_THREADS, 0, stream), true, early, kernel, args...);
}

void update_halve_launch(const float *weights, uint32_t *halves, const int32_t *half_at,
                         int64_t words, cudaStream_t stream) {
    launch_update(halve_kernel, adam_blocks(words), false, stream, weights, halves, half_at, words);
}

void update_local_launch(const dev_run *run, const step_shape *s, cudaStream_t stream) {
    int ranges = 0;
    for (int k = 0; k < DEV_STAGES; k++) ranges += s->stages[k].ranges;
    launch_update(local_kernel, ranges, false, stream, run);
}

void update_reports_launch(const dev_run *run, const double *all, int ranks, int64_t most,
                           cudaStream_t stream) {
    launch_update(reports_kernel, 1, false, stream, run, all, ranks, most);
}

static void launch_sum(const dev_run *run, const step_shape *s, int stage, const float *sums,
                       int ranks, bool early, cudaStream_t stream) {
    const int blocks = s->stages[stage].ranges + (stage == s->first_stage);
    if (blocks > 0) launch_update(sum_kernel, blocks, early, stream, run, stage, sums, ranks);
}

void update_sum_launch(const dev_run *run, const step_shape *s, int stage, cudaStream_t stream) {
    launch_sum(run, s, stage, nullptr, 1, true, stream);
}

void update_adam_launch(const dev_run *run, const step_shape *s, cudaStream_t stream) {
    launch_update(adam_kernel, adam_blocks(s->words), true, stream, run);
}

void update_linked_launch(const dev_run *run, const step_shape *s, const float *sums, int ranks,
                          cudaStream_t stream) {
    for (int k = s->first_stage; k < DEV_STAGES; k++)
        launch_sum(run, s, k, sums, ranks, k > s->first_stage, stream);
    update_adam_launch(run, s, stream);
}
