/* families.c: the table of built-in families, their names with constants, and drawing many
 * functions at once over the pool. See dataset.h. */
#include <string.h>

#include "base/pool_errors.h"
#include "comm/comm.h"
#include "data/dataset.h"
#include "util/text.h"

#define FAMILY(name) extern const family_def family_##name;
#include "data/families.def"
#undef FAMILY

const family_def *family_at(int index) {
    static const family_def *const table[] = {
#define FAMILY(name) &family_##name,
#include "data/families.def"
#undef FAMILY
    };
    return index >= 0 && (size_t)index < sizeof table / sizeof *table ? table[index] : NULL;
}

const family_def *family_find(const char *name) {
    for (int i = 0; family_at(i); i++)
        if (strcmp(family_at(i)->name, name) == 0) return family_at(i);
    return NULL;
}

int64_t family_functions(data_split split) {
    return split == DATA_TRAIN ? 50000 : 5000;
}

int32_t family_x_dim(const family_def *def) {
    return def->x_dim > 0 ? def->x_dim : 1;
}

/* ---- names ----------------------------------------------------------------------------------- */

static option_view view_of(const family_def *def, void *opts) {
    return (option_view){def->options, def->n_options, opts};
}

static mnp_status no_family(env *e, const char *name) {
    char meant[TEXT_NAMES];
    text_nearest near = text_nearest_to(name);
    for (int i = 0; family_at(i); i++) text_nearest_try(&near, family_at(i)->name);
    return env_fail(e, MNP_EINVAL, "there is no family %.60s%s", name,
                    text_meant_or_all(meant, &near));
}

/* "key=value,key=value" into the options. */
static mnp_status parse_constants(env *e, const option_view *view, const char *text) {
    char key[OPTION_NAME_MAX], value[OPTION_NAME_MAX];
    for (;;) {
        size_t length = strcspn(text, ","), equals = strcspn(text, "=");
        if (equals == 0 || equals >= length)
            return env_fail(e, MNP_EINVAL, "constant=value is wanted, not \"%.*s\"",
                            (int)(length < 60 ? length : 60), text);
        if (equals >= sizeof key || length - equals > sizeof value)
            return env_fail(e, MNP_EINVAL, "\"%.60s\" is too long", text);
        memcpy(key, text, equals);
        key[equals] = '\0';
        memcpy(value, text + equals + 1, length - equals - 1);
        value[length - equals - 1] = '\0';
        MNP_TRY(options_set(e, view, 1, key, value));
        if (!text[length]) return MNP_OK;
        text += length + 1;
    }
}

/* The constants whose text differs from the default's. */
static void print_constants(buf *out, const family_def *def, void *opts, void *defaults) {
    buf mine, usual;
    buf_init(&mine, out->e);
    buf_init(&usual, out->e);
    char before = ':';
    for (size_t i = 0; i < def->n_options; i++) {
        buf_clear(&mine);
        buf_clear(&usual);
        options_print(&mine, &(option_view){&def->options[i], 1, opts}, 1);
        options_print(&usual, &(option_view){&def->options[i], 1, defaults}, 1);
        if (mine.status != MNP_OK) out->status = mine.status;
        if (usual.status != MNP_OK) out->status = usual.status;
        if (strcmp(buf_str(&mine), buf_str(&usual)) == 0) continue;
        buf_append(out, &before, 1);
        buf_text(out, buf_str(&mine));
        before = ',';
    }
    buf_free(&mine);
    buf_free(&usual);
}

static mnp_status canonical_name(env *e, family *f) {
    const family_def *def = f->def;
    buf out;
    buf_init(&out, e);
    void *defaults = env_alloc(e, 1, def->opts_size, "a family's constants");
    mnp_status status = defaults ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) {
        option_view view = view_of(def, defaults);
        status = options_defaults(e, &view, 1);
    }
    if (status == MNP_OK) {
        buf_text(&out, def->name);
        print_constants(&out, def, f->opts, defaults);
        status = out.status;
    }
    if (status == MNP_OK) {
        f->name = env_strdup(e, buf_str(&out));
        if (!f->name) status = MNP_ENOMEM;
    }
    env_free(e, defaults);
    buf_free(&out);
    return status;
}

