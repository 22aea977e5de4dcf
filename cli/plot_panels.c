/* plot_panels.c: what pictures of curves show: panels by the group column, held-out points, which
 * input runs along the axis and where the others stay, and training curves. See figure.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/figure.h"
#include "cli/outputs.h"
#include "util/date.h"
#include "util/json.h"

enum { CURVES_USUAL = 40, GRID_USUAL = 200, GRID_MOST = 5000 };

/* ---- small parts ----------------------------------------------------------------------------- */

/* Is input k one value of a category, "soil=clay"? Its name then ends before the '='. */
static const char *level_of(const point_names *n, int64_t k) {
    return strchr(n->x[k], '=');
}

bool panels_output(const panels *s, int64_t k) {
    return k >= s->q->names.x_dim - s->outputs;
}

/* A number, or a date for an input of dates. */
static bool read_value(const panels *s, int64_t k, const char *text, size_t length, double *out) {
    char word[64], zero[64];
    if (length == 0 || length >= sizeof word) return false;
    memcpy(word, text, length);
    word[length] = '\0';
    date_kind kind = k < 0 ? DATE_NONE : date_parse(word, out);
    if (kind == DATE_NONE) return fsio_parse_double(word, length, out) && isfinite(*out);
    mnp_model_text(s->q->model, k, 0, zero, sizeof zero);
    date_kind unit = date_parse(zero, &(double){0});
    if (kind == DATE_DAY && unit == DATE_MOMENT) *out *= DATE_DAY_SECONDS;
    if (kind == DATE_MOMENT && unit == DATE_DAY) *out /= DATE_DAY_SECONDS;
    return unit != DATE_NONE;
}

/* "lo:hi" of numbers or dates, which may have colons of their own. */
static bool read_span(const panels *s, int64_t k, const char *text, size_t length, double *lo,
                      double *hi) {
    for (size_t at = 0; at < length; at++)
        if (text[at] == ':' && read_value(s, k, text, at, lo) &&
            read_value(s, k, text + at + 1, length - at - 1, hi))
            return true;
    return false;
}

static int read_limits(cli *c, const panels *s, const char *flag, int64_t k, double limits[2]) {
    const char *text = cli_text(c, flag, NULL);
    if (!text) return 0;
    if (read_span(s, k, text, strlen(text), &limits[0], &limits[1]) && limits[0] < limits[1])
        return 0;
    return cli_fail(c, EXIT_USAGE, "--%s wants lo:hi with lo < hi, not '%s'", flag, text);
}

/* ---- panels ---------------------------------------------------------------------------------- */

static int new_panel(cli *c, panels *s, const char *name, panel **out) {
    panel *p = &s->panel[s->count];
    *out = NULL;
    if (s->count == FIGURE_CONTEXTS_MAX) {
        s->left_out++;
        return 0;
    }
    *p = (panel){.scale = 1};
    p->name = name && *name ? env_strdup(&c->env, name) : NULL;
    if (name && *name && !p->name) return points_failed(c);
    s->count++;
    *out = p;
    return 0;
}

/* A model that knows its table reads others as that one: a panel for each curve of the file. */
static int add_table(cli *c, panels *s, const char *path, mnp_table **t) {
    int code = points_open(c, s->q->model, path, true, NULL, t);
    int64_t dims = s->q->names.x_dim, groups = code == 0 ? mnp_table_groups(*t) : 0;
    if (code == 0 && groups == 0) { /* a header alone is an empty context */
        panel *p;
        return new_panel(c, s, NULL, &p);
    }
    for (int64_t g = 0; g < groups && code == 0; g++) {
        panel *p;
        code = new_panel(c, s, mnp_table_group_name(*t, g), &p);
        if (code == 0 && p) code = points_of_curve(c, *t, g, 0, dims, &p->context);
    }
    return code;
}

