/* gauss.c: y_t = sigma y_{t-1} + mu with sigma = floor + (1 - floor) softplus(raw). One such step
 * from iid normals is a Gaussian likelihood: the Neural Process. */
#include "model/transition/transition.h"

static int32_t numbers(const model_spec *s) {
    (void)s;
    return 2;
}

static affine_opts opts(const model_spec *s) {
    return (affine_opts){.kind = AFFINE_SOFTPLUS, .floor = s->sigma_floor};
}

static mapped to_noise(graph *g, const model_spec *s, val y, val raw, val logdet) {
    affine_opts o = opts(s);
    return op_affine_to_noise(g, y, raw, logdet, &o);
}

static mapped to_data(graph *g, const model_spec *s, val y, val raw, val logdet) {
    affine_opts o = opts(s);
    return op_affine_to_data(g, y, raw, logdet, &o);
}

const transition_def transition_gauss = {"gauss", numbers, NULL, to_noise, to_data};
