/* set_pool.cuh: the end of the set encoder: a seed's attention to each side's points and two layers
 * on the two rows that come out.
 *
 * There is one query for all rows, so keys and values need not be made. With u_h = W_k,h q_h / 8
 * (64 numbers a head) the scores are x2 u_h, but for what the bias of keys adds to all of them; the
 * weights' sum of x2 goes through W_v once:
 *   pa_h = q_h + W_v,h^T (sum of p_h x2) + b_v,h */
#ifndef MNP_CUDA_SET_POOL_CUH
#define MNP_CUDA_SET_POOL_CUH

#include "backend/cuda/lanes.cuh"
#include "backend/cuda/set_layers.cuh"

namespace set_part {

/* u as a right operand (64, 8): column 2 h is u_h as an exponent of 2, the others are zeros. */
FN void make_u() {
    const int c = threadIdx.x / 8, at = threadIdx.x % 8 * 8;
    const float *w = work() + AT_WKV + c * PITCH_128 + at, *q = work() + AT_PQ + at;
    float sum = dot4(ld4(w), ld4(q)) + dot4(ld4(w + 4), ld4(q + 4));
    sum += __shfl_xor_sync(~0u, sum, 1);
    work()[AT_U + threadIdx.x] = threadIdx.x % 2 == 0 ? sum * (0.125f * LOG2E) : 0.0f;
}

/* The scores of 16 rows (., 4), three warps of a group a tile each. */
template <int MATH> FN void pool_scores() {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, i = member();
    if (i == 3 || !(i == 2 ? has_some() : has_all())) return;
    const int row = i == 2 ? SIDE_ROWS + group() * GROUP_SOME : group() * GROUP_ALL + i * 16;
    const uint32_t at = piece_at(AT_Q, row);
    const float *u = work() + AT_U + t * 8 + g;
    float c[2][4] = {};
#pragma unroll
    for (int k = 0; k < 8; k++) {
        Left<MATH> a;
        Right<MATH> b;
        load_left<MATH>(a, at + k * 8 * 4);
#pragma unroll
        for (int e = 0; e < 2; e++) {
            b.v[e] = __float_as_uint(u[(k * 8 + e * 4) * 8]);
            if constexpr (MATH == DEV_FP32) b.low[e] = lost_part(b.v[e]);
        }
        multiply_step<MATH>(c[k % 2], a, b);
    }
    float *to = work() + AT_SCORES + (row + tile_row(g)) * HEADS + t;
#pragma unroll
    for (int h = 0; h < 2; h++)
        to[h * 8 * HEADS] = LOST<MATH> * LOST<MATH> * (c[0][2 * h] + c[1][2 * h]);
}

/* The weights of 8 STEPS rows of a side and their sum of x2, 16 columns a warp, four heads: to be
 * joined with those of other groups by the base they count from. Weights are a left operand whose
 * row g is head g; k of a lane are neighbouring rows. */
template <int MATH, int STEPS> FN void pool_sums(int side, int row, int left) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, col = member() * 16;
    const float *scores = work() + AT_SCORES + (row + 2 * t) * HEADS + g % 4;
    const float *x = work() + AT_Q + (row + 2 * t) * PITCH_Q + col + 2 * g;
    float p[2 * STEPS], most = -INFINITY, sum = 0;
#pragma unroll
    for (int k = 0; k < 2 * STEPS; k++) {
        p[k] = k / 2 * 8 + 2 * t + k % 2 < left ? scores[(k / 2 * 8 + k % 2) * HEADS] : -INFINITY;
        most = fmaxf(most, p[k]);
    }
    most = quad_max(most);
    float c[2][4] = {};
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        Left<MATH> a;
        Right<MATH> b[2];
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const float v = fast_exp2(p[2 * k + e] - most);
            const float2 y = *(const float2 *)(x + (k * 8 + e) * PITCH_Q);
            sum += v;
            a.v[2 * e] = g < 4 ? __float_as_uint(v) : 0, a.v[2 * e + 1] = 0;
            b[0].v[e] = __float_as_uint(y.x), b[1].v[e] = __float_as_uint(y.y);
            if constexpr (MATH == DEV_FP32) {
                a.low[2 * e] = lost_part(a.v[2 * e]), a.low[2 * e + 1] = 0;
                b[0].low[e] = lost_part(b[0].v[e]), b[1].low[e] = lost_part(b[1].v[e]);
            }
        }
        multiply_step<MATH>(c[0], a, b[0]);
        multiply_step<MATH>(c[1], a, b[1]);
    }
    sum = quad_sum(sum);
    const int part = (side * GROUPS + group()) * HEADS + g;
    if (g < 4)
        st4(work() + AT_PARTS + part * WIDTH + col + 4 * t,
            scaled4(make_float4(c[0][0], c[1][0], c[0][1], c[1][1]), LOST<MATH> * LOST<MATH>));
    if (g < 4 && t == 0 && col == 0)
        *(float2 *)(work() + AT_BASES + part * 2) = make_float2(most, sum);
}

