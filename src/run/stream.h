/* stream.h: the latents of a set that grows. Where they depend on the set through a sum over its
 * points alone (one Markov step, Deep Sets), the sum is kept in double precision and a new point
 * costs one evaluation of the per-point network, whatever the size of the set. */
#ifndef MNP_RUN_STREAM_H
#define MNP_RUN_STREAM_H

#include "run/runner.h"

typedef struct stream stream;

/* *out is NULL, with MNP_OK, for a model that has no such sum. The model must stay. */
mnp_status stream_create(env *e, const model *m, pool *pool, stream **out);
void stream_destroy(stream *s);
/* The set is empty again. */
void stream_reset(stream *s);
/* Adds the points that are not yet in the sum, of the `count` at x (count, X), y (count), scaled;
 * those before are the ones that were added earlier. */
mnp_status stream_catch_up(stream *s, const double *x, const double *y, int64_t count);
/* Latents z (chunks, chunk, Z) from the sum, the same draws as from the whole set; with the noise
 * eps (chunks, chunk, Z), or where it is NULL that of the seed. lengths (chunks) is for its use. */
mnp_status stream_draw(stream *s, uint64_t seed, const double *eps, int64_t chunks, int64_t chunk,
                       int64_t *lengths, double *z);

#endif
