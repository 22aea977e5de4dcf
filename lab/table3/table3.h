/* table3.h: mnp repro table3: river images from few measurements. MNP, NP and two kinds of kriging
 * on seven contexts and two image sizes, scored with and without noise on the targets, all pixels
 * together and one by one. A cell is one model on one context.
 *
 *     table3.c   flags, images, models (trained where there are none), the cells
 *     score.c    one cell: its key, its scores, its file
 *     write.c    Markdown and JSON
 *     pictures.c panels of mean and sd, realisations, uncertainty by wells and distance */
#ifndef MNP_LAB_TABLE3_H
#define MNP_LAB_TABLE3_H

#include "lab/kriging/krige.h"
#include "lab/study.h"

enum { TABLE3_SIZES = 2, TABLE3_CONTEXTS = 7, TABLE3_SCORINGS = 2, TABLE3_LAWS = 2 };
enum { TABLE3_UNIFORM = 4, TABLE3_BINS = 7 }; /* the first contexts; bins of distance */
enum { TABLE3_NETS = 2, TABLE3_MODELS = 4 };  /* the first are networks, the others kriging */
enum { TABLE3_SEEN = 1024 };                  /* pixels of a larger context that networks look at */
enum { TABLE3_MNP, TABLE3_NP, TABLE3_KRIGING, TABLE3_LATENT };
enum { TABLE3_NOISY, TABLE3_CLEAN }; /* scorings, as KRIGE_NOISY and KRIGE_CLEAN */
enum { TABLE3_ALONE, TABLE3_JOINT }; /* laws, as KRIGE_PIXELS and KRIGE_JOINT    */

typedef struct table3_context {
    const char *name;   /* in the table           */
    const char *option; /* of an evaluation       */
    krige_context kind; /* of kriging, with wells */
    int64_t wells;
} table3_context;

extern const table3_context table3_contexts[TABLE3_CONTEXTS];
extern const char *const table3_models[TABLE3_MODELS];
extern const char *const table3_scorings[TABLE3_SCORINGS];
extern const char *const table3_laws[TABLE3_LAWS];
extern const double table3_noise;

typedef struct table3_cell {
    cell head;
    int size, model, context;
    double loglik[TABLE3_SCORINGS][TABLE3_LAWS], se[TABLE3_SCORINGS][TABLE3_LAWS];
} table3_cell;

/* One size of images and what is known about it. */
typedef struct table3_size {
    char source[STUDY_PATH]; /* "images:DIR" or "geofluvial:size=64" */
    int64_t side;
    mnp_data *test;
    mnp_model *net[TABLE3_NETS];
    char file[TABLE3_NETS][STUDY_PATH];
    uint64_t hash[TABLE3_NETS]; /* of the file */
    krige fit[2];               /* ordinary, scores */
    bool fitted;
} table3_size;

/* Sums over pixels and wells of some images. */
typedef struct table3_behaviour {
    double sd, pixels, bin_sd[TABLE3_BINS], bin_pixels[TABLE3_BINS];
    double kept[2], wells; /* the mean within one and two times the noise */
} table3_behaviour;

typedef struct table3 {
    study s;
    env e;       /* the command's, with Ctrl-C */
    int threads; /* of kriging */
    const char *device;
    int64_t functions, samples, fit_images, fit_points;
    int sizes;
    table3_size size[TABLE3_SIZES];
    table3_behaviour behaviour[TABLE3_MODELS][TABLE3_UNIFORM]; /* first size */
    table3_behaviour as_drawn[TABLE3_NETS][TABLE3_UNIFORM];    /* wells not honoured */
    int64_t behaviour_images;
} table3;

/* The input of a row or column: pixels lie on [-1, 1]. */
static inline double table3_input(int64_t index, int64_t side) {
    return 2 * (double)index / (double)(side - 1) - 1;
}

const table3_cell *table3_at(const table3 *t, int size, int model, int context);

/* All return an exit status; anything but 0 has printed its one line. */
int table3_fail(table3 *t, mnp_status status); /* of t->e, or of the library where that is silent */
int table3_fit(table3 *t, int size);           /* kriging, once for a size */
int table3_figures(table3 *t);
int table3_spread(table3 *t);

/* Parts of the study_def. */
void table3_name(const table3 *t, table3_cell *c);
int table3_score(study *s, void *cell);
void table3_put(cli_json *j, const study *s, const void *cell);
bool table3_get(const json_value *root, const study *s, void *cell);
void table3_markdown(buf *b, const study *s);
void table3_json(cli_json *j, const study *s);

#endif
