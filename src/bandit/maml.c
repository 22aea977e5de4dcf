/* maml.c: see maml.h. */
#include "bandit/maml.h"

#include <math.h>
#include <string.h>

static const option_def table[] = {
    OPTION_INT(maml_opts, hidden, "64", 1, MODEL_WIDTH_MAX, "width of the hidden layers"),
    OPTION_INT(maml_opts, layers, "3", 1, MLP_LAYERS_MAX, "layers of weights"),
    OPTION_INT(maml_opts, steps, "3000", 1, 1e8, "steps of the outer loop"),
    OPTION_INT(maml_opts, batch, "16", 1, 1e5, "functions in a step"),
    OPTION_REAL(maml_opts, lr, "2e-3", 0, 1, "rate of the outer loop at its start"),
    OPTION_INT(maml_opts, inner, "10", 1, 1000, "gradient steps of an adaptation"),
    OPTION_REAL(maml_opts, inner_rate, "0.1", 1e-9, 10, "first rate of the adaptation"),
    OPTION_REAL(maml_opts, inner_clip, "1", 1e-9, 1e9, "longest gradient of the adaptation"),
};

option_view maml_view(maml_opts *o) {
    return (option_view){table, OPTION_COUNT(table), o};
}

static mlp net_of(const maml_opts *o, int32_t inputs) {
    return mlp_make((int)o->layers, inputs, (int32_t)o->hidden, 1);
}

mnp_status maml_create(env *e, const maml_opts *o, int32_t inputs, uint64_t seed, maml **out) {
    *out = NULL;
    maml *m = env_alloc(e, 1, sizeof *m, "an agent");
    if (!m) return MNP_ENOMEM;
    m->e = e;
    m->opts = *o;
    m->net = net_of(o, inputs);
    learner_scale_none(&m->scale);
    for (int l = 0; l < m->net.layers; l++) m->log_rate[l] = log(o->inner_rate);
    m->weights = env_alloc(e, (size_t)m->net.words, sizeof *m->weights, "an agent's weights");
    if (!m->weights) {
        maml_destroy(m);
        return MNP_ENOMEM;
    }
    mlp_init(&m->net, seed, 0, m->weights);
    *out = m;
    return MNP_OK;
}

void maml_destroy(maml *m) {
    if (!m) return;
    env_free(m->e, m->weights);
    learner_origin_free(m->e, &m->origin);
    env_free(m->e, m);
}

/* ---- adapting -------------------------------------------------------------------------------- */

mnp_status maml_learner_create(env *e, const maml *m, int64_t rows, maml_learner *out) {
    *out = (maml_learner){.m = m};
    size_t words = (size_t)m->net.words;
    mnp_status status = mlp_pass_create(e, &m->net, rows, &out->pass);
    out->adapted = env_alloc(e, words, sizeof(float), "an adapted agent's weights");
    out->gradient = env_alloc(e, words, sizeof(float), "an agent's gradient");
    if (status == MNP_OK && (!out->adapted || !out->gradient)) status = MNP_ENOMEM;
    if (status != MNP_OK)
        maml_learner_free(e, out);
    else
        memcpy(out->adapted, m->weights, words * sizeof(float));
    return status;
}

void maml_learner_free(env *e, maml_learner *l) {
    mlp_pass_free(&l->pass);
    env_free(e, l->adapted);
    env_free(e, l->gradient);
    *l = (maml_learner){0};
}

static void forward(maml_learner *l, const float *x, int64_t n) {
    int32_t inputs = l->m->net.width[0];
    for (int64_t i = 0; i < n; i++)
        memcpy(l->pass.h[0] + i * l->m->net.ld[0], x + i * inputs, (size_t)inputs * sizeof *x);
    mlp_forward(&l->pass, l->adapted, n);
}

double maml_loss(maml_learner *l, const float *x, const float *y, int64_t n) {
    int last = l->m->net.layers;
    int64_t ld = l->m->net.ld[last];
    double loss = 0;
    forward(l, x, n);
    for (int64_t i = 0; i < n; i++) {
        float off = l->pass.h[last][i * ld] - y[i];
        loss += (double)off * (double)off / (double)n;
        l->pass.g[last][i * ld] = 2 * off / (float)n;
    }
    mlp_backward(&l->pass, l->adapted, n, l->gradient);
    return loss;
}

static int64_t layer_end(const mlp *net, int l) {
    return l + 1 < net->layers ? net->weight[l + 1] : net->words;
}

void maml_adapt(maml_learner *l, const float *x, const float *y, int64_t n) {
    const mlp *net = &l->m->net;
    size_t bytes = (size_t)net->words * sizeof(float);
    memcpy(l->adapted, l->m->weights, bytes);
    for (int64_t k = 0; k < l->m->opts.inner && n > 0; k++) {
        memset(l->gradient, 0, bytes);
        maml_loss(l, x, y, n);
        double norm = sqrt(l->pass.kernels->sum_squares(net->words, l->gradient));
        double clip = l->m->opts.inner_clip < norm ? l->m->opts.inner_clip / norm : 1;
        for (int layer = 0; layer < net->layers; layer++) {
            float rate = (float)(clip * exp(l->m->log_rate[layer]));
            for (int64_t i = net->weight[layer]; i < layer_end(net, layer); i++)
                l->adapted[i] -= rate * l->gradient[i];
        }
    }
}

