/* forward.cuh: the latent of a transition as one instruction (FUSED_LATENT in paper/fused.h).
 *
 * What takes time is the way of 262 KB of weights from memory (131 as fp16, in tf32 and bf16), so
 * every thread asks for its share of all layers before it multiplies: the first ones come to
 * registers, the later ones, if they are floats, to 16 bytes of shared memory each that no other
 * thread reads. Eight warps have a network; a warp multiplies eight rows of a weight (sixteen of
 * wz) with the two rows of its input, and the partial sums meet in shared memory: one barrier a
 * layer. Whoever needs numbers of the layer adds the parts up for itself, in a fixed order. */
#ifndef MNP_CUDA_PAPER_LATENT_FORWARD_CUH
#define MNP_CUDA_PAPER_LATENT_FORWARD_CUH

#include "backend/cuda/device/gauss.cuh"
#include "backend/cuda/device/lanes.cuh"

namespace latent_part {

static_assert(FUSED_D_R == 64 && FUSED_D_Z == 128 && FUSED_HEAD_HIDDEN == 64,
              "numbers in this part");

enum { WIDE = FUSED_D_Z, NARROW = FUSED_HEAD_HIDDEN, NET_WARPS = WARPS / 2 };

/* The working memory, in words; pitches put the lanes of a read in different banks. Partial sums of
 * the hidden layers (net, half warp, row, 64), of the outputs (net, warp, row, 128), of pz (warp,
 * 128); hidden numbers of each warp (layer, warp, row, 8), noise (128), KL (warp). */
enum { HID_ROW = NARROW + 8, HID_PART = 2 * HID_ROW, HID_NET = 2 * NET_WARPS * HID_PART };
enum { OUT_ROW = WIDE + 8, OUT_PART = 2 * OUT_ROW, OUT_NET = NET_WARPS * OUT_PART + 16 };
enum { PZ_PART = WIDE + 8, OWN = 16 };
enum {
    AT_H0 = 0,
    AT_H1 = AT_H0 + 2 * HID_NET,
    AT_OUT = AT_H1 + 2 * HID_NET,
    AT_PZ = AT_OUT + 2 * OUT_NET,
    AT_X1 = AT_PZ + WARPS * PZ_PART,
    AT_X2 = AT_X1 + WARPS * OWN,
    AT_EPS = AT_X2 + WARPS * OWN,
    AT_KL = AT_EPS + WIDE,
    AT_W2 = AT_KL + 2 * WARPS, /* staged: 16 bytes of each row a thread */
    AT_WF = AT_W2 + 8 * THREADS * 4,
    AT_END = AT_WF + 8 * THREADS * 4
};
static_assert((int)AT_END <= (int)WORK_WORDS && AT_KL % 2 == 0, "shared memory of the latent");

/* One of the two networks, as a warp of it sees it. */
struct Net {
    int base, net, warp, lane, half; /* operands from `base` on; half of the warp */
    MEMBER float *at(int k) const { return fused_at(base + k); }
    MEMBER void sync() const { barrier(net + 1, THREADS / 2); }
};

FN Net net_of_warp() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, net = warp / NET_WARPS;
    return {LATENT_MU + net * NET_OPERANDS, net, warp % NET_WARPS, lane, lane / 16};
}

/* Half a warp's part of a hidden layer. */
FN void leave_part(const Net &n, float *buf, const float4 &s0, const float4 &s1) {
    float *to = buf + n.net * HID_NET + (n.warp * 2 + n.half) * HID_PART + n.lane % 16 * 4;
    st4(to, s0);
    st4(to + HID_ROW, s1);
}

/* The eight hidden numbers that a warp multiplies next, of both rows: the parts are added up, by
 * the lane number 8 warp + lane % 8 of row lane / 8 % 2, and laid into `own` (row, 8). */
FN void take_parts(const Net &n, const float *buf, float bias, int slot, float *own) {
    const int row = n.lane / 8 % 2, i = n.warp * 8 + n.lane % 8;
    const float *part = buf + n.net * HID_NET + n.half * HID_PART + row * HID_ROW + i;
    float v[8];
#pragma unroll
    for (int p = 0; p < 8; p++) v[p] = part[p * 2 * HID_PART];
    float h = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
    h += __shfl_xor_sync(~0u, h, 16);
    h = relu_of(h + bias);
    if (n.half == 0) {
        own[n.lane] = h;
        n.at(slot)[row * NARROW + i] = h;
    }
    __syncwarp();
}

