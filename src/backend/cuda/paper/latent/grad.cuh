/* grad.cuh: the reverse pass of a transition's latent (FUSED_LATENT_GRAD in paper/fused.h),
 * in fp32; grad16.cuh has it with weights as fp16.
 *
 * Eight warps have a network. Every thread asks for its share of all weights first, as in the
 * forward pass; the gradient to a layer's input is one sum along each row, added up across lanes,
 * so a layer takes one barrier. Weight gradients are outer products of two rows, which are left to
 * the sum over functions (fuse/saved_rows.h) where that can be. */
#ifndef MNP_CUDA_PAPER_LATENT_GRAD_CUH
#define MNP_CUDA_PAPER_LATENT_GRAD_CUH

#include "backend/cuda/device/gauss.cuh"
#include "backend/cuda/device/lanes.cuh"

namespace latent_grad_part {

static_assert(FUSED_D_R == 64 && FUSED_D_Z == 128 && FUSED_HEAD_HIDDEN == 64,
              "numbers in this part");

enum { WIDE = FUSED_D_Z, NARROW = FUSED_HEAD_HIDDEN, NET_WARPS = WARPS / 2 };

/* The working memory, in words. It begins with what is saved, as it is saved (paper/fused.h):
 * inputs of the layers, gradients of out (net, row, 128), h1 and h0 (net, row, 64). Then each
 * network's share of gstack (row, 64) and gbefore (128), zeros, weights. */
enum {
    AT_H0 = SAVED_H0, /* (net, row, 64)  */
    AT_H1 = SAVED_H1,
    AT_STACK = SAVED_STACK, /* (row, 64) */
    AT_BEFORE = SAVED_BEFORE,
    AT_Z = SAVED_Z,
    AT_GPZ = SAVED_GPZ,
    AT_GOUT = SAVED_GOUT,
    AT_G1 = SAVED_G1,
    AT_G0 = SAVED_G0,
    AT_GSTACK = LATENT_SAVED,
    AT_GBEFORE = AT_GSTACK + 4 * NARROW,
    AT_ZEROS = AT_GBEFORE + 2 * WIDE,
    AT_WEIGHTS = AT_ZEROS + WIDE, /* staged: 16 bytes of each row a thread */
    TURN = 4 * THREADS * 4,       /* eight rows of 64 a warp */
    TURNS = 4,                    /* w1, wr, wz, wz */
    AT_LAST = AT_WEIGHTS + TURNS * TURN
};
static_assert((int)AT_LAST <= (int)WORK_WORDS && (int)LATENT_SAVED == 4 * (int)THREADS,
              "shared memory of the latent");

/* Eight lanes share a row of a weight and take every eighth four columns of it; a warp has four
 * rows at a time. */
struct Net {
    int base, net, warp, lane, row, column;
    MEMBER float *at(int k) const { return fused_at(base + k); }
    MEMBER void sync() const { barrier(net + 1, THREADS / 2); }
};

FN Net net_of_warp() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, net = warp / NET_WARPS;
    return {LATENTG_MU + net * NETG_OPERANDS, net, warp % NET_WARPS, lane, lane / 8, lane % 8 * 4};
}

/* Rows first + 4 i + n.row of a weight of N columns. */
template <int N, int ROWS> struct Held { float4 w[ROWS][N / 32]; };

template <int N, int ROWS>
FN void fetch(const Net &n, Held<N, ROWS> &h, const float *weight, int first) {
    const float *from = weight + (first + n.row) * N + n.column;
#pragma unroll
    for (int i = 0; i < ROWS; i++) read_rows(h.w[i], from + i * 4 * N, 32);
}
/* By way of shared memory. */
template <int N, int ROWS> FN void stage(const Net &n, float *buf, const float *weight, int first) {
    const float *from = weight + (first + n.row) * N + n.column;
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        stage_rows<N / 32>(buf + i * (N / 32) * THREADS * 4, from + i * 4 * N, 32);
}
template <int N, int ROWS> FN void staged(Held<N, ROWS> &h, const float *buf) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) staged_rows(h.w[i], buf + i * (N / 32) * THREADS * 4);
}

