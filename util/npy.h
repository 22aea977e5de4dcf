/* npy.h: NumPy's .npy files: one array each. Versions 1, 2 and 3 are read, version 1 is written.
 *
 * Little-endian float32, float64, int32, int64, uint8 and bool are understood; everything else is
 * refused by name. Arrays in Fortran order are turned into C order while reading. The file must end
 * where the array ends. */
#ifndef MNP_BASE_NPY_H
#define MNP_BASE_NPY_H

#include "util/env.h"
#include "util/fsio.h"
#include "util/limits.h"

typedef enum npy_type { NPY_F4, NPY_F8, NPY_I4, NPY_I8, NPY_U1, NPY_B1 } npy_type;

typedef struct npy_array {
    npy_type type;
    int ndim; /* 0: a scalar */
    int64_t shape[NPY_DIMS_MAX];
    size_t count; /* elements */
    void *data;   /* row-major, 64-byte aligned, env memory; a bool is a byte 0 or 1 */
} npy_array;

size_t npy_size(npy_type type); /* bytes of an element */

/* `limit` bounds the size of the file. On failure *out is all zero. */
mnp_status npy_read(env *e, const char *path, size_t limit, npy_array *out);
/* The same from memory; `name` is what messages call it. */
mnp_status npy_parse(env *e, const char *name, const void *bytes, size_t size, npy_array *out);
void npy_free(env *e, npy_array *a); /* accepts an all-zero array */

/* The elements as doubles, whatever the type (integers beyond 2^53 are rounded). */
void npy_doubles(const npy_array *a, double *out);

/* Writes atomically (fsio.h). a->count is worked out from the shape and ignored. */
mnp_status npy_write(env *e, const char *path, const npy_array *a);
/* The same bytes after those of a buffer. */
mnp_status npy_encode(buf *out, const npy_array *a);

#endif