/* The rows behind the pooling, one of each side: a lane has numbers k = l + 16 i of a row, l the
 * lane's of 16, and four columns of the weight; their sum over lanes is that of column `column()`,
 * in all four lanes that differ in the last two bits. */
struct RowShare {
    int side, quad, first;
    MEMBER RowShare() {
        side = threadIdx.x / 256, quad = threadIdx.x / 16 % 16, first = threadIdx.x % 16;
    }
    MEMBER int column() const { return quad * 4 + first / 4; }
    MEMBER bool writes() const { return first % 4 == 0; }
    MEMBER float multiply(const float (&x)[4], int w, int pitch) const {
        const float *from = work() + w + first * pitch + quad * 4;
        float4 sum = zero4();
        float v[4];
#pragma unroll
        for (int i = 0; i < 4; i++) sum = add4(sum, x[i], ld4(from + i * 16 * pitch));
        spread4(v, sum);
        return lane_sum<4, 8, 1>(v);
    }
    MEMBER float multiply(int x, int w) const {
        float v[4];
#pragma unroll
        for (int i = 0; i < 4; i++) v[i] = work()[x + side * WIDTH + first + i * 16];
        return multiply(v, w, PITCH_ROW);
    }
};

/* pa but for what is added to it: the groups' sums, joined, times W_v. */
FN float pooled_values(const RowShare &r) {
    const int h = r.quad / 4, size = r.side ? GROUP_SOME : GROUP_ALL;
    const int rows = r.side ? frame().m : frame().n, part = r.side * GROUPS * HEADS + h;
    float2 base[GROUPS];
    float x[4] = {0, 0, 0, 0}, most = -INFINITY, sum = 0;
#pragma unroll
    for (int k = 0; k < GROUPS; k++) {
        base[k] = *(const float2 *)(work() + AT_BASES + (part + k * HEADS) * 2);
        if (k * size < rows) most = fmaxf(most, base[k].x);
    }
#pragma unroll
    for (int k = 0; k < GROUPS; k++) {
        if (k * size >= rows) break;
        const float *from = work() + AT_PARTS + (part + k * HEADS) * WIDTH + r.first;
        const float keep = fast_exp2(base[k].x - most);
        sum += keep * base[k].y;
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] += keep * from[i * 16];
    }
    if (r.quad % 4 == 0 && r.first == 0)
        fused_at((r.side ? SET_SOME : SET_ALL) + SIDE_PL)[h] = LN2 * (most + log2f(sum));
    return __fdividef(r.multiply(x, AT_WKV + WIDTH, PITCH_128), sum);
}

/* The second row of the stack is `empty` without context. */
FN void pool_rows() {
    const RowShare r;
    const int col = r.column(), at = r.side * WIDTH + col, slots = r.side ? SET_SOME : SET_ALL;
    const bool mine = r.side == 0 || frame().m > 0, writes = mine && r.writes();
    float pa = 0, px = 0;
    if (mine) pa = pooled_values(r) + work()[AT_PQ + col] + work()[AT_BKV + WIDTH + col];
    if (writes) work()[AT_PA + at] = fused_at(slots + SIDE_PA)[col] = pa;
    __syncthreads();
    wait_rows(LAST_WEIGHTS);
    if (mine) {
        const float ph = relu_of(r.multiply(AT_PA, AT_WO) + work()[AT_BO + col]);
        px = ph + pa;
        if (writes) fused_at(slots + SIDE_PH)[col] = ph;
    }
    if (writes) work()[AT_PX + at] = fused_at(slots + SIDE_PX)[col] = px;
    __syncthreads();
    float *stack = fused_at(SET_STACK) + at;
    if (mine) {
        const float v = r.multiply(AT_PX, AT_WR);
        if (writes) *stack = v + work()[AT_BR + col];
    } else if (r.writes()) {
        *stack = fused_at(SET_EMPTY)[col];
    }
}

/* MATH: tf32 or fp32, the former also where the precision is bf16. */
template <int MATH> static __device__ __noinline__ void pool_sides() {
    pool_scores<MATH>();
    group_sync();
    if (has_all()) pool_sums<MATH, 4>(0, group() * GROUP_ALL, frame().n - group() * GROUP_ALL);
    if (group() * GROUP_SOME < frame().m)
        pool_sums<MATH, 2>(1, SIDE_ROWS + group() * GROUP_SOME, frame().m - group() * GROUP_SOME);
    __syncthreads();
    pool_rows();
}

} // namespace set_part

#endif
