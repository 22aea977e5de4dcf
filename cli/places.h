/* places.h: the range of a model's inputs, from the data it was trained on. */
#ifndef MNP_CLI_PLACES_H
#define MNP_CLI_PLACES_H

#include "cli/cli.h"

typedef struct places_span { /* of two inputs at most; lo > hi: nothing seen yet */
    double lo[2], hi[2];
} places_span;

places_span places_nothing(void);
void places_widen(places_span *s, int64_t x_dim, const double *x);
/* The x range of a few functions of the model's own data, where they can still be had. */
bool places_of_data(cli *c, const mnp_model *m, int64_t x_dim, places_span *s);
/* That range, or -2 .. 2, outwards to round numbers. */
void places_round(places_span *s, int64_t x_dim);

#endif
