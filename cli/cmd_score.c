/* cmd_score.c: mnp score MODEL: the log-density of every curve's targets given its own context. */
#include <math.h>
#include <string.h>

#include "cli/points.h"
#include "cli/turns.h"
#include "serve/service_score.h"

static const flag_def flags[] = {
    {"context", "C.csv", "observed points, of one or many curves (default: none, the population)"},
    {"targets", "T.csv", "the points to score: x, y and the group of each row"},
    POINTS_FLAGS,
    {"samples", "L", "draws of the latents for each estimate (default 20)"},
    CONDITION_FLAGS("(default network); the others add estimates of their own"),
    TURN_ORDER_FLAG("score the targets"),
    TURN_ORDERS_FLAG,
};

typedef struct curve_score {
    const char *name;
    int64_t context, targets;
    estimates sum;         /* over the targets */
    double turn, order_sd; /* in turn: the mean over orders; NaN where it is not asked for */
} curve_score;

typedef struct scoring {
    cli *c;
    const question *q; /* its places are the targets */
    int64_t samples;
    condition_ask ask;
    bool others; /* are there functions drawn in another way? */
    bool exact;  /* a process without latents */
    bool alone;  /* points are independent given the context */
    bool in_turn;
    mnp_turn_opts turns;
    int64_t curves;
    curve_score *curve;          /* (curves of the targets): those with points */
    mnp_draw_report *reports;    /* of them */
    int64_t *seen_at, *asked_at; /* where curves begin in the two tables */
    drawn how;
} scoring;

/* ---- functions of the conditional ------------------------------------------------------------ */

static mnp_status score_others(scoring *s, const mnp_set part[2], mnp_draw_report *report,
                               estimates *out) {
    cli *c = s->c;
    drawn how;
    condition_bar bar;
    mnp_predictor *p = NULL;
    mnp_draw_opts o = {.size = sizeof o,
                       .condition = s->ask.condition, /* for the bar */
                       .samples = s->samples,
                       .seed = c->seed,
                       .progress = condition_bar_show,
                       .progress_user = &bar};
    mnp_status status = mnp_predictor_create(c->ctx, s->q->model, NULL, &p);
    if (status == MNP_OK) status = mnp_predictor_condition(p, &part[0]);
    if (status == MNP_OK) status = condition_draw(c, p, s->samples, &s->ask, &how);
    condition_bar_begin(&bar, c, &o.condition);
    if (status == MNP_OK)
        status = estimates_by_functions(&c->env, c->ctx, p, part, s->q->names.x_dim, &s->ask, &o,
                                        &how.report, out);
    condition_bar_end(&bar);
    mnp_predictor_destroy(p);
    if (status == MNP_OK) *report = how.report;
    return status;
}

/* In turn, in every order. */
static mnp_status score_turns(scoring *s, const mnp_set part[2], curve_score *to) {
    double n = (double)s->turns.orders, squares = 0;
    double *scores = env_alloc(&s->c->env, (size_t)s->turns.orders, sizeof *scores, "scores");
    if (!scores) return MNP_ENOMEM;
    mnp_status status =
        mnp_score_in_turn(s->c->ctx, s->q->model, &part[0], &part[1], &s->turns, scores);
    to->turn = 0;
    for (int64_t k = 0; k < s->turns.orders; k++) to->turn += scores[k] / n;
    for (int64_t k = 0; k < s->turns.orders; k++)
        squares += (scores[k] - to->turn) * (scores[k] - to->turn);
    if (s->turns.orders > 1) to->order_sd = sqrt(squares / (n - 1));
    env_free(&s->c->env, scores);
    return status;
}

/* ---- curves ---------------------------------------------------------------------------------- */

