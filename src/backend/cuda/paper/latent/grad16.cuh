/* grad16.cuh: the reverse pass of a transition's latent (FUSED_LATENT_GRAD in
 * paper/fused.h) with its weights as fp16, for tf32 and bf16.
 *
 * A gradient goes back along the rows of a weight, so a warp reads eight whole rows of each
 * (sixteen of wz): all of them come to registers, asked for before anything is computed. Gradients
 * are multiplied by SCALE while they are fp16 numbers, so that small ones keep their digits; SCALE
 * times the largest is cut off at 65 504. The rest is as in grad.cuh. */
#ifndef MNP_CUDA_PAPER_LATENT_GRAD16_CUH
#define MNP_CUDA_PAPER_LATENT_GRAD16_CUH

#include "backend/cuda/paper/latent/grad.cuh"
#include "backend/cuda/paper/latent/two_rows16.cuh"

namespace latent_grad_part {

enum { SCALE = 256, ROW = NARROW + 16, LONG = WIDE + 16 };
static_assert((int)ROW == PAIRS_PITCH<NARROW> && (int)LONG == PAIRS_PITCH<WIDE>, "rows of pairs");

/* The working memory up to AT_WEIGHTS; then gradients as pairs. */
enum {
    FP16_GPZ = AT_WEIGHTS,               /* (warp, 128): a copy each */
    FP16_GOUT = FP16_GPZ + WARPS * WIDE, /* (net, row, 128)          */
    FP16_G1 = FP16_GOUT + 4 * LONG,      /* (net, row, 64)           */
    FP16_G0 = FP16_G1 + 4 * ROW,         /* (net, row, 64)           */
    FP16_END = FP16_G0 + 4 * ROW
};
static_assert((int)FP16_END <= (int)WORK_WORDS && FP16_GPZ % 4 == 0, "shared memory of the latent");

/* A warp of a network. A lane reads row lane / 4 of eight of a weight. Eight lanes have two numbers
 * each of what the warp computes, `column` and the next of eight, of their row. */
struct Eight {
    int base, net, warp, lane, row, column;
    MEMBER float *at(int k) const { return fused_at(base + k); }
    MEMBER void sync() const { barrier(net + 1, THREADS / 2); }
    MEMBER bool has_row() const { return lane < 8; }
    MEMBER int own() const { return warp * 8 + column; }
    /* of a (net, row, 64) */
    MEMBER int narrow() const { return (net * 2 + row) * NARROW + own(); }
};
FN Eight eight_of_warp() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, net = warp / NET_WARPS;
    return {
        LATENTG_MU + net * NETG_OPERANDS, net, warp % NET_WARPS, lane, lane / 4 % 2, lane % 4 * 2};
}

/* Eight rows of a weight of N columns from `first` on: 16 bytes a lane of every 32 columns. */
template <int N> struct Rows { float4 w[N / 32]; };
template <int N> FN void fetch_eight(Rows<N> &r, const float *weight, int first) {
    const int lane = threadIdx.x % 32;
    read_rows(r.w, weight + (first + lane / 4) * (N / 2) + lane % 4 * 4, 16);
}

/* SCALE times the lane's two numbers of g W^T, g as pairs. */
template <int N> FN float2 through(const Rows<N> &r, const LeftRow<N / 16> &g) {
    float c[2][4] = {};
#pragma unroll
    for (int k = 0; k < N / 32; k++) {
        const float4 w = r.w[k];
        g.add(c[0], 2 * k, __float_as_uint(w.x), __float_as_uint(w.y));
        g.add(c[1], 2 * k + 1, __float_as_uint(w.z), __float_as_uint(w.w));
    }
    return result_of(c);
}
template <int N> FN float2 through(const Rows<N> &r, const float *g, bool mine) {
    LeftRow<N / 16> left;
    left.load(g, mine);
    return through(r, left);
}

/* Numbers i and i + 1 of a gradient, times SCALE. */
FN void leave_scaled(float *row, int i, float2 v) {
    leave_pair(row + pair_along_rows(i), v);
}
FN void leave_unscaled(float *to, float2 v) {
    *(float2 *)to = make_float2(v.x / SCALE, v.y / SCALE);
}

/* Four numbers of gpz a lane, to the warp's own copy. */
FN void leave_gpz(float *row, float4 v) {
    const int i = threadIdx.x % 32 * 4;
    leave_scaled(row, i, make_float2(v.x * SCALE, v.y * SCALE));
    leave_scaled(row, i + 2, make_float2(v.z * SCALE, v.w * SCALE));
    __syncwarp();
}

