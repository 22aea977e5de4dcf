/* study.c: a study from the flags, and where its files lie. */
#include <string.h>

#include "cli/outputs.h"
#include "lab/study.h"
#include "util/text.h"

mnp_status repro_study_init(repro_study *s, cli *c, const char *name, int count) {
    static const struct {
        const char *study, *dir;
    } places[] = {{"table1", "repro-table1"}, {"ablation", "repro-ablation"}};
    const char *dir = strcmp(name, places[0].study) == 0 ? places[0].dir : places[1].dir;
    *s = (repro_study){.c = c, .name = name, .count = count, .quick = cli_has(c, "quick")};
    s->dir = cli_text(c, "out", dir);
    s->tasks = env_alloc(&c->env, (size_t)count, sizeof *s->tasks, "the cells of a study");
    s->results = env_alloc(&c->env, (size_t)count, sizeof *s->results, "the cells of a study");
    return s->tasks && s->results ? MNP_OK : MNP_ENOMEM;
}

void repro_study_free(repro_study *s) {
    env_free(&s->c->env, s->tasks);
    env_free(&s->c->env, s->results);
}

/* ---- lists of names -------------------------------------------------------------------------- */

/* "a,b:k=v,l=w,c" are three names: a piece with '=' and without ':' belongs to the one before. */
static int split_names(cli *c, const char *flag, const char *text, repro_names *out) {
    *out = (repro_names){0};
    if (strlen(text) >= sizeof out->memory)
        return cli_fail(c, EXIT_USAGE, "--%s is too long", flag);
    snprintf(out->memory, sizeof out->memory, "%s", text);
    for (char *at = out->memory, *comma; at; at = comma ? comma + 1 : NULL) {
        comma = strchr(at, ',');
        if (comma) *comma = '\0';
        if (out->count > 0 && strchr(at, '=') && !strchr(at, ':')) {
            at[-1] = ',';
            continue;
        }
        if (!*at) return cli_fail(c, EXIT_USAGE, "--%s wants names as in a,b,c", flag);
        if (out->count == REPRO_LIST)
            return cli_fail(c, EXIT_USAGE, "--%s takes %d names at most", flag, REPRO_LIST);
        for (int k = 0; k < out->count; k++)
            if (strcmp(out->at[k], at) == 0)
                return cli_fail(c, EXIT_USAGE, "--%s names %s twice", flag, at);
        out->at[out->count++] = at;
    }
    return 0;
}

int repro_models_flag(cli *c, const char *fallback, repro_names *out) {
    return split_names(c, "models", cli_text(c, "models", fallback), out);
}

int repro_data_flag(cli *c, const char *fallback, repro_names *out) {
    repro_names given;
    int code = split_names(c, "data", cli_text(c, "data", fallback), &given);
    *out = (repro_names){0};
    size_t used = 0;
    for (int k = 0; k < given.count && code == 0; k++) {
        mnp_data_opts o = {.size = sizeof o, .functions = 1};
        mnp_data *data = NULL;
        code = cli_input_data(c, given.at[k]);
        if (code) return code;
        mnp_status status = mnp_data_open(c->ctx, given.at[k], &o, &data);
        if (status != MNP_OK) return cli_failed(c, status);
        const char *name = mnp_data_name(data);
        size_t bytes = strlen(name) + 1;
        if (used + bytes > sizeof out->memory)
            code = cli_fail(c, EXIT_USAGE, "--data is too long");
        else {
            memcpy(out->memory + used, name, bytes);
            out->at[out->count++] = out->memory + used;
            used += bytes;
        }
        mnp_data_destroy(data);
    }
    return code;
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* The flag's value in place of the one the text has. */
static void set_option(cli *c, const char *flag, char text[REPRO_TEXT]) {
    if (!cli_has(c, flag)) return;
    char old[REPRO_TEXT];
    size_t used = 0, length = strlen(flag);
    snprintf(old, sizeof old, "%s", text);
    text[0] = '\0';
    for (char *word = strtok(old, " "); word; word = strtok(NULL, " "))
        if (strncmp(word, flag, length) != 0 || word[length] != '=')
            used += (size_t)snprintf(text + used, REPRO_TEXT - used, "%s ", word);
    snprintf(text + used, REPRO_TEXT - used, "%s=%s", flag, cli_text(c, flag, ""));
}

repro_task repro_task_make(repro_study *s, const char *model, const char *data, uint64_t seed,
                           const char *options) {
    cli *c = s->c;
    bool fixed = repro_model_find(model)->fixed;
    repro_task t = {.label = model, .model = model, .data = data, .seed = seed, .n_samples = 1};
    t.preset = cli_text(c, "preset", s->quick ? "tiny" : "paper");
    snprintf(t.train_options, sizeof t.train_options, "%s", options);
    if (!fixed) {
        set_option(c, "steps", t.train_options);
        set_option(c, "batch", t.train_options);
        t.seconds = cli_real(c, "seconds", 0, 1, 1e7);
    }
    t.functions = cli_int(c, "functions", s->quick ? 500 : 5000, 1, 100000000);
    t.train_functions = cli_int(c, "train-functions", s->quick ? 5000 : 50000, 1, 100000000);
    t.samples[0] = cli_int(c, "samples", 20, 1, 100000);
    return t;
}

/* ---- files ----------------------------------------------------------------------------------- */

void repro_path(const repro_study *s, const char *ending, char out[REPRO_PATH]) {
    snprintf(out, REPRO_PATH, "%.1500s/%s.%s", s->dir, s->name, ending);
}

int repro_check_out(cli *c, const char *dir, const char *name) {
    static const char *const endings[] = {"md", "json", "svg"};
    const repro_study s = {.c = c, .dir = dir, .name = name};
    char path[REPRO_PATH];
    snprintf(path, sizeof path, "%.1500s/cells", dir);
    int code = cli_output_folder(c, dir);
    if (code == 0) code = cli_output_folder(c, path);
    for (int k = 0; k < 3 && code == 0; k++) {
        repro_path(&s, endings[k], path);
        code = cli_output(c, path);
    }
    return code;
}

mnp_status repro_write(repro_study *s, const char *ending, const buf *text) {
    char path[REPRO_PATH];
    repro_path(s, ending, path);
    if (text->status != MNP_OK) return text->status;
    return fsio_write(&s->c->env, path, text->data, text->len);
}

void repro_put_head(cli_json *j, const repro_study *s) {
    cli_json_text(j, "study", s->name);
    cli_json_text(j, "version", mnp_version());
    json_key(&j->w, "quick");
    json_put_bool(&j->w, s->quick);
}

mnp_status repro_write_json(repro_study *s, repro_put put, const void *arg) {
    cli_json j;
    buf_init(&j.text, &s->c->env);
    json_writer_init(&j.w, &j.text, 2);
    json_object_begin(&j.w);
    put(&j, s, arg);
    json_object_end(&j.w);
    buf_text(&j.text, "\n");
    mnp_status status = repro_write(s, "json", &j.text);
    buf_free(&j.text);
    if (status != MNP_OK) return status;
    cli_json_begin(s->c, &j);
    put(&j, s, arg);
    cli_json_end(s->c, &j);
    return status;
}
