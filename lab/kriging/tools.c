/* tools.c: see tools.h. Sums run in a fixed order, so a result depends on nothing but its input. */
#include "lab/kriging/tools.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

/* ---- triangular matrices --------------------------------------------------------------------- */

/* Eight sums side by side: a fixed order that vector units like. */
static double dot(const double *x, const double *y, int64_t n) {
    double s[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) s[j] += x[i + j] * y[i + j];
    for (; i < n; i++) s[0] += x[i] * y[i];
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

bool cholesky(double *a, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double *row = a + i * n;
        for (int64_t j = 0; j < i; j++) row[j] = (row[j] - dot(row, a + j * n, j)) / a[j * n + j];
        double pivot = row[i] - dot(row, row, i);
        if (!(pivot > 0 && pivot < INFINITY)) return false;
        row[i] = sqrt(pivot);
    }
    return true;
}

/* y -= f x */
static void subtract(double *y, double f, const double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] -= f * x[i];
}

static void divide(double *y, double by, int64_t n) {
    double f = 1 / by;
    for (int64_t i = 0; i < n; i++) y[i] *= f;
}

void solve_lower(const double *l, int64_t n, double *b, int64_t cols) {
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < i; k++) subtract(b + i * cols, l[i * n + k], b + k * cols, cols);
        divide(b + i * cols, l[i * n + i], cols);
    }
}

void solve_upper(const double *l, int64_t n, double *b, int64_t cols) {
    for (int64_t i = n - 1; i >= 0; i--) {
        divide(b + i * cols, l[i * n + i], cols);
        for (int64_t k = 0; k < i; k++) subtract(b + k * cols, l[i * n + k], b + i * cols, cols);
    }
}

/* ---- draws ----------------------------------------------------------------------------------- */

static const double two_pi = 6.28318530717958647692;

static void philox(uint64_t seed, const uint32_t counter[4], uint32_t c[4]) {
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int i = 0; i < 4; i++) c[i] = counter[i];
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
        c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k0;
        c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t)b;
        c[3] = (uint32_t)a;
    }
}

draws draws_of(uint64_t seed, draws_purpose purpose, uint32_t function) {
    return (draws){.seed = seed, .counter = {0, function, 0, (uint32_t)purpose << 28}};
}

static uint64_t next(draws *s) { /* 64 bits */
    uint64_t bits = 0;
    for (int k = 0; k < 2; k++) {
        if (s->left == 0) {
            philox(s->seed, s->counter, s->word);
            s->counter[0]++;
            s->left = 4;
        }
        bits = bits << 32 | s->word[4 - s->left--];
    }
    return bits;
}

uint64_t draws_below(draws *s, uint64_t k) {
    uint64_t incomplete = (0 - k) % k, x; /* 2^64 mod k values belong to an incomplete cycle */
    do x = next(s);
    while (x < incomplete);
    return x % k;
}

static double uniform(draws *s) { /* in (0, 1) */
    return ((double)(next(s) >> 12) + 0.5) * 0x1p-52;
}

double draws_normal(draws *s) {
    double radius = sqrt(-2 * log(uniform(s)));
    return radius * cos(two_pi * uniform(s));
}

static void swap(int32_t *a, int32_t *b) {
    int32_t t = *a;
    *a = *b;
    *b = t;
}

void draws_shuffle(draws *s, int32_t *items, int64_t count) {
    for (int64_t i = count; i > 1; i--) swap(&items[i - 1], &items[draws_below(s, (uint64_t)i)]);
}

void draws_order(draws *s, int64_t n, int64_t k, int32_t *order) {
    for (int64_t i = 0; i < n; i++) order[i] = (int32_t)i;
    for (int64_t i = 0; i < k && i < n - 1; i++)
        swap(&order[i], &order[i + (int64_t)draws_below(s, (uint64_t)(n - i))]);
}

double draws_noise(uint64_t seed, uint32_t image, uint32_t pixel) {
    uint32_t counter[4] = {pixel, image, 0, (uint32_t)DRAWS_NOISE << 28}, w[4];
    philox(seed, counter, w);
    double radius = sqrt(-2 * log(((double)w[0] + 0.5) * 0x1p-32));
    return radius * cos(two_pi * (double)w[1] * 0x1p-32);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS_MAX = 1024 };

typedef struct loop {
    share_fn fn;
    void *arg;
    int64_t tasks;
    atomic_int_fast64_t next_task;
    atomic_int next_worker;
} loop;

static void *work(void *arg) {
    loop *c = arg;
    int worker = atomic_fetch_add(&c->next_worker, 1);
    for (int64_t task; (task = atomic_fetch_add(&c->next_task, 1)) < c->tasks;)
        c->fn(c->arg, task, worker);
    return NULL;
}

void share(int threads, int64_t tasks, share_fn fn, void *arg) {
    loop c = {.fn = fn, .arg = arg, .tasks = tasks};
    pthread_t others[THREADS_MAX];
    int made = 0;
    while (made < threads - 1 && made < tasks - 1 && made < THREADS_MAX)
        if (pthread_create(&others[made], NULL, work, &c) == 0)
            made++;
        else
            break;
    work(&c);
    while (made > 0) pthread_join(others[--made], NULL);
}
