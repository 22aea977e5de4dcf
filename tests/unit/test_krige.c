/* test_krige.c: kriging against dense formulas, normal scores, and a fit that finds what it was
 * given. */
#include "base/rng_normal.h"
#include "check.h"
#include "lab/kriging/krige.h"
#include "lab/kriging/tools.h"
#include "op/permute.h"
#include "op/region.h"

enum { ROWS = 5, COLS = 6, N = ROWS * COLS };

static const krige plain = {.kind = KRIGE_ORDINARY,
                            .shape = KRIGE_MATERN32,
                            .rows = ROWS,
                            .cols = COLS,
                            .range = {1.5, 2.5},
                            .sill = 0.4,
                            .nugget_well = 0.001,
                            .nugget_pixel = 0.0035,
                            .noise = 0.05};

static void random_values(float *y, int64_t n, uint32_t which) {
    rng_stream s = rng_stream_make((rng_key){1}, RNG_TEST, which);
    for (int64_t i = 0; i < n; i++) y[i] = (float)(0.4 * rng_normal(&s));
}

/* Restricted log-likelihood of the pixels listed, each measured or not. */
static double restricted(const float *y, const int *pixel, const uint8_t *well, int n) {
    double u[N + 1], work[(N + 1) * (N + 3)];
    int32_t place[2 * (N + 1)];
    for (int i = 0; i < n; i++) {
        u[i] = (double)y[pixel[i]];
        place[2 * i] = pixel[i] / COLS;
        place[2 * i + 1] = pixel[i] % COLS;
    }
    return krige_restricted(&plain, n, u, place, well, work);
}

/* With one well at the first pixel of the path and neighbours enough for all, the chain rule is
 * exact: a ratio of restricted likelihoods, plus the noisy value at the well itself. */
static void joint_is_the_dense_density(void) {
    env e;
    env_init(&e);
    float measured[N], target[N];
    uint8_t well[N] = {1}, kinds[N] = {1}, alone[2] = {1, 0};
    int all[N];
    double work[3 * N];
    random_values(measured, N, 0);
    random_values(target, N, 1);
    krige_plan *p = NULL;
    CHECK(krige_plan_make(&e, 1, &plain, well, KRIGE_JOINT, &p) == MNP_OK);
    double got = krige_logp(p, measured, target, work);
    krige_plan_destroy(p);
    float mixed[N];
    for (int i = 0; i < N; i++) all[i] = i, mixed[i] = i ? target[i] : measured[i];
    double one = restricted(mixed, all, kinds, 1), rest = restricted(mixed, all, kinds, N);
    /* the pair: the well, and the target of the same pixel */
    double u[2] = {(double)measured[0], (double)target[0]}, pair_work[8];
    int32_t place[4] = {0};
    double pair = krige_restricted(&plain, 2, u, place, alone, pair_work);
    NEAR(got, rest - one + pair - one - N * 0.91893853320467274178, 2e-5, 0);
}

/* Each pixel by itself, against a solution of the kriging system with its multiplier. */
static void pixels_solve_the_kriging_system(void) {
    env e;
    env_init(&e);
    const int wells[3] = {3, 16, 28};
    uint8_t well[N] = {0};
    float measured[N];
    double work[3 * N], mean[N], sd[N], below[N];
    random_values(measured, N, 2);
    for (int i = 0; i < 3; i++) well[wells[i]] = 1;
    krige_plan *p = NULL;
    CHECK(krige_plan_make(&e, 1, &plain, well, KRIGE_PIXELS, &p) == MNP_OK);
    krige_map(p, measured, work, mean, sd, below);
    krige_plan_destroy(p);
    for (int pixel = 0; pixel < N; pixel++) {
        double a[4][5]; /* [C 1; 1' 0 | c; 1] */
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 5; j++) {
                int b = j < 3 ? wells[j] : pixel;
                a[i][j] = i == 3   ? (j == 3 ? 0 : 1)
                          : j == 3 ? 1
                                   : krige_covariance(&plain, wells[i] / COLS - b / COLS,
                                                      wells[i] % COLS - b % COLS);
                if (i == j && i < 3) a[i][j] += plain.nugget_well;
            }
        double c[3] = {a[0][4], a[1][4], a[2][4]};
        for (int k = 0; k < 4; k++) { /* elimination with row exchange */
            int best = k;
            for (int i = k + 1; i < 4; i++)
                if (fabs(a[i][k]) > fabs(a[best][k])) best = i;
            for (int j = 0; j < 5; j++) {
                double t = a[k][j];
                a[k][j] = a[best][j];
                a[best][j] = t;
            }
            for (int i = 0; i < 4; i++)
                for (int j = 4; i != k && j >= k; j--) a[i][j] -= a[i][k] / a[k][k] * a[k][j];
        }
        double want = 0, variance = plain.sill + plain.nugget_pixel - a[3][4] / a[3][3];
        for (int i = 0; i < 3; i++) {
            want += a[i][4] / a[i][i] * (double)measured[wells[i]];
            variance -= a[i][4] / a[i][i] * c[i];
        }
        NEAR(mean[pixel], want, 1e-6, 0);
        NEAR(sd[pixel], sqrt(variance), 1e-6, 0);
        NEAR(below[pixel], 0.5 * erfc(want / sqrt(2 * variance)), 1e-6, 0);
    }
}

