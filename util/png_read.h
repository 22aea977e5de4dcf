/* png_read.h: PNG files as grey pictures. All colour types and bit depths are read; interlaced
 * files are refused. Colours become their brightness, transparency is ignored. */
#ifndef MNP_BASE_PNG_READ_H
#define MNP_BASE_PNG_READ_H

#include "util/env.h"

typedef struct png_picture {
    int64_t rows, cols;
    float *gray; /* (rows, cols) in 0 .. 1, env memory */
} png_picture;

/* On failure *out is all zero. `name` is what messages call it. */
mnp_status png_parse(env *e, const char *name, const void *bytes, size_t size, png_picture *out);
/* The sides alone, from the file's first bytes; refused where the file is too small for them. */
mnp_status png_measure(env *e, const char *path, int64_t *rows, int64_t *cols);
mnp_status png_read(env *e, const char *path, png_picture *out);
void png_free(env *e, png_picture *p);

#endif
