/* op_linear.c: the dense layer and its reverse pass as products of the kernel table.
 *
 * All rows of all samples are one matrix. The reverse pass masks the upstream gradient g in place
 * (nobody reads it later) and multiplies by the transposed weight that the backend keeps. */
#include "op/linear.h"

#include <string.h>

#include "backend/cpu/cpu.h"

void cpu_linear(frame *f, const instr *ins) {
    const value *x = cpu_value(f, ins->in[LINEAR_X]), *w = cpu_value(f, ins->in[LINEAR_W]);
    const value *y = cpu_value(f, ins->out[LINEAR_Y]);
    gemm_epilogue e = {.bias = cpu_f32(f, ins->in[LINEAR_B]),
                       .relu = ins->i[LINEAR_ACT] == ACT_RELU,
                       .residual = cpu_f32(f, ins->in[LINEAR_RES]),
                       .hidden = cpu_f32(f, ins->out[LINEAR_H])};
    if (e.residual) e.ldr = cpu_value(f, ins->in[LINEAR_RES])->ld;
    cpu_k(f)->gemm_nn(cpu_all_rows(f, x), x->cols, w->cols, cpu_f32(f, ins->in[LINEAR_X]), x->ld,
                      cpu_f32(f, ins->in[LINEAR_W]), w->ld, cpu_f32(f, ins->out[LINEAR_Y]), y->ld,
                      &e);
}

/* ---- reverse --------------------------------------------------------------------------------- */

static void add_or_copy(int64_t count, const float *from, float *to, bool add) {
    if (!add)
        memcpy(to, from, (size_t)count * sizeof *to);
    else
        for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

/* dx = g W^T (+ what is there) (+ skip), for an x of numbers per row: its gradient has no padding
 * for the product to write to, so it takes the way through scratch. */
static void narrow_gx(frame *f, int64_t rows, const value *w, const float *g, int64_t ldg,
                      const float *wt, float *gx, const gemm_epilogue *e) {
    float *wide = f->scratch;
    const gemm_epilogue plain = {0};
    cpu_k(f)->gemm_nn(rows, w->cols, 1, g, ldg, wt, graph_pad(1), wide, graph_pad(1), &plain);
    for (int64_t r = 0; r < rows; r++) {
        float sum = wide[r * graph_pad(1)];
        if (e->residual) sum += e->residual[r * e->ldr];
        gx[r] = e->accumulate ? gx[r] + sum : sum;
    }
}

static void input_grad(frame *f, const instr *ins, int64_t rows, const float *g, int64_t ldg,
                       const gemm_epilogue *e) {
    const cpu_shared *shared = f->backend;
    const val weight = ins->in[LINEAR_GRAD_W];
    const value *w = cpu_value(f, weight), *x = cpu_value(f, ins->in[LINEAR_GRAD_X]);
    const float *wt = shared->transposed + shared->transposed_at[weight];
    float *gx = cpu_f32(f, ins->out[LINEAR_GX]);
    if (x->ld == 1)
        narrow_gx(f, rows, w, g, ldg, wt, gx, e);
    else
        shared->k->gemm_nn(rows, w->cols, w->rows, g, ldg, wt, graph_pad(w->rows), gx, x->ld, e);
}

/* The residual was x: its gradient, the unmasked g, goes into dx, and then g is masked. */
static void skip_grad(frame *f, const instr *ins, int64_t rows, const float *h, gemm_epilogue *e) {
    const int64_t ld = cpu_value(f, ins->in[LINEAR_GRAD_G])->ld;
    float *g = cpu_f32(f, ins->in[LINEAR_GRAD_G]), *gx = cpu_f32(f, ins->out[LINEAR_GX]);
    if (!h) {
        e->residual = g, e->ldr = ld;
        return;
    }
    const bool narrow = cpu_value(f, ins->in[LINEAR_GRAD_X])->ld == 1;
    for (int64_t r = 0; narrow && r < rows; r++)
        gx[r] = e->accumulate ? gx[r] + g[r * ld] : g[r * ld];
    cpu_k(f)->relu_grad(rows * ld, h, g, narrow ? NULL : gx, e->accumulate);
    e->accumulate = true;
}

size_t cpu_linear_grad_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)k;
    const value *x = &p->values[ins->in[LINEAR_GRAD_X]];
    return x->ld == 1 ? (size_t)(plan_words(p, x) * graph_pad(1)) * sizeof(float) : 0;
}

void cpu_linear_grad(frame *f, const instr *ins) {
    const value *x = cpu_value(f, ins->in[LINEAR_GRAD_X]);
    const value *w = cpu_value(f, ins->in[LINEAR_GRAD_W]);
    const value *gv = cpu_value(f, ins->in[LINEAR_GRAD_G]);
    const cpu_kernels *k = cpu_k(f);
    const int64_t rows = cpu_all_rows(f, x), all = rows * gv->ld;
    const float *h = cpu_f32(f, ins->in[LINEAR_GRAD_H]);
    float *g = cpu_f32(f, ins->in[LINEAR_GRAD_G]), *gx = cpu_f32(f, ins->out[LINEAR_GX]);
    float *gres = cpu_f32(f, ins->out[LINEAR_GRES]);
    float *gw = cpu_f32(f, ins->out[LINEAR_GW]), *gb = cpu_f32(f, ins->out[LINEAR_GB]);
    gemm_epilogue e = {.accumulate = cpu_acc(ins, LINEAR_GX)};

    if (gres) add_or_copy(all, g, gres, cpu_acc(ins, LINEAR_GRES));
    if (gx && ins->i[LINEAR_SKIP])
        skip_grad(f, ins, rows, h, &e);
    else if (h)
        k->relu_grad(all, h, g, NULL, false);
    if (gx) input_grad(f, ins, rows, g, gv->ld, &e);
    if (gw) {
        if (!cpu_acc(ins, LINEAR_GW))
            memset(gw, 0, (size_t)((int64_t)w->rows * w->ld) * sizeof *gw);
        k->gemm_tn(rows, w->rows, w->cols, cpu_f32(f, ins->in[LINEAR_GRAD_X]), x->ld, g, gv->ld, gw,
                   w->ld);
    }
    if (gb) {
        if (!cpu_acc(ins, LINEAR_GB)) memset(gb, 0, (size_t)gv->ld * sizeof *gb);
        k->colsum(rows, gv->cols, g, gv->ld, gb);
    }
}
