/* learner.h: the trained agents that are not processes, maml (maml.c) and c-bruno (bruno.c): a
 * perceptron recorded and run on the engine, episodes drawn from a data set, and files.
 *
 * An episode is a function of the data set with its points in a random order, cut into a context
 * and targets. Inputs are the data set's own (a bandit's: context and one-hot action). Networks see
 * standardised numbers: outputs always, inputs where the data come from a person's file. */
#ifndef MNP_BANDIT_LEARNER_H
#define MNP_BANDIT_LEARNER_H

#include "base/options.h"
#include "data/dataset.h"
#include "run/runner.h"
#include "util/limits.h"

typedef struct learner_opts {
    int64_t hidden, layers; /* of the network */
    int64_t steps, batch;
    double lr;
    int64_t inner; /* maml: gradient steps of an adaptation */
    double inner_rate, inner_clip;
    int64_t bins;  /* c-bruno: of the spline */
    double jitter; /* noise added to y in training, in standard deviations of y */
} learner_opts;

/* What is taken off and what is divided by, for the output and for every input. */
typedef struct learner_scale {
    double y[2], x[LEARNER_INPUTS_MAX][2];
} learner_scale;

typedef struct learner_def learner_def;
typedef struct learner {
    env *e;
    const learner_def *def;
    learner_opts opts;
    int32_t inputs;
    params params;                  /* w0, b0, w1, ...: see learner_net() */
    float *weights;                 /* (params.words)                     */
    double numbers[MLP_LAYERS_MAX]; /* beside them: the kind's own        */
    learner_scale scale;
    char *data, *x_names; /* what it was trained on: name, "x1,x2,action=a,..."; may be NULL */
} learner;

/* A training run as its caller sees it; any member may be NULL. */
typedef struct learner_watch {
    void (*progress)(void *user, int64_t step, int64_t steps, double loss);
    void *user;
} learner_watch;

/* Records a program over the learner's weights. */
typedef void (*learner_record)(graph *g, const learner *l);

struct learner_def {
    const char *kind; /* "maml" */
    const option_def *options;
    size_t n_options;
    int (*n_numbers)(const learner_opts *o);
    void (*start)(learner *l); /* the first numbers; may be NULL: zero */
    /* Feeds x (n, inputs) and y (n), standardised; declares all weights. */
    learner_record record;
    mnp_status (*train)(learner *l, const dataset *d, uint64_t seed, pool *pool,
                        const learner_watch *watch);
};

extern const learner_def learner_maml, learner_cbruno;
const learner_def *learner_find(const char *kind); /* NULL: there is none */
option_view learner_view(const learner_def *def, learner_opts *o);

/* First weights; not trained yet. */
mnp_status learner_create(env *e, const learner_def *def, const learner_opts *o, int32_t inputs,
                          uint64_t seed, learner **out);
void learner_destroy(learner *l); /* accepts NULL */
/* Scales and origin become those of the data. */
mnp_status learner_train(learner *l, const dataset *d, uint64_t seed, pool *pool,
                         const learner_watch *watch);

/* ---- the network ----------------------------------------------------------------------------- */

/* Where the perceptron ends: columns of the last matrix. */
typedef struct learner_head {
    const char *name; /* follows "w2" in the name of its weight; "" for all of the matrix */
    int32_t cols;
} learner_head;

/* Records the perceptron on x: ReLU after every layer but the last, whose heads go to out. Weights
 * are w0 (inputs, hidden), b0, w1, ...: normal of variance 2 / rows, those of the last layer
 * divided by 10; biases zero. */
void learner_net(graph *g, const learner *l, val x, const learner_head *heads, int n_heads,
                 val *out);

/* A compiled recording over the learner's weights, for up to `rows` rows. */
mnp_status learner_runner(env *e, const learner *l, learner_record record, int64_t rows, pool *pool,
                          int32_t slots, runner **out);
/* The same with Adam's memory: the recording updates the weights. moments (2, words). */
mnp_status learner_optimiser(learner *l, learner_record record, int64_t rows, double clip,
                             pool *pool, float **moments, runner **out);

/* ---- training -------------------------------------------------------------------------------- */

/* A batch of episodes, standardised. */
typedef struct episodes {
    int64_t count, longest;
    double *x, *y;             /* (count, longest, inputs), (count, longest)    */
    int64_t *points, *context; /* of each; the first `context` are the context */
} episodes;

enum { EPISODE_TARGETS = 50 }; /* at most, after the context */

mnp_status episodes_create(env *e, const dataset *d, int64_t count, episodes *out);
void episodes_free(env *e, episodes *ep);
/* Those of step `step`: the same for the same seed, whatever was drawn before. */
void episodes_draw(episodes *ep, const dataset *d, const learner_scale *scale, uint64_t seed,
                   int64_t step);

/* opts.steps steps, step(self, k, &loss); ends early when cancelled. A step that says MNP_ENUMERIC
 * has moved nothing, and the next follows; many in a row, or all, are a failure. */
mnp_status learner_run(const learner *l, mnp_status (*step)(void *self, int64_t k, double *loss),
                       void *self, const learner_watch *watch);

void learner_scale_none(learner_scale *s);
static inline double learner_y(const learner_scale *s, double reward) {
    return (reward - s->y[0]) / s->y[1];
}
static inline double learner_x(const learner_scale *s, int32_t k, double x) {
    return (x - s->x[k][0]) / s->x[k][1];
}

/* ---- files (learner_file.c) ------------------------------------------------------------------ */

mnp_status learner_save(env *e, const learner *l, const char *path);
mnp_status learner_load(env *e, const char *path, const learner_def *def, learner **out);
/* A learner without memory for its weights. */
mnp_status learner_declare(env *e, const learner_def *def, const learner_opts *o, int32_t inputs,
                           learner **out);
/* The memory, and first weights by the matrices of the file. */
mnp_status learner_start(learner *l, uint64_t seed);
/* Kind and inputs of a learner's file; MNP_EFORMAT where it is none. x_names may be NULL. */
enum { LEARNER_NAMES = 4096 };
mnp_status learner_kind(env *e, const char *path, char out[OPTION_NAME_MAX],
                        char x_names[LEARNER_NAMES]);

#endif
