/* eval_draws.c: see eval_draws.h. */
#include "cli/eval_draws.h"

#include <math.h>

#include "util/limits.h"

void eval_draws_read(cli *c, bool images, eval_draws *d) {
    int64_t draws = cli_int(c, "draws", 0, 0, SAMPLES_MAX);
    condition_ask how;
    *d = (eval_draws){.how = {.size = sizeof d->how, .draws = draws}};
    if (!condition_read(c, MNP_NETWORK, &how)) return;
    d->how.condition = how.condition;
    d->how.gradients = how.gradients;
    d->how.replicates = cli_int(c, "joint", 0, 2, REPLICATES_MAX);
    d->how.particles = cli_int(c, "joint-particles", EVAL_JOINT_PARTICLES, 2, SAMPLES_MAX);
    d->how.sandwich = cli_has(c, "sandwich");
    bool asked = how.given || cli_has(c, "joint") || d->how.sandwich;
    d->wanted = asked || (draws > 1 && !images);
    d->compared = d->wanted && d->how.condition != MNP_NETWORK;
    if (asked && cli_has(c, "draws") && draws < 2 && !cli_bad(c))
        c->status =
            cli_fail(c, EXIT_USAGE, "--condition, --joint and --sandwich take 2 draws or more");
    if (cli_has(c, "gradients") && !d->compared && !d->how.replicates && !d->how.sandwich &&
        !cli_bad(c))
        c->status = cli_fail(c, EXIT_USAGE, "--gradients is for --condition refine or exact");
    if (cli_has(c, "joint-particles") && !d->how.replicates && !cli_bad(c))
        c->status = cli_fail(c, EXIT_USAGE, "--joint-particles is for --joint");
    for (int k = 0; k < MNP_PREDICTIVE_ROWS; k++)
        d->asked[k].size = d->network[k].size = sizeof(mnp_predictive);
}

static void on_progress(void *user, int64_t done, int64_t total) {
    (void)total;
    progress_show(user, done, "");
}

static mnp_status run_one(cli *c, const mnp_model *m, const mnp_data *data, mnp_eval_opts o,
                          const mnp_predictive_opts *how, mnp_predictive *rows, double *seconds) {
    char what[64];
    progress p;
    snprintf(what, sizeof what, "draws of %s", condition_name(how->condition));
    int64_t total = mnp_data_functions(data), sizes = o.n_sizes ? o.n_sizes : 1;
    if (o.functions < total) total = o.functions;
    progress_begin(&p, c, what, 0, total * sizes);
    o.progress = on_progress, o.progress_user = &p;
    double began = cli_now();
    mnp_status status = mnp_evaluate_draws(c->ctx, m, data, &o, how, rows, MNP_PREDICTIVE_ROWS);
    *seconds = cli_now() - began;
    progress_end(&p);
    return status;
}

