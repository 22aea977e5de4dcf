/* fused_latent_grad.cuh: the reverse pass of a transition's latent (FUSED_LATENT_GRAD in fused.h).
 *
 * Eight warps have a network. A warp keeps rows of the weights in registers, asked for a layer or
 * two ahead; the gradient to a layer's input is one sum along each row, added up across lanes, so a
 * layer takes one barrier. Weight gradients are outer products of two rows, which are left to the
 * sum over functions (kept.h) where that can be. */
#ifndef MNP_CUDA_FUSED_LATENT_GRAD_CUH
#define MNP_CUDA_FUSED_LATENT_GRAD_CUH

#include "backend/cuda/gauss.cuh"
#include "backend/cuda/lanes.cuh"

namespace latent_grad_part {

enum { WIDE = 128, NARROW = 64, NET_WARPS = WARPS / 2 };

/* The working room, in words: gradients of out (net, row, 128), h1 and h0 (net, row, 64), each
 * network's share of gstack (row, 64) and gbefore (128), and inputs of the layers. Pitches put the
 * lanes of a store in different banks. */
enum { OUT_ROW = WIDE + 8, HID_ROW = NARROW + 8 };
enum {
    AT_GOUT = 0,
    AT_G1 = AT_GOUT + 4 * OUT_ROW,
    AT_G0 = AT_G1 + 4 * HID_ROW,
    AT_GSTACK = AT_G0 + 4 * HID_ROW,
    AT_GBEFORE = AT_GSTACK + 4 * NARROW,
    AT_INPUTS = AT_GBEFORE + 2 * WIDE,
    AT_H0 = AT_INPUTS, /* (net, row, 64)  */
    AT_H1 = AT_H0 + 4 * NARROW,
    AT_STACK = AT_H1 + 4 * NARROW, /* (row, 64) */
    AT_BEFORE = AT_STACK + 2 * NARROW,
    AT_Z = AT_BEFORE + WIDE,
    AT_GPZ = AT_Z + WIDE,
    AT_END = AT_GPZ + WIDE
};
static_assert((int)AT_END + WIDE <= (int)WORK_WORDS && AT_INPUTS % 4 == 0, "room of the latent");

struct Net {
    int base, net, warp, lane, half, column; /* column: of a narrow weight, half a warp to a row */
    MEMBER float *at(int k) const { return fused_at(base + k); }
    MEMBER void sync() const { barrier(net + 1, THREADS / 2); }
};

FN Net net_of_warp() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, net = warp / NET_WARPS;
    return {LATENTG_MU + net * NETG_SLOTS, net, warp % NET_WARPS, lane, lane / 16, lane % 16 * 4};
}

/* ---- weight gradients ------------------------------------------------------------------------ */

/* A layer's weight gradient in the slot: x0 g0 + x1 g1, rows of x and g in shared memory. */
template <int K, int N>
FN void outer_product(int slot, const float *x0, const float *x1, const float *g0,
                      const float *g1) {
    constexpr int QUADS = N / 4, STEP = THREADS / QUADS, FLIGHT = K / STEP < 4 ? K / STEP : 4;
    const int column = threadIdx.x % QUADS * 4, first = threadIdx.x / QUADS;
    float *to = fused_at(slot) + column;
    const bool add = fused_adds(slot);
    const float4 u = ld4(g0 + column), v = ld4(g1 + column);
#pragma unroll 1
    for (int k = first; k < K; k += STEP * FLIGHT) {
        float4 s[FLIGHT] = {};
        if (add) fetch_rows(s, to + k * N, STEP * N);
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            const int i = k + j * STEP;
            add_scaled(s[j], x0[i], u), add_scaled(s[j], x1[i], v);
            st4(to + i * N, s[j]);
        }
    }
}

/* Where the sum over functions is not formed from rows: all of them. pz has one row; the second is
 * zeros. */
static __device__ __noinline__ void outer_products() {
    float *room = work();
    if (threadIdx.x < WIDE) room[AT_END + threadIdx.x] = 0.0f;
    __syncthreads();
    outer_product<WIDE, WIDE>(LATENTG_DWF, room + AT_Z, room + AT_Z, room + AT_GPZ, room + AT_END);
    const float *stack = room + AT_STACK, *before = room + AT_BEFORE;
#pragma unroll 1
    for (int net = 0; net < 2; net++) {
        const int base = LATENTG_MU + net * NETG_SLOTS;
        const float *h0 = room + AT_H0 + net * 2 * NARROW, *h1 = room + AT_H1 + net * 2 * NARROW;
        const float *g0 = room + AT_G0 + net * 2 * HID_ROW, *g1 = room + AT_G1 + net * 2 * HID_ROW;
        const float *g = room + AT_GOUT + net * 2 * OUT_ROW;
        outer_product<NARROW, WIDE>(base + NETG_DW2, h1, h1 + NARROW, g, g + OUT_ROW);
        outer_product<NARROW, NARROW>(base + NETG_DW1, h0, h0 + NARROW, g1, g1 + HID_ROW);
        outer_product<NARROW, NARROW>(base + NETG_DWR, stack, stack + NARROW, g0, g0 + HID_ROW);
        if (fused_at(LATENTG_BEFORE))
            outer_product<WIDE, NARROW>(base + NETG_DWZ, before, before, g0, g0 + HID_ROW);
    }
}

