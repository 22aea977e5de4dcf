/* sums.cuh: a range of the gradient (ranges.h), summed over functions by a block of
 * DEV_STEP_THREADS threads, with its sum of squares. The block that is done last ends the step:
 * norm, step's number, counters. Orders of summation are fixed. */
#ifndef MNP_CUDA_SUMS_CUH
#define MNP_CUDA_SUMS_CUH

#include "backend/cuda/kernels.cuh"

/* ---- a range of the gradient, summed over functions ------------------------------------------ */

/* Four words to a thread; what remains of the threads takes a part of the functions each. */
enum { COLUMNS = DEV_RANGE_WORDS / 4, HALVES = DEV_STEP_THREADS / COLUMNS };
enum { WARPS = DEV_STEP_THREADS / 32, SUM_ROOM = WARPS * COLUMNS };

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

/* A block sums a range, of all functions of this process or of all ranks (`sums`). parts: room for
 * SUM_ROOM of them. */
static __device__ void sum_block(const dev_run *run, int which, const float *sums, int ranks,
                                 float4 *parts) {
    __shared__ double room[WARPS];
    const double square = sum_range(run, run->ranges[which], sums, ranks, parts);
    const double total = block_sum(square, room);
    if (threadIdx.x == 0) run->partial[which] = total;
    count_done(run, room);
}

#endif
