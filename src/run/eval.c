/* eval.c: see eval.h. Two recorded graphs: the bound (latents from the posterior, scored against
 * the prior) and the predictive (latents from the context alone: densities and draws). Functions go
 * through in chunks; each is an item, so workers share them. */
#include <math.h>
#include <string.h>

#include "base/pool_errors.h"
#include "comm/comm.h"
#include "data/truth.h"
#include "op/permute.h"
#include "run/eval_internal.h"
#include "run/marginals.h"
#include "run/split.h"
#include "util/least.h"

/* What comes out of one function. */
typedef struct function_score {
    double loglik, elbo, kl, ess, prior, truth; /* per scored point, raw units */
    double alone;                               /* images: pixels one by one   */
    double turn, order_var;  /* in turn: the mean over orders, and the variance */
    double covered[3], crps; /* sums over targets           */
    int64_t targets, scored, m;
} function_score;

static mnp_status ensure(evaluator *v, runner **r, score_key *have, score_key want,
                         runner_record record) {
    if (*r && have->protocol == want.protocol && have->samples == want.samples &&
        have->draws == want.draws && (*r)->plan->opts.n >= v->longest)
        return MNP_OK; /* points: never here; latents: always with images */
    runner_destroy(*r);
    *r = NULL;
    *have = want;
    runner_opts o = {
        .pool = v->pool, .device = v->device, .capacity = {v->longest, v->longest, want.samples}};
    return runner_make(v->env, v->m, &o, record, have, r);
}

/* ---- curves ---------------------------------------------------------------------------------- */

static mnp_status curve_rows(evaluator *v, const eval_opts *o, int64_t *rows) {
    (void)o;
    *rows = v->d->longest;
    return MNP_OK;
}

/* Function i, its points permuted, context first. */
static int64_t split_points(evaluator *v, const eval_opts *o, int64_t i, int64_t slot) {
    const dataset *d = v->d;
    split_sizes sizes = {o->lo, o->hi, o->targets_lo, o->targets_hi};
    curve_split split = split_curve(d, &sizes, o->seed, i, v->memory);
    v->m_len[slot] = split.m;
    v->n[slot] = split.n;
    const model_scaling *sc = &v->m->scaling;
    for (int64_t k = 0; k < split.n; k++) {
        int64_t to = slot * v->longest + k, from = split.order[k];
        for (int32_t c = 0; c < d->x_dim; c++)
            v->x[to * d->x_dim + c] =
                (dataset_raw_x(d, i, from, c) - sc->x_shift[c]) / sc->x_scale[c];
        v->y[to] = (dataset_raw_y(d, d->start[i] + from) - sc->y_shift) / sc->y_scale;
    }
    return o->protocol == EVAL_STRICT ? split.n - split.m : split.n;
}

static const eval_scheme curves = {.rows = curve_rows, .split = split_points};

/* ---- making ---------------------------------------------------------------------------------- */

mnp_status evaluator_create(env *e, const model *m, const dataset *d, pool *pool,
                            backend_choice device, evaluator **out) {
    *out = NULL;
    if (d->x_dim != m->spec.x_dim)
        return env_fail(e, MNP_EINVAL, "the data have %d inputs per point, the model %lld",
                        d->x_dim, (long long)m->spec.x_dim);
    evaluator *v = env_alloc(e, 1, sizeof *v, "an evaluator");
    if (!v) return MNP_ENOMEM;
    *v = (evaluator){.env = e, .m = m, .d = d, .pool = pool, .device = device};
    v->scheme = d->policy.apart ? &eval_images : &curves;
    if (d->builtin && family_parse(e, d->name, &v->family) != MNP_OK) {
        evaluator_destroy(v);
        return MNP_ENOMEM;
    }
    v->n = env_alloc(e, EVAL_CHUNK, sizeof *v->n, "a chunk of functions");
    v->m_len = env_alloc(e, EVAL_CHUNK, sizeof *v->m_len, "a chunk of functions");
    v->memory = env_alloc(e, (size_t)permute_words(d->longest), sizeof *v->memory, "a split");
    if (!v->n || !v->m_len || !v->memory) {
        evaluator_destroy(v);
        return MNP_ENOMEM;
    }
    *out = v;
    return MNP_OK;
}

