/* map.h: operands of the pointwise maps (rqs, affine), for backends. A map takes a number per row
 * and its own raw parameters per row, and gives a number per row and a log-derivative:
 *
 *     out = f(y; raw),   logdet_out = logdet + log |d out / d y|
 *
 * Each of y, raw and logdet is shared by all samples or sampled; the outputs are sampled when any
 * of them is. A gradient to a shared operand is the sum over the samples. */
#ifndef MNP_OP_MAP_H
#define MNP_OP_MAP_H

#include "op/op.h"

enum { MAP_Y, MAP_RAW, MAP_LOGDET }; /* in; MAP_LOGDET may be absent */
enum { MAP_OUT, MAP_LOGDET_OUT };    /* out                          */
/* in of the grad: the last two are upstream gradients, of which one may be absent */
enum { MAP_GRAD_Y, MAP_GRAD_RAW, MAP_GRAD_OUT, MAP_GRAD_LOGDET };
enum { MAP_GY, MAP_GRAW, MAP_GLOGDET }; /* out of the grad              */

/* Record op on y, raw (rows, cols) and logdet; the caller fills i and f of *ins. */
mapped map_record(graph *g, int32_t op, val y, val raw, val logdet, int32_t cols, instr **ins);
/* Record the reverse op, with the attributes of the forward one. */
void map_record_grad(graph *g, int32_t op, const instr *fwd);

/* What the cases of a map vary (op_case.b): which operands are sampled, absent, unused. */
enum {
    MAP_SAMPLED_Y = 1,
    MAP_SAMPLED_RAW = 2,
    MAP_SAMPLED_LOGDET = 4,
    MAP_NO_LOGDET = 8,   /* no log-derivative comes in              */
    MAP_ONLY_OUT = 16,   /* only `out` enters the objective         */
    MAP_ONLY_LOGDET = 32 /* only `logdet_out` enters the objective  */
};
/* Inputs of a case: y ~ N(0, y_sd^2), raw ~ N(0, raw_sd^2). */
void map_case_inputs(case_build *b, const op_case *c, int32_t cols, double y_sd, double raw_sd,
                     val in[3]);
void map_case_outputs(case_build *b, const op_case *c, mapped out);

#endif
