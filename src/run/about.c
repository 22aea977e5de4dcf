/* about.c: see about.h. */
#include "run/about.h"

#include <math.h>
#include <string.h>

#include "data/images.h"
#include "data/roles.h"
#include "data/truth.h"
#include "run/train.h"
#include "util/text.h"

/* The built-in family, for family_free(); false: it is none. Errors stay in e, a copy. */
static bool family_of(const model *m, env *e, family *out) {
    const char *what = model_note_get(m, "data");
    *e = m->env;
    return what && !model_note_get(m, "table") && !images_named(what) &&
           family_parse(e, what, out) == MNP_OK;
}

static bool range_of_table(const model *m, const char *text, int64_t k, double *lo, double *hi) {
    env e = m->env;
    roles table;
    if (roles_parse(&e, text, &table) != MNP_OK) return false;
    const role *x = roles_at(&table, k);
    bool known = x && x->unit != ROLE_CATEGORY && x->lo <= x->hi;
    if (known) *lo = x->lo, *hi = x->hi;
    roles_free(&table);
    return known;
}

bool about_range(const model *m, int64_t k, double *lo, double *hi) {
    const char *table = model_note_get(m, "table");
    env e;
    family f;
    if (table) return range_of_table(m, table, k, lo, hi);
    if (k < 0 || k >= m->spec.x_dim || !family_of(m, &e, &f)) return false;
    bool known = f.def->range != NULL;
    option_range x = known ? f.def->range(f.opts) : (option_range){0};
    if (known) *lo = x.lo, *hi = x.hi;
    family_free(&e, &f);
    return known;
}

/* The option of its training; -1:-1 leaves it to the data, and so does a model without training. */
static option_span context_asked(const model *m) {
    const char *text = model_note_get(m, "train");
    env e = m->env;
    train_spec spec;
    option_view view = train_view(&spec);
    bool read = options_defaults(&e, &view, 1) == MNP_OK && text &&
                options_parse(&e, &view, 1, text) == MNP_OK;
    return read ? spec.context : (option_span){-1, -1};
}

int64_t about_context_max(const model *m) {
    option_span asked = context_asked(m);
    int64_t rows, cols;
    env e;
    family f;
    if (asked.hi >= 0) return asked.hi;
    if (about_images(m))
        return images_context_max(about_pixels(m, &rows, &cols) ? rows * cols : INT64_MAX);
    if (!family_of(m, &e, &f)) return 0;
    int64_t most = f.def->context(f.opts).hi;
    family_free(&e, &f);
    return most;
}

double about_noise(const model *m) {
    env e;
    family f;
    if (about_rivers(m)) return IMAGES_RIVER_NOISE;
    if (!family_of(m, &e, &f)) return NAN;
    double noise = truth_noise(&f);
    family_free(&e, &f);
    return noise;
}

/* ---- images ---------------------------------------------------------------------------------- */

bool about_images(const model *m) {
    const char *data = model_note_get(m, "data"), *x = model_note_get(m, "x_names");
    return data ? images_named(data) : x && strcmp(x, "row,col") == 0;
}

bool about_rivers(const model *m) {
    return about_images(m) && !model_note_get(m, IMAGES_VALUES);
}

/* "mnp gen geofluvial --size 128 ...": square images. */
static bool size_of_command(const char *text, int64_t *rows, int64_t *cols) {
    static const char flag[] = " --size ";
    char word[TEXT_NUMBER], both[2 * TEXT_NUMBER];
    const char *at = strstr(text, flag);
    if (!at) return false;
    at += sizeof flag - 1;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(at, " "), at);
    snprintf(both, sizeof both, "%sx%s", word, word);
    return images_noted_size(both, rows, cols);
}

bool about_pixels(const model *m, int64_t *rows, int64_t *cols) {
    const char *data = model_note_get(m, "data"), *size = model_note_get(m, IMAGES_SIZE);
    const char *made = model_note_get(m, "data_made_by");
    env e = m->env;
    if (!about_images(m)) return false;
    if (size) return images_noted_size(size, rows, cols);
    if (data && images_drawn_size(&e, data, rows, cols)) return true;
    return made && size_of_command(made, rows, cols);
}
