/* test_gemm.c: the dense products, transpose and column sums of every instruction set this machine
 * runs, against sums in double; padding columns stay zero, memory around a matrix stays untouched,
 * and a row's bits do not depend on the rows beside it.
 *
 * Tolerance: a sum of K products of numbers in [-1, 1], rounded at every step, is off by at most
 * about K eps/2 times the sum of their magnitudes, and by far less as the roundings have random
 * signs. K eps magnitude + 4 eps leaves a factor of two for the epilogue's additions. */
#include <float.h>

#include "backend/cpu/kernels.h"
#include "check.h"

static const char *const ISAS[] = {"avx512", "avx2", "base"};
enum { ISA_COUNT = 3, GUARD = 16 };
static const float GUARD_VALUE = 12345.0f;

static uint32_t rng_state = 1;
static float uniform(void) { /* [-1, 1) */
    rng_state = rng_state * 1664525u + 1013904223u;
    return (float)(rng_state >> 8) * 0x1p-23f - 1.0f;
}

/* A matrix by the rule of kernels.h, with guard floats before and after. */
typedef struct mat {
    float *block, *x;
    int64_t rows, cols, ld;
} mat;

static int64_t pad16(int64_t n) {
    return (n + 15) / 16 * 16;
}

static mat mat_make(int64_t rows, int64_t cols, int64_t extra_ld) {
    mat m = {.rows = rows, .cols = cols, .ld = pad16(cols) + extra_ld};
    const size_t floats = (size_t)(rows * m.ld) + 2 * GUARD;
    m.block = aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64);
    if (!m.block) abort();
    m.x = m.block + GUARD;
    for (size_t i = 0; i < floats; i++) m.block[i] = GUARD_VALUE;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < pad16(cols); c++) m.x[r * m.ld + c] = c < cols ? uniform() : 0;
    }
    return m;
}

static mat mat_copy(const mat *a) {
    mat m = mat_make(a->rows, a->cols, a->ld - pad16(a->cols));
    for (int64_t i = 0; i < a->rows * a->ld; i++) m.x[i] = a->x[i];
    return m;
}

static void mat_free(mat *m) {
    free(m->block);
}

static double at(const mat *m, int64_t r, int64_t c) {
    return (double)m->x[r * m->ld + c];
}

/* Padding columns zero; guards and the columns beyond the padding as they were. */
static bool mat_intact(const mat *m) {
    for (int i = 0; i < GUARD; i++) {
        if (m->block[i] != GUARD_VALUE) return false;
        if (m->x[m->rows * m->ld + i] != GUARD_VALUE) return false;
    }
    for (int64_t r = 0; r < m->rows; r++) {
        for (int64_t c = m->cols; c < m->ld; c++)
            if (m->x[r * m->ld + c] != (c < pad16(m->cols) ? 0 : GUARD_VALUE)) return false;
    }
    return true;
}

typedef struct options {
    bool bias, accumulate, relu, residual, hidden, stale_padding;
} options;

static options options_from(unsigned bits) {
    return (options){bits & 1, bits & 2, bits & 4, bits & 8, bits & 16, !(bits & 2)};
}

static bool close_to(float got, double want, double magnitude, int64_t K) {
    const double eps = (double)FLT_EPSILON;
    return fabs((double)got - want) <= (double)K * eps * magnitude + 4 * eps * (1 + magnitude);
}

typedef struct nn_case {
    mat a, b, c, bias, residual, hidden;
} nn_case;

/* True when every element of c and hidden is what the header's formula says. */
static bool nn_correct(const nn_case *t, const mat *old, options o) {
    for (int64_t i = 0; i < t->c.rows; i++) {
        for (int64_t j = 0; j < t->c.cols; j++) {
            double h = 0, magnitude = 0;
            for (int64_t k = 0; k < t->a.cols; k++) {
                const double product = at(&t->a, i, k) * at(&t->b, k, j);
                h += product;
                magnitude += fabs(product);
            }
            if (o.bias) h += at(&t->bias, 0, j);
            if (o.accumulate) h += at(old, i, j);
            magnitude += 2;
            if (o.relu && h < 0) h = 0;
            if (o.hidden && !close_to(t->hidden.x[i * t->hidden.ld + j], h, magnitude, t->a.cols))
                return false;
            if (o.residual) h += at(&t->residual, i, j);
            if (!close_to(t->c.x[i * t->c.ld + j], h, magnitude + 1, t->a.cols)) return false;
        }
    }
    return true;
}

