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

/* 18 : 2 : 5 of the images for training, validation and test; 25 000 are 18 000, 2 000, 5 000. */
void geofluvial_shares(int64_t images, int64_t of_split[GEOFLUVIAL_SPLITS]);
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

/* MNP_EIO where there is no such folder. */
mnp_status geofluvial_set_open(env *e, const char *dir, geofluvial_set *out);
/* Before memory is taken for them: are the files of the first `count` images there, and large
 * enough? */
mnp_status geofluvial_set_check(env *e, const geofluvial_set *set, data_split split, int64_t count);
/* Masks (count, size, size), a byte a pixel, of images first .. first + count - 1 of a split. */
mnp_status geofluvial_set_read(env *e, const geofluvial_set *set, data_split split, int64_t first,
                               int64_t count, uint8_t *mask);

#endif
