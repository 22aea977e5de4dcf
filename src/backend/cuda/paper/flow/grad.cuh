/* grad.cuh: the reverse pass of the conditioner and its spline as one instruction
 * (paper/fused.h), in fp32; grad16.cuh has it in tf32. Gradients of the layers' values stay
 * in shared memory, turned as in forward.cuh; only those of weights, of y and of the log
 * determinant are stored. A group of four warps has 64 x 64 numbers of a product
 * (paper/groups.cuh). "By points": with k over points, for a weight's gradient; "by columns": with
 * k over the layer's numbers, for the layer below.
 *
 * Shared memory, in words from work(), by the time it is used:
 *
 *              spline, dh1, dw2       dw1              dh0              dwx
 *        0     raw, its gradient, w2  dh1 by points    dh1 by columns   dh0 by points
 *    16512                                                              x, points 0..79
 *    17568     lo, sums               lo, sums         lo, sums
 *    21632     h1 (n, 128)            h0 (n, 128)      h0
 *    38528     w1 (128, 128)          w1               w1               x, the others; lo
 */
#ifndef MNP_CUDA_PAPER_FLOW_GRAD_CUH
#define MNP_CUDA_PAPER_FLOW_GRAD_CUH

#include "backend/cuda/paper/flow/grad16.cuh"
#include "backend/cuda/paper/groups.cuh"

namespace flow_grad_part {

static_assert(FUSED_FEATURES == 160 && FUSED_FLOW_HIDDEN == 128 && FUSED_BINS == 10,
              "numbers in this part");

enum { IN = FUSED_FEATURES, WIDTH = FUSED_FLOW_HIDDEN, POINTS = FUSED_POINTS };
enum { PITCH_X = IN + 4, PITCH_H = WIDTH + 4, X_LOW = 80 };
enum { QUADS = WIDTH / 4 * (4 * POINTS + 4) }; /* words of dh, either way */
enum {
    SMEM_DH = 0,
    SMEM_RAW = 0,
    SMEM_W2 = SMEM_RAW + POINTS * POINT_PITCH,
    SMEM_DRAW = SMEM_W2 + WIDTH * POINT_PITCH,
    SMEM_DRAW_POINTS = SMEM_DRAW + POINT_RAW / 4 * (4 * POINTS + 4),
    SMEM_DRAW_END = SMEM_DRAW_POINTS + POINTS / 4 * (4 * POINT_RAW + 4),
    SMEM_W1 = WORK_WORDS - WIDTH * PITCH_H,
    SMEM_X = SMEM_DH + QUADS,
    SMEM_X_HIGH = SMEM_W1
};
enum {
    SMEM_LOW = SMEM_DRAW_END,
    SMEM_SUMS = SMEM_LOW + LOW_WORDS,
    SMEM_H = SMEM_W1 - POINTS * PITCH_H,
    SMEM_X_LOW = SMEM_X_HIGH + (POINTS - X_LOW) * PITCH_X /* lo of dwx */
};
static_assert(SMEM_SUMS + 4 * WIDTH <= SMEM_H, "lo and sums lie before h");
static_assert(SMEM_X_LOW + LOW_WORDS <= WORK_WORDS, "lo lie after x");
static_assert(X_LOW % 16 == 0, "products take points by 16");

/* What comes by the copy engine. */
enum { HERE_H1, HERE_W1, HERE_H0, HERE_X };

FN Quads draw() {
    return {work() + SMEM_DRAW, POINTS};
}
FN Quads draw_by_points() {
    return {work() + SMEM_DRAW_POINTS, POINT_RAW};
}
FN Quads dh_buf() {
    return {work() + SMEM_DH, POINTS};
}

/* A layer as it was saved. */
FN void ask_h(int layer, int n) {
    ask_some<POINTS / WARPS>(layer ? HERE_H1 : HERE_H0, 0, n, work() + SMEM_H, PITCH_H,
                             fused_at(layer ? FLOWG_H1 : FLOWG_H0), WIDTH);
    zero_rows(work() + SMEM_H, PITCH_H, WIDTH, n);
}
FN void ask_w1(int from, int to) {
    ask_some<WIDTH / WARPS / 2>(HERE_W1, from, to, work() + SMEM_W1, PITCH_H, fused_at(FLOWG_W1),
                                WIDTH);
}

/* What the spline needs goes first. Groups of copies by threads: raw; w2. */
FN void fetch_first(int n) {
    fetch_rows<POINT_RAW, POINTS>(work() + SMEM_RAW, POINT_PITCH, fused_at(FLOWG_RAW), n);
    copy_commit();
    fetch_rows<POINT_RAW, WIDTH>(work() + SMEM_W2, POINT_PITCH, fused_at(FLOWG_W2));
    copy_commit();
    begin_rows();
    if (threadIdx.x == 0) {
        expect_words(HERE_H1, n * WIDTH);
        expect_words(HERE_W1, WIDTH * WIDTH);
        expect_words(HERE_H0, n * WIDTH);
        expect_words(HERE_X, n * IN);
    }
    ask_h(1, n);
    ask_w1(0, WIDTH / 2);
}

/* In two pieces; see above. */
FN int spare_x(int r) {
    return r < X_LOW ? (int)SMEM_X : SMEM_X_HIGH - X_LOW * PITCH_X;
}
template <int EACH> FN void ask_x(int from, int to) {
    ask_some<EACH>(HERE_X, from, to, work() + spare_x(from), PITCH_X, fused_at(FLOWG_X), IN);
}

/* The gradient of raw both ways. */
FN void spline_grad(const Spline &o, int n, float v, float G, float H) {
    const int point = (int)threadIdx.x / 4;
    const int turned = point / 8 * 8 + point % 2 * 4 + point % 8 / 2; /* for PAIRS */
    flow_grad_half::spline_grad(o, work() + SMEM_RAW, n, v, G, H, [=](int i, float x) {
        *draw().at(point, i) = x;
        *draw_by_points().at(i, turned) = x;
    });
}

/* ---- sums over points ------------------------------------------------------------------------ */

/* db2, two columns a warp. */
FN void raw_bias_grad() {
    const int id = (int)threadIdx.x, lane = id % 32, c = id / 32 * 2;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        const float4 v = ld4(draw_by_points().at(c + j, lane * 4));
        float sum = v.x + v.y + (v.z + v.w);
#pragma unroll
        for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
        if (lane == 0 && c + j < 29) put(fused_at(FLOWG_DB2) + c + j, sum, fused_adds(FLOWG_DB2));
    }
}

