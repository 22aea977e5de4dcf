/* learned.c: see learned.h. */
#include "run/learned.h"

#include <math.h>

#include "base/gp_math.h"

typedef struct writer {
    const model *m;
    const gp_kernel *k;
    buf *out;
    const char *x, *y; /* what a length and a deviation are of */
    double x_unit, y_unit;
} writer;

static void put_number(const writer *w, const char *what, double v, const char *of) {
    buf_printf(w->out, "%s %.3g", what, v);
    if (of) buf_printf(w->out, " in %s", of);
}

static double positive(const writer *w, gp_hyper which) {
    return exp(w->k->hyper[which]);
}

static void put_length(const writer *w, const char *what, gp_hyper which) {
    put_number(w, what, positive(w, which) * w->x_unit, w->x);
}

static void begin_part(const writer *w, const char *name, gp_hyper variance) {
    if (w->out->len) buf_text(w->out, "; ");
    buf_printf(w->out, "%s: ", name);
    put_number(w, "sd", sqrt(positive(w, variance)) * w->y_unit, NULL);
}

static void put_smooth(const writer *w, const char *name, gp_hyper variance, gp_hyper length) {
    begin_part(w, name, variance);
    put_length(w, ", length", length);
}

/* The length of the periodic part has no unit: it is small where a period has many wiggles. */
static void put_periodic(const writer *w) {
    begin_part(w, "periodic", GP_LOG_VARIANCE_PERIODIC);
    put_length(w, ", period", GP_LOG_PERIOD);
    put_number(w, ", length within it", positive(w, GP_LOG_LENGTH_PERIODIC), NULL);
    if (w->k->parts & GP_FADING) put_length(w, ", fading over", GP_LOG_LENGTH_RBF);
}

/* The largest wave in the mean of all curves. */
static void put_season(const writer *w) {
    const int32_t at = params_find(&w->m->params, "gp.season");
    const int32_t pace = params_find(&w->m->params, "gp.pace");
    if (at < 0 || pace < 0) return;
    const param *p = &w->m->params.list[at];
    const float *c = w->m->weights + p->offset;
    double size = 0, harmonic = 1;
    for (int32_t k = 0; k < p->cols / 2; k++) {
        const double own = hypot((double)c[2 * k], (double)c[2 * k + 1]);
        if (own > size) size = own, harmonic = k + 1;
    }
    const double f = harmonic * (double)w->m->weights[w->m->params.list[pace].offset];
    put_number(w, "; wave in the mean of all: size", size * w->y_unit, w->y);
    put_number(w, ", period", w->x_unit / fabs(f), w->x);
}

mnp_status learned_print(const model *m, buf *out) {
    const process_def *p = process_at(m->spec.kind);
    const char *x = model_note_get(m, "x_names"), *y = model_note_get(m, "y_name");
    gp_kernel k;
    if (!p->kernel) return MNP_OK;
    p->kernel(&m->spec, &m->params, m->weights, &k);
    const bool one = m->spec.x_dim == 1; /* several inputs share a length, in spreads of each */
    const writer w = {m,
                      &k,
                      out,
                      !one ? "the spread of each input"
                      : x  ? x
                           : "x",
                      y ? y : "y",
                      one ? m->scaling.x_scale[0] : 1,
                      m->scaling.y_scale};
    if (k.parts & GP_RBF) put_smooth(&w, "RBF", GP_LOG_VARIANCE_RBF, GP_LOG_LENGTH_RBF);
    if (k.parts & GP_MATERN)
        put_smooth(&w, "Matern-5/2", GP_LOG_VARIANCE_MATERN, GP_LOG_LENGTH_MATERN);
    if (k.parts & GP_PERIODIC) put_periodic(&w);
    put_season(&w);
    buf_text(out, "; noise: ");
    put_number(&w, "sd", sqrt(positive(&w, GP_LOG_NOISE)) * w.y_unit, w.y);
    return out->status;
}
