/* table.c: tables of points for a model, and forecasts of the curves in them. */
#include <math.h>
#include <string.h>

#include "api/api_internal.h"
#include "data/columns.h"
#include "run/curves.h"
#include "run/make_model.h"
#include "run/score.h"

struct mnp_table { /* it has an env of its own, and needs no context */
    asked *a;
    char *x_columns; /* as it was opened, for mnp_table_spread(); or NULL */
};

/* ---- opening --------------------------------------------------------------------------------- */

/* How a table is made, of the model's roles. */
typedef struct making {
    const char *path, *grid;
    const asked *places, *context;
} making;

static mnp_status make(env *e, const model *m, const making *how, data_source *s, mnp_table **out) {
    roles table;
    roles_like like = {0};
    MNP_TRY(model_roles(e, m, &table));
    like.roles = &table;
    s->like = &like;
    mnp_table *t = env_alloc(e, 1, sizeof *t, "a table handle");
    mnp_status status = t ? MNP_OK : MNP_ENOMEM;
    if (t && s->x_columns) {
        t->x_columns = env_strdup(e, s->x_columns);
        if (!t->x_columns) status = MNP_ENOMEM;
    }
    if (status == MNP_OK)
        status = how->path   ? asked_open(e, how->path, s, &t->a)
                 : how->grid ? asked_grid(e, how->grid, s, &t->a)
                             : asked_spread(e, how->places, how->context, s, &t->a);
    if (status == MNP_OK) status = curves_check(e, m, t->a);
    roles_free(&table);
    if (status == MNP_OK) {
        *out = t;
        return status;
    }
    if (t) asked_destroy(t->a);
    if (t) env_free(e, t->x_columns);
    env_free(e, t);
    return status;
}

/* The columns are those of opts. */
static mnp_status open_as(env *e, const mnp_model *model, const char *path, data_source *s,
                          const mnp_data_opts *opts, mnp_table **out) {
    mnp_data_opts o;
    MNP_TRY(TAKE_OPTS(e, mnp_data_opts, opts, &o));
    MNP_TRY(check_given(e, out, "out"));
    s->function_column = o.function_column;
    s->x_columns = o.x_columns;
    s->y_column = o.y_column;
    s->wide = o.wide;
    return make(e, model->m, &(making){.path = path}, s, out);
}

mnp_status mnp_table_open(mnp_ctx *ctx, const mnp_model *model, const char *path, bool with_y,
                          const mnp_data_opts *opts, mnp_table **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, model, "model"));
    MNP_TRY(check_given(&ctx->env, path, "path"));
    return open_as(&ctx->env, model, path, &(data_source){.without_y = !with_y}, opts, out);
}

mnp_status mnp_table_open_memory(mnp_ctx *ctx, const mnp_model *model, const char *name,
                                 const char *text, size_t bytes, bool with_y,
                                 const mnp_data_opts *opts, mnp_table **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_given(e, name, "name"));
    MNP_TRY(check_given(e, text, "text"));
    data_source s = {.without_y = !with_y, .text = text, .bytes = bytes};
    return open_as(e, model, name, &s, opts, out);
}

mnp_status mnp_table_open_targets(mnp_ctx *ctx, const mnp_model *model, const char *path,
                                  const mnp_table *context, const mnp_data_opts *opts,
                                  mnp_table **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_given(e, path, "path"));
    const asked *known = context ? context->a : NULL;
    if (known && (known->dims != model->m->spec.x_dim || (!known->y && known->rows > 0)))
        return env_fail(e, MNP_EINVAL, "a table was opened for another model, or without y");
    MNP_TRY(open_as(e, model, path, &(data_source){.fillable = true}, opts, out));
    mnp_status status = curves_fill(e, (*out)->a, known);
    if (status == MNP_OK) return status;
    mnp_table_destroy(*out);
    *out = NULL;
    return status;
}

mnp_status mnp_table_grid(mnp_ctx *ctx, const mnp_model *model, const char *grid, mnp_table **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, model, "model"));
    MNP_TRY(check_given(&ctx->env, grid, "grid"));
    MNP_TRY(check_given(&ctx->env, out, "out"));
    data_source s = {.without_y = true};
    return make(&ctx->env, model->m, &(making){.grid = grid}, &s, out);
}

