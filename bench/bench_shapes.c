/* bench_shapes.c: a training step at many shapes: its time, with contexts as training draws them
 * and with the largest context in every function, and what arithmetic and memory allow at best.
 *
 * The median over rounds of a few steps each: on a GPU captured steps by the device's clock, on a
 * processor single steps by the wall clock. A row ends when its time is spent, so that a slow one
 * does not eat the run; a row that fails says why, and the next one begins.
 *
 * Two floors stand beside the time. Arithmetic: products, attention and convolutions, once each, at
 * the device's peak. Memory: weights and moments are read and written, what the forward pass leaves
 * to the reverse one is written and read once. Neither counts what a program could not do without
 * in fact (launches, small sums, exponentials). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_internal.h"
#include "backend/cpu/kernels.h"
#include "backend/cuda/host/cuda.h"
#include "bench/bench_model.h"
#include "bench/peak.h"
#include "bench/work.h"
#include "run/train_internal.h"
#include "util/text.h"

enum { FUNCTIONS = 256, ROUND_STEPS = 10, ROUNDS_MAX = 1000, WARM_GPU = 20, WARM_CPU = 1 };
static const double ROUND_SECONDS = 0.05, WARM_SECONDS = 0.3;

/* ---- peaks ----------------------------------------------------------------------------------- */

/* From the makers' data sheets: TFLOP/s without sparsity, GB/s. */
static const struct {
    const char *device;
    double fp32, tf32, bf16, gbytes;
} sheets[] = {{"H200", 66.9, 494.7, 989.4, 4800},
              {"H100 80GB HBM3", 66.9, 494.7, 989.4, 3350},
              {"A100-SXM4-80GB", 19.5, 156, 312, 2039}};

typedef struct peaks {
    double flop, bytes; /* per second; 0: not known */
    int number;         /* bytes of one that is kept */
} peaks;

static peaks peaks_of(const bench_setup *s, const char *device, const char *math, double measured) {
    peaks p = {.flop = measured, .number = strcmp(math, "fp32") == 0 ? 4 : 2};
    for (size_t k = 0; k < sizeof sheets / sizeof *sheets; k++) {
        if (!strstr(device, sheets[k].device)) continue;
        const double of[] = {sheets[k].fp32, sheets[k].tf32, sheets[k].bf16};
        p.flop = 1e12 * of[strcmp(math, "fp32") == 0 ? 0 : strcmp(math, "tf32") == 0 ? 1 : 2];
        p.bytes = 1e9 * sheets[k].gbytes;
    }
    if (s->tflops > 0) p.flop = 1e12 * s->tflops;
    if (s->gbytes > 0) p.bytes = 1e9 * s->gbytes;
    return p;
}

/* ---- a row ----------------------------------------------------------------------------------- */

typedef struct row_run {
    mnp_ctx *ctx;
    mnp_data *data;
    mnp_model *model;
    mnp_trainer *trainer;
    bool gpu;
} row_run;

static mnp_status open_trainer(const bench_setup *s, const shape_row *r, bool full, row_run *run) {
    char options[SHAPE_TEXT + 128], device[64];
    snprintf(options, sizeof options, "steps=1000000 %s", r->shape.train);
    if (full) {
        const size_t used = strlen(options);
        snprintf(options + used, sizeof options - used, " context=%lld:%lld p_empty=0 p_region=0",
                 (long long)r->hi, (long long)r->hi);
    }
    snprintf(device, sizeof device, "%.31s%s%s%s", s->device, run->gpu ? ":" : "",
             run->gpu ? r->math : "",
             run->gpu && r->shape.general && !strstr(s->device, "general") ? ":general" : "");
    mnp_train_opts t = {.size = sizeof t, .options = options, .seed = s->seed, .device = device};
    return mnp_trainer_create(run->ctx, run->model, run->data, NULL, &t, &run->trainer);
}