static void one_nn(const cpu_kernels *k, int64_t R, int64_t K, int64_t N, options o) {
    char name[120];
    snprintf(name, sizeof name, "%s nn R %lld K %lld N %lld", k->isa, (long long)R, (long long)K,
             (long long)N);
    CASE(name);
    nn_case t = {mat_make(R, K, 0), mat_make(K, N, 16), mat_make(R, N, 16),
                 mat_make(1, N, 0), mat_make(R, N, 32), mat_make(R, N, 16)};
    mat old = mat_copy(&t.c);
    /* A kernel that overwrites c must also write the zeros of its padding. */
    if (o.stale_padding)
        for (int64_t i = 0; i < R; i++)
            for (int64_t j = 0; j < pad16(N); j++) t.c.x[i * t.c.ld + j] = 7;
    gemm_epilogue e = {.accumulate = o.accumulate, .relu = o.relu};
    if (o.bias) e.bias = t.bias.x;
    if (o.hidden) e.hidden = t.hidden.x;
    if (o.residual) e.residual = t.residual.x, e.ldr = t.residual.ld;
    k->gemm_nn(R, K, N, t.a.x, t.a.ld, t.b.x, t.b.ld, t.c.x, t.c.ld, &e);
    CHECK(nn_correct(&t, &old, o));
    CHECK(mat_intact(&t.c));
    CHECK(mat_intact(&t.hidden));
    mat *all[] = {&t.a, &t.b, &t.c, &t.bias, &t.residual, &t.hidden, &old};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) mat_free(all[i]);
    CASE(NULL);
}

static bool tn_correct(const mat *a, const mat *b, const mat *c, const mat *old) {
    for (int64_t i = 0; i < c->rows; i++) {
        for (int64_t j = 0; j < c->cols; j++) {
            double want = at(old, i, j), magnitude = fabs(want);
            for (int64_t r = 0; r < a->rows; r++) {
                const double product = at(a, r, i) * at(b, r, j);
                want += product;
                magnitude += fabs(product);
            }
            if (!close_to(c->x[i * c->ld + j], want, magnitude, a->rows)) return false;
        }
    }
    return true;
}

static void one_tn(const cpu_kernels *k, int64_t R, int64_t K, int64_t N) {
    char name[120];
    snprintf(name, sizeof name, "%s tn R %lld K %lld N %lld", k->isa, (long long)R, (long long)K,
             (long long)N);
    CASE(name);
    mat a = mat_make(R, K, 16), b = mat_make(R, N, 0), c = mat_make(K, N, 16), old = mat_copy(&c);
    k->gemm_tn(R, K, N, a.x, a.ld, b.x, b.ld, c.x, c.ld);
    CHECK(tn_correct(&a, &b, &c, &old));
    CHECK(mat_intact(&c));
    mat_free(&a);
    mat_free(&b);
    mat_free(&c);
    mat_free(&old);
    CASE(NULL);
}

static const int64_t ROWS[] = {0, 1, 2, 13, 127, 128, 129, 1000};
static const int64_t WIDTHS[] = {1, 17, 29, 33, 64, 128, 200};
static const int64_t DEPTHS[] = {0, 1, 29, 161};

#define COUNT(x) (sizeof(x) / sizeof *(x))

/* Every instruction set, every size above; the 32 epilogues take turns. */
static void products_match_double(void) {
    for (int s = 0; s < ISA_COUNT; s++) {
        const cpu_kernels *k = cpu_kernels_best(ISAS[s]);
        if (!k) continue;
        unsigned turn = 0;
        for (size_t r = 0; r < COUNT(ROWS); r++) {
            for (size_t n = 0; n < COUNT(WIDTHS); n++) {
                for (size_t d = 0; d < COUNT(DEPTHS); d++) {
                    /* The thousand rows are there to cross block borders; a few will do. */
                    if (ROWS[r] == 1000 && (n + d) % 4 != 0) continue;
                    one_nn(k, ROWS[r], DEPTHS[d], WIDTHS[n], options_from(turn));
                    one_tn(k, ROWS[r], DEPTHS[d], WIDTHS[n]);
                    turn = (turn + 1) % 32;
                }
            }
        }
    }
}

