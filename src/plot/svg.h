/* svg.h: the SVG canvas (made by canvas_svg_create) and the text escaping it uses. The output is a
 * function of the calls alone: no dates, no random identifiers, '.' as the decimal point. */
#ifndef MNP_PLOT_SVG_H
#define MNP_PLOT_SVG_H

#include "plot/canvas.h"

/* Appends text with & < > " ' escaped; bytes that XML or UTF-8 do not allow become U+FFFD. */
mnp_status svg_escape(buf *out, const char *text);

#endif
