/* predictive.c: see predictive.h. Functions go through in groups: their contexts are conditioned
 * together, then each is asked about its targets, which the workers share. */
#include "run/predictive.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "comm/comm.h"
#include "run/predict_internal.h"
#include "run/predictive_internal.h"
#include "run/true_law.h"
#include "util/least.h"

/* One target. */
typedef struct target_score {
    double v[CONTEXT_OFF]; /* the scores before this one */
    double mean, sd;       /* of the draws               */
    int64_t rank;
} target_score;

enum { JOINT_GRADIENTS = 1000 }; /* of a particle of a whole function, at most */
enum { GROUP = 4 }; /* functions at a time on a CPU, where one has work for all threads */

/* Other random numbers than those of the contexts. */
#define OWN_SEED UINT64_C(0x9e3779b97f4a7c15)

typedef struct predictive {
    evaluator *v;
    const eval_opts *o;
    const predictive_opts *how;
    int64_t T, Z, X, S;
    int64_t group;
    predictor *p;
    sampler *sampler;        /* of contexts; NULL: not needed, as the next two    */
    sampler *evidence, *own; /* of the joint score; of functions of the model     */
    double *z;               /* (T, particles, Z)                                 */
    double *x, *y;           /* (longest, X), (longest): one function, raw units  */
    double *draws, *logp;    /* (S, longest)                                      */
    truth_law law;           /* the truth's, of one function's targets            */
    double *columns;         /* (threads, S)                                      */
    double *context;         /* (longest): how far the mean is off                */
    target_score *target;    /* (group, longest)                                  */
    double *told;            /* (5, longest): what evaluator_on_each() hears      */
    sampler_set *sets;       /* (2 R group)                                       */
    double *log_z, *hurried; /* (2 R group)                                       */
    double *own_y, *own_z;   /* (group, longest), (group, T, Z): of the model     */
    double noise;            /* sd, of a family; NaN: not known                   */
} predictive;

/* ---- making ---------------------------------------------------------------------------------- */

static bool conditions(const predictive *w) {
    return w->how->condition != MNP_NETWORK && w->T > 0;
}

static double *numbers(predictive *w, int64_t count) {
    return env_alloc(w->v->env, (size_t)count, sizeof(double), "scores of draws");
}

/* The most points that a context has. */
static int64_t largest_context(const predictive *w) {
    const eval_opts *o = w->o;
    if (o->context != EVAL_UNIFORM) return w->v->longest;
    return most(least(o->n_sizes ? o->sizes[o->n_sizes - 1] : o->hi, w->v->longest), 1);
}

/* A particle's gradients where none are given: tempering ends by itself, and whole functions need
 * more temperatures than contexts. */
static int64_t gradients_of(const predictive *w, sampler_kind kind, int64_t exact) {
    if (w->how->gradients) return w->how->gradients;
    return kind == SAMPLER_REFINE ? REFINE_GRADIENTS : exact;
}

static mnp_status make_samplers(predictive *w) {
    evaluator *v = w->v;
    int64_t particles = most(w->S, w->how->condition == MNP_REFINE ? 2 : EXACT_PARTICLES);
    if (conditions(w)) {
        sampler_shape shape = {
            .points = largest_context(w), .particles = particles, .contexts = w->group};
        MNP_TRY(sampler_create(v->env, v->m, v->pool, v->device, &shape, &w->sampler));
        w->group = sampler_room(w->sampler);
        w->z = numbers(w, w->T * sampler_particles(w->sampler) * w->Z);
        if (!w->z) return MNP_ENOMEM;
    }
    if (w->how->replicates) {
        sampler_shape shape = {.points = v->longest,
                               .particles = w->how->particles,
                               .contexts = 2 * w->how->replicates * w->group};
        MNP_TRY(sampler_create(v->env, v->m, v->pool, v->device, &shape, &w->evidence));
    }
    if (!w->how->sandwich) return MNP_OK;
    sampler_shape shape = {.points = largest_context(w),
                           .particles = most(w->S, EXACT_PARTICLES),
                           .contexts = w->group};
    return sampler_create(v->env, v->m, v->pool, v->device, &shape, &w->own);
}

