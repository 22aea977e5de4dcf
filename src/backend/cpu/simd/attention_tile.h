/* attention_tile.h: what the forward and the backward attention kernels share: the geometry of
 * their blocks, packing, and the three small products everything is made of.
 *
 * Queries are taken in blocks of QB, one query per vector lane, keys in blocks that stay in the
 * first-level cache. A score vector is then QB queries against one key, its softmax needs no sums
 * across lanes, and keys and values enter as broadcasts straight from packed memory:
 *
 *     score_tile   S[j] = init + sum_d k[j][d] q^T[d]          (q^T: d x QB)
 *     weigh        o^T[d] += sum_j v[j][d] P[j]                 (P: key x QB)
 *     outer        g[j] += sum_i P[j][i] y[i]                   (y: QB x d)
 *
 * A last block of at most FEW queries would waste its lanes (pooling has one query); it goes row by
 * row, with the keys (or d) in the lanes: row_scores, row_weigh. Both ways do the same operations
 * on an element in the same order, so that a query's result has the same bits in either: sums over
 * d run in order, sums over keys in order within groups of SUB keys, whose sums are then added up.
 */
#ifndef MNP_CPU_ATTENTION_TILE_H
#define MNP_CPU_ATTENTION_TILE_H

#include "backend/cpu/simd/simd_math.h"
#include "backend/cpu/simd/table.h"
#include "util/least.h"

/* Floats of scratch for cpu_attn_grad with packed head width dp. */
int64_t ISA(cpu_attn_grad_floats)(int64_t nq, int64_t dp);

/* Vectors of queries in a block, keys in a score tile, columns in a tile of weighted sums. With 32
 * registers one vector against 16 columns; with 16 registers two vectors share each broadcast. */
#if defined(__AVX512F__)
enum { QV = 1, JT = 8, DT = 16 };
#else
enum { QV = 2, JT = 4, DT = 4 };
#endif

enum {
    QB = QV * VL, /* queries per block                                  */
    SUB = 32,     /* keys whose sum is formed before it joins the total */
    FEW = QB / 2  /* so many queries or fewer go row by row             */
};

static inline int64_t round_up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}
/* n floats, a multiple of VL, become zero. Most are a few vectors; without the barrier compilers
 * make it a call of memset or a string instruction, whose start alone takes longer. */
SIMD_INLINE void clear(float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += VL) {
        vstore(x + i, vset(0));
        __asm__ volatile("" : : : "memory");
    }
}

/* Whether the last block of nq queries goes row by row. */
static inline bool last_is_few(int64_t nq) {
    return nq % QB != 0 && nq % QB <= FEW;
}

/* Zeroes the columns from `width` up to the next multiple of 16 of n rows, as kernels.h asks. */
static inline void clear_columns(float *x, int64_t ld, int64_t n, int64_t width) {
    const int64_t padding = round_up(width, 16) - width;
    if (padding == 0) return;
    for (int64_t i = 0; i < n; i++) memset(x + i * ld + width, 0, (size_t)padding * sizeof *x);
}

/* ---- packing ------------------------------------------------------------------------------- */

/* dst(n, dp) = factor src(n, dh), the columns dh..dp zero; dp is dh rounded up to 16. Reads no
 * column outside the head. */
SIMD_INLINE void pack_rows(int64_t n, int64_t dh, int64_t dp, const float *src, int64_t ld,
                           float factor, float *dst) {
    if (dh % VL == 0 && dh == dp) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t d = 0; d < dh; d += VL)
                vstore(dst + i * dp + d, vload(src + i * ld + d) * factor);
        return;
    }
    clear(dst, n * dp);
    for (int64_t i = 0; i < n; i++)
        for (int64_t d = 0; d < dh; d++) dst[i * dp + d] = src[i * ld + d] * factor;
}

#if VL == 16
#define ZIP_LO 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ZIP_HI 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif VL == 8
#define ZIP_LO 0, 8, 1, 9, 2, 10, 3, 11
#define ZIP_HI 4, 12, 5, 13, 6, 14, 7, 15
#else
#define ZIP_LO 0, 4, 1, 5
#define ZIP_HI 2, 6, 3, 7
#endif

/* Interleaving row i with row i + VL/2 rotates the bits of (row, column) by one place; after
 * log2(VL) rounds row and column have changed places. */