static int score_curve(scoring *s, int64_t g) {
    cli *c = s->c;
    const question *q = s->q;
    points context = {0}, targets = {0};
    int64_t own = question_context_of(q, g);
    int code =
        own < 0 ? 0 : points_of_curve(c, q->seen, own, s->seen_at[own], q->names.x_dim, &context);
    if (code == 0)
        code = points_of_curve(c, q->places, g, s->asked_at[g], q->names.x_dim, &targets);
    mnp_set part[2] = {{context.n, context.x, context.y}, {targets.n, targets.x, targets.y}};
    if (code == 0 && targets.n > 0) {
        curve_score *to = &s->curve[s->curves];
        *to = (curve_score){.name = mnp_table_group_name(q->places, g),
                            .context = context.n,
                            .targets = targets.n,
                            .sum = estimates_none(),
                            .turn = NAN,
                            .order_sd = NAN};
        mnp_status status = mnp_score_set(c->ctx, q->model, &part[0], &part[1], s->samples, c->seed,
                                          &to->sum.bound, &to->sum.prior);
        if (status == MNP_OK && s->others)
            status = score_others(s, part, &s->reports[s->curves], &to->sum);
        if (status == MNP_OK && s->in_turn) status = score_turns(s, part, to);
        if (status != MNP_OK) code = cli_failed(c, status);
        s->curves++;
    }
    points_free(c, &context);
    points_free(c, &targets);
    return code;
}

static int score_all(scoring *s) {
    cli *c = s->c;
    int64_t groups = mnp_table_groups(s->q->places);
    progress bar;
    double start = cli_now();
    int code = 0;
    question_warn(c, s->q, question_most(s->q), NULL);
    progress_begin(&bar, c, "curves", 0, groups);
    for (int64_t g = 0; g < groups && code == 0; g++) {
        code = score_curve(s, g);
        if (groups > 1) condition_progress(&bar, g + 1, groups);
    }
    progress_end(&bar);
    s->how.seconds = cli_now() - start;
    if (code != 0 || !s->others) return code;
    condition_merge(s->reports, s->curves, 0, 0, s->samples, &s->how);
    condition_tell(c, &s->how);
    return 0;
}

/* ---- what is said ---------------------------------------------------------------------------- */

/* Every curve counts the same; se is the standard error over curves. */
static estimates mean_of(const scoring *s, double *se) {
    estimates mean = {0};
    double n = (double)s->curves, squares = 0;
    for (int64_t k = 0; k < s->curves; k++) {
        estimates e = estimates_per_point(&s->curve[k].sum, (double)s->curve[k].targets);
        mean.bound += e.bound / n, mean.prior += e.prior / n;
        mean.draws += e.draws / n, mean.evidence += e.evidence / n;
        mean.spread = hypot(mean.spread, e.spread / n);
    }
    for (int64_t k = 0; k < s->curves; k++) {
        double d = s->curve[k].sum.bound / (double)s->curve[k].targets - mean.bound;
        squares += d * d;
    }
    *se = s->curves > 1 ? sqrt(squares / (n - 1) / n) : (double)NAN;
    return mean;
}

static void say_one(const scoring *s) {
    const cli *c = s->c;
    const estimates *e = &s->curve[0].sum;
    double n = (double)s->curve[0].targets;
    cli_say(c, "  %-25s  %12.4f   per point %10.4f",
            s->alone   ? "each point by itself"
            : s->exact ? "exact"
                       : "importance-weighted bound",
            e->bound, e->bound / n);
    if (!s->exact)
        cli_say(c, "  prior sampling             %12.4f   per point %10.4f", e->prior,
                e->prior / n);
    if (s->others)
        cli_say(c, "  %-25s  %12.4f   per point %10.4f", "functions drawn", e->draws, e->draws / n);
    if (isfinite(e->evidence))
        cli_say(c, "  evidence                   %12.4f   per point %10.4f +- %.4f", e->evidence,
                e->evidence / n, e->spread / n);
}

static void say_row(const scoring *s, const char *name, const char *counts, const estimates *e) {
    char more[64] = "";
    if (s->others) snprintf(more, sizeof more, " %10.4f %10.4f", e->draws, e->evidence);
    if (s->others && isnan(e->evidence)) snprintf(more, sizeof more, " %10.4f", e->draws);
    if (s->exact)
        cli_say(s->c, "  %-20.40s %17s %10.4f", name, counts, e->bound);
    else
        cli_say(s->c, "  %-20.40s %17s %10.4f %10.4f%s", name, counts, e->bound, e->prior, more);
}