/* Every tile height with every panel width, and every epilogue at one size of each kind. */
static void tiles_and_epilogues(void) {
    for (int s = 0; s < ISA_COUNT; s++) {
        const cpu_kernels *k = cpu_kernels_best(ISAS[s]);
        if (!k) continue;
        for (int64_t R = 1; R <= 30; R++) {
            for (int64_t N = 1; N <= 160; N += 16) {
                one_nn(k, R, 5, N, options_from(0));
                one_tn(k, 5, R, N);
            }
        }
        for (unsigned bits = 0; bits < 32; bits++) {
            one_nn(k, 13, 29, 29, options_from(bits));
            one_nn(k, 3, 161, 128, options_from(bits));
        }
    }
}

static void random_sizes(void) {
    for (int s = 0; s < ISA_COUNT; s++) {
        const cpu_kernels *k = cpu_kernels_best(ISAS[s]);
        if (!k) continue;
        rng_state = 7;
        for (int i = 0; i < 60; i++) {
            const int64_t R = (int64_t)((uniform() + 1) * 80), K = (int64_t)((uniform() + 1) * 90);
            const int64_t N = 1 + (int64_t)((uniform() + 1) * 110);
            one_nn(k, R, K, N, options_from((unsigned)i % 32));
            one_tn(k, R, K, N);
        }
    }
}

/* c(rows from..to) computed as one product equals the same rows of `whole`, bit for bit. */
static bool same_rows(const cpu_kernels *k, const mat *a, const mat *b, const mat *whole,
                      int64_t from, int64_t to) {
    mat part = mat_make(to - from, b->cols, 0);
    const gemm_epilogue e = {.relu = true};
    k->gemm_nn(to - from, a->cols, b->cols, a->x + from * a->ld, a->ld, b->x, b->ld, part.x,
               part.ld, &e);
    bool same = true;
    for (int64_t i = 0; i < to - from; i++)
        same = same && memcmp(part.x + i * part.ld, whole->x + (from + i) * whole->ld,
                              (size_t)b->cols * sizeof(float)) == 0;
    mat_free(&part);
    return same;
}

static void rows_do_not_depend_on_their_neighbours(void) {
    for (int s = 0; s < ISA_COUNT; s++) {
        const cpu_kernels *k = cpu_kernels_best(ISAS[s]);
        if (!k) continue;
        CASE(k->isa);
        for (size_t n = 0; n < COUNT(WIDTHS); n++) {
            mat a = mat_make(300, 161, 0), b = mat_make(161, WIDTHS[n], 0);
            mat whole = mat_make(300, WIDTHS[n], 0);
            const gemm_epilogue e = {.relu = true};
            k->gemm_nn(128, 161, b.cols, a.x, a.ld, b.x, b.ld, whole.x, whole.ld, &e);
            for (int64_t i = 0; i < 128; i++) CHECK(same_rows(k, &a, &b, &whole, i, i + 1));
            for (int64_t h = 2; h < 128; h += 5) CHECK(same_rows(k, &a, &b, &whole, 128 - h, 128));
            k->gemm_nn(300, 161, b.cols, a.x, a.ld, b.x, b.ld, whole.x, whole.ld, &e);
            for (int64_t i = 0; i < 300; i += 17) CHECK(same_rows(k, &a, &b, &whole, i, i + 1));
            CHECK(same_rows(k, &a, &b, &whole, 0, 128));
            mat_free(&a);
            mat_free(&b);
            mat_free(&whole);
        }
    }
}

