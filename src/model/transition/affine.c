/* affine.c: y_t = alpha y_{t-1} + beta with alpha = exp(kappa tanh(raw / kappa)): a step scales by
 * at most e^kappa. Pushing y_0 = 0 through gives the exact conditional mean. */
#include "model/transition/transition.h"

static int32_t numbers(const model_spec *s) {
    (void)s;
    return 2;
}

static affine_opts opts(const model_spec *s) {
    return (affine_opts){.kind = AFFINE_EXP_TANH, .kappa = s->kappa};
}

static mapped to_noise(graph *g, const model_spec *s, val y, val raw, val logdet) {
    affine_opts o = opts(s);
    return op_affine_to_noise(g, y, raw, logdet, &o);
}

static mapped to_data(graph *g, const model_spec *s, val y, val raw, val logdet) {
    affine_opts o = opts(s);
    return op_affine_to_data(g, y, raw, logdet, &o);
}

const transition_def transition_affine = {"affine", numbers, NULL, to_noise, to_data};
