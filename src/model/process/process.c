/* process.c: the table of processes. */
#include "model/process/process.h"

#define PROCESS(id, name) extern const process_def process_##id;
#include "model/process/processes.def"
#undef PROCESS

const double process_level[PROCESS_LEVELS_ALL] = {0,
                                                  -1.6629596035333782,
                                                  -0.961651218017327,
                                                  -0.5298250061482329,
                                                  -0.17052200667927234,
                                                  0.17052200667927234,
                                                  0.5298250061482329,
                                                  0.961651218017327,
                                                  1.6629596035333782,
                                                  -2.2,
                                                  2.2};

const process_def *process_at(int kind) {
    static const process_def *const table[] = {
#define PROCESS(id, name) &process_##id,
#include "model/process/processes.def"
#undef PROCESS
    };
    return kind >= 0 && kind < PROCESS_COUNT ? table[kind] : table[0];
}

const char *process_name(int kind) {
    static const char *const names[] = {
#define PROCESS(id, name) name,
#include "model/process/processes.def"
#undef PROCESS
    };
    return kind >= 0 && kind < PROCESS_COUNT ? names[kind] : NULL;
}

void process_feed_points(graph *g, const model_spec *s, val *x, val *y) {
    *x = op_feed(g, "x", EXT_N, 0, (int32_t)s->x_dim, false, false);
    *y = op_feed_scalars(g, "y", EXT_N, false, false);
}
