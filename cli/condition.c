/* condition.c: see condition.h. */
#include "cli/condition.h"

#include <string.h>

#include "util/limits.h"

static const char *const called[] = {"network", "refine", "exact"};

bool condition_read(cli *c, mnp_condition usual, condition_ask *out) {
    *out = (condition_ask){.given = cli_has(c, "condition")};
    out->condition = (mnp_condition)cli_choice(c, "condition", "network|refine|exact", (int)usual);
    out->gradients = cli_int(c, "gradients", 0, 1, GRADIENTS_MAX);
    if (!cli_bad(c) && out->gradients && out->given && out->condition == MNP_NETWORK)
        cli_note(c, "note: --condition network takes no gradients: --gradients is not used");
    return !cli_bad(c);
}

const char *condition_name(mnp_condition how) {
    return called[how];
}

int condition_named(const char *word) {
    for (int k = MNP_NETWORK; k <= MNP_EXACT; k++)
        if (strcmp(word, called[k]) == 0) return k;
    return -1;
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Points times functions that the default refines: some seconds on two cores. */
enum { USUAL_WORK_MAX = 20000 };
enum { SHOW_AFTER = 2 }; /* seconds */

void condition_progress(void *user, int64_t done, int64_t total) {
    progress *p = user;
    if (cli_now() - p->started < SHOW_AFTER || done == total) return;
    p->total = total;
    progress_show(p, done, "");
}

static mnp_status draw(cli *c, mnp_predictor *p, mnp_draw_opts *o, mnp_draw_report *report) {
    progress bar;
    progress_begin(&bar, c, "gradients", 0, 1);
    o->progress = condition_progress, o->progress_user = &bar;
    mnp_status status = mnp_predictor_draw(p, o, report);
    progress_end(&bar);
    return status;
}

mnp_status condition_draw(cli *c, mnp_predictor *p, int64_t samples, const condition_ask *how,
                          drawn *out) {
    *out = (drawn){.report.size = sizeof out->report};
    mnp_draw_opts o = {.size = sizeof o,
                       .condition = how->condition,
                       .samples = samples,
                       .gradients = how->gradients,
                       .seed = c->seed + how->apart};
    int64_t points = mnp_predictor_observed(p);
    double start = cli_now();
    if (!how->given && o.condition != MNP_NETWORK && points * samples > USUAL_WORK_MAX) {
        snprintf(out->note, sizeof out->note,
                 "%lld points and %lld functions are many: drawn by the network; --condition "
                 "refine is more accurate and takes longer",
                 (long long)points, (long long)samples);
        o.condition = MNP_NETWORK;
    }
    mnp_status status = draw(c, p, &o, &out->report);
    if (status == MNP_EUNSUPPORTED && !how->given && o.condition != MNP_NETWORK) {
        snprintf(out->note, sizeof out->note, "drawn by the network: %.200s",
                 mnp_last_error(c->ctx));
        o.condition = MNP_NETWORK;
        status = draw(c, p, &o, &out->report);
    }
    out->seconds = cli_now() - start;
    if (status == MNP_OK) condition_tell(c, out);
    return status;
}

/* ---- what is said about it ------------------------------------------------------------------- */

static const struct {
    uint32_t bit;
    const char *text;
} warnings[] = {
    {MNP_DRAW_RHAT, "the particles have not settled (rhat above 1.1): raise --gradients, or use "
                    "--condition network"},
    {MNP_DRAW_REJECTED, "few moves were accepted (less than 0.3): raise --gradients, or use "
                        "--condition network"},
    {MNP_DRAW_FIT, "the functions fit the points worse than the network's: use --condition "
                   "network"},
    {MNP_DRAW_HURRIED, "too few gradients for as many temperatures as needed: raise --gradients, "
                       "or use --condition network"},
    {MNP_DRAW_FEW, "less than a tenth of the particles are independent: raise --gradients or the "
                   "number of functions, or use --condition network"},
    {MNP_DRAW_MISSED, "the functions miss the points, which may contradict each other or lie far "
                      "from the training data; compare with --condition network"},
};
enum { WARNINGS = sizeof warnings / sizeof *warnings };

void condition_tell(const cli *c, const drawn *d) {
    const mnp_draw_report *r = &d->report;
    if (d->note[0]) cli_note(c, "note: %s", d->note);
    if (r->condition != MNP_NETWORK)
        cli_note(c,
                 "%s: %lld particles, %lld gradients each, acceptance %.2f, %.1f s; log p(point | "
                 "function) %.3f, of the network's draws %.3f",
                 r->condition == MNP_EXACT ? "exact" : "refine", (long long)r->particles,
                 (long long)r->gradients, r->acceptance, d->seconds, r->fit_after, r->fit_before);
    for (int k = 0; k < WARNINGS; k++)
        if (r->warnings & warnings[k].bit) cli_note(c, "warning: %s", warnings[k].text);
}

void condition_json(cli_json *j, const drawn *d) {
    const mnp_draw_report *r = &d->report;
    cli_json_put(j, TEXT("condition", called[r->condition]), INTEGER("particles", r->particles),
                 INTEGER("gradients", r->gradients), NUMBER("acceptance", r->acceptance),
                 NUMBER("particle_ess", r->particle_ess), NUMBER("rhat", r->rhat),
                 NUMBER("log_evidence", r->log_evidence),
                 NUMBER("log_evidence_sd", r->log_evidence_sd), NUMBER("fit_before", r->fit_before),
                 NUMBER("fit_after", r->fit_after));
    json_key(&j->w, "warnings");
    json_array_begin(&j->w);
    if (d->note[0]) json_put_string(&j->w, d->note);
    for (int k = 0; k < WARNINGS; k++)
        if (r->warnings & warnings[k].bit) json_put_string(&j->w, warnings[k].text);
    json_array_end(&j->w);
}
