/* sampler_report.c: how it went, for one context. */
#include <math.h>

#include "run/sampler_internal.h"

double sampler_mean_fit(const sampler *s, int64_t k) {
    double sum = 0;
    for (int64_t p = k * s->P; p < (k + 1) * s->P; p++) sum += s->now.fit[p];
    return sum / (double)s->P;
}

void sampler_note(sampler *s, int64_t k) {
    trace *to = &s->slot[k].trace;
    double sum = 0, squares = 0, P = (double)s->P;
    for (int64_t p = k * s->P; p < (k + 1) * s->P; p++) sum += s->now.fit[p];
    for (int64_t p = k * s->P; p < (k + 1) * s->P; p++) {
        double off = s->now.fit[p] - sum / P;
        squares += off * off;
    }
    to->moves++;
    to->mean += sum / P;
    to->mean2 += sum / P * (sum / P);
    to->variance += squares / (P - 1);
}

/* The share of the variance of log p(y_C | z) that lies between families, particles with the same
 * first ancestor: near 0 where the moves have made relatives forget each other. `size` (P) holds
 * the number of particles of each family; one-way analysis of variance. */
static double likeness(sampler *s, int64_t k, const double *size, double squares) {
    const int32_t *family = s->ancestor + k * s->P;
    const double *fit = s->now.fit + k * s->P;
    double *sum = s->energy + k * s->P; /* of each family; energies are of no use between moves */
    double P = (double)s->P, mean = 0, total = 0, between = 0, families = 0;
    for (int64_t p = 0; p < s->P; p++) mean += fit[p] / P, sum[p] = 0;
    for (int64_t p = 0; p < s->P; p++) {
        double off = fit[p] - mean;
        sum[family[p]] += off, total += off * off;
    }
    for (int64_t f = 0; f < s->P; f++)
        if (size[f] > 0) between += sum[f] * sum[f] / size[f], families++;
    if (families < 2 || families == P) return families < 2;
    double within = (total - between) / (P - families), usual = (P - squares / P) / (families - 1);
    double among = (between / (families - 1) - within) / usual;
    return among <= 0 ? 0 : among / (among + within);
}

/* From the particles' first ancestors: how many count (relatives that are alike count less), and
 * how far log p(y_C) may be off. Lee and Whiteley (2018) read the variance off the sizes of the
 * families: a comb copies a particle of relative weight W about W times, so that two particles
 * chosen at random are relatives more often than by chance by the relative variance of the
 * estimate. (Their factor for independent picks, (P / (P - 1))^temperatures, would take off a noise
 * that a comb does not have.) One family says 1, however far it is off. */
static void report_ancestors(sampler *s, int64_t k) {
    sampler_report *r = &s->slot[k].report;
    double P = (double)s->P, squares = 0, *size = s->weights;
    for (int64_t p = 0; p < s->P; p++) size[p] = 0;
    for (int64_t p = 0; p < s->P; p++) size[s->ancestor[k * s->P + p]]++;
    for (int64_t p = 0; p < s->P; p++) squares += size[p] * size[p];
    r->ess = P / (1 + (squares / P - 1) * likeness(s, k, size, squares));
    r->log_evidence_sd = s->o.kind == SAMPLER_EXACT ? sqrt((squares / P - 1) / (P - 1)) : NAN;
}

void sampler_report_slot(sampler *s, int64_t k) {
    slot *l = &s->slot[k];
    const trace *t = &l->trace;
    double within = t->variance / t->moves;
    double between = (t->mean2 - t->mean * t->mean / t->moves) / (t->moves - 1);
    l->report.particles = s->P;
    l->report.gradients = l->gradients;
    l->report.acceptance = l->accepted / (double)l->paid;
    l->report.rhat = t->moves > 1 ? sqrt(1 + fmax(between, 0) / within) : NAN;
    l->report.fit_after = sampler_mean_fit(s, k);
    report_ancestors(s, k);
    if (s->extends) l->report.log_evidence_sd = hypot(l->report.log_evidence_sd, l->sd);
}
