/* smooth.c: curves whose own parts are smooth, with four parameters instead of a whole covariance
 * (mixed.h). A curve's own part f has at knots 0 .. K - 1 of an input, with u_i = i / (K - 1),
 *
 *   cov(f_i, f_j) = a^2 + s_i s_j k(|u_i - u_j| / length),   s_i = s exp(trend (u_i - 1/2))
 *   k(d) = (1 + sqrt(5) d + 5 d^2 / 3) exp(-sqrt(5) d)                      (Matern, 5/2)
 *
 * and is the natural spline between them. Knots lie at equal shares of the inputs' values, so the
 * length is short where people measured often. Inputs add up. All four numbers are relative to
 * sigma, which is known given them. Priors that say next to nothing keep the search and the chain
 * where the likelihood is flat: a, s and sigma half-Cauchy with the spread of y as scale, log
 * length N(log 1/2, 1), trend N(0, 1.5^2).
 *
 * The mode is found with Nelder and Mead's simplex; draws are a random walk (Metropolis) that
 * learns its steps while it warms up. Each step of both costs one likelihood. */
#include <math.h>
#include <string.h>

#include "base/linalg.h"
#include "base/rng.h"
#include "model/mixed/mixed.h"
#include "util/least.h"

#define SIGMA_LEAST 1e-3 /* of the spread of y: knots at all times leave nothing to noise */
enum { OFFSET, SIZE, TREND, LENGTH, SMOOTH_PARAMETERS, NOISE = SMOOTH_PARAMETERS, WALK };

typedef struct smooth {
    const mixed_bases *b;
    const mixed_design *d;
    mixed_work *w;
    mixed_parameters *at;
    bool reml;
    double *raw;  /* (Q, Q) covariance in the columns of the basis    */
    double *kept; /* (r, r) of the columns that are kept              */
    double *back; /* (r, r), lower: the frame's turn, transposed      */
} smooth;

/* ---- from four numbers to lambda ------------------------------------------------------------- */

static double matern(double d) {
    double t = sqrt(5) * d;
    return (1 + t + t * t / 3) * exp(-t);
}

/* Columns of the basis are one and l_1 .. l_(K-1): their coefficients are f_0 and f_j - f_0. */
static void add_input(const smooth *s, const double *x, int32_t input) {
    int64_t Q = mixed_random_columns(s->b), first = 1 + (int64_t)input * (s->b->random - 1);
    int32_t K = s->b->inputs[s->b->x_dim + input].count;
    double f[NATURAL_KNOTS_MAX][NATURAL_KNOTS_MAX];
    if (K < 2) return;
    for (int32_t i = 0; i < K; i++)
        for (int32_t j = 0; j < K; j++) {
            double u = (double)i / (K - 1), v = (double)j / (K - 1);
            f[i][j] =
                exp(2 * x[SIZE] + x[TREND] * (u + v - 1)) * matern(fabs(u - v) / exp(x[LENGTH]));
        }
    s->raw[0] += f[0][0];
    for (int32_t i = 1; i < K; i++) {
        int64_t row = first + i - 1;
        s->raw[row] += f[0][i] - f[0][0];
        s->raw[row * Q] += f[0][i] - f[0][0];
        for (int32_t j = 1; j < K; j++)
            s->raw[row * Q + first + j - 1] += f[i][j] - f[i][0] - f[0][j] + f[0][0];
    }
}

static void transpose(double *a, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) {
            double keep = a[i * n + j];
            a[i * n + j] = a[j * n + i];
            a[j * n + i] = keep;
        }
}

/* Lambda of the four numbers, in turned columns. False: it is not a number. */
static bool set_lambda(smooth *s, const double *x) {
    int64_t Q = mixed_random_columns(s->b), r = s->d->r;
    double trace = 0;
    memset(s->raw, 0, (size_t)(Q * Q) * sizeof *s->raw);
    s->raw[0] = exp(2 * x[OFFSET]);
    for (int32_t c = 0; c < s->b->x_dim; c++) add_input(s, x, c);
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j < r; j++)
            s->kept[i * r + j] = s->raw[s->d->z.kept[i] * Q + s->d->z.kept[j]];
    for (int side = 0; side < 2; side++) { /* turn^-1 . turn^-T */
        linalg_solve_lower_t(s->back, r, r, s->kept, r, r);
        transpose(s->kept, r);
    }
    for (int64_t i = 0; i < r; i++) trace += s->kept[i * r + i];
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j < r; j++)
            s->at->lambda[i * r + j] =
                j > i ? 0 : s->kept[i * r + j] + (i == j ? 1e-10 * trace : 0);
    return isfinite(trace) && linalg_cholesky(s->at->lambda, r, r) == 0;
}

/* Of log a, log s and log sigma: the density of the number, times the number. */
static double half_cauchy(double sd) {
    return log(sd) - log1p(sd * sd);
}

