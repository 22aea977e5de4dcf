/* test_pool_errors.c: of tasks that fail the lowest is told, in whatever order they end, and never
 * one that was only stopped; a caller's allocator is called by one worker at a time; stopping
 * reaches all workers, and only the caller's thread asks the caller. */
#include "base/pool_errors.h"

#include <sched.h>

#include "base/pool.h"
#include "check.h"

enum { WORKERS = 4 };
enum { PATIENCE = 4000000 }; /* turns that a task waits for what never comes */

static env world;

/* ---- which failure is told ------------------------------------------------------------------- */

typedef struct ending {
    int64_t task;
    mnp_status status;
} ending;

/* Tasks end in this order; that of `told` is what the caller hears. */
static void tells(const ending *order, int count, int told) {
    pool_errors c;
    char text[32];
    pool_errors_begin(&c, &world);
    for (int k = 0; k < count; k++) {
        snprintf(text, sizeof text, "task %d", (int)order[k].task);
        pool_errors_fail(&c, order[k].task, order[k].status, text);
        CHECK(pool_errors_stopped(&c, 1));
    }
    CHECK(pool_errors_end(&c) == order[told].status);
    snprintf(text, sizeof text, "task %d", (int)order[told].task);
    STREQ(c.error, text);
}

static void lowest_is_told(void) {
    static const mnp_status status[3] = {MNP_EINVAL, MNP_ENUMERIC, MNP_EIO};
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int k = 0; k < 6; k++) {
        ending order[3];
        int first = 0;
        for (int j = 0; j < 3; j++) {
            order[j] = (ending){7 + orders[k][j], status[orders[k][j]]};
            if (orders[k][j] == 0) first = j;
        }
        tells(order, 3, first);
    }
}

/* A task that was stopped has not failed by itself, though it may be a lower one. */
static void stopped_tells_less(void) {
    const ending before[] = {{0, MNP_ECANCELLED}, {5, MNP_EINVAL}, {1, MNP_ECANCELLED}};
    const ending after[] = {{5, MNP_EINVAL}, {0, MNP_ECANCELLED}, {1, MNP_ECANCELLED}};
    const ending lower[] = {{0, MNP_ECANCELLED}, {5, MNP_EINVAL}, {3, MNP_ENOMEM}};
    const ending alone[] = {{4, MNP_ECANCELLED}, {2, MNP_ECANCELLED}};
    tells(before, 3, 1);
    tells(after, 3, 0);
    tells(lower, 3, 2);
    tells(alone, 2, 0);
}

