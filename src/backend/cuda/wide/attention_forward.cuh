/* attention_forward.cuh: wide attention, forward. A unit's own rows are queries; keys and values
 * pass by, and a warp keeps a running softmax of its queries. */
#ifndef MNP_CUDA_WIDE_ATTENTION_FORWARD_CUH
#define MNP_CUDA_WIDE_ATTENTION_FORWARD_CUH

#include "backend/cuda/wide/attention_tiles.cuh"

/* Of a warp's 16 M queries, two rows a thread of each 16: a product near the largest so far, the
 * sum of weights over this thread's keys (in tf32 all of them lifted), the weighted values. */
template <int DEPTH, int M> struct Softmax { float top[M][2], sum[M][2], o[M][DEPTH / 8][4]; };

/* Queries stay in registers where these suffice. */
template <int MATH, int DEPTH, int M>
using Queries = HeldRows<DEPTH, M, MATH != DEV_FP32 || DEPTH <= 32>;

template <int DEPTH, int M> FN void softmax_begin(Softmax<DEPTH, M> &r) {
#pragma unroll
    for (int m = 0; m < M; m++) {
#pragma unroll
        for (int i = 0; i < 2; i++) r.top[m][i] = -INFINITY, r.sum[m][i] = 0.0f;
#pragma unroll
        for (int j = 0; j < DEPTH / 2; j++) r.o[m][j >> 2][j & 3] = 0.0f;
    }
}

template <int DEPTH, int M> FN void softmax_scale(Softmax<DEPTH, M> &r, int m, int i, float keep) {
    r.sum[m][i] *= keep;
#pragma unroll
    for (int c = 0; c < DEPTH / 8; c++) r.o[m][c][2 * i] *= keep, r.o[m][c][2 * i + 1] *= keep;
}

/* p (16 M, 32): products of the queries q with 32 keys, of which `left` exist. */
template <int MATH, int DEPTH, int M>
FN void query_products(float p[M][4][4], const Queries<MATH, DEPTH, M> &held, const float *q,
                       const float *k, int left) {
#pragma unroll
    for (int j = 0; j < 16 * M; j++) p[j >> 4][j >> 2 & 3][j & 3] = 0.0f;
#pragma unroll
    for (int c = 0; c < DEPTH / 16; c++) {
        FragA<MATH> a[M];
        own_left<MATH>(a, held, q, c);
#pragma unroll
        for (int n = 0; n < 4; n++) {
            FragB<MATH> b;
            load_across<MATH>(b, k + n * 8 * PITCH<DEPTH> + c * 16);
#pragma unroll
            for (int m = 0; m < M; m++) mma<MATH>(p[m][n], a[m], b);
        }
    }
    if (left >= 32) return;
#pragma unroll
    for (int j = 0; j < 16 * M; j++)
        if ((j >> 2 & 3) * 8 + (int)threadIdx.x % 4 * 2 + (j & 1) >= left)
            p[j >> 4][j >> 2 & 3][j & 3] = -INFINITY;
}

/* Products become weights, 2^(scale (p - top)). `top` follows the largest product only when that
 * is far above it, which is seldom after the first keys: weights of up to 2^SLACK are as good as
 * those of up to 1, and what was summed need not be scaled. All lanes of a row have the same. */
constexpr float SLACK = 8.0f;
template <int MATH, int DEPTH, int M>
FN void products_to_weights(Softmax<DEPTH, M> &r, float p[M][4][4], float scale) {
    const float slack = __fdividef(SLACK, scale);
    float most[M][2];
    bool far = false;
#pragma unroll
    for (int k = 0; k < 2 * M; k++) {
        const int m = k >> 1, i = k & 1;
        most[m][i] = p[m][0][2 * i];
#pragma unroll
        for (int j = 1; j < 8; j++) most[m][i] = fmaxf(most[m][i], p[m][j >> 1][2 * i + (j & 1)]);
        far |= most[m][i] > r.top[m][i] + slack;
    }
    if (__any_sync(~0u, far))
#pragma unroll
        for (int k = 0; k < 2 * M; k++) {
            const int m = k >> 1, i = k & 1;
            const float top = fmaxf(r.top[m][i], quad_max(most[m][i]));
            softmax_scale<DEPTH, M>(r, m, i, fast_exp2((r.top[m][i] - top) * scale));
            r.top[m][i] = top;
        }
#pragma unroll
    for (int k = 0; k < 2 * M; k++) {
        const int m = k >> 1, i = k & 1;
        const float base = LIFT_LOG2<MATH> - r.top[m][i] * scale;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float &x = p[m][j >> 1][2 * i + (j & 1)];
            x = fast_exp2(x * scale + base);
            r.sum[m][i] += x;
        }
    }
}