mnp_status mnp_table_spread(mnp_ctx *ctx, const mnp_model *model, const mnp_table *places,
                            const mnp_table *context, mnp_table **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_given(e, places, "places"));
    MNP_TRY(check_given(e, context, "context"));
    MNP_TRY(check_given(e, out, "out"));
    if (!context->a->n_group || places->a->n_group)
        return env_fail(e, MNP_EINVAL, "%s",
                        places->a->n_group ? "the places say already of which curve they are"
                                           : "the context has no group column");
    data_source s = {.without_y = true, .x_columns = places->x_columns};
    return make(e, model->m, &(making){.places = places->a, .context = context->a}, &s, out);
}

void mnp_table_destroy(mnp_table *t) {
    if (!t) return;
    env e = t->a->env;
    asked_destroy(t->a);
    env_free(&e, t->x_columns);
    env_free(&e, t);
}

int64_t mnp_table_rows(const mnp_table *t) {
    return t ? t->a->rows : 0;
}

const double *mnp_table_x(const mnp_table *t) {
    return t ? t->a->x : NULL;
}

const double *mnp_table_y(const mnp_table *t) {
    return t ? t->a->y : NULL;
}

int64_t mnp_table_groups(const mnp_table *t) {
    return t ? t->a->groups : 0;
}

int64_t mnp_table_group(const mnp_table *t, int64_t row) {
    return t && row >= 0 && row < t->a->rows ? t->a->group[row] : -1;
}

const char *mnp_table_group_name(const mnp_table *t, int64_t k) {
    return t && k >= 0 && k < t->a->groups ? t->a->names[k] : NULL;
}

int64_t mnp_table_find(const mnp_table *t, const char *name) {
    return t && name ? asked_find(t->a, name) : -1;
}

int64_t mnp_table_group_rows(const mnp_table *t, int64_t k) {
    return t && k >= 0 && k < t->a->groups ? t->a->length[k] : 0;
}

double mnp_table_raw(const mnp_table *t, int64_t row, double y) {
    if (!t || row < 0 || row >= t->a->rows) return (double)NAN;
    return t->a->shift[row] + t->a->scale[row] * y;
}

const char *mnp_table_report(const mnp_table *t) {
    return t ? t->a->said : "";
}

const char *mnp_table_warnings(const mnp_table *t) {
    return t ? t->a->warnings : "";
}

/* ---- cells ----------------------------------------------------------------------------------- */

static bool has_column(const mnp_table *t, int64_t k) {
    return t && k >= 0 && k < (int64_t)t->a->t->columns;
}

int64_t mnp_table_columns(const mnp_table *t) {
    return t ? (int64_t)t->a->t->columns : 0;
}

const char *mnp_table_column(const mnp_table *t, int64_t k) {
    return has_column(t, k) ? csv_header(t->a->t, (size_t)k) : NULL;
}

mnp_column mnp_table_column_is(const mnp_table *t, int64_t k) {
    if (!has_column(t, k)) return MNP_COLUMN_OTHER;
    const asked *a = t->a;
    for (int32_t i = 0; i < a->n_group; i++)
        if (a->group_column[i] == (size_t)k) return MNP_COLUMN_GROUP;
    for (int32_t i = 0; i < a->roles.n_x; i++)
        if (a->x_column[i] == (size_t)k)
            return a->roles.x[i].unit == ROLE_NUMBER     ? MNP_COLUMN_NUMBER
                   : a->roles.x[i].unit == ROLE_CATEGORY ? MNP_COLUMN_CATEGORY
                                                         : MNP_COLUMN_DATE;
    return a->y_column == (size_t)k ? MNP_COLUMN_Y : MNP_COLUMN_OTHER;
}

const char *mnp_table_cell(const mnp_table *t, int64_t row, int64_t k) {
    if (!has_column(t, k) || row < 0 || row >= t->a->rows) return NULL;
    return csv_cell(t->a->t, t->a->row_of[row], (size_t)k);
}

