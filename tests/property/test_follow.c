/* test_follow.c: particles that follow a growing set, against brute force. A quarter of a million
 * draws of the prior, weighted by p(y | z), say what the conditional of every set is: no inference
 * network, no gradient, no move and no earlier set takes part. Then what a predictor promises: the
 * same bits for any number of threads, a failure that leaves what was there, and when particles
 * begin afresh. */
#include "lab.h"
#include "run/predict.h"

enum { N = 9, FROM = 4, TARGETS = 3, DRAWS = 32768, ROUNDS = 4, RUNS = 24, SAMPLES = 64 };
enum { MEANS = 2 * TARGETS }; /* of f and f^2 at the targets */

#define SMALL "rff=2 d_r=4 head_hidden=5 enc_width=4 heads=2 n_inducing=2 flow_hidden=6 "

static const double target[TARGETS] = {-1.2, 0.1, 0.9};

typedef struct points {
    double x[N], y[N];
} points;

static points curve(void) {
    points p;
    for (int i = 0; i < N; i++) {
        p.x[i] = 1.5 * sin(1.0 + 2.3 * i);
        p.y[i] = 0.8 * cos(1.7 * i) - (i < FROM ? 0.2 : 0.8); /* the later ones surprise */
    }
    return p;
}

static void good(const lab *l, mnp_status status) {
    if (status != MNP_OK) fprintf(stderr, "%s\n", l->env.error);
    CHECK(status == MNP_OK);
}

/* ---- brute force ----------------------------------------------------------------------------- */

typedef struct truth {
    double log_rise, log_rise_se; /* log p(all points) - log p(the first ones) */
    double mean[MEANS], se[MEANS];
} truth;

typedef struct sums {
    double v, vv, vw, w, ww, wf[MEANS], wwf[MEANS], wwff[MEANS];
} sums;

static void add_draws(const double *logp, const double *f, sums *to) {
    for (int d = 0; d < DRAWS; d++) {
        double first = 0, all = 0, v, w;
        for (int i = 0; i < N; i++) {
            all += logp[d * N + i];
            if (i < FROM) first += logp[d * N + i];
        }
        v = exp(first), w = exp(all);
        to->v += v, to->vv += v * v, to->vw += v * w, to->w += w, to->ww += w * w;
        for (int k = 0; k < MEANS; k++) {
            double at = f[d * TARGETS + k % TARGETS], value = k < TARGETS ? at : at * at;
            to->wf[k] += w * value;
            to->wwf[k] += w * w * value, to->wwff[k] += w * w * value * value;
        }
    }
}

static truth brute_force(lab *l, const points *p) {
    static double logp[DRAWS * N], f[DRAWS * TARGETS];
    predictor *prior = NULL;
    sums all = {0};
    truth t;
    good(l, predictor_create(&l->env, l->m, NULL, (backend_choice){0}, &prior));
    for (int r = 0; r < ROUNDS; r++) {
        good(l, predictor_draw_latents(prior, 100 + (uint64_t)r, DRAWS));
        good(l, predictor_logp(prior, p->x, p->y, N, logp));
        good(l, predictor_predict(prior, target, TARGETS, PREDICT_ZERO, f));
        add_draws(logp, f, &all);
    }
    predictor_destroy(prior);
    t.log_rise = log(all.w / all.v);
    t.log_rise_se =
        sqrt(all.ww / all.w / all.w + all.vv / all.v / all.v - 2 * all.vw / all.v / all.w);
    for (int k = 0; k < MEANS; k++) {
        double m = t.mean[k] = all.wf[k] / all.w;
        t.se[k] = sqrt(fmax(all.wwff[k] - 2 * m * all.wwf[k] + m * m * all.ww, 0)) / all.w;
    }
    return t;
}

/* ---- following ------------------------------------------------------------------------------- */

/* What came of one predictor that saw `step` points at a time. */
typedef struct outcome {
    double rise, evidence_rise; /* sum of log_added; last log_evidence - first one */
    double evidence, sd;        /* the last log_evidence, and what it says of its error */
    double f[SAMPLES * TARGETS];
    int moved, weighed;
} outcome;

