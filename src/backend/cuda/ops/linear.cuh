/* linear.cuh: the dense layer (op/linear.c):
 *
 *   x (R, K), w (K, N), b (1, N), res (R, N) or none:   h = act(x w + b),  y (R, N) = h + res
 *
 * R are the rows of all samples. Which way, by size and precision (op_linear()):
 *
 *   at most FEW_ROWS rows (heads, seeds, latents)   sums; any number of teams     linear_few.cuh
 *   at most four columns                            sums by warps                 linear_narrow.cuh
 *   fp32, operands fit in shared memory             one fetch, products by warps  here
 *   tf32, shapes of preset paper (LINEAR_SHAPES)    the same                      here
 *   tf32 and bf16, up to 512 inputs                 16-bit panels                 linear16.cuh
 *   larger                                          a ring of four stages         device/gemm.cuh
 *
 * Shared memory of what is here: x (ROWS_AT_ONCE, K + 4), then w (K, N + 8), both rounded up to 16,
 * and SLACK_WORDS that the last reads may touch. */
#ifdef CUDA_OP
CUDA_OP(TEAM, linear, team_linear(ins, t))
#elif !defined(MNP_CUDA_OPS_LINEAR_CUH)
#define MNP_CUDA_OPS_LINEAR_CUH

#include "backend/cuda/device/gemm.cuh"
#include "backend/cuda/device/resident.cuh"
#include "backend/cuda/ops/linear16.cuh"
#include "backend/cuda/ops/linear_few.cuh"
#include "backend/cuda/ops/linear_narrow.cuh"

/* ---- resident -------------------------------------------------------------------------------- */

/* The rows [r0, r0 + here) of a layer; x and W lie at `at`. Operands are looked up where they are
 * needed and not kept in registers: the interpreter's own would have to go to memory. */
struct ForwardChunk {
    Operands at;
    int r0, here;
};

/* h = act(c + b), y = h + residual */
template <class S, int MT>
FN void finish_forward(const dev_instr &ins, const S &s, const ForwardChunk &p,
                       Tile<FORWARD, MT> &tile) {
    const int64_t first = (int64_t)p.r0 * s.NP;
    if (ins.i[LINEAR_ACT] == 1)
#pragma unroll
        for (int k = 0; k < 16 * MT; k++) {
            float &v = tile.c[k / 16][k / 4 % 4][k % 4];
            v = relu_of(v);
        }
    const float *res = view_in(ins, LINEAR_RES).p;
    if (res) {
        float *h = view_out(ins, LINEAR_H).p;
        if (h) tile.store(h + first, s.NP, p.here);
        if (res == view_in(ins, LINEAR_X).p) { /* it is here already */
            const uint32_t at = shared_at(p.at.a + tile.row(0) * p.at.pitch_a);
#pragma unroll
            for (int q = 0; q < 4 * MT; q++)
                tile.add(q, load_quad(at + (q / 2 * 8 * p.at.pitch_a + tile.col(q % 2)) * 4));
        } else {
            tile.add_from(res + first, s.NP, p.here);
        }
    }
    tile.store(view_out(ins, LINEAR_Y).p + first, s.NP, p.here);
}

/* All tiles of a chunk, warp after warp. A warp's first tile starts when the first part of k is
 * there. */
template <int MATH, class S, int MT>
FN void forward_tiles(const dev_instr &ins, const S &s, const ForwardChunk &p, int half) {
    const int warp = threadIdx.x / 32, tiles_n = up32(s.NP) / 32;
    const int tiles = (p.here + 16 * MT - 1) / (16 * MT) * tiles_n;
#pragma unroll 1
    for (int k = warp; k < max(tiles, WARPS); k += WARPS) {
        const bool mine = k < tiles;
        const int m = S::fixed ? k / tiles_n : quotient(k, tiles_n), n = k - m * tiles_n;
        Tile<FORWARD, MT> tile(p.at, m * 16 * MT, n * 32);
        const float *bias = view_in(ins, LINEAR_B).p;
#pragma unroll
        for (int f = 0; f < 2; f++) { /* the sum starts from the bias */
            const float4 b =
                global_quad(bias + tile.col(f), bias && (s.NP % 32 == 0 || tile.col(f) < s.NP));
#pragma unroll
            for (int r = 0; r < 2 * MT; r++) tile.add(2 * r + f, b);
        }
#pragma unroll 1
        for (int part = 0; part < 2; part++) {
            if (k < WARPS) {
                if (part == 0)
                    copy_wait<1>();
                else
                    copy_wait<0>();
                __syncthreads();
            }
            if (mine) tile.template multiply<MATH>(part ? half : 0, part ? s.KP : half);
        }
        if (mine) finish_forward<S, MT>(ins, s, p, tile);
    }
}

