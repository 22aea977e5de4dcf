/* watch.h: the same step in fp32, beside a training run whose products are rounded (rounding.h).
 * The run's own step gives its gradient; a second compiled step over the same plan, with weights of
 * its own that never come back, gives that in fp32. So the run keeps its bits, and a check costs
 * two steps in fp32.
 *
 *     watch_exact()        before a step: its gradient and loss in fp32
 *     the run's own step
 *     watch_compare()      what rounding did to it                                              */
#ifndef MNP_RUN_WATCH_H
#define MNP_RUN_WATCH_H

#include "backend/backend.h"
#include "run/rounding.h"

typedef struct watch {
    env *env;
    const backend *b;
    const plan *plan;
    exec_opts opts;
    exec *exec;      /* in fp32; NULL: not on the device now */
    step_block step; /* its own: the run's counters stay     */
    float *gradient; /* (trainable) the step's, in fp32      */
    double loss;     /* and its loss                         */
    double sampling; /* see rounding_check                   */
    bool ready;      /* watch_exact() has just succeeded     */
    bool told;       /* that it did not, once                */
} watch;

/* `opts` are the run's; b, plan and env are borrowed. */
void watch_open(watch *w, env *e, const backend *b, const plan *p, const exec_opts *opts);
/* Gives its memory back; the next check takes it again. */
void watch_rest(watch *w);
size_t watch_memory(const watch *w);

/* The gradient of step io->step->step on a batch of `batch` functions, at io->weights, which are
 * the run's at this moment. A failure leaves the run as it is. */
mnp_status watch_exact(watch *w, const exec_io *io, int64_t batch);
/* `gradient` (trainable) and `loss` of the run's own step. */
rounding_check watch_compare(const watch *w, const float *gradient, double loss);

#endif
