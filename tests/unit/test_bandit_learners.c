/* test_bandit_learners.c: the learners behind the agents maml and c-bruno: gradients against finite
 * differences, the O(1) recursion against a dense Gaussian conditional, files that read back. */
#include "bandit/bruno.h"
#include "bandit/maml.h"
#include "base/linalg.h"
#include "check.h"
#include "data/wheel.h"

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

static maml_opts maml_defaults(env *e, const char *options) {
    maml_opts o;
    option_view v = maml_view(&o);
    CHECK(options_check(e, &v, 1) == MNP_OK);
    CHECK(options_defaults(e, &v, 1) == MNP_OK && options_parse(e, &v, 1, options) == MNP_OK);
    return o;
}

static bruno_opts bruno_defaults(env *e, const char *options) {
    bruno_opts o;
    option_view v = bruno_view(&o);
    CHECK(options_check(e, &v, 1) == MNP_OK);
    CHECK(options_defaults(e, &v, 1) == MNP_OK && options_parse(e, &v, 1, options) == MNP_OK);
    return o;
}

/* ---- the perceptron -------------------------------------------------------------------------- */

/* sum over rows and outputs of c * output, with fixed c, is the objective. */
static double objective(mlp_pass *p, const float *w, int64_t n) {
    const mlp *net = p->net;
    int last = net->layers;
    double sum = 0;
    mlp_forward(p, w, n);
    for (int64_t i = 0; i < n; i++)
        for (int32_t j = 0; j < net->width[last]; j++)
            sum += sin(1.0 + (double)(i * 3 + j)) * (double)p->h[last][i * net->ld[last] + j];
    return sum;
}

static void perceptron_gradient(void) {
    enum { N = 9 };
    env e;
    env_init(&e);
    mlp net = mlp_make(3, 5, 20, 3);
    mlp_pass p;
    float *w = env_alloc(&e, (size_t)net.words, sizeof *w, "w");
    float *g = env_alloc(&e, (size_t)net.words, sizeof *g, "g");
    CHECK(mlp_pass_create(&e, &net, N, &p) == MNP_OK);
    mlp_init(&net, 3, 0, w);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 5; k++) p.h[0][i * net.ld[0] + k] = (float)cos(i + 2.0 * k);
    objective(&p, w, N);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < 3; j++) p.g[3][i * net.ld[3] + j] = (float)sin(1.0 + (i * 3 + j));
    mlp_backward(&p, w, N, g);
    for (int l = 0; l < net.layers; l++)
        for (int32_t i = 0; i <= net.width[l]; i += 2) /* the last row is the bias */
            for (int32_t j = 0; j < net.width[l + 1]; j += 3) {
                int64_t at = (i == net.width[l] ? net.bias[l] : net.weight[l] + i * net.ld[l + 1]);
                float old = w[at + j], h = 1e-3f;
                w[at + j] = old + h;
                double up = objective(&p, w, N);
                w[at + j] = old - h;
                double down = objective(&p, w, N);
                w[at + j] = old;
                NEAR(g[at + j], (up - down) / (2 * (double)h), 3e-3, 3e-3);
            }
    mlp_pass_free(&p);
    env_free(&e, w);
    env_free(&e, g);
}

/* ---- maml ------------------------------------------------------------------------------------ */

static void maml_adapts(void) {
    env e;
    env_init(&e);
    dataset *d = make_wheels(&e, 24, 120, 1);
    maml_opts o = maml_defaults(&e, "steps=300 batch=4 hidden=32");
    maml *m;
    maml_learner l;
    CHECK(maml_create(&e, &o, d->x_dim, 1, &m) == MNP_OK);
    CHECK(maml_train(m, d, 1, NULL) == MNP_OK);
    CHECK(maml_learner_create(&e, m, d->longest, &l) == MNP_OK);
    double before = 0, after = 0;
    dataset *test = make_wheels(&e, 10, 120, 2);
    for (int64_t w = 0; w < 10; w++) {
        float y[120];
        const float *x = test->x + w * 120 * d->x_dim;
        for (int i = 0; i < 120; i++) y[i] = learner_y(&m->scale, (double)test->y[w * 120 + i]);
        maml_adapt(&l, x, y, 0);
        before += maml_loss(&l, x + 80 * d->x_dim, y + 80, 40);
        maml_adapt(&l, x, y, 80);
        after += maml_loss(&l, x + 80 * d->x_dim, y + 80, 40);
    }
    CHECK(after < 0.8 * before); /* what was seen of a wheel helps on the rest of it */
    maml_learner_free(&e, &l);
    maml_destroy(m);
    dataset_destroy(d);
    dataset_destroy(test);
}