static double log_prior(const smooth *s, const double *x, double variance) {
    double scale = fmax(s->d->spread, sqrt(s->d->floor)), sigma = sqrt(variance) / scale;
    double length = x[LENGTH] - log(0.5), trend = x[TREND] / 1.5;
    if (sigma < SIGMA_LEAST) return -INFINITY;
    return half_cauchy(exp(x[OFFSET]) * sigma) + half_cauchy(exp(x[SIZE]) * sigma) +
           half_cauchy(sigma) - 0.5 * (length * length + trend * trend);
}

/* The log-likelihood and the prior; the variance is the best one unless it is given. */
static double look(smooth *s, const double *x, double given_variance) {
    if (!set_lambda(s, x)) return -INFINITY;
    mixed_evaluate(s->d, s->w, s->reml, given_variance, s->at, NULL);
    double sum = s->at->loglik + log_prior(s, x, s->at->variance);
    return isfinite(sum) ? sum : -INFINITY;
}

/* ---- the mode -------------------------------------------------------------------------------- */

enum { CORNERS = SMOOTH_PARAMETERS + 1, LOOKS_MAX = 400 };
#define NARROW 1e-3 /* of a log-density: far below what a draw moves by */

typedef struct corner {
    double x[SMOOTH_PARAMETERS], height;
} corner;

static void sort_corners(corner *c) { /* the highest first */
    for (int i = 1; i < CORNERS; i++)
        for (int j = i; j > 0 && c[j].height > c[j - 1].height; j--) {
            corner keep = c[j];
            c[j] = c[j - 1], c[j - 1] = keep;
        }
}

/* The worst corner moved through the middle of the others by t. */
static corner moved(smooth *s, const corner *c, double t) {
    corner out = {.height = 0};
    for (int k = 0; k < SMOOTH_PARAMETERS; k++) {
        double middle = 0;
        for (int i = 0; i < CORNERS - 1; i++) middle += c[i].x[k] / (CORNERS - 1);
        out.x[k] = middle + t * (c[CORNERS - 1].x[k] - middle);
    }
    out.height = look(s, out.x, 0);
    return out;
}

static void shrink(smooth *s, corner *c) {
    for (int i = 1; i < CORNERS; i++) {
        for (int k = 0; k < SMOOTH_PARAMETERS; k++) c[i].x[k] = 0.5 * (c[i].x[k] + c[0].x[k]);
        c[i].height = look(s, c[i].x, 0);
    }
}

static void climb(smooth *s, double *x) {
    corner c[CORNERS], *worst = &c[CORNERS - 1];
    for (int i = 0; i < CORNERS; i++) {
        memcpy(c[i].x, x, sizeof c[i].x);
        if (i > 0) c[i].x[i - 1] += 0.7;
        c[i].height = look(s, c[i].x, 0);
    }
    for (int looks = CORNERS; looks < LOOKS_MAX; looks += 2) {
        sort_corners(c);
        if (c[0].height - worst->height < NARROW) break;
        corner back = moved(s, c, -1);
        if (back.height > c[0].height) {
            corner far = moved(s, c, -2);
            *worst = far.height > back.height ? far : back;
        } else if (back.height > c[CORNERS - 2].height) {
            *worst = back;
        } else {
            corner in = moved(s, c, back.height > worst->height ? -0.5 : 0.5);
            if (in.height > fmax(back.height, worst->height)) {
                *worst = in;
            } else {
                shrink(s, c);
                looks += CORNERS;
            }
        }
    }
    sort_corners(c);
    memcpy(x, c[0].x, sizeof c[0].x);
}

/* Two starts: a short length and a long one. */
static double find_mode(smooth *s, double *x) {
    double best = -INFINITY;
    for (int k = 0; k < 2; k++) {
        double try[SMOOTH_PARAMETERS] = {log(1.5), log(1.5), 0, log(k ? 1.0 : 0.25)};
        climb(s, try);
        double height = look(s, try, 0);
        if (height > best || k == 0) {
            best = height;
            memcpy(x, try, sizeof try);
        }
    }
    return look(s, x, 0);
}

/* ---- draws ----------------------------------------------------------------------------------- */

enum { WARM = 600, STEPS_APART = 16, CURVES_MANY = 1000, WARM_MANY = 200, APART_FEW = 4 };

typedef struct walk {
    double at[WALK], height;
    double mean[WALK], cov[WALK * WALK]; /* of the places seen while warming up */
    double step[WALK * WALK];            /* its factor                          */
    double scale;
    int64_t seen;
    rng_stream rng;
} walk;

static double walk_look(smooth *s, const double *x) {
    return look(s, x, exp(2 * x[NOISE]));
}