mnp_status eval_draws_run(cli *c, const mnp_model *m, const mnp_data *data,
                          const mnp_eval_opts *opts, eval_draws *d) {
    if (!d->wanted) return MNP_OK;
    mnp_status status = run_one(c, m, data, *opts, &d->how, d->asked, &d->seconds);
    if (status != MNP_OK || !d->compared) return status;
    mnp_predictive_opts network = {.size = sizeof network, .draws = d->how.draws};
    return run_one(c, m, data, *opts, &network, d->network, &d->network_seconds);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* A number of a table, or a dash. */
static const char *cell(char out[16], int digits, double v) {
    if (isnan(v)) return "-";
    snprintf(out, 16, "%.*f", digits, v);
    return out;
}

/* Sizes of contexts: "5" or "2-8". */
static const char *sizes_of(char out[24], const mnp_predictive *r) {
    long long lo = r->context_lo, hi = r->context_hi;
    if (lo == hi)
        snprintf(out, 24, "%lld", lo);
    else
        snprintf(out, 24, "%lld-%lld", lo, hi);
    return out;
}

/* The error is that of what the row is short of the truth by; without a truth, of the score. */
static void say_row(cli *c, const char *name, const mnp_predictive *r) {
    char a[16], b[16], d[16], e[16], f[16], size[24];
    double error = isnan(r->marginal_short) ? r->marginal_se : r->marginal_short_se;
    cli_say(c, "    %-8s %-8s %9.4f %8s %8s %9.4f %7s %7s  %4.1f %4.1f %4.1f %7s",
            sizes_of(size, r), name, r->marginal, cell(a, 4, r->marginal_short), cell(b, 4, error),
            r->crps, cell(d, 3, r->crps / r->crps_true), cell(e, 3, r->kl_true),
            100 * r->coverage50, 100 * r->coverage80, 100 * r->coverage95,
            cell(f, 2, r->context_off));
}

/* The k-th row of a table, or NULL: by context size, then all, where that is more than one. */
static const mnp_predictive *row_at(const mnp_predictive *rows, int k) {
    int groups = 0, at = (k + 1) % MNP_PREDICTIVE_ROWS;
    for (int j = 1; j < MNP_PREDICTIVE_ROWS; j++) groups += rows[j].functions > 0;
    return rows[at].functions == 0 || (at == 0 && groups == 1) ? NULL : &rows[at];
}

static void say_joint(cli *c, const eval_draws *d) {
    if (!d->how.replicates) return;
    cli_say(c,
            "  joint            log p(targets | context), nats per target, by %lld runs of %lld "
            "particles; bias is an estimate",
            (long long)d->how.replicates, (long long)d->how.particles);
    cli_say(c, "    context      joint    error     bias    short");
    for (int k = 0; k < MNP_PREDICTIVE_ROWS; k++) {
        const mnp_predictive *r = row_at(d->asked, k);
        char a[16], size[24];
        if (!r) continue;
        cli_say(c, "    %-8s %9.4f %8.4f %8.4f %8s", sizes_of(size, r), r->joint_exact,
                r->joint_exact_se, r->joint_exact_bias, cell(a, 4, r->joint_short));
    }
    if (d->asked[0].joint_hurried > 0)
        cli_say(c, "    the gradients did not last for %.0f %% of the runs: give more --gradients",
                100 * d->asked[0].joint_hurried);
}

static void say_sandwich(cli *c, const eval_draws *d) {
    if (!d->how.sandwich) return;
    cli_say(c, "  sandwich         log p(context) of functions of the model, nats");
    cli_say(c, "    context      lower    upper      gap    error");
    for (int k = 0; k < MNP_PREDICTIVE_ROWS; k++) {
        const mnp_predictive *r = row_at(d->asked, k);
        char size[24];
        if (!r) continue;
        cli_say(c, "    %-8s %9.4f %8.4f %8.4f %8.4f", sizes_of(size, r), r->sandwich_lower,
                r->sandwich_upper, r->sandwich_gap, r->sandwich_se);
    }
}

void eval_draws_say(cli *c, const eval_draws *d) {
    if (!d->wanted) return;
    const mnp_predictive *all = &d->asked[0];
    char warned[80] = "";
    if (all->warned)
        snprintf(warned, sizeof warned, "; %lld of %lld with a warning: raise --gradients",
                 (long long)all->warned, (long long)all->functions);
    cli_say(c, "  %lld draws by %s, %.1f s%s", (long long)(d->how.draws ? d->how.draws : 512),
            condition_name(d->how.condition), d->seconds, warned);
    cli_say(c, "    context           marginal    short    error      CRPS  /truth      KL   "
               "50%%  80%%  95%%     off");
    for (int k = 0; k < MNP_PREDICTIVE_ROWS; k++) {
        const mnp_predictive *r = row_at(d->asked, k), *network = row_at(d->network, k);
        if (r && network) say_row(c, "network", network);
        if (r) say_row(c, condition_name(d->how.condition), r);
    }
    say_joint(c, d);
    say_sandwich(c, d);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_row(cli_json *j, const mnp_predictive *r) {
    cli_json_put(
        j, NUMBER("marginal", r->marginal), NUMBER("marginal_se", r->marginal_se),
        NUMBER("marginal_mixture", r->marginal_mixture),
        NUMBER("marginal_mixture_half", r->marginal_mixture_half),
        NUMBER("marginal_true", r->marginal_true), NUMBER("marginal_short", r->marginal_short),
        NUMBER("marginal_short_se", r->marginal_short_se), NUMBER("crps_true", r->crps_true),
        NUMBER("kl_true", r->kl_true), NUMBER("context_off", r->context_off),
        NUMBER("gradients", r->gradients), NUMBER("acceptance", r->acceptance),
        NUMBER("particle_ess", r->particle_ess), NUMBER("rhat", r->rhat),
        INTEGER("warned", r->warned), INTEGER("targets", r->targets));
    json_key(&j->w, "pit");
    json_array_begin(&j->w);
    for (int k = 0; k < MNP_PIT_BINS; k++) json_put_number(&j->w, r->pit[k]);
    json_array_end(&j->w);
}

static void put_coverage(cli_json *j, const mnp_predictive *r) {
    cli_json_put(j, NUMBER("crps", r->crps), NUMBER("coverage50", r->coverage50),
                 NUMBER("coverage80", r->coverage80), NUMBER("coverage95", r->coverage95));
}

static void put_joint(cli_json *j, const eval_draws *d, const mnp_predictive *r) {
    if (!d->how.replicates) return;
    cli_json_put(
        j, NUMBER("joint_exact", r->joint_exact), NUMBER("joint_exact_se", r->joint_exact_se),
        NUMBER("joint_exact_bias", r->joint_exact_bias), NUMBER("joint_hurried", r->joint_hurried),
        NUMBER("joint_true", r->joint_true), NUMBER("joint_short", r->joint_short),
        NUMBER("joint_short_se", r->joint_short_se));
}

static void put_sandwich(cli_json *j, const eval_draws *d, const mnp_predictive *r) {
    if (!d->how.sandwich) return;
    json_key(&j->w, "sandwich");
    json_object_begin(&j->w);
    cli_json_put(j, NUMBER("lower", r->sandwich_lower), NUMBER("upper", r->sandwich_upper),
                 NUMBER("gap", r->sandwich_gap), NUMBER("se", r->sandwich_se));
    json_object_end(&j->w);
}

void eval_draws_json_row(cli_json *j, const eval_draws *d, int k) {
    if (!d->wanted) return;
    put_row(j, &d->asked[k]);
    put_coverage(j, &d->asked[k]);
    put_joint(j, d, &d->asked[k]);
    put_sandwich(j, d, &d->asked[k]);
}

/* crps and coverage of all functions are members of every evaluation. */
void eval_draws_json(cli_json *j, const eval_draws *d) {
    if (!d->wanted) return;
    cli_json_put(j, TEXT("condition", condition_name(d->how.condition)),
                 INTEGER("draws", d->how.draws ? d->how.draws : 512),
                 NUMBER("seconds", d->seconds));
    if (d->how.replicates) cli_json_put(j, INTEGER("joint_particles", d->how.particles));
    put_row(j, &d->asked[0]);
    put_joint(j, d, &d->asked[0]);
    put_sandwich(j, d, &d->asked[0]);
    if (!d->compared) return;
    json_key(&j->w, "network");
    json_object_begin(&j->w);
    cli_json_put(j, NUMBER("seconds", d->network_seconds));
    put_row(j, &d->network[0]);
    put_coverage(j, &d->network[0]);
    json_key(&j->w, "by_context");
    json_array_begin(&j->w);
    for (int k = 1; k < MNP_PREDICTIVE_ROWS; k++) {
        if (d->network[k].functions == 0) continue;
        json_object_begin(&j->w);
        cli_json_put(j, INTEGER("lo", d->network[k].context_lo),
                     INTEGER("hi", d->network[k].context_hi),
                     INTEGER("functions", d->network[k].functions));
        put_row(j, &d->network[k]);
        put_coverage(j, &d->network[k]);
        json_object_end(&j->w);
    }
    json_array_end(&j->w);
    json_object_end(&j->w);
}
