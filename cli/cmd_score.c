/* cmd_score.c: mnp score MODEL: the log-density of one function's targets given its context. */
#include <math.h>
#include <string.h>

#include "cli/points.h"

static const flag_def flags[] = {
    {"context", "C.csv", "observed points (default: none, the prior over functions)"},
    {"targets", "T.csv", "the points to score, x and y"},
    POINTS_FLAGS,
    {"samples", "L", "draws of the latents for each estimate (default 20)"},
    CONDITION_FLAGS("(default network); the others add estimates of their own"),
};

/* Estimates by functions drawn in another way than by the network. */
typedef struct other_scores {
    bool there;
    double draws;            /* log of the mean density of the targets over the functions */
    double evidence, spread; /* log p(context and targets) - log p(context), and its sd   */
    drawn how;
} other_scores;

/* ---- functions of the conditional ------------------------------------------------------------ */

/* log of the mean over the S functions of p(targets | function). */
static mnp_status score_draws(cli *c, mnp_predictor *p, const mnp_set *targets, int64_t samples,
                              double *out) {
    double *logp = env_alloc(&c->env, (size_t)(samples * targets->n), sizeof *logp, "densities");
    if (!logp) return MNP_ENOMEM;
    mnp_status status = mnp_predictor_logp(p, targets, logp);
    double top = -INFINITY, sum = 0;
    for (int64_t s = 0; s < samples && status == MNP_OK; s++) {
        double all = 0;
        for (int64_t i = 0; i < targets->n; i++) all += logp[s * targets->n + i];
        logp[s] = all; /* its place is read already */
        top = fmax(top, all);
    }
    for (int64_t s = 0; s < samples && status == MNP_OK; s++) sum += exp(logp[s] - top);
    *out = top + log(sum / (double)samples);
    env_free(&c->env, logp);
    return status;
}

/* The context and the targets as one set; also after a failure its x goes to env_free(). */
static bool join_sets(cli *c, const question *q, mnp_set *out) {
    int64_t x_dim = q->names.x_dim, n = q->context.n + q->targets.n;
    double *x = env_alloc(&c->env, (size_t)(n * (x_dim + 1)), sizeof *x, "the points");
    *out = (mnp_set){n, x, x ? x + n * x_dim : NULL};
    if (!x) return false;
    const points *part[] = {&q->context, &q->targets};
    for (int64_t k = 0, at = 0; k < 2; at += part[k++]->n) {
        if (part[k]->n == 0) continue;
        memcpy(x + at * x_dim, part[k]->x, (size_t)(part[k]->n * x_dim) * sizeof *x);
        memcpy(x + n * x_dim + at, part[k]->y, (size_t)part[k]->n * sizeof *x);
    }
    return true;
}

/* By two runs of their own: particles of the context are bad ones for a much larger set. Their
 * random numbers are apart, or the errors of the two would not be independent. */
static mnp_status score_evidence(cli *c, const question *q, mnp_predictor *p, int64_t samples,
                                 const condition_ask *ask, other_scores *out) {
    const mnp_draw_report *before = &out->how.report;
    bool none = q->context.n == 0;
    drawn all;
    mnp_set set;
    condition_ask apart = *ask;
    apart.apart = UINT64_C(0x9e3779b97f4a7c15);
    mnp_status status = join_sets(c, q, &set) ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) status = mnp_predictor_condition(p, &set);
    if (status == MNP_OK) status = condition_draw(c, p, samples, &apart, &all);
    env_free(&c->env, (void *)(uintptr_t)set.x);
    if (status != MNP_OK) return status;
    out->evidence = all.report.log_evidence - (none ? 0 : before->log_evidence);
    out->spread = hypot(all.report.log_evidence_sd, none ? 0 : before->log_evidence_sd);
    return MNP_OK;
}

