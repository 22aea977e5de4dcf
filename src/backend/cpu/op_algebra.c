/* op_algebra.c: prefix, stack, if_context, add, scale and dot on floats (the last
 * three also on double scalars), with their reverse instructions. All of them copy or combine once;
 * what there is to gain is in not touching memory twice. Contracts: op/<op>.c. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "op/dot.h"
#include "op/elementwise.h"
#include "op/if_context.h"
#include "op/prefix.h"
#include "op/stack.h"

/* An operand: element (s, r, c) is at[((s or 0) rows + r) ld + c]. at == NULL: absent. */
typedef struct block {
    float *at;
    int64_t samples, rows, cols, ld;
} block;

static block block_of(const frame *f, val id) {
    if (id == VAL_NONE) return (block){0};
    const value *v = cpu_value(f, id);
    return (block){cpu_f32(f, id), frame_samples(f, v), frame_rows(f, v), v->cols, v->ld};
}

static float *row_at(block b, int64_t s, int64_t r) {
    return b.at + ((b.samples == 1 ? 0 : s) * b.rows + r) * b.ld;
}

/* ---- copies of rows ---------------------------------------------------------------------
 */

static void add_or_copy(float *restrict to, const float *restrict from, int64_t count, bool add) {
    if (!add) {
        memcpy(to, from, (size_t)count * sizeof *to);
        return;
    }
    for (int64_t c = 0; c < count; c++) to[c] += from[c];
}

static void clear(block b) {
    memset(b.at, 0, (size_t)(b.samples * b.rows * b.ld) * sizeof *b.at);
}

static void clear_padding(block b) {
    if (b.ld == b.cols) return;
    for (int64_t i = 0; i < b.samples * b.rows; i++)
        memset(b.at + i * b.ld + b.cols, 0, (size_t)(b.ld - b.cols) * sizeof *b.at);
}

/* to[s, tr + r, c] = or += from[s, fr + r, c] over all samples of either; a shared source is
 * repeated, a shared destination gets the sum. */
static void move(block to, int64_t tr, block from, int64_t fr, int64_t rows, bool add) {
    int64_t samples = to.samples > from.samples ? to.samples : from.samples;
    for (int64_t s = 0; s < samples; s++)
        for (int64_t r = 0; r < rows; r++)
            add_or_copy(row_at(to, s, tr + r), row_at(from, s, fr + r), to.cols,
                        add || (s > 0 && to.samples == 1));
}

void cpu_prefix(frame *f, const instr *ins) {
    block x = block_of(f, ins->in[PREFIX_X]), y = block_of(f, ins->out[PREFIX_Y]);
    move(y, 0, x, 0, y.rows, cpu_acc(ins, PREFIX_Y));
    if (!cpu_acc(ins, PREFIX_Y)) clear_padding(y);
}

void cpu_prefix_grad(frame *f, const instr *ins) {
    block gy = block_of(f, ins->in[PREFIX_GRAD_G]), gx = block_of(f, ins->out[PREFIX_GX]);
    if (!gx.at) return;
    if (!cpu_acc(ins, PREFIX_GX)) clear(gx);
    move(gx, 0, gy, 0, gy.rows, true);
}

void cpu_stack(frame *f, const instr *ins) {
    block a = block_of(f, ins->in[STACK_A]), b = block_of(f, ins->in[STACK_B]);
    block y = block_of(f, ins->out[0]);
    bool add = cpu_acc(ins, 0);
    move(y, 0, a, 0, a.rows, add);
    move(y, a.rows, b, 0, b.rows, add);
    if (!add) clear_padding(y);
}

void cpu_stack_grad(frame *f, const instr *ins) {
    block gy = block_of(f, ins->in[0]);
    for (int j = STACK_GA; j <= STACK_GB; j++) {
        block to = block_of(f, ins->out[j]);
        if (!to.at) continue;
        move(to, 0, gy, j == STACK_GA ? 0 : ins->i[STACK_SPLIT], to.rows, cpu_acc(ins, j));
        if (!cpu_acc(ins, j)) clear_padding(to);
    }
}