/* Room for the rows of a chunk of functions. */
mnp_status evaluator_make_rows(evaluator *v, const eval_opts *o) {
    int64_t rows;
    MNP_TRY(v->scheme->rows(v, o, &rows));
    if (rows <= v->longest) return MNP_OK;
    size_t all = EVAL_CHUNK * (size_t)rows;
    env_free(v->env, v->x);
    env_free(v->env, v->y);
    v->longest = 0;
    v->x = env_alloc(v->env, all * (size_t)v->d->x_dim, sizeof *v->x, "a chunk of functions");
    v->y = env_alloc(v->env, all, sizeof *v->y, "a chunk of functions");
    if (!v->x || !v->y) return MNP_ENOMEM;
    v->longest = rows;
    return MNP_OK;
}

void evaluator_destroy(evaluator *v) {
    if (!v) return;
    runner_destroy(v->bound);
    runner_destroy(v->predictive);
    turns_destroy(v->turns);
    if (v->scheme->release) v->scheme->release(v);
    env_free(v->env, v->x);
    env_free(v->env, v->y);
    env_free(v->env, v->n);
    env_free(v->env, v->m_len);
    env_free(v->env, v->memory);
    if (v->family.def) family_free(v->env, &v->family);
    env_free(v->env, v);
}

void evaluator_on_progress(evaluator *v, eval_progress fn, void *user) {
    v->progress = fn;
    v->progress_user = user;
}

void evaluator_on_each(evaluator *v, eval_each fn, void *user) {
    v->each = v->d->policy.apart ? NULL : fn;
    v->each_user = user;
}

/* ---- one chunk ------------------------------------------------------------------------------- */

static mnp_status run_chunk(evaluator *v, runner *r, const float *weights, const eval_opts *o,
                            int64_t first, int64_t count) {
    exec_io *io = &r->io;
    io->weights = (void *)(uintptr_t)weights;
    io->feed[0] = v->x, io->feed_stride[0] = v->longest * v->d->x_dim;
    io->feed[1] = v->y, io->feed_stride[1] = v->longest;
    io->n = v->n, io->m = v->m_len;
    io->first_function = first;
    return runner_run(r, o->seed, count);
}

/* ---- scores of one function ------------------------------------------------------------------ */

/* loglik[] becomes the log importance weights. */
static void score_bound(function_score *f, double *loglik, const double *kl, const double *ratio,
                        int64_t samples, double shift) {
    double elbo = 0, kls = 0, points = (double)f->scored;
    for (int64_t s = 0; s < samples; s++) {
        elbo += loglik[s] - kl[s];
        kls += kl[s];
        loglik[s] += ratio[s];
    }
    f->loglik = score_log_mean_exp(loglik, samples, &f->ess) / points - shift;
    f->elbo = elbo / (double)samples / points - shift;
    f->kl = kls / (double)samples / points;
}

/* draws (S, n) of one function; column holds S numbers. */
static void score_draws(function_score *f, const double *draws, int64_t samples, int64_t n,
                        const double *y, double y_scale, double *column) {
    for (int64_t i = f->m; i < n; i++) {
        for (int64_t s = 0; s < samples; s++) column[s] = draws[s * n + i];
        marginals_sort(column, samples);
        marginals_cover(marginals_rank(column, samples, y[i]), samples, f->covered);
        f->crps += marginals_crps(column, samples, y[i]);
        f->targets++;
    }
    f->crps *= y_scale;
}

/* ---- all functions --------------------------------------------------------------------------- */