/* d loss / d log rate = <gradient at the adapted weights, adapted - first>, exact for one step. */
static void maml_rate_gradient(void) {
    env e;
    env_init(&e);
    dataset *d = make_wheels(&e, 1, 60, 5);
    maml_opts o = maml_defaults(&e, "inner=1 inner_rate=0.02 hidden=16");
    maml *m;
    maml_learner l;
    float y[60];
    CHECK(maml_create(&e, &o, d->x_dim, 4, &m) == MNP_OK);
    CHECK(learner_scale_of(&e, d, &m->scale) == MNP_OK);
    for (int i = 0; i < 60; i++) y[i] = learner_y(&m->scale, (double)d->y[i]);
    CHECK(maml_learner_create(&e, m, 60, &l) == MNP_OK);
    for (int layer = 0; layer < m->net.layers; layer++) {
        int64_t from = m->net.weight[layer],
                to = layer + 1 < m->net.layers ? m->net.weight[layer + 1] : m->net.words;
        double dot = 0, loss[2], h = 0.05;
        maml_adapt(&l, d->x, y, 40);
        memset(l.gradient, 0, (size_t)m->net.words * sizeof(float));
        maml_loss(&l, d->x + 40 * d->x_dim, y + 40, 20);
        for (int64_t i = from; i < to; i++)
            dot += (double)l.gradient[i] * (double)(l.adapted[i] - m->weights[i]);
        for (int side = 0; side < 2; side++) {
            m->log_rate[layer] += side ? -2 * h : h;
            maml_adapt(&l, d->x, y, 40);
            loss[side] = maml_loss(&l, d->x + 40 * d->x_dim, y + 40, 20);
        }
        m->log_rate[layer] += h;
        NEAR(dot, (loss[0] - loss[1]) / (2 * h), 1e-4, 0.02);
    }
    maml_learner_free(&e, &l);
    maml_destroy(m);
    dataset_destroy(d);
}

/* ---- c-bruno --------------------------------------------------------------------------------- */

static const double law[2] = {0.3, -0.4};