void cpu_if_context(frame *f, const instr *ins) {
    block used = block_of(f, ins->in[f->m > 0 ? IF_CONTEXT_X : IF_CONTEXT_EMPTY]);
    block y = block_of(f, ins->out[0]);
    move(y, 0, used, 0, 1, cpu_acc(ins, 0));
    if (!cpu_acc(ins, 0)) clear_padding(y);
}

void cpu_if_context_grad(frame *f, const instr *ins) {
    int used = f->m > 0 ? IF_CONTEXT_GX : IF_CONTEXT_GEMPTY;
    block gy = block_of(f, ins->in[0]);
    for (int j = IF_CONTEXT_GX; j <= IF_CONTEXT_GEMPTY; j++) {
        block to = block_of(f, ins->out[j]);
        if (!to.at) continue;
        if (!cpu_acc(ins, j)) clear(to);
        if (j == used) move(to, 0, gy, 0, 1, true);
    }
}

/* ---- element by element -----------------------------------------------------------------------
 */

/* to = or += u + v, or u alone where v is absent. Runs are whole samples where the strides agree.
 */

static void sum_run(float *restrict to, const float *u, const float *v, int64_t count, bool add) {
    if (!v)
        add_or_copy(to, u, count, add);
    else if (add)
        for (int64_t i = 0; i < count; i++) to[i] += u[i] + v[i];
    else
        for (int64_t i = 0; i < count; i++) to[i] = u[i] + v[i];
}

static void sum_floats(block to, block u, block v, bool add) {
    int64_t samples = to.samples > u.samples ? to.samples : u.samples;
    bool whole = to.ld == u.ld && (!v.at || to.ld == v.ld);
    int64_t runs = whole ? 1 : to.rows, count = whole ? to.rows * to.ld : to.cols;
    for (int64_t s = 0; s < samples; s++)
        for (int64_t r = 0; r < runs; r++)
            sum_run(row_at(to, s, r), row_at(u, s, r), v.at ? row_at(v, s, r) : NULL, count,
                    add || (s > 0 && to.samples == 1));
    if (!whole && !add) clear_padding(to);
}

/* The same for double scalars: one number per sample, or one for all. */
static void sum_doubles(frame *f, val to, val u, val v, bool add) {
    bool each = cpu_value(f, to)->sampled, each_u = cpu_value(f, u)->sampled;
    bool each_v = v != VAL_NONE && cpu_value(f, v)->sampled;
    double *y = cpu_f64(f, to);
    const double *a = cpu_f64(f, u), *b = cpu_f64(f, v);
    for (int64_t s = 0; s < (each || each_u ? f->S : 1); s++) {
        double p = a[each_u ? s : 0], q = v == VAL_NONE ? 0.0 : b[each_v ? s : 0];
        double *out = &y[each ? s : 0];
        bool adds = add || (s > 0 && !each);
        *out = (adds ? *out : 0.0) + (p + q);
    }
}

static void sum_values(frame *f, const instr *ins, int output, val u, val v) {
    val to = ins->out[output];
    if (to == VAL_NONE) return;
    if (cpu_value(f, to)->type == TYPE_F64)
        sum_doubles(f, to, u, v, cpu_acc(ins, output));
    else
        sum_floats(block_of(f, to), block_of(f, u), block_of(f, v), cpu_acc(ins, output));
}

void cpu_add(frame *f, const instr *ins) {
    sum_values(f, ins, 0, ins->in[ELEMENT_A], ins->in[ELEMENT_B]);
}

void cpu_add_grad(frame *f, const instr *ins) {
    sum_values(f, ins, ELEMENT_GA, ins->in[ELEMENT_GRAD_G], VAL_NONE);
    sum_values(f, ins, ELEMENT_GB, ins->in[ELEMENT_GRAD_G], VAL_NONE);
}

