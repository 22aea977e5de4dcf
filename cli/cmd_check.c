/* cmd_check.c: mnp check MODEL: the laws of a stochastic process as numbers, and calibration. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "cli/figure.h"
#include "cli/outputs.h"
#include "cli/source.h"
#include "mnp_check.h"
#include "util/limits.h"

enum { SIZES_MAX = 8, FUNCTIONS = 20, SAMPLES = 20, PARTICLES = 64, TARGETS = 8 };
enum { RANKED = 500, DRAWS = 100 };

static const flag_def flags[] = {
    {"condition", "C",
     "network|refine|exact: how the model is conditioned (default network); refine is for "
     "--calibration only"},
    {"gradients", "G", "of each particle (default 30 for refine, at most 200 for exact)"},
    {"context", "M,M...", "points of the context, one or several sizes (default: the data's)"},
    HEADING("the laws"),
    {"samples", "L", "draws for each score, or particles (default 20; for exact 64)"},
    {"replicates", "R", "independent estimates of each gap (default 2)"},
    {"targets", "K", "points that are scored (default: all others; for exact 8)"},
    HEADING("calibration"),
    {"calibration", NULL, "rank functions of the model itself among draws, instead of the laws"},
    {"draws", "S", "draws that a rank is among (default 100)"},
    {"out", "F.svg", "a picture of the ranks; .png and .pdf need libcairo.so.2"},
    HEADING("functions to check on (default: the model's own data; 20, for calibration 500)"),
    SOURCE_FLAGS,
    HEADING("GPUs (draws and exact)"),
    DEVICE_FLAGS,
};

/* What is checked, from the flags. */
typedef struct subject {
    mnp_model *model;
    mnp_data *data;
    uint64_t data_seed;
    mnp_condition condition;
    int64_t functions, gradients;
    int64_t sizes[SIZES_MAX]; /* of contexts; 0: the data's */
    int count;
    progress progress;
} subject;

static void on_progress(void *user, int64_t done, int64_t total) {
    (void)total;
    progress_show(user, done, "");
}

static int read_sizes(cli *c, subject *s) {
    const char *at = cli_text(c, "context", NULL);
    s->count = at ? 0 : 1;
    for (bool more = at != NULL; more;) {
        char *end = NULL;
        long long size = isdigit((unsigned char)*at) ? strtoll(at, &end, 10) : 0;
        if (size < 1 || size > 1000000 || (*end && *end != ','))
            return cli_fail(c, EXIT_USAGE, "--context takes sizes from 1 on, like 10 or 5,10,20");
        if (s->count == SIZES_MAX)
            return cli_fail(c, EXIT_USAGE, "--context takes at most %d sizes", SIZES_MAX);
        s->sizes[s->count++] = size;
        more = *end == ',';
        at = end + 1;
    }
    return 0;
}

/* ---- the laws -------------------------------------------------------------------------------- */

static bool beyond(double gap, double se) {
    return fabs(gap) > 2 * se;
}

/* What the gaps say. A gap that is not there by construction, or that moves with the number of
 * samples, is the estimates' own. */
typedef struct verdict {
    const char *name, *text;
} verdict;

static verdict judge(const subject *s, const mnp_laws *l) {
    static const verdict verdicts[] = {
        {"consistent",
         "consistent, as far as can be seen: the gaps are within two of their errors of zero"},
        {"inconsistent",
         "inconsistent: the gaps are no noise; contexts that grow are not conditionals of one "
         "process (exact ones are: --condition exact)"},
        {"unsettled",
         "unsettled: the gaps change with the number of samples, which inconsistency does not; "
         "raise --samples"},
        {"unsettled",
         "unsettled: exact conditionals have no gap, so the sampler is off by more than its "
         "error; raise --samples or --gradients"},
        {"inconsistent",
         "no process: points are independent given the context, and contexts that grow contradict "
         "each other"},
        {"inconsistent",
         "inconsistent: the gaps are no noise; with attend=on each context has a process of its "
         "own, and contexts that grow are not conditionals of one"},
    };
    bool seen = l->conditional_errors > 2 || beyond(l->joint, l->joint_se);
    bool moves = beyond(l->conditional - l->half_conditional,
                        hypot(l->conditional_se, l->half_conditional_se)) ||
                 beyond(l->joint - l->half_joint, hypot(l->joint_se, l->half_joint_se));
    const double rounding = 1e-3; /* scores of predictors have no noise */
    if (mnp_model_factorises(s->model)) return verdicts[l->conditional > rounding ? 4 : 0];
    int gap = mnp_model_attends(s->model) ? 5 : 1;
    return verdicts[!seen ? 0 : s->condition == MNP_EXACT ? 3 : moves ? 2 : gap];
}

