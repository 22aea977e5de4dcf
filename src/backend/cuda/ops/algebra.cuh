/* algebra.cuh: copies and slices, element by element, weighted sums (S samples, or one for all).
 *
 *   prefix       y (m or k, C) = the first rows of x (n, C)
 *   stack        y (A + B, C) = a (A, C), below it b (B, C)
 *   if_context   y (R, C) = x (R, C) where there is a context, else empty (R, C)
 *   add, scale   y (R, C) = a + b, or f a + s
 *   dot          y, a double = the sum of a w over both (R, C)
 *
 * Rows of all samples lie one after the other; what samples share gets its gradient from one
 * thread, in their order. Shared memory: the sums of dot alone, a double for each warp. */
#ifdef CUDA_OP
CUDA_OP(BLOCK, prefix, op_prefix(ins))
CUDA_OP(BLOCK, prefix_grad, op_prefix_grad(ins))
CUDA_OP(TEAM, stack, op_stack(ins, t))
CUDA_OP(TEAM, stack_grad, op_stack_grad(ins, t))
CUDA_OP(TEAM, if_context, op_if_context(ins, t))
CUDA_OP(TEAM, if_context_grad, op_if_context_grad(ins, t))
CUDA_OP(TEAM, add, op_element(ins, t))
CUDA_OP(TEAM, add_grad, op_element_grad(ins, t))
CUDA_OP(TEAM, scale, op_element(ins, t))
CUDA_OP(TEAM, scale_grad, op_element_grad(ins, t))
CUDA_OP(BLOCK, dot, op_dot(ins, t))
CUDA_OP(BLOCK, dot_grad, op_dot_grad(ins, t))
#elif !defined(MNP_CUDA_OPS_ALGEBRA_CUH)
#define MNP_CUDA_OPS_ALGEBRA_CUH

#include "backend/cuda/device/frame.cuh"
#include "op/dot.h"
#include "op/elementwise.h"
#include "op/if_context.h"
#include "op/prefix.h"
#include "op/stack.h"

/* ---- copies ---------------------------------------------------------------------------------- */

OP_FN void op_prefix(const dev_instr &ins) {
    const View x = view_in(ins, PREFIX_X), y = view_out(ins, PREFIX_Y);
    const int words = y.rows * y.ld;
    constexpr int FLIGHT = 8;
#pragma unroll 1
    for (int s = 0; s < (y.sampled ? frame().S : 1); s++)
#pragma unroll 1
        for (int i0 = threadIdx.x; i0 < words; i0 += FLIGHT * THREADS) {
            float v[FLIGHT];
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) { /* all loads first */
                const int i = i0 + j * THREADS;
                v[j] = i < words ? x.sample(s)[i] : 0.0f;
            }
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) {
                const int i = i0 + j * THREADS;
                if (i < words) y.sample(s)[i] = v[j];
            }
        }
}

OP_FN void op_prefix_grad(const dev_instr &ins) {
    const Frame &f = frame();
    const View g = view_in(ins, PREFIX_GRAD_G), gx = view_out(ins, PREFIX_GX);
    const bool add = adds(f, ins, PREFIX_GX);
    if (!gx.p) return;
    const int part = g.rows * g.ld, words = add ? part : gx.rows * gx.ld;
    constexpr int FLIGHT = 8;
#pragma unroll 1
    for (int s = 0; s < (gx.sampled ? f.S : 1); s++)
#pragma unroll 1
        for (int i0 = threadIdx.x; i0 < words; i0 += FLIGHT * THREADS) {
            float v[FLIGHT], old[FLIGHT];
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) { /* all loads first */
                const int i = i0 + j * THREADS;
                v[j] = i < part ? g.sample(s)[i] : 0.0f;
                old[j] = add && i < part ? gx.sample(s)[i] : 0.0f;
            }
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) {
                const int i = i0 + j * THREADS;
                if (i < words) gx.sample(s)[i] = old[j] + v[j];
            }
        }
}

OP_FN void op_stack(const dev_instr &ins, Team t) {
    const View a = view_in(ins, STACK_A), b = view_in(ins, STACK_B), y = view_out(ins, 0);
    each_number(y, frame().S, t, [&](int s, int r, int c, int i) {
        y.p[i] = c >= y.cols  ? 0.0f
                 : r < a.rows ? a.sample(s)[r * a.ld + c]
                              : b.sample(s)[(r - a.rows) * b.ld + c];
    });
}

/* gx[s, r, c] (+)= g[s, r0 + r, c], summed over samples when gx is shared. */
FN void slice_grad(const View &g, const View &gx, int r0, bool add, int S, Team t) {
    if (!gx.p) return;
    const int per = gx.sampled || !g.sampled ? 1 : S;
    each_number(gx, S, t, [&](int s, int r, int c, int i) {
        float sum = add ? gx.p[i] : 0.0f;
#pragma unroll 1
        for (int k = 0; c < gx.cols && k < per; k++)
            sum += g.sample(per > 1 ? k : s)[(int64_t)(r0 + r) * g.ld + c];
        gx.p[i] = sum;
    });
}

