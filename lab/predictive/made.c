/* made.c: a model of predictive that has no file is trained, into DIR/models. A run that was
 * interrupted goes on from its checkpoint. */
#include <string.h>
#include <unistd.h>

#include "cli/training.h"
#include "lab/predictive/predictive.h"

enum { VALID_FUNCTIONS = 1000 }; /* as mnp train does it */

static mnp_status open_data(const predictive *s, int task, mnp_split split, int64_t functions,
                            mnp_data **out) {
    mnp_data_opts o = {.size = sizeof o,
                       .split = split,
                       .functions = functions,
                       .seed = s->s.c->seed,
                       .cache = cli_text(s->s.c, "cache", NULL)};
    return mnp_data_open(s->s.c->ctx, s->tasks.at[task], &o, out);
}

static int64_t train_functions(const predictive *s) {
    return cli_int(s->s.c, "train-functions", s->s.quick ? 2000 : 50000, 1, 100000000);
}

static bool is_network(const char *kind) {
    return strcmp(kind, "gp") != 0;
}

static const char *precision_of(const predictive *s, const training *t) {
    return is_network(t->process) ? s->s.precision : "fp32";
}

/* The note of a model that was trained here: all that the command said of its training. Older ones
 * end before the precision, from the returned place on. */
static const char made[] = "made";

static size_t describe(const predictive *s, const training *t, buf *to) {
    buf_printf(to, "preset %s, %s; training %s; %lld functions; seed %llu", t->preset,
               buf_str(&t->model_options), buf_str(&t->train_options),
               (long long)train_functions(s), (unsigned long long)t->seed);
    size_t older = to->len;
    buf_printf(to, "; in %s", precision_of(s, t));
    return older;
}

/* A note without a precision is of fp32. */
static bool made_so(const char *note, const char *how, size_t older, const char *precision) {
    bool was = strlen(note) == older && strncmp(note, how, older) == 0;
    return strcmp(note, how) == 0 || (was && strcmp(precision, "fp32") == 0);
}

static mnp_status note_how(const predictive *s, const training *t) {
    buf how;
    buf_init(&how, &s->s.c->env);
    describe(s, t, &how);
    mnp_status status = mnp_model_set_note(s->s.c->ctx, t->model, made, buf_str(&how));
    buf_free(&how);
    return status;
}

static mnp_status start(predictive *s, int task, training *t) {
    MNP_TRY(open_data(s, task, MNP_TRAIN, train_functions(s), &t->train));
    MNP_TRY(open_data(s, task, MNP_VALID, s->s.quick ? 64 : VALID_FUNCTIONS, &t->valid));
    MNP_TRY(training_make_model(t));
    MNP_TRY(note_how(s, t));
    MNP_TRY(training_make_trainer(t));
    return run_files_exist(t->files.train) ? training_resume(t, false) : MNP_OK;
}

static void set_options(predictive *s, const predictive_row *r, training *t) {
    cli *c = s->s.c;
    bool quick = s->s.quick, network = is_network(r->kind);
    t->process = r->kind;
    t->preset = cli_text(c, "preset", quick ? "tiny" : "paper");
    t->seed = c->seed;
    t->device = network ? cli_device(c) : "cpu";
    t->what = r->label;
    t->again = "the same command";
    if (*r->options) buf_text(&t->model_options, r->options);
    if (strcmp(r->kind, "mnp") == 0) /* as lab/training/train_models.sh: lab/NOTEBOOK.md says why */
        buf_text(&t->model_options, " y_gain=4 flow_gain=1");
    if (quick) buf_text(&t->train_options, "steps=60 batch=16 valid_every=60 valid_functions=32");
    if (!network) /* nine numbers need no more */
        buf_text(&t->train_options, quick ? " batch=5 lr=0.05" : "");
    else if (cli_has(c, "steps"))
        training_option(&t->train_options, "steps", cli_text(c, "steps", ""));
    if (network && cli_has(c, "batch"))
        training_option(&t->train_options, "batch", cli_text(c, "batch", ""));
    training_settings(t);
}

/* What only a run that goes on needs. */
static void drop(const run_files *f) {
    unlink(f->last);
    unlink(f->train);
}

/* Can this program make it? Otherwise why not: the row is a gap. */
static bool can_make(predictive *s, const predictive_row *r, predictive_model *at) {
    mnp_model *m = NULL;
    mnp_status status = mnp_model_create(s->s.c->ctx, r->kind, "tiny", r->options, NULL, 0, &m);
    mnp_model_destroy(m);
    if (status != MNP_OK)
        snprintf(at->why, sizeof at->why, "%.400s",
                 mnp_last_error(s->s.c->ctx)); /* its first part */
    at->why[strcspn(at->why, ";")] = '\0';
    return status == MNP_OK;
}

int predictive_check_made(predictive *s, int row, const char *path, const mnp_model *m) {
    cli *c = s->s.c;
    const char *note = mnp_model_note(m, made);
    training t;
    buf how;
    training_init(&t, c);
    buf_init(&how, &c->env);
    set_options(s, &s->row[row], &t);
    size_t older = describe(s, &t, &how);
    int code = cli_bad(c) ? c->status : 0;
    if (code == 0 && note && !made_so(note, buf_str(&how), older, precision_of(s, &t)))
        code =
            cli_fail(c, EXIT_FAILED,
                     "%s was trained otherwise (%s): take another --out, or remove it", path, note);
    buf_free(&how);
    training_free(&t);
    return code;
}

int predictive_make(predictive *s, int row, int task, const char *path) {
    cli *c = s->s.c;
    training t;
    char what[STUDY_TEXT], part[STUDY_PATH + 32];
    const predictive_row *r = &s->row[row];
    if (!can_make(s, r, predictive_model_of(s, row, task))) return 0;
    training_init(&t, c);
    set_options(s, r, &t);
    snprintf(what, sizeof what, "training %s on %.100s", r->label, s->tasks.at[task]);
    t.what = what;
    /* Under another name until it is whole: what is found by its name is finished. Another
     * precision does not go on from it. */
    snprintf(part, sizeof part, "%.*s.%s.part", (int)(strlen(path) - strlen(".safetensors")), path,
             precision_of(s, &t));
    int code = run_files_init(&t.files, c, part);
    mnp_status status = code == 0 ? start(s, task, &t) : MNP_OK;
    if (status == MNP_ECANCELLED)
        code = EXIT_INTERRUPTED; /* said below */
    else if (status != MNP_OK)
        code = cli_failed(c, status);
    else if (code == 0)
        code = training_run(&t);
    if (code == 0) {
        drop(&t.files);
        unlink(t.files.log);
        if (rename(t.files.best, path) != 0)
            code = cli_fail(c, EXIT_FAILED, "%s cannot be made", path);
    }
    training_free(&t);
    if (code == 0) *predictive_model_of(s, row, task)->why = '\0';
    if (code != EXIT_INTERRUPTED) return code;
    return cli_fail(c, code, "interrupted while %s; the same command goes on", what);
}
