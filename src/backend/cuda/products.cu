/* products.cu: weight gradients as products of rows that functions left (kept.h), on
 * multiprocessors that have no function: dW = sum over functions and terms of X^T G. A block forms
 * one part of a sum, of some of the functions (dev_product), in a fixed order, by two groups of
 * four warps (ptx.cuh): of a gradient with 128 rows or columns a group has 64 of them, of a smaller
 * one each has half of the rows of X and G.
 *
 * Shared memory: a ring of STAGES pieces of STAGE_ROWS rows of one function, X and G by octets as
 * they lie in memory and as the tensor cores read them, an octet at a time by the copy engine; rows
 * that do not exist become zeros. Behind it an arrival for each stage. Rows come at about 14 bytes
 * a cycle and multiprocessor, by the engine as by threads before (measured, H200; not explained).
 */
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/sums.cuh"

enum { PRODUCT_THREADS = 256, STAGES = 3, STAGE_ROWS = 64 };
enum { OCTET_WORDS = STAGE_ROWS * 4 + 4, MOST_OCTETS = (160 + 128) / 8 }; /* 4: for the banks */
enum { ARRIVALS_AT = STAGES * MOST_OCTETS * OCTET_WORDS * 4, PRODUCT_BYTES = ARRIVALS_AT + 32 };

#define FN     static __device__ __forceinline__
#define MEMBER __device__ __forceinline__

/* ---- what comes next ------------------------------------------------------------------------- */

/* Goes through the functions of a part, the terms, and the rows of each, STAGE_ROWS at a time. */
struct Cursor {
    const float *kept; /* of the function */
    int64_t stride;
    int left;   /* functions, this one included */
    int n, m;   /* its lengths                  */
    uint2 next; /* those of the next one        */
    int term, end, first;
    int row, rows; /* of the term */

    MEMBER uint2 lengths(const float *at) const { return __ldcg((const uint2 *)(at + DEV_KEPT_N)); }
    MEMBER Cursor(const dev_run *run, const dev_product &p, int part)
        : stride(run->kept_words), term(p.first), end(p.first + p.terms), first(p.first), row(0) {
        const int64_t functions = run->item_hi - run->item_lo;
        const int64_t parts = run->product_chunks * p.split;
        const int64_t lo = functions * part / parts, hi = functions * (part + 1) / parts;
        const uint2 none = make_uint2(0, 0);
        kept = run->kept + lo * stride;
        left = (int)(hi - lo);
        const uint2 now = left > 0 ? lengths(kept) : none;
        n = (int)now.x, m = (int)now.y;
        next = left > 1 ? lengths(kept + stride) : none;
    }
    /* To the next term that has rows left; false: there is none. */
    MEMBER bool find(const dev_term *terms) {
        while (left > 0) {
            rows = __ldg(&terms[term].side) == DEV_SIDE_ALL ? n : m;
            if (row < rows) return true;
            row = 0;
            if (++term < end) continue;
            term = first, kept += stride, left--;
            n = (int)next.x, m = (int)next.y;
            if (left > 1) next = lengths(kept + stride);
        }
        return false;
    }
};

/* ---- copies ---------------------------------------------------------------------------------- */

FN uint32_t room_at(int bytes) {
    return shared_at((const float *)smem) + bytes;
}
FN uint32_t arrival_of(int stage) {
    return room_at(ARRIVALS_AT + stage * 8);
}

/* `count` rows from `row` on of a matrix with 8 OCTETS columns; warps ask in turn. */
template <int OCTETS>
FN void ask_rows(const float *kept, const dev_rows &of, int row, int count, uint32_t to,
                 uint32_t arrival) {
    const int octet = (int)threadIdx.x % 32 * (PRODUCT_THREADS / 32) + (int)threadIdx.x / 32;
    const float *from = kept + of.at + row * 4;
    if (octet < OCTETS)
        bulk_load(to + octet * OCTET_WORDS * 4, from + octet * of.step * 4, count * 16, arrival);
    if (count == STAGE_ROWS) return;
    const int r = (int)threadIdx.x % STAGE_ROWS, at_once = PRODUCT_THREADS / STAGE_ROWS;
    for (int k = (int)threadIdx.x / STAGE_ROWS; r >= count && k < OCTETS; k += at_once)
#pragma unroll
        for (int i = 0; i < 4; i++) store_word(to + (k * OCTET_WORDS + r * 4 + i) * 4, 0);
    bulk_fence();
}

/* ---- a sum ----------------------------------------------------------------------------------- */

