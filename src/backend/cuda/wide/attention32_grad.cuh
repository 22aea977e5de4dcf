/* attention32_grad.cuh: wide attention in reverse, in fp32 (equations in op/attention.c). It runs
 * twice over the scores, in blocks of two kinds: own rows are keys for dk and dv, queries for dq,
 * and the rows of the other side pass by. So no sum crosses blocks.
 *
 *                own rows x, y     the other side's x, y     sums
 *   keys         k, v              q, g (and o)              dk = dS^T q, dv = A^T g
 *   queries      q, g              k, v                      dq = dS k
 *
 * x x' are the scores and y y' is dA; rowsum(A dA) is delta, the sum of g (o - q) over the head's
 * columns. */
#ifndef MNP_CUDA_WIDE_ATTENTION32_GRAD_CUH
#define MNP_CUDA_WIDE_ATTENTION32_GRAD_CUH

#include "backend/cuda/wide/attention32_tiles.cuh"

/* Own operands stay in registers where these suffice. */
template <int DEPTH> constexpr bool HOLD_OWN = DEPTH <= 32;
template <int DEPTH> using GradRows = HeldRows<DEPTH, HOLD_OWN<DEPTH>>;

/* p and d: of 16 rows of the other side, products that become weights and dS; what is summed up. */
template <int DEPTH, bool KEYS> struct GradSums {
    float p[2][4], d[2][4], sum[KEYS ? 2 : 1][DEPTH / 8][4];
};

/* Weights are 2^(scale p - lse), dS = weight (d - delta). A query that does not exist has an
 * infinite lse. */

/* ---- delta ----------------------------------------------------------------------------------- */

FN float delta_four(const float *q, const float *g, float4 o) {
    return dot4(ld4(g), add4(o, -1.0f, ld4(q)));
}

/* Queries of a tile, as the other side: (lse, delta) of each. Several lanes share a row. */
template <int DEPTH> constexpr int START_LANES = WIDE_THREADS / TILE<DEPTH>;

/* The lse of the query whose lanes this thread is of, fetched early. */
template <int DEPTH> FN float start_lse(const Attended &w, const wide_operand &lse, int from) {
    const int r = threadIdx.x / START_LANES<DEPTH>, tile = w.deal.tile;
    const Unit &u = w.unit[r / tile];
    const int row = from + (r & (tile - 1));
    return row < u.nq ? __ldcg(wide_at(lse, u.b) + (int64_t)row * w.H + u.h) : INFINITY;
}
template <int DEPTH>
FN void put_starts(const Attended &w, float lse, int from, const float *stage, float *starts) {
    constexpr int P = PITCH<DEPTH>, APART = TILE<DEPTH> * P, LANES = START_LANES<DEPTH>;
    const int r = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const float *q = stage + r * P + lane * 4;
    float sum = 0.0f; /* rows that do not exist are zeros */
#pragma unroll
    for (int k = 0; k < DEPTH / 4 / LANES; k++)
        sum += delta_four(q + k * LANES * 4, q + APART + k * LANES * 4,
                          ld4(q + 2 * APART + k * LANES * 4));
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (lane == 0) *(float2 *)(starts + 2 * r) = make_float2(LOG2E * (lse), sum);
}

/* The same of a warp's own queries, two of each 16 a thread. */
struct OwnStarts {
    float lse[2], delta[2];
};
template <int DEPTH>
FN void own_starts(OwnStarts &s, const Attended &w, const Part &mine, const wide_operand &lse,
                   const float *x, int apart) {
    const Unit &u = w.unit[mine.u];
    const int lane = threadIdx.x % 32, t = lane % 4 * 4;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int in = k * 8 + lane / 4, row = mine.row + in;
        const bool has = row < u.nq;
        const float *o = u.at[OF_O] + (int64_t)row * w.ld[OF_O] + t;
        const float *q = x + in * PITCH<DEPTH> + t;
        float4 was[DEPTH / 16];
        float sum = 0.0f;
        s.lse[k] = LOG2E * (has ? __ldcg(wide_at(lse, u.b) + (int64_t)row * w.H + u.h) : INFINITY);
#pragma unroll
        for (int c = 0; c < DEPTH / 16; c++) /* all loads first */
            was[c] = has && c * 16 + t < w.dh ? get4(o + c * 16) : zero4();
#pragma unroll
        for (int c = 0; c < DEPTH / 16; c++)
            sum += delta_four(q + c * 16, q + apart + c * 16, was[c]);
        s.delta[k] = quad_sum(sum);
    }
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* p = x x', d = y y' over 16 rows of the other side; rows and other are the lane's places of x, y
 * lies `apart` and `other_apart` words further. */
