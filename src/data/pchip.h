/* pchip.h: the monotone cubic interpolant of Fritsch and Butland (1984) through nodes (x_k, y_k),
 * and its exact integral. Inner slopes are weighted harmonic means of the neighbouring secants (0
 * at a turn), end slopes come from the three-point formula, limited so that the shape is kept. */
#ifndef MNP_DATA_PCHIP_H
#define MNP_DATA_PCHIP_H

#include <stdint.h>

/* Borrowed arrays: x (n) ascending, y (n), slope (n), area (n): integral from x_0 to each node. */
typedef struct pchip {
    int64_t n;
    const double *x, *y;
    double *slope, *area;
} pchip;

/* Fills slope and area. n >= 2. */
void pchip_make(const pchip *p);
/* Outside the nodes the first and last cubics go on. */
double pchip_value(const pchip *p, double q);
double pchip_integral(const pchip *p, double q); /* from x_0 */

#endif