static mnp_status set_constants(env *e, family *f, const char *constants) {
    f->opts = env_alloc(e, 1, f->def->opts_size, "a family's constants");
    if (!f->opts) return MNP_ENOMEM;
    option_view view = view_of(f->def, f->opts);
    MNP_TRY(options_defaults(e, &view, 1));
    if (constants) MNP_TRY(parse_constants(e, &view, constants));
    return f->def->check ? f->def->check(e, f->opts) : MNP_OK;
}

mnp_status family_parse(env *e, const char *what, family *out) {
    char name[OPTION_NAME_MAX];
    size_t length = strcspn(what, ":");
    *out = (family){0};
    if (length >= sizeof name) return no_family(e, what);
    memcpy(name, what, length);
    name[length] = '\0';
    out->def = family_find(name);
    if (!out->def) return no_family(e, name);
    mnp_status status = set_constants(e, out, what[length] ? what + length + 1 : NULL);
    if (status == MNP_OK)
        status = canonical_name(e, out);
    else
        env_context(e, status, "%s", name);
    if (status != MNP_OK) family_free(e, out);
    return status;
}

void family_free(env *e, family *f) {
    env_free(e, f->opts);
    env_free(e, f->name);
    *f = (family){0};
}

/* ---- drawing over the pool ------------------------------------------------------------------- */

typedef struct drawing {
    const family *f;
    uint64_t seed;
    data_split split;
    int64_t first, count, chunk, points;
    float *x, *y;
    pool_errors errors;
} drawing;

static void draw_chunk(void *arg, int64_t task, int worker) {
    drawing *d = arg;
    pool_seat seat;
    env own;
    if (!pool_errors_enter(&d->errors, task, worker, "drawing functions was cancelled", &seat,
                           &own))
        return;
    int64_t at = task * d->chunk, n = d->count - at < d->chunk ? d->count - at : d->chunk;
    const family_def *def = d->f->def;
    mnp_status status = def->draw(&own, d->f->opts, d->seed, d->split, d->first + at, n,
                                  d->x + at * d->points * family_x_dim(def), d->y + at * d->points);
    if (status != MNP_OK) pool_errors_fail(&d->errors, task, status, own.error);
}

enum { CHUNK = 20 }; /* functions of one task, where a family has no groups */

static mnp_status draw_here(env *e, pool *pool, const family *f, uint64_t seed, data_split split,
                            int64_t first, int64_t count, float *x, float *y) {
    int64_t group = f->def->group;
    drawing d = {.f = f,
                 .seed = seed,
                 .split = split,
                 .first = first,
                 .count = count,
                 .chunk = group > 1 ? group : CHUNK,
                 .points = f->def->points(f->opts),
                 .x = x,
                 .y = y};
    pool_errors_begin(&d.errors, e);
    int64_t tasks = (count + d.chunk - 1) / d.chunk;
    if (pool)
        pool_run(pool, tasks, draw_chunk, &d);
    else
        for (int64_t t = 0; t < tasks; t++) draw_chunk(&d, t, 0);
    mnp_status status = pool_errors_end(&d.errors);
    return status == MNP_OK ? MNP_OK : env_fail(e, status, "%s: %s", f->name, d.errors.error);
}

/* The ranks of a job draw a part each and give it to the others: that is quicker, and functions do
 * not depend on who draws them. */
mnp_status family_draw(env *e, pool *pool, const family *f, uint64_t seed, data_split split,
                       int64_t first, int64_t count, float *x, float *y) {
    int64_t group = f->def->group, points = f->def->points(f->opts);
    if (first < 0 || count < 0 || first % group != 0 || first + count > INT32_MAX)
        return env_fail(e, MNP_EINVAL,
                        "functions %lld .. +%lld of %s: the first must be a multiple of %lld, and "
                        "there are no more than %d",
                        (long long)first, (long long)count, f->name, (long long)group, INT32_MAX);
    comm_span own = comm_split(e, count, group);
    int64_t wide = points * family_x_dim(f->def);
    MNP_TRY(draw_here(e, pool, f, seed, split, first + own.lo, own.hi - own.lo, x + own.lo * wide,
                      y + own.lo * points));
    MNP_TRY(comm_gather_parts(e, x, count, group, (size_t)wide * sizeof *x, "the functions"));
    return comm_gather_parts(e, y, count, group, (size_t)points * sizeof *y, "the functions");
}