static mnp_status make(predictive *w) {
    evaluator *v = w->v;
    int64_t longest = v->longest, sets = most(2 * w->how->replicates, 1) * w->group;
    MNP_TRY(make_samplers(w));
    MNP_TRY(predictor_create(v->env, v->m, v->pool, v->device, &w->p));
    w->x = numbers(w, longest * w->X);
    w->y = numbers(w, longest);
    w->draws = numbers(w, w->S * longest);
    w->logp = numbers(w, w->S * longest);
    w->context = numbers(w, longest);
    w->columns = numbers(w, (v->pool ? pool_threads(v->pool) : 1) * w->S);
    w->log_z = numbers(w, sets);
    w->hurried = numbers(w, sets);
    w->own_y = numbers(w, w->group * longest);
    w->own_z = numbers(w, w->group * w->T * w->Z + 1);
    w->sets = env_alloc(v->env, (size_t)sets, sizeof *w->sets, "scores of draws");
    w->target =
        env_alloc(v->env, (size_t)(w->group * longest), sizeof *w->target, "scores of draws");
    w->told = numbers(w, 5 * longest);
    bool all = w->x && w->y && w->draws && w->logp && w->context && w->columns && w->log_z &&
               w->hurried && w->own_y && w->own_z && w->sets && w->target && w->told;
    return all ? MNP_OK : MNP_ENOMEM;
}

static void release(predictive *w) {
    void *arrays[] = {w->z,     w->x,       w->y,     w->draws, w->logp, w->context, w->columns,
                      w->log_z, w->hurried, w->own_y, w->own_z, w->sets, w->target,  w->told};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) env_free(w->v->env, arrays[k]);
    truth_law_free(w->v->env, &w->law);
    predictor_destroy(w->p);
    sampler_destroy(w->sampler);
    sampler_destroy(w->evidence);
    sampler_destroy(w->own);
}

/* ---- the targets of one function ------------------------------------------------------------- */

typedef struct targets_task {
    predictive *w;
    int64_t m, n;
    target_score *to; /* (n - m) */
} targets_task;

/* The truth's scores of target i at y, and how far a normal of the draws' mean and sd is from it.
 */
static void score_truth(const truth_law *law, int64_t i, double y, double mean, double sd,
                        target_score *to) {
    bool known = true_law_known(law);
    to->v[MARGINAL_TRUE] = known ? true_law_log_density(law, i, y) : NAN;
    to->v[CRPS_TRUE] = known ? true_law_crps(law, i, y) : NAN;
    to->v[KL_TRUE] = known ? true_law_kl(law, i, mean, sd) : NAN;
}

static void score_target(void *arg, int64_t i, int worker) {
    const targets_task *t = arg;
    predictive *w = t->w;
    int64_t S = w->S, count = t->n - t->m;
    double y = w->y[t->m + i], *column = w->columns + worker * S;
    target_score *to = &t->to[i];
    for (int64_t s = 0; s < S; s++) column[s] = w->logp[s * count + i];
    to->v[MIXTURE] = score_log_mean_exp(column, S, NULL);
    to->v[MIXTURE_HALF] = score_log_mean_exp(column, S / 2, NULL);
    double mean = 0, squares = 0;
    for (int64_t s = 0; s < S; s++) column[s] = w->draws[s * count + i];
    for (int64_t s = 0; s < S; s++) mean += column[s] / (double)S;
    for (int64_t s = 0; s < S; s++) squares += (column[s] - mean) * (column[s] - mean);
    marginals_sort(column, S);
    to->v[MARGINAL] = marginals_log_density(column, S, y);
    to->v[CRPS] = marginals_crps(column, S, y);
    to->mean = mean, to->sd = sqrt(squares / (double)(S - 1));
    score_truth(&w->law, i, y, mean, to->sd, to);
    to->rank = marginals_rank(column, S, y);
}

static void score_targets(predictive *w, int64_t slot, int64_t m, int64_t n, function_score *f) {
    targets_task t = {w, m, n, w->target + slot * w->v->longest};
    int64_t count = n - m;
    pool_run(w->v->pool, count, score_target, &t);
    for (int64_t i = 0; i < count; i++) {
        for (int k = 0; k < CONTEXT_OFF; k++) f->v[k] += t.to[i].v[k] / (double)count;
        marginals_cover(t.to[i].rank, w->S, f->covered);
        marginals_pit(t.to[i].rank, w->S, f->pit);
    }
}