static void observe(lab *l, predictor *p, const points *at, int from, int count) {
    for (int i = from; i < from + count; i++) good(l, predictor_observe(p, at->x + i, at->y[i]));
}

/* The variance of the log evidence grows by that of the mean weight. */
static void weights_are_uncertain(const mnp_draw_report *placed, const mnp_draw_report *r) {
    double ess = SAMPLES * r->particle_ess / placed->particle_ess;
    double grown = pow(r->log_evidence_sd, 2) - pow(placed->log_evidence_sd, 2);
    NEAR(grown, 1 / ess - 1.0 / SAMPLES, 1e-9, 1e-9);
}

static void run(lab *l, pool *workers, const points *at, int step, uint64_t seed, outcome *out) {
    predictor *p = NULL;
    mnp_draw_report r, placed;
    mnp_draw_opts o = {.condition = MNP_EXACT, .samples = SAMPLES, .gradients = 300, .seed = seed};
    *out = (outcome){0};
    good(l, predictor_create(&l->env, l->m, workers, (backend_choice){0}, &p));
    good(l, predictor_condition(p, at->x, at->y, FROM));
    good(l, predictor_draw(p, &o, &r));
    CHECK(r.added == 0 && isnan(r.log_added) && !r.moved);
    double before = r.log_evidence;
    placed = r;
    for (int i = FROM; i < N; i += step) {
        int count = N - i < step ? N - i : step;
        observe(l, p, at, i, count);
        good(l, predictor_draw(p, &o, &r));
        CHECK(r.added == count && r.particles == SAMPLES && r.condition == MNP_EXACT);
        CHECK(r.moved == (r.gradients > 0) && (r.moved || r.particle_ess < SAMPLES));
        if (r.moved)
            placed = r;
        else
            weights_are_uncertain(&placed, &r);
        out->rise += r.log_added;
        *(r.moved ? &out->moved : &out->weighed) += 1;
    }
    out->evidence_rise = r.log_evidence - before;
    out->evidence = r.log_evidence, out->sd = r.log_evidence_sd;
    good(l, predictor_predict(p, target, TARGETS, PREDICT_ZERO, out->f));
    predictor_destroy(p);
}

/* Within 4.5 standard errors of the two. */
static void agree(const char *what, const double *got, double want, double want_se, double most) {
    double mean = 0, squares = 0;
    for (int k = 0; k < RUNS; k++) mean += got[k] / RUNS;
    for (int k = 0; k < RUNS; k++) squares += (got[k] - mean) * (got[k] - mean);
    double se = sqrt(squares / (RUNS - 1) / RUNS + want_se * want_se);
    if (getenv("MNP_TEST_TELL"))
        printf("  %-10s %8.4f, brute force %8.4f, se %.4f\n", what, mean, want, se);
    CHECK(se <= most);
    check_near(__FILE__, __LINE__, what, mean, want, 4.5 * se, 0);
}

/* Estimates spread as they say themselves. */
static void agree_spread(const double *got, const double *said) {
    double mean = 0, spread = 0, expected = 0;
    for (int k = 0; k < RUNS; k++) mean += got[k] / RUNS, expected += said[k] * said[k] / RUNS;
    for (int k = 0; k < RUNS; k++) spread += (got[k] - mean) * (got[k] - mean) / (RUNS - 1);
    if (getenv("MNP_TEST_TELL"))
        printf("  variance of the evidence %.4f, expected %.4f\n", spread, expected);
    CHECK(spread < 3 * expected && spread > 0.3 * expected);
}

