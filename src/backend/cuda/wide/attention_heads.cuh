/* attention_heads.cuh: what wide attention shares in all modes: rows of an extent, and the zeros of
 * gradients. */
#ifndef MNP_CUDA_WIDE_ATTENTION_HEADS_CUH
#define MNP_CUDA_WIDE_ATTENTION_HEADS_CUH

#include "backend/cuda/ops/attention_common.cuh"
#include "backend/cuda/wide/attention.h"
#include "backend/cuda/wide/wide.cuh"

/* How far above `top` a product may be, in powers of two, before a running softmax follows it. */
constexpr float SLACK = 8.0f;

/* Where function b's row 0 lies. */
FN float *wide_at(const wide_operand &o, int b) {
    return o.p + b * o.stride;
}

/* How many rows attention uses, given the extent recorded for it. */
FN int attended_rows(const wide_operand &o, int ext, const Lengths &l) {
    const int of = ext == DEV_EXT_FIXED ? o.ext : ext;
    return of == DEV_EXT_N ? l.n : of == DEV_EXT_M ? l.m : of == DEV_EXT_K ? l.k : o.rows;
}

/* Which numbers of a row of a gradient somebody writes: D columns from `query` on in the first nq
 * rows, from `key` and `value` on in the first nk (-1: not these). */
struct Written {
    int D, query, nq, key, value, nk;
    MEMBER bool has(int row, int column) const {
        const bool by_query = query >= 0 && column >= query && column < query + D;
        const bool by_key = key >= 0 && ((column >= key && column < key + D) ||
                                         (column >= value && column < value + D));
        return (by_query && row < nq) || (by_key && row < nk);
    }
};

/* Zeros in all other numbers of the gradient of an operand in function b: share `share` of
 * `shares`. by_query, by_key: which of the parts are in it. */
FN void grad_zero(const wide_launch &l, const wide_op &op, const wide_operand &v, int b, int nq,
                  int nk, bool by_query, bool by_key, int share, int shares, Team t) {
    const Written x = {op.i[DATT_WIDTH],
                       by_query ? op.i[DATT_QCOL] : -1,
                       nq,
                       by_key ? op.i[DATT_KCOL] : -1,
                       op.i[DATT_VCOL],
                       nk};
    const int blocks = by_query + 2 * by_key;
    const int least = !by_query ? nk : !by_key ? nq : min(nq, nk);
    const int first = blocks * x.D == v.ld ? least : 0; /* rows before it are written whole */
    float *to = wide_at(v, b);
    const int end = rows_of(l, v, b) * v.ld;
    for (int i = first * v.ld + (share * t.size + t.rank) * 4; i < end; i += shares * t.size * 4) {
        const int row = i / v.ld, column = i % v.ld; /* blocks and rows are made of quads */
        if (!x.has(row, column)) set4(to + i, zero4());
    }
}

#endif
