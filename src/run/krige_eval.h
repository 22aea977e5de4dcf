/* krige_eval.h: scoring kriging on images as eval.h scores a model: the same contexts, the same
 * noise on the targets (of the same seed), all pixels scored, those of the context too. */
#ifndef MNP_RUN_KRIGE_EVAL_H
#define MNP_RUN_KRIGE_EVAL_H

#include "run/eval.h"
#include "run/krige.h"

typedef struct krige_eval_opts {
    eval_context context;
    int64_t wells; /* EVAL_UNIFORM: how many */
    uint64_t seed;
    double noise; /* of the noisy targets */
    void (*progress)(void *user, int64_t done, int64_t total);
    void *user;
} krige_eval_opts;

enum { KRIGE_NOISY, KRIGE_CLEAN, KRIGE_TARGETS }; /* targets with noise, and without */
enum { KRIGE_LAWS = 2 };

/* Nats per pixel: mean and standard error over images. */
typedef struct krige_score {
    double loglik[KRIGE_TARGETS][KRIGE_LAWS], se[KRIGE_TARGETS][KRIGE_LAWS];
} krige_score;

/* image (count): each (rows, cols) of the fit. */
mnp_status krige_evaluate(env *e, pool *pool, const krige *k, const float *const *image,
                          int64_t count, const krige_eval_opts *o, krige_score *out);
/* The measured pixels of image i: well (rows cols) becomes 0 or 1. memory: permute_words(n). */
void krige_wells(const krige *k, const krige_eval_opts *o, int64_t i, int32_t *memory,
                 uint8_t *well);

#endif
