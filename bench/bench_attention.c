/* bench_attention.c: how much of the multiply-add peak the attention kernels reach, for every
 * instruction set this processor has, and the rate of the exponential inside softmax. FLOP are
 * counted as 4 nq nk d forward and 8 nq nk d backward: the scores recomputed by the backward pass
 * and the exponentials are not counted, so 80 % and 73 % are the most an AVX-512 core could show.
 */
#include "bench/bench_attention.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cpu/kernels.h"
#include "bench/peak.h"

enum { HEADS = 4, DH = 16, D = HEADS * DH, REPEATS = 200 };

typedef struct shape {
    const cpu_kernels *kernels;
    attn_args args;
    attn_grad_args grad;
    void *scratch;
    float *memory;
    int64_t n; /* for the exponential */
} shape;

static void run_forward(void *user) {
    shape *j = user;
    j->kernels->attn(&j->args, j->scratch);
}

static void run_backward(void *user) {
    shape *j = user;
    j->kernels->attn_grad(&j->grad, j->scratch);
}

static void run_exp(void *user) {
    shape *j = user;
    j->kernels->exp(j->n, j->args.q, j->args.o);
}

static void fill(float *x, int64_t n, uint32_t seed) {
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
}

/* One block for everything: q o go gq (nq rows), k v gk gv (nk rows), lse, scratch. */
static bool shape_open(shape *j, const cpu_kernels *kernels, int64_t nq, int64_t nk) {
    const size_t scratch = kernels->attn_scratch(nq, nk, HEADS, DH);
    const size_t floats = (size_t)(4 * nq * D + 4 * nk * D + (nq + 16) * HEADS);
    const size_t bytes = (floats * sizeof(float) + 63) / 64 * 64;
    float *at = aligned_alloc(64, bytes + (scratch + 63) / 64 * 64);
    if (!at) return false;
    memset(at, 0, bytes);
    fill(at, 4 * nq * D + 4 * nk * D, 1);
    float *k = at + 4 * nq * D;
    j->kernels = kernels;
    j->memory = at;
    j->scratch = (char *)at + bytes;
    j->args = (attn_args){.nq = nq,
                          .nk = nk,
                          .heads = HEADS,
                          .dh = DH,
                          .scale = 0.125f,
                          .q = at,
                          .ldq = D,
                          .k = k,
                          .v = k + nk * D,
                          .ldk = D,
                          .o = at + nq * D,
                          .ldo = D,
                          .lse = k + 4 * nk * D};
    j->grad = (attn_grad_args){.fwd = j->args,
                               .go = at + 2 * nq * D,
                               .ldgo = D,
                               .gq = at + 3 * nq * D,
                               .ldgq = D,
                               .gk = k + 2 * nk * D,
                               .gv = k + 3 * nk * D,
                               .ldgk = D};
    j->n = nq * D;
    return true;
}

static void bench_shape(bench_report *r, const cpu_kernels *kernels, int64_t nq, int64_t nk) {
    shape j;
    if (!shape_open(&j, kernels, nq, nk)) return;
    const double flop = 4.0 * (double)nq * (double)nk * D;
    bench_result f = bench_against_peak(kernels->isa, flop, run_forward, &j, REPEATS);
    bench_result b = bench_against_peak(kernels->isa, 2 * flop, run_backward, &j, REPEATS);
    fprintf(r->out, "%-7s %5lld %5lld | %6.1f %6.1f %9.2f | %6.1f %6.1f %9.2f\n", kernels->isa,
            (long long)nq, (long long)nk, 100 * f.best, 100 * f.median, 1e6 * f.median_time,
            100 * b.best, 100 * b.median, 1e6 * b.median_time);
    if (kernels == cpu_kernels_best(NULL) && nq == 128 && nk == 128) {
        report_held(r, "attention_forward", "attention of 128 points, forward", f.best, "of peak",
                    REPORT_AT_LEAST, 0.45);
        report_held(r, "attention_backward", "attention of 128 points, backward", b.best, "of peak",
                    REPORT_AT_LEAST, 0.35);
    }
    free(j.memory);
}

static const char *const isas[] = {"avx512", "avx2", "base"};
enum { ISAS = 3 };

void bench_exp(bench_report *r) {
    for (int i = 0; i < ISAS; i++) {
        const cpu_kernels *kernels = cpu_kernels_best(isas[i]);
        shape j;
        if (!kernels || !shape_open(&j, kernels, 64, 16)) continue; /* 4096 floats: first level */
        bench_result e = bench_against_peak(kernels->isa, (double)j.n, run_exp, &j, REPEATS);
        fprintf(r->out, "%-7s exp %.2f G elements/s\n", kernels->isa, 1e-9 * e.flops);
        if (kernels == cpu_kernels_best(NULL))
            report_held(r, "exp", "exp inside softmax, one thread", 1e-9 * e.flops, "G elements/s",
                        REPORT_AT_LEAST, 2.0);
        free(j.memory);
    }
}

void bench_attention(bench_report *r) {
    static const int64_t shapes[][2] = {{20, 20},     {50, 50}, {128, 128},
                                        {1000, 1000}, {1, 128}, {1, 50}};
    fprintf(r->out, "attention, %d heads of %d, one thread, percent of the multiply-add peak\n",
            HEADS, DH);
    fprintf(r->out, "%-7s %5s %5s | %-23s | %-23s\n", "isa", "nq", "nk", "forward: best median us",
            "backward: best median us");
    for (int i = 0; i < ISAS; i++) {
        const cpu_kernels *kernels = cpu_kernels_best(isas[i]);
        for (size_t s = 0; kernels && s < sizeof shapes / sizeof *shapes; s++)
            bench_shape(r, kernels, shapes[s][0], shapes[s][1]);
    }
}