static int add_file(cli *c, panels *s, const char *path) {
    panel *p;
    int first = s->count;
    if (!mnp_model_note(s->q->model, "table")) {
        int code = new_panel(c, s, NULL, &p);
        if (code == 0 && p) code = points_read(c, &s->q->names, path, true, &p->context);
        panels_fix(s, p);
        return code;
    }
    mnp_table *t = NULL;
    int code = add_table(c, s, path, &t);
    for (int k = first; k < s->count && code == 0; k++) panels_fix(s, &s->panel[k]);
    mnp_table_destroy(t);
    return code;
}

int panels_contexts(cli *c, panels *s) {
    const char *list = cli_text(c, "context", NULL);
    panel *p;
    int code = 0;
    if (cli_has(c, "prior") || (!list && !s->truth)) {
        code = new_panel(c, s, NULL, &p);
        panels_fix(s, p);
    }
    char *copy = list ? env_strdup(&c->env, list) : NULL;
    if (list && !copy) return points_failed(c);
    for (char *at = copy; at && code == 0;) {
        char *comma = strchr(at, ',');
        if (comma) *comma++ = '\0';
        code = add_file(c, s, at);
        at = comma;
    }
    env_free(&c->env, copy);
    return code;
}

void panels_free(cli *c, panels *s) {
    for (int k = 0; k < FIGURE_CONTEXTS_MAX; k++) {
        panel *p = &s->panel[k];
        env_free(&c->env, p->name);
        if (!p->borrowed) points_free(c, &p->context);
        if (!p->borrowed) points_free(c, &p->held);
        *p = (panel){0};
    }
    points_free(c, &s->at);
    env_free(&c->env, s->sets);
    env_free(&c->env, s->set_values);
    s->sets = NULL;
    s->set_values = NULL;
}

/* ---- held-out points ------------------------------------------------------------------------- */

/* A file of whole curves has the observed points too: they are no test. */
static void drop_observed(panel *p, int64_t dims) {
    int64_t kept = 0;
    for (int64_t i = 0; i < p->held.n; i++) {
        bool seen = false;
        for (int64_t j = 0; j < p->context.n && !seen; j++)
            seen = p->context.y[j] == p->held.y[i] &&
                   memcmp(p->context.x + j * dims, p->held.x + i * dims,
                          (size_t)dims * sizeof *p->held.x) == 0;
        if (seen) continue;
        memmove(p->held.x + kept * dims, p->held.x + i * dims, (size_t)dims * sizeof *p->held.x);
        p->held.y[kept++] = p->held.y[i];
    }
    p->held.n = kept;
}

static panel *panel_named(panels *s, const char *name) {
    for (int k = 0; k < s->count; k++)
        if (s->panel[k].name && strcmp(s->panel[k].name, name) == 0) return &s->panel[k];
    return NULL;
}

/* Held-out points go to the panel of their curve. Without --context every curve gets one. */
static int take_truth(cli *c, panels *s, const mnp_table *t) {
    int64_t dims = s->q->names.x_dim, strangers = 0;
    bool own = !cli_has(c, "context") && !cli_has(c, "prior");
    int code = 0;
    for (int64_t g = 0; g < mnp_table_groups(t) && code == 0; g++) {
        const char *name = mnp_table_group_name(t, g);
        panel *p = *name ? panel_named(s, name) : NULL;
        if (!p && s->count == 1 && mnp_table_groups(t) == 1) p = &s->panel[0];
        if (!p && own) {
            code = new_panel(c, s, name, &p);
            if (code == 0 && p) code = points_of_curve(c, t, g, 0, dims, &p->held);
            if (code == 0 && p) panels_fix(s, p);
        } else if (p) {
            code = points_of_curve(c, t, g, 0, dims, &p->held);
            drop_observed(p, dims);
        } else {
            strangers++;
        }
    }
    if (strangers && !s->left_out)
        cli_note(c, "note: %lld curve%s of --truth %s in no panel", (long long)strangers,
                 strangers == 1 ? "" : "s", strangers == 1 ? "is" : "are");
    return code;
}

