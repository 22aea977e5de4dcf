/* test_draws.c: mnp_predictor_draw() through the public interface. The functions stay the same
 * functions for all later queries, whatever the number of threads; what the report says of their
 * fit is what mnp_predictor_logp() says; a drawing that is stopped leaves the functions of before;
 * many contexts and maps draw as a predictor of their own does. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "check.h"
#include "mnp_map.h"

enum { N = 4, S = 16, PLACES = 5 };

static const double xs[N] = {-1, 0, 0.5, 1}, ys[N] = {3, 10, -2, 0};
static const double at[PLACES] = {-1.5, 0.2, 2, 0, 0.7};
static const char small[] = "T=2 rff=2 d_z=3 d_r=3 enc_width=4 head_hidden=4 flow_hidden=5 bins=3";
static const mnp_condition kinds[] = {MNP_NETWORK, MNP_REFINE, MNP_EXACT};

static bool stop; /* what the cancel callback answers */

static bool cancelled(void *user) {
    (void)user;
    return stop;
}

typedef struct world {
    mnp_ctx *ctx;
    mnp_data *data;
    mnp_model *model;
    mnp_predictor *p;
} world;

static world open_world(const char *process, int threads) {
    world w = {0};
    mnp_set set = {N, xs, ys};
    mnp_ctx_opts o = {.size = sizeof o, .threads = threads, .cancel = cancelled};
    CHECK(mnp_ctx_create(&o, &w.ctx) == MNP_OK);
    CHECK(mnp_data_from_sets(w.ctx, &set, 1, 1, &w.data) == MNP_OK); /* y is scaled */
    const char *options = strcmp(process, "mnp") == 0 ? small : NULL;
    CHECK(mnp_model_create(w.ctx, process, "tiny", options, w.data, 1, &w.model) == MNP_OK);
    CHECK(mnp_predictor_create(w.ctx, w.model, NULL, &w.p) == MNP_OK);
    CHECK(mnp_predictor_condition(w.p, &set) == MNP_OK);
    return w;
}

static void close_world(world *w) {
    mnp_predictor_destroy(w->p);
    mnp_model_destroy(w->model);
    mnp_data_destroy(w->data);
    mnp_ctx_destroy(w->ctx);
}

static mnp_draw_report draw(world *w, mnp_condition kind, uint64_t seed) {
    mnp_draw_opts o = {.size = sizeof o, .condition = kind, .samples = S, .seed = seed};
    mnp_draw_report r = {.size = sizeof r};
    CHECK(mnp_predictor_draw(w->p, &o, &r) == MNP_OK);
    CHECK(r.condition == kind);
    return r;
}

/* Bits, so that a NaN is itself; padding is not compared. */
static bool same_reports(const mnp_draw_report *a, const mnp_draw_report *b) {
    size_t from = offsetof(mnp_draw_report, particles), to = offsetof(mnp_draw_report, warnings);
    return a->condition == b->condition && a->warnings == b->warnings &&
           memcmp((const char *)a + from, (const char *)b + from, to - from) == 0;
}

/* ---- the functions --------------------------------------------------------------------------- */

static void same_functions(void) {
    double few[S * 2], all[S * PLACES];
    for (int k = 0; k < 6; k++) {
        world w = open_world(k < 3 ? "mnp" : "np", 2);
        draw(&w, kinds[k % 3], 5);
        CHECK(mnp_predictor_predict(w.p, at, 2, MNP_BASE_ZERO, few) == MNP_OK);
        CHECK(mnp_predictor_predict(w.p, at, PLACES, MNP_BASE_ZERO, all) == MNP_OK);
        for (int s = 0; s < S; s++)
            for (int i = 0; i < 2; i++) NEAR(few[s * 2 + i], all[s * PLACES + i], 1e-5, 1e-5);
        CHECK(fabs(all[0] - all[PLACES]) > 1e-6); /* two of them differ */
        close_world(&w);
    }
}

static void any_threads(void) {
    double y[3][S * PLACES];
    mnp_draw_report r[3];
    for (int k = 0; k < 3; k++) {
        for (int threads = 1; threads <= 3; threads++) {
            world w = open_world("mnp", threads);
            r[threads - 1] = draw(&w, kinds[k], 5);
            CHECK(mnp_predictor_predict(w.p, at, PLACES, MNP_BASE_NORMAL, y[threads - 1]) ==
                  MNP_OK);
            close_world(&w);
        }
        CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0 && memcmp(y[0], y[2], sizeof y[0]) == 0);
        CHECK(same_reports(&r[0], &r[1]) && same_reports(&r[0], &r[2]));
    }
}

/* As many particles as functions: the fit is the mean of their own log-densities. */
static void fits(void) {
    double logp[S * N];
    mnp_set set = {N, xs, ys};
    world w = open_world("mnp", 2);
    mnp_draw_report r = draw(&w, MNP_REFINE, 3);
    CHECK(r.particles == S && r.gradients == 31 && isnan(r.log_evidence));
    CHECK(mnp_predictor_logp(w.p, &set, logp) == MNP_OK);
    double mean = 0;
    for (int i = 0; i < S * N; i++) mean += logp[i] / (S * N);
    NEAR(r.fit_after, mean, 1e-4, 1e-4);
    r = draw(&w, MNP_EXACT, 3);
    CHECK(r.particles == 64 && isfinite(r.log_evidence) && r.log_evidence_sd >= 0);
    CHECK(r.particle_ess > 1 && r.particle_ess <= 64 && r.acceptance > 0 && r.acceptance <= 1);
    close_world(&w);
}

