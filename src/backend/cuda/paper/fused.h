/* fused.h: stretches of a plan that the device runs as one instruction, and their operands.
 *
 * The parts of the usual model come back at every transition with the same shapes: the set encoder
 * on all points and on the context, the latent of the transition, the conditioner with its spline,
 * and the reverse pass of each. Run op by op they spend their time on ways to memory and back;
 * fused, a part keeps in shared memory what its layers hand on and stores what the reverse pass
 * reads. Shapes are constants (n <= 128 points, m <= 64 of them context, one sample); a plan that
 * has others runs op by op.
 *
 * fuse/match.c finds the parts in a plan by dataflow (fuse/patterns.c has them, one table each);
 * the enums below number their operands. Rows are named n or m; ld is the number of columns, 32 for
 * the 29 numbers of a spline, 1 for a column. "saved": stored for the reverse pass. */
#ifndef MNP_CUDA_PAPER_FUSED_H
#define MNP_CUDA_PAPER_FUSED_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/cuda/paper/widths.h"

typedef enum fused_kind {
    FUSED_FLOW,
    FUSED_FLOW_GRAD,
    FUSED_SET,
    FUSED_SET_GRAD,
    FUSED_LATENT,
    FUSED_LATENT_GRAD,
    FUSED_FIRST,
    FUSED_FIRST_GRAD,
    FUSED_END,
    FUSED_COUNT
} fused_kind;

enum { FUSED_OPERANDS = 64 };

/* As the device reads it: where the operands lie, in the instruction itself, so that they arrive
 * with it. An address is a store and words from its start. */
typedef struct dev_fused {
    uint64_t acc, fresh; /* bit k: operand k is added to, but not the first time */
    uint32_t addr[FUSED_OPERANDS];
} dev_fused;
enum { FUSED_STORE_BITS = 3, FUSED_OFFSET_BITS = 32 - FUSED_STORE_BITS };
#define FUSED_ABSENT 0xffffffffu

static inline uint32_t fused_addr(int store, int64_t offset) {
    return (uint32_t)store << FUSED_OFFSET_BITS | (uint32_t)offset;
}
static inline bool fused_in(uint32_t addr, int store) {
    return addr != FUSED_ABSENT && addr >> FUSED_OFFSET_BITS == (uint32_t)store;
}

/* The conditioner and the spline of a transition, data to noise:
 *   h0 = relu(x wx + b0 + pz), h1 = relu(h0 w1 + b1), raw = h1 w2 + b2,
 *   out = spline(y; raw), logdet = before + log of its slope
 * i and f of the instruction are those of the spline (rqs_to_noise, 10 bins). In tf32 weights are
 * read as fp16 (fuse/fp16_weights.h), and what is saved of h0 and h1 lies in FLOW_SAVED, in an
 * order of its own, so FUSED_FLOW and FUSED_FLOW_GRAD come together or not at all where there is a
 * reverse pass (fuse/match.c). */
enum {
    FLOW_X,      /* (n, 160)                            */
    FLOW_WX,     /* (160, 128)                          */
    FLOW_B0,     /* (1, 128)                            */
    FLOW_PZ,     /* (1, 128) the latent's share         */
    FLOW_W1,     /* (128, 128)                          */
    FLOW_B1,     /* (1, 128)                            */
    FLOW_W2,     /* (128, 29), ld 32                    */
    FLOW_B2,     /* (1, 29), ld 32                      */
    FLOW_Y,      /* (n, 1)                              */
    FLOW_BEFORE, /* (n, 1) or absent                    */
    FLOW_H0,     /* out (n, 128), saved (fp32)           */
    FLOW_H1,     /* out (n, 128), saved (fp32)           */
    FLOW_RAW,    /* out (n, 29), ld 32, saved            */
    FLOW_OUT,    /* out (n, 1), saved                    */
    FLOW_LOGDET, /* out (n, 1)                          */
    FLOW_XH,     /* x as FIRST_SAVED has it, or absent   */
    FLOW_SAVED,  /* out: FLOW_ROWS_SAVED words, or absent */
    FLOW_LEAVES, /* out: x for others to read as FLOW_XH, FIRST_ROWS_SAVED words, or absent */
    FLOW_OPERANDS
};

