/* service_request.c: the fields of requests, and how they are read. */
#include <math.h>
#include <string.h>

#include "serve/service_internal.h"
#include "serve/service_points.h"
#include "util/text.h"

/* ---- the table ------------------------------------------------------------------------------- */

enum {
    PREDICT = 1 << VERB_PREDICT,
    SAMPLE = 1 << VERB_SAMPLE,
    CHAIN = 1 << VERB_CHAIN,
    SCORE = 1 << VERB_SCORE,
    MAP = 1 << VERB_MAP,
    ASKED = PREDICT | SAMPLE | CHAIN,
    DRAWN = ASKED | SCORE | MAP
};

#define AT(member)      offsetof(request, member)
#define UP_TO(member)   offsetof(service_limits, member)
#define WHOLE_MAX       9007199254740991.0 /* 2^53 - 1: what JSON carries exactly */
#define REAL_MAX        1e30
#define ANGLE_MAX       1e6
#define UNBOUNDED(a, b) a, b, FIELD_NO_LIMIT

/* clang-format off */
static const field_def fields[] = {
    {"model", FIELD_MODEL, DRAWN, 0, UNBOUNDED(0, 0), NULL, "its name, as in models, or oracle:FAMILY"},
    {"context", FIELD_SET, ASKED | SCORE, AT(context), 0, 0, UP_TO(context), "{\"x\":[],\"y\":[]}", "observed points; none: the prior"},
    {"targets", FIELD_SET, SCORE, AT(targets), 1, 0, UP_TO(context), NULL, "the points to score, one or more"},
    {"at", FIELD_AT, ASKED, 0, 1, 0, UP_TO(places), NULL, "the places asked about: this or grid"},
    {"grid", FIELD_GRID, ASKED, 0, 1, 0, UP_TO(places), NULL, "n places from lo to hi, [lo, hi, n]; one such list for each of several inputs, the last running fastest"},
    {"samples", FIELD_INTEGER, DRAWN, AT(samples), 1, 0, UP_TO(samples), "50", "functions that are drawn"},
    {"seed", FIELD_INTEGER, DRAWN, AT(seed), UNBOUNDED(0, WHOLE_MAX), "0", "of their random numbers"},
    {"condition", FIELD_CONDITION, DRAWN, 0, UNBOUNDED(0, 0), NULL, "how functions are drawn given the points; by default what models say, and network for score and map"},
    {"gradients", FIELD_INTEGER, DRAWN, AT(ask.gradients), 0, 0, UP_TO(gradients), "0", "of each particle; 0: 30 for refine, at most 200 for exact"},
    {"towards", FIELD_INTEGER, ASKED | MAP, AT(towards), UNBOUNDED(0, WHOLE_MAX), "0", "another seed, for angle"},
    {"angle", FIELD_REAL, ASKED | MAP, AT(angle), UNBOUNDED(-ANGLE_MAX, ANGLE_MAX), "0", "radians: the latents' noise is cos(angle) times that of seed plus sin(angle) times that of towards; network alone, and processes with latents"},
    {"quantiles", FIELD_LEVELS, PREDICT, 0, UNBOUNDED(0, QUANTILES_MAX), "[0.05,0.25,0.5,0.75,0.95]", "probabilities"},
    {"bands", FIELD_SWITCH, PREDICT, AT(bands), UNBOUNDED(0, 1), "false", "mean, sd and quantiles smooth in x, as in a picture"},
    {"draws", FIELD_INTEGER, PREDICT | MAP, AT(draws), 0, 0, UP_TO(samples), "0", "how many of the functions are in the reply"},
    {"noise", FIELD_SWITCH, SAMPLE | CHAIN, AT(noise), UNBOUNDED(0, 1), "false", "functions with the noise of measurements"},
    {"marginal", FIELD_SWITCH, SCORE, AT(marginal), UNBOUNDED(0, 1), "false", "also the log-density of each target by itself"},
    {"rows", FIELD_INTEGER, MAP, AT(rows), UNBOUNDED(2, MAP_SIDE_MAX), "64", "of the map"},
    {"cols", FIELD_INTEGER, MAP, AT(cols), UNBOUNDED(2, MAP_SIDE_MAX), "64", "of the map"},
    {"wells", FIELD_WELLS, MAP, AT(context), 0, 0, UP_TO(context), "{\"pixel\":[],\"value\":[]}", "measurements: row and col from 0 at the top left, and values; none: the prior"},
    {"honour", FIELD_SWITCH, MAP, AT(honour), UNBOUNDED(0, 1), "true", "functions pass through the wells"},
    {"threshold", FIELD_REAL, MAP, AT(threshold), UNBOUNDED(-REAL_MAX, REAL_MAX), NULL, "of the layer below; by default the middle of the images' values"},
    {"layers", FIELD_LAYERS, MAP, 0, UNBOUNDED(0, 3), "[\"mean\",\"sd\",\"below\"]", "what the map has"},
};
/* clang-format on */
enum { FIELDS = sizeof fields / sizeof *fields };

