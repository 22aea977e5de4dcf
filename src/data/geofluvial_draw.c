/* geofluvial_draw.c: many images over the pool, one task a simulation. See geofluvial.h. */
#include <stdatomic.h>
#include <string.h>

#include "base/pool_errors.h"
#include "data/geofluvial.h"

typedef struct drawing {
    const geofluvial_opts *o;
    uint64_t seed;
    data_split split;
    int64_t first, count;
    const geofluvial_watch *watch;
    float *gray;
    _Atomic int64_t runs_done;
    pool_errors errors;
} drawing;

/* Copies what was asked for of a run's images. */
static void place(const drawing *d, int64_t run, const float *images) {
    int64_t pixels = d->o->size * d->o->size;
    for (int64_t k = 0; k < d->o->crops; k++) {
        int64_t at = run * d->o->crops + k - d->first;
        if (at >= 0 && at < d->count)
            memcpy(d->gray + at * pixels, images + k * pixels, (size_t)pixels * sizeof *images);
    }
}

static void draw_run(void *arg, int64_t task, int worker) {
    drawing *d = arg;
    pool_seat seat;
    env own;
    if (!pool_errors_enter(&d->errors, task, worker, "drawing images was cancelled", &seat, &own))
        return;
    const geofluvial_opts *o = d->o;
    int64_t run = d->first / o->crops + task;
    float *images =
        env_alloc(&own, (size_t)(o->crops * o->size * o->size), sizeof *images, "a run's images");
    mnp_status status = MNP_ENOMEM;
    if (images) status = geofluvial_run(&own, o, d->seed, d->split, run, images);
    if (status == MNP_OK) place(d, run, images);
    env_free(&own, images);
    if (status != MNP_OK) pool_errors_fail(&d->errors, task, status, own.error);
    int64_t done = atomic_fetch_add(&d->runs_done, 1) + 1;
    if (worker == 0 && d->watch) d->watch->done(d->watch->user, done);
}

mnp_status geofluvial_draw(env *e, pool *pool, const geofluvial_opts *o, uint64_t seed,
                           data_split split, int64_t first, int64_t count,
                           const geofluvial_watch *watch, float *gray) {
    if (first < 0 || count < 0 || first > INT32_MAX || count > INT32_MAX)
        return env_fail(e, MNP_EINVAL, "images %lld .. +%lld: there are no more than %d",
                        (long long)first, (long long)count, INT32_MAX);
    if (count == 0) return MNP_OK;
    drawing d = {.o = o,
                 .seed = seed,
                 .split = split,
                 .first = first,
                 .count = count,
                 .watch = watch,
                 .gray = gray};
    pool_errors_begin(&d.errors, e);
    int64_t runs = (first + count - 1) / o->crops - first / o->crops + 1;
    if (pool)
        pool_run(pool, runs, draw_run, &d);
    else
        for (int64_t task = 0; task < runs; task++) draw_run(&d, task, 0);
    mnp_status status = pool_errors_end(&d.errors);
    if (status != MNP_OK) return env_fail(e, status, "%s", d.errors.error);
    if (watch) watch->done(watch->user, runs);
    return MNP_OK;
}
