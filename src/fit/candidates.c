/* candidates.c: see candidates.h. The classical ones are processes of their own, with options that
 * suit a person's curves; the network is that of network.h. */
#include "fit/candidates.h"

#include "data/frequency.h"
#include "fit/network.h"
#include "run/make_model.h"
#include "run/train.h"

/* A model whose training is what its process says: none for the mixed model, some hundred quick
 * steps for a Gaussian process. */
static mnp_status fit_process(env *e, const candidate_input *in, const char *process,
                              const char *options, const char *training, model **out) {
    model_wish wish = {.process = process, .preset = "paper", .options = options, .seed = in->seed};
    train_spec spec;
    trainer *t = NULL;
    model *m = NULL;
    *out = NULL;
    MNP_TRY(model_for_data(e, &wish, in->curves, &m));
    mnp_status status = train_read_options(e, m, training, &spec);
    if (status == MNP_OK)
        status = trainer_create(e, m, in->curves, NULL, &spec, in->seed, in->pool,
                                (backend_choice){0}, &t);
    if (status == MNP_OK) status = trainer_run(t, spec.steps);
    if (status == MNP_OK) status = trainer_take_best(t);
    trainer_destroy(t);
    if (status == MNP_OK)
        *out = m;
    else
        model_destroy(m);
    return status;
}

static mnp_status candidate_offset(env *e, const candidate_input *in, model **out) {
    return fit_process(e, in, "lmm", "lmm_random=1", NULL, out);
}

static mnp_status candidate_lmm(env *e, const candidate_input *in, model **out) {
    return fit_process(e, in, "lmm", NULL, NULL, out);
}

/* Few parameters say how curves differ: for few curves. */
static mnp_status candidate_smooth(env *e, const candidate_input *in, model **out) {
    return fit_process(e, in, "lmm", "lmm_smooth=on", NULL, out);
}

/* Twice the usual draws: they are shared by several models. */
static mnp_status candidate_average(env *e, const candidate_input *in, model **out) {
    return fit_process(e, in, "lmm", "lmm_average=on lmm_draws=128", NULL, out);
}

/* A period would be found in any wiggle of a dozen curves. The cost of a step grows with the cube
 * of the points: of long curves each step takes others. */
static mnp_status candidate_gp(env *e, const candidate_input *in, model **out) {
    return fit_process(e, in, "gp", "gp_mean=spline gp_periodic=off", "max_points=48", out);
}

/* For curves that go up and down again and again, with a period that the data show: some together,
 * as seasons do, some each with a phase of its own. How long they keep it is learned. */
enum { HARMONICS = 3 };
static mnp_status candidate_periodic(env *e, const candidate_input *in, model **out) {
    curve_frequency f;
    *out = NULL;
    MNP_TRY(frequency_find(e, in->curves, &f));
    if (f.peak <= 0 && !in->part) return MNP_OK;
    char options[128];
    snprintf(options, sizeof options,
             "gp_mean=spline gp_rbf=off gp_fading=on gp_length=2 gp_restarts=off gp_season=%d",
             in->curves->x_dim == 1 ? HARMONICS : 0);
    return fit_process(e, in, "gp", options, "max_points=48", out);
}

static mnp_status candidate_network(env *e, const candidate_input *in, model **out) {
    const model *periodic = in->before[CANDIDATE_periodic];
    network_opts o = {.teacher = periodic ? periodic : in->before[CANDIDATE_lmm],
                      .effort = in->effort,
                      .seed = in->seed,
                      .pool = in->pool,
                      .warnings = in->warnings,
                      .progress = in->progress,
                      .progress_user = in->progress_user};
    if (!o.teacher)
        return env_fail(e, MNP_EINVAL, "it begins with the mixed model, which is not there");
    return fit_network(e, in->curves, &o, out);
}

#define CANDIDATE(name, title, condition) {#name, title, condition, candidate_##name},
static const candidate_def candidates[] = {
#include "fit/candidates.def"
};
#undef CANDIDATE

const candidate_def *candidate_at(int k) {
    return k >= 0 && k < CANDIDATES ? &candidates[k] : NULL;
}
