/* geofluvial_set.h: a folder of channel images, one bit a pixel.
 *
 *     DIR/geofluvial.json   seed, options, images of each split, whether all are there
 *     DIR/train-00000.npy   uint8 (n, size, (size + 7) / 8): rows of bits, the first pixel in the
 *     DIR/valid-00000.npy   highest bit, 1 = river; the next n images in ...-00001.npy
 *     DIR/test-00000.npy
 *
 * Writing can stop at any time: files appear whole, and the next call with the same seed and
 * options draws only what is missing. */
#ifndef MNP_DATA_GEOFLUVIAL_SET_H
#define MNP_DATA_GEOFLUVIAL_SET_H

#include "data/geofluvial.h"

enum { GEOFLUVIAL_SPLITS = 3, GEOFLUVIAL_PATH = 4096 };

const char *geofluvial_split_name(data_split split); /* "train", "valid", "test" */

typedef struct geofluvial_set {
    char dir[GEOFLUVIAL_PATH];
    geofluvial_opts o;
    uint64_t seed;
    int64_t images[GEOFLUVIAL_SPLITS];
    bool complete;
    int part, parts; /* parts > 1: writing makes only every parts-th file, from `part` on, and does
                        not complete the set: several processes share the work */
} geofluvial_set;

/* Makes the folder where there is none (but not the one above it), then the missing files. A folder
 * of another seed or other options is refused. watch->done is told how many of all images there
 * are. *drawn: how many images this call drew. */
mnp_status geofluvial_set_write(env *e, pool *pool, geofluvial_set *set,
                                const geofluvial_watch *watch, int64_t *drawn);

/* The same for the ranks of a job: each makes some of the files, then the first one looks whether
 * all are there. */
mnp_status geofluvial_set_share(env *e, pool *pool, geofluvial_set *set,
                                const geofluvial_watch *watch, int64_t *drawn);

/* MNP_EIO where there is no such folder. */
mnp_status geofluvial_set_open(env *e, const char *dir, geofluvial_set *out);
/* Before memory is taken for them: are the files of the first `count` images there, and large
 * enough? */
mnp_status geofluvial_set_check(env *e, const geofluvial_set *set, data_split split, int64_t count);
/* Masks (count, size, size), a byte a pixel, of images first .. first + count - 1 of a split. */
mnp_status geofluvial_set_read(env *e, const geofluvial_set *set, data_split split, int64_t first,
                               int64_t count, uint8_t *mask);

#endif
