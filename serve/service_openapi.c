/* service_openapi.c: the description of the calls (OpenAPI 3.1), from the table of fields and the
 * table of replies below. */
#include <string.h>

#include "serve/service_internal.h"

/* ---- replies --------------------------------------------------------------------------------- */

enum {
    MODELS = 1 << VERB_MODELS,
    PREDICT = 1 << VERB_PREDICT,
    SAMPLE = 1 << VERB_SAMPLE,
    CHAIN = 1 << VERB_CHAIN,
    SCORE = 1 << VERB_SCORE,
    MAP = 1 << VERB_MAP,
    ASKED = PREDICT | SAMPLE | CHAIN,
    DRAWN = ASKED | SCORE | MAP
};

#define NUMBERS      "{\"type\":\"array\",\"items\":{\"type\":\"number\"}}"
#define LISTS(items) "{\"type\":\"array\",\"items\":" items "}"
#define MAYBE(type)  "{\"type\":[\"" type "\",\"null\"]}"
#define COUNT        "{\"type\":\"integer\",\"minimum\":0}"
#define VARIABLE                                                                                   \
    "{\"type\":\"object\",\"required\":[\"name\",\"lo\",\"hi\"],\"properties\":{\"name\":{"        \
    "\"type\":\"string\"},\"lo\":" MAYBE("number") ",\"hi\":" MAYBE("number") "}}"
#define PLACE                                                                                      \
    "{\"oneOf\":[{\"type\":\"number\"},{\"type\":\"array\",\"items\":{\"type\":\"number\"}}]}"
#define SPAN       "{\"type\":\"array\",\"items\":{\"type\":\"number\"},\"minItems\":3,\"maxItems\":3}"
#define CONDITIONS "{\"type\":\"string\",\"enum\":[\"network\",\"refine\",\"exact\"]}"

#define LINES                                                                                      \
    "{\"schema\":{\"type\":\"string\",\"description\":\"lines {\\\"done\\\": k, \\\"total\\\": "   \
    "n} "                                                                                          \
    "while functions are drawn, and last {\\\"reply\\\": {...}} or {\\\"error\\\": ...}\"}}"

typedef struct member_def {
    const char *name;
    unsigned verbs; /* bits 1 << verb */
    bool sometimes; /* only where it was asked for */
    const char *type, *help;
} member_def;

/* clang-format off */
static const member_def replies[] = {
    {"version", MODELS, false, "{\"type\":\"string\"}", "of the library"},
    {"models", MODELS, false, "{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/Model\"}}", "those that can be asked; oracle:FAMILY is there too for families with a known truth"},
    {"x", ASKED, false, "{\"type\":\"array\",\"items\":{\"oneOf\":[{\"type\":\"number\"}," NUMBERS "]}}", "the places: numbers, or a list for each where there are several inputs"},
    {"mean", PREDICT, false, NUMBERS, "at each place"},
    {"sd", PREDICT, false, NUMBERS, "at each place"},
    {"quantiles", PREDICT, false, "{\"type\":\"object\",\"required\":[\"levels\",\"values\"],\"properties\":{\"levels\":" NUMBERS ",\"values\":" LISTS(NUMBERS) "}}", "values: a list of all places for each level"},
    {"rows", MAP, false, COUNT, "of the map"},
    {"cols", MAP, false, COUNT, "of the map"},
    {"mean", MAP, true, NUMBERS, "row by row from the top"},
    {"sd", MAP, true, NUMBERS, "row by row from the top"},
    {"below", MAP, true, NUMBERS, "the probability of a value below the threshold"},
    {"draws", PREDICT | SAMPLE | MAP, false, LISTS(NUMBERS), "functions: their values at all places"},
    {"path", CHAIN, false, LISTS(LISTS(NUMBERS)), "(T+1, samples, places), in the model's own units"},
    {"loglik", SCORE, false, MAYBE("number"), "importance-weighted bound, nats per target; exact without latents"},
    {"loglik_prior_sampling", SCORE, false, MAYBE("number"), "with latents from the context alone"},
    {"total", SCORE, false, MAYBE("number"), "loglik times the number of targets"},
    {"total_prior_sampling", SCORE, false, MAYBE("number"), "the same of loglik_prior_sampling"},
    {"loglik_draws", SCORE, true, MAYBE("number"), "refine and exact: by the functions drawn"},
    {"loglik_evidence", SCORE, true, MAYBE("number"), "exact: log p(context and targets) - log p(context), per target"},
    {"loglik_evidence_sd", SCORE, true, MAYBE("number"), "its standard deviation"},
    {"logp", SCORE, true, LISTS(MAYBE("number")), "marginal: log p(y | context) of each target by itself"},
    {"points", SCORE, false, COUNT, "targets"},
    {"context", SCORE, false, COUNT, "points of the context"},
    {"samples", SCORE, false, COUNT, "as asked"},
    {"seed", SCORE, false, COUNT, "as asked"},
    {"seconds", DRAWN, false, "{\"type\":\"number\",\"minimum\":0}", "that the answer took"},
    {"condition", DRAWN, false, CONDITIONS, "how the functions were drawn"},
    {"particles", DRAWN, false, COUNT, "refine and exact"},
    {"gradients", DRAWN, false, COUNT, "of each particle"},
    {"acceptance", DRAWN, false, MAYBE("number"), "share of the moves"},
    {"particle_ess", DRAWN, false, MAYBE("number"), "independent particles that these are worth"},
    {"rhat", DRAWN, false, MAYBE("number"), "1 where the particles have settled"},
    {"log_evidence", DRAWN, false, MAYBE("number"), "exact: log p(context), nats"},
    {"log_evidence_sd", DRAWN, false, MAYBE("number"), "its standard deviation"},
    {"fit_before", DRAWN, false, MAYBE("number"), "log p(point | function) of the network's draws"},
    {"fit_after", DRAWN, false, MAYBE("number"), "of these"},
    {"warnings", DRAWN, false, "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}", "what is doubtful, a sentence each"},
};

