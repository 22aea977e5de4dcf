/* bench_gemm.c: the dense products at the shapes the model has, as a part of the machine's own
 * multiply-add peak, for every instruction set the processor runs and for the BLAS library where
 * one is installed (with as many threads as its environment allows: set OPENBLAS_NUM_THREADS=1 to
 * compare one thread). FLOP are 2 R K N with the true K and N: padding counts against a kernel. */
#include "bench/bench_gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/blas.h"
#include "backend/cpu/kernels.h"
#include "bench/peak.h"

enum { SHAPES = 5, KINDS = 3, REPEATS = 200 };
static const int64_t SHAPE[SHAPES][2] = {{160, 128}, {128, 128}, {128, 29}, {64, 64}, {161, 64}};

typedef enum kind { FORWARD, GRAD_X, GRAD_W } kind;
static const char *const KIND_NAME[KINDS] = {"X W", "dY W^T", "X^T dY"};

/* One product: operands of layer X(R,K) W(K,N) = Y(R,N), zero padded as kernels.h asks. */
typedef struct layer {
    const cpu_kernels *own;
    const blas *peer; /* takes the place of `own` if there */
    kind what;
    int64_t R, K, N, ldk, ldn;
    float *x, *w, *wt, *y; /* (R,K) (K,N) (N,K) (R,N)                */
    float *gx, *gw;        /* (R,K) (K,N): where the gradients go     */
} layer;

static int64_t pad16(int64_t n) {
    return (n + 15) / 16 * 16;
}

/* Small random numbers; the padding columns stay zero. */
static float *matrix(int64_t rows, int64_t cols, uint32_t *seed) {
    const int64_t ld = pad16(cols);
    float *m = aligned_alloc(64, (size_t)(rows * ld) * sizeof *m);
    if (!m) return NULL;
    memset(m, 0, (size_t)(rows * ld) * sizeof *m);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            *seed = *seed * 1664525u + 1013904223u;
            m[r * ld + c] = (float)(*seed >> 8) * 0x1p-24f - 0.5f;
        }
    return m;
}

static void layer_free(layer *l) {
    free(l->x);
    free(l->w);
    free(l->wt);
    free(l->y);
    free(l->gx);
    free(l->gw);
}

static bool layer_make(layer *l, int64_t R, int64_t K, int64_t N) {
    uint32_t seed = 1;
    *l = (layer){.R = R, .K = K, .N = N, .ldk = pad16(K), .ldn = pad16(N)};
    l->x = matrix(R, K, &seed);
    l->w = matrix(K, N, &seed);
    l->wt = matrix(N, K, &seed);
    l->y = matrix(R, N, &seed);
    l->gx = matrix(R, K, &seed);
    l->gw = matrix(K, N, &seed);
    if (l->x && l->w && l->wt && l->y && l->gx && l->gw) return true;
    layer_free(l);
    return false;
}

static void run_own(const layer *l) {
    const gemm_epilogue plain = {0};
    if (l->what == FORWARD)
        l->own->gemm_nn(l->R, l->K, l->N, l->x, l->ldk, l->w, l->ldn, l->y, l->ldn, &plain);
    else if (l->what == GRAD_X)
        l->own->gemm_nn(l->R, l->N, l->K, l->y, l->ldn, l->wt, l->ldk, l->gx, l->ldk, &plain);
    else
        l->own->gemm_tn(l->R, l->K, l->N, l->x, l->ldk, l->y, l->ldn, l->gw, l->ldn);
}

static void run_peer(const layer *l) {
    if (l->what == FORWARD)
        blas_gemm_nn(l->peer, l->R, l->K, l->N, l->x, l->ldk, l->w, l->ldn, l->y, l->ldn);
    else if (l->what == GRAD_X)
        blas_gemm_nn(l->peer, l->R, l->N, l->K, l->y, l->ldn, l->wt, l->ldk, l->gx, l->ldk);
    else
        blas_gemm_tn(l->peer, l->R, l->K, l->N, l->x, l->ldk, l->y, l->ldn, l->gw, l->ldn);
}