static void say_many(const scoring *s, const estimates *mean, double se) {
    bool evidence = s->others && s->ask.condition == MNP_EXACT;
    cli_say(s->c, "  %-20s %17s %10s%s%s%s", "per point", "given    targets",
            s->alone   ? "alone"
            : s->exact ? "exact"
                       : "bound",
            s->exact ? "" : "      prior", s->others ? "      drawn" : "",
            evidence ? "   evidence" : "");
    for (int64_t k = 0; k < s->curves; k++) {
        char counts[48];
        estimates e = estimates_per_point(&s->curve[k].sum, (double)s->curve[k].targets);
        snprintf(counts, sizeof counts, "%lld %10lld", (long long)s->curve[k].context,
                 (long long)s->curve[k].targets);
        say_row(s, s->curve[k].name, counts, &e);
    }
    say_row(s, "mean over curves", "", mean);
    cli_say(s->c, "  %-20s %17s %10.4f", "its standard error", "", se);
}

/* Per point: the mean over curves, and the root mean square of the spread over orders. */
static double turn_of(const scoring *s, double *spread) {
    double mean = 0, squares = 0, n = (double)s->curves;
    for (int64_t k = 0; k < s->curves; k++) {
        double points = (double)s->curve[k].targets, sd = s->curve[k].order_sd / points;
        mean += s->curve[k].turn / points / n, squares += sd * sd / n;
    }
    *spread = sqrt(squares);
    return mean;
}

static void say_turns(const scoring *s) {
    double spread, mean = turn_of(s, &spread);
    char apart[64] = "";
    if (!s->in_turn) return;
    if (s->turns.orders > 1)
        snprintf(apart, sizeof apart, "; %lld orders differ by %.4f (sd)",
                 (long long)s->turns.orders, spread);
    char total[24] = "";
    if (s->curves == 1) snprintf(total, sizeof total, "%.4f", s->curve[0].turn);
    cli_say(s->c, "  %-25s  %12s   per point %10.4f%s", turns_name(s->turns.order), total, mean,
            apart);
}

static void put_groups(cli_json *j, const scoring *s) {
    json_key(&j->w, "groups");
    json_array_begin(&j->w);
    for (int64_t k = 0; k < s->curves && points_grouped(s->q->places); k++) {
        const curve_score *one = &s->curve[k];
        estimates e = estimates_per_point(&one->sum, (double)one->targets);
        json_object_begin(&j->w);
        cli_json_put(j, TEXT("group", one->name), INTEGER("context", one->context),
                     INTEGER("points", one->targets));
        estimates_members(&j->w, s->others, &e, &one->sum);
        if (s->in_turn) cli_json_put(j, NUMBER("loglik_in_turn", one->turn / (double)one->targets));
        json_object_end(&j->w);
    }
    json_array_end(&j->w);
}

