/* test_turn.c: draws on a great circle, through mnp_draw_opts.towards and angle. At its ends the
 * functions are those of the two seeds; between them the latents are where geometry puts them, the
 * law of the functions is the same, and they move without a jump. */
#include <string.h>

#include "base/pool.h"
#include "lab.h"
#include "run/predict_internal.h"

enum { N = 6, S = 11, PLACES = 4, SEED = 3, TOWARDS = 8 };
#define HALF_PI 1.57079632679489661923
#define SMALL   "rff=2 d_r=4 head_hidden=5 enc_width=4 heads=2 n_inducing=2 flow_hidden=6 d_z=5 "

/* A chain; one step whose latents are those of a running sum; a Neural Process. */
static const char *const kinds[][2] = {{"mnp", SMALL "T=3 transition=rqs bins=4"},
                                       {"mnp", SMALL "T=1 transition=affine encoder=deepset"},
                                       {"np", SMALL}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const double xs[N] = {-1.5, -0.7, -0.2, 0.4, 1.1, 1.6};
static const double ys[N] = {0.3, -0.4, 0.1, 0.9, -1.2, 0.5};
static const double at[PLACES] = {-1.8, -0.1, 0.8, 1.9};

static bool open_kind(lab *l, int kind) {
    CASE(kinds[kind][1]);
    if (!lab_open(l, kinds[kind][0], kinds[kind][1], 2)) return false;
    lab_randomise(l, 1.5, 4);
    return true;
}

static predictor *ask(lab *l, pool *workers, int64_t points) {
    predictor *p = NULL;
    CHECK(predictor_create(&l->env, l->m, workers, (backend_choice){0}, &p) == MNP_OK);
    CHECK(predictor_condition(p, xs, ys, points) == MNP_OK);
    return p;
}

static void turn_to(predictor *p, uint64_t seed, double angle, int64_t samples) {
    mnp_draw_opts o = {.samples = samples, .seed = seed, .towards = TOWARDS, .angle = angle};
    mnp_draw_report r;
    CHECK(predictor_draw(p, &o, &r) == MNP_OK);
    CHECK(r.condition == MNP_NETWORK && r.particles == samples);
}

/* y (S, PLACES), smooth. */
static void draw(predictor *p, uint64_t seed, double angle, double *y) {
    turn_to(p, seed, angle, S);
    CHECK(predictor_predict(p, at, PLACES, PREDICT_ZERO, y) == MNP_OK);
}

static void ends_are_the_seeds(void) {
    double plain[S * PLACES], turned[S * PLACES];
    for (int k = 0; k < KINDS; k++)
        for (int64_t points = 0; points <= N; points += N) {
            lab l;
            if (!open_kind(&l, k)) return;
            predictor *p = ask(&l, NULL, points);
            CHECK(predictor_draw_latents(p, SEED, S) == MNP_OK);
            CHECK(predictor_predict(p, at, PLACES, PREDICT_ZERO, plain) == MNP_OK);
            draw(p, SEED, 0, turned);
            CHECK(memcmp(plain, turned, sizeof plain) == 0);
            draw(p, TOWARDS, 0, plain);
            draw(p, SEED, HALF_PI, turned);
            for (int i = 0; i < S * PLACES; i++) NEAR(turned[i], plain[i], 1e-5, 1e-5);
            draw(p, SEED, 4 * HALF_PI, turned); /* once round */
            draw(p, SEED, 0, plain);
            for (int i = 0; i < S * PLACES; i++) NEAR(turned[i], plain[i], 1e-5, 1e-5);
            CHECK(fabs(plain[0] - plain[PLACES]) > 1e-3); /* they are different functions */
            predictor_destroy(p);
            lab_close(&l);
        }
}

/* The latent that is drawn first has mu and sigma of its own. So at angle a it is mu + cos a (z(0)
 * - mu) + sin a (z(pi/2) - mu), with mu between z(0) and z(pi). */
static void latents_lie_on_the_circle(void) {
    enum { Z = 5 };
    static const double angles[] = {0, HALF_PI, 2 * HALF_PI, 0.7, -2.1, 5.5};
    double z[6][S * Z];
    for (int k = 0; k < KINDS; k++) {
        lab l;
        if (!open_kind(&l, k)) return;
        predictor *p = ask(&l, NULL, N);
        for (int a = 0; a < 6; a++) {
            turn_to(p, SEED, angles[a], S);
            memcpy(z[a], p->z + (p->T - 1) * p->chunks * p->chunk * Z, sizeof z[a]);
        }
        for (int i = 0; i < S * Z; i++) {
            double mu = (z[0][i] + z[2][i]) / 2;
            for (int a = 3; a < 6; a++) {
                double want =
                    mu + cos(angles[a]) * (z[0][i] - mu) + sin(angles[a]) * (z[1][i] - mu);
                NEAR(z[a][i], want, 2e-6, 2e-6);
            }
        }
        predictor_destroy(p);
        lab_close(&l);
    }
}

typedef struct moments {
    double mean[PLACES], variance[PLACES], fourth[PLACES];
} moments;

static moments moments_of(predictor *p, uint64_t seed, double angle, int64_t samples, double *y) {
    moments m = {0};
    turn_to(p, seed, angle, samples);
    CHECK(predictor_predict(p, at, PLACES, PREDICT_ZERO, y) == MNP_OK);
    for (int i = 0; i < PLACES; i++) {
        for (int64_t s = 0; s < samples; s++) m.mean[i] += y[s * PLACES + i] / (double)samples;
        for (int64_t s = 0; s < samples; s++) {
            double off = y[s * PLACES + i] - m.mean[i], square = off * off;
            m.variance[i] += square / (double)samples;
            m.fourth[i] += square * square / (double)samples;
        }
    }
    return m;
}

/* Against as many draws of another seed, to five standard errors. */
static void the_law_stays(void) {
    enum { DRAWS = 20000 };
    static double y[DRAWS * PLACES];
    for (int k = 0; k < KINDS; k++) {
        lab l;
        if (!open_kind(&l, k)) return;
        predictor *p = ask(&l, NULL, N);
        moments usual = moments_of(p, 77, 0, DRAWS, y);
        for (double angle = 0.4; angle < 6; angle += 1.9) {
            moments m = moments_of(p, SEED, angle, DRAWS, y);
            for (int i = 0; i < PLACES; i++) {
                double v = usual.variance[i], spread = usual.fourth[i] - v * v;
                NEAR(m.mean[i], usual.mean[i], 5 * sqrt(2 * v / DRAWS), 0);
                NEAR(m.variance[i], v, 5 * sqrt(2 * spread / DRAWS), 0);
            }
        }
        predictor_destroy(p);
        lab_close(&l);
    }
}

/* The largest move of a function between two angles. */
static double moved(predictor *p, double from, double to) {
    double a[S * PLACES], b[S * PLACES], most = 0;
    draw(p, SEED, from, a);
    draw(p, SEED, to, b);
    for (int i = 0; i < S * PLACES; i++) most = fmax(most, fabs(a[i] - b[i]));
    return most;
}

/* A hundredth of a step moves functions by about a hundredth; also off angle 0, where the network
 * draws its noise itself. */
static void no_jumps(void) {
    for (int k = 0; k < KINDS; k++) {
        lab l;
        if (!open_kind(&l, k)) return;
        predictor *p = ask(&l, NULL, N);
        for (double angle = 0; angle < 6; angle += 0.75) {
            double wide = moved(p, angle, angle + 0.1), narrow = moved(p, angle, angle + 0.001);
            CHECK(wide > 1e-3 && narrow > 0 && narrow < 0.05 * wide);
        }
        predictor_destroy(p);
        lab_close(&l);
    }
}

static void any_threads(void) {
    double one[S * PLACES], more[S * PLACES];
    for (int k = 0; k < KINDS; k++) {
        lab l;
        if (!open_kind(&l, k)) return;
        predictor *p = ask(&l, NULL, N);
        draw(p, SEED, 0.9, one);
        predictor_destroy(p);
        for (int threads = 2; threads <= 3; threads++) {
            pool *workers = NULL;
            CHECK(pool_create(&l.env, threads, &workers) == MNP_OK);
            p = ask(&l, workers, N);
            draw(p, SEED, 0.9, more);
            CHECK(memcmp(one, more, sizeof one) == 0);
            predictor_destroy(p);
            pool_destroy(workers);
        }
        lab_close(&l);
    }
}

/* Point by point, with more functions than before and a set that outgrows its graph. */
static void sets_that_grow(void) {
    enum { LONG = 150 };
    double x[LONG], y[LONG], grown[S * PLACES], whole[S * PLACES];
    for (int i = 0; i < LONG; i++) x[i] = xs[i % N] + 0.01 * i / N, y[i] = ys[i % N];
    for (int k = 0; k < KINDS; k++) {
        lab l;
        if (!open_kind(&l, k)) return;
        predictor *p = ask(&l, NULL, 0), *q = ask(&l, NULL, 0);
        for (int i = 0; i < LONG; i++) {
            CHECK(predictor_observe(p, &x[i], y[i]) == MNP_OK);
            if (i % 49 == 0) turn_to(p, SEED, 2.0, 2);
        }
        draw(p, SEED, 1.1, grown);
        CHECK(predictor_condition(q, x, y, LONG) == MNP_OK);
        draw(q, SEED, 1.1, whole);
        for (int i = 0; i < S * PLACES; i++) NEAR(grown[i], whole[i], 1e-5, 1e-5);
        predictor_destroy(p);
        predictor_destroy(q);
        lab_close(&l);
    }
}

/* The noise of measurements is that of the seed: it adds the same to the same function. */
static void noise_of_measurements_stays(void) {
    double smooth[2][S * PLACES], noisy[2][S * PLACES];
    lab l;
    if (!open_kind(&l, 2)) return; /* of a Neural Process it is added */
    predictor *p = ask(&l, NULL, N);
    for (int k = 0; k < 2; k++) { /* angle 2 pi: the function of angle 0, by the other graph */
        turn_to(p, SEED, 4 * HALF_PI * k, S);
        CHECK(predictor_predict(p, at, PLACES, PREDICT_ZERO, smooth[k]) == MNP_OK);
        CHECK(predictor_predict(p, at, PLACES, PREDICT_NORMAL, noisy[k]) == MNP_OK);
    }
    for (int i = 0; i < S * PLACES; i++)
        NEAR(noisy[1][i] - smooth[1][i], noisy[0][i] - smooth[0][i], 1e-5, 1e-5);
    predictor_destroy(p);
    lab_close(&l);
}

/* Without latents nothing turns; the functions of before stay. */
static void without_latents(void) {
    lab l;
    if (!lab_open(&l, "gp", "", 2)) return;
    predictor *p = ask(&l, NULL, N);
    mnp_draw_opts o = {.samples = S, .seed = SEED, .towards = TOWARDS};
    mnp_draw_report r;
    CHECK(predictor_draw(p, &o, &r) == MNP_OK); /* towards alone says nothing */
    o.samples = 2, o.angle = 0.1;
    CHECK(predictor_draw(p, &o, &r) == MNP_EUNSUPPORTED && strstr(l.env.error, "model gp"));
    CHECK(predictor_samples(p) == S);
    predictor_destroy(p);
    lab_close(&l);
}

int main(void) {
    RUN(ends_are_the_seeds);
    RUN(latents_lie_on_the_circle);
    RUN(the_law_stays);
    RUN(no_jumps);
    RUN(any_threads);
    RUN(sets_that_grow);
    RUN(noise_of_measurements_stays);
    RUN(without_latents);
    return check_done();
}
