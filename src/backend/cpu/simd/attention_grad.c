/* attention_grad.c: the backward pass of multi-head attention. With go the gradient of o, per head:
 *
 *     P = exp(scale q k^T - lse)                      recomputed, never stored in full
 *     D = rowsum(go * (o - q))                        = rowsum(P * gP)
 *     gv = P^T go,  gP = go v^T,  gS = P * (gP - D)
 *     gq = go + scale gS k,  gk = scale gS^T q
 *
 * Blocks as in the forward pass (attention_tile.h): queries in lanes for scores, gP and gq; the
 * sums over queries for gk and gv run with d in the lanes over the stored tile of P or gS. */
#include "backend/cpu/simd/attention_tile.h"

enum { KB = 64 }; /* keys per block: P, gS, k, v, gk, gv of a block fill 24 KB when dh = 16 */

/* One block of queries of one head. Row by row, qt and gq are rows as well and got is not used. */
typedef struct queries {
    float *q, *go;   /* (QB, dp), not scaled                              */
    float *qt, *got; /* (dp, QB), qt scaled to base-two scores            */
    float *gq;       /* (dp, QB), gS k                                    */
    float *lse, *D;  /* (QB), both negated, lse in base two               */
    bool by_rows;
} queries;

typedef struct workspace {
    float *k, *v, *gk, *gv; /* (KB, dp)                     */
    float *kt, *vt;         /* (dp, KB), for the rows       */
    float *p, *gs;          /* (KB, QB)                     */
} workspace;

static int64_t block_floats(int64_t dp) {
    return QB * (5 * dp + 2);
}
static int64_t workspace_floats(int64_t dp) {
    return 6 * KB * dp + 2 * KB * QB;
}

int64_t ISA(cpu_attn_grad_floats)(int64_t nq, int64_t dp) {
    return round_up(nq, QB) / QB * block_floats(dp) + workspace_floats(dp);
}

static queries cut_queries(float *scratch, int64_t dp, int64_t nq, int64_t first) {
    float *at = scratch + first / QB * block_floats(dp);
    const int64_t each = QB * dp;
    return (queries){.q = at,
                     .go = at + each,
                     .qt = at + 2 * each,
                     .got = at + 3 * each,
                     .gq = at + 4 * each,
                     .lse = at + 5 * each,
                     .D = at + 5 * each + QB,
                     .by_rows = nq - first <= FEW};
}

static workspace cut_workspace(float *at, int64_t dp) {
    const int64_t each = KB * dp;
    return (workspace){.k = at,
                       .v = at + each,
                       .gk = at + 2 * each,
                       .gv = at + 3 * each,
                       .kt = at + 4 * each,
                       .vt = at + 5 * each,
                       .p = at + 6 * each,
                       .gs = at + 6 * each + KB * QB};
}

/* Fills one block from row `first` on: lanes without a query get zeros, which add nothing. */
static void load_queries(const attn_grad_args *g, int64_t h, int64_t dp, int64_t first, queries b) {
    const attn_args *a = &g->fwd;
    const int64_t dh = a->dh, rows = least(QB, a->nq - first), column = h * dh;
    const float factor = a->scale * 1.44269504f;
    clear(b.q + rows * dp, (QB - rows) * dp);
    clear(b.go + rows * dp, (QB - rows) * dp);
    clear(b.gq + rows * dp, (QB - rows) * dp);
    clear(b.lse, QB);
    pack_rows(rows, dh, dp, a->q + first * a->ldq + column, a->ldq, 1, b.q);
    pack_rows(rows, dh, dp, g->go + first * g->ldgo + column, g->ldgo, 1, b.go);
    pack_rows(rows, dh, dp, a->o + first * a->ldo + column, a->ldo, 1, b.gq);
    for (int64_t i = 0; i < QB; i += VL) { /* D: products per row, then lanes become rows */
        vf w[VL], sum = vset(0);
        for (int k = 0; k < VL; k++) {
            const int64_t at = (i + k) * dp;
            w[k] = vset(0);
            for (int64_t d = at; d < at + dp; d += VL)
                w[k] += vload(b.go + d) * (vload(b.gq + d) - vload(b.q + d));
        }
        transpose_tile(w);
        UNROLL for (int k = 0; k < VL; k++) sum += w[k];
        vstore(b.D + i, -sum);
    }
    for (int64_t i = 0; i < rows; i++) b.lse[i] = -1.44269504f * a->lse[(first + i) * a->heads + h];
    if (b.by_rows) {
        for (int64_t d = 0; d < rows * dp; d += VL) vstore(b.qt + d, vload(b.q + d) * factor);
    } else {
        transpose_block(QB, dp, b.go, dp, b.got, QB);
        transpose_block(QB, dp, b.q, dp, b.qt, QB);
        for (int64_t d = 0; d < QB * dp; d += VL) vstore(b.qt + d, vload(b.qt + d) * factor);
    }
    clear(b.gq, QB * dp);
}

