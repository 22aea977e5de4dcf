/* ref.c: loads operands into dense double arrays, runs the reference kernel, stores the outputs. */
#include "op/ref.h"

#include <string.h>

#include "op/op.h"

static double get(const frame *f, const value *v, int64_t index) {
    const void *p = frame_at(f, v);
    if (f->element == sizeof(double) || v->type == TYPE_F64) return ((const double *)p)[index];
    return (double)((const float *)p)[index];
}

static void set(const frame *f, const value *v, int64_t index, double x) {
    void *p = frame_at(f, v);
    if (f->element == sizeof(double) || v->type == TYPE_F64)
        ((double *)p)[index] = x;
    else
        ((float *)p)[index] = (float)x;
}

static ref_array shape_of(const frame *f, const value *v) {
    return (ref_array){NULL, frame_samples(f, v), frame_rows(f, v), v->cols};
}

static ref_array load(ref_run *r, val id, bool content) {
    if (id == VAL_NONE) return (ref_array){0};
    const value *v = &r->f->plan->values[id];
    ref_array a = shape_of(r->f, v);
    int64_t rows = a.samples * a.rows;
    a.at = env_alloc(r->env, (size_t)(rows * a.cols) + 1, sizeof(double), "a reference operand");
    if (!a.at) {
        r->failed = true;
        return (ref_array){0};
    }
    for (int64_t i = 0; content && i < rows; i++)
        for (int64_t c = 0; c < a.cols; c++) a.at[i * a.cols + c] = get(r->f, v, i * v->ld + c);
    return a;
}

ref_array ref_in(ref_run *r, int j) {
    if (!r->in_loaded[j]) r->in[j] = load(r, r->ins->in[j], true);
    r->in_loaded[j] = true;
    return r->in[j];
}

ref_array ref_out(ref_run *r, int j) {
    if (!r->out_loaded[j]) r->out[j] = load(r, r->ins->out[j], (r->ins->acc >> j & 1u) != 0);
    r->out_loaded[j] = true;
    return r->out[j];
}

static void store_out(ref_run *r, int j) {
    if (r->ins->out[j] == VAL_NONE) return;
    const value *v = &r->f->plan->values[r->ins->out[j]];
    ref_array a = ref_out(r, j);
    if (!a.at) return;
    for (int64_t i = 0; i < a.samples * a.rows; i++)
        for (int64_t c = 0; c < v->ld; c++)
            set(r->f, v, i * v->ld + c, c < a.cols ? a.at[i * a.cols + c] : 0.0);
}

double *ref_scratch(ref_run *r, int64_t count) {
    double *p = env_alloc(r->env, (size_t)count + 2, sizeof(double), "a reference kernel");
    if (!p) {
        r->failed = true;
        return NULL;
    }
    memcpy(p, &r->scratch, sizeof r->scratch); /* chained through the first word */
    r->scratch = p;
    return p + 1;
}

static void release(ref_run *r) {
    for (int j = 0; j < INSTR_IN; j++) env_free(r->env, r->in[j].at);
    for (int j = 0; j < INSTR_OUT; j++) env_free(r->env, r->out[j].at);
    while (r->scratch) {
        double *next;
        memcpy(&next, r->scratch, sizeof next);
        env_free(r->env, r->scratch);
        r->scratch = next;
    }
}

mnp_status ref_execute(frame *f, const instr *ins, env *e) {
    ref_run r = {.f = f, .ins = ins, .env = e};
    op_at(ins->op)->ref(&r);
    for (int j = 0; j < INSTR_OUT && !r.failed; j++) store_out(&r, j);
    release(&r);
    return r.failed ? MNP_ENOMEM : MNP_OK;
}