static void scores_and_back(void) {
    static krige_scores s;
    static float y[4000];
    for (int i = 0; i < 4000; i++) y[i] = i % 5 == 0 ? -0.97f : (float)tanh(0.002 * i - 2);
    krige_scores_make(y, 4000, 0.05, &s);
    for (double v = -1.1; v < 1.1; v += 0.05) {
        double slope, u = krige_score_of(&s, v, &slope), h = 1e-3;
        NEAR(krige_unscore(&s, u), v, 1e-9, 0);
        NEAR(slope,
             log((krige_score_of(&s, v + h, NULL) - krige_score_of(&s, v - h, NULL)) / (2 * h)),
             0.02, 0);
    }
    /* the density that the scores give is one: a standard normal u */
    double mass = 0;
    for (int i = 0; i < 2800; i++) {
        double slope, u = krige_score_of(&s, -1.4 + 0.001 * i, &slope);
        mass += 0.001 * exp(-u * u / 2 + slope) / sqrt(2 * 3.14159265358979);
    }
    NEAR(mass, 1, 1e-3, 0);
}

enum { SIDE = 32, IMAGES = 24 };

static void fit_finds_the_field(void) {
    env e;
    env_init(&e);
    krige truth = plain, found;
    truth.rows = truth.cols = SIDE;
    truth.shape = KRIGE_EXPONENTIAL;
    truth.range[0] = 4, truth.range[1] = 8;
    truth.nugget_well = 1e-5, truth.nugget_pixel = 1e-4;
    static float y[IMAGES * SIDE * SIDE];
    double *work = malloc(3 * sizeof *work * SIDE * SIDE);
    uint8_t well[SIDE * SIDE] = {1};
    float zero[SIDE * SIDE] = {0};
    krige_plan *p = NULL;
    CHECK(krige_plan_make(&e, 1, &truth, well, KRIGE_JOINT, &p) == MNP_OK);
    for (int i = 0; i < IMAGES; i++) krige_draw(p, zero, 3, i, work, y + i * SIDE * SIDE);
    krige_plan_destroy(p);
    krige_fit_opts o = {KRIGE_ORDINARY, SIDE, SIDE, IMAGES, 60, 0.05, 1};
    CHECK(krige_fit(&e, 2, &o, y, &found) == MNP_OK);
    CHECK(found.shape == KRIGE_EXPONENTIAL);
    NEAR(found.range[0] / found.range[1], 0.5, 0.12, 0);
    NEAR(found.sill / found.range[0], truth.sill / truth.range[0], 0, 0.25);
    CHECK(krige_fit(&e, 2, &(krige_fit_opts){.rows = SIDE, .cols = SIDE}, y, &found) == MNP_EINVAL);
    free(work);
}

