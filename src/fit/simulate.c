/* simulate.c: see simulate.h. */
#include "fit/simulate.h"

#include <math.h>
#include <string.h>

#include "run/marginals.h"
#include "run/predict.h"
#include "util/least.h"

/* ---- inputs ---------------------------------------------------------------------------------- */

/* An input that a time or a dose is: it changes within the curve, and has more than two values. */
static bool moves(const double *x, int64_t n, int64_t X) {
    double first = x[0], second = first;
    for (int64_t j = 1; j < n; j++) {
        double v = x[j * X];
        if (second == first)
            second = v;
        else if (v != first && v != second)
            return true;
    }
    return false;
}

/* The next value above (side 1) or below (side -1) that of point j; its own where there is none. */
static double neighbour(const double *x, int64_t n, int64_t X, int64_t j, int side) {
    double own = x[j * X], near = own;
    for (int64_t k = 0; k < n; k++) {
        double v = x[k * X], gap = (v - own) * side;
        if (gap > 0 && (near == own || gap < (near - own) * side)) near = v;
    }
    return near;
}

void simulate_inputs(const double *from, int64_t n, int64_t X, rng_stream *s, double *to) {
    for (int64_t c = 0; c < X; c++) {
        bool moved = moves(from + c, n, X);
        for (int64_t j = 0; j < n; j++) {
            double own = from[j * X + c], u = moved ? rng_u01(s) - 0.5 : 0;
            double near = moved ? neighbour(from + c, n, X, j, u < 0 ? -1 : 1) : own;
            to[j * X + c] = own + fabs(u) * (near - own);
        }
    }
}

/* ---- curves ---------------------------------------------------------------------------------- */

typedef struct simulation {
    const dataset *like;
    predictor *p;
    double *x, *y;         /* (points, X), (points) of all curves               */
    double *own, *at, *to; /* (most, X), (most, X), (EACH, most): of one template */
    int64_t most;          /* points of a template */
    int64_t *n;            /* (curves)                                          */
} simulation;

static mnp_status allocate(env *e, int64_t curves, int64_t points, simulation *s) {
    size_t X = (size_t)s->like->x_dim, longest = (size_t)s->most;
    s->x = env_alloc(e, (size_t)points * X, sizeof *s->x, "simulated curves");
    s->y = env_alloc(e, (size_t)points, sizeof *s->y, "simulated curves");
    s->own = env_alloc(e, longest * X, sizeof *s->own, "simulated curves");
    s->at = env_alloc(e, longest * X, sizeof *s->at, "simulated curves");
    s->to = env_alloc(e, longest * SIMULATE_EACH, sizeof *s->to, "simulated curves");
    s->n = env_alloc(e, (size_t)curves, sizeof *s->n, "simulated curves");
    return s->x && s->y && s->own && s->at && s->to && s->n ? MNP_OK : MNP_ENOMEM;
}

static void free_simulation(env *e, simulation *s) {
    predictor_destroy(s->p);
    env_free(e, s->x);
    env_free(e, s->y);
    env_free(e, s->own);
    env_free(e, s->at);
    env_free(e, s->to);
    env_free(e, s->n);
}

/* Template k has the inputs of curve k, round after round of the curves; draw_template() moves
 * those of a random half. */
static int64_t template_curve(const dataset *d, int64_t k) {
    return k % d->functions;
}

static int64_t template_points(const dataset *d, int64_t k) {
    int64_t i = template_curve(d, k);
    return least(d->start[i + 1] - d->start[i], SIMULATE_POINTS);
}

/* The inputs of a template: those of its curve, of a long one some, in random order. */
static void take_inputs(const dataset *d, int64_t k, rng_stream *s, double *x) {
    int64_t i = template_curve(d, k), n = template_points(d, k),
            all = d->start[i + 1] - d->start[i];
    rng_at at = s->at;
    at.purpose = RNG_SPLIT_EVAL;
    rng_perm p = rng_perm_make(s->key, at, (uint64_t)all);
    for (int64_t j = 0; j < n; j++) {
        int64_t point = n < all ? (int64_t)rng_perm_apply(&p, (uint64_t)j) : j;
        for (int32_t c = 0; c < d->x_dim; c++) x[j * d->x_dim + c] = dataset_raw_x(d, i, point, c);
    }
}

static mnp_status draw_template(simulation *s, uint64_t seed, int64_t k, int64_t *at) {
    const dataset *d = s->like;
    int64_t n = template_points(d, k);
    rng_stream stream = rng_stream_at(
        (rng_key){seed}, (rng_at){.purpose = RNG_DATA, .step = 3, .function = (uint32_t)k});
    size_t row = (size_t)d->x_dim;
    take_inputs(d, k, &stream, s->own);
    if (rng_u01(&stream) < 0.5)
        simulate_inputs(s->own, n, d->x_dim, &stream, s->at);
    else
        memcpy(s->at, s->own, (size_t)n * row * sizeof *s->at);
    MNP_TRY(predictor_draw_latents(s->p, rng_u64(&stream), SIMULATE_EACH));
    MNP_TRY(predictor_predict(s->p, s->at, n, PREDICT_NORMAL, s->to));
    for (int64_t copy = 0; copy < SIMULATE_EACH; copy++) {
        memcpy(s->x + (size_t)*at * row, s->at, (size_t)n * row * sizeof *s->x);
        memcpy(s->y + *at, s->to + copy * n, (size_t)n * sizeof *s->y);
        s->n[k * SIMULATE_EACH + copy] = n;
        *at += n;
    }
    return MNP_OK;
}

