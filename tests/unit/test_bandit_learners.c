/* test_bandit_learners.c: the learners of the agents maml and c-bruno: networks and bijection
 * against plain loops, gradients against finite differences (those of c-bruno's density: op
 * exchangeable_logp, test_ops), the O(1) recursion against a dense Gaussian conditional, files that
 * read back. */
#include "bandit/bruno.h"
#include "bandit/maml.h"
#include "base/linalg.h"
#include "check.h"
#include "data/wheel.h"
#include "op/rqs_math.h"
#include "options_check.h"

/* `wheels` wheels of n points each. */
static dataset *make_wheels(env *e, int64_t wheels, int64_t n, uint64_t seed) {
    enum { INPUTS = WHEEL_DIMS + WHEEL_ACTIONS };
    double *x = env_alloc(e, (size_t)(wheels * n * INPUTS), sizeof *x, "x");
    double *y = env_alloc(e, (size_t)(wheels * n), sizeof *y, "y");
    int64_t *lengths = env_alloc(e, (size_t)wheels, sizeof *lengths, "n");
    for (int64_t w = 0; w < wheels; w++) {
        rng_stream s = rng_stream_make((rng_key){seed}, RNG_TEST, (uint32_t)w);
        double delta = rng_u01(&s);
        lengths[w] = n;
        for (int64_t i = w * n; i < (w + 1) * n; i++) {
            double means[WHEEL_ACTIONS];
            wheel_context(&s, x + i * INPUTS);
            wheel_means(delta, x + i * INPUTS, means);
            uint64_t a = rng_below(&s, WHEEL_ACTIONS);
            x[i * INPUTS + WHEEL_DIMS + (int64_t)a] = 1;
            y[i] = means[a] + WHEEL_NOISE * rng_normal(&s);
        }
    }
    dataset *d = NULL;
    CHECK(dataset_from_arrays(e, "wheels", wheels, lengths, INPUTS, x, y, &d) == MNP_OK);
    if (d) d->builtin = true; /* inputs as they are */
    env_free(e, x);
    env_free(e, y);
    env_free(e, lengths);
    return d;
}

static learner *make(env *e, const learner_def *def, int32_t inputs, const char *options) {
    learner_opts o;
    option_view v = learner_view(def, &o);
    learner *l = NULL;
    CHECK(options_check(e, &v, 1) == MNP_OK);
    CHECK(options_defaults(e, &v, 1) == MNP_OK && options_parse(e, &v, 1, options) == MNP_OK);
    CHECK(learner_create(e, def, &o, inputs, 3, &l) == MNP_OK);
    return l;
}

/* The data of function f as a learner sees them. */
static void standardised(const learner *l, const dataset *d, int64_t f, double *x, double *y) {
    int64_t first = d->start[f], n = d->start[f + 1] - first;
    for (int64_t i = 0; i < n * d->x_dim; i++) x[i] = (double)d->x[first * d->x_dim + i];
    for (int64_t i = 0; i < n; i++) y[i] = learner_y(&l->scale, dataset_raw_y(d, first + i));
}

enum { POINTS = 120, INPUTS = WHEEL_DIMS + WHEEL_ACTIONS };

/* ---- the perceptron -------------------------------------------------------------------------- */

static const param *weight_of(const learner *l, const char *name) {
    int32_t k = params_find(&l->params, name);
    CHECK(k >= 0);
    return &l->params.list[k < 0 ? 0 : k];
}

/* h (out) = the layer's affine map with weights w (words), in double. */
static void plain_layer(const learner *l, const double *w, const char *matrix, const char *bias,
                        const double *x, double *h) {
    const param *pw = weight_of(l, matrix), *pb = weight_of(l, bias);
    for (int32_t j = 0; j < pw->cols; j++) {
        h[j] = w[pb->offset + j];
        for (int32_t i = 0; i < pw->rows; i++) h[j] += x[i] * w[pw->offset + i * pw->ld + j];
    }
}

/* The two hidden layers of three. */
static void plain_hidden(const learner *l, const double *w, const double *x, double *h) {
    double first[64];
    plain_layer(l, w, "w0", "b0", x, first);
    for (int k = 0; k < l->opts.hidden; k++) first[k] = fmax(first[k], 0);
    plain_layer(l, w, "w1", "b1", first, h);
    for (int k = 0; k < l->opts.hidden; k++) h[k] = fmax(h[k], 0);
}

