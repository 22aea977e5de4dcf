/* ref.h: how a reference kernel sees its operands: as plain dense double arrays, whatever the
 * backend stores. ref_in(r, j) is input j as (samples, rows, cols); ref_out(r, j) is output j,
 * holding zeros, or the present content where the instruction accumulates. So a kernel always ADDS
 * to its outputs, and never thinks of strides, padding or types. After the kernel returns, the
 * outputs are stored (padding columns as zeros).
 *
 * A fast backend may run a reference kernel for an op it has no own kernel for: the same code then
 * works on float storage. */
#ifndef MNP_OP_REF_H
#define MNP_OP_REF_H

#include "op/frame.h"

typedef struct ref_array {
    double *at;
    int64_t samples, rows, cols;
} ref_array;

typedef struct ref_run {
    frame *f;
    const instr *ins;
    env *env;
    ref_array in[INSTR_IN], out[INSTR_OUT];
    bool in_loaded[INSTR_IN], out_loaded[INSTR_OUT];
    double *scratch; /* chain of ref_scratch() blocks */
    bool failed;     /* out of memory                 */
} ref_run;

/* NULL array (at == NULL) for an absent operand. */
ref_array ref_in(ref_run *r, int j);
ref_array ref_out(ref_run *r, int j);
/* Element (s, row, c); an array that is shared over samples gives the same for every s. */
static inline double *ref_el(ref_array a, int64_t s, int64_t row, int64_t c) {
    return a.at + ((a.samples == 1 ? 0 : s) * a.rows + row) * a.cols + c;
}
/* Memory for the duration of the kernel; NULL sets r->failed. */
double *ref_scratch(ref_run *r, int64_t count);

/* Run one instruction by its op's reference kernel. */
mnp_status ref_execute(frame *f, const instr *ins, env *e);

#endif
