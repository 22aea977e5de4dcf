/* kernels.h: the tuned one-thread kernels of the CPU backend, as one table per instruction set.
 * cpu_kernels_best() picks the table once, by asking the processor; nothing here allocates,
 * fails or knows about graphs.
 *
 * Matrices are row-major. A matrix of C columns has a row stride ("ld") that is a multiple of 16
 * floats and at least C, its base is 64-byte aligned, and the columns from C up to the next
 * multiple of 16 hold zeros: kernels may read them, compute on them and must leave them zero; a
 * kernel that overwrites a matrix writes those zeros too. A vector (bias, column sums) is a matrix
 * of one row. Operands overlap only where a kernel says so. */
#ifndef MNP_CPU_KERNELS_H
#define MNP_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

/* What happens to C = A B on its way to memory:
 *   h = relu?(A B + bias + old);  hidden = h;  c = h + residual                               */
typedef struct gemm_epilogue {
    const float *bias;     /* (N) or NULL                                              */
    bool accumulate;       /* old = the present content of c, else 0                   */
    bool relu;             /* clip below zero                                          */
    const float *residual; /* (R,N) stride ldr, or NULL; added after the activation    */
    int64_t ldr;
    float *hidden; /* (R,N) stride ldc, or NULL; the activation before the residual */
} gemm_epilogue;

/* Multi-head attention of nq queries over nk keys, heads of width dh side by side in the columns:
 *   o_h = q_h + softmax_rows(scale q_h k_h^T) v_h,     lse = log sum exp of the scaled scores    */
typedef struct attn_args {
    int64_t nq, nk; /* nk = 0: o = q, lse = -inf                        */
    int heads, dh;
    float scale;
    const float *q; /* (nq, heads*dh) */
    int64_t ldq;
    const float *k, *v; /* (nk, heads*dh), both with stride ldk */
    int64_t ldk;
    float *o; /* (nq, heads*dh) */
    int64_t ldo;
    float *lse; /* (nq, heads), stride = heads  */
} attn_args;

typedef struct attn_grad_args {
    attn_args fwd;   /* q, k, v, o, lse as the forward pass left them */
    const float *go; /* (nq, heads*dh), stride ldgo: gradient of o     */
    int64_t ldgo;
    float *gq; /* stride ldgq */
    int64_t ldgq;
    float *gk, *gv; /* stride ldgk */
    int64_t ldgk;
    bool acc_q, acc_k; /* add to gq; add to gk and gv (else overwrite) */
} attn_grad_args;

/* y = relu?(a + row + p w) for one sample: a and y (rows, ld), row and w (ld) or NULL, p one number
 * per row (stride ldp) or NULL together with w. In place (y == a) allowed. */
typedef struct join_args {
    int64_t rows, ld; /* ld: the columns, padding included */
    const float *a, *row, *p, *w;
    int64_t ldp;
    bool relu;
    float *y;
} join_args;

/* Its reverse pass, with g the gradient of y where y > 0 (everywhere when y is NULL), else 0:
 *   ga = g,   grow += sum_r g,   gp[r] = g[r] . w,   gw += sum_r p[r] g[r]       (NULL: not wanted)
 */
typedef struct join_grad_args {
    int64_t rows, ld;
    const float *y, *g, *p, *w;
    int64_t ldp; /* of p and gp */
    float *ga, *grow, *gp, *gw;
    bool acc_a, acc_p; /* add to ga; add to gp (else overwrite) */
} join_grad_args;

/* One Adam step on n weights, see update_adam in op/update.h. */
typedef struct adam_args {
    const float *g;
    float *m, *v, *w;
    float *average; /* or NULL */
    float clip, beta1, mix1, beta2, mix2, rate, inv_c2, eps, blend, keep;
} adam_args;

/* The rational-quadratic spline of op/rqs_math.h on `rows` points, in single precision:
 *   by_y false: out = f(y);   by_y true: out = f^-1(y);   logdet_out = logdet + log |d out / d y|
 */
typedef struct rqs_args {
    int64_t rows;
    int bins;  /* K, at most 64 */
    bool by_y; /* the inverse   */
    float bound, min_width, min_height, min_derivative;
    float room_x, room_y; /* 2 bound (1 - K min_width), 2 bound (1 - K min_height) */
    const float *y, *raw; /* (rows), (rows, 3K-1) */
    int64_t ldr;
    const float *logdet;     /* (rows) or NULL: zeros */
    float *out, *logdet_out; /* (rows) */
} rqs_args;

