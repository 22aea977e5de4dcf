/* resident.cuh: products whose operands lie whole in shared memory, which is the case for the sets
 * and layers of the usual models. A warp takes a tile of 16 MT x 32 numbers and multiplies by
 * itself, 8 values of k a step; the numbers of the next step are read before the present one is
 * multiplied.
 *
 * "Along": k runs along the rows of a matrix, read with ldmatrix. "Down": k runs over its rows,
 * read four (or two) neighbours at a time, which then belong to different tiles of the unit. So the
 * order of rows and columns inside a tile, and that of k, is not the plain one (g = lane / 4,
 * t = lane % 4; i < MT; j < 4; h, f < 2):
 *
 *   column of (j, the unit's column c) = n0 + 4 order(c) + j,
 *       order(c) = c / 2 for even c, (c / 2) ^ 5 for odd c,
 *   so that a lane holds whole quads: c[i][0..3][2 h + f] are the columns n0 + 4 (t ^ 5 f) + 0..3,
 *   and the four lanes of a row whole sectors of 32 bytes;
 *
 *   row of (i, h) = m0 + g + 8 (2 i + h) where A is read along,
 *                   m0 + 2 MT g + 2 i + h where A is read down.
 *
 *   product   A (M x K)       B (K x N)                        k of t, t + 4   strides in words
 *   FORWARD   X along         W (K, N) down                    t, t + 4        4 and 8 modulo 16
 *   TO_X      g along         W (N, K) along, swapped_row()    t, t + 4        4 modulo 8
 *   TO_W      x (K, M) down   g (K, N) down                    2 t, 2 t + 1    4 modulo 8
 *
 * With these strides every read touches each bank once. Reads beyond the last row or column of an
 * operand give numbers that nobody stores; k is rounded up to 16 by zeros. */
#ifndef MNP_CUDA_DEVICE_RESIDENT_CUH
#define MNP_CUDA_DEVICE_RESIDENT_CUH

#include "backend/cuda/device/mma.cuh"

enum { ROWS_AT_ONCE = 128, SLACK_WORDS = 64 };
enum { FORWARD, TO_X, TO_W };

FN int up16(int x) {
    return (x + 15) & ~15;
}
FN int up32(int x) {
    return (x + 31) & ~31;
}