/* Its reverse pass. Gradients of weights (d*) are added to the block's slot. */
enum {
    FLOWG_X,       /* (n, 160)                                              */
    FLOWG_H0,      /* (n, 128)                                              */
    FLOWG_W1,      /* (128, 128)                                            */
    FLOWG_H1,      /* (n, 128)                                              */
    FLOWG_W2,      /* (128, 29), ld 32                                      */
    FLOWG_RAW,     /* (n, 29), ld 32                                        */
    FLOWG_Y,       /* (n, 1)                                                */
    FLOWG_GOUT,    /* (n, 1)                                                */
    FLOWG_GLOGDET, /* (n, 1)                                                */
    FLOWG_DWX,     /* out (160, 128)                                        */
    FLOWG_DB0,     /* out (1, 128)                                          */
    FLOWG_DW1,     /* out (128, 128)                                        */
    FLOWG_DB1,     /* out (1, 128)                                          */
    FLOWG_DW2,     /* out (128, 29), ld 32: columns 29..31 become zeros     */
    FLOWG_DB2,     /* out (1, 29), ld 32                                    */
    FLOWG_GPZ,     /* out (1, 128): the sum over points of h0's gradient    */
    FLOWG_GY,      /* out (n, 1) or absent                                  */
    FLOWG_GBEFORE, /* out (n, 1) or absent: glogdet                         */
    FLOWG_SAVED,   /* out: FLOW_ROWS_SAVED words, or absent                  */
    FLOWG_OPERANDS
};

/* Weight gradients of many rows, in tf32: where FLOW_SAVED and FLOWG_SAVED are there (one place),
 * the parts leave what the products are formed of, as fp16, and do not touch DWX, DW1, DW2: the sum
 * over functions is formed from rows (fuse/saved_rows.h). Gradients are multiplied by SAVED_SCALE:
 * they are small, and a half has nothing below 6e-8. The matrices lie in col8 layout: number (r, c)
 * of (128, C) is half c % 2 of word (c / 8 * 128 + r) * 4 + c % 8 / 2, so that eight columns are
 * one piece of memory, as the tensor cores read them (col8.cuh); rows from n on have no meaning.
 * Words from the start: */
enum {
    SAVED_FH0 = 0,                     /* (n, 128) h0                                           */
    SAVED_FH1 = SAVED_FH0 + 128 * 64,  /* (n, 128) h1                                           */
    SAVED_DH0 = SAVED_FH1 + 128 * 64,  /* (n, 128) gradient of h0 before its ReLU               */
    SAVED_DH1 = SAVED_DH0 + 128 * 64,  /* (n, 128) likewise                                     */
    SAVED_DRAW = SAVED_DH1 + 128 * 64, /* (n, 32): columns 29..31 are zeros                     */
    SAVED_SIGNS =
        SAVED_DRAW + 128 * 16, /* (2, 512) of h0 and h1, as threads have them: for FLOWG */
    FLOW_ROWS_SAVED = SAVED_SIGNS + 1024
};
enum { SAVED_SCALE = 1024 };

