/* mnp_map.h: maps of a function of two inputs given measurements (wells): mean, standard deviation,
 * the probability of a value below a threshold (in river images: of the channel), and realisations.
 * A chapter of its own beside mnp.h, whose rules hold here too.
 *
 *     mnp_map_frame f = {.rows = 64, .cols = 64, .lo = {-1, -1}, .hi = {1, 1}};
 *     double pixel[] = {10, 12, 20, 40}, value[] = {1, -1}, x[4];   two wells: row, col
 *     mnp_map_inputs(ctx, &f, 2, pixel, x);
 *     mnp_set wells = {2, x, value};
 *     mnp_map_opts o = {.size = sizeof o, .samples = 100, .honour = &wells};
 *     mnp_map m = {.size = sizeof m, .mean = mean, .sd = sd};       (64, 64) each
 *     mnp_map_make(ctx, model, &f, &wells, &o, &m); */
#ifndef MNP_MAP_H
#define MNP_MAP_H

#include "mnp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows x cols places, 2 .. 4096 each, evenly from the inputs lo to the inputs hi: lo[0] of the
 * first row to hi[0] of the last, lo[1] and hi[1] of the columns. Images have -1 and 1 throughout.
 */
typedef struct mnp_map_frame {
    int64_t rows, cols;
    double lo[2], hi[2];
} mnp_map_frame;

/* Is this a model of images, whose inputs are the row and the column of a pixel? And of rivers,
 * whose values are below 0? */
MNP_API bool mnp_map_images(const mnp_model *model);
MNP_API bool mnp_map_rivers(const mnp_model *model);
/* The least and the greatest value of the images it was trained on, -1 and 1 of rivers. False: it
 * is no model of images. Neither place may be NULL. */
MNP_API bool mnp_map_values(const mnp_model *model, double *lo, double *hi);
/* Rows and columns of the images it was trained on. False: it is no model of images, or does not
 * say. Neither place may be NULL. */
MNP_API bool mnp_map_size(const mnp_model *model, int64_t *rows, int64_t *cols);

/* Do measured values mean what they mean to the model? People code facies as 0 and 1, whatever the
 * images have. Where they do not, or perhaps not, `line` (size bytes, cut to fit) says why. */
typedef enum mnp_map_meaning {
    MNP_MAP_VALUES, /* as far as can be seen they do                                    */
    MNP_MAP_DOUBT,  /* they may not: one whole number alone, or values outside the images' */
    MNP_MAP_CODES   /* they do not: two whole numbers that the images would not show so */
} mnp_map_meaning;
MNP_API mnp_map_meaning mnp_map_meaning_of(const mnp_model *model, int64_t n, const double *y,
                                           char *line, size_t size);

/* Rows and columns (n, 2), counted from 0 at the top left and possibly between two pixels, as
 * inputs x (n, 2) of the model; the two arrays may be one. MNP_EINVAL names the first that lies
 * outside. */
MNP_API mnp_status mnp_map_inputs(mnp_ctx *ctx, const mnp_map_frame *frame, int64_t n,
                                  const double *pixel, double *x);
/* Coordinates of a person's own, such as easting and northing in metres. extent {x0, x1, y0, y1}:
 * x0 < x1 are those of the first and the last column's centres, y0 < y1 of the last and the first
 * row's: x grows to the right, y upwards. place (n, 2) has x, y and pixel (n, 2) row, col, possibly
 * between two; the two arrays may be one. MNP_EINVAL names the first that lies outside. */
MNP_API mnp_status mnp_map_pixels(mnp_ctx *ctx, const mnp_map_frame *frame, const double extent[4],
                                  int64_t n, const double *place, double *pixel);
MNP_API mnp_status mnp_map_places(mnp_ctx *ctx, const mnp_map_frame *frame, const double extent[4],
                                  int64_t n, const double *pixel, double *place);
/* `count` different pixels of rows x cols, drawn by the seed, as row * cols + col in ascending
 * order: wells for trials. */
MNP_API mnp_status mnp_map_wells(mnp_ctx *ctx, int64_t rows, int64_t cols, int64_t count,
                                 uint64_t seed, int64_t *pixel);

