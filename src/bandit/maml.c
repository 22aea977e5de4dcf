/* maml.c: see maml.h. */
#include "bandit/maml.h"

#include <math.h>
#include <string.h>

#include "op/update.h"

static const option_def table[] = {
    OPTION_INT(learner_opts, hidden, "64", 1, MODEL_WIDTH_MAX, "width of the hidden layers"),
    OPTION_INT(learner_opts, layers, "3", 1, MLP_LAYERS_MAX, "layers of the network"),
    OPTION_INT(learner_opts, steps, "3000", 1, 1e8, "training steps"),
    OPTION_INT(learner_opts, batch, "16", 1, 1e5, "functions in a step"),
    OPTION_REAL(learner_opts, lr, "2e-3", 0, 1, "learning rate at the start"),
    OPTION_INT(learner_opts, inner, "10", 1, 1000, "gradient steps that adapt it to a function"),
    OPTION_REAL(learner_opts, inner_rate, "0.1", 1e-9, 10,
                "their learning rate, at the start of training"),
    OPTION_REAL(learner_opts, inner_clip, "1", 1e-9, 1e9, "shorten their gradients to this norm"),
};

static int n_numbers(const learner_opts *o) {
    return (int)o->layers;
}

static void start(learner *l) {
    for (int k = 0; k < n_numbers(&l->opts); k++) l->numbers[k] = log(l->opts.inner_rate);
}

/* ---- recordings ------------------------------------------------------------------------------ */

static val regressor(graph *g, const learner *l) {
    const learner_head whole = {"", 1};
    val f = VAL_NONE;
    learner_net(g, l, op_feed(g, "x", EXT_N, 0, l->inputs, false, false), &whole, 1, &f);
    return f;
}

/* mean (f - y)^2 = -2 mean log N(f - y; 0, 1) - log 2 pi. Emits the loss. */
static void record(graph *g, const learner *l) {
    val f = regressor(g, l), y = op_feed_scalars(g, "y", EXT_N, false, false);
    val off = op_add(g, op_scale(g, y, -1.0, 0.0), f);
    val sum = op_sum_rows(g, op_normal_logp(g, off, VAL_NONE), ROWS_ALL);
    val loss = op_per_point(g, sum, ROWS_ALL, -2.0);
    op_emit(g, op_scale(g, loss, 1.0, -log(2 * 3.14159265358979323846)));
    op_append_grad(g, loss);
}

static void record_values(graph *g, const learner *l) {
    op_emit(g, regressor(g, l));
}

/* The gradient at w' is taken for that at w: the step goes down the linear function <gradient, w>,
 * the gradient of each weight being fed in the order of the weights. */
static void record_outer(graph *g, const learner *l) {
    val sum = VAL_NONE;
    for (int32_t k = 0; k < l->params.count; k++) {
        const param *p = &l->params.list[k];
        val w = graph_param(g, p->name, p->rows, p->cols, p->init);
        val d = op_dot(g, w, op_feed(g, p->name, EXT_FIXED, p->rows, p->cols, false, false));
        sum = k ? op_add(g, sum, d) : d;
    }
    op_report(g, sum, VAL_NONE, VAL_NONE);
    op_append_grad(g, sum);
    op_update(g);
}

/* ---- adapting -------------------------------------------------------------------------------- */

mnp_status maml_adapted_create(env *e, const learner *l, int64_t rows, maml_adapted *out) {
    size_t words = (size_t)l->params.words;
    *out = (maml_adapted){.e = e, .l = l};
    out->weights = env_alloc(e, words, sizeof(float), "an adapted agent's weights");
    mnp_status status = out->weights ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) status = learner_runner(e, l, record, rows, NULL, 1, &out->loss);
    if (status == MNP_OK) status = learner_runner(e, l, record_values, rows, NULL, 1, &out->values);
    if (status != MNP_OK) {
        maml_adapted_free(out);
        return status;
    }
    memcpy(out->weights, l->weights, words * sizeof(float));
    out->loss->io.weights = out->values->io.weights = out->weights;
    return MNP_OK;
}

void maml_adapted_free(maml_adapted *a) {
    if (!a->e) return;
    runner_destroy(a->loss);
    runner_destroy(a->values);
    env_free(a->e, a->weights);
    *a = (maml_adapted){0};
}

mnp_status maml_loss(maml_adapted *a, const double *x, const double *y, int64_t n, double *loss,
                     const float **gradient) {
    runner *r = a->loss;
    r->io.feed[0] = x, r->io.feed[1] = y, r->io.emit[0] = loss;
    r->io.n = &n;
    MNP_TRY(runner_run(r, 0, 1));
    *gradient = r->b->gradient(r->exec);
    return MNP_OK;
}

mnp_status maml_predict(maml_adapted *a, const double *x, int64_t n, double *f) {
    a->values->io.feed[0] = x, a->values->io.emit[0] = f;
    a->values->io.n = &n;
    return runner_run(a->values, 0, 1);
}

void maml_layers(const learner *l, int64_t first[MLP_LAYERS_MAX + 1]) {
    int n = n_numbers(&l->opts);
    for (int k = 0; k < n; k++) first[k] = l->params.list[2 * k].offset;
    first[n] = l->params.words;
}