static void follows(lab *l, const points *p, const truth *t, int step) {
    static double ratio[RUNS], evidence[RUNS], sd[RUNS], mean[MEANS][RUNS];
    static outcome one;
    int moved = 0, weighed = 0;
    char what[32];
    memset(mean, 0, sizeof mean);
    for (int k = 0; k < RUNS; k++) {
        run(l, NULL, p, step, 50 + (uint64_t)k, &one);
        NEAR(one.evidence_rise, one.rise, 1e-9, 1e-9);
        ratio[k] = exp(one.rise - t->log_rise);
        evidence[k] = one.evidence, sd[k] = one.sd;
        moved += one.moved, weighed += one.weighed;
        for (int s = 0; s < SAMPLES; s++)
            for (int j = 0; j < MEANS; j++) {
                double v = one.f[s * TARGETS + j % TARGETS];
                mean[j][k] += (j < TARGETS ? v : v * v) / SAMPLES;
            }
    }
    if (getenv("MNP_TEST_TELL")) printf("  moved %d, weighed %d\n", moved, weighed);
    CHECK(moved > 0 && weighed > 0);
    agree("density", ratio, 1, t->log_rise_se, 0.2);
    agree_spread(evidence, sd);
    for (int j = 0; j < MEANS; j++) {
        snprintf(what, sizeof what, "mean %d", j);
        agree(what, mean[j], t->mean[j], t->se[j], 0.1);
    }
}

/* One by one, and by twos: other bits, the same conditional. */
static void agrees_with_brute_force(void) {
    static const char *const kinds[][2] = {
        {"mnp", SMALL "T=2 d_z=1 transition=affine"},
        {"np", SMALL "d_z=2 encoder=deepset sigma_floor=0.1"},
    };
    points p = curve();
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        lab l;
        CASE(kinds[k][1]);
        if (!lab_open(&l, kinds[k][0], kinds[k][1], 3)) return;
        lab_randomise(&l, k == 0 ? 1.0 : 1.1, 17);
        truth t = brute_force(&l, &p);
        follows(&l, &p, &t, 1);
        follows(&l, &p, &t, 2);
        lab_close(&l);
    }
}

/* ---- promises -------------------------------------------------------------------------------- */

static bool open_one(lab *l) {
    if (!lab_open(l, "mnp", SMALL "T=2 d_z=2 transition=affine", 3)) return false;
    lab_randomise(l, 0.8, 17);
    return true;
}

static void same_bits(void) {
    static outcome first, now;
    points p = curve();
    lab l;
    if (!open_one(&l)) return;
    run(&l, NULL, &p, 1, 5, &first);
    for (int threads = 1; threads <= 3; threads++) {
        pool *workers = NULL;
        good(&l, pool_create(&l.env, threads, &workers));
        run(&l, workers, &p, 1, 5, &now);
        CHECK(memcmp(&now, &first, sizeof now) == 0);
        pool_destroy(workers);
    }
    run(&l, NULL, &p, 1, 6, &now);
    CHECK(now.rise != first.rise);
    lab_close(&l);
}

static bool at_once(void *user) {
    (void)user;
    return true;
}

/* The functions, and what they say, are those before the failure; the next drawing goes well. */
static void failure_leaves_the_functions(void) {
    double before[SAMPLES * TARGETS], after[SAMPLES * TARGETS];
    points at = curve();
    predictor *p = NULL;
    mnp_draw_report r;
    mnp_draw_opts o = {.condition = MNP_EXACT, .samples = SAMPLES, .gradients = 300, .seed = 3};
    lab l;
    if (!open_one(&l)) return;
    good(&l, predictor_create(&l.env, l.m, NULL, (backend_choice){0}, &p));
    good(&l, predictor_condition(p, at.x, at.y, FROM));
    good(&l, predictor_draw(p, &o, &r));
    good(&l, predictor_predict(p, target, TARGETS, PREDICT_ZERO, before));
    CHECK(predictor_observe(p, at.x + FROM, NAN) != MNP_OK && predictor_count(p) == FROM);
    good(&l, predictor_extend(p, at.x + FROM, at.y[FROM] + 3)); /* far off: they must move */
    l.env.cancel = at_once;
    CHECK(predictor_draw(p, &o, &r) == MNP_ECANCELLED);
    l.env.cancel = NULL;
    good(&l, predictor_predict(p, target, TARGETS, PREDICT_ZERO, after));
    CHECK(memcmp(before, after, sizeof before) == 0);
    good(&l, predictor_draw(p, &o, &r));
    CHECK(r.added == 0 && r.gradients > 0); /* afresh */
    predictor_destroy(p);
    lab_close(&l);
}

static void draws(lab *l, predictor *p, const mnp_draw_opts *o, int64_t added) {
    mnp_draw_report r;
    good(l, predictor_draw(p, o, &r));
    CHECK(r.added == added);
}

