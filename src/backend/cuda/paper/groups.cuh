/* groups.cuh: products of a group of four warps (device/ptx.cuh) in fp32. In a function that is
 * called the compiler lets every product wait for the one before. A group takes a tile of 64 x 8 J
 * numbers, D = A B. A goes through registers, so it may lie either way; B is read by the unit
 * itself and lies as "quads": k by fours, Quads::at() says where.
 *
 * g = lane / 4, t = lane % 4, w = the warp in its group; j < J; h, f < 2:
 *
 *           A (M x K)                      rows of D: m0 + 16 w +     k of t, t + 4   strides
 *   DOWN    read from (K, M)               2 g + h                    t, t + 4        8 modulo 32
 *   PAIRS   read from (K, M)               2 g + h                    2 t, 2 t + 1    4 modulo 32
 *   ALONG   read from (M, K), ldmatrix     g + 8 h                    t, t + 4        4 modulo 8
 *
 *   columns of D: n0 + 8 j + 2 t + f       c[j][2 h + f]
 *
 * The unit takes k in the order in which B's quads lie, so B is written for PAIRS with every eight
 * of k as 0 2 4 6, 1 3 5 7 (keep_across).
 *
 * x = hi + lo, where hi is what the unit reads of x by itself; the lo of 16 values of k of B are
 * made by all threads, in a buffer of LOW_WORDS. */
#ifndef MNP_CUDA_PAPER_GROUPS_CUH
#define MNP_CUDA_PAPER_GROUPS_CUH

#include "backend/cuda/paper/rows.cuh"

enum { DOWN, PAIRS, ALONG };
enum { GROUP = 128 };

/* B (K x N) with `rows` = N. */
struct Quads {
    float *buf;
    int rows;
    MEMBER int pitch() const { return 4 * rows + 4; }
    MEMBER float *at(int n, int k) const { return buf + k / 4 * pitch() + n * 4 + k % 4; }
};

/* ROWS rows of a matrix with all its columns, 16 bytes a thread at a time; zeros after the first
 * `rows` of them. */
template <int COLUMNS, int ROWS>
FN void fetch_rows(float *to, int pitch, const float *from, int rows = ROWS) {
    const int quads = COLUMNS / 4, at_once = THREADS / quads;
    const int r = (int)threadIdx.x / quads, c = (int)threadIdx.x % quads * 4;
    if (THREADS % quads && r >= at_once) return;
    from += r * COLUMNS + c;
    const uint32_t place = shared_at(to + r * pitch + c);
#pragma unroll
    for (int i = 0; i < ROWS; i += at_once)
        if (ROWS % at_once == 0 || i + at_once <= ROWS || r + i < ROWS)
            copy16(place + i * pitch * 4, from + i * COLUMNS, r + i < rows);
}

/* Rows [first, first + EACH * WARPS) that are below `rows`, by the copy engine: EACH to a warp. */
template <int EACH>
FN void ask_some(int arrival, int first, int rows, float *to, int pitch, const float *from,
                 int columns) {
    const int lane = threadIdx.x % 32, r = first + lane * WARPS + (int)threadIdx.x / 32;
    if (lane < EACH && r < rows)
        bulk_load(shared_at(to + r * pitch), from + r * columns, columns * 4, arrival_at(arrival));
}

enum { LOW_K = 16, LOW_WORDS = LOW_K / 4 * (4 * 128 + 4) };

FN float low_of(float x) {
    return x - __uint_as_float(upper(x));
}
FN void make_low(const Quads &b, float *low, int k) {
#pragma unroll 1
    for (int i = threadIdx.x; i < LOW_K / 4 * b.rows; i += THREADS) {
        const int n = i % b.rows, quad = i / b.rows;
        const float4 v = ld4(b.at(n, k + quad * 4));
        st4(low + quad * b.pitch() + n * 4,
            make_float4(low_of(v.x), low_of(v.y), low_of(v.z), low_of(v.w)));
    }
}

