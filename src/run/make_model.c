/* make_model.c: see make_model.h. */
#include "run/make_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/frequency.h"
#include "model/mixed/mixed.h"
#include "run/about.h"
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

static mnp_status set_number(env *e, const option_view *view, const char *key, const char *format,
                             double v) {
    char text[64];
    snprintf(text, sizeof text, format, v);
    return options_set(e, view, 1, key, text);
}

/* The frequencies of a network are those that suit the range of x, or higher ones where curves turn
 * faster: with much lower ones it does not learn them. A Gaussian process starts from their period.
 */
static mnp_status set_frequencies(env *e, const dataset *d, model_spec *s) {
    const option_view view = spec_view(s);
    curve_frequency f;
    model_scaling seen = {.y_scale = 1};
    for (int32_t c = 0; c < d->x_dim; c++) seen.x_scale[c] = 1;
    MNP_TRY(set_number(e, &view, "rff_std", "%.17g", d->rff_std));
    if (d->rows || d->points < 1) return MNP_OK;
    MNP_TRY(frequency_find(e, d, &f));
    standardise(d, &seen);
    const double unit = seen.x_scale[dataset_time(d)], mean = f.mean * unit, peak = f.peak * unit;
    /* of several inputs one would get the other's frequencies */
    if (d->x_dim == 1 && mean > d->rff_std) MNP_TRY(set_number(e, &view, "rff_std", "%.3g", mean));
    if (peak <= 0) return MNP_OK;
    if (s->gp_restarts == RESTARTS_ON) s->gp_restarts = RESTARTS_UP;
    return set_number(e, &view, "gp_period", "%.3g", 1 / peak);
}

static mnp_status set_from_data(env *e, const dataset *d, model_spec *s) {
    const option_view view = spec_view(s);
    MNP_TRY(set_number(e, &view, "x_dim", "%g", (double)d->x_dim));
    return set_frequencies(e, d, s);
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
    if (f.def->oracle) f.def->oracle(f.opts, &k);
    if (f.def->hyper || k.parts & GP_FADING)
        status = env_fail(e, MNP_EINVAL,
                          "%s is no Gaussian process that the oracle has; mnp eval truth --data %s "
                          "scores its true density",
                          d->name, d->name);
    else if (f.def->oracle)
        status = MNP_OK;
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
    bool mixed = s->kind == PROCESS_lmm && !s->lmm_average && (!s->lmm_fixed || !s->lmm_random);
    bool mean = s->kind != PROCESS_lmm && s->gp_mean == MEAN_SPLINE && !s->gp_knots;
    if (!d || d->functions < 1 || (!mixed && !mean)) return MNP_OK;
    MNP_TRY(spec_check(e, s)); /* what was asked for can be fitted */
    data_view view = {d->functions, d->x_dim, d->start, d->x, d->y, d->shared_x, 0, 0};
    mixed_form form = {.smooth = mixed && s->lmm_smooth,
                       .fixed = mixed ? (int32_t)s->lmm_fixed : 0,
                       .random = mixed ? (int32_t)s->lmm_random : 0};
    MNP_TRY(mixed_choose(e, &view, &form));
    if (mixed)
        s->lmm_fixed = form.fixed, s->lmm_random = form.random;
    else
        s->gp_knots = form.fixed;
    return MNP_OK;
}

/* The file says how many knots its laws have room for. */
static void set_most_knots(model_spec *s) {
    if (s->kind != PROCESS_lmm || !s->lmm_average) return;
    mixed_form top = mixed_average_most(s->x_dim);
    if (!s->lmm_fixed) s->lmm_fixed = top.fixed;
    if (!s->lmm_random) s->lmm_random = top.random;
}

/* An average has y on scales that know zero: it stays where it is, unless y is far above it. */
static void keep_zero(const dataset *d, const model_spec *s, model_scaling *to) {
    enum { FAR = 20 };
    if (s->kind != PROCESS_lmm || !s->lmm_average || d->raw_y) return;
    for (int64_t i = 0; i < d->points; i++)
        if (!(d->y_origin + (double)d->y[i] >= 0)) return;
    if (to->y_shift < FAR * to->y_scale) to->y_shift = 0;
}

