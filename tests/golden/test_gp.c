/* test_gp.c: Gaussian processes against an independent implementation (gp_kernels.json: numpy in
 * float64, checked there against two libraries): Gram matrices, joint and conditional log
 * densities, conditional means and covariances, gradients. Tolerance 1e-9. Gradients that the
 * file does not have are compared with finite differences. */
#include "base/gp_math.h"
#include "base/rng.h"
#include "check.h"
#include "util/json.h"

static env world;
static json_doc *doc;

enum { N = 12 };

typedef struct golden {
    const json_value *json;
    gp_kernel k;
    double x[N], y[N];   /* in the file's order       */
    double cx[N], cy[N]; /* context first             */
    int64_t m;           /* context points            */
    int64_t context[N], target[N];
} golden;

static double number(const json_value *v, const char *key) {
    double x = NAN;
    CHECK(json_number(&world, json_get(v, key), key, &x) == MNP_OK);
    return x;
}

static int64_t indices(const char *key, int64_t *out) {
    const json_value *list = json_get(json_root(doc), key);
    for (size_t i = 0; i < list->count; i++)
        CHECK(json_integer(&world, json_at(list, i), key, &out[i]) == MNP_OK);
    return (int64_t)list->count;
}

/* Where each parameter of the file goes. */
static void set_params(golden *g, const char *name) {
    const json_value *p = json_get(g->json, "params");
    double *h = g->k.hyper;
    h[GP_LOG_NOISE] = log(number(g->json, "noise_variance"));
    if (!strcmp(name, "rbf")) h[GP_LOG_LENGTH_RBF] = log(number(p, "ell"));
    if (!strcmp(name, "matern52")) h[GP_LOG_LENGTH_MATERN] = log(number(p, "ell"));
    if (!strcmp(name, "periodic")) {
        h[GP_LOG_LENGTH_PERIODIC] = log(number(p, "ell"));
        h[GP_LOG_PERIOD] = log(number(p, "p"));
    }
    if (strcmp(name, "sum") != 0) return;
    h[GP_LOG_LENGTH_RBF] = log(number(p, "rbf_ell"));
    h[GP_LOG_LENGTH_MATERN] = log(number(p, "mat_ell"));
    h[GP_LOG_LENGTH_PERIODIC] = log(number(p, "per_ell"));
    h[GP_LOG_PERIOD] = log(number(p, "per_p"));
}

static const struct {
    const char *name;
    int32_t parts;
} kernels[] = {
    {"rbf", GP_RBF}, {"matern52", GP_MATERN}, {"periodic", GP_PERIODIC}, {"sum", GP_SUM}};
enum { KERNELS = sizeof kernels / sizeof *kernels };

static golden load(int i) {
    golden g = {.json = json_get(json_get(json_root(doc), "cases"), kernels[i].name),
                .k = gp_kernel_make(kernels[i].parts)};
    CASE(kernels[i].name);
    set_params(&g, kernels[i].name);
    CHECK(json_numbers(&world, json_get(json_root(doc), "x"), "x", g.x, N) == MNP_OK);
    CHECK(json_numbers(&world, json_get(g.json, "y"), "y", g.y, N) == MNP_OK);
    g.m = indices("context", g.context);
    int64_t rest = indices("target", g.target);
    CHECK(g.m + rest == N);
    for (int64_t j = 0; j < N; j++) {
        int64_t from = j < g.m ? g.context[j] : g.target[j - g.m];
        g.cx[j] = g.x[from], g.cy[j] = g.y[from];
    }
    return g;
}

static void gram_matrices(void) {
    for (int i = 0; i < KERNELS; i++) {
        golden g = load(i);
        double k[N * N], want[N];
        gp_gram(&g.k, g.x, N, 1, 0, k, N);
        for (size_t r = 0; r < N; r++) {
            const json_value *row = json_at(json_get(g.json, "gram"), r);
            CHECK(json_numbers(&world, row, "gram", want, N) == MNP_OK);
            for (size_t c = 0; c < N; c++) NEAR(k[r * N + c], want[c], 1e-12, 0);
        }
    }
}

static double logp(const gp_kernel *k, const double *x, const double *y, int64_t n, int64_t first) {
    double l[N * N], white[N];
    CHECK(gp_factor(k, x, n, 1, l) == 0);
    return gp_logp(k, l, n, first, y, white);
}

static void log_densities(void) {
    for (int i = 0; i < KERNELS; i++) {
        golden g = load(i);
        NEAR(logp(&g.k, g.x, g.y, N, 0), number(g.json, "logp_all"), 1e-9, 0);
        NEAR(logp(&g.k, g.cx, g.cy, N, 0), number(g.json, "logp_all"), 1e-9, 0);
        NEAR(logp(&g.k, g.cx, g.cy, g.m, 0), number(g.json, "logp_context"), 1e-9, 0);
        NEAR(logp(&g.k, g.cx, g.cy, N, g.m), number(g.json, "logp_target_given_context"), 1e-9, 0);
    }
}

