/* bench_serve.c: how many requests of the explorer the cores of this machine could answer: 20
 * points in, 50 functions of the network, mean, sd and quantiles at 128 places out. By the
 * library's calls alone, and by the service with its JSON; lab/serve/load.sh puts the server beside
 * them. Every request has points and a seed of its own, so that nothing is there already. */
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/bench_model.h"
#include "bench/peak.h"
#include "serve/service.h"

enum { CONTEXT = 20, PLACES = 128, FUNCTIONS = 50, LEVELS = 5, THREADS_MAX = 256, ROUNDS = 5 };

typedef struct asker {
    const mnp_model *model;
    const service *service; /* NULL: the library alone */
    double until;
    int number;
    int64_t answered;
    mnp_status status;
    pthread_t thread;
} asker;

static void make_points(uint64_t seed, double *x, double *y) {
    for (int i = 0; i < CONTEXT; i++) {
        x[i] = -2.0 + 4.0 * i / CONTEXT + 1e-6 * (double)(seed % 65536);
        y[i] = sin(3.0 * x[i]);
    }
}

/* ---- the library ----------------------------------------------------------------------------- */

static mnp_status ask_library(mnp_predictor *p, uint64_t seed, const mnp_summary *out) {
    double x[CONTEXT], y[CONTEXT], at[PLACES];
    mnp_draw_opts o = {.size = sizeof o, .seed = seed, .samples = FUNCTIONS};
    make_points(seed, x, y);
    for (int i = 0; i < PLACES; i++) at[i] = -2.0 + 4.0 * i / (PLACES - 1);
    MNP_TRY(mnp_predictor_condition(p, &(mnp_set){CONTEXT, x, y}));
    MNP_TRY(mnp_predictor_draw(p, &o, NULL));
    return mnp_predictor_summary(p, at, PLACES, MNP_BASE_NORMAL, out);
}

static void *run_library(void *arg) {
    static const double level[LEVELS] = {0.05, 0.25, 0.5, 0.75, 0.95};
    asker *a = arg;
    double mean[PLACES], sd[PLACES], quantiles[LEVELS * PLACES];
    mnp_summary out = {.size = sizeof out,
                       .levels = LEVELS,
                       .level = level,
                       .mean = mean,
                       .sd = sd,
                       .quantiles = quantiles};
    mnp_ctx_opts one = {.size = sizeof one, .threads = 1};
    mnp_ctx *ctx = NULL;
    mnp_predictor *p = NULL;
    a->status = mnp_ctx_create(&one, &ctx);
    if (a->status == MNP_OK) a->status = mnp_predictor_create(ctx, a->model, NULL, &p);
    while (a->status == MNP_OK && bench_seconds() < a->until)
        a->status = ask_library(p, (uint64_t)(a->number + 1000 * ++a->answered), &out);
    mnp_predictor_destroy(p);
    mnp_ctx_destroy(ctx);
    return NULL;
}

/* ---- the service ----------------------------------------------------------------------------- */

static void put_request(buf *to, const char *name, uint64_t seed) {
    double x[CONTEXT], y[CONTEXT];
    make_points(seed, x, y);
    buf_clear(to);
    buf_printf(to,
               "{\"model\":\"%s\",\"grid\":[-2,2,%d],\"samples\":%d,\"condition\":\"network\","
               "\"seed\":%llu,\"context\":{\"x\":[",
               name, PLACES, FUNCTIONS, (unsigned long long)seed);
    for (int i = 0; i < CONTEXT; i++) {
        if (i) buf_text(to, ",");
        buf_double(to, x[i]);
    }
    buf_text(to, "],\"y\":[");
    for (int i = 0; i < CONTEXT; i++) {
        if (i) buf_text(to, ",");
        buf_double(to, y[i]);
    }
    buf_text(to, "]}}");
}

static void *run_service(void *arg) {
    asker *a = arg;
    service_worker *w = NULL;
    env e;
    buf body, reply;
    env_init(&e);
    buf_init(&body, &e);
    buf_init(&reply, &e);
    a->status = service_worker_create(a->service, 1, &w);
    while (a->status == MNP_OK && bench_seconds() < a->until) {
        put_request(&body, service_model_name(a->service, 0),
                    (uint64_t)(a->number + 1000 * ++a->answered));
        if (service_answer(w, "predict", buf_str(&body), body.len, NULL, &reply) != 200)
            a->status = MNP_EINVAL;
    }
    service_worker_destroy(w);
    buf_free(&body);
    buf_free(&reply);
    return NULL;
}

