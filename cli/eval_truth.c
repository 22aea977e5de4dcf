/* eval_truth.c: see eval_truth.h. */
#include "cli/eval_truth.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/outputs.h"

bool eval_truth_named(const cli *c) {
    return strcmp(c->args[0], "truth") == 0 && access("truth", F_OK) != 0;
}

static void on_progress(void *user, int64_t done, int64_t total) {
    (void)total;
    progress_show(user, done, "");
}

/* A single function has no standard error. */
static const char *error_text(char out[32], double se) {
    if (isfinite(se))
        snprintf(out, 32, "%.4f", se);
    else
        snprintf(out, 32, "-");
    return out;
}

static void say_score(const cli *c, const char *name, double mean, double se, double pooled) {
    if (isnan(mean)) return;
    char error[32];
    cli_say(c, "  %-16s %8.4f +- %s nats per target; over all targets %.4f", name, mean,
            error_text(error, se), pooled);
}

static void say(const cli *c, const mnp_data *data, const mnp_truth *rows) {
    const mnp_truth *all = &rows[0];
    cli_say(c, "the truth on %lld functions of %s (data seed %llu), %lld targets, seed %llu",
            (long long)all->functions, mnp_data_name(data), (unsigned long long)mnp_data_seed(data),
            (long long)all->targets, (unsigned long long)c->seed);
    say_score(c, "joint", all->joint, all->joint_se, all->joint_pooled);
    say_score(c, "each by itself", all->marginal, all->marginal_se, all->marginal_pooled);
    if (isfinite(all->crps)) cli_say(c, "  CRPS             %8.4f", all->crps);
    cli_say(c, "  by context size     joint    error   each by itself    error");
    for (int k = 1; k < MNP_PREDICTIVE_ROWS; k++) {
        const mnp_truth *r = &rows[k];
        char joint[32], marginal[32];
        if (!r->functions) continue;
        cli_say(c, "    %4lld - %-8lld %9.4f %8s        %9.4f %8s  (%lld functions)",
                (long long)r->context_lo, (long long)r->context_hi, r->joint,
                error_text(joint, r->joint_se), r->marginal, error_text(marginal, r->marginal_se),
                (long long)r->functions);
    }
}

static void put_row(cli_json *j, const mnp_truth *r) {
    cli_json_put(j, INTEGER("functions", r->functions), INTEGER("targets", r->targets),
                 NUMBER("joint", r->joint), NUMBER("joint_se", r->joint_se),
                 NUMBER("joint_pooled", r->joint_pooled), NUMBER("marginal", r->marginal),
                 NUMBER("marginal_se", r->marginal_se),
                 NUMBER("marginal_pooled", r->marginal_pooled), NUMBER("crps", r->crps));
}

static void put_json(cli *c, const mnp_data *data, const mnp_truth *rows) {
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_put(&j, TEXT("data", mnp_data_name(data)), INTEGER("data_seed", mnp_data_seed(data)),
                 INTEGER("seed", c->seed));
    put_row(&j, &rows[0]);
    json_key(&j.w, "by_context");
    json_array_begin(&j.w);
    for (int k = 1; k < MNP_PREDICTIVE_ROWS; k++) {
        if (!rows[k].functions) continue;
        json_object_begin(&j.w);
        cli_json_put(&j, INTEGER("lo", rows[k].context_lo), INTEGER("hi", rows[k].context_hi));
        put_row(&j, &rows[k]);
        json_object_end(&j.w);
    }
    json_array_end(&j.w);
    cli_json_end(c, &j);
}

int eval_truth_run(cli *c, const mnp_eval_opts *opts) {
    static const char *const of_models[] = {"samples",   "protocol",  "order", "orders",  "draws",
                                            "condition", "gradients", "joint", "sandwich"};
    for (size_t k = 0; k < sizeof of_models / sizeof *of_models; k++)
        if (cli_has(c, of_models[k]))
            return cli_fail(c, EXIT_USAGE, "--%s is for a model: mnp eval truth has no use for it",
                            of_models[k]);
    const char *what = cli_text(c, "data", NULL);
    if (!what || mnp_data_path(what))
        return cli_fail(c, EXIT_USAGE, "mnp eval truth needs --data with a built-in family");
    mnp_eval_opts o = *opts;
    mnp_data_opts from = {.size = sizeof from, .seed = c->seed, .split = MNP_TEST};
    from.functions = o.functions;
    from.cache = cli_text(c, "cache", NULL);
    mnp_data *data = NULL;
    mnp_truth rows[MNP_PREDICTIVE_ROWS];
    for (int k = 0; k < MNP_PREDICTIVE_ROWS; k++) rows[k].size = sizeof *rows;
    progress p;
    progress_begin(&p, c, "the truth", 0, o.functions);
    o.progress = on_progress, o.progress_user = &p;
    mnp_status status = mnp_data_open(c->ctx, what, &from, &data);
    if (status == MNP_OK) status = mnp_evaluate_truth(c->ctx, data, &o, rows, MNP_PREDICTIVE_ROWS);
    progress_end(&p);
    int code = status == MNP_OK ? 0 : cli_failed(c, status);
    if (code == 0) {
        say(c, data, rows);
        put_json(c, data, rows);
    }
    mnp_data_destroy(data);
    return code;
}
