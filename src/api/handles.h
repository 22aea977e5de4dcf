/* handles.h: what stands behind the public handles. */
#ifndef MNP_API_HANDLES_H
#define MNP_API_HANDLES_H

#include "api/check.h"
#include "bandit/trial.h"
#include "data/dataset.h"
#include "run/predict.h"
#include "run/train.h"

struct mnp_ctx {
    env env;
    pool *pool; /* made when first needed */
    int threads;
};

struct mnp_data {
    dataset *d;
    mnp_ctx *ctx;
};

struct mnp_model {
    model *m;
    buf options; /* the text behind mnp_model_options() */
};

struct mnp_trainer {
    mnp_ctx *ctx;
    trainer *t;
    mnp_model *model;
    const mnp_data *train;
    train_spec spec;
    uint64_t seed;
};

struct mnp_predictor {
    mnp_ctx *ctx;
    predictor *p;
};

struct mnp_player {
    mnp_ctx *ctx;
    agent *agent;
    player *player;
    int64_t actions;
};

/* The context's workers. */
mnp_status ctx_pool(mnp_ctx *ctx, pool **out);
/* How to play, checked; dims and actions are left to the caller. */
mnp_status bandit_play_of(env *e, const mnp_model *model, const mnp_bandit_opts *o,
                          agent_opts *out);

#endif