template <int DEPTH, bool KEYS>
FN void grad_products(GradSums<DEPTH, KEYS> &r, const GradRows<DEPTH> own[2], const float *rows,
                      int apart, const float *other, int other_apart) {
#pragma unroll
    for (int j = 0; j < 8; j++) r.p[j >> 2][j & 3] = r.d[j >> 2][j & 3] = 0.0f;
#pragma unroll
    for (int c = 0; c < DEPTH / 16; c++) {
        FragA<DEV_FP32> a;
        FragB<DEV_FP32> b;
        own_left(a, own[0], rows, c);
#pragma unroll
        for (int n = 0; n < 2; n++) {
            load_across(b, other + n * 8 * PITCH<DEPTH> + c * 16);
            mma<DEV_FP32>(r.p[n], a, b);
        }
        own_left(a, own[1], rows + apart, c);
#pragma unroll
        for (int n = 0; n < 2; n++) {
            load_across(b, other + other_apart + n * 8 * PITCH<DEPTH> + c * 16);
            mma<DEV_FP32>(r.d[n], a, b);
        }
    }
}

/* Number j of d is turned by (lse, delta) of its query. */
FN void grad_weight(float &p, float &d, float scale, float lse, float delta) {
    p = fast_exp2(p * scale - lse);
    d = p * (d - delta);
}

/* Queries are the other side: pairs of (lse, delta). */
template <int DEPTH>
FN void weights_of_keys(GradSums<DEPTH, true> &r, float scale, const float *starts) {
#pragma unroll
    for (int n = 0; n < 2; n++) {
        const float4 s = ld4(starts + n * 16 + threadIdx.x % 4 * 4);
#pragma unroll
        for (int j = 0; j < 4; j++)
            grad_weight(r.p[n][j], r.d[n][j], scale, j & 1 ? s.z : s.x, j & 1 ? s.w : s.y);
    }
}
/* Keys are the other side, of which `left` exist: the others have no weight. */
template <int DEPTH>
FN void weights_of_queries(GradSums<DEPTH, false> &r, float scale, const OwnStarts &s, int left) {
    if (left < 16)
#pragma unroll
        for (int j = 0; j < 8; j++)
            if ((j >> 2) * 8 + (int)threadIdx.x % 4 * 2 + (j & 1) >= left)
                r.p[j >> 2][j & 3] = -INFINITY;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const int n = j >> 2, i = j >> 1 & 1;
        grad_weight(r.p[n][j & 3], r.d[n][j & 3], scale, s.lse[i], s.delta[i]);
    }
}

/* The sums take 16 rows of the other side in. */
template <int DEPTH, bool KEYS>
FN void grad_sums(GradSums<DEPTH, KEYS> &r, const float *down, int other_apart) {
    add_weighted<DEPTH>(r.sum[0], r.d, down);
    if constexpr (KEYS) add_weighted<DEPTH>(r.sum[1], r.p, down + other_apart);
}

template <int DEPTH, bool KEYS>
FN void grad_meet(GradSums<DEPTH, KEYS> &r, const Attended &w, const Part &mine, float *stages) {
    constexpr int WORDS = (KEYS ? 2 : 1) * DEPTH / 2;
    static_assert(MEETING_WORDS<TILE<DEPTH> / ATTENTION_GRAD_STEP, WORDS> <=
                      (KEYS ? 6 : 4) * TILE<DEPTH> * PITCH<DEPTH>,
                  "the stages have room");
    __syncthreads();
    if (mine.part > 0)
#pragma unroll
        for (int k = 0; k < WORDS; k++)
            *meeting_at(stages, w, mine.part, WORDS, k) = (&r.sum[0][0][0])[k];
    __syncthreads();
    if (mine.part > 0) return;
#pragma unroll 1
    for (int part = 1; part < w.deal.parts; part++)
#pragma unroll
        for (int k = 0; k < WORDS; k++)
            (&r.sum[0][0][0])[k] += *meeting_at(stages, w, part, WORDS, k);
}