static void say_laws(cli *c, const subject *s, int64_t size, const mnp_laws *l) {
    bool exact = s->condition == MNP_EXACT;
    const char *what = exact ? "particles" : "samples";
    if (size) cli_say(c, "context of %lld points", (long long)size);
    cli_say(c, "  permutation of the points    %.2e  largest change of a log-density",
            l->permutation);
    cli_say(c,
            "  marginal consistency         %.2e  largest relative change when targets are dropped",
            l->marginal);
    cli_say(c,
            "  conditional-consistency gap  %.4f +- %.4f nats per point; noise of an estimate "
            "%.4f, taken out",
            l->conditional, l->conditional_se, l->conditional_noise);
    cli_say(c, "    with %5lld %-9s         %.4f +- %.4f                 noise of an estimate %.4f",
            (long long)l->half_samples, what, l->half_conditional, l->half_conditional_se,
            l->half_conditional_noise);
    cli_say(c, "  at once minus in turn       %+.4f +- %.4f nats per point", l->joint, l->joint_se);
    cli_say(c, "    with %5lld %-9s        %+.4f +- %.4f", (long long)l->half_samples, what,
            l->half_joint, l->half_joint_se);
    cli_say(c, "  %s", judge(s, l).text);
    if (l->hurried)
        cli_note(c, "warning: in %lld runs the gradients did not last: raise --gradients",
                 (long long)l->hurried);
}

static void put_laws(cli_json *j, const subject *s, int64_t size, const mnp_laws *l) {
    if (size) cli_json_put(j, INTEGER("context", size));
    cli_json_put(j, NUMBER("permutation", l->permutation), NUMBER("marginal", l->marginal),
                 NUMBER("conditional", l->conditional), NUMBER("conditional_se", l->conditional_se),
                 NUMBER("conditional_noise", l->conditional_noise),
                 NUMBER("conditional_errors", l->conditional_errors), NUMBER("joint", l->joint),
                 NUMBER("joint_se", l->joint_se), INTEGER("functions", l->functions),
                 INTEGER("samples", l->samples), INTEGER("half_samples", l->half_samples),
                 NUMBER("half_conditional", l->half_conditional),
                 NUMBER("half_conditional_se", l->half_conditional_se),
                 NUMBER("half_conditional_noise", l->half_conditional_noise),
                 NUMBER("half_joint", l->half_joint), NUMBER("half_joint_se", l->half_joint_se),
                 INTEGER("hurried", l->hurried), TEXT("verdict", judge(s, l).name));
}

static mnp_laws_opts laws_opts(cli *c, subject *s) {
    bool exact = s->condition == MNP_EXACT;
    return (mnp_laws_opts){.size = sizeof(mnp_laws_opts),
                           .condition = s->condition,
                           .functions = s->functions,
                           .samples = cli_int(c, "samples", exact ? PARTICLES : SAMPLES, 1, 10000),
                           .gradients = s->gradients,
                           .replicates = cli_int(c, "replicates", 2, 2, REPLICATES_MAX),
                           .targets = cli_int(c, "targets", exact ? TARGETS : 0, 2, 1000000),
                           .seed = c->seed,
                           .device = cli_device(c),
                           .progress = on_progress,
                           .progress_user = &s->progress};
}

