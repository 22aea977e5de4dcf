/* data.c: data handles. */
#include <string.h>

#include "api/handles.h"

static mnp_status wrap(mnp_ctx *ctx, dataset *d, mnp_data **out) {
    mnp_data *handle = env_alloc(&ctx->env, 1, sizeof *handle, "a data handle");
    if (!handle) {
        dataset_destroy(d);
        return MNP_ENOMEM;
    }
    *handle = (mnp_data){d, ctx};
    *out = handle;
    return MNP_OK;
}

mnp_status mnp_data_open(mnp_ctx *ctx, const char *what, const mnp_data_opts *opts,
                         mnp_data **out) {
    if (!ctx || !out) return MNP_EINVAL;
    *out = NULL;
    if (!what || !*what) return env_fail(&ctx->env, MNP_EINVAL, "no data set was named");
    mnp_data_opts o;
    MNP_TRY(TAKE_OPTS(&ctx->env, mnp_data_opts, opts, &o));
    if (o.functions < 0) return env_fail(&ctx->env, MNP_EINVAL, "functions cannot be negative");
    data_source s = {.split = (data_split)o.split,
                     .functions = o.functions,
                     .seed = o.seed,
                     .holdout = o.holdout == 0 ? 0.2 : o.holdout,
                     .function_column = o.function_column,
                     .x_columns = o.x_columns,
                     .y_column = o.y_column,
                     .action_column = o.action_column,
                     .cache = o.cache};
    pool *workers = NULL;
    dataset *d = NULL;
    MNP_TRY(ctx_pool(ctx, &workers));
    MNP_TRY(dataset_open(&ctx->env, workers, what, &s, &d));
    return wrap(ctx, d, out);
}

mnp_status mnp_data_from_sets(mnp_ctx *ctx, const mnp_set *sets, int64_t count, int64_t x_dim,
                              mnp_data **out) {
    if (!ctx || !out) return MNP_EINVAL;
    *out = NULL;
    if (!sets || count < 1 || x_dim < 1 || x_dim > MODEL_X_MAX)
        return env_fail(&ctx->env, MNP_EINVAL, "at least one set, and 1 to %d inputs, are needed",
                        MODEL_X_MAX);
    int64_t points = 0;
    for (int64_t i = 0; i < count; i++) {
        if (sets[i].n < 1 || !sets[i].x || !sets[i].y)
            return env_fail(&ctx->env, MNP_EINVAL, "set %lld has no points", (long long)i);
        points += sets[i].n;
    }
    double *x = env_alloc(&ctx->env, (size_t)(points * x_dim), sizeof *x, "the sets");
    double *y = env_alloc(&ctx->env, (size_t)points, sizeof *y, "the sets");
    int64_t *n = env_alloc(&ctx->env, (size_t)count, sizeof *n, "the sets");
    dataset *d = NULL;
    mnp_status status = x && y && n ? MNP_OK : MNP_ENOMEM;
    for (int64_t i = 0, at = 0; status == MNP_OK && i < count; at += sets[i++].n) {
        n[i] = sets[i].n;
        memcpy(x + at * x_dim, sets[i].x, (size_t)(n[i] * x_dim) * sizeof *x);
        memcpy(y + at, sets[i].y, (size_t)n[i] * sizeof *y);
    }
    if (status == MNP_OK)
        status = dataset_from_arrays(&ctx->env, "arrays", count, n, (int32_t)x_dim, x, y, &d);
    env_free(&ctx->env, x);
    env_free(&ctx->env, y);
    env_free(&ctx->env, n);
    return status == MNP_OK ? wrap(ctx, d, out) : status;
}

void mnp_data_destroy(mnp_data *data) {
    if (!data) return;
    dataset_destroy(data->d);
    env_free(&data->ctx->env, data);
}

int64_t mnp_data_functions(const mnp_data *data) {
    return data->d->functions;
}

int64_t mnp_data_points(const mnp_data *data) {
    return data->d->points;
}

int64_t mnp_data_x_dim(const mnp_data *data) {
    return data->d->x_dim;
}

void mnp_data_grid(const mnp_data *data, int64_t *rows, int64_t *cols) {
    *rows = data->d->rows;
    *cols = data->d->cols;
}

double mnp_data_noise(const mnp_data *data) {
    return data->d->noise;
}

const char *mnp_data_name(const mnp_data *data) {
    return data->d->name;
}

const char *mnp_data_report(const mnp_data *data) {
    return data->d->report ? data->d->report : "";
}

const char *mnp_data_x_name(const mnp_data *data, int64_t k) {
    return k >= 0 && k < data->d->x_dim ? data->d->x_names[k] : NULL;
}

const char *mnp_data_y_name(const mnp_data *data) {
    return data->d->y_name;
}

mnp_status mnp_data_function(mnp_ctx *ctx, const mnp_data *data, int64_t i, int64_t *n,
                             const float **x, const float **y) {
    const dataset *d = data->d;
    if (i < 0 || i >= d->functions)
        return env_fail(&ctx->env, MNP_EINVAL, "there is no function %lld; there are %lld",
                        (long long)i, (long long)d->functions);
    *n = d->start[i + 1] - d->start[i];
    *x = dataset_x(d, i);
    *y = d->y + d->start[i];
    return MNP_OK;
}

mnp_status mnp_data_write_csv(mnp_ctx *ctx, const mnp_data *data, const char *path) {
    return dataset_write_csv(&ctx->env, data->d, path);
}

const char *mnp_data_family(int k, const char **help) {
    const family_def *f = family_at(k);
    if (f && help) *help = f->help;
    return f ? f->name : NULL;
}