int64_t mnp_table_x_column(const mnp_table *t, int64_t i) {
    if (!t || i < 0) return -1;
    for (int32_t k = 0; k < t->a->roles.n_x; k++) {
        int32_t width = role_width(&t->a->roles.x[k]);
        if (i < width) return t->a->x_column[k] == COLUMN_NONE ? -1 : (int64_t)t->a->x_column[k];
        i -= width;
    }
    return -1;
}

/* ---- forecasts ------------------------------------------------------------------------------- */

static mnp_status check_ask(env *e, const curves_ask *q, const mnp_summary *out, mnp_summary *to) {
    int64_t rows = q->places->rows, dims = q->m->spec.x_dim;
    MNP_TRY(check_range(e, rows, 1, CHECK_COUNT_MAX, "rows of the places"));
    if (q->places->dims != dims || (q->context && q->context->dims != dims) ||
        (q->context && !q->context->y && q->context->rows > 0))
        return env_fail(e, MNP_EINVAL, "a table was opened for another model, or without y");
    return check_summary(e, out, q->samples, rows, to);
}

mnp_status mnp_predict_groups(mnp_ctx *ctx, const mnp_model *model, const mnp_table *context,
                              const mnp_table *places, const mnp_groups_opts *opts,
                              const mnp_summary *out) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_groups_opts o;
    mnp_summary to;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_given(e, places, "places"));
    MNP_TRY(TAKE_OPTS(e, mnp_groups_opts, opts, &o));
    MNP_TRY(check_condition(e, o.condition, o.gradients));
    MNP_TRY(check_range(e, o.work_max, 0, INT64_MAX, "work_max"));
    MNP_TRY(check_range(e, o.smooth, 0, 1, "smooth"));
    curves_ask q = {.m = model->m,
                    .context = context ? context->a : NULL,
                    .places = places->a,
                    .samples = o.samples ? o.samples : 200,
                    .seed = o.seed,
                    .condition = o.condition,
                    .gradients = o.gradients,
                    .work_max = o.work_max,
                    .base = o.smooth ? PREDICT_ZERO : PREDICT_NORMAL,
                    .progress = o.progress,
                    .progress_user = o.progress_user};
    MNP_TRY(score_check_samples(e, q.samples));
    MNP_TRY(check_ask(e, &q, out, &to));
    int64_t groups = places->a->groups;
    if (o.reports) MNP_TRY(CHECK_RESULTS(e, mnp_draw_report, o.reports, groups));
    MNP_TRY(backend_choose(e, o.device, &q.device));
    MNP_TRY(ctx_pool(ctx, &q.pool));
    if (o.reports) q.reports = env_alloc(e, (size_t)groups, sizeof *q.reports, "the reports");
    if (o.reports && !q.reports) return MNP_ENOMEM;
    mnp_status status = curves_predict(e, &q, &to);
    if (status == MNP_OK && o.reports)
        give_results(o.reports, q.reports, sizeof *q.reports, groups);
    env_free(e, q.reports);
    return status;
}

size_t mnp_table_match(mnp_ctx *ctx, const mnp_table *context, const mnp_table *places, char *out,
                       size_t size) {
    check_print(out, size, "");
    if (!ctx || !places) return 0;
    buf text;
    buf_init(&text, &ctx->env);
    mnp_status status = curves_match(&ctx->env, context ? context->a : NULL, places->a, &text);
    size_t length = status == MNP_OK ? text.len : 0;
    if (status == MNP_OK) check_print(out, size, buf_str(&text));
    buf_free(&text);
    return length;
}

bool mnp_model_condition(const mnp_model *model, mnp_condition *out) {
    static const char *const names[] = {"network", "refine", "exact"};
    const char *note = mnp_model_note(model, "condition");
    if (mnp_model_attends(model)) note = names[MNP_NETWORK];
    for (int k = MNP_NETWORK; note && out && k <= MNP_EXACT; k++)
        if (strcmp(note, names[k]) == 0) {
            *out = (mnp_condition)k;
            return true;
        }
    return false;
}
