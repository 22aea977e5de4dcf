/* case.c: inputs and outputs of a case, as feeds, weights and emits. */
#include "op/case.h"

#include "op/op.h"

static void note_input(case_build *b, val v, bool wants, case_fill fill) {
    if (b->n_inputs == CASE_MAX) {
        graph_fail(b->g, "a case has too many inputs");
        return;
    }
    b->inputs[b->n_inputs] = v;
    b->fills[b->n_inputs] = fill;
    b->wants[b->n_inputs++] = wants;
}

val case_matrix(case_build *b, const char *name, extent ext, int32_t rows, int32_t cols,
                bool sampled, bool wants_grad, case_fill fill) {
    val v = op_feed(b->g, name, ext, rows, cols, sampled, wants_grad);
    note_input(b, v, wants_grad, fill);
    return v;
}

val case_scalars(case_build *b, const char *name, extent ext, bool sampled, bool wants_grad,
                 case_fill fill) {
    val v = op_feed_scalars(b->g, name, ext, sampled, wants_grad);
    note_input(b, v, wants_grad, fill);
    return v;
}

val case_weight(case_build *b, const char *name, int32_t rows, int32_t cols, double sd) {
    return graph_param(b->g, name, rows, cols, (param_init){.kind = INIT_NORMAL, .gain = sd});
}

void case_output(case_build *b, val v) {
    if (b->n_outputs == CASE_MAX) {
        graph_fail(b->g, "a case has too many outputs");
        return;
    }
    b->outputs[b->n_outputs++] = v;
}
