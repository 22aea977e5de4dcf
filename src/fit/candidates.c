/* candidates.c: see candidates.h. Here are the classical ones; each is a process of its own with
 * options that suit a person's curves. */
#include "fit/candidates.h"

#include "run/make_model.h"
#include "run/train.h"

/* A model whose training is what its process says: none for the mixed model, some hundred quick
 * steps for a Gaussian process. */
static mnp_status fit_process(env *e, const candidate_input *in, const char *process,
                              const char *options, model **out) {
    model_wish wish = {.process = process, .preset = "paper", .options = options, .seed = in->seed};
    train_spec spec;
    trainer *t = NULL;
    model *m = NULL;
    *out = NULL;
    MNP_TRY(model_for_data(e, &wish, in->curves, &m));
    mnp_status status = train_read_options(e, m, NULL, &spec);
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
    return fit_process(e, in, "lmm", "lmm_random=1", out);
}

static mnp_status candidate_lmm(env *e, const candidate_input *in, model **out) {
    return fit_process(e, in, "lmm", NULL, out);
}

/* A period would be found in any wiggle of a dozen curves. */
static mnp_status candidate_gp(env *e, const candidate_input *in, model **out) {
    return fit_process(e, in, "gp", "gp_mean=spline gp_periodic=off", out);
}

#define CANDIDATE(name, title, condition) {#name, title, condition, candidate_##name},
static const candidate_def candidates[] = {
#include "fit/candidates.def"
};
#undef CANDIDATE

const candidate_def *candidate_at(int k) {
    return k >= 0 && k < CANDIDATES ? &candidates[k] : NULL;
}
