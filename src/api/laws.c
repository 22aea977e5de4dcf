/* laws.c: the laws of a stochastic process, and calibration. */
#include <math.h>

#include "api/api_internal.h"
#include "run/calibrate.h"
#include "run/laws.h"
#include "run/ranks.h"

static int64_t or_else(int64_t v, int64_t fallback) {
    return v ? v : fallback;
}

/* ---- laws ------------------------------------------------------------------------------------ */

mnp_status mnp_check(mnp_ctx *ctx, const mnp_model *model, const mnp_data *data, int64_t functions,
                     int64_t samples, uint64_t seed, mnp_laws *out) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_given(e, data, "data"));
    MNP_TRY(check_range(e, functions, 1, INT64_MAX, "functions"));
    MNP_TRY(check_range(e, samples, 1, SAMPLES_MAX, "samples"));
    MNP_TRY(CHECK_RESULT(e, mnp_laws, out));
    pool *workers = NULL;
    laws l;
    laws_opts o = {.functions = functions,
                   .samples = samples,
                   .replicates = 2,
                   .gap_only_once = true,
                   .seed = seed};
    MNP_TRY(ctx_pool(ctx, &workers));
    MNP_TRY(laws_measure(e, model->m, data->d, workers, &o, &l));
    GIVE_RESULT(mnp_laws, out, .permutation = l.permutation, .marginal = l.marginal,
                .conditional = l.all.order, .conditional_se = l.all.order_se,
                .functions = l.functions, .samples = l.all.samples,
                .conditional_noise = l.all.noise);
    return MNP_OK;
}

static mnp_status check_laws_opts(env *e, const mnp_laws_opts *o) {
    MNP_TRY(check_enum(e, o->condition, MNP_EXACT + 1, "mnp_laws_opts.condition"));
    if (o->condition == MNP_REFINE)
        return env_fail(e, MNP_EINVAL,
                        "refine draws functions but has no scores of sets, so it has no gap to "
                        "measure: check network or exact");
    MNP_TRY(check_range(e, o->functions, 0, INT64_MAX, "mnp_laws_opts.functions"));
    MNP_TRY(check_range(e, o->samples, 0, SAMPLES_MAX, "mnp_laws_opts.samples"));
    MNP_TRY(check_range(e, o->gradients, 0, GRADIENTS_MAX, "mnp_laws_opts.gradients"));
    if (o->replicates)
        MNP_TRY(check_range(e, o->replicates, 2, REPLICATES_MAX, "mnp_laws_opts.replicates"));
    MNP_TRY(check_range(e, o->context, 0, LAWS_POINTS_MAX - 2, "mnp_laws_opts.context"));
    if (o->targets) return check_range(e, o->targets, 2, INT32_MAX, "mnp_laws_opts.targets");
    return MNP_OK;
}

mnp_status mnp_check_laws(mnp_ctx *ctx, const mnp_model *model, const mnp_data *data,
                          const mnp_laws_opts *opts, mnp_laws *out) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_laws_opts o;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_given(e, data, "data"));
    MNP_TRY(TAKE_OPTS(e, mnp_laws_opts, opts, &o));
    MNP_TRY(check_laws_opts(e, &o));
    MNP_TRY(CHECK_RESULT(e, mnp_laws, out));
    bool exact = o.condition == MNP_EXACT;
    sampler_opts how = {.kind = SAMPLER_EXACT, .gradients = or_else(o.gradients, EXACT_GRADIENTS)};
    laws_opts run = {.functions = or_else(o.functions, 20),
                     .samples = or_else(o.samples, exact ? EXACT_PARTICLES : 20),
                     .replicates = or_else(o.replicates, 2),
                     .context = o.context,
                     .targets = or_else(o.targets, exact ? 8 : 0),
                     .exact = exact ? &how : NULL,
                     .seed = o.seed,
                     .progress = o.progress,
                     .progress_user = o.progress_user};
    pool *workers = NULL;
    laws l;
    MNP_TRY(backend_choose(e, o.device, &run.device));
    MNP_TRY(ctx_pool(ctx, &workers));
    MNP_TRY(laws_measure(e, model->m, data->d, workers, &run, &l));
    GIVE_RESULT(mnp_laws, out, .permutation = l.permutation, .marginal = l.marginal,
                .conditional = l.all.order, .conditional_se = l.all.order_se,
                .functions = l.functions, .samples = l.all.samples,
                .conditional_noise = l.all.noise, .conditional_errors = l.all.errors,
                .joint = l.all.joint, .joint_se = l.all.joint_se, .half_samples = l.half.samples,
                .half_conditional = l.half.order, .half_conditional_se = l.half.order_se,
                .half_conditional_noise = l.half.noise, .half_joint = l.half.joint,
                .half_joint_se = l.half.joint_se, .hurried = l.hurried);
    return MNP_OK;
}

/* ---- calibration ----------------------------------------------------------------------------- */

static mnp_status check_calibration_opts(env *e, const mnp_calibration_opts *o) {
    MNP_TRY(check_enum(e, o->condition, MNP_EXACT + 1, "mnp_calibration_opts.condition"));
    MNP_TRY(check_range(e, o->functions, 0, CALIBRATION_MAX, "mnp_calibration_opts.functions"));
    MNP_TRY(check_range(e, o->draws, 0, CALIBRATION_DRAWS_MAX, "mnp_calibration_opts.draws"));
    MNP_TRY(check_range(e, o->context, 0, INT32_MAX, "mnp_calibration_opts.context"));
    return check_range(e, o->gradients, 0, GRADIENTS_MAX, "mnp_calibration_opts.gradients");
}

