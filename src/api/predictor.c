/* predictor.c: predictor handles. */
#include "api/handles.h"

mnp_status mnp_predictor_create(mnp_ctx *ctx, const mnp_model *model, const char *device,
                                mnp_predictor **out) {
    if (!ctx || !out) return MNP_EINVAL;
    *out = NULL;
    if (!model) return env_fail(&ctx->env, MNP_EINVAL, "a model is needed");
    mnp_predictor *p = env_alloc(&ctx->env, 1, sizeof *p, "a predictor handle");
    if (!p) return MNP_ENOMEM;
    p->ctx = ctx;
    pool *workers = NULL;
    mnp_status status = ctx_pool(ctx, &workers);
    if (status == MNP_OK) status = predictor_create(&ctx->env, model->m, workers, device, &p->p);
    if (status != MNP_OK) {
        env_free(&ctx->env, p);
        return status;
    }
    *out = p;
    return MNP_OK;
}

void mnp_predictor_destroy(mnp_predictor *p) {
    if (!p) return;
    predictor_destroy(p->p);
    env_free(&p->ctx->env, p);
}

mnp_status mnp_predictor_condition(mnp_predictor *p, const mnp_set *context) {
    if (!context || context->n == 0) {
        predictor_reset(p->p);
        return MNP_OK;
    }
    if (context->n < 0 || !context->x || !context->y)
        return env_fail(&p->ctx->env, MNP_EINVAL, "a context needs x and y");
    return predictor_condition(p->p, context->x, context->y, context->n);
}

mnp_status mnp_predictor_observe(mnp_predictor *p, const double *x, double y) {
    if (!x) return env_fail(&p->ctx->env, MNP_EINVAL, "an observation needs x");
    return predictor_observe(p->p, x, y);
}

void mnp_predictor_reset(mnp_predictor *p) {
    predictor_reset(p->p);
}

int64_t mnp_predictor_observed(const mnp_predictor *p) {
    return predictor_count(p->p);
}

mnp_status mnp_predictor_draw_latents(mnp_predictor *p, uint64_t seed, int64_t samples) {
    return predictor_draw_latents(p->p, seed, samples);
}

static predict_base base_of(mnp_base base) {
    return base == MNP_BASE_ZERO ? PREDICT_ZERO : PREDICT_NORMAL;
}

mnp_status mnp_predictor_predict(mnp_predictor *p, const double *x, int64_t n, mnp_base base,
                                 double *y) {
    if (!x || !y) return env_fail(&p->ctx->env, MNP_EINVAL, "targets and a place for y are needed");
    return predictor_predict(p->p, x, n, base_of(base), y);
}

mnp_status mnp_predictor_path(mnp_predictor *p, const double *x, int64_t n, mnp_base base,
                              double *path) {
    if (!x || !path) return env_fail(&p->ctx->env, MNP_EINVAL, "targets and a path are needed");
    return predictor_path(p->p, x, n, base_of(base), path);
}

mnp_status mnp_predictor_logp(mnp_predictor *p, const mnp_set *targets, double *logp) {
    if (!targets || !targets->x || !targets->y || !logp)
        return env_fail(&p->ctx->env, MNP_EINVAL, "targets need x and y");
    return predictor_logp(p->p, targets->x, targets->y, targets->n, logp);
}

_Static_assert((int)MNP_LEVELS == (int)PROCESS_LEVELS, "levels of the noise");

mnp_status mnp_predictor_levels(mnp_predictor *p, const double *x, int64_t n, double *y) {
    if (!x || !y) return env_fail(&p->ctx->env, MNP_EINVAL, "targets and a place for y are needed");
    return predictor_levels(p->p, x, n, y);
}

double mnp_level(int k) {
    return k >= 0 && k < MNP_LEVELS ? process_level[k] : 0;
}
