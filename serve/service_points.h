/* service_points.h: places on a grid, and what is doubtful about points: the same for the command
 * and for a request. */
#ifndef MNP_SERVE_POINTS_H
#define MNP_SERVE_POINTS_H

#include "util/fsio.h"

/* n[k] values evenly from lo[k] to hi[k] in each of x_dim inputs, the last running fastest: x
 * (product of n, x_dim). */
void places_fill(int64_t x_dim, const double *lo, const double *hi, const int64_t *n, double *x);
/* The name of input k, or of the output after the last, from the model's notes; x, or x1, x2 ...,
 * and y where they say none. */
enum { POINTS_NAME = 128 };
void points_name(const mnp_model *m, int64_t k, char out[POINTS_NAME]);
/* A line for each input, and for y where the set has it, of which points lie outside the curves
 * that the model was trained on. `what`: "asked" or "observed". */
void points_outside(const mnp_model *m, const mnp_set *set, const char *what, buf *to);
/* A line where points lie beyond MNP_FAR and the model knows no ranges that would say more. */
void points_far(const mnp_model *m, const mnp_set *set, const char *what, buf *to);
/* A line where a network is given more points than its training showed as a context. */
void points_many(const mnp_model *m, int64_t n, buf *to);

#endif
