/* tnp_rbf.c: functions of Gaussian processes with an RBF kernel, each with hyper-parameters of its
 * own: a task of the transformer neural processes. */
#include "data/tnp.h"

static const option_def table[] = {TNP_TABLE};

static mnp_status draw(env *e, const void *opts, uint64_t seed, data_split split, int64_t first,
                       int64_t count, float *x, float *y) {
    return tnp_draw(e, opts, GP_RBF, seed, split, first, count, x, y);
}

static void hyper(const void *opts, hyper_law *out) {
    tnp_hyper(opts, GP_RBF, out);
}

const family_def family_tnp_rbf = {
    .name = "tnp-rbf",
    .help = "draws from GPs with an RBF kernel, length and scale drawn for each",
    FAMILY_DEF(tnp_opts, table),
    .draw = draw,
    .group = 1,
    .hyper = hyper,
    .ceiling = tnp_ceiling};