void maml_predict(maml_learner *l, const float *x, int64_t n, double *r) {
    int last = l->m->net.layers;
    forward(l, x, n);
    for (int64_t i = 0; i < n; i++)
        r[i] = learner_reward(&l->m->scale, (double)l->pass.h[last][i * l->m->net.ld[last]]);
}

/* ---- meta-training --------------------------------------------------------------------------- */

typedef struct meta {
    maml *m;
    const dataset *d;
    uint64_t seed;
    maml_learner learner;
    episode ep;
    mlp_adam adam;
    float *gradient;               /* (words) of the outer loop, over the batch */
    double rate_g[MLP_LAYERS_MAX]; /* the same of the log rates                 */
    double rate_m[MLP_LAYERS_MAX]; /* their momentum                            */
} meta;

/* One episode: adapt on the context, and the gradient at the adapted weights on the targets. */
static double outer_episode(meta *t, int64_t step, int64_t item) {
    maml_learner *l = &t->learner;
    const mlp *net = &t->m->net;
    episode_draw(&t->ep, t->d, &t->m->scale, t->seed, step, item);
    maml_adapt(l, t->ep.x, t->ep.y, t->ep.context);
    memset(l->gradient, 0, (size_t)net->words * sizeof(float));
    double loss = maml_loss(l, t->ep.x + t->ep.context * net->width[0], t->ep.y + t->ep.context,
                            t->ep.points - t->ep.context);
    for (int layer = 0; layer < net->layers; layer++)
        for (int64_t i = net->weight[layer]; i < layer_end(net, layer); i++) {
            t->gradient[i] += l->gradient[i] / (float)t->m->opts.batch;
            t->rate_g[layer] += (double)l->gradient[i] *
                                (double)(l->adapted[i] - t->m->weights[i]) /
                                (double)t->m->opts.batch;
        }
    return loss;
}

/* The rates follow the sign of a smoothed gradient: their scale differs wildly between layers. */
static void move_rates(meta *t, double rate) {
    for (int layer = 0; layer < t->m->net.layers; layer++) {
        double *m = &t->rate_m[layer], g = t->rate_g[layer];
        if (!isfinite(g)) continue;
        *m = 0.9 * *m + 0.1 * g;
        t->m->log_rate[layer] -= rate * tanh(100 * *m);
    }
}

static double outer_step(void *self, int64_t step) {
    meta *t = self;
    const maml_opts *o = &t->m->opts;
    double loss = 0, rate = learner_rate(o->lr, step, o->steps);
    memset(t->gradient, 0, (size_t)t->m->net.words * sizeof(float));
    memset(t->rate_g, 0, sizeof t->rate_g);
    for (int64_t item = 0; item < o->batch; item++)
        loss += outer_episode(t, step, item) / (double)o->batch;
    mlp_adam_step(&t->adam, rate, 1.0, t->gradient, t->m->weights);
    move_rates(t, rate);
    return loss;
}

mnp_status maml_train(maml *m, const dataset *d, uint64_t seed, const learner_watch *watch) {
    env *e = m->e;
    meta t = {.m = m, .d = d, .seed = seed};
    MNP_TRY(learner_take(e, d, &m->net, &m->scale, &m->origin));
    t.gradient = env_alloc(e, (size_t)m->net.words, sizeof(float), "an agent's gradient");
    mnp_status status = t.gradient ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) status = maml_learner_create(e, m, d->longest, &t.learner);
    if (status == MNP_OK) status = episode_create(e, d, &t.ep);
    if (status == MNP_OK) status = mlp_adam_create(e, m->net.words, &t.adam);
    if (status == MNP_OK) status = learner_run(e, m->opts.steps, outer_step, &t, watch);
    maml_learner_free(e, &t.learner);
    episode_free(e, &t.ep);
    mlp_adam_free(e, &t.adam);
    env_free(e, t.gradient);
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static learner_file file_of(maml *m, const option_view *view) {
    return (learner_file){.kind = "maml",
                          .options = view,
                          .net = &m->net,
                          .weights = m->weights,
                          .numbers = m->log_rate,
                          .n_numbers = m->net.layers,
                          .scale = &m->scale,
                          .origin = &m->origin};
}

mnp_status maml_save(env *e, const maml *m, const char *path) {
    maml copy = *m;
    option_view view = maml_view(&copy.opts);
    learner_file f = file_of(&copy, &view);
    return learner_write(e, path, &f);
}

mnp_status maml_load(env *e, const char *path, maml **out) {
    maml_opts o;
    option_view view = maml_view(&o);
    safetensors_file *file = NULL;
    int32_t inputs;
    *out = NULL;
    MNP_TRY(learner_open(e, path, "maml", &view, &file, &inputs));
    mlp net = net_of(&o, inputs);
    mnp_status status = learner_holds(e, path, file, &net);
    if (status == MNP_OK) status = maml_create(e, &o, inputs, 0, out);
    if (status == MNP_OK) {
        learner_file f = file_of(*out, &view);
        status = learner_read(e, path, file, &f);
    }
    safetensors_destroy(file);
    if (status == MNP_OK) return MNP_OK;
    maml_destroy(*out);
    *out = NULL;
    return status;
}