/* The grid of a convolutional model covers the inputs as it will see them: with some room beyond,
 * or as far as was asked for. */
static void set_grid(const dataset *d, model_spec *s) {
    const double room = 0.1;
    if (s->kind != PROCESS_convcnp || s->grid_lo > s->grid_hi || d->points < 1) return;
    model_scaling seen = {.x_scale = {1}, .y_scale = 1};
    standardise(d, &seen);
    double lo = INFINITY, hi = -INFINITY;
    int64_t inputs = d->shared_x ? d->longest : d->points;
    for (int64_t i = 0; i < inputs; i++) {
        double x = (d->x_origin[0] + (double)d->x[i] - seen.x_shift[0]) / seen.x_scale[0];
        lo = fmin(lo, x), hi = fmax(hi, x);
    }
    double width = hi > lo ? hi - lo : 1;
    if (s->grid_lo < s->grid_hi)
        s->grid_lo = fmin(s->grid_lo, lo), s->grid_hi = fmax(s->grid_hi, hi);
    else
        s->grid_lo = lo - room * width, s->grid_hi = hi + room * width;
}

const char *model_preset_for(const char *process, const dataset *d) {
    enum { FEW = 5000 };
    bool latents = strcmp(process, "mnp") == 0 || strcmp(process, "np") == 0;
    if (d && d->rows && latents) return "image";
    return d && d->roles && d->functions < FEW ? "tiny" : "paper";
}

/* A model that sees the context's y is scored outside the context, unless another wish is told,
 * which spec_check() refuses. */
static mnp_status set_scored(env *e, const char *options, model_spec *s) {
    option_view view = spec_view(s);
    MNP_TRY(options_set(e, &view, 1, "train_score", "rest"));
    return options ? options_parse(e, &view, 1, options) : MNP_OK;
}

mnp_status model_for_data(env *e, const model_wish *wish, const dataset *d, model **out) {
    model_spec spec;
    option_view view = spec_view(&spec);
    MNP_TRY(spec_preset(e, wish->process, wish->preset, &spec));
    if (d) MNP_TRY(set_from_data(e, d, &spec));
    if (spec.kind == PROCESS_oracle) MNP_TRY(set_oracle(e, d, &spec));
    if (wish->options) MNP_TRY(options_parse(e, &view, 1, wish->options));
    if (spec.attend) MNP_TRY(set_scored(e, wish->options, &spec));
    set_most_knots(&spec);
    MNP_TRY(set_knots(e, d, &spec));
    if (d && d->x_dim == 1) set_grid(d, &spec);
    model *m = NULL;
    MNP_TRY(model_create(e, &spec, wish->seed, &m));
    if (d) standardise(d, &m->scaling);
    if (d) keep_zero(d, &spec, &m->scaling);
    if (spec.y_scale > 0) m->scaling.y_shift = spec.y_shift, m->scaling.y_scale = spec.y_scale;
    mnp_status status = d ? note_data(e, m, d) : MNP_OK;
    if (status == MNP_OK)
        *out = m;
    else
        model_destroy(m);
    return status;
}

/* ---- from another model ---------------------------------------------------------------------- */

/* Mean and spread of numbers as a model sees them, inside. */
typedef struct seen {
    double x_mean[MODEL_X_MAX], x_sd[MODEL_X_MAX], y_mean, y_sd;
} seen;

static void moments(const dataset *d, int32_t c, double shift, double scale, double *mean,
                    double *sd) {
    double sum = 0, squares = 0, count = (double)d->points;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < d->points; i++) {
            double raw = c < 0 ? (double)d->y[i] + d->y_origin
                               : (double)d->x[i * d->x_dim + c] + d->x_origin[c];
            double v = (raw - shift) / scale, off = v - sum / count;
            if (pass == 0)
                sum += v;
            else
                squares += off * off;
        }
    *mean = sum / count;
    *sd = sqrt(squares / count);
    if (!real_scales(*mean, *sd)) *sd = 1;
}

