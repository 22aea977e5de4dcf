/* fused_latent.cuh: the latent of a transition as one instruction (FUSED_LATENT in fused.h).
 *
 * What takes time is the way of 256 KB of weights from the L2, so every thread asks for its share
 * of the next layers before it multiplies, and keeps it in registers. Eight warps have a network;
 * a warp multiplies eight rows of a weight (sixteen of wz) with the two rows of its input, and the
 * eight partial sums meet in shared memory: one barrier a layer. Whoever needs numbers of the
 * layer adds the parts up for itself, lane by lane, in a fixed order. */
#ifndef MNP_CUDA_FUSED_LATENT_CUH
#define MNP_CUDA_FUSED_LATENT_CUH

#include "backend/cuda/gauss.cuh"
#include "backend/cuda/lanes.cuh"

namespace latent_part {

enum { WIDE = 128, NARROW = 64, NET_WARPS = WARPS / 2 };

/* Partial sums in the working room, in words. Pitches put the lanes of a read in different banks.
 *   hidden layers (net, warp, row, 64), outputs (net, warp, row, 128), pz (warp, 128), KL (warp) */
enum { HID_ROW = NARROW + 8, HID_PART = 2 * HID_ROW, HID_NET = NET_WARPS * HID_PART };
enum { OUT_ROW = WIDE + 8, OUT_PART = 2 * OUT_ROW, OUT_NET = NET_WARPS * OUT_PART + 16 };
enum { PZ_PART = WIDE + 8 };
enum {
    AT_H0 = 0,
    AT_H1 = AT_H0 + 2 * HID_NET,
    AT_OUT = AT_H1 + 2 * HID_NET,
    AT_PZ = AT_OUT + 2 * OUT_NET,
    AT_KL = AT_PZ + WARPS * PZ_PART,
    AT_END = AT_KL + 2 * WARPS
};
static_assert((int)AT_END <= (int)WORK_WORDS && AT_KL % 2 == 0, "room of the latent");

/* One of the two networks, as a warp of it sees it. */
struct Net {
    int base, net, warp, lane, half; /* operands from `base` on; half of the warp */
    MEMBER float *at(int k) const { return fused_at(base + k); }
    MEMBER void sync() const { barrier(net + 1, THREADS / 2); }
};

FN Net net_of_warp() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, net = warp / NET_WARPS;
    return {LATENT_MU + net * NET_SLOTS, net, warp % NET_WARPS, lane, lane / 16};
}

/* A warp's part of a hidden layer: each half has its sums of both rows; together row 0 goes to the
 * lower half and row 1 to the upper. */
FN void leave_part(const Net &n, float *room, const float4 &s0, const float4 &s1) {
    const float4 give = n.half ? s0 : s1, keep = n.half ? s1 : s0;
    float4 sum;
    sum.x = keep.x + __shfl_xor_sync(~0u, give.x, 16);
    sum.y = keep.y + __shfl_xor_sync(~0u, give.y, 16);
    sum.z = keep.z + __shfl_xor_sync(~0u, give.z, 16);
    sum.w = keep.w + __shfl_xor_sync(~0u, give.w, 16);
    float *to = room + n.net * HID_NET + n.warp * HID_PART + n.half * HID_ROW;
    st4(to + n.lane % 16 * 4, sum);
}

/* The eight hidden numbers that a warp multiplies next, of both rows: the parts are added up, and
 * the lane has number 8 warp + hidden_at() of row hidden_row(); lanes that differ in bit 4 have the
 * same. */
FN int hidden_at(int lane) {
    return (lane & 1) * 4 + lane / 8;
}
FN int hidden_row(int lane) {
    return lane / 2 % 2;
}
FN float take_parts(const Net &n, const float *room) {
    const float *from = room + n.net * HID_NET + n.lane / 4 * HID_PART;
    float v[4];
    spread4(v, ld4(from + hidden_row(n.lane) * HID_ROW + n.warp * 8 + (n.lane & 1) * 4));
    return lane_sum<4, 16, 4>(v);
}
/* Number j of row r from the lane that has it. */
FN float hidden_of(float mine, int r, int j) {
    return __shfl_sync(~0u, mine, j / 4 + r * 2 + j % 4 * 8);
}

FN float finish_hidden(const Net &n, const float *room, float bias, int slot) {
    const float h = relu_of(take_parts(n, room) + bias);
    if (!(n.lane & 4)) n.at(slot)[hidden_row(n.lane) * NARROW + n.warp * 8 + hidden_at(n.lane)] = h;
    return h;
}

/* stack wr + before wz: the warp's part. */
FN void first_layer(const Net &n, const float4 (&wr)[4], const float4 (&wz)[8],
                    const float4 (&x)[2], const float4 (&b)[2]) {
    float in[2][4], z[8];
    spread4(in[0], x[0]), spread4(in[1], x[1]);
    spread4(z, b[0]), spread4(z + 4, b[1]);
    float4 s0 = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int j = 0; j < 8; j++) add_scaled(s0, z[j], wz[j]);
    float4 s1 = s0;
#pragma unroll
    for (int j = 0; j < 4; j++) add_scaled(s0, in[0][j], wr[j]), add_scaled(s1, in[1][j], wr[j]);
    leave_part(n, work() + AT_H0, s0, s1);
}

