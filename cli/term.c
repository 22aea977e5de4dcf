/* term.c: what commands print: lines, errors, JSON, progress. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/outputs.h"
#include "util/text.h"

/* ---- lines ----------------------------------------------------------------------------------- */

/* One line, escaped. What is longer than memory allows is lost, which is no error. */
static void put_line(FILE *to, const char *fmt, va_list ap) {
    env e;
    buf raw, line;
    env_init(&e);
    buf_init(&raw, &e);
    buf_init(&line, &e);
    buf_vprintf(&raw, fmt, ap);
    buf_plain(&line, buf_str(&raw));
    buf_text(&line, "\n");
    fwrite(buf_str(&line), 1, line.len, to);
    buf_free(&raw);
    buf_free(&line);
}

/* `text` is plain already. */
static void say_line(const cli *c, const char *text) {
    if (c->rank > 0)
        fprintf(stderr, "mnp %s: rank %d: %s\n", c->command->name, c->rank, text);
    else
        fprintf(stderr, "mnp %s: %s\n", c->command->name, text);
}

/* In a job an error waits for the end: one rank tells it. Before it is joined all ranks find the
 * same errors, and rank 0 tells them. */
int cli_fail(cli *c, int status, const char *fmt, ...) {
    char raw[sizeof c->why], text[sizeof c->why];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    text_plain(text, sizeof text, raw);
    if (status != 0 && (c->held || (c->joined && !c->alone)))
        memcpy(c->why, text, sizeof text);
    else if (c->rank == 0 || c->joined)
        say_line(c, text);
    return status;
}

int cli_fail_late(cli *c, int status, const char *why, cli_more *more, void *user) {
    char text[sizeof c->why], after[sizeof c->why], both[2 * sizeof c->why + 2];
    text_plain(text, sizeof text, why);
    if (c->joined && !c->alone && !mnp_job_abort(c->ctx, text)) return status;
    snprintf(both, sizeof both, "%s; %s", text, more(user, after, sizeof after));
    text_plain(text, sizeof text, both);
    if (c->held)
        memcpy(c->why, text, sizeof text);
    else
        say_line(c, text);
    return status;
}

void cli_tell(cli *c) {
    if (c->joined && c->why[0] && mnp_job_abort(c->ctx, c->why)) say_line(c, c->why);
    fflush(stderr);
}

int cli_failed(cli *c, mnp_status status) {
    if (cli_bad(c)) return c->status; /* its line is out already */
    const char *text = mnp_last_error(c->ctx);
    if (status == MNP_ECANCELLED) return cli_fail(c, EXIT_INTERRUPTED, "interrupted");
    return cli_fail(c, EXIT_FAILED, "%s", *text ? text : mnp_status_name(status));
}

void cli_say(const cli *c, const char *fmt, ...) {
    if (c->quiet) return;
    va_list ap;
    va_start(ap, fmt);
    errno = 0;
    put_line(c->json ? stderr : stdout, fmt, ap);
    outputs_flush(c->outputs);
    va_end(ap);
}

void cli_say_lines(const cli *c, const char *text) {
    do {
        int length = (int)strcspn(text, "\n");
        cli_say(c, "%.*s", length, text);
        text += length + (text[length] == '\n');
    } while (*text);
}

void cli_note(const cli *c, const char *fmt, ...) {
    if (c->quiet) return;
    va_list ap;
    va_start(ap, fmt);
    put_line(stderr, fmt, ap);
    va_end(ap);
}

/* The next line of a text, which is left at what follows it; false: there is none. */
static bool next_line(const char **text, const char **line, int *length) {
    *line = *text;
    *length = (int)strcspn(*text, "\n");
    *text += *length + ((*text)[*length] == '\n');
    return **line != '\0';
}

void cli_note_lines(const cli *c, const char *before, const char *lines) {
    const char *line;
    int length;
    while (next_line(&lines, &line, &length)) cli_note(c, "%s%.*s", before, length, line);
}

static bool is_line_of(const char *text, const char *line, int length) {
    const char *at;
    int n;
    while (next_line(&text, &at, &n))
        if (n == length && memcmp(at, line, (size_t)n) == 0) return true;
    return false;
}

