/* set_transformer.h: what sab and isab share: the first projection of [phi(x), y], and pooling by
 * attention with one learned seed (PMA) followed by a linear map to r. */
#ifndef MNP_MODEL_SET_TRANSFORMER_H
#define MNP_MODEL_SET_TRANSFORMER_H

#include "model/encoder/encoder.h"

nn_attn_opts set_transformer_opts(const model_spec *s);
/* phi W_phi + b for `parts` projections side by side, and the layer completed with y. */
val set_transformer_prepare(graph *g, const model_spec *s, val phi);
val set_transformer_points(graph *g, const model_spec *s, val prepared, val y);
/* PMA and the last linear map: h (rows, D) -> r (1, d_r). */
val set_transformer_pool(graph *g, const model_spec *s, val h, extent over);

#endif
