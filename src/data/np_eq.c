/* np_eq.c: functions of a Gaussian process with an RBF kernel and much noise, few of them seen:
 * a task of the library neuralprocesses. */
#include "data/np_task.h"

static const option_def table[] = {NP_TASK_TABLE("0.25")};

static void oracle(const void *opts, gp_kernel *out) {
    const np_task_opts *o = opts;
    *out = gp_kernel_make(GP_RBF);
    out->hyper[GP_LOG_VARIANCE_RBF] = log(o->variance);
    out->hyper[GP_LOG_LENGTH_RBF] = log(o->length);
    out->hyper[GP_LOG_NOISE] = log(o->noise_var);
}

static gp_kernel kernel(const void *opts, int32_t kind, rng_stream *s) {
    (void)kind, (void)s;
    gp_kernel k;
    oracle(opts, &k);
    return k;
}

static mnp_status draw(env *e, const void *opts, uint64_t seed, data_split split, int64_t first,
                       int64_t count, float *x, float *y) {
    return gp_family_draw_each(e, kernel, opts, 0, seed, split, first, count, x, y);
}

const family_def family_np_eq = {.name = "np-eq",
                                 .help = "draws from a GP with an RBF kernel, noise variance 0.05",
                                 FAMILY_DEF(np_task_opts, table),
                                 .draw = draw,
                                 .group = 1,
                                 .oracle = oracle};
