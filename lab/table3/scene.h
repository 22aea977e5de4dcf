/* scene.h: one test image under a context: its wells as points, and the map that any model
 * of table 3 makes of them. */
#ifndef MNP_LAB_TABLE3_SCENE_H
#define MNP_LAB_TABLE3_SCENE_H

#include "cli/map.h"
#include "lab/table3/table3.h"

typedef struct scene {
    table3 *t;
    table3_size *s;
    int64_t number; /* of the image */
    const float *image;
    uint8_t *well;   /* (n): of the last context asked about */
    int32_t *memory; /* (n) of the wells' draw */
    map_frame frame;
} scene;

/* Calls return an exit status. Image `number` of a size; kriging is fitted to it. */
int scene_open(table3 *t, int size, int64_t number, scene *v);
void scene_close(scene *v); /* accepts zeros */
/* The wells of a context (table3_contexts) in the model's inputs, as evaluation draws them. */
int scene_points(scene *v, int context, points *out);
/* `samples` realisations, and with networks so many draws for the numbers; `honoured`: networks
 * pass through all the wells (mnp_map.h), as kriging does anyway. */
int scene_map(scene *v, int model, int context, const points *seen, int64_t samples, bool honoured,
              map *out);

#endif