FN void add_both(float4 &s0, float4 &s1, float x0, float x1, const float4 &w) {
    add_scaled(s0, x0, w), add_scaled(s1, x1, w);
}

/* stack wr + before wz: the warp's part. */
template <class W>
FN void first_layer(const Net &n, const W (&wr)[4], const W (&wz)[8], const float4 (&x)[2],
                    const float4 (&b)[2]) {
    float in[2][4], z[8];
    spread4(in[0], x[0]), spread4(in[1], x[1]);
    spread4(z, b[0]), spread4(z + 4, b[1]);
    float4 s0 = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int j = 0; j < 8; j++) add_scaled(s0, z[j], numbers_of(wz[j]));
    float4 s1 = s0;
#pragma unroll
    for (int j = 0; j < 4; j++) add_both(s0, s1, in[0][j], in[1][j], numbers_of(wr[j]));
    leave_part(n, work() + AT_H0, s0, s1);
}

template <class W> FN void second_layer(const Net &n, const W (&w1)[4], const float *own) {
    float h0[4], h1[4];
    spread4(h0, ld4(own + n.half * 4)), spread4(h1, ld4(own + 8 + n.half * 4));
    float4 s0 = make_float4(0, 0, 0, 0), s1 = s0;
#pragma unroll
    for (int j = 0; j < 4; j++) add_both(s0, s1, h0[j], h1[j], numbers_of(w1[j]));
    leave_part(n, work() + AT_H1, s0, s1);
}

template <class W> FN void last_layer(const Net &n, const W (&w2)[8], const float *own) {
    float h0[8], h1[8];
    spread4(h0, ld4(own)), spread4(h0 + 4, ld4(own + 4));
    spread4(h1, ld4(own + 8)), spread4(h1 + 4, ld4(own + 12));
    float4 s0 = make_float4(0, 0, 0, 0), s1 = s0;
#pragma unroll
    for (int j = 0; j < 8; j++) add_both(s0, s1, h0[j], h1[j], numbers_of(w2[j]));
    float *to = work() + AT_OUT + n.net * OUT_NET + n.warp * OUT_PART + n.lane * 4;
    st4(to, s0);
    st4(to + OUT_ROW, s1);
}

/* Four warps draw the noise, a lane each; one on every quarter of the multiprocessor. */
FN void draw_noise(const dev_instr &ins) {
    const int d = (int)threadIdx.x - (THREADS - WIDE);
    if (d < 0) return;
    const float eps = latent_noise(frame(), ins, 0, d);
    work()[AT_EPS + d] = eps;
    fused_at(LATENT_EPS)[d] = eps;
}

/* Eight dimensions a warp, four lanes a dimension d: mu and raw of both rows. */
struct Drawn {
    float m0, m1, s0, s1, z;
};
FN Drawn sample(const dev_instr &ins, float bias) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, d = warp * 8 + lane % 8;
    const int which = lane / 8, net = which / 2, row = which % 2;
    const float *part = work() + AT_OUT + net * OUT_NET + row * OUT_ROW + d;
    float p[NET_WARPS];
#pragma unroll
    for (int k = 0; k < NET_WARPS; k++) p[k] = part[k * OUT_PART];
    const float eps = work()[AT_EPS + d];
    const float v = bias + (((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7])));
    float slope;
    const float sigma = sigma_of(ins, v, &slope); /* of use where v is a raw number */
    Drawn o;
    o.m0 = __shfl_sync(~0u, v, lane % 8), o.m1 = __shfl_sync(~0u, v, lane % 8 + 8);
    o.s0 = __shfl_sync(~0u, sigma, lane % 8 + 16), o.s1 = __shfl_sync(~0u, sigma, lane % 8 + 24);
    o.z = o.m0 + o.s0 * eps;
    fused_at(LATENT_MU + net * NET_OPERANDS + NET_OUT)[row * WIDE + d] = v;
    if (which == 0) fused_at(LATENT_Z)[d] = o.z;
    return o;
}

/* A warp's part of the KL. */
FN void leave_kl(const Drawn &o) {
    double kl = (double)kl_of(o.m0, o.s0, o.m1, o.s1);
    for (int k = 4; k > 0; k /= 2) kl += __shfl_xor_sync(~0u, kl, k);
    if (threadIdx.x % 32 == 0) ((double *)(work() + AT_KL))[threadIdx.x / 32] = kl;
}

/* A warp's part of pz = z wf: eight rows. */
template <class W> FN void leave_pz(const W (&wf)[8], float z) {
    float4 s = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int j = 0; j < 8; j++) add_scaled(s, __shfl_sync(~0u, z, j), numbers_of(wf[j]));
    st4(work() + AT_PZ + threadIdx.x / 32 * PZ_PART + threadIdx.x % 32 * 4, s);
}

