/* bench_predict.c: latency of prediction through the public interface on one thread, and how time
 * and memory grow with the number of context points. */
#include <math.h>
#include <stdlib.h>

#include "bench/bench_model.h"
#include "bench/peak.h"

enum { CONTEXT = 20, TARGETS = 128, REPEATS_MAX = 2000, REPEATS_MIN = 20 };

/* A smooth curve on [-2, 2]; x in no order. */
static void make_points(int64_t n, double *x, double *y) {
    uint32_t seed = 7;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = 4.0 * (double)(seed >> 8) * 0x1p-24 - 2.0;
        y[i] = sin(3.0 * x[i]);
    }
}

typedef struct asking {
    mnp_predictor *p;
    mnp_set context;
    double x[TARGETS], y[TARGETS];
    uint64_t seed;
    void *user;
} asking;

static void make_targets(asking *a) {
    for (int i = 0; i < TARGETS; i++) a->x[i] = -2.0 + 4.0 * i / (TARGETS - 1);
}

/* ---- the questions --------------------------------------------------------------------------- */

typedef mnp_status (*question)(asking *a);

static mnp_status condition(asking *a) {
    return mnp_predictor_condition(a->p, &a->context);
}
static mnp_status draw_latents(asking *a) {
    return mnp_predictor_draw_latents(a->p, a->seed++, 1);
}
static mnp_status predict(asking *a) {
    return mnp_predictor_predict(a->p, a->x, TARGETS, MNP_BASE_ZERO, a->y);
}
/* A new function from the same context. */
static mnp_status draw(asking *a) {
    MNP_TRY(draw_latents(a));
    return predict(a);
}
/* All of it: a set arrives, one draw leaves. */
static mnp_status whole(asking *a) {
    MNP_TRY(condition(a));
    return draw(a);
}
/* The set minus its last point is there; the last point arrives. */
static mnp_status observe(asking *a) {
    return mnp_predictor_observe(a->p, a->context.x + a->context.n - 1,
                                 a->context.y[a->context.n - 1]);
}
static mnp_status all_but_last(asking *a) {
    mnp_set before = {a->context.n - 1, a->context.x, a->context.y};
    return mnp_predictor_condition(a->p, &before);
}
static mnp_status observe_draw(asking *a) {
    MNP_TRY(observe(a));
    return draw(a);
}

typedef struct latency {
    double best, median;
} latency;

/* `before`, when there is one, is not timed. */
static mnp_status ask(asking *a, question q, question before, double seconds, latency *out) {
    static double took[REPEATS_MAX];
    const double end = bench_seconds() + seconds;
    int count = 0;
    for (int k = -3; k < REPEATS_MAX && (k < REPEATS_MIN || bench_seconds() < end); k++) {
        if (before) MNP_TRY(before(a));
        const double start = bench_seconds();
        MNP_TRY(q(a));
        if (k >= 0) took[count++] = bench_seconds() - start;
    }
    out->median = bench_median(took, count);
    out->best = took[0]; /* sorted by the median */
    return MNP_OK;
}

/* ---- latency --------------------------------------------------------------------------------- */

