/* condition.c: see condition.h. */
#include "cli/condition.h"

#include "util/limits.h"

bool condition_read(cli *c, mnp_condition usual, condition_ask *out) {
    *out = (condition_ask){.given = cli_has(c, "condition")};
    out->condition = (mnp_condition)cli_choice(c, "condition", "network|refine|exact", (int)usual);
    out->gradients = cli_int(c, "gradients", 0, 1, GRADIENTS_MAX);
    if (!cli_bad(c) && out->gradients && out->given && out->condition == MNP_NETWORK)
        cli_note(c, "note: --condition network takes no gradients: --gradients is not used");
    return !cli_bad(c);
}

/* ---- drawing --------------------------------------------------------------------------------- */

enum { SHOW_AFTER = 2 }; /* seconds */

void condition_progress(void *user, int64_t done, int64_t total) {
    progress *p = user;
    if (cli_now() - p->started < SHOW_AFTER || done == total) return;
    p->total = total;
    progress_show(p, done, "");
}

mnp_status condition_draw(cli *c, mnp_predictor *p, int64_t samples, const condition_ask *how,
                          drawn *out) {
    progress bar;
    mnp_draw_opts o = {.size = sizeof o,
                       .samples = samples,
                       .seed = c->seed,
                       .progress = condition_progress,
                       .progress_user = &bar};
    *out = (drawn){0};
    double start = cli_now();
    progress_begin(&bar, c, "gradients", 0, 1);
    mnp_status status = condition_make(c->ctx, p, how, &o, out);
    progress_end(&bar);
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

void condition_json(cli_json *j, const drawn *d) {
    condition_json_with(j, d, "");
}

void condition_json_with(cli_json *j, const drawn *d, const char *lines) {
    condition_members(&j->w, d, lines);
}
