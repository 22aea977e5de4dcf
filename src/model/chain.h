/* chain.h: the Markov chain over functions and its inference network, recorded for one function.
 *
 *   y_0 iid normal;  y_t = F_t(y_{t-1}; x, z_t), t = 1..T;  the data are y_T.
 *   with attend=on, given the context C:  y_t = F_t(y_{t-1}; x, z_t, h_C(x))  (model/attend.h).
 *   inference walks back: for t = T..1  r_t = Enc{(phi(x_i), y_{t,i})},
 *   z_t ~ N(mu_t([z_{t+1}, r_t]), sigma_t([z_{t+1}, r_t])),  y_{t-1} = F_t^{-1}(y_t; x, z_t).
 *
 * The posterior reads all n points, or the k it is to see, the prior the m context points (prefixes
 * of the same rows, so their y_t are computed once). docs/dev/math.md derives it. */
#ifndef MNP_MODEL_CHAIN_H
#define MNP_MODEL_CHAIN_H

#include "model/spec.h"
#include "util/limits.h"

/* From which rows the latents are inferred. */
typedef enum chain_source {
    CHAIN_ALL,    /* posterior: all points                        */
    CHAIN_SEEN,   /* posterior: the k points it is to see         */
    CHAIN_CONTEXT /* the context alone (or nothing: then r_empty) */
} chain_source;

typedef struct chain_walk_opts {
    chain_source source;
    bool with_prior;     /* also score z under the context's distribution (KL, ratio)        */
    bool prior_is_empty; /* or, the ratio alone, under that of the empty set             */
    bool to_base;        /* carry the points all the way to y_0 and collect the log-density   */
    int32_t purpose;     /* rng_purpose of the latents' noise                                */
    const val *eps;      /* (T) noise given by the caller instead, index t-1; or NULL        */
    const val *z;        /* (T) latents given: the noise that makes them is recorded; or NULL */
} chain_walk_opts;

typedef struct chain_walk {
    val z[MODEL_STEPS_MAX];     /* (1, Z) sampled; index t-1                             */
    val eps[MODEL_STEPS_MAX];   /* of latents that were given                            */
    val mu[MODEL_STEPS_MAX];    /* (1 or 2, Z): row 0 what was sampled, row 1 the prior  */
    val raw[MODEL_STEPS_MAX];   /* of sigma, likewise                                    */
    val y[MODEL_STEPS_MAX + 1]; /* y_t, index t; y[0] only with to_base                  */
    val h;                      /* what the transitions see of the context; or VAL_NONE  */
    val kl[MODEL_STEPS_MAX];    /* scalars                                               */
    val kl_sum, ratio_sum;      /* scalars: sum of KL; log q_C(z) - log q_D(z)           */
    val logp;                   /* numbers per row: log p(y_i | z)                       */
} chain_walk;

/* x (rows, X) and y (numbers per row) are recorded already (op_draw or op_feed). */
void chain_record_walk(graph *g, const model_spec *s, val x, val y, const chain_walk_opts *o,
                       chain_walk *out);

/* h_C(x) of rows x and y, of which the first m are the context; VAL_NONE with attend=off. The
 * recordings below take it beside the latents. */
val chain_record_seen(graph *g, const model_spec *s, val x, val y);

/* Noise to data at rows x, given latents z (T): path[t] = y_t, path[0] = base. */
void chain_record_draw(graph *g, const model_spec *s, val x, val h, const val *z, val base,
                       val *path);

/* The same for `count` values of the base noise, each the same at all rows: y[k] is the data at
 * level[k]. What does not depend on the noise is recorded once. */
void chain_record_levels(graph *g, const model_spec *s, val x, val h, const val *z,
                         const double *level, int count, val *y);

/* log p(y_i | z) of each row, given latents. */
val chain_record_logp(graph *g, const model_spec *s, val x, val h, val y, const val *z);

/* With one step, and an encoder that pools, the latent depends on the set through a sum of rows
 * that grows point by point: the width of that sum, or 0. */
int64_t chain_stream_width(const model_spec *s);
/* The sum over the rows x, y (1, width); and from the mean or sum of a whole set (by s->pool) the
 * latent z (1, Z), sampled, with the noise eps or, VAL_NONE, its own. m > 0 says that the set is
 * not empty. */
val chain_record_sum(graph *g, const model_spec *s, val x, val y);
val chain_record_latent(graph *g, const model_spec *s, val pooled, val eps, int32_t purpose);

/* The sleep phase at rows x: latents z from q(z | nothing) and y from p(y | x, z), both without a
 * gradient, then log q(z | C) - log q(z | nothing) of the first m points as context: a scalar whose
 * gradient reaches the inference network alone. Not with attend=on, where the latents
 * of two contexts belong to two processes. */
val chain_record_sleep(graph *g, const model_spec *s, val x);

/* The objective of a finished walk: a scalar to minimise, divided by the scored points. */
val chain_record_loss(graph *g, const model_spec *s, const chain_walk *w, row_range scored);

#endif