/* The weights in double; the caller frees. */
static double *doubles_of(env *e, const learner *l) {
    double *w = env_alloc(e, (size_t)l->params.words, sizeof *w, "w");
    for (int64_t i = 0; i < l->params.words; i++) w[i] = (double)l->weights[i];
    return w;
}

static void shake(learner *l) {
    rng_stream s = rng_stream_make((rng_key){8}, RNG_TEST, 0);
    for (int32_t k = 0; k < l->params.count; k++) {
        const param *p = &l->params.list[k];
        for (int64_t r = 0; r < p->rows; r++)
            for (int64_t c = 0; c < p->cols; c++)
                l->weights[p->offset + r * p->ld + c] += (float)(0.2 * rng_normal(&s));
    }
}

/* ---- maml ------------------------------------------------------------------------------------ */

/* f (n) and mean (f - y)^2 with plain loops. */
static double plain_loss(const learner *l, const double *w, const double *x, const double *y,
                         double *f) {
    double loss = 0, h[64];
    for (int i = 0; i < POINTS; i++) {
        plain_hidden(l, w, x + i * INPUTS, h);
        plain_layer(l, w, "w2", "b2", h, &f[i]);
        loss += (f[i] - y[i]) * (f[i] - y[i]) / POINTS;
    }
    return loss;
}

/* Values, loss and gradient against plain loops and their finite differences, in double. */
static void maml_values_and_gradient(void) {
    env e;
    env_init(&e);
    dataset *d = make_wheels(&e, 1, POINTS, 1);
    learner *l = make(&e, &learner_maml, INPUTS, "hidden=20");
    double x[POINTS * INPUTS], y[POINTS], f[POINTS], want[POINTS], loss, h = 1e-6;
    const float *gradient;
    maml_adapted a;
    shake(l);
    standardised(l, d, 0, x, y);
    double *w = doubles_of(&e, l);
    CHECK(maml_adapted_create(&e, l, POINTS, &a) == MNP_OK);
    CHECK(maml_predict(&a, x, POINTS, f) == MNP_OK);
    CHECK(maml_loss(&a, x, y, POINTS, &loss, &gradient) == MNP_OK);
    NEAR(loss, plain_loss(l, w, x, y, want), 1e-5, 1e-5);
    for (int i = 0; i < POINTS; i++) NEAR(f[i], want[i], 1e-5, 1e-5);
    for (int64_t at = 0; at < l->params.words; at += 7) {
        double old = w[at];
        w[at] = old + h;
        double up = plain_loss(l, w, x, y, want);
        w[at] = old - h;
        double slope = (up - plain_loss(l, w, x, y, want)) / (2 * h);
        w[at] = old;
        NEAR(gradient[at], slope, 1e-4, 1e-4); /* zero in the padding */
    }
    maml_adapted_free(&a);
    env_free(&e, w);
    learner_destroy(l);
    dataset_destroy(d);
}

static void maml_adapts(void) {
    env e;
    env_init(&e);
    dataset *d = make_wheels(&e, 24, POINTS, 1), *test = make_wheels(&e, 10, POINTS, 2);
    learner *l = make(&e, &learner_maml, INPUTS, "steps=300 batch=4 hidden=32");
    maml_adapted a;
    double before = 0, after = 0, loss, x[POINTS * INPUTS], y[POINTS];
    const float *gradient;
    CHECK(learner_train(l, d, 1, NULL, NULL) == MNP_OK);
    CHECK(maml_adapted_create(&e, l, d->longest, &a) == MNP_OK);
    for (int64_t w = 0; w < 10; w++) {
        standardised(l, test, w, x, y);
        for (int k = 0; k < 2; k++) {
            CHECK(maml_adapt(&a, x, y, k ? 80 : 0) == MNP_OK);
            CHECK(maml_loss(&a, x + 80 * INPUTS, y + 80, 40, &loss, &gradient) == MNP_OK);
            *(k ? &after : &before) += loss;
        }
    }
    CHECK(after < 0.8 * before); /* what was seen of a wheel helps on the rest of it */
    maml_adapted_free(&a);
    learner_destroy(l);
    dataset_destroy(d);
    dataset_destroy(test);
}

