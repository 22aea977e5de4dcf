/* cmd_eval.c: mnp eval MODEL: scores on held-out functions. */
#include <math.h>
#include <string.h>

#include "cli/eval_draws.h"
#include "cli/eval_truth.h"
#include "cli/outputs.h"
#include "cli/source.h"
#include "cli/turns.h"

static const flag_def flags[] = {
    {"samples", "L", "draws of the latents for each score (default 20)"},
    {"protocol", "P",
     "strict|authors: score the points outside the context, or all (default strict)"},
    {"context", "LO:HI",
     "context sizes (default: those of the data set), or a list as 5,10,20: every function with "
     "each; images: also uniform:N, top, left, center"},
    {"note", NULL, "write the score into MODEL as its note score.strict or score.authors"},
    TURN_ORDER_FLAG("score the targets"),
    TURN_ORDERS_FLAG,
    HEADING("draws, target by target"),
    EVAL_DRAW_FLAGS,
    HEADING("functions to score on (default: the model's own data)"),
    SOURCE_FLAGS,
    HEADING("images"),
    {"noise", "SD", "images: noise added to the scored values (default: the data's; 0 = none)"},
    {"targets", "K",
     "score K pixels or points, chosen at random (default: all; of a task its own number)"},
    {"proposal", "K",
     "images: pixels beside the context that the posterior is shown (default 2048)"},
    {"seen", "K", "images: most pixels of a context that the model is shown (default 1024)"},
    HEADING("GPUs and clusters"),
    DEVICE_FLAGS,
    RANK_FLAGS,
};

static void on_progress(void *user, int64_t done, int64_t total) {
    (void)total;
    progress_show(user, done, "");
}

/* What is particular to images: which pixels are seen, how many scored, with what noise. */
typedef struct image_terms {
    const char *context; /* NULL: no images */
    double noise;
    int64_t pixels; /* scored, of one image */
} image_terms;

static image_terms terms_of(const mnp_data *data, const mnp_eval_opts *o, const mnp_scores *s) {
    int64_t rows, cols;
    mnp_data_grid(data, &rows, &cols);
    if (!rows) return (image_terms){0};
    return (image_terms){.context = o->context ? o->context : "uniform",
                         .noise = o->noise == 0  ? mnp_data_noise(data)
                                  : o->noise < 0 ? 0
                                                 : o->noise,
                         .pixels = s->functions ? s->points / s->functions : 0};
}

/* What was scored. */
typedef struct subject {
    const char *data, *things, *protocol; /* things: "curves" or "functions" */
    uint64_t seed;                        /* of the functions */
    bool alone;                           /* points are independent given the context */
    const mnp_turn_opts *turns;           /* NULL: not in turn */
} subject;

/* " +- 0.0123"; nothing where a single curve has no standard error. */
static const char *error_text(char out[32], double se) {
    out[0] = '\0';
    if (isfinite(se)) snprintf(out, 32, " +- %.4f", se);
    return out;
}

/* Letters of "curves" for one or several of them. */
static int length_of(const char *things, int64_t count) {
    return (int)strlen(things) - (count == 1);
}

/* Rounded products cost this much or more: it is said. */
static const double ROUNDING_WARNED = 0.02;

static void say_rounding(const cli *c, const mnp_scores *s) {
    if (!(s->rounding > ROUNDING_WARNED)) return;
    cli_say(c,
            "  rounding         products in fp32 give %.4f nats per point more on the first "
            "functions: score with --math fp32",
            s->rounding);
}

static void say_bins(const cli *c, const mnp_scores *s, const subject *of) {
    char se[32], sizes[64];
    if (s->bins) cli_say(c, "  by context size");
    for (int k = 0; k < s->bins; k++) {
        if (!s->bin_functions[k]) continue;
        long long lo = s->bin_lo[k], hi = s->bin_hi[k];
        int length = snprintf(sizes, sizeof sizes, "%4lld", lo);
        if (lo < hi) snprintf(sizes + length, sizeof sizes - (size_t)length, " - %lld", hi);
        cli_say(c, "    %-16s %8.4f%s  (%lld %.*s)", sizes, s->bin_loglik[k],
                error_text(se, s->bin_se[k]), (long long)s->bin_functions[k],
                length_of(of->things, s->bin_functions[k]), of->things);
    }
}