/* The median over the context points of |mean of the functions - y|, in noise deviations. */
static mnp_status score_context(predictive *w, int64_t m, function_score *f) {
    if (m == 0 || isnan(w->noise)) return MNP_OK;
    MNP_TRY(predictor_predict(w->p, w->x, m, PREDICT_ZERO, w->draws));
    for (int64_t i = 0; i < m; i++) {
        double mean = 0;
        for (int64_t s = 0; s < w->S; s++) mean += w->draws[s * m + i] / (double)w->S;
        w->context[i] = fabs(mean - w->y[i]) / w->noise;
    }
    marginals_sort(w->context, m);
    f->v[CONTEXT_OFF] = (w->context[(m - 1) / 2] + w->context[m / 2]) / 2;
    return MNP_OK;
}

/* The function in place `slot`, in raw units. */
static void unscale(predictive *w, int64_t slot) {
    const evaluator *v = w->v;
    const model_scaling *s = &v->m->scaling;
    const double *x = v->x + slot * v->longest * w->X, *y = v->y + slot * v->longest;
    for (int64_t i = 0; i < v->n[slot] * w->X; i++)
        w->x[i] = x[i] * s->x_scale[i % w->X] + s->x_shift[i % w->X];
    for (int64_t i = 0; i < v->n[slot]; i++) w->y[i] = y[i] * s->y_scale + s->y_shift;
}

/* What the process that made the data says. */
static mnp_status ask_truth(predictive *w, int64_t m, int64_t n, function_score *f) {
    const family *family = &w->v->family;
    double sum, *joint = w->how->replicates ? &sum : NULL;
    truth_law_free(w->v->env, &w->law);
    if (!family->def || w->o->no_truth) return MNP_OK;
    MNP_TRY(truth_ask(w->v->env, family, w->x, w->y, n, m, joint, &w->law));
    if (joint) f->v[JOINT_TRUE] = sum / (double)(n - m);
    return MNP_OK;
}

static void note_report(const predictive *w, const sampler_report *r, function_score *f) {
    mnp_draw_report report =
        predictor_report(w->how->condition, r, f->m, log(w->v->m->scaling.y_scale));
    f->v[GRADIENTS] = (double)report.gradients;
    f->v[ACCEPTANCE] = report.acceptance;
    f->v[ESS] = report.particle_ess;
    f->v[RHAT] = report.rhat;
    f->v[WARNED] = report.warnings != 0;
}

/* Function i, in place `slot`. report NULL: the network draws; otherwise z has the particles. */
static mnp_status score_function(predictive *w, int64_t i, int64_t slot,
                                 const sampler_report *report, function_score *f) {
    int64_t n = w->v->n[slot], m = w->v->m_len[slot];
    uint64_t seed = w->o->seed + (uint64_t)i;
    *f = (function_score){.m = m, .targets = n - m};
    for (int k = CONTEXT_OFF; k < SCORES; k++) f->v[k] = NAN;
    unscale(w, slot);
    MNP_TRY(predictor_condition(w->p, w->x, w->y, m));
    if (report) {
        note_report(w, report, f);
        MNP_TRY(predictor_take_latents(w->p, w->z, report->particles, seed, w->S));
    } else {
        MNP_TRY(predictor_draw_latents(w->p, seed, w->S));
    }
    const double *x = w->x + m * w->X, *y = w->y + m;
    MNP_TRY(predictor_predict(w->p, x, n - m, PREDICT_NORMAL, w->draws));
    MNP_TRY(predictor_logp(w->p, x, y, n - m, w->logp));
    MNP_TRY(ask_truth(w, m, n, f));
    score_targets(w, slot, m, n, f);
    return score_context(w, m, f);
}

/* ---- the joint score --------------------------------------------------------------------------
 */

/* log p(y) of `count` sets in log_z, by particles of their own; and which of these had too few
 * gradients. */
static mnp_status run_evidence(predictive *w, sampler *by, int64_t count, const sampler_opts *o) {
    int64_t room = sampler_room(by);
    for (int64_t at = 0; at < count; at += room) {
        int64_t some = least(room, count - at);
        MNP_TRY(sampler_begin(by, o, w->sets + at, some));
        for (int64_t k = 0; k < some; k++) {
            const sampler_report *r = sampler_look(by, k);
            w->log_z[at + k] = r->log_evidence, w->hurried[at + k] = r->hurried;
        }
    }
    return MNP_OK;
}