/* C += A^T B over 1000 rows at once and in pieces of 1, 128 and 871 rows. */
static void splitting_the_rows_of_tn_changes_no_bit(void) {
    static const int64_t CUT[] = {0, 1, 129, 1000};
    for (int s = 0; s < ISA_COUNT; s++) {
        const cpu_kernels *k = cpu_kernels_best(ISAS[s]);
        if (!k) continue;
        CASE(k->isa);
        mat a = mat_make(1000, 161, 0), b = mat_make(1000, 64, 0);
        mat c = mat_make(161, 64, 0), d = mat_copy(&c);
        k->gemm_tn(1000, 161, 64, a.x, a.ld, b.x, b.ld, c.x, c.ld);
        for (int i = 0; i < 3; i++)
            k->gemm_tn(CUT[i + 1] - CUT[i], 161, 64, a.x + CUT[i] * a.ld, a.ld, b.x + CUT[i] * b.ld,
                       b.ld, d.x, d.ld);
        CHECK(memcmp(c.x, d.x, (size_t)(161 * c.ld) * sizeof(float)) == 0);
        mat_free(&a);
        mat_free(&b);
        mat_free(&c);
        mat_free(&d);
    }
}

static void relu_keeps_nan(void) {
    for (int s = 0; s < ISA_COUNT; s++) {
        const cpu_kernels *k = cpu_kernels_best(ISAS[s]);
        if (!k) continue;
        mat a = mat_make(1, 1, 0), b = mat_make(1, 3, 0), c = mat_make(1, 3, 0);
        a.x[0] = 1;
        b.x[0] = NAN, b.x[1] = -2, b.x[2] = INFINITY;
        const gemm_epilogue e = {.relu = true};
        k->gemm_nn(1, 1, 3, a.x, a.ld, b.x, b.ld, c.x, c.ld, &e);
        CHECK(isnan(c.x[0]));
        CHECK(c.x[1] == 0);
        CHECK(isinf(c.x[2]));
        mat_free(&a);
        mat_free(&b);
        mat_free(&c);
    }
}

static void transpose_and_column_sums(void) {
    for (int s = 0; s < ISA_COUNT; s++) {
        const cpu_kernels *k = cpu_kernels_best(ISAS[s]);
        if (!k) continue;
        CASE(k->isa);
        for (size_t r = 0; r < COUNT(ROWS); r++) {
            for (size_t n = 0; n < COUNT(WIDTHS); n++) {
                const int64_t R = ROWS[r], N = WIDTHS[n];
                mat a = mat_make(R, N, 16), t = mat_make(N, R, 16), sum = mat_make(1, N, 0);
                mat old = mat_copy(&sum);
                for (int64_t i = 0; i < N; i++)
                    for (int64_t j = 0; j < pad16(R); j++) t.x[i * t.ld + j] = 7;
                k->transpose(R, N, a.x, a.ld, t.x, t.ld);
                k->colsum(R, N, a.x, a.ld, sum.x);
                bool same = true, near = true;
                for (int64_t j = 0; j < N; j++) {
                    double want = at(&old, 0, j), magnitude = fabs(want);
                    for (int64_t i = 0; i < R; i++) {
                        same = same && at(&a, i, j) == at(&t, j, i);
                        want += at(&a, i, j);
                        magnitude += fabs(at(&a, i, j));
                    }
                    near = near && close_to(sum.x[j], want, magnitude, R);
                }
                CHECK(same && mat_intact(&t));
                CHECK(near && mat_intact(&sum));
                mat_free(&a);
                mat_free(&t);
                mat_free(&sum);
                mat_free(&old);
            }
        }
    }
}

static void dispatch_answers_by_name(void) {
    const cpu_kernels *best = cpu_kernels_best(NULL);
    CHECK(best != NULL);
    CHECK(cpu_kernels_best(best->isa) == best);
    CHECK(cpu_kernels_best("base") != NULL);
    CHECK(cpu_kernels_best("abacus") == NULL);
    for (int s = 0; s < ISA_COUNT; s++) {
        const cpu_kernels *k = cpu_kernels_best(ISAS[s]);
        if (k) {
            STREQ(k->isa, ISAS[s]);
            CHECK(k->width <= best->width);
        }
    }
}

int main(void) {
    RUN(dispatch_answers_by_name);
    RUN(products_match_double);
    RUN(tiles_and_epilogues);
    RUN(random_sizes);
    RUN(rows_do_not_depend_on_their_neighbours);
    RUN(splitting_the_rows_of_tn_changes_no_bit);
    RUN(relu_keeps_nan);
    RUN(transpose_and_column_sums);
    return check_done();
}