/* d loss / d log rate = <gradient at the adapted weights, adapted - first>, exact for one step. */
static void maml_rate_gradient(void) {
    env e;
    env_init(&e);
    dataset *d = make_wheels(&e, 1, POINTS, 5);
    learner *l = make(&e, &learner_maml, INPUTS, "inner=1 inner_rate=0.02 hidden=16");
    maml_adapted a;
    double x[POINTS * INPUTS], y[POINTS];
    int64_t first[MLP_LAYERS_MAX + 1];
    const float *gradient;
    standardised(l, d, 0, x, y);
    for (int i = 0; i < POINTS; i++) y[i] /= 20; /* about one, as after standardising */
    CHECK(maml_adapted_create(&e, l, POINTS, &a) == MNP_OK);
    maml_layers(l, first);
    for (int layer = 0; layer < 3; layer++) {
        double dot = 0, loss[2], h = 0.05;
        CHECK(maml_adapt(&a, x, y, 80) == MNP_OK);
        CHECK(maml_loss(&a, x + 80 * INPUTS, y + 80, 40, loss, &gradient) == MNP_OK);
        for (int64_t i = first[layer]; i < first[layer + 1]; i++)
            dot += (double)gradient[i] * (double)(a.weights[i] - l->weights[i]);
        for (int side = 0; side < 2; side++) {
            l->numbers[layer] += side ? -2 * h : h;
            CHECK(maml_adapt(&a, x, y, 80) == MNP_OK);
            CHECK(maml_loss(&a, x + 80 * INPUTS, y + 80, 40, &loss[side], &gradient) == MNP_OK);
        }
        l->numbers[layer] += h;
        NEAR(dot, (loss[0] - loss[1]) / (2 * h), 1e-4, 0.02);
    }
    maml_adapted_free(&a);
    learner_destroy(l);
    dataset_destroy(d);
}

/* ---- c-bruno --------------------------------------------------------------------------------- */

static const double law[2] = {0.3, -0.4};

static void recursion_is_the_conditional(void) {
    enum { N = 7 };
    double u[N] = {0.4, -1.2, 2.0, 0.1, 0.9, -0.3, 1.1}, v = exp(law[0]);
    double c = v / (1 + exp(-law[1]));
    bruno_state s = bruno_start(law);
    NEAR(s.variance, v, 1e-15, 0);
    for (int n = 1; n <= N; n++) {
        double K[N * N], k[N], mean = 0, variance = v;
        bruno_observe(&s, law, u[n - 1]);
        for (int i = 0; i < n * n; i++) K[i] = i % (n + 1) == 0 ? v : c;
        for (int i = 0; i < n; i++) k[i] = c;
        /* solve K w = k by elimination */
        for (int i = 0; i < n; i++)
            for (int r = i + 1; r < n; r++) {
                double f = K[r * n + i] / K[i * n + i];
                for (int j = i; j < n; j++) K[r * n + j] -= f * K[i * n + j];
                k[r] -= f * k[i];
            }
        for (int i = n - 1; i >= 0; i--) {
            for (int j = i + 1; j < n; j++) k[i] -= K[i * n + j] * k[j];
            k[i] /= K[i * n + i];
        }
        for (int i = 0; i < n; i++) mean += k[i] * u[i], variance -= k[i] * c;
        NEAR(s.mean, mean, 1e-13, 1e-13);
        NEAR(s.variance, variance, 1e-13, 1e-13);
        NEAR(bruno_mean_variance(&s, law), variance - (v - c), 1e-13, 1e-12);
    }
}

/* Rows of x and y to u, its log slope, and back, for shaken weights: against the equations, with
 * the reference spline in double. */
