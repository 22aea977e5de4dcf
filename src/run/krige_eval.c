/* krige_eval.c: see krige_eval.h. Where the wells are scattered, every image has its own weights
 * and images are shared by the workers; where they are a region, the weights are made once. */
#include "run/krige_eval.h"

#include <math.h>
#include <string.h>

#include "base/rng_normal.h"
#include "data/geofluvial.h"
#include "op/permute.h"
#include "op/region.h"

void krige_wells(const krige *k, const krige_eval_opts *o, int64_t i, int32_t *memory,
                 uint8_t *well) {
    int64_t n = k->rows * k->cols;
    memset(well, 0, (size_t)n);
    if (o->context == EVAL_UNIFORM) { /* the draws of eval_images.c */
        rng_at at = {.purpose = RNG_SPLIT_EVAL, .function = (uint32_t)i};
        rng_stream s = rng_stream_at((rng_key){o->seed}, at);
        int64_t wells = o->wells < n - 1 ? o->wells : n - 1;
        (void)rng_below(&s, 1);
        const int32_t *order = permute_prefix(&s, n, wells, memory);
        for (int64_t j = 0; j < wells; j++) well[order[j]] = 1;
        return;
    }
    int region = o->context == EVAL_TOP    ? REGION_TOP
                 : o->context == EVAL_LEFT ? REGION_LEFT
                                           : REGION_CENTER;
    for (int64_t p = 0; p < n; p++)
        well[p] = region_holds(region, (float)geofluvial_input(p / k->cols, k->rows),
                               (float)geofluvial_input(p % k->cols, k->cols));
}

typedef struct run_state {
    env *e;
    const krige *k;
    const krige_eval_opts *o;
    const float *const *image;
    krige_plan *shared[KRIGE_LAWS]; /* of a region */
    int64_t first;
    double *score;    /* (count, KRIGE_TARGETS, KRIGE_LAWS) */
    char *memory;     /* (threads, each) */
    size_t each;      /* bytes */
    mnp_status *fail; /* (count) */
} run_state;

static size_t scratch_bytes(int64_t n) {
    return (size_t)n * (3 * sizeof(double) + sizeof(float) + 1) +
           (size_t)permute_words(n) * sizeof(int32_t);
}

static void score_image(void *arg, int64_t task, int worker) {
    run_state *r = arg;
    int64_t i = r->first + task, n = r->k->rows * r->k->cols;
    double *work = (double *)(void *)(r->memory + (size_t)worker * r->each);
    float *target = (float *)(work + 3 * n);
    int32_t *order = (int32_t *)(target + n);
    uint8_t *well = (uint8_t *)(order + permute_words(n));
    env e = *r->e; /* a worker's own */
    for (int law = 0; law < KRIGE_LAWS; law++) {
        krige_plan *plan = r->shared[law], *own = NULL;
        if (!plan) {
            krige_wells(r->k, r->o, i, order, well);
            r->fail[i] = krige_plan_make(&e, NULL, r->k, well, (krige_law)law, &own);
            if (r->fail[i] != MNP_OK) return;
            plan = own;
        }
        for (int kind = 0; kind < KRIGE_TARGETS; kind++) {
            double noise = kind == KRIGE_NOISY ? r->o->noise : 0;
            for (int64_t p = 0; p < n; p++) {
                rng_at at = {.purpose = RNG_NOISE, .function = (uint32_t)i, .point = (uint32_t)p};
                double eps = noise > 0 ? (double)rng_normal_at((rng_key){r->o->seed}, at) : 0;
                target[p] = (float)((double)r->image[i][p] + noise * eps);
            }
            r->score[(i * KRIGE_TARGETS + kind) * KRIGE_LAWS + law] =
                krige_logp(plan, r->image[i], target, work) / (double)n;
        }
        krige_plan_destroy(own);
    }
}

static void summarise(const double *score, int64_t count, krige_score *out) {
    for (int j = 0; j < KRIGE_TARGETS * KRIGE_LAWS; j++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < count; i++) sum += score[i * KRIGE_TARGETS * KRIGE_LAWS + j];
        double mean = sum / (double)count;
        for (int64_t i = 0; i < count; i++) {
            double off = score[i * KRIGE_TARGETS * KRIGE_LAWS + j] - mean;
            squares += off * off;
        }
        out->loglik[j / KRIGE_LAWS][j % KRIGE_LAWS] = mean;
        out->se[j / KRIGE_LAWS][j % KRIGE_LAWS] =
            count > 1 ? sqrt(squares / (double)(count - 1) / (double)count) : NAN;
    }
}

static mnp_status share_plans(run_state *r, pool *pool) {
    int64_t n = r->k->rows * r->k->cols;
    uint8_t *well = env_alloc(r->e, (size_t)n, 1, "wells");
    mnp_status status = well ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) krige_wells(r->k, r->o, 0, NULL, well);
    for (int law = 0; law < KRIGE_LAWS && status == MNP_OK; law++)
        status = krige_plan_make(r->e, pool, r->k, well, (krige_law)law, &r->shared[law]);
    env_free(r->e, well);
    return status;
}

static mnp_status score_images(run_state *r, pool *pool, int64_t count) {
    int64_t batch = pool ? 2 * pool_threads(pool) : 1;
    for (r->first = 0; r->first < count; r->first += batch) {
        int64_t tasks = r->first + batch < count ? batch : count - r->first;
        if (pool)
            pool_run(pool, tasks, score_image, r);
        else
            for (int64_t t = 0; t < tasks; t++) score_image(r, t, 0);
        if (r->o->progress) r->o->progress(r->o->user, r->first + tasks, count);
        if (env_cancelled(r->e)) return env_fail(r->e, MNP_ECANCELLED, "kriging was cancelled");
    }
    for (int64_t i = 0; i < count; i++)
        if (r->fail[i] != MNP_OK)
            return env_fail(r->e, r->fail[i], "kriging of image %lld failed", (long long)i);
    return MNP_OK;
}

mnp_status krige_evaluate(env *e, pool *pool, const krige *k, const float *const *image,
                          int64_t count, const krige_eval_opts *o, krige_score *out) {
    if (count < 1) return env_fail(e, MNP_EINVAL, "there is no image to score");
    size_t threads = pool ? (size_t)pool_threads(pool) : 1;
    size_t each = (scratch_bytes(k->rows * k->cols) + 63) / 64 * 64;
    run_state r = {.e = e, .k = k, .o = o, .image = image, .each = each};
    r.score = env_alloc(e, (size_t)count * KRIGE_TARGETS * KRIGE_LAWS, sizeof *r.score, "scores");
    r.memory = env_alloc(e, threads, each, "scores");
    r.fail = env_alloc(e, (size_t)count, sizeof *r.fail, "scores");
    mnp_status status = r.score && r.memory && r.fail ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK && o->context != EVAL_UNIFORM) status = share_plans(&r, pool);
    if (status == MNP_OK) status = score_images(&r, pool, count);
    if (status == MNP_OK) summarise(r.score, count, out);
    for (int law = 0; law < KRIGE_LAWS; law++) krige_plan_destroy(r.shared[law]);
    env_free(e, r.score);
    env_free(e, r.memory);
    env_free(e, r.fail);
    return status;
}
