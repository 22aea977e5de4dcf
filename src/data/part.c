/* part.c: some curves of a data set, as a data set of its own. */
#include <string.h>

#include "data/dataset_internal.h"

static mnp_status copy_roles(env *e, const dataset *d, dataset *out) {
    buf text;
    if (!d->roles) return MNP_OK;
    buf_init(&text, e);
    mnp_status status = roles_print(d->roles, &text);
    if (status == MNP_OK) {
        out->roles = env_alloc(e, 1, sizeof *out->roles, "the columns of a table");
        status = out->roles ? roles_parse(&out->env, buf_str(&text), out->roles) : MNP_ENOMEM;
    }
    buf_free(&text);
    return status;
}

/* How the whole was opened holds for a part of it too. */
static mnp_status copy_notes(env *e, const dataset *d, dataset *out) {
    const char *const *names = (const char *const *)d->x_names;
    MNP_TRY(dataset_name_columns(e, out, names, d->y_name, d->function_name));
    for (int k = 0; k < d->n_notes; k++)
        MNP_TRY(dataset_note(e, out, d->notes[k].key, d->notes[k].value));
    out->builtin = d->builtin, out->seed = d->seed;
    out->rff_std = d->rff_std;
    out->raw_x = d->raw_x, out->raw_y = d->raw_y;
    memcpy(out->x_origin, d->x_origin, (size_t)d->x_dim * sizeof *d->x_origin);
    out->y_origin = d->y_origin;
    return copy_roles(e, d, out);
}

static int64_t kept_of(const dataset *d, int64_t curve, const bool *keep) {
    int64_t n = 0;
    for (int64_t at = d->start[curve]; at < d->start[curve + 1]; at++) n += !keep || keep[at];
    return n;
}

static void copy_points(const dataset *d, const int64_t *which, const bool *keep, dataset *out) {
    int64_t to = 0;
    size_t dims = (size_t)d->x_dim;
    for (int64_t k = 0; k < out->functions; k++) {
        int64_t from = d->start[which[k]], n = d->start[which[k] + 1] - from;
        const float *x = dataset_x(d, which[k]);
        for (int64_t j = 0; j < n; j++) {
            if (keep && !keep[from + j]) continue;
            memcpy(out->x + (size_t)to * dims, x + (size_t)j * dims, dims * sizeof *x);
            out->y[to++] = d->y[from + j];
        }
        out->start[k + 1] = to;
    }
}

static mnp_status copy_ids(env *e, const dataset *d, const int64_t *which, dataset *out) {
    if (!d->ids) return MNP_OK;
    out->ids = env_alloc(e, (size_t)out->functions, sizeof *out->ids, "the names of functions");
    if (!out->ids) return MNP_ENOMEM;
    for (int64_t k = 0; k < out->functions; k++)
        if (!(out->ids[k] = env_strdup(e, d->ids[which[k]]))) return MNP_ENOMEM;
    return MNP_OK;
}

mnp_status dataset_part(env *e, const dataset *d, const int64_t *which, int64_t count,
                        const bool *keep, dataset **out) {
    int64_t points = 0;
    dataset *part = NULL;
    *out = NULL;
    for (int64_t k = 0; k < count; k++) points += kept_of(d, which[k], keep);
    MNP_TRY(dataset_new(e, d->name, count, points, d->x_dim, &part));
    mnp_status status = copy_notes(e, d, part);
    if (status == MNP_OK) status = copy_ids(e, d, which, part);
    if (status == MNP_OK) {
        copy_points(d, which, keep, part);
        status = dataset_measure(e, part, NULL, NULL);
    }
    part->policy.context_hi = d->policy.context_hi;
    if (status == MNP_OK)
        *out = part;
    else
        dataset_destroy(part);
    return status;
}
