/* model.c: making models and keeping them in files. */
#include "model/model.h"

#include <math.h>
#include <string.h>

#include "base/format.h"
#include "base/safetensors.h"
#include "util/real.h"
#include "util/text.h"

static const char format_key[] = "mnp.format", options_key[] = "mnp.options", format_number[] = "1";

/* ---- making ---------------------------------------------------------------------------------- */

/* Recording the training graph once declares every weight, in an order that depends on the options
 * alone. */
static mnp_status declare(env *e, model *m) {
    graph g;
    graph_init(&g, e, &m->params);
    process_train_opts o = {.draw = {.train = true, .x_dim = (int32_t)m->spec.x_dim, .hi = 1}};
    process_at(m->spec.kind)->train_step(&g, &m->spec, &o);
    mnp_status status = g.status;
    graph_free(&g);
    if (status == MNP_OK) params_seal(&m->params);
    return status;
}

static mnp_status check_size(env *e, const params *p) {
    char asked[TEXT_NUMBER], most[TEXT_NUMBER];
    if (p->words <= MODEL_PARAMETERS_MAX) return MNP_OK;
    return env_fail(e, MNP_EINVAL, "the options ask for %lld weights (%s); the limit is %d (%s)",
                    (long long)p->words, text_bytes(asked, 4.0 * (double)p->words),
                    MODEL_PARAMETERS_MAX, text_bytes(most, 4.0 * MODEL_PARAMETERS_MAX));
}

/* A model that knows the names and shapes of its weights, and has no memory for them yet. */
static mnp_status make_blank(env *e, const model_spec *spec, model **out) {
    *out = NULL;
    MNP_TRY(spec_check(e, spec));
    model *m = env_alloc(e, 1, sizeof *m, "a model");
    if (!m) return MNP_ENOMEM;
    m->env = *e;
    m->spec = *spec;
    params_init(&m->params);
    for (int k = 0; k < MODEL_X_MAX; k++) m->scaling.x_scale[k] = 1.0;
    m->scaling.y_scale = 1.0;
    mnp_status status = declare(e, m);
    if (status == MNP_OK) status = check_size(e, &m->params);
    if (status != MNP_OK) {
        model_destroy(m);
        return status;
    }
    *out = m;
    return MNP_OK;
}

static mnp_status make_weights(env *e, model *m) {
    m->weights = env_alloc(e, (size_t)m->params.words + 16, sizeof(float), "the weights");
    return m->weights ? MNP_OK : MNP_ENOMEM;
}

mnp_status model_create(env *e, const model_spec *spec, uint64_t seed, model **out) {
    MNP_TRY(make_blank(e, spec, out));
    mnp_status status = make_weights(e, *out);
    if (status == MNP_OK) {
        nn_init_weights(&(*out)->params, seed, (*out)->weights);
    } else {
        model_destroy(*out);
        *out = NULL;
    }
    return status;
}

void model_destroy(model *m) {
    if (!m) return;
    env e = m->env;
    for (int k = 0; k < m->n_notes; k++) {
        env_free(&e, m->notes[k].key);
        env_free(&e, m->notes[k].value);
    }
    params_free(&e, &m->params);
    env_free(&e, m->weights);
    env_free(&e, m);
}

/* ---- notes and options ----------------------------------------------------------------------- */

const char *model_note_get(const model *m, const char *key) {
    for (int k = 0; k < m->n_notes; k++)
        if (strcmp(m->notes[k].key, key) == 0) return m->notes[k].value;
    return NULL;
}

static void remove_note(model *m, int at) {
    env_free(&m->env, m->notes[at].key);
    env_free(&m->env, m->notes[at].value);
    for (int k = at + 1; k < m->n_notes; k++) m->notes[k - 1] = m->notes[k];
    m->n_notes--;
}

