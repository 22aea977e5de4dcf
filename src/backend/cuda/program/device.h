/* device.h: what the host and the device code of the CUDA backend share: a plan as the device reads
 * it, and the block of addresses that a run works on. Plain old data, C and CUDA.
 *
 * The headers of op/ that declare more than operand numbers do not compile as CUDA; their numbers
 * are repeated here, and program.c asserts that they agree. */
#ifndef MNP_CUDA_PROGRAM_DEVICE_H
#define MNP_CUDA_PROGRAM_DEVICE_H

#include <stdint.h>

#include "backend/cuda/paper/fused.h"

typedef enum dev_op {
#define OP(name) OPCODE_##name,
#include "op/ops.def"
#undef OP
    OPCODE_COUNT
} dev_op;

enum { DEV_IN = 5, DEV_OUT = 4, DEV_INT = 8, DEV_REAL = 4, DEV_FEEDS = 72, DEV_EMITS = 72 };
enum { DEV_TOGETHER = 4 }; /* small instructions that run side by side at most */
enum { DEV_FEW_ROWS = 4, DEV_FEW_WIDTH = 512 }; /* and what they have at most */
enum { DEV_EXT_FIXED, DEV_EXT_N, DEV_EXT_M, DEV_EXT_K };
enum {
    DEV_STORE_ACT,
    DEV_STORE_PARAM,
    DEV_STORE_PGRAD,
    DEV_STORE_SAVED,
    DEV_STORE_FP16, /* of parameters, two to a word (fuse/fp16_weights.h) */
    DEV_STORES
};
/* How products are taken: three tf32 products that make up a float's digits, tf32, bfloat16. */
enum { DEV_FP32, DEV_TF32, DEV_BF16 };

/* One operand, its value's description inlined. */
typedef struct dev_operand {
    int64_t offset;         /* words from the start of its store */
    int32_t rows, cols, ld; /* rows: of EXT_FIXED                */
    uint8_t present, store, ext, sampled;
    uint8_t is_double, reserved[7];
} dev_operand;

typedef struct dev_instr {
    int32_t op;
    uint32_t acc;   /* bit j: out[j] is added to                                            */
    uint32_t fresh; /* bit j: but the block's first function overwrites (weight gradients)  */
    int32_t math;
    int32_t together;  /* it and those after it run side by side: how many; 1: alone */
    int32_t milestone; /* which milestone it is (grad_spans.h), counted from 1; 0: none */
    int32_t lets;      /* the kernels that follow the functions may begin from here on */
    int32_t wide;      /* a wide gradient of weights: which wide_chunks slots it takes (stages.h) */
    int32_t i[DEV_INT];
    double f[DEV_REAL];
    union {
        struct {
            dev_operand in[DEV_IN], out[DEV_OUT];
        };
        dev_fused fused; /* op >= OPCODE_COUNT: OPCODE_COUNT + its kind */
    };
} dev_instr;

/* A weight gradient that is a sum of `count` (1 or 2) outer products per function: of rows x and g
 * that the function left in its part of dev_run.saved (words from its start, steps between rows).
 */
typedef struct dev_outer {
    int64_t at; /* the gradient's first word */
    int32_t rows, cols, count, x, x_step, g, g_step;
} dev_outer;
enum { DEV_OUTER_WORDS = 16 }; /* weights begin at multiples of so many words */

/* Weight gradients that are sums over functions of X^T G, formed by kernels/products.cu from 16-bit
 * numbers that functions left in their parts of dev_run.saved (fuse/saved_rows.h), in col8 layout
 * (paper/fused.h). A term is one such X and G: the word where they begin, and how many rows an
 * col8 block has room for. */
typedef struct dev_rows {
    int32_t at, step;
} dev_rows;
typedef struct dev_term {
    dev_rows x, g;
    int32_t side; /* how many rows there are: n, or m of the context */
} dev_term;
enum { DEV_SIDE_ALL, DEV_SIDE_CONTEXT };