typedef struct buffers {
    double *loglik, *kl, *ratio; /* (EVAL_CHUNK, samples)          */
    double *prior;               /* (EVAL_CHUNK, predictive)       */
    double *draws;               /* (EVAL_CHUNK, predictive, longest) */
    double *column;              /* (predictive)              */
    double alone[EVAL_CHUNK];    /* of images; else NaN       */
    int64_t samples, predictive;
} buffers;

static mnp_status make_buffers(evaluator *v, const eval_opts *o, buffers *b) {
    *b = (buffers){.samples = process_is_exact(&v->m->spec) ? 1 : o->samples};
    for (int k = 0; k < EVAL_CHUNK; k++) b->alone[k] = NAN;
    b->predictive = o->draws > b->samples ? o->draws : b->samples;
    size_t each = EVAL_CHUNK * (size_t)b->samples, wide = EVAL_CHUNK * (size_t)b->predictive;
    b->loglik = env_alloc(v->env, 3 * each, sizeof(double), "scores");
    if (!b->loglik) return MNP_ENOMEM;
    b->kl = b->loglik + each;
    b->ratio = b->kl + each;
    if (o->bound_only) return MNP_OK;
    b->prior = env_alloc(v->env, wide + (size_t)b->predictive, sizeof(double), "scores");
    b->draws = env_alloc(v->env, o->draws ? wide * (size_t)v->longest : 1, sizeof(double),
                         "draws of a chunk of functions");
    if (b->prior) b->column = b->prior + wide;
    return b->prior && b->draws ? MNP_OK : MNP_ENOMEM;
}

static void free_buffers(evaluator *v, buffers *b) {
    env_free(v->env, b->loglik);
    env_free(v->env, b->prior);
    env_free(v->env, b->draws);
}

static void bind_emits(runner *r, double *const *to, const int64_t *stride, int count) {
    for (int k = 0; k < count; k++) {
        r->io.emit[k] = to[k];
        r->io.emit_stride[k] = stride[k];
    }
}

/* ---- the process that made the data ------------------------------------------------------------
 */

typedef struct truth_task {
    evaluator *v;
    function_score *out;
    pool_errors errors;
} truth_task;

static void score_truth(void *arg, int64_t k, int worker) {
    truth_task *t = arg;
    const evaluator *v = t->v;
    const model_scaling *s = &v->m->scaling;
    pool_seat seat;
    env e;
    if (!pool_errors_enter(&t->errors, k, worker, "evaluation was cancelled", &seat, &e)) return;
    int64_t n = v->n[k], m = v->m_len[k], at = k * v->longest;
    double *raw = env_alloc(&e, (size_t)(2 * n), sizeof *raw, "a function"), sum = NAN;
    for (int64_t i = 0; raw && i < n; i++) {
        raw[i] = v->x[at + i] * s->x_scale[0] + s->x_shift[0];
        raw[n + i] = v->y[at + i] * s->y_scale + s->y_shift;
    }
    mnp_status status =
        raw ? truth_ask(&e, &v->family, raw, raw + n, n, m, &sum, NULL) : MNP_ENOMEM;
    if (status != MNP_OK) pool_errors_fail(&t->errors, k, status, e.error);
    t->out[k].truth = sum / (double)(n - m);
    env_free(&e, raw);
}

static mnp_status score_truths(evaluator *v, const eval_opts *o, int64_t count,
                               function_score *out) {
    truth_task t = {.v = v, .out = out};
    bool known = v->family.def && o->protocol == EVAL_STRICT && !o->bound_only && !o->no_truth;
    for (int64_t k = 0; k < count; k++) out[k].truth = NAN;
    if (!known) return MNP_OK;
    pool_errors_begin(&t.errors, v->env);
    if (v->pool) pool_run(v->pool, count, score_truth, &t);
    for (int64_t k = 0; !v->pool && k < count; k++) score_truth(&t, k, 0);
    mnp_status status = pool_errors_end(&t.errors);
    return status == MNP_OK ? MNP_OK : env_fail(v->env, status, "%s", t.errors.error);
}