/* The rows they are made of, four numbers a thread. */
FN void leave_rows(float *kept) {
    const float *room = work();
    const int at = threadIdx.x * 4;
    const int row_wide = (at - KEPT_GOUT) / WIDE, row_1 = (at - KEPT_G1) / NARROW;
    const float *from = at < KEPT_GOUT ? room + AT_INPUTS + at
                        : at < KEPT_G1 ? room + AT_GOUT + row_wide * OUT_ROW + at % WIDE
                                       : room + AT_G1 + row_1 * HID_ROW + at % NARROW;
    st4(kept + at, ld4(from));
}
static_assert((int)KEPT_GPZ + WIDE == (int)KEPT_GOUT && (int)AT_END - AT_INPUTS == (int)KEPT_GOUT &&
                  (int)LATENT_KEPT == 4 * (int)THREADS,
              "what is kept lies as in the room");

/* A bias each thread: b2 of both networks, b1, b0. */
FN void leave_biases() {
    const int t = threadIdx.x, part = t / WIDE, wide = part < 2, net = wide ? part : t / NARROW % 2;
    const int slot = wide ? NETG_DB2 : part == 2 ? NETG_DB1 : NETG_DB0;
    const int column = t % (wide ? WIDE : NARROW), pitch = wide ? OUT_ROW : HID_ROW;
    const float *g = work() + (wide ? AT_GOUT : part == 2 ? AT_G1 : AT_G0) + net * 2 * pitch;
    const int at = LATENTG_MU + net * NETG_SLOTS + slot;
    put(fused_at(at) + column, g[column] + g[pitch + column], fused_adds(at));
}

/* ---- the chain ------------------------------------------------------------------------------- */

/* Inputs of the layers, as the weight gradients and the masks read them. */
FN void fetch_inputs() {
    const int at = threadIdx.x * 4, piece = at / (2 * NARROW), rest = at % (2 * NARROW);
    const int slot = piece == 0   ? LATENTG_MU + NETG_H0
                     : piece == 1 ? LATENTG_SIGMA + NETG_H0
                     : piece == 2 ? LATENTG_MU + NETG_H1
                     : piece == 3 ? LATENTG_SIGMA + NETG_H1
                     : piece == 4 ? LATENTG_STACK
                     : piece == 5 ? LATENTG_BEFORE
                     : piece == 6 ? LATENTG_Z
                                  : LATENTG_GPZ;
    if (piece <= 7 && fused_at(slot))
        copy16(shared_at(work() + AT_INPUTS + at), fused_at(slot) + rest, true);
    copy_commit();
}

/* What a lane knows of its dimension d = 8 warp + lane / 4 before the chain starts. */
struct Latent {
    float m0, m1, w0, w1, eps, gz, gkl;
};
FN Latent latent_at(int d) {
    const float *mu = fused_at(LATENTG_MU + NETG_OUT), *raw = fused_at(LATENTG_SIGMA + NETG_OUT);
    Latent v;
    v.m0 = __ldcg(mu + d), v.m1 = __ldcg(mu + WIDE + d);
    v.w0 = __ldcg(raw + d), v.w1 = __ldcg(raw + WIDE + d);
    v.eps = __ldcg(fused_at(LATENTG_EPS) + d);
    v.gz = fused_adds(LATENTG_GZ) ? __ldcg(fused_at(LATENTG_GZ) + d) : 0.0f;
    v.gkl = (float)__ldcg((const double *)fused_at(LATENTG_GKL));
    return v;
}

/* gz from pz, and through the sample and the KL to mu and raw: lane % 4 keeps one of mu[0], mu[1],
 * raw[0], raw[1]. */
FN void to_outputs(const dev_instr &ins, const float4 (&wf)[8], const float4 &gpz,
                   const Latent &v) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, which = lane % 4;
    float sum[8];
#pragma unroll
    for (int j = 0; j < 8; j++) sum[j] = dot4(wf[j], gpz);
    const float gz = v.gz + lane_sum<8, 16, 1>(sum);
    float slope0, slope1;
    const float s0 = sigma_of(ins, v.w0, &slope0), s1 = sigma_of(ins, v.w1, &slope1);
    const KlSlopes k = kl_slopes(v.m0, s0, slope0, v.m1, s1, slope1);
    const float g = which == 0   ? v.gkl * k.mean + gz
                    : which == 1 ? -v.gkl * k.mean
                    : which == 2 ? v.gkl * k.raw0 + gz * v.eps * slope0
                                 : v.gkl * k.raw1;
    work()[AT_GOUT + which * OUT_ROW + warp * 8 + lane / 4] = g;
}

