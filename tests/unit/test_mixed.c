/* test_mixed.c: fitting a mixed model and asking it, against independent computations: likelihoods
 * by the whole covariance matrix of all points, gradients by differences, the estimates of a
 * balanced design in closed form, the conditional of a curve by joint conditioning, the posterior
 * of the variances by integration over a grid. And data that leave something undetermined. */
#include <float.h>

#include "base/linalg.h"
#include "base/mixed_math.h"
#include "base/rng.h"
#include "check.h"
#include "model/mixed/mixed.h"
#include "scarce.h"

#define TWO_PI 6.283185307179586

static env world;

enum { CURVES = 40, POINTS = 200, WIDE = 8 };

typedef struct curves {
    int64_t start[CURVES + 1];
    float x[2 * POINTS], y[POINTS];
    data_view view;
} curves;

/* Curves of lo .. hi points with random lines of their own around a bend. */
static void draw_curves(curves *c, int64_t count, int64_t lo, int64_t hi, int32_t x_dim,
                        uint32_t stream) {
    rng_stream s = rng_stream_make((rng_key){21}, RNG_TEST, stream);
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        double offset = rng_normal(&s), slope = 0.5 * rng_normal(&s);
        c->start[i] = at;
        for (int64_t k = lo + (int64_t)rng_below(&s, (uint64_t)(hi - lo + 1)); k > 0; k--, at++) {
            double x = 4 * rng_u01(&s) - 2, other = rng_normal(&s);
            c->x[at * x_dim] = (float)x;
            if (x_dim > 1) c->x[at * x_dim + 1] = (float)other;
            c->y[at] = (float)(sin(x) + offset + slope * x + 0.3 * rng_normal(&s) + 0.2 * other);
        }
    }
    c->start[count] = at;
    CHECK(at <= POINTS);
    c->view = (data_view){count, x_dim, c->start, c->x, c->y, false, 0, 0};
}

typedef struct problem {
    mixed_bases b;
    mixed_design d;
    mixed_parameters p;
    mixed_work *w;
} problem;

static void open_problem(problem *q, const data_view *v, int32_t fixed, int32_t random) {
    CHECK(mixed_place(&world, v, &(mixed_form){.fixed = fixed, .random = random}, &q->b) == MNP_OK);
    CHECK(mixed_design_make(&world, v, &q->b, &q->d) == MNP_OK);
    CHECK(mixed_parameters_make(&world, &q->d, &q->p) == MNP_OK);
    CHECK(mixed_work_make(&world, &q->d, &q->w) == MNP_OK);
}

static void close_problem(problem *q) {
    mixed_work_free(&world, q->w);
    mixed_parameters_free(&world, &q->p);
    mixed_design_free(&world, &q->d);
    mixed_bases_free(&world, &q->b);
}

/* ---- likelihood ------------------------------------------------------------------------------ */

/* A row of a basis at point k, as it is and not turned. */
static void basis_row(const problem *q, const curves *c, bool of_curves, int64_t k, double *out) {
    int32_t X = q->b.x_dim;
    double x[2];
    for (int32_t j = 0; j < X; j++) x[j] = (double)c->x[k * X + j];
    natural_row(q->b.inputs + (of_curves ? X : 0), X, of_curves ? q->b.random : q->b.fixed, x, out);
}

/* log p(y), or of the contrasts (REML), with V of all points at once. */
static double by_whole_matrix(const problem *q, const curves *c, bool reml) {
    static double v[POINTS * POINTS], x[POINTS * WIDE], y[POINTS], xvx[WIDE * WIDE];
    double mean[WIDE], spread[WIDE * WIDE], curve[WIDE * WIDE], z[2][WIDE], sum = 0;
    int64_t n = q->d.points, p = mixed_fixed_columns(&q->b), r = mixed_random_columns(&q->b);
    mixed_unturn(&q->d, &q->p, mean, spread, curve);
    for (int64_t a = 0; a < n; a++) {
        basis_row(q, c, false, a, x + a * p);
        y[a] = (double)c->y[a];
        for (int64_t j = 0; j < p; j++) y[a] -= x[a * p + j] * mean[j];
    }
    memset(v, 0, sizeof v);
    for (int64_t i = 0; i < q->d.curves; i++)
        for (int64_t a = c->start[i]; a < c->start[i + 1]; a++)
            for (int64_t b = c->start[i]; b <= a; b++) {
                basis_row(q, c, true, a, z[0]);
                basis_row(q, c, true, b, z[1]);
                v[a * n + b] = a == b ? q->p.variance : 0;
                for (int64_t k = 0; k < r; k++) {
                    double left = 0, right = 0;
                    for (int64_t j = 0; j < r; j++) {
                        left += z[0][j] * curve[j * r + k];
                        right += z[1][j] * curve[j * r + k];
                    }
                    v[a * n + b] += left * right;
                }
            }
    CHECK(linalg_cholesky(v, n, n) == 0);
    linalg_solve_lower(v, n, n, y, 1, 1);
    for (int64_t i = 0; i < n; i++) sum -= 0.5 * (y[i] * y[i] + log(TWO_PI)) + log(v[i * (n + 1)]);
    if (!reml) return sum;
    linalg_solve_lower(v, n, n, x, p, p);
    memset(xvx, 0, sizeof xvx);
    linalg_gram_t(1, x, n, p, p, xvx, p);
    CHECK(linalg_cholesky(xvx, p, p) == 0);
    for (int64_t i = 0; i < p; i++) /* and from X to the turned columns */
        sum += 0.5 * log(TWO_PI) - log(xvx[i * (p + 1)]) - log(fabs(q->d.x.turn[i * (p + 1)]));
    return sum;
}

