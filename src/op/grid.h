/* grid.h: operands of the instructions between points and a grid, for backends, and the weights of
 * the grid's points around a place. The grid has places lo, lo + spacing, ... */
#ifndef MNP_OP_GRID_H
#define MNP_OP_GRID_H

#include <math.h>
#include <stdint.h>

enum { GRID_LO, GRID_SPACING }; /* f of set_conv and interpolate */

enum { SET_CONV_X, SET_CONV_Y, SET_CONV_LENGTH, SET_CONV_G }; /* in; G: of the grad      */
enum { SET_CONV_DENSITY, SET_CONV_DATA, SET_CONV_COLS };      /* columns of the grid     */
enum { SET_CONV_GY, SET_CONV_GLENGTH };                       /* out of the grad         */
#define SET_CONV_LEAST 1e-6 /* density below which the data fade */

enum { UNFOLD_X };                     /* in; of the grad: upstream */
enum { UNFOLD_TAPS, UNFOLD_DILATION }; /* i                         */

enum { INTERPOLATE_GRID, INTERPOLATE_X };   /* in                                 */
enum { INTERPOLATE_G, INTERPOLATE_GRAD_X }; /* in of the grad                     */
enum { GRID_AROUND = 4 };                   /* points of the grid around a place  */

/* Cubic convolution (Keys, a = -1/2): point `first + j` of the grid has the weight w[j]. Exact for
 * parabolas. Far outside, all four are outside the grid. */
static inline int64_t grid_around(double lo, double spacing, double x, double w[GRID_AROUND]) {
    const double most = 1e9;
    double at = fmin(fmax((x - lo) / spacing, -most), most), whole = floor(at), t = at - whole;
    w[0] = t * (-0.5 + t * (1 - 0.5 * t));
    w[1] = 1 + t * t * (1.5 * t - 2.5);
    w[2] = t * (0.5 + t * (2 - 1.5 * t));
    w[3] = 0.5 * t * t * (t - 1);
    return (int64_t)whole - 1;
}

#endif