/* Is every point of function i, in place `slot`, within the model's reach? */
mnp_status evaluator_check_reach(const evaluator *v, int64_t i, int64_t slot) {
    const model_scaling *s = &v->m->scaling;
    int64_t dims = v->d->x_dim, rows = v->n[slot];
    const double *x = v->x + slot * v->longest * dims, *y = v->y + slot * v->longest;
    for (int64_t k = 0; k < rows * (dims + 1); k++) {
        bool of_x = k < rows * dims;
        double at = of_x ? x[k] : y[k - rows * dims];
        if (fabs(at) <= MNP_REACH) continue;
        double shift = of_x ? s->x_shift[k % dims] : s->y_shift;
        return env_fail(v->env, MNP_EINVAL,
                        "%s: function %lld has %s = %g, too far from what the model was trained on "
                        "for single precision (are the units those of the training data?)",
                        v->d->name, (long long)i, of_x ? "an x" : "a y",
                        at * (of_x ? s->x_scale[k % dims] : s->y_scale) + shift);
    }
    return MNP_OK;
}

/* Splits the functions of a chunk. */
static mnp_status split_chunk(evaluator *v, const eval_opts *o, int64_t first, int64_t count,
                              function_score *out) {
    for (int64_t k = 0; k < count; k++) {
        int64_t scored = v->scheme->split(v, o, first + k, k);
        out[k] = (function_score){.m = v->m_len[k], .scored = scored};
        MNP_TRY(evaluator_check_reach(v, first + k, k));
    }
    return MNP_OK;
}

/* Both graphs on a chunk, and the targets that do not stand in its rows. */
static mnp_status run_both(evaluator *v, const float *weights, const eval_opts *o, buffers *b,
                           int64_t first, int64_t count) {
    const eval_scheme *more = process_is_exact(&v->m->spec) || !v->scheme->rest ? NULL : v->scheme;
    if (more) more->bind(v, v->bound, BOUND_LOGP, b->samples);
    MNP_TRY(run_chunk(v, v->bound, weights, o, first, count));
    if (more)
        MNP_TRY(more->rest(v, weights, o, first, count, b->samples, b->samples, b->loglik, NULL));
    if (o->bound_only) return MNP_OK;
    if (more) more->bind(v, v->predictive, o->draws ? 2 : 1, b->predictive);
    MNP_TRY(run_chunk(v, v->predictive, weights, o, first, count));
    if (!more) return MNP_OK;
    return more->rest(v, weights, o, first, count, b->samples, b->predictive, b->prior, b->alone);
}

/* The targets of the k-th function of a chunk in turn, in each of the orders. */
static mnp_status score_turns(evaluator *v, const float *weights, const eval_opts *o,
                              int64_t function, int64_t k, function_score *f) {
    double mean = 0, squares = 0, count = (double)o->orders;
    const double *x = v->x + k * v->longest * v->d->x_dim, *y = v->y + k * v->longest;
    for (int64_t number = 0; number < o->orders; number++) {
        turn_order order = {o->order, o->seed, function, number};
        double score;
        MNP_TRY(turns_score(v->turns, weights, x, y, v->n[k], v->m_len[k], &order, &score));
        score /= (double)f->scored;
        mean += score / count, squares += score * score / count;
    }
    f->turn = mean;
    f->order_var = o->orders > 1 ? fmax(squares - mean * mean, 0) * count / (count - 1) : NAN;
    return MNP_OK;
}

