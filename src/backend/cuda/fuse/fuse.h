/* fuse.h: finds the parts of a plan that the device runs as one instruction (paper/fused.h).
 *
 * A part is described by a pattern: the ops it is made of and how their operands hang together. A
 * match gives every operand of the part the plan's value it is. What the ops of a part hand to each
 * other alone is never stored; so a match is taken only if nobody else reads it, if each operand
 * that the part writes is a value of its own, and if the part can stand at one place of the
 * program. */
#ifndef MNP_CUDA_FUSE_FUSE_H
#define MNP_CUDA_FUSE_FUSE_H

#include "backend/cuda/paper/fused.h"
#include "backend/cuda/program/schedule.h"
#include "graph/plan.h"

/* ---- patterns -------------------------------------------------------------------------------- */

/* Slots of a pattern: operands of the part, then values that stay inside it. */
enum { FUSE_INNER = FUSED_OPERANDS, FUSE_OPERANDS = 96 };
enum { FUSE_IN = 5, FUSE_OUT = 4, FUSE_INTS = 7, FUSE_ABSENT = 255, FUSE_MAYBE = 128 };
enum { FUSE_ANY = -1 }; /* integer attributes are not negative */

/* One op: the operands of its operands (FUSE_ABSENT: not there; FUSE_MAYBE added: may be missing),
 * and what its first attributes must be (FUSE_ANY: whatever they are). */
typedef struct fuse_step {
    int32_t op;
    uint8_t in[FUSE_IN], out[FUSE_OUT];
    int8_t n_ints;
    int32_t ints[FUSE_INTS];
    double real;   /* f[0], unless it is 0: whatever it is                */
    bool as_first; /* i[0] and f[0] are those of the pattern's first step */
} fuse_step;

typedef struct fuse_shape {
    uint8_t operand;
    extent ext;
    int32_t rows, cols; /* rows: of EXT_FIXED       */
    bool weight;        /* it is one, nothing computed */
} fuse_shape;

/* The first step is the anchor; a later one is the first op that agrees with the operands found
 * before and has its shapes. */
typedef struct fuse_pattern {
    fused_kind kind;
    const char *name;
    const fuse_step *steps;
    int32_t n_steps;
    const fuse_shape *shapes;
    int32_t n_shapes;
    int32_t like; /* the step whose attributes the part gets */
} fuse_pattern;

extern const fuse_pattern fuse_patterns[];
extern const int32_t fuse_pattern_count;

/* ---- what was found -------------------------------------------------------------------------- */

typedef struct fuse_part {
    const fuse_pattern *pattern;
    val operand[FUSE_OPERANDS];
    uint64_t outs; /* bit k: operand k is written                    */
    uint64_t acc;  /* bit k: what is there already is added to    */
    int32_t like;  /* the plan's instruction with its attributes  */
} fuse_part;

/* The plan's instructions with parts in the place of their ops. */
typedef struct fuse_list {
    int32_t *units; /* >= 0: an instruction of the plan; < 0: part ~unit */
    int32_t n_units;
    fuse_part *parts;
    int32_t n_parts;
} fuse_list;

/* tasks: what each instruction of the plan touches. kinds: bit k allows fused_kind k. where: the
 * places of the plan's values in an arena of so many words; a few values may move after its end,
 * each of them once. */
mnp_status fuse_find(env *e, const plan *p, const task *tasks, uint32_t kinds, int64_t *where,
                     int64_t *words, fuse_list *out);
void fuse_free(env *e, fuse_list *list);

#endif