using Grad = GroupTile<ALONG, 8>;

/* The tile's share of a bias's gradient; `layer` has two rows of the sums, one for 64 points. */
FN void keep_sums(const Grad &tile, int layer) {
    keep_row_sums(tile, work() + SMEM_SUMS + (layer * 2 + tile.n0 / 64) * WIDTH);
}
FN void bias_grad(int which, int layer, int c) {
    if (c < 0 || c >= WIDTH) return;
    const float *sums = work() + SMEM_SUMS + layer * 2 * WIDTH;
    put(fused_at(which) + c, sums[c] + sums[WIDTH + c], fused_adds(which));
}

/* ---- products -------------------------------------------------------------------------------- */

/* dh1 = draw w2^T where h1 > 0; it stays in registers. */
FN void grad_h1(Grad &dh1) {
    dh1.multiply(true, draw(), work() + SMEM_LOW, 0, POINT_RAW, [](int k) {
        if (k) return;
        ask_w1(WIDTH / 2, WIDTH);
        raw_bias_grad();
    });
    dh1.mask(work() + SMEM_H, PITCH_H);
    keep_sums(dh1, 1);
}

/* dw2 = h1^T draw by two groups. After the barrier what was read for dh1 is free for it. */
FN void grad_w2(const Grad &dh1, int n) {
    const int group = (int)threadIdx.x / GROUP;
    GroupTile<PAIRS, 4> dw2(work() + SMEM_H, PITCH_H, draw_by_points(), group % 2 * 64, 0);
    dw2.multiply(group < 2, draw_by_points(), work() + SMEM_LOW, 0, up16(n));
    if (group < 2) dw2.store(fused_at(FLOWG_DW2), POINT_RAW, fused_adds(FLOWG_DW2));
    __syncthreads();
    ask_h(0, n);
    dh1.keep_across(dh_buf());
    bulk_fence();
    __syncthreads();
}

