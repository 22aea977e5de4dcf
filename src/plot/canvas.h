/* canvas.h: the drawing surface under every chart. Coordinates are pixels (1/96 inch), origin at
 * the top left. There are two kinds: SVG (always there) and cairo (PNG and PDF, where that
 * library is installed). A canvas collects a failure and reports it at canvas_finish, so drawing
 * code need not check.
 */
#ifndef MNP_PLOT_CANVAS_H
#define MNP_PLOT_CANVAS_H

#include "mnp_plot.h"
#include "util/env.h"
#include "util/fsio.h"

typedef struct plot_colour {
    uint8_t r, g, b, a; /* a = 0 draws nothing */
} plot_colour;

typedef enum plot_anchor { PLOT_START, PLOT_MIDDLE, PLOT_END } plot_anchor;

typedef struct plot_paint {
    plot_colour fill, stroke;
    double width; /* of the stroke */
    mnp_plot_dash dash;
} plot_paint;

typedef struct plot_text {
    double x, y; /* of the baseline at the anchor */
    double size;
    plot_anchor anchor;
    plot_colour colour;
    bool bold, upwards; /* upwards: turned by 90 degrees to read from bottom to top */
} plot_text;

typedef struct canvas canvas;

typedef struct canvas_ops {
    void (*path)(canvas *c, const double *xy, size_t points, bool closed, const plot_paint *paint);
    void (*circle)(canvas *c, double x, double y, double radius, const plot_paint *paint);
    void (*text)(canvas *c, const plot_text *where, const char *utf8);
    void (*clip)(canvas *c, double x, double y, double w, double h); /* until unclip; no nesting */
    void (*unclip)(canvas *c);
    /* rows x cols cells, row 0 on top, as sharp rectangles */
    void (*image)(canvas *c, double x, double y, double w, double h, const plot_colour *cells,
                  int rows, int cols);
    mnp_status (*finish)(canvas *c, buf *out); /* the bytes of the file */
    void (*destroy)(canvas *c);
} canvas_ops;

struct canvas {
    const canvas_ops *ops;
    env *e;
    double width, height;
};

typedef enum canvas_kind { CANVAS_PNG, CANVAS_PDF } canvas_kind;

/* Identifiers of a picture within a page begin with `prefix`, a text that stays; "" in a file. */
mnp_status canvas_svg_create(env *e, double width, double height, const char *prefix, canvas **out);
/* MNP_EUNSUPPORTED where cairo is not installed. A PNG has `scale` pixels to one of ours. */
mnp_status canvas_cairo_create(env *e, canvas_kind kind, double width, double height, double scale,
                               canvas **out);

static inline void canvas_destroy(canvas *c) {
    if (c) c->ops->destroy(c);
}

#endif