/* Mean and sd of ranks among S draws, as parts of S and of the sd of uniform ones. */
static void moments(const int64_t *ranks, int64_t N, int64_t S, mnp_calibration *out) {
    double sum = 0, squares = 0, n = (double)N, s = (double)S;
    for (int64_t i = 0; i < N; i++) sum += (double)ranks[i];
    for (int64_t i = 0; i < N; i++) squares += pow((double)ranks[i] - s / 2, 2);
    out->mean = sum / n / s;
    out->spread = sqrt(squares / n / (((s + 1) * (s + 1) - 1) / 12));
}

static mnp_status judge(env *e, const int64_t *ranks, mnp_calibration *out) {
    static const double levels[] = {0.95, 0.99};
    bool *inside[] = {&out->inside95, &out->inside99};
    int64_t N = out->functions, S = out->draws;
    int64_t *below = env_alloc(e, (size_t)S + 2, sizeof *below, "the ranks");
    if (!below) return MNP_ENOMEM;
    ranks_count(ranks, N, S, below);
    mnp_status status = ranks_chance(e, N, S, below, &out->chance);
    for (int k = 0; k < 2 && status == MNP_OK; k++) {
        ranks_band b;
        status = ranks_band_make(e, N, S, levels[k], &b);
        if (status != MNP_OK) break;
        *inside[k] = ranks_inside(&b, below);
        ranks_band_free(e, &b);
    }
    env_free(e, below);
    return status;
}

mnp_status mnp_calibrate(mnp_ctx *ctx, const mnp_model *model, const mnp_data *data,
                         const mnp_calibration_opts *opts, int64_t *ranks, mnp_calibration *out) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_calibration_opts o;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_given(e, data, "data"));
    MNP_TRY(TAKE_OPTS(e, mnp_calibration_opts, opts, &o));
    MNP_TRY(check_calibration_opts(e, &o));
    MNP_TRY(check_given(e, ranks, "ranks"));
    MNP_TRY(CHECK_RESULT(e, mnp_calibration, out));
    bool exact = o.condition == MNP_EXACT;
    sampler_opts how = {.kind = exact ? SAMPLER_EXACT : SAMPLER_REFINE,
                        .gradients =
                            or_else(o.gradients, exact ? EXACT_GRADIENTS : REFINE_GRADIENTS)};
    calibrate_opts run = {.functions = or_else(o.functions, 500),
                          .draws = or_else(o.draws, 100),
                          .context = or_else(o.context, 10),
                          .how = o.condition == MNP_NETWORK ? NULL : &how,
                          .seed = o.seed,
                          .progress = o.progress,
                          .progress_user = o.progress_user};
    pool *workers = NULL;
    calibrate_report r;
    MNP_TRY(backend_choose(e, o.device, &run.device));
    MNP_TRY(ctx_pool(ctx, &workers));
    MNP_TRY(calibrate_ranks(e, model->m, data->d, workers, &run, ranks, &r));
    mnp_calibration all = {.functions = run.functions,
                           .draws = run.draws,
                           .context = run.context,
                           .acceptance = r.acceptance,
                           .hurried = r.hurried};
    moments(ranks, run.functions, run.draws, &all);
    MNP_TRY(judge(e, ranks, &all));
    give_result(out, &all, sizeof all);
    return MNP_OK;
}

/* Counts as shares of the functions, less what is expected. */
static void differences(const int64_t *counts, int64_t N, int64_t S, double *out) {
    for (int64_t j = 0; j <= S + 1; j++)
        out[j] = (double)counts[j] / (double)N - (double)j / ((double)S + 1);
}

mnp_status mnp_rank_band(mnp_ctx *ctx, int64_t functions, int64_t draws, double level,
                         const int64_t *ranks, double *difference, double *lo, double *hi) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_range(e, functions, 1, CALIBRATION_MAX, "functions"));
    MNP_TRY(check_range(e, draws, 1, CALIBRATION_DRAWS_MAX, "draws"));
    if (!(level > 0 && level < 1))
        return env_fail(e, MNP_EINVAL, "level is %g, but lies between 0 and 1", level);
    if (ranks || difference) {
        MNP_TRY(check_given(e, ranks, "ranks"));
        MNP_TRY(check_given(e, difference, "difference"));
    }
    for (int64_t i = 0; ranks && i < functions; i++)
        MNP_TRY(check_range(e, ranks[i], 0, draws, "a rank"));
    MNP_TRY(check_given(e, lo, "lo"));
    MNP_TRY(check_given(e, hi, "hi"));
    ranks_band b;
    MNP_TRY(ranks_band_make(e, functions, draws, level, &b));
    differences(b.lo, functions, draws, lo);
    differences(b.hi, functions, draws, hi);
    if (ranks) {
        ranks_count(ranks, functions, draws, b.lo);
        differences(b.lo, functions, draws, difference);
    }
    ranks_band_free(e, &b);
    return MNP_OK;
}
