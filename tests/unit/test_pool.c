/* test_pool.c: every task runs exactly once, writes are visible, failures are clean. */
#include "base/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>

#include "check.h"

enum { TASKS = 5000 };

typedef struct job {
    int threads;
    int32_t runs[TASKS]; /* plain memory: a race would show under the thread sanitizer */
    int64_t scratch[64]; /* per worker */
    atomic_int bad_worker, unmasked;
} job;

static void count_task(void *arg, int64_t task, int worker) {
    job *j = arg;
    j->runs[task]++;
    if (worker < 0 || worker >= j->threads)
        atomic_fetch_add(&j->bad_worker, 1);
    else
        j->scratch[worker] += task;
    if (worker > 0) {
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, NULL, &mask);
        if (!sigismember(&mask, SIGINT) || !sigismember(&mask, SIGTERM))
            atomic_fetch_add(&j->unmasked, 1);
    }
}

static void every_task_once(void) {
    static job j;
    for (int threads = 1; threads <= 7; threads += 2) {
        env e;
        env_init(&e);
        pool *p;
        CHECK(pool_create(&e, threads, &p) == MNP_OK);
        if (!p) return;
        CHECK(pool_threads(p) == threads);
        static const int64_t sizes[] = {0, 1, 2, 3, 7, 100, TASKS};
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            memset(&j, 0, sizeof j);
            j.threads = threads;
            pool_run(p, sizes[k], count_task, &j);
            bool once = true;
            for (int64_t i = 0; i < TASKS; i++) once &= j.runs[i] == (i < sizes[k]);
            CHECK(once);
            int64_t sum = 0;
            for (int w = 0; w < threads; w++) sum += j.scratch[w];
            CHECK(sum == sizes[k] * (sizes[k] - 1) / 2);
            CHECK(atomic_load(&j.bad_worker) == 0 && atomic_load(&j.unmasked) == 0);
        }
        pool_destroy(p);
    }
}

static void add_task(void *arg, int64_t task, int worker) {
    (void)worker;
    ((int64_t *)arg)[task] += task + 1;
}

/* Many short runs in a row: late workers must never touch the next job's data. */
static void runs_follow_each_other(void) {
    env e;
    env_init(&e);
    pool *p;
    CHECK(pool_create(&e, 4, &p) == MNP_OK);
    if (!p) return;
    int64_t cells[3] = {0};
    enum { RUNS = 3000 };
    for (int i = 0; i < RUNS; i++) {
        int64_t local[3] = {0}; /* on this stack frame: gone after the run */
        pool_run(p, 3, add_task, local);
        for (int k = 0; k < 3; k++) cells[k] += local[k];
    }
    for (int k = 0; k < 3; k++) CHECK(cells[k] == (int64_t)RUNS * (k + 1));
    pool_destroy(p);
}

typedef struct spawner {
    int allowed;
} spawner;

static int spawn_few(void *user, pthread_t *thread, void *(*body)(void *), void *arg) {
    spawner *s = user;
    if (s->allowed-- == 0) return EAGAIN;
    return pthread_create(thread, NULL, body, arg);
}

static void a_refused_thread_is_an_error(void) {
    for (int allowed = 0; allowed < 3; allowed++) {
        env e;
        env_init(&e);
        spawner s = {allowed};
        pool *p = (pool *)&s;
        CHECK(pool_create_with(&e, 4, spawn_few, &s, &p) == MNP_ENOMEM);
        CHECK(p == NULL);
        char want[32];
        snprintf(want, sizeof want, "thread %d of 4", allowed + 2);
        CHECK(strstr(e.error, want) != NULL);
    }
}

typedef struct counting {
    int until_failure, live;
} counting;

static void *counting_alloc(void *user, size_t bytes, size_t align) {
    counting *c = user;
    if (c->until_failure-- == 0) return NULL;
    c->live++;
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void counting_free(void *user, void *ptr) {
    ((counting *)user)->live--;
    free(ptr);
}

static void memory_failures_leak_nothing(void) {
    for (int n = 0; n < 2; n++) {
        counting c = {.until_failure = n};
        env e;
        env_init(&e);
        e.allocator = (mnp_allocator){counting_alloc, counting_free, &c};
        pool *p;
        CHECK(pool_create(&e, 2, &p) == MNP_ENOMEM);
        CHECK(p == NULL && c.live == 0);
    }
}

static void bad_arguments(void) {
    env e;
    env_init(&e);
    pool *p;
    CHECK(pool_create(&e, -1, &p) == MNP_EINVAL);
    CHECK(pool_create(&e, POOL_THREADS_MAX + 1, &p) == MNP_EINVAL);
    CHECK(strstr(e.error, "1024") != NULL);
    pool_destroy(NULL);
    CHECK(pool_default_threads() >= 1);
    CHECK(pool_create(&e, 0, &p) == MNP_OK);
    if (p) CHECK(pool_threads(p) == pool_default_threads());
    pool_destroy(p);
}

int main(void) {
    RUN(every_task_once);
    RUN(runs_follow_each_other);
    RUN(a_refused_thread_is_an_error);
    RUN(memory_failures_leak_nothing);
    RUN(bad_arguments);
    return check_done();
}