/* The masked gradient of h1, eight numbers of both rows a warp: a row of w2 is a warp wide. */
FN void to_second(const Net &n, const float4 (&w2)[8], const float4 &g0, const float4 &g1) {
    float sum[16];
#pragma unroll
    for (int j = 0; j < 8; j++) sum[j] = dot4(w2[j], g0), sum[8 + j] = dot4(w2[j], g1);
    const float v = lane_sum<16, 16, 1>(sum);
    const int row = n.net * 2 + n.lane / 16, i = n.warp * 8 + n.lane / 2 % 8;
    const float h = work()[AT_H1 + row * NARROW + i];
    if (n.lane % 2 == 0) work()[AT_G1 + row * HID_ROW + i] = h > 0.0f ? v : 0.0f;
}

/* Four rows of a narrow square weight to half a warp: number 8 warp + 4 half + lane / 2 % 4 of row
 * lane / 8 % 2. */
FN float narrow_sum(const float4 (&w)[4], const float4 &g0, const float4 &g1) {
    float sum[8];
#pragma unroll
    for (int j = 0; j < 4; j++) sum[j] = dot4(w[j], g0), sum[4 + j] = dot4(w[j], g1);
    return lane_sum<8, 8, 1>(sum);
}

FN void to_first(const Net &n, const float4 (&w1)[4], const float4 &g0, const float4 &g1) {
    const float v = narrow_sum(w1, g0, g1);
    const int row = n.net * 2 + n.lane / 8 % 2, i = n.warp * 8 + n.half * 4 + n.lane / 2 % 4;
    const float h = work()[AT_H0 + row * NARROW + i];
    if (n.lane % 2 == 0) work()[AT_G0 + row * HID_ROW + i] = h > 0.0f ? v : 0.0f;
}

/* The network's share of gstack and gbefore. */
FN void to_inputs(const Net &n, const float4 (&wr)[4], const float4 (&wz)[8], const float4 &g0,
                  const float4 &g1) {
    const float v = narrow_sum(wr, g0, g1);
    const int row = n.net * 2 + n.lane / 8 % 2, i = n.warp * 8 + n.half * 4 + n.lane / 2 % 4;
    if (n.lane % 2 == 0) work()[AT_GSTACK + row * NARROW + i] = v;
    if (!fused_at(LATENTG_BEFORE)) return;
    const float4 g = plus(g0, g1);
    float sum[8];
#pragma unroll
    for (int j = 0; j < 8; j++) sum[j] = dot4(wz[j], g);
    const float b = lane_sum<8, 8, 1>(sum);
    if (n.lane % 2 == 0)
        work()[AT_GBEFORE + n.net * WIDE + n.warp * 16 + n.half * 8 + n.lane / 2 % 8] = b;
}

/* Both networks together. */
FN void leave_inputs() {
    const float *room = work();
    const int t = threadIdx.x;
    if (t < WIDE)
        put(fused_at(LATENTG_GSTACK) + t, room[AT_GSTACK + t] + room[AT_GSTACK + WIDE + t],
            fused_adds(LATENTG_GSTACK));
    else if (t < 2 * WIDE && fused_at(LATENTG_GBEFORE))
        put(fused_at(LATENTG_GBEFORE) + t - WIDE,
            room[AT_GBEFORE + t - WIDE] + room[AT_GBEFORE + t], fused_adds(LATENTG_GBEFORE));
}

static __device__ __noinline__ void run(const dev_instr &ins) {
    const Net n = net_of_warp();
    const int wide = threadIdx.x / 32 * 8, k = n.warp * 8 + n.half * 4;
    const int k_wide = n.warp * 16 + n.half * 8;
    float4 wf[8], w2[8], gpz[1];
    fetch_rows(gpz, fused_at(LATENTG_GPZ) + n.lane * 4, 0);
    fetch_rows(wf, fused_at(LATENTG_WF) + wide * WIDE + n.lane * 4, WIDE);
    const Latent latent = latent_at(wide + n.lane / 4);
    fetch_rows(w2, n.at(NETG_W2) + n.warp * 8 * WIDE + n.lane * 4, WIDE);
    fetch_inputs();
    to_outputs(ins, wf, gpz[0], latent);
    float4 w1[4], wr[4];
    fetch_rows(w1, n.at(NETG_W1) + k * NARROW + n.column, NARROW);
    fetch_rows(wr, n.at(NETG_WR) + k * NARROW + n.column, NARROW);
    copy_wait<0>();
    __syncthreads();
    const float *rows = work() + AT_GOUT + n.net * 2 * OUT_ROW + n.lane * 4;
    to_second(n, w2, ld4(rows), ld4(rows + OUT_ROW));
    float4 wz[8];
    if (fused_at(LATENTG_BEFORE))
        fetch_rows(wz, n.at(NETG_WZ) + k_wide * NARROW + n.column, NARROW);
    n.sync();
    rows = work() + AT_G1 + n.net * 2 * HID_ROW + n.column;
    to_first(n, w1, ld4(rows), ld4(rows + HID_ROW));
    n.sync();
    rows = work() + AT_G0 + n.net * 2 * HID_ROW + n.column;
    to_inputs(n, wr, wz, ld4(rows), ld4(rows + HID_ROW));
    __syncthreads();
    leave_inputs();
    leave_biases();
    if (fused_at(LATENTG_KEPT))
        leave_rows(fused_at(LATENTG_KEPT));
    else
        outer_products();
}

} // namespace latent_grad_part

#endif