const field_def *request_field(size_t k) {
    return k < FIELDS ? &fields[k] : NULL;
}

static const char *const layer_names[] = {"mean", "sd", "below"};

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct reader {
    service_worker *w;
    verb v;
    request *q;
    const json_value *root;
} reader;

static int64_t limit_of(const reader *r, const field_def *f) {
    int64_t limit;
    if (f->limit == FIELD_NO_LIMIT) return (int64_t)f->hi;
    memcpy(&limit, (const char *)&r->w->s->limits + f->limit, sizeof limit);
    return limit;
}

static int too_many(const reader *r, const field_def *f, size_t count) {
    return worker_refuse(r->w, ANSWER_REFUSED, "%s: %zu are too many (the most is %lld)", f->name,
                         count, (long long)limit_of(r, f));
}

/* Reading a list of `count` points as rows of `width` numbers: numbers alone where it is 1. */
static int read_rows(const reader *r, const char *what, const json_value *v, int64_t width,
                     double *to) {
    char item[96];
    for (size_t i = 0; i < v->count; i++) {
        const json_value *one = &v->items[i];
        snprintf(item, sizeof item, "%.60s[%zu]", what, i);
        mnp_status status =
            width == 1 ? json_number(&r->w->env, one, item, to + i)
                       : json_numbers(&r->w->env, one, item, to + i * (size_t)width, (size_t)width);
        if (status != MNP_OK) return worker_failed_here(r->w, status);
    }
    return 0;
}

static int expect(const reader *r, const json_value *v, const char *what, json_kind kind) {
    size_t count;
    if (kind == JSON_ARRAY)
        return worker_failed_here(r->w, json_array(&r->w->env, v, what, &count));
    if (v && v->kind == kind) return 0;
    return worker_refuse(r->w, ANSWER_WRONG, "%s must be an object", what);
}

/* {"x": [...], "y": [...]}, or of wells "pixel" and "value". */
static int read_set(const reader *r, const field_def *f, const json_value *v, slot to,
                    int64_t width, const char *const key[2], mnp_set *out) {
    char name[2][32];
    const json_value *part[2];
    int status = expect(r, v, f->name, JSON_OBJECT);
    for (size_t i = 0; !status && i < v->count; i++) {
        const char *given = json_key_at(v, i)->string;
        if (strcmp(given, key[0]) != 0 && strcmp(given, key[1]) != 0)
            status = worker_refuse(r->w, ANSWER_WRONG, "%s has %s and %s, not '%.60s'", f->name,
                                   key[0], key[1], given);
    }
    for (int k = 0; k < 2 && !status; k++) {
        snprintf(name[k], sizeof name[k], "%s.%s", f->name, key[k]);
        part[k] = json_get(v, key[k]);
        status = expect(r, part[k], name[k], JSON_ARRAY);
    }
    if (status) return status;
    size_t n = part[0]->count;
    if (part[1]->count != n)
        return worker_refuse(r->w, ANSWER_WRONG, "%s has %zu numbers, and %s %zu", name[0], n,
                             name[1], part[1]->count);
    if ((double)n < f->lo)
        return worker_refuse(r->w, ANSWER_WRONG, "%s: there are no points", f->name);
    if ((int64_t)n > limit_of(r, f)) return too_many(r, f, n);
    double *x = worker_take(r->w, to, n * (size_t)(width + 1) + 1, sizeof *x);
    if (!x) return ANSWER_BUSY;
    status = read_rows(r, name[0], part[0], width, x);
    if (!status) status = read_rows(r, name[1], part[1], 1, x + n * (size_t)width);
    *out = (mnp_set){(int64_t)n, x, x + n * (size_t)width};
    return status;
}

