/* frequency.h: how fast the curves of a data set turn: a periodogram of each, and what they have in
 * common. A network whose frequencies are far below those of the curves does not learn them, and a
 * Gaussian process that starts far from their period does not find it. */
#ifndef MNP_DATA_FREQUENCY_H
#define MNP_DATA_FREQUENCY_H

#include "data/dataset.h"

/* Frequencies in turns for a unit of x. 0: nothing stands out of the noise, or there are too few
 * points to tell. */
typedef struct curve_frequency {
    double mean;  /* of the spectrum: the root of the mean square */
    double peak;  /* where curves go up and down again and again; 0: they only bend */
    double share; /* of a curve's variance that a sine of the peak's frequency explains */
    double turns; /* of the peak's, in the range of a curve */
} curve_frequency;

/* In the input that is time (dataset_time()), a straight line taken off each curve. Nothing where
 * another input changes within curves. */
mnp_status frequency_find(env *e, const dataset *d, curve_frequency *out);

#endif