/* dw1 = h0^T dh1; then dh1 lies by columns. */
FN void grad_w1(const Grad &dh1, int n) {
    GroupTile<PAIRS, 8> dw1(work() + SMEM_H, PITCH_H, dh_buf(), dh1.m0, dh1.n0);
    wait_rows(HERE_H0);
    dw1.multiply(true, dh_buf(), work() + SMEM_LOW, 0, up16(n));
    __syncthreads(); /* dh1 by points has been read */
    dh1.keep(dh_buf());
    bulk_fence();
    __syncthreads();
    dw1.store(fused_at(FLOWG_DW1), WIDTH, fused_adds(FLOWG_DW1));
}

/* dh0 = dh1 w1^T where h0 > 0, by points. The end of x comes over w1. */
FN void grad_h0(int m0, int n0, int n) {
    Grad dh0(work() + SMEM_W1, PITCH_H, dh_buf(), m0, n0);
    wait_rows(HERE_W1);
    dh0.multiply(true, dh_buf(), work() + SMEM_LOW, 0, WIDTH);
    dh0.mask(work() + SMEM_H, PITCH_H);
    keep_sums(dh0, 0);
    bulk_fence();    /* of what threads wrote where x comes */
    __syncthreads(); /* dh1 by columns, w1 and h0 have been read */
    ask_x<(POINTS - X_LOW) / WARPS>(X_LOW, n);
    dh0.keep_across(dh_buf());
    bulk_fence();
    __syncthreads();
}

/* dwx = x^T dh0, over both pieces of x: rows 0..127; then rows 128..159 by two groups. */
FN void grad_wx(int n) {
    const int group = (int)threadIdx.x / GROUP, points = up16(n);
#pragma unroll 1
    for (int rest = 0; rest < 2; rest++) {
        GroupTile<PAIRS, 8> tile(work() + SMEM_X, PITCH_X, dh_buf(),
                                 rest ? (int)WIDTH : group / 2 * 64, group % 2 * 64);
        const bool exists = tile.row(0) < IN, in = !rest || group < 2;
        if (!exists) tile.a = shared_at(work() + SMEM_X);
#pragma unroll 1
        for (int k = 0; k < points; k += X_LOW) {
            tile.multiply(in, dh_buf(), work() + SMEM_X_LOW, k, min(points, k + X_LOW));
            tile.a += (SMEM_X_HIGH - SMEM_X - X_LOW * PITCH_X) * 4;
        }
        if (exists && in) tile.store(fused_at(FLOWG_DWX), WIDTH, fused_adds(FLOWG_DWX));
    }
}

FN void flow_grad(const dev_instr &ins) {
    const int n = frame().n, id = (int)threadIdx.x, point = id / 4, group = id / GROUP;
    fetch_first(n);
    {
        const float v = point < n ? fused_at(FLOWG_Y)[point] : 0.0f;
        const float G = point < n ? fused_at(FLOWG_GOUT)[point] : 0.0f;
        const float H = point < n ? fused_at(FLOWG_GLOGDET)[point] : 0.0f;
        const Spline o = spline_of(ins);
        copy_wait<1>();
        __syncthreads();
        spline_grad(o, n, v, G, H);
    }
    copy_wait<0>();
    bulk_fence();
    __syncthreads();
    wait_rows(HERE_H1);
    {
        Grad dh1(work() + SMEM_W2, POINT_PITCH, draw(), group / 2 * 64, group % 2 * 64);
        grad_h1(dh1);
        grad_w2(dh1, n);
        bias_grad(FLOWG_DB1, 1, id);
        grad_w1(dh1, n);
        grad_h0(dh1.m0, dh1.n0, n);
    }
    bias_grad(FLOWG_DB0, 0, id);
    bias_grad(FLOWG_GPZ, 0, id - WIDTH);
    __syncthreads(); /* over the sums */
    ask_x<X_LOW / WARPS>(0, min(n, X_LOW));
    zero_rows(work() + spare_x(n), PITCH_X, IN, n);
    __syncthreads();
    wait_rows(HERE_X);
    grad_wx(n);
}

/* In fp32; in tf32: paper/fused16.cuh. */
OP_FN void run(const dev_instr &ins) {
    flow_grad(ins);
}

} // namespace flow_grad_part

#endif
