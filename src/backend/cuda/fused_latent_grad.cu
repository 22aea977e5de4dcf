/* fused_latent_grad.cu: the reverse pass of a transition's latent (FUSED_LATENT_GRAD in fused.h).
 *
 * Eight warps have a network. A warp keeps rows of the weights in registers, asked for a layer or
 * two ahead; the gradient to a layer's input is one sum along each row, added up across lanes, so a
 * layer takes one barrier. Weight gradients are outer products of two rows: a thread stores those
 * of the places it holds the weights of, behind the layer's sums and while the next weights come.
 */
#include "backend/cuda/fused.cuh"
#include "backend/cuda/gauss.cuh"
#include "backend/cuda/lanes.cuh"

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
    AT_END = AT_BEFORE + WIDE
};
static_assert((int)AT_END <= (int)WORK_WORDS && AT_INPUTS % 4 == 0, "room of the latent");

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

/* Four rows of an outer product, `ld` apart: x0 g0 + x1 g1 at four columns. */
FN void outer_four(float *to, int ld, bool add, const float4 &x0, const float4 &g0,
                   const float4 &x1, const float4 &g1) {
    float u[4], v[4];
    float4 s[4];
    spread4(u, x0), spread4(v, x1);
#pragma unroll
    for (int j = 0; j < 4; j++) s[j] = make_float4(0, 0, 0, 0);
    if (add) fetch_rows(s, to, ld);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        add_scaled(s[j], u[j], g0), add_scaled(s[j], v[j], g1);
        __stcg((float4 *)(to + j * ld), s[j]);
    }
}

/* COUNT rows from `from` on; x lies in shared memory. */
template <int COUNT>
FN void outer_rows(int slot, int from, int ld, const float *x0, const float4 &g0, const float *x1,
                   const float4 &g1) {
    float *to = fused_at(slot) + from;
    const bool add = fused_adds(slot);
#pragma unroll
    for (int i = 0; i < COUNT; i += 4)
        outer_four(to + i * ld, ld, add, ld4(x0 + i), g0, ld4(x1 + i), g1);
}

FN void bias_grad(int slot, int column, const float4 &g0, const float4 &g1) {
    float4 *to = (float4 *)(fused_at(slot) + column);
    float4 sum = plus(g0, g1);
    if (fused_adds(slot)) sum = plus(__ldcg(to), sum);
    *to = sum;
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
                                  : LATENTG_BEFORE;
    if (piece <= 5 && fused_at(slot))
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

__device__ void fused_latent_grad(const dev_instr &ins) {
    const Net n = net_of_warp();
    const int wide = threadIdx.x / 32 * 8, k = n.warp * 8 + n.half * 4;
    const int k_wide = n.warp * 16 + n.half * 8;
    float4 wf[8], w2[8], gpz[1], z[2];
    fetch_rows(gpz, fused_at(LATENTG_GPZ) + n.lane * 4, 0);
    fetch_rows(wf, fused_at(LATENTG_WF) + wide * WIDE + n.lane * 4, WIDE);
    const Latent latent = latent_at(wide + n.lane / 4);
    fetch_rows(z, fused_at(LATENTG_Z) + wide, 4);
    fetch_rows(w2, n.at(NETG_W2) + n.warp * 8 * WIDE + n.lane * 4, WIDE);
    fetch_inputs();
    float *dwf = fused_at(LATENTG_DWF) + wide * WIDE + n.lane * 4;
    const float4 none = make_float4(0, 0, 0, 0);
    outer_four(dwf, WIDE, fused_adds(LATENTG_DWF), z[0], gpz[0], none, none);
    outer_four(dwf + 4 * WIDE, WIDE, fused_adds(LATENTG_DWF), z[1], gpz[0], none, none);
    to_outputs(ins, wf, gpz[0], latent);
    float4 w1[4], wr[4];
    fetch_rows(w1, n.at(NETG_W1) + k * NARROW + n.column, NARROW);
    fetch_rows(wr, n.at(NETG_WR) + k * NARROW + n.column, NARROW);
    copy_wait<0>();
    __syncthreads();
    float *room = work(), *rows = room + AT_GOUT + n.net * 2 * OUT_ROW + n.lane * 4;
    float4 g0 = ld4(rows), g1 = ld4(rows + OUT_ROW);
    to_second(n, w2, g0, g1);
    float4 wz[8];
    if (fused_at(LATENTG_BEFORE))
        fetch_rows(wz, n.at(NETG_WZ) + k_wide * NARROW + n.column, NARROW);
    n.sync();
    float *h1 = room + AT_H1 + n.net * 2 * NARROW, *h0 = room + AT_H0 + n.net * 2 * NARROW;
    outer_rows<8>(n.base + NETG_DW2, n.warp * 8 * WIDE + n.lane * 4, WIDE, h1 + n.warp * 8, g0,
                  h1 + NARROW + n.warp * 8, g1);
    if (n.warp == 0) bias_grad(n.base + NETG_DB2, n.lane * 4, g0, g1);
    rows = room + AT_G1 + n.net * 2 * HID_ROW + n.column;
    g0 = ld4(rows), g1 = ld4(rows + HID_ROW);
    to_first(n, w1, g0, g1);
    n.sync();
    outer_rows<4>(n.base + NETG_DW1, k * NARROW + n.column, NARROW, h0 + k, g0, h0 + NARROW + k,
                  g1);
    if (n.warp == 0 && n.half == 0) bias_grad(n.base + NETG_DB1, n.column, g0, g1);
    rows = room + AT_G0 + n.net * 2 * HID_ROW + n.column;
    g0 = ld4(rows), g1 = ld4(rows + HID_ROW);
    to_inputs(n, wr, wz, g0, g1);
    __syncthreads();
    leave_inputs();
    const float *stack = room + AT_STACK + k;
    outer_rows<4>(n.base + NETG_DWR, k * NARROW + n.column, NARROW, stack, g0, stack + NARROW, g1);
    if (n.warp == 0 && n.half == 0) bias_grad(n.base + NETG_DB0, n.column, g0, g1);
    if (!fused_at(LATENTG_BEFORE)) return;
    const float *before = room + AT_BEFORE + k_wide;
    outer_rows<8>(n.base + NETG_DWZ, k_wide * NARROW + n.column, NARROW, before, g0, before, g1);
}
