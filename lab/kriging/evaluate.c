/* evaluate.c: scores of kriging on images. */
#include <math.h>
#include <string.h>

#include "lab/kriging/krige.h"
#include "lab/kriging/tools.h"

/* Of a row or column: pixels lie on the square [-1, 1]^2. */
static double input(int64_t index, int64_t size) {
    return 2 * (double)index / (double)(size - 1) - 1;
}

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
        well[p] = inside(o->context, input(p / k->cols, k->rows), input(p % k->cols, k->cols));
}

/* score (count, KRIGE_TARGETS, KRIGE_LAWS) */
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

/* Plans and memory (n pixels) of one image after the other. */
typedef struct scorer {
    env *e;
    const krige *k;
    const krige_eval_opts *o;
    krige_plan *plan[KRIGE_LAWS];
    double *work;   /* (3 n) */
    float *target;  /* (n) */
    int32_t *order; /* (n) */
    uint8_t *well;  /* (n) */
} scorer;

static void drop_plans(scorer *r) {
    for (int law = 0; law < KRIGE_LAWS; law++) krige_plan_destroy(r->plan[law]);
    r->plan[0] = r->plan[1] = NULL;
}

/* Scattered wells: every image has its own weights; a region: they are made once. */
static mnp_status plan_image(scorer *r, int64_t i) {
    if (i > 0 && r->o->context != KRIGE_UNIFORM) return MNP_OK;
    drop_plans(r);
    krige_wells(r->k, r->o, i, r->order, r->well);
    for (int law = 0; law < KRIGE_LAWS; law++)
        MNP_TRY(krige_plan_make(r->e, r->o->threads, r->k, r->well, (krige_law)law, &r->plan[law]));
    return MNP_OK;
}

static void score_image(scorer *r, int64_t i, const float *image, double *score) {
    int64_t n = r->k->rows * r->k->cols;
    for (int kind = 0; kind < KRIGE_TARGETS; kind++) {
        double noise = kind == KRIGE_NOISY ? r->o->noise : 0;
        for (int64_t p = 0; p < n; p++) {
            double eps = noise > 0 ? draws_noise(r->o->seed, (uint32_t)i, (uint32_t)p) : 0;
            r->target[p] = (float)((double)image[p] + noise * eps);
        }
        for (int law = 0; law < KRIGE_LAWS; law++)
            score[kind * KRIGE_LAWS + law] =
                krige_logp(r->plan[law], image, r->target, r->work) / (double)n;
    }
}

mnp_status krige_evaluate(env *e, const krige *k, const float *const *image, int64_t count,
                          const krige_eval_opts *o, krige_score *out) {
    if (count < 1) return env_fail(e, MNP_EINVAL, "there is no image to score");
    size_t n = (size_t)(k->rows * k->cols), each = KRIGE_TARGETS * KRIGE_LAWS;
    double *score = env_alloc(e, (size_t)count * each + 5 * n, sizeof *score, "scores");
    if (!score) return MNP_ENOMEM;
    scorer r = {.e = e, .k = k, .o = o, .work = score + (size_t)count * each};
    r.target = (float *)(r.work + 3 * n);
    r.order = (int32_t *)(r.target + n);
    r.well = (uint8_t *)(r.order + n);
    mnp_status status = MNP_OK;
    for (int64_t i = 0; i < count && status == MNP_OK; i++) {
        status = plan_image(&r, i);
        if (status == MNP_OK) score_image(&r, i, image[i], score + (size_t)i * each);
        if (o->progress) o->progress(o->user, i + 1, count);
        if (env_cancelled(e)) status = env_fail(e, MNP_ECANCELLED, "kriging was cancelled");
    }
    if (status == MNP_OK) summarise(score, count, out);
    drop_plans(&r);
    env_free(e, score);
    return status;
}
