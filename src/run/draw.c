/* draw.c: predictor_draw(), the three ways of drawing functions given a set. */
#include <math.h>

#include "run/predict_internal.h"

enum { RHAT_PARTICLES = 16 };

/* Draws of the network: nothing was moved, and nothing is known of their fit. */
static mnp_draw_report report_network(int64_t samples) {
    return (mnp_draw_report){.condition = MNP_NETWORK,
                             .particles = samples,
                             .acceptance = NAN,
                             .particle_ess = (double)samples,
                             .rhat = NAN,
                             .log_evidence = NAN,
                             .log_evidence_sd = NAN,
                             .fit_before = NAN,
                             .fit_after = NAN,
                             .log_added = NAN};
}

mnp_draw_report predictor_report(mnp_condition condition, const sampler_report *r, int64_t n,
                                 double log_scale) {
    mnp_draw_report out = {.condition = condition,
                           .particles = r->particles,
                           .gradients = r->gradients,
                           .acceptance = r->acceptance,
                           .particle_ess = r->ess,
                           .rhat = r->rhat,
                           .log_evidence = r->log_evidence - (double)n * log_scale,
                           .log_evidence_sd = r->log_evidence_sd,
                           .fit_before = r->fit_before / (double)n - log_scale,
                           .fit_after = r->fit_after / (double)n - log_scale,
                           .added = r->added,
                           .log_added = r->log_added - (double)r->added * log_scale,
                           .moved = r->moved};
    /* of few chains the mean moves by itself: rhat is near sqrt(1 + 1 / particles) */
    if (r->particles >= RHAT_PARTICLES && r->rhat > 1.1) out.warnings |= MNP_DRAW_RHAT;
    if (r->acceptance < 0.3) out.warnings |= MNP_DRAW_REJECTED; /* NaN: there were no moves */
    /* a network that is too sure may fit a little better than the conditional does */
    if (r->added == 0 && !(r->fit_after >= r->fit_before - 0.1 * (double)n))
        out.warnings |= MNP_DRAW_FIT;
    if (r->hurried) out.warnings |= MNP_DRAW_HURRIED;
    if (!(r->ess >= 0.1 * (double)r->particles)) out.warnings |= MNP_DRAW_FEW;
    /* a normal of the spread of the data has -1.4 on average */
    if (!(r->fit_after >= -2 * (double)n)) out.warnings |= MNP_DRAW_MISSED;
    return out;
}

static mnp_status draw_moved(predictor *p, const mnp_draw_opts *o, mnp_draw_report *report) {
    bool exact = o->condition == MNP_EXACT;
    sampler_opts how = {.kind = exact ? SAMPLER_EXACT : SAMPLER_REFINE,
                        .gradients = o->gradients ? o->gradients
                                     : exact      ? EXACT_GRADIENTS
                                                  : REFINE_GRADIENTS,
                        .seed = o->seed};
    sampler_report r;
    MNP_TRY(predictor_draw_exact(p, &how, o->samples, &r));
    if (r.particles > 0)
        *report = predictor_report(o->condition, &r, p->count, log(p->m->scaling.y_scale));
    return MNP_OK;
}

mnp_status predictor_draw(predictor *p, const mnp_draw_opts *o, mnp_draw_report *report) {
    turn noise = {o->seed, o->towards, o->angle};
    *report = report_network(o->samples);
    p->progress = o->progress, p->progress_user = o->progress_user;
    mnp_status status = o->condition == MNP_NETWORK ? predictor_draw_turned(p, &noise, o->samples)
                                                    : draw_moved(p, o, report);
    p->progress = NULL;
    return status;
}