static void say_scores(cli *c, const mnp_scores *s, const subject *of, const image_terms *t) {
    char how[64] = "exact";
    if (of->alone) snprintf(how, sizeof how, "each point by itself");
    if (s->samples) snprintf(how, sizeof how, "bound with %lld samples", (long long)s->samples);
    cli_say(c, "%s on %lld %.*s of %s (data seed %llu), protocol %s (%s), seed %llu", c->args[0],
            (long long)s->functions, length_of(of->things, s->functions), of->things, of->data,
            (unsigned long long)of->seed, of->protocol,
            *of->protocol == 's' ? "points outside the context" : "all points",
            (unsigned long long)c->seed);
    if (t->context)
        cli_say(c, "  images           context %s without noise; %lld pixels scored, %s (sd %g)",
                t->context, (long long)t->pixels, t->noise > 0 ? "with target noise" : "noise-free",
                t->noise);
    char se[32];
    cli_say(c, "  log-likelihood   %8.4f%s nats per point (%s)", s->loglik, error_text(se, s->se),
            how);
    say_rounding(c, s);
    if (of->turns) {
        char apart[48] = "";
        if (of->turns->orders > 1)
            snprintf(apart, sizeof apart, "   orders differ by %.4f (sd)", s->order_sd);
        cli_say(c, "  in turn          %8.4f%s nats per point (%s)%s", s->loglik_in_turn,
                error_text(se, s->se_in_turn),
                of->turns->order == MNP_ORDER_X ? "by rising x" : "random order", apart);
    }
    if (isfinite(s->loglik_true))
        cli_say(c, "  true process     %8.4f +- %.4f   the model is %.4f short of it",
                s->loglik_true, s->se_true, s->loglik_true - s->loglik);
    if (s->samples) {
        cli_say(c, "  prior sampling   %8.4f +- %.4f", s->loglik_prior_sampling,
                s->se_prior_sampling);
        cli_say(c, "  ELBO             %8.4f   KL %.4f   effective samples %.1f", s->elbo, s->kl,
                s->ess);
    }
    if (isfinite(s->crps)) {
        cli_say(c, "  coverage         50%%: %.1f%%  80%%: %.1f%%  95%%: %.1f%%",
                100 * s->coverage50, 100 * s->coverage80, 100 * s->coverage95);
        cli_say(c, "  CRPS             %8.4f", s->crps);
    }
    say_bins(c, s, of);
}

static void put_json(cli *c, const mnp_scores *s, const subject *of, const image_terms *t,
                     const eval_draws *d) {
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_put(&j, NUMBER("loglik", s->loglik), NUMBER("se", s->se), NUMBER("elbo", s->elbo),
                 NUMBER("kl", s->kl), INTEGER("samples", s->samples),
                 INTEGER("functions", s->functions), TEXT("protocol", of->protocol),
                 INTEGER("seed", c->seed), TEXT("data", of->data), INTEGER("data_seed", of->seed),
                 NUMBER("ess", s->ess), NUMBER("loglik_prior_sampling", s->loglik_prior_sampling),
                 NUMBER("loglik_true", s->loglik_true), NUMBER("coverage50", s->coverage50),
                 NUMBER("coverage80", s->coverage80), NUMBER("coverage95", s->coverage95),
                 NUMBER("crps", s->crps), NUMBER("rounding", s->rounding));
    if (of->turns)
        cli_json_put(&j, NUMBER("loglik_in_turn", s->loglik_in_turn),
                     NUMBER("se_in_turn", s->se_in_turn), INTEGER("orders", of->turns->orders),
                     NUMBER("order_sd", s->order_sd));
    if (t->context) {
        cli_json_put(&j, TEXT("context", t->context), NUMBER("noise", t->noise),
                     INTEGER("pixels", t->pixels));
    }
    eval_draws_json(&j, d);
    json_key(&j.w, "by_context");
    json_array_begin(&j.w);
    for (int k = 0; k < s->bins; k++) {
        json_object_begin(&j.w);
        cli_json_put(&j, INTEGER("lo", s->bin_lo[k]), INTEGER("hi", s->bin_hi[k]),
                     INTEGER("functions", s->bin_functions[k]), NUMBER("loglik", s->bin_loglik[k]),
                     NUMBER("se", s->bin_se[k]));
        eval_draws_json_row(&j, d, k + 1);
        json_object_end(&j.w);
    }
    json_array_end(&j.w);
    cli_json_warnings(&j, buf_str(&c->warnings));
    cli_json_end(c, &j);
}

