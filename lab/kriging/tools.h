/* tools.h: the little linear algebra, randomness and threading that kriging needs. */
#ifndef MNP_LAB_KRIGING_TOOLS_H
#define MNP_LAB_KRIGING_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

/* ---- triangular matrices, row-major ---------------------------------------------------------- */

/* A = L L' in place; only the lower triangle is read and written. False: A is not positive definite
 * and is spoilt. */
bool cholesky(double *a, int64_t n);
/* B := L^-1 B and B := L'^-1 B, B (n, cols). */
void solve_lower(const double *l, int64_t n, double *b, int64_t cols);
void solve_upper(const double *l, int64_t n, double *b, int64_t cols);

/* ---- draws ----------------------------------------------------------------------------------- */

/* Philox4x32-10 with the counters of docs/dev/math.md, so that wells and noise are those on which
 * the library scores networks with the same seed. */
typedef enum draws_purpose {
    DRAWS_SPLIT = 2, /* points of a fit, the path of a simulation */
    DRAWS_FIELD = 4, /* values of a simulation                    */
    DRAWS_WELLS = 6, /* contexts of an evaluation                 */
    DRAWS_NOISE = 9  /* noise on its targets                      */
} draws_purpose;

typedef struct draws {
    uint64_t seed;
    uint32_t counter[4], word[4];
    int left; /* words not used yet */
} draws;

draws draws_of(uint64_t seed, draws_purpose purpose, uint32_t function);
uint64_t draws_below(draws *s, uint64_t k); /* 0 .. k - 1; k > 0 */
double draws_normal(draws *s);
void draws_shuffle(draws *s, int32_t *items, int64_t count);
/* order (n): a permutation of 0 .. n - 1 of which the first k entries are drawn. */
void draws_order(draws *s, int64_t n, int64_t k, int32_t *order);
/* The standard normal noise on a pixel of an image. */
double draws_noise(uint64_t seed, uint32_t image, uint32_t pixel);

/* ---- threads --------------------------------------------------------------------------------- */

/* Calls fn(arg, task, worker) for every task on up to `threads` threads, worker < threads; returns
 * when all are done. Where no thread can be made, the others do its work. */
typedef void (*share_fn)(void *arg, int64_t task, int worker);
void share(int threads, int64_t tasks, share_fn fn, void *arg);

#endif
