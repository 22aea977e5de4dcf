/* turns.h: targets one after the other. By the chain rule
 *
 *   log p(y_1 .. y_n | C) = sum_k log p(y_k | C, y_1 .. y_{k-1}),
 *
 * each target is scored, or drawn, given the context and the targets before it. A process gives the
 * same sum in every order; a predictor, whose points are independent given the context, gets a
 * joint density this way that depends on the order. For models without latents: there each term is
 * one answer. */
#ifndef MNP_RUN_TURNS_H
#define MNP_RUN_TURNS_H

#include "run/runner.h"

typedef struct turns turns;

/* Which order: random, from this place of the random numbers, or by rising first input. */
typedef struct turn_order {
    mnp_order kind;
    uint64_t seed;
    int64_t function, number; /* of the function, and of the order among its orders */
} turn_order;

/* For sets of up to n points. MNP_EUNSUPPORTED with latents. */
mnp_status turns_create(env *e, const model *m, pool *pool, backend_choice device, int64_t n,
                        turns **out);
void turns_destroy(turns *t);
/* The sum for points m .. n-1 given 0 .. m-1, scaled as the model sees them, in nats of raw y.
 * weights NULL: the model's. */
mnp_status turns_score(turns *t, const float *weights, const double *x, const double *y, int64_t n,
                       int64_t m, const turn_order *order, double *out);
/* `samples` draws with noise at the points m .. n-1 of x given the first m, scaled: y (samples,
 * n - m) in raw units. Each draw has an order of its own, of this kind and seed. */
mnp_status turns_draw(turns *t, const double *x, const double *y, int64_t n, int64_t m,
                      mnp_order kind, uint64_t seed, int64_t samples, double *to);

#endif