static int measure_laws(cli *c, subject *s, const mnp_laws_opts *o) {
    mnp_laws laws[SIZES_MAX];
    mnp_status status = MNP_OK;
    for (int k = 0; k < s->count; k++)
        if (s->sizes[k] > LAWS_POINTS_MAX - 2)
            return cli_fail(c, EXIT_USAGE, "--context %lld is too large: give up to %d points",
                            (long long)s->sizes[k], LAWS_POINTS_MAX - 2);
    for (int k = 0; k < s->count && status == MNP_OK; k++) {
        mnp_laws_opts one = *o;
        one.context = s->sizes[k];
        laws[k] = (mnp_laws){.size = sizeof *laws};
        progress_begin(&s->progress, c, "checking", 0, s->functions);
        status = mnp_check_laws(c->ctx, s->model, s->data, &one, &laws[k]);
        progress_end(&s->progress);
    }
    if (status != MNP_OK) return cli_failed(c, status);
    cli_say(c, "%s, %s, on %lld %s of %s (data seed %llu), %lld %s, seed %llu", c->args[0],
            condition_name(s->condition), (long long)laws[0].functions, source_things(s->data),
            mnp_data_name(s->data), (unsigned long long)s->data_seed, (long long)laws[0].samples,
            s->condition == MNP_EXACT ? "particles" : "samples", (unsigned long long)c->seed);
    for (int k = 0; k < s->count; k++) say_laws(c, s, s->sizes[k], &laws[k]);
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_put(&j, TEXT("condition", condition_name(s->condition)),
                 INTEGER("replicates", o->replicates), INTEGER("seed", c->seed),
                 INTEGER("data_seed", s->data_seed));
    if (s->count == 1) put_laws(&j, s, s->sizes[0], &laws[0]);
    json_key(&j.w, "by_context");
    json_array_begin(&j.w);
    for (int k = 0; k < s->count && s->sizes[k]; k++) {
        json_object_begin(&j.w);
        put_laws(&j, s, s->sizes[k], &laws[k]);
        json_object_end(&j.w);
    }
    json_array_end(&j.w);
    cli_json_end(c, &j);
    return 0;
}

/* ---- calibration ----------------------------------------------------------------------------- */

typedef struct ranked {
    int64_t *ranks; /* (sizes, functions) */
    mnp_calibration of[SIZES_MAX];
} ranked;

/* In words; the ranks of a sampler that is too sure pile up at both ends. */
static const char *shape_of(const mnp_calibration *r) {
    double off = fabs(r->mean - 0.5) * sqrt(12), wide = fabs(r->spread - 1);
    if (r->inside99) return "uniform, as far as can be seen";
    if (off > wide) return r->mean > 0.5 ? "the draws lie too low" : "the draws lie too high";
    return r->spread > 1 ? "the draws are too narrow" : "the draws are too wide";
}

static void say_ranks(cli *c, const mnp_calibration *r) {
    const char *band = r->inside95   ? "inside the 95 % band"
                       : r->inside99 ? "inside the 99 % band, outside the 95 % one"
                                     : "outside the 99 % band";
    cli_say(c, "  context %3lld  %s (chance %.3g): %s; mean rank %.3f (0.5), spread %.3f (1)",
            (long long)r->context, band, r->chance, shape_of(r), r->mean, r->spread);
    if (r->hurried)
        cli_note(c, "warning: of %lld functions the gradients did not last: raise --gradients",
                 (long long)r->hurried);
}

static void put_ranks(cli_json *j, const mnp_calibration *r, const int64_t *ranks) {
    json_object_begin(&j->w);
    cli_json_put(j, INTEGER("context", r->context), NUMBER("chance", r->chance),
                 NUMBER("rank_mean", r->mean), NUMBER("rank_spread", r->spread),
                 NUMBER("acceptance", r->acceptance), INTEGER("hurried", r->hurried));
    json_key(&j->w, "inside95");
    json_put_bool(&j->w, r->inside95);
    json_key(&j->w, "inside99");
    json_put_bool(&j->w, r->inside99);
    json_key(&j->w, "ranks");
    json_array_begin(&j->w);
    for (int64_t i = 0; i < r->functions; i++) json_put_integer(&j->w, ranks[i]);
    json_array_end(&j->w);
    json_object_end(&j->w);
}

