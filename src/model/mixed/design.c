/* design.c: knots, and the curves as products of their columns (mixed.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/curves.h"
#include "base/linalg.h"
#include "model/mixed/mixed.h"
#include "util/least.h"

static const float *inputs_of(const data_view *d, int64_t curve) {
    return d->shared_x ? d->x : d->x + d->start[curve] * d->x_dim;
}

static int64_t points_of(const data_view *d, int64_t curve) {
    return d->start[curve + 1] - d->start[curve];
}

/* ---- knots ----------------------------------------------------------------------------------- */

enum { VALUES_MAX = 1 << 18 }; /* of an input that are looked at */
enum { CURVES_A_KNOT = 10 };   /* for a bend along an input that only tells curves apart */

int mixed_by_size(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The different values of input c, ascending, and how often each was seen; how many. */
static int64_t different_values(const data_view *d, int32_t c, float *values, float *times) {
    int64_t points = d->shared_x ? points_of(d, 0) : d->start[d->functions], count = 0;
    int64_t step = points / VALUES_MAX + 1, kept = 0;
    for (int64_t i = 0; i < points; i += step) values[count++] = d->x[i * d->x_dim + c];
    qsort(values, (size_t)count, sizeof *values, mixed_by_size);
    for (int64_t i = 0; i < count; i++) {
        bool fresh = i == 0 || values[i] > values[kept - 1];
        if (fresh) values[kept] = values[i], times[kept++] = 0;
        times[kept - 1]++;
    }
    return kept;
}

/* How often values were seen, as their places from 0 to n - 1: half of a value's points are below
 * its place. All seen equally often: value i is at i. */
static void places_by_points(int64_t n, float *times) {
    double sum = 0, first = (double)times[0] / 2, total = -first;
    for (int64_t i = 0; i < n; i++) total += (double)times[i];
    total -= (double)times[n - 1] / 2;
    for (int64_t i = 0; i < n; i++) {
        double here = (double)times[i];
        times[i] = (float)((sum + here / 2 - first) * (double)(n - 1) / (n > 1 ? total : 1));
        sum += here;
    }
}

bool mixed_changes(const data_view *d, int32_t c) {
    return curves_change(d->functions, d->start, d->x, d->x_dim, d->shared_x, c);
}

/* Of an input: its values, and their places where they are not 0, 1 .. n - 1. */
typedef struct axis {
    const float *values, *places;
    int64_t n;
} axis;

/* `count` of the values, both ends included; room is filled up with the last. */
static void spread_knots(const axis *a, int32_t count, int32_t room, float *out) {
    const float *values = a->values;
    int64_t n = a->n;
    for (int32_t k = 0, i = 0; k < count; k++) {
        double at = count > 1 ? (double)k / (count - 1) * (double)(n - 1) : (double)(n - 1) / 2;
        while (a->places && i + 2 < n && (double)a->places[i + 1] <= at) i++;
        if (a->places && n > 1)
            at = i + fmin((at - (double)a->places[i]) /
                              ((double)a->places[i + 1] - (double)a->places[i]),
                          1);
        int64_t below = least((int64_t)at, n - 1), above = least(below + 1, n - 1);
        double share = at - (double)below;
        out[k] = (float)((1 - share) * (double)values[below] + share * (double)values[above]);
    }
    for (int32_t k = count; k < room; k++) out[k] = out[count - 1];
}

static void place_input(const data_view *d, int32_t c, const mixed_form *form, mixed_bases *b,
                        float *values, float *times) {
    int64_t n = different_values(d, c, values, times), most_fixed = n;
    axis a = {.values = values, .n = n, .places = form->at_points ? times : NULL};
    bool changes = mixed_changes(d, c);
    places_by_points(n, times);
    if (!changes) most_fixed = least(n, most(2, 1 + d->functions / CURVES_A_KNOT));
    if (!changes && form->bare) most_fixed = 1;
    int32_t fixed = (int32_t)least(b->fixed, most_fixed), random = (int32_t)least(b->random, n);
    float *places = b->places + (int64_t)c * b->knots;
    float *of_curves = b->places + (int64_t)(b->x_dim + c) * b->knots;
    spread_knots(&a, fixed, b->knots, places);
    spread_knots(&a, changes ? random : 1, b->knots, of_curves);
}

mnp_status mixed_place(env *e, const data_view *d, const mixed_form *form, mixed_bases *out) {
    int64_t X = d->x_dim, points = d->shared_x ? points_of(d, 0) : d->start[d->functions];
    int32_t fixed = form->fixed, random = form->random;
    *out = (mixed_bases){.x_dim = d->x_dim,
                         .fixed = fixed,
                         .random = random,
                         .knots = fixed > random ? fixed : random};
    out->places = env_alloc(e, (size_t)(2 * X * out->knots), sizeof(float), "knots");
    out->inputs = env_alloc(e, (size_t)(2 * X), sizeof(natural), "splines");
    size_t room = (size_t)least(points, VALUES_MAX) + 1;
    float *values = env_alloc(e, 2 * room, sizeof *values, "an input");
    if (!out->places || !out->inputs || !values) {
        env_free(e, values);
        mixed_bases_free(e, out);
        return MNP_ENOMEM;
    }
    for (int32_t c = 0; c < X; c++) place_input(d, c, form, out, values, values + room);
    for (int64_t k = 0; k < 2 * X; k++) {
        double knots[NATURAL_KNOTS_MAX];
        for (int32_t j = 0; j < out->knots; j++) knots[j] = (double)out->places[k * out->knots + j];
        natural_make(&out->inputs[k], knots, k < X ? fixed : random);
    }
    env_free(e, values);
    return MNP_OK;
}

void mixed_bases_free(env *e, mixed_bases *b) {
    env_free(e, b->places);
    env_free(e, b->inputs);
    *b = (mixed_bases){0};
}

/* ---- columns without correlation ------------------------------------------------------------- */

/* Point k of a curve in the population's basis or in the curves'. */
static void basis_row(const mixed_bases *b, bool of_curves, const float *x, double *out) {
    double at[MODEL_X_MAX];
    for (int32_t c = 0; c < b->x_dim; c++) at[c] = (double)x[c];
    natural_row(b->inputs + (of_curves ? b->x_dim : 0), b->x_dim, of_curves ? b->random : b->fixed,
                at, out);
}

static void turn_row(const mixed_frame *f, const double *row, double *out) {
    memset(out, 0, (size_t)f->rank * sizeof *out);
    for (int32_t i = 0; i < f->rank; i++)
        for (int32_t j = i; j < f->rank; j++) out[j] += row[f->kept[i]] * f->turn[i * f->rank + j];
}

enum { BLOCK = 256 };   /* rows that are added to R at once */
#define RANK_LIMIT 1e-6 /* inputs are in single precision   */

/* R of all rows of the basis, block by block: (columns, columns) in the head of rows. */
static void stack_rows(const data_view *d, const mixed_bases *b, bool of_curves, int64_t columns,
                       double *rows, double *work) {
    int64_t used = columns;
    for (int64_t i = 0; i < d->functions; i++)
        for (int64_t k = 0; k < points_of(d, i); k++) {
            basis_row(b, of_curves, inputs_of(d, i) + k * d->x_dim, rows + used++ * columns);
            if (used < columns + BLOCK) continue;
            linalg_qr(rows, used, columns, columns, NULL, work);
            used = columns;
        }
    linalg_qr(rows, used, columns, columns, NULL, work);
}

/* The rank, the kept columns and R^-1 sqrt(points) of them, from R in the head of rows. */
static void turn_of(mixed_frame *f, double *rows, int64_t points, double *work) {
    int64_t n = f->columns;
    linalg_qr(rows, n, n, n, f->kept, work);
    f->rank = 0;
    while (f->rank < n && fabs(rows[f->rank * (n + 1)]) > RANK_LIMIT * fabs(rows[0])) f->rank++;
    int32_t r = f->rank;
    memset(f->turn, 0, (size_t)r * (size_t)r * sizeof *f->turn);
    for (int32_t j = 0; j < r; j++) { /* column j of the inverse, from its last entry up */
        f->turn[j * r + j] = sqrt((double)points) / rows[j * n + j];
        for (int32_t i = j - 1; i >= 0; i--) {
            double sum = 0;
            for (int32_t k = i + 1; k <= j; k++) sum += rows[i * n + k] * f->turn[k * r + j];
            f->turn[i * r + j] = -sum / rows[i * n + i];
        }
    }
}

static mnp_status make_frame(env *e, const data_view *d, const mixed_bases *b, bool of_curves,
                             mixed_frame *f) {
    int64_t n = of_curves ? mixed_random_columns(b) : mixed_fixed_columns(b);
    f->columns = (int32_t)n;
    f->kept = env_alloc(e, (size_t)n, sizeof *f->kept, "columns");
    f->turn = env_alloc(e, (size_t)(n * n), sizeof *f->turn, "columns");
    double *rows = env_alloc(e, (size_t)((n + BLOCK) * n + n), sizeof *rows, "rows of a basis");
    bool there = f->kept && f->turn && rows;
    if (there) {
        double *work = rows + (n + BLOCK) * n;
        stack_rows(d, b, of_curves, n, rows, work);
        turn_of(f, rows, d->start[d->functions], work);
    }
    env_free(e, rows);
    return there ? MNP_OK : MNP_ENOMEM;
}

/* ---- products -------------------------------------------------------------------------------- */

typedef struct rows {
    double *raw, *x, *z; /* a row of a basis; turned: x (p + 1) with y, z (r) */
} rows;

static void read_row(const data_view *d, const mixed_bases *b, const mixed_design *m, int64_t i,
                     int64_t k, rows *w) {
    const float *x = inputs_of(d, i) + k * d->x_dim;
    basis_row(b, false, x, w->raw);
    turn_row(&m->x, w->raw, w->x);
    basis_row(b, true, x, w->raw);
    turn_row(&m->z, w->raw, w->z);
    w->x[m->p] = (double)d->y[d->start[i] + k];
}

/* Columns of X have squares of mean one and products of mean zero: no equations to solve. */
static void fit_pooled(const data_view *d, const mixed_bases *b, mixed_design *m, rows *w) {
    double sum = 0, squares = 0, count = (double)m->points;
    for (int64_t i = 0; i < m->curves; i++)
        for (int64_t k = 0; k < points_of(d, i); k++) {
            read_row(d, b, m, i, k, w);
            for (int32_t j = 0; j < m->p; j++) m->pooled[j] += w->x[j] * w->x[m->p] / count;
            sum += w->x[m->p];
        }
    for (int64_t i = 0; i < m->points; i++) {
        double off = (double)d->y[i] - sum / count;
        squares += off * off;
    }
    m->floor = 1e-8 * (squares > 0 ? squares / count : 1);
}

static void add_products(const data_view *d, const mixed_bases *b, mixed_design *m, rows *w) {
    int64_t p1 = m->p + 1, r = m->r;
    for (int64_t i = 0; i < m->curves; i++) {
        double *zz = m->zz + i * r * r, *zx = m->zx + i * r * p1;
        for (int64_t k = 0; k < points_of(d, i); k++) {
            read_row(d, b, m, i, k, w);
            for (int32_t j = 0; j < m->p; j++) w->x[m->p] -= m->pooled[j] * w->x[j];
            for (int64_t a = 0; a < r; a++) {
                for (int64_t c = 0; c < r; c++) zz[a * r + c] += w->z[a] * w->z[c];
                for (int64_t c = 0; c < p1; c++) zx[a * p1 + c] += w->z[a] * w->x[c];
            }
            for (int64_t a = 0; a < p1; a++)
                for (int64_t c = 0; c <= a; c++) m->xx[a * p1 + c] += w->x[a] * w->x[c];
        }
    }
    m->spread = sqrt(m->xx[p1 * p1 - 1] / (double)m->points);
}

static mnp_status make_products(env *e, const data_view *d, const mixed_bases *b, mixed_design *m) {
    size_t J = (size_t)m->curves, p1 = (size_t)m->p + 1, r = (size_t)m->r;
    size_t raw = (size_t)most(m->x.columns, m->z.columns);
    m->zz = env_alloc(e, J * r * r, sizeof(double), "a mixed model");
    m->zx = env_alloc(e, J * r * p1, sizeof(double), "a mixed model");
    m->xx = env_alloc(e, p1 * p1, sizeof(double), "a mixed model");
    m->pooled = env_alloc(e, p1, sizeof(double), "a mixed model");
    rows w = {.raw = env_alloc(e, raw + p1 + r, sizeof(double), "a row")};
    bool there = m->zz && m->zx && m->xx && m->pooled && w.raw;
    if (there) {
        w.x = w.raw + raw, w.z = w.x + p1;
        fit_pooled(d, b, m, &w);
        add_products(d, b, m, &w);
    }
    env_free(e, w.raw);
    return there ? MNP_OK : MNP_ENOMEM;
}

mnp_status mixed_design_make(env *e, const data_view *d, const mixed_bases *b, mixed_design *out) {
    *out = (mixed_design){.curves = d->functions, .points = d->start[d->functions]};
    mnp_status status = make_frame(e, d, b, false, &out->x);
    if (status == MNP_OK) status = make_frame(e, d, b, true, &out->z);
    out->p = out->x.rank, out->r = out->z.rank;
    if (status == MNP_OK) status = make_products(e, d, b, out);
    if (status != MNP_OK) mixed_design_free(e, out);
    return status;
}

void mixed_design_free(env *e, mixed_design *d) {
    env_free(e, d->x.kept);
    env_free(e, d->x.turn);
    env_free(e, d->z.kept);
    env_free(e, d->z.turn);
    env_free(e, d->zz);
    env_free(e, d->zx);
    env_free(e, d->xx);
    env_free(e, d->pooled);
    *d = (mixed_design){0};
}

/* ---- back ------------------------------------------------------------------------------------ */

/* out (columns, columns) = scale turn a^T, or scale turn a, for a lower (rank, rank), in the kept
 * columns; zeros elsewhere. */
static void unturn_lower(const mixed_frame *f, const double *a, bool transposed, double scale,
                         double *out) {
    int64_t n = f->columns, r = f->rank;
    memset(out, 0, (size_t)(n * n) * sizeof *out);
    for (int64_t i = 0; i < r; i++)
        for (int64_t k = i; k < r; k++)
            for (int64_t j = transposed ? k : 0; j < (transposed ? r : k + 1); j++)
                out[f->kept[i] * n + j] +=
                    scale * f->turn[i * r + k] * (transposed ? a[j * r + k] : a[k * r + j]);
}

void mixed_unturn(const mixed_design *d, const mixed_parameters *p, double *mean, double *spread,
                  double *curve) {
    double sigma = sqrt(p->variance);
    memset(mean, 0, (size_t)d->x.columns * sizeof *mean);
    for (int64_t i = 0; i < d->p; i++)
        for (int64_t k = i; k < d->p; k++)
            mean[d->x.kept[i]] += d->x.turn[i * d->p + k] * (d->pooled[k] + p->beta[k]);
    memcpy(p->room, p->factor, (size_t)d->p * (size_t)d->p * sizeof *p->room);
    linalg_invert_lower(p->room, d->p, d->p);
    unturn_lower(&d->x, p->room, true, sigma, spread);
    unturn_lower(&d->z, p->lambda, false, sigma, curve);
}