static mnp_status score_others(cli *c, const question *q, int64_t samples, other_scores *out) {
    condition_ask ask;
    mnp_set context = {q->context.n, q->context.x, q->context.y};
    mnp_set targets = {q->targets.n, q->targets.x, q->targets.y};
    *out = (other_scores){.evidence = NAN, .spread = NAN};
    if (!condition_read(c, MNP_NETWORK, &ask)) return MNP_EINVAL;
    if (ask.condition == MNP_NETWORK || mnp_model_latent(q->model) == 0) return MNP_OK;
    mnp_predictor *p = NULL;
    mnp_status status = mnp_predictor_create(c->ctx, q->model, NULL, &p);
    if (status == MNP_OK) status = mnp_predictor_condition(p, &context);
    if (status == MNP_OK) status = condition_draw(c, p, samples, &ask, &out->how);
    if (status == MNP_OK) status = score_draws(c, p, &targets, samples, &out->draws);
    if (status == MNP_OK && ask.condition == MNP_EXACT)
        status = score_evidence(c, q, p, samples, &ask, out);
    mnp_predictor_destroy(p);
    out->there = status == MNP_OK;
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void say_others(const cli *c, const other_scores *o, double n) {
    cli_say(c, "  %-25s  %12.4f   per point %10.4f", "functions drawn", o->draws, o->draws / n);
    if (isfinite(o->evidence))
        cli_say(c, "  evidence                   %12.4f   per point %10.4f +- %.4f", o->evidence,
                o->evidence / n, o->spread / n);
}

static void report(cli *c, const question *q, int64_t samples, double bound, double prior,
                   const other_scores *others) {
    double n = (double)q->targets.n;
    cli_say(c, "log-density of %lld targets given %lld points, in nats; %lld samples, seed %llu",
            (long long)q->targets.n, (long long)q->context.n, (long long)samples,
            (unsigned long long)c->seed);
    bool exact = mnp_model_latent(q->model) == 0;
    cli_say(c, "  %-25s  %12.4f   per point %10.4f", exact ? "exact" : "importance-weighted bound",
            bound, bound / n);
    if (!exact)
        cli_say(c, "  prior sampling             %12.4f   per point %10.4f", prior, prior / n);
    if (others->there) say_others(c, others, n);
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_put(&j, NUMBER("loglik", bound / n), NUMBER("loglik_prior_sampling", prior / n),
                 NUMBER("total", bound), NUMBER("total_prior_sampling", prior),
                 INTEGER("points", q->targets.n), INTEGER("context", q->context.n),
                 INTEGER("samples", samples), INTEGER("seed", c->seed));
    if (others->there) {
        cli_json_put(&j, NUMBER("loglik_draws", others->draws / n),
                     NUMBER("loglik_evidence", others->evidence / n),
                     NUMBER("loglik_evidence_sd", others->spread / n),
                     NUMBER("seconds", others->how.seconds));
        condition_json(&j, &others->how);
    }
    cli_json_end(c, &j);
}

static int score(cli *c, question *q, int64_t samples) {
    const char *path = cli_text(c, "targets", NULL);
    int code = points_read(c, &q->names, path, true, &q->targets);
    if (code != 0) return code;
    if (q->targets.n == 0)
        return cli_fail(c, EXIT_FAILED, "%s: there are no points to score", path);
    mnp_set context = {q->context.n, q->context.x, q->context.y};
    mnp_set targets = {q->targets.n, q->targets.x, q->targets.y};
    double bound = 0, prior = 0;
    mnp_status status =
        mnp_score_set(c->ctx, q->model, &context, &targets, samples, c->seed, &bound, &prior);
    other_scores others;
    if (status == MNP_OK) status = score_others(c, q, samples, &others);
    if (status != MNP_OK) return cli_failed(c, status);
    report(c, q, samples, bound, prior, &others);
    return 0;
}

static int run(cli *c) {
    int64_t samples = cli_int(c, "samples", 20, 1, 10000);
    if (cli_bad(c)) return c->status;
    if (!cli_has(c, "targets"))
        return cli_fail(c, EXIT_USAGE, "--targets T.csv is missing: the points to score");
    question q;
    int code = question_open(c, &q);
    if (code == 0) code = question_one(c, &q);
    if (code == 0) code = score(c, &q, samples);
    question_close(c, &q);
    return code;
}

const command command_score = {
    .name = "score",
    .args = "MODEL [--context C.csv] --targets T.csv [--samples L]",
    .summary = "log-density of one function's points given others",
    .details =
        "Two estimates, total and per point: the importance-weighted bound (latents from the\n"
        "posterior over context and targets) and prior sampling (latents from the context\n"
        "alone), which is lower and noisier. JSON: loglik and loglik_prior_sampling are per\n"
        "point, total and total_prior_sampling for all targets together. Models without\n"
        "latents (gp, cbp, oracle) are exact, and both are the same.\n"
        "--condition refine adds loglik_draws, the log of the targets' mean density over "
        "functions\n"
        "drawn from the conditional; exact adds also loglik_evidence, log p(context and targets) "
        "-\n"
        "log p(context) by two runs, with its standard deviation: use 64 samples or more.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .min_args = 1,
    .max_args = 1,
    .run = run};
