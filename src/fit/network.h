/* network.h: the network among the models of a person's curves.
 *
 *   1  curves simulated from a classical model (simulate.h), the mixed one or, of curves that
 *      oscillate, a periodic Gaussian process, train a network of fitting size
 *   2  the real curves train it further, beside simulated ones; contexts are the first points of
 *      a curve half of the time; curves that it does not train on say when to stop
 *
 * Where that model is right, the first part alone is as good as it; where it is not, the
 * second part learns the difference. */
#ifndef MNP_FIT_NETWORK_H
#define MNP_FIT_NETWORK_H

#include "backend/backend.h"
#include "data/dataset.h"
#include "model/model.h"

typedef struct network_opts {
    const model *teacher;                       /* lmm or gp, fitted to the same curves           */
    double effort;                              /* 1: the usual number of steps; 0 counts as 1    */
    uint64_t seed;                              /* the same bits for any number of threads        */
    pool *pool;                                 /* NULL: this thread                              */
    buf *warnings;                              /* gets a line for each doubt; or NULL            */
    void (*progress)(void *user, double share); /* of the work, 0 to 1; or NULL */
    void *progress_user;
} network_opts;

/* A network trained on `curves`: those that may be learned from, of which it keeps some to choose
 * the weights by. It is meant to be asked with exact conditioning. */
mnp_status fit_network(env *e, const dataset *curves, const network_opts *o, model **out);

#endif
