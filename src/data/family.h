/* family.h: what the built-in families share: streams, inputs, checks of the common constants. For
 * the files of src/data only; the contract of a family is in dataset.h. */
#ifndef MNP_DATA_FAMILY_H
#define MNP_DATA_FAMILY_H

#include "data/dataset.h"

/* Streams of one function: what is drawn for it alone, and what its group shares (stored under the
 * group's first function). */
enum { FAMILY_OWN, FAMILY_SHARED };

enum { FAMILY_POINTS_MAX = 4096 };

/* The constants every family has. Their order in the table is their order in a canonical name. */
#define FAMILY_POINTS(S)   OPTION_INT(S, points, "128", 2, FAMILY_POINTS_MAX, "points of a function")
#define FAMILY_X(S, range) OPTION_RANGE(S, x, range, -1e6, 1e6, "range of the inputs")
#define FAMILY_CONTEXT(S, span)                                                                    \
    OPTION_SPAN(S, context, span, 0, FAMILY_POINTS_MAX, "usual context sizes")

rng_stream family_stream(uint64_t seed, data_split split, int64_t function, uint32_t which);

/* n iid uniforms on the range in ascending order, each the value of a float: what is computed from
 * them in double precision then belongs to the stored inputs exactly. */
void family_inputs(rng_stream *s, option_range range, int64_t n, double *x);

/* Affine map of the values onto [-1, 1]; equal values become 0. */
void family_min_max(double *y, int64_t n);

mnp_status family_check_range(env *e, option_range x);
/* The sizes, no larger than a function with one point left to predict allows. */
option_span family_context(option_span wanted, int64_t points);
/* Random Fourier frequencies of scale 1 suit an interval of width 4; the scale goes with 1/width.
 */
double family_rff_std(option_range x);

#endif
