/* make_model.c: see make_model.h. */
#include "run/make_model.h"

#include <math.h>
#include <string.h>

#include "model/mixed/mixed.h"
#include "util/real.h"

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

/* Names of columns and of the data set, so that files written later can use them; and how it was
 * opened, so that it can be opened again. */
static mnp_status note_data(env *e, model *m, const dataset *d) {
    buf names;
    buf_init(&names, e);
    mnp_status status = model_note_set(e, m, "data", d->name);
    for (int32_t c = 0; c < d->x_dim && status == MNP_OK; c++)
        status = buf_printf(&names, "%s%s", c ? "," : "", d->x_names[c]);
    if (status == MNP_OK) status = model_note_set(e, m, "x_names", buf_str(&names));
    if (status == MNP_OK) status = model_note_set(e, m, "y_name", d->y_name);
    for (int k = 0; k < d->n_notes && status == MNP_OK; k++)
        status = model_note_set(e, m, d->notes[k].key, d->notes[k].value);
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

/* The numbers of knots that are left to the data. Only ratios matter: unscaled data will do. */
static mnp_status set_knots(env *e, const dataset *d, model_spec *s) {
    bool mixed = s->kind == PROCESS_lmm && (!s->lmm_fixed || !s->lmm_random);
    bool mean = s->kind != PROCESS_lmm && s->gp_mean == MEAN_SPLINE && !s->gp_knots;
    if (!d || d->functions < 1 || (!mixed && !mean)) return MNP_OK;
    MNP_TRY(spec_check(e, s)); /* what was asked for can be fitted */
    data_view view = {d->functions, d->x_dim, d->start, d->x, d->y, d->shared_x};
    int32_t fixed = mixed ? (int32_t)s->lmm_fixed : 0, random = mixed ? (int32_t)s->lmm_random : 0;
    MNP_TRY(mixed_choose(e, &view, &fixed, &random));
    if (mixed)
        s->lmm_fixed = fixed, s->lmm_random = random;
    else
        s->gp_knots = fixed;
    return MNP_OK;
}

mnp_status model_for_data(env *e, const model_wish *wish, const dataset *d, model **out) {
    model_spec spec;
    option_view view = spec_view(&spec);
    MNP_TRY(spec_preset(e, wish->process, wish->preset, &spec));
    if (d) MNP_TRY(set_from_data(e, &view, d));
    if (spec.kind == PROCESS_oracle) MNP_TRY(set_oracle(e, d, &spec));
    if (wish->options) MNP_TRY(options_parse(e, &view, 1, wish->options));
    MNP_TRY(set_knots(e, d, &spec));
    model *m = NULL;
    MNP_TRY(model_create(e, &spec, wish->seed, &m));
    if (d) standardise(d, &m->scaling);
    if (spec.y_scale > 0) m->scaling.y_shift = spec.y_shift, m->scaling.y_scale = spec.y_scale;
    mnp_status status = d ? note_data(e, m, d) : MNP_OK;
    if (status == MNP_OK)
        *out = m;
    else
        model_destroy(m);
    return status;
}

static const char *note_of(const void *m, const char *key) {
    return model_note_get(m, key);
}

mnp_status model_data_source(env *e, const model *m, const char **what, data_source *out) {
    *what = model_note_get(m, "data");
    if (!*what || strcmp(*what, DATASET_ARRAYS) == 0)
        return env_fail(e, MNP_EINVAL, "the model was trained on %s: name the data to open",
                        *what ? "arrays, which no file holds" : "no data that it knows of");
    return dataset_noted_source(e, note_of, m, out);
}
