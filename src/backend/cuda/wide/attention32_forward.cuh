/* attention32_forward.cuh: wide attention forward, in fp32. A unit's own rows are queries; keys and
 * values pass by, and a warp keeps a running softmax of its queries. */
#ifndef MNP_CUDA_WIDE_ATTENTION32_FORWARD_CUH
#define MNP_CUDA_WIDE_ATTENTION32_FORWARD_CUH

#include "backend/cuda/wide/attention32_tiles.cuh"

/* Of a warp's 16 queries, two rows a thread: a product near the largest so far, the sum of weights
 * over this thread's keys, the weighted values. */
template <int DEPTH> struct Softmax { float top[2], sum[2], o[DEPTH / 8][4]; };

/* Queries stay in registers where these suffice. */
template <int DEPTH> using Queries = HeldRows<DEPTH, DEPTH <= 32>;

template <int DEPTH> FN void softmax_begin(Softmax<DEPTH> &r) {
#pragma unroll
    for (int i = 0; i < 2; i++) r.top[i] = -INFINITY, r.sum[i] = 0.0f;
#pragma unroll
    for (int j = 0; j < DEPTH / 2; j++) r.o[j >> 2][j & 3] = 0.0f;
}

template <int DEPTH> FN void softmax_scale(Softmax<DEPTH> &r, int i, float keep) {
    r.sum[i] *= keep;
#pragma unroll
    for (int c = 0; c < DEPTH / 8; c++) r.o[c][2 * i] *= keep, r.o[c][2 * i + 1] *= keep;
}

/* p (16, 32): products of the queries q with 32 keys, of which `left` exist. */
template <int DEPTH>
FN void query_products(float p[4][4], const Queries<DEPTH> &held, const float *q, const float *k,
                       int left) {
#pragma unroll
    for (int j = 0; j < 16; j++) p[j >> 2][j & 3] = 0.0f;
#pragma unroll
    for (int c = 0; c < DEPTH / 16; c++) {
        FragA<DEV_FP32> a;
        own_left(a, held, q, c);
#pragma unroll
        for (int n = 0; n < 4; n++) {
            FragB<DEV_FP32> b;
            load_across(b, k + n * 8 * PITCH<DEPTH> + c * 16);
            mma<DEV_FP32>(p[n], a, b);
        }
    }
    if (left >= 32) return;
#pragma unroll
    for (int j = 0; j < 16; j++)
        if ((j >> 2) * 8 + (int)threadIdx.x % 4 * 2 + (j & 1) >= left) p[j >> 2][j & 3] = -INFINITY;
}

/* Products become weights, 2^(scale (p - top)). `top` follows the largest product only when that
 * is far above it, which is seldom after the first keys: weights of up to 2^SLACK are as good as
 * those of up to 1, and what was summed need not be scaled. All lanes of a row have the same. */
template <int DEPTH> FN void products_to_weights(Softmax<DEPTH> &r, float p[4][4], float scale) {
    const float slack = __fdividef(SLACK, scale);
    float most[2];
    bool far = false;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        most[i] = p[0][2 * i];
#pragma unroll
        for (int j = 1; j < 8; j++) most[i] = fmaxf(most[i], p[j >> 1][2 * i + (j & 1)]);
        far |= most[i] > r.top[i] + slack;
    }
    if (__any_sync(~0u, far))
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float top = fmaxf(r.top[i], quad_max(most[i]));
            softmax_scale<DEPTH>(r, i, fast_exp2((r.top[i] - top) * scale));
            r.top[i] = top;
        }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float base = -r.top[i] * scale;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float &x = p[j >> 1][2 * i + (j & 1)];
            x = fast_exp2(x * scale + base);
            r.sum[i] += x;
        }
    }
}

/* 32 keys and values, of which `left` exist; q: the lane's place in the warp's rows. */
template <int DEPTH>
FN void forward_step(Softmax<DEPTH> &r, const Queries<DEPTH> &held, const float *q, const float *k,
                     const float *v, int left, float scale) {
    float p[4][4];
    query_products<DEPTH>(p, held, q, k + at_across<DEPTH>(), left);
    products_to_weights<DEPTH>(r, p, scale);
#pragma unroll
    for (int n = 0; n < 2; n++) {
        add_weighted<DEPTH>(r.o, p + 2 * n, v + n * 16 * PITCH<DEPTH> + at_down<DEPTH>());
    }
}