static void begins_afresh(void) {
    points at = curve();
    predictor *p = NULL;
    mnp_draw_opts o = {.condition = MNP_EXACT, .samples = 7, .gradients = 100, .seed = 3};
    lab l;
    if (!open_one(&l)) return;
    good(&l, predictor_create(&l.env, l.m, NULL, (backend_choice){0}, &p));
    good(&l, predictor_condition(p, at.x, at.y, FROM));
    draws(&l, p, &o, 0);
    draws(&l, p, &o, 0); /* nothing is new */
    observe(&l, p, &at, FROM, 1);
    o.samples = 9; /* of the same 64 particles */
    draws(&l, p, &o, 1);
    observe(&l, p, &at, FROM, 1);
    o.seed = 4;
    draws(&l, p, &o, 0);
    observe(&l, p, &at, FROM, 1);
    o.gradients = 105;
    draws(&l, p, &o, 0);
    observe(&l, p, &at, FROM, 1);
    o.condition = MNP_REFINE;
    draws(&l, p, &o, 0);
    observe(&l, p, &at, FROM, 2);
    draws(&l, p, &o, 0); /* chains do not follow */
    o.condition = MNP_EXACT;
    draws(&l, p, &o, 0);
    observe(&l, p, &at, 0, 6);
    draws(&l, p, &o, 0); /* more than half of the 10 before */
    good(&l, predictor_condition(p, at.x, at.y, N));
    observe(&l, p, &at, FROM, 1);
    draws(&l, p, &o, 0); /* another set */
    predictor_destroy(p);
    lab_close(&l);
}

/* Asked again without a new point, particles that followed give the functions of before. */
static void stays_without_new_points(void) {
    double first[TARGETS], again[TARGETS];
    points at = curve();
    predictor *p = NULL;
    mnp_draw_opts o = {.condition = MNP_EXACT, .samples = 1, .gradients = 100, .seed = 3};
    lab l;
    if (!open_one(&l)) return;
    good(&l, predictor_create(&l.env, l.m, NULL, (backend_choice){0}, &p));
    good(&l, predictor_condition(p, at.x, at.y, FROM));
    draws(&l, p, &o, 0);
    observe(&l, p, &at, FROM, 1);
    draws(&l, p, &o, 1);
    good(&l, predictor_predict(p, target, TARGETS, PREDICT_ZERO, first));
    draws(&l, p, &o, 0);
    good(&l, predictor_predict(p, target, TARGETS, PREDICT_ZERO, again));
    CHECK(memcmp(first, again, sizeof first) == 0);
    predictor_destroy(p);
    lab_close(&l);
}

/* Chains are those of the set, however it came together. */
static void refine_knows_the_set_alone(void) {
    double grown[TARGETS], whole[TARGETS];
    points at = curve();
    predictor *p = NULL;
    mnp_draw_opts o = {.condition = MNP_REFINE, .samples = 1, .gradients = 30, .seed = 3};
    lab l;
    if (!open_one(&l)) return;
    good(&l, predictor_create(&l.env, l.m, NULL, (backend_choice){0}, &p));
    good(&l, predictor_condition(p, at.x, at.y, FROM));
    for (int i = FROM; i < N; i++) {
        draws(&l, p, &o, 0);
        observe(&l, p, &at, i, 1);
    }
    draws(&l, p, &o, 0);
    good(&l, predictor_predict(p, target, TARGETS, PREDICT_ZERO, grown));
    good(&l, predictor_condition(p, at.x, at.y, N));
    draws(&l, p, &o, 0);
    good(&l, predictor_predict(p, target, TARGETS, PREDICT_ZERO, whole));
    CHECK(memcmp(grown, whole, sizeof grown) == 0);
    predictor_destroy(p);
    lab_close(&l);
}

int main(void) {
    RUN(agrees_with_brute_force);
    RUN(same_bits);
    RUN(failure_leaves_the_functions);
    RUN(begins_afresh);
    RUN(stays_without_new_points);
    RUN(refine_knows_the_set_alone);
    return check_done();
}