static const member_def model_members[] = {
    {"name", 0, false, "{\"type\":\"string\"}", "for the field model"},
    {"process", 0, false, "{\"type\":\"string\"}", "mnp, np, gp, cbp, lmm ..."},
    {"parameters", 0, false, COUNT, "numbers that were learned"},
    {"inputs", 0, false, LISTS(VARIABLE), "x, with its range in training"},
    {"output", 0, false, VARIABLE, "y, with its range in training"},
    {"steps", 0, false, COUNT, "T"},
    {"latents", 0, false, COUNT, "width of a latent; 0: the process has none"},
    {"context_max", 0, false, MAYBE("integer"), "most points of a context in training"},
    {"noise", 0, false, MAYBE("number"), "sd of the noise of measurements"},
    {"data", 0, false, MAYBE("string"), "what it was trained on"},
    {"truth", 0, false, MAYBE("string"), "the name of the model that is the true process"},
    {"images", 0, false, "{\"type\":\"boolean\"}", "map is for these"},
    {"rivers", 0, false, "{\"type\":\"boolean\"}", "values are below 0 in the river"},
    {"rows", 0, false, MAYBE("integer"), "of the images"},
    {"cols", 0, false, MAYBE("integer"), "of the images"},
    {"condition", 0, false, CONDITIONS, "how functions are drawn by default"},
};

static const struct {
    const char *summary;
} calls[VERBS] = {
    [VERB_MODELS] = {"the models"},
    [VERB_PREDICT] = {"mean, sd, quantiles and functions at places given points"},
    [VERB_SAMPLE] = {"functions at places given points"},
    [VERB_CHAIN] = {"the whole Markov chain of functions at places"},
    [VERB_SCORE] = {"log-densities of targets given points"},
    [VERB_MAP] = {"a map of an image given wells"},
    [VERB_OPENAPI] = {"this description"},
};

static const struct {
    int status;
    const char *help;
} refusals[] = {
    {400, "the request is wrong"},
    {401, "the key is missing or wrong"},
    {403, "the host or the origin is not allowed"},
    {404, "no such model or call"},
    {405, "another method"},
    {411, "its length is missing"},
    {413, "too many bytes"},
    {415, "it is no JSON"},
    {422, "beyond a limit, or the model refuses it"},
    {431, "the fields of its head are too long"},
    {500, "a fault of the server"},
    {503, "no memory for it, no worker is free, or it was cancelled"},
};
/* clang-format on */

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ---- schemas --------------------------------------------------------------------------------- */

/* An object whose members are those of a table, of one verb or of all (verbs 0). */
static void put_members(json_writer *w, const member_def *of, size_t count, unsigned verbs) {
    json_object_begin(w);
    reply_text(w, "type", "object");
    json_key(w, "required");
    json_array_begin(w);
    for (size_t k = 0; k < count; k++)
        if ((of[k].verbs & verbs) == verbs && !of[k].sometimes) json_put_string(w, of[k].name);
    json_array_end(w);
    json_key(w, "additionalProperties");
    json_put_bool(w, false);
    json_key(w, "properties");
    json_object_begin(w);
    for (size_t k = 0; k < count; k++) {
        if ((of[k].verbs & verbs) != verbs) continue;
        json_key(w, of[k].name);
        json_object_begin(w);
        reply_text(w, "description", of[k].help);
        json_key(w, "allOf");
        json_array_begin(w);
        json_put_raw(w, of[k].type);
        json_array_end(w);
        json_object_end(w);
    }
    json_object_end(w);
    json_object_end(w);
}

