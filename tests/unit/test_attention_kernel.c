/* test_attention_kernel.c: the fused attention kernels of every instruction set this processor has
 * against a plain double-precision loop: sizes around the block borders, head widths of all kinds,
 * large scores, very many keys, accumulated gradients, and the promise that a query's result does
 * not depend on the other queries. */
#include "check.h"

#include "backend/cpu/kernels.h"

static const char *const ISAS[] = {"base", "avx2", "avx512"};

enum { GUARD = 16 }; /* floats after every buffer that must stay untouched */
static const float MARK = -12345.5f;

/* A problem with its buffers. Matrices have stride ld; columns beyond heads*dh start as zeros. */
typedef struct problem {
    attn_args a;
    int64_t ld;
    float *q, *k, *v, *o, *lse, *go, *gq, *gk, *gv;
    void *scratch;
    size_t scratch_bytes;
    double *ro, *rlse, *rgq, *rgk, *rgv; /* the reference */
} problem;

static uint64_t seed_;
static float uniform(void) { /* -1..1 */
    seed_ = seed_ * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(seed_ >> 11) / 4503599627370496.0 - 1.0);
}

static void *memory(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!p) abort();
    memset(p, 0, (bytes + 127) / 64 * 64);
    return p;
}

static float *matrix(int64_t n, int64_t ld, int64_t width, float size) {
    float *m = memory((size_t)(n * ld + GUARD) * sizeof *m);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) m[i * ld + j] = size * uniform();
    for (int64_t i = 0; i < GUARD; i++) m[n * ld + i] = MARK;
    return m;
}

static bool intact(const float *m, int64_t n, int64_t ld, int64_t width) {
    for (int64_t i = 0; i < GUARD; i++)
        if (m[n * ld + i] != MARK) return false;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = width; j < ld; j++)
            if (m[i * ld + j] != 0) return false;
    return true;
}

static problem make(const cpu_kernels *kern, int64_t nq, int64_t nk, int heads, int dh, float size,
                    float scale) {
    const int64_t width = (int64_t)heads * dh, ld = (width + 15) / 16 * 16 + (nq % 2 ? 16 : 0);
    problem p = {.ld = ld};
    p.q = matrix(nq, ld, width, size);
    p.k = matrix(nk, ld, width, size);
    p.v = matrix(nk, ld, width, 1);
    p.o = matrix(nq, ld, 0, 0);
    p.go = matrix(nq, ld, width, 1);
    p.gq = matrix(nq, ld, 0, 0);
    p.gk = matrix(nk, ld, 0, 0);
    p.gv = matrix(nk, ld, 0, 0);
    p.lse = matrix(nq, heads, 0, 0);
    p.scratch_bytes = kern->attn_scratch(nq, nk, heads, dh);
    p.scratch = memory(p.scratch_bytes + GUARD);
    memset(p.scratch, 0xff, p.scratch_bytes); /* NaN: nothing may be read before it is written */
    memset((char *)p.scratch + p.scratch_bytes, 0x5a, GUARD);
    p.a = (attn_args){.nq = nq,
                      .nk = nk,
                      .heads = heads,
                      .dh = dh,
                      .scale = scale,
                      .q = p.q,
                      .ldq = ld,
                      .k = p.k,
                      .v = p.v,
                      .ldk = ld,
                      .o = p.o,
                      .ldo = ld,
                      .lse = p.lse};
    const size_t rq = (size_t)(nq * ld) + 1, rk = (size_t)(nk * ld) + 1;
    p.ro = memory(rq * sizeof(double));
    p.rgq = memory(rq * sizeof(double));
    p.rgk = memory(rk * sizeof(double));
    p.rgv = memory(rk * sizeof(double));
    p.rlse = memory((size_t)(nq * heads + 1) * sizeof(double));
    return p;
}

static void drop(problem *p) {
    for (size_t i = 0; i < GUARD; i++)
        CHECK(((unsigned char *)p->scratch)[p->scratch_bytes + i] == 0x5a);
    float *f[] = {p->q, p->k, p->v, p->o, p->lse, p->go, p->gq, p->gk, p->gv};
    double *d[] = {p->ro, p->rlse, p->rgq, p->rgk, p->rgv};
    for (int i = 0; i < 9; i++) free(f[i]);
    for (int i = 0; i < 5; i++) free(d[i]);
    free(p->scratch);
}

static attn_grad_args grad_args(const problem *p, bool acc_q, bool acc_k) {
    return (attn_grad_args){.fwd = p->a,
                            .go = p->go,
                            .ldgo = p->ld,
                            .gq = p->gq,
                            .ldgq = p->ld,
                            .gk = p->gk,
                            .gv = p->gv,
                            .ldgk = p->ld,
                            .acc_q = acc_q,
                            .acc_k = acc_k};
}

