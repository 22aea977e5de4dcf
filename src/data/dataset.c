/* dataset.c: data sets in memory: from families and arrays, and out to CSV. See dataset.h. */
#include "data/dataset.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/curves.h"
#include "comm/comm.h"
#include "data/dataset_internal.h"
#include "data/images.h"
#include "data/origin.h"
#include "util/csv.h"
#include "util/real.h"
#include "util/text.h"

/* ---- memory ---------------------------------------------------------------------------------- */

void dataset_destroy(dataset *d) {
    if (!d) return;
    env *e = &d->env;
    for (int32_t i = 0; d->x_names && i < d->x_dim; i++) env_free(e, d->x_names[i]);
    for (int64_t i = 0; d->ids && i < d->functions; i++) env_free(e, d->ids[i]);
    for (int k = 0; k < d->n_notes; k++) env_free(e, d->notes[k].value);
    env_free(e, d->x_names);
    env_free(e, d->ids);
    env_free(e, d->name);
    env_free(e, d->y_name);
    env_free(e, d->function_name);
    env_free(e, d->report);
    env_free(e, d->warnings);
    if (d->roles) roles_free(d->roles);
    env_free(e, d->roles);
    env_free(e, d->start);
    env_free(e, d->x);
    env_free(e, d->x_origin);
    env_free(e, d->y);
    env copy = *e;
    env_free(&copy, d);
}

mnp_status dataset_new_shared(env *e, const char *name, int64_t functions, int64_t points,
                              int32_t x_dim, bool shared_x, dataset **out) {
    dataset *d = env_alloc(e, 1, sizeof *d, "a data set");
    if (!d) return MNP_ENOMEM;
    *d = (dataset){.env = *e,
                   .functions = functions,
                   .points = points,
                   .x_dim = x_dim,
                   .rff_std = 1,
                   .shared_x = shared_x};
    size_t n = (size_t)points, inputs = shared_x ? n / (size_t)functions : n;
    d->name = env_strdup(e, name);
    d->start = env_alloc(e, (size_t)functions + 1, sizeof *d->start, "a data set");
    d->x = env_alloc(e, inputs * (size_t)x_dim, sizeof *d->x, "the inputs of a data set");
    d->y = env_alloc(e, n, sizeof *d->y, "the values of a data set");
    d->x_origin = env_alloc(e, (size_t)x_dim, sizeof *d->x_origin, "a data set");
    if (!d->name || !d->start || !d->x || !d->y || !d->x_origin) {
        dataset_destroy(d);
        return MNP_ENOMEM;
    }
    *out = d;
    return MNP_OK;
}

mnp_status dataset_new(env *e, const char *name, int64_t functions, int64_t points, int32_t x_dim,
                       dataset **out) {
    return dataset_new_shared(e, name, functions, points, x_dim, false, out);
}

mnp_status dataset_name_columns(env *e, dataset *d, const char *const *x_names, const char *y_name,
                                const char *function_name) {
    d->x_names = env_alloc(e, (size_t)d->x_dim, sizeof *d->x_names, "the names of columns");
    if (!d->x_names) return MNP_ENOMEM;
    for (int32_t i = 0; i < d->x_dim; i++) {
        char number[24];
        snprintf(number, sizeof number, "x%d", i + 1);
        d->x_names[i] = env_strdup(e, x_names ? x_names[i] : d->x_dim == 1 ? "x" : number);
        if (!d->x_names[i]) return MNP_ENOMEM;
    }
    d->y_name = env_strdup(e, y_name ? y_name : "y");
    d->function_name = env_strdup(e, function_name ? function_name : "function");
    return d->y_name && d->function_name ? MNP_OK : MNP_ENOMEM;
}

