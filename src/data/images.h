/* images.h: images as functions R^2 -> R. Every image of a set is one function on the same grid:
 * x = (row, column), pixel centres, each mapped linearly so that the first is -1 and the last +1
 * (geofluvial_input()); y is the pixel's value in the image's own scale. The grid is kept once.
 *
 *     images:DIR       a folder of `mnp gen geofluvial`: its splits, its values (river < 0)
 *     images:DIR       a folder of PNG files, in the order of their names: grey / 255
 *     images:F.npy     an array (N, rows, columns): its numbers
 *     geofluvial:k=v   river images drawn here and now, `functions` of the split
 *
 * Folders of PNG files and arrays have no splits: a share is held out as with CSV files. */
#ifndef MNP_DATA_IMAGES_H
#define MNP_DATA_IMAGES_H

#include "data/dataset.h"

bool images_drawn(const char *what); /* "geofluvial[:...]"                  */
bool images_named(const char *what); /* "images:..." or "geofluvial[:...]" */
/* A person's images note their least and greatest value, "LO HI"; those of rivers do not. False:
 * the text is no such note. */
#define IMAGES_VALUES "data.values"
bool images_noted_values(const char *note, double *lo, double *hi);
/* Rows and columns of all images, as a note "128x128"; false: the text is no such note. And those
 * of images that are drawn here, which their name says. */
#define IMAGES_SIZE "data.size"
bool images_noted_size(const char *note, int64_t *rows, int64_t *cols);
bool images_drawn_size(env *e, const char *what, int64_t *rows, int64_t *cols);
#define IMAGES_RIVER_NOISE 0.05 /* sd on targets, as in the published experiment */
/* The most pixels of a usual context. */
int64_t images_context_max(int64_t pixels);
mnp_status images_open(env *e, pool *pool, const char *what, const data_source *s, dataset **out);

#endif
