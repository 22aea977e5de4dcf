/* palette.h: the colours of every picture. Lines use the eight colours of Okabe and Ito (2008),
 * which people with any common colour vision can tell apart; maps use grey or a viridis-like ramp
 * whose lightness rises evenly. */
#ifndef MNP_PLOT_PALETTE_H
#define MNP_PLOT_PALETTE_H

#include "plot/canvas.h"

typedef enum plot_hue {
    PLOT_AUTO, /* the next colour that the panel has not used */
    PLOT_BLUE,
    PLOT_VERMILION,
    PLOT_GREEN,
    PLOT_PURPLE,
    PLOT_ORANGE,
    PLOT_SKY,
    PLOT_YELLOW,
    PLOT_BLACK,
    PLOT_GREY,
    PLOT_HUES
} plot_hue;

typedef enum plot_map { PLOT_MAP_GREY, PLOT_MAP_VIRIDIS } plot_map;

plot_colour palette_hue(plot_hue hue, double alpha); /* alpha in 0 .. 1 */
/* t in 0 .. 1, clamped; NaN (nothing known there) is a pale blue that no map contains. */
plot_colour palette_map(plot_map map, double t);

#endif
