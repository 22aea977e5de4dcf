/* encoder.h: a set encoder turns the points (phi(x_i), y_i) into one summary r that does not depend
 * on their order. It is recorded in three parts, so that nothing is computed twice: what depends on
 * x alone (once per function), what a point brings (once per step, for all points), and the summary
 * of a prefix (the whole set, or the context). Adding one is a file and a line in encoders.def. */
#ifndef MNP_MODEL_ENCODER_H
#define MNP_MODEL_ENCODER_H

#include "model/spec.h"

typedef struct encoder_def {
    const char *name;
    val (*prepare)(graph *g, const model_spec *s, val phi); /* (rows, *) of phi (rows, F) */
    val (*points)(graph *g, const model_spec *s, val prepared, val y); /* y: a number per row */
    val (*summary)(graph *g, const model_spec *s, val points, extent over); /* r (1, d_r) */
    /* Where the summary is a function of the mean (s->pool 0) or the sum of the points alone: that
     * function of a row (1, *). Then sets can grow point by point. NULL: it is not. */
    val (*of_pooled)(graph *g, const model_spec *s, val pooled);
} encoder_def;

typedef enum encoder_id {
#define ENCODER(name) ENCODER_##name,
#include "model/encoder/encoders.def"
#undef ENCODER
    ENCODER_COUNT
} encoder_id;

const encoder_def *encoder_at(int id);

#endif