static void bijection(void) {
    enum { N = 40, BINS = 5 };
    env e;
    env_init(&e);
    learner *l = make(&e, &learner_cbruno, INPUTS, "bins=5 hidden=20");
    rng_stream s = rng_stream_make((rng_key){9}, RNG_TEST, 0);
    runner *there = NULL, *back = NULL;
    double x[N * INPUTS], y[N], u[N], slope[N], again[N];
    int64_t n = N;
    shake(l);
    double *w = doubles_of(&e, l);
    for (int i = 0; i < N * INPUTS; i++) x[i] = rng_normal(&s);
    for (int i = 0; i < N; i++) y[i] = 2 * rng_normal(&s);
    CHECK(learner_runner(&e, l, bruno_to_latent, N, NULL, 0, &there) == MNP_OK);
    CHECK(learner_runner(&e, l, bruno_to_reward, N, NULL, 0, &back) == MNP_OK);
    there->io.n = back->io.n = &n;
    there->io.feed[0] = back->io.feed[0] = x, there->io.feed[1] = y, back->io.feed[1] = u;
    there->io.emit[0] = u, there->io.emit[1] = slope, back->io.emit[0] = again;
    CHECK(runner_run(there, 0, 1) == MNP_OK && runner_run(back, 0, 1) == MNP_OK);
    for (int i = 0; i < N; i++) {
        double h[64], raw[2], numbers[3 * BINS];
        rqs_opts o = {BINS, 5, 1e-3, 1e-3, 1e-3};
        rqs_spline f;
        plain_hidden(l, w, x + i * INPUTS, h);
        plain_layer(l, w, "w2.affine", "b2.affine", h, raw);
        plain_layer(l, w, "w2.spline", "b2.spline", h, numbers);
        for (int k = 2 * BINS; k < 3 * BINS - 1; k++) numbers[k] += log(expm1(1)); /* slope 1 */
        double scale = exp(4 * tanh(raw[1] / 4)), v = scale * (y[i] - raw[0]);
        rqs_build(&o, numbers, &f);
        rqs_place at = rqs_place_x(&f, v);
        NEAR(u[i], at.inside ? rqs_y_of(&f, &at) : v, 1e-3, 1e-3);
        NEAR(slope[i], log(scale) + (at.inside ? rqs_log_slope(&at) : 0), 5e-3, 5e-3);
        NEAR(again[i], y[i], 1e-4, 1e-4);
    }
    runner_destroy(there);
    runner_destroy(back);
    env_free(&e, w);
    learner_destroy(l);
}

/* The loss that training reports, of one function, is minus the product of one-step predictions
 * over its points: latents by the recorded bijection, predictions by the recursion. */
static void keep_first(void *user, int64_t step, int64_t steps, double loss) {
    (void)steps;
    if (step == 1) *(double *)user = loss;
}

static void joint_is_the_product_of_predictions(void) {
    env e;
    env_init(&e);
    dataset *d = make_wheels(&e, 1, 60, 4);
    learner *l = make(&e, &learner_cbruno, INPUTS, "steps=1 batch=1 hidden=20 jitter=0 lr=0");
    episodes ep;
    runner *r = NULL;
    double seen, u[60], slope[60], sum = 0, *numbers = l->numbers;
    learner_watch watch = {keep_first, &seen};
    shake(l);
    CHECK(learner_train(l, d, 1, NULL, &watch) == MNP_OK);
    CHECK(numbers[0] != 0 && numbers[1] != 0); /* the law is the shaken one */
    CHECK(episodes_create(&e, d, 1, &ep) == MNP_OK);
    episodes_draw(&ep, d, &l->scale, 1, 0);
    CHECK(learner_runner(&e, l, bruno_to_latent, 60, NULL, 0, &r) == MNP_OK);
    r->io.n = ep.points;
    r->io.feed[0] = ep.x, r->io.feed[1] = ep.y, r->io.emit[0] = u, r->io.emit[1] = slope;
    CHECK(runner_run(r, 0, 1) == MNP_OK);
    bruno_state s = bruno_start(numbers);
    for (int64_t i = 0; i < ep.points[0]; i++) {
        double off = u[i] - s.mean;
        sum += slope[i] - 0.5 * (log(2 * acos(-1) * s.variance) + off * off / s.variance);
        bruno_observe(&s, numbers, u[i]);
    }
    NEAR(seen, -sum / (double)ep.points[0], 1e-6, 1e-6);
    runner_destroy(r);
    episodes_free(&e, &ep);
    learner_destroy(l);
    dataset_destroy(d);
}

static void keep_loss(void *user, int64_t step, int64_t steps, double loss) {
    double *seen = user;
    if (step <= 10) seen[0] += loss / 10;
    if (step > steps - 10) seen[1] += loss / 10;
}

