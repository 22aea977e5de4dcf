/* attention16_forward.cuh: wide attention forward, mode tf32. A warp has 16 M queries in registers;
 * keys and values pass by in shared memory, and it keeps a running softmax. */
#ifndef MNP_CUDA_WIDE_ATTENTION16_FORWARD_CUH
#define MNP_CUDA_WIDE_ATTENTION16_FORWARD_CUH

#include "backend/cuda/wide/attention16_tiles.cuh"

/* Of a warp's 16 M queries, two rows a thread of each 16: a product near the largest so far, the
 * sum of weights over this thread's keys, the weighted values. */
template <int DEPTH, int M> struct Softmax16 { float top[M][2], sum[M][2], o[M][DEPTH / 8][4]; };

template <int DEPTH, int M> FN void softmax_begin(Softmax16<DEPTH, M> &r) {
#pragma unroll
    for (int m = 0; m < M; m++) {
#pragma unroll
        for (int i = 0; i < 2; i++) r.top[m][i] = -INFINITY, r.sum[m][i] = 0.0f;
#pragma unroll
        for (int j = 0; j < DEPTH / 2; j++) r.o[m][j >> 2][j & 3] = 0.0f;
    }
}

/* The warp's queries as left operands, straight from memory: a lane's pairs of numbers are those
 * of the operand. */
template <int DEPTH, int M>
FN void fetch_queries(uint32_t q[M][DEPTH / 16][4], const Rows16 &x, const Head16 &w, int row0) {
    const int lane = threadIdx.x % 32, t = lane % 4 * 2;
    float2 v[M][DEPTH / 16][4];
#pragma unroll
    for (int k = 0; k < M * DEPTH / 4; k++) { /* all loads first */
        const int m = k / (DEPTH / 4), c = k / 4 % (DEPTH / 16), j = k % 4;
        const int row = row0 + m * 16 + j % 2 * 8 + lane / 4, column = c * 16 + j / 2 * 8 + t;
        v[m][c][j] = row < w.nq && column < w.dh ? get2(x.row(row) + column) : make_float2(0, 0);
    }
#pragma unroll
    for (int k = 0; k < M * DEPTH / 4; k++) {
        const float2 x = v[k / (DEPTH / 4)][k / 4 % (DEPTH / 16)][k % 4];
        q[k / (DEPTH / 4)][k / 4 % (DEPTH / 16)][k % 4] = pack_fp16(w.scale * x.x, w.scale * x.y);
    }
}

/* Keys at once, by eights: what there are registers for. */
template <int DEPTH, int M> constexpr int EIGHTS_OF_KEYS = DEPTH *M >= 64 ? 2 : 4;

/* p (16 M, 8 N): products of the queries q with 8 N keys, of which `left` exist. */
template <int DEPTH, int M, int N>
FN void query_products(float p[M][N][4], const uint32_t q[M][DEPTH / 16][4], uint32_t keys,
                       int left) {
#pragma unroll
    for (int j = 0; j < 4 * N * M; j++) p[j / (4 * N)][j / 4 % N][j % 4] = 0.0f;
#pragma unroll
    for (int n = 0; n < N / 2; n++)
#pragma unroll
        for (int c = 0; c < DEPTH / 16; c++) {
            uint32_t b[4];
            load_matrices(keys + n * 16 * PAIR_BYTES<DEPTH> + c * 32, b);
#pragma unroll
            for (int m = 0; m < M; m++) {
                mma_fp16(p[m][2 * n], q[m][c], b);
                mma_fp16(p[m][2 * n + 1], q[m][c], b + 2);
            }
        }
    if (left >= 8 * N) return;
#pragma unroll
    for (int j = 0; j < 4 * N * M; j++)
        if (j / 4 % N * 8 + (int)threadIdx.x % 4 * 2 + j % 2 >= left)
            p[j / (4 * N)][j / 4 % N][j % 4] = -INFINITY;
}

/* `top` follows the largest product only when that is far above it, which is seldom after the first
 * keys: weights of up to 2^SLACK are as good as those of up to 1, and what was summed need not be
 * scaled. All lanes of a row have the same. */
template <int DEPTH, int M, int N>
FN void softmax_top(Softmax16<DEPTH, M> &r, const float p[M][N][4]) {
    float most[M][2];
    bool far = false;
#pragma unroll
    for (int k = 0; k < 2 * M; k++) {
        const int m = k >> 1, i = k & 1;
        most[m][i] = p[m][0][2 * i];
#pragma unroll
        for (int j = 1; j < 2 * N; j++)
            most[m][i] = fmaxf(most[m][i], p[m][j >> 1][2 * i + (j & 1)]);
        far |= most[m][i] > r.top[m][i] + SLACK;
    }
    if (!__any_sync(~0u, far)) return;
#pragma unroll
    for (int k = 0; k < 2 * M; k++) {
        const int m = k >> 1, i = k & 1;
        const float top = fmaxf(r.top[m][i], quad_max(most[m][i]));
        const float keep = fast_exp2(r.top[m][i] - top);
        r.top[m][i] = top, r.sum[m][i] *= keep;
#pragma unroll
        for (int c = 0; c < DEPTH / 8; c++) r.o[m][c][2 * i] *= keep, r.o[m][c][2 * i + 1] *= keep;
    }
}