/* A block of queries against n keys: adds to gq of the block and to gk, gv of the workspace,
 * which hold nothing yet when fresh. */
SIMD_INLINE void block_grad(int64_t dh, int64_t dp, int64_t n, bool fresh, queries b, workspace w) {
    for (int64_t j = 0; j < n; j += JT) {
        vf s[JT][QV];
        UNROLL for (int k = 0; k < JT; k++) UNROLL for (int u = 0; u < QV; u++) s[k][u] =
            vload(b.lse + u * VL);
        score_tile(dh, dp, b.qt, w.k + j * dp, s);
        UNROLL for (int k = 0; k < JT; k++) UNROLL for (int u = 0; u < QV; u++)
            vstore(w.p + (j + k) * QB + u * VL, s[k][u]);
    }
    for (int64_t j = 0; j < n * QB; j += VL) vstore(w.p + j, vexp2_neg(vload(w.p + j)));
    for (int64_t j = 0; j < n; j += JT) {
        vf gp[JT][QV];
        UNROLL for (int k = 0; k < JT; k++) UNROLL for (int u = 0; u < QV; u++) gp[k][u] =
            vload(b.D + u * VL);
        score_tile(dh, dp, b.got, w.v + j * dp, gp);
        UNROLL for (int k = 0; k < JT; k++) UNROLL for (int u = 0; u < QV; u++) {
            const int64_t at = (j + k) * QB + u * VL;
            vstore(w.gs + at, vload(w.p + at) * gp[k][u]);
        }
    }
    weigh(dh, dp, n, w.gs, w.k, false, b.gq);
    outer(dp, n, w.p, b.go, fresh, w.gv);
    outer(dp, n, w.gs, b.q, fresh, w.gk);
}

/* The same for a block that goes row by row: keys and values in rows of ld floats, and here p and
 * gs are (rows, KB). */
SIMD_INLINE void rows_grad(int64_t dh, int64_t dp, int64_t n, bool fresh, int64_t rows,
                           const float *k, int64_t ld, queries b, workspace w) {
    const int64_t n_sub = round_up(n, SUB);
    for (int64_t i = 0; i < rows; i++) {
        float *p = w.p + i * KB, *gs = w.gs + i * KB;
        row_scores(dh, n_sub, b.qt + i * dp, w.kt, KB, b.lse[i], p);
        row_scores(dh, n_sub, b.go + i * dp, w.vt, KB, b.D[i], gs);
        for (int64_t j = 0; j < n_sub; j += VL) {
            vf weight = vexp2_neg(vload(p + j));
            vstore(p + j, weight);
            vstore(gs + j, weight * vload(gs + j));
        }
        for (int64_t j = n; j < n_sub; j++) p[j] = gs[j] = 0;
        row_weigh(dp, n_sub, gs, k, ld, false, b.gq + i * dp);
    }
    for (int64_t j = 0; j < n; j++)
        for (int64_t d = 0; d < dp; d += VL) {
            vf gv = fresh ? vset(0) : vload(w.gv + j * dp + d);
            vf gk = fresh ? vset(0) : vload(w.gk + j * dp + d);
            for (int64_t i = 0; i < rows; i++) {
                gv += w.p[i * KB + j] * vload(b.go + i * dp + d);
                gk += w.gs[i * KB + j] * vload(b.q + i * dp + d);
            }
            vstore(w.gv + j * dp + d, gv);
            vstore(w.gk + j * dp + d, gk);
        }
}

