/* eval_internal.h: the inside of an evaluator, for eval.c, eval_images.c and predictive.c. */
#ifndef MNP_RUN_EVAL_INTERNAL_H
#define MNP_RUN_EVAL_INTERNAL_H

#include "run/score.h"
#include "run/turns.h"

enum { EVAL_CHUNK = 128 }; /* functions at a time: a GPU has as many multiprocessors */

/* One chunk of images: their targets, of which the first `near` stand in the rows of the evaluator
 * and the rest is scored block by block. */
typedef struct image_chunk {
    int32_t *targets; /* (CHUNK, pixels) pixels in random order        */
    int64_t *count;   /* (CHUNK) targets                               */
    int64_t *near;    /* (CHUNK)                                       */
    int32_t *order;   /* (permute_words(pixels)) of the context's draw */
    /* rows of the context that stand before a block's, where a query reads them */
    int64_t lead_room, lead_asked; /* there is room for; these options want, at most */
    double *x, *y;                 /* (CHUNK, lead_room + block, 2), (CHUNK, lead_room + block) */
    double *logp;                  /* (CHUNK, samples, lead_room + block)                */
    int64_t *lengths;              /* (2, CHUNK) n and m of a block                 */
    double *z;                     /* (T, CHUNK, samples, Z) of the bound or the predictive */
    int64_t samples;               /* what logp and z have room for                 */
    int64_t stride;                /* between the latents of two functions          */
    runner *query;                 /* log-densities given latents                   */
} image_chunk;

typedef struct eval_scheme eval_scheme;

struct evaluator {
    const eval_scheme *scheme; /* of the data */
    env *env;
    const model *m;
    const dataset *d;
    pool *pool;
    backend_choice device;
    runner *bound, *predictive;
    score_key bound_key, predictive_key;
    eval_progress progress;
    void *progress_user;
    eval_each each;
    void *each_user;
    family family; /* of a built-in data set: the truth is known there */
    /* one chunk of functions, split and scaled: rows of context, then targets */
    int64_t longest;    /* rows that there is room for               */
    double *x, *y;      /* (CHUNK, longest, X), (CHUNK, longest)     */
    int64_t *n, *m_len; /* (CHUNK)                                   */
    int32_t *memory;    /* of permute_prefix                         */
    image_chunk images;
    turns *turns; /* where targets are scored in turn */
};

/* Are the options good? */
mnp_status evaluator_check(evaluator *v, const eval_opts *o);
/* How many functions they speak of, and the options with the k-th of their context sizes alone. */
int64_t evaluator_functions(const evaluator *v, const eval_opts *o);
eval_opts eval_opts_of_size(const eval_opts *o, int64_t k);
/* Groups of context sizes that scores are told apart by: how many, and their bounds. */
int eval_bins(const eval_opts *o, int64_t lo[EVAL_BINS], int64_t hi[EVAL_BINS]);
/* Room for the rows of a chunk of functions. */
mnp_status evaluator_make_rows(evaluator *v, const eval_opts *o);
/* Is every point of function i, in place `slot`, within the model's reach? */
mnp_status evaluator_check_reach(const evaluator *v, int64_t i, int64_t slot);

/* How a kind of data is split, and what is scored beside the rows of the evaluator: curves (eval.c)
 * and images (eval_images.c). */
struct eval_scheme {
    /* The most rows that a function has under the options: context, then targets. */
    mnp_status (*rows)(evaluator *v, const eval_opts *o, int64_t *rows);
    /* Context and targets of function i into place `slot` of the chunk; how many are scored. */
    int64_t (*split)(evaluator *v, const eval_opts *o, int64_t i, int64_t slot);
    /* All NULL where every target stands in the rows. Memory for `samples` draws of a chunk: */
    mnp_status (*prepare)(evaluator *v, int64_t samples);
    /* Asks r for the latents of a run, after its other `emits`. */
    void (*bind)(evaluator *v, runner *r, int emits, int64_t samples);
    /* Adds the log-densities of the targets that do not stand in the rows, given the latents of the
     * last run: loglik (count, stride). alone (count, or NULL): the mean over these targets of
     * log mean_s p(y | z_s), each by itself; NaN where there are none. */
    mnp_status (*rest)(evaluator *v, const float *weights, const eval_opts *o, int64_t first,
                       int64_t count, int64_t samples, int64_t stride, double *loglik,
                       double *alone);
    void (*release)(evaluator *v);
};
extern const eval_scheme eval_images;

#endif