int panels_truth(cli *c, panels *s) {
    if (!s->truth) return 0;
    if (!mnp_model_note(s->q->model, "table")) {
        panel *p = &s->panel[0];
        int code = s->count == 0 ? new_panel(c, s, NULL, &p) : 0;
        if (code == 0 && s->count != 1)
            code = cli_fail(c, EXIT_USAGE, "--truth wants one context: this model knows no groups");
        if (code == 0) code = points_read(c, &s->q->names, s->truth, true, &p->held);
        if (code == 0) drop_observed(p, s->q->names.x_dim);
        return code;
    }
    mnp_table *t = NULL;
    int code = points_open(c, s->q->model, s->truth, true, NULL, &t);
    if (code == 0) code = take_truth(c, s, t);
    mnp_table_destroy(t);
    return code;
}

/* ---- outputs --------------------------------------------------------------------------------- */

static mnp_status read_units(cli *c, panels *s, const json_value *outputs) {
    size_t count = 0;
    if (!outputs) return MNP_OK;
    MNP_TRY(json_array(&c->env, outputs, "outputs", &count));
    if ((int64_t)count > s->q->names.x_dim)
        return env_fail(&c->env, MNP_EFORMAT, "the model has more outputs than inputs");
    for (size_t k = 0; k < count; k++) {
        const json_value *one = json_at(outputs, k);
        double *unit = s->unit[(size_t)s->q->names.x_dim - count + k];
        MNP_TRY(json_number(&c->env, json_get(one, "shift"), "shift", &unit[0]));
        MNP_TRY(json_number(&c->env, json_get(one, "scale"), "scale", &unit[1]));
    }
    s->outputs = (int64_t)count;
    return MNP_OK;
}

