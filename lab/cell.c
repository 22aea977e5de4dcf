/* cell.c: the key of a cell and the file that keeps its result. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "lab/study.h"
#include "util/text.h"

const char *repro_protocol(int protocol) {
    return protocol == MNP_STRICT ? "strict" : "authors";
}

/* ---- keys ------------------------------------------------------------------------------------ */

void repro_plain_name(const char *name, char *out, size_t size) {
    const char *slash = strrchr(name, '/');
    snprintf(out, size, "%s", slash ? slash + 1 : name);
    for (char *p = out; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '.') *p = '-';
}

void repro_task_name(const repro_study *s, repro_task *t) {
    char weights[32] = "";
    if (*t->trained)
        snprintf(weights, sizeof weights, "weights %016llx; ", (unsigned long long)t->weights);
    int used =
        snprintf(t->key, sizeof t->key,
                 "mnp %s; %smodel %s, preset %s, %s; training %s, %g s; data %s, %lld functions; "
                 "seed %llu; scored on %lld functions with samples",
                 mnp_version(), weights, t->model, t->preset, t->model_options, t->train_options,
                 t->seconds, t->data, (long long)t->train_functions, (unsigned long long)t->seed,
                 (long long)t->functions);
    for (int k = 0; k < t->n_samples && used > 0 && (size_t)used < sizeof t->key; k++)
        used += snprintf(t->key + used, sizeof t->key - (size_t)used, " %lld",
                         (long long)t->samples[k]);
    if (used > 0 && (size_t)used < sizeof t->key)
        snprintf(t->key + used, sizeof t->key - (size_t)used, "; laws %lld, costs %lld, set %.900s",
                 (long long)t->law_functions, (long long)t->cost_m, buf_str(&s->c->settings));
    char label[64], data[64];
    repro_plain_name(t->label, label, sizeof label);
    repro_plain_name(t->data, data, sizeof data);
    snprintf(t->stem, sizeof t->stem, "%.1500s/cells/%s-%s-%llu-%08llx", s->dir, label, data,
             (unsigned long long)t->seed,
             (unsigned long long)(text_hash(0, t->key, strlen(t->key)) >> 32));
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_scores(cli_json *j, const repro_task *task, const repro_result *r) {
    json_key(&j->w, "scores");
    json_array_begin(&j->w);
    for (int p = 0; p < REPRO_PROTOCOLS; p++)
        for (int k = 0; k < task->n_samples; k++) {
            const repro_score *score = &r->scores[p][k];
            json_object_begin(&j->w);
            cli_json_text(j, "protocol", repro_protocol(p));
            cli_json_integer(j, "samples", task->samples[k]);
            cli_json_number(j, "loglik", score->loglik);
            cli_json_number(j, "se", score->se);
            cli_json_number(j, "elbo", score->elbo);
            cli_json_number(j, "kl", score->kl);
            if (k == 0) repro_curve_json(j, &r->curves[p]);
            json_object_end(&j->w);
        }
    json_array_end(&j->w);
}

static void put_times(cli_json *j, const repro_result *r) {
    json_key(&j->w, "conditioning");
    json_array_begin(&j->w);
    for (int k = 0; k < r->n_times; k++) {
        json_object_begin(&j->w);
        cli_json_number(j, "m", r->times_m[k]);
        cli_json_number(j, "seconds", r->times[k]);
        json_object_end(&j->w);
    }
    json_array_end(&j->w);
}

mnp_status repro_cell_close(cli *c, cli_json *j, const char *stem) {
    json_object_end(&j->w);
    buf_text(&j->text, "\n");
    char path[REPRO_PATH + 8];
    snprintf(path, sizeof path, "%s.json", stem);
    mnp_status status = j->text.status;
    if (status == MNP_OK) status = fsio_write(&c->env, path, j->text.data, j->text.len);
    buf_free(&j->text);
    return status;
}

mnp_status repro_cell_write(repro_study *s, const repro_task *task, const repro_result *r) {
    cli_json j;
    cli_json_begin(s->c, &j);
    cli_json_text(&j, "key", task->key);
    cli_json_text(&j, "model", task->model);
    cli_json_text(&j, "data", task->data);
    cli_json_integer(&j, "seed", (int64_t)task->seed);
    cli_json_integer(&j, "steps", r->steps);
    cli_json_integer(&j, "best_step", r->best_step);
    cli_json_integer(&j, "parameters", r->parameters);
    cli_json_number(&j, "seconds", r->seconds);
    cli_json_number(&j, "gap", r->gap);
    cli_json_number(&j, "gap_se", r->gap_se);
    cli_json_number(&j, "step_seconds", r->step_seconds);
    cli_json_number(&j, "memory", r->memory);
    put_scores(&j, task, r);
    put_times(&j, r);
    return repro_cell_close(s->c, &j, task->stem);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* NaN was written as null. */
static double number(const json_value *object, const char *key) {
    const json_value *v = json_get(object, key);
    return v && v->kind == JSON_NUMBER ? v->number : NAN;
}

/* A count, or -1 where there is none: the file may have been edited. */
static int64_t whole(const json_value *object, const char *key) {
    double v = number(object, key);
    return v >= 0 && v < 0x1p53 && v == floor(v) ? (int64_t)v : -1;
}

static bool get_curve(const json_value *score, repro_curve *c) {
    const json_value *list = json_get(score, "by_context"), *v;
    for (size_t k = 0; k < MNP_SCORE_BINS && (v = json_at(list, k)); k++) {
        c->lo[k] = whole(v, "lo");
        c->hi[k] = whole(v, "hi");
        if (c->lo[k] < 0 || c->hi[k] < 0) return false;
        c->loglik[k] = number(v, "loglik");
        c->se[k] = number(v, "se");
        c->bins = (int)k + 1;
    }
    return true;
}

static bool get_scores(const json_value *root, const repro_task *task, repro_result *out) {
    const json_value *list = json_get(root, "scores");
    size_t at = 0;
    for (int p = 0; p < REPRO_PROTOCOLS; p++)
        for (int k = 0; k < task->n_samples; k++, at++) {
            const json_value *v = json_at(list, at);
            if (!v || !isfinite(number(v, "loglik"))) return false;
            out->scores[p][k] = (repro_score){number(v, "loglik"), number(v, "se"),
                                              number(v, "elbo"), number(v, "kl")};
            if (k == 0 && !get_curve(v, &out->curves[p])) return false;
        }
    return true;
}

static void get_times(const json_value *root, repro_result *out) {
    const json_value *list = json_get(root, "conditioning"), *v;
    for (size_t k = 0; k < REPRO_TIMES && (v = json_at(list, k)); k++) {
        out->times_m[k] = number(v, "m");
        out->times[k] = number(v, "seconds");
        out->n_times = (int)k + 1;
    }
}

bool repro_cell_read(repro_study *s, const repro_task *task, repro_result *out) {
    char path[REPRO_PATH + 8];
    snprintf(path, sizeof path, "%s.json", task->stem);
    json_doc *doc = NULL;
    if (json_read(&s->c->env, path, 1 << 20, &doc) != MNP_OK) return false;
    const json_value *root = json_root(doc), *key = json_get(root, "key");
    *out = (repro_result){.state = REPRO_DONE};
    bool ok = key && key->kind == JSON_STRING && strcmp(key->string, task->key) == 0 &&
              get_scores(root, task, out);
    out->steps = whole(root, "steps");
    out->best_step = whole(root, "best_step");
    out->parameters = whole(root, "parameters");
    ok = ok && out->steps >= 0 && out->best_step >= 0 && out->parameters >= 0;
    if (ok) {
        out->seconds = number(root, "seconds");
        out->gap = number(root, "gap");
        out->gap_se = number(root, "gap_se");
        out->step_seconds = number(root, "step_seconds");
        out->memory = number(root, "memory");
        get_times(root, out);
    } else
        *out = (repro_result){.state = REPRO_OPEN};
    json_destroy(doc);
    return ok;
}
