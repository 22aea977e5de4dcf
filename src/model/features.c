/* features.c: see features.h. */
#include "model/features.h"

val model_features(graph *g, const model_spec *s, val x) {
    if (s->rff == 0) return x;
    param_init init = {.kind = INIT_NORMAL, .gain = s->rff_std, .frozen = true};
    val freq = graph_param(g, "features.freq", (int32_t)s->rff, (int32_t)s->x_dim, init);
    return op_fourier(g, x, freq, s->rff_append_x);
}
