/* map.c: maps. */
#include "run/map.h"

#include <math.h>
#include <string.h>

#include "api/api_internal.h"
#include "data/images.h"
#include "run/about.h"
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
    return model && about_images(model->m);
}

bool mnp_map_rivers(const mnp_model *model) {
    return model && about_rivers(model->m);
}

bool mnp_map_values(const mnp_model *model, double *lo, double *hi) {
    if (!lo || !hi || !mnp_map_images(model)) return false;
    *lo = -1, *hi = 1;
    const char *noted = mnp_model_note(model, IMAGES_VALUES);
    return !noted || images_noted_values(noted, lo, hi);
}

bool mnp_map_size(const mnp_model *model, int64_t *rows, int64_t *cols) {
    return model && rows && cols && about_pixels(model->m, rows, cols);
}

/* ---- what values mean ------------------------------------------------------------------------ */

/* The different values of y (n), rising, at most 3 of them; returns how many. */
static int different(int64_t n, const double *y, double out[3]) {
    int count = 0;
    for (int64_t i = 0; i < n; i++) {
        int k = 0;
        while (k < count && out[k] != y[i]) k++;
        if (k == count) out[count++] = y[i];
        if (count == 3) break;
    }
    if (count == 2 && out[0] > out[1]) {
        double first = out[0];
        out[0] = out[1], out[1] = first;
    }
    return count;
}

mnp_map_meaning mnp_map_meaning_of(const mnp_model *model, int64_t n, const double *y, char *line,
                                   size_t size) {
    char text[256] = "";
    double lo, hi, v[3] = {0}, least = INFINITY, most = -INFINITY;
    mnp_map_meaning meaning = MNP_MAP_VALUES;
    bool images = mnp_map_values(model, &lo, &hi) && y && n > 0, rivers = mnp_map_rivers(model);
    int count = images ? different(n, y, v) : 0;
    double middle = images ? (lo + hi) / 2 : 0, slack = images ? 0.05 * (hi - lo) : 0;
    for (int64_t i = 0; i < n && images; i++) least = fmin(least, y[i]), most = fmax(most, y[i]);
    bool outside = images && (least < lo - slack || most > hi + slack);
    bool whole = floor(v[0]) == v[0] && floor(v[1]) == v[1];
    const char *own =
        rivers ? "values below 0 for river and above 0 for land" : "its images' values";
    bool coded = count == 2 && whole && (rivers || n > 2); /* two grey values are not yet codes */
    if (coded && (outside || v[0] >= middle || v[1] <= middle)) {
        meaning = MNP_MAP_CODES;
        snprintf(text, sizeof text,
                 "the values are the codes %g and %g; this model takes %s, from %g to %g", v[0],
                 v[1], own, lo, hi);
    } else if (outside) {
        meaning = MNP_MAP_DOUBT;
        snprintf(text, sizeof text,
                 "the values go from %g to %g; this model takes %s, from %g to %g", least, most,
                 own, lo, hi);
    } else if (count == 1 && n > 1 && whole && rivers && v[0] >= 0) {
        meaning = MNP_MAP_DOUBT;
        snprintf(text, sizeof text,
                 "all values are %g, which this model takes for %s (river is below 0)", v[0],
                 v[0] > 0 ? "land" : "the bank");
    }
    check_print(line, size, text);
    return meaning;
}

/* ---- places ---------------------------------------------------------------------------------- */

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

static mnp_status check_extent(env *e, const double extent[4]) {
    MNP_TRY(check_given(e, extent, "extent"));
    for (int k = 0; k < 4; k++) MNP_TRY(check_finite(e, extent[k], "extent"));
    for (int k = 0; k < 4; k += 2)
        if (!(extent[k] < extent[k + 1]))
            return env_fail(e, MNP_EINVAL,
                            "the extent of a map is x0,x1,y0,y1 with x0 < x1 and y0 < y1, not "
                            "%.12g,%.12g,%.12g,%.12g",
                            extent[0], extent[1], extent[2], extent[3]);
    return MNP_OK;
}

static bool inside(const double extent[4], double x, double y) {
    return x >= extent[0] && x <= extent[1] && y >= extent[2] && y <= extent[3];
}

mnp_status mnp_map_pixels(mnp_ctx *ctx, const mnp_map_frame *f, const double extent[4], int64_t n,
                          const double *place, double *pixel) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_frame(e, f));
    MNP_TRY(check_extent(e, extent));
    MNP_TRY(check_range(e, n, 0, CHECK_COUNT_MAX, "n"));
    MNP_TRY(check_array(e, place, n, 2, "place"));
    MNP_TRY(check_array(e, pixel, n, 2, "pixel"));
    for (int64_t i = 0; i < n; i++) {
        double x = place[2 * i], y = place[2 * i + 1];
        if (!inside(extent, x, y))
            return env_fail(e, MNP_EINVAL,
                            "measurement %lld at %.12g, %.12g lies outside the map, which goes "
                            "from %.12g to %.12g and from %.12g to %.12g%s",
                            (long long)i + 1, x, y, extent[0], extent[1], extent[2], extent[3],
                            inside(extent, y, x) ? " (are the two columns exchanged?)" : "");
    }
    for (int64_t i = 0; i < n; i++) {
        double right = (place[2 * i] - extent[0]) / (extent[1] - extent[0]);
        double down = (extent[3] - place[2 * i + 1]) / (extent[3] - extent[2]);
        pixel[2 * i] = down * (double)(f->rows - 1);
        pixel[2 * i + 1] = right * (double)(f->cols - 1);
    }
    return MNP_OK;
}

mnp_status mnp_map_places(mnp_ctx *ctx, const mnp_map_frame *f, const double extent[4], int64_t n,
                          const double *pixel, double *place) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_frame(e, f));
    MNP_TRY(check_extent(e, extent));
    MNP_TRY(check_range(e, n, 0, CHECK_COUNT_MAX, "n"));
    MNP_TRY(check_array(e, pixel, n, 2, "pixel"));
    MNP_TRY(check_array(e, place, n, 2, "place"));
    for (int64_t i = 0; i < n; i++) {
        double down = pixel[2 * i] / (double)(f->rows - 1);
        double right = pixel[2 * i + 1] / (double)(f->cols - 1);
        place[2 * i] = extent[0] + right * (extent[1] - extent[0]);
        place[2 * i + 1] = extent[3] - down * (extent[3] - extent[2]);
    }
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
                  .turned = o.turned,
                  .range = o.range,
                  .threshold = o.threshold,
                  .samples = o.samples ? o.samples : 100};
    q.how = (mnp_draw_opts){.condition = o.condition,
                            .samples = q.samples,
                            .gradients = o.gradients,
                            .seed = o.seed,
                            .progress = o.progress,
                            .progress_user = o.progress_user,
                            .towards = o.towards,
                            .angle = o.angle};
    MNP_TRY(check_turn(e, &q.how));
    if (context) q.context = *context;
    if (o.honour) q.honour = *o.honour;
    MNP_TRY(score_check_samples(e, q.samples));
    MNP_TRY(backend_choose(e, o.device, &q.device));
    MNP_TRY(ctx_pool(ctx, &q.pool));
    MNP_TRY(map_compute(e, &q, &to, &drawn));
    if (to.report) give_result(to.report, &drawn, sizeof drawn);
    return MNP_OK;
}
