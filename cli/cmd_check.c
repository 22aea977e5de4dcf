/* cmd_check.c: mnp check MODEL: the laws of a stochastic process, as numbers. */
#include "cli/outputs.h"
#include "cli/source.h"

static const flag_def flags[] = {
    {"samples", "L", "draws of the latents for each score (default 20)"},
    HEADING("functions to check on (default: the model's own data)"),
    SOURCE_FLAGS,
};

static int run(cli *c) {
    int64_t functions = cli_int(c, "functions", 20, 1, 1000000);
    int64_t samples = cli_int(c, "samples", 20, 1, 10000);
    if (cli_bad(c)) return c->status;
    int code = cli_input(c, c->args[0]);
    if (code) return code;
    mnp_model *m = NULL;
    mnp_data *data = NULL;
    uint64_t data_seed = 0;
    mnp_laws laws = {.size = sizeof laws};
    mnp_status status = mnp_model_load(c->ctx, c->args[0], &m);
    if (status == MNP_OK) status = source_open_test(c, m, functions, &data_seed, &data);
    if (status == MNP_OK) status = mnp_check(c->ctx, m, data, functions, samples, c->seed, &laws);
    if (status != MNP_OK) code = cli_failed(c, status);
    if (code == 0) {
        cli_say(c, "%s on %lld functions of %s (data seed %llu), %lld samples, seed %llu",
                c->args[0], (long long)laws.functions, mnp_data_name(data),
                (unsigned long long)data_seed, (long long)laws.samples,
                (unsigned long long)c->seed);
        cli_say(c, "  permutation of the points    %.2e  largest change of a log-density",
                laws.permutation);
        cli_say(c,
                "  marginal consistency         %.2e  largest relative change when targets are "
                "dropped",
                laws.marginal);
        cli_say(c,
                "  conditional-consistency gap  %.4f +- %.4f nats per point; noise of an estimate "
                "%.4f, taken out",
                laws.conditional, laws.conditional_se, laws.conditional_noise);
        cli_json_all(c, NUMBER("permutation", laws.permutation), NUMBER("marginal", laws.marginal),
                     NUMBER("conditional", laws.conditional),
                     NUMBER("conditional_se", laws.conditional_se),
                     NUMBER("conditional_noise", laws.conditional_noise),
                     INTEGER("functions", laws.functions), INTEGER("samples", laws.samples),
                     INTEGER("seed", c->seed), INTEGER("data_seed", data_seed));
    }
    mnp_data_destroy(data);
    mnp_model_destroy(m);
    return code;
}

const command command_check = {.name = "check",
                               .args = "MODEL [--functions N] [--samples L]",
                               .summary = "measure the laws of a stochastic process on a model",
                               .details = SOURCE_SEEDS,
                               .flags = flags,
                               .n_flags = sizeof flags / sizeof *flags,
                               .min_args = 1,
                               .max_args = 1,
                               .run = run};
