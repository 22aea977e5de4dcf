/* params.h: the names, shapes and places of a model's weights in one contiguous block. Trainable
 * weights come first, frozen ones (Fourier frequencies) after them, so that the optimiser's loop is
 * flat. Rows are padded like every matrix (graph.h); the padding is zero and stays zero. */
#ifndef MNP_GRAPH_PARAMS_H
#define MNP_GRAPH_PARAMS_H

#include "util/env.h"

typedef enum init_kind {
    INIT_ZERO,
    INIT_ONE,
    INIT_XAVIER, /* uniform, +-gain sqrt(6 / (fan_in + fan_out)) */
    INIT_FAN_IN, /* uniform, +-gain / sqrt(fan_in)               */
    INIT_NORMAL, /* gain times standard normal                   */
    INIT_VALUES  /* every entry = gain                           */
} init_kind;

typedef struct param_init {
    init_kind kind;
    double gain;
    int32_t fan_in, fan_out; /* of the whole layer, where a layer is split over several params */
    bool frozen;
} param_init;

typedef struct param {
    char *name; /* dotted path: "flow.3.0.wx" */
    int32_t rows, cols, ld;
    param_init init;
    int64_t offset; /* words from the start of the block; valid once sealed */
} param;

typedef struct params {
    param *list;
    int32_t count, cap;
    bool sealed;
    int64_t trainable; /* words of the trainable part */
    int64_t words;     /* of the whole block          */
} params;

void params_init(params *p);
void params_free(env *e, params *p);
int32_t params_find(const params *p, const char *name); /* index or -1 */
/* Find or declare. A sealed table refuses new names, and a known name must have the same shape. */
mnp_status params_get(env *e, params *p, const char *name, int32_t rows, int32_t cols,
                      param_init init, int32_t *index);
/* Lay out the block; further names are refused. */
void params_seal(params *p);
int64_t params_count(const params *p);   /* trainable numbers, padding apart */
int64_t params_numbers(const params *p); /* frozen ones too */

#endif
