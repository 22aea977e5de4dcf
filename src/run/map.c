/* map.c: see map.h. */
#include "run/map.h"

#include <math.h>

#include "base/rng.h"
#include "run/honour.h"
#include "run/summary.h"

enum {
    LEVELS = PROCESS_LEVELS,
    BLOCK_VALUES = 1 << 24
}; /* values at all levels held at once: 128 MB */

double map_input(const mnp_map_frame *f, int k, double index) {
    int64_t n = k == 0 ? f->rows : f->cols;
    return f->lo[k] + index / (double)(n - 1) * (f->hi[k] - f->lo[k]);
}

/* Rows and columns of inputs x, fractions included. */
static void in_pixels(const map_spec *q, const double x[2], double out[2]) {
    const mnp_map_frame *f = &q->at;
    for (int k = 0; k < 2; k++) {
        int64_t n = k == 0 ? f->rows : f->cols;
        out[k] = (x[q->turned ? 1 - k : k] - f->lo[k]) / (f->hi[k] - f->lo[k]) * (double)(n - 1);
    }
}

/* x (count, 2) of places first .. first + count - 1. */
static void fill_places(const map_spec *q, int64_t first, int64_t count, double *x) {
    const mnp_map_frame *f = &q->at;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = (first + i) / f->cols, col = (first + i) % f->cols;
        double down = map_input(f, 0, (double)row), right = map_input(f, 1, (double)col);
        x[2 * i] = q->turned ? right : down;
        x[2 * i + 1] = q->turned ? down : right;
    }
}

void map_wells(int64_t pixels, int64_t count, uint64_t seed, int64_t *pixel) {
    rng_stream s = rng_stream_make((rng_key){seed}, RNG_SPLIT_EVAL, 0);
    int64_t taken = 0;
    for (int64_t i = 0; i < pixels && taken < count; i++) /* each with the chance it still has */
        if ((int64_t)rng_below(&s, (uint64_t)(pixels - i)) < count - taken) pixel[taken++] = i;
}

/* ---- wells that are honoured ----------------------------------------------------------------- */

/* *out is NULL where there is nothing to honour. */
static mnp_status prepare_honour(env *e, predictor *p, const map_spec *q, honour **out) {
    const mnp_set *wells = &q->honour;
    *out = NULL;
    if (wells->n == 0) return MNP_OK;
    MNP_TRY(runner_check_points(e, q->m, wells->x, wells->y, wells->n, "honoured point"));
    size_t n = (size_t)wells->n;
    int64_t side = q->at.rows > q->at.cols ? q->at.rows : q->at.cols;
    double *place = env_alloc(e, 2 * n, sizeof *place, "places of wells");
    double *smooth = env_alloc(e, n * (size_t)q->samples, sizeof *smooth, "misfits");
    mnp_status status = place && smooth ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) status = predictor_predict(p, wells->x, wells->n, PREDICT_ZERO, smooth);
    if (status == MNP_OK) {
        for (int64_t i = 0; i < wells->n; i++) in_pixels(q, wells->x + 2 * i, place + 2 * i);
        honour_opts o = {wells->n, q->samples,
                         place,    wells->y,
                         smooth,   q->range > 0 ? q->range : HONOUR_RANGE * (double)(side - 1)};
        status = honour_make(e, &o, out);
    }
    env_free(e, place);
    env_free(e, smooth);
    return status;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* P(y < threshold) of one function at one place: y rises with the noise, straight between the
 * levels and beyond them. y[1] .. y[LEVELS - 1] lie `stride` apart. */
static double share_below(const double *y, int64_t stride, double threshold) {
    int k = 2;
    while (k < LEVELS - 1 && y[k * stride] < threshold) k++;
    double a = y[(k - 1) * stride] - threshold, b = y[k * stride] - threshold;
    double e0 = process_level[k - 1], e1 = process_level[k];
    double e = b > a ? e0 - a * (e1 - e0) / (b - a) : a < 0 ? INFINITY : -INFINITY;
    return 0.5 * erfc(-e / sqrt(2.0));
}

/* mean and sd of `values` draws y (values, count) of the places from `first` on. */
static mnp_status summarise(env *e, const mnp_map *out, const double *y, int64_t values,
                            int64_t first, int64_t count) {
    mnp_summary s = {.size = sizeof s,
                     .mean = out->mean ? out->mean + first : NULL,
                     .sd = out->sd ? out->sd + first : NULL};
    return summary_make(e, y, values, count, &s);
}

/* y (S, count) as realisations of n places each. */
static void put_draws(const mnp_map *out, const double *y, int64_t S, int64_t first, int64_t count,
                      int64_t n) {
    for (int64_t s = 0; s < S && out->draws; s++)
        for (int64_t i = 0; i < count; i++) out->draws[s * n + first + i] = (float)y[s * count + i];
}

