/* simulate.c: see simulate.h. */
#include "fit/simulate.h"

#include <math.h>
#include <string.h>

#include "run/predict.h"
#include "util/least.h"

/* ---- inputs ---------------------------------------------------------------------------------- */

/* An input that time or a dose is: it changes within this curve, and has more than two values. */
static bool moves(const dataset *d, int64_t i, int32_t c) {
    const float *x = dataset_x(d, i);
    int64_t n = d->start[i + 1] - d->start[i];
    float first = x[c], second = first;
    for (int64_t j = 1; j < n; j++) {
        float v = x[j * d->x_dim + c];
        if (second == first)
            second = v;
        else if (v != first && v != second)
            return true;
    }
    return false;
}

/* The next value of input c above (side 1) or below (side -1) that of point j in its curve; the
 * point's own where there is none. */
static double neighbour(const dataset *d, int64_t i, int64_t j, int32_t c, int side) {
    int64_t n = d->start[i + 1] - d->start[i];
    double own = dataset_raw_x(d, i, j, c), near = own;
    for (int64_t k = 0; k < n; k++) {
        double v = dataset_raw_x(d, i, k, c), gap = (v - own) * side;
        if (gap > 0 && (near == own || gap < (near - own) * side)) near = v;
    }
    return near;
}

void simulate_inputs(const dataset *d, int64_t i, rng_stream *s, double *x) {
    int64_t n = d->start[i + 1] - d->start[i];
    for (int32_t c = 0; c < d->x_dim; c++) {
        bool moved = moves(d, i, c);
        for (int64_t j = 0; j < n; j++) {
            double own = dataset_raw_x(d, i, j, c), u = moved ? rng_u01(s) - 0.5 : 0;
            double to = moved ? neighbour(d, i, j, c, u < 0 ? -1 : 1) : own;
            x[j * d->x_dim + c] = own + fabs(u) * (to - own); /* inside the curve's own range */
        }
    }
}

/* ---- curves ---------------------------------------------------------------------------------- */

typedef struct simulation {
    const dataset *like;
    predictor *p;
    double *x, *y;   /* (points, X), (points) of all curves               */
    double *at, *to; /* (longest, X), (EACH, longest): of one template    */
    int64_t *n;      /* (curves)                                          */
} simulation;

static mnp_status allocate(env *e, int64_t curves, int64_t points, simulation *s) {
    size_t X = (size_t)s->like->x_dim, longest = (size_t)s->like->longest;
    s->x = env_alloc(e, (size_t)points * X, sizeof *s->x, "simulated curves");
    s->y = env_alloc(e, (size_t)points, sizeof *s->y, "simulated curves");
    s->at = env_alloc(e, longest * X, sizeof *s->at, "simulated curves");
    s->to = env_alloc(e, longest * SIMULATE_EACH, sizeof *s->to, "simulated curves");
    s->n = env_alloc(e, (size_t)curves, sizeof *s->n, "simulated curves");
    return s->x && s->y && s->at && s->to && s->n ? MNP_OK : MNP_ENOMEM;
}

static void free_simulation(env *e, simulation *s) {
    predictor_destroy(s->p);
    env_free(e, s->x);
    env_free(e, s->y);
    env_free(e, s->at);
    env_free(e, s->to);
    env_free(e, s->n);
}

/* Template k has the inputs of curve k, and every other round of the curves moves them. */
static int64_t template_curve(const dataset *d, int64_t k) {
    return k % d->functions;
}

static mnp_status draw_template(simulation *s, uint64_t seed, int64_t k, int64_t *at) {
    const dataset *d = s->like;
    int64_t i = template_curve(d, k), n = d->start[i + 1] - d->start[i];
    rng_stream stream = rng_stream_at(
        (rng_key){seed}, (rng_at){.purpose = RNG_DATA, .step = 3, .function = (uint32_t)k});
    size_t row = (size_t)d->x_dim;
    if (rng_u01(&stream) < 0.5)
        simulate_inputs(d, i, &stream, s->at);
    else
        for (int64_t j = 0; j < n; j++)
            for (int32_t c = 0; c < d->x_dim; c++)
                s->at[j * d->x_dim + c] = dataset_raw_x(d, i, j, c);
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
    for (int64_t k = 0; k < templates; k++) {
        int64_t i = template_curve(d, k);
        points += SIMULATE_EACH * (d->start[i + 1] - d->start[i]);
    }
    simulation s = {.like = d};
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
