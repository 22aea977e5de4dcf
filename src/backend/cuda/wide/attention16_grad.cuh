/* attention16_grad.cuh: wide attention in reverse, mode tf32 (equations in op/attention.c).
 *
 * A team that has all rows of a head goes over the scores once: its warps have 16 keys each, sum dk
 * and dv over all queries and leave dS in shared memory, from which they take dq for 16 queries
 * each. Where there are more rows it goes over them twice, in blocks of two kinds: own rows are
 * keys for dk and dv, queries for dq, and the rows of the other side pass by. No sum crosses teams.
 *
 *                own rows x, y     the other side's x, y     sums
 *   keys         k, v              q, g                      dk = dS^T q, dv = A^T g
 *   queries      q, g              k, v                      dq = dS k
 *
 * Products begin with what is to be subtracted:
 *   A = 2^(q k - lse),   dS = A (g v - delta),   delta = sum of g (o - q) over the head's columns.
 * fp16 has little range, so g and delta are multiplied by a power of two, GradScale16. */
#ifndef MNP_CUDA_WIDE_ATTENTION16_GRAD_CUH
#define MNP_CUDA_WIDE_ATTENTION16_GRAD_CUH

#include "backend/cuda/wide/attention16_tiles.cuh"

/* Own rows of a block, and of the other side at once: what there are registers for. */
enum { ROWS16 = 16 * ATTENTION_WARPS };
template <int DEPTH> constexpr int PASSING16 = ROWS16 * 16 / DEPTH;
/* Quads of one tensor that a thread fetches of own and of passing rows. */
template <int DEPTH> constexpr int OWN_QUADS = DEPTH / 8;
template <int DEPTH> constexpr int PASSING_QUADS = OWN_QUADS<DEPTH> *PASSING16<DEPTH> / ROWS16;

/* Shared memory of a team is a share of the block's:
 *   own rows (rows, PAIR_BYTES), passing rows likewise, then of each query -lse and -delta, and the
 *   largest |g| of each warp; where all rows are there at once, dS (keys, SCORES_BYTES) too. */
enum { SCORES_BYTES = 2 * ROWS16 + 16, START_BYTES = 16 };
template <int DEPTH, bool ONCE>
constexpr int GRAD16_BYTES =
    (ROWS16 + (ONCE ? ROWS16 : PASSING16<DEPTH>)) * PAIR_BYTES<DEPTH> + ROWS16 *START_BYTES +
    4 * ATTENTION_WARPS + (ONCE ? ROWS16 * SCORES_BYTES : 0);

/* What g is multiplied by, a power of two, so that the largest is between 1/2 and 1: dS is at most
 * 2 depth |v| then. back = 1 / by. */
struct GradScale16 {
    float by, back;
};
FN GradScale16 grad_scale(float most) {
    const uint32_t e = min(__float_as_uint(most) >> 23, 252u);
    if (e == 0 || !(most < INFINITY)) return {1.0f, 1.0f};
    return {__uint_as_float((253 - e) << 23), __uint_as_float((e + 1) << 23)};
}

/* ---- queries --------------------------------------------------------------------------------- */

/* Queries with their gradients, and where their beginnings lie: of every pair of queries -lse twice
 * (0 1 0 1), then -delta likewise: what tiles of results with queries as columns start from. */
struct Queries16 {
    Rows16 q, g, o;
    const float *lse;
    int heads, dh, end; /* end: rows from here on are zeros without weight */
    float scale;
    uint32_t starts, largest;
};
FN uint32_t start_of(uint32_t starts, int r) {
    return starts + r / 2 * 32 + r % 2 * 4;
}
FN void put_start(uint32_t at, float x) {
    store_word(at, __float_as_uint(x)), store_word(at + 8, __float_as_uint(x));
}

