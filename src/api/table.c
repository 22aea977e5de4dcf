/* table.c: tables of points for a model. */
#include <math.h>

#include "api/api_internal.h"
#include "data/asked.h"
#include "run/make_model.h"

struct mnp_table { /* it has an env of its own, and needs no context */
    asked *a;
};

mnp_status mnp_table_open(mnp_ctx *ctx, const mnp_model *model, const char *path, bool with_y,
                          const mnp_data_opts *opts, mnp_table **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_data_opts o;
    roles table;
    roles_like like = {0};
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_given(e, path, "path"));
    MNP_TRY(TAKE_OPTS(e, mnp_data_opts, opts, &o));
    MNP_TRY(check_given(e, out, "out"));
    MNP_TRY(model_roles(e, model->m, &table));
    like.roles = &table;
    data_source s = {.function_column = o.function_column,
                     .x_columns = o.x_columns,
                     .y_column = o.y_column,
                     .wide = o.wide,
                     .without_y = !with_y,
                     .like = &like};
    mnp_table *t = env_alloc(e, 1, sizeof *t, "a table handle");
    mnp_status status = t ? asked_open(e, path, &s, &t->a) : MNP_ENOMEM;
    roles_free(&table);
    if (status == MNP_OK)
        *out = t;
    else
        env_free(e, t);
    return status;
}

void mnp_table_destroy(mnp_table *t) {
    if (!t) return;
    env e = t->a->env;
    asked_destroy(t->a);
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

double mnp_table_raw(const mnp_table *t, int64_t row, double y) {
    if (!t || row < 0 || row >= t->a->rows) return (double)NAN;
    return t->a->shift[row] + t->a->scale[row] * y;
}

const char *mnp_table_warnings(const mnp_table *t) {
    return t ? t->a->warnings : "";
}
