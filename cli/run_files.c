/* run_files.c: see run_files.h. */
#include "cli/run_files.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/outputs.h"
#include "util/csv.h"
#include "util/text.h"

static const char ending[] = ".safetensors";
static const char header[] = "step,loss,kl,grad_norm,valid,rate,seconds,rounding,sampling,shift\n";
/* Logs of older versions end with the seconds. */
enum { COLUMNS = 10, COLUMNS_FIRST = 7, LOG_STEP = 0, LOG_SECONDS = 6, LOG_LINES = 500 };

/* Of a name without its ending. */
static size_t stem(const char *out) {
    size_t length = strlen(out), tail = sizeof ending - 1;
    return length > tail && strcmp(out + length - tail, ending) == 0 ? length - tail : length;
}

bool run_files_same(const char *a, const char *b) {
    size_t length = stem(a);
    return length == stem(b) && strncmp(a, b, length) == 0;
}

int run_files_init(run_files *f, cli *c, const char *out) {
    *f = (run_files){.logged = -1};
    buf_init(&f->lines, &c->env);
    buf_text(&f->lines, header);
    size_t length = stem(out);
    if (length == 0 || length > RUN_PATH - 32)
        return cli_fail(c, EXIT_USAGE, "'%s' is no name for a model file", out);
    snprintf(f->best, RUN_PATH, "%.*s%s", (int)length, out, ending);
    snprintf(f->last, RUN_PATH, "%.*s.last%s", (int)length, out, ending);
    snprintf(f->train, RUN_PATH, "%.*s.train%s", (int)length, out, ending);
    snprintf(f->log, RUN_PATH, "%.*s.log.csv", (int)length, out);
    const char *const all[] = {f->best, f->last, f->train, f->log};
    int code = 0;
    for (int k = 0; k < 4 && code == 0; k++) code = cli_output(c, all[k]);
    return code;
}

int run_files_claim(run_files *f, cli *c) {
    int code = lock_take(&f->lock, c, f->best);
    if (code || !lock_held(&f->lock)) return code;
    const char *const all[] = {f->best, f->last, f->train, f->log};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) fsio_sweep(all[k]);
    return 0;
}

void run_files_free(run_files *f) {
    buf_free(&f->lines);
    lock_release(&f->lock);
}

bool run_files_exist(const char *path) {
    return access(path, F_OK) == 0;
}

uint64_t run_files_stamp(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0) return 0;
    const int64_t is[] = {(int64_t)st.st_ino, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
    return text_hash(0, is, sizeof is) | 1;
}

/* ---- the log --------------------------------------------------------------------------------- */

int64_t run_files_log_every(int64_t steps) {
    return steps / LOG_LINES > 0 ? steps / LOG_LINES : 1;
}

void run_files_log(run_files *f, const mnp_train_report *r, double seconds) {
    bool due = r->step % run_files_log_every(r->steps) == 0 || r->step == r->steps;
    if (!due || r->step <= f->logged) return;
    f->logged = r->step;
    csv_writer w;
    csv_writer_init(&w, &f->lines, '\0');
    csv_put_integer(&w, r->step);
    csv_put_float(&w, (float)r->loss);
    csv_put_float(&w, (float)r->kl);
    csv_put_float(&w, (float)r->grad_norm);
    csv_put_float(&w, (float)r->valid);
    csv_put_float(&w, (float)r->rate);
    csv_put_float(&w, (float)(f->seconds + seconds));
    csv_put_float(&w, (float)r->rounding);
    csv_put_float(&w, (float)r->sampling);
    csv_put_float(&w, (float)r->shift);
    csv_end_row(&w);
}

mnp_status run_files_write_log(run_files *f, cli *c) {
    if (f->lines.status != MNP_OK) return f->lines.status;
    return fsio_write(&c->env, f->log, buf_str(&f->lines), f->lines.len);
}

static void take_rows(run_files *f, cli *c, const csv_table *t, int64_t last) {
    bool known = t->columns == COLUMNS || t->columns == COLUMNS_FIRST;
    for (size_t r = 0; r < t->rows && known; r++) {
        int64_t at = 0;
        double seconds = 0;
        if (text_parse_int64(csv_cell(t, r, LOG_STEP), &at) != TEXT_OK || at <= f->logged ||
            at > last)
            break;
        if (csv_number(&c->env, t, r, LOG_SECONDS, &seconds, NULL) == MNP_OK) f->seconds = seconds;
        for (size_t k = 0; k < COLUMNS; k++)
            buf_printf(&f->lines, "%s%s", k ? "," : "", k < t->columns ? csv_cell(t, r, k) : "NA");
        buf_text(&f->lines, "\n");
        f->logged = at;
    }
}

void run_files_read_log(run_files *f, cli *c, const mnp_train_report *r) {
    csv_table *t = NULL;
    if (csv_read(&c->env, f->log, ',', &t) == MNP_OK) take_rows(f, c, t, r->step);
    csv_destroy(t);
    int64_t every = run_files_log_every(r->steps);
    int64_t due = r->step == r->steps ? r->steps : r->step / every * every;
    if (f->logged < due && due > 0 && cli_writes(c))
        cli_say(c, "%s lacks the rows of steps %lld to %lld", f->log,
                (long long)(f->logged > 0 ? f->logged + 1 : 1), (long long)due);
}