mnp_status model_note_set(env *e, model *m, const char *key, const char *value) {
    int at = 0;
    while (at < m->n_notes && strcmp(m->notes[at].key, key) != 0) at++;
    if (!value) {
        if (at < m->n_notes) remove_note(m, at);
        return MNP_OK;
    }
    if (at == MODEL_NOTES_MAX) return env_fail(e, MNP_EINVAL, "too many notes on a model");
    char *copy = env_strdup(&m->env, value);
    char *name = at == m->n_notes ? env_strdup(&m->env, key) : m->notes[at].key;
    if (!copy || !name) {
        env_free(&m->env, copy);
        if (at == m->n_notes) env_free(&m->env, name);
        return env_fail(e, MNP_ENOMEM, "out of memory for a note");
    }
    if (at == m->n_notes)
        m->n_notes++;
    else
        env_free(&m->env, m->notes[at].value);
    m->notes[at] = (model_note){name, copy};
    return MNP_OK;
}

mnp_status model_options_text(env *e, const model *m, buf *out) {
    (void)e;
    model_spec copy = m->spec;
    option_view view = spec_view(&copy);
    return options_print(out, &view, 1);
}

/* ---- the step ----------------------------------------------------------------------------------
 */

mnp_status model_print_plan(env *e, const model *m, int64_t points, int64_t context, buf *text) {
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

/* ---- writing --------------------------------------------------------------------------------- */

/* Weights without their padding, one after the other. */
static void unpad(const params *p, const float *weights, float *dense,
                  safetensors_tensor *tensors) {
    for (int32_t i = 0; i < p->count; i++) {
        const param *w = &p->list[i];
        for (int32_t r = 0; r < w->rows; r++)
            memcpy(dense + (int64_t)r * w->cols, weights + w->offset + (int64_t)r * w->ld,
                   (size_t)w->cols * sizeof *dense);
        tensors[i] = (safetensors_tensor){.name = w->name,
                                          .dtype = SAFETENSORS_F32,
                                          .ndim = 2,
                                          .shape = {w->rows, w->cols},
                                          .data = dense};
        dense += (int64_t)w->rows * w->cols;
    }
}

/* Frequencies are frozen and rows of biases short: neither is rounded. A matrix whose largest
 * number is below 2^-14 would have fewer digits, one from 65520 on is beyond half precision. */
static bool suits_half(const param *p, const float *dense) {
    float most = 0;
    for (int64_t i = 0; i < (int64_t)p->rows * p->cols; i++) most = fmaxf(most, fabsf(dense[i]));
    return !p->init.frozen && p->rows > 1 && (most == 0 || (most >= 0x1p-14f && most < 65520));
}

/* In place: a half lies where an earlier float was. */
static void halve(const params *p, safetensors_tensor *tensors, float *dense) {
    for (int32_t i = 0; i < p->count; i++) {
        const param *w = &p->list[i];
        int64_t count = (int64_t)w->rows * w->cols;
        if (suits_half(w, dense)) {
            char *to = (char *)dense;
            for (int64_t k = 0; k < count; k++) {
                uint16_t half = safetensors_f16(dense[k]);
                memcpy(to + k * (int64_t)sizeof half, &half, sizeof half);
            }
            tensors[i].dtype = SAFETENSORS_F16;
        }
        dense += count;
    }
}

static void put_scaling(const model *m, double *x, double *y, safetensors_tensor *tensors) {
    int64_t dims = m->spec.x_dim;
    for (int64_t k = 0; k < dims; k++) {
        x[k] = m->scaling.x_shift[k];
        x[dims + k] = m->scaling.x_scale[k];
    }
    y[0] = m->scaling.y_shift;
    y[1] = m->scaling.y_scale;
    tensors[0] = (safetensors_tensor){"scale.x", SAFETENSORS_F64, 2, {2, dims}, x, 0};
    tensors[1] = (safetensors_tensor){"scale.y", SAFETENSORS_F64, 1, {2}, y, 0};
}

/* To a file, or to `bytes` where there is no path. */
static mnp_status write_to(env *e, const model *m, const float *weights, bool half,
                           const char *path, buf *bytes) {
    size_t count = (size_t)m->params.count;
    buf options;
    buf_init(&options, e);
    double x[2 * MODEL_X_MAX], y[2];
    float *dense =
        env_alloc(e, (size_t)m->params.words + 1, sizeof *dense, "a copy of the weights");
    safetensors_tensor *tensors = env_alloc(e, count + 2, sizeof *tensors, "a model file");
    mnp_status status = dense && tensors ? model_options_text(e, m, &options) : MNP_ENOMEM;
    if (status == MNP_OK) {
        unpad(&m->params, weights, dense, tensors);
        if (half && process_at(m->spec.kind)->networks) halve(&m->params, tensors, dense);
        put_scaling(m, x, y, tensors + count);
        safetensors_meta meta[MODEL_NOTES_MAX + 2] = {{format_key, format_number},
                                                      {options_key, buf_str(&options)}};
        for (int k = 0; k < m->n_notes; k++)
            meta[2 + k] = (safetensors_meta){m->notes[k].key, m->notes[k].value};
        size_t metas = 2 + (size_t)m->n_notes;
        status = path ? safetensors_write(e, path, meta, metas, tensors, count + 2)
                      : safetensors_print(bytes, meta, metas, tensors, count + 2);
    }
    buf_free(&options);
    env_free(e, dense);
    env_free(e, tensors);
    return status;
}

mnp_status model_save(env *e, const model *m, const float *weights, const char *path) {
    return write_to(e, m, weights ? weights : m->weights, false, path, NULL);
}

mnp_status model_save_half(env *e, const model *m, const char *path) {
    return write_to(e, m, m->weights, true, path, NULL);
}

mnp_status model_print(const model *m, buf *out) {
    return write_to(out->e, m, m->weights, false, NULL, out);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Before memory is taken for the weights: the file must hold all that its options ask for. */
static mnp_status check_tensors(env *e, const safetensors_file *f, const params *p) {
    char asked[TEXT_NUMBER], held[TEXT_NUMBER];
    int64_t numbers = params_numbers(p), there = 0;
    for (size_t k = 0; k < f->count; k++) there += (int64_t)f->tensors[k].count;
    if (there < numbers)
        return env_fail(e, MNP_EFORMAT,
                        "its options ask for %lld weights (%s), and it holds %lld numbers (%s)",
                        (long long)numbers, text_bytes(asked, 4.0 * (double)numbers),
                        (long long)there, text_bytes(held, 4.0 * (double)there));
    if (f->count != (size_t)p->count + 2)
        return env_fail(e, MNP_EFORMAT, "it holds %zu tensors, the options ask for %zu", f->count,
                        (size_t)p->count + 2);
    for (int32_t i = 0; i < p->count; i++) {
        const param *w = &p->list[i];
        const safetensors_tensor *t = safetensors_find(f, w->name);
        if (!t) return env_fail(e, MNP_EFORMAT, "the weight '%s' is missing", w->name);
        if (t->ndim != 2 || t->shape[0] != w->rows || t->shape[1] != w->cols)
            return env_fail(e, MNP_EFORMAT, "the weight '%s' is not %d x %d as the options say",
                            w->name, w->rows, w->cols);
    }
    return MNP_OK;
}

static mnp_status read_weight(env *e, const safetensors_file *f, model *m, const param *w) {
    const safetensors_tensor *t = safetensors_find(f, w->name);
    float *dense = env_alloc(e, t->count + 1, sizeof *dense, "a weight");
    if (!dense) return MNP_ENOMEM;
    mnp_status status = safetensors_floats(e, t, dense, t->count);
    for (int32_t r = 0; status == MNP_OK && r < w->rows; r++)
        memcpy(m->weights + w->offset + (int64_t)r * w->ld, dense + (int64_t)r * w->cols,
               (size_t)w->cols * sizeof *dense);
    env_free(e, dense);
    return status;
}

/* Inside, numbers are floats: what is no float now would be a NaN or an infinity there. */
static mnp_status check_scale(env *e, const char *name, double shift, double scale) {
    if (real_scales(shift, scale)) return MNP_OK;
    return env_fail(e, MNP_EFORMAT,
                    "%s holds the shift %g and the scale %g (a scale is above 0, "
                    "and both are finite)",
                    name, shift, scale);
}

static mnp_status read_scaling(env *e, const safetensors_file *f, model *m) {
    const safetensors_tensor *tx = safetensors_find(f, "scale.x");
    const safetensors_tensor *ty = safetensors_find(f, "scale.y");
    size_t dims = (size_t)m->spec.x_dim;
    double x[2 * MODEL_X_MAX], y[2];
    if (!tx || !ty || tx->count != 2 * dims || ty->count != 2)
        return env_fail(e, MNP_EFORMAT, "scale.x or scale.y is missing or has the wrong size");
    MNP_TRY(safetensors_doubles(e, tx, x, 2 * dims));
    MNP_TRY(safetensors_doubles(e, ty, y, 2));
    for (size_t k = 0; k < dims; k++) {
        m->scaling.x_shift[k] = x[k];
        m->scaling.x_scale[k] = x[dims + k];
        MNP_TRY(check_scale(e, "scale.x", x[k], x[dims + k]));
    }
    m->scaling.y_shift = y[0];
    m->scaling.y_scale = y[1];
    return check_scale(e, "scale.y", y[0], y[1]);
}

static mnp_status read_spec(env *e, const safetensors_file *f, model_spec *spec) {
    const char *format = safetensors_meta_get(f, format_key);
    const char *text = safetensors_meta_get(f, options_key);
    MNP_TRY(format_check(e, "a model", text ? format : NULL, format_number));
    option_view view = spec_view(spec);
    return format_options(e, &view, text);
}

static mnp_status fill_from(env *e, const safetensors_file *f, model *m) {
    MNP_TRY(check_tensors(e, f, &m->params));
    MNP_TRY(make_weights(e, m));
    for (int32_t i = 0; i < m->params.count; i++) MNP_TRY(read_weight(e, f, m, &m->params.list[i]));
    MNP_TRY(read_scaling(e, f, m));
    for (size_t k = 0; k < f->meta_count; k++) {
        const safetensors_meta *note = &f->meta[k];
        if (strcmp(note->key, format_key) != 0 && strcmp(note->key, options_key) != 0)
            MNP_TRY(model_note_set(e, m, note->key, note->value));
    }
    return MNP_OK;
}

/* Takes the file. `name` is what messages call it. */
static mnp_status from_file(env *e, safetensors_file *f, const char *name, model **out) {
    model_spec spec;
    model *m = NULL;
    mnp_status status = read_spec(e, f, &spec);
    if (status == MNP_OK) status = make_blank(e, &spec, &m);
    if (status == MNP_OK) status = fill_from(e, f, m);
    safetensors_destroy(f);
    if (status != MNP_OK) {
        model_destroy(m);
        return env_context(e, status == MNP_EINVAL ? MNP_EFORMAT : status, "%s", name);
    }
    *out = m;
    return MNP_OK;
}

mnp_status model_load(env *e, const char *path, model **out) {
    *out = NULL;
    safetensors_file *f = NULL;
    MNP_TRY(safetensors_read(e, path, MODEL_FILE_MAX, &f));
    return from_file(e, f, path, out);
}

mnp_status model_parse(env *e, const char *name, const void *bytes, size_t size, model **out) {
    *out = NULL;
    safetensors_file *f = NULL;
    MNP_TRY(safetensors_parse(e, name, bytes, size, &f));
    return from_file(e, f, name, out);
}