/* A grid would know the units too, but there is none where a category changes within a curve. */
int panels_units(cli *c, panels *s) {
    const char *note = mnp_model_note(s->q->model, "table");
    json_doc *doc = NULL;
    if (!note) return 0;
    mnp_status status = json_parse(&c->env, "the model's note table", note, strlen(note), &doc);
    if (status == MNP_OK) status = read_units(c, s, json_get(json_root(doc), "outputs"));
    json_destroy(doc);
    return status == MNP_OK ? 0 : points_failed(c);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* "temp=20": the inputs that it fixes, a number or all values of a category. */
static int fix_word(cli *c, panels *s, const char *word, size_t length) {
    const point_names *n = &s->q->names;
    const char *equals = memchr(word, '=', length);
    size_t name = equals ? (size_t)(equals - word) : length, rest = equals ? length - name - 1 : 0;
    bool known = false, hit = false;
    for (int64_t k = 0; k < n->x_dim && equals; k++) {
        const char *level = level_of(n, k);
        if (level && (size_t)(level - n->x[k]) == name && strncmp(n->x[k], word, name) == 0) {
            bool this = strlen(level + 1) == rest && strncmp(level + 1, equals + 1, rest) == 0;
            s->asked[k] = this;
            s->is_asked[k] = known = true;
            hit |= this;
        } else if (!level && strlen(n->x[k]) == name && strncmp(n->x[k], word, name) == 0) {
            known = s->is_asked[k] = true;
            hit = read_value(s, k, equals + 1, rest, &s->asked[k]);
        }
    }
    if (known && hit) return 0;
    if (known)
        return cli_fail(c, EXIT_USAGE, "--at %.*s: the model knows no such value of %.*s",
                        (int)length, word, (int)name, word);
    return cli_fail(c, EXIT_USAGE,
                    "--at wants NAME=VALUE for an input of the model ('mnp info'), "
                    "not '%.*s'",
                    (int)length, word);
}

int panels_at(cli *c, panels *s) {
    const char *text = cli_text(c, "at", NULL);
    while (text && *text) {
        size_t length = strcspn(text, ",");
        int code = fix_word(c, s, text, length);
        if (code != 0) return code;
        text += length + (text[length] == ',');
    }
    return 0;
}

/* Does input k change among the points? */
static bool changes(const points *p, int64_t dims, int64_t k) {
    for (int64_t i = 1; i < p->n; i++)
        if (p->x[i * dims + k] != p->x[k]) return true;
    return false;
}

/* The input along the axis: the one number that is left, or the first that changes in a curve. */
int panels_along(cli *c, panels *s) {
    const point_names *n = &s->q->names;
    int64_t left = 0, only = -1;
    for (int64_t k = 0; k < n->x_dim; k++)
        if (!level_of(n, k) && !s->is_asked[k]) left++, only = only < 0 ? k : only;
    s->along = only;
    if (left == 0)
        return cli_fail(c, EXIT_USAGE, "--at fixes every input: one must run along the axis");
    for (int64_t k = 0; k < n->x_dim && left > 1; k++) {
        bool free = !level_of(n, k) && !s->is_asked[k], moves = false;
        for (int j = 0; j < s->count && free; j++)
            moves |= changes(&s->panel[j].context, n->x_dim, k) ||
                     changes(&s->panel[j].held, n->x_dim, k);
        if (!moves) continue;
        s->along = k;
        return 0;
    }
    return 0;
}

/* Where the inputs of a panel stay that do not run along the axis: --at, what the curve's own rows
 * say, or of several outputs the first. y is in the units of that output. */
void panels_fix(const panels *s, panel *p) {
    const point_names *n = &s->q->names;
    if (!p) return;
    const points *own = p->context.n ? &p->context : &p->held;
    bool output_asked = false, first = true;
    for (int64_t k = 0; k < n->x_dim; k++) output_asked |= panels_output(s, k) && s->is_asked[k];
    for (int64_t k = 0; k < n->x_dim; k++) {
        if (s->is_asked[k]) {
            p->fixed[k] = s->asked[k];
        } else if (panels_output(s, k) && !output_asked) {
            p->fixed[k] = first;
            first = false;
        } else if (own->n) {
            p->fixed[k] = own->x[k];
        } else {
            p->fixed[k] = NAN; /* only a fault where it does not run along the axis */
        }
        if (panels_output(s, k) && p->fixed[k] == 1)
            p->shift = s->unit[k][0], p->scale = s->unit[k][1];
    }
}

/* One output is drawn: says which, where nobody did. */
static void say_output(const cli *c, const panels *s) {
    const point_names *n = &s->q->names;
    int64_t first = n->x_dim - s->outputs;
    bool asked = s->outputs < 2;
    for (int64_t k = first; k < n->x_dim; k++) asked |= s->is_asked[k];
    if (asked || !level_of(n, first) || !level_of(n, first + 1)) return;
    cli_note(c, "note: the picture shows %s; --at %s shows another output", level_of(n, first) + 1,
             n->x[first + 1]);
}

static int check_fixed(cli *c, const panels *s) {
    const point_names *n = &s->q->names;
    for (int j = 0; j < s->count && n->x_dim > 1; j++)
        for (int64_t k = 0; k < n->x_dim; k++) {
            if (k == s->along) continue;
            const char *level = level_of(n, k);
            int name = level ? (int)(level - n->x[k]) : (int)strlen(n->x[k]);
            if (isnan(s->panel[j].fixed[k]))
                return cli_fail(c, EXIT_USAGE,
                                "the model has %lld inputs: say where %.*s stays, --at %.*s=VALUE",
                                (long long)n->x_dim, name, n->x[k], name, n->x[k]);
            if (!s->is_asked[k] && !panels_output(s, k) &&
                changes(&s->panel[j].context, n->x_dim, k)) {
                cli_note(c,
                         "note: %.*s changes within a curve; the picture has it stay at its first "
                         "value (--at %.*s=VALUE chooses another)",
                         name, n->x[k], name, n->x[k]);
                return 0;
            }
        }
    return 0;
}

/* ---- places ---------------------------------------------------------------------------------- */

static void widen(const points *p, int64_t dims, int64_t k, double range[2]) {
    for (int64_t i = 0; i < p->n; i++) {
        range[0] = fmin(range[0], p->x[i * dims + k]);
        range[1] = fmax(range[1], p->x[i * dims + k]);
    }
}

/* The range of the training curves and of all points that are drawn. */
static void usual_range(cli *c, const panels *s, double range[2]) {
    int64_t dims = s->q->names.x_dim;
    bool known = s->data[0] < s->data[1];
    places_span span = places_nothing();
    if (known)
        range[0] = s->data[0], range[1] = s->data[1];
    else if (dims <= 2 && places_of_data(c, s->q->model, dims, &span))
        range[0] = span.lo[s->along], range[1] = span.hi[s->along];
    else
        range[0] = INFINITY, range[1] = -INFINITY;
    if (!known && !(range[0] < range[1]) && dims == 1) range[0] = -2, range[1] = 2;
    for (int j = 0; j < s->count; j++) {
        widen(&s->panel[j].context, dims, s->along, range);
        widen(&s->panel[j].held, dims, s->along, range);
    }
    if (known) return;
    span.lo[0] = range[0], span.hi[0] = range[1];
    places_round(&span, 1);
    range[0] = span.lo[0], range[1] = span.hi[0];
}

/* "lo:hi:n", or n places over the usual range. */
int panels_places(cli *c, panels *s) {
    const char *grid = cli_text(c, "grid", NULL), *last = grid ? strrchr(grid, ':') : NULL;
    double range[2] = {0, 0}, count = GRID_USUAL;
    int code = check_fixed(c, s);
    if (code == 0) say_output(c, s);
    if (code != 0) return code;
    mnp_model_range(s->q->model, s->along, &s->data[0], &s->data[1]);
    if (grid) {
        bool good = last && fsio_parse_double(last + 1, strlen(last + 1), &count) &&
                    count == floor(count) &&
                    read_span(s, s->along, grid, (size_t)(last - grid), &range[0], &range[1]) &&
                    range[0] <= range[1];
        if (!good)
            return cli_fail(c, EXIT_USAGE,
                            "--grid wants lo:hi:n with lo <= hi and n >= 1 for the one input, not "
                            "'%s'",
                            grid);
    } else if (s->limits[0][0] < s->limits[0][1]) {
        range[0] = s->limits[0][0], range[1] = s->limits[0][1];
    } else {
        usual_range(c, s, range);
    }
    if (cli_bad(c)) return c->status;
    if (!(count >= 2 && count <= GRID_MOST))
        return cli_fail(c, EXIT_USAGE, "a picture wants from 2 to %d places, not %.0f", GRID_MOST,
                        count);
    if (!(range[0] < range[1]))
        return cli_fail(c, EXIT_USAGE, "a picture wants a range of %s, not one value",
                        s->q->names.x[s->along]);
    int64_t n = (int64_t)count;
    return points_span(c, 1, &range[0], &range[1], &n, &s->at);
}

/* ---- training curves ------------------------------------------------------------------------- */

typedef struct xy {
    double x, y;
} xy;

static int by_x(const void *a, const void *b) {
    const xy *u = a, *v = b;
    return (u->x > v->x) - (u->x < v->x);
}

/* Points of curve i that belong to the picture's output, in the order of x. */
static int take_curve(cli *c, const panels *s, const mnp_data *d, int64_t i, xy *work, int64_t *n) {
    const point_names *names = &s->q->names;
    const panel *p = &s->panel[0];
    const float *x, *y;
    int64_t all, dims = names->x_dim;
    mnp_status status = mnp_data_function(c->ctx, d, i, &all, &x, &y);
    if (status != MNP_OK) return cli_failed(c, status);
    *n = 0;
    for (int64_t j = 0; j < all; j++) {
        bool shown = true;
        for (int64_t k = 0; k < dims; k++)
            shown &= !panels_output(s, k) || (double)x[j * dims + k] == p->fixed[k];
        if (!shown) continue;
        double at = (double)x[j * dims + s->along] + mnp_data_x_origin(d, s->along);
        double raw = (double)y[j] + mnp_data_y_origin(d);
        work[(*n)++] = (xy){at, p->shift + p->scale * raw};
    }
    qsort(work, (size_t)*n, sizeof *work, by_x);
    return 0;
}

static int fill_curves(cli *c, panels *s, const mnp_data *d, int64_t count) {
    int64_t functions = mnp_data_functions(d), used = 0;
    size_t points_all = (size_t)mnp_data_points(d) + 1;
    xy *work = env_alloc(&c->env, points_all, sizeof *work, "training curves");
    s->set_values = env_alloc(&c->env, 2 * points_all, sizeof(double), "training curves");
    s->sets = env_alloc(&c->env, (size_t)count, sizeof *s->sets, "training curves");
    int code = work && s->set_values && s->sets ? 0 : points_failed(c);
    for (int64_t k = 0; k < count && code == 0; k++) {
        int64_t n = 0;
        code = take_curve(c, s, d, k * functions / count, work, &n);
        double *x = s->set_values + used, *y = x + points_all;
        for (int64_t j = 0; j < n; j++) x[j] = work[j].x, y[j] = work[j].y;
        s->sets[s->n_sets++] = (mnp_set){n, x, y};
        used += n;
    }
    env_free(&c->env, work);
    return code;
}

/* By default those of a table that can still be read; with --curves any. */
int panels_curves(cli *c, panels *s) {
    int64_t count = cli_int(c, "curves", CURVES_USUAL, 0, 10000);
    bool asked = cli_has(c, "curves");
    if (cli_bad(c)) return c->status;
    const char *what = mnp_model_note(s->q->model, "data");
    if (count == 0 || (!asked && (!what || !mnp_model_note(s->q->model, "table")))) return 0;
    mnp_data *d = NULL;
    mnp_status status =
        mnp_data_reopen(c->ctx, s->q->model, MNP_TRAIN, asked ? count : 0, NULL, &d);
    if (status != MNP_OK) return asked ? cli_failed(c, status) : 0;
    int code = 0;
    if (mnp_data_x_dim(d) == s->q->names.x_dim && mnp_data_functions(d) > 0) {
        int64_t have = mnp_data_functions(d);
        code = fill_curves(c, s, d, count < have ? count : have);
    }
    mnp_data_destroy(d);
    return code;
}

/* ---- the look -------------------------------------------------------------------------------- */

static int read_bands(cli *c, panels *s) {
    const char *text = cli_text(c, "bands", "50,80,95");
    double shares[FIGURE_BANDS_MAX];
    int count = 0;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        double v;
        bool good =
            count < FIGURE_BANDS_MAX && fsio_parse_double(at, length, &v) && v > 0 && v < 100;
        if (!good)
            return cli_fail(c, EXIT_USAGE,
                            "--bands wants up to %d shares in percent, such as 50,80,95, not '%s'",
                            FIGURE_BANDS_MAX, text);
        shares[count++] = v / 100;
        at += length + (at[length] == ',');
    }
    for (int k = 0; k < count; k++) { /* widest first */
        int at = k;
        while (at > 0 && s->share[at - 1] < shares[k]) s->share[at] = s->share[at - 1], at--;
        s->share[at] = shares[k];
    }
    s->bands = count;
    return 0;
}

