/* learner.h: what the two learners that are not processes (maml.h, bruno.h) share: episodes drawn
 * from a data set, options, and files.
 *
 * An episode is a function of the data set with its points in a random order, cut into a context
 * and targets. Inputs are the data set's own (a bandit's: context and one-hot action). Networks see
 * standardised numbers: outputs always, inputs where the data come from a person's file. */
#ifndef MNP_BANDIT_LEARNER_H
#define MNP_BANDIT_LEARNER_H

#include "bandit/mlp.h"
#include "base/options.h"
#include "base/safetensors.h"
#include "data/dataset.h"
#include "util/limits.h"

/* A training run as its caller sees it; any member may be NULL. */
typedef struct learner_watch {
    void (*progress)(void *user, int64_t step, int64_t steps, double loss);
    void *user;
} learner_watch;

/* `steps` steps, step(self, k) gives the loss of step k; ends early when cancelled. */
mnp_status learner_run(env *e, int64_t steps, double (*step)(void *self, int64_t k), void *self,
                       const learner_watch *watch);

/* ---- scales ---------------------------------------------------------------------------------- */

/* What is taken off and what is divided by, for the output and for every input. */
typedef struct learner_scale {
    double y[2], x[LEARNER_INPUTS_MAX][2];
} learner_scale;

void learner_scale_none(learner_scale *s);
/* Means and standard deviations of the data (1 where all are equal); MNP_EINVAL: too many inputs.
 */
mnp_status learner_scale_of(env *e, const dataset *d, learner_scale *out);

static inline float learner_y(const learner_scale *s, double reward) {
    return (float)((reward - s->y[0]) / s->y[1]);
}
static inline double learner_reward(const learner_scale *s, double y) {
    return s->y[0] + s->y[1] * y;
}
static inline float learner_x(const learner_scale *s, int32_t k, double x) {
    return (float)((x - s->x[k][0]) / s->x[k][1]);
}

/* ---- episodes -------------------------------------------------------------------------------- */

typedef struct episode {
    int64_t points, context; /* the first `context` points are the context */
    float *x;                /* (points, x_dim) */
    float *y;                /* (points); both standardised */
} episode;

enum { EPISODE_TARGETS = 50 }; /* at most, after the context */

mnp_status episode_create(env *e, const dataset *d, episode *out);
void episode_free(env *e, episode *ep);
/* Episode `item` of step `step`: the same for the same seed, whatever was drawn before. */
void episode_draw(episode *ep, const dataset *d, const learner_scale *scale, uint64_t seed,
                  int64_t step, int64_t item);

/* A rate that falls along half a cosine from `rate` to nothing. */
double learner_rate(double rate, int64_t step, int64_t steps);

/* ---- files ----------------------------------------------------------------------------------- */

/* What a learner was trained on. */
typedef struct learner_origin {
    char *data;    /* the name of the data set            */
    char *x_names; /* of its inputs, "x1,x2,action=a,..." */
} learner_origin;

/* In place of what was there. */
mnp_status learner_origin_of(env *e, const dataset *d, learner_origin *out);
void learner_origin_free(env *e, learner_origin *o);

/* Before training: do the data have the network's inputs? Then its scales and origin are theirs. */
mnp_status learner_take(env *e, const dataset *d, const mlp *net, learner_scale *scale,
                        learner_origin *origin);

/* What every learner's file holds: the network's weights, a few more numbers, the scales, the
 * options as text, the kind ("maml") and the data it was trained on. */
typedef struct learner_file {
    const char *kind;
    const option_view *options; /* printed or parsed */
    mlp *net;                   /* made from the options and inputs when reading */
    float *weights;
    double *numbers; /* (n_numbers) */
    int64_t n_numbers;
    learner_scale *scale;
    learner_origin *origin;
} learner_file;

mnp_status learner_write(env *e, const char *path, const learner_file *f);
/* Kind and inputs of a learner's file; MNP_EFORMAT where it is none. x_names may be NULL. */
enum { LEARNER_NAMES = 4096 };
mnp_status learner_kind(env *e, const char *path, char out[OPTION_NAME_MAX],
                        char x_names[LEARNER_NAMES]);
/* First the options and the number of inputs, from which the caller makes net, weights and numbers;
 * then their values. */
mnp_status learner_open(env *e, const char *path, const char *kind, const option_view *options,
                        safetensors_file **file, int32_t *inputs);
/* Before memory is taken for a network: does the file hold its weights? */
mnp_status learner_holds(env *e, const char *path, const safetensors_file *file, const mlp *net);
mnp_status learner_read(env *e, const char *path, const safetensors_file *file, learner_file *f);

#endif