/* dst(n, dh) = factor src(n, dp) + more + (accumulate ? dst : 0); more may be NULL. */
SIMD_INLINE void unpack_rows(int64_t n, int64_t dh, int64_t dp, const float *src, float factor,
                             const float *more, int64_t ldm, bool accumulate, float *dst,
                             int64_t ld) {
    const bool whole = dh % VL == 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t d = 0; d < dh; d += VL) {
            const size_t bytes = (size_t)least(VL, dh - d) * sizeof(float);
            float extra[VL] = {0}, old[VL] = {0}, *at = dst + i * ld + d;
            if (more && whole) vstore(extra, vload(more + i * ldm + d));
            if (more && !whole) memcpy(extra, more + i * ldm + d, bytes);
            if (accumulate && whole) vstore(old, vload(at));
            if (accumulate && !whole) memcpy(old, at, bytes);
            vf sum = vfma(vload(src + i * dp + d), vset(factor), vload(extra)) + vload(old);
            if (whole) {
                vstore(at, sum);
            } else {
                vstore(extra, sum);
                memcpy(at, extra, bytes);
            }
        }
}

SIMD_INLINE void head_grad(const attn_grad_args *g, int64_t dh, int64_t dp, int64_t h,
                           float *scratch) {
    const attn_args *a = &g->fwd;
    const int64_t blocks = round_up(a->nq, QB) / QB;
    const workspace w = cut_workspace(scratch + blocks * block_floats(dp), dp);
    const bool few = last_is_few(a->nq);
    for (int64_t i = 0; i < a->nq; i += QB)
        load_queries(g, h, dp, i, cut_queries(scratch, dp, a->nq, i));
    for (int64_t j = 0; j < a->nk; j += KB) {
        const int64_t n = least(KB, a->nk - j), at = j * g->ldgk + h * dh;
        const float *k = w.k, *v = w.v;
        int64_t ld = dp;
        if (a->nq <= FEW && dh == dp && n % SUB == 0) { /* used once: packing would not pay */
            k = a->k + j * a->ldk + h * dh;
            v = a->v + j * a->ldk + h * dh;
            ld = a->ldk;
        } else {
            pack_keys(a, dh, dp, h, j, n, few ? SUB : JT, w.k, w.v);
        }
        if (few) {
            transpose_block(round_up(n, SUB), dp, k, ld, w.kt, KB);
            transpose_block(round_up(n, SUB), dp, v, ld, w.vt, KB);
        }
        for (int64_t i = 0; i < a->nq; i += QB) {
            const queries b = cut_queries(scratch, dp, a->nq, i);
            if (b.by_rows)
                rows_grad(dh, dp, n, i == 0, a->nq - i, k, ld, b, w);
            else
                block_grad(dh, dp, n, i == 0, b, w);
        }
        if (a->nq == 0) clear(w.gk, 2 * KB * dp); /* gk and gv */
        unpack_rows(n, dh, dp, w.gk, a->scale, NULL, 0, g->acc_k, g->gk + at, g->ldgk);
        unpack_rows(n, dh, dp, w.gv, 1, NULL, 0, g->acc_k, g->gv + at, g->ldgk);
    }
    for (int64_t i = 0; i < a->nq; i += QB) {
        const queries b = cut_queries(scratch, dp, a->nq, i);
        const float *rows = b.gq;
        if (!b.by_rows) {
            transpose_block(dp, QB, b.gq, QB, b.qt, dp);
            rows = b.qt;
        }
        unpack_rows(least(QB, a->nq - i), dh, dp, rows, a->scale, g->go + i * g->ldgo + h * dh,
                    g->ldgo, g->acc_q, g->gq + i * g->ldgq + h * dh, g->ldgq);
    }
}

void ISA(cpu_attn_grad)(const attn_grad_args *g, void *scratch) {
    const attn_args *a = &g->fwd;
    const int64_t width = (int64_t)a->heads * a->dh;
    for (int64_t h = 0; h < a->heads; h++) {
        if (a->dh == 16)
            head_grad(g, 16, 16, h, scratch);
        else
            head_grad(g, a->dh, round_up(a->dh, 16), h, scratch);
    }
    clear_columns(g->gq, g->ldgq, a->nq, width);
    clear_columns(g->gk, g->ldgk, a->nk, width);
    clear_columns(g->gv, g->ldgk, a->nk, width);
}