static double dot(const float *x, const float *y, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s += (double)x[i] * (double)y[i];
    return s;
}

/* One query of one head, in double: o, lse and its share of all gradients. */
static void reference_row(problem *p, int64_t i, int h, double *w) {
    const int dh = p->a.dh, c = h * dh;
    const int64_t nk = p->a.nk, ld = p->ld, at = i * ld + c;
    const double scale = (double)p->a.scale;
    double most = -INFINITY, sum = 0, D = 0;
    for (int64_t j = 0; j < nk; j++) {
        w[j] = scale * dot(p->q + at, p->k + j * ld + c, dh);
        most = fmax(most, w[j]);
    }
    for (int64_t j = 0; j < nk; j++) sum += w[j] = exp(w[j] - most);
    p->rlse[i * p->a.heads + h] = most + log(sum);
    for (int64_t j = 0; j < nk; j++) w[j] /= sum;
    for (int d = 0; d < dh; d++) {
        p->ro[at + d] = (double)p->q[at + d];
        p->rgq[at + d] = (double)p->go[at + d];
    }
    for (int64_t j = 0; j < nk; j++) {
        for (int d = 0; d < dh; d++) p->ro[at + d] += w[j] * (double)p->v[j * ld + c + d];
        D += w[j] * dot(p->go + at, p->v + j * ld + c, dh);
    }
    for (int64_t j = 0; j < nk; j++) {
        const int64_t to = j * ld + c;
        const double gs = scale * w[j] * (dot(p->go + at, p->v + to, dh) - D);
        for (int d = 0; d < dh; d++) {
            p->rgq[at + d] += gs * (double)p->k[to + d];
            p->rgk[to + d] += gs * (double)p->q[at + d];
            p->rgv[to + d] += w[j] * (double)p->go[at + d];
        }
    }
}

static void reference(problem *p) {
    double *w = memory((size_t)(p->a.nk + 1) * sizeof *w);
    for (int64_t i = 0; i < p->a.nq; i++)
        for (int h = 0; h < p->a.heads; h++) reference_row(p, i, h, w);
    free(w);
}

/* Largest difference of the columns of got - factor want, NaN counts as infinite. */
static double distance(const problem *p, const float *got, const double *want, int64_t n) {
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < (int64_t)p->a.heads * p->a.dh; j++) {
            const double e = fabs((double)got[i * p->ld + j] - want[i * p->ld + j]);
            if (!(e <= worst)) worst = isnan(e) ? INFINITY : e;
        }
    return worst;
}

static double lse_distance(const problem *p) {
    double worst = 0;
    for (int64_t i = 0; i < p->a.nq * p->a.heads; i++) {
        const double e = fabs((double)p->lse[i] - p->rlse[i]);
        if (!(e <= worst)) worst = isnan(e) ? INFINITY : e;
    }
    return worst;
}

static void compare(problem *p, double tol, double grad_tol) {
    const int64_t width = (int64_t)p->a.heads * p->a.dh;
    CHECK(distance(p, p->o, p->ro, p->a.nq) <= tol);
    CHECK(lse_distance(p) <= tol);
    CHECK(distance(p, p->gq, p->rgq, p->a.nq) <= grad_tol);
    CHECK(distance(p, p->gk, p->rgk, p->a.nk) <= grad_tol);
    CHECK(distance(p, p->gv, p->rgv, p->a.nk) <= grad_tol);
    CHECK(intact(p->o, p->a.nq, p->ld, width) && intact(p->gq, p->a.nq, p->ld, width));
    CHECK(intact(p->gk, p->a.nk, p->ld, width) && intact(p->gv, p->a.nk, p->ld, width));
    CHECK(intact(p->lse, p->a.nq, p->a.heads, p->a.heads));
}

static void run_case(const cpu_kernels *kern, int64_t nq, int64_t nk, int heads, int dh, float size,
                     float scale, double tol) {
    char name[80];
    snprintf(name, sizeof name, "%s nq %d nk %d, %d heads of %d", kern->isa, (int)nq, (int)nk,
             heads, dh);
    CASE(name);
    problem p = make(kern, nq, nk, heads, dh, size, scale);
    kern->attn(&p.a, p.scratch);
    memset(p.scratch, 0xff, p.scratch_bytes);
    attn_grad_args g = grad_args(&p, false, false);
    for (int64_t i = 0; i < nq; i++) p.gq[i * p.ld] = NAN; /* must be overwritten, not added to */
    for (int64_t j = 0; j < nk; j++) p.gk[j * p.ld] = p.gv[j * p.ld] = NAN;
    kern->attn_grad(&g, p.scratch);
    reference(&p);
    /* Sums over queries collect rounding errors of nq terms. */
    compare(&p, tol, tol * (4 + 0.1 * (double)nq));
    drop(&p);
    CASE(NULL);
}

