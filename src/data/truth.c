/* truth.c: see truth.h. A family gives its own densities (`logp`, `law`), or the Gaussian process
 * it draws from (`oracle`), or a law whose numbers are integrated out (`hyper`), or the most nats
 * per point that its noise allows (`ceiling`). */
#include "data/truth.h"

#include <math.h>

/* ---- laws of the targets --------------------------------------------------------------------- */

void truth_law_free(env *e, truth_law *law) {
    env_free(e, law->weight);
    env_free(e, law->mean);
    env_free(e, law->sd);
    env_free(e, law->at);
    env_free(e, law->logp);
    *law = (truth_law){0};
}

static mnp_status make_law(env *e, int64_t parts, int64_t targets, truth_law *out) {
    size_t each = (size_t)(parts * targets);
    out->weight = env_alloc(e, (size_t)parts, sizeof *out->weight, "a true law");
    out->mean = env_alloc(e, each, sizeof *out->mean, "a true law");
    out->sd = env_alloc(e, each, sizeof *out->sd, "a true law");
    if (!out->weight || !out->mean || !out->sd) {
        truth_law_free(e, out);
        return MNP_ENOMEM;
    }
    out->parts = parts;
    out->targets = targets;
    return MNP_OK;
}

mnp_status truth_law_on_grids(env *e, int64_t targets, int64_t nodes, truth_law *out) {
    size_t each = (size_t)(targets * nodes);
    out->at = env_alloc(e, each, sizeof *out->at, "a true law");
    out->logp = env_alloc(e, each, sizeof *out->logp, "a true law");
    if (!out->at || !out->logp) {
        truth_law_free(e, out);
        return MNP_ENOMEM;
    }
    out->nodes = nodes;
    out->targets = targets;
    return MNP_OK;
}

/* ---- one Gaussian process -------------------------------------------------------------------- */

static mnp_status gp_density(env *e, const gp_kernel *k, const double *x, const double *y,
                             int64_t n, int64_t m, double *out) {
    double *l = env_alloc(e, (size_t)(n * n + n), sizeof *l, "a Cholesky factor");
    if (!l) return MNP_ENOMEM;
    *out = gp_factor(k, x, n, 1, l) == 0 ? gp_logp(k, l, n, m, y, l + n * n) : NAN;
    env_free(e, l);
    return MNP_OK;
}

static mnp_status gp_law(env *e, const gp_kernel *k, const double *x, const double *y, int64_t n,
                         int64_t m, truth_law *out) {
    int64_t nt = n - m;
    double *covariance = env_alloc(e, (size_t)(nt * nt), sizeof *covariance, "a GP conditional");
    mnp_status status = covariance ? make_law(e, 1, nt, out) : MNP_ENOMEM;
    if (status == MNP_OK)
        status = gp_conditional(e, k, x, y, m, x + m, nt, 1, out->mean, covariance);
    for (int64_t i = 0; i < nt && status == MNP_OK; i++) out->sd[i] = sqrt(covariance[i * nt + i]);
    if (status == MNP_OK)
        out->weight[0] = 1;
    else
        truth_law_free(e, out);
    env_free(e, covariance);
    return status == MNP_ENUMERIC ? MNP_OK : status; /* without noise it may be singular */
}

/* ---- numbers that are integrated out --------------------------------------------------------- */

static mnp_status hyper_parts(env *e, const hyper_law *h, const hyper_posterior *p, const double *x,
                              const double *y, int64_t n, int64_t m, truth_law *out) {
    int64_t nt = n - m;
    double *work = env_alloc(e, (size_t)(hyper_work(n) + 2 * nt), sizeof *work, "a true law");
    mnp_status status = work ? make_law(e, p->count, nt, out) : MNP_ENOMEM;
    for (int64_t k = 0; k < p->count && status == MNP_OK; k++) {
        double *mean = work + hyper_work(n), *sd = mean + nt;
        h->marginals(h, &p->at[k], x, y, n, m, mean, sd, work);
        out->weight[k] = p->weight[k];
        for (int64_t i = 0; i < nt; i++) {
            out->mean[i * p->count + k] = mean[i];
            out->sd[i * p->count + k] = sd[i];
        }
    }
    env_free(e, work);
    return status;
}

static mnp_status ask_hyper(env *e, const hyper_law *h, const double *x, const double *y, int64_t n,
                            int64_t m, double *logp, truth_law *law) {
    hyper_posterior p = {0};
    hyper_effort effort = hyper_usual();
    MNP_TRY(hyper_integrate(e, h, &effort, x, y, n, m, logp, law ? &p : NULL));
    mnp_status status = law ? hyper_parts(e, h, &p, x, y, n, m, law) : MNP_OK;
    hyper_posterior_free(e, &p);
    return status;
}

/* ---- what is asked for ----------------------------------------------------------------------- */

mnp_status truth_ask(env *e, const family *f, const double *x, const double *y, int64_t n,
                     int64_t m, double *logp, truth_law *law) {
    const family_def *def = f->def;
    if (logp) *logp = NAN;
    if (law) *law = (truth_law){0};
    if (def->hyper) {
        hyper_law h;
        def->hyper(f->opts, &h);
        return h.dims > 0 ? ask_hyper(e, &h, x, y, n, m, logp, law) : MNP_OK;
    }
    if (logp && def->logp) MNP_TRY(def->logp(e, f->opts, x, y, n, m, logp));
    if (law && def->law) MNP_TRY(def->law(e, f->opts, x, y, n, m, law));
    if (!def->oracle) return MNP_OK;
    gp_kernel k;
    def->oracle(f->opts, &k);
    if (logp && !def->logp) MNP_TRY(gp_density(e, &k, x, y, n, m, logp));
    return law && !def->law ? gp_law(e, &k, x, y, n, m, law) : MNP_OK;
}

double truth_noise(const family *f) {
    const double half_log_2pi_e = 1.41893853320467274178;
    if (f->def->ceiling) return exp(-f->def->ceiling(f->opts) - half_log_2pi_e);
    if (!f->def->oracle) return NAN;
    gp_kernel k;
    f->def->oracle(f->opts, &k);
    double noise = exp(k.hyper[GP_LOG_NOISE] / 2);
    return noise > 0 ? noise : NAN;
}
