/* api_internal.h: what the public handles are, and who keeps whom alive.
 *
 * Contexts, models and data count those who need them: their user, and the handles made from them.
 * Each of these lets go in its _destroy, in any order, and the last one frees. Models and data may
 * be shared by threads, so the counts are atomic. */
#ifndef MNP_API_API_INTERNAL_H
#define MNP_API_API_INTERNAL_H

#include <stdatomic.h>

#include "api/check.h"
#include "bandit/trial.h"
#include "data/dataset.h"
#include "run/predict.h"
#include "run/train.h"

struct mnp_ctx {
    env env;
    pool *pool; /* made when first needed */
    int threads;
    atomic_long users;
};

struct mnp_data { /* a data set has an env of its own, and needs no context */
    dataset *d;
    atomic_long users;
};

struct mnp_model { /* a model likewise */
    model *m;
    buf options; /* the text of mnp_model_options() */
    atomic_long users;
};

struct mnp_trainer {
    mnp_ctx *ctx; /* kept, as are all handles below */
    mnp_model *model;
    mnp_data *train, *valid; /* valid may be NULL */
    trainer *t;
};

struct mnp_predictor {
    mnp_ctx *ctx;
    mnp_model *model;
    predictor *p;
};

struct mnp_player {
    mnp_ctx *ctx;
    mnp_model *model; /* NULL for an agent without one */
    agent *agent;
    player *player;
    int64_t actions;
};

/* One more user, who gets the handle back; and one less. All accept NULL. A handle that its user
 * only reads is const there, its count is not. */
mnp_ctx *ctx_keep(mnp_ctx *ctx);
mnp_data *data_keep(const mnp_data *data);
mnp_model *model_keep(const mnp_model *model);
void ctx_drop(mnp_ctx *ctx);
void data_drop(mnp_data *data);
void model_drop(mnp_model *model);

static inline void users_more(atomic_long *users) {
    atomic_fetch_add_explicit(users, 1, memory_order_relaxed);
}

/* True for the last one: what all others did to the object has then been seen. */
static inline bool users_less(atomic_long *users) {
    return atomic_fetch_sub_explicit(users, 1, memory_order_acq_rel) == 1;
}

/* A model handle around m, which it owns from then on, whatever happens. */
mnp_status model_wrap(mnp_ctx *ctx, model *m, mnp_model **out);

/* The context's workers. */
mnp_status ctx_pool(mnp_ctx *ctx, pool **out);
/* How to play, checked; dims and actions are left to the caller. */
mnp_status bandit_play_of(env *e, const mnp_model *model, const mnp_bandit_opts *o,
                          agent_opts *out);

/* predictor.c: `out` into `to`, of `samples` draws at n targets. */
mnp_status check_summary(env *e, const mnp_summary *out, int64_t samples, int64_t n,
                         mnp_summary *to);

#endif
