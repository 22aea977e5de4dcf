/* test_factorised.c: models that predict each point by itself, given the context. Densities against
 * plain loops over the weights and against integrals, gradients against differences, and what the
 * context and the other targets may change: the order of the context nothing, other targets
 * nothing. A few steps of training on the CPU against the same in double. */
#include "lab.h"
#include "model/process/factorised.h"
#include "plain.h"
#include "run/predict.h"

enum { N = 9, M = 4, X = 2, F = 3 };

typedef struct subject {
    const char *kind, *options;
} subject;

#define CNP  "rff=3 enc_width=6 d_r=4 flow_hidden=5"
#define TNP  "rff=3 enc_width=6 heads=2 n_sab=2 flow_hidden=5 flow_layers=1"
#define CONV "enc_width=6 conv_layers=3 conv_taps=3 grid_points=14 flow_hidden=5 flow_layers=1"
static const subject subjects[] = {
    {"cnp", CNP},
    {"cnp", CNP " pool=sum rff=0 sigma_floor=0.1"},
    {"cnp", CNP " encoder=sab heads=2 n_sab=1 head=mixture head_parts=3"},
    {"tnp", TNP},
    {"tnp", TNP " head=mixture head_parts=4 n_sab=1 sigma_floor=0.1"},
    {"convcnp", CONV},
    {"convcnp", CONV " head=mixture head_parts=2 conv_taps=5 grid_lo=-1 grid_hi=4"},
};
enum { PLAIN_CNP = 0, PLAIN_TNP = 3, PLAIN_CONV = 5 }; /* those that loops below compute */
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

typedef struct points {
    double x[N * X], y[N];
} points;

static points some_points(uint32_t stream) {
    points p;
    rng_stream s = rng_stream_make((rng_key){15}, RNG_TEST, stream);
    for (int i = 0; i < N * X; i++) p.x[i] = (double)(float)rng_normal(&s);
    for (int i = 0; i < N; i++) p.y[i] = (double)(float)rng_normal(&s);
    return p;
}

static bool open_subject(lab *l, const subject *s, int x_dim) {
    char options[200];
    snprintf(options, sizeof options, "%s x_dim=%d", s->options, x_dim);
    CASE(s->options);
    if (!lab_open(l, s->kind, options, 3)) return false;
    lab_randomise(l, 0.7, 22);
    return true;
}

/* ---- plain loops ----------------------------------------------------------------------------- */

static void record_logp(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    val x, y;
    process_feed_points(g, s, &x, &y);
    op_emit(g, factorised_logp(g, s, x, y));
}

static void features(const lab *l, const double *x, double *phi) {
    plain_features(l, x, F, X, true, phi);
}

static double normal_logp(const double out[2], double y) {
    double sigma = 1e-3 + (1 - 1e-3) * log1p(exp(out[1])), e = (y - out[0]) / sigma;
    return -0.5 * e * e - log(sigma) - 0.5 * log(2 * M_PI);
}

static double cnp_by_loops(const lab *l, const points *p, int m, int i) {
    enum { W = 6, R = 4, H = 5, PHI = 2 * F + X };
    double phi[PHI], mean[W] = {0}, r[R] = {0}, a[H] = {0}, b[H], out[2];
    const double one = 1;
    for (int j = 0; j < m; j++) {
        double u[W] = {0}, v[W], w[W];
        features(l, p->x + j * X, phi);
        plain_add(l, "enc.0.wphi", phi, u);
        plain_add(l, "enc.0.wy", p->y + j, u);
        plain_add(l, "enc.0.b", &one, u);
        for (int c = 0; c < W; c++) u[c] = fmax(u[c], 0);
        plain_layer(l, "enc.1", u, W, true, v);
        plain_layer(l, "enc.2", v, W, false, w);
        for (int c = 0; c < W; c++) mean[c] += w[c] / m;
    }
    if (m)
        plain_layer(l, "enc.r", mean, R, true, r);
    else
        plain_add(l, "enc.empty", &one, r);
    features(l, p->x + i * X, phi);
    plain_add(l, "dec.0.wx", phi, a);
    plain_add(l, "dec.0.wr", r, a);
    plain_add(l, "dec.0.b", &one, a);
    for (int c = 0; c < H; c++) a[c] = fmax(a[c], 0);
    plain_layer(l, "dec.1", a, H, true, b);
    plain_layer(l, "dec.2", b, 2, false, out);
    return normal_logp(out, p->y[i]);
}