FN float largest_of(float most, float4 v) {
    return fmaxf(most, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
}
/* The largest number of all threads of a team, which meets. */
FN float team_largest(float most, uint32_t at, Team team) {
    for (int d = 16; d > 0; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (team.rank % 32 == 0) store_word(at + team.rank / 32 * 4, __float_as_uint(most));
    team_sync<ATTENTION_WARPS>(team);
    most = 0.0f;
    for (int w = 0; w < team.size / 32; w++) most = fmaxf(most, load_float(at + w * 4));
    return most;
}

/* COUNT quads a thread of queries from `from` on, g times the factor that fits them and all before
 * (of which the largest was `most`). The team meets before g is written. */
template <int DEPTH, int COUNT>
FN float put_queries(uint32_t to, const Queries16 &x, const Quads<DEPTH> &at, Team team, int from,
                     float most) {
    constexpr int LANES = DEPTH / 4, EACH = DEPTH == 64 ? 1 : 2;
    const uint32_t first = to + at.row * PAIR_BYTES<DEPTH> + at.column * 2;
    float4 g[COUNT];
    float delta[COUNT], lse[COUNT];
    fetch_rows<DEPTH, COUNT>(g, x.g, at, x.dh, from, x.end);
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        const int row = from + at.row + k * at.rows;
        lse[k] = at.column == 0 && row < x.end ? __ldcg(x.lse + row * x.heads) : INFINITY;
    }
#pragma unroll
    for (int part = 0; part < COUNT; part += EACH) {
        float4 q[EACH], o[EACH];
        fetch_rows<DEPTH, EACH>(q, x.q, at, x.dh, from + part * at.rows, x.end);
        fetch_rows<DEPTH, EACH>(o, x.o, at, x.dh, from + part * at.rows, x.end);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const int k = part + j;
            put_quad(first + k * at.rows * PAIR_BYTES<DEPTH>, q[j], x.scale);
            delta[k] = dot4(g[k], add4(o[j], -1.0f, q[j]));
            most = largest_of(most, g[k]);
        }
    }
    most = team_largest(most, x.largest, team);
    const float by = grad_scale(most).by;
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        const int r = at.row + k * at.rows;
        put_quad(first + k * at.rows * PAIR_BYTES<DEPTH> + 2 * DEPTH, g[k], by);
#pragma unroll
        for (int step = LANES / 2; step > 0; step /= 2)
            delta[k] += __shfl_xor_sync(~0u, delta[k], step);
        if (at.column == 0) {
            put_start(start_of(x.starts, r), -LOG2E * lse[k]);
            put_start(start_of(x.starts, r) + 16, -by * delta[k]);
        }
    }
    return most;
}

/* ---- products -------------------------------------------------------------------------------- */

/* A warp's own 16 rows of x and y as left operands: in registers, where these suffice, or read
 * each time. */
template <int DEPTH> constexpr bool HOLD16 = DEPTH <= 32;
template <int DEPTH, bool HOLD> struct Own16 {
    uint32_t a[2][DEPTH / 16][4];
    MEMBER Own16(uint32_t at) {
#pragma unroll
        for (int j = 0; j < DEPTH / 8; j++)
            load_matrices(at + j * 32, a[j / (DEPTH / 16)][j % (DEPTH / 16)]);
    }
    MEMBER void get(uint32_t to[4], int of, int c) const {
#pragma unroll
        for (int j = 0; j < 4; j++) to[j] = a[of][c][j];
    }
};
template <int DEPTH> struct Own16<DEPTH, false> {
    uint32_t at;
    MEMBER Own16(uint32_t where) { at = where; }
    MEMBER void get(uint32_t to[4], int of, int c) const {
        load_matrices(at + of * 2 * DEPTH + c * 32, to);
    }
};
template <int DEPTH> using OwnRows = Own16<DEPTH, HOLD16<DEPTH>>;

/* s += x x', d += y y' over 8 COUNT rows of the other side; at: the lane's place in them. Heads
 * that are not held take both eights of 16 rows at once. */
