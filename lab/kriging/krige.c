/* krige.c: the weights of kriging, and densities, maps and realisations from them (krige.h). With C
 * the covariance of the neighbours, c their covariance with the pixel and 1 a vector of ones,
 *
 *   weights   C^-1 c + C^-1 1 (1 - 1'C^-1 c) / (1'C^-1 1)
 *   variance  sill + nugget - c'C^-1 c + (1 - 1'C^-1 c)^2 / (1'C^-1 1)
 *
 * where the last terms are the price of not knowing the mean. */
#include "lab/kriging/krige.h"

#include <math.h>
#include <string.h>

#include "lab/kriging/tools.h"

#define HALF_LOG_2PI 0.91893853320467274178

enum {
    SOLVED = 63
}; /* pixels whose weights are solved for together, where neighbours are shared */

struct krige_plan {
    env *e;
    const krige *k;
    krige_law law;
    bool exact;       /* all wells serve all pixels           */
    int64_t n, near;  /* pixels; neighbours of each at most   */
    uint8_t *is_well; /* (n) */
    double *cov;      /* (rows, cols): covariance by rows and columns apart */
    int32_t *order;   /* (n) the path through the pixels */
    int32_t *rank;    /* (n) its inverse                 */
    int32_t *count;   /* (n) neighbours of each pixel    */
    int32_t *at;      /* (n, near) which, nearest first  */
    float *weight;    /* (n, near) */
    double *sd;       /* (n) with the nugget */
    double *work;     /* (threads, near (near + SOLVED + 1)) */
};

/* ---- neighbours ------------------------------------------------------------------------------ */

typedef struct near_list {
    int32_t *at; /* nearest first */
    int64_t count, most;
    int64_t distance2[KRIGE_EXACT];
} near_list;

static void near_add(near_list *l, int32_t pixel, int64_t distance2) {
    if (l->count == l->most && distance2 >= l->distance2[l->count - 1]) return;
    int64_t i = l->count < l->most ? l->count++ : l->count - 1;
    for (; i > 0 && l->distance2[i - 1] > distance2; i--) {
        l->distance2[i] = l->distance2[i - 1];
        l->at[i] = l->at[i - 1];
    }
    l->distance2[i] = distance2;
    l->at[i] = pixel;
}

static bool may_serve(const krige_plan *p, int64_t pixel, int64_t other) {
    return p->is_well[other] || (p->law == KRIGE_JOINT && p->rank[other] < p->rank[pixel]);
}

/* Rings of growing half-width around the pixel, until no nearer one can come. */
static int64_t find_near(const krige_plan *p, int64_t pixel, int32_t *at) {
    int64_t rows = p->k->rows, cols = p->k->cols, row = pixel / cols, col = pixel % cols;
    int64_t most_rings = rows > cols ? rows : cols;
    near_list l = {.at = at, .most = p->near};
    for (int64_t r = 0; r < most_rings; r++) {
        if (l.count == l.most && r * r > l.distance2[l.count - 1]) break;
        for (int64_t i = row - r; i <= row + r; i++) {
            if (i < 0 || i >= rows) continue;
            bool edge = i == row - r || i == row + r;
            for (int64_t j = col - r; j <= col + r; j += edge || r == 0 ? 1 : 2 * r)
                if (j >= 0 && j < cols && may_serve(p, pixel, i * cols + j))
                    near_add(&l, (int32_t)(i * cols + j),
                             (i - row) * (i - row) + (j - col) * (j - col));
        }
    }
    return l.count;
}

static double between(const krige_plan *p, int32_t a, int32_t b) {
    int64_t cols = p->k->cols, i = a / cols - b / cols, j = a % cols - b % cols;
    return p->cov[(i < 0 ? -i : i) * cols + (j < 0 ? -j : j)];
}

/* L (m, m) of the covariance of m pixels, among them wells. False where it is singular. */
static bool factor(const krige_plan *p, const int32_t *at, int64_t m, double *l) {
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < i; j++) l[i * m + j] = between(p, at[i], at[j]);
        bool well = p->is_well[at[i]];
        l[i * m + i] = p->k->sill + (well ? p->k->nugget_well : p->k->nugget_pixel);
    }
    return cholesky(l, m);
}

/* Weights and spread of `count` pixels with the same m neighbours, L their factor. right
 * (m, count + 1) becomes C^-1 c of each pixel, and C^-1 1 in the last column. */