/* "5,10,20": rising sizes, into sizes (MNP_SCORE_BINS). */
static void read_sizes(cli *c, const char *text, int64_t *sizes, mnp_eval_opts *o) {
    char item[32];
    for (const char *at = text; at; at = strchr(at, ',')) {
        if (at != text) at++;
        size_t length = strcspn(at, ",");
        if (length < sizeof item) snprintf(item, sizeof item, "%.*s", (int)length, at);
        if (o->n_sizes == MNP_SCORE_BINS || length >= sizeof item ||
            text_parse_int64(item, &sizes[o->n_sizes]) != TEXT_OK || sizes[o->n_sizes] < 0 ||
            (o->n_sizes && sizes[o->n_sizes] <= sizes[o->n_sizes - 1])) {
            c->status = cli_fail(c, EXIT_USAGE,
                                 "--context wants at most %d rising sizes, as 5,10,20, not '%s'",
                                 MNP_SCORE_BINS, text);
            return;
        }
        o->n_sizes++;
    }
    o->sizes = sizes;
}

/* "2:50", "5,10,20", or a kind of context with or without a size. */
static void read_context(cli *c, int64_t *sizes, mnp_eval_opts *o) {
    const char *text = cli_text(c, "context", "");
    if (*text >= 'a' && *text <= 'z')
        o->context = text;
    else if (strchr(text, ','))
        read_sizes(c, text, sizes, o);
    else
        cli_span(c, "context", &o->context_lo, &o->context_hi);
}

/* The weights stay, and the file is replaced whole. */
static mnp_status note_score(cli *c, mnp_model *m, const mnp_scores *s, mnp_protocol protocol) {
    const char *key = protocol == MNP_STRICT ? "score.strict" : "score.authors";
    mnp_noted_score n = {sizeof n, s->loglik, s->se, s->functions, s->samples, c->seed};
    mnp_status status = mnp_model_set_score(c->ctx, m, protocol, &n);
    if (status == MNP_OK && cli_writes(c)) status = mnp_model_save(c->ctx, m, c->args[0]);
    if (status == MNP_OK)
        cli_say(c, "%s: %s is noted: %s", c->args[0], key, mnp_model_note(m, key));
    return status;
}

/* A note speaks of the model's own test functions, as they come. */
static int check_note(cli *c) {
    static const char *const other[] = {"data", "context", "noise", "targets", "proposal", "seen"};
    for (size_t k = 0; k < sizeof other / sizeof *other && cli_has(c, "note"); k++)
        if (cli_has(c, other[k]))
            return cli_fail(c, EXIT_USAGE, "--note is for the model's own data: leave out --%s",
                            other[k]);
    return 0;
}

static bool is_images(const mnp_data *data) {
    int64_t rows, cols;
    mnp_data_grid(data, &rows, &cols);
    return rows > 0;
}

/* Contexts as large as that are cut, so that a point is left to score. */
static void warn_short(cli *c, const mnp_data *data, const mnp_eval_opts *o) {
    int64_t most = o->n_sizes ? o->sizes[o->n_sizes - 1] : o->context_hi, n, cut = 0;
    int64_t all = mnp_data_functions(data) < o->functions ? mnp_data_functions(data) : o->functions;
    const float *x, *y;
    if (most == 0 || is_images(data)) return;
    for (int64_t i = 0; i < all; i++)
        cut += mnp_data_function(c->ctx, data, i, &n, &x, &y) == MNP_OK && n <= most;
    if (cut)
        cli_warn(c, "%lld of %lld %s have no more than %lld points: their contexts leave out one",
                 (long long)cut, (long long)all, source_things(data), (long long)most);
}

/* Coverage and CRPS are those of the draws that were asked for. */
static void take_coverage(const mnp_predictive *r, mnp_scores *to) {
    to->coverage50 = r->coverage50;
    to->coverage80 = r->coverage80;
    to->coverage95 = r->coverage95;
    to->crps = r->crps;
}