/* 32 keys and values, of which `left` exist; q: the lane's place in the warp's rows. */
template <int MATH, int DEPTH, int M>
FN void forward_step(Softmax<DEPTH, M> &r, const Queries<MATH, DEPTH, M> &held, const float *q,
                     const float *k, const float *v, int left, float scale) {
    float p[M][4][4];
    query_products<MATH, DEPTH, M>(p, held, q, k + at_across<DEPTH>(), left);
    products_to_weights<MATH, DEPTH, M>(r, p, scale);
#pragma unroll
    for (int n = 0; n < 2; n++) {
        const float(*weights[M])[4];
#pragma unroll
        for (int m = 0; m < M; m++) weights[m] = &p[m][2 * n];
        add_weighted<MATH, DEPTH, M>(r.o, weights, v + n * 16 * PITCH<DEPTH> + at_down<DEPTH>());
    }
}

/* What the warps of the same queries found becomes that of the first of them. */
template <int DEPTH, int M>
FN void softmax_meet(Softmax<DEPTH, M> &r, const Attended &w, const Part &mine, float scale,
                     float *stages) {
    constexpr int EACH = 4 + DEPTH / 2, WORDS = M * EACH;
    static_assert(MEETING_WORDS<TILE<DEPTH> / ATTENTION_STEP, WORDS> <=
                      4 * TILE<DEPTH> * PITCH<DEPTH>,
                  "the stages have room");
    __syncthreads();
    if (mine.part > 0)
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int k = 0; k < EACH; k++)
                *meeting_at(stages, w, mine.part, WORDS, m * EACH + k) =
                    k < 2   ? r.top[m][k]
                    : k < 4 ? r.sum[m][k - 2]
                            : r.o[m][(k - 4) >> 2][k & 3];
    __syncthreads();
    if (mine.part > 0) return;
#pragma unroll 1
    for (int part = 1; part < w.deal.parts; part++)
#pragma unroll
        for (int k = 0; k < 2 * M; k++) {
            const int m = k >> 1, i = k & 1, from = m * EACH;
            const float top = *meeting_at(stages, w, part, WORDS, from + i);
            const float sum = *meeting_at(stages, w, part, WORDS, from + 2 + i);
            if (top == -INFINITY && sum == 0.0f) continue; /* it had no keys; a NaN goes on */
            const float most = fmaxf(r.top[m][i], top), f = fast_exp2((top - most) * scale);
            softmax_scale<DEPTH, M>(r, m, i, fast_exp2((r.top[m][i] - most) * scale));
            r.top[m][i] = most;
            r.sum[m][i] += f * sum;
#pragma unroll
            for (int j = 0; j < DEPTH / 4; j++)
                r.o[m][j >> 1][2 * i + (j & 1)] +=
                    f *
                    *meeting_at(stages, w, part, WORDS, from + 4 + (j >> 1) * 4 + 2 * i + (j & 1));
        }
}

