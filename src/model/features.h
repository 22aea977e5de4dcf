/* features.h: what networks see of x. */
#ifndef MNP_MODEL_FEATURES_H
#define MNP_MODEL_FEATURES_H

#include "model/spec.h"

/* phi(x) (rows, F) of x (rows, X): random Fourier features, or x itself where rff=0. */
val model_features(graph *g, const model_spec *s, val x);

#endif