static void agrees_with_the_plain_loop(void) {
    static const int64_t sizes[] = {1, 2, 3, 16, 17, 50, 128, 129, 300};
    static const int shapes[][2] = {{4, 16}, {2, 2}, {1, 7}, {8, 8}, {3, 5}, {4, 64}};
    for (int i = 0; i < 3; i++) {
        const cpu_kernels *kern = cpu_kernels_best(ISAS[i]);
        if (!kern) continue;
        for (int s = 0; s < 6; s++)
            for (int x = 0; x < 9; x++)
                for (int y = 0; y < 9; y++) {
                    if (s > 0 && x > 6 && y > 6) continue; /* the large ones once are enough */
                    seed_ = (uint64_t)(s * 100 + x * 10 + y);
                    const int dh = shapes[s][1];
                    run_case(kern, sizes[x], sizes[y], shapes[s][0], dh, 2, 1 / sqrtf((float)dh),
                             2e-6);
                }
    }
}

static void every_head_width_works(void) {
    for (int i = 0; i < 3; i++) {
        const cpu_kernels *kern = cpu_kernels_best(ISAS[i]);
        if (!kern) continue;
        for (int dh = 1; dh <= 128; dh += dh < 36 ? 1 : 23) {
            seed_ = (uint64_t)dh;
            run_case(kern, 21, 37, 2, dh, 1, 1 / sqrtf((float)dh), 2e-6);
        }
    }
}

/* Scores between about -80 and 80: the softmax is nearly a hard maximum. A score of 80 in single
 * precision is off by 1e-5, and so is, relatively, a weight. */
static void large_scores_neither_overflow_nor_drift(void) {
    for (int i = 0; i < 3; i++) {
        const cpu_kernels *kern = cpu_kernels_best(ISAS[i]);
        if (!kern) continue;
        seed_ = 5;
        run_case(kern, 40, 140, 4, 16, 4, 80.0f / 70, 1e-4);
        run_case(kern, 3, 140, 4, 16, 4, 80.0f / 70, 1e-4);
        run_case(kern, 33, 70, 1, 1, 4, -5, 1e-4);
    }
}

static void a_hundred_thousand_keys(void) {
    for (int i = 0; i < 3; i++) {
        const cpu_kernels *kern = cpu_kernels_best(ISAS[i]);
        if (!kern) continue;
        seed_ = 6;
        CHECK(kern->attn_scratch(3, 100000, 4, 16) == kern->attn_scratch(3, 1, 4, 16));
        run_case(kern, 3, 100000, 4, 16, 1, 0.25f, 2e-6);
        run_case(kern, 16, 20000, 2, 16, 1, 0.25f, 2e-6);
    }
}

static void no_keys_and_no_queries(void) {
    for (int i = 0; i < 3; i++) {
        const cpu_kernels *kern = cpu_kernels_best(ISAS[i]);
        if (!kern) continue;
        CASE(ISAS[i]);
        for (int64_t nq = 5; nq <= 20; nq += 15) {
            problem p = make(kern, nq, 0, 4, 16, 1, 0.25f);
            p.a.k = p.a.v = NULL;
            kern->attn(&p.a, p.scratch);
            attn_grad_args g = grad_args(&p, false, false);
            kern->attn_grad(&g, p.scratch);
            for (int64_t r = 0; r < nq; r++) {
                CHECK(memcmp(p.o + r * p.ld, p.q + r * p.ld, 64 * sizeof(float)) == 0);
                CHECK(memcmp(p.gq + r * p.ld, p.go + r * p.ld, 64 * sizeof(float)) == 0);
            }
            for (int64_t r = 0; r < 4 * nq; r++) CHECK(p.lse[r] == -INFINITY);
            drop(&p);
        }
        problem p = make(kern, 0, 9, 4, 16, 1, 0.25f);
        kern->attn(&p.a, p.scratch);
        attn_grad_args g = grad_args(&p, false, false);
        p.gk[3] = p.gv[5] = 1;
        kern->attn_grad(&g, p.scratch);
        CHECK(p.gk[3] == 0 && p.gv[5] == 0);
        drop(&p);
    }
}

