/* case.h: one list of cases per op serves three uses: fast kernel against reference, gradient
 * against finite differences, and speed. A case is a size and a name; the op's `build` records the
 * op on inputs made here, which the harness then fills, differentiates and times. */
#ifndef MNP_OP_CASE_H
#define MNP_OP_CASE_H

#include "graph/graph.h"

enum {
    CASE_BENCH = 1,  /* a row of `mnp bench`                                        */
    CASE_NO_FD = 2,  /* not differentiable there (ties, knots) or too large for it  */
    CASE_LARGE = 4,  /* needs seconds in the reference: gradient compared all the same */
    CASE_DOUBLE = 8, /* the op computes in double on every backend: tight tolerance */
    CASE_MODES = 16  /* compared with rounded products as well: no ReLU that may switch */
};

typedef struct op_case {
    const char *name;
    int64_t n, m, S;    /* lengths of the function; S samples */
    int32_t a, b, c, d; /* sizes, each op's own meaning       */
    unsigned flags;
    double flop; /* of one forward pass (bench), 0 = not counted */
    double tol;  /* float against double, relative to the largest entry; 0 = 2e-5 */
} op_case;

enum { CASE_MAX = 16 };

/* How the harness fills an input. */
typedef struct case_fill {
    double mean, sd;      /* normal entries ...                                        */
    const double *values; /* ... or these, repeated as often as needed (count below)   */
    int32_t count;
} case_fill;

typedef struct case_build {
    graph *g;
    const op_case *c;
    val inputs[CASE_MAX]; /* feeds, in order; gradients of those with wants_grad are compared */
    case_fill fills[CASE_MAX];
    bool wants[CASE_MAX];
    int n_inputs;
    val outputs[CASE_MAX];
    int n_outputs;
} case_build;

/* An input matrix / numbers per row / weight for a case. */
val case_matrix(case_build *b, const char *name, extent ext, int32_t rows, int32_t cols,
                bool sampled, bool wants_grad, case_fill fill);
val case_scalars(case_build *b, const char *name, extent ext, bool sampled, bool wants_grad,
                 case_fill fill);
/* A weight: filled with sd `fill.sd`, its gradient is compared. */
val case_weight(case_build *b, const char *name, int32_t rows, int32_t cols, double sd);
/* Declare an output to compare; all outputs enter the objective with random weights. */
void case_output(case_build *b, val v);

#define CASE_NORMAL(mean_, sd_) ((case_fill){.mean = (mean_), .sd = (sd_)})

#endif