/* Where row r of TO_X's W lies, so that ldmatrix finds the rows of a tile one after the other. */
FN int swapped_row(int r) {
    const int quad = r >> 2 & 7;
    return (r & ~31) + (r & 3) * 8 + ((quad & 3) * 2 ^ (quad & 4 ? 3 : 0));
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* The shape of a layer's weight: K rows; KP = K and NP = the columns, rounded up to 16, which are
 * the strides of x and W. What a model uses a hundred times a step is known at compile time: most
 * instructions of a small product would otherwise compute addresses, and a warp's instructions one
 * after the other are what the time goes into. */
template <int K_, int N_> struct Fixed {
    static constexpr bool fixed = true, wide = N_ >= 128; /* wide: large tiles for 128 rows */
    static constexpr int K = K_, KP = (K_ + 15) / 16 * 16, NP = (N_ + 15) / 16 * 16;
    /* Rows that a thread of a strip over N has on their way at once: at most 8, 128 rows evenly */
    static constexpr int turns = (ROWS_AT_ONCE - 1) / (THREADS / (NP / 4)) + 1;
    static constexpr int flight = (turns - 1) / ((turns + 7) / 8) + 1;
    MEMBER Fixed(const View &) {}
};
struct Sized {
    static constexpr bool fixed = false, wide = true;
    static constexpr int flight = 8;
    int K, KP, NP;
    MEMBER Sized(const View &w) : K(w.rows), KP(up16(w.rows)), NP(w.ld) {}
};

/* Threads as (row, quad): a thread stays in its columns. A thread left over has no row. */
struct Strip {
    int row, col, rows; /* rows: as many are taken at a time */
};
template <class S> FN Strip strip_of(int quads) {
    Strip s;
    const int id = threadIdx.x;
    __builtin_assume(id >= 0 && id < THREADS);
    s.row = S::fixed ? id / quads : quotient(id, quads);
    s.rows = S::fixed ? THREADS / quads : quotient(THREADS, quads);
    s.col = (id - s.row * quads) * 4;
    if (THREADS % quads != 0 && s.row >= s.rows) s.row = THREADS;
    return s;
}

/* rows x cols (a multiple of 4, at most the strip's) of global memory to shared memory; rows
 * [rows, to_row) become zeros. */
template <class S, bool SWAPPED = false>
FN void fetch_matrix(const Strip &s, float *to, int pitch, const float *from, int ld, int rows,
                     int cols, int to_row) {
    if (!S::fixed && s.col >= cols) return;
    const uint32_t base = shared_at(to + s.col);
    from += s.row * ld + s.col;
#pragma unroll(S::fixed ? 16 : 1)
    for (int j = 0; j * s.rows < to_row; j++) {
        const int r = s.row + j * s.rows;
        /* a step of whole tiles keeps the place in a tile */
        const int place = !SWAPPED      ? r
                          : s.rows % 32 ? swapped_row(r)
                                        : swapped_row(s.row) + j * s.rows;
        if (s.row < THREADS && (to_row % s.rows == 0 || r < to_row))
            copy16(base + place * pitch * 4, from + j * s.rows * ld, r < rows);
    }
}

/* ---- a step of k ----------------------------------------------------------------------------- */

/* 8 values of k as they are read: a (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4) and b (t, g),
 * (t + 4, g) of every tile of the unit. */
template <int MT> struct Step { float a[MT][4], b[4][2]; };

/* The same as the unit wants it. */
template <int MATH, int MT> struct Ready { uint32_t a[MT][4], b[4][2], low_a[MT][4], low_b[4][2]; };
template <int MT> struct Ready<DEV_TF32, MT> { uint32_t a[MT][4], b[4][2]; };
template <int MT> struct Ready<DEV_BF16, MT> { uint32_t a[MT][2], b[4]; };

FN void split(float x, uint32_t &high, uint32_t &low) {
    high = upper(x);
    low = __float_as_uint(x - __uint_as_float(high));
}

template <int MATH, int MT> FN void make_ready(Ready<MATH, MT> &r, const Step<MT> &s) {
#pragma unroll
    for (int i = 0; i < MT; i++)
        if constexpr (MATH == DEV_BF16) {
            r.a[i][0] = pack_bf16(s.a[i][0], s.a[i][2]);
            r.a[i][1] = pack_bf16(s.a[i][1], s.a[i][3]);
        } else {
#pragma unroll
            for (int e = 0; e < 4; e++)
                if constexpr (MATH == DEV_TF32)
                    r.a[i][e] = to_tf32(s.a[i][e]);
                else
                    split(s.a[i][e], r.a[i][e], r.low_a[i][e]);
        }
#pragma unroll
    for (int j = 0; j < 4; j++)
        if constexpr (MATH == DEV_BF16) {
            r.b[j] = pack_bf16(s.b[j][0], s.b[j][1]);
        } else {
#pragma unroll
            for (int e = 0; e < 2; e++)
                if constexpr (MATH == DEV_TF32)
                    r.b[j][e] = to_tf32(s.b[j][e]);
                else
                    split(s.b[j][e], r.b[j][e], r.low_b[j][e]);
        }
}

template <int MT>
FN void mma_all(float (&c)[MT][4][4], const uint32_t (&a)[MT][4], const uint32_t (&b)[4][2]) {
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int i = 0; i < MT; i++) mma_tf32(c[i][j], a[i], b[j]);
}

/* c += a step; in bfloat16 two steps are one of the unit */
template <int MATH, int MT> FN void multiply_step(float (&c)[MT][4][4], const Ready<MATH, MT> &r) {
    if constexpr (MATH == DEV_FP32) { /* neighbours do not wait for each other */
        mma_all<MT>(c, r.low_a, r.b);
        mma_all<MT>(c, r.a, r.low_b);
    }
    mma_all<MT>(c, r.a, r.b);
}
template <int MT>
FN void multiply_steps(float (&c)[MT][4][4], const Ready<DEV_BF16, MT> &r,
                       const Ready<DEV_BF16, MT> &q) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const uint32_t b[2] = {r.b[j], q.b[j]};
#pragma unroll
        for (int i = 0; i < MT; i++) {
            const uint32_t a[4] = {r.a[i][0], r.a[i][1], q.a[i][0], q.a[i][1]};
            mma_bf16(c[i][j], a, b);
        }
    }
}

/* ---- a tile ---------------------------------------------------------------------------------- */

struct Operands {
    const float *a, *b;
    int pitch_a, pitch_b;
};

