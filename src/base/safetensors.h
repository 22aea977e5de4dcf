/* safetensors.h: named arrays in one file: 8 bytes of header length, a JSON header, the raw data.
 *
 * The reader trusts nothing: every length is checked against the file, and the tensors must tile
 * the data exactly, without overlap, gap or rest. Bytes are little-endian, as is every machine we
 * build for. Types other than those below are refused by name. */
#ifndef MNP_BASE_SAFETENSORS_H
#define MNP_BASE_SAFETENSORS_H

#include "util/env.h"
#include "util/fsio.h"
#include "util/limits.h"

typedef enum safetensors_dtype {
    SAFETENSORS_F32,
    SAFETENSORS_F64,
    SAFETENSORS_I64,
    SAFETENSORS_I32,
    SAFETENSORS_U8,
    SAFETENSORS_BF16,
    SAFETENSORS_F16
} safetensors_dtype;

size_t safetensors_dtype_size(safetensors_dtype dtype);

typedef struct safetensors_tensor {
    const char *name;
    safetensors_dtype dtype;
    int ndim; /* 0: a scalar */
    int64_t shape[SAFETENSORS_DIMS_MAX];
    const void *data; /* row-major; 8-byte aligned when it comes from a file */
    size_t count;     /* elements; the writer works it out from the shape and ignores this */
} safetensors_tensor;

typedef struct safetensors_meta {
    const char *key, *value;
} safetensors_meta;

/* Everything a file holds, in the order of its header. All of it is owned by the file. */
typedef struct safetensors_file {
    env *e;
    safetensors_tensor *tensors;
    size_t count;
    safetensors_meta *meta;
    size_t meta_count;
    void *doc, *data; /* private: the parsed header, and the aligned copy of the data */
} safetensors_file;

/* `limit` bounds the size of the file. */
mnp_status safetensors_read(env *e, const char *path, size_t limit, safetensors_file **out);
/* The same from memory; `name` is what messages call it. */
mnp_status safetensors_parse(env *e, const char *name, const void *bytes, size_t size,
                             safetensors_file **out);
void safetensors_destroy(safetensors_file *f); /* accepts NULL */

const safetensors_tensor *safetensors_find(const safetensors_file *f,
                                           const char *name);                 /* or NULL */
const char *safetensors_meta_get(const safetensors_file *f, const char *key); /* or NULL */

/* The elements of an F32, F64, F16 or BF16 tensor as floats; `count` must be the tensor's own.
 * MNP_EFORMAT with the tensor's name where one is no finite float. */
mnp_status safetensors_floats(env *e, const safetensors_tensor *t, float *out, size_t count);
/* The elements of any tensor as doubles (integers beyond 2^53 are rounded). */
mnp_status safetensors_doubles(env *e, const safetensors_tensor *t, double *out, size_t count);

/* The nearest number of half precision, ties to an even last digit; infinite from 65520 on. */
uint16_t safetensors_f16(float v);

/* Writes atomically (fsio.h). The same input gives the same bytes: header keys come in the given
 * order, data ordered by element size, largest first, so that every tensor stays aligned to its
 * element without gaps. Names must be unique, UTF-8 and not "__metadata__". F32 must be finite,
 * since it could not be read back as floats: MNP_ENUMERIC, and what was there stays. */
mnp_status safetensors_write(env *e, const char *path, const safetensors_meta *meta,
                             size_t meta_count, const safetensors_tensor *tensors, size_t count);
/* The same bytes, appended to `out`. */
mnp_status safetensors_print(buf *out, const safetensors_meta *meta, size_t meta_count,
                             const safetensors_tensor *tensors, size_t count);

#endif