/* The set encoder on all points (side 0) and on the first m of them (side 1): two self-attention
 * blocks and a pooling with one seed, four heads of 16. With j = pre + y wy (n, 192) = [q k v],
 * for each side's rows:
 *   a0, l0 = attention(j),  h0 = relu(a0 w0 + b0),  x1 = h0 + a0,  q1 = x1 wq + bq
 *   a1, l1 = attention(q1), h1 = relu(a1 w1 + b1),  x2 = h1 + a1,  kv = x2 wkv + bkv
 *   pa, pl = attention(pq; kv), ph = relu(pa wo + bo), px = ph + pa, r = px wr + br
 *   stack = [r of side 0; r of side 1, or `empty` where m is 0]
 * attention adds the query to its result and keeps the log of the sum of exponentials; pl is that
 * of x2 . W_k pq / 8, without what the bias of keys adds to every score. Of h0 and h1 the signs are
 * saved, 64 bits a row: bit c is h[c] > 0. a0, x1, q1, a1 and x2 are saved as fp16 in tf32 and as
 * bfloat16 in bf16, in col8 layout as above, of 192 rows, the context's from row 128 on, where
 * products find them (fuse/saved_rows.h); they are absent where nobody reads them. j and kv are not
 * saved: their slots are names that the two patterns have in common. Those of side 1 are there only
 * where m > 0. So what is saved is for FUSED_SET_GRAD alone; a plan has both parts or none of them
 * (fuse/match.c). */
enum { SET_COL8 = (FUSED_POINTS + FUSED_CONTEXT) * 4 }; /* words from one col8 block to the next */
enum {
    SIDE_A0, /* (., 64) */
    SIDE_L0, /* (., 4)  */
    SIDE_H0, /* (., 64) bits */
    SIDE_X1, /* (., 64) */
    SIDE_Q1, /* (., 192) */
    SIDE_A1, /* (., 64) */
    SIDE_L1, /* (., 4)  */
    SIDE_H1, /* (., 64) bits */
    SIDE_X2, /* (., 64) */
    SIDE_KV, /* (., 128), not saved */
    SIDE_PA, /* (1, 64) */
    SIDE_PL, /* (1, 4)  */
    SIDE_PH, /* (1, 64) */
    SIDE_PX, /* (1, 64) */
    SIDE_OPERANDS
};
enum {
    SET_PRE,                              /* (n, 192)                                    */
    SET_Y,                                /* (n, 1)                                      */
    SET_WY,                               /* (1, 192)                                    */
    SET_W0,                               /* (64, 64)                                    */
    SET_B0,                               /* (1, 64)                                     */
    SET_WQ,                               /* (64, 192)                                   */
    SET_BQ,                               /* (1, 192)                                    */
    SET_W1,                               /* (64, 64)                                    */
    SET_B1,                               /* (1, 64)                                     */
    SET_WKV,                              /* (64, 128)                                   */
    SET_BKV,                              /* (1, 128)                                    */
    SET_PQ,                               /* (1, 64)                                     */
    SET_WO,                               /* (64, 64)                                    */
    SET_BO,                               /* (1, 64)                                     */
    SET_WR,                               /* (64, 64)                                    */
    SET_BR,                               /* (1, 64)                                     */
    SET_EMPTY,                            /* (1, 64)                                     */
    SET_J,                                /* (n, 192), not saved                          */
    SET_ALL,                              /* out: SIDE_OPERANDS values of all points, saved  */
    SET_SOME = SET_ALL + SIDE_OPERANDS,   /* out: and of the context                    */
    SET_STACK = SET_SOME + SIDE_OPERANDS, /* out (2, 64)                              */
    SET_PREH,                             /* pre as fp16, or absent                    */
    SET_OPERANDS
};