/* out = or += factor in + shift; the padding stays zero because rows stop at their columns. */
static void scale(frame *f, const instr *ins, double factor, double shift) {
    if (ins->out[0] == VAL_NONE) return;
    const value *v = cpu_value(f, ins->out[0]);
    bool add = cpu_acc(ins, 0);
    if (v->type == TYPE_F64) {
        const double *a = cpu_f64(f, ins->in[0]);
        double *y = cpu_f64(f, ins->out[0]);
        for (int64_t s = 0; s < frame_samples(f, v); s++)
            y[s] = (add ? y[s] : 0.0) + (factor * a[s] + shift);
        return;
    }
    block a = block_of(f, ins->in[0]), y = block_of(f, ins->out[0]);
    bool whole = y.cols == y.ld && a.ld == y.ld;
    int64_t all = y.samples * y.rows, runs = whole ? 1 : all, count = whole ? all * y.ld : y.cols;
    float by = (float)factor, plus = (float)shift;
    for (int64_t r = 0; r < runs; r++) {
        const float *from = a.at + r * a.ld;
        float *to = y.at + r * y.ld;
        for (int64_t c = 0; c < count; c++) to[c] = (add ? to[c] : 0.0f) + (by * from[c] + plus);
    }
    if (!add) clear_padding(y);
}

void cpu_scale(frame *f, const instr *ins) {
    scale(f, ins, ins->f[SCALE_FACTOR], ins->f[SCALE_SHIFT]);
}

void cpu_scale_grad(frame *f, const instr *ins) {
    scale(f, ins, ins->f[SCALE_FACTOR], 0.0);
}

/* ---- dot: floats or doubles, any stride --------------------------------------------------------
 */

typedef struct numbers {
    const value *v;
    float *f32;
    double *f64;
} numbers;

static numbers numbers_of(const frame *f, val id) {
    if (id == VAL_NONE) return (numbers){0};
    const value *v = cpu_value(f, id);
    bool wide = v->type == TYPE_F64;
    return (numbers){v, wide ? NULL : cpu_f32(f, id), wide ? cpu_f64(f, id) : NULL};
}

/* Index of element (s, r, c). */
static int64_t place(const frame *f, const value *v, int64_t s, int64_t r, int64_t c) {
    return ((v->sampled ? s : 0) * frame_rows(f, v) + r) * v->ld + c;
}

static double number(const frame *f, numbers a, int64_t s, int64_t r, int64_t c) {
    int64_t at = place(f, a.v, s, r, c);
    return a.f64 ? a.f64[at] : (double)a.f32[at];
}

void cpu_dot(frame *f, const instr *ins) {
    numbers a = numbers_of(f, ins->in[DOT_A]), w = numbers_of(f, ins->in[DOT_W]);
    double *y = cpu_f64(f, ins->out[0]);
    for (int64_t s = 0; s < frame_samples(f, cpu_value(f, ins->out[0])); s++) {
        double sum = 0.0;
        for (int64_t r = 0; r < frame_rows(f, a.v); r++)
            for (int64_t c = 0; c < a.v->cols; c++)
                sum += number(f, a, s, r, c) * number(f, w, s, r, c);
        y[s] = (cpu_acc(ins, 0) ? y[s] : 0.0) + sum;
    }
}

/* to[s] = or += g[s] other[s], the sum over s where `to` is shared. */
static void dot_grad(frame *f, const instr *ins, int output, numbers other) {
    numbers to = numbers_of(f, ins->out[output]);
    if (!to.v) return;
    const value *vg = cpu_value(f, ins->in[DOT_GRAD_G]);
    const double *g = cpu_f64(f, ins->in[DOT_GRAD_G]);
    bool add = cpu_acc(ins, output);
    if (!add && to.f32) clear(block_of(f, ins->out[output]));
    if (!add && to.f64) memset(to.f64, 0, (size_t)frame_samples(f, to.v) * sizeof *to.f64);
    for (int64_t s = 0; s < frame_samples(f, vg); s++)
        for (int64_t r = 0; r < frame_rows(f, to.v); r++)
            for (int64_t c = 0; c < to.v->cols; c++) {
                int64_t at = place(f, to.v, s, r, c);
                double d = g[s] * number(f, other, s, r, c);
                if (to.f64)
                    to.f64[at] += d;
                else
                    to.f32[at] = (float)((double)to.f32[at] + d);
            }
}

void cpu_dot_grad(frame *f, const instr *ins) {
    dot_grad(f, ins, DOT_GA, numbers_of(f, ins->in[DOT_GRAD_W]));
    dot_grad(f, ins, DOT_GW, numbers_of(f, ins->in[DOT_GRAD_A]));
}
