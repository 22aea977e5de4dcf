/* npz.h: several arrays in one file, as NumPy's numpy.load reads them: a ZIP file of .npy files,
 * stored without compression. The same arrays give the same bytes. */
#ifndef MNP_BASE_NPZ_H
#define MNP_BASE_NPZ_H

#include "util/npy.h"

typedef struct npz_member {
    const char *name; /* without .npy */
    npy_array array;
} npz_member;

/* Writes atomically (fsio.h). 2 GB at most. */
mnp_status npz_write(env *e, const char *path, const npz_member *members, int count);

#endif
