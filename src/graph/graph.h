/* graph.h: recording. A graph is the list of coarse operations that one function of a batch goes
 * through; a backend maps it over the functions. Nothing is computed here.
 *
 * A value is a matrix per function. Its row count is an extent: a fixed number, the n points of the
 * function, its k points that the posterior sees, or its m context points. These are nested
 * prefixes, m <= k <= n: the context comes first, then what else is seen. n, k and m are run-time
 * data. A value may be `sampled`: then there is one copy per draw of the latents, and
 * the copies lie one after the other: element (s, r, c) of a value with R rows in this function is
 * at ((s R + r) ld + c).
 *
 * Alphabet: B functions, S samples, n points, k points seen, m context points, T transitions, H
 * heads, D width, Z latent width, K bins, X/Y input/output dimensions.
 *
 * A recording error (shape mismatch, no memory) is remembered by the graph; later calls then do
 * nothing and plan_make() reports it. So recording code needs no checks. */
#ifndef MNP_GRAPH_GRAPH_H
#define MNP_GRAPH_GRAPH_H

#include "graph/params.h"
#include "util/env.h"

typedef int32_t val; /* index of a value in its graph */
enum { VAL_NONE = -1 };

typedef enum extent {
    EXT_FIXED, /* a number known at record time */
    EXT_N,     /* all points of the function    */
    EXT_M,     /* its context points            */
    EXT_K      /* those the posterior sees      */
} extent;

typedef enum store {
    STORE_ACT,   /* activations and their gradients: placed by the planner, one arena per worker */
    STORE_PARAM, /* weights: read only while functions run                                       */
    STORE_PGRAD  /* gradients of weights: one copy per slot, accumulated over functions          */
} store;

typedef enum dtype {
    TYPE_F32, /* one word, the backend's element                                       */
    TYPE_F64  /* two words, always double: log-likelihoods, KL, anything that is summed */
} dtype;

typedef struct value {
    const char *name; /* for dumps and error messages; static or owned by the graph */
    store store;
    dtype type;
    extent ext;
    int32_t rows;     /* EXT_FIXED: how many                                 */
    int32_t cols, ld; /* ld: row stride in elements                          */
    bool sampled;     /* one copy per sample                                 */
    bool needs_grad;  /* a trainable weight reaches it                       */
    val grad;         /* the value that holds d objective / d this, or none  */
    int32_t param;    /* STORE_PARAM and STORE_PGRAD: index in the params    */
    int64_t offset;   /* words from the start of its store, by the planner   */
} value;

/* One recorded operation. The meaning of the attributes is each op's own (enums in op/op.h). */
enum { INSTR_IN = 10, INSTR_OUT = 6, INSTR_INT = 8, INSTR_REAL = 4 };
typedef struct instr {
    int32_t op; /* op_id of op/op.h */
    val in[INSTR_IN];
    val out[INSTR_OUT];
    uint32_t acc; /* bit j: out[j] is added to; clear: it is overwritten */
    int32_t i[INSTR_INT];
    double f[INSTR_REAL];
} instr;

typedef struct graph {
    env *env;
    params *params;
    mnp_status status; /* sticky; the text is in env->error */
    value *values;
    int32_t n_values, cap_values;
    instr *instrs;
    int32_t n_instrs, cap_instrs;
    int32_t n_feeds, n_emits; /* how many input and output bindings were recorded */
    bool frozen;              /* weights recorded from now on get no gradient: only inputs do */
    bool detached;            /* what is recorded from now on passes no gradient on           */
} graph;

void graph_init(graph *g, env *e, params *p);
void graph_free(graph *g);

/* A new activation. Columns are padded to a multiple of 16 floats, except that cols == 1 recorded
 * by graph_scalars() has ld 1: a number per row (outputs y, log-derivatives). */
val graph_matrix(graph *g, const char *name, extent ext, int32_t rows, int32_t cols, bool sampled);
val graph_scalars(graph *g, const char *name, extent ext, int32_t rows, bool sampled);
/* One double per function and sample. */
val graph_scalar(graph *g, const char *name, bool sampled);
/* The weight `name`; declares it in the params when they do not have it yet. */
val graph_param(graph *g, const char *name, int32_t rows, int32_t cols, param_init init);

/* Append an operation; the caller fills ins->in, out, i, f (absent values are VAL_NONE). NULL
 * after an error. The pointer is valid until the next append. */
instr *graph_append(graph *g, int32_t op);
/* Mark outputs as needing a gradient when any input does; call after filling in and out. */
void graph_done(graph *g, instr *ins);

/* Merges operations that have the same weights as their only inputs (merge.c). Called before a
 * reverse pass is recorded and by plan_make(). */
void graph_merge(graph *g);

const value *graph_at(const graph *g, val v);
/* Does v have the first rows that `used` names: all its own, or a prefix of the n points? */
static inline bool graph_has_rows(const value *v, extent used) {
    return used == EXT_FIXED || v->ext == used ||
           (v->ext == EXT_N && (used == EXT_M || used == EXT_K));
}
mnp_status graph_fail(graph *g, const char *fmt, ...) MNP_PRINTF(2, 3);
bool graph_ok(const graph *g);
static inline int32_t graph_pad(int32_t cols) {
    return (cols + 15) / 16 * 16;
}

/* ---- gradients (grad.c) ---------------------------------------------------------------------- */

/* For the reverse rules of ops. The gradient of an output, or VAL_NONE when nothing needs it. */
val graph_grad(const graph *g, val v);
/* Output number `output` of a backward instruction becomes the gradient of input v, made on first
 * use (absent if v needs none); its acc bit says that something is there already, so that the op
 * must add. */
void graph_wire_grad(graph *g, instr *ins, int output, val v);

#endif
