/* cairo.c: a canvas that makes PNG and PDF through the cairo library, loaded when the first one is
 * wanted. See canvas.h for the contract. The bytes are collected in memory and leave by
 * canvas_finish, so files are written by the same path as all others. */
#include "plot/canvas.h"

#include <string.h>

#include "util/syslib.h"

/* ---- the library's interface, as far as it is used ------------------------------------------- */

typedef struct cairo_context cairo_context;
typedef struct cairo_surface cairo_surface;
typedef struct cairo_pattern cairo_pattern;
typedef struct cairo_extents {
    double x_bearing, y_bearing, width, height, x_advance, y_advance;
} cairo_extents;
typedef int (*cairo_write)(void *closure, const unsigned char *data, unsigned int length);

enum { STATUS_SUCCESS = 0, STATUS_NO_MEMORY = 1, STATUS_WRITE_ERROR = 11 };
enum { FORMAT_RGB24 = 1, FILTER_NEAREST = 3, CAP_ROUND = 1, JOIN_ROUND = 1 };
enum { SLANT_NORMAL = 0, WEIGHT_NORMAL = 0, WEIGHT_BOLD = 1, PDF_CREATE_DATE = 5 };

typedef struct cairo_api {
#define LIBRARY(file)
#define FUNCTION(result, name, args) result(*name) args;
#include "plot/cairo.def"
} cairo_api;

static mnp_status load(env *e, cairo_api *out) {
    static const syslib_word words[] = {
#define LIBRARY(file)                SYSLIB_FILE(file)
#define FUNCTION(result, name, args) SYSLIB_NAME("cairo_" #name)
#include "plot/cairo.def"
        {0}};
    char why[SYSLIB_WHY];
    if (syslib_load(words, out, why)) return MNP_OK;
    return env_fail(e, MNP_EUNSUPPORTED,
                    "PNG and PDF need %s: apt-get install libcairo2, or save as .svg (%s)",
                    words[0].file, why);
}

/* ---- the canvas ------------------------------------------------------------------------------ */

typedef struct cairo_canvas {
    canvas base;
    cairo_api lib;
    canvas_kind kind;
    cairo_surface *surface;
    cairo_context *cr;
    buf out;
} cairo_canvas;

static const cairo_canvas *self(const canvas *c) {
    return (const cairo_canvas *)c;
}

static void source(const cairo_api *lib, cairo_context *cr, plot_colour c) {
    lib->set_source_rgba(cr, c.r / 255.0, c.g / 255.0, c.b / 255.0, c.a / 255.0);
}

static void apply(const cairo_api *lib, cairo_context *cr, const plot_paint *p) {
    static const double dashed[] = {6, 4}, dotted[] = {1.5, 3.5};
    if (p->fill.a) {
        source(lib, cr, p->fill);
        lib->fill_preserve(cr);
    }
    if (p->stroke.a) {
        source(lib, cr, p->stroke);
        lib->set_line_width(cr, p->width);
        lib->set_dash(cr, p->dash == MNP_PLOT_DOTTED ? dotted : dashed,
                      p->dash == MNP_PLOT_SOLID ? 0 : 2, 0);
        lib->stroke_preserve(cr);
    }
    lib->new_path(cr);
}

static void draw_path(canvas *c, const double *xy, size_t points, bool closed,
                      const plot_paint *p) {
    const cairo_api *lib = &self(c)->lib;
    cairo_context *cr = self(c)->cr;
    for (size_t i = 0; i < points; i++) lib->line_to(cr, xy[2 * i], xy[2 * i + 1]);
    if (closed) lib->close_path(cr);
    apply(lib, cr, p);
}

static void draw_circle(canvas *c, double x, double y, double radius, const plot_paint *p) {
    const cairo_api *lib = &self(c)->lib;
    cairo_context *cr = self(c)->cr;
    lib->new_sub_path(cr);
    lib->arc(cr, x, y, radius, 0, 6.283185307179586);
    apply(lib, cr, p);
}

static void draw_text(canvas *c, const plot_text *t, const char *utf8) {
    const cairo_api *lib = &self(c)->lib;
    cairo_context *cr = self(c)->cr;
    cairo_extents size;
    lib->select_font_face(cr, "sans-serif", SLANT_NORMAL, t->bold ? WEIGHT_BOLD : WEIGHT_NORMAL);
    lib->set_font_size(cr, t->size);
    lib->text_extents(cr, utf8, &size);
    lib->save(cr);
    lib->translate(cr, t->x, t->y);
    if (t->upwards) lib->rotate(cr, -1.5707963267948966);
    source(lib, cr, t->colour);
    lib->move_to(cr, -size.x_advance * (double)t->anchor / 2, 0); /* start, middle, end: 0, 1, 2 */
    lib->show_text(cr, utf8);
    lib->restore(cr);
    lib->new_path(cr);
}