static bool no_source(const char *data) {
    return strcmp(data, DATASET_ARRAYS) == 0 || strcmp(data, DATASET_TABLE) == 0;
}

/* What the model was trained on: standardised data have mean 0 and spread 1 inside; functions of a
 * family are taken as they are, so some are drawn and measured; images lie in [-1, 1]. */
static mnp_status measure_own(env *e, const model *m, seen *out) {
    enum { SOME = 200 };
    const char *what = model_note_get(m, "data");
    bool raw = true;
    *out = (seen){.y_sd = 1};
    for (int64_t k = 0; k < m->spec.x_dim; k++) {
        out->x_sd[k] = 1;
        raw &= m->scaling.x_shift[k] == 0 && m->scaling.x_scale[k] == 1;
    }
    if (!raw || !what || no_source(what)) return MNP_OK;
    env quiet = *e; /* a name that is no family is an answer here, not an error */
    family f;
    dataset *d = NULL;
    mnp_status status = family_parse(&quiet, what, &f);
    if (status == MNP_ENOMEM) return env_fail(e, status, "%s", quiet.error);
    if (status != MNP_OK) {
        for (int64_t k = 0; k < m->spec.x_dim; k++) out->x_sd[k] = sqrt(1.0 / 3);
        return MNP_OK;
    }
    family_free(e, &f);
    MNP_TRY(dataset_open(e, NULL, what, &(data_source){.functions = SOME}, &d));
    for (int32_t c = 0; c < d->x_dim && c < m->spec.x_dim; c++)
        moments(d, c, m->scaling.x_shift[c], m->scaling.x_scale[c], &out->x_mean[c], &out->x_sd[c]);
    moments(d, -1, m->scaling.y_shift, m->scaling.y_scale, &out->y_mean, &out->y_sd);
    dataset_destroy(d);
    return MNP_OK;
}

/* The new data, inside, get the moments `own`. */
static void map_scaling(const dataset *d, const seen *own, model_scaling *s) {
    for (int32_t c = 0; c < d->x_dim && !d->raw_x; c++) {
        s->x_scale[c] /= own->x_sd[c];
        s->x_shift[c] -= own->x_mean[c] * s->x_scale[c];
    }
    if (d->raw_y) return;
    s->y_scale /= own->y_sd;
    s->y_shift -= own->y_mean * s->y_scale;
}

/* Inputs of one kind each: a category is none of another model's numbers. */
static mnp_status same_inputs(env *e, const model *from, const dataset *d) {
    const char *table = model_note_get(from, "table");
    roles own;
    if (from->spec.x_dim != d->x_dim)
        return env_fail(e, MNP_EINVAL,
                        "the data have %d inputs per point, the model to start from %lld", d->x_dim,
                        (long long)from->spec.x_dim);
    if (!table || !d->roles) return MNP_OK;
    MNP_TRY(roles_parse(e, table, &own));
    bool same = own.n_x == d->roles->n_x && own.n_outputs == d->roles->n_outputs;
    for (int32_t k = 0; same && k < own.n_x; k++)
        same = (own.x[k].unit == ROLE_CATEGORY) == (d->roles->x[k].unit == ROLE_CATEGORY) &&
               role_width(&own.x[k]) == role_width(&d->roles->x[k]);
    roles_free(&own);
    return same ? MNP_OK
                : env_fail(e, MNP_EINVAL,
                           "the categories or outputs of the data are not those of the model to "
                           "start from");
}

