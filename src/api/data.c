/* data.c: data handles. */
#include <math.h>
#include <string.h>

#include "api/api_internal.h"
#include "run/make_model.h"
#include "run/test_set.h"

/* A data handle around d, which it owns from then on, whatever happens. */
static mnp_status wrap(mnp_ctx *ctx, dataset *d, mnp_data **out) {
    mnp_data *handle = env_alloc(&d->env, 1, sizeof *handle, "a data handle");
    if (!handle) {
        dataset_destroy(d);
        return env_fail(&ctx->env, MNP_ENOMEM, "out of memory for a data handle");
    }
    handle->d = d;
    users_more(&handle->users);
    *out = handle;
    return MNP_OK;
}

mnp_data *data_keep(const mnp_data *data) {
    mnp_data *d = (mnp_data *)(uintptr_t)data;
    if (d) users_more(&d->users);
    return d;
}

void data_drop(mnp_data *data) {
    if (!data || !users_less(&data->users)) return;
    env e = data->d->env;
    dataset_destroy(data->d);
    env_free(&e, data);
}

static mnp_status open_source(mnp_ctx *ctx, const char *what, const data_source *s,
                              mnp_data **out) {
    pool *workers = NULL;
    dataset *d = NULL;
    MNP_TRY(ctx_pool(ctx, &workers));
    MNP_TRY(dataset_open(&ctx->env, workers, what, s, &d));
    return wrap(ctx, d, out);
}

/* As the model's own table was read, where a model is given that says how. */
static mnp_status open_like(mnp_ctx *ctx, const char *what, data_source *s, const mnp_model *model,
                            bool split_too, bool own, mnp_data **out) {
    roles r;
    roles_like like = {.split_too = split_too, .own = own};
    if (!model) return open_source(ctx, what, s, out);
    MNP_TRY(model_data_like(&ctx->env, model->m, &r, &like));
    const char *path = model_note_get(model->m, "data");
    like.own |= path && !s->text && strcmp(path, what) == 0;
    s->like = &like;
    mnp_status status = open_source(ctx, what, s, out);
    roles_free(&r);
    return status;
}

/* `what`, or `bytes` of text that stand in for it. */
static mnp_status open_as(mnp_ctx *ctx, const char *what, const char *text, size_t bytes,
                          const mnp_data_opts *opts, mnp_data **out) {
    env *e = &ctx->env;
    mnp_data_opts o;
    MNP_TRY(TAKE_OPTS(e, mnp_data_opts, opts, &o));
    MNP_TRY(check_enum(e, o.split, MNP_TEST + 1, "mnp_data_opts.split"));
    MNP_TRY(check_range(e, o.functions, 0, CHECK_COUNT_MAX, "mnp_data_opts.functions"));
    MNP_TRY(check_finite(e, o.holdout, "mnp_data_opts.holdout"));
    MNP_TRY(check_finite(e, o.test, "mnp_data_opts.test"));
    data_source s = {.split = (data_split)o.split,
                     .functions = o.functions,
                     .seed = o.seed,
                     .holdout = o.holdout == 0 ? DATA_HOLDOUT : o.holdout,
                     .test = o.test != 0     ? o.test
                             : o.holdout < 0 ? -1
                                             : DATA_TEST_SHARE,
                     .function_column = o.function_column,
                     .x_columns = o.x_columns,
                     .y_column = o.y_column,
                     .action_column = o.action_column,
                     .wide = o.wide,
                     .cache = o.cache,
                     .text = text,
                     .bytes = bytes};
    return open_like(ctx, what, &s, o.like, o.holdout == 0 && o.test == 0, false, out);
}

mnp_status mnp_data_open(mnp_ctx *ctx, const char *what, const mnp_data_opts *opts,
                         mnp_data **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, out, "out"));
    if (!what || !*what) return env_fail(&ctx->env, MNP_EINVAL, "no data set was named");
    return open_as(ctx, what, NULL, 0, opts, out);
}

mnp_status mnp_data_open_memory(mnp_ctx *ctx, const char *text, size_t bytes,
                                const mnp_data_opts *opts, mnp_data **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, out, "out"));
    MNP_TRY(check_given(&ctx->env, text, "text"));
    return open_as(ctx, DATASET_TABLE, text, bytes, opts, out);
}

mnp_status mnp_data_reopen(mnp_ctx *ctx, const mnp_model *model, mnp_split split, int64_t functions,
                           const char *cache, mnp_data **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    const char *what;
    data_source s;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_enum(e, split, MNP_TEST + 1, "split"));
    MNP_TRY(check_range(e, functions, 0, CHECK_COUNT_MAX, "functions"));
    MNP_TRY(check_given(e, out, "out"));
    MNP_TRY(model_data_source(e, model->m, &what, &s));
    s.split = (data_split)split;
    s.cache = cache;
    if (functions > 0 || split != MNP_TRAIN) s.functions = functions;
    return open_like(ctx, what, &s, model, false, true, out);
}

const char *mnp_data_path(const char *what) {
    return what && *what ? dataset_path(what) : NULL;
}

uint64_t mnp_data_seed(const mnp_data *data) {
    return data ? data->d->seed : 0;
}

/* All sets one after the other: n (count), x (points, x_dim), y (points). */
typedef struct rows {
    int64_t *n;
    double *x, *y;
} rows;

