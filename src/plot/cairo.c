/* cairo.c: a canvas that makes PNG and PDF through the cairo library, where the build has it.
 * See canvas.h for the contract. The bytes are collected in memory and leave by canvas_finish, so
 * files are written by the same path as all others. */
#include "plot/canvas.h"

#ifndef MNP_HAVE_CAIRO

mnp_status canvas_cairo_create(env *e, canvas_kind kind, double width, double height, double scale,
                               canvas **out) {
    (void)width, (void)height, (void)scale;
    *out = NULL;
    return env_fail(e, MNP_EUNSUPPORTED,
                    "this build cannot write %s: save as .svg, or install the cairo development "
                    "files (Debian: libcairo2-dev) and build again",
                    kind == CANVAS_PNG ? "PNG" : "PDF");
}

#else

#include <cairo-pdf.h>
#include <cairo.h>
#include <string.h>

typedef struct cairo_canvas {
    canvas base;
    canvas_kind kind;
    cairo_surface_t *surface;
    cairo_t *cr;
    buf out;
} cairo_canvas;

static cairo_t *context(canvas *c) {
    return ((cairo_canvas *)c)->cr;
}

static void source(cairo_t *cr, plot_colour c) {
    cairo_set_source_rgba(cr, c.r / 255.0, c.g / 255.0, c.b / 255.0, c.a / 255.0);
}

static void apply(cairo_t *cr, const plot_paint *p) {
    static const double dashed[] = {6, 4}, dotted[] = {1.5, 3.5};
    if (p->fill.a) {
        source(cr, p->fill);
        cairo_fill_preserve(cr);
    }
    if (p->stroke.a) {
        source(cr, p->stroke);
        cairo_set_line_width(cr, p->width);
        cairo_set_dash(cr, p->dash == PLOT_DOTTED ? dotted : dashed, p->dash == PLOT_SOLID ? 0 : 2,
                       0);
        cairo_stroke_preserve(cr);
    }
    cairo_new_path(cr);
}

static void draw_path(canvas *c, const double *xy, size_t points, bool closed,
                      const plot_paint *p) {
    for (size_t i = 0; i < points; i++) cairo_line_to(context(c), xy[2 * i], xy[2 * i + 1]);
    if (closed) cairo_close_path(context(c));
    apply(context(c), p);
}

static void draw_circle(canvas *c, double x, double y, double radius, const plot_paint *p) {
    cairo_new_sub_path(context(c));
    cairo_arc(context(c), x, y, radius, 0, 6.283185307179586);
    apply(context(c), p);
}

static void draw_text(canvas *c, const plot_text *t, const char *utf8) {
    cairo_t *cr = context(c);
    cairo_text_extents_t size;
    cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           t->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cr, t->size);
    cairo_text_extents(cr, utf8, &size);
    cairo_save(cr);
    cairo_translate(cr, t->x, t->y);
    if (t->upwards) cairo_rotate(cr, -1.5707963267948966);
    source(cr, t->colour);
    cairo_move_to(cr, -size.x_advance * (double)t->anchor / 2, 0); /* start, middle, end: 0, 1, 2 */
    cairo_show_text(cr, utf8);
    cairo_restore(cr);
    cairo_new_path(cr);
}

static void draw_clip(canvas *c, double x, double y, double w, double h) {
    cairo_save(context(c));
    cairo_rectangle(context(c), x, y, w, h);
    cairo_clip(context(c));
}

static void draw_unclip(canvas *c) {
    cairo_restore(context(c));
}

