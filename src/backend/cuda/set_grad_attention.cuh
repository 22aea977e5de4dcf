/* set_grad_attention.cuh: attention of the set encoder in reverse, on the rooms of set_grad.cuh.
 *
 * A warp has 32 points and 16 of the context in one head, once as queries (dq) and once as keys
 * (dk, dv), with the loops of attention_resident_grad.cuh. When all are done with queries, the keys
 * and values of a warp's rows are read by that warp alone, so that dq and dv take their place; dk
 * takes that of q behind the next barrier: the three are the operand of the layer in front.
 *
 * In the first attention of the encoder q, k and v of the context are the first rows of those of
 * all points: they lie in the rooms twice, and the gradients are added up by set_grad_values.cuh.
 */
#ifndef MNP_CUDA_SET_GRAD_ATTENTION_CUH
#define MNP_CUDA_SET_GRAD_ATTENTION_CUH

#include "backend/cuda/set_grad_layers.cuh"

namespace set_grad_part {

#define SET_SCALE 0.125f /* 1 / sqrt(64) */

template <int MATH> constexpr int TILES = MATH == DEV_FP32 ? 1 : 2; /* as registers allow */
/* In bf16 q is scaled when it is packed. */
template <int MATH> constexpr float Q_SCALE = MATH == DEV_BF16 ? LN2 : SET_SCALE;

/* Sums of 16 MT rows of a head: row(i), i = 2 tile + half; columns 8 c + 2 t + e. */
template <int MT> using HeadSums = float[MT][2][4];

/* The first word of a lane in a head's rows from r0 on; its rows are 8 rows apart. */
FN int lane_word(int r0, int h) {
    const int lane = threadIdx.x % 32;
    return (r0 + lane / 4) * SET_PITCH + h * DH + lane % 4 * 2;
}

/* ---- bf16 ------------------------------------------------------------------------------------ */

FN float low_half(uint32_t w) {
    return __uint_as_float(w << 16);
}
FN float high_half(uint32_t w) {
    return __uint_as_float(w & 0xffff0000u);
}

/* Each head's 16 numbers become 8 words, in place; what rounding left goes behind them (LEFT). */
template <bool LEFT>
static __device__ __noinline__ void pack_rows(float *rows, int count, float factor) {
    const int lane = threadIdx.x % 32;
#pragma unroll 2
    for (int r = threadIdx.x / 32 * 8 + lane % 8; r < count; r += WARPS * 8) {
        float *at = rows + r * SET_PITCH + lane / 8 * DH;
        float x[16];
        uint32_t w[8];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float4 v = scaled4(ld4(at + k * 4), factor);
            x[4 * k] = v.x, x[4 * k + 1] = v.y, x[4 * k + 2] = v.z, x[4 * k + 3] = v.w;
        }
#pragma unroll
        for (int k = 0; k < 8; k++) w[k] = pack_bf16(x[2 * k], x[2 * k + 1]);
        *(uint4 *)at = make_uint4(w[0], w[1], w[2], w[3]);
        *(uint4 *)(at + 4) = make_uint4(w[4], w[5], w[6], w[7]);
        if constexpr (LEFT) {
#pragma unroll
            for (int k = 0; k < 8; k++)
                w[k] = pack_bf16(x[2 * k] - low_half(w[k]), x[2 * k + 1] - high_half(w[k]));
            *(uint4 *)(at + 8) = make_uint4(w[0], w[1], w[2], w[3]);
            *(uint4 *)(at + 12) = make_uint4(w[4], w[5], w[6], w[7]);
        }
    }
}

template <int MATH> FN void pack_rooms(int rows) {
    if constexpr (MATH == DEV_BF16) {
        pack_rows<false>(room(AT_K), rows, 1.0f);
        pack_rows<false>(room(AT_Q), rows, SET_SCALE * LOG2E);
        pack_rows<false>(room(AT_V), rows, 1.0f);
        pack_rows<true>(room(AT_G), rows, 1.0f);
        __syncthreads();
    }
}

/* Two numbers of g; word: lane_word() and 8 c words on. */
template <int MATH> FN float2 g_pair(int word, int c) {
    const float *g = room(AT_G) + word;
    if constexpr (MATH == DEV_BF16) {
        g += c * 4 - (int)threadIdx.x % 4; /* words are pairs */
        const uint32_t w = __float_as_uint(g[0]), left = __float_as_uint(g[8]);
        return make_float2(low_half(w) + low_half(left), high_half(w) + high_half(left));
    } else {
        return *(const float2 *)(g + c * 8);
    }
}

