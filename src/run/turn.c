/* turn.c: see turn.h. The normals are the CPU's, as vector code: all devices have the same bits. */
#include "run/turn.h"

#include <math.h>

#include "backend/cpu/kernels.h"
#include "util/least.h"

enum { PART = 128 }; /* numbers drawn at a time */

typedef struct job {
    const turn *t;
    const cpu_kernels *k;
    int64_t S, Z;
    double *eps;
} job;

/* A task is one latent of one function: its place is that of gauss_sample in the chain. */
static void fill_row(void *arg, int64_t task, int worker) {
    (void)worker;
    const job *j = arg;
    float a[PART], b[PART];
    double *row = j->eps + task * j->Z, c = cos(j->t->angle), s = sin(j->t->angle);
    rng_at at = {.purpose = RNG_LATENT_EVAL,
                 .sample = (uint32_t)(task % j->S),
                 .point = (uint32_t)(task / j->S + 1)};
    for (int64_t d = 0; d < j->Z; d += PART) {
        int64_t here = least(PART, j->Z - d);
        at.dim = (uint32_t)d;
        j->k->normals((rng_key){j->t->seed}, at, here, false, a);
        j->k->normals((rng_key){j->t->towards}, at, here, false, b);
        for (int64_t k = 0; k < here; k++) row[d + k] = c * (double)a[k] + s * (double)b[k];
    }
}

void turn_noise(pool *pool, const turn *t, int64_t T, int64_t S, int64_t Z, double *eps) {
    job j = {t, cpu_kernels_best(NULL), S, Z, eps};
    pool_run(pool, T * S, fill_row, &j);
}
