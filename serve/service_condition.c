/* service_condition.c: see service_condition.h. */
#include "serve/service_condition.h"

#include <math.h>
#include <string.h>

static const char *const called[] = {"network", "refine", "exact"};

const char *condition_name(mnp_condition how) {
    return called[how];
}

int condition_named(const char *word) {
    for (int k = MNP_NETWORK; k <= MNP_EXACT; k++)
        if (strcmp(word, called[k]) == 0) return k;
    return -1;
}

mnp_condition condition_usual(const mnp_model *model, bool *noted) {
    mnp_condition usual = mnp_model_x_dim(model) == 1 ? MNP_REFINE : MNP_NETWORK;
    *noted = mnp_model_condition(model, &usual);
    return usual;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void note_many(drawn *d, int64_t left, int64_t curves, int64_t points, int64_t samples) {
    char which[96];
    snprintf(which, sizeof which, "%lld points and %lld functions are many", (long long)points,
             (long long)samples);
    if (curves > 1)
        snprintf(which, sizeof which, "%lld of %lld curves have many points", (long long)left,
                 (long long)curves);
    snprintf(d->note, sizeof d->note,
             "%s: drawn by the network; %scondition refine is more accurate and takes longer",
             which, d->request ? "" : "--");
}

mnp_status condition_make(const mnp_ctx *ctx, mnp_predictor *p, const condition_ask *how,
                          mnp_draw_opts *o, drawn *out) {
    int64_t points = mnp_predictor_observed(p);
    bool many = points > CONDITION_WORK_MAX / o->samples && !how->noted;
    o->condition = how->condition, o->gradients = how->gradients;
    out->report.size = sizeof out->report;
    if (!how->given && o->condition != MNP_NETWORK && many) {
        note_many(out, 0, 0, points, o->samples);
        o->condition = MNP_NETWORK;
    }
    mnp_status status = mnp_predictor_draw(p, o, &out->report);
    if (status != MNP_EUNSUPPORTED || how->given || o->condition == MNP_NETWORK) return status;
    snprintf(out->note, sizeof out->note, "drawn by the network: %.200s", mnp_last_error(ctx));
    o->condition = MNP_NETWORK;
    return mnp_predictor_draw(p, o, &out->report);
}

/* ---- what is said about it ------------------------------------------------------------------- */

/* @ stands before the name of a flag, or of a field. */
static const struct {
    uint32_t bit;
    const char *text;
} warnings[] = {
    {MNP_DRAW_RHAT, "the particles have not settled (rhat above 1.1): raise @gradients, or use "
                    "@condition network"},
    {MNP_DRAW_REJECTED, "few moves were accepted (less than 0.3): raise @gradients, or use "
                        "@condition network"},
    {MNP_DRAW_FIT, "the functions fit the points worse than the network's: use @condition "
                   "network"},
    {MNP_DRAW_HURRIED, "too few gradients for as many temperatures as needed: raise @gradients, "
                       "or use @condition network"},
    {MNP_DRAW_FEW, "less than a tenth of the particles are independent: raise @gradients or the "
                   "number of functions, or use @condition network"},
    {MNP_DRAW_MISSED, "the functions miss the points, which may contradict each other or lie far "
                      "from the training data; compare with @condition network"},
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

drawn condition_none(bool request) {
    double nan = (double)NAN;
    mnp_draw_report r = {.acceptance = nan,
                         .particle_ess = nan,
                         .rhat = nan,
                         .log_evidence = nan,
                         .log_evidence_sd = nan,
                         .fit_before = nan,
                         .fit_after = nan};
    return (drawn){.report = r, .request = request};
}

bool condition_warning(const drawn *d, int k, char out[CONDITION_TEXT]) {
    char *to = out, *end = out + CONDITION_TEXT - 3;
    if (!(d->report.warnings & warnings[k].bit)) return false;
    if (d->curves > 1)
        to += snprintf(out, CONDITION_TEXT, "%lld of %lld curves: ", (long long)d->warned[k],
                       (long long)d->curves);
    for (const char *from = warnings[k].text; *from && to < end; from++) {
        if (*from != '@')
            *to++ = *from;
        else if (!d->request)
            *to++ = '-', *to++ = '-';
    }
    *to = '\0';
    return true;
}

static void put_number(json_writer *w, const char *key, double v) {
    json_key(w, key);
    json_put_number(w, v);
}

static void put_integer(json_writer *w, const char *key, int64_t v) {
    json_key(w, key);
    json_put_integer(w, v);
}

void condition_members(json_writer *w, const drawn *d, const char *lines) {
    char text[CONDITION_TEXT];
    const mnp_draw_report *r = &d->report;
    json_key(w, "condition");
    json_put_string(w, called[r->condition]);
    put_integer(w, "particles", r->particles);
    put_integer(w, "gradients", r->gradients);
    put_number(w, "acceptance", r->acceptance);
    put_number(w, "particle_ess", r->particle_ess);
    put_number(w, "rhat", r->rhat);
    put_number(w, "log_evidence", r->log_evidence);
    put_number(w, "log_evidence_sd", r->log_evidence_sd);
    put_number(w, "fit_before", r->fit_before);
    put_number(w, "fit_after", r->fit_after);
    json_key(w, "warnings");
    json_array_begin(w);
    json_put_lines(w, lines);
    if (d->note[0]) json_put_string(w, d->note);
    for (int k = 0; k < WARNINGS; k++)
        if (condition_warning(d, k, text)) json_put_string(w, text);
    json_array_end(w);
}