static int read_at(const reader *r, const field_def *f, const json_value *v) {
    int status = expect(r, v, f->name, JSON_ARRAY);
    if (status) return status;
    if (v->count == 0) return worker_refuse(r->w, ANSWER_WRONG, "at: there are no places");
    if ((int64_t)v->count > limit_of(r, f)) return too_many(r, f, v->count);
    double *x = worker_take(r->w, SLOT_PLACES, v->count * (size_t)r->q->x_dim, sizeof *x);
    if (!x) return ANSWER_BUSY;
    r->q->places = (mnp_set){(int64_t)v->count, x, NULL};
    return read_rows(r, f->name, v, r->q->x_dim, x);
}

static int read_span(const reader *r, const json_value *v, double *lo, double *hi, int64_t *n) {
    double of[3];
    mnp_status status = json_numbers(&r->w->env, v, "grid", of, 3);
    if (status != MNP_OK) return worker_failed_here(r->w, status);
    if (!(of[2] >= 1 && of[2] <= GRID_POINTS_MAX) || floor(of[2]) != of[2])
        return worker_refuse(r->w, ANSWER_WRONG,
                             "grid wants [lo, hi, n] with a whole number n from 1 on");
    *lo = of[0], *hi = of[1], *n = (int64_t)of[2];
    return 0;
}

static int read_grid(const reader *r, const field_def *f, const json_value *v) {
    int64_t d = r->q->x_dim, n[MODEL_X_MAX], total = 1, most = limit_of(r, f);
    double lo[MODEL_X_MAX], hi[MODEL_X_MAX];
    int status = expect(r, v, f->name, JSON_ARRAY);
    if (!status && d > 1 && v->count != (size_t)d)
        status = worker_refuse(r->w, ANSWER_WRONG,
                               "grid wants a list [lo, hi, n] for each of the %lld inputs",
                               (long long)d);
    for (int64_t k = 0; k < d && !status; k++) {
        status = read_span(r, d > 1 ? &v->items[k] : v, &lo[k], &hi[k], &n[k]);
        if (!status && n[k] > most / total)
            status = worker_refuse(r->w, ANSWER_REFUSED,
                                   "grid: these are too many places (the most is %lld)",
                                   (long long)most);
        if (!status) total *= n[k];
    }
    if (status) return status;
    double *x = worker_take(r->w, SLOT_PLACES, (size_t)(total * d), sizeof *x);
    if (!x) return ANSWER_BUSY;
    places_fill(d, lo, hi, n, x);
    r->q->places = (mnp_set){total, x, NULL};
    return 0;
}

static int read_levels(const reader *r, const field_def *f, const json_value *v) {
    int status = expect(r, v, f->name, JSON_ARRAY);
    if (status) return status;
    if ((int64_t)v->count > limit_of(r, f)) return too_many(r, f, v->count);
    double *p = worker_take(r->w, SLOT_LEVELS, v->count + 1, sizeof *p);
    if (!p) return ANSWER_BUSY;
    status = read_rows(r, f->name, v, 1, p);
    for (size_t k = 0; k < v->count && !status; k++)
        if (!(p[k] >= 0 && p[k] <= 1))
            status = worker_refuse(r->w, ANSWER_WRONG, "quantiles are probabilities from 0 to 1");
    r->q->levels = (int64_t)v->count;
    r->q->level = p;
    return status;
}

static int read_layers(const reader *r, const field_def *f, const json_value *v) {
    const char *name;
    int status = expect(r, v, f->name, JSON_ARRAY);
    r->q->layers = 0;
    for (size_t i = 0; !status && i < v->count; i++) {
        status = worker_failed_here(r->w, json_string(&r->w->env, &v->items[i], "layers", &name));
        unsigned bit = 0;
        for (unsigned k = 0; k < 3 && !status; k++)
            if (strcmp(name, layer_names[k]) == 0) bit = 1u << k;
        if (!status && !bit)
            status = worker_refuse(r->w, ANSWER_WRONG, "layers are mean, sd and below, not '%.60s'",
                                   name);
        r->q->layers |= bit;
    }
    return status;
}

