/* linear_grad.cuh: the reverse pass of the dense layer, in the ways of linear.cuh. g (R, N) is the
 * gradient of y, G what the ReLU lets through of it:
 *
 *   dx (R, K) += G w^T,   dw (K, N) += x^T G,   db (1, N) += sum of G,   dres (R, N) += g
 *
 * Its shared memory stands before GRAD_ROWS. */
#ifdef CUDA_OP
CUDA_OP(TEAM, linear_grad, team_linear(ins, t))
#elif !defined(MNP_CUDA_OPS_LINEAR_GRAD_CUH)
#define MNP_CUDA_OPS_LINEAR_GRAD_CUH

#include "backend/cuda/ops/linear.cuh"

/* ---- reverse, resident ----------------------------------------------------------------------- */

/* Shared memory of a reverse pass, in words from work(): sums for db, the ticket, masked g
 * (GRAD_ROWS, N), W (K, N) where dx is wanted, x (GRAD_ROWS, K) where dW is. */
enum { GRAD_ROWS = TARGET_SHARED < 163 * 1024 ? 48 : 128 };
enum { TICKET = 2048, SMEM_G = TICKET + 4 };
template <class S> FN int buf_w(const S &s) {
    return SMEM_G + GRAD_ROWS * (s.NP + 4);
}
template <class S> FN int spare_x(const S &s, bool to_x) {
    return buf_w(s) + (to_x ? up32(s.K) * (s.NP + 4) : 0);
}
template <class S> FN int buf_end(const S &s, bool to_x, bool to_w) {
    return spare_x(s, to_x) + (to_w ? GRAD_ROWS * (s.KP + 4) : 0) + SLACK_WORDS;
}

/* A chunk of rows: [r0, r0 + here). As in the forward pass operands are looked up where they are
 * needed. */
struct Chunk {
    int r0, here;
};

/* g of the chunk to shared memory, masked; its copy to the residual's gradient on the way. The
 * thread's sum of what it saw goes to work() (strips of rows, columns). */
template <class S> FN void fetch_masked(const dev_instr &ins, const S &s, const Chunk &k) {
    const Strip strip = strip_of<S>(s.NP / 4);
    const int zero_to = up16(k.here), ld = s.NP;
    if (strip.row >= ROWS_AT_ONCE) return;
    const int64_t at = (int64_t)(k.r0 + strip.row) * ld + strip.col;
    const float *g = view_in(ins, LINEAR_GRAD_G).p + at, *h = view_in(ins, LINEAR_GRAD_H).p;
    const bool all = !h; /* nothing is masked */
    h += at;
    float4 sum = make_float4(0, 0, 0, 0);
    constexpr int AT_ONCE = S::flight;
#pragma unroll 1
    for (int r1 = 0; r1 + strip.row < zero_to; r1 += AT_ONCE * strip.rows) {
        float4 v[AT_ONCE], m[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const int r = r1 + j * strip.rows;
            v[j] = global_quad(g + r * ld, r + strip.row < k.here);
            m[j] = global_quad(h + r * ld, r + strip.row < k.here && !all);
        }
        float *sg = work() + SMEM_G + (r1 + strip.row) * (ld + 4) + strip.col;
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const int r = r1 + j * strip.rows;
            v[j].x = m[j].x > 0 || all ? v[j].x : 0, v[j].y = m[j].y > 0 || all ? v[j].y : 0;
            v[j].z = m[j].z > 0 || all ? v[j].z : 0, v[j].w = m[j].w > 0 || all ? v[j].w : 0;
            if (r + strip.row < zero_to) st4(sg + j * strip.rows * (ld + 4), v[j]);
            sum.x += v[j].x, sum.y += v[j].y, sum.z += v[j].z, sum.w += v[j].w;
        }
    }
    st4(work() + strip.row * ld + strip.col, sum);
    float *res = view_out(ins, LINEAR_GRES).p;
    if (!res) return;
    const bool add = adds(frame(), ins, LINEAR_GRES);
