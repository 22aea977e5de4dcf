/* attention.c: the forward pass of multi-head attention, o = q + softmax(scale q k^T) v per head.
 * The scores exist only for one block of queries and one block of keys at a time; a running maximum
 * m, sum l and unnormalised output carry over from key block to key block (streaming softmax), so
 * that the number of keys is not bounded by memory. attention_tile.h describes the blocks and the
 * order of the sums.
 *
 * scale log2(e) is folded into q: the scores are base-two logarithms, and m is kept in that base.
 */
#include "backend/cpu/simd/attention_tile.h"

enum { KB = 128 }; /* keys per block */

/* The state of one block of queries of one head. Row by row: q and o are (FEW, dp), else they are
 * transposed, (dp, QB). */
typedef struct running {
    float *q, *o, *m, *l;
    bool by_rows;
} running;

typedef struct workspace {
    float *k, *v; /* (KB, dp) the packed keys and values                  */
    float *kt;    /* (dp, KB) keys transposed, for the rows               */
    float *p;     /* (KB, QB) scores, then weights                        */
    float *sum;   /* (dp, QB) weighted values of this block of keys       */
} workspace;

static int64_t head_floats(int64_t nq, int64_t dp) {
    return round_up(nq, QB) * (2 * dp + 2);
}
static int64_t workspace_floats(int64_t dp) {
    return 3 * KB * dp + KB * QB + dp * QB;
}

static running block_state(float *state, int64_t dp, int64_t nq, int64_t first) {
    float *at = state + first * (2 * dp + 2);
    return (running){at, at + QB * dp, at + 2 * QB * dp, at + (2 * dp + 1) * QB, nq - first <= FEW};
}

static workspace cut_workspace(float *at, int64_t dp) {
    return (workspace){at, at + KB * dp, at + 2 * KB * dp, at + 3 * KB * dp,
                       at + 3 * KB * dp + KB * QB};
}

static void begin_head(const attn_args *a, int64_t h, int64_t dp, float *state) {
    const float factor = a->scale * 1.44269504f;
    for (int64_t i = 0; i < a->nq; i += QB) {
        running r = block_state(state, dp, a->nq, i);
        const int64_t rows = least(QB, a->nq - i);
        const float *q = a->q + i * a->ldq + h * a->dh;
        if (r.by_rows) {
            pack_rows(rows, a->dh, dp, q, a->ldq, factor, r.q);
        } else {
            clear(r.o + rows * dp, (QB - rows) * dp);
            pack_rows(rows, a->dh, dp, q, a->ldq, factor, r.o);
            transpose_block(QB, dp, r.o, dp, r.q, QB);
        }
        clear(r.o, QB * dp);
        for (int j = 0; j < QB; j += VL) {
            vstore(r.m + j, vset(-__builtin_inff()));
            vstore(r.l + j, vset(0));
        }
    }
}

/* Absorbs n keys into the state of a block of queries. */
SIMD_INLINE void absorb_block(int64_t dh, int64_t dp, int64_t n, running r, workspace w) {
    vf m[QV];
    UNROLL for (int u = 0; u < QV; u++) m[u] = vload(r.m + u * VL);
    for (int64_t j = 0; j < n; j += JT) { /* the padding repeats the last key: same maximum */
        vf s[JT][QV];
        UNROLL for (int k = 0; k < JT; k++) UNROLL for (int u = 0; u < QV; u++) s[k][u] = vset(0);
        score_tile(dh, dp, r.q, w.k + j * dp, s);
        UNROLL for (int k = 0; k < JT; k++) UNROLL for (int u = 0; u < QV; u++) {
            m[u] = vmax(m[u], s[k][u]);
            vstore(w.p + (j + k) * QB + u * VL, s[k][u]);
        }
    }
    UNROLL for (int u = 0; u < QV; u++) {
        vf total = vset(0);
        for (int64_t j = 0; j < n; j += SUB) {
            vf part = vset(0);
            const int64_t end = least(n, j + SUB);
            for (int64_t k = j; k < end; k++) {
                vf p = vexp2_neg(vload(w.p + k * QB + u * VL) - m[u]);
                vstore(w.p + k * QB + u * VL, p);
                part += p;
            }
            total += part;
        }
        vf shrink = vexp2_neg(vload(r.m + u * VL) - m[u]);
        vstore(r.l + u * VL, vfma(vload(r.l + u * VL), shrink, total));
        vstore(r.m + u * VL, shrink); /* until the outputs are shrunk as well */
    }
    weigh(dh, dp, n, w.p, w.v, true, w.sum);
    for (int64_t d = 0; d < dh; d++) UNROLL for (int u = 0; u < QV; u++) {
            float *o = r.o + d * QB + u * VL;
            vstore(o, vfma(vload(o), vload(r.m + u * VL), vload(w.sum + d * QB + u * VL)));
        }
    UNROLL for (int u = 0; u < QV; u++) vstore(r.m + u * VL, m[u]);
}