static void set_lambda(problem *q, uint32_t stream) {
    rng_stream s = rng_stream_make((rng_key){22}, RNG_TEST, stream);
    for (int32_t i = 0; i < q->d.r; i++)
        for (int32_t j = 0; j <= i; j++) q->p.lambda[i * q->d.r + j] = rng_normal(&s);
}

static void likelihoods(void) {
    static const struct {
        int32_t x_dim, fixed, random;
    } shapes[] = {{1, 1, 1}, {1, 4, 2}, {1, 6, 4}, {2, 3, 2}};
    for (uint32_t k = 0; k < 4; k++) {
        curves c;
        problem q;
        draw_curves(&c, 20, 1, 8, shapes[k].x_dim, k);
        open_problem(&q, &c.view, shapes[k].fixed, shapes[k].random);
        set_lambda(&q, k);
        for (int reml = 0; reml < 2; reml++) {
            mixed_evaluate(&q.d, q.w, reml, 0, &q.p, NULL);
            NEAR(q.p.loglik, by_whole_matrix(&q, &c, reml), 1e-8, 1e-9);
            mixed_evaluate(&q.d, q.w, reml, 0.7, &q.p, NULL);
            NEAR(q.p.loglik, by_whole_matrix(&q, &c, reml), 1e-8, 1e-9);
        }
        close_problem(&q);
    }
}

static void gradients(void) {
    for (uint32_t k = 0; k < 6; k++) {
        curves c;
        problem q;
        draw_curves(&c, 15, 1, 8, 1 + k % 2, 10 + k);
        open_problem(&q, &c.view, 3, 2 + (int32_t)(k / 3));
        set_lambda(&q, 10 + k);
        int32_t r = q.d.r;
        double gradient[WIDE * WIDE], two[2];
        for (int reml = 0; reml < 2; reml++) {
            mixed_evaluate(&q.d, q.w, reml, 0, &q.p, gradient);
            for (int32_t i = 0; i < r * r; i++) {
                if (i % r > i / r) continue;
                double old = q.p.lambda[i], h = 1e-5;
                for (int side = 0; side < 2; side++) {
                    q.p.lambda[i] = old + (side ? -h : h);
                    mixed_evaluate(&q.d, q.w, reml, 0, &q.p, NULL);
                    two[side] = -2 * q.p.loglik;
                }
                q.p.lambda[i] = old;
                NEAR(gradient[i], (two[0] - two[1]) / (2 * h), 1e-5, 1e-6);
            }
        }
        close_problem(&q);
    }
}

/* Curves whose own parts are up to a thousand times the noise, with and without all columns in use:
 * the search ends where nothing is to be gained. */
static void the_search_ends_at_a_maximum(void) {
    for (uint32_t k = 0; k < 30; k++) {
        curves c;
        problem q;
        rng_stream s = rng_stream_make((rng_key){26}, RNG_TEST, k);
        double gradient[WIDE * WIDE], noise = pow(10, -0.1 * k), largest = 0;
        draw_curves(&c, 5 + k, 1, 5, 1, 30 + k);
        for (int64_t i = 0; i < c.view.functions; i++) {
            double offset = rng_normal(&s), slope = k % 2 ? rng_normal(&s) : 0;
            for (int64_t j = c.start[i]; j < c.start[i + 1]; j++) {
                double x = (double)c.x[j];
                c.y[j] = (float)(sin(x) + offset + slope * x + noise * rng_normal(&s));
            }
        }
        open_problem(&q, &c.view, 4, 1 + (int32_t)(k % 4));
        for (int reml = 0; reml < 2; reml++) {
            CHECK(mixed_maximise(&world, &q.d, reml, MIXED_TIGHT, &q.p) == MNP_OK);
            mixed_evaluate(&q.d, q.w, reml, 0, &q.p, gradient);
            for (int32_t i = 0; i < q.d.r * q.d.r; i++)
                largest = fmax(largest, fabs(gradient[i] * q.p.lambda[i]));
        }
        CHECK(largest < 0.05);
        close_problem(&q);
    }
}

/* ---- balanced offsets: the analysis of variance ---------------------------------------------- */

enum { GROUPS = 12, EACH = 5 };

typedef struct anova {
    double within, between; /* sums of squares */
} anova;

/* y = spread b_i + e, a curve's points at 0 .. EACH - 1. */
static anova balanced(curves *c, double spread, uint32_t stream) {
    rng_stream s = rng_stream_make((rng_key){23}, RNG_TEST, stream);
    double mean[GROUPS] = {0}, all = 0;
    anova sums = {0};
    for (int i = 0; i < GROUPS; i++) {
        double b = spread * rng_normal(&s);
        c->start[i] = i * EACH;
        for (int k = 0; k < EACH; k++) {
            c->x[i * EACH + k] = (float)k;
            c->y[i * EACH + k] = (float)(3 + b + rng_normal(&s));
            mean[i] += (double)c->y[i * EACH + k] / EACH;
        }
        all += mean[i] / GROUPS;
    }
    c->start[GROUPS] = GROUPS * EACH;
    c->view = (data_view){GROUPS, 1, c->start, c->x, c->y, false, 0, 0};
    for (int i = 0; i < GROUPS * EACH; i++) sums.within += pow((double)c->y[i] - mean[i / EACH], 2);
    for (int i = 0; i < GROUPS; i++) sums.between += EACH * pow(mean[i] - all, 2);
    return sums;
}

/* REML is then what the analysis of variance says, unless that is a variance below zero: then there
 * is one variance only. */
