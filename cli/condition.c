/* condition.c: see condition.h. */
#include "cli/condition.h"

#include "util/limits.h"
#include "util/text.h"

bool condition_read(cli *c, mnp_condition usual, condition_ask *out) {
    *out = (condition_ask){.given = cli_has(c, "condition")};
    out->condition = (mnp_condition)cli_choice(c, "condition", "network|refine|exact", (int)usual);
    out->gradients = cli_int(c, "gradients", 0, 1, GRADIENTS_MAX);
    if (!cli_bad(c) && out->gradients && out->given && out->condition == MNP_NETWORK)
        cli_note(c, "note: --condition network takes no gradients: --gradients is not used");
    return !cli_bad(c);
}

/* ---- drawing --------------------------------------------------------------------------------- */

enum { SHOW_AFTER = 2, WARN_AFTER = 5, LONG = 60 }; /* seconds */

void condition_progress(void *user, int64_t done, int64_t total) {
    progress *p = user;
    if (cli_now() - p->started < SHOW_AFTER || done == total) return;
    p->total = total;
    progress_show(p, done, "");
}

void condition_bar_begin(condition_bar *b, const cli *c, const mnp_condition *condition) {
    *b = (condition_bar){.condition = condition};
    progress_begin(&b->bar, c, "gradients", 0, 1);
}

void condition_bar_end(condition_bar *b) {
    progress_end(&b->bar);
}

/* Once, as soon as it is seen, and not after minutes of silence. */
static void warn_long(condition_bar *b, int64_t done, int64_t total) {
    char time[TEXT_NUMBER];
    double all = (cli_now() - b->bar.started) * (double)total / (double)done;
    if (b->warned || all < LONG) return;
    b->warned = true;
    if (b->bar.shown > b->bar.started) progress_end(&b->bar); /* the line stays */
    cli_note(
        b->bar.c,
        "warning: this takes %s %s: ask for fewer functions, give fewer points (the work grows "
        "with their square where there are many)%s, or wait",
        *b->condition == MNP_EXACT ? "up to" : "about", text_time(time, all),
        *b->condition == MNP_NETWORK ? "" : ", take --condition network");
}

void condition_bar_show(void *user, int64_t done, int64_t total) {
    condition_bar *b = user;
    b->bar.what = *b->condition == MNP_NETWORK ? "functions" : "gradients";
    if (done > 0 && cli_now() - b->bar.started >= WARN_AFTER) warn_long(b, done, total);
    condition_progress(&b->bar, done, total);
}

mnp_status condition_draw(cli *c, mnp_predictor *p, int64_t samples, const condition_ask *how,
                          drawn *out) {
    condition_bar bar;
    mnp_draw_opts o = {.size = sizeof o,
                       .samples = samples,
                       .seed = c->seed,
                       .progress = condition_bar_show,
                       .progress_user = &bar};
    *out = (drawn){0};
    double start = cli_now();
    condition_bar_begin(&bar, c, &o.condition);
    mnp_status status = condition_make(c->ctx, p, how, &o, out);
    condition_bar_end(&bar);
    out->seconds = cli_now() - start;
    if (status == MNP_OK && !how->silent) condition_tell(c, out);
    return status;
}

/* ---- what is said about it ------------------------------------------------------------------- */

void condition_tell(const cli *c, const drawn *d) {
    const mnp_draw_report *r = &d->report;
    if (d->note[0]) cli_note(c, "note: %s", d->note);
    if (r->condition != MNP_NETWORK)
        cli_note(c,
                 "%s: %lld particles, %lld gradients each, acceptance %.2f, %.1f s; log p(point | "
                 "function) %.3f, of the network's draws %.3f",
                 r->condition == MNP_EXACT ? "exact" : "refine", (long long)r->particles,
                 (long long)r->gradients, r->acceptance, d->seconds, r->fit_after, r->fit_before);
    char text[CONDITION_TEXT];
    for (int k = 0; k < CONDITION_WARNINGS; k++)
        if (condition_warning(d, k, text)) cli_note(c, "warning: %s", text);
}

void condition_json(const cli *c, cli_json *j, const drawn *d) {
    condition_members(&j->w, d, buf_str(&c->warnings));
}
