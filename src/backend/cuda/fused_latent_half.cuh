/* fused_latent_half.cuh: the latent of a transition (FUSED_LATENT in fused.h) with its weights as
 * halves, for tf32 and bf16.
 *
 * Its 131 KB of weights come to shared memory. Eight warps have a network; a warp has eight numbers
 * of a layer (sixteen of the last), the whole of each, so what a layer gives is complete when its
 * warps meet. */
#ifndef MNP_CUDA_FUSED_LATENT_HALF_CUH
#define MNP_CUDA_FUSED_LATENT_HALF_CUH

#include "backend/cuda/few_halves.cuh"
#include "backend/cuda/gauss.cuh"

namespace latent_half_part {

enum { WIDE = 128, NARROW = 64, NET_WARPS = WARPS / 2, NET_THREADS = THREADS / 2 };

/* The working room, in words. Inputs of layers as pairs (few_halves.cuh), a copy of stack and
 * before for each network; mu and raw (net, row, 128), noise, KL (warp); then weights, rows 16
 * bytes longer than they are, so that eight of a column lie in different banks. */
enum { ROW = NARROW + 16, LONG = WIDE + 16, PITCH_NARROW = NARROW / 2 + 4, PITCH = WIDE / 2 + 4 };
enum {
    AT_STACK = 0,                   /* (net, row, 64)  */
    AT_BEFORE = AT_STACK + 4 * ROW, /* (net, 128)      */
    AT_H0 = AT_BEFORE + 2 * LONG,   /* (net, row, 64)  */
    AT_H1 = AT_H0 + 4 * ROW,        /* (net, row, 64)  */
    AT_Z = AT_H1 + 4 * ROW,         /* (128)           */
    AT_OUT = AT_Z + LONG,           /* (net, row, 128) */
    AT_EPS = AT_OUT + 4 * WIDE,
    AT_KL = AT_EPS + WIDE,
    AT_WR = AT_KL + 2 * WARPS, /* (net, 64, 64)   */
    AT_WZ = AT_WR + 2 * NARROW * PITCH_NARROW,
    AT_W1 = AT_WZ + 2 * WIDE * PITCH_NARROW,
    AT_W2 = AT_W1 + 2 * NARROW * PITCH_NARROW,
    AT_WF = AT_W2 + 2 * NARROW * PITCH,
    AT_END = AT_WF + WIDE * PITCH
};
static_assert((int)AT_END <= (int)WORK_WORDS && AT_KL % 2 == 0 && AT_WR % 4 == 0,
              "room of the latent");
static_assert((int)ROW == PAIRS_PITCH<NARROW> && (int)LONG == PAIRS_PITCH<WIDE>, "rows of pairs");

/* One of the two networks, as a warp of it sees it. Eight lanes have two numbers each, `column` and
 * the next, of their row in what the warp computes. */
struct Net {
    int base, net, warp, lane, row, column;
    MEMBER float *at(int k) const { return fused_at(base + k); }
    MEMBER int rank() const { return warp * 32 + lane; }
    MEMBER bool has_row() const { return lane < 8; }
    MEMBER void sync() const { barrier(net + 1, NET_THREADS); }
};
FN Net net_of_warp() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, net = warp / NET_WARPS;
    return {LATENT_MU + net * NET_SLOTS, net, warp % NET_WARPS, lane, lane / 4 % 2, lane % 4 * 2};
}

/* A weight (K, N), by COUNT threads that take as many pieces of 16 bytes each. */
template <int K, int N, int COUNT> FN void stage(float *room, const float *weight, int rank) {
    constexpr int PIECES = N / 8, STEP = COUNT / PIECES; /* of a row; rows at a time */
    const unsigned row = (unsigned)rank / PIECES, column = (unsigned)rank % PIECES;
    const uint32_t to = shared_at(room + row * (N / 2 + 4) + column * 4);
#pragma unroll
    for (int k = 0; k < K / STEP; k++)
        copy16(to + k * STEP * (N / 2 + 4) * 4, weight + (k * COUNT + rank) * 4, true);
}

/* Stack and before, as pairs: one pair a thread of four warps. */
FN float2 fetch_input(const Net &n) {
    const float *from = fused_at(n.warp < 2 ? LATENT_STACK : LATENT_BEFORE);
    if (n.warp >= 4 || !from) return make_float2(0, 0);
    return __ldcg((const float2 *)from + n.rank() % 64);
}
FN void leave_input(const Net &n, float2 v) {
    const int i = n.rank() % 64 * 2;
    if (n.warp < 2)
        leave_pair(work() + AT_STACK + (n.net * 2 + i / NARROW) * ROW + pair_by_columns(i % NARROW),
                   v);
    else if (n.warp < 4)
        leave_pair(work() + AT_BEFORE + n.net * LONG + pair_by_columns(i), v);
}