/* Its reverse pass. */
enum {
    SETG_J,                               /* (n, 192), not there                       */
    SETG_ALL,                             /* SIDE_OPERANDS values of all points           */
    SETG_SOME = SETG_ALL + SIDE_OPERANDS, /* and of the context                        */
    SETG_Y = SETG_SOME + SIDE_OPERANDS,   /* (n, 1)                                    */
    SETG_WY,                              /* (1, 192)                                  */
    SETG_W0,                              /* (64, 64)                                  */
    SETG_WQ,                              /* (64, 192)                                 */
    SETG_W1,                              /* (64, 64)                                  */
    SETG_WKV,                             /* (64, 128)                                 */
    SETG_PQ,                              /* (1, 64)                                   */
    SETG_WO,                              /* (64, 64)                                  */
    SETG_WR,                              /* (64, 64)                                  */
    SETG_GSTACK,                          /* (2, 64)                                   */
    SETG_DWY,                             /* out (1, 192)                              */
    SETG_DW0,                             /* out (64, 64)                              */
    SETG_DB0,                             /* out (1, 64)                               */
    SETG_DWQ,                             /* out (64, 192)                             */
    SETG_DBQ,                             /* out (1, 192)                              */
    SETG_DW1,                             /* out (64, 64)                              */
    SETG_DB1,                             /* out (1, 64)                               */
    SETG_DWKV,                            /* out (64, 128)                             */
    SETG_DBKV,                            /* out (1, 128)                              */
    SETG_GPQ,                             /* out (1, 64)                               */
    SETG_DWO,                             /* out (64, 64)                              */
    SETG_DBO,                             /* out (1, 64)                               */
    SETG_DWR,                             /* out (64, 64)                              */
    SETG_DBR,                             /* out (1, 64)                               */
    SETG_DEMPTY,                          /* out (1, 64): the second row, where m is 0 */
    SETG_GPRE,                            /* out (n, 192)                              */
    SETG_GY,                              /* out (n, 1) or absent                      */
    SETG_PRE,                             /* (n, 192): SET_PRE of the forward part     */
    SETG_SAVED,                           /* out: SET_ROWS_SAVED words, or absent       */
    SETG_GPREH,                           /* in place of GPRE where it is there: FIRSTG_SAVED */
    SETG_PREH,                            /* pre as fp16, or absent                  */
    SETG_OPERANDS
};

/* Where SETG_SAVED is there, in tf32 and bf16, rows of G are left for the gradients of wq, w1 and
 * w0 as those of the conditioner are (FLOWG_SAVED), which the part then does not touch; rows of X
 * are x1, a1 and a0 of both sides as the forward part keeps them. In tf32 fp16 times SAVED_SCALE,
 * in bf16 bfloat16 as they are, in col8 layout of 192 rows: first 128 of all points, of which n are
 * written, then 64 of the context, of which m are; half c % 2 of word
 * (c / 8 * 192 + r) * 4 + c % 8 / 2 is number (r, c). Words from its start: */
enum {
    SAVED_DQ1 = 0,                      /* (128 + 64, 192) */
    SAVED_DH1S = SAVED_DQ1 + 192 * 96,  /* (128 + 64, 64), after the ReLU  */
    SAVED_DH0S = SAVED_DH1S + 192 * 32, /* (128 + 64, 64), likewise         */
    SAVED_POOL = SAVED_DH0S + 192 * 32, /* 1664 words: POOL_*               */
    SET_ROWS_SAVED = SAVED_POOL + 1664
};

/* The gradients of wkv, wo, wr and pq are sums of outer products of a few rows. A set's reverse
 * pass leaves these rows, floats, and the last one, which has the number of them as its i[0] (the
 * others have 0), forms the sums for all: what they have left lies SET_STEP words apart
 * (fuse/saved_rows.c). Words from SAVED_POOL on: */
enum {
    POOL_T = 0,              /* (64, 16) x2^T P (paper/set/grad_pool.cuh)             */
    POOL_DH = POOL_T + 1024, /* (2, 64) gradient of ph before its ReLU          */
    POOL_DA = POOL_DH + 128, /* (2, 64) of pa                                   */
    POOL_G = POOL_DA + 128,  /* (2, 64) of r                                    */
    POOL_PX = POOL_G + 128,  /* (2, 64)                                         */
    POOL_PA = POOL_PX + 128, /* (2, 64)                                         */
    POOL_SAVED = POOL_PA + 128,
    SET_STEP = (4 * 8 + 24) * SET_COL8 + SET_ROWS_SAVED
};

/* The latent of a transition. For each of mu and sigma (two networks of the same form)
 *   h0 = relu(stack wr + b0 + before wz), h1 = relu(h0 w1 + b1), out = h1 w2 + b2     (2 rows)
 * then z = mu[0] + sigma(raw[0]) eps, kl = klbefore + KL of row 0 from row 1, pz = z wf. `before`
 * is the latent of the transition before, klbefore the sum of KLs up to there; both are absent for
 * the first. i and f of the instruction are those of gauss_sample (kind, row, purpose, tag; floor).
 */
