/* model.c: model handles. */
#include <string.h>

#include "api/api_internal.h"

#include "data/roles.h"
#include "run/about.h"
#include "run/learned.h"
#include "run/make_model.h"
#include "util/date.h"

mnp_status model_wrap(mnp_ctx *ctx, model *m, mnp_model **out) {
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

mnp_status mnp_model_create(mnp_ctx *ctx, const char *process, const char *preset,
                            const char *options, const mnp_data *data, uint64_t seed,
                            mnp_model **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, out, "out"));
    model *m = NULL;
    const dataset *d = data ? data->d : NULL;
    model_wish wish = {.process = process ? process : "mnp", .options = options, .seed = seed};
    wish.preset = preset ? preset : model_preset_for(wish.process, d);
    MNP_TRY(model_for_data(&ctx->env, &wish, d, &m));
    return model_wrap(ctx, m, out);
}

mnp_status mnp_model_extend(mnp_ctx *ctx, const mnp_model *from, const char *options,
                            const mnp_data *data, uint64_t seed, mnp_model **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, from, "from"));
    MNP_TRY(check_given(&ctx->env, data, "data"));
    MNP_TRY(check_given(&ctx->env, out, "out"));
    model *m = NULL;
    MNP_TRY(model_from_model(&ctx->env, from->m, options, seed, data->d, &m));
    return model_wrap(ctx, m, out);
}

mnp_status mnp_model_create_from(mnp_ctx *ctx, const mnp_model *from, const mnp_data *data,
                                 mnp_model **out) {
    return mnp_model_extend(ctx, from, NULL, data, 0, out);
}

mnp_status mnp_model_load(mnp_ctx *ctx, const char *path, mnp_model **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, path, "path"));
    MNP_TRY(check_given(&ctx->env, out, "out"));
    model *m = NULL;
    MNP_TRY(model_load(&ctx->env, path, &m));
    return model_wrap(ctx, m, out);
}

mnp_status mnp_model_save(mnp_ctx *ctx, const mnp_model *model, const char *path) {
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, model, "model"));
    MNP_TRY(check_given(&ctx->env, path, "path"));
    return model_save(&ctx->env, model->m, NULL, path);
}

mnp_status mnp_model_save_half(mnp_ctx *ctx, const mnp_model *model, const char *path) {
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, model, "model"));
    MNP_TRY(check_given(&ctx->env, path, "path"));
    return model_save_half(&ctx->env, model->m, path);
}

mnp_status mnp_model_load_memory(mnp_ctx *ctx, const void *bytes, size_t size, mnp_model **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, bytes, "bytes"));
    MNP_TRY(check_bytes(&ctx->env, bytes, size, "bytes"));
    MNP_TRY(check_given(&ctx->env, out, "out"));
    model *m = NULL;
    MNP_TRY(model_parse(&ctx->env, "a model in memory", bytes, size, &m));
    return model_wrap(ctx, m, out);
}

mnp_status mnp_model_save_memory(mnp_ctx *ctx, const mnp_model *model, void *out, size_t size,
                                 size_t *length) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_bytes(e, out, size, "out"));
    MNP_TRY(check_given(e, length, "length"));
    buf bytes;
    buf_init(&bytes, e);
    mnp_status status = model_print(model->m, &bytes);
    if (status == MNP_OK && size > 0 && size < bytes.len)
        status = env_fail(e, MNP_EINVAL, "size is %zu: the model has %zu bytes", size, bytes.len);
    if (status == MNP_OK) {
        *length = bytes.len;
        if (size > 0) memcpy(out, bytes.data, bytes.len);
    }
    buf_free(&bytes);
    return status;
}

const char *mnp_model_tensor_name(const mnp_model *model, int64_t k) {
    return model && k >= 0 && k < model->m->params.count ? model->m->params.list[k].name : NULL;
}

mnp_status mnp_model_tensor(mnp_ctx *ctx, const mnp_model *model, const char *name,
                            mnp_tensor *out) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_given(e, name, "name"));
    MNP_TRY(CHECK_RESULT(e, mnp_tensor, out));
    int32_t at = params_find(&model->m->params, name);
    if (at < 0) return env_fail(e, MNP_EINVAL, "the model has no tensor '%.80s'", name);
    const param *p = &model->m->params.list[at];
    GIVE_RESULT(mnp_tensor, out, .name = p->name, .rows = p->rows, .cols = p->cols, .stride = p->ld,
                .data = model->m->weights + p->offset, .trained = !p->init.frozen);
    return MNP_OK;
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
    if (!model) return 0;
    const process_def *p = process_at(model->m->spec.kind);
    return p->parameters ? p->parameters(&model->m->spec) : params_count(&model->m->params);
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

bool mnp_model_attends(const mnp_model *model) {
    return model && model->m->spec.attend;
}

bool mnp_model_factorises(const mnp_model *model) {
    return model && process_factorises(&model->m->spec);
}

const char *mnp_model_options(const mnp_model *model) {
    return model ? buf_str(&model->options) : "";
}

size_t mnp_model_learned(const mnp_model *model, char *out, size_t size) {
    if (out && size) out[0] = '\0';
    if (!model) return 0;
    env e = model->m->env;
    buf text;
    buf_init(&text, &e);
    const size_t length = learned_print(model->m, &text) == MNP_OK ? text.len : 0;
    if (out && size && length) snprintf(out, size, "%s", buf_str(&text));
    buf_free(&text);
    return length;
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
    size_t length = model_print_plan(e, model->m, n, m, &text) == MNP_OK ? text.len : 0;
    if (length) check_print(out, size, buf_str(&text));
    buf_free(&text);
    return length;
}

/* ---- its data ------------------------------------------------------------------------------- */

/* The note is read anew: the call is not made often. */
static bool role_of(const mnp_model *model, int64_t k, env *e, roles *table, const role **out) {
    const char *text = model ? model_note_get(model->m, "table") : NULL;
    if (!text) return false;
    *e = model->m->env; /* its error stays here */
    if (roles_parse(e, text, table) != MNP_OK) return false;
    *out = roles_at(table, k);
    if (*out) return true;
    roles_free(table);
    return false;
}

bool mnp_model_range(const mnp_model *model, int64_t k, double *lo, double *hi) {
    return model && lo && hi && about_range(model->m, k, lo, hi);
}

int64_t mnp_model_context_max(const mnp_model *model) {
    return model ? about_context_max(model->m) : 0;
}

double mnp_model_noise(const mnp_model *model) {
    return model ? about_noise(model->m) : NAN;
}

void mnp_model_text(const mnp_model *model, int64_t k, double value, char *out, size_t size) {
    env e;
    roles table;
    const role *x = NULL;
    char text[64], date[DATE_TEXT] = "";
    snprintf(text, sizeof text, "%.7g", value);
    if (role_of(model, k, &e, &table, &x)) {
        if (x->unit == ROLE_DAYS || x->unit == ROLE_SECONDS)
            date_print(date, x->unit == ROLE_DAYS ? DATE_DAY : DATE_MOMENT, value);
        roles_free(&table);
    }
    check_print(out, size, *date ? date : text); /* no date outside the years 1 to 9999 */
}