/* Without points the process's own functions, and nothing is claimed. */
static void no_points(void) {
    double prior[S * PLACES], y[S * PLACES];
    world w = open_world("mnp", 2);
    mnp_predictor_reset(w.p);
    CHECK(mnp_predictor_draw_latents(w.p, 9, S) == MNP_OK);
    CHECK(mnp_predictor_predict(w.p, at, PLACES, MNP_BASE_ZERO, prior) == MNP_OK);
    for (int k = 0; k < 3; k++) {
        mnp_draw_opts o = {.size = sizeof o, .condition = kinds[k], .samples = S, .seed = 9};
        mnp_draw_report r = {.size = sizeof r};
        CHECK(mnp_predictor_draw(w.p, &o, &r) == MNP_OK);
        CHECK(r.condition == MNP_NETWORK && r.particles == S && r.gradients == 0 &&
              r.warnings == 0 && isnan(r.acceptance) && isnan(r.fit_after));
        CHECK(mnp_predictor_predict(w.p, at, PLACES, MNP_BASE_ZERO, y) == MNP_OK);
        CHECK(memcmp(prior, y, sizeof y) == 0);
    }
    close_world(&w);
}

/* ---- progress and cancel --------------------------------------------------------------------- */

typedef struct seen {
    int64_t calls, last, total, stop_at;
    bool falls;
} seen;

static void watch(void *user, int64_t done, int64_t total) {
    seen *s = user;
    s->calls++;
    s->falls |= done < s->last || done > total;
    s->last = done, s->total = total;
    if (done >= s->stop_at) stop = true;
}

static void stopped(void) {
    double before[S * PLACES], after[S * PLACES];
    for (int k = 1; k < 3; k++) {
        world w = open_world("mnp", 2);
        seen s = {.stop_at = INT64_MAX};
        mnp_draw_opts o = {.size = sizeof o,
                           .condition = kinds[k],
                           .samples = S,
                           .gradients = 40,
                           .progress = watch,
                           .progress_user = &s};
        CHECK(mnp_predictor_draw(w.p, &o, NULL) == MNP_OK);
        CHECK(s.calls > 1 && !s.falls && s.total == 40);
        CHECK(mnp_predictor_predict(w.p, at, PLACES, MNP_BASE_NORMAL, before) == MNP_OK);
        s = (seen){.stop_at = 10};
        o.samples = 2 * S, o.seed = 4;
        CHECK(mnp_predictor_draw(w.p, &o, NULL) == MNP_ECANCELLED);
        CHECK(s.last == 10);
        stop = false;
        CHECK(mnp_predictor_predict(w.p, at, PLACES, MNP_BASE_NORMAL, after) == MNP_OK);
        CHECK(memcmp(before, after, sizeof after) == 0);
        s = (seen){.stop_at = INT64_MAX}; /* and it can be done again */
        CHECK(mnp_predictor_draw(w.p, &o, NULL) == MNP_OK && s.calls > 1);
        close_world(&w);
    }
}

/* Of a large set every way of drawing tells how far it is, and can be stopped on the way: one
 * gradient of all particles may take minutes then. */
enum { MANY = 600, GRADIENTS = 5 };

static world open_large(mnp_condition kind, int threads, seen *s, mnp_draw_opts *o) {
    double x[MANY], y[MANY];
    for (int i = 0; i < MANY; i++) x[i] = 2 * sin(i), y[i] = cos(3 * x[i]);
    world w = open_world("mnp", threads);
    *s = (seen){.stop_at = INT64_MAX};
    *o = (mnp_draw_opts){.size = sizeof *o,
                         .condition = kind,
                         .samples = S,
                         .gradients = GRADIENTS,
                         .progress = watch,
                         .progress_user = s};
    CHECK(mnp_predictor_condition(w.p, &(mnp_set){MANY, x, y}) == MNP_OK);
    return w;
}

static void of_many_points(void) {
    double before[S * PLACES], after[S * PLACES];
    for (int k = 0; k < 3; k++) {
        seen s;
        mnp_draw_opts o;
        mnp_draw_report r = {.size = sizeof r};
        world w = open_large(kinds[k], 1, &s, &o);
        CHECK(mnp_predictor_draw(w.p, &o, &r) == MNP_OK);
        CHECK(s.calls > 10 && !s.falls && s.last == s.total);
        CHECK(s.total == (k == 0 ? S : (GRADIENTS + 1) * r.particles));
        CHECK(mnp_predictor_predict(w.p, at, PLACES, MNP_BASE_NORMAL, before) == MNP_OK);
        o.seed = 4;
        s = (seen){.stop_at = 1};
        CHECK(mnp_predictor_draw(w.p, &o, NULL) == MNP_ECANCELLED);
        CHECK(s.last == 1); /* long before the first of all gradients */
        stop = false;
        CHECK(mnp_predictor_predict(w.p, at, PLACES, MNP_BASE_NORMAL, after) == MNP_OK);
        CHECK(memcmp(before, after, sizeof after) == 0);
        close_world(&w);
    }
}

