/* bench_gpu.c: training steps on a GPU, alone and several runs at once, and the scoring of many
 * functions on any device.
 *
 * A step alone is timed by the device's own clock: the median over rounds of a few captured steps
 * each, the drawing of the batch and the optimiser within; with contexts as training draws them (2
 * to 50 points, one in twenty empty), and with 50 points in every context, which is what a peer
 * that pads computes. Runs at once have a thread and a context each, as `mnp train --seeds`, and
 * are timed by the wall clock over all of them. */
#include <pthread.h>
#include <string.h>

#include "api/api_internal.h"
#include "backend/cuda/host/cuda.h"
#include "bench/bench_model.h"
#include "bench/peak.h"

enum { ROUNDS = 40, ROUND_STEPS = 10, WARM = 20, TOGETHER_STEPS = 400, SAMPLES = 20 };

/* What one precision is called in the report, and what it is held against at the paper's batch. */
typedef struct precision {
    const char *name;
    const char *step_key, *step_what, *long_key, *long_what, *memory_key, *memory_what, *runs_key,
        *runs_what;
    double bar;
} precision;

#define PRECISION(name, bar)                                                                       \
    {                                                                                              \
        name, "step_" name "_ms", "training step, " name ", median", "step_" name "_m50_ms",       \
            "the same, 50 points in every context, " name, "memory_" name "_mb",                   \
            "device memory of the step, " name, "runs_" name "_ms",                                \
            "runs at once, " name ", time per step overall", bar                                   \
    }

static const precision precisions[] = {PRECISION("fp32", 3.0), PRECISION("tf32", 1.5),
                                       PRECISION("bf16", 1.1)};
static const double RUNS_BAR = 0.9, MEMORY_BAR = 4000, EVAL_BAR = 10;

/* ---- a run ----------------------------------------------------------------------------------- */

typedef struct gpu_run {
    mnp_ctx *ctx;
    mnp_data *data;
    mnp_model *model;
    mnp_trainer *trainer;
    pthread_t thread;
    mnp_status status;
    bool running;
} gpu_run;

/* contexts: options of training, or none */
static mnp_status run_open(gpu_run *r, const bench_setup *s, const char *device,
                           const char *contexts, int number) {
    char options[128];
    *r = (gpu_run){.status = MNP_OK};
    snprintf(options, sizeof options, "steps=1000000 batch=%lld %.64s", (long long)s->batch,
             contexts);
    const uint64_t seed = s->seed + (uint64_t)number;
    mnp_ctx_opts c = {.size = sizeof c, .threads = 1};
    mnp_data_opts d = {.size = sizeof d, .functions = 1000, .seed = seed};
    mnp_train_opts t = {.size = sizeof t, .options = options, .seed = seed, .device = device};
    MNP_TRY(mnp_ctx_create(&c, &r->ctx));
    MNP_TRY(mnp_data_open(r->ctx, "rbf", &d, &r->data));
    MNP_TRY(mnp_model_create(r->ctx, "mnp", "paper", NULL, r->data, seed, &r->model));
    MNP_TRY(mnp_trainer_create(r->ctx, r->model, r->data, NULL, &t, &r->trainer));
    return mnp_trainer_run(r->trainer, WARM, NULL);
}

static void run_close(gpu_run *r) {
    mnp_trainer_destroy(r->trainer);
    mnp_model_destroy(r->model);
    mnp_data_destroy(r->data);
    mnp_ctx_destroy(r->ctx);
}

static mnp_status told(bench_setup *s, const gpu_run *r, mnp_status status) {
    if (status != MNP_OK)
        snprintf(s->error, sizeof s->error, "%s",
                 r->ctx ? mnp_last_error(r->ctx) : "out of memory");
    return status;
}

/* ---- one alone ------------------------------------------------------------------------------- */

static mnp_status alone(bench_setup *s, const precision *p, const char *device, bool longest) {
    gpu_run r;
    double ms[ROUNDS];
    mnp_status status = run_open(&r, s, device, longest ? "context=50:50 p_empty=0" : "", 0);
    for (int k = 0; k < ROUNDS && status == MNP_OK; k++) {
        status = mnp_trainer_run(r.trainer, ROUND_STEPS, NULL);
        if (status == MNP_OK) ms[k] = cuda_milliseconds(trainer_exec(r.trainer->t)) / ROUND_STEPS;
    }
    if (status == MNP_OK) {
        const double median = bench_median(ms, ROUNDS); /* sorts */
        const double mb = 1e-6 * (double)mnp_trainer_memory(r.trainer);
        const report_sense sense = s->batch == 100 ? REPORT_AT_MOST : REPORT_PLAIN;
        fprintf(s->report->out,
                "  %s  %8.4f ms a step, %s, median of %d x %d captured steps (%.4f to %.4f), "
                "%.0f MB\n",
                p->name, median, longest ? "m = 50" : "m as in training", ROUNDS, ROUND_STEPS,
                ms[0], ms[ROUNDS - 1], mb);
        if (longest) {
            report_add(s->report, p->long_key, p->long_what, median, "ms");
        } else {
            report_held(s->report, p->step_key, p->step_what, median, "ms", sense, p->bar);
            report_held(s->report, p->memory_key, p->memory_what, mb, "MB", sense, MEMORY_BAR);
        }
    }
    told(s, &r, status);
    run_close(&r);
    return status;
}

/* ---- several at once ------------------------------------------------------------------------- */

static void *run_thread(void *arg) {
    gpu_run *r = arg;
    r->status = mnp_trainer_run(r->trainer, TOGETHER_STEPS, NULL);
    return NULL;
}