/* ---- stores ---------------------------------------------------------------------------------- */

/* factor times the sums of the warp's rows, on top of `plus` (in shared memory, the warp's rows;
 * NULL: nothing) and, if add, of what is there; to: the unit's head in row 0. */
template <int DEPTH>
FN void grad_store(const float sum[DEPTH / 8][4], float factor, int row0, int rows, int dh,
                   const float *plus, float *to, int ld, bool add) {
    const int lane = threadIdx.x % 32, t = lane % 4 * 4;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int in = k * 8 + lane / 4, row = row0 + in;
        float *out = to + (int64_t)row * ld + t;
        float4 was[DEPTH / 16];
        if (row >= rows) continue;
#pragma unroll
        for (int c = 0; c < DEPTH / 16; c++) /* all loads first */
            was[c] = add && c * 16 + t < dh ? get4(out + c * 16) : zero4();
#pragma unroll
        for (int c = 0; c < DEPTH / 16; c++) {
            if (plus) was[c] = add4(was[c], 1.0f, ld4(plus + in * PITCH<DEPTH> + c * 16 + t));
            if (c * 16 + t < dh) set4(out + c * 16, add4(was[c], factor, result_four(sum, c, k)));
        }
    }
}

/* The gradient that the block's kind writes, and whether it adds. In self-attention queries see to
 * the rest of it. */
struct GradOut {
    const wide_operand &v;
    bool add, of_itself;
};
FN GradOut grad_out(const wide_op &op, bool keys) {
    const bool of_itself = attention_of_itself(&op);
    const int j = keys && !of_itself;
    return {op.out[j], (op.adds >> j & 1u) != 0, of_itself};
}
FN void units_zero(const Attended &w, const wide_launch &l, const wide_op &op, bool keys) {
    const GradOut out = grad_out(op, keys);
    if (out.add || (out.of_itself && keys)) return;
    const Team all = {(int)threadIdx.x, WIDE_THREADS, 0};
    for (int k = 0; k < w.deal.units; k++) {
        const Unit &u = w.unit[k];
        if (u.b >= 0)
            grad_zero(l, op, out.v, u.b, u.nq, u.nk, out.of_itself || !keys, out.of_itself || keys,
                      u.h * w.deal.tiles + u.part, w.H * w.deal.tiles, all);
    }
}

template <int DEPTH, bool KEYS>
FN void warp_store(const GradSums<DEPTH, KEYS> &r, const Attended &w, const Part &mine,
                   const wide_op &op, const float *g) {
    const GradOut out = grad_out(op, KEYS);
    const Unit &u = w.unit[mine.u];
    const float factor = w.scale;
    float *to = wide_at(out.v, u.b) + u.h * w.dh;
    if constexpr (KEYS) {
        grad_store<DEPTH>(r.sum[0], factor, mine.row, u.nk, w.dh, nullptr, to + op.i[DATT_KCOL],
                          out.v.ld, out.add);
        grad_store<DEPTH>(r.sum[1], 1.0f, mine.row, u.nk, w.dh, nullptr, to + op.i[DATT_VCOL],
                          out.v.ld, out.add);
    } else {
        grad_store<DEPTH>(r.sum[0], factor, mine.row, u.nq, w.dh, g, to + op.i[DATT_QCOL], out.v.ld,
                          out.add);
    }
}

/* ---- units ----------------------------------------------------------------------------------- */

template <int DEPTH, bool KEYS> FN void tile_copy(const Attended &w, int tile, float *stages) {
    constexpr int APART = TILE<DEPTH> * PITCH<DEPTH>;
    float *to = stages + (tile & 1) * (KEYS ? 3 : 2) * APART;
    if constexpr (KEYS)
        rows_copy<DEPTH, false, OF_Q, OF_G, OF_O>(w, w.deal.tile, tile * w.deal.tile, to, APART);
    else
        rows_copy<DEPTH, false, OF_K, OF_V, -1>(w, w.deal.tile, tile * w.deal.tile, to, APART);
}

