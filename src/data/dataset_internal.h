/* dataset_internal.h: making data sets, inside src/data. dataset.c has the memory and the arrays,
 * file.c the people's tables, cache.c the kept sets. */
#ifndef MNP_DATA_DATASET_INTERNAL_H
#define MNP_DATA_DATASET_INTERNAL_H

#include "data/dataset.h"

/* Memory for everything but report, ids and names of columns; start is zeroed. */
mnp_status dataset_new(env *e, const char *name, int64_t functions, int64_t points, int32_t x_dim,
                       dataset **out);
/* The same with one x for all functions, which have the same number of points. */
mnp_status dataset_new_shared(env *e, const char *name, int64_t functions, int64_t points,
                              int32_t x_dim, bool shared_x, dataset **out);
/* Names columns: x_names (x_dim; NULL: x, or x1 x2 ...), y_name and function_name (NULL: y,
 * function). */
mnp_status dataset_name_columns(env *e, dataset *d, const char *const *x_names, const char *y_name,
                                const char *function_name);
/* Longest function, and for sets that are no family the context sizes 0 .. half the median length.
 * `start` must be filled. Returns the shortest and median length. */
mnp_status dataset_measure(env *e, dataset *d, int64_t *shortest, int64_t *median);

/* Keeps what was asked for as the set's notes; and one note more. */
mnp_status dataset_note_source(env *e, dataset *d, const data_source *s);
mnp_status dataset_note(env *e, dataset *d, const char *key, const char *value);

/* A CSV file. */
mnp_status file_open(env *e, const char *path, const data_source *s, dataset **out);

/* Fills x and y (functions * points) from the file kept in `folder`; false where there is none or
 * it is damaged (which is logged). */
bool cache_load(env *e, const char *folder, const family *f, uint64_t seed, data_split split,
                int64_t functions, float *x, float *y);
/* Keeps the set; a failure is logged and costs nothing else. */
void cache_store(env *e, const char *folder, const family *f, uint64_t seed, data_split split,
                 int64_t functions, const float *x, const float *y);

#endif
