/* family.h: what the built-in families share: streams, inputs, checks of the common constants. For
 * the files of src/data only; the contract of a family is in dataset.h. */
#ifndef MNP_DATA_FAMILY_H
#define MNP_DATA_FAMILY_H

#include "data/dataset.h"
#include "util/limits.h"

/* Streams of one function: what is drawn for it alone, and what its group shares (stored under the
 * group's first function). */
enum { FAMILY_OWN, FAMILY_SHARED };

/* The constants every family has: the first member of its struct. */
typedef struct family_common {
    int64_t points;
    option_range x;
    option_span context;
    option_span targets; /* 0:0: all points outside the context */
} family_common;

/* Their lines in a family's table; the order of the table is the order of a canonical name. */
#define FAMILY_FIELD_(S, field, type, def, lo, hi, help)                                           \
    {                                                                                              \
#field, type, def, lo, hi, NULL, help, offsetof(S, common.field),                          \
            sizeof(((S *)0)->common.field)                                                         \
    }
#define FAMILY_POINTS_N(S, n)                                                                      \
    FAMILY_FIELD_(S, points, OPTION_TYPE_INT, n, 2, FAMILY_POINTS_MAX, "points of a function")
#define FAMILY_POINTS(S) FAMILY_POINTS_N(S, "128")
#define FAMILY_X(S, range)                                                                         \
    FAMILY_FIELD_(S, x, OPTION_TYPE_RANGE, range, -1e6, 1e6, "range of the inputs")
#define FAMILY_CONTEXT(S, span)                                                                    \
    FAMILY_FIELD_(S, context, OPTION_TYPE_SPAN, span, 0, FAMILY_POINTS_MAX, "usual context sizes")

/* For a family that is a task with so many targets: a scorer takes a random few of the other
 * points, and the rest of the function is not shown. */
#define FAMILY_TARGETS(S, span)                                                                    \
    FAMILY_FIELD_(S, targets, OPTION_TYPE_SPAN, span, 0, FAMILY_POINTS_MAX,                        \
                  "usual numbers of targets; 0: all other points")

/* What follows from them: members of family_def. */
int64_t family_points(const void *opts);
/* The sizes, no larger than a function with one point left to predict allows. */
option_span family_context(const void *opts);
option_span family_targets(const void *opts);
/* Random Fourier frequencies of scale 1 suit an interval of width 4; the scale goes with 1/width.
 */
double family_rff_std(const void *opts);
option_range family_range(const void *opts);
mnp_status family_check(env *e, const void *opts);
#define FAMILY_DEF(S, table)                                                                       \
    .options = (table), .n_options = OPTION_COUNT(table), .opts_size = sizeof(S),                  \
    .points = family_points, .context = family_context, .targets = family_targets,                 \
    .rff_std = family_rff_std, .range = family_range, .check = family_check

rng_stream family_stream(uint64_t seed, data_split split, int64_t function, uint32_t which);

double family_uniform(rng_stream *s, option_range range);

/* n iid uniforms on the range in ascending order, each the value of a float: what is computed from
 * them in double precision then belongs to the stored inputs exactly. */
void family_inputs(rng_stream *s, option_range range, int64_t n, double *x);

/* Affine map of the values onto [-1, 1]; equal values become 0. */
void family_min_max(double *y, int64_t n);

#endif
