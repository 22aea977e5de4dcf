/* join.c: the sums of op join and their reverse pass, and ReLU's, at the speed of memory. The
 * reverse pass reads the gradient once: rows go in groups of four, so that the column sums (dw,
 * d row) are loaded and stored once per four rows, and the row sums (dp) are folded four at a time.
 *
 * A column sum adds the groups in order, a row sum adds its vectors in order and then its lanes. */
#include "backend/cpu/simd/simd_math.h"
#include "backend/cpu/simd/table.h"

/* g where y > 0, else 0 */
SIMD_INLINE vf where_positive(vf y, vf g) {
    return (vf)((vi)g & (vi)(y > (vf){0}));
}

/* ---- forward --------------------------------------------------------------------------------- */

SIMD_INLINE void join_rows(const join_args *j, const bool row, const bool p, const bool relu) {
    for (int64_t r = 0; r < j->rows; r++) {
        const float *a = j->a + r * j->ld;
        float *y = j->y + r * j->ld;
        const vf pr = p ? vset(j->p[r * j->ldp]) : (vf){0};
        for (int64_t c = 0; c < j->ld; c += VL) {
            vf v = vload(a + c);
            if (row) v += vload(j->row + c);
            if (p) v += pr * vload(j->w + c);
            if (relu) v = vmax(v, (vf){0});
            vstore(y + c, v);
        }
    }
}

SIMD_INLINE void join_parts(const join_args *j, const bool relu) {
    if (j->row && j->p)
        join_rows(j, true, true, relu);
    else if (j->row)
        join_rows(j, true, false, relu);
    else if (j->p)
        join_rows(j, false, true, relu);
    else
        join_rows(j, false, false, relu);
}

void ISA(cpu_join)(const join_args *j) {
    if (j->relu)
        join_parts(j, true);
    else
        join_parts(j, false);
}

/* ---- reverse --------------------------------------------------------------------------------- */

enum { ROWS = 4 };

typedef float v4 __attribute__((vector_size(16), aligned(4), may_alias));

SIMD_INLINE float lane_sum(vf x) {
    v4 part[VL / 4];
    memcpy(part, &x, sizeof x);
    v4 s = part[0];
    UNROLL for (int i = 1; i < VL / 4; i++) s += part[i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* n rows from row r on */
SIMD_INLINE void grad_group(const join_grad_args *j, const int n, int64_t r, const bool relu,
                            const bool p) {
    const int64_t ld = j->ld;
    vf dot[ROWS], pr[ROWS];
    UNROLL for (int i = 0; i < n; i++) {
        dot[i] = (vf){0};
        pr[i] = p ? vset(j->p[(r + i) * j->ldp]) : (vf){0};
    }
    for (int64_t c = 0; c < ld; c += VL) {
        const int64_t at = r * ld + c;
        vf g[ROWS];
        UNROLL for (int i = 0; i < n; i++) {
            g[i] = vload(j->g + at + i * ld);
            if (relu) g[i] = where_positive(vload(j->y + at + i * ld), g[i]);
        }
        if (j->ga && j->acc_a) {
            UNROLL for (int i = 0; i < n; i++)
                vstore(j->ga + at + i * ld, vload(j->ga + at + i * ld) + g[i]);
        } else if (j->ga) {
            UNROLL for (int i = 0; i < n; i++) vstore(j->ga + at + i * ld, g[i]);
        }
        if (j->grow) {
            vf sum = g[0];
            UNROLL for (int i = 1; i < n; i++) sum += g[i];
            vstore(j->grow + c, vload(j->grow + c) + sum);
        }
        if (p) {
            const vf w = vload(j->w + c);
            vf sum = pr[0] * g[0];
            UNROLL for (int i = 1; i < n; i++) sum += pr[i] * g[i];
            if (j->gw) vstore(j->gw + c, vload(j->gw + c) + sum);
            UNROLL for (int i = 0; i < n; i++) dot[i] += g[i] * w;
        }
    }
    if (!p || !j->gp) return;
    UNROLL for (int i = 0; i < n; i++) {
        float *gp = j->gp + (r + i) * j->ldp;
        *gp = lane_sum(dot[i]) + (j->acc_p ? *gp : 0.0f);
    }
}

SIMD_INLINE void grad_rows(const join_grad_args *j, const bool relu, const bool p) {
    int64_t r = 0;
    for (; r + ROWS <= j->rows; r += ROWS) grad_group(j, ROWS, r, relu, p);
    for (; r < j->rows; r++) grad_group(j, 1, r, relu, p);
}

void ISA(cpu_join_grad)(const join_grad_args *j) {
    const bool relu = j->y != NULL, p = j->p != NULL;
    if (relu && p)
        grad_rows(j, true, true);
    else if (relu)
        grad_rows(j, true, false);
    else if (p)
        grad_rows(j, false, true);
    else
        grad_rows(j, false, false);
}

void ISA(cpu_relu_grad)(int64_t count, const float *h, float *g, float *copy, bool add) {
    for (int64_t i = 0; i < count; i += VL) {
        const vf v = vload(g + i);
        if (copy) vstore(copy + i, add ? vload(copy + i) + v : v);
        vstore(g + i, where_positive(vload(h + i), v));
    }
}