/* Four warps draw the noise, a lane each; one on every quarter of the multiprocessor, none that
 * has inputs to fetch. */
FN void draw_noise(const dev_instr &ins) {
    const int warp = threadIdx.x / 32, d = threadIdx.x % 128;
    if (warp / 2 != 2 && warp / 2 != 7) return;
    const float eps = latent_noise(frame(), ins, 0, d);
    work()[AT_EPS + d] = eps;
    fused_at(LATENT_EPS)[d] = eps;
}

/* c += row w, eight columns of w (K, .) from `column` on. Everything is read before it is
 * multiplied. */
template <int K>
FN void multiply(float (&c)[2][4], const float *row, bool mine, const float *w, int pitch,
                 int column) {
    const uint32_t at = shared_at(w + threadIdx.x % 32 * pitch + column / 2);
    uint32_t b[K / 32][4];
    LeftRow<K / 16> a;
    a.load(row, mine);
#pragma unroll
    for (int k = 0; k < K / 32; k++) load_transposed(at + k * 32 * pitch * 4, b[k]);
#pragma unroll
    for (int k = 0; k < K / 32; k++) {
        a.add(c[0], 2 * k, b[k][0], b[k][1]);
        a.add(c[1], 2 * k + 1, b[k][2], b[k][3]);
    }
}

/* relu(v + bias): to the next layer, and kept. */
FN void leave_hidden(const Net &n, float2 v, float2 bias, int room, int slot) {
    const int i = n.warp * 8 + n.column;
    v.x = relu_of(v.x + bias.x), v.y = relu_of(v.y + bias.y);
    if (!n.has_row()) return;
    leave_pair(work() + room + (n.net * 2 + n.row) * ROW + pair_by_columns(i), v);
    *(float2 *)(n.at(slot) + n.row * NARROW + i) = v;
}

FN void first_layer(const Net &n, float2 bias) {
    float c[2][4] = {};
    const float *room = work();
    if (fused_at(LATENT_BEFORE))
        multiply<WIDE>(c, room + AT_BEFORE + n.net * LONG, n.has_row(),
                       room + AT_WZ + n.net * WIDE * PITCH_NARROW, PITCH_NARROW, n.warp * 8);
    multiply<NARROW>(c, room + AT_STACK + (n.net * 2 + n.row) * ROW, n.has_row(),
                     room + AT_WR + n.net * NARROW * PITCH_NARROW, PITCH_NARROW, n.warp * 8);
    leave_hidden(n, result_of(c), bias, AT_H0, NET_H0);
}

FN void second_layer(const Net &n, float2 bias) {
    float c[2][4] = {};
    multiply<NARROW>(c, work() + AT_H0 + (n.net * 2 + n.row) * ROW, n.has_row(),
                     work() + AT_W1 + n.net * NARROW * PITCH_NARROW, PITCH_NARROW, n.warp * 8);
    leave_hidden(n, result_of(c), bias, AT_H1, NET_H1);
}

/* Sixteen columns; mu or raw, for both networks to see. */
FN void last_layer(const Net &n, const float2 (&bias)[2]) {
    float c[2][4] = {};
    const float *w = work() + AT_W2 + n.net * NARROW * PITCH + n.lane % 16 * PITCH;
    const uint32_t at = shared_at(w + n.warp * 8 + n.lane / 16 * 4);
    uint32_t b[NARROW / 16][4];
    LeftRow<NARROW / 16> a;
    a.load(work() + AT_H1 + (n.net * 2 + n.row) * ROW, n.has_row());
#pragma unroll
    for (int k = 0; k < NARROW / 16; k++) load_transposed(at + k * 16 * PITCH * 4, b[k]);
#pragma unroll
    for (int k = 0; k < NARROW / 16; k++) {
        a.add(c[0], k, b[k][0], b[k][1]);
        a.add(c[1], k, b[k][2], b[k][3]);
    }
    if (!n.has_row()) return;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        const float2 v = result_of(c[j]);
        const int at = n.row * WIDE + n.warp * 16 + j * 8 + n.column;
        const float2 sum = make_float2(v.x + bias[j].x, v.y + bias[j].y);
        *(float2 *)(work() + AT_OUT + n.net * 2 * WIDE + at) = sum;
        *(float2 *)(n.at(NET_OUT) + at) = sum;
    }
}