static mnp_status note_start(env *e, const model *from, const char *options, const dataset *d,
                             model *m) {
    buf text;
    buf_init(&text, e);
    const char *data = model_note_get(from, "data"), *steps = model_note_get(from, "steps");
    buf_printf(&text, "weights of a model of %s, step %s", data ? data : "?", steps ? steps : "?");
    if (options && *options) buf_printf(&text, ", with %s", options);
    buf_text(&text, "; inside, one unit of");
    for (int32_t c = 0; c < d->x_dim; c++) {
        buf_printf(&text, " %s is ", d->x_names[c]);
        buf_float(&text, (float)m->scaling.x_scale[c]);
        buf_text(&text, ",");
    }
    buf_printf(&text, " of %s ", d->y_name);
    buf_float(&text, (float)m->scaling.y_scale);
    buf_text(&text, "; the frequencies are kept");
    mnp_status status = text.status;
    if (status == MNP_OK) status = model_note_set(e, m, "init", buf_str(&text));
    buf_free(&text);
    return status;
}

/* What a trained model can be given, or trained by, while it goes on to say what it says. */
static const char *const changeable[] = {
    "attend", "attend_width", "attend_blocks", "train_score", "objective", "kl", "kl_weight"};

static bool can_change(const char *word) {
    const size_t length = strcspn(word, "=");
    for (size_t k = 0; k < sizeof changeable / sizeof *changeable; k++)
        if (strlen(changeable[k]) == length && strncmp(word, changeable[k], length) == 0)
            return true;
    return false;
}

static mnp_status check_changes(env *e, const char *options) {
    for (const char *word = options; *(word += strspn(word, " ")); word += strcspn(word, " "))
        if (!can_change(word))
            return env_fail(e, MNP_EINVAL,
                            "a model that starts from another one keeps its %.*s: leave it out "
                            "(attend, attend_width, attend_blocks, train_score, objective, kl and "
                            "kl_weight can change)",
                            (int)strcspn(word, "= "), word);
    return MNP_OK;
}

static mnp_status set_changes(env *e, const model *from, const char *options, model_spec *s) {
    const option_view view = spec_view(s);
    *s = from->spec;
    s->gp_restarts = RESTARTS_OFF; /* its own numbers are the start */
    if (!options) return MNP_OK;
    MNP_TRY(check_changes(e, options));
    MNP_TRY(options_parse(e, &view, 1, options));
    return s->attend && !from->spec.attend ? set_scored(e, options, s) : MNP_OK;
}

/* Do both belong to one network? "flow.3.0.wh" and "flow.3.0.wx" do. */
static bool beside(const char *name, const char *other) {
    const char *dot = strrchr(name, '.');
    const size_t length = dot ? (size_t)(dot - name) + 1 : 0;
    return length > 0 && strncmp(name, other, length) == 0 && !strchr(other + length, '.');
}

static bool has_network_of(const params *p, const char *name) {
    for (int32_t k = 0; k < p->count; k++)
        if (beside(name, p->list[k].name)) return true;
    return false;
}

static mnp_status take_weights(env *e, const model *from, model *m) {
    for (int32_t k = 0; k < from->params.count; k++) {
        const param *p = &from->params.list[k];
        const int32_t at = params_find(&m->params, p->name);
        const param *own = at < 0 ? NULL : &m->params.list[at];
        if (!own || own->rows != p->rows || own->cols != p->cols || own->ld != p->ld)
            return env_fail(e, MNP_EINVAL,
                            "with these options %s, a weight of the model to start from, would %s",
                            p->name, own ? "have another shape" : "be gone");
        memcpy(m->weights + own->offset, from->weights + p->offset,
               (size_t)p->rows * (size_t)p->ld * sizeof(float));
    }
    for (int32_t k = 0; k < m->params.count; k++) {
        const param *p = &m->params.list[k];
        if (params_find(&from->params, p->name) < 0 && has_network_of(&from->params, p->name))
            memset(m->weights + p->offset, 0, (size_t)p->rows * (size_t)p->ld * sizeof(float));
    }
    return MNP_OK;
}

