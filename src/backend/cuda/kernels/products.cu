/* products.cu: weight gradients as products of rows that functions left (fuse/saved_rows.h), on
 * multiprocessors that have no function: dW = sum over functions and terms of X^T G. A block forms
 * one part of a sum, of some of the functions (dev_product), in a fixed order. It is two groups of
 * four warps (device/ptx.cuh): one multiplies, the other one brings the rows, since asking for a
 * copy holds a warp up for a hundred cycles and more. Nearly all registers are the first one's.
 *
 * Shared memory: a ring of pieces of 64 or 128 rows of one function, X and G in col8 layout as they
 * lie in memory and as the tensor cores read them, a col8 block at a time by the copy engine; rows
 * that do not exist become zeros. After it an arrival and a count of rows for each piece. Two
 * blocks share a multiprocessor: the copy engine gives one alone 25 bytes a cycle in copies of 1
 * KB, 31 in those of 2 KB, and two of them 41 and 57, however deep the ring (measured, H200).
 */
#include "backend/cuda/kernels/sums.cuh"

enum { GROUP_THREADS = 128, PRODUCT_THREADS = 2 * GROUP_THREADS };
enum { RING_BYTES = 112 * 1024, MOST_STAGES = 4 };
enum { ARRIVALS_AT = RING_BYTES, ROWS_AT = ARRIVALS_AT + MOST_STAGES * 8 };
enum { PRODUCT_BYTES = ROWS_AT + MOST_STAGES * 4 };
enum { NEXT = 1 }; /* barrier of the block, for every piece */

/* ---- what comes next ------------------------------------------------------------------------- */

/* Goes through the functions of a part, the terms, and the rows of each, a piece at a time. */
struct Cursor {
    const float *saved; /* of the function */
    int64_t stride;
    int left;   /* functions, this one included */
    int n, m;   /* its lengths                  */
    uint2 next; /* those of the next one        */
    int term, end, first;
    int row, rows; /* of the term */

    MEMBER uint2 lengths(const float *at) const {
        return __ldcg((const uint2 *)(at + DEV_SAVED_N));
    }
    MEMBER Cursor(const dev_run *run, const dev_product &p, int part)
        : stride(run->saved_words), term(p.first), end(p.first + p.terms), first(p.first), row(0) {
        /* a batch has fewer functions than 2^31 / parts; a division of 64 bits takes 400 cycles */
        const int functions = (int)(run->item_hi - run->item_lo);
        const int parts = run->product_chunks * p.split;
        const int lo = functions * part / parts, hi = functions * (part + 1) / parts;
        const uint2 none = make_uint2(0, 0);
        saved = run->saved + lo * stride;
        left = hi - lo;
        const uint2 now = left > 0 ? lengths(saved) : none;
        n = (int)now.x, m = (int)now.y;
        next = left > 1 ? lengths(saved + stride) : none;
    }
    /* To the next term that has rows left; false: there is none. */
    MEMBER bool find(const dev_term *terms) {
        while (left > 0) {
            rows = __ldg(&terms[term].side) == DEV_SIDE_ALL ? n : m;
            if (row < rows) return true;
            row = 0;
            if (++term < end) continue;
            term = first, saved += stride, left--;
            n = (int)next.x, m = (int)next.y;
            if (left > 1) next = lengths(saved + stride);
        }
        return false;
    }
};

/* ---- the ring -------------------------------------------------------------------------------- */

FN uint32_t buf_at(int bytes) {
    return shared_at((const float *)smem) + bytes;
}
FN uint32_t arrival_of(int stage) {
    return buf_at(ARRIVALS_AT + stage * 8);
}
/* Of the piece in a stage; 0: there is none, nor will be. */
FN int &rows_of(int stage) {
    return ((int *)(smem + ROWS_AT))[stage];
}

/* Rows that are to be copied next. */
struct Piece {
    const float *left, *right;
    int left_step, right_step; /* words from col8 block to col8 block */
    int count;                 /* 0: none are left          */
};

/* ---- a sum ----------------------------------------------------------------------------------- */

/* D (M, N) is the gradient, or TURNED the gradient turned: then G has M columns. Pieces have 128
 * rows where there is room for two of them and something on the way. */