template <int DEPTH> constexpr int EIGHTS = HOLD16<DEPTH> ? 1 : 2;
template <int DEPTH, int COUNT>
FN void grad_products(float s[COUNT][4], float d[COUNT][4], const OwnRows<DEPTH> &own,
                      uint32_t at) {
    constexpr int P = PAIR_BYTES<DEPTH>;
    uint32_t b[4], a[2][4];
    if constexpr (DEPTH == 16) { /* x' and y' lie side by side */
        own.get(a[0], 0, 0), own.get(a[1], 1, 0);
#pragma unroll
        for (int n = 0; n < COUNT; n++) {
            load_matrices(at + n * 8 * P, b);
            mma_fp16(s[n], a[0], b), mma_fp16(d[n], a[1], b + 2);
        }
    } else {
#pragma unroll
        for (int k = 0; k < DEPTH / 16; k++) {
            const int of = k % 2, c = k / 2 * 2;
            own.get(a[0], of, c), own.get(a[1], of, c + 1);
#pragma unroll
            for (int n = 0; n < COUNT; n++) {
                load_matrices(at + n * 8 * P + of * 2 * DEPTH + c * 32, b);
                mma_fp16(of ? d[n] : s[n], a[0], b), mma_fp16(of ? d[n] : s[n], a[1], b + 2);
            }
        }
    }
}
/* s becomes weights, d dS: both as a part of left operands. */
FN void grad_weights(uint32_t weights[2], uint32_t scores[2], float s[4], float d[4]) {
#pragma unroll
    for (int j = 0; j < 4; j++) s[j] = fast_exp2(s[j]), d[j] *= s[j];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        weights[i] = pack_fp16(s[2 * i], s[2 * i + 1]);
        scores[i] = pack_fp16(d[2 * i], d[2 * i + 1]);
    }
}
FN void begin_with(float c[4], float4 v) {
    c[0] = v.x, c[1] = v.y, c[2] = v.z, c[3] = v.w;
}

template <int DEPTH> struct KeySums16 { float k[1][DEPTH / 8][4], v[1][DEPTH / 8][4]; };
template <int COUNT> FN void clear(float (*x)[4]) {
#pragma unroll
    for (int j = 0; j < 4 * COUNT; j++) x[j >> 2][j & 3] = 0.0f;
}

/* dS of 16 keys, of which `left` exist, and 16 queries to shared memory. */
FN void put_scores(uint32_t at, const uint32_t a[4], int left) {
    const int row = threadIdx.x % 32 / 4;
    store_word(at, row < left ? a[0] : 0u), store_word(at + 16, row < left ? a[2] : 0u);
    at += 8 * SCORES_BYTES;
    store_word(at, row + 8 < left ? a[1] : 0u), store_word(at + 16, row + 8 < left ? a[3] : 0u);
}

/* A warp's own keys against `rows` queries in shared memory; passing: where these begin. scores:
 * the lane's place in dS, if it is kept; left: of the warp's keys, how many exist. */
template <int DEPTH, bool ONCE>
FN void keys_pass(KeySums16<DEPTH> &r, const OwnRows<DEPTH> &own, uint32_t passing, uint32_t starts,
                  int rows, uint32_t scores, int left) {
    constexpr int P = PAIR_BYTES<DEPTH>;
    const uint32_t begins = starts + threadIdx.x % 4 * 32;
    const uint32_t across = passing + lane_eight(P), down = passing + lane_rows(P);
#pragma unroll 1
    for (int from = 0; from < rows; from += 16) {
        uint32_t weights[1][4], ds[1][4];
#pragma unroll
        for (int k = 0; k < 2; k += EIGHTS<DEPTH>) {
            float s[EIGHTS<DEPTH>][4], d[EIGHTS<DEPTH>][4];
#pragma unroll
            for (int n = 0; n < EIGHTS<DEPTH>; n++) {
                const uint32_t at = begins + (from + 8 * (k + n)) * START_BYTES;
                begin_with(s[n], load_quad(at)), begin_with(d[n], load_quad(at + 16));
            }
            grad_products<DEPTH, EIGHTS<DEPTH>>(s, d, own, across + (from + k * 8) * P);
#pragma unroll
            for (int n = 0; n < EIGHTS<DEPTH>; n++)
                grad_weights(weights[0] + 2 * (k + n), ds[0] + 2 * (k + n), s[n], d[n]);
        }
        add_rows<DEPTH, 1>(r.v, weights, down + from * P + 2 * DEPTH);
        if constexpr (ONCE) put_scores(scores + from * 2, ds[0], left);
        add_rows<DEPTH, 1>(r.k, ds, down + from * P);
    }
}

/* A warp's own queries against keys in shared memory, of which `left` exist; begins: -lse and
 * -delta of the lane's two queries. */