mnp_status model_from_model(env *e, const model *from, const char *options, uint64_t seed,
                            const dataset *d, model **out) {
    seen own;
    model *m = NULL;
    model_spec spec;
    *out = NULL;
    if (from->params.trainable == 0)
        return env_fail(e, MNP_EINVAL, "the model to start from has nothing to learn");
    MNP_TRY(same_inputs(e, from, d));
    MNP_TRY(set_changes(e, from, options, &spec));
    MNP_TRY(measure_own(e, from, &own));
    MNP_TRY(model_create(e, &spec, seed, &m));
    mnp_status status = take_weights(e, from, m);
    standardise(d, &m->scaling);
    map_scaling(d, &own, &m->scaling);
    if (status == MNP_OK) status = note_data(e, m, d);
    if (status == MNP_OK) status = note_start(e, from, options, d, m);
    if (status == MNP_OK)
        *out = m;
    else
        model_destroy(m);
    return status;
}

/* ---- its own data ---------------------------------------------------------------------------- */

static const char *note_of(const void *m, const char *key) {
    return model_note_get(m, key);
}

mnp_status model_data_source(env *e, const model *m, const char **what, data_source *out) {
    *what = model_note_get(m, "data");
    if (!*what)
        return env_fail(e, MNP_EINVAL,
                        "the model was trained on no data that it knows of: name the data to open");
    if (no_source(*what))
        return env_fail(e, MNP_EINVAL,
                        "the model was trained on %s, which no file holds: name the data to open",
                        *what);
    return dataset_noted_source(e, note_of, m, out);
}

mnp_status model_data_like(env *e, const model *m, roles *r, roles_like *out) {
    const char *table = model_note_get(m, "table"), *hash = model_note_get(m, "data.hash");
    data_source own;
    *r = (roles){0};
    MNP_TRY(dataset_noted_source(e, note_of, m, &own));
    out->seed = own.seed;
    out->holdout = own.holdout;
    out->test = own.test;
    if (hash) out->hash = strtoull(hash, NULL, 16);
    if (!table) return MNP_OK;
    MNP_TRY(roles_parse(e, table, r));
    out->roles = r;
    return MNP_OK;
}

/* The next of the names "a,b", of which there are as many as inputs; or x, x1, x2 ... */
static mnp_status plain_input(env *e, const char **names, int64_t k, int64_t dims, role *out) {
    char text[CSV_NAME_MAX + 1];
    size_t length = *names ? strcspn(*names, ",") : 0;
    if (length == 0 || length > CSV_NAME_MAX) {
        snprintf(text, sizeof text, dims == 1 ? "x" : "x%lld", (long long)k + 1);
    } else {
        memcpy(text, *names, length);
        text[length] = '\0';
        *names = (*names)[length] ? *names + length + 1 : NULL;
    }
    *out = (role){.lo = NAN, .hi = NAN, .name = env_strdup(e, text)};
    return out->name ? MNP_OK : MNP_ENOMEM;
}

mnp_status model_roles(env *e, const model *m, roles *out) {
    const char *table = model_note_get(m, "table"), *names = model_note_get(m, "x_names");
    const char *y = model_note_get(m, "y_name");
    if (table) {
        MNP_TRY(roles_parse(e, table, out));
        if (roles_dims(out) == m->spec.x_dim) return MNP_OK;
        roles_free(out); /* a log of decisions: its actions are inputs too */
    }
    roles_init(out, e);
    out->x = env_alloc(e, (size_t)m->spec.x_dim, sizeof *out->x, "the columns of a table");
    out->y.name = env_strdup(e, y ? y : "y");
    mnp_status status = out->x && out->y.name ? MNP_OK : MNP_ENOMEM;
    for (int64_t k = 0; k < m->spec.x_dim && status == MNP_OK; k++) {
        status = plain_input(e, &names, k, m->spec.x_dim, &out->x[k]);
        (void)about_range(m, k, &out->x[k].lo, &out->x[k].hi);
        out->n_x++;
    }
    if (status != MNP_OK) roles_free(out);
    return status;
}
