/* evaluate.c: scores of kriging on images. Where the wells are scattered, every image has its own
 * weights and images are shared by the workers; where they are a region, the weights are made once.
 */
#include <math.h>
#include <string.h>

#include "lab/kriging/krige.h"
#include "lab/kriging/tools.h"

/* A region of the square [-1, 1]^2 on which the pixels lie, rows first. */
static bool inside(krige_context region, double row, double col) {
    if (region == KRIGE_TOP) return row < 0;
    if (region == KRIGE_LEFT) return col < 0;
    return fabs(row) < 0.5 && fabs(col) < 0.5;
}

void krige_wells(const krige *k, const krige_eval_opts *o, int64_t i, int32_t *order,
                 uint8_t *well) {
    int64_t n = k->rows * k->cols, wells = o->wells < n - 1 ? o->wells : n - 1;
    memset(well, 0, (size_t)n);
    if (o->context == KRIGE_UNIFORM) {
        draws s = draws_of(o->seed, DRAWS_WELLS, (uint32_t)i);
        (void)draws_below(&s, 1); /* the library's draw of their number */
        draws_order(&s, n, wells, order);
        for (int64_t j = 0; j < wells; j++) well[order[j]] = 1;
        return;
    }
    for (int64_t p = 0; p < n; p++)
        well[p] = inside(o->context, 2 * (double)(p / k->cols) / (double)(k->rows - 1) - 1,
                         2 * (double)(p % k->cols) / (double)(k->cols - 1) - 1);
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
    return (size_t)n * (3 * sizeof(double) + sizeof(float) + sizeof(int32_t) + 1);
}

static void score_image(void *arg, int64_t task, int worker) {
    run_state *r = arg;
    int64_t i = r->first + task, n = r->k->rows * r->k->cols;
    double *work = (double *)(void *)(r->memory + (size_t)worker * r->each);
    float *target = (float *)(work + 3 * n);
    int32_t *order = (int32_t *)(target + n);
    uint8_t *well = (uint8_t *)(order + n);
    env e = *r->e; /* a worker's own */
    for (int law = 0; law < KRIGE_LAWS; law++) {
        krige_plan *plan = r->shared[law], *own = NULL;
        if (!plan) {
            krige_wells(r->k, r->o, i, order, well);
            r->fail[i] = krige_plan_make(&e, 1, r->k, well, (krige_law)law, &own);
            if (r->fail[i] != MNP_OK) return;
            plan = own;
        }
        for (int kind = 0; kind < KRIGE_TARGETS; kind++) {
            double noise = kind == KRIGE_NOISY ? r->o->noise : 0;
            for (int64_t p = 0; p < n; p++) {
                double eps = noise > 0 ? draws_noise(r->o->seed, (uint32_t)i, (uint32_t)p) : 0;
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

static mnp_status share_plans(run_state *r) {
    int64_t n = r->k->rows * r->k->cols;
    uint8_t *well = env_alloc(r->e, (size_t)n, 1, "wells");
    mnp_status status = well ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) krige_wells(r->k, r->o, 0, NULL, well);
    for (int law = 0; law < KRIGE_LAWS && status == MNP_OK; law++)
        status = krige_plan_make(r->e, r->o->threads, r->k, well, (krige_law)law, &r->shared[law]);
    env_free(r->e, well);
    return status;
}

static mnp_status score_images(run_state *r, int64_t count) {
    int64_t batch = 2 * r->o->threads;
    for (r->first = 0; r->first < count; r->first += batch) {
        int64_t tasks = r->first + batch < count ? batch : count - r->first;
        share(r->o->threads, tasks, score_image, r);
        if (r->o->progress) r->o->progress(r->o->user, r->first + tasks, count);
        if (env_cancelled(r->e)) return env_fail(r->e, MNP_ECANCELLED, "kriging was cancelled");
    }
    for (int64_t i = 0; i < count; i++)
        if (r->fail[i] != MNP_OK)
            return env_fail(r->e, r->fail[i], "kriging of image %lld failed", (long long)i);
    return MNP_OK;
}

mnp_status krige_evaluate(env *e, const krige *k, const float *const *image, int64_t count,
                          const krige_eval_opts *o, krige_score *out) {
    if (count < 1) return env_fail(e, MNP_EINVAL, "there is no image to score");
    size_t each = (scratch_bytes(k->rows * k->cols) + 63) / 64 * 64;
    run_state r = {.e = e, .k = k, .o = o, .image = image, .each = each};
    r.score = env_alloc(e, (size_t)count * KRIGE_TARGETS * KRIGE_LAWS, sizeof *r.score, "scores");
    r.memory = env_alloc(e, (size_t)o->threads, each, "scores");
    r.fail = env_alloc(e, (size_t)count, sizeof *r.fail, "scores");
    mnp_status status = r.score && r.memory && r.fail ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK && o->context != KRIGE_UNIFORM) status = share_plans(&r);
    if (status == MNP_OK) status = score_images(&r, count);
    if (status == MNP_OK) summarise(r.score, count, out);
    for (int law = 0; law < KRIGE_LAWS; law++) krige_plan_destroy(r.shared[law]);
    env_free(e, r.score);
    env_free(e, r.memory);
    env_free(e, r.fail);
    return status;
}