template <int M, int N, bool TURNED, bool BF16> struct Sum {
    enum { J = N / 8, TILES_OF_M = M / 64, COL8_COUNT = (M + N) / 8 };
    enum { STAGE_ROWS = COL8_COUNT <= 20 ? 128 : 64 };
    enum { COL8_BYTES = STAGE_ROWS * 16, STAGE_BYTES = COL8_COUNT * COL8_BYTES };
    enum { FIT = RING_BYTES / STAGE_BYTES, STAGES = FIT < MOST_STAGES ? FIT : MOST_STAGES };
    float c[TILES_OF_M][J][4];

    static MEMBER Piece find(const dev_run *run, Cursor &at) {
        Piece p = {};
        if (at.find(run->terms)) {
            const dev_term t = run->terms[at.term];
            const dev_rows left = TURNED ? t.g : t.x, right = TURNED ? t.x : t.g;
            p.left = at.saved + left.at + at.row * 4, p.left_step = left.step * 4;
            p.right = at.saved + right.at + at.row * 4, p.right_step = right.step * 4;
            p.count = min(at.rows - at.row, (int)STAGE_ROWS);
            at.row += STAGE_ROWS;
        }
        return p;
    }
    /* How many rows of a piece are multiplied. */
    static MEMBER int rows_for(int count) {
        int rows = STAGE_ROWS;
        while (rows > 16 && count <= rows / 2) rows /= 2;
        return rows;
    }
    /* Zeros in those that it does not have. */
    static MEMBER void clear_rows(int count, int stage) {
        enum { ACROSS = 16 }; /* threads to a col8 block */
        const int thread = (int)threadIdx.x % GROUP_THREADS, end = rows_for(count) * 16;
        const uint32_t to = buf_at(stage * STAGE_BYTES);
#pragma unroll 1
        for (int k = thread / ACROSS; k < COL8_COUNT; k += GROUP_THREADS / ACROSS)
#pragma unroll 1
            for (int i = count * 16 + thread % ACROSS * 4; i < end; i += ACROSS * 4)
                store_word(to + k * COL8_BYTES + i, 0);
        bulk_fence();
    }
    /* An col8 block is one copy; warps ask in turn. */
    static MEMBER void ask(const Piece &p, int stage) {
        const int k = (int)threadIdx.x % 32 * 4 + (int)threadIdx.x / 32 % 4;
        const uint32_t to = buf_at(stage * STAGE_BYTES + k * COL8_BYTES);
        const float *left = p.left + k * p.left_step;
        const float *right = p.right + (k - M / 8) * p.right_step;
        if (threadIdx.x == GROUP_THREADS) rows_of(stage) = p.count;
        if (p.count == 0) return;
        if (threadIdx.x == GROUP_THREADS)
            arrival_expect(arrival_of(stage), COL8_COUNT * p.count * 16);
        if (k < COL8_COUNT)
            bulk_load_once(to, k < M / 8 ? left : right, p.count * 16, arrival_of(stage));
        if (p.count < STAGE_ROWS) clear_rows(p.count, stage);
    }
    /* The second group: pieces in the order of the cursor, and one of no rows after them. It is
     * STAGES - 1 pieces ahead: the stage of piece i - 1 is free after the i-th barrier. */
    static MEMBER void bring(const dev_run *run, const dev_product &p, int part) {
        Cursor at(run, p, part);
        Piece next = find(run, at);
        int ahead = 0, stage = 0;
        bool more = true;
        while (more) {
            if (ahead < STAGES - 1)
                ahead++;
            else
                barrier(NEXT, PRODUCT_THREADS);
            ask(next, stage);
            more = next.count > 0;
            if (more) next = find(run, at);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
        }
        for (; ahead > 0; ahead--) barrier(NEXT, PRODUCT_THREADS);
    }
    /* A condition between products would let each of them wait for the one before, so there is code
     * for each number of rows_for(). */
    template <int ROWS = STAGE_ROWS> MEMBER void multiply(int stage, int count) {
        if constexpr (ROWS > 16)
            if (count <= ROWS / 2) return multiply<ROWS / 2>(stage, count);
        const uint32_t left = buf_at(stage * STAGE_BYTES), right = left + M / 8 * COL8_BYTES;
        const uint64_t a = group_rows(left, COL8_BYTES), b = group_rows(right, COL8_BYTES);
        group_begin();
#pragma unroll
        for (int k = 0; k < ROWS / 16; k++)
#pragma unroll
            for (int h = 0; h < TILES_OF_M; h++)
                group_product<BF16>(c[h], group_further(a, k * 256 + h * 8 * COL8_BYTES),
                                    group_further(b, k * 256));
        group_commit();
        group_wait();
    }
    /* The first group. */
    MEMBER void add_up() {
        int stage = 0, turn = 0;
#pragma unroll
        for (int i = 0; i < TILES_OF_M * J * 4; i++) c[i / 4 / J][i / 4 % J][i % 4] = 0;
#pragma unroll 1
        while (true) {
            barrier(NEXT, PRODUCT_THREADS);
            const int count = __shfl_sync(~0u, rows_of(stage), 0);
            if (count == 0) break;
            arrival_wait(arrival_of(stage), turn);
            multiply(stage, count);
            if (++stage == STAGES) stage = 0, turn ^= 1;
        }
    }
    MEMBER void store(float *to, int ld) const {
        const float scale = BF16 ? 1.0f : 1.0f / SAVED_SCALE;
        const int row = (int)threadIdx.x / 32 * 16 + (int)threadIdx.x % 32 / 4;
        const int col = (int)threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < TILES_OF_M * J * 2; i++) {
            const int h = i / (2 * J), j = i % (2 * J) / 2, down = i % 2;
            const int r = row + h * 64 + down * 8, n = col + j * 8;
            const float2 v = make_float2(c[h][j][down * 2] * scale, c[h][j][down * 2 + 1] * scale);
            float *first = TURNED ? to + n * ld + r : to + r * ld + n;
            if (TURNED)
                first[0] = v.x, first[ld] = v.y;
            else
                *(float2 *)first = v;
        }
    }
};