static double bound_of(const service_worker *w, const field_def *f) {
    int64_t limit;
    if (f->limit == FIELD_NO_LIMIT) return f->hi;
    memcpy(&limit, (const char *)&w->s->limits + f->limit, sizeof limit);
    return (double)limit;
}

static void put_list(json_writer *to, const char *items, double least, double most) {
    reply_text(to, "type", "array");
    reply_number(to, "minItems", least);
    reply_number(to, "maxItems", most);
    json_key(to, "items");
    json_put_raw(to, items);
}

/* {"x": list, "y": numbers} of at most so many points. */
static void put_set(json_writer *to, const char *x, const char *y, double least, double most) {
    const char *const key[2] = {x, y};
    const char *const items[2] = {*x == 'p' ? "{\"type\":\"array\",\"items\":{\"type\":\"number\"},"
                                              "\"minItems\":2,\"maxItems\":2}"
                                            : PLACE,
                                  "{\"type\":\"number\"}"};
    reply_text(to, "type", "object");
    json_key(to, "required");
    json_array_begin(to);
    for (int k = 0; k < 2; k++) json_put_string(to, key[k]);
    json_array_end(to);
    json_key(to, "additionalProperties");
    json_put_bool(to, false);
    json_key(to, "properties");
    json_object_begin(to);
    for (int k = 0; k < 2; k++) {
        json_key(to, key[k]);
        json_object_begin(to);
        put_list(to, items[k], least, most);
        json_object_end(to);
    }
    json_object_end(to);
}

static void put_number(json_writer *to, const char *type, double lo, double hi) {
    reply_text(to, "type", type);
    reply_number(to, "minimum", lo);
    reply_number(to, "maximum", hi);
}

static void put_names(const service *s, json_writer *to) {
    const served_list *const lists[] = {&s->models, &s->oracles};
    reply_text(to, "type", "string");
    json_key(to, "enum");
    json_array_begin(to);
    for (int l = 0; l < 2; l++)
        for (size_t k = 0; k < lists[l]->count; k++) json_put_string(to, lists[l]->of[k].name);
    json_array_end(to);
}

static void put_field(const service_worker *w, json_writer *to, const field_def *f) {
    double most = bound_of(w, f);
    json_key(to, f->name);
    json_object_begin(to);
    reply_text(to, "description", f->help);
    switch (f->kind) {
    case FIELD_MODEL:
        put_names(w->s, to);
        break;
    case FIELD_SET:
        put_set(to, "x", "y", f->lo, most);
        break;
    case FIELD_WELLS:
        put_set(to, "pixel", "value", f->lo, most);
        break;
    case FIELD_AT:
        put_list(to, PLACE, f->lo, most);
        break;
    case FIELD_GRID:
        json_key(to, "oneOf");
        json_put_raw(to, "[" SPAN ",{\"type\":\"array\",\"minItems\":2,\"items\":" SPAN "}]");
        break;
    case FIELD_LEVELS:
        put_list(to, "{\"type\":\"number\",\"minimum\":0,\"maximum\":1}", f->lo, most);
        break;
    case FIELD_LAYERS:
        put_list(to, "{\"type\":\"string\",\"enum\":[\"mean\",\"sd\",\"below\"]}", f->lo, most);
        break;
    case FIELD_INTEGER:
        put_number(to, "integer", f->lo, most);
        break;
    case FIELD_REAL:
        put_number(to, "number", f->lo, most);
        break;
    case FIELD_SWITCH:
        reply_text(to, "type", "boolean");
        break;
    case FIELD_CONDITION:
        json_key(to, "allOf");
        json_array_begin(to);
        json_put_raw(to, CONDITIONS);
        json_array_end(to);
        break;
    }
    if (f->fallback) {
        json_key(to, "default");
        json_put_raw(to, f->fallback);
    }
    json_object_end(to);
}

static bool needed(const field_def *f) {
    return f->kind == FIELD_MODEL || (f->kind == FIELD_SET && !f->fallback);
}