/* D (M, N) is the gradient, or TURNED the gradient turned: then G has M columns. */
template <int M, int N, bool TURNED, bool BF16> struct Sum {
    enum { J = N / 8, SHARED_K = M == 64, STAGE_WORDS = (M + N) / 8 * OCTET_WORDS };
    static_assert(STAGES * STAGE_WORDS * 4 <= PRODUCT_BYTES, "room of the stages");
    float c[J][4];

    /* Asks for the cursor's rows; false: there are none left. */
    MEMBER bool ask(const dev_run *run, Cursor &at, int stage) {
        const bool is = at.find(run->terms);
        if (is) {
            const dev_term &t = run->terms[at.term];
            const uint32_t left = room_at(stage * STAGE_WORDS * 4), arrival = arrival_of(stage);
            const uint32_t right = left + M / 8 * OCTET_WORDS * 4;
            const int row = at.row, count = min(at.rows - row, (int)STAGE_ROWS);
            ask_rows<M / 8>(at.kept, TURNED ? t.g : t.x, row, count, left, arrival);
            ask_rows<N / 8>(at.kept, TURNED ? t.x : t.g, row, count, right, arrival);
            if (threadIdx.x == 0) arrival_expect(arrival, (M + N) / 8 * count * 16);
            at.row += STAGE_ROWS;
        }
        return is;
    }
    /* All rows of a stage, zeros too: a condition would let every product wait for the one before.
     */
    template <class DO> MEMBER void multiply(int stage, DO meanwhile) {
        enum { STEPS = STAGE_ROWS / 16 / (SHARED_K ? 2 : 1) };
        const int group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
        const uint32_t left = room_at(stage * STAGE_WORDS * 4);
        const uint32_t right = left + M / 8 * OCTET_WORDS * 4,
                       down = SHARED_K ? group * STEPS * 256 : 0;
        const uint32_t across = SHARED_K ? 0 : group * 8 * OCTET_WORDS * 4;
        const uint64_t a = group_rows(left + across + down, OCTET_WORDS * 4);
        const uint64_t b = group_rows(right + down, OCTET_WORDS * 4);
        group_begin();
#pragma unroll
        for (int k = 0; k < STEPS; k++)
            group_product<BF16>(c, group_further(a, k * 256), group_further(b, k * 256));
        group_commit();
        meanwhile();
        group_wait();
    }
    /* Rows in the order of the cursor. A stage is asked for when all have read what lay there. */
    MEMBER void add_up(const dev_run *run, const dev_product &p, int part) {
        Cursor at(run, p, part);
        int asked = 0, stage = 0, turn = 0;
        if (threadIdx.x < STAGES) arrival_make(arrival_of((int)threadIdx.x));
        __syncthreads();
        while (asked < STAGES - 1 && ask(run, at, asked)) asked++;
#pragma unroll
        for (int i = 0; i < 4 * J; i++) c[i / 4][i % 4] = 0;
#pragma unroll 1
        while (asked > 0) {
            __syncthreads();
            arrival_wait(arrival_of(stage), turn);
            bool more;
            multiply(stage, [&] { more = ask(run, at, (stage + STAGES - 1) % STAGES); });
            stage = (stage + 1) % STAGES;
            turn ^= stage == 0;
            asked = __shfl_sync(~0u, asked - !more, 0);
        }
    }
    /* Where the groups have parts of the same sum: the second's on top of the first's. */
    MEMBER void join_groups() {
        float *room = (float *)smem + threadIdx.x % 128;
        __syncthreads();
        if (threadIdx.x >= 128)
#pragma unroll
            for (int i = 0; i < 4 * J; i++) room[i * 128] = c[i / 4][i % 4];
        __syncthreads();
        if (threadIdx.x < 128)
#pragma unroll
            for (int i = 0; i < 4 * J; i++) c[i / 4][i % 4] += room[i * 128];
    }
    MEMBER void store(float *to, int ld) const {
        const float scale = BF16 ? 1.0f : 1.0f / KEPT_SCALE;
        const int row = (int)threadIdx.x / 32 * 16 + (int)threadIdx.x % 32 / 4;
        const int col = (int)threadIdx.x % 4 * 2;
        if (row >= M) return;
#pragma unroll
        for (int i = 0; i < 2 * J; i++) {
            const int r = row + i % 2 * 8, n = col + i / 2 * 8;
            float *first = TURNED ? to + n * ld + r : to + r * ld + n;
            float *second = TURNED ? first + ld : first + 1;
            const float2 v =
                make_float2(c[i / 2][i % 2 * 2] * scale, c[i / 2][i % 2 * 2 + 1] * scale);
            if (TURNED)
                *first = v.x, *second = v.y;
            else
                *(float2 *)first = v;
        }
    }
};

template <int M, int N, bool TURNED, bool BF16>
FN void form(const dev_run *run, const dev_product &p, int part) {
    Sum<M, N, TURNED, BF16> sum;
    sum.add_up(run, p, part);
    if (M == 64) sum.join_groups();
    const int64_t slot = p.base * run->product_chunks + part;
    sum.store(run->slots + slot * run->slot_words + p.at, p.ld);
}

/* The gradients of fused.h that are left as rows: of conditioners, sets and the first layer. */
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

/* A block to a share of a job: it begins when all functions are so far. The last one also waits for
 * the functions' kernel, so that whoever waits for this one has waited for all. */
__global__ void __launch_bounds__(PRODUCT_THREADS, 2)
    products_kernel(const dev_run *run, bool alone) {
    const int chunks = run->product_chunks, share = (int)blockIdx.x % chunks;
    const dev_job job = run->jobs[blockIdx.x / chunks];
    grid_release();
    wait_count(&run->adam->released[job.release], (int)run->n_slots);
    if (job.product >= 0) {
        bulk_fence_global();
        form_any(run, run->products[job.product], job.part * chunks + share);
    } else if (alone) {
        const int end = job.count * (share + 1) / chunks;
        for (int k = job.count * share / chunks; k < end; k++)
            sum_block(run, job.part + k, nullptr, 1, (float4 *)smem);
    }
    if (blockIdx.x == gridDim.x - 1) grid_wait();
}
static_assert(PRODUCT_THREADS == DEV_STEP_THREADS && SUM_ROOM * 16 <= PRODUCT_BYTES,
              "a block sums ranges too");

cudaError_t products_prepare(void) {
    return cudaFuncSetAttribute(products_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                PRODUCT_BYTES);
}

void products_launch(const dev_run *run, const step_shape *s, bool alone, cudaStream_t stream) {
    if (s->jobs > 0)
        launch_as(launch_of(s->jobs, PRODUCT_THREADS, PRODUCT_BYTES, stream), true, alone,
                  products_kernel, run, alone);
}
