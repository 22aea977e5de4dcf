/* shapes.h: the shapes of a training step that mnp bench shapes measures: a preset, options of the
 * model and of the training on top, and a family. The text of each is what `mnp train` takes, so
 * that a row can be run again by itself. */
#ifndef MNP_BENCH_SHAPES_H
#define MNP_BENCH_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

enum { SHAPE_NAME = 32, SHAPE_DATA = 48, SHAPE_TEXT = 160 };

typedef struct shape {
    char name[SHAPE_NAME];
    char kind[SHAPE_NAME], preset[SHAPE_NAME]; /* --model and --preset                     */
    char data[SHAPE_DATA];                     /* --data                                   */
    char model[SHAPE_TEXT], train[SHAPE_TEXT]; /* --set, of the model and of the training  */
    int functions;                             /* of the data set; 0: twice the batch      */
    bool general;                              /* on a GPU op by op, whatever --kernels is */
} shape;

/* The k-th of those with a name; NULL after the last. */
const shape *shape_at(int k);

/* The k-th combination drawn from the seed: T 1 to 14, d_z 16 to 256, heads 1 to 8, enc_width 32 to
 * 256, flow_hidden 64 to 256, 64 to 1024 points, contexts up to all of them, batch 25 to 400, any
 * encoder, either map, with and without layer norm. */
void shape_random(uint64_t seed, int k, shape *out);

#endif