void cli_warn_lines(cli *c, const char *lines) {
    const char *line;
    int length;
    while (next_line(&lines, &line, &length)) {
        if (is_line_of(buf_str(&c->warnings), line, length)) continue;
        cli_note(c, "warning: %.*s", length, line);
        buf_printf(&c->warnings, "%.*s\n", length, line);
    }
}

void cli_warn(cli *c, const char *fmt, ...) {
    buf raw, line;
    va_list ap;
    buf_init(&raw, &c->env);
    buf_init(&line, &c->env);
    va_start(ap, fmt);
    buf_vprintf(&raw, fmt, ap);
    va_end(ap);
    buf_plain(&line, buf_str(&raw)); /* one line, whatever names are in it */
    cli_warn_lines(c, buf_str(&line));
    buf_free(&raw);
    buf_free(&line);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void cli_json_begin(cli *c, cli_json *j) {
    buf_init(&j->text, &c->env);
    json_writer_init(&j->w, &j->text, 0);
    json_object_begin(&j->w);
}

void cli_json_members(cli_json *j, const cli_member *members, size_t count) {
    for (const cli_member *m = members; m < members + count; m++) {
        json_key(&j->w, m->key);
        if (m->kind == MEMBER_NUMBER)
            json_put_number(&j->w, m->number);
        else if (m->kind == MEMBER_INTEGER)
            json_put_integer(&j->w, m->integer);
        else if (m->text)
            json_put_string(&j->w, m->text);
        else
            json_put_null(&j->w);
    }
}

void cli_json_warnings(cli_json *j, const char *lines) {
    json_key(&j->w, "warnings");
    json_array_begin(&j->w);
    json_put_lines(&j->w, lines);
    json_array_end(&j->w);
}

void cli_json_end(cli *c, cli_json *j) {
    json_object_end(&j->w);
    errno = 0;
    if (c->json && j->text.status == MNP_OK) printf("%s\n", buf_str(&j->text));
    outputs_flush(c->outputs);
    buf_free(&j->text);
}

void cli_json_object(cli *c, const cli_member *members, size_t count) {
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_members(&j, members, count);
    cli_json_end(c, &j);
}

/* ---- progress -------------------------------------------------------------------------------- */

double cli_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

void progress_begin(progress *p, const cli *c, const char *what, int64_t done, int64_t total) {
    *p = (progress){.c = c, .what = what, .from = done, .total = total};
    p->terminal = isatty(STDERR_FILENO) == 1;
    p->started = cli_now();
    p->shown = p->terminal ? 0 : p->started;
}

void progress_show(progress *p, int64_t done, const char *note) {
    if (p->c->joined) mnp_job_heartbeat(p->c->ctx);
    double now = cli_now(), every = p->terminal ? 0.1 : 10.0;
    if (p->c->quiet || (now - p->shown < every && done < p->total)) return;
    p->shown = now;
    double took = now - p->started, rate = (double)(done - p->from) / (took > 0 ? took : 1e-9);
    char left[TEXT_NUMBER] = "?", speed[TEXT_NUMBER];
    if (rate > 0) text_time(left, (double)(p->total - done) / rate);
    text_count(speed, rate);
    char what[256];
    text_plain(what, sizeof what, p->what);
    int filled = p->total > 0 ? (int)(24 * done / p->total) : 24;
    if (p->terminal) {
        char bar[25];
        memset(bar, '-', 24);
        memset(bar, '=', (size_t)filled);
        bar[24] = '\0';
        fprintf(stderr, "\r%s [%s] %lld/%lld %s/s %s left  %s\033[K", what, bar, (long long)done,
                (long long)p->total, speed, left, note);
    } else {
        fprintf(stderr, "%s %lld/%lld %s/s %s left  %s\n", what, (long long)done,
                (long long)p->total, speed, left, note);
    }
    fflush(stderr);
}

void progress_end(progress *p) {
    if (p->terminal && !p->c->quiet && p->shown > 0) fputc('\n', stderr);
}
