/* sums.cuh: a span of the gradient (program/grad_spans.h), summed over functions by a block of
 * DEV_STEP_THREADS threads, with its sum of squares. The block that is done last ends the step:
 * norm, step's number, counters. Orders of summation are fixed. */
#ifndef MNP_CUDA_KERNELS_SUMS_CUH
#define MNP_CUDA_KERNELS_SUMS_CUH

#include "backend/cuda/device/frame.cuh"
#include "backend/cuda/kernels/kernels.cuh"

/* ---- a span of the gradient, summed over functions ------------------------------------------ */

/* SUM_ROW: float4s of shared memory for a row of x and g of outer products, at most; the buffer
 * that a sum needs are 2 ROWS of them. */
enum { STEP_WARPS = DEV_STEP_THREADS / 32, SUM_ROW = 40 };

static __device__ void add4(float4 &to, const float4 &v) {
    to.x += v.x, to.y += v.y, to.z += v.z, to.w += v.w;
}

static __device__ void add_scaled(float4 &to, float k, const float4 &v) {
    to.x += k * v.x, to.y += k * v.y, to.z += k * v.z, to.w += k * v.w;
}

/* Four words of `count` blocks of numbers, added in order; so many are asked for at once. */
static __device__ float4 ordered_words(const float *from, int64_t count, int64_t stride) {
    enum { BATCH = 12 };
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

/* Words that lie in slots: four to a thread, 256 or 512 at a time; what remains of the threads
 * takes a part of the slots each. put(word, sum of four) by those that have some. */
template <class PUT>
static __device__ void slot_words(const float *slots, int64_t count, int64_t stride,
                                  const dev_grad_span &span, float4 *buf, PUT put) {
    const int columns = span.words > 256 ? 128 : 64, parts = DEV_STEP_THREADS / columns;
    const int column = threadIdx.x % columns, part = threadIdx.x / columns;
    const int64_t lo = count * part / parts, hi = count * (part + 1) / parts;
#pragma unroll 1
    for (int at = 4 * column; at - 4 * column < span.words; at += 4 * columns) {
        __syncthreads(); /* buffer: the words before have been read */
        if (at < span.words)
            buf[threadIdx.x] = ordered_words(slots + span.at + at + lo * stride, hi - lo, stride);
        __syncthreads();
        if (part > 0 || at >= span.words) continue;
        float4 sum = buf[column];
        for (int k = 1; k < parts; k++) add4(sum, buf[k * columns + column]);
        put(span.at + at, sum);
    }
}

/* A tile of a gradient that is outer products of rows that functions left, (DEV_TILE_WORDS / C, C):
 * a thread has four rows and four columns of it. ROWS of x and g come to shared memory at a time,
 * x before g, while those before them are multiplied: rows of different functions lie far apart,
 * and the way to them is what takes long. */
template <int C, int ROWS, class PUT>
static __device__ void outer_words(const dev_run *run, const dev_grad_span &span, float4 *buf,
                                   PUT put) {
    enum { DOWN = DEV_TILE_WORDS / C / 4, ACROSS = C / 4, WIDTH = DOWN + ACROSS };
    static_assert(DOWN * ACROSS == DEV_STEP_THREADS && WIDTH <= SUM_ROW, "threads, shared memory");
    const dev_outer o = run->outer[span.outer];
    const int twice = o.count - 1, rows = (int)(run->item_hi - run->item_lo) << twice;
    const float *x = run->saved + o.x + (span.at - o.at) / C, *g = run->saved + o.g;
    const int down = threadIdx.x / ACROSS, across = threadIdx.x % ACROSS;
    const float4 zero = make_float4(0, 0, 0, 0);
    float4 sum[4] = {zero, zero, zero, zero};
    const auto ask = [&](int first) {
        const uint32_t to = shared_at((float *)(buf + first / ROWS % 2 * ROWS * WIDTH));
#pragma unroll 4
        for (int piece = threadIdx.x; piece < ROWS * WIDTH; piece += DEV_STEP_THREADS) {
            const int row = first + piece / WIDTH, at = piece % WIDTH, is = min(row, rows - 1);
            const float *from = at < DOWN ? x + (is & twice) * o.x_step + at * 4
                                          : g + (is & twice) * o.g_step + (at - DOWN) * 4;
            copy16(to + piece * 16, from + (is >> twice) * run->saved_words, row < rows);
        }
        copy_commit();
    };
    __syncthreads(); /* buffer: the span before has been read */
    ask(0);
#pragma unroll 1
    for (int first = 0; first < rows; first += ROWS) {
        const float4 *now = buf + first / ROWS % 2 * ROWS * WIDTH;
        ask(first + ROWS);
        copy_wait<1>();
        __syncthreads();
#pragma unroll 4
        for (int row = 0; row < ROWS; row++) {
            const float4 a = now[row * WIDTH + down], b = now[row * WIDTH + DOWN + across];
            add_scaled(sum[0], a.x, b), add_scaled(sum[1], a.y, b);
            add_scaled(sum[2], a.z, b), add_scaled(sum[3], a.w, b);
        }
        __syncthreads();
    }
    copy_wait<0>();
#pragma unroll
    for (int r = 0; r < 4; r++) put(span.at + (down * 4 + r) * C + across * 4, sum[r]);
}

/* The same words of what ranks have summed, by the threads that have them above: so squares are
 * added up in the same order. */
template <int C, class PUT>
static __device__ void tile_words(const float *sums, int ranks, int64_t stride,
                                  const dev_grad_span &span, PUT put) {
    const int down = threadIdx.x / (C / 4), across = threadIdx.x % (C / 4);
#pragma unroll 1
    for (int r = 0; r < 4; r++) {
        const int word = span.at + (down * 4 + r) * C + across * 4;
        put(word, ordered_words(sums + word, ranks, stride));
    }
}

/* A span summed over this process's functions; all threads call it. buffer: of 2 ROWS * SUM_ROW. */
template <int ROWS, class PUT>
static __device__ void function_words(const dev_run *run, const dev_grad_span &span, float4 *buf,
                                      PUT put) {
    const int64_t slots = span.parts  ? span.parts * run->product_chunks
                          : span.wide ? span.wide * run->wide_chunks
                                      : run->n_slots;
    if (span.outer < 0)
        slot_words(run->slots, slots, run->slot_words, span, buf, put);
    else if (run->outer[span.outer].cols == 64)
        outer_words<64, ROWS>(run, span, buf, put);
    else
        outer_words<128, ROWS>(run, span, buf, put);
}

/* ---- the step -------------------------------------------------------------------------------- */

/* Sum over the block in a fixed order; all threads get it. */
static __device__ double block_sum(double v, double *buf) {
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) buf[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < STEP_WARPS; w++) v += buf[w];
    return v;
}

