/* op_gp.c: the Gaussian process on float storage: operands are widened, everything is computed in
 * double by base/gp_math.c. Scratch: one n x n matrix forward, two in the reverse pass, and rows.
 */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "op/gp.h"

/* Carves doubles off the scratch. */
static double *take(double **next, int64_t count) {
    double *at = *next;
    *next += count;
    return at;
}

static void widen(const float *from, int64_t rows, int64_t cols, int64_t ld, double *to) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < cols; c++) to[i * cols + c] = (double)from[i * ld + c];
}

typedef struct problem {
    gp_kernel kernel;
    int64_t n, first, samples; /* of u */
    int32_t x_dim;
    double *x, *u, *l; /* (n, X), (n) of one sample, (n, n) */
    bool bad;          /* Sigma is not positive definite    */
} problem;

static problem set_up(const frame *f, const instr *ins, double **next) {
    const value *vx = cpu_value(f, ins->in[GP_X]), *vu = cpu_value(f, ins->in[GP_U]);
    problem p = {.kernel = gp_kernel_make(ins->i[GP_KERNEL]),
                 .n = f->n,
                 .first = gp_first(f, ins),
                 .samples = frame_samples(f, vu),
                 .x_dim = vx->cols};
    p.l = take(next, p.n * p.n);
    p.x = take(next, p.n * p.x_dim);
    p.u = take(next, p.n);
    widen(cpu_f32(f, ins->in[GP_HYPER]), 1, GP_HYPERS, GP_HYPERS, p.kernel.hyper);
    widen(cpu_f32(f, ins->in[GP_X]), p.n, p.x_dim, vx->ld, p.x);
    p.bad = gp_factor(&p.kernel, p.x, p.n, p.x_dim, p.l) != 0;
    return p;
}

void cpu_gp_logp(frame *f, const instr *ins) {
    double *next = f->scratch, *out = cpu_f64(f, ins->out[0]);
    problem p = set_up(f, ins, &next);
    double *white = take(&next, p.n);
    for (int64_t s = 0; s < p.samples; s++) {
        widen(cpu_f32(f, ins->in[GP_U]) + s * p.n, p.n, 1, 1, p.u);
        out[s] = p.bad ? NAN : gp_logp(&p.kernel, p.l, p.n, p.first, p.u, white);
    }
}

/* Adds to or overwrites floats by doubles. */
static void narrow(const double *from, int64_t count, bool add, float *to) {
    for (int64_t i = 0; i < count; i++) to[i] = (float)((add ? (double)to[i] : 0) + from[i]);
}

void cpu_gp_logp_grad(frame *f, const instr *ins) {
    double *next = f->scratch, hyper[GP_HYPERS] = {0}, up_sum = 0;
    const double *up = cpu_f64(f, ins->in[GP_GRAD_G]);
    problem p = set_up(f, ins, &next);
    double *weight = take(&next, p.n * p.n), *gu = take(&next, p.n), *work = take(&next, 2 * p.n);
    float *to_u = cpu_f32(f, ins->out[GP_GU]), *to_hyper = cpu_f32(f, ins->out[GP_GHYPER]);
    memset(weight, 0, (size_t)(p.n * p.n) * sizeof *weight);
    for (int64_t s = 0; s < p.samples; s++) {
        widen(cpu_f32(f, ins->in[GP_U]) + s * p.n, p.n, 1, 1, p.u);
        for (int64_t i = 0; i < p.n; i++) gu[i] = p.bad ? NAN : 0;
        if (!p.bad)
            gp_grad_sample(&p.kernel, p.l, p.n, p.first, p.u, up[s], gu, hyper, weight, work);
        if (to_u) narrow(gu, p.n, cpu_acc(ins, GP_GU), to_u + s * p.n);
        up_sum += up[s];
    }
    if (!to_hyper) return;
    if (!p.bad) gp_grad_finish(&p.kernel, p.x, p.n, p.x_dim, p.first, up_sum, p.l, weight, hyper);
    for (int j = 0; p.bad && j < GP_HYPERS; j++) hyper[j] = NAN;
    const bool add = cpu_acc(ins, GP_GHYPER);
    narrow(hyper, GP_HYPERS, add, to_hyper);
    for (int32_t j = GP_HYPERS; !add && j < cpu_value(f, ins->out[GP_GHYPER])->ld; j++)
        to_hyper[j] = 0;
}

static size_t scratch(const plan *p, const instr *ins, size_t matrices) {
    const size_t n = (size_t)p->opts.n, x_dim = (size_t)p->values[ins->in[GP_X]].cols;
    return (matrices * n * n + n * (x_dim + 4)) * sizeof(double);
}

size_t cpu_gp_logp_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)k;
    return scratch(p, ins, 1);
}

size_t cpu_gp_logp_grad_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)k;
    return scratch(p, ins, 2);
}
