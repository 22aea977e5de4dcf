/* ref.c: the double-precision backend: every instruction by its op's reference kernel. Slow,
 * obvious, and the judge of the others. */
#include "backend/interp.h"

static mnp_status execute(exec *x, frame *f, const instr *ins, env *e) {
    (void)x;
    return ref_execute(f, ins, e);
}

static void step(exec *x, const step_view *v, const instr *ins) {
    (void)x;
    op_at(ins->op)->step(v, ins);
}

static mnp_status compile(env *e, const plan *p, const exec_opts *o, exec **out) {
    MNP_TRY(interp_compile(e, p, o, sizeof(double), 0, out));
    (*out)->execute = execute;
    (*out)->step = step;
    return MNP_OK;
}

const backend backend_ref = {.name = "ref",
                             .element = sizeof(double),
                             .compile = compile,
                             .run = interp_run,
                             .gradient = interp_gradient,
                             .memory = interp_memory,
                             .destroy = interp_destroy};
