/* map.h: maps of a function of two inputs given measurements (mnp_map.h), and their files.
 *
 * "--grid ROWSxCOLS" asks for one. For a model of images the places are pixels: a file's row and
 * col count from 0 at the top left, and are mapped linearly onto the [-1, 1] that the model knows.
 * For any other model of two inputs the grid spans the range of its training data.
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
    bool pixels; /* places are pixels of an image */
    double lo[2], hi[2];
} map_frame;

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
/* Measured places of a file, read by points_read(), as the model's inputs. `path` is for messages.
 */
int map_place(cli *c, const map_frame *f, const char *path, points *p);
/* (row, col) of an image, or the two inputs, of place i as files have them. */
void map_label(const map_frame *f, int64_t i, double out[2]);

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

/* PREFIX.csv, PREFIX-mean.npy, -sd, -channel (-below for other models), -draws, and the same as
 * .png. A prefix that ends in .csv is taken without it. */
int map_write(cli *c, const question *q, const map *m, const char *prefix);
/* Before the map is made: can its files be written, and is none of them an input? */
int map_check_out(cli *c, const map_frame *f, const char *prefix);
/* The table alone. */
int map_table(cli *c, const question *q, const map *m, buf *out);

#endif
