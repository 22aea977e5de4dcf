/* palette.c: see palette.h. */
#include "plot/palette.h"

#include <math.h>

plot_colour palette_hue(mnp_plot_hue hue, double alpha) {
    static const plot_colour hues[] = {
        [MNP_PLOT_BLUE] = {0, 114, 178, 255},    [MNP_PLOT_VERMILION] = {213, 94, 0, 255},
        [MNP_PLOT_GREEN] = {0, 158, 115, 255},   [MNP_PLOT_PURPLE] = {204, 121, 167, 255},
        [MNP_PLOT_ORANGE] = {230, 159, 0, 255},  [MNP_PLOT_SKY] = {86, 180, 233, 255},
        [MNP_PLOT_YELLOW] = {240, 228, 66, 255}, [MNP_PLOT_BLACK] = {34, 34, 34, 255},
        [MNP_PLOT_GREY] = {140, 140, 140, 255},
    };
    plot_colour c = hues[hue > MNP_PLOT_AUTO && hue <= MNP_PLOT_GREY ? hue : MNP_PLOT_BLUE];
    c.a = (uint8_t)lround(255 * fmin(fmax(alpha, 0), 1));
    return c;
}

/* Even steps of the ramp; between them the colour is interpolated linearly. */
static const plot_colour viridis[] = {
    {68, 1, 84, 255},    {72, 40, 120, 255},  {62, 73, 137, 255},  {49, 104, 142, 255},
    {38, 130, 142, 255}, {31, 158, 137, 255}, {53, 183, 121, 255}, {110, 206, 88, 255},
    {181, 222, 43, 255}, {253, 231, 37, 255},
};

static uint8_t between(uint8_t a, uint8_t b, double f) {
    return (uint8_t)lround(a + f * (b - a));
}

plot_colour palette_map(mnp_plot_map map, double t) {
    if (isnan(t)) return (plot_colour){214, 226, 240, 255};
    t = fmin(fmax(t, 0), 1);
    if (map == MNP_PLOT_MAP_GREY) {
        uint8_t v = (uint8_t)lround(255 * t);
        return (plot_colour){v, v, v, 255};
    }
    enum { LAST = sizeof viridis / sizeof *viridis - 1 };
    double place = t * LAST;
    int i = place < LAST ? (int)place : LAST - 1;
    plot_colour a = viridis[i], b = viridis[i + 1];
    double f = place - i;
    return (plot_colour){between(a.r, b.r, f), between(a.g, b.g, f), between(a.b, b.b, f), 255};
}