static void conditionals(void) {
    for (int i = 0; i < KERNELS; i++) {
        golden g = load(i);
        int64_t nt = N - g.m;
        double mean[N], cov[N * N], want[N];
        CHECK(gp_conditional(&world, &g.k, g.cx, g.cy, g.m, g.cx + g.m, nt, 1, mean, cov) ==
              MNP_OK);
        const json_value *rows = json_get(g.json, "cond_cov");
        CHECK(json_numbers(&world, json_get(g.json, "cond_mean"), "mean", want, (size_t)nt) ==
              MNP_OK);
        for (int64_t t = 0; t < nt; t++) NEAR(mean[t], want[t], 1e-9, 0);
        for (int64_t r = 0; r < nt; r++) {
            CHECK(json_numbers(&world, json_at(rows, (size_t)r), "cov", want, (size_t)nt) ==
                  MNP_OK);
            for (int64_t c = 0; c < nt; c++) NEAR(cov[r * nt + c], want[c], 1e-9, 0);
        }
    }
}

/* Without context the conditional is the prior. */
static void empty_context(void) {
    golden g = load(0);
    double mean[N], cov[N * N];
    g.k.hyper[GP_MEAN] = 0.7;
    CHECK(gp_conditional(&world, &g.k, NULL, NULL, 0, g.x, N, 1, mean, cov) == MNP_OK);
    for (int t = 0; t < N; t++) NEAR(mean[t], 0.7, 0, 0);
    NEAR(cov[0], 1 + exp(g.k.hyper[GP_LOG_NOISE]), 1e-15, 0);
}

static void gradient(const gp_kernel *k, const double *x, const double *u, int64_t first,
                     double *gu, double *hyper) {
    double l[N * N], weight[N * N] = {0}, work[2 * N];
    CHECK(gp_factor(k, x, N, 1, l) == 0);
    gp_grad_sample(k, l, N, first, u, 1, gu, hyper, weight, work);
    gp_grad_finish(k, x, N, 1, first, 1, l, weight, hyper);
}

static void golden_gradients(void) {
    golden g = load(KERNELS - 1);
    const json_value *want = json_get(g.json, "dlogp_all_dlog");
    double gu[N] = {0}, hyper[GP_HYPERS] = {0};
    gradient(&g.k, g.x, g.y, 0, gu, hyper);
    NEAR(hyper[GP_LOG_LENGTH_RBF], number(want, "log_rbf_ell"), 1e-9, 1e-9);
    NEAR(hyper[GP_LOG_LENGTH_MATERN], number(want, "log_mat_ell"), 1e-9, 1e-9);
    NEAR(hyper[GP_LOG_LENGTH_PERIODIC], number(want, "log_per_ell"), 1e-9, 1e-9);
    NEAR(hyper[GP_LOG_PERIOD], number(want, "log_per_p"), 1e-9, 1e-9);
    NEAR(hyper[GP_LOG_NOISE], number(want, "log_noise"), 1e-9, 1e-9);
}

/* Every hyper-parameter and every u, joint and conditional. */
static void gradients_by_differences(void) {
    const double h = 2e-6; /* the period curves strongly */
    for (int i = 0; i < KERNELS; i++)
        for (int given = 0; given < 2; given++) {
            golden g = load(i);
            if (i == 2 && given) g.k.parts |= GP_UNSQUARED;
            g.k.hyper[GP_LOG_NOISE] = log(0.05); /* well conditioned, for the differences */
            g.k.hyper[GP_MEAN] = 0.3;
            int64_t first = given ? g.m : 0;
            double gu[N] = {0}, hyper[GP_HYPERS] = {0};
            gradient(&g.k, g.cx, g.cy, first, gu, hyper);
            for (int j = 0; j < GP_HYPERS + N; j++) {
                double *at = j < GP_HYPERS ? &g.k.hyper[j] : &g.cy[j - GP_HYPERS], keep = *at;
                *at = keep + h;
                double up = logp(&g.k, g.cx, g.cy, N, first);
                *at = keep - h;
                double down = logp(&g.k, g.cx, g.cy, N, first);
                *at = keep;
                NEAR(j < GP_HYPERS ? hyper[j] : gu[j - GP_HYPERS], (up - down) / (2 * h), 1e-6,
                     1e-6);
            }
        }
}

static void not_positive_definite(void) {
    gp_kernel k = gp_kernel_make(GP_RBF); /* no noise, one point twice */
    double x[3] = {0.5, 0.5, 1.0}, u[3] = {0}, mean[3], l[9];
    CHECK(gp_factor(&k, x, 3, 1, l) == 2);
    CHECK(gp_conditional(&world, &k, x, u, 3, x, 3, 1, mean, NULL) == MNP_ENUMERIC);
    k.hyper[GP_LOG_LENGTH_RBF] = NAN;
    CHECK(gp_factor(&k, x, 3, 1, l) == 1 || gp_factor(&k, x, 3, 1, l) == 2);
}

int main(void) {
    env_init(&world);
    if (json_read(&world, "tests/golden/gp_kernels.json", 1 << 20, &doc) != MNP_OK) {
        fprintf(stderr, "%s\n", world.error);
        return 1;
    }
    RUN(gram_matrices);
    RUN(log_densities);
    RUN(conditionals);
    RUN(empty_context);
    RUN(golden_gradients);
    RUN(gradients_by_differences);
    RUN(not_positive_definite);
    json_destroy(doc);
    return check_done();
}