static mnp_status open_run(const bench_setup *s, const shape_row *r, row_run *run) {
    const shape *at = &r->shape;
    *run = (row_run){.gpu = strcmp(s->device, "cpu") != 0};
    mnp_ctx_opts c = {.size = sizeof c, .threads = s->threads};
    mnp_data_opts d = {
        .size = sizeof d, .functions = at->functions ? at->functions : FUNCTIONS, .seed = s->seed};
    MNP_TRY(mnp_ctx_create(&c, &run->ctx));
    MNP_TRY(mnp_data_open(run->ctx, at->data, &d, &run->data));
    MNP_TRY(mnp_model_create(run->ctx, at->kind, at->preset, at->model, run->data, s->seed,
                             &run->model));
    return open_trainer(s, r, false, run);
}

static void close_run(row_run *run) {
    mnp_trainer_destroy(run->trainer);
    mnp_model_destroy(run->model);
    mnp_data_destroy(run->data);
    mnp_ctx_destroy(run->ctx);
}

/* What the trainer made of the row's options. */
static void describe(const row_run *run, shape_row *r) {
    const trainer *t = run->trainer->t;
    r->batch = t->spec.batch;
    r->n = t->plan->opts.n;
    r->lo = t->spec.context.lo;
    r->hi = t->spec.context.hi < r->n ? t->spec.context.hi : r->n;
    r->k = t->spec.seen > 0 && t->spec.seen < r->n ? t->spec.seen : r->n;
    r->samples = t->spec.train_samples;
    r->p_empty = t->spec.p_empty;
    snprintf(r->options, sizeof r->options, "%s", mnp_model_options(run->model));
}

/* ---- work ------------------------------------------------------------------------------------ */

static work_counts counts_of(const shape_row *r, int64_t m) {
    const double k = (double)(r->k > m ? r->k : m);
    return (work_counts){(double)r->n, k, (double)m, (double)r->samples};
}

static double gflop_of(const shape_row *r, const plan *p, int64_t m) {
    const work_counts c = counts_of(r, m);
    return 1e-9 * (double)r->batch * work_flop(p, &c);
}