template <int DEPTH>
FN void queries_pass(float sum[1][DEPTH / 8][4], const OwnRows<DEPTH> &own, uint32_t passing,
                     const float begins[2][2], int rows, int left) {
    constexpr int P = PAIR_BYTES<DEPTH>;
    const uint32_t across = passing + lane_eight(P), down = passing + lane_rows(P);
#pragma unroll 1
    for (int from = 0; from < min(rows, left); from += 16) {
        float s[2][4], d[2][4];
        uint32_t weights[2], ds[1][4];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int i = j >> 1 & 1;
            s[j >> 2][j & 3] = begins[0][i], d[j >> 2][j & 3] = begins[1][i];
        }
        grad_products<DEPTH, 2>(s, d, own, across + from * P);
        if (left - from < 16)
#pragma unroll
            for (int j = 0; j < 8; j++)
                if ((j >> 2) * 8 + (int)threadIdx.x % 4 * 2 + (j & 1) >= left - from)
                    s[j >> 2][j & 3] = -INFINITY;
#pragma unroll
        for (int n = 0; n < 2; n++) grad_weights(weights, ds[0] + 2 * n, s[n], d[n]);
        add_rows<DEPTH, 1>(sum, ds, down + from * P);
    }
}

/* dq of a warp's 16 queries from dS of all keys; scores, down: the lane's places. */
template <int DEPTH>
FN void scores_pass(float sum[1][DEPTH / 8][4], uint32_t scores, uint32_t down, int keys) {
#pragma unroll 2
    for (int from = 0; from < keys; from += 16) {
        uint32_t a[1][4];
        load_transposed(scores + from * SCORES_BYTES, a[0]);
        add_rows<DEPTH, 1>(sum, a, down + from * PAIR_BYTES<DEPTH>);
    }
}

/* ---- stores ---------------------------------------------------------------------------------- */

/* A gradient's head: its first column in row 0. */
struct GradOut16 {
    float *p;
    int ld, dh, rows;
    bool add;
};
FN GradOut16 grad_out(const wide_op &op, int j, const Head16 &w, int column, int rows) {
    const wide_operand &o = op.out[j];
    return {wide_at(o, w.b) + column + w.h * w.dh, o.ld, w.dh, rows, (op.adds >> j & 1u) != 0};
}

/* factor times the sums of 16 rows, on top of `plus` (p NULL: nothing) and, if asked, of what is
 * there. */
template <int DEPTH>
FN void grad_store(const float sum[DEPTH / 8][4], float factor, const GradOut16 &out, int row0,
                   const Rows16 &plus) {
    const int lane = threadIdx.x % 32, t = lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = row0 + i * 8 + lane / 4;
        if (row >= out.rows) continue;
        float *to = out.p + (unsigned)row * (unsigned)out.ld + t;
        float2 was[DEPTH / 8];
#pragma unroll
        for (int c = 0; c < DEPTH / 8; c++) { /* all loads first */
            const bool has = c * 8 + t < out.dh;
            was[c] = out.add && has ? get2(to + c * 8) : make_float2(0.0f, 0.0f);
            if (plus.p && has) {
                const float2 x = get2(plus.row(row) + t + c * 8);
                was[c].x += x.x, was[c].y += x.y;
            }
        }
#pragma unroll
        for (int c = 0; c < DEPTH / 8; c++)
            if (c * 8 + t < out.dh)
                set2(to + c * 8, make_float2(was[c].x + factor * sum[c][2 * i],
                                             was[c].y + factor * sum[c][2 * i + 1]));
    }
}

/* ---- teams ----------------------------------------------------------------------------------- */

/* A team's part of shared memory, and what it reads. */
struct GradTeam {
    Team team;
    Head16 w;
    Keys16 k;
    Queries16 q;
    uint32_t own, passing, scores;
    int first; /* own row */
};
template <int DEPTH, int PASSING>
FN GradTeam grad_team(const wide_launch &l, const wide_op &op, const attention16_deal &d,
                      int block) {
    constexpr int P = PAIR_BYTES<DEPTH>;
    GradTeam x;
    x.team = head_team(d), x.w = head_of(l, op, d, block);
    if (!x.w.live) return x;
    x.k = keys_of_head(op, x.w);
    x.q.q = rows_of_head(op.in[DATT_G_QV], x.w, op.i[DATT_QCOL]);
    x.q.g = rows_of_head(op.in[DATT_G_G], x.w, 0);
    x.q.o = rows_of_head(op.in[DATT_G_O], x.w, 0);
    x.q.lse = wide_at(op.in[DATT_G_LSE], x.w.b) + x.w.h;
    x.q.heads = op.i[DATT_HEADS], x.q.dh = x.w.dh, x.q.end = x.w.nq, x.q.scale = x.w.scale;
    const uint32_t base = shared_at((float *)smem), id = x.team.id, rows = x.team.size / 2;
    const uint32_t passing = base + ROWS16 * P, starts = passing + PASSING * P;
    const uint32_t largest = starts + ROWS16 * START_BYTES;
    x.own = base + id * rows * P, x.passing = passing + id * rows * P * PASSING / ROWS16;
    x.q.starts = starts + id * rows * START_BYTES, x.q.largest = largest + id * rows / 4;
    x.scores = largest + 4 * ATTENTION_WARPS + id * rows * SCORES_BYTES;
    x.first = x.w.part * rows;
    return x;
}

