/* condition.c: see condition.h. */
#include "cli/condition.h"

#include <math.h>
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

static void note_many(drawn *d, int64_t left, int64_t curves, int64_t points, int64_t samples) {
    char which[96];
    snprintf(which, sizeof which, "%lld points and %lld functions are many", (long long)points,
             (long long)samples);
    if (curves > 1)
        snprintf(which, sizeof which, "%lld of %lld curves have many points", (long long)left,
                 (long long)curves);
    snprintf(d->note, sizeof d->note,
             "%s: drawn by the network; --condition refine is more accurate and takes longer",
             which);
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
    bool many = points * samples > CONDITION_WORK_MAX && !how->noted;
    if (!how->given && o.condition != MNP_NETWORK && many) {
        note_many(out, 0, 0, points, samples);
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
    if (status == MNP_OK && !how->silent) condition_tell(c, out);
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
_Static_assert((int)WARNINGS == (int)CONDITION_WARNINGS, "warnings of drawn functions");

void condition_merge(const mnp_draw_report *reports, int64_t curves, int64_t left, int64_t points,
                     int64_t samples, drawn *out) {
    mnp_draw_report *all = &out->report;
    int64_t n = 0;
    *all = reports[0];
    out->curves = curves;
    for (int64_t g = 0; g < curves; g++)
        for (int k = 0; k < WARNINGS; k++)
            out->warned[k] += (reports[g].warnings & warnings[k].bit) != 0;
    if (left) note_many(out, left, curves, points, samples);
    if (curves == 1) return;
    for (int64_t g = 0; g < curves; g++) {
        const mnp_draw_report *r = &reports[g];
        if (r->condition == MNP_NETWORK) continue;
        double share = 1.0 / (double)++n; /* running means of those that were moved */
        if (n == 1) {
            *all = *r;
            continue;
        }
        all->gradients = r->gradients > all->gradients ? r->gradients : all->gradients;
        all->acceptance += share * (r->acceptance - all->acceptance);
        all->particle_ess += share * (r->particle_ess - all->particle_ess);
        all->fit_before += share * (r->fit_before - all->fit_before);
        all->fit_after += share * (r->fit_after - all->fit_after);
        all->rhat = r->rhat > all->rhat ? r->rhat : all->rhat;
        all->warnings |= r->warnings;
    }
    all->log_evidence = all->log_evidence_sd = NAN; /* of a single set */
}

static void print_warning(const drawn *d, int k, char out[320]) {
    char curves[64] = "";
    if (d->curves > 1)
        snprintf(curves, sizeof curves, "%lld of %lld curves: ", (long long)d->warned[k],
                 (long long)d->curves);
    snprintf(out, 320, "%s%s", curves, warnings[k].text);
}

void condition_tell(const cli *c, const drawn *d) {
    const mnp_draw_report *r = &d->report;
    if (d->note[0]) cli_note(c, "note: %s", d->note);
    if (r->condition != MNP_NETWORK)
        cli_note(c,
                 "%s: %lld particles, %lld gradients each, acceptance %.2f, %.1f s; log p(point | "
                 "function) %.3f, of the network's draws %.3f",
                 r->condition == MNP_EXACT ? "exact" : "refine", (long long)r->particles,
                 (long long)r->gradients, r->acceptance, d->seconds, r->fit_after, r->fit_before);
    char text[320];
    for (int k = 0; k < WARNINGS; k++) {
        if (!(r->warnings & warnings[k].bit)) continue;
        print_warning(d, k, text);
        cli_note(c, "warning: %s", text);
    }
}

void condition_json(cli_json *j, const drawn *d) {
    condition_json_with(j, d, "");
}

void condition_json_with(cli_json *j, const drawn *d, const char *lines) {
    char text[320];
    const mnp_draw_report *r = &d->report;
    cli_json_put(j, TEXT("condition", called[r->condition]), INTEGER("particles", r->particles),
                 INTEGER("gradients", r->gradients), NUMBER("acceptance", r->acceptance),
                 NUMBER("particle_ess", r->particle_ess), NUMBER("rhat", r->rhat),
                 NUMBER("log_evidence", r->log_evidence),
                 NUMBER("log_evidence_sd", r->log_evidence_sd), NUMBER("fit_before", r->fit_before),
                 NUMBER("fit_after", r->fit_after));
    json_key(&j->w, "warnings");
    json_array_begin(&j->w);
    cli_json_lines(j, lines);
    if (d->note[0]) json_put_string(&j->w, d->note);
    for (int k = 0; k < WARNINGS; k++) {
        if (!(r->warnings & warnings[k].bit)) continue;
        print_warning(d, k, text);
        json_put_string(&j->w, text);
    }
    json_array_end(&j->w);
}
