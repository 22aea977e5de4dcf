/* turn.h: the noise of latents on a great circle: cos(angle) times that of one seed plus sin(angle)
 * times that of another. The two are independent standard normals, so for every angle that is one
 * again, and functions turn into others of the same law. */
#ifndef MNP_RUN_TURN_H
#define MNP_RUN_TURN_H

#include "base/pool.h"

typedef struct turn {
    uint64_t seed, towards;
    double angle; /* 0: the noise of seed */
} turn;

/* eps (T, S, Z), as the network draws it of S functions of T latents. */
void turn_noise(pool *pool, const turn *t, int64_t T, int64_t S, int64_t Z, double *eps);

#endif
