/* sde.h: paths of the stochastic differential equation of the family sde, in double precision. */
#ifndef MNP_DATA_SDE_H
#define MNP_DATA_SDE_H

#include <stdint.h>

/* dx = f dt + g o dW (Stratonovich), f = -(a + b^2 x)(1 - x^2), g = b (1 - x^2), by the two-step
 * semi-implicit strong scheme of Kloeden and Platen (12.4.5). path (n), dw (n - 1): increments of
 * the Wiener process over steps of h. */
void sde_path(double a, double b, double h, int64_t n, double x0, const double *dw, double *path);

#endif