#pragma unroll 1
    for (int r = strip.row; r < k.here; r += strip.rows) {
        float *to = res + at + (r - strip.row) * ld;
        const float4 u = global_quad(to, add), v = global_quad(g + (r - strip.row) * ld, true);
        global_quad(to, make_float4(u.x + v.x, u.y + v.y, u.z + v.z, u.w + v.w), true);
    }
}

/* db by one warp: strips in order */
template <class S> FN void bias_grad(const dev_instr &ins, const S &s, bool more) {
    const View gb = view_out(ins, LINEAR_GB);
    const bool add = more || adds(frame(), ins, LINEAR_GB);
    const int strips = S::fixed ? THREADS / (s.NP / 4) : quotient(THREADS, s.NP / 4);
#pragma unroll 1
    for (int c = threadIdx.x % 32; c < gb.cols; c += 32) {
        float sum = add ? gb.p[c] : 0.0f;
#pragma unroll 8
        for (int k = 0; k < strips; k++) sum += work()[k * s.NP + c];
        gb.p[c] = sum;
    }
}

template <int MATH, class S, int MT>
FN void x_tile(const dev_instr &ins, const S &s, const Chunk &c, int job) {
    const int tiles_n = up32(s.KP) / 32;
    const int m = S::fixed ? job / tiles_n : quotient(job, tiles_n), n = job - m * tiles_n;
    const Operands at = {work() + SMEM_G, work() + buf_w(s), s.NP + 4, s.NP + 4};
    float *to = view_out(ins, LINEAR_GX).p + (int64_t)c.r0 * s.KP;
    Tile<TO_X, MT> tile(at, m * 16 * MT, n * 32); /* the sum starts from what it is added to */
    if (ins.i[LINEAR_SKIP])
        tile.add_from(view_in(ins, LINEAR_GRAD_G).p + (int64_t)c.r0 * s.NP, s.KP, c.here);
    if (adds(frame(), ins, LINEAR_GX)) tile.add_from(to, s.KP, c.here);
    tile.template multiply<MATH>(0, s.NP);
    tile.store(to, s.KP, c.here);
}

template <int MATH, class S, int MT>
FN void w_tile(const dev_instr &ins, const S &s, const Chunk &c, int job) {
    const int tiles_n = up32(s.NP) / 32;
    const int m = S::fixed ? job / tiles_n : quotient(job, tiles_n), n = job - m * tiles_n;
    const Operands at = {work() + spare_x(s, view_out(ins, LINEAR_GX).p), work() + SMEM_G, s.KP + 4,
                         s.NP + 4};
    float *to = view_out(ins, LINEAR_GW).p;
    Tile<TO_W, MT> tile(at, m * 16 * MT, n * 32);
    if (c.r0 > 0 || adds(frame(), ins, LINEAR_GW)) tile.add_from(to, s.NP, s.K);
    tile.template multiply<MATH>(0, up16(c.here));
    tile.store(to, s.NP, s.K);
}

/* How many tiles of 16 mt rows a product makes; small products take smaller tiles. */
struct GradTiles {
    int mt, count;
    MEMBER GradTiles(bool wanted, int rows, int ld) {
        mt = up32(rows) * up32(ld) >= 8 * 32 * 32 ? 2 : 1;
        count = wanted ? (rows + 16 * mt - 1) / (16 * mt) * (up32(ld) / 32) : 0;
    }
};

/* dx, dW and db of a chunk of rows are jobs that warps take one after the other, as they get done;
 * who takes which changes nothing in the numbers. */
template <int MATH, class S>
FN void reverse_jobs(const dev_instr &ins, const S &s, const Chunk &c) {
    const GradTiles tx(view_out(ins, LINEAR_GX).p, c.here, s.KP);
    const GradTiles tw(view_out(ins, LINEAR_GW).p, s.K, s.NP);
    const int both = tx.count + tw.count, jobs = both + (view_out(ins, LINEAR_GB).p ? 1 : 0);
    int *ticket = (int *)(work() + TICKET);
    int job = threadIdx.x / 32;
#pragma unroll 1
    while (job < jobs) {
        if (job < tx.count) {
            if (tx.mt == 2)
                x_tile<MATH, S, 2>(ins, s, c, job);
            else
                x_tile<MATH, S, 1>(ins, s, c, job);
        } else if (job < both) {
            if (tw.mt == 2)
                w_tile<MATH, S, 2>(ins, s, c, job - tx.count);
            else
                w_tile<MATH, S, 1>(ins, s, c, job - tx.count);
        } else {
            bias_grad(ins, s, c.r0 > 0);
        }
        if (threadIdx.x % 32 == 0) job = atomicAdd(ticket, 1);
        job = __shfl_sync(~0u, job, 0);
    }
}

