/* contract.h: runs one case of one op on a backend: outputs, gradients, and the value of a random
 * linear objective of the outputs. Tests compare backends and finite differences with it; the bench
 * times it. */
#ifndef MNP_BENCH_CONTRACT_H
#define MNP_BENCH_CONTRACT_H

#include "backend/backend.h"

enum { CONTRACT_ARRAYS = 2 * CASE_MAX };

typedef struct contract {
    env *env;
    const op_case *c;
    int64_t k; /* points seen: midway between the case's m and n */
    params params;
    graph graph;
    case_build build;
    plan *plan;
    int n_feeds;
    double *feed[CONTRACT_ARRAYS]; /* inputs of the case, then the weights of the objective */
    int64_t feed_count[CONTRACT_ARRAYS];
    double *weights; /* (params.words) in double: the master copy     */
    int n_arrays;    /* outputs, then gradients of inputs, objective  */
    double *array[CONTRACT_ARRAYS];
    int64_t array_count[CONTRACT_ARRAYS];
    const char *array_name[CONTRACT_ARRAYS];
    double *gradient; /* (params.trainable) of the weights             */
} contract;

/* `differentiate`: append the reverse pass and collect gradients too. */
mnp_status contract_make(env *e, const op_def *op, const op_case *c, bool differentiate,
                         contract **out);
/* Fills array[], gradient and *objective. */
mnp_status contract_run(contract *t, const backend *b, const exec_opts *o, double *objective);
/* Of the last run: the sum of the magnitudes of the objective's terms. The terms may cancel, so the
 * objective's rounding is to be measured by this, not by the objective. */
double contract_magnitude(const contract *t);
/* Time of one pass, best of `repeats`, in seconds. */
mnp_status contract_time(contract *t, const backend *b, const exec_opts *o, int repeats,
                         double *seconds);
void contract_destroy(contract *t);

#endif
