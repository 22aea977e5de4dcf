/* geofluvial.h: images of river channels, cut from simulated rivers (meander.h).
 *
 * A run simulates one river, paints its channel on a raster of the valley and takes `crops` random
 * squares without common columns, each shrunk to size x size. Image i of a split is crop i % crops
 * of run i / crops; a run depends on the options, the seed, the split and its number alone, so an
 * image is the same whatever else is drawn, on any number of threads, and no river serves two
 * splits.
 *
 * As functions R^2 -> R: the value at a pixel is the squashed signed distance to the bank,
 * tanh(inside s) < 0 in the river and tanh(outside s) > 0 on land, s in units of the image side;
 * the inputs are (row, column), each mapped linearly onto [-1, 1]. */
#ifndef MNP_DATA_GEOFLUVIAL_H
#define MNP_DATA_GEOFLUVIAL_H

#include "data/dataset.h"
#include "data/meander.h"
#include "data/meander_raster.h"
#include "util/limits.h"

typedef enum geofluvial_picture {
    GEOFLUVIAL_CHANNEL, /* the channel after the last step                  */
    GEOFLUVIAL_OXBOWS,  /* and the loops that it cut off                    */
    GEOFLUVIAL_BELT     /* and every saved_ts-th channel before it          */
} geofluvial_picture;

typedef struct geofluvial_opts {
    meander_opts river;
    int picture;
    double oxbow_age;       /* years; loops cut off before that are not drawn; 0 = all are */
    int64_t saved_ts;       /* steps between the channels of a belt                        */
    option_range x, y;      /* window of the raster, m                                     */
    double cell;            /* pixel of the raster, m                                      */
    int64_t crop, crops;    /* side of a crop in raster pixels; crops of a run             */
    int64_t size;           /* side of an image                                            */
    double inside, outside; /* slopes of the squashing, in the river and on land         */
    int64_t rows, cols;     /* of the raster: derived                                      */
} geofluvial_opts;

/* The defaults, changed by "name=value name=value", and checked. */
mnp_status geofluvial_options(env *e, const char *settings, geofluvial_opts *out);
/* All options as such a text, and their tables. */
mnp_status geofluvial_options_print(buf *out, const geofluvial_opts *o);
enum { GEOFLUVIAL_VIEWS = 2 };
void geofluvial_views(geofluvial_opts *o, option_view views[GEOFLUVIAL_VIEWS]);

/* One run's river on the raster: r is filled in, r->mask (rows, cols) is env memory for the caller
 * to free. */
mnp_status geofluvial_river(env *e, const geofluvial_opts *o, uint64_t seed, data_split split,
                            int64_t run, meander_raster *r);
/* The images of one run: gray (crops, size, size), the share of each pixel that is river. A set of
 * crops is drawn again where one is all river or all land. */
mnp_status geofluvial_run(env *e, const geofluvial_opts *o, uint64_t seed, data_split split,
                          int64_t run, float *gray);

/* Told how many of the runs of a call are done; always from the thread that made the call. */
typedef struct geofluvial_watch {
    void (*done)(void *user, int64_t runs);
    void *user;
} geofluvial_watch;

/* Images first .. first + count - 1 of a split, over the pool (NULL: this thread alone): gray
 * (count, size, size). watch may be NULL. */
mnp_status geofluvial_draw(env *e, pool *pool, const geofluvial_opts *o, uint64_t seed,
                           data_split split, int64_t first, int64_t count,
                           const geofluvial_watch *watch, float *gray);

/* mask = 1 where gray >= 1/2. */
void geofluvial_mask(const float *gray, int64_t pixels, uint8_t *mask);
/* Values y (count, size, size) of masks (count, size, size). MNP_EINVAL where a mask has no river
 * or no land. */
mnp_status geofluvial_values(env *e, const geofluvial_opts *o, const uint8_t *mask, int64_t count,
                             float *y);
/* The input that belongs to a row or a column. */
static inline double geofluvial_input(int64_t index, int64_t size) {
    return 2 * (double)index / (double)(size - 1) - 1;
}

#endif