/* Its reverse pass; gradients that are NULL are absent (up, up_log) or not wanted. */
typedef struct rqs_grad_args {
    rqs_args map;             /* without its outputs and logdet     */
    const float *up, *up_log; /* of out and of logdet_out           */
    float *gy, *graw, *glogdet;
    bool acc_y, acc_raw, acc_logdet; /* add (else overwrite); padding of graw stays zero */
} rqs_grad_args;

typedef struct cpu_kernels {
    const char *isa; /* "avx512", "avx2", "base" */
    int width;       /* floats per vector        */

    /* C(R,N) from A(R,K) B(K,N), see gemm_epilogue; R, K >= 0, N >= 1. Every element is one sum
     * over k in order: a row's bits do not depend on the rows beside it. The residual may be c
     * itself. */
    void (*gemm_nn)(int64_t R, int64_t K, int64_t N, const float *a, int64_t lda, const float *b,
                    int64_t ldb, float *c, int64_t ldc, const gemm_epilogue *e);
    /* C(K,N) += A(R,K)^T B(R,N); rows in order, starting from C: several calls over consecutive
     * rows give the bits of one call over all of them. */
    void (*gemm_tn)(int64_t R, int64_t K, int64_t N, const float *a, int64_t lda, const float *b,
                    int64_t ldb, float *c, int64_t ldc);
    /* dst(C,R) = src(R,C)^T; dst's padding columns are zeroed. */
    void (*transpose)(int64_t R, int64_t C, const float *src, int64_t lds, float *dst, int64_t ldd);
    /* out(N) += sum over rows of a(R,N) */
    void (*colsum)(int64_t R, int64_t N, const float *a, int64_t lda, float *out);

    /* Bytes of 64-byte aligned scratch the two attention kernels need. */
    size_t (*attn_scratch)(int64_t nq, int64_t nk, int heads, int dh);
    void (*attn)(const attn_args *a, void *scratch);
    void (*attn_grad)(const attn_grad_args *a, void *scratch);

    void (*join)(const join_args *a);
    void (*join_grad)(const join_grad_args *a);
    /* g[i] = h[i] > 0 ? g[i] : 0, after copy[i] = g[i] (or += where add) unless copy is NULL. The
     * count is a multiple of 16. */
    void (*relu_grad)(int64_t count, const float *h, float *g, float *copy, bool add);
    /* y[r] = cos(2 pi t) in columns [0, F), sin(2 pi t) in [F, 2F), t = sum_x freq[x] x[r][x]; t is
     * summed and reduced in double. freq (X, F padded to 16), x (rows, X). */
    void (*fourier)(int64_t rows, int64_t X, int64_t F, const float *x, int64_t ldx,
                    const double *freq, float *y, int64_t ldy);

    /* The step, on n words: slot0 = (slot0 + slot 1 + ...) / divisor; sum of squares; Adam. */
    void (*sum_slots)(int64_t n, int64_t slots, int64_t stride, float divisor, float *slot0);
    double (*sum_squares)(int64_t n, const float *x);
    void (*adam)(int64_t n, const adam_args *a);

    /* y[i] = f(x[i]), stated errors in simd_math.h; in place allowed. */
    void (*exp)(int64_t n, const float *x, float *y);
    void (*log)(int64_t n, const float *x, float *y);
    void (*softplus)(int64_t n, const float *x, float *y);
    void (*sigmoid)(int64_t n, const float *x, float *y);
    void (*tanh)(int64_t n, const float *x, float *y);

    /* See rqs_args. */
    void (*rqs)(const rqs_args *a);
    void (*rqs_grad)(const rqs_grad_args *a);

    /* out[i] = rng_normal_at() of dim `at.dim` + i, or of point `at.point` + i; at.dim % 4 == 0. */
    void (*normals)(rng_key key, rng_at at, int64_t count, bool by_point, float *out);
    /* sigma = floor + scale f(raw), f = sigmoid or softplus; slope (or NULL) = d sigma / d raw. */
    void (*sigma)(int64_t n, const float *raw, bool sigmoid, float floor, float scale, float *sigma,
                  float *slope);
} cpu_kernels;

/* The widest table this processor runs; `want` (may be NULL) names one for tests and benches and
 * gives NULL when the processor or the build lacks it. */
const cpu_kernels *cpu_kernels_best(const char *want);

#endif
