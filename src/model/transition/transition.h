/* transition.h: a transition is an invertible map of each output on its own, in two directions,
 * with its log-derivative. Its numbers per point come from the conditioner (chain.c). Adding one is
 * a file and a line in transitions.def. */
#ifndef MNP_MODEL_TRANSITION_H
#define MNP_MODEL_TRANSITION_H

#include "model/spec.h"

typedef struct transition_def {
    const char *name;
    int32_t (*numbers)(const model_spec *s);   /* how many per point the conditioner must give */
    double (*start_bias)(const model_spec *s); /* of the conditioner's last layer; NULL = 0     */
    /* y_t -> y_{t-1}, adding log |d y_{t-1} / d y_t| to logdet (absent = 0); and back. */
    mapped (*to_noise)(graph *g, const model_spec *s, val y, val raw, val logdet);
    mapped (*to_data)(graph *g, const model_spec *s, val y, val raw, val logdet);
} transition_def;

typedef enum transition_id {
#define TRANSITION(name) TRANSITION_##name,
#include "model/transition/transitions.def"
#undef TRANSITION
    TRANSITION_COUNT
} transition_id;

const transition_def *transition_at(int id);

#endif
