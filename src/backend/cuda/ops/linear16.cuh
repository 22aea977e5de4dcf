/* linear16.cuh: the dense layer and its reverse pass on 16-bit operands in shared memory: fp16 in
 * tf32, which has as many digits, and bfloat16 in bf16. All three products read the same panels:
 *
 *   forward  y  = X W      X (R, K) along, W (K, N) down
 *   reverse  dx = G W^T    G (R, N) along, W (K, N) along
 *            dW = X^T G    X (R, K) down,  G (R, N) down
 *
 * Along: k runs along the rows of a panel; down: over its rows (ldmatrix turns them). A weight too
 * large for shared memory is taken in blocks of columns, a set too large in chunks of rows.
 *
 * G gets a factor, a power of two that brings a chunk's largest number near 2^13, since gradients
 * may be smaller or larger than fp16 knows; results are divided by it. */
#ifndef MNP_CUDA_OPS_LINEAR16_CUH
#define MNP_CUDA_OPS_LINEAR16_CUH

#include "backend/cuda/device/resident.cuh"
#include "backend/cuda/ops/linear_common.cuh"
#include "backend/cuda/paper/pack16.cuh"

/* ---- panels ---------------------------------------------------------------------------------- */

/* A matrix of 16-bit numbers in shared memory. Rows are 16 bytes longer than their columns, so that
 * the eight rows of an ldmatrix lie in different banks. */
struct Panel {
    uint32_t at; /* bytes, also: */
    int pitch;
};
FN constexpr int panel_pitch(int cols) {
    return 2 * cols + 16;
}

/* Quads that a thread asks for before it needs the first. */
enum { IN_FLIGHT = 8 };

/* A thread's columns of a panel, and the rows it begins with and goes on by. */
FN Strip panel_strip(int cols) {
    return strip_of<Sized>(cols / 4);
}

template <int MATH> FN void put_panel(const Panel &to, int row, int col, float4 v) {
    store_pair(to.at + row * to.pitch + 2 * col, pack<MATH>(v.x, v.y), pack<MATH>(v.z, v.w));
}

/* rows x cols of global memory; rows [rows, to_row) become zeros. */
template <int MATH>
FN void fetch_panel(const Panel &to, const float *from, int ld, int rows, int cols, int to_row) {
    const Strip s = panel_strip(cols);
    from += s.col;
#pragma unroll 1
    for (int r0 = s.row; r0 < to_row && s.row < THREADS; r0 += IN_FLIGHT * s.rows) {
        float4 v[IN_FLIGHT];
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; j++) {
            const int r = r0 + j * s.rows;
            v[j] = global_quad(from + (int64_t)r * ld, r < rows);
        }
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; j++) {
            const int r = r0 + j * s.rows;
            if (r < to_row) put_panel<MATH>(to, r, s.col, v[j]);
        }
    }
}

/* ---- a tile ---------------------------------------------------------------------------------- */

/* A warp's tile of 16 MT x 32 numbers: c[i][j] are the unit's rows m0 + 16 i + (g, g + 8) and
 * columns n0 + 8 j + 2 t, + 1; g = lane / 4, t = lane % 4. */