static void analysis_of_variance(void) {
    int inner = 0, at_zero = 0;
    for (uint32_t k = 0; k < 20; k++) {
        curves c;
        problem q;
        anova a = balanced(&c, k % 2 ? 0.8 : 0, k);
        double mse = a.within / (GROUPS * (EACH - 1)), msb = a.between / (GROUPS - 1);
        open_problem(&q, &c.view, 1, 1);
        CHECK(mixed_maximise(&world, &q.d, true, MIXED_TIGHT, &q.p) == MNP_OK);
        double psi = q.p.variance * q.p.lambda[0] * q.p.lambda[0];
        if (msb > mse) {
            inner++;
            NEAR(q.p.variance, mse, 0, 1e-4);
            NEAR(psi, (msb - mse) / EACH, 1e-4, 1e-4);
        } else {
            at_zero++;
            NEAR(q.p.variance, (a.within + a.between) / (GROUPS * EACH - 1), 0, 1e-4);
            NEAR(psi, 0, 1e-4, 0);
        }
        close_problem(&q);
    }
    CHECK(inner >= 10 && at_zero >= 3);
}

/* ---- the posterior of the variances ---------------------------------------------------------- */

typedef struct moments {
    double sd, variance, large; /* means: of the offsets' sd, of sigma^2, of "sd > 1" */
} moments;

/* Densities on a grid of (log sd, log sigma^2): the REML likelihood, half-t with two degrees of
 * freedom and this scale for the sd, 1 / sigma^2 for sigma^2; or half-Cauchy for both sds. */
static moments by_grid(anova a, double scale, bool cauchy) {
    moments m = {0};
    double total = 0;
    for (double ls = -7; ls < 3; ls += 0.01)
        for (double lv = -2; lv < 2; lv += 0.01) {
            double sd = exp(ls), v = exp(lv), whole = v + EACH * sd * sd;
            double f = GROUPS * (EACH - 1) * lv + a.within / v + (GROUPS - 1) * log(whole) +
                       a.between / whole;
            double w = exp(-0.5 * f) * sd;
            if (cauchy)
                w *= sqrt(v) / (1 + sd * sd / (scale * scale)) / (1 + v / (scale * scale));
            else
                w *= pow(1 + sd * sd / (2 * scale * scale), -1.5);
            total += w;
            m.sd += w * sd, m.variance += w * v, m.large += w * (sd > 1);
        }
    return (moments){m.sd / total, m.variance / total, m.large / total};
}

enum { DRAWS = 4000 };

static void note_moments(void *arg, int64_t draw, const mixed_parameters *p) {
    (void)draw;
    moments *m = arg;
    double sd = sqrt(p->variance) * fabs(p->lambda[0]);
    m->sd += sd / DRAWS, m->variance += p->variance / DRAWS, m->large += (sd > 1) / (double)DRAWS;
}

/* Neighbouring draws are correlated where the sd is near zero: five standard errors of a quarter of
 * the draws. */
static void posterior_by_integration(void) {
    for (uint32_t k = 0; k < 3; k++) {
        curves c;
        problem q;
        moments m = {0};
        anova a = balanced(&c, k * 0.6, 40 + k);
        open_problem(&q, &c.view, 1, 1);
        CHECK(mixed_maximise(&world, &q.d, true, MIXED_TIGHT, &q.p) == MNP_OK);
        CHECK(mixed_posterior(&world, &q.d, &q.p, 5 + k, DRAWS, note_moments, &m) == MNP_OK);
        moments want = by_grid(a, q.d.spread, false);
        double error = 5 / sqrt(DRAWS / 4.0);
        NEAR(m.sd, want.sd, 0.3 * error, 0);
        NEAR(m.variance, want.variance, 0.2 * error, 0);
        NEAR(m.large, want.large, error * sqrt(want.large * (1 - want.large)) + 1e-3, 0);
        close_problem(&q);
    }
}

/* The walk over the parameters of smooth curves. Offsets alone leave two of them in the data. */
static void walk_by_integration(void) {
    for (uint32_t k = 1; k < 3; k++) {
        curves c;
        problem q;
        moments m = {0};
        anova a = balanced(&c, k * 0.6, 40 + k);
        open_problem(&q, &c.view, 1, 1);
        CHECK(mixed_smooth_posterior(&world, &q.b, &q.d, 5 + k, DRAWS, note_moments, &m) == MNP_OK);
        moments want = by_grid(a, q.d.spread, true);
        double error = 5 / sqrt(DRAWS / 4.0);
        NEAR(m.sd, want.sd, 0.3 * error, 0);
        NEAR(m.variance, want.variance, 0.2 * error, 0);
        NEAR(m.large, want.large, error * sqrt(want.large * (1 - want.large)) + 1e-3, 0);
        close_problem(&q);
    }
}

typedef struct means {
    double psi[4], variance;
} means;

static void note_means(void *arg, int64_t draw, const mixed_parameters *p) {
    (void)draw;
    means *m = arg;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 2; k++)
                m->psi[2 * i + j] +=
                    p->variance * p->lambda[2 * i + k] * p->lambda[2 * j + k] / DRAWS;
    m->variance += p->variance / DRAWS;
}

/* With many curves the posterior of a full covariance is where the estimate is. */
static void posterior_of_many_curves(void) {
    enum { MANY = 600 };
    static float x[4 * MANY], y[4 * MANY];
    static int64_t start[MANY + 1];
    rng_stream s = rng_stream_make((rng_key){24}, RNG_TEST, 1);
    for (int64_t i = 0; i < MANY; i++) {
        double offset = rng_normal(&s), slope = 0.7 * rng_normal(&s) + 0.5 * offset;
        start[i + 1] = 4 * (i + 1);
        for (int64_t k = 4 * i; k < 4 * i + 4; k++) {
            double at = 2 * rng_u01(&s) - 1;
            x[k] = (float)at, y[k] = (float)(offset + slope * at + 0.5 * rng_normal(&s));
        }
    }
    data_view v = {MANY, 1, start, x, y, false, 0, 0};
    problem q;
    means m = {0};
    open_problem(&q, &v, 2, 2);
    CHECK(mixed_maximise(&world, &q.d, true, MIXED_TIGHT, &q.p) == MNP_OK);
    CHECK(mixed_posterior(&world, &q.d, &q.p, 5, DRAWS / 20, note_means, &m) == MNP_OK);
    const double *l = q.p.lambda, scale = q.p.variance;
    double want[] = {l[0] * l[0], l[0] * l[2], l[0] * l[2], l[2] * l[2] + l[3] * l[3]};
    for (int i = 0; i < 4; i++) NEAR(20 * m.psi[i], scale * want[i], 0.03, 0.03);
    NEAR(20 * m.variance, scale, 0, 0.01);
    close_problem(&q);
}