/* A sum over some terms of a gradient, in split * chunks parts of the functions, by a block each.
 * Part k goes to slot base * chunks + k, at the gradient's own words. */
typedef struct dev_product {
    int64_t at; /* the gradient's first word */
    int32_t rows, cols, ld;
    int32_t first, terms;
    int32_t split, base; /* base: the splits of the gradient's other sums before it */
    int32_t milestone;   /* with which its rows are complete */
    int32_t math;        /* DEV_TF32: fp16, G times SAVED_SCALE; DEV_BF16: bfloat16 as they are */
} dev_product;
enum { DEV_CHUNK = 25, DEV_CHUNKS = 16 }; /* functions of a chunk; but so many chunks at most */

/* A function's part of dev_run.saved begins with its lengths. */
enum { DEV_SAVED_N, DEV_SAVED_M, DEV_SAVED_HEAD = 32 };

/* Words of the gradient that one block sums over functions (grad_spans.h). */
typedef struct dev_grad_span {
    int32_t at, words;
    int32_t outer; /* which it is a part of; -1: it lies in the slots */
    int32_t parts; /* in chunks * parts of them, from products; 0: in all that functions wrote to */
    int32_t wide;  /* in wide * wide_chunks of them, from wide instructions; 0: in none */
    int32_t milestone; /* with which they are complete */
} dev_grad_span;
enum {
    DEV_GRAD_SPAN_WORDS = 1024,
    DEV_TILE_WORDS = 4096
}; /* at most; of outer products, exactly */

/* What `chunks` blocks of kernels/products.cu do, in the order of milestones (fuse/wgrad_tasks.h):
 * a share of the functions each, of part `part` of a product; or, where product < 0, a share of
 * `count` spans of outer products from `part` on. */
typedef struct dev_wgrad_task {
    int32_t milestone, product, part, count;
} dev_wgrad_task;

/* Where functions say that rows and gradients are complete: so many places of the reverse pass at
 * most (grad_spans.h), and their end. */
enum { DEV_MILESTONES = 8, DEV_ENDED = DEV_MILESTONES };

/* step_block of op/frame.h */
typedef struct dev_step {
    uint64_t seed;
    int64_t step, total, warmup;
    int32_t schedule, reserved;
    double rate_max, rate, beta1, beta2, eps, clip, ema, decay;
    double loss, kl, loglik, grad_norm;
    int64_t bad_item;
} dev_step;

/* What the update of one step needs, worked out once from the step block. */
typedef struct dev_adam {
    float clip, beta1, mix1, beta2, mix2, rate, inv_c2, eps, blend, keep;
    int32_t go, averages, first;
    /* How many blocks have passed each milestone or ended; how many blocks of the sum are done. */
    int32_t passed[DEV_MILESTONES + 1], done;
    double next_rate;  /* of the step that follows   */
    int64_t next_step; /* and its number, if this one goes well */
} dev_adam;

/* Everything a run reads and writes. It lives on the device; kernels get its address alone, so that
 * a captured step can be replayed whatever changes. */