static double mean(const double *a, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += a[i];
    return sum / (double)count;
}

/* The log of the mean of R densities; to *variance that of this estimate. */
static double mean_density(const double *log_z, int64_t R, double *variance) {
    double mean = 0, squares = 0;
    for (int64_t r = 0; r < R; r++) mean += log_z[r] / (double)R;
    for (int64_t r = 0; r < R; r++) squares += (log_z[r] - mean) * (log_z[r] - mean);
    *variance = squares / (double)(R - 1) / (double)R;
    return score_log_mean_exp(log_z, R, NULL);
}

/* The sets of a function, which is in place k: R times its context, where it has one, and, unless
 * that is known, R times all of it. What depends on the context has random numbers of its size.
 * Returns how many. */
static int64_t put_sets(predictive *w, int64_t function, int64_t k, bool known, sampler_set *to) {
    const int64_t apart = 0x9e3779b9; /* numbers of two sizes, modulo 2^32, are far from another */
    const evaluator *v = w->v;
    bool all_points = predictive_all_points(v, w->o);
    int64_t R = w->how->replicates, count = 0;
    for (int64_t r = 0; r < (known ? R : 2 * R); r++) {
        int64_t n = r < R ? v->m_len[k] : v->n[k];
        int64_t size = r < R || !all_points ? v->m_len[k] : 0;
        if (n == 0) continue;
        to[count++] = (sampler_set){.x = v->x + k * v->longest * w->X,
                                    .y = v->y + k * v->longest,
                                    .n = n,
                                    .id = (function + 1) * 2 * R + r + size * apart};
    }
    return count;
}

/* `same` (count), or NULL: these functions with another context, whose points are the same in all.
 */
static mnp_status score_joint(predictive *w, int64_t first, int64_t count,
                              const function_score *same, function_score *f) {
    int64_t R = w->how->replicates, sets = 0;
    double log_scale = log(w->v->m->scaling.y_scale);
    if (R == 0) return MNP_OK;
    for (int64_t k = 0; k < count; k++) sets += put_sets(w, first + k, k, same, w->sets + sets);
    sampler_opts o = {SAMPLER_EXACT, gradients_of(w, SAMPLER_EXACT, JOINT_GRADIENTS), w->o->seed};
    MNP_TRY(run_evidence(w, w->evidence, sets, &o));
    const double *log_z = w->log_z;
    for (int64_t k = 0; k < count; k++) {
        const double *begin = log_z;
        double *v = f[k].v, targets = (double)f[k].targets, part = 0, variance = 0;
        if (f[k].m > 0) part = mean_density(log_z, R, &variance), log_z += R;
        if (same)
            v[WHOLE] = same[k].v[WHOLE], v[WHOLE_VARIANCE] = same[k].v[WHOLE_VARIANCE];
        else
            v[WHOLE] = mean_density(log_z, R, &v[WHOLE_VARIANCE]), log_z += R;
        v[JOINT] = (v[WHOLE] - part) / targets - log_scale;
        v[JOINT_VARIANCE] = (v[WHOLE_VARIANCE] + variance) / (targets * targets);
        v[JOINT_BIAS] = (variance - v[WHOLE_VARIANCE]) / 2 / targets;
        if (log_z > begin) v[JOINT_HURRIED] = mean(w->hurried + (begin - w->log_z), log_z - begin);
    }
    return MNP_OK;
}

/* ---- bounds of the evidence -------------------------------------------------------------------
 */

/* Values of a function of the model at the inputs of the one in place `slot`, scaled, and its
 * latents: into place j. */
static mnp_status draw_own(predictive *w, int64_t id, int64_t slot, int64_t j) {
    const evaluator *v = w->v;
    int64_t m = v->m_len[slot];
    double *y = w->own_y + j * v->longest;
    unscale(w, slot);
    predictor_reset(w->p);
    MNP_TRY(predictor_draw_latents(w->p, w->o->seed + (uint64_t)id, 1));
    MNP_TRY(predictor_predict(w->p, w->x, m, PREDICT_NORMAL, y));
    runner_scale_y(v->m, y, m, y);
    memcpy(w->own_z + j * w->T * w->Z, w->p->z, (size_t)(w->T * w->Z) * sizeof *w->own_z);
    w->sets[j] = (sampler_set){.x = v->x + slot * v->longest * w->X, .y = y, .n = m, .id = id};
    return MNP_OK;
}

