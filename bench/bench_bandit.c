/* bench_bandit.c: latency of decisions while data arrive, through the public interface on one
 * thread: one act and observe after a long history, and a whole trial of a chain of five steps. */
#include <stdlib.h>

#include "bench/bench_model.h"
#include "bench/peak.h"
#include "mnp_bandit.h"

enum { HISTORY = 80000, REPEATS = 2000, TRIAL = 2000, DIMS = 2, ACTIONS = 5 };

static double uniform(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return (double)(*seed >> 8) * 0x1p-24;
}

/* A wheel of radius 1/2, without noise. */
static double reward(const double *x, int64_t action) {
    int64_t quadrant = 1 + (x[0] > 0 ? 0 : 2) + (x[1] > 0 ? 0 : 1);
    if (action == 0) return 1.2;
    return action == quadrant && x[0] * x[0] + x[1] * x[1] > 0.25 ? 50.0 : 1.0;
}

typedef struct played {
    double median, best, whole; /* of a step; processor time of the whole trial */
} played;

/* `before` steps are observed, of actions in turn; then `steps` are played and timed. */
static mnp_status play(mnp_player *p, int64_t before, int64_t steps, double *took, played *out) {
    uint32_t seed = 11;
    double x[DIMS], started = 0;
    for (int64_t t = 0; t < before + steps; t++) {
        int64_t action = t % ACTIONS;
        for (int k = 0; k < DIMS; k++) x[k] = 2 * uniform(&seed) - 1;
        if (t == before) { /* what waits for the first act is not its latency */
            MNP_TRY(mnp_player_act(p, x, &action));
            started = bench_cpu_seconds();
        }
        double start = bench_seconds();
        if (t >= before) MNP_TRY(mnp_player_act(p, x, &action));
        MNP_TRY(mnp_player_observe(p, x, action, reward(x, action)));
        if (t >= before) took[t - before] = bench_seconds() - start;
    }
    out->whole = bench_cpu_seconds() - started;
    out->median = bench_median(took, (int)steps);
    out->best = took[0]; /* sorted by the median */
    return MNP_OK;
}

static mnp_status one(bench_setup *s, const char *preset, int64_t before, int64_t steps,
                      played *out) {
    mnp_ctx_opts o = {.size = sizeof o, .threads = 1};
    mnp_bandit_opts b = {.size = sizeof b, .seed = s->seed};
    mnp_ctx *ctx = NULL;
    mnp_model *model = NULL;
    mnp_player *p = NULL;
    double *took = malloc((size_t)steps * sizeof *took);
    mnp_status status = took ? mnp_ctx_create(&o, &ctx) : MNP_ENOMEM;
    if (status == MNP_OK)
        status = mnp_model_create(ctx, "mnp", preset, "x_dim=7", NULL, s->seed, &model);
    if (status == MNP_OK) status = mnp_player_create(ctx, model, &b, DIMS, ACTIONS, &p);
    if (status == MNP_OK) status = play(p, before, steps, took, out);
    if (status != MNP_OK && ctx) snprintf(s->error, sizeof s->error, "%s", mnp_last_error(ctx));
    mnp_player_destroy(p);
    mnp_model_destroy(model);
    mnp_ctx_destroy(ctx);
    free(took);
    return status;
}

mnp_status bench_bandit(bench_setup *s) {
    played fresh, old, chain;
    FILE *out = s->report->out;
    MNP_TRY(one(s, "wheel", 10, REPEATS, &fresh));
    MNP_TRY(one(s, "wheel", HISTORY, REPEATS, &old));
    MNP_TRY(one(s, "wheel5", 10, TRIAL, &chain));
    fprintf(out, "bandit, wheel presets, one thread, act and observe     best   median\n");
    fprintf(out, "  %-44s %8.1f %8.1f us\n", "T = 1, history of 10 to 2 000", 1e6 * fresh.best,
            1e6 * fresh.median);
    fprintf(out, "  %-44s %8.1f %8.1f us\n", "T = 1, history of 80 000", 1e6 * old.best,
            1e6 * old.median);
    fprintf(out, "  %-44s %8.1f %8.1f us\n", "T = 5, history of 10 to 2 000", 1e6 * chain.best,
            1e6 * chain.median);
    report_held(s->report, "bandit_step_us", "act and observe, T = 1, history of 80 000",
                1e6 * old.median, "us", REPORT_AT_MOST, 50.0);
    report_held(s->report, "bandit_trial_s", "2 000-step trial, T = 5", chain.whole, "s",
                REPORT_AT_MOST, 10.0);
    return MNP_OK;
}
