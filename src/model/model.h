/* model.h: a model: its options, its weights, how it scales the data, and notes on how it was made.
 * Stored as one safetensors file: weights under their dotted names, scaling as scale.x and scale.y,
 * options and notes as metadata. Nothing about time, host or threads goes in, so the same training
 * gives the same bytes. */
#ifndef MNP_MODEL_MODEL_H
#define MNP_MODEL_MODEL_H

#include "model/chain.h"
#include "model/process/process.h"
#include "util/limits.h"
#include "util/real.h"

/* Inside the model x' = (x - x_shift) / x_scale and y' = (y - y_shift) / y_scale; densities of raw
 * y are those of y' minus log y_scale. Off: shift 0, scale 1. */
typedef struct model_scaling {
    double x_shift[MODEL_X_MAX], x_scale[MODEL_X_MAX];
    double y_shift, y_scale;
} model_scaling;

typedef struct model_note {
    char *key, *value;
} model_note;

typedef struct model {
    env env; /* its own copy: a model may outlive calls of many contexts */
    model_spec spec;
    params params;
    float *weights; /* (params.words) */
    model_scaling scaling;
    model_note notes[MODEL_NOTES_MAX]; /* "data", "seed", "steps", ... in the order they were set */
    int n_notes;
} model;

/* Fresh weights from the seed. */
mnp_status model_create(env *e, const model_spec *spec, uint64_t seed, model **out);
void model_destroy(model *m);

mnp_status model_load(env *e, const char *path, model **out);
/* `weights` (params.words floats) instead of the model's own; NULL = its own. */
mnp_status model_save(env *e, const model *m, const float *weights, const char *path);
/* Matrices of networks in half precision, where it holds them to 2^-11 of their largest number. */
mnp_status model_save_half(env *e, const model *m, const char *path);
/* The same from memory, where messages call it `name`; and the bytes of its file, appended. */
mnp_status model_parse(env *e, const char *name, const void *bytes, size_t size, model **out);
mnp_status model_print(const model *m, buf *out);

/* Notes end up in the file's metadata. A NULL value removes the note. */
mnp_status model_note_set(env *e, model *m, const char *key, const char *value);
const char *model_note_get(const model *m, const char *key); /* NULL: not there */

/* The raw number v, an input k or a y, as its distance from the centre of the training data. Can
 * the model be asked about it? False for NaN. Beyond MNP_REACH, 2^24, two floats that follow each
 * other are a whole spread apart, and products of layers overflow. */
static inline double model_distance_x(const model *m, int64_t k, double v) {
    return fabs((v - m->scaling.x_shift[k]) / m->scaling.x_scale[k]);
}
static inline double model_distance_y(const model *m, double v) {
    return fabs((v - m->scaling.y_shift) / m->scaling.y_scale);
}
static inline bool model_reaches_x(const model *m, int64_t k, double v) {
    return model_distance_x(m, k, v) <= MNP_REACH;
}
static inline bool model_reaches_y(const model *m, double v) {
    return model_distance_y(m, v) <= MNP_REACH;
}

/* The options as canonical text "kind=mnp T=7 ...". */
mnp_status model_options_text(env *e, const model *m, buf *out);
/* The operations of a training step on `points` points with up to `context` of context, one line
 * each. */
mnp_status model_print_plan(env *e, const model *m, int64_t points, int64_t context, buf *text);

#endif
