/* patterns.c: the parts of the usual model as patterns, see fuse.h; their operands and
 * formulas are in paper/fused.h. Forward parts are matched from their last op back, reverse parts
 * from their first op on: every value has one op that makes it and every gradient one that reads
 * it. */
#include "backend/cuda/fuse/fuse.h"
#include "op/op.h"

#define NO       FUSE_ABSENT
#define MAYBE(k) (FUSE_MAYBE + (k))
#define I(k)     (FUSE_INNER + (k))
#define COUNT(a) ((int32_t)(sizeof(a) / sizeof *(a)))
_Static_assert((int)FUSE_OPERANDS <= (int)FUSE_MAYBE, "an operand and the mark fit in a byte");
_Static_assert(FUSED_FEATURES == 160 && FUSED_ENC_WIDTH == 64 && FUSED_HEADS == 4 &&
                   FUSED_D_R == 64 && FUSED_D_Z == 128 && FUSED_HEAD_HIDDEN == 64 &&
                   FUSED_FLOW_HIDDEN == 128 && FUSED_RAW == 29,
               "shapes below");

#define STEP(o, ...)                                                                               \
    { .op = OP_##o, __VA_ARGS__ }
/* A dense layer: act is 1 for ReLU. */
#define LINEAR(x, w, b, res, y, h, act)                                                            \
    STEP(linear, .in = {x, w, b, res, NO}, .out = {y, h, NO, NO}, .n_ints = 1, .ints = {act})
/* skip is 1 where the input was added to the result. */
#define LINEAR_GRAD(x, w, h, g, gx, gw, gb, skip)                                                  \
    STEP(linear_grad, .in = {x, w, h, g, NO}, .out = {gx, gw, gb, NO}, .n_ints = 2,                \
         .ints = {(int)(h) != (int)NO, skip})
#define JOIN(a, row, p, w, y, act)                                                                 \
    STEP(join, .in = {a, row, p, w, NO}, .out = {y, NO, NO, NO}, .n_ints = 1, .ints = {act})
#define JOIN_GRAD(y, p, w, g, ga, grow, gp, gw)                                                    \
    STEP(join_grad, .in = {y, p, w, g, NO}, .out = {ga, grow, gp, gw})
/* Four heads of 16: the columns are q, k, v of a point, rows of one extent (self), or the k and v
 * of a side, read by the seed (pool). */
#define SELF(over) .n_ints = 7, .ints = {64, 4, 0, 64, 128, over, over}
#define POOL(over) .n_ints = 7, .ints = {64, 4, 0, 0, 64, EXT_FIXED, over}
#define ATTENTION(q, kv, o, lse, how)                                                              \
    STEP(attention, .in = {q, kv, NO, NO, NO}, .out = {o, lse, NO, NO}, how)
#define ATTENTION_GRAD(q, kv, o, lse, g, gq, gk, how)                                              \
    STEP(attention_grad, .in = {q, kv, o, lse, g}, .out = {gq, gk, NO, NO}, how)

#define ROWS_N(operand, cols)                                                                      \
    { operand, EXT_N, 0, cols, false }
#define ROWS_M(operand, cols)                                                                      \
    { operand, EXT_M, 0, cols, false }
#define FIXED(operand, rows, cols)                                                                 \
    { operand, EXT_FIXED, rows, cols, false }
#define WEIGHT(operand, rows, cols)                                                                \
    { operand, EXT_FIXED, rows, cols, true }

/* ---- the conditioner and its spline ---------------------------------------------------------- */

static const fuse_step flow[] = {
    STEP(rqs_to_noise, .in = {FLOW_Y, FLOW_RAW, MAYBE(FLOW_BEFORE), NO, NO},
         .out = {FLOW_OUT, FLOW_LOGDET, NO, NO}, .n_ints = 1, .ints = {10}),
    LINEAR(FLOW_H1, FLOW_W2, FLOW_B2, NO, FLOW_RAW, NO, 0),
    LINEAR(FLOW_H0, FLOW_W1, FLOW_B1, NO, FLOW_H1, NO, 1),
    JOIN(I(0), FLOW_PZ, NO, NO, FLOW_H0, 1),
    LINEAR(FLOW_X, FLOW_WX, FLOW_B0, NO, I(0), NO, 0),
};
static const fuse_shape flow_shapes[] = {
    ROWS_N(FLOW_X, 160),       WEIGHT(FLOW_WX, 160, 128), FIXED(FLOW_PZ, 1, 128),
    WEIGHT(FLOW_W1, 128, 128), WEIGHT(FLOW_W2, 128, 29),  ROWS_N(FLOW_Y, 1),
    ROWS_N(FLOW_RAW, 29),      ROWS_N(FLOW_H0, 128),      ROWS_N(FLOW_H1, 128),
};

static const fuse_step flow_grad[] = {
    STEP(rqs_to_noise_grad, .in = {FLOWG_Y, FLOWG_RAW, FLOWG_GOUT, FLOWG_GLOGDET, NO},
         .out = {MAYBE(FLOWG_GY), I(0), MAYBE(FLOWG_GBEFORE), NO}, .n_ints = 1, .ints = {10}),
    LINEAR_GRAD(FLOWG_H1, FLOWG_W2, NO, I(0), I(1), FLOWG_DW2, FLOWG_DB2, 0),
    LINEAR_GRAD(FLOWG_H0, FLOWG_W1, FLOWG_H1, I(1), I(2), FLOWG_DW1, FLOWG_DB1, 0),
    JOIN_GRAD(FLOWG_H0, NO, NO, I(2), I(3), FLOWG_GPZ, NO, NO),
    LINEAR_GRAD(FLOWG_X, I(4), NO, I(3), NO, FLOWG_DWX, FLOWG_DB0, 0),
};
static const fuse_shape flow_grad_shapes[] = {
    ROWS_N(FLOWG_X, 160),     WEIGHT(FLOWG_W1, 128, 128), WEIGHT(FLOWG_W2, 128, 29),
    ROWS_N(FLOWG_RAW, 29),    ROWS_N(FLOWG_Y, 1),         FIXED(FLOWG_DWX, 160, 128),
    FIXED(FLOWG_GPZ, 1, 128),
};

/* ---- the set encoder ------------------------------------------------------------------------- */

/* One side, from its r back to the attention over j. */
#define SIDE(s, r, over)                                                                           \
    LINEAR(s + SIDE_PX, SET_WR, SET_BR, NO, r, NO, 0),                                             \
        LINEAR(s + SIDE_PA, SET_WO, SET_BO, s + SIDE_PA, s + SIDE_PX, s + SIDE_PH, 1),             \
        ATTENTION(SET_PQ, s + SIDE_KV, s + SIDE_PA, s + SIDE_PL, POOL(over)),                      \
        LINEAR(s + SIDE_X2, SET_WKV, SET_BKV, NO, s + SIDE_KV, NO, 0),                             \
        LINEAR(s + SIDE_A1, SET_W1, SET_B1, s + SIDE_A1, s + SIDE_X2, s + SIDE_H1, 1),             \
        ATTENTION(s + SIDE_Q1, s + SIDE_Q1, s + SIDE_A1, s + SIDE_L1, SELF(over)),                 \
        LINEAR(s + SIDE_X1, SET_WQ, SET_BQ, NO, s + SIDE_Q1, NO, 0),                               \
        LINEAR(s + SIDE_A0, SET_W0, SET_B0, s + SIDE_A0, s + SIDE_X1, s + SIDE_H0, 1),             \
        ATTENTION(SET_J, SET_J, s + SIDE_A0, s + SIDE_L0, SELF(over))

static const fuse_step set[] = {
    STEP(stack, .in = {I(0), I(1), NO, NO, NO}, .out = {SET_STACK, NO, NO, NO}),
    STEP(if_context, .in = {I(2), SET_EMPTY, NO, NO, NO}, .out = {I(1), NO, NO, NO}),
    SIDE(SET_ALL, I(0), EXT_N),
    SIDE(SET_SOME, I(2), EXT_M),
    JOIN(SET_PRE, NO, SET_Y, SET_WY, SET_J, 0),
};
static const fuse_shape set_shapes[] = {
    ROWS_N(SET_J, 192),
    ROWS_N(SET_Y, 1),
    ROWS_N(SET_ALL + SIDE_A0, 64),
    ROWS_N(SET_ALL + SIDE_A1, 64),
    ROWS_N(SET_ALL + SIDE_KV, 128),
    ROWS_M(SET_SOME + SIDE_A0, 64),
    ROWS_M(SET_SOME + SIDE_A1, 64),
    ROWS_M(SET_SOME + SIDE_KV, 128),
    FIXED(SET_PQ, 1, 64),
    FIXED(SET_W0, 64, 64),
    FIXED(SET_W1, 64, 64),
    FIXED(SET_WO, 64, 64),
    FIXED(SET_WR, 64, 64),
    FIXED(SET_STACK, 2, 64),
};

/* The gradient of one side from that of its r (g) on; from i on there is room for what stays
 * inside. */
#define SIDE_GRAD(s, g, i, over)                                                                   \
    LINEAR_GRAD(s + SIDE_PX, SETG_WR, NO, g, I(i), SETG_DWR, SETG_DBR, 0),                         \
        LINEAR_GRAD(s + SIDE_PA, SETG_WO, s + SIDE_PH, I(i), I(i + 1), SETG_DWO, SETG_DBO, 1),     \
        ATTENTION_GRAD(SETG_PQ, s + SIDE_KV, s + SIDE_PA, s + SIDE_PL, I(i + 1), SETG_GPQ,         \
                       I(i + 2), POOL(over)),                                                      \
        LINEAR_GRAD(s + SIDE_X2, SETG_WKV, NO, I(i + 2), I(i + 3), SETG_DWKV, SETG_DBKV, 0),       \
        LINEAR_GRAD(s + SIDE_A1, SETG_W1, s + SIDE_H1, I(i + 3), I(i + 4), SETG_DW1, SETG_DB1, 1), \
        ATTENTION_GRAD(s + SIDE_Q1, s + SIDE_Q1, s + SIDE_A1, s + SIDE_L1, I(i + 4), I(i + 5), NO, \
                       SELF(over)),                                                                \
        LINEAR_GRAD(s + SIDE_X1, SETG_WQ, NO, I(i + 5), I(i + 6), SETG_DWQ, SETG_DBQ, 0),          \
        LINEAR_GRAD(s + SIDE_A0, SETG_W0, s + SIDE_H0, I(i + 6), I(i + 7), SETG_DW0, SETG_DB0, 1), \
        ATTENTION_GRAD(SETG_J, SETG_J, s + SIDE_A0, s + SIDE_L0, I(i + 7), I(3), NO, SELF(over))

static const fuse_step set_grad[] = {
    STEP(stack_grad, .in = {SETG_GSTACK, NO, NO, NO, NO}, .out = {I(0), I(1), NO, NO}),
    STEP(if_context_grad, .in = {I(1), NO, NO, NO, NO}, .out = {I(2), SETG_DEMPTY, NO, NO}),
    SIDE_GRAD(SETG_SOME, I(2), 4, EXT_M),
    SIDE_GRAD(SETG_ALL, I(0), 12, EXT_N),
    JOIN_GRAD(NO, SETG_Y, SETG_WY, I(3), SETG_GPRE, NO, MAYBE(SETG_GY), SETG_DWY),
};
static const fuse_shape set_grad_shapes[] = {
    FIXED(SETG_GSTACK, 2, 64),       ROWS_N(SETG_J, 192),
    ROWS_N(SETG_ALL + SIDE_A0, 64),  ROWS_N(SETG_ALL + SIDE_KV, 128),
    ROWS_M(SETG_SOME + SIDE_A0, 64), ROWS_M(SETG_SOME + SIDE_KV, 128),
    FIXED(SETG_W0, 64, 64),          FIXED(SETG_W1, 64, 64),
    FIXED(SETG_WO, 64, 64),          FIXED(SETG_WR, 64, 64),
};

/* ---- the latent ------------------------------------------------------------------------------ */

/* A network, from its result back; i: what stays inside. */
#define NET_END(s)                                                                                 \
    LINEAR(s + NET_H1, s + NET_W2, s + NET_B2, NO, s + NET_OUT, NO, 0),                            \
        LINEAR(s + NET_H0, s + NET_W1, s + NET_B1, NO, s + NET_H1, NO, 1)
#define NET(s, i)                                                                                  \
    NET_END(s), JOIN(I(i), I(i + 1), NO, NO, s + NET_H0, 1),                                       \
        LINEAR(LATENT_STACK, s + NET_WR, s + NET_B0, NO, I(i), NO, 0),                             \
        LINEAR(LATENT_BEFORE, s + NET_WZ, NO, NO, I(i + 1), NO, 0)
#define NET_FIRST(s) NET_END(s), LINEAR(LATENT_STACK, s + NET_WR, s + NET_B0, NO, s + NET_H0, NO, 1)
/* Row 0 is drawn; the KL (kl) is from it to row 1, the context's, with the same kind and floor. */
#define DRAWN(kl)                                                                                  \
    STEP(gauss_sample, .in = {LATENT_MU + NET_OUT, LATENT_SIGMA + NET_OUT, NO, NO, NO},            \
         .out = {LATENT_Z, LATENT_EPS, NO, NO}, .n_ints = 2, .ints = {FUSE_ANY, 0}),               \
        STEP(gauss_kl, .in = {LATENT_MU + NET_OUT, LATENT_SIGMA + NET_OUT, NO, NO, NO},            \
             .out = {kl, NO, NO, NO}, .as_first = true),                                           \
        LINEAR(LATENT_Z, LATENT_WF, NO, NO, LATENT_PZ, NO, 0)

#define ADD(a, b, y) STEP(add, .in = {a, b, NO, NO, NO}, .out = {y, NO, NO, NO})

/* The first KL does not depend on a latent: it changes places with the second (op_add). */
static const fuse_step latent[] = {DRAWN(I(4)), NET(LATENT_MU, 0), NET(LATENT_SIGMA, 2),
                                   ADD(LATENT_KLBEFORE, I(4), LATENT_KL)};
static const fuse_step latent_second[] = {DRAWN(I(4)), NET(LATENT_MU, 0), NET(LATENT_SIGMA, 2),
                                          ADD(I(4), LATENT_KLBEFORE, LATENT_KL)};
static const fuse_step latent_first[] = {DRAWN(LATENT_KL), NET_FIRST(LATENT_MU),
                                         NET_FIRST(LATENT_SIGMA)};

#define NET_SHAPES(s)                                                                              \
    FIXED(s + NET_WR, 64, 64), FIXED(s + NET_WZ, 128, 64), FIXED(s + NET_W1, 64, 64),              \
        FIXED(s + NET_W2, 64, 128), FIXED(s + NET_OUT, 2, 128)
static const fuse_shape latent_shapes[] = {FIXED(LATENT_STACK, 2, 64), FIXED(LATENT_BEFORE, 1, 128),
                                           FIXED(LATENT_WF, 128, 128), NET_SHAPES(LATENT_MU),
                                           NET_SHAPES(LATENT_SIGMA)};

/* The gradient of a network from that of its result (g) on. */
#define NETG_END(s, g, i)                                                                          \
    LINEAR_GRAD(s + NETG_H1, s + NETG_W2, NO, g, I(i), s + NETG_DW2, s + NETG_DB2, 0),             \
        LINEAR_GRAD(s + NETG_H0, s + NETG_W1, s + NETG_H1, I(i), I(i + 1), s + NETG_DW1,           \
                    s + NETG_DB1, 0)
#define NETG(s, g, i)                                                                              \
    NETG_END(s, g, i), JOIN_GRAD(s + NETG_H0, NO, NO, I(i + 1), I(i + 2), I(i + 3), NO, NO),       \
        LINEAR_GRAD(LATENTG_STACK, s + NETG_WR, NO, I(i + 2), LATENTG_GSTACK, s + NETG_DWR,        \
                    s + NETG_DB0, 0),                                                              \
        LINEAR_GRAD(LATENTG_BEFORE, s + NETG_WZ, NO, I(i + 3), LATENTG_GBEFORE, s + NETG_DWZ, NO,  \
                    0)
#define NETG_FIRST(s, g, i)                                                                        \
    NETG_END(s, g, i), LINEAR_GRAD(LATENTG_STACK, s + NETG_WR, s + NETG_H0, I(i + 1),              \
                                   LATENTG_GSTACK, s + NETG_DWR, s + NETG_DB0, 0)
#define DRAWN_GRAD(gkl)                                                                            \
    STEP(gauss_sample_grad,                                                                        \
         .in = {LATENTG_MU + NETG_OUT, LATENTG_SIGMA + NETG_OUT, LATENTG_EPS, LATENTG_GZ, NO},     \
         .out = {I(0), I(1), NO, NO}, .n_ints = 2, .ints = {FUSE_ANY, 0}),                         \
        STEP(gauss_kl_grad, .in = {LATENTG_MU + NETG_OUT, LATENTG_SIGMA + NETG_OUT, gkl, NO, NO},  \
             .out = {I(0), I(1), NO, NO}, .as_first = true),                                       \
        LINEAR_GRAD(LATENTG_Z, LATENTG_WF, NO, LATENTG_GPZ, LATENTG_GZ, LATENTG_DWF, NO, 0)

#define ADD_GRAD(g, ga, gb) STEP(add_grad, .in = {g, NO, NO, NO, NO}, .out = {ga, gb, NO, NO})

static const fuse_step latent_grad[] = {DRAWN_GRAD(I(10)), NETG(LATENTG_SIGMA, I(1), 2),
                                        NETG(LATENTG_MU, I(0), 6),
                                        ADD_GRAD(LATENTG_GKL, LATENTG_GKLBEFORE, I(10))};
static const fuse_step latent_grad_second[] = {DRAWN_GRAD(I(10)), NETG(LATENTG_SIGMA, I(1), 2),
                                               NETG(LATENTG_MU, I(0), 6),
                                               ADD_GRAD(LATENTG_GKL, I(10), LATENTG_GKLBEFORE)};
static const fuse_step latent_grad_first[] = {
    DRAWN_GRAD(LATENTG_GKL), NETG_FIRST(LATENTG_SIGMA, I(1), 2), NETG_FIRST(LATENTG_MU, I(0), 6)};

#define NETG_SHAPES(s)                                                                             \
    FIXED(s + NETG_WR, 64, 64), FIXED(s + NETG_WZ, 128, 64), FIXED(s + NETG_W1, 64, 64),           \
        FIXED(s + NETG_W2, 64, 128), FIXED(s + NETG_OUT, 2, 128)
static const fuse_shape latent_grad_shapes[] = {
    FIXED(LATENTG_STACK, 2, 64), FIXED(LATENTG_BEFORE, 1, 128), FIXED(LATENTG_WF, 128, 128),
    NETG_SHAPES(LATENTG_MU), NETG_SHAPES(LATENTG_SIGMA)};

/* ---- features and the first layer ------------------------------------------------------------ */

static const fuse_step first[] = {
    LINEAR(FIRST_X, FIRST_W, FIRST_B, NO, FIRST_PRE, NO, 0),
    STEP(fourier, .in = {FIRST_AT, FIRST_FREQUENCY, NO, NO, NO}, .out = {FIRST_X, NO, NO, NO},
         .n_ints = 1, .ints = {0}),
    LINEAR(FIRST_SEED, FIRST_WQ, FIRST_BQ, NO, FIRST_PQ, NO, 0),
};
static const fuse_shape first_shapes[] = {
    ROWS_N(FIRST_AT, 1),       FIXED(FIRST_FREQUENCY, 80, 1), ROWS_N(FIRST_X, 160),
    WEIGHT(FIRST_W, 160, 192), WEIGHT(FIRST_SEED, 1, 64),     FIXED(FIRST_WQ, 64, 64),
};

static const fuse_step first_grad[] = {
    LINEAR_GRAD(FIRSTG_X, I(0), NO, FIRSTG_GPRE, NO, FIRSTG_DW, FIRSTG_DB, 0),
    LINEAR_GRAD(FIRSTG_SEED, FIRSTG_WQ, NO, FIRSTG_GPQ, FIRSTG_DSEED, FIRSTG_DWQ, FIRSTG_DBQ, 0),
};
static const fuse_shape first_grad_shapes[] = {ROWS_N(FIRSTG_X, 160), FIXED(FIRSTG_DW, 160, 192),
                                               WEIGHT(FIRSTG_SEED, 1, 64),
                                               FIXED(FIRSTG_WQ, 64, 64)};

/* ---- between the passes ---------------------------------------------------------------------- */

#define ONE(o, a, y, ...) STEP(o, .in = {a, NO, NO, NO, NO}, .out = {y, NO, NO, NO}, __VA_ARGS__)
#define OVER_ALL          .n_ints = 1, .ints = {ROWS_ALL}

static const fuse_step end[] = {
    ONE(scale, END_KL, I(0), .n_ints = 0),
    ADD(I(1), I(0), I(2)),
    ONE(mean_samples, I(2), I(3), .n_ints = 0),
    ONE(per_point, I(3), I(4), OVER_ALL, .real = -1.0),
    STEP(report, .in = {I(4), I(5), I(6), NO, NO}, .out = {NO, NO, NO, NO}),
    ONE(per_point, I(7), I(5), OVER_ALL, .real = 1.0),
    ONE(mean_samples, END_KL, I(7), .n_ints = 0),
    ONE(per_point, I(8), I(6), OVER_ALL, .real = 1.0),
    ONE(mean_samples, I(9), I(8), .n_ints = 0),
    ONE(sum_rows, I(10), I(9), OVER_ALL),
    ONE(sum_rows, I(10), I(1), OVER_ALL),
    STEP(normal_logp, .in = {END_Y, END_LOGDET, NO, NO, NO}, .out = {I(10), NO, NO, NO}),
    STEP(normal_logp_grad, .in = {END_Y, I(11), NO, NO, NO}, .out = {END_GY, END_GLOGDET, NO, NO}),
    ONE(sum_rows_grad, I(12), I(11), OVER_ALL),
    ADD_GRAD(I(13), I(12), I(14)),
    ONE(scale_grad, I(14), END_GKL, .as_first = true),
    ONE(mean_samples_grad, I(15), I(13), .n_ints = 0),
    ONE(per_point_grad, I(16), I(15), OVER_ALL, .real = -1.0),
    STEP(fill_one, .in = {NO, NO, NO, NO, NO}, .out = {I(16), NO, NO, NO}),
};
static const fuse_shape end_shapes[] = {ROWS_N(END_Y, 1), ROWS_N(END_LOGDET, 1)};

#define PATTERN(kind, steps, shapes, like)                                                         \
    { kind, #steps, steps, COUNT(steps), shapes, COUNT(shapes), like }
const fuse_pattern fuse_patterns[] = {
    PATTERN(FUSED_FLOW, flow, flow_shapes, 0),
    PATTERN(FUSED_FLOW_GRAD, flow_grad, flow_grad_shapes, 0),
    PATTERN(FUSED_SET, set, set_shapes, 4),
    PATTERN(FUSED_SET_GRAD, set_grad, set_grad_shapes, 4),
    PATTERN(FUSED_LATENT, latent, latent_shapes, 0),
    PATTERN(FUSED_LATENT, latent_second, latent_shapes, 0),
    PATTERN(FUSED_LATENT, latent_first, latent_shapes, 0),
    PATTERN(FUSED_LATENT_GRAD, latent_grad, latent_grad_shapes, 0),
    PATTERN(FUSED_LATENT_GRAD, latent_grad_second, latent_grad_shapes, 0),
    PATTERN(FUSED_LATENT_GRAD, latent_grad_first, latent_grad_shapes, 0),
    PATTERN(FUSED_FIRST, first, first_shapes, 0),
    PATTERN(FUSED_FIRST_GRAD, first_grad, first_grad_shapes, 0),
    PATTERN(FUSED_END, end, end_shapes, 0),
};
const int32_t fuse_pattern_count = COUNT(fuse_patterns);
