/* map.c: maps. */
#include "run/map.h"

#include <math.h>
#include <string.h>

#include "api/api_internal.h"
#include "data/images.h"
#include "run/score.h"

static mnp_status check_frame(env *e, const mnp_map_frame *f) {
    MNP_TRY(check_given(e, f, "frame"));
    MNP_TRY(check_range(e, f->rows, 2, MAP_SIDE_MAX, "rows of a map"));
    MNP_TRY(check_range(e, f->cols, 2, MAP_SIDE_MAX, "cols of a map"));
    for (int k = 0; k < 2; k++) {
        MNP_TRY(check_finite(e, f->lo[k], "lo of a map"));
        MNP_TRY(check_finite(e, f->hi[k], "hi of a map"));
        if (f->lo[k] == f->hi[k])
            return env_fail(e, MNP_EINVAL, "lo and hi of a map are both %g", f->lo[k]);
    }
    return MNP_OK;
}

bool mnp_map_images(const mnp_model *model) {
    const char *data = mnp_model_note(model, "data"), *x = mnp_model_note(model, "x_names");
    return data ? images_named(data) : x && strcmp(x, "row,col") == 0;
}

mnp_status mnp_map_inputs(mnp_ctx *ctx, const mnp_map_frame *f, int64_t n, const double *pixel,
                          double *x) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_frame(e, f));
    MNP_TRY(check_range(e, n, 0, CHECK_COUNT_MAX, "n"));
    MNP_TRY(check_array(e, pixel, n, 2, "pixel"));
    MNP_TRY(check_array(e, x, n, 2, "x"));
    for (int64_t i = 0; i < n; i++) {
        double row = pixel[2 * i], col = pixel[2 * i + 1];
        if (!(row >= 0 && row <= (double)(f->rows - 1) && col >= 0 && col <= (double)(f->cols - 1)))
            return env_fail(e, MNP_EINVAL,
                            "measurement %lld at row %g, col %g lies outside the %lld x %lld grid "
                            "(rows and cols count from 0)",
                            (long long)i + 1, row, col, (long long)f->rows, (long long)f->cols);
    }
    for (int64_t i = 0; i < 2 * n; i++) x[i] = map_input(f, (int)(i % 2), pixel[i]);
    return MNP_OK;
}

mnp_status mnp_map_wells(mnp_ctx *ctx, int64_t rows, int64_t cols, int64_t count, uint64_t seed,
                         int64_t *pixel) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_range(e, rows, 1, MAP_SIDE_MAX, "rows"));
    MNP_TRY(check_range(e, cols, 1, MAP_SIDE_MAX, "cols"));
    int64_t pixels = rows * cols;
    if (count < 1 || count > pixels)
        return env_fail(e, MNP_EINVAL, "an image of %lld x %lld has 1 to %lld pixels to measure",
                        (long long)rows, (long long)cols, (long long)pixels);
    MNP_TRY(check_given(e, pixel, "pixel"));
    map_wells(pixels, count, seed, pixel);
    return MNP_OK;
}

mnp_status mnp_map_make(mnp_ctx *ctx, const mnp_model *model, const mnp_map_frame *frame,
                        const mnp_set *context, const mnp_map_opts *opts, const mnp_map *out) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_map_opts o;
    mnp_map to;
    mnp_draw_report drawn;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_frame(e, frame));
    if (model->m->spec.x_dim != 2)
        return env_fail(e, MNP_EINVAL, "a map is of functions of two inputs; the model has %lld",
                        (long long)model->m->spec.x_dim);
    if (context) MNP_TRY(check_set(e, context, 0, 2, "the context"));
    MNP_TRY(TAKE_OPTS(e, mnp_map_opts, opts, &o));
    if (o.honour) MNP_TRY(check_set(e, o.honour, 0, 2, "honour"));
    MNP_TRY(check_finite(e, o.threshold, "threshold"));
    if (!(o.range >= 0) || !isfinite(o.range))
        return env_fail(e, MNP_EINVAL, "range is %g pixels, and must be 0 or more", o.range);
    MNP_TRY(check_given(e, out, "out"));
    MNP_TRY(TAKE_OPTS(e, mnp_map, out, &to));
    MNP_TRY(check_condition(e, o.condition, o.gradients));
    if (to.report) MNP_TRY(CHECK_RESULT(e, mnp_draw_report, to.report));
    map_spec q = {.m = model->m,
                  .at = *frame,
                  .range = o.range,
                  .threshold = o.threshold,
                  .samples = o.samples ? o.samples : 100};
    q.how = (mnp_draw_opts){.condition = o.condition,
                            .samples = q.samples,
                            .gradients = o.gradients,
                            .seed = o.seed,
                            .progress = o.progress,
                            .progress_user = o.progress_user};
    if (context) q.context = *context;
    if (o.honour) q.honour = *o.honour;
    MNP_TRY(score_check_samples(e, q.samples));
    MNP_TRY(backend_choose(e, o.device, &q.device));
    MNP_TRY(ctx_pool(ctx, &q.pool));
    MNP_TRY(map_compute(e, &q, &to, &drawn));
    if (to.report) give_result(to.report, &drawn, sizeof drawn);
    return MNP_OK;
}