/* Kriging sees the wells and the noise on which the library scores networks. */
static void draws_are_the_librarys(void) {
    enum { WELLS = 40, PIXELS = SIDE * SIDE };
    static int32_t memory[8 * PIXELS], order[PIXELS];
    static uint8_t well[PIXELS];
    krige k = {.rows = SIDE, .cols = SIDE};
    for (uint32_t i = 0; i < 3; i++) {
        krige_eval_opts o = {.context = KRIGE_UNIFORM, .wells = WELLS, .seed = 7};
        krige_wells(&k, &o, i, order, well);
        rng_stream s = rng_stream_make((rng_key){7}, RNG_SPLIT_EVAL, i);
        (void)rng_below(&s, 1);
        const int32_t *want = permute_prefix(&s, PIXELS, WELLS, memory);
        int count = 0;
        for (int p = 0; p < PIXELS; p++) count += well[p];
        for (int j = 0; j < WELLS; j++) CHECK(order[j] == want[j] && well[want[j]]);
        CHECK(count == WELLS);
        for (uint32_t p = 0; p < 200; p++) {
            rng_at at = {.purpose = RNG_NOISE, .function = i, .point = p};
            NEAR(draws_noise(7, i, p), (double)rng_normal_at((rng_key){7}, at), 1e-6, 1e-6);
        }
    }
    for (int region = 0; region < REGION_COUNT; region++) {
        krige_eval_opts o = {.context = (krige_context)(KRIGE_TOP + region)};
        krige_wells(&k, &o, 0, NULL, well);
        for (int p = 0; p < PIXELS; p++)
            CHECK(well[p] == region_holds(region, 2.0f * (float)(p / SIDE) / (SIDE - 1) - 1,
                                          2.0f * (float)(p % SIDE) / (SIDE - 1) - 1));
    }
    draws ours = draws_of(5, DRAWS_FIELD, 2);
    rng_stream theirs = rng_stream_make((rng_key){5}, RNG_BASE, 2);
    for (int j = 0; j < 50; j++) CHECK(draws_normal(&ours) == rng_normal(&theirs));
}

/* Scores of images by hand: plans, targets and sums in the open. */
static void evaluation_is_its_plans(void) {
    enum { COUNT = 3 };
    env e;
    env_init(&e);
    float y[COUNT][N], target[N];
    const float *image[COUNT];
    double work[3 * N], want[2] = {0};
    for (int i = 0; i < COUNT; i++) random_values(y[i], N, 10 + (uint32_t)i), image[i] = y[i];
    for (int threads = 1; threads <= 2; threads++) {
        krige_eval_opts o = {
            .context = KRIGE_UNIFORM, .wells = 4, .seed = 2, .noise = 0.05, .threads = threads};
        krige_score got;
        CHECK(krige_evaluate(&e, &plain, image, COUNT, &o, &got) == MNP_OK);
        for (int law = 0; law < KRIGE_LAWS; law++) {
            want[0] = want[1] = 0;
            for (int i = 0; i < COUNT; i++) {
                uint8_t well[N];
                int32_t order[N];
                krige_plan *p = NULL;
                krige_wells(&plain, &o, i, order, well);
                CHECK(krige_plan_make(&e, 1, &plain, well, (krige_law)law, &p) == MNP_OK);
                for (uint32_t k = 0; k < N; k++)
                    target[k] = (float)((double)y[i][k] + 0.05 * draws_noise(2, (uint32_t)i, k));
                want[KRIGE_NOISY] += krige_logp(p, y[i], target, work) / N / COUNT;
                want[KRIGE_CLEAN] += krige_logp(p, y[i], y[i], work) / N / COUNT;
                krige_plan_destroy(p);
            }
            for (int kind = 0; kind < KRIGE_TARGETS; kind++)
                NEAR(got.loglik[kind][law], want[kind], 1e-12, 0);
        }
    }
}

static void needs_a_well(void) {
    env e;
    env_init(&e);
    uint8_t well[N] = {0};
    krige_plan *p = NULL;
    CHECK(krige_plan_make(&e, 1, &plain, well, KRIGE_PIXELS, &p) == MNP_EINVAL && !p);
}

int main(void) {
    RUN(joint_is_the_dense_density);
    RUN(pixels_solve_the_kriging_system);
    RUN(scores_and_back);
    RUN(fit_finds_the_field);
    RUN(draws_are_the_librarys);
    RUN(evaluation_is_its_plans);
    RUN(needs_a_well);
    return check_done();
}