static void run_layer(void *user) {
    const layer *l = user;
    if (l->peer)
        run_peer(l);
    else
        run_own(l);
}

/* One line per shape and product; the geometric mean and the lowest part of peak go to `score`. */
typedef struct score {
    double log_sum, lowest;
    int rows;
} score;

static void score_row(score *s, double part) {
    s->log_sum += log(part);
    s->rows++;
    if (s->rows == 1 || part < s->lowest) s->lowest = part;
}

static bool bench_shape(FILE *out, const cpu_kernels *own, const blas *peer, int64_t R,
                        const int64_t *shape, score *s) {
    layer l;
    if (!layer_make(&l, R, shape[0], shape[1])) return false;
    const double flop = 2.0 * (double)R * (double)shape[0] * (double)shape[1];
    const int repeats = R > 1000 ? REPEATS / 4 : REPEATS;
    for (int k = 0; k < KINDS; k++) {
        l.what = (kind)k;
        l.own = own;
        l.peer = NULL;
        const bench_result r = bench_against_peak(own->isa, flop, run_layer, &l, repeats);
        fprintf(out, "%6lld %4lld x %-4lld %-7s %8.1f %7.1f%% %7.1f%%", (long long)R,
                (long long)l.K, (long long)l.N, KIND_NAME[k], 1e-9 * r.flops, 100 * r.best,
                100 * r.median);
        score_row(&s[0], r.best);
        if (peer) {
            l.peer = peer;
            const bench_result b = bench_against_peak(own->isa, flop, run_layer, &l, repeats);
            fprintf(out, " %8.1f %7.1f%% %7.1f%%", 1e-9 * b.flops, 100 * b.best, 100 * b.median);
            score_row(&s[1], b.best);
        }
        fprintf(out, "\n");
    }
    layer_free(&l);
    return true;
}

static bool bench_rows(FILE *out, const cpu_kernels *own, const blas *peer, int64_t R, score s[2]) {
    fprintf(out, "\n%s, %lld rows, one thread, peak %.1f GFLOP/s%s\n", own->isa, (long long)R,
            1e-9 * bench_peak_once(own->isa),
            peer ? "; BLAS with as many threads as its environment allows" : "");
    fprintf(out, "  rows    K x N    product  GFLOP/s    best   median");
    fprintf(out, peer ? "   BLAS    best   median\n" : "\n");
    for (int i = 0; i < SHAPES; i++)
        if (!bench_shape(out, own, peer, R, SHAPE[i], s)) return false;
    fprintf(out, "geometric mean of best %.1f%%, lowest %.1f%%",
            100 * exp(s[0].log_sum / s[0].rows), 100 * s[0].lowest);
    if (peer)
        fprintf(out, "; BLAS %.1f%%, lowest %.1f%%", 100 * exp(s[1].log_sum / s[1].rows),
                100 * s[1].lowest);
    fprintf(out, "\n");
    return true;
}

bool bench_gemm(bench_report *r, int64_t R) {
    static const char *const isa[] = {"avx512", "avx2", "base"};
    blas found;
    const blas *peer = blas_load(&found) ? &found : NULL;
    for (int i = 0; i < 3; i++) {
        const cpu_kernels *own = cpu_kernels_best(isa[i]);
        score s[2] = {{0}};
        if (!own) continue;
        if (!bench_rows(r->out, own, peer, R, s)) return false;
        if (own != cpu_kernels_best(NULL)) continue;
        report_held(r, "gemm_mean", "dense products, part of peak, geometric mean",
                    exp(s[0].log_sum / s[0].rows), "of peak", REPORT_AT_LEAST, 0.85);
        report_held(r, "gemm_lowest", "dense products, lowest row", s[0].lowest, "of peak",
                    REPORT_AT_LEAST, 0.72);
    }
    return true;
}