enum {
    NET_WR,  /* (64, 64)            */
    NET_B0,  /* (1, 64)             */
    NET_WZ,  /* (128, 64) or absent */
    NET_W1,  /* (64, 64)            */
    NET_B1,  /* (1, 64)             */
    NET_W2,  /* (64, 128)           */
    NET_B2,  /* (1, 128)            */
    NET_H0,  /* out (2, 64), saved   */
    NET_H1,  /* out (2, 64), saved   */
    NET_OUT, /* out (2, 128), saved  */
    NET_OPERANDS
};
enum {
    LATENT_STACK,                            /* (2, 64)                          */
    LATENT_BEFORE,                           /* (1, 128) or absent               */
    LATENT_MU,                               /* NET_OPERANDS values                 */
    LATENT_SIGMA = LATENT_MU + NET_OPERANDS, /* and again                        */
    LATENT_WF = LATENT_SIGMA + NET_OPERANDS, /* (128, 128)                       */
    LATENT_Z,                                /* out (1, 128), saved               */
    LATENT_EPS,                              /* out (1, 128), saved               */
    LATENT_KLBEFORE,                         /* (1, 1), a double, or absent      */
    LATENT_KL,                               /* out (1, 1), a double             */
    LATENT_PZ,                               /* out (1, 128)                     */
    LATENT_OPERANDS
};

/* Its reverse pass: gz arrives from the transition after (absent for the last) and from gpz. */
enum {
    NETG_WR,  /* (64, 64)                 */
    NETG_WZ,  /* (128, 64) or absent      */
    NETG_W1,  /* (64, 64)                 */
    NETG_W2,  /* (64, 128)                */
    NETG_H0,  /* (2, 64)                  */
    NETG_H1,  /* (2, 64)                  */
    NETG_OUT, /* (2, 128)                 */
    NETG_DWR, /* out (64, 64)             */
    NETG_DB0, /* out (1, 64)              */
    NETG_DWZ, /* out (128, 64) or absent  */
    NETG_DW1, /* out (64, 64)             */
    NETG_DB1, /* out (1, 64)              */
    NETG_DW2, /* out (64, 128)            */
    NETG_DB2, /* out (1, 128)             */
    NETG_OPERANDS
};
enum {
    LATENTG_STACK,                              /* (2, 64)                              */
    LATENTG_BEFORE,                             /* (1, 128) or absent                   */
    LATENTG_MU,                                 /* NETG_OPERANDS values                    */
    LATENTG_SIGMA = LATENTG_MU + NETG_OPERANDS, /* and again                            */
    LATENTG_WF = LATENTG_SIGMA + NETG_OPERANDS, /* (128, 128)                           */
    LATENTG_Z,                                  /* (1, 128)                             */
    LATENTG_EPS,                                /* (1, 128)                             */
    LATENTG_GKL,                                /* (1, 1), a double                     */
    LATENTG_GKLBEFORE,                          /* out (1, 1), a double, or absent: gkl */
    LATENTG_GPZ,                                /* (1, 128)                             */
    LATENTG_GZ,      /* in and out (1, 128): nobody reads what is left in it; acc: it holds a sum */
    LATENTG_DWF,     /* out (128, 128)                       */
    LATENTG_GSTACK,  /* out (2, 64)                          */
    LATENTG_GBEFORE, /* out (1, 128) or absent               */
    LATENTG_SAVED,   /* out: LATENT_SAVED numbers, or absent  */
    LATENTG_OPERANDS
};

/* Weight gradients of the latent are outer products of a row or two. Where LATENTG_SAVED is there,
 * the part leaves the rows and does not touch DWR, DWZ, DW1, DW2, DWF: the sum over functions is
 * formed from rows (fuse/saved_rows.h). Words from its start: */