/* The layers of one block: x (2 block, 2) has its places, and room for them in pixels. */
static mnp_status fill_block(env *e, predictor *p, const map_spec *q, const honour *h,
                             int64_t first, int64_t count, double *x, double *y,
                             const mnp_map *out) {
    int64_t S = q->samples;
    double *pixel = x + 2 * count;
    fill_places(q, first, count, x);
    MNP_TRY(predictor_levels(p, x, count, LEVELS, y));
    for (int64_t i = 0; i < count; i++) in_pixels(q, x + 2 * i, pixel + 2 * i);
    if (h) honour_apply(h, pixel, count, LEVELS, y);
    for (int64_t i = 0; i < count && out->below; i++) {
        double below = 0;
        for (int64_t s = 0; s < S; s++)
            below += share_below(y + s * count + i, S * count, q->threshold);
        out->below[first + i] = below / (double)S;
    }
    put_draws(out, y, S, first, count, q->at.rows * q->at.cols);
    return summarise(e, out, y + S * count, (LEVELS - 1) * S, first, count);
}

static mnp_status by_levels(env *e, predictor *p, const map_spec *q, const mnp_map *out) {
    int64_t n = q->at.rows * q->at.cols, block = BLOCK_VALUES / (LEVELS * q->samples);
    if (block > n) block = n;
    if (block < 1) block = 1;
    honour *h;
    MNP_TRY(prepare_honour(e, p, q, &h));
    double *x = env_alloc(e, 4 * (size_t)block, sizeof *x, "places of a map");
    double *y = env_alloc(e, (size_t)(LEVELS * q->samples * block), sizeof *y, "values of a map");
    mnp_status status = x && y ? MNP_OK : MNP_ENOMEM;
    for (int64_t at = 0; at < n && status == MNP_OK; at += block)
        status = fill_block(e, p, q, h, at, at + block < n ? block : n - at, x, y, out);
    env_free(e, x);
    env_free(e, y);
    honour_destroy(h);
    return status;
}

/* Without latents: draws over all places at once, without noise for the realisations, with it for
 * the other layers. */
static mnp_status by_draws(env *e, predictor *p, const map_spec *q, const mnp_map *out) {
    int64_t n = q->at.rows * q->at.cols, S = q->samples;
    double *x = env_alloc(e, 2 * (size_t)n, sizeof *x, "places of a map");
    double *y = env_alloc(e, (size_t)(S * n), sizeof *y, "values of a map");
    mnp_status status = x && y ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) fill_places(q, 0, n, x);
    if (status == MNP_OK && out->draws) status = predictor_predict(p, x, n, PREDICT_ZERO, y);
    if (status == MNP_OK) put_draws(out, y, S, 0, n, n);
    if (status == MNP_OK) status = predictor_predict(p, x, n, PREDICT_NORMAL, y);
    for (int64_t i = 0; i < n && out->below && status == MNP_OK; i++) {
        int64_t below = 0;
        for (int64_t s = 0; s < S; s++) below += y[s * n + i] < q->threshold;
        out->below[i] = (double)below / (double)S;
    }
    if (status == MNP_OK) status = summarise(e, out, y, S, 0, n);
    env_free(e, x);
    env_free(e, y);
    return status;
}

/* How much the realisations differ: a model may draw one picture again and again, and put all
 * doubt into its noise. */
static double differ(const float *draws, int64_t S, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n && S > 1; i++) {
        double mean = 0, squares = 0;
        for (int64_t s = 0; s < S; s++) mean += (double)draws[s * n + i] / (double)S;
        for (int64_t s = 0; s < S; s++) {
            double off = (double)draws[s * n + i] - mean;
            squares += off * off;
        }
        sum += sqrt(squares / (double)(S - 1));
    }
    return sum / (double)n;
}

mnp_status map_compute(env *e, const map_spec *q, const mnp_map *out, mnp_draw_report *drawn) {
    predictor *p = NULL;
    bool latents = process_at(q->m->spec.kind)->latents(&q->m->spec) > 0;
    mnp_status status = predictor_create(e, q->m, q->pool, q->device, &p);
    if (status == MNP_OK) status = predictor_condition(p, q->context.x, q->context.y, q->context.n);
    if (status == MNP_OK) status = predictor_draw(p, &q->how, drawn);
    if (status == MNP_OK) status = latents ? by_levels(e, p, q, out) : by_draws(e, p, q, out);
    if (status == MNP_OK && out->differ && out->draws)
        *out->differ = differ(out->draws, q->samples, q->at.rows * q->at.cols);
    predictor_destroy(p);
    return status;
}