SIMD_INLINE void transpose_tile(vf v[VL]) {
    for (int round = 1; round < VL; round *= 2) {
        vf t[VL];
        UNROLL for (int i = 0; i < VL / 2; i++) {
            t[2 * i] = __builtin_shufflevector(v[i], v[i + VL / 2], ZIP_LO);
            t[2 * i + 1] = __builtin_shufflevector(v[i], v[i + VL / 2], ZIP_HI);
        }
        UNROLL for (int i = 0; i < VL; i++) v[i] = t[i];
    }
}

/* n rows of keys and values of one head from row j on, followed up to a multiple of `pad` rows by
 * copies of the last key (they change no maximum) and zero values. */
SIMD_INLINE void pack_keys(const attn_args *a, int64_t dh, int64_t dp, int64_t h, int64_t j,
                           int64_t n, int64_t pad, float *k, float *v) {
    const int64_t at = j * a->ldk + h * dh, padded = round_up(n, pad);
    pack_rows(n, dh, dp, a->k + at, a->ldk, 1, k);
    pack_rows(n, dh, dp, a->v + at, a->ldk, 1, v);
    for (int64_t i = n; i < padded; i++)
        memcpy(k + i * dp, k + (n - 1) * dp, (size_t)dp * sizeof *k);
    clear(v + n * dp, (padded - n) * dp);
}

/* dst(C, R) = src(R, C)^T with rows of ldd and lds floats; R and C are multiples of VL. */
SIMD_INLINE void transpose_block(int64_t R, int64_t C, const float *src, int64_t lds, float *dst,
                                 int64_t ldd) {
    for (int64_t i = 0; i < R; i += VL)
        for (int64_t j = 0; j < C; j += VL) {
            vf v[VL];
            UNROLL for (int k = 0; k < VL; k++) v[k] = vload(src + (i + k) * lds + j);
            transpose_tile(v);
            UNROLL for (int k = 0; k < VL; k++) vstore(dst + (j + k) * ldd + i, v[k]);
        }
}

/* ---- a block of queries, one per lane -------------------------------------------------------- */

/* acc[j][] += sum_d k[j][d] qt[d][], for JT keys in rows of dp floats. */
SIMD_INLINE void score_tile(int64_t dh, int64_t dp, const float *qt, const float *k,
                            vf acc[JT][QV]) {
    for (int64_t d = 0; d < dh; d++) {
        vf q[QV];
        UNROLL for (int u = 0; u < QV; u++) q[u] = vload(qt + d * QB + u * VL);
        UNROLL for (int j = 0; j < JT; j++) {
            vf c = vset(k[j * dp + d]);
            UNROLL for (int u = 0; u < QV; u++) acc[j][u] = vfma(c, q[u], acc[j][u]);
        }
    }
}

/* out[d][] (+)= sum over n <= SUB keys of v[j][d] p[j][], for `wide` values of d; fresh: no old. */
SIMD_INLINE void weigh_tile(int wide, int64_t dp, int64_t n, const float *p, const float *v,
                            bool fresh, float *out) {
    vf acc[DT][QV];
    UNROLL for (int d = 0; d < wide; d++) UNROLL for (int u = 0; u < QV; u++) acc[d][u] = vset(0);
    for (int64_t j = 0; j < n; j++) {
        vf w[QV];
        UNROLL for (int u = 0; u < QV; u++) w[u] = vload(p + j * QB + u * VL);
        UNROLL for (int d = 0; d < wide; d++) {
            vf c = vset(v[j * dp + d]);
            UNROLL for (int u = 0; u < QV; u++) acc[d][u] = vfma(c, w[u], acc[d][u]);
        }
    }
    UNROLL for (int d = 0; d < wide; d++) UNROLL for (int u = 0; u < QV; u++) {
        float *at = out + d * QB + u * VL;
        vstore(at, fresh ? acc[d][u] : vload(at) + acc[d][u]);
    }
}

SIMD_INLINE void weigh(int64_t dh, int64_t dp, int64_t n, const float *p, const float *v,
                       bool fresh, float *out) {
    for (int64_t j = 0; j < n; j += SUB)
        for (int64_t d = 0; d < dh; d += DT) {
            const float *pj = p + j * QB, *vj = v + j * dp + d;
            const int64_t keys = least(SUB, n - j);
            if (dh - d > DT / 2)
                weigh_tile(DT, dp, keys, pj, vj, fresh && j == 0, out + d * QB);
            else
                weigh_tile(DT / 2, dp, keys, pj, vj, fresh && j == 0, out + d * QB);
        }
}