/* o = q + weighted values / sum of weights, and the log of the sum; q: the warp's rows. */
template <int MATH, int DEPTH, int M>
FN void softmax_store(const Softmax<DEPTH, M> &r, const Attended &w, const Part &mine,
                      const dev_run *run, float scale, const float *q) {
    const Unit &u = w.unit[mine.u];
    const WideView ov = wide_view(run, w.ins.out[0]), lv = wide_view(run, w.ins.out[1]);
    const int lane = threadIdx.x % 32, t = lane % 4;
#pragma unroll
    for (int k = 0; k < 2 * M; k++) {
        const int m = k >> 1, i = k & 1, in = m * 16 + i * 8 + lane / 4, row = mine.row + in;
        const float sum = quad_sum(r.sum[m][i]);
        if (row >= u.nq) continue;
        const float share = u.nk > 0 ? __fdividef(LIFT<MATH> * LIFT<MATH>, sum) : 0.0f;
        float *o = ov.at(u.b) + (int64_t)row * ov.ld + u.h * w.dh;
#pragma unroll
        for (int c = 0; c < DEPTH / 16; c++)
            if (c * 16 + 4 * t < w.dh)
                set4(o + c * 16 + 4 * t, add4(ld4(q + in * PITCH<DEPTH> + c * 16 + 4 * t), share,
                                              result_four(r.o[m], c, i)));
        if (t == 0)
            lv.at(u.b)[(int64_t)row * w.H + u.h] =
                u.nk > 0 ? LN2 * (r.top[m][i] * scale + (log2f(sum) - LIFT_LOG2<MATH>)) : -INFINITY;
    }
}

/* Zeros in the padding of o, in the rows of units of the first head. */
FN void pad_store(const Attended &w, const dev_run *run) {
    const WideView o = wide_view(run, w.ins.out[0]);
    const int pad = o.ld - w.D, rows = w.deal.groups * w.deal.rows;
    for (int k = 0; pad > 0 && k < w.deal.units; k++) {
        const Unit &u = w.unit[k];
        if (u.h > 0) continue;
        for (int i = threadIdx.x; i < min(rows, u.nq - u.first) * pad; i += WIDE_THREADS)
            o.at(u.b)[(int64_t)(u.first + i / pad) * o.ld + w.D + i % pad] = 0.0f;
    }
}

template <int MATH, int DEPTH, int M>
OP_FN void forward_units(const Attended &w, const dev_run *run) {
    __builtin_assume(__isShared(&w));
    constexpr int P = PITCH<DEPTH>, APART = TILE<DEPTH> * P, STEP = ATTENTION_STEP;
    const attention_deal &d = w.deal;
    const Part mine = part_of(w, false);
    const Unit &u = w.unit[mine.u];
    const float scale = w.scale * LOG2E * LIFT<MATH> * LIFT<MATH>;
    float *own = (float *)smem, *stages = own + ROOM<DEPTH, M, false> * P;
    const float *rows = own + mine.at * P;
    Queries<MATH, DEPTH, M> held;
    Softmax<DEPTH, M> r;
    softmax_begin(r);
    rows_copy<DEPTH, true, OF_Q, -1, -1>(w, d.groups * d.rows, 0, own, 0);
    rows_copy<DEPTH, false, OF_K, OF_V, -1>(w, d.tile, 0, stages, APART);
    copy_commit();
#pragma unroll 1
    for (int k = 0; k < w.tiles; k++) {
        copy_wait<0>();
        __syncthreads();
        if (k + 1 < w.tiles)
            rows_copy<DEPTH, false, OF_K, OF_V, -1>(w, d.tile, (k + 1) * d.tile,
                                                    stages + ((k + 1) & 1) * 2 * APART, APART);
        copy_commit();
        if (!mine.live) continue;
        if (k == 0) hold_rows(held, rows + at_left<DEPTH>());
        const int left = u.nk - k * d.tile;
        const float *x = stages + (k & 1) * 2 * APART + mine.tile_at * P;
#pragma unroll 1
        for (int s = mine.part * STEP; s < min(left, d.tile); s += d.parts * STEP)
            forward_step<MATH, DEPTH, M>(r, held, rows + at_left<DEPTH>(), x + s * P,
                                         x + APART + s * P, left - s, scale);
    }
    copy_wait<0>();
    __syncthreads();
    if (d.parts > 1) softmax_meet(r, w, mine, scale, stages);
    if (mine.live && mine.part == 0) softmax_store<MATH, DEPTH, M>(r, w, mine, run, scale, rows);
    pad_store(w, run);
}

template <int DEPTH, int M>
constexpr int FORWARD_WORDS = (ROOM<DEPTH, M, false> + 4 * TILE<DEPTH>)*PITCH<DEPTH>;

#endif
