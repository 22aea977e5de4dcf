/* transition.c: the table of transitions. */
#include "model/transition/transition.h"

#define TRANSITION(name) extern const transition_def transition_##name;
#include "model/transition/transitions.def"
#undef TRANSITION

const transition_def *transition_at(int id) {
    static const transition_def *const table[] = {
#define TRANSITION(name) &transition_##name,
#include "model/transition/transitions.def"
#undef TRANSITION
    };
    return id >= 0 && id < TRANSITION_COUNT ? table[id] : table[0];
}