static void report(const scoring *s) {
    cli *c = s->c;
    int64_t targets = 0, context = 0;
    double se;
    estimates mean = mean_of(s, &se), sum = {0};
    for (int64_t k = 0; k < s->curves; k++) {
        targets += s->curve[k].targets, context += s->curve[k].context;
        sum.bound += s->curve[k].sum.bound, sum.prior += s->curve[k].sum.prior;
    }
    char curves[48] = "";
    if (s->curves > 1) snprintf(curves, sizeof curves, " of %lld curves", (long long)s->curves);
    cli_say(c, "log-density of %lld targets%s given %lld points, in nats; %lld samples, seed %llu",
            (long long)targets, curves, (long long)context, (long long)s->samples,
            (unsigned long long)c->seed);
    if (s->curves == 1)
        say_one(s);
    else
        say_many(s, &mean, se);
    say_turns(s);
    cli_json j;
    cli_json_begin(c, &j);
    estimates_members(&j.w, s->others, &mean, &sum);
    cli_json_put(&j, NUMBER("se", se), INTEGER("points", targets), INTEGER("context", context),
                 INTEGER("samples", s->samples), INTEGER("seed", c->seed));
    if (s->in_turn) {
        double spread, turn = turn_of(s, &spread);
        cli_json_put(&j, NUMBER("loglik_in_turn", turn), INTEGER("orders", s->turns.orders),
                     NUMBER("order_sd", spread));
    }
    put_groups(&j, s);
    if (s->others) {
        cli_json_put(&j, NUMBER("seconds", s->how.seconds));
        condition_json(c, &j, &s->how);
    } else {
        cli_json_warnings(&j, buf_str(&c->warnings));
    }
    cli_json_end(c, &j);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int score(cli *c, const question *q, int64_t samples) {
    scoring s = {.c = c,
                 .q = q,
                 .samples = samples,
                 .exact = mnp_model_latent(q->model) == 0,
                 .alone = mnp_model_factorises(q->model)};
    size_t groups = (size_t)mnp_table_groups(q->places), seen = (size_t)mnp_table_groups(q->seen);
    s.in_turn = turns_read(c, &s.turns);
    if (cli_bad(c) || !condition_read(c, MNP_NETWORK, &s.ask)) return c->status;
    s.others = s.ask.condition != MNP_NETWORK && !s.exact;
    if (s.exact && s.ask.given)
        cli_note(c,
                 "note: this model has no latents and its score is exact: --condition is not used");
    s.ask.silent = true; /* of all curves at the end */
    s.curve = env_alloc(&c->env, groups, sizeof *s.curve, "scores");
    s.reports = env_alloc(&c->env, groups, sizeof *s.reports, "scores");
    s.asked_at = env_alloc(&c->env, groups, sizeof *s.asked_at, "curves");
    s.seen_at = env_alloc(&c->env, seen + 1, sizeof *s.seen_at, "curves");
    bool room = s.curve && s.reports && s.asked_at && s.seen_at;
    if (room) points_first_rows(q->places, s.asked_at);
    if (room && q->seen) points_first_rows(q->seen, s.seen_at);
    int code = room ? score_all(&s) : points_failed(c);
    if (code == 0) report(&s);
    env_free(&c->env, s.asked_at);
    env_free(&c->env, s.seen_at);
    env_free(&c->env, s.curve);
    env_free(&c->env, s.reports);
    return code;
}

static int run(cli *c) {
    int64_t samples = cli_int(c, "samples", 20, 1, 10000);
    if (cli_bad(c)) return c->status;
    if (!cli_has(c, "targets"))
        return cli_fail(c, EXIT_USAGE, "--targets T.csv is missing: the points to score");
    question q;
    int code = question_open(c, &q);
    if (code == 0) code = question_targets(c, &q);
    if (code == 0) code = score(c, &q, samples);
    question_close(c, &q);
    return code;
}

const command command_score = {
    .name = "score",
    .args = "MODEL [--context C.csv] --targets T.csv [--samples L]",
    .summary = "log-density of curves' points given others of the same curve",
    .details =
        "Curves are told apart by the group column, as in 'mnp predict': each is scored given its "
        "own\n"
        "points of --context, and one without points there as a curve of the population. What is\n"
        "constant in a curve may be left out of --targets where --context says it. The mean "
        "counts\n"
        "every curve the same. A curve's numbers do not depend on the others.\n"
        "Two estimates, total and per point: the importance-weighted bound (latents from the\n"
        "posterior over context and targets) and prior sampling (latents from the context\n"
        "alone), which is lower and noisier. JSON: loglik and loglik_prior_sampling are per\n"
        "point, total and total_prior_sampling for all targets together; groups has each curve's.\n"
        "Several outputs are scored each in units of its own spread. Models without\n"
        "latents (lmm, gp, cbp, oracle) are exact, and both are the same. cnp, tnp and\n"
        "convcnp predict each point by itself: their score is the sum of the points' own. --order\n"
        "scores their points in turn, which gives them a joint density; it depends on the order.\n"
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