static void tell(const evaluator *v, const eval_opts *o, int64_t function,
                 const function_score *f) {
    if (!v->each) return;
    double count = (double)f->targets;
    mnp_function_scores s = {.size = sizeof s,
                             .function = function,
                             .context = f->m,
                             .targets = f->scored,
                             .joint = f->loglik,
                             .in_turn = o->orders ? f->turn : NAN,
                             .order_sd = o->orders > 1 ? sqrt(f->order_var) : NAN,
                             .covered50 = f->covered[0] / count,
                             .covered80 = f->covered[1] / count,
                             .covered95 = f->covered[2] / count,
                             .joint_error = NAN,
                             .joint_bias = NAN,
                             .joint_hurried = NAN};
    v->each(v->each_user, &s);
}

static mnp_status score_chunk(evaluator *v, const float *weights, const eval_opts *o, buffers *b,
                              int64_t first, int64_t count, function_score *out) {
    double shift = log(v->m->scaling.y_scale);
    MNP_TRY(split_chunk(v, o, first, count, out));
    MNP_TRY(score_truths(v, o, count, out));
    MNP_TRY(run_both(v, weights, o, b, first, count));
    for (int64_t k = 0; k < count; k++) {
        int64_t at = k * b->samples, wide = k * b->predictive;
        score_bound(&out[k], b->loglik + at, b->kl + at, b->ratio + at, b->samples, shift);
        if (o->bound_only) continue;
        int64_t function = first + k;
        if (isnan(out[k].loglik))
            return env_fail(v->env, MNP_ENUMERIC,
                            "%s: the score of function %lld is not a number%s", v->d->name,
                            (long long)function,
                            process_is_exact(&v->m->spec) && !process_factorises(&v->m->spec)
                                ? ": its covariance is singular"
                                : "");
        out[k].prior =
            score_log_mean_exp(b->prior + wide, b->samples, NULL) / (double)out[k].scored - shift;
        out[k].alone = b->alone[k] - shift;
        if (o->orders) MNP_TRY(score_turns(v, weights, o, function, k, &out[k]));
        if (o->draws)
            score_draws(&out[k], b->draws + wide * v->longest, b->predictive, v->n[k],
                        v->y + k * v->longest, v->m->scaling.y_scale, b->column);
        tell(v, o, function, &out[k]);
    }
    return MNP_OK;
}

/* Functions, each with every size of the context in turn: f (sizes, functions). */
typedef struct score_table {
    const function_score *f;
    int64_t functions, all;
} score_table;

/* Mean of one field over contexts of lo to hi points, and its standard error: contexts of one
 * function err together, functions apart. */
static double mean_of(const score_table *t, size_t offset, double *se, int64_t lo, int64_t hi,
                      int64_t *used) {
    double sum = 0, squares = 0;
    int64_t k = 0, functions = 0;
    for (int64_t i = 0; i < t->all; i++) {
        if (t->f[i].m < lo || t->f[i].m > hi) continue;
        sum += *(const double *)((const char *)&t->f[i] + offset);
        k++;
    }
    double mean = k ? sum / (double)k : NAN;
    for (int64_t i = 0; i < t->functions; i++) {
        double off = 0;
        bool there = false;
        for (int64_t j = i; j < t->all; j += t->functions) {
            if (t->f[j].m < lo || t->f[j].m > hi) continue;
            off += *(const double *)((const char *)&t->f[j] + offset) - mean, there = true;
        }
        squares += off * off, functions += there;
    }
    double F = (double)functions;
    if (se) *se = functions > 1 ? sqrt(squares / (F - 1) / F) * (F / (double)k) : NAN;
    if (used) *used = k;
    return mean;
}

int eval_bins(const eval_opts *o, int64_t lo[EVAL_BINS], int64_t hi[EVAL_BINS]) {
    int bins = 0;
    for (; bins < o->n_sizes; bins++) lo[bins] = hi[bins] = o->sizes[bins];
    if (o->n_sizes || o->context != EVAL_UNIFORM) return bins;
    int64_t width = (o->hi - o->lo + EVAL_BINS) / EVAL_BINS;
    for (int64_t from = o->lo; from <= o->hi && bins < EVAL_BINS; from += width, bins++) {
        lo[bins] = from;
        hi[bins] = least(from + width - 1, o->hi);
    }
    return bins;
}