static void solve_weights(const krige_plan *p, int64_t first, int64_t count, const double *l,
                          int64_t m, double *right) {
    int64_t wide = count + 1;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < count; j++)
            right[i * wide + j] =
                between(p, (int32_t)(first + j), p->at[(first + j) * p->near + i]);
        right[i * wide + count] = 1;
    }
    solve_lower(l, m, right, wide);
    double ones = 0, c1[SOLVED] = {0};
    for (int64_t i = 0; i < m; i++) ones += right[i * wide + count] * right[i * wide + count];
    for (int64_t j = 0; j < count; j++) {
        double cc = 0;
        for (int64_t i = 0; i < m; i++) {
            cc += right[i * wide + j] * right[i * wide + j];
            c1[j] += right[i * wide + j] * right[i * wide + count];
        }
        double v = p->k->sill - cc + (1 - c1[j]) * (1 - c1[j]) / ones;
        p->sd[first + j] = sqrt(fmax(v, 0) + p->k->nugget_pixel);
        p->count[first + j] = (int32_t)m;
    }
    solve_upper(l, m, right, wide);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < count; j++)
            p->weight[(first + j) * p->near + i] =
                (float)(right[i * wide + j] + right[i * wide + count] * (1 - c1[j]) / ones);
}

/* SOLVED pixels. Where all wells serve all pixels their factor is there: the first worker's. */
static void plan_task(void *arg, int64_t task, int worker) {
    krige_plan *p = arg;
    int64_t first = task * SOLVED, count = first + SOLVED < p->n ? SOLVED : p->n - first;
    double *l = p->work + worker * p->near * (p->near + SOLVED + 1), *right = l + p->near * p->near;
    if (p->exact) {
        solve_weights(p, first, count, p->work, p->near, right);
        return;
    }
    for (int64_t pixel = first; pixel < first + count; pixel++) {
        int64_t m = find_near(p, pixel, p->at + pixel * p->near);
        bool regular = factor(p, p->at + pixel * p->near, m, l);
        while (!regular && m > 1) /* the nearest ones alone */
            regular = factor(p, p->at + pixel * p->near, m /= 2, l);
        solve_weights(p, pixel, 1, l, m, right);
    }
}

