/* wells.h: measurements at random pixels of an image, as the table row,col,value that mnp predict
 * reads. */
#ifndef MNP_CLI_WELLS_H
#define MNP_CLI_WELLS_H

#include "util/env.h"

/* `count` different pixels of y (rows, cols), drawn by the seed, in the order of the image. */
mnp_status wells_write(env *e, const char *path, const float *y, int64_t rows, int64_t cols,
                       int64_t count, uint64_t seed);

#endif
