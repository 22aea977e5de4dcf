/* init.c: initial weights, each from its own random stream, so that a weight's start depends on the
 * seed and its name's place alone. */
#include <math.h>

#include "base/rng.h"
#include "nn/nn.h"

/* The packed projections have several layers side by side; their fans are those of one layer. */
static double half_width(const param_init *init) {
    if (init->kind == INIT_XAVIER)
        return init->gain * sqrt(6.0 / (double)(init->fan_in + init->fan_out));
    return init->gain / sqrt((double)init->fan_in);
}

static double draw(const param_init *init, rng_stream *s) {
    switch (init->kind) {
    case INIT_ZERO:
        return 0.0;
    case INIT_ONE:
        return 1.0;
    case INIT_VALUES:
        return init->gain;
    case INIT_NORMAL:
        return init->gain * rng_normal(s);
    case INIT_XAVIER:
    case INIT_FAN_IN:
        return half_width(init) * (2.0 * rng_u01(s) - 1.0);
    }
    return 0.0;
}

void nn_init_weights(const params *p, uint64_t seed, float *weights) {
    for (int32_t i = 0; i < p->count; i++) {
        const param *w = &p->list[i];
        rng_purpose purpose = w->init.frozen ? RNG_FREQ : RNG_INIT;
        rng_stream s = rng_stream_make((rng_key){seed}, purpose, (uint32_t)i);
        for (int32_t r = 0; r < w->rows; r++)
            for (int32_t c = 0; c < w->cols; c++)
                weights[w->offset + (int64_t)r * w->ld + c] = (float)draw(&w->init, &s);
    }
}