/* gz from pz, and through the sample and the KL to mu and raw: eight dimensions a warp, of which a
 * lane has one of mu[0], mu[1], raw[0], raw[1]. */
FN int half_dimension(const Eight &n) {
    return (n.net * NET_WARPS + n.warp) * 8 + n.column + n.row;
}
FN void half_outputs(const Eight &n, const Rows<WIDE> &wf, float old, const Share &share) {
    const int which = n.lane / 8, d = half_dimension(n);
    const float2 sum = through(wf, work() + FP16_GPZ + threadIdx.x / 32 * WIDE, n.lane < 4);
    const float even = __shfl_sync(~0u, sum.x, n.lane % 4);
    const float odd = __shfl_sync(~0u, sum.y, n.lane % 4);
    const float gz = old + (n.row ? odd : even) / SCALE;
    const float g = share.own + share.of_gz * gz, next = __shfl_xor_sync(~0u, g, 4);
    work()[AT_GOUT + which * WIDE + d] = g;
    if (n.row == 0)
        leave_scaled(work() + FP16_GOUT + which * LONG, d, make_float2(g * SCALE, next * SCALE));
}

/* The gradient of h1 or h0 after its ReLU: h at `h` of the buffer, the gradient to `g` as numbers
 * and to `half` as pairs. */
FN void leave_masked(const Eight &n, float2 v, int h, int g, int half) {
    if (!n.has_row()) return;
    const float2 x = *(const float2 *)(work() + h + n.narrow());
    v.x = x.x > 0.0f ? v.x : 0.0f, v.y = x.y > 0.0f ? v.y : 0.0f;
    leave_scaled(work() + half + (n.net * 2 + n.row) * ROW, n.own(), v);
    leave_unscaled(work() + g + n.narrow(), v);
}

/* The network's shares of gstack and, both rows together, of gbefore. */
FN void leave_shares(const Eight &n, const Rows<NARROW> &wr, const Rows<NARROW> (&wz)[2]) {
    LeftRow<NARROW / 16> g;
    g.load(work() + FP16_G0 + (n.net * 2 + n.row) * ROW, n.has_row());
    const float2 stack = through(wr, g);
    if (n.has_row()) leave_unscaled(work() + AT_GSTACK + n.narrow(), stack);
    if (!fused_at(LATENTG_BEFORE)) return;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        float2 v = through(wz[j], g);
        v.x += __shfl_xor_sync(~0u, v.x, 4), v.y += __shfl_xor_sync(~0u, v.y, 4);
        float *to = work() + AT_GBEFORE + n.net * WIDE + n.warp * 16 + j * 8;
        if (n.lane < 4) leave_unscaled(to + n.column, v);
    }
}

/* What is used first is asked for first; requests are accepted one after the other, so the last
 * ones wait until there is something else to do. */
FN void run_half(const dev_instr &ins) {
    const Eight n = eight_of_warp();
    const int first = n.warp * 8, row = n.net * 2 + n.row;
    float *buf = work();
    Rows<WIDE> wf, w2;
    Rows<NARROW> w1, wr, wz[2];
    const float4 g = __ldcg((const float4 *)fused_at(LATENTG_GPZ) + n.lane);
    const Latent latent = latent_of(half_dimension(n));
    fetch_inputs();
    fetch_eight(wf, fused_at(LATENTG_WF), threadIdx.x / 32 * 8);
    fetch_eight(w2, n.at(NETG_W2), first);
    leave_gpz(buf + FP16_GPZ + threadIdx.x / 32 * WIDE, g);
    hand_on(latent.gkl);
    const Share share = share_of(ins, latent, n.lane / 8);
    fetch_eight(w1, n.at(NETG_W1), first);
    half_outputs(n, wf, latent.gz, share);
    fetch_eight(wr, n.at(NETG_WR), first);
    copy_wait<0>();
    __syncthreads();
    if (fused_at(LATENTG_BEFORE)) {
        fetch_eight(wz[0], n.at(NETG_WZ), 2 * first);
        fetch_eight(wz[1], n.at(NETG_WZ), 2 * first + 8);
    }
    leave_masked(n, through(w2, buf + FP16_GOUT + row * LONG, n.has_row()), AT_H1, AT_G1, FP16_G1);
    n.sync();
    leave_masked(n, through(w1, buf + FP16_G1 + row * ROW, n.has_row()), AT_H0, AT_G0, FP16_G0);
    n.sync();
    leave_shares(n, wr, wz);
    __syncthreads();
    leave_all();
}

} // namespace latent_grad_part

#endif