static mnp_status score_sandwich(predictive *w, int64_t first, int64_t count, function_score *f) {
    if (!w->how->sandwich) return MNP_OK;
    int64_t sets = 0, room = sampler_room(w->own);
    double scale = log(w->v->m->scaling.y_scale);
    sampler_opts o = {SAMPLER_EXACT, gradients_of(w, SAMPLER_EXACT, EXACT_GRADIENTS),
                      w->o->seed ^ OWN_SEED};
    for (int64_t k = 0; k < count; k++)
        if (f[k].m > 0) MNP_TRY(draw_own(w, first + k, k, sets++));
    MNP_TRY(run_evidence(w, w->own, sets, &o));
    for (int64_t k = 0, j = 0; k < count; k++)
        if (f[k].m > 0) f[k].v[LOWER] = w->log_z[j++] - (double)f[k].m * scale;
    for (int64_t at = 0; at < sets; at += room)
        MNP_TRY(sampler_bound(w->own, &o, w->sets + at, w->own_z + at * w->T * w->Z,
                              least(room, sets - at), w->log_z + at));
    for (int64_t k = 0, j = 0; k < count; k++)
        if (f[k].m > 0) f[k].v[UPPER] = w->log_z[j++] - (double)f[k].m * scale;
    return MNP_OK;
}

/* ---- all functions --------------------------------------------------------------------------- */

/* Of the function in place `slot`. */
static void tell(predictive *w, int64_t function, int64_t slot, const function_score *f) {
    const evaluator *v = w->v;
    const target_score *t = w->target + slot * v->longest;
    double count = (double)f->targets, *at[5];
    if (!v->each) return;
    for (int k = 0; k < 5; k++) at[k] = w->told + k * v->longest;
    for (int64_t i = 0; i < f->targets; i++) {
        at[0][i] = t[i].v[MARGINAL], at[1][i] = t[i].v[MIXTURE], at[2][i] = t[i].v[CRPS];
        at[3][i] = t[i].mean, at[4][i] = t[i].sd;
    }
    mnp_function_scores s = {.size = sizeof s,
                             .function = function,
                             .context = f->m,
                             .targets = f->targets,
                             .joint = f->v[JOINT],
                             .in_turn = NAN,
                             .order_sd = NAN,
                             .covered50 = f->covered[0] / count,
                             .covered80 = f->covered[1] / count,
                             .covered95 = f->covered[2] / count,
                             .marginal = at[0],
                             .mixture = at[1],
                             .crps = at[2],
                             .mean = at[3],
                             .sd = at[4],
                             .joint_error = sqrt(f->v[JOINT_VARIANCE]),
                             .joint_bias = f->v[JOINT_BIAS],
                             .joint_hurried = f->v[JOINT_HURRIED]};
    v->each(v->each_user, &s);
}

/* Functions first .. first + count - 1 into f; `id` numbers the first and its context size; `same`:
 * see score_joint(). */
static mnp_status score_group(predictive *w, const eval_opts *o, int64_t first, int64_t count,
                              int64_t id, const function_score *same, function_score *f) {
    evaluator *v = w->v;
    int64_t sets = 0;
    for (int64_t k = 0; k < count; k++) {
        v->scheme->split(v, o, first + k, k);
        MNP_TRY(evaluator_check_reach(v, first + k, k));
        if (v->m_len[k] == 0 || !conditions(w)) continue;
        w->sets[sets++] = (sampler_set){.x = v->x + k * v->longest * w->X,
                                        .y = v->y + k * v->longest,
                                        .n = v->m_len[k],
                                        .id = id + k};
    }
    sampler_kind kind = w->how->condition == MNP_EXACT ? SAMPLER_EXACT : SAMPLER_REFINE;
    sampler_opts how = {kind, gradients_of(w, kind, EXACT_GRADIENTS), o->seed};
    if (sets) MNP_TRY(sampler_begin(w->sampler, &how, w->sets, sets));
    for (int64_t k = 0, set = 0; k < count; k++) {
        const sampler_report *report = NULL;
        if (v->m_len[k] > 0 && conditions(w)) {
            MNP_TRY(sampler_latents(w->sampler, set, w->z));
            report = sampler_look(w->sampler, set++);
        }
        MNP_TRY(score_function(w, first + k, k, report, &f[k]));
    }
    MNP_TRY(score_joint(w, first, count, same, f));
    MNP_TRY(score_sandwich(w, id, count, f));
    for (int64_t k = 0; k < count; k++) tell(w, first + k, k, &f[k]);
    return MNP_OK;
}