template <int MATH, class S>
FN void reverse_chunk(const dev_instr &ins, const S &s, const Chunk &c) {
    const bool to_x = view_out(ins, LINEAR_GX).p;
    float *base = work();
    if (to_x && c.r0 == 0)
        fetch_matrix<S, true>(strip_of<S>(s.NP / 4), base + buf_w(s), s.NP + 4,
                              view_in(ins, LINEAR_GRAD_W).p, s.NP, s.K, s.NP, up32(s.K));
    if (view_out(ins, LINEAR_GW).p)
        fetch_matrix<S>(strip_of<S>(s.KP / 4), base + spare_x(s, to_x), s.KP + 4,
                        view_in(ins, LINEAR_GRAD_X).p + (int64_t)c.r0 * s.KP, s.KP, c.here, s.KP,
                        S::fixed ? GRAD_ROWS : up16(c.here));
    copy_commit();
    fetch_masked(ins, s, c);
    if (threadIdx.x == 0) *(int *)(base + TICKET) = WARPS;
    copy_wait<0>();
    __syncthreads();
    reverse_jobs<MATH, S>(ins, s, c);
}

template <int MATH, class S>
static __device__ __noinline__ void linear_reverse(const dev_instr &ins) {
    const S s(view_in(ins, LINEAR_GRAD_W));
    const int rows = view_in(ins, LINEAR_GRAD_X).all_rows(frame().S);
    if constexpr (S::fixed && (int)GRAD_ROWS == (int)ROWS_AT_ONCE) {
        reverse_chunk<MATH, S>(ins, s, {0, rows});
    } else {
#pragma unroll 1
        for (int r0 = 0; r0 == 0 || r0 < rows; r0 += GRAD_ROWS) {
            if (r0 > 0) __syncthreads();
            reverse_chunk<MATH, S>(ins, s, {r0, min((int)GRAD_ROWS, rows - r0)});
        }
    }
}

template <int MATH> FN void reverse_by_shape(const dev_instr &ins, const View &w, int rows) {
    const int shape = rows <= ROWS_AT_ONCE ? w.rows << 8 | w.ld : 0;
#define SHAPE(K, N)                                                                                \
    if constexpr (MATH == DEV_FP32 || (MATH == DEV_TF32 && (int)GRAD_ROWS == (int)ROWS_AT_ONCE))   \
        if (shape == (K << 8 | N)) return linear_reverse<MATH, Fixed<K, N>>(ins);
    LINEAR_SHAPES(SHAPE)
#undef SHAPE
    if constexpr (MATH == DEV_FP32)
        linear_reverse<MATH, Sized>(ins);
    else
        linear_reverse16<MATH>(ins);
}

/* ---- reverse, large -------------------------------------------------------------------------- */