static void gradients_are_added_when_asked(void) {
    for (int i = 0; i < 3; i++) {
        const cpu_kernels *kern = cpu_kernels_best(ISAS[i]);
        if (!kern) continue;
        CASE(ISAS[i]);
        for (int flags = 0; flags < 4; flags++)
            for (int dh = 5; dh <= 16; dh += 11) {
                const bool acc_q = flags & 1, acc_k = flags & 2;
                seed_ = 7;
                problem p = make(kern, 19, 75, 3, dh, 1, 0.25f);
                reference(&p);
                kern->attn(&p.a, p.scratch);
                for (int64_t r = 0; r < 19; r++)
                    for (int c = 0; c < 3 * dh; c++) {
                        p.gq[r * p.ld + c] = 0.5f;
                        if (acc_q) p.rgq[r * p.ld + c] += 0.5;
                    }
                for (int64_t r = 0; r < 75; r++)
                    for (int c = 0; c < 3 * dh; c++) {
                        p.gk[r * p.ld + c] = -0.25f;
                        p.gv[r * p.ld + c] = 0.125f;
                        if (acc_k) p.rgk[r * p.ld + c] -= 0.25;
                        if (acc_k) p.rgv[r * p.ld + c] += 0.125;
                    }
                attn_grad_args g = grad_args(&p, acc_q, acc_k);
                kern->attn_grad(&g, p.scratch);
                compare(&p, 2e-6, 1e-5);
                drop(&p);
            }
    }
}

/* The first queries alone give the same bits as among all, whatever path they take. */
static void a_query_does_not_see_the_others(void) {
    static const int shapes[][2] = {{4, 16}, {3, 5}, {1, 33}, {2, 8}};
    static const int64_t keys[] = {1, 31, 33, 65, 130, 300};
    for (int i = 0; i < 3; i++) {
        const cpu_kernels *kern = cpu_kernels_best(ISAS[i]);
        if (!kern) continue;
        CASE(ISAS[i]);
        for (int s = 0; s < 4; s++)
            for (int y = 0; y < 6; y++) {
                seed_ = (uint64_t)(10 * s + y);
                const int64_t nq = 41;
                problem p = make(kern, nq, keys[y], shapes[s][0], shapes[s][1], 2, 0.3f);
                const size_t bytes = (size_t)(nq * p.ld) * sizeof(float);
                float *o = memory(bytes), *gq = memory(bytes), *lse = memory(bytes);
                attn_grad_args g = grad_args(&p, false, false);
                kern->attn(&p.a, p.scratch);
                kern->attn_grad(&g, p.scratch);
                memcpy(o, p.o, bytes);
                memcpy(gq, p.gq, bytes);
                memcpy(lse, p.lse, (size_t)(nq * p.a.heads) * sizeof(float));
                for (int64_t few = 1; few < nq; few += 1 + few / 8) {
                    g.fwd.nq = p.a.nq = few;
                    memset(p.o, 0xff, bytes);
                    memset(p.gq, 0xff, bytes);
                    kern->attn(&p.a, p.scratch);
                    kern->attn_grad(&g, p.scratch);
                    for (int64_t r = 0; r < few;
                         r++) { /* columns past the row width are not ours */
                        const size_t row = (size_t)(p.a.heads * p.a.dh) * sizeof(float);
                        CHECK(memcmp(o + r * p.ld, p.o + r * p.ld, row) == 0);
                        CHECK(memcmp(gq + r * p.ld, p.gq + r * p.ld, row) == 0);
                    }
                    CHECK(memcmp(lse, p.lse, (size_t)(few * p.a.heads) * sizeof(float)) == 0);
                }
                free(o);
                free(gq);
                free(lse);
                drop(&p);
            }
    }
}

static void a_nan_is_not_hidden(void) {
    for (int i = 0; i < 3; i++) {
        const cpu_kernels *kern = cpu_kernels_best(ISAS[i]);
        if (!kern) continue;
        CASE(ISAS[i]);
        for (int64_t nq = 1; nq <= 16; nq += 15) {
            seed_ = 3;
            problem p = make(kern, nq, 40, 1, 16, 1, 0.25f);
            p.k[20 * p.ld + 3] = NAN;
            kern->attn(&p.a, p.scratch);
            for (int64_t r = 0; r < nq; r++) CHECK(isnan(p.o[r * p.ld]) && isnan(p.lse[r]));
            drop(&p);
        }
    }
}

int main(void) {
    RUN(agrees_with_the_plain_loop);
    RUN(every_head_width_works);
    RUN(large_scores_neither_overflow_nor_drift);
    RUN(a_hundred_thousand_keys);
    RUN(no_keys_and_no_queries);
    RUN(gradients_are_added_when_asked);
    RUN(a_query_does_not_see_the_others);
    RUN(a_nan_is_not_hidden);
    return check_done();
}
