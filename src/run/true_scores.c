/* true_scores.c: see true_scores.h. Functions go through in chunks, which the workers share. */
#include "run/true_scores.h"

#include <math.h>

#include "base/pool_errors.h"
#include "op/permute.h"
#include "run/eval_internal.h"
#include "run/split.h"
#include "run/true_law.h"
#include "util/least.h"

/* Of one function: sums over its targets. */
typedef struct true_score {
    double joint, marginal, crps;
    int64_t m, targets;
    double *told; /* (5, targets): marginal, crps, mean, sd, entropy; NULL: not wanted */
} true_score;

typedef struct true_task {
    const dataset *d;
    const family *f;
    const eval_opts *o;
    int64_t first;
    true_score *to; /* (functions) */
    bool told;
    pool_errors errors;
} true_task;

/* Mean and sd of target t, and the entropy: that of a normal distribution with these two, less the
 * divergence from it. */
static void describe(const truth_law *law, int64_t t, double *told) {
    const double half_log_2pi_e = 1.41893853320467274178;
    double mean, square;
    true_law_moments(law, t, &mean, &square);
    told[2 * law->targets + t] = mean;
    told[3 * law->targets + t] = sqrt(square);
    told[4 * law->targets + t] =
        half_log_2pi_e + log(square) / 2 - true_law_kl(law, t, mean, sqrt(square));
}

static void score_targets(const truth_law *law, const double *y, true_score *to) {
    if (!true_law_known(law)) to->marginal = to->crps = NAN;
    for (int64_t t = 0; t < law->targets; t++) {
        double density = true_law_log_density(law, t, y[t]), crps = true_law_crps(law, t, y[t]);
        to->marginal += density, to->crps += crps;
        if (!to->told) continue;
        to->told[t] = density, to->told[law->targets + t] = crps;
        describe(law, t, to->told);
    }
}

static mnp_status score_function(const true_task *t, env *e, int64_t i, true_score *to) {
    const dataset *d = t->d;
    int64_t points = d->start[i + 1] - d->start[i];
    mnp_status status = MNP_ENOMEM;
    truth_law law = {0};
    double *x = env_alloc(e, (size_t)(2 * points), sizeof *x, "a function"), *y = x + points;
    int32_t *memory = env_alloc(e, (size_t)permute_words(points), sizeof *memory, "a split");
    if (!x || !memory) goto done;
    split_sizes sizes = {t->o->lo, t->o->hi, t->o->targets_lo, t->o->targets_hi};
    curve_split s = split_curve(d, &sizes, t->o->seed, i, memory);
    for (int64_t k = 0; k < s.n; k++) {
        x[k] = dataset_raw_x(d, i, s.order[k], 0);
        y[k] = dataset_raw_y(d, d->start[i] + s.order[k]);
    }
    *to = (true_score){.m = s.m, .targets = s.n - s.m};
    status = truth_ask(e, t->f, x, y, s.n, s.m, &to->joint, &law);
    if (status == MNP_OK && t->told && true_law_known(&law)) {
        to->told = env_alloc(e, (size_t)(5 * law.targets), sizeof *to->told, "a true law");
        if (!to->told) status = MNP_ENOMEM;
    }
    if (status == MNP_OK) score_targets(&law, y + s.m, to);
done:
    truth_law_free(e, &law);
    env_free(e, x);
    env_free(e, memory);
    return status;
}

static void score_task(void *arg, int64_t k, int worker) {
    true_task *t = arg;
    pool_seat seat;
    env own;
    if (!pool_errors_enter(&t->errors, k, worker, "evaluation was cancelled", &seat, &own)) return;
    int64_t i = t->first + k;
    mnp_status status = score_function(t, &own, i, &t->to[i]);
    if (status != MNP_OK) pool_errors_fail(&t->errors, k, status, own.error);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The mean over functions of a sum over targets, per target; its standard error; and the mean over
 * all targets. */
static void mean_of(const true_score *f, int64_t count, size_t field, int64_t lo, int64_t hi,
                    double *mean, double *se, double *pooled) {
    double sum = 0, squares = 0, total = 0, functions = 0, targets = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < count; i++) {
            if (f[i].m < lo || f[i].m > hi) continue;
            double v = *(const double *)((const char *)&f[i] + field), n = (double)f[i].targets;
            if (pass == 0)
                sum += v / n, total += v, targets += n, functions++;
            else
                squares += (v / n - sum / functions) * (v / n - sum / functions);
        }
    *mean = sum / functions;
    if (se) *se = functions > 1 ? sqrt(squares / (functions - 1) / functions) : NAN;
    *pooled = total / targets;
}