static void draw_image(canvas *c, double x, double y, double w, double h, const plot_colour *cells,
                       int rows, int cols) {
    cairo_t *cr = context(c);
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, cols, rows);
    unsigned char *data = cairo_image_surface_get_data(image);
    size_t stride = (size_t)cairo_image_surface_get_stride(image);
    for (int i = 0; data && i < rows; i++)
        for (int j = 0; j < cols; j++) {
            plot_colour k = cells[(size_t)i * (size_t)cols + (size_t)j];
            uint32_t pixel = (uint32_t)k.r << 16 | (uint32_t)k.g << 8 | k.b;
            memcpy(data + (size_t)i * stride + 4 * (size_t)j, &pixel, sizeof pixel);
        }
    cairo_surface_mark_dirty(image);
    cairo_save(cr);
    cairo_translate(cr, x, y);
    cairo_scale(cr, w / cols, h / rows);
    cairo_set_source_surface(cr, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(cr), CAIRO_FILTER_NEAREST);
    cairo_rectangle(cr, 0, 0, cols, rows);
    cairo_fill(cr);
    cairo_restore(cr);
    cairo_surface_destroy(image);
}

static cairo_status_t collect(void *closure, const unsigned char *data, unsigned int length) {
    buf *out = closure;
    return buf_append(out, data, length) == MNP_OK ? CAIRO_STATUS_SUCCESS
                                                   : CAIRO_STATUS_WRITE_ERROR;
}

static mnp_status finish(canvas *c, buf *out) {
    cairo_canvas *s = (cairo_canvas *)c;
    cairo_status_t status = cairo_status(s->cr);
    if (status == CAIRO_STATUS_SUCCESS && s->kind == CANVAS_PNG)
        status = cairo_surface_write_to_png_stream(s->surface, collect, &s->out);
    if (s->kind == CANVAS_PDF) cairo_surface_finish(s->surface);
    if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_status(s->surface);
    MNP_TRY(s->out.status);
    if (status == CAIRO_STATUS_NO_MEMORY)
        return env_fail(c->e, MNP_ENOMEM, "out of memory while drawing");
    if (status != CAIRO_STATUS_SUCCESS)
        return env_fail(c->e, MNP_EIO, "cairo: %s", cairo_status_to_string(status));
    return buf_append(out, s->out.data, s->out.len);
}

static void destroy(canvas *c) {
    cairo_canvas *s = (cairo_canvas *)c;
    cairo_destroy(s->cr);
    cairo_surface_destroy(s->surface);
    buf_free(&s->out);
    env_free(c->e, s);
}

mnp_status canvas_cairo_create(env *e, canvas_kind kind, double width, double height, double scale,
                               canvas **out) {
    static const canvas_ops ops = {draw_path,   draw_circle, draw_text, draw_clip,
                                   draw_unclip, draw_image,  finish,    destroy};
    *out = NULL;
    cairo_canvas *s = env_alloc(e, 1, sizeof *s, "a picture");
    if (!s) return MNP_ENOMEM;
    s->base = (canvas){&ops, e, width, height};
    s->kind = kind;
    buf_init(&s->out, e);
    if (kind == CANVAS_PDF) { /* points of 1/72 inch; a fixed date keeps equal pictures equal */
        scale = 0.75;
        s->surface =
            cairo_pdf_surface_create_for_stream(collect, &s->out, width * scale, height * scale);
        cairo_pdf_surface_set_metadata(s->surface, CAIRO_PDF_METADATA_CREATE_DATE,
                                       "2000-01-01T00:00:00Z");
    } else {
        s->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(width * scale + 0.5),
                                                (int)(height * scale + 0.5));
    }
    s->cr = cairo_create(s->surface);
    cairo_scale(s->cr, scale, scale);
    cairo_set_line_join(s->cr, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_cap(s->cr, CAIRO_LINE_CAP_ROUND);
    *out = &s->base;
    if (cairo_status(s->cr) == CAIRO_STATUS_SUCCESS) return MNP_OK;
    mnp_status status = env_fail(e, MNP_ENOMEM, "a picture of %.0f x %.0f cannot be made: %s",
                                 width, height, cairo_status_to_string(cairo_status(s->cr)));
    destroy(*out);
    *out = NULL;
    return status;
}

#endif
