/* study.c: what all studies do alike, from flags to tables. */
#include "lab/study.h"

#include <math.h>
#include <string.h>

#include "cli/outputs.h"
#include "util/text.h"

#define STUDY(name) extern const study_def study_##name;
#include "lab/studies.def"
#undef STUDY

const study_def *study_at(int k) {
    static const study_def *const table[] = {
#define STUDY(name) &study_##name,
#include "lab/studies.def"
#undef STUDY
    };
    return k >= 0 && k < (int)(sizeof table / sizeof *table) ? table[k] : NULL;
}

int study_failed(const study *s) {
    return cli_fail(s->c, EXIT_FAILED, "%s", s->c->env.error);
}

/* ---- the tables ------------------------------------------------------------------------------ */

static mnp_status write_file(const study *s, const char *ending, const buf *text) {
    char path[STUDY_PATH];
    snprintf(path, sizeof path, "%.1500s/%s.%s", s->dir, s->def->name, ending);
    if (text->status != MNP_OK) return text->status;
    return fsio_write(&s->c->env, path, text->data, text->len);
}

static mnp_status write_markdown(const study *s) {
    buf b;
    buf_init(&b, &s->c->env);
    s->def->markdown(&b, s);
    mnp_status status = write_file(s, "md", &b);
    buf_free(&b);
    return status;
}

static void put_json(cli_json *j, const study *s) {
    cli_json_put(j, TEXT("study", s->def->name), TEXT("version", mnp_version()));
    json_key(&j->w, "quick");
    json_put_bool(&j->w, s->quick);
    s->def->json(j, s);
    cli_json_put(j, TEXT("out", s->dir));
}

/* STUDY.json; with --json the same on one line of stdout. */
static mnp_status write_json(const study *s) {
    cli_json j;
    buf_init(&j.text, &s->c->env);
    json_writer_init(&j.w, &j.text, 2);
    json_object_begin(&j.w);
    put_json(&j, s);
    json_object_end(&j.w);
    buf_text(&j.text, "\n");
    mnp_status status = write_file(s, "json", &j.text);
    buf_free(&j.text);
    if (status != MNP_OK) return status;
    cli_json_begin(s->c, &j);
    put_json(&j, s);
    cli_json_end(s->c, &j);
    return MNP_OK;
}

static int write_tables(study *s) {
    int code = s->def->pictures ? s->def->pictures(s) : 0;
    if (code) return code;
    if (write_markdown(s) != MNP_OK || write_json(s) != MNP_OK) return study_failed(s);
    cli_say(s->c, "%s/%s", s->dir, s->def->files);
    return 0;
}

/* ---- the study ------------------------------------------------------------------------------- */

static int refuse_flags(cli *c, const study_def *d) {
    char text[STUDY_TEXT];
    snprintf(text, sizeof text, "%s", d->refused ? d->refused : "");
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        if (cli_has(c, word)) return cli_fail(c, EXIT_USAGE, "--%s is not for %s", word, d->name);
    return 0;
}

/* What is trained is scored, too, which precision auto is not for: better now than after hours. */
static int find_precision(study *s) {
    mnp_status status = mnp_device_precision(s->c->ctx, cli_device(s->c), &s->precision);
    if (status != MNP_OK) return cli_failed(s->c, status);
    if (strcmp(s->precision, "auto") != 0) return 0;
    return cli_fail(s->c, EXIT_USAGE,
                    "precision auto is for mnp train alone; take fp32, tf32, bf16 or mixed");
}

int study_run(const study_def *d, cli *c) {
    int code = refuse_flags(c, d);
    if (code) return code;
    study *s = env_alloc(&c->env, 1, d->bytes, "a study");
    if (!s) return cli_fail(c, EXIT_FAILED, "%s", c->env.error);
    *s = (study){.def = d, .c = c, .quick = cli_has(c, "quick")};
    snprintf(s->usual_dir, sizeof s->usual_dir, "repro-%s", d->name);
    s->dir = cli_text(c, "out", s->usual_dir);
    code = find_precision(s);
    if (code == 0) code = d->prepare(s);
    if (code == 0) {
        code = study_run_cells(s);
        bool stopped = code == EXIT_INTERRUPTED || cli_bad(c) || cli_printed(c) || c->rank > 0;
        int written = stopped ? 0 : write_tables(s);
        if (written) code = written;
    }
    if (d->close) d->close(s);
    env_free(&c->env, s->cells);
    env_free(&c->env, s);
    return code;
}

