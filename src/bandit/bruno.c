/* bruno.c: see bruno.h. Training is Adam on the mean negative log-likelihood per point of whole
 * functions, which is the sum of all one-step predictions in any order. */
#include "bandit/bruno.h"

#include <math.h>

static const option_def table[] = {
    OPTION_INT(learner_opts, hidden, "64", 1, MODEL_WIDTH_MAX, "width of the hidden layers"),
    OPTION_INT(learner_opts, layers, "3", 1, MLP_LAYERS_MAX, "layers of the network"),
    OPTION_INT(learner_opts, bins, "8", 2, RQS_BINS_MAX, "bins of the spline"),
    OPTION_INT(learner_opts, steps, "3000", 1, 1e8, "training steps"),
    OPTION_INT(learner_opts, batch, "16", 1, 1e5, "functions in a step"),
    OPTION_REAL(learner_opts, lr, "1e-3", 0, 1, "learning rate at the start"),
    OPTION_REAL(learner_opts, jitter, "0.02", 0, 10,
                "noise added to rewards in training, in their standard deviations"),
};

static int n_numbers(const learner_opts *o) {
    (void)o;
    return 2;
}

/* ---- the exchangeable Gaussian --------------------------------------------------------------- */

static void variances(const double law[2], double *v, double *c) {
    *v = exp(law[0]);
    *c = *v / (1 + exp(-law[1]));
}

bruno_state bruno_start(const double law[2]) {
    return (bruno_state){0, 0, exp(law[0])};
}

void bruno_observe(bruno_state *s, const double law[2], double u) {
    double v, c;
    variances(law, &v, &c);
    double d = c / (v + c * (double)s->n);
    s->mean = (1 - d) * s->mean + d * u;
    s->variance = (1 - d) * s->variance + d * (v - c);
    s->n++;
}

double bruno_mean_variance(const bruno_state *s, const double law[2]) {
    double v, c;
    variances(law, &v, &c);
    return fmax(s->variance - (v - c), 0);
}

/* ---- the bijection --------------------------------------------------------------------------- */

#define SLOPE_ONE 0.54132485461291811 /* softplus(it) = 1: where inner slopes start */
#define LOG_SCALE 4.0                 /* s stays within +- this                     */

/* raw numbers of the affine map and of the spline, both offsets from the identity. The affine op
 * divides by exp(its s) where this map multiplies, hence the sign; its m then has the other, too,
 * and so has y (see flip). */
typedef struct bend {
    val affine, spline;
} bend;

static bend bend_of(graph *g, const learner *l) {
    int32_t K = (int32_t)l->opts.bins;
    const learner_head heads[] = {{".affine", 2}, {".spline", 3 * K - 1}};
    val x = op_feed(g, "x", EXT_N, 0, l->inputs, false, false), out[2] = {VAL_NONE, VAL_NONE};
    learner_net(g, l, x, heads, 2, out);
    return (bend){op_scale(g, out[0], -1.0, 0.0), op_scale(g, out[1], 1.0, SLOPE_ONE)};
}

static val flip(graph *g, val y) {
    return op_scale(g, y, -1.0, 0.0);
}

static const affine_opts affine = {.kind = AFFINE_EXP_TANH, .kappa = LOG_SCALE};

static rqs_opts spline(const learner *l) {
    return (rqs_opts){(int32_t)l->opts.bins, 5, 1e-3, 1e-3, 1e-3};
}

static mapped to_latent(graph *g, const learner *l) {
    bend b = bend_of(g, l);
    rqs_opts o = spline(l);
    val y = op_feed_scalars(g, "y", EXT_N, false, false);
    mapped at = op_affine_to_noise(g, flip(g, y), b.affine, VAL_NONE, &affine);
    return op_rqs_to_noise(g, flip(g, at.y), b.spline, at.logdet, &o);
}

void bruno_to_latent(graph *g, const learner *l) {
    mapped u = to_latent(g, l);
    op_emit(g, u.y);
    op_emit(g, u.logdet);
}

void bruno_to_reward(graph *g, const learner *l) {
    bend b = bend_of(g, l);
    rqs_opts o = spline(l);
    val u = op_feed_scalars(g, "u", EXT_N, false, false);
    mapped at = op_rqs_to_data(g, u, b.spline, VAL_NONE, &o);
    at = op_affine_to_data(g, flip(g, at.y), b.affine, VAL_NONE, &affine);
    op_emit(g, flip(g, at.y));
}

/* ---- training -------------------------------------------------------------------------------- */

static void record(graph *g, const learner *l) {
    mapped u = to_latent(g, l);
    val law = graph_param(g, "law", 1, 2, (param_init){.kind = INIT_ZERO});
    val logp = op_add(g, op_exchangeable_logp(g, u.y, law), op_sum_rows(g, u.logdet, ROWS_ALL));
    val loss = op_per_point(g, logp, ROWS_ALL, -1.0);
    op_report(g, loss, VAL_NONE, VAL_NONE);
    op_append_grad(g, loss);
    op_update(g);
}

typedef struct run {
    learner *l;
    const dataset *d;
    uint64_t seed;
    episodes ep;
    runner *r;
    float *moments;
} run;

static mnp_status train_step(void *self, int64_t step, double *loss) {
    run *t = self;
    episodes *ep = &t->ep;
    episodes_draw(ep, t->d, &t->l->scale, t->seed, step);
    for (int64_t item = 0; item < ep->count; item++) {
        rng_at at = {.purpose = RNG_NOISE, .step = (uint32_t)step, .function = (uint32_t)item};
        rng_stream s = rng_stream_at((rng_key){t->seed}, at);
        for (int64_t i = 0; i < ep->points[item]; i++)
            ep->y[item * ep->longest + i] += t->l->opts.jitter * rng_normal(&s);
    }
    MNP_TRY(t->r->b->run(t->r->exec, &t->r->io, ep->count, 1));
    *loss = t->r->step.loss;
    return MNP_OK;
}

static mnp_status train(learner *l, const dataset *d, uint64_t seed, pool *pool,
                        const learner_watch *watch) {
    run t = {.l = l, .d = d, .seed = seed};
    float *law = l->weights + l->params.list[params_find(&l->params, "law")].offset;
    mnp_status status = episodes_create(l->e, d, l->opts.batch, &t.ep);
    if (status == MNP_OK)
        status = learner_optimiser(l, record, d->longest, 5.0, pool, &t.moments, &t.r);
    if (status == MNP_OK) {
        exec_io *io = &t.r->io;
        io->feed[0] = t.ep.x, io->feed_stride[0] = t.ep.longest * l->inputs;
        io->feed[1] = t.ep.y, io->feed_stride[1] = t.ep.longest;
        io->n = t.ep.points;
        status = learner_run(l, train_step, &t, watch);
    }
    for (int k = 0; k < 2; k++) l->numbers[k] = (double)law[k];
    episodes_free(l->e, &t.ep);
    runner_destroy(t.r);
    env_free(l->e, t.moments);
    return status;
}

const learner_def learner_cbruno = {.kind = "c-bruno",
                                    .options = table,
                                    .n_options = OPTION_COUNT(table),
                                    .n_numbers = n_numbers,
                                    .record = record,
                                    .train = train};
