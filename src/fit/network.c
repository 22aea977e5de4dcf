/* network.c: see network.h. */
#include "fit/network.h"

#include <stdio.h>

#include "fit/simulate.h"
#include "run/make_model.h"
#include "run/train.h"

/* Small: a few hundred points decide it. */
#define NETWORK                                                                                    \
    "T=3 rff=16 rff_std=0.3 rff_append_x=on d_z=16 d_r=32 enc_width=32 heads=2 n_sab=1 "           \
    "head_hidden=32 head_layers=1 flow_hidden=48 bins=8"

enum { SIMULATED = 3000, PRE_STEPS = 1500, BATCH = 32 };

static mnp_status train(env *e, model *m, const dataset *d, const char *options,
                        const network_opts *o) {
    train_spec spec;
    trainer *t = NULL;
    MNP_TRY(train_read_options(e, m, options, &spec));
    MNP_TRY(trainer_create(e, m, d, NULL, &spec, o->seed, o->pool, (backend_choice){0}, &t));
    mnp_status status = trainer_run(t, spec.steps);
    if (status == MNP_OK) status = trainer_take_best(t);
    trainer_destroy(t);
    return status;
}

static mnp_status pre_train(env *e, model *m, const dataset *curves, const network_opts *o) {
    char options[200];
    dataset *simulated = NULL;
    simulate_opts how = {.curves = SIMULATED, .seed = o->seed, .pool = o->pool};
    double effort = o->effort > 0 ? o->effort : 1;
    MNP_TRY(simulate_curves(e, o->lmm, curves, &how, &simulated));
    snprintf(options, sizeof options, "steps=%.0f batch=%d clip=1", effort * PRE_STEPS + 1, BATCH);
    mnp_status status = train(e, m, simulated, options, o);
    dataset_destroy(simulated);
    return status;
}

mnp_status fit_network(env *e, const dataset *curves, const network_opts *o, model **out) {
    model_wish wish = {.process = "mnp", .preset = "tiny", .options = NETWORK, .seed = o->seed};
    model *m = NULL;
    *out = NULL;
    MNP_TRY(model_for_data(e, &wish, curves, &m));
    mnp_status status = pre_train(e, m, curves, o);
    if (status == MNP_OK)
        *out = m;
    else
        model_destroy(m);
    return status;
}
