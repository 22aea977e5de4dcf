/* palette.h: the colours of every picture. Lines use the eight colours of Okabe and Ito (2008),
 * which people with any common colour vision can tell apart; maps use grey or a viridis-like ramp
 * whose lightness rises evenly. */
#ifndef MNP_PLOT_PALETTE_H
#define MNP_PLOT_PALETTE_H

#include "plot/canvas.h"

plot_colour palette_hue(mnp_plot_hue hue, double alpha); /* alpha in 0 .. 1 */
/* t in 0 .. 1, clamped; NaN (nothing known there) is a pale blue that no map contains. */
plot_colour palette_map(mnp_plot_map map, double t);

#endif