mnp_status dataset_measure(env *e, dataset *d, int64_t *shortest, int64_t *median) {
    d->longest = 0;
    for (int64_t i = 0; i < d->functions; i++)
        if (d->start[i + 1] - d->start[i] > d->longest) d->longest = d->start[i + 1] - d->start[i];
    int64_t *count = env_alloc(e, (size_t)d->longest + 1, sizeof *count, "lengths");
    if (!count) return MNP_ENOMEM;
    for (int64_t i = 0; i < d->functions; i++) count[d->start[i + 1] - d->start[i]]++;
    int64_t low = 0, mid = 0, seen = 0;
    while (low < d->longest && count[low] == 0) low++;
    for (mid = low; mid < d->longest; mid++) {
        seen += count[mid];
        if (2 * seen >= d->functions) break;
    }
    env_free(e, count);
    if (!d->builtin) {
        d->policy.context_lo = 0;
        d->policy.context_hi = mid / 2;
    }
    if (shortest) *shortest = low;
    if (median) *median = mid;
    return MNP_OK;
}

/* ---- time ------------------------------------------------------------------------------------ */

int32_t dataset_time(const dataset *d) {
    for (int32_t c = 0; c < d->x_dim; c++) {
        const role *x = d->roles ? roles_at(d->roles, c) : NULL;
        if ((!x || x->unit != ROLE_CATEGORY) &&
            curves_change(d->functions, d->start, d->x, d->x_dim, d->shared_x, c))
            return c;
    }
    return 0;
}

/* ---- families -------------------------------------------------------------------------------- */

static const char *split_word(data_split split) {
    static const char *const words[] = {"training", "validation", "test"};
    return words[split];
}

static mnp_status report_family(env *e, dataset *d, const data_source *s) {
    float lo = d->y[0], hi = d->y[0];
    for (int64_t i = 1; i < d->points; i++) {
        lo = fminf(lo, d->y[i]);
        hi = fmaxf(hi, d->y[i]);
    }
    buf b;
    buf_init(&b, e);
    buf_printf(&b, "%s: %lld %s functions of %lld points, seed %llu; y from ", d->name,
               (long long)d->functions, split_word(s->split), (long long)d->longest,
               (unsigned long long)s->seed);
    buf_float(&b, lo);
    buf_text(&b, " to ");
    buf_float(&b, hi);
    buf_text(&b, "\n");
    mnp_status status = b.status;
    if (status == MNP_OK && !(d->report = env_strdup(e, buf_str(&b)))) status = MNP_ENOMEM;
    buf_free(&b);
    return status;
}

static mnp_status fill_family(env *e, pool *pool, const family *f, const data_source *s,
                              dataset *d) {
    int64_t n = f->def->points(f->opts);
    option_span context = f->def->context(f->opts);
    d->builtin = d->raw_x = d->raw_y = true;
    d->seed = s->seed;
    d->longest = n;
    d->policy.context_lo = context.lo;
    d->policy.context_hi = context.hi;
    if (f->def->targets) {
        option_span targets = f->def->targets(f->opts);
        d->policy.targets_lo = targets.lo;
        d->policy.targets_hi = targets.hi;
    }
    d->rff_std = f->def->rff_std(f->opts);
    for (int64_t i = 0; i <= d->functions; i++) d->start[i] = i * n;
    MNP_TRY(dataset_name_columns(e, d, f->def->x_names, f->def->y_name, NULL));
    bool kept = s->cache && cache_load(e, s->cache, f, s->seed, s->split, d->functions, d->x, d->y);
    MNP_TRY(comm_all(e, kept, &kept, "the cache"));
    if (!kept) {
        MNP_TRY(family_draw(e, pool, f, s->seed, s->split, 0, d->functions, d->x, d->y));
        if (s->cache && comm_rank(e) == 0)
            cache_store(e, s->cache, f, s->seed, s->split, d->functions, d->x, d->y);
    }
    return report_family(e, d, s);
}

