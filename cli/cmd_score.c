/* cmd_score.c: mnp score MODEL: the log-density of one function's targets given its context. */
#include "cli/points.h"

static const flag_def flags[] = {
    {"context", "C.csv", "observed points (default: none, the prior over functions)"},
    {"targets", "T.csv", "the points to score, x and y"},
    {"samples", "L", "draws of the latents for each estimate (default 20)"},
};

static void report(cli *c, const question *q, int64_t samples, double bound, double prior) {
    double n = (double)q->targets.n;
    cli_say(c, "log-density of %lld targets given %lld points, in nats; %lld samples, seed %llu",
            (long long)q->targets.n, (long long)q->context.n, (long long)samples,
            (unsigned long long)c->seed);
    bool exact = mnp_model_latent(q->model) == 0;
    cli_say(c, "  %-25s  %12.4f   per point %10.4f", exact ? "exact" : "importance-weighted bound",
            bound, bound / n);
    if (!exact)
        cli_say(c, "  prior sampling             %12.4f   per point %10.4f", prior, prior / n);
    cli_json_all(c, NUMBER("loglik", bound / n), NUMBER("loglik_prior_sampling", prior / n),
                 NUMBER("total", bound), NUMBER("total_prior_sampling", prior),
                 INTEGER("points", q->targets.n), INTEGER("context", q->context.n),
                 INTEGER("samples", samples), INTEGER("seed", c->seed));
}

static int score(cli *c, question *q, int64_t samples) {
    const char *path = cli_text(c, "targets", NULL);
    int code = points_read(c, &q->names, path, true, &q->targets);
    if (code != 0) return code;
    if (q->targets.n == 0)
        return cli_fail(c, EXIT_FAILED, "%s: there are no points to score", path);
    question_warn(c, q);
    mnp_set context = {q->context.n, q->context.x, q->context.y};
    mnp_set targets = {q->targets.n, q->targets.x, q->targets.y};
    double bound = 0, prior = 0;
    mnp_status status =
        mnp_score_set(c->ctx, q->model, &context, &targets, samples, c->seed, &bound, &prior);
    if (status != MNP_OK) return cli_failed(c, status);
    report(c, q, samples, bound, prior);
    return 0;
}

static int run(cli *c) {
    int64_t samples = cli_int(c, "samples", 20, 1, 10000);
    if (cli_bad(c)) return c->status;
    if (!cli_has(c, "targets"))
        return cli_fail(c, EXIT_USAGE, "--targets T.csv is missing: the points to score");
    question q;
    int code = question_open(c, &q);
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
        "latents (gp, cbp, oracle) are exact, and both are the same.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .min_args = 1,
    .max_args = 1,
    .run = run};