#define MEAN(field, se) mean_of(&t, offsetof(function_score, field), se, INT64_MIN, INT64_MAX, NULL)

static void summarise(const function_score *f, int64_t count, const eval_opts *o,
                      eval_scores *out) {
    score_table t = {f, count / most(o->n_sizes, 1), count};
    *out = (eval_scores){.functions = count};
    out->loglik = MEAN(loglik, &out->se);
    out->elbo = MEAN(elbo, NULL);
    out->kl = MEAN(kl, NULL);
    out->ess = MEAN(ess, NULL);
    out->prior = o->bound_only ? NAN : MEAN(prior, &out->prior_se);
    out->alone = o->bound_only ? NAN : MEAN(alone, &out->alone_se);
    out->truth = MEAN(truth, &out->truth_se);
    out->turn = o->orders ? MEAN(turn, &out->turn_se) : NAN;
    out->order_sd = o->orders ? sqrt(MEAN(order_var, NULL)) : NAN;
    if (!o->orders) out->turn_se = NAN;
    double covered[3] = {0}, crps = 0, targets = 0;
    for (int64_t i = 0; i < count; i++) {
        out->points += f[i].scored;
        targets += (double)f[i].targets;
        crps += f[i].crps;
        for (int k = 0; k < 3; k++) covered[k] += f[i].covered[k];
    }
    out->coverage50 = targets > 0 ? covered[0] / targets : NAN;
    out->coverage80 = targets > 0 ? covered[1] / targets : NAN;
    out->coverage95 = targets > 0 ? covered[2] / targets : NAN;
    out->crps = targets > 0 ? crps / targets : NAN;
    out->n_bins = eval_bins(o, out->bin_lo, out->bin_hi);
    for (int k = 0; k < out->n_bins; k++)
        out->bin_loglik[k] = mean_of(&t, offsetof(function_score, loglik), &out->bin_se[k],
                                     out->bin_lo[k], out->bin_hi[k], &out->bin_functions[k]);
}

static mnp_status prepare_graphs(evaluator *v, const eval_opts *o, buffers *b) {
    bool apart = v->d->policy.apart; /* rows after the context are targets, all of them scored */
    eval_protocol protocol = apart ? EVAL_STRICT : o->protocol;
    if (v->scheme->prepare) MNP_TRY(v->scheme->prepare(v, b->predictive));
    score_key bound = {protocol, b->samples, false, false, apart};
    MNP_TRY(ensure(v, &v->bound, &v->bound_key, bound, score_record_bound));
    bind_emits(v->bound, (double *[]){b->loglik, b->kl, b->ratio},
               (int64_t[]){b->samples, b->samples, b->samples}, 3);
    if (o->bound_only) return MNP_OK;
    score_key predictive = {protocol, b->predictive, false, o->draws > 0, apart};
    MNP_TRY(ensure(v, &v->predictive, &v->predictive_key, predictive, score_record_predictive));
    bind_emits(v->predictive, (double *[]){b->prior, b->draws},
               (int64_t[]){b->predictive, b->predictive * v->longest}, o->draws ? 2 : 1);
    return MNP_OK;
}

