/* bruno.c: the law and the bijection of bruno.h, and its files. */
#include "bandit/bruno.h"

#include <math.h>

#include "op/rqs_math.h"

static const option_def table[] = {
    OPTION_INT(bruno_opts, hidden, "64", 1, MODEL_WIDTH_MAX, "width of the hidden layers"),
    OPTION_INT(bruno_opts, layers, "3", 1, MLP_LAYERS_MAX, "layers of weights"),
    OPTION_INT(bruno_opts, bins, "8", 2, RQS_BINS_MAX, "bins of the spline"),
    OPTION_INT(bruno_opts, steps, "3000", 1, 1e8, "training steps"),
    OPTION_INT(bruno_opts, batch, "16", 1, 1e5, "functions in a step"),
    OPTION_REAL(bruno_opts, lr, "1e-3", 0, 1, "learning rate at the start"),
    OPTION_REAL(bruno_opts, jitter, "0.02", 0, 10,
                "noise added to rewards in training, in their standard deviations"),
};

option_view bruno_view(bruno_opts *o) {
    return (option_view){table, OPTION_COUNT(table), o};
}

static mlp net_of(const bruno_opts *o, int32_t inputs) {
    return mlp_make((int)o->layers, inputs, (int32_t)o->hidden, (int32_t)(3 * o->bins + 1));
}

mnp_status bruno_create(env *e, const bruno_opts *o, int32_t inputs, uint64_t seed, bruno **out) {
    *out = NULL;
    bruno *b = env_alloc(e, 1, sizeof *b, "an agent");
    if (!b) return MNP_ENOMEM;
    b->e = e;
    b->opts = *o;
    b->spline = (rqs_opts){(int32_t)o->bins, 5, 1e-3, 1e-3, 1e-3};
    b->net = net_of(o, inputs);
    learner_scale_none(&b->scale);
    b->weights = env_alloc(e, (size_t)b->net.words, sizeof *b->weights, "an agent's weights");
    if (!b->weights) {
        bruno_destroy(b);
        return MNP_ENOMEM;
    }
    mlp_init(&b->net, seed, 0, b->weights);
    *out = b;
    return MNP_OK;
}

void bruno_destroy(bruno *b) {
    if (!b) return;
    env_free(b->e, b->weights);
    learner_origin_free(b->e, &b->origin);
    env_free(b->e, b);
}

/* ---- the exchangeable Gaussian --------------------------------------------------------------- */

static double share(const double law[2]) {
    return 1 / (1 + exp(-law[1]));
}

void bruno_law(const double law[2], double *v, double *c) {
    *v = exp(law[0]);
    *c = *v * share(law);
}

/* With a = v - c, b = a + n c, S = sum u, Q = sum u^2:
 *   log p = -(n log 2 pi + (n - 1) log a + log b + Q / a - c S^2 / (a b)) / 2 */
double bruno_logp(const double law[2], const double *u, int64_t n, double *du, double dlaw[2]) {
    double v, c, S = 0, Q = 0, count = (double)n;
    bruno_law(law, &v, &c);
    double a = v * (1 - share(law)), b = a + count * c;
    for (int64_t i = 0; i < n; i++) S += u[i], Q += u[i] * u[i];
    double logp = -0.5 * (count * log(2 * 3.14159265358979323846) + (count - 1) * log(a) + log(b) +
                          Q / a - c * S * S / (a * b));
    if (!du) return logp;
    for (int64_t i = 0; i < n; i++) du[i] = -(u[i] - c * S / b) / a;
    double by_a =
        -0.5 * ((count - 1) / a + 1 / b - Q / (a * a) + c * S * S * (a + b) / (a * a * b * b));
    double by_c = -0.5 * (count / b - S * S / (a * b) + c * S * S * count / (a * b * b));
    double turn = v * share(law) * (1 - share(law)); /* d c / d logit = - d a / d logit */
    dlaw[0] += by_a * a + by_c * c;
    dlaw[1] += (by_c - by_a) * turn;
    return logp;
}

bruno_state bruno_start(const double law[2]) {
    double v, c;
    bruno_law(law, &v, &c);
    return (bruno_state){0, 0, v};
}

void bruno_observe(bruno_state *s, const double law[2], double u) {
    double v, c;
    bruno_law(law, &v, &c);
    double d = c / (v + c * (double)s->n);
    s->mean = (1 - d) * s->mean + d * u;
    s->variance = (1 - d) * s->variance + d * (v - c);
    s->n++;
}