/* Contexts that are regions have sizes of their own: their mean is not known. */
static void count_work(const row_run *run, const peaks *top, shape_row *r) {
    const plan *p = run->trainer->t->plan;
    const work_counts full = counts_of(r, r->hi);
    double sum = 0;
    for (int64_t m = r->lo; m <= r->hi; m++) sum += gflop_of(r, p, m);
    r->gflop_full = gflop_of(r, p, r->hi);
    if (run->trainer->t->spec.p_region <= 0)
        r->gflop =
            (1 - r->p_empty) * sum / (double)(r->hi - r->lo + 1) + r->p_empty * gflop_of(r, p, 0);
    /* weights and two moments in and out */
    const double weights = 6.0 * sizeof(float) * (double)p->params->trainable;
    const double kept = 2.0 * top->number * (double)r->batch * work_kept(p, &full);
    r->floor = top->flop > 0 ? 1e12 * r->gflop_full / top->flop : 0;
    r->floor_bytes = top->bytes > 0 ? 1e3 * (weights + kept) / top->bytes : 0;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Milliseconds a step over `steps` steps. */
static mnp_status time_steps(const row_run *run, int64_t steps, double *ms) {
    const double start = bench_seconds();
    MNP_TRY(mnp_trainer_run(run->trainer, steps, NULL));
    const double wall = 1e3 * (bench_seconds() - start);
    *ms = (run->gpu ? cuda_milliseconds(trainer_exec(run->trainer->t)) : wall) / (double)steps;
    return MNP_OK;
}

/* A few steps first; then so many a round that it takes a moment. */
static mnp_status warm(const row_run *run, double seconds, int64_t *steps) {
    const double end = bench_seconds() + fmin(WARM_SECONDS, 0.2 * seconds);
    const int most = run->gpu ? WARM_GPU : WARM_CPU;
    double ms = 0;
    for (int k = 0; k < most && (k == 0 || bench_seconds() < end); k++)
        MNP_TRY(time_steps(run, 1, &ms));
    const double fit = ms > 0 ? 1e3 * ROUND_SECONDS / ms : ROUND_STEPS;
    *steps = !run->gpu || fit < 1 ? 1 : fit > ROUND_STEPS ? ROUND_STEPS : (int64_t)fit;
    return MNP_OK;
}

/* ms: (ROUNDS_MAX), sorted when it returns. */
static mnp_status time_rounds(const bench_setup *s, const row_run *run, double *ms, int *rounds,
                              double *median) {
    const double end = bench_seconds() + s->seconds;
    int64_t steps = 1;
    *rounds = 0;
    MNP_TRY(warm(run, s->seconds, &steps));
    do {
        MNP_TRY(time_steps(run, steps, &ms[*rounds]));
        ++*rounds;
    } while (*rounds < s->rounds && *rounds < ROUNDS_MAX && bench_seconds() < end);
    *median = bench_median(ms, *rounds);
    return MNP_OK;
}

static mnp_status measure(const bench_setup *s, const peaks *top, shape_row *r, row_run *run) {
    double ms[ROUNDS_MAX];
    int rounds;
    describe(run, r);
    count_work(run, top, r);
    if (s->rounds == 0) return MNP_OK;
    MNP_TRY(time_rounds(s, run, ms, &r->rounds, &r->ms));
    r->least = ms[0], r->most = ms[r->rounds - 1];
    r->mb = 1e-6 * (double)mnp_trainer_memory(run->trainer);
    mnp_trainer_destroy(run->trainer);
    run->trainer = NULL;
    MNP_TRY(open_trainer(s, r, true, run));
    return time_rounds(s, run, ms, &rounds, &r->ms_full);
}

static void run_row(const bench_setup *s, const peaks *top, shape_row *r) {
    row_run run;
    mnp_status status = open_run(s, r, &run);
    if (status == MNP_OK) status = measure(s, top, r, &run);
    if (status != MNP_OK)
        snprintf(r->error, sizeof r->error, "%.255s",
                 run.ctx ? mnp_last_error(run.ctx) : "out of memory");
    close_run(&run);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void print_head(FILE *out) {
    fprintf(out, "%-22s %-4s %9s %9s %8s %7s %7s %8s %8s %6s  %s\n", "shape", "", "ms", "ms, full",
            "MB", "GFLOP", "full", "floor", "bytes", "times", "options");
}

/* 0: not known. */
static void print_number(FILE *out, int width, int digits, double v) {
    if (v > 0)
        fprintf(out, "%*.*f ", width, digits, v);
    else
        fprintf(out, "%*s ", width, "-");
}

static void print_row(FILE *out, const shape_row *r) {
    const shape *at = &r->shape;
    fprintf(out, "%-22s %-4s ", at->name, r->math);
    if (*r->error) {
        fprintf(out, "%s\n", r->error);
        return;
    }
    const double floor = fmax(r->floor, r->floor_bytes);
    print_number(out, 9, 4, r->ms);
    print_number(out, 9, 4, r->ms_full);
    print_number(out, 8, 1, r->mb);
    print_number(out, 7, 1, r->gflop);
    print_number(out, 7, 1, r->gflop_full);
    print_number(out, 8, 4, r->floor);
    print_number(out, 8, 4, r->floor_bytes);
    print_number(out, 6, 1, floor > 0 ? r->ms_full / floor : 0);
    fprintf(out, " --model %s --preset %s --data %s %s%s%s%s\n", at->kind, at->preset, at->data,
            at->model, *at->model ? " " : "", at->train, at->general ? " --kernels general" : "");
    fflush(out);
}

/* ---- which rows ------------------------------------------------------------------------------ */

/* Is it in the list, names with commas between them? NULL has them all. */
static bool listed(const char *list, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = list; at; at = (at = strchr(at, ',')) ? at + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == 0 || at[length] == ',')) return true;
    return !list;
}

/* "random" has all combinations. */
static bool asked_for(const bench_setup *s, const char *name) {
    return listed(s->shapes, name) ||
           (strncmp(name, "random-", 7) == 0 && listed(s->shapes, "random"));
}

/* The k-th of all; false after the last. */
static bool shape_of(const bench_setup *s, int k, shape *out) {
    int n = 0;
    for (; shape_at(n); n++)
        if (n == k) *out = *shape_at(n);
    if (k >= n && k < n + s->random) shape_random(s->seed, k - n, out);
    return k < n + s->random;
}