/* 8 N keys and values, of which `left` exist; across, down: the lane's places. */
template <int DEPTH, int M, int N>
FN void forward_step(Softmax16<DEPTH, M> &r, const uint32_t q[M][DEPTH / 16][4], uint32_t across,
                     uint32_t down, int left) {
    float p[M][N][4];
    query_products<DEPTH, M, N>(p, q, across, left);
    softmax_top<DEPTH, M, N>(r, p);
#pragma unroll
    for (int j = 0; j < 4 * N * M; j++) {
        const int m = j / (4 * N), i = j / 2 % 2;
        float &x = p[m][j / 4 % N][j % 4];
        x = fast_exp2(x - r.top[m][i]);
        r.sum[m][i] += x;
    }
#pragma unroll
    for (int n = 0; n < N / 2; n++) {
        uint32_t a[M][4];
#pragma unroll
        for (int m = 0; m < M; m++) results_left(a[m], p[m] + 2 * n);
        add_rows<DEPTH, M>(r.o, a, down + n * 16 * PAIR_BYTES<DEPTH>);
    }
}

/* o = q + weighted values / sum of weights, and the log of the sum. */
template <int DEPTH, int M>
FN void softmax_store(const Softmax16<DEPTH, M> &r, const wide_op &op, const Head16 &w,
                      const Rows16 &q, int row0) {
    const int lane = threadIdx.x % 32, t = lane % 4 * 2;
    const Rows16 o = rows_of_head(op.out[0], w, 0);
    float *lse = wide_at(op.out[1], w.b) + w.h;
#pragma unroll
    for (int k = 0; k < 2 * M; k++) {
        const int m = k >> 1, i = k & 1, row = row0 + k * 8 + lane / 4;
        const float sum = quad_sum(r.sum[m][i]);
        if (row >= w.nq) continue;
        const float share = w.nk > 0 ? fast_inverse(sum) : 0.0f;
        const float *from = q.row(row) + t;
        float *to = (float *)o.row(row) + t;
        float2 x[DEPTH / 8];
#pragma unroll
        for (int c = 0; c < DEPTH / 8; c++) /* all loads first */
            if (c * 8 + t < w.dh) x[c] = get2(from + c * 8);
#pragma unroll
        for (int c = 0; c < DEPTH / 8; c++)
            if (c * 8 + t < w.dh)
                set2(to + c * 8, make_float2(x[c].x + share * r.o[m][c][2 * i],
                                             x[c].y + share * r.o[m][c][2 * i + 1]));
        if (t == 0)
            lse[row * op.i[DATT_HEADS]] = w.nk > 0 ? LN2 * (r.top[m][i] + log2f(sum)) : -INFINITY;
    }
}

/* Zeros in the padding of o, by teams of the first head. */
FN void pad_store(const wide_op &op, const Head16 &w, Team team, int first, int end) {
    const wide_operand &o = op.out[0];
    const int D = op.i[DATT_WIDTH], pad = o.ld - D;
    if (pad == 0 || w.h > 0) return;
    float *to = wide_at(o, w.b) + D;
    for (int i = team.rank; i < (end - first) * pad; i += team.size)
        to[(int64_t)(first + i / pad) * o.ld + i % pad] = 0.0f;
}

/* A team takes 16 M queries a warp. Nobody of it meets the others of the block. */
template <int DEPTH, int M>
FN void forward_team(const wide_launch &l, const wide_op &op, const attention16_deal &d,
                     int block) {
    constexpr int P = PAIR_BYTES<DEPTH>, N = EIGHTS_OF_KEYS<DEPTH, M>;
    const Team team = head_team(d);
    const Head16 w = head_of(l, op, d, block);
    const int first = w.part * team.size / 2 * M, row0 = first + team.rank / 32 * 16 * M;
    if (!w.live || first >= w.nq) return;
    const Rows16 query = rows_of_head(op.in[0], w, op.i[DATT_QCOL]);
    const Keys16 key = keys_of_head(op, w);
    const Quads<DEPTH> quads(team);
    const uint32_t keys = shared_at((float *)smem) + team.id * team.size * P;
    const uint32_t across = keys + lane_columns(P), down = keys + lane_rows(P) + 2 * DEPTH;
    uint32_t q[M][DEPTH / 16][4];
    Softmax16<DEPTH, M> r;
    fetch_queries<DEPTH, M>(q, query, w, row0);
    softmax_begin<DEPTH, M>(r);
#pragma unroll 1
    for (int from = 0; from < w.nk; from += team.size) {
        if (from > 0) team_sync<ATTENTION_FORWARD_WARPS>(team);
#pragma unroll 1
        for (int part = 0; part < DEPTH / 16; part++) /* four quads of each at once */
            put_keys<DEPTH, 4>(keys + part * 4 * quads.rows * P, key, quads, w.dh,
                               from + part * 4 * quads.rows, w.nk);
        team_sync<ATTENTION_FORWARD_WARPS>(team);
        if (row0 >= w.nq) continue;
        const int left = w.nk - from;
#pragma unroll 1
        for (int s = 0; s < min(left, team.size); s += 8 * N)
            forward_step<DEPTH, M, N>(r, q, across + s * P, down + s * P, left - s);
    }
    if (row0 < w.nq) softmax_store<DEPTH, M>(r, op, w, query, row0);
    pad_store(op, w, team, first, min(w.nq, first + team.size / 2 * M));
}

/* Keys and values of all teams of a block: as many rows as it has threads. */
template <int DEPTH>
constexpr int FORWARD16_BYTES = 32 * ATTENTION_FORWARD_WARPS *PAIR_BYTES<DEPTH>;

#endif
