/* svg.c: a canvas that writes SVG 1.1. See canvas.h for the contract. */
#include "plot/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct svg {
    canvas base;
    buf out;
    const char *prefix;
    int clips; /* clip paths so far: their identifiers */
} svg;

/* A coordinate with two decimals and no trailing zeros; what is not finite goes to the corner. */
static void number(buf *out, double v) {
    if (!isfinite(v)) v = 0;
    if (fabs(v) < 0.005) v = 0; /* no "-0" */
    if (fabs(v) > 1e6) v = copysign(1e6, v);
    if (buf_fixed(out, v, 2) != MNP_OK) return;
    while (out->len && out->data[out->len - 1] == '0') out->data[--out->len] = '\0';
    if (out->len && out->data[out->len - 1] == '.') out->data[--out->len] = '\0';
}

static void attribute(buf *out, const char *name, double v) {
    buf_printf(out, " %s=\"", name);
    number(out, v);
    buf_text(out, "\"");
}

static void colour(buf *out, const char *name, plot_colour c) {
    if (c.a == 0) {
        buf_printf(out, " %s=\"none\"", name);
        return;
    }
    buf_printf(out, " %s=\"#%02x%02x%02x\"", name, c.r, c.g, c.b);
    if (c.a == 255) return;
    buf_printf(out, " %s-opacity=\"", name);
    number(out, c.a / 255.0);
    buf_text(out, "\"");
}

static void paint(buf *out, const plot_paint *p) {
    colour(out, "fill", p->fill);
    if (p->stroke.a == 0) return;
    colour(out, "stroke", p->stroke);
    attribute(out, "stroke-width", p->width);
    if (p->dash == MNP_PLOT_DASHED) buf_text(out, " stroke-dasharray=\"6 4\"");
    if (p->dash == MNP_PLOT_DOTTED) buf_text(out, " stroke-dasharray=\"1.5 3.5\"");
    buf_text(out, " stroke-linejoin=\"round\" stroke-linecap=\"round\"");
}

mnp_status svg_escape(buf *out, const char *text) {
    size_t left = strlen(text);
    while (left) {
        size_t n = fsio_utf8_len(text, left);
        unsigned char c = (unsigned char)*text;
        bool bad = n == 0 || (c < 0x20 && c != '\t' && c != '\n' && c != '\r') ||
                   (n == 3 && memcmp(text, "\xEF\xBF", 2) == 0 && (unsigned char)text[2] >= 0xBE);
        if (n == 0) n = 1;
        if (bad)
            buf_text(out, "\xEF\xBF\xBD");
        else if (c == '&')
            buf_text(out, "&amp;");
        else if (c == '<')
            buf_text(out, "&lt;");
        else if (c == '>')
            buf_text(out, "&gt;");
        else if (c == '"')
            buf_text(out, "&quot;");
        else if (c == '\'')
            buf_text(out, "&#39;");
        else
            buf_append(out, text, n);
        text += n;
        left -= n;
    }
    return out->status;
}

/* ---- the operations -------------------------------------------------------------------------- */

static void svg_path(canvas *c, const double *xy, size_t points, bool closed, const plot_paint *p) {
    buf *out = &((svg *)c)->out;
    if (points == 0) return;
    buf_text(out, "<path d=\"");
    for (size_t i = 0; i < points; i++) {
        buf_text(out, i == 0 ? "M" : i == 1 ? "L" : " ");
        number(out, xy[2 * i]);
        buf_text(out, " ");
        number(out, xy[2 * i + 1]);
    }
    buf_text(out, closed ? "Z\"" : "\"");
    paint(out, p);
    buf_text(out, "/>\n");
}

static void svg_circle(canvas *c, double x, double y, double radius, const plot_paint *p) {
    buf *out = &((svg *)c)->out;
    buf_text(out, "<circle");
    attribute(out, "cx", x);
    attribute(out, "cy", y);
    attribute(out, "r", radius);
    paint(out, p);
    buf_text(out, "/>\n");
}

static void svg_text(canvas *c, const plot_text *t, const char *utf8) {
    static const char *const anchors[] = {"start", "middle", "end"};
    buf *out = &((svg *)c)->out;
    buf_text(out, "<text");
    attribute(out, "x", t->x);
    attribute(out, "y", t->y);
    attribute(out, "font-size", t->size);
    if (t->anchor != PLOT_START) buf_printf(out, " text-anchor=\"%s\"", anchors[t->anchor]);
    if (t->bold) buf_text(out, " font-weight=\"bold\"");
    colour(out, "fill", t->colour);
    if (t->upwards) {
        buf_text(out, " transform=\"rotate(-90 ");
        number(out, t->x);
        buf_text(out, " ");
        number(out, t->y);
        buf_text(out, ")\"");
    }
    buf_text(out, ">");
    svg_escape(out, utf8);
    buf_text(out, "</text>\n");
}