/* Seconds of TOGETHER_STEPS steps of all runs. */
static mnp_status race(bench_setup *s, gpu_run *runs, double *seconds) {
    mnp_status status = MNP_OK;
    const double start = bench_seconds();
    for (int k = 0; k < s->runs; k++)
        runs[k].running = pthread_create(&runs[k].thread, NULL, run_thread, &runs[k]) == 0;
    for (int k = 0; k < s->runs; k++)
        if (runs[k].running) pthread_join(runs[k].thread, NULL);
    *seconds = bench_seconds() - start;
    for (int k = 0; k < s->runs && status == MNP_OK; k++) {
        status = told(s, &runs[k], runs[k].status);
        if (runs[k].running) continue;
        snprintf(s->error, sizeof s->error, "no thread for run %d", k + 1);
        status = MNP_ENOMEM;
    }
    return status;
}

static mnp_status together(bench_setup *s, const precision *p, const char *device) {
    gpu_run runs[BENCH_RUNS_MAX];
    int opened = 0;
    double seconds = 0;
    mnp_status status = MNP_OK;
    while (opened < s->runs && status == MNP_OK) {
        status = told(s, &runs[opened], run_open(&runs[opened], s, device, "", opened));
        opened++;
    }
    if (status == MNP_OK) status = race(s, runs, &seconds);
    if (status == MNP_OK) {
        const double ms = 1e3 * seconds / (s->runs * TOGETHER_STEPS);
        const bool held = s->batch == 100 && s->runs == 5 && strcmp(p->name, "fp32") != 0;
        fprintf(s->report->out,
                "  %s  %8.4f ms a step overall, %d runs at once, %d steps each in %.2f s\n",
                p->name, ms, s->runs, (int)TOGETHER_STEPS, seconds);
        report_held(s->report, p->runs_key, p->runs_what, ms, "ms",
                    held ? REPORT_AT_MOST : REPORT_PLAIN, RUNS_BAR);
    }
    for (int k = 0; k < opened; k++) run_close(&runs[k]);
    return status;
}

mnp_status bench_step_gpu(bench_setup *s) {
    char device[64];
    env e;
    env_init(&e);
    backend_choice ignored;
    mnp_status status = backend_choose(&e, s->device, &ignored);
    if (status != MNP_OK) {
        snprintf(s->error, sizeof s->error, "%.511s", e.error);
        return status;
    }
    fprintf(s->report->out, "training step, paper preset, batch %lld, n = 128, %s\n",
            (long long)s->batch, s->device);
    for (int k = 0; k < 3; k++) {
        const precision *p = &precisions[k];
        if (strcmp(s->math, "all") != 0 && strcmp(s->math, p->name) != 0) continue;
        snprintf(device, sizeof device, "%.31s:%s", s->device, p->name);
        MNP_TRY(alone(s, p, device, false));
        MNP_TRY(alone(s, p, device, true));
        if (s->runs > 1) MNP_TRY(together(s, p, device));
    }
    return MNP_OK;
}

/* ---- scoring --------------------------------------------------------------------------------- */

static mnp_status score(bench_setup *s, mnp_ctx *ctx, const char *device, mnp_scores *out,
                        double *seconds) {
    mnp_data *data = NULL;
    mnp_model *model = NULL;
    mnp_data_opts d = {.size = sizeof d, .functions = s->functions, .seed = s->seed};
    mnp_eval_opts o = {.size = sizeof o,
                       .functions = s->functions,
                       .samples = SAMPLES,
                       .draws = -1,
                       .protocol = MNP_AUTHORS,
                       .seed = s->seed,
                       .device = device};
    mnp_status status = mnp_data_open(ctx, "rbf", &d, &data);
    if (status == MNP_OK)
        status = mnp_model_create(ctx, "mnp", "paper", NULL, data, s->seed, &model);
    const double start = bench_seconds();
    if (status == MNP_OK) status = mnp_evaluate(ctx, model, data, &o, out);
    *seconds = bench_seconds() - start;
    if (status != MNP_OK) snprintf(s->error, sizeof s->error, "%s", mnp_last_error(ctx));
    mnp_model_destroy(model);
    mnp_data_destroy(data);
    return status;
}

mnp_status bench_eval(bench_setup *s) {
    const bool gpu = strcmp(s->device, "cpu") != 0;
    char device[64];
    mnp_scores scores = {.size = sizeof scores};
    double seconds = 0;
    mnp_ctx *ctx = NULL;
    mnp_ctx_opts o = {.size = sizeof o, .threads = s->threads};
    snprintf(device, sizeof device, "%.31s%s%.7s", s->device, gpu ? ":" : "",
             !gpu                          ? ""
             : strcmp(s->math, "all") == 0 ? "tf32"
                                           : s->math);
    MNP_TRY(mnp_ctx_create(&o, &ctx));
    mnp_status status = score(s, ctx, device, &scores, &seconds);
    if (status == MNP_OK) {
        fprintf(s->report->out,
                "scoring, paper preset, %lld functions of 128 points, %d samples, %s: %.2f s\n",
                (long long)scores.functions, (int)SAMPLES, device, seconds);
        report_add(s->report, "eval_functions", "functions scored with 20 samples",
                   (double)scores.functions, "");
        report_held(s->report, "eval_seconds", "scoring them, the compiling of the plan included",
                    seconds, "s", gpu && scores.functions == 5000 ? REPORT_AT_MOST : REPORT_PLAIN,
                    EVAL_BAR);
    }
    mnp_ctx_destroy(ctx);
    return status;
}
