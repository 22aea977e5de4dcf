/* cell.c: the cells of a study, one after the other, and the files that keep their results. In a
 * job ranks share cells; then rank 0 reads the results of the others. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "cli/outputs.h"
#include "lab/study.h"
#include "util/text.h"

const char *cell_state_name(cell_state state) {
    static const char *const names[] = {"open", "done", "absent", "failed"};
    return names[state];
}

int study_cells(study *s, int count, size_t bytes) {
    s->cells = env_alloc(&s->c->env, (size_t)count, bytes, "the cells of a study");
    s->count = s->cells ? count : 0;
    s->cell_bytes = bytes;
    return s->cells ? 0 : study_failed(s);
}

cell *study_cell(const study *s, int k) {
    return (cell *)(void *)(s->cells + (size_t)k * s->cell_bytes);
}

void study_plain(char *name) {
    for (char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '.') *p = '-';
}

void cell_name(const study *s, cell *c, const char *fmt, ...) {
    char name[STUDY_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    study_plain(name);
    snprintf(c->stem, sizeof c->stem, "%.1500s/cells/%s-%08llx", s->dir, name,
             (unsigned long long)(text_hash(0, c->key, strlen(c->key)) >> 32));
}

/* ---- files ----------------------------------------------------------------------------------- */

void list_begin(cli_json *j, const char *key) {
    json_key(&j->w, key);
    json_array_begin(&j->w);
}

void numbers_put(cli_json *j, const char *key, const double *v, int count) {
    list_begin(j, key);
    for (int k = 0; k < count; k++) json_put_number(&j->w, v[k]);
    json_array_end(&j->w);
}

static double number(const json_value *v) {
    return v && v->kind == JSON_NUMBER ? v->number : NAN;
}

double field_number(const json_value *object, const char *key) {
    return number(json_get(object, key));
}

int numbers_get(const json_value *root, const char *key, double *v, int most) {
    const json_value *list = json_get(root, key), *at;
    int k = 0;
    for (; k < most && (at = json_at(list, (size_t)k)); k++) v[k] = number(at);
    return k;
}

void fields_put(cli_json *j, const field *f, size_t count, const void *from) {
    for (size_t k = 0; k < count; k++) {
        const void *at = (const char *)from + f[k].offset;
        if (f[k].whole)
            cli_json_put(j, INTEGER(f[k].name, *(const int64_t *)at));
        else
            cli_json_put(j, NUMBER(f[k].name, *(const double *)at));
    }
}

/* The file may have been edited. */
bool fields_get(const json_value *root, const field *f, size_t count, void *to) {
    for (size_t k = 0; k < count; k++) {
        void *at = (char *)to + f[k].offset;
        double v = field_number(root, f[k].name);
        if (!f[k].whole)
            *(double *)at = v;
        else if (v >= 0 && v < 0x1p53 && v == floor(v))
            *(int64_t *)at = (int64_t)v;
        else
            return false;
    }
    return true;
}

enum { CELL_BYTES = 1 << 28 }; /* of a file at most: some keep a number for every function */

/* Is there a result with this very key? */
static bool read_cell(const study *s, cell *c) {
    env quiet = s->c->env; /* a cell that is not there is no error */
    char path[STUDY_PATH + 8];
    json_doc *doc = NULL;
    snprintf(path, sizeof path, "%s.json", c->stem);
    if (json_read(&quiet, path, CELL_BYTES, &doc) != MNP_OK) return false;
    const json_value *root = json_root(doc), *key = json_get(root, "key");
    bool ok = key && key->kind == JSON_STRING && strcmp(key->string, c->key) == 0 &&
              s->def->get(root, s, c);
    if (ok) c->state = CELL_DONE;
    json_destroy(doc);
    return ok;
}

/* A result that cannot be written ends the study: cli_bad(). */
static int write_cell(const study *s, const cell *c) {
    char path[STUDY_PATH + 8];
    cli_json j;
    snprintf(path, sizeof path, "%s.json", c->stem);
    cli_json_begin(s->c, &j);
    cli_json_put(&j, TEXT("key", c->key));
    s->def->put(&j, s, c);
    json_object_end(&j.w);
    buf_text(&j.text, "\n");
    mnp_status status = j.text.status;
    if (status == MNP_OK) status = fsio_write(&s->c->env, path, j.text.data, j.text.len);
    buf_free(&j.text);
    return status == MNP_OK ? 0 : (s->c->status = study_failed(s));
}

/* ---- time left ------------------------------------------------------------------------------- */

