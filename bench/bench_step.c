/* bench_step.c: one training step of the paper preset. Rounds of: the multiply-add peak of all
 * threads, then one step. The work of a step is taken as 62.2 GFLOP: all products of the model,
 * once each, with what is shared counted once and what attention recomputes not counted; so the
 * number is comparable between implementations. */
#include "backend/cpu/kernels.h"
#include "base/pool.h"
#include "bench/bench_model.h"
#include "bench/peak.h"

enum { ROUNDS_MAX = 400, ROUNDS_MIN = 5, WARM = 2 };
static const double STEP_FLOP = 62.2e9;
static const char train_options[] = "steps=1000000 batch=100 context=50:50 p_empty=0";

typedef struct rounds {
    double wall[ROUNDS_MAX], cpu[ROUNDS_MAX], part[ROUNDS_MAX]; /* part: of this round's peak */
    double best_wall, best_cpu, best_peak;
    int count;
} rounds;

static void note_round(rounds *r, double wall, double cpu, double peak) {
    if (r->count == 0 || wall < r->best_wall) r->best_wall = wall;
    if (r->count == 0 || cpu < r->best_cpu) r->best_cpu = cpu;
    if (peak > r->best_peak) r->best_peak = peak;
    r->part[r->count] = STEP_FLOP / (wall * peak);
    r->wall[r->count] = wall;
    r->cpu[r->count++] = cpu;
}

static mnp_status run_rounds(mnp_trainer *t, pool *p, double seconds, rounds *r) {
    const char *isa = cpu_kernels_best(NULL)->isa;
    const double end = bench_seconds() + seconds;
    MNP_TRY(mnp_trainer_run(t, WARM, NULL));
    while (r->count < ROUNDS_MIN || (r->count < ROUNDS_MAX && bench_seconds() < end)) {
        const double peak = bench_peak_threads(p, isa);
        const double cpu = bench_cpu_seconds(), start = bench_seconds();
        MNP_TRY(mnp_trainer_run(t, 1, NULL));
        note_round(r, bench_seconds() - start, bench_cpu_seconds() - cpu, peak);
    }
    return MNP_OK;
}

static void tell(bench_setup *s, rounds *r, int threads, size_t plan_bytes, size_t peak_bytes) {
    bench_report *to = s->report;
    const double part = STEP_FLOP / (r->best_wall * r->best_peak);
    fprintf(to->out, "training step, paper preset, batch 100, n = 128, m = 50, %d threads (%s)\n",
            threads, cpu_kernels_best(NULL)->isa);
    fprintf(to->out, "  peak of the threads %8.1f GFLOP/s (best of %d rounds)\n",
            1e-9 * r->best_peak, r->count);
    fprintf(to->out, "  time per step       %8.1f ms best, %.1f ms median\n", 1e3 * r->best_wall,
            1e3 * bench_median(r->wall, r->count));
    fprintf(to->out, "  processor time      %8.1f ms best, %.1f ms median (all threads)\n",
            1e3 * r->best_cpu, 1e3 * bench_median(r->cpu, r->count));
    fprintf(to->out, "  part of peak        %8.3f best, %.3f median; by processor time %.3f\n",
            part, bench_median(r->part, r->count),
            STEP_FLOP * threads / (r->best_cpu * r->best_peak));
    fprintf(to->out, "  memory              %8.1f MB of the plan, %.1f MB of the process at most\n",
            1e-6 * (double)plan_bytes, 1e-6 * (double)peak_bytes);
    report_add(to, "step_ms", "training step, best of the rounds", 1e3 * r->best_wall, "ms");
    report_add(to, "step_cpu_part", "training step by processor time",
               STEP_FLOP * threads / (r->best_cpu * r->best_peak), "of peak");
    report_held(to, "step_part", "training step, 62.2 GFLOP / (time x peak)", part, "of peak",
                REPORT_AT_LEAST, 0.55);
    report_held(to, "step_memory", "memory of training", 1e-6 * (double)peak_bytes, "MB",
                REPORT_AT_MOST, 500);
}

static mnp_status measure(bench_setup *s, mnp_ctx *ctx, pool *p, int threads) {
    mnp_data *data = NULL;
    mnp_model *model = NULL;
    mnp_trainer *trainer = NULL;
    static rounds r;
    r = (rounds){.count = 0};
    report_memory_reset();
    mnp_data_opts d = {.size = sizeof d, .functions = 1000, .seed = s->seed};
    mnp_train_opts t = {
        .size = sizeof t, .options = train_options, .seed = s->seed, .device = "cpu"};
    mnp_status status = mnp_data_open(ctx, "rbf", &d, &data);
    if (status == MNP_OK)
        status = mnp_model_create(ctx, "mnp", "paper", NULL, data, s->seed, &model);
    if (status == MNP_OK) status = mnp_trainer_create(ctx, model, data, NULL, &t, &trainer);
    if (status == MNP_OK) status = run_rounds(trainer, p, s->seconds, &r);
    if (status == MNP_OK)
        tell(s, &r, threads, mnp_trainer_memory(trainer), report_memory_peak());
    else
        snprintf(s->error, sizeof s->error, "%s", mnp_last_error(ctx));
    mnp_trainer_destroy(trainer);
    mnp_model_destroy(model);
    mnp_data_destroy(data);
    return status;
}

mnp_status bench_step(bench_setup *s) {
    env e;
    env_init(&e);
    int threads = s->threads > 0 ? s->threads : pool_default_threads() > 1 ? 2 : 1;
    mnp_ctx_opts o = {.size = sizeof o, .threads = threads};
    mnp_ctx *ctx = NULL;
    pool *p = NULL;
    mnp_status status = pool_create(&e, threads, &p);
    if (status == MNP_OK) status = mnp_ctx_create(&o, &ctx);
    if (status == MNP_OK) status = measure(s, ctx, p, threads);
    mnp_ctx_destroy(ctx);
    pool_destroy(p);
    return status;
}
