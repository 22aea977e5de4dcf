/* many.h: one model conditioned on many contexts, each by itself. Context k is what a predictor
 * answers that is conditioned on it and draws with the seed `seed` + k: the same bits. */
#ifndef MNP_RUN_MANY_H
#define MNP_RUN_MANY_H

#include "run/predict.h"

typedef struct many {
    const model *m;
    pool *pool;
    backend_choice device;
    const mnp_set *contexts; /* (count); n = 0: the prior */
    int64_t count;
    const mnp_set *targets; /* (target_sets) */
    int64_t target_sets;    /* 1: the same for all; or count */
    int64_t samples;
    uint64_t seed;
    const uint64_t *seeds; /* (count) instead of seed + k; or NULL */
    mnp_condition condition;
    int64_t gradients;
    int64_t work_max; /* contexts of more points times samples are left to the network; 0: none */
    void (*progress)(void *user, int64_t done, int64_t total); /* gradients of a single context */
    void *progress_user;
    mnp_draw_report *reports; /* (count) or NULL */
    predict_base base;
} many;

/* The numbers of context k follow those of context k - 1 in every array of `out`. On the CPU the
 * pool's workers take contexts, elsewhere they come one after the other. */
mnp_status many_predict(env *e, const many *q, const mnp_summary *out);

#endif