int panels_look(cli *c, panels *s) {
    s->title = cli_text(c, "title", NULL);
    s->label[0] = cli_text(c, "xlabel", s->q->names.x[s->along]);
    const char *y = s->q->names.y;
    for (int64_t k = 0; k < s->q->names.x_dim; k++) /* of several outputs its own name */
        if (panels_output(s, k) && s->panel[0].fixed[k] == 1 && level_of(&s->q->names, k))
            y = level_of(&s->q->names, k) + 1;
    s->label[1] = cli_text(c, "ylabel", y);
    s->log_y = cli_has(c, "ylog");
    int code = read_limits(c, s, "xlim", s->along, s->limits[0]);
    if (code == 0) code = read_limits(c, s, "ylim", -1, s->limits[1]);
    if (code == 0 && s->log_y && s->limits[1][0] < s->limits[1][1] && !(s->limits[1][0] > 0))
        code = cli_fail(c, EXIT_USAGE, "--ylog wants a --ylim above 0");
    return code == 0 ? read_bands(c, s) : code;
}

bool panels_dates(const panels *s, mnp_plot_time *unit) {
    char zero[64];
    mnp_model_text(s->q->model, s->along, 0, zero, sizeof zero);
    date_kind kind = date_parse(zero, &(double){0});
    *unit = kind == DATE_MOMENT ? MNP_PLOT_SECONDS : MNP_PLOT_DAYS;
    return kind != DATE_NONE;
}