template <int M, int N, bool TURNED, bool BF16>
FN void form(const dev_run *run, const dev_product &p, int part) {
    using sum_of = Sum<M, N, TURNED, BF16>;
    if (threadIdx.x < MOST_STAGES) arrival_make(arrival_of((int)threadIdx.x));
    __syncthreads();
    if (__shfl_sync(~0u, (int)threadIdx.x, 0) < GROUP_THREADS) {
        registers_more<200>();
        const int64_t slot = p.base * run->product_chunks + part;
        float *to = run->slots + slot * run->slot_words + p.at;
        const int ld = p.ld;
        sum_of sum;
        sum.add_up();
        sum.store(to, ld);
    } else {
        registers_fewer<56>();
        sum_of::bring(run, p, part);
    }
}

/* The gradients of paper/fused.h that are left as rows: of conditioners, sets and the first layer.
 */
FN void form_any(const dev_run *run, const dev_product &p, int part) {
    const bool bf16 = p.math == DEV_BF16;
    if (p.rows == 160 && p.cols == 64)
        form<64, 160, true, false>(run, p, part);
    else if (p.rows == 160)
        form<128, 160, true, false>(run, p, part);
    else if (p.rows == 128 && p.cols == 128)
        form<128, 128, false, false>(run, p, part);
    else if (p.rows == 128)
        form<128, 32, false, false>(run, p, part);
    else if (p.cols == 192 && bf16)
        form<64, 192, false, true>(run, p, part);
    else if (p.cols == 192)
        form<64, 192, false, false>(run, p, part);
    else if (bf16)
        form<64, 64, false, true>(run, p, part);
    else
        form<64, 64, false, false>(run, p, part);
}

/* A share of the spans of a wgrad task. A call, so that it takes no registers from the sums. */
enum { OUTER_ROWS = 64 };
static __device__ __noinline__ void sum_spans(const dev_run *run, const dev_wgrad_task &task,
                                              int share) {
    const int chunks = run->product_chunks, end = task.count * (share + 1) / chunks;
    for (int k = task.count * share / chunks; k < end; k++)
        sum_block<OUTER_ROWS>(run, task.part + k, nullptr, 1, (float4 *)smem);
}

/* A block to a share of a wgrad task: it begins when all functions are so far. The last one also
 * waits for the functions' kernel, so that whoever waits for this one has waited for all. */
__global__ void __launch_bounds__(PRODUCT_THREADS, 2)
    products_kernel(const dev_run *run, bool alone) {
    const int chunks = run->product_chunks, share = (int)blockIdx.x % chunks;
    const dev_wgrad_task task = run->wgrad_tasks[blockIdx.x / chunks];
    grid_release();
    wait_count(&run->adam->passed[task.milestone], (int)run->n_slots);
    if (task.product >= 0) {
        bulk_fence_global();
        form_any(run, run->products[task.product], task.part * chunks + share);
    } else if (alone) {
        sum_spans(run, task, share);
    }
    if (blockIdx.x == gridDim.x - 1) grid_wait();
}
static_assert((int)PRODUCT_THREADS == (int)DEV_STEP_THREADS &&
                  2 * OUTER_ROWS * SUM_ROW * 16 <= PRODUCT_BYTES,
              "a block sums grad_spans too");

cudaError_t products_prepare(void) {
    return cudaFuncSetAttribute(products_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                PRODUCT_BYTES);
}

void products_launch(const dev_run *run, const step_shape *s, bool alone, cudaStream_t stream) {
    if (s->wgrad_tasks > 0)
        launch_as(launch_of(s->wgrad_tasks, PRODUCT_THREADS, PRODUCT_BYTES, stream), true, alone,
                  products_kernel, run, alone);
}
