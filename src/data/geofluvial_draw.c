/* geofluvial_draw.c: many images over the pool, one task a simulation. See geofluvial.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "data/geofluvial.h"

typedef struct draw_job {
    env *e; /* the caller's: only worker 0, which is the caller's thread, may use it */
    const geofluvial_opts *o;
    uint64_t seed;
    data_split split;
    int64_t first, count;
    const geofluvial_watch *watch;
    float *gray;
    _Atomic bool stop;
    _Atomic int64_t runs_done;
    pthread_mutex_t mutex; /* the caller's allocator may not be made for threads */
    /* under the mutex: the failure of the lowest run, so that the message is always the same one */
    int64_t failed_run;
    mnp_status status;
    char error[ENV_ERROR_MAX];
} draw_job;

static void *locked_alloc(void *user, size_t bytes, size_t align) {
    draw_job *job = user;
    pthread_mutex_lock(&job->mutex);
    void *p = job->e->allocator.alloc(job->e->allocator.user, bytes, align);
    pthread_mutex_unlock(&job->mutex);
    return p;
}

static void locked_free(void *user, void *ptr) {
    draw_job *job = user;
    pthread_mutex_lock(&job->mutex);
    job->e->allocator.free(job->e->allocator.user, ptr);
    pthread_mutex_unlock(&job->mutex);
}

static void note_failure(draw_job *job, int64_t run, mnp_status status, const char *text) {
    pthread_mutex_lock(&job->mutex);
    if (job->status == MNP_OK || run < job->failed_run) {
        job->failed_run = run;
        job->status = status;
        snprintf(job->error, sizeof job->error, "%s", text);
    }
    pthread_mutex_unlock(&job->mutex);
    atomic_store(&job->stop, true);
}

/* Copies what was asked for of a run's images. */
static void place(const draw_job *job, int64_t run, const float *images) {
    int64_t pixels = job->o->size * job->o->size;
    for (int64_t k = 0; k < job->o->crops; k++) {
        int64_t at = run * job->o->crops + k - job->first;
        if (at >= 0 && at < job->count)
            memcpy(job->gray + at * pixels, images + k * pixels, (size_t)pixels * sizeof *images);
    }
}

static void draw_run(void *arg, int64_t task, int worker) {
    draw_job *job = arg;
    if (worker == 0 && env_cancelled(job->e))
        note_failure(job, -1, MNP_ECANCELLED, "drawing images was cancelled");
    if (atomic_load(&job->stop)) return;
    env own = {.allocator = {locked_alloc, locked_free, job}};
    const geofluvial_opts *o = job->o;
    int64_t run = job->first / o->crops + task;
    float *images =
        env_alloc(&own, (size_t)(o->crops * o->size * o->size), sizeof *images, "a run's images");
    mnp_status status = MNP_ENOMEM;
    if (images) status = geofluvial_run(&own, o, job->seed, job->split, run, images);
    if (status == MNP_OK) place(job, run, images);
    env_free(&own, images);
    if (status != MNP_OK) note_failure(job, run, status, own.error);
    int64_t done = atomic_fetch_add(&job->runs_done, 1) + 1;
    if (worker == 0 && job->watch) job->watch->done(job->watch->user, done);
}

mnp_status geofluvial_draw(env *e, pool *pool, const geofluvial_opts *o, uint64_t seed,
                           data_split split, int64_t first, int64_t count,
                           const geofluvial_watch *watch, float *gray) {
    if (first < 0 || count < 0 || first > INT32_MAX || count > INT32_MAX)
        return env_fail(e, MNP_EINVAL, "images %lld .. +%lld: there are no more than %d",
                        (long long)first, (long long)count, INT32_MAX);
    if (count == 0) return MNP_OK;
    draw_job job = {.e = e,
                    .o = o,
                    .seed = seed,
                    .split = split,
                    .first = first,
                    .count = count,
                    .watch = watch,
                    .gray = gray};
    if (pthread_mutex_init(&job.mutex, NULL) != 0)
        return env_fail(e, MNP_ENOMEM, "no mutex for drawing images");
    int64_t runs = (first + count - 1) / o->crops - first / o->crops + 1;
    if (pool)
        pool_run(pool, runs, draw_run, &job);
    else
        for (int64_t task = 0; task < runs; task++) draw_run(&job, task, 0);
    pthread_mutex_destroy(&job.mutex);
    if (job.status == MNP_OK && watch) watch->done(watch->user, runs);
    return job.status == MNP_OK ? MNP_OK : env_fail(e, job.status, "%s", job.error);
}