/* The lane's columns of a row in shared memory. */
template <int N> FN void columns_of(const Net &n, float4 (&to)[N / 32], const float *row) {
#pragma unroll
    for (int q = 0; q < N / 32; q++) to[q] = ld4(row + n.column + q * 32);
}

/* The lane's part of the sums along the rows. */
template <int N, int ROWS>
FN void add_rows(const Held<N, ROWS> &h, const float4 (&g)[N / 32], float *sum) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        sum[i] = 0.0f;
#pragma unroll
        for (int q = 0; q < N / 32; q++) {
            const float4 w = h.w[i][q];
            sum[i] += w.x * g[q].x, sum[i] += w.y * g[q].y;
            sum[i] += w.z * g[q].z, sum[i] += w.w * g[q].w;
        }
    }
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
        if (add) read_rows(s, to + k * N, STEP * N);
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
    float *buf = work();
    if (threadIdx.x < WIDE) buf[AT_ZEROS + threadIdx.x] = 0.0f;
    __syncthreads();
    outer_product<WIDE, WIDE>(LATENTG_DWF, buf + AT_Z, buf + AT_Z, buf + AT_GPZ, buf + AT_ZEROS);
    const float *stack = buf + AT_STACK, *before = buf + AT_BEFORE;
#pragma unroll 1
    for (int net = 0; net < 2; net++) {
        const int base = LATENTG_MU + net * NETG_OPERANDS;
        const float *h0 = buf + AT_H0 + net * 2 * NARROW, *h1 = buf + AT_H1 + net * 2 * NARROW;
        const float *g0 = buf + AT_G0 + net * 2 * NARROW, *g1 = buf + AT_G1 + net * 2 * NARROW;
        const float *g = buf + AT_GOUT + net * 2 * WIDE;
        outer_product<NARROW, WIDE>(base + NETG_DW2, h1, h1 + NARROW, g, g + WIDE);
        outer_product<NARROW, NARROW>(base + NETG_DW1, h0, h0 + NARROW, g1, g1 + NARROW);
        outer_product<NARROW, NARROW>(base + NETG_DWR, stack, stack + NARROW, g0, g0 + NARROW);
        if (fused_at(LATENTG_BEFORE))
            outer_product<WIDE, NARROW>(base + NETG_DWZ, before, before, g0, g0 + NARROW);
    }
}

/* A bias each thread: b2 of both networks, b1, b0. */
FN void leave_biases() {
    const int t = threadIdx.x, wide = t < 2 * WIDE, width = wide ? WIDE : NARROW;
    const int which = wide ? t / WIDE : t / NARROW - 4, column = t & (width - 1);
    const int slot = wide ? NETG_DB2 : which < 2 ? NETG_DB1 : NETG_DB0;
    const int at = LATENTG_MU + which % 2 * NETG_OPERANDS + slot;
    const float *g = work() + (wide ? AT_GOUT : AT_G1) + which * 2 * width + column;
    put(fused_at(at) + column, g[0] + g[width], fused_adds(at));
}
static_assert((int)AT_G0 == (int)AT_G1 + 4 * NARROW, "g0 lies after g1");

/* ---- the chain ------------------------------------------------------------------------------- */

/* Inputs of the layers, as the weight gradients and the masks read them: 128 numbers a warp. */
FN void fetch_inputs() {
    const int piece = threadIdx.x / 32, at = threadIdx.x % 32 * 4;
    const int net = LATENTG_MU + piece % 2 * NETG_OPERANDS;
    const int slot = piece < 4    ? net + (piece < 2 ? NETG_H0 : NETG_H1)
                     : piece < 6  ? LATENTG_STACK + piece - 4
                     : piece == 6 ? LATENTG_Z
                                  : LATENTG_GPZ;
    const float *from = fused_at(slot);
    if (piece < 8 && from) copy16(shared_at(work() + AT_H0 + piece * WIDE + at), from + at, true);
    copy_commit();
}
static_assert((int)LATENTG_BEFORE == LATENTG_STACK + 1 && (int)AT_GPZ == AT_H0 + 7 * WIDE,
              "inputs in order");

