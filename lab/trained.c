/* trained.c: cells of a study whose model is read from a file (--trained DIR): which file, is
 * it the right one, and what it says of itself. */
#include <math.h>
#include <string.h>

#include "cli/run_files.h"
#include "lab/runs.h"
#include "util/limits.h"
#include "util/text.h"

/* DIR/MODEL-DATA[-sSEED].safetensors. */
static void path_of(const char *dir, const char *model, const char *data, const char *ending,
                    char out[STUDY_PATH]) {
    const char *slash = strrchr(data, '/');
    char name[2 * 64];
    snprintf(name, sizeof name, "%.63s-%.63s", model, slash ? slash + 1 : data);
    study_plain(name);
    snprintf(out, STUDY_PATH, "%.1500s/%s%s.safetensors", dir, name, ending);
}

static bool find(const char *dir, const char *model, const char *data, uint64_t seed,
                 char out[STUDY_PATH]) {
    char ending[32];
    snprintf(ending, sizeof ending, "-s%llu", (unsigned long long)seed);
    path_of(dir, model, data, ending, out);
    if (run_files_exist(out)) return true;
    path_of(dir, model, data, "", out);
    if (seed == 0 && run_files_exist(out)) return true;
    out[0] = '\0';
    return false;
}

void trained_find(const char *dir, run *t) {
    find(dir, t->model, t->data, t->seed, t->trained);
}

int trained_seeds(const char *dir, const names *models, const names *data, uint64_t first) {
    char path[STUDY_PATH];
    int seeds = 0;
    for (int k = 0; k < SEEDS_MAX; k++)
        for (int m = 0; m < models->count && seeds <= k; m++)
            for (int d = 0; d < data->count; d++)
                if (find(dir, models->at[m], data->at[d], first + (uint64_t)k, path)) seeds = k + 1;
    return seeds;
}

/* ---- is it the right one? -------------------------------------------------------------------- */

/* Of the weights and options: notes may come and go. */
static mnp_status checksum(cli *c, const char *path, const mnp_model *m, uint64_t *out) {
    enum { LIMIT = 1 << 28, LENGTH = 8 };
    char *bytes = NULL;
    size_t count = 0, header = 0;
    mnp_status status = fsio_read(&c->env, path, LIMIT, &bytes, &count);
    const char *options = mnp_model_options(m);
    if (status == MNP_OK) /* the file was loaded before: it has a header, and data after it */
        for (int k = LENGTH - 1; k >= 0; k--) header = header << 8 | (uint8_t)bytes[k];
    const size_t from = LENGTH + header < count ? LENGTH + header : count;
    if (status == MNP_OK)
        *out = text_hash(text_hash(0, bytes + from, count - from), options, strlen(options));
    env_free(&c->env, bytes);
    return status;
}

static const char *note(const mnp_model *m, const char *key) {
    const char *text = mnp_model_note(m, key);
    return text ? text : "—";
}

/* The value of "key=" in "steps=60000 batch=100 ..."; "" where there is none. */
static void value_of(const char *options, const char *key, char *out, size_t size) {
    const char *at = strstr(options, key);
    if (at) at += strlen(key);
    snprintf(out, size, "%.*s", at ? (int)strcspn(at, " ") : 0, at ? at : "");
}

static int compare(cli *c, run *task, const mnp_model *m) {
    char kind[64], steps[32], detail[32];
    const char *options = mnp_model_options(m);
    snprintf(kind, sizeof kind, "kind=%.50s ", task->model);
    if (strncmp(options, kind, strlen(kind)) != 0)
        return cli_fail(c, EXIT_FAILED, "%s is no %s: %.*s", task->trained, task->model,
                        (int)strcspn(options, " "), options);
    if (strcmp(note(m, "data"), task->data) != 0)
        return cli_fail(c, EXIT_FAILED, "%s was trained on %s, not on %s", task->trained,
                        note(m, "data"), task->data);
    bool np = strcmp(task->model, "np") == 0; /* what tells one network from another */
    value_of(note(m, "train"), "steps=", steps, sizeof steps);
    value_of(options, np ? " sigma_floor=" : " T=", detail, sizeof detail);
    snprintf(task->made, sizeof task->made,
             "| %.150s | %s=%s | %.20s | %.20s of %s | %.20s | %.100s |", task->trained,
             np ? "sigma_floor" : "T", detail, note(m, "seed"), note(m, "steps"), steps,
             note(m, "train_functions"), note(m, "trained_on"));
    return 0;
}

int trained_check(const runs *s, run *t) {
    cli *c = s->s.c;
    if (!*t->trained) {
        if (!recipe_of(t->model)->network) return 0;
        char path[STUDY_PATH];
        path_of(s->trained, t->model, t->data, "", path);
        t->head.state = CELL_ABSENT;
        snprintf(t->why, sizeof t->why, "there is no %.400s", path);
        if (t->seed == c->seed) cli_say(c, "%s on %s is left out: %s", t->model, t->data, t->why);
        return 0;
    }
    mnp_model *m = NULL;
    mnp_status status = mnp_model_load(c->ctx, t->trained, &m);
    int code = status == MNP_OK ? compare(c, t, m) : cli_failed(c, status);
    if (code == 0 && checksum(c, t->trained, m, &t->weights) != MNP_OK) code = study_failed(&s->s);
    if (code == 0) snprintf(t->train_options, sizeof t->train_options, "%s", note(m, "train"));
    mnp_model_destroy(m);
    return code;
}

/* ---- its scores ------------------------------------------------------------------------------ */

mnp_status trained_run(const study *s, run *t) {
    run_result *r = &t->r;
    mnp_model *m = NULL;
    mnp_status status = mnp_model_load(s->c->ctx, t->trained, &m);
    if (status != MNP_OK) return status;
    r->parameters = mnp_model_parameters(m);
    if (text_parse_int64(note(m, "steps"), &r->best_step) != TEXT_OK) r->best_step = 0;
    char steps[32];
    value_of(note(m, "train"), "steps=", steps, sizeof steps);
    if (text_parse_int64(steps, &r->steps) != TEXT_OK) r->steps = r->best_step;
    r->gap = r->gap_se = r->step_seconds = r->memory = NAN;
    status = run_scores(s, t, m);
    r->seconds = cli_now() - s->started;
    mnp_model_destroy(m);
    return status;
}