/* ---- the two passes -------------------------------------------------------------------------- */

/* 16 rows times factor as a left operand; in bf16 as they are */
template <int MATH> FN void scaled_rows(FragA<MATH> &f, const float *rows, float factor) {
    rows += lane_rows<MATH, SET_PITCH>();
    if constexpr (MATH == DEV_BF16) {
        load_words<false>(rows, f.hi);
    } else {
#pragma unroll
        for (int u = 0; u < 2; u++) {
            float w[4];
            load_pieces(rows + u * 8, w);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if constexpr (MATH == DEV_FP32)
                    split(w[j] * factor, f.hi[u][j], f.lo[u][j]);
                else
                    f.hi[u][j] = __float_as_uint(w[j] * factor);
            }
        }
    }
}

/* x.dq += dS k for the queries from row on; count keys from key on */
template <int MATH, int MT>
FN void pass_queries(Queries<MATH, MT> &x, int h, int row, int key, int count) {
#pragma unroll
    for (int m = 0; m < MT; m++) {
        scaled_rows<MATH>(x.q[m], room(AT_Q) + (row + m * 16) * SET_PITCH + h * DH,
                          SET_SCALE * LOG2E * RESTORED<MATH>);
        scaled_rows<MATH>(x.g[m], room(AT_G) + (row + m * 16) * SET_PITCH + h * DH, RESTORED<MATH>);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int r = row + m * 16 + (int)threadIdx.x % 32 / 4 + (j >> 1) * 8;
            const float *lse = room(AT_REST) + h * LSE_HEAD + pair_word(r);
            x.lse[m][j] = lse[0], x.delta[m][j] = lse[AT_DELTA];
        }
    }
    const int at = key * SET_PITCH + h * DH;
    const float *k = room(AT_K) + at + lane_across<MATH, SET_PITCH>();
    const float *v = room(AT_V) + at + lane_across<MATH, SET_PITCH>();
    const float *k_down = room(AT_K) + at + lane_down<MATH, SET_PITCH>();
#pragma unroll 1
    for (int left = count; left > 0; left -= 16) {
        queries_keys<MATH, MT, true, SET_PITCH>(x, k, v, k_down, left);
        k += 16 * SET_PITCH, v += 16 * SET_PITCH, k_down += 16 * SET_PITCH;
    }
}

template <int MATH, int MT> FN void take_keys(Keys<MATH, MT> &x, int h, int row) {
#pragma unroll
    for (int m = 0; m < MT; m++) {
        const int at = (row + m * 16) * SET_PITCH + h * DH;
        scaled_rows<MATH>(x.k[m], room(AT_K) + at, SET_SCALE * LOG2E * RESTORED<MATH>);
        scaled_rows<MATH>(x.v[m], room(AT_V) + at, RESTORED<MATH>);
#pragma unroll
        for (int j = 0; j < 8; j++) x.dk[m][j >> 2][j & 3] = x.dv[m][j >> 2][j & 3] = 0.0f;
    }
}

/* x.dk and x.dv += those of `count` queries from row on; rows of x from `exist` on are zeros
 * afterwards. */
template <int MATH, int MT>
FN void pass_keys(Keys<MATH, MT> &x, int h, int row, int count, int exist) {
    const float *q = room(AT_Q) + row * SET_PITCH + h * DH;
    const float *g = room(AT_G) + row * SET_PITCH + h * DH;
    const float *lse = room(AT_REST) + h * LSE_HEAD + row * 2 + (int)threadIdx.x % 4 * 4;
    const int across = lane_across<MATH, SET_PITCH>(), down = lane_down<MATH, SET_PITCH>();
#pragma unroll 1
    for (int left = count; left > 0; left -= 16) {
        float p[MT][2][4], d[MT][2][4];
        keys_weights<MATH, MT, SET_PITCH>(x, q + across, g + across, lse, lse + AT_DELTA, p, d);
        keys_sums<MATH, MT, SET_PITCH>(x.dv, p, g + down);
        keys_sums<MATH, MT, SET_PITCH>(x.dk, d, q + down);
        q += 16 * SET_PITCH, g += 16 * SET_PITCH, lse += 32;
    }
#pragma unroll
    for (int k = 0; k < MT * 8; k++) {
        const int m = k >> 3, c = k >> 2 & 1, j = k & 3;
        if (m * 16 + (j >> 1) * 8 + (int)threadIdx.x % 32 / 4 < exist) continue;
        x.dk[m][c][j] = x.dv[m][c][j] = 0.0f;
    }
}