static mnp_status open_family(env *e, pool *pool, const char *what, const data_source *s,
                              dataset **out) {
    family f;
    dataset *d = NULL;
    MNP_TRY(family_parse(e, what, &f));
    int64_t usual = family_functions(s->split);
    if (s->split == DATA_TRAIN && f.def->train_functions) usual = f.def->train_functions;
    int64_t functions = s->functions ? s->functions : usual;
    mnp_status status = MNP_OK;
    if (functions < 1 || functions > INT32_MAX)
        status = env_fail(e, MNP_EINVAL, "%lld functions are not in 1 .. %d", (long long)functions,
                          INT32_MAX);
    if (status == MNP_OK)
        status = dataset_new(e, f.name, functions, functions * f.def->points(f.opts),
                             family_x_dim(f.def), &d);
    if (status == MNP_OK) status = fill_family(e, pool, &f, s, d);
    family_free(e, &f);
    if (status == MNP_OK)
        *out = d;
    else
        dataset_destroy(d);
    return status;
}

/* ---- which of the two ------------------------------------------------------------------------ */

static bool is_family(const char *what) {
    char name[OPTION_NAME_MAX];
    size_t length = strcspn(what, ":");
    if (length >= sizeof name) return false;
    memcpy(name, what, length);
    name[length] = '\0';
    return family_find(name) != NULL;
}

/* A name without '.' and '/' that is no file was meant to be a family. */
static mnp_status neither(env *e, const char *what) {
    family ignored;
    mnp_status status = family_parse(e, what, &ignored);
    return env_context(e, status, "no file is called \"%.100s\"", what);
}

const char *dataset_path(const char *what) {
    static const char prefix[] = "images:";
    if (is_family(what) || images_drawn(what)) return NULL;
    return images_named(what) ? what + sizeof prefix - 1 : what;
}

static mnp_status open_any(env *e, pool *pool, const char *what, const data_source *s,
                           dataset **out) {
    if (s->text) return file_open(e, what, s, out);
    if (is_family(what)) return open_family(e, pool, what, s, out);
    if (images_named(what)) return images_open(e, pool, what, s, out);
    size_t length = strcspn(what, ":");
    bool looks_like_path = memchr(what, '/', length) || memchr(what, '.', length);
    if (!looks_like_path && access(what, F_OK) != 0) return neither(e, what);
    return file_open(e, what, s, out);
}