static int read_condition(const reader *r, const json_value *v) {
    const char *word;
    mnp_status status = json_string(&r->w->env, v, "condition", &word);
    if (status != MNP_OK) return worker_failed_here(r->w, status);
    int k = condition_named(word);
    if (k < 0)
        return worker_refuse(r->w, ANSWER_WRONG,
                             "condition is network, refine or exact, not '%.60s'", word);
    r->q->ask.condition = (mnp_condition)k;
    r->q->ask.given = true;
    return 0;
}

static int read_number(const reader *r, const field_def *f, const json_value *v) {
    char *to = (char *)r->q + f->at;
    int64_t whole;
    double real;
    mnp_status status = f->kind == FIELD_INTEGER ? json_integer(&r->w->env, v, f->name, &whole)
                                                 : json_number(&r->w->env, v, f->name, &real);
    if (status != MNP_OK) return worker_failed_here(r->w, status);
    if (f->kind == FIELD_INTEGER) real = (double)whole;
    bool limit = f->limit != FIELD_NO_LIMIT;
    double hi = limit ? (double)limit_of(r, f) : f->hi;
    if (real < f->lo || real > hi)
        return worker_refuse(r->w, limit && real > hi ? ANSWER_REFUSED : ANSWER_WRONG,
                             "%s must be from %.17g to %.17g", f->name, f->lo, hi);
    if (f->at == AT(threshold)) r->q->has_threshold = true;
    if (f->kind == FIELD_INTEGER)
        memcpy(to, &whole, sizeof whole);
    else
        memcpy(to, &real, sizeof real);
    return 0;
}