static void learn_steps(walk *w, bool moved_on) {
    w->scale *= exp((moved_on ? 0.75 : -0.25) / sqrt((double)w->seen + 1)); /* a quarter succeeds */
    w->seen++;
    double share = 1 / (double)(w->seen + 20); /* the start counts as 20 places */
    double off[WALK];
    for (int i = 0; i < WALK; i++) {
        off[i] = w->at[i] - w->mean[i];
        w->mean[i] += share * off[i];
    }
    for (int i = 0; i < WALK; i++)
        for (int j = 0; j < WALK; j++)
            w->cov[i * WALK + j] += share * (off[i] * off[j] - w->cov[i * WALK + j]);
    double factor[WALK * WALK];
    memcpy(factor, w->cov, sizeof factor);
    for (int i = 0; i < WALK; i++) factor[i * WALK + i] += 1e-6;
    if (linalg_cholesky(factor, WALK, WALK) == 0) memcpy(w->step, factor, sizeof factor);
}

static bool walk_step(smooth *s, walk *w) {
    double z[WALK], to[WALK];
    for (int i = 0; i < WALK; i++) z[i] = rng_normal(&w->rng);
    for (int i = 0; i < WALK; i++) {
        to[i] = w->at[i];
        for (int j = 0; j <= i; j++) to[i] += w->scale * w->step[i * WALK + j] * z[j];
    }
    double height = walk_look(s, to), level = log(rng_u01(&w->rng));
    if (!(level < height - w->height)) return false;
    memcpy(w->at, to, sizeof to);
    w->height = height;
    return true;
}

static mnp_status draw_laws(env *e, smooth *s, const double *mode, uint64_t seed, int64_t draws,
                            mixed_take *take, void *arg) {
    bool many = s->d->curves > CURVES_MANY;
    int64_t warm = many ? WARM_MANY : WARM, apart = many ? APART_FEW : STEPS_APART;
    walk w = {.scale = 2.4 / sqrt(WALK), .rng = rng_stream_make((rng_key){seed}, RNG_LATENT, 0)};
    memcpy(w.at, mode, SMOOTH_PARAMETERS * sizeof *mode);
    w.at[NOISE] = 0.5 * log(s->at->variance);
    memcpy(w.mean, w.at, sizeof w.at);
    for (int i = 0; i < WALK; i++) w.cov[i * WALK + i] = i == NOISE ? 0.01 : 0.1;
    for (int i = 0; i < WALK; i++) w.step[i * WALK + i] = sqrt(w.cov[i * WALK + i]);
    w.height = walk_look(s, w.at);
    for (int64_t k = 0; k < warm + apart * draws; k++) {
        bool moved_on = walk_step(s, &w);
        if (k < warm) learn_steps(&w, moved_on);
        if (env_cancelled(e)) return env_fail(e, MNP_ECANCELLED, "training was cancelled");
        if (k < warm || (k - warm) % apart != apart - 1) continue;
        walk_look(s, w.at);
        take(arg, (k - warm) / apart, s->at);
    }
    return MNP_OK;
}

/* ---- the two calls --------------------------------------------------------------------------- */

static mnp_status smooth_make(env *e, const mixed_bases *b, const mixed_design *d, bool reml,
                              mixed_parameters *at, smooth *out) {
    int64_t Q = mixed_random_columns(b), r = d->r;
    *out = (smooth){.b = b, .d = d, .reml = reml, .at = at};
    MNP_TRY(mixed_work_make(e, d, &out->w));
    out->raw = env_alloc(e, (size_t)(Q * Q + 2 * r * r), sizeof(double), "smooth curves");
    if (!out->raw) {
        mixed_work_free(e, out->w);
        return MNP_ENOMEM;
    }
    out->kept = out->raw + Q * Q, out->back = out->kept + r * r;
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j < r; j++) out->back[i * r + j] = d->z.turn[j * r + i];
    return MNP_OK;
}

static void smooth_free(env *e, smooth *s) {
    env_free(e, s->raw);
    mixed_work_free(e, s->w);
}

int32_t mixed_smooth_parameters(void) {
    return SMOOTH_PARAMETERS;
}

mnp_status mixed_smooth(env *e, const mixed_bases *b, const mixed_design *d, bool reml,
                        mixed_parameters *out) {
    smooth s;
    double x[SMOOTH_PARAMETERS];
    MNP_TRY(smooth_make(e, b, d, reml, out, &s));
    double height = find_mode(&s, x);
    smooth_free(e, &s);
    return isfinite(height)
               ? MNP_OK
               : env_fail(e, MNP_ENUMERIC, "the likelihood of the mixed model is not a number");
}

mnp_status mixed_smooth_posterior(env *e, const mixed_bases *b, const mixed_design *d,
                                  uint64_t seed, int64_t draws, mixed_take *take, void *arg) {
    smooth s;
    mixed_parameters at;
    double x[SMOOTH_PARAMETERS];
    MNP_TRY(mixed_parameters_make(e, d, &at));
    mnp_status status = smooth_make(e, b, d, true, &at, &s);
    if (status == MNP_OK) {
        if (!isfinite(find_mode(&s, x)))
            status = env_fail(e, MNP_ENUMERIC, "the posterior of the mixed model is not a number");
        if (status == MNP_OK) status = draw_laws(e, &s, x, seed, draws, take, arg);
        smooth_free(e, &s);
    }
    mixed_parameters_free(e, &at);
    return status;
}
