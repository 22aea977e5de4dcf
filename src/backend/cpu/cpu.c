/* cpu.c: the CPU backend: the interpreter with float elements and the kernels of cpu_ops.def.
 * Workers take functions; a kernel runs on one thread. */
#include "backend/cpu/cpu.h"

#include "backend/cpu/step.h"
#include "backend/interp.h"
#include "op/linear.h"

#define CPU_OP(name) void cpu_##name(frame *f, const instr *ins);
#define CPU_OP_SCRATCH(name)                                                                       \
    void cpu_##name(frame *f, const instr *ins);                                                   \
    size_t cpu_##name##_scratch(const plan *p, const instr *ins, const cpu_kernels *k);
#include "backend/cpu/cpu_ops.def"
#undef CPU_OP
#undef CPU_OP_SCRATCH

static cpu_op_fn kernel_of(int32_t op) {
    static const cpu_op_fn table[OP_COUNT] = {
#define CPU_OP(name)         [OP_##name] = cpu_##name,
#define CPU_OP_SCRATCH(name) CPU_OP(name)
#include "backend/cpu/cpu_ops.def"
#undef CPU_OP
#undef CPU_OP_SCRATCH
    };
    return table[op];
}

static cpu_scratch_fn scratch_of(int32_t op) {
    static const cpu_scratch_fn table[OP_COUNT] = {
#define CPU_OP(name)
#define CPU_OP_SCRATCH(name) [OP_##name] = cpu_##name##_scratch,
#include "backend/cpu/cpu_ops.def"
#undef CPU_OP
#undef CPU_OP_SCRATCH
    };
    return table[op];
}

typedef struct cpu_exec {
    cpu_shared shared;
    val *weights; /* those that need a transpose */
    int32_t n_weights;
} cpu_exec;

static cpu_exec *inner(exec *x) {
    return (cpu_exec *)(uintptr_t)x->shared;
}

/* ---- transposed weights: dX = dY W^T reads rows of W^T --------------------------------------- */

static mnp_status place_transposes(exec *x) {
    const plan *p = x->plan;
    cpu_exec *c = inner(x);
    c->shared.transposed_at = env_alloc(x->env, (size_t)p->n_values + 1, sizeof(int64_t), "a plan");
    c->weights = env_alloc(x->env, (size_t)p->n_instrs + 1, sizeof(val), "a plan");
    if (!c->shared.transposed_at || !c->weights) return MNP_ENOMEM;
    for (val v = 0; v < p->n_values; v++) c->shared.transposed_at[v] = -1;
    int64_t words = 0;
    for (int32_t k = 0; k < p->n_function; k++) {
        const instr *ins = &p->instrs[k];
        if (ins->op != OP_linear_grad || ins->out[LINEAR_GX] == VAL_NONE) continue;
        val w = ins->in[LINEAR_GRAD_W];
        if (c->shared.transposed_at[w] >= 0) continue;
        c->shared.transposed_at[w] = words;
        c->weights[c->n_weights++] = w;
        words += (int64_t)p->values[w].cols * graph_pad(p->values[w].rows);
    }
    c->shared.transposed = env_alloc(x->env, (size_t)words + 1, sizeof(float), "transposes");
    return c->shared.transposed ? MNP_OK : MNP_ENOMEM;
}

static void transpose_one(void *arg, int64_t task, int worker) {
    (void)worker;
    exec *x = arg;
    const cpu_exec *c = inner(x);
    val id = c->weights[task];
    const value *w = &x->plan->values[id];
    const float *from = (const float *)x->io->weights + w->offset;
    c->shared.k->transpose(w->rows, w->cols, from, w->ld,
                           c->shared.transposed + c->shared.transposed_at[id], graph_pad(w->rows));
}

static void prepare(exec *x) {
    interp_parallel(x, inner(x)->n_weights, transpose_one, x);
}

/* ---- the backend ----------------------------------------------------------------------------- */

static mnp_status execute(exec *x, frame *f, const instr *ins, env *e) {
    (void)x;
    cpu_op_fn fn = kernel_of(ins->op);
    if (!fn) return ref_execute(f, ins, e);
    fn(f, ins);
    return MNP_OK;
}

static void step(exec *x, const step_view *v, const instr *ins) {
    cpu_step(v, ins, inner(x)->shared.k);
}

static void fold(exec *x, int64_t first, int64_t count, int64_t lo, int64_t hi) {
    float *at = (float *)x->slots + first * x->words + lo;
    inner(x)->shared.k->sum_slots(hi - lo, count, x->words, 1.0f, at);
}

static size_t scratch_bytes(const plan *p, const cpu_kernels *k) {
    size_t most = 0;
    for (int32_t i = 0; i < p->n_function; i++) {
        cpu_scratch_fn fn = scratch_of(p->instrs[i].op);
        size_t bytes = fn ? fn(p, &p->instrs[i], k) : 0;
        if (bytes > most) most = bytes;
    }
    return most;
}

static void destroy(exec *x) {
    if (!x) return;
    cpu_exec *c = inner(x);
    if (c) {
        env_free(x->env, c->shared.transposed);
        env_free(x->env, c->shared.transposed_at);
        env_free(x->env, c->weights);
        env_free(x->env, c);
    }
    interp_destroy(x);
}

static mnp_status compile(env *e, const plan *p, const exec_opts *o, exec **out) {
    *out = NULL;
    const cpu_kernels *k = cpu_kernels_best(o->isa);
    if (!k)
        return env_fail(e, MNP_EUNSUPPORTED, "this processor or build has no '%s' kernels",
                        o->isa ? o->isa : "(any)");
    exec *x = NULL;
    MNP_TRY(interp_compile(e, p, o, sizeof(float), scratch_bytes(p, k), &x));
    cpu_exec *c = env_alloc(e, 1, sizeof *c, "a compiled plan");
    mnp_status status = c ? MNP_OK : MNP_ENOMEM;
    if (c) {
        c->shared.k = k;
        x->shared = c;
        x->execute = execute;
        x->prepare = prepare;
        x->step = step;
        x->fold = fold;
        status = place_transposes(x);
    }
    if (status != MNP_OK) {
        destroy(x);
        return status;
    }
    *out = x;
    return MNP_OK;
}

static const char *kernels(const exec *x) {
    (void)x;
    return cpu_kernels_best(NULL)->isa;
}

static mnp_status describe(env *e, char *out, size_t size) {
    (void)e;
    snprintf(out, size, "the processor, %s kernels", kernels(NULL));
    return MNP_OK;
}

const backend backend_cpu = {.name = "cpu",
                             .element = sizeof(float),
                             .kernels = kernels,
                             .describe = describe,
                             .compile = compile,
                             .run = interp_run,
                             .gradient = interp_gradient,
                             .memory = interp_memory,
                             .destroy = destroy};
