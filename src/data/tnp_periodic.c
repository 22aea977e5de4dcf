/* tnp_periodic.c: functions of Gaussian processes with a periodic kernel, each with
 * hyper-parameters of its own: a task of the transformer neural processes. */
#include "data/tnp.h"

static const option_def table[] = {
    TNP_TABLE, OPTION_RANGE(tnp_opts, period, "0.1:0.5", 1e-3, 1e6, "range of the period")};

static mnp_status draw(env *e, const void *opts, uint64_t seed, data_split split, int64_t first,
                       int64_t count, float *x, float *y) {
    return tnp_draw(e, opts, GP_PERIODIC, seed, split, first, count, x, y);
}

static void hyper(const void *opts, hyper_law *out) {
    tnp_hyper(opts, GP_PERIODIC, out);
}

const family_def family_tnp_periodic = {
    .name = "tnp-periodic",
    .help = "draws from GPs with a periodic kernel, length, scale and period drawn for each",
    FAMILY_DEF(tnp_opts, table),
    .draw = draw,
    .group = 1,
    .hyper = hyper,
    .ceiling = tnp_ceiling};