/* ---- smooth curves --------------------------------------------------------------------------- */

enum { SMOOTH_CURVES = 400, TIMES = 5, TWICE = 2 * TIMES };

/* Of a curve's own part at the times i and j, written out: offset 0.6, size 0.9, trend 1.2, length
 * 0.4. */
static double true_covariance(int i, int j) {
    double u = i / 4.0, v = j / 4.0, d = sqrt(5) * fabs(u - v) / 0.4;
    return 0.36 +
           0.81 * exp(1.2 * (u - 0.5)) * exp(1.2 * (v - 0.5)) * (1 + d + d * d / 3) * exp(-d);
}

/* The covariance at the knots of parameters in turned columns. */
static void at_knots(const problem *q, const mixed_parameters *p, double *out) {
    double mean[WIDE], spread[WIDE * WIDE], curve[WIDE * WIDE];
    mixed_unturn(&q->d, p, mean, spread, curve);
    for (int i = 0; i < TIMES; i++)
        for (int j = 0; j < TIMES; j++) {
            out[i * TIMES + j] = 0;
            for (int k = 0; k < TIMES; k++) {
                double left = curve[k] + (i ? curve[i * TIMES + k] : 0);
                double right = curve[k] + (j ? curve[j * TIMES + k] : 0);
                out[i * TIMES + j] += left * right;
            }
        }
}

typedef struct knots_seen {
    const problem *q;
    double covariance[TIMES * TIMES], variance;
} knots_seen;

enum { FEW_DRAWS = 100 };

static void note_knots(void *arg, int64_t draw, const mixed_parameters *p) {
    (void)draw;
    knots_seen *seen = arg;
    double here[TIMES * TIMES];
    at_knots(seen->q, p, here);
    for (int i = 0; i < TIMES * TIMES; i++) seen->covariance[i] += here[i] / FEW_DRAWS;
    seen->variance += p->variance / FEW_DRAWS;
}

/* Curves drawn from the process, at times that are not evenly spaced: knots are, in number. */
static void a_known_smooth_process(void) {
    static const double times[TIMES] = {0, 0.3, 1, 4, 9};
    static float x[TWICE * SMOOTH_CURVES], y[TWICE * SMOOTH_CURVES];
    static int64_t start[SMOOTH_CURVES + 1];
    double l[TIMES * TIMES], estimate[TIMES * TIMES];
    rng_stream s = rng_stream_make((rng_key){27}, RNG_TEST, 1);
    for (int i = 0; i < TIMES * TIMES; i++) l[i] = true_covariance(i / TIMES, i % TIMES);
    CHECK(linalg_cholesky(l, TIMES, TIMES) == 0);
    for (int64_t c = 0; c < SMOOTH_CURVES; c++) {
        double z[TIMES];
        for (int i = 0; i < TIMES; i++) z[i] = rng_normal(&s);
        start[c + 1] = TWICE * (c + 1);
        for (int k = 0; k < TWICE; k++) { /* twice at each time: what is noise is then known */
            int i = k % TIMES;
            double value = 2 - times[i] + 0.3 * rng_normal(&s);
            for (int j = 0; j <= i; j++) value += l[i * TIMES + j] * z[j];
            x[TWICE * c + k] = (float)times[i], y[TWICE * c + k] = (float)value;
        }
    }
    data_view v = {SMOOTH_CURVES, 1, start, x, y, false, 0, 0};
    problem q;
    knots_seen seen = {.q = &q};
    open_problem(&q, &v, TIMES, TIMES);
    CHECK(mixed_smooth(&world, &q.b, &q.d, true, &q.p) == MNP_OK);
    at_knots(&q, &q.p, estimate);
    NEAR(q.p.variance, 0.09, 0, 0.08);
    CHECK(mixed_smooth_posterior(&world, &q.b, &q.d, 3, FEW_DRAWS, note_knots, &seen) == MNP_OK);
    NEAR(seen.variance, q.p.variance, 0, 0.03);
    for (int i = 0; i < TIMES * TIMES; i++) {
        NEAR(estimate[i], true_covariance(i / TIMES, i % TIMES), 0.05, 0.12);
        NEAR(seen.covariance[i], estimate[i], 0.03, 0.05);
    }
    close_problem(&q);
}

/* Its likelihood is that of the covariance it says; a covariance without its shape has a higher
 * one, not by much. */
static void smooth_likelihood(void) {
    curves c;
    problem q;
    draw_curves(&c, 20, 3, 9, 1, 85);
    for (int reml = 0; reml < 2; reml++) {
        open_problem(&q, &c.view, 4, 5);
        CHECK(mixed_smooth(&world, &q.b, &q.d, reml, &q.p) == MNP_OK);
        NEAR(q.p.loglik, by_whole_matrix(&q, &c, reml), 1e-6, 0);
        double smooth = q.p.loglik;
        CHECK(mixed_maximise(&world, &q.d, reml, MIXED_TIGHT, &q.p) == MNP_OK);
        CHECK(smooth < q.p.loglik + 1e-6 && smooth > q.p.loglik - 20);
        close_problem(&q);
    }
}

/* ---- one curve given a part of it ------------------------------------------------------------ */