double bruno_mean_variance(const bruno_state *s, const double law[2]) {
    double v, c;
    bruno_law(law, &v, &c);
    return fmax(s->variance - (v - c), 0);
}

/* ---- the bijection --------------------------------------------------------------------------- */

/* The network's numbers are offsets from the identity: m = 0, s = 0, inner slopes 1. */
#define SLOPE_ONE 0.54132485461291811 /* softplus(it) = 1 */
#define LOG_SCALE 4.0                 /* s stays within +- this */

typedef struct bend {
    double m, s, s_raw; /* s_raw: d s / d raw */
    rqs_spline f;
} bend;

static void bend_make(const bruno *b, const float *raw, bend *out) {
    double numbers[3 * RQS_BINS_MAX];
    int32_t K = b->spline.bins;
    for (int32_t j = 0; j < 3 * K - 1; j++)
        numbers[j] = (double)raw[2 + j] + (j < 2 * K ? 0 : SLOPE_ONE);
    double t = tanh((double)raw[1] / LOG_SCALE);
    out->m = (double)raw[0];
    out->s = LOG_SCALE * t;
    out->s_raw = 1 - t * t;
    rqs_build(&b->spline, numbers, &out->f);
}

double bruno_to_latent(const bruno *b, const float *raw, double y, double *log_slope) {
    bend g;
    bend_make(b, raw, &g);
    double x = exp(g.s) * (y - g.m);
    rqs_place at = rqs_place_x(&g.f, x);
    *log_slope = g.s + (at.inside ? rqs_log_slope(&at) : 0);
    return at.inside ? rqs_y_of(&g.f, &at) : x;
}

double bruno_to_reward(const bruno *b, const float *raw, double u) {
    bend g;
    bend_make(b, raw, &g);
    rqs_place at = rqs_place_y(&g.f, u);
    double x = at.inside ? rqs_x_of(&g.f, &at) : u;
    return g.m + exp(-g.s) * x;
}

void bruno_to_latent_grad(const bruno *b, const float *raw, double y, double du, double dL,
                          float *out) {
    double spline[3 * RQS_BINS_MAX] = {0};
    bend g;
    bend_make(b, raw, &g);
    double scale = exp(g.s), x = scale * (y - g.m), by_x = du;
    rqs_place at = rqs_place_x(&g.f, x);
    if (at.inside) {
        rqs_partials Y, L, q;
        rqs_derive(&at, &Y, &L);
        q = (rqs_partials){.xk = du * Y.xk + dL * L.xk,
                           .yk = du * Y.yk + dL * L.yk,
                           .w = du * Y.w + dL * L.w,
                           .h = du * Y.h + dL * L.h,
                           .d0 = du * Y.d0 + dL * L.d0,
                           .d1 = du * Y.d1 + dL * L.d1};
        by_x = du * Y.x + dL * L.x;
        rqs_raw_grad(&g.f, at.k, &q, spline);
    }
    out[0] = (float)(-scale * by_x);
    out[1] = (float)((by_x * x + dL) * g.s_raw);
    for (int32_t j = 0; j < 3 * b->spline.bins - 1; j++) out[2 + j] = (float)spline[j];
}

/* ---- files ----------------------------------------------------------------------------------- */

static learner_file file_of(bruno *b, const option_view *view) {
    return (learner_file){.kind = "c-bruno",
                          .options = view,
                          .net = &b->net,
                          .weights = b->weights,
                          .numbers = b->law,
                          .n_numbers = 2,
                          .scale = &b->scale,
                          .origin = &b->origin};
}

mnp_status bruno_save(env *e, const bruno *b, const char *path) {
    bruno copy = *b;
    option_view view = bruno_view(&copy.opts);
    learner_file f = file_of(&copy, &view);
    return learner_write(e, path, &f);
}

mnp_status bruno_load(env *e, const char *path, bruno **out) {
    bruno_opts o;
    option_view view = bruno_view(&o);
    safetensors_file *file = NULL;
    int32_t inputs;
    *out = NULL;
    MNP_TRY(learner_open(e, path, "c-bruno", &view, &file, &inputs));
    mlp net = net_of(&o, inputs);
    mnp_status status = learner_holds(e, path, file, &net);
    if (status == MNP_OK) status = bruno_create(e, &o, inputs, 0, out);
    if (status == MNP_OK) {
        learner_file f = file_of(*out, &view);
        status = learner_read(e, path, file, &f);
    }
    safetensors_destroy(file);
    if (status == MNP_OK) return MNP_OK;
    bruno_destroy(*out);
    *out = NULL;
    return status;
}