/* The shares of ranks below each number, less those expected, and the bands around them. */
static mnp_status draw_panel(cli *c, mnp_panel *p, const mnp_calibration *r, const int64_t *ranks) {
    static const double levels[] = {0.99, 0.95};
    static const char *const labels[] = {"99 % band", "95 % band"};
    static const mnp_plot_hue hues[] = {MNP_PLOT_SKY, MNP_PLOT_BLUE};
    size_t n = (size_t)r->draws + 2;
    double *x = env_alloc(&c->env, 4 * n, sizeof *x, "a picture");
    if (!x) return MNP_ENOMEM;
    double *difference = x + n, *lo = x + 2 * n, *hi = x + 3 * n;
    char title[64];
    mnp_status status = MNP_OK;
    for (size_t j = 0; j < n; j++) x[j] = (double)j / (double)(n - 1);
    for (int k = 0; k < 2 && status == MNP_OK; k++) {
        status =
            mnp_rank_band(c->ctx, r->functions, r->draws, levels[k], ranks, difference, lo, hi);
        mnp_plot_style s = {.hue = hues[k], .alpha = 0.25, .label = labels[k]};
        if (status == MNP_OK) mnp_panel_band(p, &s, n, x, lo, hi);
    }
    if (status == MNP_OK) {
        figure_context_title(title, r->context);
        mnp_panel_title(p, title);
        mnp_panel_labels(p, "rank / draws", "share of ranks below, less expected");
        mnp_panel_rule(p, &(mnp_plot_style){.hue = MNP_PLOT_GREY}, MNP_PLOT_Y, 0);
        mnp_panel_line(p, &(mnp_plot_style){.hue = MNP_PLOT_VERMILION, .label = "ranks"}, n, x,
                       difference);
    }
    env_free(&c->env, x);
    return status;
}

static int draw_ranks(cli *c, const subject *s, const ranked *v, const char *out) {
    mnp_plot *f = NULL;
    if (!out) return 0;
    mnp_status status = figure_create(c, 1, s->count, &f);
    if (status != MNP_OK) return points_failed(c);
    for (int k = 0; k < s->count && status == MNP_OK; k++)
        status = draw_panel(c, mnp_plot_panel(f, 0, k), &v->of[k], v->ranks + k * s->functions);
    int code = status == MNP_OK ? 0 : cli_failed(c, status);
    if (code == 0) mnp_plot_share(f, false, true);
    if (code == 0 && figure_save(c, f, out) != MNP_OK) code = points_failed(c);
    mnp_plot_destroy(f);
    return code;
}

static void report_ranks(cli *c, const subject *s, const ranked *v, const char *out) {
    cli_say(c,
            "%s, %s: %lld functions of the model itself, ranked among %lld draws each; inputs of "
            "%s, seed %llu",
            c->args[0], condition_name(s->condition), (long long)s->functions,
            (long long)v->of[0].draws, mnp_data_name(s->data), (unsigned long long)c->seed);
    for (int k = 0; k < s->count; k++) say_ranks(c, &v->of[k]);
    if (out) cli_say(c, "  picture: %s", out);
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_put(&j, TEXT("condition", condition_name(s->condition)),
                 INTEGER("functions", s->functions), INTEGER("draws", v->of[0].draws),
                 INTEGER("seed", c->seed), INTEGER("data_seed", s->data_seed), TEXT("out", out));
    json_key(&j.w, "calibration");
    json_array_begin(&j.w);
    for (int k = 0; k < s->count; k++) put_ranks(&j, &v->of[k], v->ranks + k * s->functions);
    json_array_end(&j.w);
    cli_json_end(c, &j);
}