enum { P = 3, R = 2, N = 9, M = 4 };

static void conditional_by_joint_conditioning(void) {
    rng_stream s = rng_stream_make((rng_key){25}, RNG_TEST, 1);
    double mean[P], spread[P * P], curve[R * R], h[N * (P + R)], y[N], k[N * N], centre[N];
    for (int i = 0; i < P; i++) mean[i] = rng_normal(&s);
    for (int i = 0; i < P * P; i++) spread[i] = 0.3 * rng_normal(&s);
    for (int i = 0; i < R * R; i++) curve[i] = rng_normal(&s);
    for (int i = 0; i < N * (P + R); i++) h[i] = rng_normal(&s);
    for (int i = 0; i < N; i++) y[i] = 2 * rng_normal(&s);
    mixed_law law = {P, R, mean, spread, curve, 0.4};
    for (int a = 0; a < N; a++) {
        centre[a] = 0;
        for (int i = 0; i < P; i++) centre[a] += h[a * (P + R) + i] * mean[i];
        for (int b = 0; b < N; b++) {
            k[a * N + b] = a == b ? 0.16 : 0;
            for (int c = 0; c < P + R; c++) { /* X S S^T X^T + Z C C^T Z^T */
                double left = 0, right = 0;
                int lo = c < P ? 0 : P, n = c < P ? P : R;
                for (int i = 0; i < n; i++) {
                    double f = (c < P ? spread : curve)[i * n + c - lo];
                    left += h[a * (P + R) + lo + i] * f, right += h[b * (P + R) + lo + i] * f;
                }
                k[a * N + b] += left * right;
            }
        }
    }
    double l[(P + R) * (P + R)], w[P + R], g[P + R], white[N], sum = 0;
    mixed_seen seen = {.l = l, .w = w};
    mixed_start(&law, &seen);
    for (int i = 0; i < M; i++) {
        NEAR(mixed_row(&law, h + i * (P + R), g), centre[i], 1e-14, 0);
        mixed_add(&law, &seen, g, (y[i] - centre[i]) / law.noise);
    }
    double evidence = mixed_solve(&law, &seen);
    double all[N * N];
    memcpy(all, k, sizeof k);
    CHECK(linalg_cholesky(k, M, N) == 0);
    for (int i = 0; i < M; i++) white[i] = y[i] - centre[i];
    linalg_solve_lower(k, M, N, white, 1, 1);
    for (int i = 0; i < M; i++)
        sum -= 0.5 * (white[i] * white[i] + log(TWO_PI)) + log(k[i * (N + 1)]);
    NEAR(evidence, sum, 1e-12, 0);
    for (int t = M; t < N; t++) {
        double column[M], want = centre[t], variance = all[t * (N + 1)], found = 1;
        for (int i = 0; i < M; i++) column[i] = all[i * N + t];
        linalg_solve_lower(k, M, N, column, 1, 1);
        for (int i = 0; i < M; i++) want += column[i] * white[i], variance -= column[i] * column[i];
        mixed_row(&law, h + t * (P + R), g);
        NEAR(centre[t] + law.noise * mixed_given(&law, &seen, g), want, 1e-12, 0);
        for (int i = 0; i < P + R; i++) found += g[i] * g[i];
        NEAR(found * law.noise * law.noise, variance, 1e-12, 0);
    }
}

/* ---- data that leave something open ---------------------------------------------------------- */

static double best_ml(const data_view *v, int32_t fixed, int32_t random, int32_t *p, int32_t *r) {
    problem q;
    open_problem(&q, v, fixed, random);
    CHECK(mixed_maximise(&world, &q.d, false, MIXED_TIGHT, &q.p) == MNP_OK);
    double loglik = q.p.loglik;
    *p = q.d.p, *r = q.d.r;
    CHECK(isfinite(loglik) && q.p.variance > 0);
    close_problem(&q);
    return loglik;
}

/* An input that repeats another adds no column, and a constant one none either. */
static void columns_that_depend(void) {
    curves one, two;
    int32_t p, r;
    draw_curves(&one, 20, 3, 8, 1, 60);
    for (int repeated = 0; repeated < 2; repeated++) {
        two = one;
        for (int64_t i = 0; i < one.start[20]; i++)
            two.x[2 * i] = one.x[i], two.x[2 * i + 1] = repeated ? 3 * one.x[i] - 1 : 5;
        two.view = (data_view){20, 2, two.start, two.x, two.y, false, 0, 0};
        double alone = best_ml(&one.view, 3, 2, &p, &r);
        CHECK(p == 3 && r == 2);
        NEAR(best_ml(&two.view, 3, 2, &p, &r), alone, 1e-6, 0);
        CHECK(p == 3 && r == 2);
    }
}

/* A covariate that is constant within curves has no part in the curves' basis. */
static void covariates(void) {
    curves c;
    problem q;
    draw_curves(&c, 20, 3, 8, 2, 61);
    for (int64_t i = 0; i < 20; i++)
        for (int64_t k = c.start[i]; k < c.start[i + 1]; k++) c.x[2 * k + 1] = (float)(i % 2);
    open_problem(&q, &c.view, 4, 3);
    CHECK(q.d.p == 1 + 3 + 1 && q.d.r == 3);
    CHECK(mixed_maximise(&world, &q.d, true, MIXED_TIGHT, &q.p) == MNP_OK);
    close_problem(&q);
    static const int64_t curves_of[] = {8, 20, 30}, knots[] = {2, 3, 4};
    for (int n = 0; n < 3; n++) { /* a number for each curve: a line, then bends */
        draw_curves(&c, curves_of[n], 3, 5, 2, 62);
        for (int64_t i = 0; i < curves_of[n]; i++)
            for (int64_t k = c.start[i]; k < c.start[i + 1]; k++) c.x[2 * k + 1] = (float)(i * i);
        open_problem(&q, &c.view, 5, 2);
        CHECK(q.b.inputs[0].count == 5 && q.b.inputs[1].count == knots[n]);
        CHECK(q.d.p == 1 + 4 + (int32_t)knots[n] - 1 && q.d.r == 2);
        close_problem(&q);
    }
}

