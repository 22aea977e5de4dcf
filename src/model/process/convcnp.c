/* convcnp.c: the convolutional conditional Neural Process, of one input. The context is spread over
 * a grid, a network of convolutions goes over it, and targets read it between its points.
 *
 *   h_0 = relu(conv(setconv(C))),  h_k = h_{k-1} + relu(conv(h_{k-1})),  dilated 1, 2, 4, 8, 1, ...
 *   numbers at x = MLP(h(x)), h(x) interpolated
 *
 * The grid is the model's own, the same for all contexts: so a target does not depend on others.
 * Beyond it h is 0, and the numbers are the same everywhere, whatever the context. */
#include <math.h>

#include "model/process/factorised.h"

/* Between the ends, both on the grid; a model that has seen no data has -2 to 2. */
static grid_opts grid_of(const model_spec *s) {
    bool open = !(s->grid_lo < s->grid_hi);
    double lo = open ? -2 : s->grid_lo, hi = open ? 2 : s->grid_hi;
    return (grid_opts){(int32_t)s->grid_points, lo, (hi - lo) / (double)(s->grid_points - 1)};
}

static mnp_status check(env *e, const model_spec *s) {
    if (s->x_dim != 1)
        return env_fail(e, MNP_EINVAL,
                        "convcnp has a grid of one input, and there are %lld: use tnp or cnp",
                        (long long)s->x_dim);
    if (s->conv_taps % 2 == 0)
        return env_fail(e, MNP_EINVAL, "conv_taps=%lld: a convolution has a middle; use an odd one",
                        (long long)s->conv_taps);
    if (s->grid_lo > s->grid_hi)
        return env_fail(e, MNP_EINVAL, "grid_lo=%g lies above grid_hi=%g", s->grid_lo, s->grid_hi);
    return MNP_OK;
}

/* relu of convolution k over h, plus `onto` where there is one. */
static val convolve(graph *g, const model_spec *s, int64_t k, val h, val onto) {
    enum { DILATIONS = 4 };
    int32_t width = (int32_t)s->enc_width, taps = (int32_t)s->conv_taps;
    char name[32];
    snprintf(name, sizeof name, "conv.%lld", (long long)k);
    val u = op_unfold(g, h, taps, k ? 1 << (k - 1) % DILATIONS : 1);
    int32_t in = graph_at(g, u)->cols;
    val w = nn_weight(g, name, "w", in, width, in, k ? 0.5 : 1.0);
    return op_linear(g, u, w, nn_bias(g, name, width), ACT_RELU, onto);
}

static val numbers(graph *g, const model_spec *s, val x, val y) {
    grid_opts o = grid_of(s);
    param_init init = {.kind = INIT_VALUES, .gain = log(2 * o.spacing)};
    val length = graph_param(g, "grid.length", 1, 1, init);
    val h = convolve(g, s, 0, op_set_conv(g, x, y, length, &o), VAL_NONE);
    for (int64_t k = 1; k <= s->conv_layers && graph_ok(g); k++) h = convolve(g, s, k, h, h);
    nn_mlp_opts dec = {.hidden = (int32_t)s->flow_hidden,
                       .layers = (int32_t)s->flow_layers,
                       .out = factorised_numbers(s),
                       .last_gain = s->flow_gain};
    val at = op_interpolate(g, h, x, &o);
    return nn_mlp_rest(g, nn_dense(g, at, "dec.0", dec.hidden, ACT_RELU, 1.0), "dec", &dec);
}

const process_def process_convcnp = {
    FACTORISED, .help = "convolutional neural process: convolutions over a grid of one input",
    .check = check, .numbers = numbers};