mnp_status evaluator_check(evaluator *v, const eval_opts *o) {
    MNP_TRY(score_check_samples(v->env, o->samples));
    if (o->draws > 0) MNP_TRY(score_check_samples(v->env, o->draws));
    if (o->lo < 0 || o->hi < o->lo)
        return env_fail(v->env, MNP_EINVAL, "context sizes are lo:hi with 0 <= lo <= hi");
    if (o->n_sizes < 0 || o->n_sizes > EVAL_BINS)
        return env_fail(v->env, MNP_EINVAL, "a list has 1 to %d context sizes", EVAL_BINS);
    for (int64_t k = 0; k < o->n_sizes; k++)
        if (o->sizes[k] < 0 || (k > 0 && o->sizes[k] <= o->sizes[k - 1]))
            return env_fail(v->env, MNP_EINVAL, "a list of context sizes rises, from 0 or more");
    if (o->n_sizes && o->context != EVAL_UNIFORM)
        return env_fail(v->env, MNP_EINVAL, "a list of context sizes is for uniform contexts");
    if (o->orders && (v->d->policy.apart || o->protocol != EVAL_STRICT))
        return env_fail(v->env, MNP_EINVAL,
                        "targets in turn are those of curves outside the context: for curves, with "
                        "the protocol strict");
    if (o->orders > 1 && o->order == MNP_ORDER_X)
        return env_fail(v->env, MNP_EINVAL, "by x there is one order");
    if (v->m->spec.attend && o->protocol != EVAL_STRICT)
        return env_fail(v->env, MNP_EUNSUPPORTED,
                        "protocol authors scores the context's points too, whose y a model with "
                        "attend=on has seen: score it with the protocol strict");
    if (v->d->functions < 1) return env_fail(v->env, MNP_EINVAL, "there is no function to score");
    return MNP_OK;
}

int64_t evaluator_functions(const evaluator *v, const eval_opts *o) {
    return o->functions > 0 ? least(o->functions, v->d->functions) : v->d->functions;
}

eval_opts eval_opts_of_size(const eval_opts *o, int64_t k) {
    eval_opts one = *o;
    if (o->n_sizes) one.lo = one.hi = o->sizes[k];
    return one;
}

/* Scores of the functions that are this rank's: `scores` (functions), and `before` were scored
 * already of all. */
static mnp_status score_functions(evaluator *v, const float *weights, const eval_opts *o,
                                  buffers *b, int64_t before, int64_t all, function_score *scores) {
    int64_t total = evaluator_functions(v, o);
    comm_span own = comm_split(v->env, total, 1);
    for (int64_t at = own.lo; at < own.hi; at += EVAL_CHUNK) {
        int64_t count = least(EVAL_CHUNK, own.hi - at);
        mnp_status status =
            score_chunk(v, weights ? weights : v->m->weights, o, b, at, count, scores + at);
        if (v->progress)
            v->progress(v->progress_user,
                        before + (at + count - own.lo) * total / (own.hi - own.lo), all);
        comm_heartbeat(v->env);
        MNP_TRY(status);
        if (!o->bound_only && env_cancelled(v->env))
            return env_fail(v->env, MNP_ECANCELLED, "evaluation was cancelled");
    }
    return comm_gather_parts(v->env, scores, total, 1, sizeof *scores, "the scores");
}

mnp_status evaluator_run(evaluator *v, const float *weights, const eval_opts *o, eval_scores *out) {
    MNP_TRY(evaluator_check(v, o));
    int64_t total = evaluator_functions(v, o), passes = most(o->n_sizes, 1), all = passes * total;
    function_score *scores = env_alloc(v->env, (size_t)all, sizeof *scores, "scores");
    buffers b = {0};
    mnp_status status = scores ? evaluator_make_rows(v, o) : MNP_ENOMEM;
    if (status == MNP_OK) status = make_buffers(v, o, &b);
    if (status == MNP_OK) status = prepare_graphs(v, o, &b);
    if (status == MNP_OK && o->orders && !v->turns)
        status = turns_create(v->env, v->m, v->pool, v->device, v->longest, &v->turns);
    for (int64_t k = 0; k < passes && status == MNP_OK; k++) {
        eval_opts one = eval_opts_of_size(o, k);
        status = score_functions(v, weights, &one, &b, k * total, all, scores + k * total);
    }
    if (status == MNP_OK) {
        summarise(scores, all, o, out);
        out->samples = process_is_exact(&v->m->spec) ? 0 : o->samples;
    }
    free_buffers(v, &b);
    env_free(v->env, scores);
    return status;
}