static int run(cli *c) {
    progress p;
    mnp_eval_opts o = {.size = sizeof o, .seed = c->seed, .device = cli_device(c)};
    o.functions = cli_int(c, "functions", 1000, 1, 100000000);
    o.samples = cli_int(c, "samples", 20, 1, 100000);
    o.draws = cli_int(c, "draws", 39, 0, 100000);
    if (o.draws == 0) o.draws = -1;
    o.protocol = cli_choice(c, "protocol", "strict|authors", 0) ? MNP_AUTHORS : MNP_STRICT;
    int64_t sizes[MNP_SCORE_BINS];
    read_context(c, sizes, &o);
    o.targets = cli_int(c, "targets", 0, 1, 100000000);
    o.proposal = cli_int(c, "proposal", 0, 1, 100000000);
    o.seen = cli_int(c, "seen", 0, 1, 100000000);
    o.noise = cli_real(c, "noise", 0, 0, 1e6);
    if (cli_has(c, "noise") && o.noise == 0) o.noise = -1;
    o.progress = on_progress;
    o.progress_user = &p;
    mnp_turn_opts turns;
    bool in_turn = turns_read(c, &turns);
    if (in_turn) o.orders = turns.orders, o.order = turns.order;
    if (cli_bad(c) || check_note(c)) return EXIT_USAGE;
    if (eval_truth_named(c)) return eval_truth_run(c, &o);
    int code = cli_has(c, "note") ? cli_output(c, c->args[0]) : cli_input(c, c->args[0]);
    if (code) return code;
    const char *protocol = o.protocol == MNP_STRICT ? "strict" : "authors";
    mnp_model *m = NULL;
    mnp_data *data = NULL;
    uint64_t data_seed = 0;
    mnp_scores scores = {.size = sizeof scores};
    mnp_status status = mnp_model_load(c->ctx, c->args[0], &m);
    if (status == MNP_OK) status = source_open_test(c, m, o.functions, &data_seed, &data);
    eval_draws draws = {0};
    if (status == MNP_OK) {
        eval_draws_read(c, is_images(data), &draws);
        if (cli_bad(c)) code = EXIT_USAGE;
    }
    if (status == MNP_OK && code == 0) {
        warn_short(c, data, &o);
        int64_t total = mnp_data_functions(data), times = o.n_sizes ? o.n_sizes : 1;
        progress_begin(&p, c, "scoring", 0, times * (total < o.functions ? total : o.functions));
        mnp_eval_opts bound = o;
        if (draws.wanted) bound.draws = -1;
        o.orders = 0; /* those of the draws are not asked for again */
        status = mnp_evaluate(c->ctx, m, data, &bound, &scores);
        progress_end(&p);
        if (status == MNP_OK) status = eval_draws_run(c, m, data, &o, &draws);
        if (draws.wanted) take_coverage(&draws.asked[0], &scores);
    }
    if (status != MNP_OK) code = cli_failed(c, status);
    if (code == 0) {
        image_terms t = terms_of(data, &o, &scores);
        subject of = {mnp_data_name(data), source_things(data),     protocol,
                      data_seed,           mnp_model_factorises(m), in_turn ? &turns : NULL};
        say_scores(c, &scores, &of, &t);
        eval_draws_say(c, &draws);
        code = cli_printed(c);
        if (code == 0 && cli_has(c, "note")) status = note_score(c, m, &scores, o.protocol);
        if (status != MNP_OK) code = cli_failed(c, status);
        if (code == 0) put_json(c, &scores, &of, &t, &draws);
    }
    mnp_data_destroy(data);
    mnp_model_destroy(m);
    return code;
}

const command command_eval = {
    .name = "eval",
    .args = "MODEL [--data D] [--functions N] [--samples 20] [--protocol strict|authors] [--note]",
    .summary = "score a model on held-out functions",
    .details =
        "Scores are in nats per point; higher is better. With latents (mnp, np) a score is a "
        "lower\n"
        "bound that rises with --samples: compare scores with the same number. lmm, gp, cbp and\n"
        "oracle have no latents, and their scores are exact. cnp, tnp and convcnp predict each\n"
        "point by itself: their score is the sum of the points' own. A model infers its latents\n"
        "anew from every context, so a larger context need not agree with a smaller one as in a\n"
        "single stochastic process; 'mnp check' measures by how much.\n"
        "'mnp eval truth --data FAMILY' scores the process that made the data: no model can score\n"
        "more on average.\n" SOURCE_SEEDS,
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .min_args = 1,
    .max_args = 1,
    .spreads = true,
    .run = run};