FN void second_layer(const Net &n, const float4 (&w1)[4], float h) {
    float4 s0 = make_float4(0, 0, 0, 0), s1 = s0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        add_scaled(s0, hidden_of(h, 0, n.half * 4 + j), w1[j]);
        add_scaled(s1, hidden_of(h, 1, n.half * 4 + j), w1[j]);
    }
    leave_part(n, work() + AT_H1, s0, s1);
}

FN void last_layer(const Net &n, const float4 (&w2)[8], float h) {
    float4 s0 = make_float4(0, 0, 0, 0), s1 = s0;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        add_scaled(s0, hidden_of(h, 0, j), w2[j]);
        add_scaled(s1, hidden_of(h, 1, j), w2[j]);
    }
    float *to = work() + AT_OUT + n.net * OUT_NET + n.warp * OUT_PART + n.lane * 4;
    st4(to, s0);
    st4(to + OUT_ROW, s1);
}

/* Eight dimensions a warp, four lanes a dimension d: mu and raw of both rows. Returns z[d]. */
FN float sample(const dev_instr &ins, float bias, float eps) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, d = warp * 8 + lane % 8;
    const int which = lane / 8, net = which / 2, row = which % 2;
    const float *part = work() + AT_OUT + net * OUT_NET + row * OUT_ROW + d;
    float v = bias;
#pragma unroll
    for (int p = 0; p < NET_WARPS; p++) v += part[p * OUT_PART];
    fused_at(LATENT_MU + net * NET_SLOTS + NET_OUT)[row * WIDE + d] = v;
    float slope;
    const float sigma = sigma_of(ins, v, &slope); /* of use where v is a raw number */
    const float m0 = __shfl_sync(~0u, v, lane % 8), m1 = __shfl_sync(~0u, v, lane % 8 + 8);
    const float s0 = __shfl_sync(~0u, sigma, lane % 8 + 16);
    const float s1 = __shfl_sync(~0u, sigma, lane % 8 + 24);
    const float z = m0 + s0 * eps;
    if (which == 0) fused_at(LATENT_Z)[d] = z;
    if (which == 1) fused_at(LATENT_EPS)[d] = eps;
    double kl = (double)kl_of(m0, s0, m1, s1);
    for (int k = 4; k > 0; k /= 2) kl += __shfl_xor_sync(~0u, kl, k);
    if (lane == 0) ((double *)(work() + AT_KL))[warp] = kl;
    return z;
}

/* pz = z wf from eight rows a warp; and the sum of the KL. */
FN void follow(const float4 (&wf)[8], float z) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float4 s = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int j = 0; j < 8; j++) add_scaled(s, __shfl_sync(~0u, z, j), wf[j]);
    float *room = work() + AT_PZ;
    st4(room + warp * PZ_PART + lane * 4, s);
    __syncthreads();
    const int column = warp * 8 + lane % 8;
    float sum = 0;
#pragma unroll
    for (int p = 0; p < WARPS; p += 4) sum += room[(p + lane / 8) * PZ_PART + column];
    sum += __shfl_xor_sync(~0u, sum, 8);
    sum += __shfl_xor_sync(~0u, sum, 16);
    if (lane < 8) fused_at(LATENT_PZ)[column] = sum;
    if (threadIdx.x != THREADS - 1) return;
    const double *parts = (const double *)(work() + AT_KL);
    double kl = 0;
#pragma unroll
    for (int p = 0; p < WARPS; p++) kl += parts[p];
    *(double *)fused_at(LATENT_KL) = kl;
}

static __device__ __noinline__ void run(const dev_instr &ins) {
    const Net n = net_of_warp();
    const int warp = threadIdx.x / 32, column = n.lane % 16 * 4, k = n.warp * 8 + n.half * 4;
    const float *stack = fused_at(LATENT_STACK), *before = fused_at(LATENT_BEFORE);
    const float4 none = make_float4(0, 0, 0, 0);
    float4 wz[8] = {none, none, none, none, none, none, none, none}, wr[4], w1[4],
           b[2] = {none, none};
    if (before) {
        const int first = n.warp * 16 + n.half * 8;
        fetch_rows(b, before + first, 4);
        fetch_rows(wz, n.at(NET_WZ) + first * NARROW + column, NARROW);
    }
    float4 x[2];
    fetch_rows(x, stack + k, NARROW);
    fetch_rows(wr, n.at(NET_WR) + k * NARROW + column, NARROW);
    __syncwarp(); /* these are on their way first */
    fetch_rows(w1, n.at(NET_W1) + k * NARROW + column, NARROW);
    const int own = n.warp * 8 + hidden_at(n.lane), d = warp * 8 + n.lane % 8;
    const float b0 = __ldcg(n.at(NET_B0) + own), b1 = __ldcg(n.at(NET_B1) + own);
    const float b2 = __ldcg(fused_at(LATENT_MU + n.lane / 16 * NET_SLOTS + NET_B2) + d);
    __syncwarp();
    const float eps = latent_noise(frame(), ins, 0, d);
    first_layer(n, wr, wz, x, b);
    float4 w2[8], wf[8];
    fetch_rows(w2, n.at(NET_W2) + n.warp * 8 * WIDE + n.lane * 4, WIDE);
    fetch_rows(wf, fused_at(LATENT_WF) + warp * 8 * WIDE + n.lane * 4, WIDE);
    n.sync();
    second_layer(n, w1, finish_hidden(n, work() + AT_H0, b0, NET_H0));
    n.sync();
    last_layer(n, w2, finish_hidden(n, work() + AT_H1, b1, NET_H1));
    __syncthreads();
    follow(wf, sample(ins, b2, eps));
}

} // namespace latent_part

#endif