/* The parts of pz and of the KL together; this thread's klbefore came long ago. */
FN void finish(double before) {
    const int t = threadIdx.x;
    if (t < WIDE) {
        const float *part = work() + AT_PZ + t;
        float sum[4] = {0, 0, 0, 0};
#pragma unroll
        for (int p = 0; p < WARPS; p++) sum[p % 4] += part[p * PZ_PART];
        fused_at(LATENT_PZ)[t] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    } else if (t == WIDE) {
        const double *parts = (const double *)(work() + AT_KL);
        double kl[2] = {0, 0};
#pragma unroll
        for (int p = 0; p < WARPS; p++) kl[p % 2] += parts[p];
        *(double *)fused_at(LATENT_KL) = before + (kl[0] + kl[1]);
    }
}

/* W: four weights of a row, float4, or uint2 in fp16. In fp16 all layers fit in registers; of
 * floats the last two layers come to shared memory. */
template <class W> FN void run_as(const dev_instr &ins) {
    constexpr bool IS_FP16 = sizeof(W) == sizeof(uint2);
    constexpr int PER = IS_FP16 ? 2 : 1; /* weights a word */
    const Net n = net_of_warp();
    const int warp = threadIdx.x / 32, column = n.lane % 16 * 4, k = n.warp * 8 + n.half * 4;
    const float *stack = fused_at(LATENT_STACK), *before = fused_at(LATENT_BEFORE);
    const float *from_w2 = n.at(NET_W2) + (n.warp * 8 * WIDE + n.lane * 4) / PER;
    const float *from_wf = fused_at(LATENT_WF) + (warp * 8 * WIDE + n.lane * 4) / PER;
    W wz[8] = {}, wr[4], w1[4], w2[8], wf[8];
    float4 x[2], b[2] = {};
    if (before) {
        const int first = n.warp * 16 + n.half * 8;
        read_rows(b, before + first, 4);
        read_rows(wz, n.at(NET_WZ) + (first * NARROW + column) / PER, NARROW / PER);
    }
    read_rows(x, stack + k, NARROW);
    read_rows(wr, n.at(NET_WR) + (k * NARROW + column) / PER, NARROW / PER);
    __syncwarp(); /* these are on their way first */
    read_rows(w1, n.at(NET_W1) + (k * NARROW + column) / PER, NARROW / PER);
    const int own = n.warp * 8 + n.lane % 8;
    const float b0 = __ldcg(n.at(NET_B0) + own), b1 = __ldcg(n.at(NET_B1) + own);
    const double *sum = (const double *)fused_at(LATENT_KLBEFORE);
    const double kl_before = sum && threadIdx.x == WIDE ? __ldcg(sum) : 0.0;
    const float b2 =
        __ldcg(fused_at(LATENT_MU + n.half * NET_OPERANDS + NET_B2) + warp * 8 + n.lane % 8);
    __syncwarp();
    if constexpr (IS_FP16) {
        read_rows(w2, from_w2, WIDE / PER);
        read_rows(wf, from_wf, WIDE / PER);
    } else {
        stage_rows<8>(work() + AT_W2, from_w2, WIDE);
        copy_commit();
        stage_rows<8>(work() + AT_WF, from_wf, WIDE);
        copy_commit();
    }
    draw_noise(ins);
    first_layer(n, wr, wz, x, b);
    float *x1 = work() + AT_X1 + warp * OWN, *x2 = work() + AT_X2 + warp * OWN;
    n.sync();
    take_parts(n, work() + AT_H0, b0, NET_H0, x1);
    second_layer(n, w1, x1);
    n.sync();
    take_parts(n, work() + AT_H1, b1, NET_H1, x2);
    if constexpr (!IS_FP16) {
        copy_wait<1>();
        staged_rows(w2, work() + AT_W2);
    }
    last_layer(n, w2, x2);
    if constexpr (!IS_FP16) {
        copy_wait<0>();
        staged_rows(wf, work() + AT_WF);
    }
    __syncthreads();
    const Drawn drawn = sample(ins, b2);
    leave_pz(wf, drawn.z);
    leave_kl(drawn);
    __syncthreads();
    finish(kl_before);
}

/* In fp32; in tf32: paper/fused16.cuh. */
OP_FN void run(const dev_instr &ins) {
    run_as<float4>(ins);
}

} // namespace latent_part

#endif
