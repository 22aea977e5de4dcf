/* model.c: model handles. */
#include <math.h>
#include <string.h>

#include "api/handles.h"
#include "util/real.h"

/* A model handle around m, which it owns from then on, whatever happens. */
static mnp_status wrap(mnp_ctx *ctx, model *m, mnp_model **out) {
    *out = NULL;
    mnp_model *handle = env_alloc(&m->env, 1, sizeof *handle, "a model handle");
    if (!handle) {
        model_destroy(m);
        return env_fail(&ctx->env, MNP_ENOMEM, "out of memory for a model handle");
    }
    handle->m = m;
    users_more(&handle->users);
    buf_init(&handle->options, &m->env);
    mnp_status status = model_options_text(&m->env, m, &handle->options);
    if (status != MNP_OK) {
        mnp_model_destroy(handle);
        return env_fail(&ctx->env, status, "out of memory for a model handle");
    }
    *out = handle;
    return MNP_OK;
}

/* Mean and standard deviation of the training data, so that the networks see numbers near one. */
static void standardise(const dataset *d, model_scaling *s) {
    double count = (double)d->points;
    for (int32_t c = -1; c < d->x_dim; c++) {
        if (c < 0 ? d->raw_y : d->raw_x) continue;
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < d->points; i++)
            sum += (double)(c < 0 ? d->y[i] : d->x[i * d->x_dim + c]);
        double mean = sum / count;
        for (int64_t i = 0; i < d->points; i++) {
            double off = (double)(c < 0 ? d->y[i] : d->x[i * d->x_dim + c]) - mean;
            squares += off * off;
        }
        double sd = sqrt(squares / count);
        if (!real_scales(mean, sd)) sd = 1.0; /* a constant column stays as it is */
        if (c < 0)
            s->y_shift = d->y_origin + mean, s->y_scale = sd;
        else
            s->x_shift[c] = d->x_origin[c] + mean, s->x_scale[c] = sd;
    }
}

/* Names of columns and of the data set, so that files written later can use them. */
static mnp_status note_data(env *e, model *m, const dataset *d) {
    buf names;
    buf_init(&names, e);
    mnp_status status = model_note_set(e, m, "data", d->name);
    for (int32_t c = 0; c < d->x_dim && status == MNP_OK; c++)
        status = buf_printf(&names, "%s%s", c ? "," : "", d->x_names[c]);
    if (status == MNP_OK) status = model_note_set(e, m, "x_names", buf_str(&names));
    if (status == MNP_OK) status = model_note_set(e, m, "y_name", d->y_name);
    buf_free(&names);
    return status;
}

static mnp_status set_from_data(env *e, const option_view *view, const dataset *d) {
    char text[64];
    snprintf(text, sizeof text, "%d", d->x_dim);
    MNP_TRY(options_set(e, view, 1, "x_dim", text));
    snprintf(text, sizeof text, "%.17g", d->rff_std);
    return options_set(e, view, 1, "rff_std", text);
}

/* The true numbers of the process that the functions were drawn from. */
static mnp_status set_oracle(env *e, const dataset *d, model_spec *s) {
    family f;
    if (!d || !d->builtin)
        return env_fail(e, MNP_EINVAL,
                        "the oracle knows the built-in families alone: name one as the data");
    MNP_TRY(family_parse(e, d->name, &f));
    mnp_status status = MNP_OK;
    gp_kernel k = {0};
    double ceiling = f.def->ceiling ? f.def->ceiling(f.opts) : NAN;
    if (f.def->oracle)
        f.def->oracle(f.opts, &k);
    else if (isfinite(ceiling))
        status = env_fail(e, MNP_EINVAL,
                          "%s has no exact oracle; its noise allows %.3f nats per point at most",
                          d->name, ceiling);
    else
        status = env_fail(e, MNP_EINVAL, "%s has no exact oracle, and no noise that sets a ceiling",
                          d->name);
    family_free(e, &f);
    if (status != MNP_OK) return status;
    gp_hyper variance = k.parts & GP_RBF      ? GP_LOG_VARIANCE_RBF
                        : k.parts & GP_MATERN ? GP_LOG_VARIANCE_MATERN
                                              : GP_LOG_VARIANCE_PERIODIC;
    s->gp_rbf = k.parts & GP_RBF, s->gp_matern = k.parts & GP_MATERN;
    s->gp_periodic = k.parts & GP_PERIODIC;
    s->gp_variance = exp(k.hyper[variance]);
    s->gp_length = exp(k.hyper[variance + 1]); /* a part's length follows its variance */
    s->gp_period = exp(k.hyper[GP_LOG_PERIOD]);
    /* data without noise were drawn with about this much on the diagonal */
    s->gp_noise = fmax(exp(k.hyper[GP_LOG_NOISE]), 1e-10 * s->gp_variance);
    return MNP_OK;
}

