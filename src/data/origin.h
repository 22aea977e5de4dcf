/* origin.h: a column of numbers that single precision would blur, such as times in milliseconds
 * since 1970, is stored counted from its least value. The subtraction is done in double precision,
 * and whoever needs the raw number adds the origin again. */
#ifndef MNP_DATA_ORIGIN_H
#define MNP_DATA_ORIGIN_H

#include "util/fsio.h"

typedef struct origin {
    double at;              /* what is subtracted; 0: nothing                       */
    int64_t distinct, kept; /* different values, and how many are so for a network */
} origin;

/* Of `count` finite numbers; sorts them. */
origin origin_find(double *values, int64_t count);
/* A line for people where the column is counted from elsewhere, or is blurred all the same. */
void origin_say(const origin *o, const char *name, buf *to);

#endif