static int read_field(const reader *r, const field_def *f, const json_value *v) {
    static const char *const xy[2] = {"x", "y"}, *const wells[2] = {"pixel", "value"};
    mnp_set *set = (mnp_set *)((char *)r->q + f->at);
    slot to = f->at == AT(targets) ? SLOT_TARGETS : SLOT_CONTEXT;
    switch (f->kind) {
    case FIELD_MODEL:
        return 0; /* read first of all */
    case FIELD_SET:
        return read_set(r, f, v, to, r->q->x_dim, xy, set);
    case FIELD_WELLS:
        return read_set(r, f, v, to, 2, wells, set);
    case FIELD_AT:
        return read_at(r, f, v);
    case FIELD_GRID:
        return read_grid(r, f, v);
    case FIELD_LEVELS:
        return read_levels(r, f, v);
    case FIELD_LAYERS:
        return read_layers(r, f, v);
    case FIELD_CONDITION:
        return read_condition(r, v);
    case FIELD_SWITCH:
        return worker_failed_here(
            r->w, json_bool(&r->w->env, v, f->name, (bool *)((char *)r->q + f->at)));
    case FIELD_REAL:
    case FIELD_INTEGER:
        return read_number(r, f, v);
    }
    return ANSWER_FAILED;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static const field_def *find_field(const reader *r, const char *name) {
    for (size_t k = 0; k < FIELDS; k++)
        if (fields[k].verbs & (1u << r->v) && strcmp(fields[k].name, name) == 0) return &fields[k];
    return NULL;
}

static int unknown_field(const reader *r, const char *name) {
    char meant[TEXT_NAMES];
    text_nearest near = text_nearest_to(name);
    for (size_t k = 0; k < FIELDS; k++)
        if (fields[k].verbs & (1u << r->v)) text_nearest_try(&near, fields[k].name);
    return worker_refuse(r->w, ANSWER_WRONG, "%s has no field '%.60s'%s", service_verb((int)r->v),
                         name, text_meant_or_all(meant, &near));
}

static int read_model(const reader *r) {
    const char *name;
    char meant[TEXT_NAMES];
    const service *s = r->w->s;
    mnp_status status = json_string(&r->w->env, json_get(r->root, "model"), "model", &name);
    if (status != MNP_OK) return worker_failed_here(r->w, status);
    r->q->model = service_find(s, name);
    if (r->q->model) {
        r->q->x_dim = mnp_model_x_dim(r->q->model->model);
        return 0;
    }
    text_nearest near = text_nearest_to(name);
    for (size_t k = 0; k < s->models.count; k++) text_nearest_try(&near, s->models.of[k].name);
    for (size_t k = 0; k < s->oracles.count; k++) text_nearest_try(&near, s->oracles.of[k].name);
    return worker_refuse(r->w, ANSWER_UNKNOWN, "there is no model '%.100s'%s", name,
                         text_meant_or_all(meant, &near));
}

/* Fields that are not given, by the texts of the table. */
static int read_defaults(const reader *r) {
    int status = 0;
    for (size_t k = 0; k < FIELDS && !status; k++) {
        const field_def *f = &fields[k];
        if (!f->fallback || !(f->verbs & (1u << r->v)) || json_get(r->root, f->name)) continue;
        json_doc *doc = NULL;
        mnp_status read = json_parse(&r->w->env, f->name, f->fallback, strlen(f->fallback), &doc);
        status = read == MNP_OK ? read_field(r, f, json_root(doc)) : worker_failed_here(r->w, read);
        json_destroy(doc);
    }
    return status;
}

static int check(const reader *r) {
    const request *q = r->q;
    bool asked = (1u << r->v) & ASKED;
    if (asked && (json_get(r->root, "at") != NULL) == (json_get(r->root, "grid") != NULL))
        return worker_refuse(r->w, ANSWER_WRONG, "give either at or grid: the places to ask about");
    if (r->v == VERB_SCORE && q->targets.n == 0)
        return worker_refuse(r->w, ANSWER_WRONG, "targets are missing: the points to score");
    if (q->draws > q->samples)
        return worker_refuse(r->w, ANSWER_WRONG, "draws (%lld) are the first of samples (%lld)",
                             (long long)q->draws, (long long)q->samples);
    return 0;
}

/* Work and memory grow with these products. */
static int check_limits(const reader *r) {
    const request *q = r->q;
    const service_limits *limits = &r->w->s->limits;
    const mnp_model *m = q->model->model;
    int64_t n = r->v == VERB_MAP     ? q->rows * q->cols
                : r->v == VERB_SCORE ? q->targets.n
                                     : q->places.n;
    int64_t times = r->v == VERB_CHAIN ? mnp_model_steps(m) + 1 : 1;
    if (r->v == VERB_MAP && n > limits->pixels)
        return worker_refuse(r->w, ANSWER_REFUSED,
                             "a map of %lld x %lld has too many pixels (the most is %lld)",
                             (long long)q->rows, (long long)q->cols, (long long)limits->pixels);
    if (n * times > limits->values / q->samples)
        return worker_refuse(r->w, ANSWER_REFUSED,
                             "%lld functions at %lld places are too many values (the most is "
                             "%lld): take fewer samples or places",
                             (long long)q->samples, (long long)n,
                             (long long)(limits->values / times));
    if (mnp_model_latent(m) == 0 && n + q->context.n > limits->joint)
        return worker_refuse(r->w, ANSWER_REFUSED,
                             "this model answers all places together: context and places are at "
                             "most %lld",
                             (long long)limits->joint);
    return 0;
}

/* The command's default: of the model, and of scores, maps and turned functions the network. */
static void choose_condition(const reader *r) {
    condition_ask *ask = &r->q->ask;
    if (ask->given) return;
    ask->condition = MNP_NETWORK;
    if ((1u << r->v) & ASKED && r->q->angle == 0)
        ask->condition = condition_usual(r->q->model->model, &ask->noted);
}

static int read_all(const reader *r) {
    int status = expect(r, r->root, "a request", JSON_OBJECT);
    if (!status) status = read_model(r);
    for (size_t i = 0; !status && i < r->root->count; i++) {
        const char *name = json_key_at(r->root, i)->string;
        const field_def *f = find_field(r, name);
        status = f ? read_field(r, f, json_value_at(r->root, i)) : unknown_field(r, name);
    }
    if (!status) status = read_defaults(r);
    if (!status) status = check(r);
    if (!status) status = check_limits(r);
    if (!status) choose_condition(r);
    return status;
}

int request_parse(service_worker *w, verb v, const char *body, size_t bytes, request *q) {
    json_doc *doc = NULL;
    *q = (request){0};
    buf_init(&q->warnings, &w->env);
    if ((int64_t)bytes > w->s->limits.body)
        return worker_refuse(w, ANSWER_LARGE, "a request has at most %lld bytes",
                             (long long)w->s->limits.body);
    mnp_status status = json_parse(&w->env, "request", body ? body : "", bytes, &doc);
    if (status != MNP_OK) return worker_failed_here(w, status);
    reader r = {w, v, q, json_root(doc)};
    int code = read_all(&r);
    json_destroy(doc);
    return code;
}

void request_free(request *q) {
    if (q->warnings.e) buf_free(&q->warnings);
}