template <int HOW, int J> struct GroupTile {
    int m0, n0;
    uint32_t a; /* where this lane reads A: bytes */
    int step;   /* stride of A's rows, in bytes   */
    uint64_t b;
    int step_b; /* from quad to quad, in bytes    */
    float c[J][4];

    MEMBER GroupTile(const float *from, int pitch, const Quads &by, int m, int n)
        : m0(m), n0(n), step(pitch * 4), step_b(by.pitch() * 4), c{} {
        const int lane = threadIdx.x % 32, w = threadIdx.x / 32 % 4, g = lane / 4, t = lane % 4;
        if (HOW == ALONG)
            a = shared_at(from + (m0 + 16 * w + lane % 16) * pitch + lane / 16 * 4);
        else
            a = shared_at(from + (HOW == PAIRS ? 2 * t : t) * pitch + m0 + 16 * w + 2 * g);
        b = group_operand(shared_at(by.at(n0, 0)), step_b);
    }
    MEMBER int row(int h) const {
        const int g = threadIdx.x % 32 / 4;
        return m0 + (int)threadIdx.x / 32 % 4 * 16 + (HOW == ALONG ? g + 8 * h : 2 * g + h);
    }
    MEMBER int col(int j, int f) const { return n0 + 8 * j + (int)threadIdx.x % 4 * 2 + f; }

    MEMBER void read(uint32_t (&v)[4], int k) const {
        if constexpr (HOW == ALONG) {
            load_matrices(a + k * 4, v);
        } else {
            const uint32_t at = a + k * step, then = at + (HOW == DOWN ? 4 : 1) * step;
            const float2 x = load_pair(at), y = load_pair(then);
            v[0] = __float_as_uint(x.x), v[1] = __float_as_uint(x.y);
            v[2] = __float_as_uint(y.x), v[3] = __float_as_uint(y.y);
        }
    }
    /* 16 values of k in three products; `low` has their lo */
    template <class DO> MEMBER void multiply_low(int k, uint64_t low, DO meanwhile) {
        uint32_t v[2][4], lo[2][4];
#pragma unroll
        for (int s = 0; s < 2; s++) {
            read(v[s], k + 8 * s);
#pragma unroll
            for (int e = 0; e < 4; e++)
                lo[s][e] = __float_as_uint(low_of(__uint_as_float(v[s][e])));
        }
        group_begin();
#pragma unroll
        for (int s = 0; s < 2; s++) {
            const uint64_t high = group_further(b, (k / 4 + 2 * s) * step_b);
            group_mma(c, lo[s], high);
            group_mma(c, v[s], group_further(low, 2 * s * step_b));
            group_mma(c, v[s], high);
        }
        group_commit();
        meanwhile(k);
        group_wait();
    }
    /* c += A B over [k0, k1), multiples of LOW_K, by all threads of the block; only groups that are
     * `in` multiply. meanwhile(k) is called by all beside the unit's work. The buffer of the lo is
     * free after the next barrier. */
    template <class DO>
    MEMBER void multiply(bool in, const Quads &by, float *low, int k0, int k1, DO meanwhile) {
        const uint64_t low_b = group_operand(shared_at(low + n0 * 4), step_b);
#pragma unroll 1
        for (int k = k0; k < k1; k += LOW_K) {
            __syncthreads(); /* the lo before have been read */
            make_low(by, low, k);
            bulk_fence();
            __syncthreads();
            if (in)
                multiply_low(k, low_b, meanwhile);
            else
                meanwhile(k);
        }
    }
    MEMBER void multiply(bool in, const Quads &by, float *low, int k0, int k1) {
        multiply(in, by, low, k0, k1, [](int) {});
    }

    /* A row of numbers, one for every row of D. */
    MEMBER void add_row(const float *row_of) {
        const float of[2] = {row_of[row(0)], row_of[row(1)]};
#pragma unroll
        for (int i = 0; i < 4 * J; i++) c[i / 4][i % 4] += of[i / 2 % 2];
    }
    MEMBER void relu() {
#pragma unroll
        for (int i = 0; i < 4 * J; i++) c[i / 4][i % 4] = relu_of(c[i / 4][i % 4]);
    }
    /* Zero where h (columns of D, rows of D) is. */
    MEMBER void mask(const float *h, int pitch) {
        const float *from = h + col(0, 0) * pitch;
#pragma unroll
        for (int i = 0; i < 4 * J; i++) {
            float &v = c[i / 4][i % 4];
            v = from[(i / 4 * 8 + i % 2) * pitch + row(i / 2 % 2)] > 0 ? v : 0;
        }
    }
    /* D^T as the B of a product whose k are D's rows. */
    MEMBER void keep(const Quads &to) const {
        float *at = to.at(col(0, 0), row(0));
#pragma unroll
        for (int i = 0; i < 2 * J; i++) {
            const int j = i / 2, f = i % 2, place = (8 * j + f) * 4;
            if constexpr (HOW == ALONG) {
                at[place] = c[j][f];
                at[place + 2 * to.pitch()] = c[j][2 + f];
            } else {
                *(float2 *)(at + place) = make_float2(c[j][f], c[j][2 + f]);
            }
        }
    }
    /* D^T as the B of a product by PAIRS whose k are D's columns. */
    MEMBER void keep_across(const Quads &to) const {
        float *at = to.at(row(0), n0) + threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < 4 * J; i++) {
            const int j = i / 4, h = i / 2 % 2, f = i % 2;
            at[(2 * j + f) * to.pitch() + h * (row(1) - row(0)) * 4] = c[j][i % 4];
        }
    }
    /* D^T (columns of D, rows of D), `rows` of them; DOWN and PAIRS */
    MEMBER void turn(float *to, int ld, int rows) const {
        float *at = to + col(0, 0) * ld + row(0);
#pragma unroll
        for (int i = 0; i < 2 * J; i++) {
            const int j = i / 2, f = i % 2;
            if (col(j, f) < rows)
                *(float2 *)(at + (8 * j + f) * ld) = make_float2(c[j][f], c[j][2 + f]);
        }
    }
    MEMBER float2 pair(int i) const { /* of row i % 2 */
        return make_float2(c[i / 2][i % 2 * 2], c[i / 2][i % 2 * 2 + 1]);
    }
    /* D as it is, in rows `ld` apart. */
    MEMBER void store(float *to, int ld) const {
        float *at = to + row(0) * ld + col(0, 0);
#pragma unroll
        for (int i = 0; i < 2 * J; i++) *(float2 *)(at + i % 2 * ld + i / 2 * 8) = pair(i);
    }
    /* The same in global memory, or on top of what is there. */
    MEMBER void store(float *to, int ld, bool adds) const {
        if (!adds) {
            store(to, ld);
            return;
        }
        float *at = to + row(0) * ld + col(0, 0);
#pragma unroll
        for (int i = 0; i < 2 * J; i++) global_add(at + i % 2 * ld + i / 2 * 8, pair(i));
    }
};

/* Sums over a tile's columns, by its rows; TILE: this one or that of col8.cuh. */
template <class TILE> FN void keep_row_sums(const TILE &tile, float *sums) {
    float2 s = make_float2(0, 0);
    for (auto &c : tile.c) s.x += c[0] + c[1], s.y += c[2] + c[3];
#pragma unroll
    for (int d = 1; d < 4; d *= 2) {
        s.x += __shfl_xor_sync(~0u, s.x, d);
        s.y += __shfl_xor_sync(~0u, s.y, d);
    }
    if ((int)threadIdx.x % 4 == 0) sums[tile.row(0)] = s.x, sums[tile.row(1)] = s.y;
}

#endif