static int64_t count_draws;
static void count_draw(void *arg, int64_t draw, const mixed_parameters *p) {
    CHECK(arg == NULL && draw == count_draws++);
    CHECK(isfinite(p->loglik) && p->variance > 0);
}

/* Everything a person may bring: an answer, whatever it is worth. */
static void odd_data(void) {
    static const char *const names[] = {"one curve",  "curves of one point", "constant y", "one x",
                                        "two points", "one point",           "noise free"};
    for (int k = 0; k < 7; k++) {
        curves c;
        problem q;
        mixed_form form = {0}, smooth = {.smooth = true};
        CASE(names[k]);
        int64_t count = k == 0 || k == 5 ? 1 : k == 4 ? 2 : 10;
        draw_curves(&c, count, k == 0 ? 9 : 1, k == 1 || k >= 4 ? (k == 6 ? 6 : 1) : 9, 1, 70);
        for (int64_t i = 0; i < c.start[count]; i++) {
            if (k == 2) c.y[i] = 2;
            if (k == 3) c.x[i] = 1;
            if (k == 6) c.y[i] = 1 + 2 * c.x[i];
        }
        CHECK(mixed_choose(&world, &c.view, &form) == MNP_OK);
        CHECK(form.fixed >= 1 && form.random >= 1);
        for (int asked = 0; asked < 2; asked++) {
            open_problem(&q, &c.view, asked ? 4 : form.fixed, asked ? 3 : form.random);
            CHECK(mixed_maximise(&world, &q.d, true, MIXED_TIGHT, &q.p) == MNP_OK);
            count_draws = 0;
            CHECK(mixed_posterior(&world, &q.d, &q.p, 1, 16, count_draw, NULL) == MNP_OK);
            CHECK(count_draws == 16);
            close_problem(&q);
        }
        CHECK(mixed_choose(&world, &c.view, &smooth) == MNP_OK);
        CHECK(smooth.fixed >= 1 && smooth.random >= 2);
        open_problem(&q, &c.view, smooth.fixed, smooth.random);
        CHECK(mixed_smooth(&world, &q.b, &q.d, true, &q.p) == MNP_OK);
        count_draws = 0;
        CHECK(mixed_smooth_posterior(&world, &q.b, &q.d, 1, 4, count_draw, NULL) == MNP_OK);
        CHECK(count_draws == 4);
        close_problem(&q);
    }
}

/* More curves and points show more of the truth: two bends, and lines of the curves' own. */
static void choice(void) {
    curves c;
    mixed_form free = {0}, three = {.fixed = 3}, none = {0};
    draw_curves(&c, 25, 7, 8, 1, 80);
    CHECK(mixed_choose(&world, &c.view, &free) == MNP_OK);
    CHECK(free.random == 2 && free.fixed >= 4 && free.fixed <= 6);
    CHECK(mixed_choose(&world, &c.view, &three) == MNP_OK);
    CHECK(three.random == 2 && three.fixed == 3);
    for (int64_t i = 0; i < c.start[25]; i++) c.y[i] = (float)sin(7.0 * (double)i); /* no shape */
    CHECK(mixed_choose(&world, &c.view, &none) == MNP_OK);
    CHECK(none.random == 1 && none.fixed <= 2);
}

/* A fit that is asked to stop does. */
static bool at_once(void *user) {
    (void)user;
    return true;
}

/* ---- averages -------------------------------------------------------------------------------- */

/* Curves at 0, 1, 2 of which the last is measured six times as often: half of the points are below
 * the middle of three knots. Measured equally often, values are what counts. */
static void knots_where_points_are(void) {
    const int64_t start[] = {0, 8};
    const float often[] = {0, 1, 2, 2, 2, 2, 2, 2}, equally[] = {0, 0, 1, 1, 2, 2, 7, 7};
    float y[8] = {0};
    mixed_bases b[3];
    mixed_form form = {.fixed = 3, .random = 2, .at_points = true};
    data_view v = {1, 1, start, often, y, false, 0, 0};
    CHECK(mixed_place(&world, &v, &form, &b[0]) == MNP_OK);
    /* places of 0, 1, 2: 0, 1 and 4.5 points, of which the middle is 2.25 */
    NEAR(b[0].places[1], 1 + 1.25 / 3.5, 1e-6, 0);
    CHECK(b[0].places[0] == 0 && b[0].places[2] == 2);
    v.x = equally;
    CHECK(mixed_place(&world, &v, &form, &b[1]) == MNP_OK);
    form.at_points = false;
    CHECK(mixed_place(&world, &v, &form, &b[2]) == MNP_OK);
    for (int k = 0; k < 3; k++) NEAR(b[1].places[k], b[2].places[k], 1e-6, 0);
    for (int k = 0; k < 3; k++) mixed_bases_free(&world, &b[k]);
}

enum { LAWS = 40 };
typedef struct tally {
    int64_t laws, bent, bare, chosen;
    int32_t random; /* knots of the curves' own parts that `chosen` counts */
    double noise;   /* sum */
} tally;

static void count_law(void *arg, int64_t law, const mixed_share *m) {
    tally *t = arg;
    CHECK(law == t->laws && m->noise > 0 && isfinite(m->mean[0]));
    t->laws++;
    t->bent += m->knee > 0;
    t->chosen += m->bases->random == t->random;
    t->noise += m->noise;
    t->bare += m->bases->x_dim > 1 && m->bases->inputs[1].count == 1;
}