static void draw_clip(canvas *c, double x, double y, double w, double h) {
    const cairo_api *lib = &self(c)->lib;
    cairo_context *cr = self(c)->cr;
    lib->save(cr);
    lib->rectangle(cr, x, y, w, h);
    lib->clip(cr);
}

static void draw_unclip(canvas *c) {
    self(c)->lib.restore(self(c)->cr);
}

static void draw_image(canvas *c, double x, double y, double w, double h, const plot_colour *cells,
                       int rows, int cols) {
    const cairo_api *lib = &self(c)->lib;
    cairo_context *cr = self(c)->cr;
    cairo_surface *image = lib->image_surface_create(FORMAT_RGB24, cols, rows);
    unsigned char *data = lib->image_surface_get_data(image);
    size_t stride = (size_t)lib->image_surface_get_stride(image);
    for (int i = 0; data && i < rows; i++)
        for (int j = 0; j < cols; j++) {
            plot_colour k = cells[(size_t)i * (size_t)cols + (size_t)j];
            uint32_t pixel = (uint32_t)k.r << 16 | (uint32_t)k.g << 8 | k.b;
            memcpy(data + (size_t)i * stride + 4 * (size_t)j, &pixel, sizeof pixel);
        }
    lib->surface_mark_dirty(image);
    lib->save(cr);
    lib->translate(cr, x, y);
    lib->scale(cr, w / cols, h / rows);
    lib->set_source_surface(cr, image, 0, 0);
    lib->pattern_set_filter(lib->get_source(cr), FILTER_NEAREST);
    lib->rectangle(cr, 0, 0, cols, rows);
    lib->fill(cr);
    lib->restore(cr);
    lib->surface_destroy(image);
}

static int collect(void *closure, const unsigned char *data, unsigned int length) {
    buf *out = closure;
    return buf_append(out, data, length) == MNP_OK ? STATUS_SUCCESS : STATUS_WRITE_ERROR;
}

static mnp_status finish(canvas *c, buf *out) {
    cairo_canvas *s = (cairo_canvas *)c;
    const cairo_api *lib = &s->lib;
    int status = lib->status(s->cr);
    if (status == STATUS_SUCCESS && s->kind == CANVAS_PNG)
        status = lib->surface_write_to_png_stream(s->surface, collect, &s->out);
    if (s->kind == CANVAS_PDF) lib->surface_finish(s->surface);
    if (status == STATUS_SUCCESS) status = lib->surface_status(s->surface);
    MNP_TRY(s->out.status);
    if (status == STATUS_NO_MEMORY)
        return env_fail(c->e, MNP_ENOMEM, "out of memory while drawing");
    if (status != STATUS_SUCCESS)
        return env_fail(c->e, MNP_EIO, "cairo: %s", lib->status_to_string(status));
    return buf_append(out, s->out.data, s->out.len);
}

static void destroy(canvas *c) {
    cairo_canvas *s = (cairo_canvas *)c;
    s->lib.destroy(s->cr);
    s->lib.surface_destroy(s->surface);
    buf_free(&s->out);
    env_free(c->e, s);
}

mnp_status canvas_cairo_create(env *e, canvas_kind kind, double width, double height, double scale,
                               canvas **out) {
    static const canvas_ops ops = {draw_path,   draw_circle, draw_text, draw_clip,
                                   draw_unclip, draw_image,  finish,    destroy};
    cairo_api loaded;
    *out = NULL;
    MNP_TRY(load(e, &loaded));
    cairo_canvas *s = env_alloc(e, 1, sizeof *s, "a picture");
    if (!s) return MNP_ENOMEM;
    s->base = (canvas){&ops, e, width, height};
    s->lib = loaded;
    const cairo_api *lib = &s->lib;
    s->kind = kind;
    buf_init(&s->out, e);
    if (kind == CANVAS_PDF) { /* points of 1/72 inch; a fixed date keeps equal pictures equal */
        scale = 0.75;
        s->surface =
            lib->pdf_surface_create_for_stream(collect, &s->out, width * scale, height * scale);
        lib->pdf_surface_set_metadata(s->surface, PDF_CREATE_DATE, "2000-01-01T00:00:00Z");
    } else {
        s->surface = lib->image_surface_create(FORMAT_RGB24, (int)(width * scale + 0.5),
                                               (int)(height * scale + 0.5));
    }
    s->cr = lib->create(s->surface);
    lib->scale(s->cr, scale, scale);
    lib->set_line_join(s->cr, JOIN_ROUND);
    lib->set_line_cap(s->cr, CAP_ROUND);
    *out = &s->base;
    if (lib->status(s->cr) == STATUS_SUCCESS) return MNP_OK;
    mnp_status status = env_fail(e, MNP_ENOMEM, "a picture of %.0f x %.0f cannot be made: %s",
                                 width, height, lib->status_to_string(lib->status(s->cr)));
    destroy(*out);
    *out = NULL;
    return status;
}