static void recursion_is_the_conditional(void) {
    enum { N = 7 };
    double u[N] = {0.4, -1.2, 2.0, 0.1, 0.9, -0.3, 1.1}, v, c;
    bruno_law(law, &v, &c);
    CHECK(c > 0 && c < v);
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

static void joint_is_the_product_of_predictions(void) {
    enum { N = 6 };
    double u[N] = {0.4, -1.2, 2.0, 0.1, 0.9, -0.3}, sum = 0;
    bruno_state s = bruno_start(law);
    for (int i = 0; i < N; i++) {
        double off = u[i] - s.mean;
        sum -= 0.5 * (log(2 * acos(-1) * s.variance) + off * off / s.variance);
        bruno_observe(&s, law, u[i]);
    }
    NEAR(bruno_logp(law, u, N, NULL, NULL), sum, 1e-12, 1e-12);
}

static void law_gradients(void) {
    enum { N = 6 };
    double u[N] = {0.4, -1.2, 2.0, 0.1, 0.9, -0.3}, du[N], dlaw[2] = {0, 0}, h = 1e-6;
    bruno_logp(law, u, N, du, dlaw);
    for (int i = 0; i < N; i++) {
        double old = u[i], side[2];
        for (int k = 0; k < 2; k++) {
            u[i] = old + (k ? -h : h);
            side[k] = bruno_logp(law, u, N, NULL, NULL);
        }
        u[i] = old;
        NEAR(du[i], (side[0] - side[1]) / (2 * h), 1e-8, 1e-8);
    }
    for (int i = 0; i < 2; i++) {
        double side[2];
        for (int k = 0; k < 2; k++) {
            double moved[2] = {law[0], law[1]};
            moved[i] += k ? -h : h;
            side[k] = bruno_logp(moved, u, N, NULL, NULL);
        }
        NEAR(dlaw[i], (side[0] - side[1]) / (2 * h), 1e-8, 1e-8);
    }
}

static void bijection(void) {
    env e;
    env_init(&e);
    bruno_opts o = bruno_defaults(&e, "bins=5");
    bruno *b;
    CHECK(bruno_create(&e, &o, 7, 1, &b) == MNP_OK);
    rng_stream s = rng_stream_make((rng_key){9}, RNG_TEST, 0);
    for (int round = 0; round < 40; round++) {
        float raw[16], grad[16];
        double L, moved, h = 1e-3, y = 3 * rng_normal(&s), du = rng_normal(&s), dL = 0.7;
        for (int k = 0; k < 16; k++) raw[k] = (float)rng_normal(&s);
        double u = bruno_to_latent(b, raw, y, &L);
        NEAR(bruno_to_reward(b, raw, u), y, 1e-9, 1e-9);
        NEAR((bruno_to_latent(b, raw, y + 1e-6, &moved) -
              bruno_to_latent(b, raw, y - 1e-6, &moved)) /
                 2e-6,
             exp(L), 1e-4, 1e-4);
        bruno_to_latent_grad(b, raw, y, du, dL, grad);
        for (int k = 0; k < 16; k++) {
            float old = raw[k];
            double side[2];
            for (int j = 0; j < 2; j++) {
                raw[k] = old + (float)(j ? -h : h);
                double v = bruno_to_latent(b, raw, y, &L);
                side[j] = du * v + dL * L;
            }
            double step = (double)((float)(old + (float)h) - (float)(old - (float)h));
            raw[k] = old;
            NEAR(grad[k], (side[0] - side[1]) / step, 1e-3, 2e-2);
        }
    }
    bruno_destroy(b);
}

static void keep_loss(void *user, int64_t step, int64_t steps, double loss) {
    double *seen = user;
    if (step <= 10) seen[0] += loss / 10;
    if (step > steps - 10) seen[1] += loss / 10;
}

static void bruno_learns(void) {
    env e;
    env_init(&e);
    dataset *d = make_wheels(&e, 24, 120, 1);
    bruno_opts o = bruno_defaults(&e, "steps=150 batch=4 hidden=32");
    bruno *b;
    double seen[2] = {0, 0};
    learner_watch watch = {keep_loss, seen};
    CHECK(bruno_create(&e, &o, d->x_dim, 1, &b) == MNP_OK);
    CHECK(bruno_train(b, d, 1, &watch) == MNP_OK);
    CHECK(seen[1] < seen[0] - 0.5); /* nats per point */
    bruno_destroy(b);
    dataset_destroy(d);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void files_read_back(void) {
    env e;
    env_init(&e);
    dataset *d = make_wheels(&e, 4, 60, 1);
    maml_opts mo = maml_defaults(&e, "steps=2 batch=2 hidden=20 layers=2");
    bruno_opts bo = bruno_defaults(&e, "steps=2 batch=2 hidden=20 bins=4");
    maml *m, *m2 = NULL;
    bruno *b, *b2 = NULL;
    char path[512], kind[OPTION_NAME_MAX];
    const char *dir = getenv("TEST_TMP");
    snprintf(path, sizeof path, "%s/agent.safetensors", dir ? dir : "/tmp");
    CHECK(maml_create(&e, &mo, d->x_dim, 1, &m) == MNP_OK && maml_train(m, d, 1, NULL) == MNP_OK);
    CHECK(maml_save(&e, m, path) == MNP_OK && learner_kind(&e, path, kind, NULL) == MNP_OK);
    STREQ(kind, "maml");
    CHECK(bruno_load(&e, path, &b2) == MNP_EFORMAT && !b2);
    CHECK(maml_load(&e, path, &m2) == MNP_OK);
    CHECK(m2 && memcmp(m2->weights, m->weights, (size_t)m->net.words * sizeof(float)) == 0);
    CHECK(m2 && memcmp(m2->log_rate, m->log_rate, sizeof m->log_rate) == 0);
    CHECK(m2 && memcmp(&m2->scale, &m->scale, sizeof m->scale) == 0 && m2->opts.hidden == 20);
    STREQ(m2 ? m2->origin.data : NULL, "wheels");
    CHECK(bruno_create(&e, &bo, d->x_dim, 1, &b) == MNP_OK && bruno_train(b, d, 1, NULL) == MNP_OK);
    CHECK(bruno_save(&e, b, path) == MNP_OK && bruno_load(&e, path, &b2) == MNP_OK);
    CHECK(b2 && memcmp(b2->weights, b->weights, (size_t)b->net.words * sizeof(float)) == 0);
    CHECK(b2 && b2->law[0] == b->law[0] && b2->law[1] == b->law[1] && b2->spline.bins == 4);
    remove(path);
    maml_destroy(m2);
    CHECK(maml_load(&e, path, &m2) == MNP_EIO && !m2);
    maml_destroy(m);
    bruno_destroy(b);
    bruno_destroy(b2);
    dataset_destroy(d);
}

int main(void) {
    RUN(perceptron_gradient);
    RUN(maml_adapts);
    RUN(maml_rate_gradient);
    RUN(recursion_is_the_conditional);
    RUN(joint_is_the_product_of_predictions);
    RUN(law_gradients);
    RUN(bijection);
    RUN(bruno_learns);
    RUN(files_read_back);
    return check_done();
}