/* What a lane reads of its dimension. */
struct Latent {
    float m0, m1, w0, w1, eps, gz;
    double gkl;
};
FN int dimension_of(int lane) {
    return threadIdx.x / 32 * 8 + lane / 4 % 2 * 4 + lane / 8;
}
FN Latent latent_of(int d) {
    const float *mu = fused_at(LATENTG_MU + NETG_OUT), *raw = fused_at(LATENTG_SIGMA + NETG_OUT);
    Latent v;
    v.m0 = __ldcg(mu + d), v.m1 = __ldcg(mu + WIDE + d);
    v.w0 = __ldcg(raw + d), v.w1 = __ldcg(raw + WIDE + d);
    v.eps = __ldcg(fused_at(LATENTG_EPS) + d);
    v.gkl = __ldcg((const double *)fused_at(LATENTG_GKL));
    v.gz = fused_adds(LATENTG_GZ) ? __ldcg(fused_at(LATENTG_GZ) + d) : 0.0f;
    return v;
}

/* The KL's gradient to one of mu[0], mu[1], raw[0], raw[1] (lane % 4), and gz's weight in it. */
struct Share {
    float own, of_gz;
};
FN Share share_of(const dev_instr &ins, const Latent &v, int which) {
    float slope0, slope1;
    const float s0 = sigma_of(ins, v.w0, &slope0), s1 = sigma_of(ins, v.w1, &slope1);
    const KlSlopes k = kl_slopes(v.m0, s0, slope0, v.m1, s1, slope1);
    const float g = which == 0 ? k.mean : which == 1 ? -k.mean : which == 2 ? k.raw0 : k.raw1;
    return {(float)v.gkl * g, which == 0 ? 1.0f : which == 2 ? v.eps * slope0 : 0.0f};
}

/* The KLs of the transitions before are in the same sum. */
FN void hand_on(double gkl) {
    double *to = (double *)fused_at(LATENTG_GKLBEFORE);
    if (to && threadIdx.x == 0) put(to, gkl, fused_adds(LATENTG_GKLBEFORE));
}

/* gz from pz, and through the sample and the KL to mu and raw. */
FN void to_outputs(const dev_instr &ins, const Net &n, const Held<WIDE, 2> &wf,
                   const float4 (&gpz)[4], const Latent &v) {
    const Share share = share_of(ins, v, n.lane % 4);
    float sum[2];
    add_rows(wf, gpz, sum);
    const float gz = v.gz + lane_sum<2, 4, 1>(sum);
    work()[AT_GOUT + n.lane % 4 * WIDE + dimension_of(n.lane)] = share.own + share.of_gz * gz;
}

/* Both rows through eight rows of a weight: the lane has number 8 warp + eighth_of() of row
 * lane / 4 % 2, and so has its neighbour. */
FN int eighth_of(const Net &n) {
    return n.warp * 8 + n.lane / 2 % 2 * 4 + n.row;
}
template <int N> FN float both_rows(const Net &n, const Held<N, 2> &w, const float *g) {
    float sum[4];
    float4 row[N / 32];
    columns_of<N>(n, row, g);
    add_rows(w, row, sum);
    columns_of<N>(n, row, g + N);
    add_rows(w, row, sum + 2);
    return lane_sum<4, 4, 1>(sum);
}

/* The gradient of h1 after its ReLU. */
FN void leave_h1(const Net &n, float v) {
    const int at = n.net * 2 * NARROW + n.lane / 4 % 2 * NARROW + eighth_of(n);
    if (n.lane % 2 == 0) work()[AT_G1 + at] = work()[AT_H1 + at] > 0.0f ? v : 0.0f;
}