/* Threads that go on with their functions take nothing back. How much this one gets to do, and thus
 * tells, is chance. */
static void of_many_points_by_threads(void) {
    for (int k = 0; k < 3; k++) {
        seen s;
        mnp_draw_opts o;
        world w = open_large(kinds[k], 4, &s, &o);
        CHECK(mnp_predictor_draw(w.p, &o, NULL) == MNP_OK);
        CHECK(!s.falls && s.last <= s.total);
        close_world(&w);
    }
}

/* ---- many contexts, maps --------------------------------------------------------------------- */

static void many_contexts(void) {
    enum { CONTEXTS = 3 };
    mnp_set contexts[CONTEXTS] = {{N, xs, ys}, {0, NULL, NULL}, {2, xs, ys}};
    mnp_set targets = {PLACES, at, NULL};
    double mean[CONTEXTS * PLACES], alone[PLACES];
    for (int k = 0; k < 3; k++) {
        world w = open_world("mnp", 2);
        mnp_draw_report reports[CONTEXTS] = {{0}};
        for (int c = 0; c < CONTEXTS; c++) reports[c].size = sizeof *reports;
        mnp_many_opts o = {.size = sizeof o,
                           .samples = S,
                           .seed = 40,
                           .condition = kinds[k],
                           .gradients = 20,
                           .reports = reports};
        mnp_summary s = {.size = sizeof s, .mean = mean};
        CHECK(mnp_predict_many(w.ctx, w.model, contexts, CONTEXTS, &targets, 1, &o, &s) == MNP_OK);
        for (int c = 0; c < CONTEXTS; c++) {
            mnp_draw_opts d = {.size = sizeof d,
                               .condition = kinds[k],
                               .samples = S,
                               .gradients = 20,
                               .seed = 40 + (uint64_t)c};
            mnp_draw_report r = {.size = sizeof r};
            s.mean = alone;
            CHECK(mnp_predictor_condition(w.p, &contexts[c]) == MNP_OK);
            CHECK(mnp_predictor_draw(w.p, &d, &r) == MNP_OK);
            CHECK(mnp_predictor_summary(w.p, at, PLACES, MNP_BASE_ZERO, &s) == MNP_OK);
            CHECK(memcmp(alone, mean + c * PLACES, sizeof alone) == 0);
            CHECK(same_reports(&r, &reports[c]));
        }
        close_world(&w);
    }
}

static void maps(void) {
    static const double places[4] = {-0.5, -0.5, 0.5, 0.25};
    const mnp_map_frame frame = {.rows = 2, .cols = 3, .lo = {-1, -1}, .hi = {1, 1}};
    const mnp_set wells = {2, places, (double[]){1, -1}};
    mnp_model *two = NULL;
    mnp_predictor *p = NULL;
    world w = open_world("mnp", 2);
    CHECK(mnp_model_create(w.ctx, "np", "tiny", "x_dim=2", NULL, 1, &two) == MNP_OK);
    CHECK(mnp_predictor_create(w.ctx, two, NULL, &p) == MNP_OK);
    CHECK(mnp_predictor_condition(p, &wells) == MNP_OK);
    for (int k = 0; k < 3; k++) {
        seen s = {.stop_at = INT64_MAX};
        mnp_draw_report r[2] = {{.size = sizeof *r}, {.size = sizeof *r}};
        float draws[S * 6];
        double y[S];
        mnp_map_opts o = {.size = sizeof o,
                          .samples = S,
                          .seed = 6,
                          .condition = kinds[k],
                          .gradients = 20,
                          .progress = watch,
                          .progress_user = &s};
        mnp_map to = {.size = sizeof to, .draws = draws, .report = &r[0]};
        mnp_draw_opts d = {
            .size = sizeof d, .condition = kinds[k], .samples = S, .gradients = 20, .seed = 6};
        CHECK(mnp_map_make(w.ctx, two, &frame, &wells, &o, &to) == MNP_OK);
        CHECK(mnp_predictor_draw(p, &d, &r[1]) == MNP_OK);
        CHECK(same_reports(&r[0], &r[1]) && (s.calls > 0) == (k > 0));
        CHECK(mnp_predictor_predict(p, (double[]){-1, -1}, 1, MNP_BASE_ZERO, y) == MNP_OK);
        for (int i = 0; i < S; i++) NEAR(draws[i * 6], y[i], 1e-5, 1e-5);
    }
    mnp_predictor_destroy(p);
    mnp_model_destroy(two);
    close_world(&w);
}

int main(void) {
    RUN(same_functions);
    RUN(any_threads);
    RUN(fits);
    RUN(no_points);
    RUN(stopped);
    RUN(of_many_points);
    RUN(of_many_points_by_threads);
    RUN(many_contexts);
    RUN(maps);
    return check_done();
}