typedef struct mnp_map_opts {
    size_t size;        /* sizeof(mnp_map_opts)                                          */
    int64_t samples;    /* realisations S; 0 = 100                                       */
    uint64_t seed;      /* of their latents                                              */
    const char *device; /* see mnp_predictor_create(); NULL = "cpu"                      */
    /* Measurements that every function passes through (docs/user/maps.md); NULL: none. A process
     * without latents keeps its context by itself: there this is not read. */
    const mnp_set *honour;
    double range;            /* how far they are felt, in pixels; 0 = a tenth of the longer side */
    double threshold;        /* of mnp_map.below                                                 */
    mnp_condition condition; /* how realisations are drawn given the context: mnp_draw_opts   */
    int64_t gradients;
    void (*progress)(void *user, int64_t done, int64_t total); /* of that drawing; or NULL    */
    void *progress_user;
    /* The first input runs along the columns and the second along the rows, as on maps of x and y;
     * lo[0] and hi[0] of the frame are then the second input's. Images are not turned. */
    bool turned;
    uint64_t towards; /* functions on a great circle: mnp_draw_opts */
    double angle;
} mnp_map_opts;

/* Where a map goes; a place that is NULL is left out. A realisation is the smooth function of one
 * draw of the latents. The other layers include the process's own noise: they are taken over the
 * draws and eight equally likely levels of noise; sd divides by their number minus one. */
typedef struct mnp_map {
    size_t size;             /* sizeof(mnp_map)                                       */
    double *mean;            /* (rows, cols)                                          */
    double *sd;              /* (rows, cols)                                          */
    double *below;           /* (rows, cols): probability of a value below threshold */
    float *draws;            /* (S, rows, cols)                                       */
    mnp_draw_report *report; /* how the drawing went; its size is set       */
    double *differ;          /* one number: sd between the draws, mean over places; needs draws */
} mnp_map;

/* The map given a context, whose x are the model's inputs; NULL or empty: the prior. opts may be
 * NULL. MNP_EINVAL for a model that has not two inputs. */
MNP_API mnp_status mnp_map_make(mnp_ctx *ctx, const mnp_model *model, const mnp_map_frame *frame,
                                const mnp_set *context, const mnp_map_opts *opts,
                                const mnp_map *out);

/* ---- images of rivers, to train on ----------------------------------------------------------- */

/* Channels of simulated meandering rivers, cut into images of side x side pixels. An image depends
 * on the options, the seed, the split and its number alone. In a job all ranks make these calls,
 * and share the work. */
typedef struct mnp_rivers_opts {
    size_t size;         /* sizeof(mnp_rivers_opts)                                          */
    const char *options; /* "size=64 crops=2", see mnp_options_help("geofluvial", ...); or NULL */
    uint64_t seed;
    void (*progress)(void *user, int64_t done, int64_t total); /* or NULL */
    void *progress_user;
} mnp_rivers_opts;

typedef enum mnp_rivers_value {
    MNP_RIVERS_SDF,  /* squashed signed distance to the bank, below 0 in the river: what models see
                      */
    MNP_RIVERS_GRAY, /* share of the pixel that is river, 0 .. 1 */
    MNP_RIVERS_MASK  /* 1 where that is half or more, otherwise 0 */
} mnp_rivers_value;

/* The side that the options say, 128 as they come. opts may be NULL, here and below. */
MNP_API mnp_status mnp_rivers_side(mnp_ctx *ctx, const mnp_rivers_opts *opts, int64_t *side);
/* The first `images` of a split: y (images, side, side). */
MNP_API mnp_status mnp_rivers_draw(mnp_ctx *ctx, mnp_split split, int64_t images,
                                   mnp_rivers_value value, const mnp_rivers_opts *opts, float *y);
/* A folder of so many images of each split (train, valid, test), one bit a pixel, which
 * mnp_data_open() reads as "images:DIR". What is there already stays: an interrupted call goes on
 * from there. MNP_EINVAL for a folder of another seed or other options. *drawn: how many are new.
 */
MNP_API mnp_status mnp_rivers_write(mnp_ctx *ctx, const char *dir, const int64_t images[3],
                                    const mnp_rivers_opts *opts, int64_t *drawn);
/* Masks (count, side, side), 1 = river, of images first .. first + count - 1 of such a folder. */
MNP_API mnp_status mnp_rivers_read(mnp_ctx *ctx, const char *dir, mnp_split split, int64_t first,
                                   int64_t count, uint8_t *mask);

#ifdef __cplusplus
}
#endif
#endif