mnp_status mnp_model_create(mnp_ctx *ctx, const char *process, const char *preset,
                            const char *options, const mnp_data *data, uint64_t seed,
                            mnp_model **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_given(e, out, "out"));
    model_spec spec;
    option_view view = spec_view(&spec);
    MNP_TRY(spec_preset(e, process ? process : "mnp", preset ? preset : "paper", &spec));
    if (data) MNP_TRY(set_from_data(e, &view, data->d));
    if (spec.kind == PROCESS_oracle) MNP_TRY(set_oracle(e, data ? data->d : NULL, &spec));
    if (options) MNP_TRY(options_parse(e, &view, 1, options));
    model *m = NULL;
    MNP_TRY(model_create(e, &spec, seed, &m));
    mnp_status status = MNP_OK;
    if (data) standardise(data->d, &m->scaling);
    if (spec.y_scale > 0) m->scaling.y_shift = spec.y_shift, m->scaling.y_scale = spec.y_scale;
    if (data) status = note_data(e, m, data->d);
    if (status != MNP_OK) {
        model_destroy(m);
        return status;
    }
    return wrap(ctx, m, out);
}

mnp_status mnp_model_load(mnp_ctx *ctx, const char *path, mnp_model **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, path, "path"));
    MNP_TRY(check_given(&ctx->env, out, "out"));
    model *m = NULL;
    MNP_TRY(model_load(&ctx->env, path, &m));
    return wrap(ctx, m, out);
}

mnp_status mnp_model_save(mnp_ctx *ctx, const mnp_model *model, const char *path) {
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, model, "model"));
    MNP_TRY(check_given(&ctx->env, path, "path"));
    return model_save(&ctx->env, model->m, NULL, path);
}

mnp_model *model_keep(const mnp_model *model) {
    mnp_model *m = (mnp_model *)(uintptr_t)model;
    if (m) users_more(&m->users);
    return m;
}

void model_drop(mnp_model *handle) {
    if (!handle || !users_less(&handle->users)) return;
    env e = handle->m->env;
    handle->options.e = &e;
    buf_free(&handle->options);
    model_destroy(handle->m);
    env_free(&e, handle);
}

void mnp_model_destroy(mnp_model *handle) {
    model_drop(handle);
}

double mnp_model_distance(const mnp_model *model, int64_t k, double value) {
    if (!model || k < 0 || k > model->m->spec.x_dim) return NAN;
    return k < model->m->spec.x_dim ? model_distance_x(model->m, k, value)
                                    : model_distance_y(model->m, value);
}

int64_t mnp_model_parameters(const mnp_model *model) {
    return model ? params_count(&model->m->params) : 0;
}

int64_t mnp_model_x_dim(const mnp_model *model) {
    return model ? model->m->spec.x_dim : 0;
}

int64_t mnp_model_steps(const mnp_model *model) {
    return model ? process_at(model->m->spec.kind)->steps(&model->m->spec) : 0;
}

int64_t mnp_model_latent(const mnp_model *model) {
    return !model || process_is_exact(&model->m->spec) ? 0 : model->m->spec.d_z;
}

const char *mnp_model_options(const mnp_model *model) {
    return model ? buf_str(&model->options) : "";
}

const char *mnp_model_note(const mnp_model *model, const char *key) {
    return model && key ? model_note_get(model->m, key) : NULL;
}

const char *mnp_model_note_key(const mnp_model *model, int k) {
    return model && k >= 0 && k < model->m->n_notes ? model->m->notes[k].key : NULL;
}

mnp_status mnp_model_set_note(mnp_ctx *ctx, mnp_model *model, const char *key, const char *value) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_given(e, key, "key"));
    if (!*key || strncmp(key, "mnp.", 4) == 0) /* those are the file's own */
        return env_fail(e, MNP_EINVAL, "'%.60s' cannot be the key of a note", key);
    return model_note_set(e, model->m, key, value);
}

static mnp_status print_plan(env *e, const model *m, int64_t points, int64_t context, buf *text) {
    const model_spec *s = &m->spec;
    process_train_opts o = {
        .update = true,
        .draw = {.train = true, .x_dim = (int32_t)s->x_dim, .hi = (int32_t)context}};
    graph g;
    plan *p = NULL;
    /* Every name was declared when the model was made: recording only looks weights up. */
    graph_init(&g, e, (params *)(uintptr_t)&m->params);
    process_at(s->kind)->train_step(&g, s, &o);
    mnp_status status =
        plan_make(&g, &(plan_opts){.n = points, .m = context, .samples = 1}, op_is_step, &p);
    if (status == MNP_OK) plan_dump(p, op_name, text);
    if (status == MNP_OK) status = text->status;
    plan_destroy(p);
    graph_free(&g);
    return status;
}

size_t mnp_model_plan(mnp_ctx *ctx, const mnp_model *model, int64_t n, int64_t m, char *out,
                      size_t size) {
    check_print(out, size, "");
    if (!ctx) return 0;
    env *e = &ctx->env;
    if (check_given(e, model, "model") != MNP_OK ||
        check_range(e, n, 1, INT32_MAX / 64, "n") != MNP_OK ||
        check_range(e, m, 0, n, "m") != MNP_OK || check_bytes(e, out, size, "out") != MNP_OK)
        return 0;
    buf text;
    buf_init(&text, e);
    size_t length = print_plan(e, model->m, n, m, &text) == MNP_OK ? text.len : 0;
    if (length) check_print(out, size, buf_str(&text));
    buf_free(&text);
    return length;
}