template <int MT> struct Tile16 {
    int m0, n0;
    float c[MT][4][4];

    MEMBER Tile16(int m, int n) : m0(m), n0(n), c{} {}
    /* q = 2 i + (0 for g, 1 for g + 8) */
    MEMBER int row(int q) const { return m0 + (int)threadIdx.x % 32 / 4 + 8 * q; }
    MEMBER int col(int j) const { return n0 + (int)threadIdx.x % 4 * 2 + 8 * j; }

    /* c += A B over k values; A (m, k) lies along or down, B (k, n) likewise. */
    template <int MATH, bool A_DOWN, bool B_DOWN>
    MEMBER void multiply(const Panel &pa, const Panel &pb, int k) {
        const int lane = threadIdx.x % 32, low = lane % 8, mid = lane / 8 % 2 * 8,
                  high = lane / 16 * 8;
        uint32_t a = pa.at + (A_DOWN ? (low + high) * pa.pitch + 2 * (m0 + mid)
                                     : (m0 + low + mid) * pa.pitch + 2 * high);
        uint32_t b = pb.at + (B_DOWN ? (low + mid) * pb.pitch + 2 * (n0 + high)
                                     : (n0 + low + high) * pb.pitch + 2 * mid);
        const int step_a = A_DOWN ? 16 * pa.pitch : 32, step_b = B_DOWN ? 16 * pb.pitch : 32;
        const int next_a = A_DOWN ? 32 : 16 * pa.pitch, next_b = B_DOWN ? 32 : 16 * pb.pitch;
#pragma unroll 2
        for (int k0 = 0; k0 < k; k0 += 16, a += step_a, b += step_b) {
            uint32_t fa[MT][4], fb[2][4];
#pragma unroll
            for (int i = 0; i < MT; i++)
                A_DOWN ? load_transposed(a + i * next_a, fa[i])
                       : load_matrices(a + i * next_a, fa[i]);
#pragma unroll
            for (int j = 0; j < 2; j++)
                B_DOWN ? load_transposed(b + j * next_b, fb[j])
                       : load_matrices(b + j * next_b, fb[j]);
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int i = 0; i < MT; i++)
                    multiply16<MATH>(c[i][j], fa[i], &fb[j / 2][j % 2 * 2], c[i][j]);
        }
    }

    /* c += f times what lies there; rows and columns that exist. All are on their way before the
     * first is needed. */
    MEMBER void add_from(const float *from, int ld, int rows, int cols, float f) {
        float2 v[2 * MT][4];
#pragma unroll
        for (int q = 0; q < 2 * MT; q++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[q][j] = global_pair(from + (int64_t)row(q) * ld + col(j),
                                      row(q) < rows && col(j) < cols);
#pragma unroll
        for (int q = 0; q < 2 * MT; q++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                c[q / 2][j][q % 2 * 2] += f * v[q][j].x;
                c[q / 2][j][q % 2 * 2 + 1] += f * v[q][j].y;
            }
    }
    MEMBER void store(float *to, int ld, int rows, int cols, float f) const {
#pragma unroll
        for (int q = 0; q < 2 * MT; q++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (row(q) < rows && col(j) < cols)
                    *(float2 *)(to + (int64_t)row(q) * ld + col(j)) =
                        make_float2(f * c[q / 2][j][q % 2 * 2], f * c[q / 2][j][q % 2 * 2 + 1]);
    }
};

/* Tiles of 32 rows when there are enough for all warps, of 16 otherwise: 16 times this. */
FN int tile_height(int rows, int cols) {
    return up32(rows) * up32(cols) >= WARPS * 32 * 32 ? 2 : 1;
}
FN int tiles_of(int rows, int cols, int height) {
    return ((rows + 16 * height - 1) >> (3 + height)) * (up32(cols) / 32);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Columns of W and rows of X that lie in shared memory together. */
struct Room {
    int cols, rows;
};

/* The size of as few parts of at most `most` as possible, all about as large: multiples of step. */
FN int even_part(int all, int most, int step) {
    const int parts = max(1, quotient(all + most - 1, most));
    return (quotient(all + parts - 1, parts) + step - 1) / step * step;
}

FN Room forward_room(int KP, int NP, int rows) {
    Room z;
    z.cols = even_part(NP, max(32, (quotient(WORK_BYTES / 8 * 5, KP) - 16) / 64 * 32), 32);
    const int fit = quotient(WORK_BYTES - KP * panel_pitch(z.cols), panel_pitch(KP)) / 32 * 32;
    z.rows = even_part(rows, fit, 32);
    return z;
}

/* h = act(c + b), y = h + residual, of a tile of the rows from r0 and the columns from n0 on */
template <int MT>
FN void finish16(const dev_instr &ins, Tile16<MT> &tile, int r0, int n0, int here, int cols) {
    const View y = view_out(ins, LINEAR_Y);
    const float *bias = view_in(ins, LINEAR_B).p, *res = view_in(ins, LINEAR_RES).p;
    const int64_t first = (int64_t)r0 * y.ld + n0;
    if (bias)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float2 b = global_pair(bias + n0 + tile.col(j), tile.col(j) < cols);
#pragma unroll
            for (int q = 0; q < 2 * MT; q++) {
                tile.c[q / 2][j][q % 2 * 2] += b.x;
                tile.c[q / 2][j][q % 2 * 2 + 1] += b.y;
            }
        }
    if (ins.i[LINEAR_ACT] == 1)
#pragma unroll
        for (int k = 0; k < 16 * MT; k++) {
            float &v = tile.c[k / 16][k / 4 % 4][k % 4];
            v = relu_of(v);
        }
    if (res) {
        float *h = view_out(ins, LINEAR_H).p;
        if (h) tile.store(h + first, y.ld, here, cols, 1.0f);
        tile.add_from(res + first, y.ld, here, cols, 1.0f);
    }
    tile.store(y.p + first, y.ld, here, cols, 1.0f);
}

template <int MATH, int MT>
FN void forward_tiles16(const dev_instr &ins, const Panel &x, const Panel &w, int r0, int n0,
                        int here, int cols, int KP) {
    const int across = up32(cols) / 32, tiles = (here + 16 * MT - 1) / (16 * MT) * across;
#pragma unroll 1
    for (int k = threadIdx.x / 32; k < tiles; k += WARPS) {
        const int m = quotient(k, across);
        Tile16<MT> tile(m * 16 * MT, (k - m * across) * 32);
        tile.template multiply<MATH, false, true>(x, w, KP);
        finish16<MT>(ins, tile, r0, n0, here, cols);
    }
}

template <int MATH> static __device__ __noinline__ void linear16(const dev_instr &ins) {
    const int KP = view_in(ins, LINEAR_X).ld, NP = view_in(ins, LINEAR_W).ld;
    const int rows = view_in(ins, LINEAR_X).all_rows(frame().S);
    const Room z = forward_room(KP, NP, rows);
    const Panel w = {shared_at(work()), panel_pitch(z.cols)};
    const Panel x = {w.at + KP * w.pitch, panel_pitch(KP)};
#pragma unroll 1
    for (int n0 = 0; n0 < NP; n0 += z.cols) {
        const int cols = min(z.cols, NP - n0);
        if (n0 > 0) __syncthreads();
        fetch_panel<MATH>(w, view_in(ins, LINEAR_W).p + n0, NP, view_in(ins, LINEAR_W).rows, cols,
                          KP);
#pragma unroll 1
        for (int r0 = 0; r0 < rows; r0 += z.rows) {
            const int here = min(z.rows, rows - r0);
            if (r0 > 0) __syncthreads();
            if (n0 == 0 || rows > z.rows)
                fetch_panel<MATH>(x, view_in(ins, LINEAR_X).p + (int64_t)r0 * KP, KP, here, KP,
                                  here);
            __syncthreads();
            if (tile_height(here, cols) == 2)
                forward_tiles16<MATH, 2>(ins, x, w, r0, n0, here, cols, KP);
            else
                forward_tiles16<MATH, 1>(ins, x, w, r0, n0, here, cols, KP);
        }
    }
}

/* ---- reverse --------------------------------------------------------------------------------- */

/* Shared memory of the reverse pass, in bytes from work(): sums of g over strips of rows, the
 * warps' largest numbers, then the panels of G, of W where dx is wanted, of X where dW is. A thread
 * holds GRAD_QUADS quads of g. */
enum {
    GRAD_QUADS = 13,
    MASK_BATCH = 5,
    GRAD_TOP = THREADS * 16,
    GRAD_PANELS = GRAD_TOP + 128,
    GRAD_SLACK = 64
};
enum { GRAD_COLUMNS = 192 }; /* at most, so that GRAD_QUADS hold 128 rows */

FN Room reverse_room(int KP, int NP, int rows, bool to_x, bool to_w) {
    Room z;
    const int all = WORK_BYTES - GRAD_PANELS - GRAD_SLACK;
    const int fits =
        to_x ? max(16, (quotient(all / 2, up32(KP)) - 16) / 32 * 16) : (int)GRAD_COLUMNS;
    z.cols = even_part(NP, min(fits, (int)GRAD_COLUMNS), 16);
    const int left = all - (to_x ? up32(KP) * panel_pitch(z.cols) : 0);
    const int fit = quotient(left, panel_pitch(z.cols) + (to_w ? panel_pitch(KP) : 0));
    const int held = GRAD_QUADS * quotient(THREADS, z.cols / 4);
    z.rows = max(16, even_part(rows, min(fit, held) / 16 * 16, 16));
    return z;
}

/* What the reverse pass works on: columns [n0, n0 + cols), rows [r0, r0 + here) . */
struct Piece {
    Panel g, w, x;
    int KP, n0, cols, r0, here;
    bool has_x; /* x lies there from the columns before */
};

/* A power of two that brings numbers of at most this size near 2^13; NaN if there is none. At most
 * 2^53: what a gradient is added to gets the factor too, and may be large where it is small. */
FN float factor_of(float most) {
    const uint32_t e = __float_as_uint(most) >> 23 & 255;
    if (e == 255) return NAN;
    return __uint_as_float((267u - max(e, 87u)) << 23);
}

/* The largest number of all threads, which meet once. */
FN float block_most(float most) {
    float *top = work() + GRAD_TOP / 4;
    for (int d = 16; d > 0; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (threadIdx.x % 32 == 0) top[threadIdx.x / 32] = most;
    __syncthreads();
    for (int k = 0; k < WARPS; k++) most = fmaxf(most, top[k]);
    return most;
}

/* The gradient of a residual: g on top of what is there. at: the thread's first number; live: of
 * how many quads there are rows. */
FN void pass_on(const dev_instr &ins, int64_t at, int64_t step, int live) {
    float *res = view_out(ins, LINEAR_GRES).p;
    if (!res) return;
    const bool add = adds(frame(), ins, LINEAR_GRES);
#pragma unroll 1
    for (int j = 0; j < live; j++) {
        const float4 u = global_quad(res + at + j * step, add);
        const float4 g = global_quad(view_in(ins, LINEAR_GRAD_G).p + at + j * step, true);
        global_quad(res + at + j * step, make_float4(u.x + g.x, u.y + g.y, u.z + g.z, u.w + g.w),
                    true);
    }
}

/* g where the layer's ReLU let numbers through */
FN void mask_gradient(const dev_instr &ins, float4 *v, int64_t at, int64_t step, int live) {
    const float *h = view_in(ins, LINEAR_GRAD_H).p + at;
#pragma unroll
    for (int j0 = 0; j0 < GRAD_QUADS; j0 += MASK_BATCH) {
        float4 m[MASK_BATCH];
        if (j0 >= live) break;
#pragma unroll
        for (int j = 0; j < MASK_BATCH && j0 + j < GRAD_QUADS; j++)
            m[j] = global_quad(h + (j0 + j) * step, j0 + j < live);
#pragma unroll
        for (int j = 0; j < MASK_BATCH && j0 + j < GRAD_QUADS; j++) {
            float4 &x = v[j0 + j];
            x.x = m[j].x > 0 ? x.x : 0, x.y = m[j].y > 0 ? x.y : 0;
            x.z = m[j].z > 0 ? x.z : 0, x.w = m[j].w > 0 ? x.w : 0;
        }
    }
}

FN float largest_of(float4 v) {
    return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

/* All panels of a piece. g is on its way while W and x are fetched; masked, its largest number
 * gives the factor, which is returned. The residual's gradient and this thread's share of db on the
 * way. */
template <int MATH> FN float fetch_piece(const dev_instr &ins, const Piece &p) {
    const int ld = view_in(ins, LINEAR_GRAD_G).ld, to_row = up16(p.here);
    const Strip s = panel_strip(p.cols);
    const int64_t at = (int64_t)(p.r0 + s.row) * ld + p.n0 + s.col, step = (int64_t)s.rows * ld;
    const int live = s.row < p.here ? quotient(p.here - 1 - s.row, s.rows) + 1 : 0;
    const float *g = view_in(ins, LINEAR_GRAD_G).p + at;
    float4 v[GRAD_QUADS], sum = make_float4(0, 0, 0, 0);
    float most = 0;
#pragma unroll
    for (int j = 0; j < GRAD_QUADS; j++) v[j] = global_quad(g + j * step, j < live);
    if (view_out(ins, LINEAR_GX).p && p.r0 == 0)
        fetch_panel<MATH>(p.w, view_in(ins, LINEAR_GRAD_W).p + p.n0, ld,
                          view_in(ins, LINEAR_GRAD_W).rows, p.cols, up32(p.KP));
    if (view_out(ins, LINEAR_GW).p && !p.has_x)
        fetch_panel<MATH>(p.x, view_in(ins, LINEAR_GRAD_X).p + (int64_t)p.r0 * p.KP, p.KP, p.here,
                          p.KP, to_row);
    pass_on(ins, at, step, live);
    if (view_in(ins, LINEAR_GRAD_H).p) mask_gradient(ins, v, at, step, live);
#pragma unroll
    for (int j = 0; j < GRAD_QUADS; j++) {
        sum.x += v[j].x, sum.y += v[j].y, sum.z += v[j].z, sum.w += v[j].w;
        most = fmaxf(most, largest_of(v[j]));
    }
    if (s.row < THREADS) st4(work() + s.row * p.cols + s.col, sum);
    const float f = MATH == DEV_BF16 ? 1.0f : factor_of(block_most(most));
#pragma unroll
    for (int j = 0; j < GRAD_QUADS; j++) {
        const int r = s.row + j * s.rows;
        if (r < to_row)
            put_panel<MATH>(p.g, r, s.col,
                            make_float4(f * v[j].x, f * v[j].y, f * v[j].z, f * v[j].w));
    }
    return f;
}

/* dx (+ what is there) (+ g, of a layer that adds its input) */
template <int MATH, int MT>
FN void x_tile16(const dev_instr &ins, const Piece &p, int job, float factor) {
    const int across = up32(p.KP) / 32, m = quotient(job, across);
    float *to = view_out(ins, LINEAR_GX).p + (int64_t)p.r0 * p.KP;
    Tile16<MT> tile(m * 16 * MT, (job - m * across) * 32);
    if (ins.i[LINEAR_SKIP] && p.n0 == 0)
        tile.add_from(view_in(ins, LINEAR_GRAD_G).p + (int64_t)p.r0 * p.KP, p.KP, p.here, p.KP,
                      factor);
    if (p.n0 > 0 || adds(frame(), ins, LINEAR_GX)) tile.add_from(to, p.KP, p.here, p.KP, factor);
    tile.template multiply<MATH, false, false>(p.g, p.w, p.cols);
    tile.store(to, p.KP, p.here, p.KP, 1.0f / factor);
}

template <int MATH, int MT>
FN void w_tile16(const dev_instr &ins, const Piece &p, int job, float factor) {
    const int across = up32(p.cols) / 32, m = quotient(job, across);
    const View w = view_out(ins, LINEAR_GW);
    Tile16<MT> tile(m * 16 * MT, (job - m * across) * 32);
    if (p.r0 > 0 || adds(frame(), ins, LINEAR_GW))
        tile.add_from(w.p + p.n0, w.ld, w.rows, p.cols, factor);
    tile.template multiply<MATH, true, true>(p.x, p.g, up16(p.here));
    tile.store(w.p + p.n0, w.ld, w.rows, p.cols, 1.0f / factor);
}

/* db by one warp: strips in order */
FN void bias16(const dev_instr &ins, const Piece &p) {
    const View gb = view_out(ins, LINEAR_GB);
    const bool add = p.r0 > 0 || adds(frame(), ins, LINEAR_GB);
    const int strips = quotient(THREADS, p.cols / 4);
#pragma unroll 1
    for (int c = threadIdx.x % 32; c < p.cols && p.n0 + c < gb.cols; c += 32) {
        float sum = add ? gb.p[p.n0 + c] : 0.0f;
#pragma unroll 8
        for (int k = 0; k < strips; k++) sum += work()[k * p.cols + c];
        gb.p[p.n0 + c] = sum;
    }
}

/* dx, dW and db of a piece: jobs that warps take by turns. */
template <int MATH> FN void reverse_jobs16(const dev_instr &ins, const Piece &p, float factor) {
    const int K = view_in(ins, LINEAR_GRAD_W).rows;
    const int xh = tile_height(p.here, p.KP), wh = tile_height(K, p.cols);
    const int xs = view_out(ins, LINEAR_GX).p ? tiles_of(p.here, p.KP, xh) : 0;
    const int ws = view_out(ins, LINEAR_GW).p ? tiles_of(K, p.cols, wh) : 0;
#pragma unroll 1
    for (int job = threadIdx.x / 32; job < xs + ws; job += WARPS) {
        if (job < xs)
            xh == 2 ? x_tile16<MATH, 2>(ins, p, job, factor)
                    : x_tile16<MATH, 1>(ins, p, job, factor);
        else
            wh == 2 ? w_tile16<MATH, 2>(ins, p, job - xs, factor)
                    : w_tile16<MATH, 1>(ins, p, job - xs, factor);
    }
    if (view_out(ins, LINEAR_GB).p && threadIdx.x / 32 == (xs + ws) % WARPS) bias16(ins, p);
}

template <int MATH> static __device__ __noinline__ void linear_reverse16(const dev_instr &ins) {
    const int rows = view_in(ins, LINEAR_GRAD_X).all_rows(frame().S);
    const int NP = view_in(ins, LINEAR_GRAD_W).ld;
    const bool to_x = view_out(ins, LINEAR_GX).p, to_w = view_out(ins, LINEAR_GW).p;
    Piece p;
    p.KP = view_in(ins, LINEAR_GRAD_X).ld;
    const Room z = reverse_room(p.KP, NP, rows, to_x, to_w);
    p.g = {shared_at(work()) + GRAD_PANELS, panel_pitch(z.cols)};
    p.w = {p.g.at + z.rows * p.g.pitch, panel_pitch(z.cols)};
    p.x = {p.w.at + (to_x ? up32(p.KP) * p.w.pitch : 0), panel_pitch(p.KP)};
#pragma unroll 1
    for (p.n0 = 0; p.n0 < NP; p.n0 += z.cols) {
        p.cols = min(z.cols, NP - p.n0);
        if (p.n0 > 0) __syncthreads();
#pragma unroll 1
        for (p.r0 = 0; p.r0 == 0 || p.r0 < rows; p.r0 += z.rows) {
            p.here = min(z.rows, rows - p.r0);
            p.has_x = p.n0 > 0 && rows <= z.rows;
            if (p.r0 > 0) __syncthreads();
            const float factor = fetch_piece<MATH>(ins, p);
            __syncthreads();
            reverse_jobs16<MATH>(ins, p, factor);
        }
    }
}

/* Weights of which shared memory holds 32 columns beside 32 rows of x. */
FN bool fits16(const View &w) {
    return w.rows <= 512 && w.ld >= 16;
}

#endif