static mnp_status check_names(bench_setup *s) {
    char name[SHAPE_NAME], meant[TEXT_NAMES];
    for (const char *at = s->shapes; at; at = (at = strchr(at, ',')) ? at + 1 : NULL) {
        shape one;
        bool found = s->random > 0 && strncmp(at, "random", strcspn(at, ",")) == 0;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        text_nearest near = text_nearest_to(name);
        for (int k = 0; shape_of(s, k, &one) && !found; k++) {
            found = strcmp(one.name, name) == 0;
            text_nearest_try(&near, one.name);
        }
        if (found) continue;
        snprintf(s->error, sizeof s->error, "there is no shape '%s'%s", name,
                 text_meant_or_all(meant, &near));
        return MNP_EINVAL;
    }
    return MNP_OK;
}

/* ---- the run --------------------------------------------------------------------------------- */

static mnp_status find_device(bench_setup *s, char *text, size_t size) {
    env e;
    env_init(&e);
    backend_choice device;
    mnp_status status = backend_choose(&e, s->device, &device);
    snprintf(text, size, "%s", "a processor");
    if (status == MNP_OK && device.b->describe) status = device.b->describe(&e, text, size);
    if (status != MNP_OK) snprintf(s->error, sizeof s->error, "%.511s", e.error);
    return status;
}

/* The multiply-add peak of as many threads as a row has; on a GPU it is not asked for. */
static mnp_status processor_peak(bench_setup *s, double *flop) {
    env e;
    pool *p = NULL;
    env_init(&e);
    *flop = 0;
    if (strcmp(s->device, "cpu") != 0) return MNP_OK;
    MNP_TRY(pool_create(&e, s->threads > 0 ? s->threads : pool_default_threads(), &p));
    *flop = bench_peak_threads(p, cpu_kernels_best(NULL)->isa);
    pool_destroy(p);
    return MNP_OK;
}

static shape_row *more_rows(bench_setup *s) {
    shape_row *all = realloc(s->rows, (size_t)(s->n_rows + 1) * sizeof *all);
    if (!all) {
        snprintf(s->error, sizeof s->error, "out of memory");
        return NULL;
    }
    s->rows = all;
    return &all[s->n_rows++];
}

static bool spent(const bench_setup *s, double start) {
    return (s->stopped && s->stopped()) || bench_seconds() - start > s->budget;
}

static mnp_status run_shape(bench_setup *s, const shape *at, const char *device, double peak) {
    static const char *const maths[] = {"fp32", "tf32", "bf16"};
    const bool gpu = strcmp(s->device, "cpu") != 0;
    for (int k = 0; k < (gpu ? 3 : 1); k++) {
        if (gpu && strcmp(s->math, "all") != 0 && strcmp(s->math, maths[k]) != 0) continue;
        shape_row *r = more_rows(s);
        if (!r) return MNP_ENOMEM;
        *r = (shape_row){.shape = *at, .math = maths[k]};
        r->shape.general |= strstr(s->device, "general") != NULL;
        if (s->same_batch) {
            const size_t used = strlen(at->train);
            snprintf(r->shape.train + used, sizeof at->train - used, " batch=%lld",
                     (long long)s->batch);
        }
        const peaks top = peaks_of(s, device, maths[k], peak);
        run_row(s, &top, r);
        print_row(s->report->out, r);
    }
    return MNP_OK;
}

mnp_status bench_shapes(bench_setup *s) {
    const double start = bench_seconds();
    char device[128];
    double peak;
    shape at;
    int left = 0;
    MNP_TRY(check_names(s));
    MNP_TRY(find_device(s, device, sizeof device));
    MNP_TRY(processor_peak(s, &peak));
    fprintf(s->report->out, "training steps at every shape, %s (%s)\n", s->device, device);
    print_head(s->report->out);
    for (int k = 0; shape_of(s, k, &at); k++) {
        if (!asked_for(s, at.name)) continue;
        if (spent(s, start))
            left++;
        else
            MNP_TRY(run_shape(s, &at, device, peak));
    }
    if (left > 0) fprintf(s->report->out, "%d shapes were left out: the time was spent\n", left);
    return MNP_OK;
}