static double tnp_by_loops(const lab *l, const points *p, int m, int i) {
    enum { D = 6 };
    const plain_tokens tokens = {"", D, 2, 2};
    double phi[N][PLAIN_FEATURES], told[PLAIN_WIDTH], a[5], out[2];
    for (int j = 0; j < N; j++) features(l, p->x + j * X, phi[j]);
    plain_told(l, &tokens, phi, p->y, m, i, told);
    plain_layer(l, "dec.0", told, 5, true, a);
    plain_layer(l, "dec.1", a, 2, false, out);
    return normal_logp(out, p->y[i]);
}

/* Of one input, on 14 places from -2 to 2. */
static double conv_by_loops(const lab *l, const points *p, int m, int i) {
    enum { G = 14, W = 6, TAPS = 3, LAYERS = 3 };
    const double step = 4.0 / (G - 1), one = 1;
    double grid[G][W] = {{0}}, length = 0, at[W] = {0}, a[5], out[2];
    int width = 2;
    plain_add(l, "grid.length", &one, &length);
    for (int g = 0; g < G; g++) {
        for (int j = 0; j < m; j++) {
            double u = (-2 + g * step - p->x[j]) / exp(length), w = exp(-u * u / 2);
            grid[g][0] += w, grid[g][1] += w * p->y[j];
        }
        grid[g][1] /= grid[g][0] + 1e-6;
    }
    for (int k = 0; k <= LAYERS; k++, width = W) {
        char name[16];
        double next[G][W];
        int apart = k ? 1 << (k - 1) : 1;
        snprintf(name, sizeof name, "conv.%d", k);
        for (int g = 0; g < G; g++) {
            double near[TAPS * W] = {0};
            for (int t = 0; t < TAPS; t++)
                for (int c = 0, from = g + (t - 1) * apart; from >= 0 && from < G && c < width; c++)
                    near[t * width + c] = grid[from][c];
            plain_layer(l, name, near, W, true, next[g]);
            for (int c = 0; k && c < W; c++) next[g][c] += grid[g][c];
        }
        memcpy(grid, next, sizeof grid);
    }
    double place = (p->x[i] + 2) / step;
    for (int g = 0; g < G; g++) { /* Keys' kernel, from its definition */
        double d = fabs(place - g), w = 0;
        if (d < 1) w = 1.5 * d * d * d - 2.5 * d * d + 1;
        if (d >= 1 && d < 2) w = -0.5 * d * d * d + 2.5 * d * d - 4 * d + 2;
        for (int c = 0; c < W; c++) at[c] += w * grid[g][c];
    }
    plain_layer(l, "dec.0", at, 5, true, a);
    plain_layer(l, "dec.1", a, 2, false, out);
    return normal_logp(out, p->y[i]);
}

typedef double by_loops(const lab *l, const points *p, int m, int i);

static void check_loops(const subject *s, by_loops *loops, int x_dim) {
    static const char *const devices[] = {"ref", "cpu"};
    points p = some_points(1);
    lab l;
    if (!open_subject(&l, s, x_dim)) return;
    for (int device = 0; device < 2; device++) {
        lab_run r;
        double logp[N], tol = device ? 2e-5 : 1e-12;
        if (lab_start(&r, &l, devices[device], (plan_opts){N, N, 1}, record_logp, NULL)) {
            r.io.feed[0] = p.x, r.io.feed[1] = p.y, r.io.emit[0] = logp;
            for (int m = 0; m <= M; m += M) {
                lab_go(&r, N, m);
                for (int i = 0; i < N; i++) NEAR(logp[i], loops(&l, &p, m, i), tol, tol);
            }
        }
        lab_stop(&r);
    }
    lab_close(&l);
}