template <int DEPTH, bool KEYS> OP_FN void grad_units(const Attended &w, const wide_op &op) {
    __builtin_assume(__isShared(&w));
    constexpr int P = PITCH<DEPTH>, APART = TILE<DEPTH> * P, STEP = ATTENTION_GRAD_STEP;
    constexpr int OWN_APART = ROOM<DEPTH, true> * P, TENSORS = KEYS ? 3 : 2;
    const attention_deal &d = w.deal;
    const Part mine = part_of(w, KEYS);
    const Unit &u = w.unit[mine.u];
    const wide_operand &lse = op.in[DATT_G_LSE];
    const float scale = w.scale * LOG2E;
    float *all = (float *)smem, *stages = all + 2 * OWN_APART;
    float *starts = stages + 2 * TENSORS * APART;
    const float *rows = all + mine.at * P;
    GradRows<DEPTH> own[2];
    OwnStarts own_start;
    GradSums<DEPTH, KEYS> r;
#pragma unroll
    for (int k = 0; k < (KEYS ? DEPTH : DEPTH / 2); k++) (&r.sum[0][0][0])[k] = 0.0f;
    if constexpr (KEYS)
        rows_copy<DEPTH, true, OF_K, OF_V, -1>(w, d.groups * d.rows, 0, all, OWN_APART);
    else
        rows_copy<DEPTH, true, OF_Q, OF_G, -1>(w, d.groups * d.rows, 0, all, OWN_APART);
    tile_copy<DEPTH, KEYS>(w, 0, stages);
    copy_commit();
    float of_tile = KEYS ? start_lse<DEPTH>(w, lse, 0) : 0.0f;
#pragma unroll 1
    for (int k = 0; k < w.tiles; k++) {
        const float *stage = stages + (k & 1) * TENSORS * APART;
        copy_wait<0>();
        __syncthreads();
        if (k + 1 < w.tiles) tile_copy<DEPTH, KEYS>(w, k + 1, stages);
        copy_commit();
        if (KEYS) {
            const float of_next = start_lse<DEPTH>(w, lse, (k + 1) * d.tile);
            put_starts<DEPTH>(w, of_tile, k * d.tile, stage, starts);
            of_tile = of_next;
            __syncthreads();
        }
        if (!mine.live) continue;
        if (k == 0) {
            hold_rows(own[0], rows + at_left<DEPTH>());
            hold_rows(own[1], rows + OWN_APART + at_left<DEPTH>());
            if (!KEYS) own_starts<DEPTH>(own_start, w, mine, lse, rows, OWN_APART);
        }
        const int left = (KEYS ? u.nq : u.nk) - k * d.tile;
#pragma unroll 1
        for (int s = mine.part * STEP; s < min(left, d.tile); s += d.parts * STEP) {
            const float *x = stage + (mine.tile_at + s) * P;
            grad_products<DEPTH, KEYS>(r, own, rows + at_left<DEPTH>(), OWN_APART,
                                       x + at_across<DEPTH>(), APART);
            if constexpr (KEYS)
                weights_of_keys<DEPTH>(r, scale, starts + 2 * (mine.tile_at + s));
            else
                weights_of_queries<DEPTH>(r, scale, own_start, left - s);
            grad_sums<DEPTH, KEYS>(r, x + at_down<DEPTH>(), APART);
        }
    }
    copy_wait<0>();
    __syncthreads();
    if (d.parts > 1) grad_meet<DEPTH, KEYS>(r, w, mine, stages);
    if (mine.live && mine.part == 0) warp_store<DEPTH, KEYS>(r, w, mine, op, rows + OWN_APART);
}

template <int DEPTH>
constexpr int GRAD_WORDS = (2 * ROOM<DEPTH, true> + 6 * TILE<DEPTH>)*PITCH<DEPTH> + 2 * TILE<DEPTH>;

#endif
