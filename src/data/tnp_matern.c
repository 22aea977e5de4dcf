/* tnp_matern.c: functions of Gaussian processes with a Matern-5/2 kernel, each with
 * hyper-parameters of its own: a task of the transformer neural processes. */
#include "data/tnp.h"

static const option_def table[] = {TNP_TABLE};

static mnp_status draw(env *e, const void *opts, uint64_t seed, data_split split, int64_t first,
                       int64_t count, float *x, float *y) {
    return tnp_draw(e, opts, GP_MATERN, seed, split, first, count, x, y);
}

static void hyper(const void *opts, hyper_law *out) {
    tnp_hyper(opts, GP_MATERN, out);
}

const family_def family_tnp_matern = {
    .name = "tnp-matern",
    .help = "draws from GPs with a Matern-5/2 kernel, length and scale drawn for each",
    FAMILY_DEF(tnp_opts, table),
    .draw = draw,
    .group = 1,
    .hyper = hyper,
    .ceiling = tnp_ceiling};
