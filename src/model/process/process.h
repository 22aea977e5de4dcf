/* process.h: what a kind of model records: its training step, its scores, its predictions. The
 * drivers in src/run know models through this table alone. Adding a kind is a line in processes.def
 * and a process_def.
 *
 * Two ways to predict. A process with latents draws z_1 .. z_T from the context once and is then
 * queried anywhere: given z, points are independent. With attend=on a query also has the context's
 * own rows, which come first. A process without (latents() = 0) answers a
 * query from the context's own rows, which come first, and draws jointly over the rows of that
 * query; its densities are exact, so one sample says all. Where the points are independent given
 * the context (numbers), it is a predictor and no process: contexts that grow contradict each
 * other. */
#ifndef MNP_MODEL_PROCESS_H
#define MNP_MODEL_PROCESS_H

#include "base/gp_math.h"
#include "model/spec.h"
#include "util/limits.h"

typedef struct process_train_opts {
    draw_opts draw;
    double sleep; /* weight of the sleep phase; only with latents */
    bool update;  /* append the optimiser's step                  */
} process_train_opts;

/* Scores of one function: feeds x and y (n rows, context first, scaled). */
typedef struct process_score_opts {
    row_range scored; /* ROWS_REST: outside the context; ROWS_ALL: all, the context as if fresh */
    bool points;      /* bound: also emit the log-density of each row                           */
    bool draws;       /* predictive: also emit values with noise at all rows                    */
    bool latents;     /* also emit z_1 .. z_T, after the rest; nothing without latents         */
} process_score_opts;

/* What bound and predictive emit, each per sample (once without latents). */
enum { BOUND_LOGLIK, BOUND_KL, BOUND_RATIO, BOUND_LOGP, BOUND_EMITS }; /* LOGP: also per point */
enum { PREDICTIVE_LOGLIK, PREDICTIVE_DRAWS };

typedef enum process_particle {
    PARTICLE_GRADIENT,
    PARTICLE_LATENTS,
    PARTICLE_NOISE
} process_particle;
/* What PARTICLE_GRADIENT feeds before eps, and emits before the gradients, each per sample. */
enum { PARTICLE_X, PARTICLE_Y, PARTICLE_FEEDS };
enum { PARTICLE_LOGW, PARTICLE_FIT, PARTICLE_EMITS };

typedef enum process_query {
    QUERY_ZERO,   /* the smooth function                         */
    QUERY_NORMAL, /* with the process's own noise                */
    QUERY_LOGP,   /* the log-density of each row on its own      */
    QUERY_LEVELS, /* at fixed levels of the noise; with latents  */
    QUERY_KINDS
} process_query;

/* The levels of the base noise: 0, then eight equally likely ones upwards, scaled to variance one;
 * and two outside of a 95 % band, for the tails of pictures. */
enum { PROCESS_LEVELS = 9, PROCESS_LEVELS_ALL = 11 };
extern const double process_level[PROCESS_LEVELS_ALL];

typedef struct process_def {
    const char *help; /* one line */
    /* Options of the training where they differ from the usual ones, as text. */
    const char *train;
    /* Its matrices are layers of networks, for which half precision does (model_save_half). */
    bool networks;
    /* Options that do not fit together; may be NULL. */
    mnp_status (*check)(env *e, const model_spec *s);
    /* Maps between noise and data: a path has one value more. */
    int64_t (*steps)(const model_spec *s);
    int64_t (*latents)(const model_spec *s);    /* how many z, each d_z wide; 0: none */
    int64_t (*parameters)(const model_spec *s); /* NULL: as many as weights are trained */

    /* Draw a batch member, objective, reverse pass, update. A model that is not trained records
     * the objective alone. All weights are declared here. */
    void (*train_step)(graph *g, const model_spec *s, const process_train_opts *o);
    void (*bound)(graph *g, const model_spec *s, const process_score_opts *o);
    void (*predictive)(graph *g, const model_spec *s, const process_score_opts *o);
    /* Feeds x and y of extent m, and (fed) the noise eps_1 .. eps_T, which is drawn otherwise;
     * emits the latents. NULL without latents. */
    void (*draw_latents)(graph *g, const model_spec *s, bool fed);
    /* A particle of p(z | points) is the noise eps of the network's z = z(eps; points). Feeds x and
     * y of the n rows, then eps_1 .. eps_T; emits
     *   log w = sum_i log p(y_i | z) + log q(z | nothing) - log q(z | points),
     * that sum by itself, and d log w / d eps_t.
     * Or: emits z_1 .. z_T instead; or feeds z and emits eps. n >= 1. NULL without latents. */
    void (*particle)(graph *g, const model_spec *s, process_particle what);
    /* Sets that grow point by point. The latents depend on the set through a sum of rows alone: its
     * width, or 0 (NULL: 0). sum feeds x and y of extent m and emits their sum; latents_of_sum
     * feeds that of the whole set, divided by the number of points where the model takes means,
     * and (fed) the noise; it emits what draw_latents does. */
    int64_t (*stream_width)(const model_spec *s);
    void (*sum)(graph *g, const model_spec *s);
    void (*latents_of_sum)(graph *g, const model_spec *s, bool fed);
    /* With latents: feeds x of the targets, z_1 .. z_T, and (densities) y; where the context is
     * asked again, x and y are those of the context and the targets, y always. Without: x and y of
     * the context and the targets. Emits the path from noise to data, or the log-densities. */
    void (*query)(graph *g, const model_spec *s, process_query kind);

    /* Where points are independent given the context: the numbers (n, *) of each row's density,
     * from the context's points and the row's own x (factorised.h). NULL: they are not. */
    val (*numbers)(graph *g, const model_spec *s, val x, val y);

    /* Weights that the data give at once, before the first step; NULL: none. d is what training
     * sees, scaled; loglik is their log-density where no step will tell it. */
    mnp_status (*from_data)(env *e, const model_spec *s, const data_view *d, uint64_t seed,
                            const params *list, float *weights, double *loglik);

    /* The kernel and the numbers that it has learned, where people can read these; or NULL. */
    void (*kernel)(const model_spec *s, const params *list, const float *weights, gp_kernel *out);

    /* Training may begin from several starts, of which the best goes on; NULL: one. */
    int (*starts)(const model_spec *s);
    void (*start)(model_spec *s, int k); /* the options of the k-th, which has one start itself */
} process_def;

const process_def *process_at(int kind);
const char *process_name(int kind); /* NULL after the last */

/* Whether its densities are exact and need one sample only. */
static inline bool process_is_exact(const model_spec *s) {
    return process_at(s->kind)->latents(s) == 0;
}

/* Whether a query reads the context's rows, which then come before the targets'. */
static inline bool process_asks_context(const model_spec *s) {
    return process_is_exact(s) || s->attend;
}

/* Whether its points are independent given the context: no process, but one prediction for each. */
static inline bool process_factorises(const model_spec *s) {
    return process_at(s->kind)->numbers != NULL;
}

/* Feeds of one function's points: x (n, X) and y (n). */
void process_feed_points(graph *g, const model_spec *s, val *x, val *y);

#endif