/* ---- its folder ------------------------------------------------------------------------------ */

/* Can the tables be written? What killed processes left half-written goes. */
static int claim(const study *s) {
    static const char *const endings[] = {"md", "json", "svg"};
    cli *c = s->c;
    char cells[STUDY_PATH], path[STUDY_PATH];
    snprintf(cells, sizeof cells, "%.1500s/cells", s->dir);
    int code = cli_output_folder(c, s->dir);
    if (code == 0) code = cli_output_folder(c, cells);
    for (int k = 0; k < 3 && code == 0; k++) {
        snprintf(path, sizeof path, "%.1500s/%s.%s", s->dir, s->def->name, endings[k]);
        code = cli_output(c, path);
    }
    if (code == 0) code = lock_take(&c->lock, c, s->dir);
    if (code || !lock_held(&c->lock)) return code;
    fsio_sweep_folder(s->dir);
    fsio_sweep_folder(cells);
    return 0;
}

/* ---- in a job -------------------------------------------------------------------------------- */

int study_claim(study *s) {
    cli *c = s->c;
    int code = c->rank == 0 ? claim(s) : 0;
    cli_alone(c, false);
    mnp_status status = mnp_job_broadcast(c->ctx, &code, sizeof code);
    cli_alone(c, true);
    return status == MNP_OK ? code : cli_failed(c, status);
}

int study_meet(study *s) {
    cli_alone(s->c, false);
    mnp_status status = mnp_job_barrier(s->c->ctx);
    int code = status == MNP_OK ? 0 : cli_failed(s->c, status);
    cli_alone(s->c, true);
    return code;
}

int study_find(study *s, int count, int (*find)(study *s, int k)) {
    int code = 0;
    for (int turn = 0; turn < 2 && code == 0; turn++) {
        for (int k = 0; k < count && code == 0 && (s->c->rank > 0) == turn; k++) code = find(s, k);
        if (turn == 0 && code == 0) code = study_meet(s);
    }
    return code;
}

mnp_status study_hash_file(env *e, const char *path, uint64_t *out) {
    char *bytes = NULL;
    size_t count = 0;
    mnp_status status = fsio_read(e, path, (size_t)1 << 30, &bytes, &count);
    if (status == MNP_OK) *out = text_hash(0, bytes, count);
    env_free(e, bytes);
    return status;
}

/* ---- lists of names -------------------------------------------------------------------------- */

int names_split(cli *c, const char *flag, const char *text, names *out) {
    *out = (names){0};
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
        if (out->count == NAMES_MAX)
            return cli_fail(c, EXIT_USAGE, "--%s takes %d names at most", flag, NAMES_MAX);
        for (int k = 0; k < out->count; k++)
            if (strcmp(out->at[k], at) == 0)
                return cli_fail(c, EXIT_USAGE, "--%s names %s twice", flag, at);
        out->at[out->count++] = at;
    }
    return 0;
}

/* ---- Markdown and pictures ------------------------------------------------------------------- */

void md_title(buf *b, const study *s, const char *title, const char *quick) {
    buf_printf(b, "# %s%s\n\n", title, s->quick ? " (quick)" : "");
    if (s->quick) buf_printf(b, "**Quick settings**: %s\n\n", quick);
}

void md_rule(buf *b, int columns) {
    buf_text(b, "|");
    for (int k = 0; k < columns; k++) buf_text(b, "---|");
}

void md_pm(buf *b, double v, double se, int digits) {
    if (!isfinite(v))
        buf_text(b, "—");
    else if (!isfinite(se))
        buf_printf(b, "%.*f", digits, v);
    else
        buf_printf(b, "%.*f ± %.*f", digits, v, digits, se);
}

int study_save(study *s, mnp_plot *f, bool png, const char *fmt, ...) {
    char name[STUDY_TEXT], path[STUDY_PATH];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    snprintf(path, sizeof path, "%.1500s/%s.svg", s->dir, name);
    mnp_status status = figure_save(s->c, f, path);
    if (status == MNP_OK && png) {
        snprintf(path, sizeof path, "%.1500s/%s.png", s->dir, name);
        status = figure_save(s->c, f, path);
        if (status == MNP_EUNSUPPORTED) status = MNP_OK;
    }
    mnp_plot_destroy(f);
    return status == MNP_OK ? 0 : study_failed(s);
}