/* ---- what comes out -------------------------------------------------------------------------- */

template <int MT> FN void scale_sums(HeadSums<MT> &sums, float factor) {
#pragma unroll
    for (int k = 0; k < MT * 8; k++) sums[k >> 3][k >> 2 & 1][k & 3] *= factor;
}

/* dq += g: attention has its query as residual. */
template <int MATH, int MT> FN void add_g(HeadSums<MT> &dq, int h, int row) {
#pragma unroll
    for (int k = 0; k < MT * 4; k++) {
        const int i = k >> 1, c = k & 1;
        const float2 g = g_pair<MATH>(lane_word(row + i * 8, h), c);
        dq[i >> 1][c][(i & 1) * 2] += g.x, dq[i >> 1][c][(i & 1) * 2 + 1] += g.y;
    }
}

template <int MT> FN void put_sums_at(float *to, const HeadSums<MT> &sums, int h, int row) {
#pragma unroll
    for (int k = 0; k < MT * 4; k++) {
        const int i = k >> 1, c = k & 1;
        const float *s = sums[i >> 1][c] + (i & 1) * 2;
        *(float2 *)(to + lane_word(row + i * 8, h) + c * 8) = make_float2(s[0], s[1]);
    }
}

/* ---- rows of a warp -------------------------------------------------------------------------- */

/* The sides' first rows and how many there are. */
struct Side {
    int first, count;
};

/* kept = dq of 16 MT rows from row on */
template <int MATH, int MT> FN void make_dq(HeadSums<MT> &kept, int h, const Side &s, int row) {
    Queries<MATH, MT> x;
#pragma unroll
    for (int j = 0; j < MT * 8; j++) x.dq[j >> 3][j >> 2 & 1][j & 3] = 0.0f;
    pass_queries<MATH, MT>(x, h, row, s.first, s.count);
    scale_sums<MT>(x.dq, SET_SCALE * RESTORED<MATH>);
    add_g<MATH, MT>(x.dq, h, row);
#pragma unroll
    for (int j = 0; j < MT * 8; j++)
        kept[j >> 3][j >> 2 & 1][j & 3] = x.dq[j >> 3][j >> 2 & 1][j & 3];
}

/* dq, kept until now, and dv to their rooms; dk is kept. */
template <int MATH, int MT> FN void make_dk(HeadSums<MT> &kept, int h, const Side &s, int row) {
    Keys<MATH, MT> x;
    take_keys<MATH, MT>(x, h, row);
    __syncwarp();
    put_sums_at<MT>(room(AT_K), kept, h, row);
    pass_keys<MATH, MT>(x, h, s.first, s.count, s.first + s.count - row);
    scale_sums<MT>(x.dv, RESTORED<MATH>);
    put_sums_at<MT>(room(AT_V), x.dv, h, row);
#pragma unroll
    for (int j = 0; j < MT * 8; j++)
        kept[j >> 3][j >> 2 & 1][j & 3] =
            Q_SCALE<MATH> * RESTORED<MATH> * x.dk[j >> 3][j >> 2 & 1][j & 3];
}

template <int MATH> static __device__ __noinline__ void attention_reverse() {
    constexpr int MT = TILES<MATH>, N = 2 / MT;
    const int h = threadIdx.x / 32 % 4, group = threadIdx.x / 128;
    const Side all = {0, frame().n}, some = {SOME_ROW, frame().m};
    const bool has_some = group * 16 < some.count;
    const int row = group * 32, row_some = SOME_ROW + group * 16;
    float kept[N][MT][2][4], kept_some[1][2][4] = {}; /* dq, then dk */
    pack_rooms<MATH>(set_rows());
#pragma unroll
    for (int i = 0; i < N; i++) make_dq<MATH, MT>(kept[i], h, all, row + i * 16);
    if (has_some) make_dq<MATH, 1>(kept_some, h, some, row_some);
    __syncthreads();
    if (has_some) make_dk<MATH, 1>(kept_some, h, some, row_some);
    __syncthreads();
    if (has_some) put_sums_at<1>(room(AT_Q), kept_some, h, row_some);
#pragma unroll
    for (int i = 0; i < N; i++) make_dk<MATH, MT>(kept[i], h, all, row + i * 16);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; i++) put_sums_at<MT>(room(AT_Q), kept[i], h, row + i * 16);
}

} // namespace set_grad_part

#endif
