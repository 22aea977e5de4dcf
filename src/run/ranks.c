/* ranks.c: see ranks.h. */
#include "run/ranks.h"

#include <math.h>
#include <string.h>

#include "util/least.h"

/* Room for the sums below. */
typedef struct work {
    double *log_factorial; /* (N + 1)                                             */
    double *pmf;           /* (N + 1): binomial, of one j                         */
    double *now, *next;    /* (N + 1): chance of each count while inside so far   */
    double *poisson;       /* (N + 1): of the ranks that have one value, mean N / (S + 1) */
} work;

static void free_work(env *e, work *w) {
    double *arrays[] = {w->log_factorial, w->pmf, w->now, w->next, w->poisson};
    for (int k = 0; k < 5; k++) env_free(e, arrays[k]);
}

static mnp_status make_work(env *e, int64_t N, int64_t S, work *w) {
    double **arrays[] = {&w->log_factorial, &w->pmf, &w->now, &w->next, &w->poisson};
    *w = (work){0};
    for (int k = 0; k < 5; k++) {
        *arrays[k] = env_alloc(e, (size_t)N + 1, sizeof(double), "a band");
        if (*arrays[k]) continue;
        free_work(e, w);
        return MNP_ENOMEM;
    }
    double mean = (double)N / ((double)S + 1), sum = 0;
    for (int64_t k = 0; k <= N; k++) {
        if (k) sum += log((double)k);
        w->log_factorial[k] = sum;
        w->poisson[k] = exp((double)k * log(mean) - mean - sum);
    }
    return MNP_OK;
}

static void fill_binomial(const work *w, int64_t N, double chance) {
    for (int64_t k = 0; k <= N; k++)
        w->pmf[k] = exp(w->log_factorial[N] - w->log_factorial[k] - w->log_factorial[N - k] +
                        (double)k * log(chance) + (double)(N - k) * log1p(-chance));
}

/* The counts that neither tail makes rarer than gamma / 2: P(X <= k), P(X >= k) >= gamma / 2. */
static void set_intervals(const work *w, ranks_band *b) {
    int64_t N = b->functions, S = b->draws;
    b->lo[0] = b->hi[0] = 0;
    b->lo[S + 1] = b->hi[S + 1] = N;
    for (int64_t j = 1; j <= S; j++) {
        fill_binomial(w, N, (double)j / ((double)S + 1));
        double below = 0, above = 0;
        int64_t lo = 0, hi = N;
        while (lo < N && (below += w->pmf[lo]) < b->gamma / 2) lo++;
        while (hi > 0 && (above += w->pmf[hi]) < b->gamma / 2) hi--;
        b->lo[j] = lo;
        b->hi[j] = hi;
    }
}

/* The chance that uniform ranks stay inside. The numbers of ranks with each of the S + 1 values are
 * as independent Poisson numbers that happen to sum to N, so their running sums go from one j to
 * the next by adding one more, and the chance of the sum N is divided out in the end. */
static double find_coverage(const work *w, const ranks_band *b) {
    int64_t N = b->functions, S = b->draws;
    double *now = w->now, *next = w->next;
    memset(now, 0, ((size_t)N + 1) * sizeof *now);
    now[0] = 1;
    for (int64_t j = 0; j <= S; j++) {
        memset(next, 0, ((size_t)N + 1) * sizeof *next);
        for (int64_t k = b->lo[j]; k <= b->hi[j]; k++)
            for (int64_t to = most(k, b->lo[j + 1]); to <= b->hi[j + 1]; to++)
                next[to] += now[k] * w->poisson[to - k];
        double *keep = now;
        now = next, next = keep;
    }
    double all = exp((double)N * log((double)N) - (double)N - w->log_factorial[N]);
    return now[N] / all;
}

static double coverage_at(const work *w, ranks_band *b, double gamma) {
    b->gamma = gamma;
    set_intervals(w, b);
    return b->coverage = find_coverage(w, b);
}

static mnp_status make_band(env *e, int64_t N, int64_t S, ranks_band *b) {
    *b = (ranks_band){.functions = N, .draws = S};
    b->lo = env_alloc(e, (size_t)S + 2, sizeof *b->lo, "a band");
    b->hi = env_alloc(e, (size_t)S + 2, sizeof *b->hi, "a band");
    if (b->lo && b->hi) return MNP_OK;
    ranks_band_free(e, b);
    return MNP_ENOMEM;
}

void ranks_band_free(env *e, ranks_band *b) {
    env_free(e, b->lo);
    env_free(e, b->hi);
    *b = (ranks_band){0};
}

/* The coverage falls as gamma rises, in steps; the largest gamma that still covers. */
mnp_status ranks_band_make(env *e, int64_t functions, int64_t draws, double level,
                           ranks_band *out) {
    work w;
    MNP_TRY(make_band(e, functions, draws, out));
    mnp_status status = make_work(e, functions, draws, &w);
    if (status != MNP_OK) {
        ranks_band_free(e, out);
        return status;
    }
    double covers = 0, leaves = 1 - level; /* one interval alone is left that often */
    for (int i = 0; i < 30; i++) {
        double gamma = (covers + leaves) / 2;
        if (coverage_at(&w, out, gamma) >= level)
            covers = gamma;
        else
            leaves = gamma;
    }
    coverage_at(&w, out, covers);
    free_work(e, &w);
    return MNP_OK;
}

void ranks_count(const int64_t *ranks, int64_t functions, int64_t draws, int64_t *below) {
    memset(below, 0, ((size_t)draws + 2) * sizeof *below);
    for (int64_t i = 0; i < functions; i++) below[ranks[i] + 1]++;
    for (int64_t j = 1; j <= draws + 1; j++) below[j] += below[j - 1];
}

bool ranks_inside(const ranks_band *b, const int64_t *below) {
    for (int64_t j = 1; j <= b->draws; j++)
        if (below[j] < b->lo[j] || below[j] > b->hi[j]) return false;
    return true;
}

/* The smaller tail of the count below j, twice: the largest gamma whose interval still holds it. */
static double two_tails(const work *w, int64_t N, int64_t count) {
    double below = 0, above = 0;
    for (int64_t k = 0; k <= count; k++) below += w->pmf[k];
    for (int64_t k = N; k >= count; k--) above += w->pmf[k];
    return 2 * fmin(below, above);
}

mnp_status ranks_chance(env *e, int64_t functions, int64_t draws, const int64_t *below,
                        double *out) {
    ranks_band b;
    work w;
    MNP_TRY(make_band(e, functions, draws, &b));
    mnp_status status = make_work(e, functions, draws, &w);
    if (status == MNP_OK) {
        double rarest = 2;
        for (int64_t j = 1; j <= draws; j++) {
            fill_binomial(&w, functions, (double)j / ((double)draws + 1));
            rarest = fmin(rarest, two_tails(&w, functions, below[j]));
        }
        /* a little more than the rarest, so that it is outside whatever the rounding */
        *out = fmin(fmax(1 - coverage_at(&w, &b, rarest * (1 + 1e-9)), 0), 1);
        free_work(e, &w);
    }
    ranks_band_free(e, &b);
    return status;
}
