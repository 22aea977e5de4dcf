/* grad16.cuh: the reverse pass of the conditioner and its spline (FUSED_FLOW_GRAD) in
 * tf32, with fp16 numbers in col8 layout, turned as in forward16.cuh. Gradients of weights are not
 * formed here: the gradients of raw, h1 and h0 are saved as rows (FLOWG_SAVED), where h0 and h1 are
 * already. All of them are multiplied by SAVED_SCALE from the spline on. Everything has a place of
 * its own in shared memory; a layer's gradient is written once, as the operand of the layer below
 * and as it is saved.
 */
#ifndef MNP_CUDA_PAPER_FLOW_GRAD16_CUH
#define MNP_CUDA_PAPER_FLOW_GRAD16_CUH

#include "backend/cuda/device/spline_lanes.cuh"
#include "backend/cuda/paper/col8.cuh"

namespace flow_grad_half {

static_assert(FUSED_FEATURES == 160 && FUSED_FLOW_HIDDEN == 128 && FUSED_BINS == 10,
              "numbers in this part");

enum { WIDTH = FUSED_FLOW_HIDDEN, POINTS = FUSED_POINTS };
enum { WORDS_W1 = WIDTH * WIDTH / 2, WORDS_W2 = WIDTH * POINT_RAW / 2 };
enum {
    SMEM_RAW = 0,
    SMEM_W2 = SMEM_RAW + POINTS * POINT_PITCH,
    SMEM_W1 = SMEM_W2 + WORDS_W2,
    SMEM_DRAW = SMEM_W1 + WORDS_W1,
    SMEM_DH1 = SMEM_DRAW + POINT_RAW / 8 * COL8,
    SMEM_DH0 = SMEM_DH1 + WIDTH / 8 * COL8,
    SMEM_SUMS = SMEM_DH0 + WIDTH / 8 * COL8,
    SMEM_END = SMEM_SUMS + 4 * WIDTH
};
static_assert((int)SMEM_END <= (int)WORK_WORDS, "shared memory of the conditioner's reverse pass");

/* A gradient is stored or added to what is there, and nobody waits for it. */
FN void leave(int which, int i, float v) {
    if (fused_adds(which))
        global_add(fused_at(which) + i, v);
    else
        fused_at(which)[i] = v;
}

/* raw of a point by its four lanes; zeros where there is no point. */
FN void fetch_raw(int n) {
    const int point = (int)threadIdx.x / 4, c = threadIdx.x % 4 * 4;
    const float *from = fused_at(FLOWG_RAW) + point * POINT_RAW + c;
    const uint32_t place = shared_at(work() + SMEM_RAW + point * POINT_PITCH + c);
    copy16(place, from, point < n);
    copy16(place + 64, from + 16, point < n);
}

/* By two warps: whoever asks is held up. */
enum { HERE_W2, HERE_W1 };
FN void ask_weights() {
    const int which = (int)threadIdx.x / 32, words = which == HERE_W1 ? WORDS_W1 : WORDS_W2;
    if (threadIdx.x % 32 || which > HERE_W1) return;
    expect_words(which, words);
    bulk_load(shared_at(work() + (which == HERE_W1 ? SMEM_W1 : SMEM_W2)),
              fused_at(which == HERE_W1 ? FLOWG_W1 : FLOWG_W2), words * 4, arrival_at(which));
}

/* The gradient of raw, four lanes to a point, by put(number, value); points that do not exist get
 * zeros. */
template <class PUT>
FN void spline_grad(const Spline &o, const float *buf, int n, float v, float G, float H,
                    PUT put_raw) {
    const int point = (int)threadIdx.x / 4;
    const bool exists = point < n, inside = v >= -o.bound && v <= o.bound;
    Place t;
    LaneBins l;
    locate_lanes(o, v, buf + point * POINT_PITCH, t, l);
    const BinGrad q = spline_derive(t, false, G, H);
    raw_grad_lanes(t, l, q, exists && inside, put_raw);
    if (!exists || (int)threadIdx.x % 4) return;
    if (fused_at(FLOWG_GY)) leave(FLOWG_GY, point, inside ? q.v : G);
    if (fused_at(FLOWG_GBEFORE)) leave(FLOWG_GBEFORE, point, H);
}

/* ---- sums over points ------------------------------------------------------------------------ */

/* db2, two columns a warp. */
FN void raw_bias_grad() {
    const int lane = threadIdx.x % 32, c = (int)threadIdx.x / 32 * 2;
    const float *from = work() + SMEM_DRAW + c / 8 * COL8 + c % 8 / 2 + lane * 4;
    float2 sum = make_float2(0, 0);
#pragma unroll
    for (int r = 0; r < POINTS; r += 32) {
        const float2 v = unpack_fp16(__float_as_uint(from[r * 4]));
        sum.x += v.x, sum.y += v.y;
    }
    /* half of the lanes go on with each column */
    const bool second = lane >= 16;
    float mine = (second ? sum.y : sum.x) + __shfl_xor_sync(~0u, second ? sum.x : sum.y, 16);
#pragma unroll
    for (int d = 8; d > 0; d /= 2) mine += __shfl_xor_sync(~0u, mine, d);
    if (lane % 16 == 0 && c + second < 29) leave(FLOWG_DB2, c + second, mine / SAVED_SCALE);
}

using Grad = Fp16Tile<8>;

/* The tile's share of a bias's gradient; `layer` has two rows of the sums, one for 64 points. */
FN void keep_sums(const Grad &tile, int layer) {
    keep_row_sums(tile, work() + SMEM_SUMS + (layer * 2 + tile.n0 / 64) * WIDTH);
}
FN void bias_grad(int which, int layer, int c) {
    if (c < 0 || c >= WIDTH) return;
    const float *sums = work() + SMEM_SUMS + layer * 2 * WIDTH;
    leave(which, c, (sums[c] + sums[WIDTH + c]) / SAVED_SCALE);
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* After the layer's ReLU, in col8 layout. */
FN void finish_grad(Grad &tile, uint32_t signs, int layer, int buf) {
    tile.mask(signs);
    tile.keep(work() + buf);
    keep_sums(tile, layer);
}

FN void flow_grad(const dev_instr &ins) {
    const int n = frame().n, id = (int)threadIdx.x, point = id / 4, group = id / GROUP;
    begin_rows(); /* its fence waits for whatever a thread has asked for */
    fetch_raw(n);
    copy_commit();
    float *saved = fused_at(FLOWG_SAVED);
    const float v = point < n ? fused_at(FLOWG_Y)[point] : 0.0f;
    const float G = point < n ? fused_at(FLOWG_GOUT)[point] : 0.0f;
    const float H = point < n ? fused_at(FLOWG_GLOGDET)[point] : 0.0f;
    const uint32_t signs0 = __float_as_uint(__ldcg(saved + SAVED_SIGNS + id));
    const uint32_t signs1 = __float_as_uint(__ldcg(saved + SAVED_SIGNS + THREADS + id));
    ask_weights();
    const Spline o = spline_of(ins);
    copy_wait<0>();
    __syncwarp(); /* a point's lanes are in one warp */
    uint16_t *draw = (uint16_t *)(work() + SMEM_DRAW + point * 4);
    spline_grad(o, work() + SMEM_RAW, n, v, G, H, [=](int i, float x) {
        draw[i / 8 * (2 * COL8) + i % 8] = (uint16_t)pack_fp16(x * SAVED_SCALE, 0);
    });
    bulk_fence();
    __syncthreads();

    Grad tile(group / 2 * 64, group % 2 * 64);
    send_col8(saved + SAVED_DRAW, work() + SMEM_DRAW, POINT_RAW / 8);
    {
        wait_rows(HERE_W2);
        const Weights<ALONG, 2, POINT_RAW> w2(work() + SMEM_W2, tile.m0, 0);
        tile.multiply(w2.v, work() + SMEM_DRAW, 0);
        raw_bias_grad();
        group_wait();
    }
    finish_grad(tile, signs1, 1, SMEM_DH1);
    bulk_fence();
    __syncthreads();

    send_col8(saved + SAVED_DH1, work() + SMEM_DH1, WIDTH / 8);
    {
        wait_rows(HERE_W1);
        const Weights<ALONG, 8, WIDTH> w1(work() + SMEM_W1, tile.m0, 0);
        tile = Grad(tile.m0, tile.n0);
        tile.multiply(w1.v, work() + SMEM_DH1, 0);
        bias_grad(FLOWG_DB1, 1, id);
        group_wait();
    }
    finish_grad(tile, signs0, 0, SMEM_DH0);
    tile.store(saved + SAVED_DH0, work() + SMEM_DH0, n);
    __syncthreads();
    bias_grad(FLOWG_DB0, 0, id);
    bias_grad(FLOWG_GPZ, 0, id - WIDTH);
    if (threadIdx.x == 0) bulk_wait();
}

} // namespace flow_grad_half

#endif