/* The layers of 64 columns, by eight rows of a weight: w1 gives the gradient of h0, after its
 * ReLU, the others give the network's share of gstack and, both rows together, of gbefore. */
FN void to_inputs(const Net &n) {
    const int turns = fused_at(LATENTG_BEFORE) ? TURNS : 2, net = n.net * 2 * NARROW;
    Held<NARROW, 2> w; /* read before the barrier */
    staged(w, work() + AT_WEIGHTS);
    n.sync();
#pragma unroll 1
    for (int turn = 0; turn < turns; turn++) {
        float v = both_rows(n, w, work() + (turn == 0 ? AT_G1 : AT_G0) + net);
        const int row = n.lane / 4 % 2, at = net + row * NARROW + eighth_of(n);
        float *to = work() + (turn == 0 ? AT_G0 : AT_GSTACK) + at;
        if (turn == 0 && !(work()[AT_H0 + at] > 0.0f)) v = 0.0f;
        if (turn > 1) {
            v += __shfl_xor_sync(~0u, v, 4);
            to = work() + AT_GBEFORE + net + n.warp * 8 + (turn - 2) * 8 + eighth_of(n);
        }
        if (n.lane % 2 == 0 && (turn < 2 || row == 0)) *to = v;
        staged(w, work() + AT_WEIGHTS + (turn + 1) % TURNS * TURN);
        if (turn == 0) n.sync();
    }
}

/* Both networks together. */
FN void leave_inputs() {
    const float *buf = work();
    const int t = threadIdx.x;
    if (t < WIDE)
        put(fused_at(LATENTG_GSTACK) + t, buf[AT_GSTACK + t] + buf[AT_GSTACK + WIDE + t],
            fused_adds(LATENTG_GSTACK));
    else if (t < 2 * WIDE && fused_at(LATENTG_GBEFORE))
        put(fused_at(LATENTG_GBEFORE) + t - WIDE, buf[AT_GBEFORE + t - WIDE] + buf[AT_GBEFORE + t],
            fused_adds(LATENTG_GBEFORE));
}

/* Everything that is in the buffer now. */
FN void leave_all() {
    leave_inputs();
    leave_biases();
    if (float *saved = fused_at(LATENTG_SAVED))
        st4(saved + threadIdx.x * 4, ld4(work() + threadIdx.x * 4));
    else
        outer_products();
}

static __device__ __noinline__ void run(const dev_instr &ins) {
    const Net n = net_of_warp();
    const int first = n.warp * 8;
    float *buf = work();
    Held<WIDE, 2> wf, w2;
    float4 gpz[4];
    read_rows(gpz, fused_at(LATENTG_GPZ) + n.column, 32);
    const Latent latent = latent_of(dimension_of(n.lane));
    fetch(n, wf, fused_at(LATENTG_WF), threadIdx.x / 32 * 8);
    fetch_inputs();
    fetch(n, w2, n.at(NETG_W2), first);
    __syncwarp(); /* in this order */
    stage<NARROW, 2>(n, buf + AT_WEIGHTS, n.at(NETG_W1), first);
    stage<NARROW, 2>(n, buf + AT_WEIGHTS + TURN, n.at(NETG_WR), first);
    if (fused_at(LATENTG_BEFORE))
        stage<NARROW, 4>(n, buf + AT_WEIGHTS + 2 * TURN, n.at(NETG_WZ), n.warp * 16);
    copy_commit();
    hand_on(latent.gkl);
    to_outputs(ins, n, wf, gpz, latent);
    copy_wait<1>();
    __syncthreads();
    leave_h1(n, both_rows(n, w2, buf + AT_GOUT + n.net * 2 * WIDE));
    copy_wait<0>();
    to_inputs(n);
    __syncthreads();
    leave_all();
}

} // namespace latent_grad_part

#endif