/* A team's share of the zeros in the gradient of what has the queries, which in self-attention is
 * all of it, or the keys. First of all, while the lengths are at hand. */
FN void zero_queries(const wide_launch &l, const wide_op &op, const GradTeam &x, int tiles) {
    const Head16 &w = x.w;
    if (!(op.adds & 1u))
        grad_zero(l, op, op.out[0], w.b, w.nq, w.nk, true, attention_of_itself(&op),
                  w.h * tiles + w.part, op.i[DATT_HEADS] * tiles, x.team);
}
FN void zero_keys(const wide_launch &l, const wide_op &op, const GradTeam &x, int tiles) {
    const Head16 &w = x.w;
    if (!attention_of_itself(&op) && !(op.adds & 2u))
        grad_zero(l, op, op.out[1], w.b, w.nq, w.nk, false, true, w.h * tiles + w.part,
                  op.i[DATT_HEADS] * tiles, x.team);
}

/* dk and dv of a warp's keys. */
template <int DEPTH>
FN void keys_store(const KeySums16<DEPTH> &r, const wide_op &op, const Head16 &w, float back,
                   int row0) {
    const int j = attention_of_itself(&op) ? 0 : 1;
    grad_store<DEPTH>(r.k[0], LN2 * back, grad_out(op, j, w, op.i[DATT_KCOL], w.nk), row0, {});
    grad_store<DEPTH>(r.v[0], back, grad_out(op, j, w, op.i[DATT_VCOL], w.nk), row0, {});
}
template <int DEPTH>
FN void queries_store(const float sum[DEPTH / 8][4], const wide_op &op, const GradTeam &x,
                      float back, int row0) {
    grad_store<DEPTH>(sum, LN2 * x.w.scale * back, grad_out(op, 0, x.w, op.i[DATT_QCOL], x.w.nq),
                      row0, x.q.g);
}

/* All rows of a head at once. */
template <int DEPTH>
FN void grad_once(const wide_launch &l, const wide_op &op, const attention16_deal &d, int block) {
    constexpr int P = PAIR_BYTES<DEPTH>;
    const GradTeam x = grad_team<DEPTH, ROWS16>(l, op, d, block);
    const Head16 &w = x.w;
    if (!w.live) return;
    zero_queries(l, op, x, 1);
    zero_keys(l, op, x, 1);
    const Quads<DEPTH> quads(x.team);
    const int row0 = x.team.rank / 32 * 16, lane = threadIdx.x % 32;
    put_keys<DEPTH, OWN_QUADS<DEPTH>>(x.own, x.k, quads, w.dh, 0, w.nk);
    const float most = put_queries<DEPTH, OWN_QUADS<DEPTH>>(x.passing, x.q, quads, x.team, 0, 0.0f);
    const float back = grad_scale(most).back;
    team_sync<ATTENTION_WARPS>(x.team);
    if (row0 < w.nk) {
        KeySums16<DEPTH> r;
        clear<DEPTH / 8>(r.k[0]), clear<DEPTH / 8>(r.v[0]);
        const OwnRows<DEPTH> own(x.own + row0 * P + lane_rows(P));
        keys_pass<DEPTH, true>(r, own, x.passing, x.q.starts, w.nq,
                               x.scores + (row0 + lane / 4) * SCORES_BYTES + lane % 4 * 4,
                               w.nk - row0);
        keys_store<DEPTH>(r, op, w, back, row0);
    }
    team_sync<ATTENTION_WARPS>(x.team);
    if (row0 < w.nq) {
        float sum[1][DEPTH / 8][4];
        clear<DEPTH / 8>(sum[0]);
        scores_pass<DEPTH>(sum, x.scores + row0 * 2 + lane_columns(SCORES_BYTES),
                           x.own + lane_rows(P), w.nk);
        queries_store<DEPTH>(sum[0], op, x, back, row0);
    }
}

