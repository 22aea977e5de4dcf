/* cmd_shrink.c: mnp shrink MODEL --out F: a model file of about half the size. */
#include <math.h>
#include <sys/stat.h>

#include "cli/outputs.h"
#include "mnp_bandit.h"
#include "util/text.h"

static const flag_def flags[] = {
    {"out", "F.safetensors", "the smaller file"},
};

/* The largest change of a weight, relative to the largest of its tensor. */
static mnp_status largest_change(mnp_ctx *ctx, const mnp_model *a, const mnp_model *b,
                                 double *out) {
    const char *name;
    *out = 0;
    for (int64_t k = 0; (name = mnp_model_tensor_name(a, k)); k++) {
        mnp_tensor x = {.size = sizeof x}, y = {.size = sizeof y};
        double most = 0, change = 0;
        mnp_status status = mnp_model_tensor(ctx, a, name, &x);
        if (status == MNP_OK) status = mnp_model_tensor(ctx, b, name, &y);
        if (status != MNP_OK) return status;
        for (int64_t i = 0; i < x.rows * x.cols; i++) {
            int64_t at = i / x.cols * x.stride + i % x.cols;
            most = fmax(most, fabs((double)x.data[at]));
            change = fmax(change, fabs((double)x.data[at] - (double)y.data[at]));
        }
        if (change > 0) *out = fmax(*out, change / most);
    }
    return MNP_OK;
}

static double bytes_of(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 ? (double)s.st_size : NAN;
}

static void say(cli *c, const char *out, double change) {
    char before[TEXT_NUMBER], after[TEXT_NUMBER];
    double from = bytes_of(c->args[0]), to = bytes_of(out);
    text_bytes(before, from), text_bytes(after, to);
    if (change > 0)
        cli_say(
            c,
            "%s: %s, before %s; no weight changed by more than %.2g of the largest in its matrix",
            out, after, before, change);
    else
        cli_say(c, "%s: %s, before %s; no weight changed", out, after, before);
    cli_json_all(c, TEXT("model", c->args[0]), TEXT("out", out), INTEGER("bytes_before", from),
                 INTEGER("bytes", to), NUMBER("change", change));
}

/* The smaller file is read again: what is said of it is what it holds. */
static int shrink(cli *c, const char *out) {
    mnp_model *m = NULL, *small = NULL;
    double change = 0;
    mnp_status status = mnp_model_load(c->ctx, c->args[0], &m);
    if (status == MNP_OK) status = mnp_model_save_half(c->ctx, m, out);
    if (status == MNP_OK) status = mnp_model_load(c->ctx, out, &small);
    if (status == MNP_OK) status = largest_change(c->ctx, m, small, &change);
    mnp_model_destroy(m);
    mnp_model_destroy(small);
    if (status != MNP_OK) return cli_failed(c, status);
    say(c, out, change);
    return 0;
}

static int run(cli *c) {
    const char *out = cli_text(c, "out", NULL);
    char agent[32];
    if (!out)
        return cli_fail(c, EXIT_USAGE, "where should the smaller file go? --out F.safetensors");
    int code = cli_input(c, c->args[0]);
    if (code == 0) code = cli_output(c, out);
    if (code) return code;
    if (mnp_agent_file(c->ctx, c->args[0], agent, sizeof agent))
        return cli_fail(c, EXIT_FAILED, "%s is a trained agent, %s; only models are shrunk",
                        c->args[0], agent);
    return shrink(c, out);
}

const command command_shrink = {.name = "shrink",
                                .args = "MODEL --out F.safetensors",
                                .summary = "a model file of half the size, for the web",
                                .flags = flags,
                                .n_flags = sizeof flags / sizeof *flags,
                                .min_args = 1,
                                .max_args = 1,
                                .run = run};