typedef struct dev_run {
    const dev_instr *code;
    int32_t n_code;
    int32_t diagnose; /* 1: look for the first value that is not finite */
    int64_t items, samples, chunks, first_function, first_row;
    int64_t item_lo, item_hi; /* those of this process: all, unless ranks share a step */
    int64_t cap_n, cap_m;     /* the plan's capacities */
    float *act;
    int64_t act_words; /* stride of an arena                   */
    float *slots;
    int64_t slot_words; /* stride of a slot                     */
    int64_t n_slots;
    float *saved; /* per function: rows that it leaves (fuse/saved_rows.h) */
    int64_t saved_words;
    int32_t saves_late; /* a function saves its lengths when it ends: it passes no milestone */
    const dev_outer *outer;
    const dev_product *products;
    const dev_wgrad_task *wgrad_tasks;
    const dev_term *terms;
    int32_t product_chunks;
    int32_t *scratch; /* per block: permutations, attention   */
    int64_t scratch_words;
    float *weights, *moment1, *moment2, *average; /* average may be NULL */
    uint32_t *fp16; /* of the weights, two to a word; NULL: nobody reads them */
    const int32_t
        *fp16_at; /* where each group of four weights lies there, / 4 (fuse/fp16_weights.h) */
    int64_t words, trainable;
    dev_step *step;
    dev_adam *adam;
    double *item_scalars;            /* (items, 3) */
    double *partial;                 /* (spans) sums of squares */
    const dev_grad_span *grad_spans; /* of the gradient; those of wgrad tasks first */
    int32_t n_grad_spans;
    int64_t data_functions, data_x_dim;
    const int64_t *data_start;
    const float *data_x, *data_y;
    int64_t data_shared_x;
    const int64_t *n, *k, *m; /* (items) or NULL; k NULL: all n */
    int32_t *drawn; /* (items, 4): n, k and m as a draw found them, for stages after it; or NULL */
    int32_t wide_chunks; /* parts of the functions that wide gradients of weights are summed over */
    const double *feed[DEV_FEEDS];
    int64_t feed_stride[DEV_FEEDS];
    double *emit[DEV_EMITS];
    int64_t emit_stride[DEV_EMITS];
    int32_t *culprit; /* (2) instruction and output; -1 none */
    int64_t *clocks;  /* (n_code + 3) cycles of block 0 per instruction, or NULL (wide/wide.cuh) */
} dev_run;

/* How many blocks the kernels of a step have (host/runtime.cu). */
typedef struct step_shape {
    int64_t words; /* of weights, for adam */
    int32_t wgrad_tasks;
    int32_t grad_spans, task_spans; /* task_spans: of them are summed by wgrad tasks */
} step_shape;

/* ---- stages ---------------------------------------------------------------------------------- */

/* Who runs a stage (program/stages.h): functions one by one, or a kernel for all of them at once
 * (wide/). */
typedef enum dev_stage_kind {
    STAGE_FUNCTIONS,
    STAGE_LINEAR,
    STAGE_LINEAR_TO_X,
    STAGE_LINEAR_TO_W,
    STAGE_ATTENTION,
    STAGE_ATTENTION_GRAD,
    STAGE_KINDS
} dev_stage_kind;
enum { DEV_WIDE = 8 }; /* wide instructions of a stage at most */

/* Instructions [first, first + count) for items [lo, lo + items): an argument of kernels, so that a
 * captured step has it. The arena of item lo + b is number b. Without gaps, since stages are
 * compared as bytes (host/runtime.cu). */
typedef struct dev_stage {
    int32_t kind, first, count;
    int32_t staged;       /* 0: the only stage, of any number of items; a block has one arena */
    int32_t begins, ends; /* it is the first, the last one of these items */
    int32_t items;
    int32_t blocks; /* of functions */
    int64_t lo;
} dev_stage;

/* Numbers of op/ headers. */
enum { DATT_WIDTH, DATT_HEADS, DATT_QCOL, DATT_KCOL, DATT_VCOL, DATT_QUERIES, DATT_KEYS };
enum { DATT_G_QV, DATT_G_KV, DATT_G_O, DATT_G_LSE, DATT_G_G };
enum { DMAP_Y, DMAP_RAW, DMAP_LOGDET };
enum { DMAP_G_Y, DMAP_G_RAW, DMAP_G_OUT, DMAP_G_LOGDET };
enum { DMAP_GY, DMAP_GRAW, DMAP_GLOGDET };
enum { DRQS_BOUND, DRQS_MIN_WIDTH, DRQS_MIN_HEIGHT, DRQS_MIN_DERIVATIVE };
enum { DSAMPLE_ROW = 1, DSAMPLE_PURPOSE, DSAMPLE_TAG };
enum { DREPORT_COUNT = 3 };
enum { DEV_STEP_THREADS = 256 }; /* a block of the update kernels */

#endif
