/* fuse.h: finds the parts of a plan that the device runs as one instruction (paper/fused.h).
 *
 * A pattern lists the ops of a part and which values they share. A match says which value of the
 * plan each operand of the part is. Values that only the part's own ops use are never stored. So a
 * match counts only if no other instruction reads them, if the part writes each operand to a value
 * of its own, and if one place in the program suits all of its ops. */
#ifndef MNP_CUDA_FUSE_FUSE_H
#define MNP_CUDA_FUSE_FUSE_H

#include "backend/cuda/paper/fused.h"
#include "backend/cuda/program/schedule.h"
#include "graph/plan.h"

/* ---- patterns -------------------------------------------------------------------------------- */

/* A pattern numbers its values: first the operands of the part, then those that stay inside it. */
enum { FUSE_INNER = FUSED_OPERANDS, FUSE_OPERANDS = 96 };
enum { FUSE_IN = 5, FUSE_OUT = 4, FUSE_INTS = 7, FUSE_ABSENT = 255, FUSE_MAYBE = 128 };
enum { FUSE_ANY = -1 }; /* integer attributes are not negative */

/* One op: the numbers of its operands (FUSE_ABSENT: there is none; FUSE_MAYBE added: there may be
 * none), and the first attributes it must have (FUSE_ANY: any). */
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
