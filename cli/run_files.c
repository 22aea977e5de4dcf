/* run_files.c: see run_files.h. */
#include "cli/run_files.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/csv.h"

static const char ending[] = ".safetensors";
static const char header[] = "step,loss,kl,grad_norm,valid,rate,seconds\n";
enum { COLUMNS = 7, LOG_STEP = 0, LOG_SECONDS = 6 };

int run_files_init(run_files *f, cli *c, const char *out) {
    *f = (run_files){.logged = -1};
    buf_init(&f->lines, &c->env);
    buf_text(&f->lines, header);
    size_t length = strlen(out), tail = sizeof ending - 1;
    if (length > tail && strcmp(out + length - tail, ending) == 0) length -= tail;
    if (length == 0 || length > RUN_PATH - 32)
        return cli_fail(c, EXIT_USAGE, "'%s' is no name for a model file", out);
    snprintf(f->best, RUN_PATH, "%.*s%s", (int)length, out, ending);
    snprintf(f->last, RUN_PATH, "%.*s.last%s", (int)length, out, ending);
    snprintf(f->train, RUN_PATH, "%.*s.train%s", (int)length, out, ending);
    snprintf(f->log, RUN_PATH, "%.*s.log.csv", (int)length, out);
    return 0;
}

void run_files_free(run_files *f) {
    buf_free(&f->lines);
}

bool run_files_exist(const char *path) {
    return access(path, F_OK) == 0;
}

void run_files_log(run_files *f, const mnp_train_report *r, double seconds) {
    if (r->step == f->logged) return;
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
    csv_end_row(&w);
}

mnp_status run_files_write_log(run_files *f, cli *c) {
    if (f->lines.status != MNP_OK) return f->lines.status;
    return fsio_write(&c->env, f->log, buf_str(&f->lines), f->lines.len);
}

void run_files_read_log(run_files *f, cli *c, int64_t step) {
    csv_table *t = NULL;
    if (csv_read(&c->env, f->log, ',', &t) != MNP_OK) return;
    for (size_t r = 0; r < t->rows && t->columns == COLUMNS; r++) {
        double at = 0, seconds = 0;
        if (csv_number(&c->env, t, r, LOG_STEP, &at, NULL) != MNP_OK || at > (double)step) break;
        if (csv_number(&c->env, t, r, LOG_SECONDS, &seconds, NULL) == MNP_OK) f->seconds = seconds;
        for (size_t k = 0; k < COLUMNS; k++)
            buf_printf(&f->lines, "%s%s", k ? "," : "", csv_cell(t, r, k));
        buf_text(&f->lines, "\n");
        f->logged = (int64_t)at;
    }
    csv_destroy(t);
}