/* Curves of normal y, or of its exponential; with an input that tells curves apart and that y
 * depends on, or does not. The shares find which it was. */
static void shares_of_the_truth(void) {
    enum { J = 24, EACH = 6 };
    static float x[J * EACH * 2], y[J * EACH];
    int64_t start[J + 1];
    for (int kind = 0; kind < 4; kind++) {
        bool exponential = kind % 2, depends = kind / 2;
        rng_stream s = rng_stream_make((rng_key){5}, RNG_TEST, (uint32_t)kind);
        tally t = {0};
        double loglik = NAN;
        for (int64_t i = 0; i <= J; i++) start[i] = i * EACH;
        for (int64_t i = 0; i < J; i++) {
            double own = 0.6 * rng_normal(&s), dose = rng_normal(&s);
            for (int64_t k = i * EACH; k < (i + 1) * EACH; k++) {
                x[2 * k] = (float)(k % EACH), x[2 * k + 1] = (float)dose;
                double u = own + 0.3 * (double)(k % EACH) + (depends ? 2 * dose : 0) +
                           0.1 * rng_normal(&s);
                y[k] = (float)(exponential ? exp(u) : u);
            }
        }
        data_view v = {J, 2, start, x, y, false, 0, 0};
        mixed_form top = mixed_average_most(2);
        CHECK(mixed_average(&world, &v, &top, 1, LAWS, count_law, &t, &loglik) == MNP_OK);
        CHECK(t.laws == LAWS && isfinite(loglik));
        CHECK(exponential ? t.bent > LAWS * 3 / 4 : t.bent == 0);
        CHECK(depends ? t.bare < LAWS / 4 : t.bare > LAWS / 2);
    }
}

/* One curve, curves of one point, and no memory or a wish to stop at some place on the way. */
static mnp_status small_average(env *e, const data_view *v) {
    tally t = {0};
    double loglik;
    mixed_form top = {.fixed = 2, .random = 2};
    return mixed_average(e, v, &top, 1, 2, count_law, &t, &loglik);
}

static void averages_of_little(void) {
    curves c;
    draw_curves(&c, 1, 9, 9, 1, 92);
    CHECK(small_average(&world, &c.view) == MNP_OK);
    draw_curves(&c, 10, 1, 1, 1, 93);
    CHECK(small_average(&world, &c.view) == MNP_OK);
    draw_curves(&c, 2, 1, 1, 1, 93); /* fewer points than parameters */
    CHECK(small_average(&world, &c.view) == MNP_ENUMERIC);
    draw_curves(&c, 5, 3, 5, 1, 94);
    env stopped = world;
    stopped.cancel = at_once;
    CHECK(small_average(&stopped, &c.view) == MNP_ECANCELLED);
    for (long n = 0, step = 1;; n += step, step += n > 20 ? 3 : 0) {
        scarce memory = {.left = n};
        env e = world;
        e.allocator = (mnp_allocator){scarce_alloc, scarce_free, &memory};
        mnp_status status = small_average(&e, &c.view);
        CHECK(memory.live == 0);
        CHECK(status == (memory.left < 0 ? MNP_ENOMEM : MNP_OK));
        if (status == MNP_OK || check_.bad) {
            CHECK(n > 100);
            break;
        }
    }
}

/* y of curves of 40 points from 0 to 9.75: each has waves of its own size and phase. */
enum { WAVES = 20, WAVE_POINTS = 40 };
static data_view draw_waves(float *x, float *y, int64_t *start) {
    rng_stream s = rng_stream_make((rng_key){6}, RNG_TEST, 0);
    for (int64_t i = 0; i <= WAVES; i++) start[i] = i * WAVE_POINTS;
    for (int64_t i = 0; i < WAVES; i++) {
        double a = rng_normal(&s), b = rng_normal(&s);
        for (int64_t k = start[i]; k < start[i + 1]; k++) {
            double t = (double)(k % WAVE_POINTS) / 4;
            x[k] = (float)t;
            y[k] = (float)((3 + a) * sin(1.6 * t) + b * cos(1.6 * t) + 0.1 * rng_normal(&s));
        }
    }
    return (data_view){WAVES, 1, start, x, y, false, 0, 0};
}

/* All the knots that may be asked for; and by itself the number that AIC chooses. */
static void averages_of_many_knots(void) {
    static float x[WAVES * WAVE_POINTS], y[WAVES * WAVE_POINTS];
    int64_t start[WAVES + 1];
    data_view v = draw_waves(x, y, start);
    mixed_form chosen = {.at_points = true}, usual = mixed_average_most(1);
    CHECK(mixed_choose(&world, &v, &chosen) == MNP_OK);
    CHECK(chosen.random > 6 && chosen.random != 8 && chosen.random <= usual.random);
    mixed_form tops[] = {{.fixed = NATURAL_KNOTS_MAX, .random = NATURAL_KNOTS_MAX}, usual};
    for (int k = 0; k < 2; k++) {
        tally t = {.random = chosen.random};
        double loglik = NAN;
        CHECK(mixed_average(&world, &v, &tops[k], 1, LAWS, count_law, &t, &loglik) == MNP_OK);
        CHECK(t.laws == LAWS && isfinite(loglik) && t.chosen > LAWS * 3 / 4);
    }
}

