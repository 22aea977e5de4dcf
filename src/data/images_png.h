/* images_png.h: the PNG files of a folder, in the order of their names, as grey values. */
#ifndef MNP_DATA_IMAGES_PNG_H
#define MNP_DATA_IMAGES_PNG_H

#include "util/env.h"

typedef struct png_list {
    char **paths; /* (count) */
    int64_t count, cap;
    int64_t rows, cols; /* of the first: all must be alike */
} png_list;

/* MNP_EFORMAT where the folder has no file *.png. */
mnp_status png_list_open(env *e, const char *dir, png_list *out);
/* Is file k as large as the first? Its header alone is read. */
mnp_status png_list_check(env *e, const png_list *list, int64_t k);
void png_list_close(env *e, png_list *list);
/* y (rows, cols): grey / 255 of file k; colours are averaged by their brightness. */
mnp_status png_list_read(env *e, const png_list *list, int64_t k, float *y);

#endif
