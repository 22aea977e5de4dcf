/* map.h: maps of functions of two inputs, see mnp_map.h. */
#ifndef MNP_RUN_MAP_H
#define MNP_RUN_MAP_H

#include "mnp_map.h"
#include "run/predict.h"

typedef struct map_spec {
    const model *m;
    pool *pool;
    backend_choice device;
    mnp_map_frame at;
    bool turned;
    mnp_set context, honour; /* n = 0: none */
    double range, threshold;
    int64_t samples;
    mnp_draw_opts how; /* of as many samples */
} map_spec;

/* drawn: how the drawing went. */
mnp_status map_compute(env *e, const map_spec *q, const mnp_map *out, mnp_draw_report *drawn);
/* Of a row (k = 0) or a column, which may lie between two. */
double map_input(const mnp_map_frame *f, int k, double index);
/* See mnp_map_wells(). */
void map_wells(int64_t pixels, int64_t count, uint64_t seed, int64_t *pixel);

#endif