/* Own rows are keys. */
template <int DEPTH>
FN void grad_keys(const wide_launch &l, const wide_op &op, const attention16_deal &d, int block) {
    constexpr int P = PAIR_BYTES<DEPTH>;
    const GradTeam x = grad_team<DEPTH, PASSING16<DEPTH>>(l, op, d, block);
    const Head16 &w = x.w;
    if (!w.live) return;
    zero_keys(l, op, x, d.tiles);
    if (x.first >= w.nk) return;
    const Quads<DEPTH> quads(x.team);
    const int begins = x.team.rank / 32 * 16, row0 = x.first + begins;
    const int passing = PASSING16<DEPTH> * x.team.size / 2 / ROWS16;
    put_keys<DEPTH, OWN_QUADS<DEPTH>>(x.own, x.k, quads, w.dh, x.first, w.nk);
    team_sync<ATTENTION_WARPS>(x.team);
    const OwnRows<DEPTH> own(x.own + begins * P + lane_rows(P));
    KeySums16<DEPTH> r;
    clear<DEPTH / 8>(r.k[0]), clear<DEPTH / 8>(r.v[0]);
    float most = 0.0f;
#pragma unroll 1
    for (int from = 0; from < w.nq; from += passing) {
        if (from > 0) team_sync<ATTENTION_WARPS>(x.team);
        const float was = grad_scale(most).back;
        most = put_queries<DEPTH, PASSING_QUADS<DEPTH>>(x.passing, x.q, quads, x.team, from, most);
        const float by = was * grad_scale(most).by;
        team_sync<ATTENTION_WARPS>(x.team);
        if (row0 >= w.nk) continue;
        if (by != 1.0f)
#pragma unroll
            for (int j = 0; j < DEPTH / 2; j++)
                r.k[0][j >> 2][j & 3] *= by, r.v[0][j >> 2][j & 3] *= by;
        keys_pass<DEPTH, false>(r, own, x.passing, x.q.starts, min(passing, w.nq - from), 0, 0);
    }
    if (row0 < w.nk) keys_store<DEPTH>(r, op, w, grad_scale(most).back, row0);
}

/* Own rows are queries. */
template <int DEPTH>
FN void grad_queries(const wide_launch &l, const wide_op &op, const attention16_deal &d,
                     int block) {
    constexpr int P = PAIR_BYTES<DEPTH>;
    const GradTeam x = grad_team<DEPTH, PASSING16<DEPTH>>(l, op, d, block);
    const Head16 &w = x.w;
    if (!w.live) return;
    zero_queries(l, op, x, d.tiles);
    if (x.first >= w.nq) return;
    const Quads<DEPTH> quads(x.team);
    const int begins = x.team.rank / 32 * 16, row0 = x.first + begins;
    const int passing = PASSING16<DEPTH> * x.team.size / 2 / ROWS16;
    const float most =
        put_queries<DEPTH, OWN_QUADS<DEPTH>>(x.own, x.q, quads, x.team, x.first, 0.0f);
    team_sync<ATTENTION_WARPS>(x.team);
    const OwnRows<DEPTH> own(x.own + begins * P + lane_rows(P));
    float sum[1][DEPTH / 8][4], start[2][2];
    clear<DEPTH / 8>(sum[0]);
#pragma unroll
    for (int k = 0; k < 4; k++)
        start[k >> 1][k & 1] = load_float(
            start_of(x.q.starts, begins + (k & 1) * 8 + (int)threadIdx.x % 32 / 4) + (k >> 1) * 16);
#pragma unroll 1
    for (int from = 0; from < w.nk; from += passing) {
        if (from > 0) team_sync<ATTENTION_WARPS>(x.team);
        put_keys<DEPTH, PASSING_QUADS<DEPTH>>(x.passing, x.k, quads, w.dh, from, w.nk);
        team_sync<ATTENTION_WARPS>(x.team);
        if (row0 < w.nq) queries_pass<DEPTH>(sum, own, x.passing, start, passing, w.nk - from);
    }
    if (row0 < w.nq) queries_store<DEPTH>(sum[0], op, x, grad_scale(most).back, row0);
}

#endif
