/* forward16.cuh: the conditioner of a transition and its spline (FUSED_FLOW) in tf32: weights
 * come as fp16, x too where it is saved so (FLOW_XH), and layers are handed on as fp16 in col8
 * layout (paper/col8.cuh). All is computed turned: h^T = relu(w^T x^T + b). A group of four warps
 * has 64 of a layer's 128 numbers for 64 points. h0, h1 and their signs are saved where FLOW_SAVED
 * is there. Everything has a place of its own in shared memory, so all copies are asked for at
 * once, and threads wait for each other only when a layer has been written. Columns of points that
 * do not exist hold whatever was there. */
#ifndef MNP_CUDA_PAPER_FLOW_FORWARD16_CUH
#define MNP_CUDA_PAPER_FLOW_FORWARD16_CUH

#include "backend/cuda/device/spline_lanes.cuh"
#include "backend/cuda/paper/col8.cuh"

namespace flow_half {

static_assert(FUSED_FEATURES == 160 && FUSED_FLOW_HIDDEN == 128 && FUSED_BINS == 10,
              "numbers in this part");

enum {
    IN = FUSED_FEATURES,
    WIDTH = FUSED_FLOW_HIDDEN,
    POINTS = FUSED_POINTS,
    BLOCK = 32,
    BLOCKS = IN / BLOCK
};
enum { BLOCK_X = BLOCK / 8 * COL8, BLOCK_W = BLOCK * WIDTH / 2 }; /* words of x and wx */
enum {
    SMEM_W2 = 0,
    SMEM_W1 = SMEM_W2 + WIDTH * POINT_RAW / 2,
    SMEM_WX = SMEM_W1 + WIDTH * WIDTH / 2,
    SMEM_X = SMEM_WX + IN * WIDTH / 2,
    SMEM_H0 = SMEM_X + IN / 8 * COL8,
    SMEM_H1 = SMEM_H0 + WIDTH / 8 * COL8,
    SMEM_RAW = SMEM_H1 + WIDTH / 8 * COL8,
    SMEM_END = SMEM_RAW + POINTS * POINT_PITCH
};
static_assert((int)SMEM_END <= (int)WORK_WORDS, "shared memory of the conditioner");

/* What comes by the copy engine: blocks of wx and x; w1; w2. */
enum { HERE_BLOCK, HERE_W1 = HERE_BLOCK + BLOCKS, HERE_W2, HERE_ALL };
static_assert((int)HERE_ALL <= (int)ARRIVALS, "arrivals");

/* x as floats, in col8 layout. */
FN void pack_x(int n) {
#pragma unroll 1
    for (int i = threadIdx.x; i < IN / 8 * POINTS; i += THREADS) {
        const int r = i % POINTS, col8 = i / POINTS;
        if (r >= n) continue;
        const float *from = fused_at(FLOW_X) + r * IN + col8 * 8;
        const float4 a = ld4(from), b = ld4(from + 4);
        const uint32_t at = shared_at(work() + SMEM_X + col8 * COL8 + r * 4);
        store_word(at, pack_fp16(a.x, a.y)), store_word(at + 4, pack_fp16(a.z, a.w));
        store_word(at + 8, pack_fp16(b.x, b.y)), store_word(at + 12, pack_fp16(b.z, b.w));
    }
}

/* A warp asks for each piece: those of the weights, an arrival each, then blocks of x. */
FN void ask_all() {
    const int warp = (int)threadIdx.x / 32, block = warp < HERE_ALL ? warp : warp - HERE_ALL;
    const float *x = fused_at(FLOW_XH), *from = x + block * BLOCK_X;
    int buf = SMEM_X + block * BLOCK_X, words = BLOCK_X;
    if (threadIdx.x % 32 || block >= (warp < HERE_ALL ? (int)HERE_ALL : (int)BLOCKS)) return;
    if (warp == HERE_W1) {
        from = fused_at(FLOW_W1), buf = SMEM_W1, words = WIDTH * WIDTH / 2;
    } else if (warp == HERE_W2) {
        from = fused_at(FLOW_W2), buf = SMEM_W2, words = WIDTH * POINT_RAW / 2;
    } else if (warp < BLOCKS) {
        from = fused_at(FLOW_WX) + block * BLOCK_W, buf = SMEM_WX + block * BLOCK_W;
        words = BLOCK_W;
    } else if (!x) {
        return;
    }
    if (warp < HERE_ALL) expect_words(warp, words + (warp < BLOCKS && x ? (int)BLOCK_X : 0));
    bulk_load(shared_at(work() + buf), from, words * 4, arrival_at(block));
}
static_assert((int)HERE_ALL + (int)BLOCKS <= (int)WARPS, "a warp for each piece");

/* A bias for the tile's rows. */
FN float2 bias_of(int which, int row) {
    const float *from = fused_at(which);
    return make_float2(__ldcg(from + row), __ldcg(from + row + 8));
}

using Layer = Fp16Tile<8>;

/* A layer's result: the next one's operand, and its signs. */
FN void finish_layer(const Layer &tile, int buf, float *signs) {
    const uint32_t bits = tile.keep_relu(work() + buf);
    bulk_fence();
    if (signs) signs[threadIdx.x] = __uint_as_float(bits);
}

FN void first_layer(Layer &tile) {
#pragma unroll
    for (int block = 0; block < BLOCKS; block++) {
        wait_rows(HERE_BLOCK + block);
        const Weights<DOWN, 2, WIDTH> w(work() + SMEM_WX, tile.m0, block * BLOCK);
        tile.multiply(w.v, work() + SMEM_X, block * BLOCK);
    }
    group_wait();
}

/* raw (n, 29): 32 points a group, of whose warps two have rows. */
FN void third_layer(const Weights<DOWN, 8, POINT_RAW> &w, float2 bias) {
    Fp16Tile<4> tile(0, (int)threadIdx.x / GROUP * 32, bias);
    tile.multiply(w.v, work() + SMEM_H1, 0);
    group_wait();
    if (tile.row(0) < POINT_RAW) tile.turn(work() + SMEM_RAW, POINT_PITCH, POINTS);
}

/* Four lanes to a point. Points that do not exist are mapped as well and not stored. */
FN void map_points(const Spline &o, const float *buf, int n, float v, float before) {
    const int point = (int)threadIdx.x / 4, lane = threadIdx.x % 4;
    const float *raw = buf + point * POINT_PITCH;
    float *saved = fused_at(FLOW_RAW) + point * POINT_RAW;
#pragma unroll
    for (int i = 0; i < 2; i++)
        global_quad(saved + lane * 4 + i * 16, ld4(raw + lane * 4 + i * 16), point < n);
    Place t;
    LaneBins l;
    locate_lanes(o, v, raw, t, l);
    const bool inside = v >= -o.bound && v <= o.bound;
    const float image = inside ? t.y0 + t.h * spline_share(t) : v;
    const float L = inside ? logf(t.g) : v == v ? 0.0f : v;
    if (point >= n || lane) return;
    fused_at(FLOW_OUT)[point] = image;
    fused_at(FLOW_LOGDET)[point] = L + before;
}

FN void flow(const dev_instr &ins) {
    const int n = frame().n, point = (int)threadIdx.x / 4, group = (int)threadIdx.x / GROUP;
    if (!fused_at(FLOW_XH)) pack_x(n);
    begin_rows();
    ask_all();
    const int m0 = group / 2 * 64, n0 = group % 2 * 64, row = Layer::row_of(m0);
    const float2 b0 = bias_of(FLOW_B0, row), pz = bias_of(FLOW_PZ, row);
    const float2 b1 = bias_of(FLOW_B1, row), b2 = bias_of(FLOW_B2, row % POINT_RAW);
    const float *before = fused_at(FLOW_BEFORE);
    const float v = point < n ? fused_at(FLOW_Y)[point] : 0.0f;
    const float L = before && point < n ? before[point] : 0.0f;
    float *saved = fused_at(FLOW_SAVED), *signs = saved ? saved + SAVED_SIGNS : nullptr;
    const Spline o = spline_of(ins);
    __syncthreads(); /* all has been asked for */
    if (fused_at(FLOW_LEAVES)) send_col8(fused_at(FLOW_LEAVES), work() + SMEM_X, IN / 8);

    {
        Layer tile(m0, n0, make_float2(b0.x + pz.x, b0.y + pz.y));
        first_layer(tile);
        finish_layer(tile, SMEM_H0, signs);
    }
    wait_rows(HERE_W1);
    {
        const Weights<DOWN, 8, WIDTH> w(work() + SMEM_W1, m0, 0);
        Layer tile(m0, n0, b1);
        __syncthreads();
        if (saved) send_col8(saved + SAVED_FH0, work() + SMEM_H0, WIDTH / 8);
        tile.multiply(w.v, work() + SMEM_H0, 0);
        group_wait();
        finish_layer(tile, SMEM_H1, signs ? signs + THREADS : nullptr);
    }
    wait_rows(HERE_W2);
    /* warps without rows of raw multiply those of others */
    const Weights<DOWN, 8, POINT_RAW> w(work() + SMEM_W2, -((int)threadIdx.x / 64 % 2 * 32), 0);
    __syncthreads();
    if (saved) send_col8(saved + SAVED_FH1, work() + SMEM_H1, WIDTH / 8);
    third_layer(w, b2);
    __syncthreads();
    map_points(o, work() + SMEM_RAW, n, v, L);
    if (threadIdx.x == 0) bulk_wait();
}

} // namespace flow_half

#endif