/* What the warps of the same queries found becomes that of the first of them. */
template <int DEPTH>
FN void softmax_meet(Softmax<DEPTH> &r, const Attended &w, const Part &mine, float scale,
                     float *stages) {
    constexpr int WORDS = 4 + DEPTH / 2;
    static_assert(MEETING_WORDS<TILE<DEPTH> / ATTENTION_STEP, WORDS> <=
                      4 * TILE<DEPTH> * PITCH<DEPTH>,
                  "the stages have room");
    __syncthreads();
    if (mine.part > 0)
#pragma unroll
        for (int k = 0; k < WORDS; k++)
            *meeting_at(stages, w, mine.part, WORDS, k) = k < 2   ? r.top[k]
                                                          : k < 4 ? r.sum[k - 2]
                                                                  : r.o[(k - 4) >> 2][k & 3];
    __syncthreads();
    if (mine.part > 0) return;
#pragma unroll 1
    for (int part = 1; part < w.deal.parts; part++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float top = *meeting_at(stages, w, part, WORDS, i);
            const float sum = *meeting_at(stages, w, part, WORDS, 2 + i);
            if (top == -INFINITY && sum == 0.0f) continue; /* it had no keys; a NaN goes on */
            const float most = fmaxf(r.top[i], top), f = fast_exp2((top - most) * scale);
            softmax_scale<DEPTH>(r, i, fast_exp2((r.top[i] - most) * scale));
            r.top[i] = most;
            r.sum[i] += f * sum;
#pragma unroll
            for (int j = 0; j < DEPTH / 4; j++)
                r.o[j >> 1][2 * i + (j & 1)] +=
                    f * *meeting_at(stages, w, part, WORDS, 4 + (j >> 1) * 4 + 2 * i + (j & 1));
        }
}

/* o = q + weighted values / sum of weights, and the log of the sum; q: the warp's rows. */
template <int DEPTH>
FN void softmax_store(const Softmax<DEPTH> &r, const Attended &w, const Part &mine,
                      const wide_op &op, float scale, const float *q) {
    const Unit &u = w.unit[mine.u];
    const wide_operand &ov = op.out[0], &lv = op.out[1];
    const int lane = threadIdx.x % 32, t = lane % 4;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int in = i * 8 + lane / 4, row = mine.row + in;
        const float sum = quad_sum(r.sum[i]);
        if (row >= u.nq) continue;
        const float share = u.nk > 0 ? __fdividef(1.0f, sum) : 0.0f;
        float *o = wide_at(ov, u.b) + (int64_t)row * ov.ld + u.h * w.dh;
#pragma unroll
        for (int c = 0; c < DEPTH / 16; c++)
            if (c * 16 + 4 * t < w.dh)
                set4(o + c * 16 + 4 * t, add4(ld4(q + in * PITCH<DEPTH> + c * 16 + 4 * t), share,
                                              result_four(r.o, c, i)));
        if (t == 0)
            wide_at(lv, u.b)[(int64_t)row * w.H + u.h] =
                u.nk > 0 ? LN2 * (r.top[i] * scale + log2f(sum)) : -INFINITY;
    }
}

/* Zeros in the padding of o, in the rows of units of the first head. */
FN void pad_store(const Attended &w, const wide_op &op) {
    const wide_operand &o = op.out[0];
    const int pad = o.ld - w.D, rows = w.deal.groups * w.deal.rows;
    for (int k = 0; pad > 0 && k < w.deal.units; k++) {
        const Unit &u = w.unit[k];
        if (u.h > 0) continue;
        for (int i = threadIdx.x; i < min(rows, u.nq - u.first) * pad; i += WIDE_THREADS)
            wide_at(o, u.b)[(int64_t)(u.first + i / pad) * o.ld + w.D + i % pad] = 0.0f;
    }
}

template <int DEPTH> OP_FN void forward_units(const Attended &w, const wide_op &op) {
    __builtin_assume(__isShared(&w));
    constexpr int P = PITCH<DEPTH>, APART = TILE<DEPTH> * P, STEP = ATTENTION_STEP;
    const attention_deal &d = w.deal;
    const Part mine = part_of(w, false);
    const Unit &u = w.unit[mine.u];
    const float scale = w.scale * LOG2E;
    float *own = (float *)smem, *stages = own + ROOM<DEPTH, false> * P;
    const float *rows = own + mine.at * P;
    Queries<DEPTH> held;
    Softmax<DEPTH> r;
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
            forward_step<DEPTH>(r, held, rows + at_left<DEPTH>(), x + s * P, x + APART + s * P,
                                left - s, scale);
    }
    copy_wait<0>();
    __syncthreads();
    if (d.parts > 1) softmax_meet(r, w, mine, scale, stages);
    if (mine.live && mine.part == 0) softmax_store<DEPTH>(r, w, mine, op, scale, rows);
    pad_store(w, op);
}

template <int DEPTH>
constexpr int FORWARD_WORDS = (ROOM<DEPTH, false> + 4 * TILE<DEPTH>)*PITCH<DEPTH>;

#endif