static void put_request(const service_worker *w, json_writer *to, verb v) {
    const field_def *f;
    json_object_begin(to);
    reply_text(to, "type", "object");
    json_key(to, "required");
    json_array_begin(to);
    for (size_t k = 0; (f = request_field(k)) != NULL; k++)
        if (f->verbs & (1u << v) && needed(f)) json_put_string(to, f->name);
    json_array_end(to);
    if ((1u << v) & ASKED) {
        json_key(to, "oneOf");
        json_put_raw(to, "[{\"required\":[\"at\"]},{\"required\":[\"grid\"]}]");
    }
    json_key(to, "additionalProperties");
    json_put_bool(to, false);
    json_key(to, "properties");
    json_object_begin(to);
    for (size_t k = 0; (f = request_field(k)) != NULL; k++)
        if (f->verbs & (1u << v)) put_field(w, to, f);
    json_object_end(to);
    json_object_end(to);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void open_content(json_writer *to) {
    json_key(to, "content");
    json_object_begin(to);
    json_key(to, "application/json");
    json_object_begin(to);
    json_key(to, "schema");
}

static void close_content(json_writer *to) {
    json_object_end(to);
    json_object_end(to);
}

static void put_responses(json_writer *to, verb v) {
    char status[16];
    json_key(to, "responses");
    json_object_begin(to);
    json_key(to, "200");
    json_object_begin(to);
    reply_text(to, "description", calls[v].summary);
    open_content(to);
    if (v == VERB_OPENAPI)
        json_put_raw(to, "{\"type\":\"object\"}");
    else
        put_members(to, replies, COUNT_OF(replies), 1u << v);
    json_object_end(to);
    if ((1u << v) & DRAWN) {
        json_key(to, "application/x-ndjson");
        json_put_raw(to, LINES);
    }
    json_object_end(to);
    json_object_end(to);
    for (size_t k = 0; k < COUNT_OF(refusals); k++) {
        snprintf(status, sizeof status, "%d", refusals[k].status);
        json_key(to, status);
        json_object_begin(to);
        reply_text(to, "description", refusals[k].help);
        open_content(to);
        json_put_raw(to, "{\"$ref\":\"#/components/schemas/Error\"}");
        close_content(to);
        json_object_end(to);
    }
    json_object_end(to);
}

static void put_call(const service_worker *w, json_writer *to, verb v) {
    char path[64];
    bool get = v == VERB_MODELS || v == VERB_OPENAPI;
    snprintf(path, sizeof path, "/v1/%s%s", service_verb((int)v), v == VERB_OPENAPI ? ".json" : "");
    json_key(to, path);
    json_object_begin(to);
    json_key(to, get ? "get" : "post");
    json_object_begin(to);
    reply_text(to, "operationId", service_verb((int)v));
    reply_text(to, "summary", calls[v].summary);
    if (!get) {
        json_key(to, "requestBody");
        json_object_begin(to);
        json_key(to, "required");
        json_put_bool(to, true);
        open_content(to);
        put_request(w, to, v);
        close_content(to);
        json_object_end(to);
    }
    put_responses(to, v);
    json_object_end(to);
    json_object_end(to);
}

int answer_openapi(service_worker *w, request *q, json_writer *to) {
    (void)q;
    json_object_begin(to);
    reply_text(to, "openapi", "3.1.0");
    json_key(to, "info");
    json_object_begin(to);
    reply_text(to, "title", "mnp");
    reply_text(to, "version", mnp_version());
    reply_text(to, "description",
               "Stochastic processes learned from functions: forecasts, draws, scores and maps.");
    json_object_end(to);
    json_key(to, "security"); /* a server may want a key */
    json_put_raw(to, "[{},{\"key\":[]}]");
    json_key(to, "paths");
    json_object_begin(to);
    for (verb v = VERB_MODELS; v < VERBS; v++) put_call(w, to, v);
    json_object_end(to);
    json_key(to, "components");
    json_object_begin(to);
    json_key(to, "securitySchemes");
    json_put_raw(to, "{\"key\":{\"type\":\"http\",\"scheme\":\"bearer\"}}");
    json_key(to, "schemas");
    json_object_begin(to);
    json_key(to, "Model");
    put_members(to, model_members, COUNT_OF(model_members), 0);
    json_key(to, "Error");
    json_put_raw(to, "{\"type\":\"object\",\"required\":[\"error\"],\"properties\":{\"error\":{"
                     "\"type\":\"string\"}}}");
    json_object_end(to);
    json_object_end(to);
    json_object_end(to);
    return 0;
}