/* Mean seconds of the finished cells of this label, else of all, else of the one that runs. */
static double expected(const study *s, const cell *c, double running) {
    double own = 0, all = 0;
    int n_own = 0, n_all = 0;
    for (int k = 0; k < s->count; k++) {
        const cell *done = study_cell(s, k);
        if (done->state != CELL_DONE) continue;
        all += done->seconds;
        n_all++;
        if (strcmp(done->label, c->label) != 0) continue;
        own += done->seconds;
        n_own++;
    }
    bool same = strcmp(study_cell(s, s->current)->label, c->label) == 0;
    if (n_own) return own / n_own;
    return same || !n_all ? running : all / n_all;
}

double study_time_left(const study *s, double running) {
    double left = 0;
    for (int k = s->current + 1; k < s->count; k++)
        if (study_cell(s, k)->state == CELL_OPEN) left += expected(s, study_cell(s, k), running);
    return left;
}

void study_progress(void *user, int64_t done, int64_t total) {
    (void)total;
    progress_show(user, done, "");
}

/* ---- all cells ------------------------------------------------------------------------------- */

static void name_current(study *s, int k) {
    int used = snprintf(s->what, sizeof s->what, "[%d/%d] ", k + 1, s->count);
    s->def->title(s, study_cell(s, k), s->what + used, sizeof s->what - (size_t)used);
    s->current = k;
}

static int finish(study *s, int k) {
    cell *c = study_cell(s, k);
    char text[STUDY_TEXT];
    int code = write_cell(s, c);
    if (code) return code;
    c->state = CELL_DONE;
    if (s->def->drop) s->def->drop(c);
    name_current(s, k);
    s->def->say(s, c, text, sizeof text);
    cli_say(s->c, "%s: %s", s->what, text);
    return cli_printed(s->c); /* finished cells are kept */
}

/* Of the group of cell k: the first after its last cell. */
static int group_end(const study *s, int k) {
    int group = study_cell(s, k)->group, end = k + 1;
    while (group && end < s->count && study_cell(s, end)->group == group) end++;
    return end;
}

/* Cell k, and what is open of its group. */
static int run_one(study *s, int k) {
    name_current(s, k);
    s->started = cli_now();
    int code = cli_interrupted() ? EXIT_INTERRUPTED : s->def->run(s, study_cell(s, k));
    if (!study_cell(s, k)->group) return code ? code : finish(s, k);
    for (int j = k, end = group_end(s, k); j < end; j++) {
        const cell *c = study_cell(s, j);
        int kept = c->state == CELL_OPEN && c->scored ? finish(s, j) : 0;
        if (kept) return kept;
    }
    name_current(s, k);
    return code;
}

/* Ranks take groups in turn. */
static bool mine(const study *s, int k) {
    int groups = 0;
    for (int j = group_end(s, 0); j <= k; j = group_end(s, j)) groups++;
    return groups % s->c->ranks == s->c->rank;
}

/* What is open of the group; how many. */
static int fail_group(study *s, int k) {
    int failed = 0;
    for (int end = group_end(s, k); k < end; k++) {
        cell *c = study_cell(s, k);
        if (c->state == CELL_OPEN) c->state = CELL_FAILED, failed++;
    }
    return failed;
}

static int collect(study *s, int failed) {
    int code = study_meet(s);
    if (code) return code;
    for (int k = 0; k < s->count && s->c->rank == 0; k++) {
        cell *c = study_cell(s, k);
        if (c->state != CELL_OPEN || mine(s, k) || read_cell(s, c)) continue;
        c->state = CELL_FAILED;
        failed++;
    }
    return failed ? EXIT_FAILED : 0;
}

int study_run_cells(study *s) {
    int kept = 0, failed = 0;
    for (int k = 0; k < s->count; k++) {
        cell *c = study_cell(s, k);
        if (c->state != CELL_OPEN || !read_cell(s, c)) continue;
        kept++;
        if (s->def->drop) s->def->drop(c); /* it may have been killed before it did so */
    }
    cli_say(s->c, "%s: %d cells in %s%s, seed %llu", s->def->name, s->count, s->dir,
            s->quick ? " (quick: small settings)" : "", (unsigned long long)s->c->seed);
    if (kept) cli_say(s->c, "%d of them are finished already", kept);
    if (cli_printed(s->c)) return EXIT_FAILED;
    for (int k = 0; k < s->count; k++) {
        if (study_cell(s, k)->state != CELL_OPEN || !mine(s, k)) continue;
        int code = run_one(s, k);
        if (code == 0) continue;
        if (code == EXIT_INTERRUPTED)
            return cli_fail(s->c, code,
                            "interrupted in cell %d of %d; the same command goes on from there "
                            "(finished cells and checkpoints are in %s)",
                            k + 1, s->count, s->dir);
        if (cli_bad(s->c) || cli_printed(s->c)) return code; /* nor could those to come be kept */
        failed += fail_group(s, k);
        cli_fail(s->c, 0, "%s failed; the other cells go on", s->what);
    }
    return collect(s, failed);
}