static void nothing_failed(void) {
    pool_errors c;
    pool_errors_begin(&c, &world);
    CHECK(!pool_errors_stopped(&c, 0) && !pool_errors_stopped(&c, 1));
    CHECK(pool_errors_end(&c) == MNP_OK);
    STREQ(c.error, "");
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* An allocator that is not made for threads: plain counters, and a sign that somebody is inside. */
typedef struct narrow {
    mnp_allocator inner;
    atomic_bool inside;
    atomic_int met;
    int64_t calls, living;
} narrow;

static void enter(narrow *n) {
    if (atomic_exchange(&n->inside, true)) atomic_fetch_add(&n->met, 1);
    n->calls++;
    sched_yield(); /* whoever does not wait comes in now */
}
static void *narrow_alloc(void *user, size_t bytes, size_t align) {
    narrow *n = user;
    enter(n);
    n->living++;
    void *p = n->inner.alloc(n->inner.user, bytes, align);
    atomic_store(&n->inside, false);
    return p;
}
static void narrow_free(void *user, void *ptr) {
    narrow *n = user;
    enter(n);
    n->living--;
    n->inner.free(n->inner.user, ptr);
    atomic_store(&n->inside, false);
}

typedef struct job {
    pool_errors errors;
    atomic_int waiting, stopped, failed;
} job;

static void meet(job *j) {
    atomic_fetch_add(&j->waiting, 1);
    while (atomic_load(&j->waiting) < WORKERS) sched_yield();
}

enum { ROUNDS = 200 };

static void use_memory(void *arg, int64_t task, int worker) {
    job *j = arg;
    pool_seat seat;
    env own;
    (void)task;
    pool_errors_env(&j->errors, worker, &seat, &own);
    meet(j);
    for (int k = 0; k < ROUNDS; k++) {
        char *p = env_alloc(&own, 16, 1, "a test");
        if (!p) atomic_fetch_add(&j->failed, 1);
        env_free(&own, p);
    }
}

static void one_at_a_time(void) {
    narrow n = {.inner = world.allocator};
    env e = world;
    e.allocator = (mnp_allocator){narrow_alloc, narrow_free, &n};
    pool *p;
    job j = {0};
    CHECK(pool_create(&world, WORKERS, &p) == MNP_OK);
    if (!p) return;
    pool_errors_begin(&j.errors, &e);
    pool_run(p, WORKERS, use_memory, &j);
    CHECK(pool_errors_end(&j.errors) == MNP_OK);
    pool_destroy(p);
    CHECK(atomic_load(&n.met) == 0 && atomic_load(&j.failed) == 0);
    CHECK(n.calls == 2 * WORKERS * ROUNDS && n.living == 0);
}

/* The C library's memory is made for threads: nobody waits for it. */
static void usual_memory_is_not_locked(void) {
    pool_errors c;
    pool_seat seat;
    env own;
    pool_errors_begin(&c, &world);
    pool_errors_env(&c, 1, &seat, &own);
    CHECK(own.allocator.alloc == world.allocator.alloc);
    CHECK(own.allocator.free == world.allocator.free);
    CHECK(pool_errors_end(&c) == MNP_OK);
}

/* ---- stopping -------------------------------------------------------------------------------- */

static void until_stopped(void *arg, int64_t task, int worker) {
    job *j = arg;
    pool_seat seat;
    env own;
    pool_errors_env(&j->errors, worker, &seat, &own);
    meet(j);
    for (int k = 0; k < PATIENCE; k++) {
        if (env_cancelled(&own)) {
            atomic_fetch_add(&j->stopped, 1);
            break;
        }
        sched_yield();
    }
    pool_errors_fail(&j->errors, task, MNP_ECANCELLED, "stopped");
}

/* One task fails when all have begun; the others work until they are stopped. */
static void one_fails(void *arg, int64_t task, int worker) {
    job *j = arg;
    if (task == 2) {
        meet(j);
        pool_errors_fail(&j->errors, task, MNP_ENUMERIC, "task 2 failed");
    } else {
        until_stopped(arg, task, worker);
    }
}

static void failure_stops_others(void) {
    pool *p;
    job j = {0};
    CHECK(pool_create(&world, WORKERS, &p) == MNP_OK);
    if (!p) return;
    pool_errors_begin(&j.errors, &world);
    pool_run(p, WORKERS, one_fails, &j);
    CHECK(pool_errors_end(&j.errors) == MNP_ENUMERIC);
    STREQ(j.errors.error, "task 2 failed");
    CHECK(atomic_load(&j.stopped) == WORKERS - 1);
    pool_destroy(p);
}

typedef struct caller {
    pthread_t thread;
    atomic_int asked, by_others;
} caller;

static bool stop_soon(void *user) {
    caller *c = user;
    if (!pthread_equal(pthread_self(), c->thread)) atomic_fetch_add(&c->by_others, 1);
    return atomic_fetch_add(&c->asked, 1) >= 3;
}

static void caller_stops_all(void) {
    caller c = {.thread = pthread_self()};
    env e = world;
    e.cancel = stop_soon, e.cancel_user = &c;
    pool *p;
    job j = {0};
    CHECK(pool_create(&world, WORKERS, &p) == MNP_OK);
    if (!p) return;
    pool_errors_begin(&j.errors, &e);
    pool_run(p, WORKERS, until_stopped, &j);
    CHECK(pool_errors_end(&j.errors) == MNP_ECANCELLED);
    STREQ(j.errors.error, "stopped");
    CHECK(atomic_load(&j.stopped) == WORKERS);
    CHECK(atomic_load(&c.asked) == 4 && atomic_load(&c.by_others) == 0);
    pool_destroy(p);
}

static void entering(void) {
    pool_errors c;
    pool_seat seat;
    env own = {0};
    pool_errors_begin(&c, &world);
    CHECK(pool_errors_enter(&c, 3, 1, "cancelled", &seat, &own));
    CHECK(own.allocator.alloc == world.allocator.alloc && !env_cancelled(&own));
    pool_errors_fail(&c, 5, MNP_ENUMERIC, "task 5 failed");
    CHECK(!pool_errors_enter(&c, 4, 1, "cancelled", &seat,
                             &own)); /* and does not hide that failure */
    CHECK(pool_errors_end(&c) == MNP_ENUMERIC);
    STREQ(c.error, "task 5 failed");
    caller asks = {.thread = pthread_self(), .asked = 3};
    env e = world;
    e.cancel = stop_soon, e.cancel_user = &asks;
    pool_errors_begin(&c, &e);
    CHECK(!pool_errors_enter(&c, 0, 0, "cancelled", &seat, &own));
    CHECK(pool_errors_end(&c) == MNP_ECANCELLED);
    STREQ(c.error, "cancelled");
}

int main(void) {
    env_init(&world);
    RUN(lowest_is_told);
    RUN(stopped_tells_less);
    RUN(nothing_failed);
    RUN(one_at_a_time);
    RUN(usual_memory_is_not_locked);
    RUN(failure_stops_others);
    RUN(caller_stops_all);
    RUN(entering);
    return check_done();
}