static void bruno_learns(void) {
    env e;
    env_init(&e);
    dataset *d = make_wheels(&e, 24, POINTS, 1);
    learner *l = make(&e, &learner_cbruno, INPUTS, "steps=150 batch=4 hidden=32");
    double seen[2] = {0, 0};
    learner_watch watch = {keep_loss, seen};
    CHECK(learner_train(l, d, 1, NULL, &watch) == MNP_OK);
    CHECK(seen[1] < seen[0] - 0.5); /* nats per point */
    learner_destroy(l);
    dataset_destroy(d);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void files_read_back(void) {
    env e;
    env_init(&e);
    dataset *d = make_wheels(&e, 4, 60, 1);
    learner *first[2] = {make(&e, &learner_maml, INPUTS, "steps=2 batch=2 hidden=20 layers=2"),
                         make(&e, &learner_cbruno, INPUTS, "steps=2 batch=2 hidden=20 bins=4")};
    char path[512], kind[OPTION_NAME_MAX];
    const char *dir = getenv("TEST_TMP");
    snprintf(path, sizeof path, "%s/agent.safetensors", dir ? dir : "/tmp");
    for (int k = 0; k < 2; k++) {
        learner *l = first[k], *read = NULL;
        CHECK(learner_train(l, d, 1, NULL, NULL) == MNP_OK);
        CHECK(learner_save(&e, l, path) == MNP_OK && learner_kind(&e, path, kind, NULL) == MNP_OK);
        STREQ(kind, l->def->kind);
        CHECK(learner_load(&e, path, first[1 - k]->def, &read) == MNP_EFORMAT && !read);
        CHECK(learner_load(&e, path, l->def, &read) == MNP_OK);
        if (!read) continue;
        for (int32_t i = 0; i < l->params.count; i++) /* the law is among the numbers */
            if (strcmp(l->params.list[i].name, "law") != 0)
                CHECK(memcmp(l->weights + l->params.list[i].offset,
                             read->weights + l->params.list[i].offset,
                             (size_t)(l->params.list[i].rows * l->params.list[i].ld) * 4) == 0);
        CHECK(memcmp(read->numbers, l->numbers, sizeof l->numbers) == 0);
        CHECK(memcmp(&read->scale, &l->scale, sizeof l->scale) == 0 && read->opts.hidden == 20);
        STREQ(read->data, "wheels");
        remove(path);
        learner_destroy(read);
        CHECK(learner_load(&e, path, l->def, &read) == MNP_EIO && !read);
    }
    for (int k = 0; k < 2; k++) learner_destroy(first[k]);
    dataset_destroy(d);
}

/* Steps from `first` to `last` have no finite loss. */
typedef struct bad_steps {
    env *e;
    int64_t first, last, calls;
} bad_steps;

static mnp_status may_be_bad(void *self, int64_t k, double *loss) {
    bad_steps *b = self;
    b->calls++;
    *loss = 1;
    return k < b->first || k > b->last ? MNP_OK : env_fail(b->e, MNP_ENUMERIC, "not finite");
}

/* A bad batch moves nothing and the training goes on; many in a row, or all, end it. */
static void bad_batches(void) {
    env e;
    env_init(&e);
    learner *l = make(&e, &learner_maml, INPUTS, "steps=300");
    bad_steps some = {&e, 10, 108, 0}, many = {&e, 10, 109, 0}, all = {&e, 0, 299, 0};
    CHECK(learner_run(l, may_be_bad, &some, NULL) == MNP_OK && some.calls == 300);
    CHECK(learner_run(l, may_be_bad, &many, NULL) == MNP_ENUMERIC && many.calls == 110);
    CHECK(strstr(e.error, "the training diverged") != NULL);
    l->opts.steps = 5;
    CHECK(learner_run(l, may_be_bad, &all, NULL) == MNP_ENUMERIC && all.calls == 5);
    learner_destroy(l);
}

int main(void) {
    RUN(maml_values_and_gradient);
    RUN(maml_adapts);
    RUN(maml_rate_gradient);
    RUN(recursion_is_the_conditional);
    RUN(bijection);
    RUN(joint_is_the_product_of_predictions);
    RUN(bruno_learns);
    RUN(bad_batches);
    RUN(files_read_back);
    return check_done();
}
