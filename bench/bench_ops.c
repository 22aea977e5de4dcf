/* bench_ops.c: times the cases that the ops mark for it, on one thread, alone and with their
 * gradients. The time of a case includes its inputs being copied in and its outputs out. */
#include <string.h>

#include "backend/cpu/kernels.h"
#include "bench/bench_model.h"
#include "bench/contract.h"
#include "bench/peak.h"

enum { REPEATS = 50 };

static mnp_status time_case(env *e, const op_def *op, const op_case *c, bool gradient,
                            double *seconds) {
    const backend *b = backend_find("cpu");
    exec_opts o = {.slots = 1};
    contract *t = NULL;
    MNP_TRY(contract_make(e, op, c, gradient, &t));
    mnp_status status = contract_time(t, b, &o, 2, seconds);
    int repeats = *seconds > 1e-2 ? 5 : REPEATS;
    if (status == MNP_OK) status = contract_time(t, b, &o, repeats, seconds);
    contract_destroy(t);
    return status;
}

static mnp_status one_case(bench_setup *s, env *e, const op_def *op, const op_case *c) {
    double alone = 0, with_gradient = 0;
    MNP_TRY(time_case(e, op, c, false, &alone));
    const double peak = bench_peak_once(cpu_kernels_best(NULL)->isa);
    MNP_TRY(time_case(e, op, c, true, &with_gradient));
    fprintf(s->report->out, "  %-16s %-28s %10.1f %12.1f", op->name, c->name, 1e6 * alone,
            1e6 * with_gradient);
    if (c->flop > 0) fprintf(s->report->out, " %8.1f %%", 100 * c->flop / (alone * peak));
    fprintf(s->report->out, "\n");
    return MNP_OK;
}

mnp_status bench_ops(bench_setup *s, const char *only) {
    env e;
    env_init(&e);
    fprintf(s->report->out, "operations, one thread, microseconds\n  %-16s %-28s %10s %12s %10s\n",
            "op", "case", "alone", "with gradient", "of peak");
    for (int32_t id = 0; id < OP_COUNT; id++) {
        const op_def *op = op_at(id);
        for (int k = 0; k < op->n_cases; k++) {
            if (!(op->cases[k].flags & CASE_BENCH) || (only && !strstr(op->name, only))) continue;
            mnp_status status = one_case(s, &e, op, &op->cases[k]);
            if (status == MNP_OK) continue;
            snprintf(s->error, sizeof s->error, "%.40s, %.60s: %.300s", op->name, op->cases[k].name,
                     e.error);
            return status;
        }
    }
    return MNP_OK;
}