static __device__ double list_sum(const double *list, int64_t count, int64_t stride, double *buf) {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += DEV_STEP_THREADS)
        sum += __ldcg(list + i * stride);
    return block_sum(sum, buf);
}

/* slot_sum of a span, over the slots or over the sums of the ranks where there are such, into slot
 * 0. Returns the thread's share of the sum of squares. */
template <int ROWS>
static __device__ double sum_span(const dev_run *run, const dev_grad_span &span, const float *sums,
                                  int ranks, float4 *buf) {
    const float items = (float)run->items;
    double squares = 0;
    const auto put = [&](int64_t word, float4 v) {
        v.x /= items, v.y /= items, v.z /= items, v.w /= items;
        *(float4 *)(run->slots + word) = v;
        squares += (double)v.x * v.x + (double)v.y * v.y + (double)v.z * v.z + (double)v.w * v.w;
    };
    if (!sums)
        function_words<ROWS>(run, span, buf, put);
    else if (span.outer < 0)
        slot_words(sums, ranks, run->slot_words, span, buf, put);
    else if (run->outer[span.outer].cols == 64)
        tile_words<64>(sums, ranks, run->slot_words, span, put);
    else
        tile_words<128>(sums, ranks, run->slot_words, span, put);
    return squares;
}

/* grad_total and tick, by the block that is done last; nothing that follows reads the counter. */
static __device__ void finish_step(const dev_run *run, double *buf) {
    const double squares = list_sum(run->partial, run->n_grad_spans, 1, buf);
    if (threadIdx.x != 0) return;
    dev_step *b = run->step;
    dev_adam *a = run->adam;
    for (int k = 0; k <= DEV_ENDED; k++) a->passed[k] = 0;
    a->done = 0;
    b->grad_norm = sqrt(squares);
    a->go = b->bad_item < 0 && isfinite(b->grad_norm);
    if (!a->go) return;
    a->clip = (float)(b->clip > 0 && b->grad_norm > b->clip ? b->clip / b->grad_norm : 1.0);
    b->step++;
    b->rate = a->next_rate;
}

/* The block that is done last ends the step: all spans and the report. */
static __device__ void count_done(const dev_run *run, double *buf) {
    __shared__ int last;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(&run->adam->done, 1) == run->n_grad_spans;
        __threadfence();
    }
    __syncthreads();
    if (last) finish_step(run, buf);
}

/* A block sums a span, of all functions of this process or of all ranks (`sums`). */
template <int ROWS>
static __device__ void sum_block(const dev_run *run, int which, const float *sums, int ranks,
                                 float4 *buf) {
    __shared__ double few[STEP_WARPS];
    const double square = sum_span<ROWS>(run, run->grad_spans[which], sums, ranks, buf);
    const double total = block_sum(square, few);
    if (threadIdx.x == 0) run->partial[which] = total;
    count_done(run, few);
}

#endif