enum {
    SAVED_H0 = 0,                     /* (net, 2, 64)                       */
    SAVED_H1 = SAVED_H0 + 256,        /* (net, 2, 64)                       */
    SAVED_STACK = SAVED_H1 + 256,     /* (2, 64)                            */
    SAVED_BEFORE = SAVED_STACK + 128, /* (1, 128)                          */
    SAVED_Z = SAVED_BEFORE + 128,     /* (1, 128)                           */
    SAVED_GPZ = SAVED_Z + 128,        /* (1, 128)                           */
    SAVED_GOUT = SAVED_GPZ + 128,     /* (net, 2, 128)                      */
    SAVED_G1 = SAVED_GOUT + 512,      /* (net, 2, 64), after the ReLU      */
    SAVED_G0 = SAVED_G1 + 256,        /* (net, 2, 64), likewise             */
    LATENT_SAVED = SAVED_G0 + 256
};

/* What all transitions share: the Fourier features x = [cos, sin] of the turns at frequency, what
 * they give to the points of the set encoder, pre = x w + b, and the seed's query
 * pq = seed wq + bq. Where only sets in tf32 and bf16 read pre (fuse/fp16_weights.c), it lies in
 * its place as fp16, in col8 layout of n rows: number (r, c) is half c % 2 of word (c / 8 * n + r)
 * * 4
 * + c % 8 / 2.
 */
enum {
    FIRST_AT,        /* (n, 1), ld 16     */
    FIRST_FREQUENCY, /* (80, 1), ld 16    */
    FIRST_W,         /* (160, 192)        */
    FIRST_B,         /* (1, 192)          */
    FIRST_SEED,      /* (1, 64)           */
    FIRST_WQ,        /* (64, 64)          */
    FIRST_BQ,        /* (1, 64)           */
    FIRST_X,         /* out (n, 160)      */
    FIRST_PRE,       /* out (n, 192)      */
    FIRST_PQ,        /* out (1, 64)       */
    FIRST_SAVED,     /* out: x as fp16, FIRST_ROWS_SAVED words, or absent */
    FIRST_PREH,      /* out: pre as fp16, or absent: then FIRST_PRE      */
    FIRST_OPERANDS
};
enum { FIRST_ROWS_SAVED = 128 * 80 }; /* in col8 layout, as the conditioner's rows */

/* Its reverse pass: features have no gradient. */
enum {
    FIRSTG_X,     /* (n, 160)        */
    FIRSTG_GPRE,  /* (n, 192)        */
    FIRSTG_SEED,  /* (1, 64)         */
    FIRSTG_WQ,    /* (64, 64)        */
    FIRSTG_GPQ,   /* (1, 64)         */
    FIRSTG_DW,    /* out (160, 192)  */
    FIRSTG_DB,    /* out (1, 192)    */
    FIRSTG_DSEED, /* out (1, 64)     */
    FIRSTG_DWQ,   /* out (64, 64)    */
    FIRSTG_DBQ,   /* out (1, 64)     */
    FIRSTG_SAVED, /* gpre as fp16, FIRSTG_ROWS_SAVED words, or absent: then DW is written. In,
                   * where GPRE is absent: the sets have added it up there; else out */
    FIRSTG_OPERANDS
};

enum { FIRSTG_ROWS_SAVED = 128 * 96 }; /* in col8 layout, times SAVED_SCALE */

/* Between the two passes: the loss of the function, what it reports, and the first gradients. With
 * sum = sum over points of the standard normal's log-density at y plus logdet:
 *   loss = -(sum + f[0] kl + f[1]) / n; reported: loss, kl / n, sum / n
 * The gradient of the loss is 1. f of the instruction is that of scale. */
enum {
    END_Y,       /* (n, 1)                    */
    END_LOGDET,  /* (n, 1)                    */
    END_KL,      /* (1, 1), a double          */
    END_GY,      /* out (n, 1)                */
    END_GLOGDET, /* out (n, 1)                */
    END_GKL,     /* out (1, 1), a double      */
    END_OPERANDS
};

#endif