static void densities_by_plain_loops(void) {
    check_loops(&subjects[PLAIN_CNP], cnp_by_loops, X);
    check_loops(&subjects[PLAIN_TNP], tnp_by_loops, X);
    check_loops(&subjects[PLAIN_CONV], conv_by_loops, 1);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* The mean over the targets, as train_step has it, of points that are given. */
static void record_loss(graph *g, const model_spec *s, void *arg) {
    val x, y;
    process_feed_points(g, s, &x, &y);
    val logp = op_sum_rows(g, factorised_logp(g, s, x, y), ROWS_REST);
    val loss = op_per_point(g, logp, ROWS_REST, -1.0);
    if (arg) op_append_grad(g, loss);
    op_emit(g, loss);
}

static void check_gradient(const subject *s, int x_dim, int64_t m) {
    points p = some_points(2);
    lab_scalar loss = {record_loss, N, m, 1, p.x, p.y};
    lab l;
    if (!open_subject(&l, s, x_dim)) return;
    lab_check_slopes(&l, &loss, 1e-5);
    lab_close(&l);
}

static void gradients_are_slopes(void) {
    for (int k = 0; k < SUBJECTS; k++) {
        check_gradient(&subjects[k], 1, M);
        check_gradient(&subjects[k], 1, 0);
    }
    check_gradient(&subjects[PLAIN_CNP], X, M);
    check_gradient(&subjects[PLAIN_TNP], X, M);
}

/* ---- what may change what -------------------------------------------------------------------- */

/* A context in another order, and targets asked one by one. */
static void only_the_set_matters(void) {
    for (int k = 0; k < SUBJECTS; k++) {
        lab l;
        predictor *p = NULL;
        points at = some_points(5);
        double all[N - M], other[N - M], one;
        if (!open_subject(&l, &subjects[k], 1)) continue;
        CHECK(predictor_create(&l.env, l.m, NULL, (backend_choice){0}, &p) == MNP_OK);
        CHECK(predictor_condition(p, at.x, at.y, M) == MNP_OK);
        CHECK(predictor_logp(p, at.x + M, at.y + M, N - M, all) == MNP_OK);
        for (int i = M; i < N; i++) {
            CHECK(predictor_logp(p, at.x + i, at.y + i, 1, &one) == MNP_OK);
            NEAR(one, all[i - M], 1e-6, 1e-6);
        }
        double x[M], y[M];
        for (int i = 0; i < M; i++) x[i] = at.x[(i + 3) % M], y[i] = at.y[(i + 3) % M];
        CHECK(predictor_condition(p, x, y, M) == MNP_OK);
        CHECK(predictor_logp(p, at.x + M, at.y + M, N - M, other) == MNP_OK);
        for (int i = 0; i < N - M; i++) NEAR(other[i], all[i], 2e-5, 2e-5);
        y[0] += 3; /* and the context does matter */
        CHECK(predictor_condition(p, x, y, M) == MNP_OK);
        CHECK(predictor_logp(p, at.x + M, at.y + M, N - M, other) == MNP_OK);
        double moved = 0;
        for (int i = 0; i < N - M; i++) moved += fabs(other[i] - all[i]);
        CHECK(moved > 1e-4);
        predictor_destroy(p);
        lab_close(&l);
    }
}

/* ---- densities and draws --------------------------------------------------------------------- */

/* The density integrates to one; its mean is the smooth function, and draws have its moments. */
static void draws_are_of_the_density(void) {
    enum { GRID = 4001, DRAWS = 4000 };
    static double x[GRID], y[GRID], logp[GRID], drawn[DRAWS];
    const double far = 40;
    for (int k = 0; k < SUBJECTS; k++) {
        lab l;
        predictor *p = NULL;
        points at = some_points(6);
        double smooth, sum = 0, mean = 0, square = 0, got = 0, spread = 0;
        if (!open_subject(&l, &subjects[k], 1)) continue;
        CHECK(predictor_create(&l.env, l.m, NULL, (backend_choice){0}, &p) == MNP_OK);
        CHECK(predictor_condition(p, at.x, at.y, M) == MNP_OK);
        for (int i = 0; i < GRID; i++) x[i] = at.x[M], y[i] = far * (2.0 * i / (GRID - 1) - 1);
        CHECK(predictor_logp(p, x, y, GRID, logp) == MNP_OK);
        for (int i = 0; i < GRID; i++) {
            double share = exp(logp[i]) * 2 * far / (GRID - 1);
            sum += share, mean += share * y[i], square += share * y[i] * y[i];
        }
        double sd = sqrt(square - mean * mean);
        NEAR(sum, 1, 1e-5, 0);
        CHECK(predictor_predict(p, x, 1, PREDICT_ZERO, &smooth) == MNP_OK);
        NEAR(smooth, mean, 1e-4, 0);
        CHECK(predictor_draw_latents(p, 7, DRAWS) == MNP_OK);
        CHECK(predictor_predict(p, x, 1, PREDICT_NORMAL, drawn) == MNP_OK);
        for (int i = 0; i < DRAWS; i++) got += drawn[i] / DRAWS;
        for (int i = 0; i < DRAWS; i++) spread += (drawn[i] - got) * (drawn[i] - got) / DRAWS;
        NEAR(got, mean, 5 * sd / sqrt(DRAWS), 0);
        NEAR(sqrt(spread), sd, 5 * sd / sqrt(DRAWS), 0);
        predictor_destroy(p);
        lab_close(&l);
    }
}

/* ---- training -------------------------------------------------------------------------------- */

enum { FUNCTIONS = 8, POINTS = 16, STEPS = 60 };

static void record_train(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    process_train_opts o = {.draw = {.train = true, .x_dim = 1, .lo = 2, .hi = 10}, .update = true};
    process_at(s->kind)->train_step(g, s, &o);
}

/* Losses of steps on waves that differ in their phase. */
static void train(lab *l, const char *device, double loss[STEPS]) {
    float x[FUNCTIONS * POINTS], y[FUNCTIONS * POINTS];
    int64_t start[FUNCTIONS + 1];
    for (int i = 0; i < FUNCTIONS * POINTS; i++) {
        x[i] = -2 + 4 * (float)(i % POINTS) / (POINTS - 1);
        y[i] = sinf(2 * x[i] + (float)(i / POINTS));
    }
    for (int i = 0; i <= FUNCTIONS; i++) start[i] = i * (int64_t)POINTS;
    data_view data = {FUNCTIONS, 1, start, x, y, false, 0, 0};
    size_t words = (size_t)l->m->params.words + 16;
    void *moments[2] = {calloc(words, sizeof(double)), calloc(words, sizeof(double))};
    lab_run r;
    if (lab_start(&r, l, device, (plan_opts){POINTS, POINTS, 1}, record_train, NULL)) {
        r.io.data = &data, r.io.moment1 = moments[0], r.io.moment2 = moments[1];
        r.step = (step_block){.seed = 1,
                              .total = STEPS,
                              .rate_max = 1e-2,
                              .beta1 = 0.9,
                              .beta2 = 0.999,
                              .eps = 1e-8,
                              .bad_item = -1};
        for (int k = 0; k < STEPS; k++) {
            CHECK(r.b->run(r.exec, &r.io, FUNCTIONS, 1) == MNP_OK);
            loss[k] = r.step.loss;
        }
    }
    lab_stop(&r);
    free(moments[0]);
    free(moments[1]);
}

/* The same numbers in float as in double, and a loss that falls. */
static void training_agrees_with_double(void) {
    for (int k = 0; k < SUBJECTS; k++) {
        lab l;
        double cpu[STEPS] = {0}, ref[STEPS] = {0};
        char options[200];
        snprintf(options, sizeof options, "%s x_dim=1", subjects[k].options);
        CASE(options);
        if (!lab_open(&l, subjects[k].kind, options, 3)) continue;
        train(&l, "cpu", cpu);
        train(&l, "ref", ref);
        for (int i = 0; i < STEPS; i++) NEAR(cpu[i], ref[i], 1e-4, 1e-4);
        CHECK(cpu[STEPS - 1] < cpu[0] - 0.05);
        lab_close(&l);
    }
}

int main(void) {
    RUN(densities_by_plain_loops);
    RUN(gradients_are_slopes);
    RUN(only_the_set_matters);
    RUN(draws_are_of_the_density);
    RUN(training_agrees_with_double);
    return check_done();
}