static mnp_status latencies(bench_setup *s, asking *a) {
    static const struct {
        const char *name;
        question q, before;
    } rows[] = {
        {"condition on 20 points", condition, NULL},
        {"draw latents", draw_latents, NULL},
        {"predict 128 targets", predict, NULL},
        {"new draw from the same context", draw, NULL},
        {"observe a 20th point", observe, all_but_last},
        {"observe it and draw", observe_draw, all_but_last},
        {"condition, draw latents, predict", whole, NULL},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    latency l[ROWS];
    FILE *out = s->report->out;
    fprintf(out, "prediction, paper preset, one thread, microseconds  best   median\n");
    for (int k = 0; k < ROWS; k++) {
        MNP_TRY(ask(a, rows[k].q, rows[k].before, s->seconds / ROWS, &l[k]));
        fprintf(out, "  %-44s %8.1f %8.1f\n", rows[k].name, 1e6 * l[k].best, 1e6 * l[k].median);
    }
    report_held(s->report, "draw_ms", "20 points in, one draw at 128 targets out",
                1e3 * l[ROWS - 1].best, "ms", REPORT_AT_MOST, 2.0);
    report_add(s->report, "observe_draw_ms", "one more observation, then a draw", 1e3 * l[5].best,
               "ms");
    return MNP_OK;
}

/* Makes a context of one thread, a model and a predictor, and hands them to `body`. */
static mnp_status with_predictor(bench_setup *s, const char *options, asking *a,
                                 mnp_status (*body)(bench_setup *, asking *)) {
    mnp_ctx_opts o = {.size = sizeof o, .threads = 1};
    mnp_ctx *ctx = NULL;
    mnp_model *model = NULL;
    mnp_status status = mnp_ctx_create(&o, &ctx);
    if (status == MNP_OK)
        status = mnp_model_create(ctx, "mnp", "paper", options, NULL, s->seed, &model);
    if (status == MNP_OK) status = mnp_predictor_create(ctx, model, NULL, &a->p);
    if (status == MNP_OK) status = body(s, a);
    if (status != MNP_OK && ctx) snprintf(s->error, sizeof s->error, "%s", mnp_last_error(ctx));
    mnp_predictor_destroy(a->p);
    a->p = NULL;
    mnp_model_destroy(model);
    mnp_ctx_destroy(ctx);
    return status;
}

mnp_status bench_predict(bench_setup *s) {
    double x[CONTEXT], y[CONTEXT];
    asking a = {.context = {CONTEXT, x, y}, .seed = s->seed};
    make_points(CONTEXT, x, y);
    make_targets(&a);
    return with_predictor(s, NULL, &a, latencies);
}

/* ---- long contexts --------------------------------------------------------------------------- */

enum { SIZES = 3, LONGEST = 100000 };
static const int64_t SIZE[SIZES] = {1000, 10000, LONGEST};

typedef struct growth {
    double seconds[SIZES], bytes[SIZES];
    int at; /* the size being measured */
} growth;

/* The best of a few runs by processor time; memory of the process while they ran. */
static mnp_status one_size(bench_setup *s, asking *a) {
    growth *g = a->user;
    double best = INFINITY;
    report_memory_reset();
    for (int k = 0; k < 4; k++) {
        const double start = bench_cpu_seconds();
        MNP_TRY(whole(a));
        best = fmin(best, bench_cpu_seconds() - start);
    }
    g->seconds[g->at] = best;
    g->bytes[g->at] = (double)report_memory_peak();
    fprintf(s->report->out, " %9.2f us %8.1f MB |", 1e6 * best / (double)a->context.n,
            1e-6 * g->bytes[g->at]);
    return MNP_OK;
}

static mnp_status one_encoder(bench_setup *s, const char *name, asking *a, growth *g) {
    char options[64];
    snprintf(options, sizeof options, "encoder=%s", name);
    fprintf(s->report->out, "  %-8s |", name);
    a->user = g;
    for (g->at = 0; g->at < SIZES; g->at++) {
        a->context.n = SIZE[g->at];
        MNP_TRY(with_predictor(s, options, a, one_size));
    }
    fprintf(s->report->out, "\n");
    return MNP_OK;
}

/* p of growth like n^p between the two longest sets: 1 is linear, 2 quadratic. */
static double power(const double y[SIZES]) {
    return log(y[2] / y[1]) / log((double)SIZE[2] / (double)SIZE[1]);
}

static const double LINEAR = 1.2; /* leaves room for falling out of the caches */

mnp_status bench_context(bench_setup *s) {
    double *x = malloc(2 * LONGEST * sizeof *x);
    if (!x) return MNP_ENOMEM;
    growth deepset = {.at = 0}, isab = {.at = 0};
    asking a = {.context = {LONGEST, x, x + LONGEST}, .seed = s->seed};
    make_points(LONGEST, x, x + LONGEST);
    make_targets(&a);
    fprintf(s->report->out,
            "long contexts, paper preset, one thread: time per point, memory of the process\n"
            "  %-8s | %23lld | %23lld | %23lld |\n",
            "points", (long long)SIZE[0], (long long)SIZE[1], (long long)SIZE[2]);
    mnp_status status = one_encoder(s, "deepset", &a, &deepset);
    if (status == MNP_OK) status = one_encoder(s, "isab", &a, &isab);
    free(x);
    if (status != MNP_OK) return status;
    bench_report *r = s->report;
    report_add(r, "context_deepset_s", "100 000 context points, Deep Sets", deepset.seconds[2],
               "s");
    report_add(r, "context_isab_s", "100 000 context points, ISAB", isab.seconds[2], "s");
    report_held(r, "context_deepset_power", "Deep Sets: time grows like points to the power",
                power(deepset.seconds), "", REPORT_AT_MOST, LINEAR);
    report_held(r, "context_isab_power", "ISAB: time grows like points to the power",
                power(isab.seconds), "", REPORT_AT_MOST, LINEAR);
    report_held(r, "context_memory_power", "memory (ISAB) grows like points to the power",
                power(isab.bytes), "", REPORT_AT_MOST, LINEAR);
    return MNP_OK;
}