/* All wells serve all pixels: one factor. */
static bool factor_all(krige_plan *p) {
    int64_t wells = p->near;
    for (int64_t i = 0, m = 0; i < p->n; i++)
        if (p->is_well[i]) p->at[m++] = (int32_t)i;
    for (int64_t i = 1; i < p->n; i++)
        memcpy(p->at + i * wells, p->at, (size_t)wells * sizeof *p->at);
    return factor(p, p->at, wells, p->work);
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* From coarse to fine: pixels whose row and column are multiples of 64, then of 32 ..., in random
 * order within a grid. */
static void make_path(krige_plan *p) {
    int64_t cols = p->k->cols, done = 0;
    for (int64_t step = 64; step >= 1; step /= 2) {
        int64_t first = done;
        for (int64_t i = 0; i < p->n; i++) {
            int64_t both = i / cols | i % cols;
            bool coarser = step < 64 && both % (2 * step) == 0;
            if (both % step == 0 && !coarser) p->order[done++] = (int32_t)i;
        }
        draws s = draws_of(0, DRAWS_SPLIT, (uint32_t)step);
        draws_shuffle(&s, p->order + first, done - first);
    }
    for (int64_t i = 0; i < p->n; i++) p->rank[p->order[i]] = (int32_t)i;
}

mnp_status krige_plan_make(env *e, int threads, const krige *k, const uint8_t *well, krige_law law,
                           krige_plan **out) {
    *out = NULL;
    size_t n = (size_t)(k->rows * k->cols), wells = 0;
    for (size_t i = 0; i < n; i++) wells += well[i] != 0;
    if (wells < 1) return env_fail(e, MNP_EINVAL, "kriging needs at least one measurement");
    bool exact = law == KRIGE_PIXELS && wells <= KRIGE_EXACT;
    size_t near = exact ? wells : KRIGE_NEAR;
    size_t work = (size_t)threads * near * (near + SOLVED + 1);
    krige_plan *p = env_alloc(e, 1, sizeof *p + 8 * (2 * n + work) + 4 * (3 * n + 2 * n * near) + n,
                              "a kriging plan");
    if (!p) return MNP_ENOMEM;
    *p = (krige_plan){.e = e, .k = k, .law = law, .exact = exact};
    p->n = (int64_t)n, p->near = (int64_t)near;
    p->cov = (double *)(p + 1);
    p->sd = p->cov + n;
    p->work = p->sd + n;
    p->order = (int32_t *)(p->work + work);
    p->rank = p->order + n;
    p->count = p->rank + n;
    p->at = p->count + n;
    p->weight = (float *)(p->at + n * near);
    p->is_well = (uint8_t *)(p->weight + n * near);
    for (size_t i = 0; i < n; i++) {
        size_t rows_apart = i / (size_t)k->cols, cols_apart = i % (size_t)k->cols;
        p->is_well[i] = well[i] != 0;
        p->cov[i] = krige_covariance(k, (double)rows_apart, (double)cols_apart);
    }
    make_path(p);
    if (exact && !factor_all(p)) {
        krige_plan_destroy(p);
        return env_fail(e, MNP_ENUMERIC, "the covariance of %zu measurements is singular", wells);
    }
    share(threads, (p->n + SOLVED - 1) / SOLVED, plan_task, p);
    *out = p;
    return MNP_OK;
}

void krige_plan_destroy(krige_plan *p) {
    if (p) env_free(p->e, p);
}

/* ---- use ------------------------------------------------------------------------------------- */

static double to_field(const krige *k, double y, double *log_slope) {
    if (k->kind == KRIGE_SCORES) return krige_score_of(&k->scores, y, log_slope);
    if (log_slope) *log_slope = 0;
    return y;
}

static double mean_at(const krige_plan *p, int64_t pixel, const double *u) {
    double mean = 0;
    for (int64_t i = 0; i < p->count[pixel]; i++)
        mean += (double)p->weight[pixel * p->near + i] * u[p->at[pixel * p->near + i]];
    return mean;
}

double krige_logp(const krige_plan *p, const float *measured, const float *target, double *work) {
    double *known = work, *value = work + p->n, *slope = value + p->n, sum = 0;
    for (int64_t i = 0; i < p->n; i++) {
        value[i] = to_field(p->k, (double)target[i], &slope[i]);
        known[i] = p->is_well[i] ? to_field(p->k, (double)measured[i], NULL) : value[i];
    }
    for (int64_t i = 0; i < p->n; i++) {
        double z = (value[i] - mean_at(p, i, known)) / p->sd[i];
        sum += -0.5 * z * z - log(p->sd[i]) - HALF_LOG_2PI + slope[i];
    }
    return sum;
}

/* Mean and sd of y where u is normal, over equally likely levels. */
static void back_transform(const krige *k, double mean, double sd, double *y_mean, double *y_sd) {
    enum { LEVELS = 16 };
    static const double level[LEVELS / 2] = {0.0815875, 0.2468071, 0.4185383, 0.6025828,
                                             0.8078612, 1.0508874, 1.3713808, 1.938159};
    double sum = 0, squares = 0;
    for (int i = 0; i < LEVELS; i++) {
        double y = krige_unscore(&k->scores, mean + (i % 2 ? -sd : sd) * level[i / 2]);
        sum += y, squares += y * y;
    }
    *y_mean = sum / LEVELS;
    *y_sd = sqrt(fmax(squares / LEVELS - *y_mean * *y_mean, 0));
}

void krige_map(const krige_plan *p, const float *measured, double *work, double *mean, double *sd,
               double *below) {
    double zero = to_field(p->k, 0, NULL);
    for (int64_t i = 0; i < p->n; i++)
        work[i] = p->is_well[i] ? to_field(p->k, (double)measured[i], NULL) : 0;
    for (int64_t i = 0; i < p->n; i++) {
        mean[i] = mean_at(p, i, work);
        sd[i] = p->sd[i];
        below[i] = 0.5 * erfc((mean[i] - zero) / sd[i] / sqrt(2.0));
        if (p->k->kind == KRIGE_SCORES) back_transform(p->k, mean[i], sd[i], &mean[i], &sd[i]);
    }
}

void krige_draw(const krige_plan *p, const float *measured, uint64_t seed, int64_t sample,
                double *work, float *y) {
    for (int64_t i = 0; i < p->n; i++)
        work[i] = p->is_well[i] ? to_field(p->k, (double)measured[i], NULL) : 0;
    draws s = draws_of(seed, DRAWS_FIELD, (uint32_t)sample);
    for (int64_t k = 0; k < p->n; k++) {
        int64_t i = p->order[k];
        double u = mean_at(p, i, work) + p->sd[i] * draws_normal(&s);
        y[i] = (float)(p->k->kind == KRIGE_SCORES ? krige_unscore(&p->k->scores, u) : u);
        if (!p->is_well[i]) work[i] = u;
    }
}