/* Eight dimensions a warp, four lanes a dimension: mu and raw of both rows; z as pairs, and the
 * warp's part of the KL. */
FN void sample(const dev_instr &ins) {
    const int lane = threadIdx.x % 32, which = lane / 8, d = threadIdx.x / 32 * 8 + lane % 8;
    const float v = work()[AT_OUT + which * WIDE + d], eps = work()[AT_EPS + d];
    float slope;
    const float sigma = sigma_of(ins, v, &slope); /* of use where v is a raw number */
    const float m0 = __shfl_sync(~0u, v, lane % 8), m1 = __shfl_sync(~0u, v, lane % 8 + 8);
    const float s0 = __shfl_sync(~0u, sigma, lane % 8 + 16);
    const float s1 = __shfl_sync(~0u, sigma, lane % 8 + 24);
    const float z = m0 + s0 * eps, next = __shfl_xor_sync(~0u, z, 1);
    if (which == 0 && lane % 2 == 0)
        leave_pair(work() + AT_Z + pair_by_columns(d), make_float2(z, next));
    if (which == 1) fused_at(LATENT_Z)[d] = z;
    double kl = (double)kl_of(m0, s0, m1, s1);
    for (int k = 4; k > 0; k /= 2) kl += __shfl_xor_sync(~0u, kl, k);
    if (lane == 0) ((double *)(work() + AT_KL))[threadIdx.x / 32] = kl;
}

/* pz = z wf, eight columns a warp; the KL by one thread, whose klbefore came long ago. */
FN void finish(const Net &n, double before) {
    if (threadIdx.x == THREADS - 1) {
        const double *parts = (const double *)(work() + AT_KL);
        double kl[4] = {0, 0, 0, 0};
#pragma unroll
        for (int p = 0; p < WARPS; p++) kl[p % 4] += parts[p];
        *(double *)fused_at(LATENT_KL) = before + ((kl[0] + kl[1]) + (kl[2] + kl[3]));
    }
    __syncwarp();
    const int column = threadIdx.x / 32 * 8;
    float c[2][4] = {};
    multiply<WIDE>(c, work() + AT_Z, n.lane < 4, work() + AT_WF, PITCH, column);
    if (n.lane < 4) *(float2 *)(fused_at(LATENT_PZ) + column + n.column) = result_of(c);
}

FN float2 bias_of(const float *b, int at) {
    return __ldcg((const float2 *)(b + at));
}

/* A weight is asked for two layers ahead: copies are accepted one after the other, and whoever asks
 * for all of them does nothing else until then. */
static __device__ __noinline__ void run(const dev_instr &ins) {
    const Net n = net_of_warp();
    const int own = n.warp * 8 + n.column;
    float *room = work();
    const float2 input = fetch_input(n);
    stage<NARROW, NARROW, NET_THREADS>(room + AT_WR + n.net * NARROW * PITCH_NARROW, n.at(NET_WR),
                                       n.rank());
    if (fused_at(LATENT_BEFORE))
        stage<WIDE, NARROW, NET_THREADS>(room + AT_WZ + n.net * WIDE * PITCH_NARROW, n.at(NET_WZ),
                                         n.rank());
    copy_commit();
    stage<NARROW, NARROW, NET_THREADS>(room + AT_W1 + n.net * NARROW * PITCH_NARROW, n.at(NET_W1),
                                       n.rank());
    copy_commit();
    const float2 b0 = bias_of(n.at(NET_B0), own), b1 = bias_of(n.at(NET_B1), own);
    const float2 b2[2] = {bias_of(n.at(NET_B2), n.warp * 16 + n.column),
                          bias_of(n.at(NET_B2), n.warp * 16 + 8 + n.column)};
    const double *sum = (const double *)fused_at(LATENT_KLBEFORE);
    const double kl_before = sum && threadIdx.x == THREADS - 1 ? __ldcg(sum) : 0.0;
    leave_input(n, input);
    draw_noise(ins);
    copy_wait<1>();
    n.sync();
    stage<NARROW, WIDE, NET_THREADS>(room + AT_W2 + n.net * NARROW * PITCH, n.at(NET_W2), n.rank());
    copy_commit();
    first_layer(n, b0);
    copy_wait<1>();
    n.sync();
    stage<WIDE, WIDE, THREADS>(room + AT_WF, fused_at(LATENT_WF), threadIdx.x);
    copy_commit();
    second_layer(n, b1);
    copy_wait<1>();
    n.sync();
    last_layer(n, b2);
    __syncthreads();
    sample(ins);
    copy_wait<0>();
    __syncthreads();
    finish(n, kl_before);
}

} // namespace latent_half_part

#endif
