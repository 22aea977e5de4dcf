/* cbp.c: the Gaussian copula process: splines on every output, over a Gaussian process. Each spline
 * has its numbers from an MLP of x, or (cbp_condition_x=off) the same for all points. The first
 * spline met by the data is number 1. */
#include "model/process/gp.h"
#include "model/transition/transition.h"

int64_t gp_warp_steps(const model_spec *s) {
    return s->kind == PROCESS_cbp ? s->cbp_layers : 0;
}

static double start_bias(const model_spec *s, const transition_def *tr) {
    return tr->start_bias ? tr->start_bias(s) : 0.0;
}

/* Numbers per point of spline k. */
static val conditioner(graph *g, const model_spec *s, int64_t k, val x) {
    const transition_def *tr = transition_at(s->transition);
    int32_t count = tr->numbers(s), hidden = (int32_t)s->flow_hidden;
    char name[32], first[NN_PATH];
    snprintf(name, sizeof name, "warp.%lld", (long long)k);
    nn_path(g, first, name, "0");
    if (!s->cbp_condition_x) {
        param_init init = {.kind = INIT_VALUES, .gain = start_bias(s, tr)};
        val row = graph_param(g, nn_path(g, first, name, "b"), 1, count, init);
        return op_join(g, op_zeros(g, "no inputs", EXT_N, 0, count, false), row, VAL_NONE, VAL_NONE,
                       ACT_NONE);
    }
    val h = nn_dense(g, x, first, hidden, ACT_RELU, 1.0);
    nn_mlp_opts o = {.hidden = hidden,
                     .layers = (int32_t)s->flow_layers,
                     .out = count,
                     .last_gain = s->flow_gain,
                     .last_bias = start_bias(s, tr)};
    return nn_mlp_rest(g, h, name, &o);
}

mapped gp_warp_to_noise(graph *g, const model_spec *s, val x, val y) {
    mapped m = {gp_trend(g, s, x, y, -1), VAL_NONE};
    for (int64_t k = 1; k <= gp_warp_steps(s) && graph_ok(g); k++)
        m = transition_at(s->transition)->to_noise(g, s, m.y, conditioner(g, s, k, x), m.logdet);
    return m;
}

void gp_warp_to_data(graph *g, const model_spec *s, val x, val u, val *path) {
    int64_t steps = gp_warp_steps(s);
    path[0] = u;
    for (int64_t k = steps; k >= 1 && graph_ok(g); k--) {
        val *to = &path[steps - k];
        to[1] =
            transition_at(s->transition)->to_data(g, s, to[0], conditioner(g, s, k, x), VAL_NONE).y;
    }
    path[steps] = gp_trend(g, s, x, path[steps], 1);
}

const process_def process_cbp = {GP_PROCESS,
                                 .help = "copula process: splines over a Gaussian process",
                                 .train = "lr=2e-3 batch=20 steps=2000"};