static void svg_clip(canvas *c, double x, double y, double w, double h) {
    svg *s = (svg *)c;
    buf_printf(&s->out, "<clipPath id=\"%sclip%d\"><rect", s->prefix, s->clips);
    attribute(&s->out, "x", x);
    attribute(&s->out, "y", y);
    attribute(&s->out, "width", w);
    attribute(&s->out, "height", h);
    buf_printf(&s->out, "/></clipPath>\n<g clip-path=\"url(#%sclip%d)\">\n", s->prefix, s->clips++);
}

static void svg_unclip(canvas *c) {
    buf_text(&((svg *)c)->out, "</g>\n");
}

typedef struct cell {
    uint32_t rgb, at; /* at: row-major place */
} cell;

static int by_colour(const void *a, const void *b) {
    const cell *x = a, *y = b;
    if (x->rgb != y->rgb) return x->rgb < y->rgb ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

/* One path per colour, cells in a row joined into runs: sharp in every viewer, and smaller than a
 * rectangle per cell. */
static void svg_image(canvas *c, double x, double y, double w, double h, const plot_colour *cells,
                      int rows, int cols) {
    buf *out = &((svg *)c)->out;
    size_t count = (size_t)rows * (size_t)cols;
    cell *sorted = env_alloc(c->e, count, sizeof *sorted, "the cells of a picture");
    if (!sorted) {
        out->status = MNP_ENOMEM;
        return;
    }
    for (size_t i = 0; i < count; i++)
        sorted[i] = (cell){(uint32_t)cells[i].r << 16 | (uint32_t)cells[i].g << 8 | cells[i].b,
                           (uint32_t)i};
    qsort(sorted, count, sizeof *sorted, by_colour);
    buf_text(out, "<g shape-rendering=\"crispEdges\" transform=\"translate(");
    number(out, x);
    buf_text(out, " ");
    number(out, y);
    buf_text(out, ") scale(");
    buf_double(out, w / cols);
    buf_text(out, " ");
    buf_double(out, h / rows);
    buf_text(out, ")\">\n");
    for (size_t i = 0; i < count;) {
        bool first = i == 0 || sorted[i].rgb != sorted[i - 1].rgb;
        if (first) buf_printf(out, "<path fill=\"#%06x\" d=\"", (unsigned)sorted[i].rgb);
        uint32_t row = sorted[i].at / (uint32_t)cols, col = sorted[i].at % (uint32_t)cols, run = 1;
        while (i + run < count && sorted[i + run].rgb == sorted[i].rgb &&
               sorted[i + run].at == sorted[i].at + run && col + run < (uint32_t)cols)
            run++;
        buf_printf(out, "M%u %uh%uv1h-%uz", col, row, run, run);
        i += run;
        if (i == count || sorted[i].rgb != sorted[i - 1].rgb) buf_text(out, "\"/>\n");
    }
    buf_text(out, "</g>\n");
    env_free(c->e, sorted);
}

static mnp_status svg_finish(canvas *c, buf *out) {
    svg *s = (svg *)c;
    buf_text(&s->out, "</svg>\n");
    MNP_TRY(s->out.status);
    return buf_append(out, s->out.data, s->out.len);
}

static void svg_destroy(canvas *c) {
    buf_free(&((svg *)c)->out);
    env_free(c->e, c);
}

mnp_status canvas_svg_create(env *e, double width, double height, const char *prefix,
                             canvas **out) {
    static const canvas_ops ops = {svg_path,   svg_circle, svg_text,   svg_clip,
                                   svg_unclip, svg_image,  svg_finish, svg_destroy};
    *out = NULL;
    svg *s = env_alloc(e, 1, sizeof *s, "a picture");
    if (!s) return MNP_ENOMEM;
    s->base = (canvas){&ops, e, width, height};
    s->prefix = prefix;
    buf_init(&s->out, e);
    buf_text(&s->out, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    attribute(&s->out, "width", width);
    attribute(&s->out, "height", height);
    buf_text(&s->out, " viewBox=\"0 0 ");
    number(&s->out, width);
    buf_text(&s->out, " ");
    number(&s->out, height);
    buf_text(&s->out, "\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n");
    *out = &s->base; /* a failure so far sticks in the buffer and shows at finish */
    return MNP_OK;
}
