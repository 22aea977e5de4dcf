/* map.h: maps of a function of two inputs given measurements (mnp_map.h), and their files.
 *
 * "--grid ROWSxCOLS" asks for one. For a model of images the places are pixels: a file's row and
 * col count from 0 at the top left, and are mapped linearly onto the [-1, 1] that the model knows.
 * With "--extent x0,x1,y0,y1" they are coordinates of the file's own, x to the right, y upwards.
 * Any other model of two inputs has such coordinates: its first input runs to the right, its second
 * upwards, over the range of its training data or the extent.
 *
 * The network's functions pass near the measurements; "--honour" makes them pass through them, by
 * default where places are pixels. All numbers of the map are of the honoured functions then.
 *
 * Calls return an exit status; anything but 0 has already printed its one line. */
#ifndef MNP_CLI_MAP_H
#define MNP_CLI_MAP_H

#include "cli/points.h"
#include "mnp_map.h"

typedef struct map_frame {
    int64_t rows, cols;
    bool pixels; /* the model's inputs are the row and column of an image's pixel */
    bool rivers; /* of a river, below 0 */
    double lo[2], hi[2];
    bool coords;      /* files have x and y of this extent; otherwise row and col */
    double extent[4]; /* x0, x1, y0, y1 */
    char x[2][64];    /* what files call the two */
    double low,
        high; /* values of the palest and darkest shade; equal: the range of what is drawn */
    double threshold; /* of the probability below it */
} map_frame;

/* clang-format off */
#define MAP_COLUMNS \
    {"x", "A,B", "maps: the measurements' columns of coordinates, to the right and up: easting,northing"}, \
    {"y", "C", "maps: their column of values"}
#define MAP_FLAGS \
    {"extent", "x0,x1,y0,y1", "maps: coordinates of the first and last column and of the lowest and highest row (default: row,col in pixels for images, otherwise the training data's)"}, \
    {"codes", "A=V,B=W", "maps: what the codes in the measurements are as values of the model: 0=1,1=-1; of rivers also 0=land,1=river"}
/* clang-format on */

typedef struct map {
    map_frame at;
    int64_t samples, honoured; /* realisations; measurements they pass through */
    double *mean, *sd, *below; /* (rows, cols) */
    float *draws;              /* (samples, rows, cols) */
    drawn drawn;
} map;

/* Is this "ROWSxCOLS"? Anything with a colon is not. */
bool map_named(const char *grid);
int map_frame_read(cli *c, const question *q, const char *grid, map_frame *out);
/* Measurements of a file, by the flags --x, --y and --codes, as the model takes them. The frame
 * learns what the file calls its coordinates. */
int map_measured(cli *c, const question *q, map_frame *f, const char *path, points *out);

/* What a map is made from. */
typedef struct map_ask {
    const points *context; /* what the model is given: inputs (map_place) and values */
    const points *wells;   /* what functions pass through; NULL: nothing             */
    double range;          /* of that, in pixels; 0: the usual one                   */
    int64_t samples;
    const char *device;
} map_ask;

/* --honour on|off|PIXELS into ask->wells (the context, or NULL) and ask->range. */
int map_honour(cli *c, const map_frame *f, map_ask *ask);
int map_make(cli *c, const question *q, const map_ask *ask, const map_frame *f, map *out);
void map_free(cli *c, map *m); /* accepts zeros */

/* PREFIX.csv, PREFIX-mean.npy, -sd, -channel (-below where it is no river), -draws, and the same as
 * .png. A prefix that ends in .csv is taken without it. */
int map_write(cli *c, const map *m, const char *prefix);
/* Before the map is made: can its files be written, and is none of them an input? */
int map_check_out(cli *c, const map_frame *f, const char *prefix);
/* The table alone. */
int map_table(cli *c, const map *m, buf *out);

#endif