/* g[j][] (+)= sum_i p[j][i] y[i][] for n keys (rounded up to JT) and QB rows y of dp floats. */
SIMD_INLINE void outer(int64_t dp, int64_t n, const float *p, const float *y, bool fresh,
                       float *g) {
    for (int64_t j = 0; j < n; j += JT)
        for (int64_t d = 0; d < dp; d += QV * VL) {
            vf acc[JT][QV];
            UNROLL for (int k = 0; k < JT; k++) UNROLL for (int u = 0; u < QV; u++) acc[k][u] =
                fresh ? vset(0) : vload(g + (j + k) * dp + d + u * VL);
            for (int i = 0; i < QB; i++) {
                vf r[QV];
                UNROLL for (int u = 0; u < QV; u++) r[u] = vload(y + i * dp + d + u * VL);
                UNROLL for (int k = 0; k < JT; k++) {
                    vf c = vset(p[(j + k) * QB + i]);
                    UNROLL for (int u = 0; u < QV; u++) acc[k][u] = vfma(c, r[u], acc[k][u]);
                }
            }
            UNROLL for (int k = 0; k < JT; k++) UNROLL for (int u = 0; u < QV; u++)
                vstore(g + (j + k) * dp + d + u * VL, acc[k][u]);
        }
}

/* ---- one query, keys or d in the lanes ------------------------------------------------------- */

/* s[j] = init + sum_d q[d] kt[d][j] for `vecs` vectors of keys; kt has rows of ldt floats. */
SIMD_INLINE void row_score_tile(int vecs, int64_t dh, const float *q, const float *kt, int64_t ldt,
                                float init, float *s) {
    vf acc[4];
    UNROLL for (int x = 0; x < vecs; x++) acc[x] = vset(init);
    for (int64_t d = 0; d < dh; d++) {
        vf c = vset(q[d]);
        UNROLL for (int x = 0; x < vecs; x++) acc[x] =
            vfma(c, vload(kt + d * ldt + x * VL), acc[x]);
    }
    UNROLL for (int x = 0; x < vecs; x++) vstore(s + x * VL, acc[x]);
}

/* The same for n keys, a multiple of SUB. */
SIMD_INLINE void row_scores(int64_t dh, int64_t n, const float *q, const float *kt, int64_t ldt,
                            float init, float *s) {
    int64_t j = 0;
    for (; j + 4 * VL <= n; j += 4 * VL) row_score_tile(4, dh, q, kt + j, ldt, init, s + j);
    for (; j < n; j += 2 * VL) row_score_tile(2, dh, q, kt + j, ldt, init, s + j);
}

/* out[d] (+)= sum_j p[j] v[j][d] over `groups` groups of SUB keys, all at once because one sum
 * alone would wait for itself; v has rows of ld floats. Returns the sum of p, in the same order. */
SIMD_INLINE float row_weigh_groups(int groups, int64_t dp, const float *p, const float *v,
                                   int64_t ld, bool fresh, float *out) {
    float weight = 0;
    for (int64_t d = 0; d < dp; d += VL) {
        vf acc[4] = {vset(0), vset(0), vset(0), vset(0)};
        float part[4] = {0, 0, 0, 0};
        for (int64_t i = 0; i < SUB; i++) UNROLL for (int g = 0; g < groups; g++) {
                acc[g] = vfma(vset(p[i + g * SUB]), vload(v + (i + g * SUB) * ld + d), acc[g]);
                part[g] += p[i + g * SUB];
            }
        vf total = fresh ? acc[0] : vload(out + d) + acc[0];
        UNROLL for (int g = 1; g < groups; g++) total = total + acc[g];
        vstore(out + d, total);
        if (d > 0) continue;
        UNROLL for (int g = 0; g < groups; g++) weight += part[g];
    }
    return weight;
}

/* The same for n keys, a multiple of SUB and at most 4 SUB. */
SIMD_INLINE float row_weigh(int64_t dp, int64_t n, const float *p, const float *v, int64_t ld,
                            bool fresh, float *out) {
    if (n == 4 * SUB) return row_weigh_groups(4, dp, p, v, ld, fresh, out);
    if (n == 3 * SUB) return row_weigh_groups(3, dp, p, v, ld, fresh, out);
    if (n == 2 * SUB) return row_weigh_groups(2, dp, p, v, ld, fresh, out);
    return row_weigh_groups(1, dp, p, v, ld, fresh, out);
}

#endif