/* ---- rates ----------------------------------------------------------------------------------- */

typedef struct rate {
    double per_second; /* of the best round */
    double cost;       /* seconds of a core for one request, over all rounds */
    double cpu;
    int64_t answered;
} rate;

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static mnp_status run_round(const asker *like, void *(*run)(void *), int threads, double seconds,
                            rate *r) {
    static asker askers[THREADS_MAX];
    double start = bench_seconds(), cpu = cpu_seconds();
    int64_t answered = 0;
    int started = 0;
    mnp_status status = MNP_OK;
    for (; started < threads; started++) {
        asker *a = &askers[started];
        *a = *like;
        a->number = started;
        a->until = start + seconds;
        if (pthread_create(&a->thread, NULL, run, a) != 0) break;
    }
    if (started < threads) status = MNP_ENOMEM;
    for (int k = 0; k < started; k++) {
        pthread_join(askers[k].thread, NULL);
        answered += askers[k].answered;
        if (askers[k].status != MNP_OK) status = askers[k].status;
    }
    double per_second = (double)answered / (bench_seconds() - start);
    if (per_second > r->per_second) r->per_second = per_second;
    r->cpu += cpu_seconds() - cpu;
    r->answered += answered;
    r->cost = r->answered > 0 ? r->cpu / (double)r->answered : 0;
    return status;
}

/* The two take turns, so that a busy neighbour meets both. */
static mnp_status measure(bench_setup *s, const asker *with, int threads) {
    rate library = {0}, served = {0};
    for (int k = 0; k < ROUNDS; k++) {
        MNP_TRY(run_round(with, run_library, threads, s->seconds / ROUNDS, &library));
        MNP_TRY(run_round(with, run_service, threads, s->seconds / ROUNDS, &served));
    }
    fprintf(s->report->out,
            "20 points in, 50 functions, 128 places out, %d threads  requests/s  core ms\n"
            "  %-44s %16.1f %8.3f\n  %-44s %16.1f %8.3f\n",
            threads, "the library's calls", library.per_second, 1e3 * library.cost,
            "the service, JSON in and out", served.per_second, 1e3 * served.cost);
    report_add(s->report, "library_per_second", "requests by the library's calls",
               library.per_second, "/s");
    report_add(s->report, "library_core_ms", "a core's time for one", 1e3 * library.cost, "ms");
    report_add(s->report, "service_per_second", "requests by the service", served.per_second, "/s");
    report_add(s->report, "service_core_ms", "a core's time for one", 1e3 * served.cost, "ms");
    return MNP_OK;
}

/* A model file as the server loads it, or an untrained one of the paper's size. */
static mnp_status add_model(bench_setup *s, mnp_ctx *ctx, service *sv, mnp_model **out) {
    size_t bytes = 0;
    if (s->model) {
        MNP_TRY(mnp_model_load(ctx, s->model, out));
    } else {
        MNP_TRY(mnp_model_create(ctx, "mnp", "paper", NULL, NULL, s->seed, out));
    }
    MNP_TRY(mnp_model_save_memory(ctx, *out, NULL, 0, &bytes));
    env e;
    env_init(&e);
    void *data = env_alloc(&e, bytes, 1, "a model");
    mnp_status status = data ? mnp_model_save_memory(ctx, *out, data, bytes, &bytes) : MNP_ENOMEM;
    if (status == MNP_OK) status = service_load_memory(sv, "bench", data, bytes);
    env_free(&e, data);
    return status;
}

mnp_status bench_serve(bench_setup *s) {
    mnp_ctx *ctx = NULL;
    service *sv = NULL;
    mnp_model *model = NULL;
    int threads = s->threads > 0 ? s->threads : 2;
    mnp_status status =
        mnp_ctx_create(&(mnp_ctx_opts){.size = sizeof(mnp_ctx_opts), .threads = 1}, &ctx);
    if (status == MNP_OK) status = service_create(NULL, &sv);
    if (status == MNP_OK) status = add_model(s, ctx, sv, &model);
    asker with = {.model = model, .service = sv};
    if (status == MNP_OK) status = measure(s, &with, threads < THREADS_MAX ? threads : THREADS_MAX);
    if (status != MNP_OK)
        snprintf(s->error, sizeof s->error, "%s",
                 ctx && *mnp_last_error(ctx) ? mnp_last_error(ctx) : mnp_status_name(status));
    mnp_model_destroy(model);
    service_destroy(sv);
    mnp_ctx_destroy(ctx);
    return status;
}