static void make_row(const true_score *f, int64_t count, int64_t lo, int64_t hi, mnp_truth *to) {
    double over_targets;
    *to = (mnp_truth){.context_lo = lo, .context_hi = hi};
    for (int64_t i = 0; i < count; i++) {
        if (f[i].m < lo || f[i].m > hi) continue;
        to->functions++;
        to->targets += f[i].targets;
    }
    if (to->functions == 0) return;
    mean_of(f, count, offsetof(true_score, joint), lo, hi, &to->joint, &to->joint_se,
            &to->joint_pooled);
    mean_of(f, count, offsetof(true_score, marginal), lo, hi, &to->marginal, &to->marginal_se,
            &to->marginal_pooled);
    mean_of(f, count, offsetof(true_score, crps), lo, hi, &to->crps, NULL, &over_targets);
}

/* Tells of the functions of a chunk, and frees what they were told by. */
static void tell(env *e, true_score *f, int64_t first, int64_t count, eval_each each, void *user) {
    for (int64_t k = 0; k < count; k++) {
        double targets = (double)f[k].targets, *told = f[k].told;
        int64_t n = f[k].targets;
        mnp_function_scores s = {.size = sizeof s,
                                 .function = first + k,
                                 .context = f[k].m,
                                 .targets = n,
                                 .joint = f[k].joint / targets,
                                 .in_turn = NAN,
                                 .order_sd = NAN,
                                 .covered50 = NAN,
                                 .covered80 = NAN,
                                 .covered95 = NAN,
                                 .joint_error = NAN,
                                 .joint_bias = NAN,
                                 .joint_hurried = NAN};
        if (told) {
            s.marginal = s.mixture = told, s.crps = told + n;
            s.mean = told + 2 * n, s.sd = told + 3 * n, s.entropy = told + 4 * n;
        }
        if (each && n > 0) each(user, &s);
        env_free(e, told);
        f[k].told = NULL;
    }
}

static mnp_status score_all(true_task *t, env *e, pool *pool, int64_t total, eval_progress done,
                            void *user, eval_each each, void *each_user) {
    t->told = each;
    for (int64_t at = 0; at < total; at += EVAL_CHUNK) {
        int64_t count = least(EVAL_CHUNK, total - at);
        t->first = at;
        pool_errors_begin(&t->errors, e);
        pool_run(pool, count, score_task, t);
        mnp_status status = pool_errors_end(&t->errors);
        tell(e, t->to + at, at, count, status == MNP_OK ? each : NULL, each_user);
        if (status != MNP_OK) return env_fail(e, status, "%s: %s", t->d->name, t->errors.error);
        if (done) done(user, at + count, total);
    }
    return MNP_OK;
}

static mnp_status unknown(env *e, const family *f) {
    return env_fail(e, MNP_EINVAL, "%s has no density that is known", f->name);
}

static mnp_status known(env *e, const family *f) {
    const family_def *def = f->def;
    if (family_x_dim(def) == 1 && (def->oracle || def->logp || def->hyper)) return MNP_OK;
    return unknown(e, f);
}

mnp_status true_scores_run(env *e, pool *pool, const dataset *d, const eval_opts *o,
                           eval_progress done, void *user, eval_each each, void *each_user,
                           mnp_truth rows[PREDICTIVE_ROWS]) {
    if (!d->builtin)
        return env_fail(e, MNP_EINVAL, "%s: the true density is known of built-in families alone",
                        d->name);
    if (o->n_sizes || o->lo < 0 || o->hi < o->lo)
        return env_fail(e, MNP_EINVAL, "context sizes are lo:hi with 0 <= lo <= hi");
    family f;
    MNP_TRY(family_parse(e, d->name, &f));
    int64_t total = o->functions > 0 ? least(o->functions, d->functions) : d->functions;
    true_score *scores = env_alloc(e, (size_t)total, sizeof *scores, "scores");
    true_task t = {.d = d, .f = &f, .o = o, .to = scores};
    mnp_status status = scores ? known(e, &f) : MNP_ENOMEM;
    if (status == MNP_OK) status = score_all(&t, e, pool, total, done, user, each, each_user);
    if (status == MNP_OK) {
        int64_t lo[EVAL_BINS], hi[EVAL_BINS];
        int bins = eval_bins(o, lo, hi);
        make_row(scores, total, 0, INT64_MAX,
                 &rows[0]); /* a context may be cut to leave a target */
        rows[0].context_lo = o->lo, rows[0].context_hi = o->hi;
        for (int k = 0; k < bins; k++) make_row(scores, total, lo[k], hi[k], &rows[k + 1]);
        if (isnan(rows[0].joint) && isnan(rows[0].marginal))
            status = unknown(e, &f); /* for these options */
    }
    env_free(e, scores);
    family_free(e, &f);
    return status;
}
