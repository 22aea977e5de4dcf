/* simulate.h: curves as a classical model of a person's curves would draw them, to train a network
 * on before it sees the real ones.
 *
 * Every simulated curve has the inputs of a real one. Of half of them the measurement times are
 * moved, each by up to half of the way to its neighbour, so that a network learns what happens
 * between the times at which all real curves were measured. Inputs that do not change within a
 * curve (its covariates) and those of two values (categories) stay as they are. The model's own
 * uncertainty comes along: a mixed model takes one of its draws of the parameters for each curve.
 */
#ifndef MNP_FIT_SIMULATE_H
#define MNP_FIT_SIMULATE_H

#include "data/dataset.h"
#include "model/model.h"

typedef struct simulate_opts {
    int64_t curves; /* rounded up to whole templates of SIMULATE_EACH */
    uint64_t seed;
    pool *pool; /* NULL: this thread */
} simulate_opts;

enum { SIMULATE_EACH = 8 };     /* curves that have the same inputs           */
enum { SIMULATE_POINTS = 256 }; /* at most; a longer curve gives some of its inputs */

/* Curves of m, a model without latents (lmm, gp) with its scaling, at inputs like those of d. */
mnp_status simulate_curves(env *e, const model *m, const dataset *d, const simulate_opts *o,
                           dataset **out);

/* The inputs (n, X) of a curve, moved. */
void simulate_inputs(const double *from, int64_t n, int64_t X, rng_stream *s, double *to);

/* How fast the model's curves change with input c: the frequency, in turns for each x_scale of the
 * model, of the sine that has as much curvature for its size. Drawn without noise over the range of
 * the input, the others as some real curves have them, and a line taken off; the median of all.
 * 0: they are lines. */
mnp_status simulate_frequency(env *e, const model *m, const dataset *d, int32_t c,
                              const simulate_opts *o, double *out);

#endif