static mnp_status count_points(env *e, const mnp_set *sets, int64_t count, int64_t x_dim,
                               int64_t *points) {
    *points = 0;
    MNP_TRY(check_range(e, x_dim, 1, MODEL_X_MAX, "x_dim"));
    MNP_TRY(check_range(e, count, 1, CHECK_COUNT_MAX, "count"));
    MNP_TRY(check_given(e, sets, "sets"));
    for (int64_t i = 0; i < count; i++) {
        char name[48];
        snprintf(name, sizeof name, "set %lld", (long long)i);
        MNP_TRY(check_set(e, &sets[i], 1, x_dim, name));
        *points += sets[i].n;
        if (*points > CHECK_COUNT_MAX / x_dim)
            return env_fail(e, MNP_EINVAL, "the sets have more points than any memory holds");
    }
    return MNP_OK;
}

static void copy_sets(const mnp_set *sets, int64_t count, int64_t x_dim, rows *to) {
    for (int64_t i = 0, at = 0; i < count; at += sets[i++].n) {
        to->n[i] = sets[i].n;
        memcpy(to->x + at * x_dim, sets[i].x, (size_t)(to->n[i] * x_dim) * sizeof *to->x);
        memcpy(to->y + at, sets[i].y, (size_t)to->n[i] * sizeof *to->y);
    }
}

mnp_status mnp_data_from_sets(mnp_ctx *ctx, const mnp_set *sets, int64_t count, int64_t x_dim,
                              mnp_data **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    int64_t points;
    MNP_TRY(check_given(e, out, "out"));
    MNP_TRY(count_points(e, sets, count, x_dim, &points));
    rows all = {.n = env_alloc(e, (size_t)count, sizeof *all.n, "the sets"),
                .x = env_alloc(e, (size_t)(points * x_dim), sizeof *all.x, "the sets"),
                .y = env_alloc(e, (size_t)points, sizeof *all.y, "the sets")};
    dataset *d = NULL;
    mnp_status status = MNP_ENOMEM;
    if (all.n && all.x && all.y) {
        copy_sets(sets, count, x_dim, &all);
        status =
            dataset_from_arrays(e, DATASET_ARRAYS, count, all.n, (int32_t)x_dim, all.x, all.y, &d);
    }
    env_free(e, all.n);
    env_free(e, all.x);
    env_free(e, all.y);
    return status == MNP_OK ? wrap(ctx, d, out) : status;
}

void mnp_data_destroy(mnp_data *data) {
    data_drop(data);
}

const char *mnp_data_preset(const mnp_data *data) {
    return model_preset_for("mnp", data ? data->d : NULL);
}

int64_t mnp_data_functions(const mnp_data *data) {
    return data ? data->d->functions : 0;
}

int64_t mnp_data_points(const mnp_data *data) {
    return data ? data->d->points : 0;
}

int64_t mnp_data_x_dim(const mnp_data *data) {
    return data ? data->d->x_dim : 0;
}

void mnp_data_grid(const mnp_data *data, int64_t *rows, int64_t *cols) {
    if (rows) *rows = data ? data->d->rows : 0;
    if (cols) *cols = data ? data->d->cols : 0;
}

double mnp_data_noise(const mnp_data *data) {
    return data ? data->d->policy.noise : NAN;
}

double mnp_data_x_origin(const mnp_data *data, int64_t k) {
    return data && k >= 0 && k < data->d->x_dim ? data->d->x_origin[k] : 0;
}

double mnp_data_y_origin(const mnp_data *data) {
    return data ? data->d->y_origin : 0;
}

const char *mnp_data_name(const mnp_data *data) {
    return data ? data->d->name : "";
}

const char *mnp_data_report(const mnp_data *data) {
    return data && data->d->report ? data->d->report : "";
}

const char *mnp_data_warnings(const mnp_data *data) {
    return data && data->d->warnings ? data->d->warnings : "";
}

const char *mnp_data_x_name(const mnp_data *data, int64_t k) {
    return data && k >= 0 && k < data->d->x_dim ? data->d->x_names[k] : NULL;
}

const char *mnp_data_y_name(const mnp_data *data) {
    return data ? data->d->y_name : "";
}

const char *mnp_data_group_name(const mnp_data *data) {
    return data && data->d->ids ? data->d->function_name : "";
}

mnp_status mnp_data_function(mnp_ctx *ctx, const mnp_data *data, int64_t i, int64_t *n,
                             const float **x, const float **y) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_given(e, data, "data"));
    MNP_TRY(check_given(e, n, "n"));
    MNP_TRY(check_given(e, x, "x"));
    MNP_TRY(check_given(e, y, "y"));
    const dataset *d = data->d;
    if (i < 0 || i >= d->functions)
        return env_fail(e, MNP_EINVAL, "there is no function %lld; there are %lld", (long long)i,
                        (long long)d->functions);
    *n = d->start[i + 1] - d->start[i];
    *x = dataset_x(d, i);
    *y = d->y + d->start[i];
    return MNP_OK;
}

mnp_status mnp_data_write_csv(mnp_ctx *ctx, const mnp_data *data, const char *path) {
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, data, "data"));
    MNP_TRY(check_given(&ctx->env, path, "path"));
    return dataset_write_csv(&ctx->env, data->d, path);
}

mnp_status mnp_data_write_npz(mnp_ctx *ctx, const mnp_data *data, uint64_t seed, const char *path) {
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, data, "data"));
    MNP_TRY(check_given(&ctx->env, path, "path"));
    return test_set_write(&ctx->env, data->d, seed, path);
}

const char *mnp_data_family(int k, const char **help) {
    const family_def *f = family_at(k);
    if (help) *help = f ? f->help : NULL;
    return f ? f->name : NULL;
}
