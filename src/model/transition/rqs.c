/* rqs.c: the monotone rational-quadratic spline on [-B, B], identity outside. The network gives the
 * map data -> noise, whose evaluation needs no square root; sampling uses the inverse. */
#include <math.h>

#include "model/transition/transition.h"

static rqs_opts opts(const model_spec *s) {
    return (rqs_opts){(int32_t)s->bins, s->bound, s->min_width, s->min_height, s->min_derivative};
}

static int32_t numbers(const model_spec *s) {
    return 3 * (int32_t)s->bins - 1;
}

/* Equal raw widths and heights give equal bins, and softplus of this is a slope of one. */
static double start_bias(const model_spec *s) {
    return s->identity_init ? log(expm1(1.0 - s->min_derivative)) : 0.0;
}

static mapped to_noise(graph *g, const model_spec *s, val y, val raw, val logdet) {
    rqs_opts o = opts(s);
    return op_rqs_to_noise(g, y, raw, logdet, &o);
}

static mapped to_data(graph *g, const model_spec *s, val y, val raw, val logdet) {
    rqs_opts o = opts(s);
    return op_rqs_to_data(g, y, raw, logdet, &o);
}

const transition_def transition_rqs = {"rqs", numbers, start_bias, to_noise, to_data};