/* All functions with one size, or range of sizes, of the context: their part of scores (sizes,
 * functions). */
static mnp_status score_size(predictive *w, int64_t size, int64_t all, function_score *scores) {
    evaluator *v = w->v;
    bool again = size > 0 && predictive_all_points(v, w->o);
    eval_opts o = eval_opts_of_size(w->o, size);
    int64_t total = evaluator_functions(v, &o), id = size * total;
    function_score *f = scores + id;
    comm_span own = comm_split(v->env, total, 1); /* each rank scores its part */
    for (int64_t at = own.lo; at < own.hi; at += w->group) {
        int64_t count = least(w->group, own.hi - at);
        MNP_TRY(score_group(w, &o, at, count, id + at, again ? scores + at : NULL, f + at));
        if (v->progress)
            v->progress(v->progress_user, id + (at + count - own.lo) * total / (own.hi - own.lo),
                        all);
        comm_heartbeat(v->env);
        if (env_cancelled(v->env))
            return env_fail(v->env, MNP_ECANCELLED, "evaluation was cancelled");
    }
    return comm_gather_parts(v->env, f, total, 1, sizeof *f, "the scores");
}

/* ---- the run ----------------------------------------------------------------------------------
 */

static mnp_status check(evaluator *v, const predictive_opts *how) {
    MNP_TRY(score_check_samples(v->env, how->draws));
    if (how->draws < 2) return env_fail(v->env, MNP_EINVAL, "scores of draws need 2 or more");
    if (how->replicates && how->particles < 2)
        return env_fail(v->env, MNP_EINVAL, "a joint score needs 2 particles or more");
    if (how->replicates == 0 && !how->sandwich) return MNP_OK;
    if (how->replicates == 1)
        return env_fail(v->env, MNP_EINVAL, "the error of a joint score needs 2 or more runs");
    if (process_factorises(&v->m->spec))
        return env_fail(
            v->env, MNP_EUNSUPPORTED,
            "the model predicts each point by itself; orders scores its points in turn");
    if (process_is_exact(&v->m->spec))
        return env_fail(v->env, MNP_EUNSUPPORTED,
                        "the model has no latents: its log-likelihood is its joint score, exactly");
    if (v->m->spec.attend)
        return env_fail(v->env, MNP_EUNSUPPORTED,
                        "with attend=on sets have no evidence of one process: the log-likelihood "
                        "is a bound of the joint score");
    return MNP_OK;
}

mnp_status predictive_run(evaluator *v, const eval_opts *o, const predictive_opts *how,
                          mnp_predictive rows[PREDICTIVE_ROWS]) {
    MNP_TRY(evaluator_check(v, o));
    MNP_TRY(check(v, how));
    MNP_TRY(evaluator_make_rows(v, o));
    if (v->scheme->prepare) MNP_TRY(v->scheme->prepare(v, 1));
    const model_spec *spec = &v->m->spec;
    predictive w = {.v = v,
                    .o = o,
                    .how = how,
                    .T = process_at(spec->kind)->latents(spec),
                    .Z = spec->d_z,
                    .X = spec->x_dim,
                    .S = how->draws,
                    .noise = v->family.def ? truth_noise(&v->family) : NAN};
    bool cpu = !v->device.b || v->device.b == backend_find("cpu");
    w.group = !cpu ? EVAL_CHUNK : how->replicates ? 1 : GROUP;
    int64_t total = evaluator_functions(v, o), sizes = most(o->n_sizes, 1), all = sizes * total;
    function_score *f = env_alloc(v->env, (size_t)all, sizeof *f, "scores");
    mnp_status status = f ? make(&w) : MNP_ENOMEM;
    for (int64_t k = 0; k < sizes && status == MNP_OK; k++) status = score_size(&w, k, all, f);
    if (status == MNP_OK) status = predictive_rows(v, o, f, all, rows);
    env_free(v->env, f);
    release(&w);
    return status;
}