mnp_status simulate_curves(env *e, const model *m, const dataset *d, const simulate_opts *o,
                           dataset **out) {
    int64_t templates = most(1, (o->curves + SIMULATE_EACH - 1) / SIMULATE_EACH), points = 0;
    *out = NULL;
    for (int64_t k = 0; k < templates; k++) points += SIMULATE_EACH * template_points(d, k);
    simulation s = {.like = d, .most = least(d->longest, SIMULATE_POINTS)};
    mnp_status status = allocate(e, templates * SIMULATE_EACH, points, &s);
    if (status == MNP_OK) status = predictor_create(e, m, o->pool, (backend_choice){0}, &s.p);
    int64_t at = 0;
    for (int64_t k = 0; k < templates && status == MNP_OK; k++)
        status = draw_template(&s, o->seed, k, &at);
    if (status == MNP_OK)
        status = dataset_from_arrays(e, DATASET_ARRAYS, templates * SIMULATE_EACH, s.n, d->x_dim,
                                     s.x, s.y, out);
    free_simulation(e, &s);
    return status;
}

/* ---- their frequency ------------------------------------------------------------------------- */

enum { GRID = 33, OF_CURVES = 16 };

/* Of y at GRID places `step` apart: (2 pi f)^2 is the root mean square of the second derivative
 * over that of y less its line. */
static double frequency(const double *y, double step) {
    double mean = 0, slope = 0, squares = 0, size = 0, bend = 0, middle = 0.5 * (GRID - 1);
    for (int k = 0; k < GRID; k++) {
        mean += y[k] / GRID;
        slope += y[k] * (k - middle);
        squares += (k - middle) * (k - middle);
    }
    slope /= squares;
    for (int k = 0; k < GRID; k++) {
        double off = y[k] - mean - slope * (k - middle);
        size += off * off / GRID;
    }
    for (int k = 1; k < GRID - 1; k++) {
        double second = (y[k + 1] - 2 * y[k] + y[k - 1]) / (step * step);
        bend += second * second / (GRID - 2);
    }
    double line = (mean * mean + slope * slope * squares) * 1e-12; /* less is rounding */
    return size > line ? sqrt(sqrt(bend / size)) / (2 * M_PI) : 0;
}

/* SIMULATE_EACH frequencies of curves like curve i, with input c from lo to hi. */
static mnp_status frequencies(predictor *p, const dataset *d, int64_t i, int32_t c, double lo,
                              double hi, double unit, double *at, double *out) {
    double *y = at + GRID * d->x_dim, step = (hi - lo) / (GRID - 1);
    for (int k = 0; k < GRID; k++)
        for (int32_t col = 0; col < d->x_dim; col++)
            at[k * d->x_dim + col] = col == c ? lo + step * k : dataset_raw_x(d, i, 0, col);
    MNP_TRY(predictor_predict(p, at, GRID, PREDICT_ZERO, y));
    for (int copy = 0; copy < SIMULATE_EACH; copy++)
        out[copy] = frequency(y + (int64_t)copy * GRID, step / unit);
    return MNP_OK;
}

static void range_of(const dataset *d, int32_t c, double *lo, double *hi) {
    *lo = INFINITY, *hi = -INFINITY;
    for (int64_t i = 0; i < d->functions; i++)
        for (int64_t j = 0; j < d->start[i + 1] - d->start[i]; j++) {
            *lo = fmin(*lo, dataset_raw_x(d, i, j, c));
            *hi = fmax(*hi, dataset_raw_x(d, i, j, c));
        }
}

mnp_status simulate_frequency(env *e, const model *m, const dataset *d, int32_t c,
                              const simulate_opts *o, double *out) {
    double lo, hi, all[OF_CURVES * SIMULATE_EACH];
    int64_t curves = least(d->functions, OF_CURVES);
    predictor *p = NULL;
    *out = 0;
    range_of(d, c, &lo, &hi);
    if (!(hi > lo)) return MNP_OK;
    double *at = env_alloc(e, (size_t)GRID * ((size_t)d->x_dim + SIMULATE_EACH), sizeof *at,
                           "simulated curves");
    if (!at) return MNP_ENOMEM;
    mnp_status status = predictor_create(e, m, o->pool, (backend_choice){0}, &p);
    for (int64_t k = 0; k < curves && status == MNP_OK; k++) {
        status = predictor_draw_latents(p, o->seed + (uint64_t)k, SIMULATE_EACH);
        if (status == MNP_OK)
            status = frequencies(p, d, k * d->functions / curves, c, lo, hi, m->scaling.x_scale[c],
                                 at, all + k * SIMULATE_EACH);
    }
    if (status == MNP_OK) {
        marginals_sort(all, curves * SIMULATE_EACH);
        *out = all[curves * SIMULATE_EACH / 2];
    }
    predictor_destroy(p);
    env_free(e, at);
    return status;
}