template <int HOW, int MT> struct Tile {
    int m0, n0;
    uint32_t a, b;      /* where this lane reads: bytes */
    int step_a, step_b; /* strides of rows, in bytes    */
    float c[MT][4][4];

    MEMBER Tile(const Operands &p, int m, int n) : m0(m), n0(n), c{} {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        const int quad = g >> 1 ^ (g & 1 ? 5 : 0);
        step_a = p.pitch_a * 4, step_b = p.pitch_b * 4;
        if (HOW == TO_W)
            a = shared_at(p.a + 2 * t * p.pitch_a + m0 + 2 * MT * g);
        else
            a = shared_at(p.a + (m0 + lane % 16) * p.pitch_a + lane / 16 * 4);
        if (HOW == TO_X)
            b = shared_at(p.b + (n0 + lane / 16 * 8 + lane % 8) * p.pitch_b + lane / 8 % 2 * 4);
        else
            b = shared_at(p.b + (HOW == TO_W ? 2 * t : t) * p.pitch_b +
                          min(n0 + 4 * quad, p.pitch_b - 4)); /* of columns beyond the last: any */
    }
    /* r = 2 i + h */
    MEMBER int row(int r) const {
        const int g = threadIdx.x % 32 / 4;
        return m0 + (HOW == TO_W ? 2 * MT * g + r : g + 8 * r);
    }
    MEMBER int col(int f) const { return n0 + 4 * ((int)threadIdx.x % 4 ^ 5 * f); }

    /* The tile's quads in a matrix of that stride, of which `rows` rows and all columns exist:
     * q = 2 r + f. */
    MEMBER bool exists(int q, int ld, int rows) const {
        return row(q / 2) < rows && (ld % 32 == 0 || col(q % 2) < ld);
    }
    MEMBER int64_t place(int q, int ld) const {
        return row(0) * ld + col(q % 2) + q / 2 * (HOW == TO_W ? ld : 8 * ld);
    }
    MEMBER void add(int q, float4 v) {
        c[q / 4][0][q % 4] += v.x, c[q / 4][1][q % 4] += v.y;
        c[q / 4][2][q % 4] += v.z, c[q / 4][3][q % 4] += v.w;
    }
    MEMBER void add_from(const float *from, int ld, int rows) {
        float4 v[4 * MT]; /* all on their way before the first is needed */
#pragma unroll
        for (int q = 0; q < 4 * MT; q++)
            v[q] = global_quad(from + place(q, ld), exists(q, ld, rows));
#pragma unroll
        for (int q = 0; q < 4 * MT; q++) add(q, v[q]);
    }
    MEMBER void store(float *to, int ld, int rows) const {
#pragma unroll
        for (int q = 0; q < 4 * MT; q++) {
            const int i = q / 4, e = q % 4;
            global_quad(to + place(q, ld),
                        make_float4(c[i][0][e], c[i][1][e], c[i][2][e], c[i][3][e]),
                        exists(q, ld, rows));
        }
    }

    MEMBER void read_a(Step<MT> &s, int k) const {
        if constexpr (HOW != TO_W) {
#pragma unroll
            for (int i = 0; i < MT; i++) load_pieces(a + k * 4 + i * 16 * step_a, s.a[i]);
        } else {
#pragma unroll
            for (int e = 0; e < 2; e++) { /* k = 2 t, 2 t + 1 */
                const uint32_t at = a + (k + e) * step_a;
                if constexpr (MT == 2) {
                    const float4 v = load_quad(at);
                    s.a[0][2 * e] = v.x, s.a[0][2 * e + 1] = v.y;
                    s.a[1][2 * e] = v.z, s.a[1][2 * e + 1] = v.w;
                } else {
                    const float2 v = load_pair(at);
                    s.a[0][2 * e] = v.x, s.a[0][2 * e + 1] = v.y;
                }
            }
        }
    }
    MEMBER void read_b(Step<MT> &s, int k) const {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            if constexpr (HOW == TO_X) { /* two tiles of the unit */
                float v[4];
                load_pieces(b + k * 4 + e * 16 * step_b, v);
                s.b[2 * e][0] = v[0], s.b[2 * e][1] = v[1];
                s.b[2 * e + 1][0] = v[2], s.b[2 * e + 1][1] = v[3];
            } else {
                const float4 v = load_quad(b + (k + e * (HOW == TO_W ? 1 : 4)) * step_b);
                s.b[0][e] = v.x, s.b[1][e] = v.y, s.b[2][e] = v.z, s.b[3][e] = v.w;
            }
        }
    }
    MEMBER void read(Step<MT> &s, int k) const {
        read_a(s, k);
        read_b(s, k);
    }

    /* c += A B over [k0, k1), multiples of 16 */
    template <int MATH> MEMBER void multiply(int k0, int k1) {
        Step<MT> even, odd;
        read(even, k0);
#pragma unroll 1
        for (int k = k0; k < k1; k += 16) {
            Ready<MATH, MT> r, q;
            read(odd, k + 8);
            make_ready<MATH, MT>(r, even);
            if constexpr (MATH != DEV_BF16) multiply_step<MATH, MT>(c, r);
            read(even, k + 16 < k1 ? k + 16 : k);
            make_ready<MATH, MT>(q, odd);
            if constexpr (MATH != DEV_BF16)
                multiply_step<MATH, MT>(c, q);
            else
                multiply_steps<MT>(c, r, q);
        }
    }
};

#endif