/* The same for the single query in row i of a block that goes row by row; values in rows of ldv. */
SIMD_INLINE void absorb_row(int64_t dh, int64_t dp, int64_t n, int64_t i, const float *v,
                            int64_t ldv, running r, workspace w) {
    const int64_t n_sub = round_up(n, SUB);
    row_scores(dh, n_sub, r.q + i * dp, w.kt, KB, 0, w.p);
    vf most = vload(w.p);
    for (int64_t j = VL; j < n_sub; j += VL) most = vmax(most, vload(w.p + j));
    const float m = vhmax(vmax(most, vset(r.m[i])));
    for (int64_t j = 0; j < n_sub; j += VL) vstore(w.p + j, vexp2_neg(vload(w.p + j) - m));
    for (int64_t j = n; j < n_sub; j++) w.p[j] = 0;
    const float total = row_weigh(dp, n_sub, w.p, v, ldv, true, w.sum);
    const vf shrink = vexp2_neg(vset(r.m[i]) - m);
    r.l[i] = vfma(vset(r.l[i]), shrink, vset(total))[0];
    r.m[i] = m;
    for (int64_t d = 0; d < dp; d += VL) {
        float *o = r.o + i * dp + d;
        vstore(o, vfma(vload(o), shrink, vload(w.sum + d)));
    }
}

SIMD_INLINE void accumulate_head(const attn_args *a, int64_t dh, int64_t dp, int64_t h,
                                 float *state, workspace w) {
    const bool few = last_is_few(a->nq);
    for (int64_t j = 0; j < a->nk; j += KB) {
        const int64_t n = least(KB, a->nk - j);
        const float *k = w.k, *v = w.v;
        int64_t ld = dp;
        if (a->nq <= FEW && dh == dp && n % SUB == 0) { /* used once: packing would not pay */
            k = a->k + j * a->ldk + h * dh;
            v = a->v + j * a->ldk + h * dh;
            ld = a->ldk;
        } else {
            pack_keys(a, dh, dp, h, j, n, few ? SUB : JT, w.k, w.v);
        }
        if (few) transpose_block(round_up(n, SUB), dp, k, ld, w.kt, KB);
        for (int64_t i = 0; i < a->nq; i += QB) {
            running r = block_state(state, dp, a->nq, i);
            if (!r.by_rows)
                absorb_block(dh, dp, n, r, w);
            else
                for (int64_t q = i; q < a->nq; q++) absorb_row(dh, dp, n, q - i, v, ld, r, w);
        }
    }
}

/* o = q + (unnormalised output) / l,  lse = log l + m in natural units. */
static void finish_head(const attn_args *a, int64_t h, int64_t dp, float *state) {
    const int64_t dh = a->dh;
    for (int64_t i = 0; i < a->nq; i += QB) {
        running r = block_state(state, dp, a->nq, i);
        const float *rows = r.o;
        if (!r.by_rows) {
            transpose_block(dp, QB, r.o, QB, r.q, dp);
            rows = r.q;
        }
        for (int j = 0; j < QB; j += VL) {
            vf l = vload(r.l + j);
            vstore(r.m + j, vfma(vload(r.m + j), vset(0.693147182f), vlog(l)));
            vstore(r.l + j, vselect(l == vset(0), vset(0), 1.0f / l));
        }
        for (int64_t k = 0; k < least(QB, a->nq - i); k++) {
            const float *q = a->q + (i + k) * a->ldq + h * dh, *x = rows + k * dp;
            float *o = a->o + (i + k) * a->ldo + h * dh;
            int64_t d = 0;
            for (; d + VL <= dh; d += VL)
                vstore(o + d, vfma(vload(x + d), vset(r.l[k]), vload(q + d)));
            if (d < dh) {
                float last[VL] = {0};
                memcpy(last, q + d, (size_t)(dh - d) * sizeof *q);
                vstore(last, vfma(vload(x + d), vset(r.l[k]), vload(last)));
                memcpy(o + d, last, (size_t)(dh - d) * sizeof *o);
            }
            a->lse[(i + k) * a->heads + h] = r.m[k];
        }
    }
}

static void accumulate(const attn_args *a, int64_t h, int64_t dp, float *state, float *scratch) {
    const workspace w = cut_workspace(scratch, dp);
    if (a->dh == 16)
        accumulate_head(a, 16, 16, h, state, w);
    else
        accumulate_head(a, a->dh, dp, h, state, w);
}

void ISA(cpu_attn)(const attn_args *a, void *scratch) {
    const int64_t dp = round_up(a->dh, 16);
    float *state = scratch, *work = state + round_up(head_floats(a->nq, dp), 16);
    for (int64_t h = 0; h < a->heads; h++) {
        begin_head(a, h, dp, state);
        accumulate(a, h, dp, state, work);
        finish_head(a, h, dp, state);
    }
    clear_columns(a->o, a->ldo, a->nq, (int64_t)a->heads * a->dh);
}

size_t ISA(cpu_attn_scratch)(int64_t nq, int64_t nk, int heads, int dh) {
    const int64_t dp = round_up(dh, 16);
    (void)nk; /* bounded by the blocks */
    (void)heads;
    const int64_t forward = round_up(head_floats(nq, dp), 16) + workspace_floats(dp);
    const int64_t backward = ISA(cpu_attn_grad_floats)(nq, dp);
    return (size_t)(forward > backward ? forward : backward) * sizeof(float);
}