/* Inputs t, 2 t + 3, and one that is not in the order of time. */
static void the_input_that_is_time(void) {
    enum { J = 12, EACH = 8 };
    static float x[J * EACH * 3], y[J * EACH];
    int64_t start[J + 1];
    double loglik[3];
    tally t[3] = {{0}};
    rng_stream s = rng_stream_make((rng_key){7}, RNG_TEST, 0);
    for (int64_t i = 0; i <= J; i++) start[i] = i * EACH;
    for (int64_t i = 0; i < J; i++) {
        double own = rng_normal(&s), slope = rng_normal(&s);
        for (int64_t k = i * EACH; k < (i + 1) * EACH; k++) {
            double at = (double)(k % EACH);
            x[3 * k] = (float)at, x[3 * k + 1] = (float)(2 * at + 3);
            x[3 * k + 2] = (float)((k % EACH * 5 + i) % EACH);
            y[k] = (float)(own + 0.3 * slope * at + 0.2 * rng_normal(&s));
        }
    }
    mixed_form top = {.fixed = 2, .random = 3};
    for (int k = 0; k < 3; k++) {
        data_view v = {J, 3, start, x, y, false, k, 0};
        CHECK(mixed_average(&world, &v, &top, 1, 400, count_law, &t[k], &loglik[k]) == MNP_OK);
    }
    CHECK(loglik[0] == loglik[1] && t[0].noise == t[1].noise);
    CHECK(loglik[0] != loglik[2] && t[0].noise != t[2].noise);
}

/* Two outputs at each time, and which it is in the last inputs. The order within a time does not
 * matter where rows are given whole; where points are, it does. */
static void rows_of_two_outputs(void) {
    enum { J = 10, TIMES = 6, EACH = 2 * TIMES };
    static float x[J * EACH * 3], y[J * EACH];
    int64_t start[J + 1];
    for (int outputs = 0; outputs <= 2; outputs += 2) {
        double loglik[2];
        tally t[2] = {{0}};
        for (int swap = 0; swap < 2; swap++) {
            rng_stream s = rng_stream_make((rng_key){8}, RNG_TEST, 0);
            for (int64_t i = 0; i <= J; i++) start[i] = i * EACH;
            for (int64_t i = 0; i < J; i++) {
                double own = rng_normal(&s);
                for (int64_t k = i * EACH; k < (i + 1) * EACH; k++) {
                    int64_t to = swap ? k ^ 1 : k, second = k % 2;
                    int64_t time = k % EACH / 2;
                    double at = (double)time;
                    x[3 * to] = (float)at, x[3 * to + 1] = (float)!second;
                    x[3 * to + 2] = (float)second;
                    y[to] = (float)(second ? at + 0.5 * rng_normal(&s)
                                           : own * (1 + at) + 0.1 * rng_normal(&s));
                }
            }
            data_view v = {J, 3, start, x, y, false, 0, outputs};
            mixed_form top = {.fixed = 2, .random = 3};
            CHECK(mixed_average(&world, &v, &top, 1, 400, count_law, &t[swap], &loglik[swap]) ==
                  MNP_OK);
        }
        bool same = fabs(loglik[0] - loglik[1]) < 1e-6 && fabs(t[0].noise - t[1].noise) < 1e-6;
        CHECK(same == (outputs == 2));
    }
}

/* ---- no memory ------------------------------------------------------------------------------- */

static mnp_status whole_fit(env *e, const data_view *v) {
    mixed_form form = {.fixed = 2};
    mixed_bases b;
    mixed_design d = {0};
    mixed_parameters p = {0};
    float curve[WIDE];
    MNP_TRY(mixed_choose(e, v, &form));
    MNP_TRY(mixed_place(e, v, &form, &b));
    mnp_status status = mixed_population(e, v, &b, curve);
    if (status == MNP_OK) status = mixed_design_make(e, v, &b, &d);
    if (status == MNP_OK) status = mixed_parameters_make(e, &d, &p);
    if (status == MNP_OK) status = mixed_maximise(e, &d, true, MIXED_TIGHT, &p);
    count_draws = 0;
    if (status == MNP_OK) status = mixed_posterior(e, &d, &p, 1, 2, count_draw, NULL);
    count_draws = 0;
    if (status == MNP_OK) status = mixed_smooth(e, &b, &d, true, &p);
    if (status == MNP_OK) status = mixed_smooth_posterior(e, &b, &d, 1, 2, count_draw, NULL);
    mixed_parameters_free(e, &p);
    mixed_design_free(e, &d);
    mixed_bases_free(e, &b);
    return status;
}

/* With every single allocation failing: an error, and nothing is kept. */
static void without_memory(void) {
    curves c;
    draw_curves(&c, 5, 3, 5, 1, 90);
    for (long n = 0;; n++) {
        scarce memory = {.left = n};
        env e = world;
        e.allocator = (mnp_allocator){scarce_alloc, scarce_free, &memory};
        mnp_status status = whole_fit(&e, &c.view);
        CHECK(memory.live == 0);
        CHECK(status == (memory.left < 0 ? MNP_ENOMEM : MNP_OK));
        if (status == MNP_OK || check_.bad) {
            CHECK(n > 50);
            break;
        }
    }
}

static void cancelled(void) {
    curves c;
    env e = world;
    e.cancel = at_once;
    draw_curves(&c, 5, 3, 5, 1, 91);
    CHECK(whole_fit(&e, &c.view) == MNP_ECANCELLED);
}

int main(void) {
    env_init(&world);
    RUN(likelihoods);
    RUN(gradients);
    RUN(the_search_ends_at_a_maximum);
    RUN(analysis_of_variance);
    RUN(posterior_by_integration);
    RUN(walk_by_integration);
    RUN(posterior_of_many_curves);
    RUN(a_known_smooth_process);
    RUN(smooth_likelihood);
    RUN(conditional_by_joint_conditioning);
    RUN(columns_that_depend);
    RUN(covariates);
    RUN(odd_data);
    RUN(choice);
    RUN(knots_where_points_are);
    RUN(shares_of_the_truth);
    RUN(averages_of_little);
    RUN(averages_of_many_knots);
    RUN(the_input_that_is_time);
    RUN(rows_of_two_outputs);
    RUN(without_memory);
    RUN(cancelled);
    return check_done();
}