template <int MATH, class S>
FN void forward_chunk(const dev_instr &ins, const S &s, int r0, int here) {
    const int half = up16(s.KP / 2), px = s.KP + 4, pw = s.NP + 8;
    float *sx = work(), *sw = sx + ROWS_AT_ONCE * px;
    const float *x = view_in(ins, LINEAR_X).p + (int64_t)r0 * s.KP;
    const float *w = view_in(ins, LINEAR_W).p;
    const Strip strip_x = strip_of<S>(half / 4), strip_w = strip_of<S>(s.NP / 4);
#pragma unroll
    for (int k = 0; k < 2; k++) { /* two parts, the second may be empty */
        const int k0 = k * half, part = min(half, s.KP - k0);
        fetch_matrix<S>(strip_x, sx + k0, px, x + k0, s.KP, here, part,
                        S::fixed ? ROWS_AT_ONCE : here);
        if (r0 == 0)
            fetch_matrix<S>(strip_w, sw + k0 * pw, pw, w + k0 * s.NP, s.NP, min(part, s.K - k0),
                            s.NP, part);
        copy_commit();
    }
    const ForwardChunk p = {{sx, sw, px, pw}, r0, here};
    if (S::wide && up32(here) * up32(s.NP) >= WARPS * 32 * 32)
        forward_tiles<MATH, S, S::wide ? 2 : 1>(ins, s, p, half);
    else
        forward_tiles<MATH, S, 1>(ins, s, p, half);
}

template <int MATH, class S>
static __device__ __noinline__ void linear_resident(const dev_instr &ins) {
    const S s(view_in(ins, LINEAR_W));
    const int rows = view_in(ins, LINEAR_X).all_rows(frame().S);
    if constexpr (S::fixed) {
        forward_chunk<MATH, S>(ins, s, 0, rows);
    } else {
#pragma unroll 1
        for (int r0 = 0; r0 < rows; r0 += ROWS_AT_ONCE) {
            if (r0 > 0) __syncthreads();
            forward_chunk<MATH, S>(ins, s, r0, min(ROWS_AT_ONCE, rows - r0));
        }
    }
}

/* K: a multiple of 16 */
FN constexpr bool shape_fits(int K, int ld) {
    return ROWS_AT_ONCE * (K + 4) + K * (ld + 8) + SLACK_WORDS <= WORK_WORDS;
}
FN bool forward_fits(const View &w) {
    return w.cols <= 192 && w.rows <= 512 && shape_fits(up16(w.rows), w.ld);
}

/* Shapes (rows, ld) of weights that have code of their own for up to 128 points, in fp32 and tf32:
 * those of preset paper. */
#define LINEAR_SHAPES(SHAPE)                                                                       \
    SHAPE(64, 64) SHAPE(64, 192) SHAPE(64, 128) SHAPE(128, 128) SHAPE(160, 128) SHAPE(128, 32)

template <int MATH> FN void linear_by_shape(const dev_instr &ins, const View &w, int rows) {
    const int shape = rows <= ROWS_AT_ONCE ? w.rows << 8 | w.ld : 0;
#define SHAPE(K, N)                                                                                \
    if constexpr (MATH != DEV_BF16 && shape_fits(K, N))                                            \
        if (shape == (K << 8 | N)) return linear_resident<MATH, Fixed<K, N>>(ins);
    LINEAR_SHAPES(SHAPE)
#undef SHAPE
    if constexpr (MATH == DEV_FP32)
        linear_resident<MATH, Sized>(ins);
    else
        linear16<MATH>(ins);
}

/* ---- large ----------------------------------------------------------------------------------- */

static __device__ __noinline__ void linear_large(const dev_instr &ins) {
    const View x = view_in(ins, LINEAR_X), w = view_in(ins, LINEAR_W);
    const Product p = {x.p, w.p, x.ld, w.ld, x.all_rows(frame().S), w.cols, w.rows};
    gemm<false, false>(math_of(ins), p, forward_epilogue(ins));
}

OP_FN void op_linear(const dev_instr &ins) {
    const View x = view_in(ins, LINEAR_X), w = view_in(ins, LINEAR_W);
    const int rows = x.all_rows(frame().S), math = math_of(ins);
    if ((rows <= FEW_ROWS && w.ld <= FEW_WIDTH) || x.ld == 1)
        block_linear(ins);
    else if (w.cols <= NARROW_COLS)
        narrow_forward(ins);
    else if (math == DEV_FP32 && forward_fits(w))
        linear_by_shape<DEV_FP32>(ins, w, rows);
    else if (math == DEV_FP32 || !fits16(w))
        linear_large(ins);
    else if (math == DEV_TF32)
        linear_by_shape<DEV_TF32>(ins, w, rows);
    else
        linear_by_shape<DEV_BF16>(ins, w, rows);
}

#endif