static int calibrate(cli *c, subject *s, int64_t draws, const char *out) {
    ranked v = {0};
    size_t count = (size_t)s->count * (size_t)s->functions;
    v.ranks = env_alloc(&c->env, count, sizeof *v.ranks, "the ranks");
    if (!v.ranks) return points_failed(c);
    mnp_calibration_opts o = {.size = sizeof o,
                              .condition = s->condition,
                              .functions = s->functions,
                              .draws = draws,
                              .gradients = s->gradients,
                              .seed = c->seed,
                              .device = cli_device(c),
                              .progress = on_progress,
                              .progress_user = &s->progress};
    mnp_status status = MNP_OK;
    for (int k = 0; k < s->count && status == MNP_OK; k++) {
        o.context = s->sizes[k];
        v.of[k] = (mnp_calibration){.size = sizeof v.of[k]};
        progress_begin(&s->progress, c, "ranking", 0, s->functions);
        status = mnp_calibrate(c->ctx, s->model, s->data, &o, v.ranks + k * s->functions, &v.of[k]);
        progress_end(&s->progress);
    }
    int code = status == MNP_OK ? draw_ranks(c, s, &v, out) : cli_failed(c, status);
    if (code == 0) report_ranks(c, s, &v, out);
    env_free(&c->env, v.ranks);
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Flags of one half of the command mean nothing to the other. */
static int check_flags(cli *c, bool ranks) {
    static const char *const of_laws[] = {"samples", "replicates", "targets"};
    static const char *const of_ranks[] = {"draws", "out"};
    for (int k = 0; k < 3; k++)
        if (ranks && cli_has(c, of_laws[k]))
            return cli_fail(c, EXIT_USAGE, "--%s belongs to the laws, not to --calibration",
                            of_laws[k]);
    for (int k = 0; k < 2; k++)
        if (!ranks && cli_has(c, of_ranks[k]))
            return cli_fail(c, EXIT_USAGE, "--%s needs --calibration", of_ranks[k]);
    return 0;
}

static int run(cli *c) {
    bool ranks = cli_has(c, "calibration");
    subject s = {.condition = (mnp_condition)cli_choice(c, "condition", "network|refine|exact", 0)};
    int code = check_flags(c, ranks);
    if (code == 0) code = read_sizes(c, &s);
    if (code == 0 && !ranks && s.condition == MNP_REFINE)
        code = cli_fail(c, EXIT_USAGE,
                        "refine draws functions but scores no sets: --condition network or exact, "
                        "or --calibration");
    if (code) return code;
    s.functions =
        cli_int(c, "functions", ranks ? RANKED : FUNCTIONS, 1, ranks ? CALIBRATION_MAX : 1000000);
    s.gradients = cli_int(c, "gradients", 0, 1, GRADIENTS_MAX);
    int64_t draws = cli_int(c, "draws", DRAWS, 1, CALIBRATION_DRAWS_MAX);
    mnp_laws_opts laws = laws_opts(c, &s);
    if (cli_bad(c)) return c->status;
    const char *out = cli_text(c, "out", NULL);
    code = cli_input(c, c->args[0]);
    if (code == 0 && out) code = cli_output(c, out);
    if (code) return code;
    mnp_status status = mnp_model_load(c->ctx, c->args[0], &s.model);
    if (status == MNP_OK) status = source_open_test(c, s.model, s.functions, &s.data_seed, &s.data);
    if (status != MNP_OK)
        code = cli_failed(c, status);
    else
        code = ranks ? calibrate(c, &s, draws, out) : measure_laws(c, &s, &laws);
    mnp_data_destroy(s.data);
    mnp_model_destroy(s.model);
    return code;
}

static const char details[] =
    "The laws hold by construction (the order of points, targets that are dropped) or through\n"
    "estimates (a context that grows). Estimates are made R times and with two numbers of "
    "samples,\n"
    "so that their noise is told from a gap of the model. With --calibration functions are drawn\n"
    "from the model itself, and their values ranked among draws given a part of them: ranks of\n"
    "draws from the conditional are uniform. A gap or a rank is an answer: the exit status is 0.\n"
    "\n" SOURCE_SEEDS;

const command command_check = {
    .name = "check",
    .args = "MODEL [--condition C] [--context M] [--calibration]",
    .summary = "measure the laws of a stochastic process, and calibration, on a model",
    .details = details,
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .min_args = 1,
    .max_args = 1,
    .run = run};