/* Masks g in place (nobody reads it later), gives it to the residual, sums it into the bias. */
FN void large_prepare(LinearGrad &d) {
    const int quads = d.g.ld / 4, strips = max(1, THREADS / quads);
    float *buf = work(); /* (strips, ld) */
    for (int q = threadIdx.x; q < quads * strips; q += THREADS) {
        const int strip = q / quads, c = q % quads * 4;
        float4 sum = make_float4(0, 0, 0, 0);
        for (int r = strip; r < d.rows; r += strips) {
            const int64_t at = (int64_t)r * d.g.ld + c;
            float4 v = ld4(d.g.p + at);
            for (int k = 0; k < 2; k++) { /* the residual's gradient, or dx itself */
                float *to = k ? (d.skip ? d.gx.p : nullptr) : d.gres.p;
                if (!to) continue;
                if (k && d.gx.ld == 1) {
                    if (c == 0) put(to + r, v.x, d.add_x);
                    continue;
                }
                const float4 u = (k ? d.add_x : d.add_res) ? ld4(to + at) : make_float4(0, 0, 0, 0);
                st4(to + at, make_float4(u.x + v.x, u.y + v.y, u.z + v.z, u.w + v.w));
            }
            if (d.h.p) {
                const float4 m = ld4(d.h.p + at);
                v.x = m.x > 0 ? v.x : 0, v.y = m.y > 0 ? v.y : 0;
                v.z = m.z > 0 ? v.z : 0, v.w = m.w > 0 ? v.w : 0;
                st4(d.g.p + at, v);
            }
            sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        }
        st4(buf + strip * d.g.ld + c, sum);
    }
    __syncthreads();
    for (int c = threadIdx.x; d.gb.p && c < d.g.cols; c += THREADS) {
        float sum = 0;
        for (int s = 0; s < strips; s++) sum += buf[s * d.g.ld + c];
        put(d.gb.p + c, sum, d.add_b);
    }
    __syncthreads();
    if (d.skip) d.add_x = true, d.skip = false;
}

/* x of numbers per row: one column, one row of W. */
FN void narrow_reverse(const LinearGrad &d) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int r = warp; d.gx.p && r < d.rows; r += WARPS) {
        float s = 0;
        for (int c = lane; c < d.g.cols; c += 32) s += d.g.p[(int64_t)r * d.g.ld + c] * d.w.p[c];
        for (int x = 16; x > 0; x >>= 1) s += __shfl_xor_sync(~0u, s, x);
        if (lane == 0) put(d.gx.p + r, s, d.add_x);
    }
    for (int c = warp; d.gw.p && c < d.gw.cols; c += WARPS) {
        float s = 0;
        for (int r = lane; r < d.rows; r += 32) s += d.x.p[r] * d.g.p[(int64_t)r * d.g.ld + c];
        for (int x = 16; x > 0; x >>= 1) s += __shfl_xor_sync(~0u, s, x);
        if (lane == 0) put(d.gw.p + c, s, d.add_w);
    }
}

static __device__ __noinline__ void linear_reverse_large(const dev_instr &ins) {
    LinearGrad d = linear_grad_of(ins);
    const int math = math_of(ins);
    large_prepare(d);
    if (d.x.ld == 1) {
        narrow_reverse(d);
        return;
    }
    if (d.gx.p) {
        Product p = {d.g.p, d.w.p, d.g.ld, d.w.ld, d.rows, d.w.rows, d.w.cols};
        AddEpilogue e = {d.gx.p, nullptr, d.gx.ld, d.g.ld, d.add_x};
        gemm<false, true>(math, p, e);
    }
    if (d.gw.p) {
        Product p = {d.x.p, d.g.p, d.x.ld, d.g.ld, d.w.rows, d.w.cols, d.rows};
        AddEpilogue e = {d.gw.p, nullptr, d.gw.ld, 0, d.add_w};
        gemm<true, false>(math, p, e);
    }
}

OP_FN void op_linear_grad(const dev_instr &ins) {
    const View x = view_in(ins, LINEAR_GRAD_X), w = view_in(ins, LINEAR_GRAD_W);
    const int rows = x.all_rows(frame().S), math = math_of(ins);
    const bool to_x = view_out(ins, LINEAR_GX).p, to_w = view_out(ins, LINEAR_GW).p;
    if (x.ld > 1 && rows <= FEW_ROWS && w.ld <= FEW_WIDTH && w.rows <= FEW_WIDTH)
        block_linear(ins);
    else if (narrow_grad_fits(ins))
        narrow_grad(ins);
    else if (math != DEV_FP32 && x.ld > 1 && fits16(w))
        math == DEV_TF32 ? reverse_by_shape<DEV_TF32>(ins, w, rows)
                         : reverse_by_shape<DEV_BF16>(ins, w, rows);
    else if (math != DEV_FP32 || x.ld == 1 || w.cols > 192 || w.rows > 192 ||
             buf_end(Sized(w), to_x, to_w) > WORK_WORDS)
        linear_reverse_large(ins);
    else
        reverse_by_shape<DEV_FP32>(ins, w, rows);
}

#endif