mnp_status dataset_open(env *e, pool *pool, const char *what, const data_source *s, dataset **out) {
    dataset *d = NULL;
    *out = NULL;
    if (s->split != DATA_TRAIN && s->split != DATA_VALID && s->split != DATA_TEST)
        return env_fail(e, MNP_EINVAL, "split %d does not exist", (int)s->split);
    MNP_TRY(open_any(e, pool, what, s, &d));
    mnp_status status = d->n_notes ? MNP_OK : dataset_note_source(e, d, s);
    if (status == MNP_OK)
        *out = d;
    else
        dataset_destroy(d);
    return status;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static mnp_status check(env *e, double v, const char *what, int64_t function, int64_t point) {
    if (real_fits(v)) return MNP_OK;
    return env_fail(e, MNP_EINVAL, "%s of point %lld of function %lld is %s", what,
                    (long long)point, (long long)function,
                    isnan(v) ? "not a number" : "infinite or too large for single precision");
}

static mnp_status check_arrays(env *e, dataset *d, const int64_t *n, const double *x,
                               const double *y) {
    int64_t at = 0;
    for (int64_t i = 0; i < d->functions; i++) {
        for (int64_t j = 0; j < n[i]; j++, at++) {
            for (int32_t c = 0; c < d->x_dim; c++)
                MNP_TRY(check(e, x[at * d->x_dim + c], "x", i, j));
            MNP_TRY(check(e, y[at], "y", i, j));
        }
        d->start[i + 1] = at;
    }
    return MNP_OK;
}

/* One column, from wherever it is best counted. */
static double store(const double *from, int64_t count, int64_t stride, const char *name,
                    double *sorted, float *to, buf *say) {
    for (int64_t i = 0; i < count; i++) sorted[i] = from[i * stride];
    origin o = origin_find(sorted, count);
    for (int64_t i = 0; i < count; i++) to[i * stride] = (float)(from[i * stride] - o.at);
    origin_say(&o, name, say);
    return o.at;
}

static mnp_status fill_arrays(env *e, dataset *d, const int64_t *n, const double *x,
                              const double *y) {
    MNP_TRY(check_arrays(e, d, n, x, y));
    MNP_TRY(dataset_name_columns(e, d, NULL, NULL, NULL));
    MNP_TRY(dataset_measure(e, d, NULL, NULL));
    double *sorted = env_alloc(e, (size_t)d->points, sizeof *sorted, "a column");
    if (!sorted) return MNP_ENOMEM;
    buf say;
    buf_init(&say, e);
    buf_printf(&say, "%lld functions, %lld points\n", (long long)d->functions,
               (long long)d->points);
    for (int32_t c = 0; c < d->x_dim; c++)
        d->x_origin[c] = store(x + c, d->points, d->x_dim, d->x_names[c], sorted, d->x + c, &say);
    d->y_origin = store(y, d->points, 1, d->y_name, sorted, d->y, &say);
    mnp_status status = say.status;
    if (status == MNP_OK && !(d->report = env_strdup(e, buf_str(&say)))) status = MNP_ENOMEM;
    buf_free(&say);
    env_free(e, sorted);
    return status;
}

mnp_status dataset_from_arrays(env *e, const char *name, int64_t functions, const int64_t *n,
                               int32_t x_dim, const double *x, const double *y, dataset **out) {
    dataset *d = NULL;
    int64_t points = 0;
    *out = NULL;
    if (functions < 1 || x_dim < 1)
        return env_fail(e, MNP_EINVAL, "at least one function and one input are needed");
    for (int64_t i = 0; i < functions; i++) {
        if (n[i] < 1 || n[i] > INT64_MAX / 2 - points)
            return env_fail(e, MNP_EINVAL, "function %lld has %lld points", (long long)i,
                            (long long)n[i]);
        points += n[i];
    }
    MNP_TRY(dataset_new(e, name, functions, points, x_dim, &d));
    mnp_status status = fill_arrays(e, d, n, x, y);
    if (status == MNP_OK)
        *out = d;
    else
        dataset_destroy(d);
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A file without a function column may call an input "function": the new column yields. */
static const char *free_name(const dataset *d) {
    const char *choices[] = {d->function_name, "function", "function_id", "curve_id"};
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++) {
        bool taken = strcmp(choices[k], d->y_name) == 0;
        for (int32_t i = 0; i < d->x_dim; i++) taken |= strcmp(choices[k], d->x_names[i]) == 0;
        if (!taken) return choices[k];
    }
    return "mnp_function";
}

static void put_number(csv_writer *w, float v, double origin) {
    if (origin == 0)
        csv_put_float(w, v);
    else
        csv_put_double(w, (double)v + origin);
}

static void put_function(csv_writer *w, const dataset *d, int64_t i) {
    for (int64_t at = d->start[i]; at < d->start[i + 1]; at++) {
        if (d->ids)
            csv_put_text(w, d->ids[i]);
        else
            csv_put_integer(w, i);
        const float *x = dataset_x(d, i) + (at - d->start[i]) * d->x_dim;
        for (int32_t c = 0; c < d->x_dim; c++) put_number(w, x[c], d->x_origin[c]);
        put_number(w, d->y[at], d->y_origin);
        csv_end_row(w);
    }
}

mnp_status dataset_write_csv(env *e, const dataset *d, const char *path) {
    fsio_writer file;
    buf rows;
    csv_writer w;
    MNP_TRY(fsio_begin(e, path, &file));
    buf_init(&rows, e);
    csv_writer_init(&w, &rows, ',');
    csv_put_text(&w, free_name(d));
    for (int32_t c = 0; c < d->x_dim; c++) csv_put_text(&w, d->x_names[c]);
    csv_put_text(&w, d->y_name);
    csv_end_row(&w);
    mnp_status status = MNP_OK;
    for (int64_t i = 0; i < d->functions && status == MNP_OK; i++) {
        put_function(&w, d, i);
        status = rows.status;
        if (status == MNP_OK) status = fsio_append(&file, buf_str(&rows), rows.len);
        buf_clear(&rows);
    }
    buf_free(&rows);
    if (status == MNP_OK) return fsio_commit(&file);
    fsio_abort(&file);
    return status;
}
