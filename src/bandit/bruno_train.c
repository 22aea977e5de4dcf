/* bruno_train.c: training of bruno.h: Adam on the mean negative log-likelihood per point of whole
 * functions, which is the sum of all one-step predictions in any order. */
#include <math.h>
#include <string.h>

#include "bandit/bruno.h"

typedef struct run {
    bruno *b;
    const dataset *d;
    uint64_t seed;
    mlp_pass pass;
    episode ep;
    mlp_adam adam;
    float *gradient;           /* (words) */
    double law_g[2];           /* gradient of the law ... */
    double law_m[2], law_v[2]; /* ... and Adam's moments of it */
    double *u, *du;            /* (longest) */
} run;

/* Adds the gradient of -log p / (points x batch) of one function; returns -log p per point. */
static double one_function(run *r, int64_t step, int64_t item) {
    bruno *b = r->b;
    int last = b->net.layers;
    int64_t ld_in = b->net.ld[0], ld = b->net.ld[last], inputs = b->net.width[0];
    episode *ep = &r->ep;
    episode_draw(ep, r->d, &b->scale, r->seed, step, item);
    rng_at at = {.purpose = RNG_NOISE, .step = (uint32_t)step, .function = (uint32_t)item};
    rng_stream s = rng_stream_at((rng_key){r->seed}, at);
    int64_t n = ep->points;
    for (int64_t i = 0; i < n; i++) {
        ep->y[i] += (float)(b->opts.jitter * rng_normal(&s));
        memcpy(r->pass.h[0] + i * ld_in, ep->x + i * inputs, (size_t)inputs * sizeof *ep->x);
    }
    mlp_forward(&r->pass, b->weights, n);
    double slopes = 0, weight = -1 / ((double)n * (double)b->opts.batch), dlaw[2] = {0, 0};
    for (int64_t i = 0; i < n; i++) {
        double L;
        r->u[i] = bruno_to_latent(b, r->pass.h[last] + i * ld, (double)ep->y[i], &L);
        slopes += L;
    }
    double logp = bruno_logp(b->law, r->u, n, r->du, dlaw) + slopes;
    for (int64_t i = 0; i < n; i++)
        bruno_to_latent_grad(b, r->pass.h[last] + i * ld, (double)ep->y[i], weight * r->du[i],
                             weight, r->pass.g[last] + i * ld);
    mlp_backward(&r->pass, b->weights, n, r->gradient);
    for (int k = 0; k < 2; k++) r->law_g[k] += weight * dlaw[k];
    return -logp / (double)n;
}

static void move_law(run *r, double rate) {
    double t = (double)r->adam.step;
    for (int k = 0; k < 2; k++) {
        double g = r->law_g[k];
        if (!isfinite(g) || t < 1) continue;
        r->law_m[k] = 0.9 * r->law_m[k] + 0.1 * g;
        r->law_v[k] = 0.999 * r->law_v[k] + 0.001 * g * g;
        r->b->law[k] -= rate * (r->law_m[k] / (1 - pow(0.9, t))) /
                        (sqrt(r->law_v[k] / (1 - pow(0.999, t))) + 1e-8);
    }
}

static double train_step(void *self, int64_t step) {
    run *r = self;
    const bruno_opts *o = &r->b->opts;
    double loss = 0, rate = learner_rate(o->lr, step, o->steps);
    memset(r->gradient, 0, (size_t)r->b->net.words * sizeof(float));
    r->law_g[0] = r->law_g[1] = 0;
    for (int64_t item = 0; item < o->batch; item++)
        loss += one_function(r, step, item) / (double)o->batch;
    mlp_adam_step(&r->adam, rate, 5.0, r->gradient, r->b->weights);
    move_law(r, rate);
    return loss;
}

mnp_status bruno_train(bruno *b, const dataset *d, uint64_t seed, const learner_watch *watch) {
    env *e = b->e;
    run r = {.b = b, .d = d, .seed = seed};
    MNP_TRY(learner_take(e, d, &b->net, &b->scale, &b->origin));
    r.gradient = env_alloc(e, (size_t)b->net.words, sizeof(float), "an agent's gradient");
    r.u = env_alloc(e, (size_t)(2 * d->longest), sizeof(double), "an agent's latents");
    mnp_status status = r.gradient && r.u ? MNP_OK : MNP_ENOMEM;
    if (r.u) r.du = r.u + d->longest;
    if (status == MNP_OK) status = mlp_pass_create(e, &b->net, d->longest, &r.pass);
    if (status == MNP_OK) status = episode_create(e, d, &r.ep);
    if (status == MNP_OK) status = mlp_adam_create(e, b->net.words, &r.adam);
    if (status == MNP_OK) status = learner_run(e, b->opts.steps, train_step, &r, watch);
    mlp_pass_free(&r.pass);
    episode_free(e, &r.ep);
    mlp_adam_free(e, &r.adam);
    env_free(e, r.gradient);
    env_free(e, r.u);
    return status;
}