mnp_status maml_adapt(maml_adapted *a, const double *x, const double *y, int64_t n) {
    const learner *l = a->l;
    int64_t first[MLP_LAYERS_MAX + 1];
    maml_layers(l, first);
    memcpy(a->weights, l->weights, (size_t)l->params.words * sizeof(float));
    for (int64_t k = 0; k < l->opts.inner && n > 0; k++) {
        const float *gradient;
        double loss, squares = 0, clip;
        MNP_TRY(maml_loss(a, x, y, n, &loss, &gradient));
        for (int64_t i = 0; i < l->params.words; i++)
            squares += (double)gradient[i] * (double)gradient[i];
        clip = fmin(1, l->opts.inner_clip / sqrt(squares));
        for (int layer = 0; layer < n_numbers(&l->opts); layer++) {
            float rate = (float)(clip * exp(l->numbers[layer]));
            for (int64_t i = first[layer]; i < first[layer + 1]; i++)
                a->weights[i] -= rate * gradient[i];
        }
    }
    return MNP_OK;
}

/* ---- meta-training --------------------------------------------------------------------------- */

typedef struct meta {
    learner *l;
    const dataset *d;
    uint64_t seed;
    maml_adapted adapted;
    episodes ep;
    runner *outer;
    float *moments;
    double *gradient; /* (words) mean over the batch: weights one after another, dense */
    double rate_g[MLP_LAYERS_MAX]; /* the same of the log rates */
    double rate_m[MLP_LAYERS_MAX]; /* their momentum            */
} meta;

/* Adds what an episode says: adapt on the context, then the gradient on the targets at w'. */
static mnp_status outer_episode(meta *t, int64_t item, double *loss) {
    const learner *l = t->l;
    const episodes *ep = &t->ep;
    const double *x = ep->x + item * ep->longest * l->inputs, *y = ep->y + item * ep->longest;
    int64_t m = ep->context[item];
    const float *gradient;
    MNP_TRY(maml_adapt(&t->adapted, x, y, m));
    MNP_TRY(
        maml_loss(&t->adapted, x + m * l->inputs, y + m, ep->points[item] - m, loss, &gradient));
    double *to = t->gradient, part = 1.0 / (double)ep->count;
    for (int32_t k = 0; k < l->params.count; k++) {
        const param *p = &l->params.list[k];
        for (int64_t r = 0; r < p->rows; r++)
            for (int64_t c = 0; c < p->cols; c++) {
                int64_t at = p->offset + r * p->ld + c;
                double g = part * (double)gradient[at];
                *to++ += g;
                t->rate_g[k / 2] += g * (double)(t->adapted.weights[at] - l->weights[at]);
            }
    }
    return MNP_OK;
}

/* The rates follow the sign of a smoothed gradient: their scale differs wildly between layers. */
static void move_rates(meta *t, double rate) {
    for (int k = 0; k < n_numbers(&t->l->opts); k++) {
        if (!isfinite(t->rate_g[k])) continue;
        t->rate_m[k] = 0.9 * t->rate_m[k] + 0.1 * t->rate_g[k];
        t->l->numbers[k] -= rate * tanh(100 * t->rate_m[k]);
    }
}

static mnp_status outer_step(void *self, int64_t step, double *loss) {
    meta *t = self;
    runner *r = t->outer;
    const params *p = &t->l->params;
    const double *from = t->gradient, rate = update_rate(&r->step, step);
    memset(t->gradient, 0, (size_t)p->words * sizeof *t->gradient);
    memset(t->rate_g, 0, sizeof t->rate_g);
    episodes_draw(&t->ep, t->d, &t->l->scale, t->seed, step);
    *loss = 0;
    for (int64_t item = 0; item < t->ep.count; item++) {
        double one;
        MNP_TRY(outer_episode(t, item, &one));
        *loss += one / (double)t->ep.count;
    }
    for (int32_t k = 0; k < p->count; k++) {
        r->io.feed[k] = from;
        from += (int64_t)p->list[k].rows * p->list[k].cols;
    }
    MNP_TRY(r->b->run(r->exec, &r->io, 1, 1));
    move_rates(t, rate);
    return MNP_OK;
}

static mnp_status train(learner *l, const dataset *d, uint64_t seed, pool *pool,
                        const learner_watch *watch) {
    env *e = l->e;
    meta t = {.l = l, .d = d, .seed = seed};
    (void)pool;
    t.gradient = env_alloc(e, (size_t)l->params.words, sizeof *t.gradient, "an agent's gradient");
    mnp_status status = t.gradient ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) status = maml_adapted_create(e, l, d->longest, &t.adapted);
    if (status == MNP_OK) status = episodes_create(e, d, l->opts.batch, &t.ep);
    if (status == MNP_OK)
        status = learner_optimiser(l, record_outer, 1, 1.0, NULL, &t.moments, &t.outer);
    if (status == MNP_OK) status = learner_run(l, outer_step, &t, watch);
    maml_adapted_free(&t.adapted);
    episodes_free(e, &t.ep);
    runner_destroy(t.outer);
    env_free(e, t.moments);
    env_free(e, t.gradient);
    return status;
}

const learner_def learner_maml = {.kind = "maml",
                                  .options = table,
                                  .n_options = OPTION_COUNT(table),
                                  .n_numbers = n_numbers,
                                  .start = start,
                                  .record = record,
                                  .train = train};