OP_FN void op_stack_grad(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    View g = view_in(ins, 0);
    slice_grad(g, view_out(ins, STACK_GA), 0, adds(f, ins, STACK_GA), f.S, t);
    slice_grad(g, view_out(ins, STACK_GB), ins.i[STACK_SPLIT], adds(f, ins, STACK_GB), f.S, t);
}

OP_FN void op_if_context(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    const View used = view_in(ins, f.m > 0 ? IF_CONTEXT_X : IF_CONTEXT_EMPTY);
    const View y = view_out(ins, 0);
    each_number(y, f.S, t, [&](int s, int r, int c, int i) {
        y.p[i] = c < y.cols ? used.sample(s)[(int64_t)r * used.ld + c] : 0.0f;
    });
}

OP_FN void op_if_context_grad(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    View g = view_in(ins, 0);
    const int used = f.m > 0 ? IF_CONTEXT_GX : IF_CONTEXT_GEMPTY, other = 1 - used;
    View to = view_out(ins, used), rest = view_out(ins, other);
    slice_grad(g, to, 0, adds(f, ins, used), f.S, t);
    if (rest.p && !adds(f, ins, other))
        zero_words(rest.p, (int64_t)rest.all_rows(f.S) * rest.ld, t);
}

/* ---- element by element ---------------------------------------------------------------------- */

FN double get(const View &v, bool is_double, int s, int r, int c) {
    return is_double ? v.d()[v.sampled ? s : 0] : (double)v.sample(s)[(int64_t)r * v.ld + c];
}

OP_FN void op_element(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    View a = view_in(ins, ELEMENT_A), b = view_in(ins, ELEMENT_B), y = view_out(ins, 0);
    const bool d = ins.out[0].is_double, scale = ins.op == OPCODE_scale;
    each_number(y, f.S, t, [&](int s, int r, int c, int i) {
        const double u = c < y.cols ? get(a, d, s, r, c) : 0.0;
        const double w = c < y.cols && !scale ? get(b, d, s, r, c) : 0.0;
        const double v = scale && c < y.cols ? ins.f[SCALE_FACTOR] * u + ins.f[SCALE_SHIFT] : u + w;
        if (d)
            y.d()[i] = v;
        else
            y.p[i] = (float)v;
    });
}

/* to (+)= value(s, r, c), summed over samples when `to` is shared and g is not */
template <class F>
FN void put_sums(const View &g, const View &to, bool d, bool add, int S, Team t, F value) {
    if (!to.p) return;
    const int per = to.sampled || !g.sampled ? 1 : S;
    each_number(to, S, t, [&](int s, int r, int c, int i) {
        double sum = !add ? 0.0 : d ? to.d()[i] : (double)to.p[i];
#pragma unroll 1
        for (int k = 0; c < to.cols && k < per; k++) sum += value(per > 1 ? k : s, r, c);
        if (d)
            to.d()[i] = sum;
        else
            to.p[i] = (float)sum;
    });
}

OP_FN void op_element_grad(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    View g = view_in(ins, ELEMENT_GRAD_G);
    const bool d = ins.in[ELEMENT_GRAD_G].is_double, scale = ins.op == OPCODE_scale_grad;
    const double factor = scale ? ins.f[SCALE_FACTOR] : 1.0;
    const auto value = [&](int s, int r, int c) { return factor * get(g, d, s, r, c); };
    for (int j = ELEMENT_GA; j <= (scale ? ELEMENT_GA : ELEMENT_GB); j++)
        put_sums(g, view_out(ins, j), d, adds(f, ins, j), f.S, t, value);
}
static_assert(ELEMENT_GB == ELEMENT_GA + 1, "one after the other");

/* ---- dot ------------------------------------------------------------------------------------- */

OP_FN void op_dot(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    View a = view_in(ins, DOT_A), w = view_in(ins, DOT_W), y = view_out(ins, 0);
    const bool da = ins.in[DOT_A].is_double, dw = ins.in[DOT_W].is_double;
#pragma unroll 1
    for (int s = 0; s < (y.sampled ? f.S : 1); s++) {
        double sum = 0;
#pragma unroll 1
        for (int i = t.rank; i < a.rows * a.cols; i += t.size) {
            const int r = i / a.cols, c = i % a.cols;
            sum += get(a, da, s, r, c) * get(w, dw, s, r, c);
        }
        sum = team_sum(sum, t);
        if (t.rank == 0) y.d()[y.sampled ? s : 0] = sum;
    }
}

OP_FN void op_dot_grad(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    View a = view_in(ins, DOT_GRAD_A), w = view_in(ins, DOT_GRAD_W);
    View g = view_in(ins, DOT_GRAD_G);
    const bool da = ins.in[DOT_GRAD_A].is_double, dw = ins.in[DOT_GRAD_W].is_double;
    put_sums(g, view_out(ins, DOT_GA), da, adds(f, ins, DOT_GA), f.S, t,
             [&](int s, int r, int c) { return *g.d(s) * get(w, dw, s, r, c); });
    put_sums(g, view_out(ins, DOT_GW), dw, adds(f, ins, DOT_GW), f.S, t,
             [&](int s, int r, int c) { return *g.d(s) * get(a, da, s, r, c); });
}

#endif
