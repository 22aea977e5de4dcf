/* fourier.c: random Fourier features of the inputs.
 *
 *   phi(x) = [cos(2 pi f_1.x) .. cos(2 pi f_F.x), sin(2 pi f_1.x) .. sin(2 pi f_F.x) (, x)]
 *
 * x (R,X), freq (F,X), phi (R, 2F) or (R, 2F + X). The phase f.x is reduced to [-1/2, 1/2] turns in
 * double before the sine and cosine are taken, so a large phase costs no accuracy. Neither x nor
 * the frequencies get a gradient: the output depends on nothing that is trained. */
#include "op/fourier.h"

#include <math.h>

#include "op/op.h"

val op_fourier(graph *g, val x, val freq, bool append_x) {
    if (!graph_ok(g)) return VAL_NONE;
    value vx = *graph_at(g, x), vf = *graph_at(g, freq);
    if (x == VAL_NONE || freq == VAL_NONE || vx.cols != vf.cols || vf.sampled ||
        vf.ext != EXT_FIXED) {
        graph_fail(g, "fourier: %s has %d columns, the frequencies %s have %d", vx.name, vx.cols,
                   vf.name, vf.cols);
        return VAL_NONE;
    }
    int32_t cols = 2 * vf.rows + (append_x ? vx.cols : 0);
    val y = graph_matrix(g, "fourier", vx.ext, vx.rows, cols, vx.sampled);
    instr *ins = graph_append(g, OP_fourier);
    if (!ins) return VAL_NONE;
    ins->in[FOURIER_X] = x, ins->in[FOURIER_FREQ] = freq;
    ins->out[FOURIER_Y] = y;
    ins->i[FOURIER_APPEND] = append_x;
    return y; /* no graph_done(): the output needs no gradient even when x has one */
}

static void ref_fourier(ref_run *r) {
    const double turn = 6.283185307179586476925;
    ref_array x = ref_in(r, FOURIER_X), freq = ref_in(r, FOURIER_FREQ), y = ref_out(r, FOURIER_Y);
    if (r->failed) return;
    for (int64_t i = 0; i < x.samples * x.rows; i++) {
        const double *from = x.at + i * x.cols;
        double *to = y.at + i * y.cols;
        for (int64_t k = 0; k < freq.rows; k++) {
            double t = 0.0;
            for (int64_t c = 0; c < x.cols; c++) t += freq.at[k * freq.cols + c] * from[c];
            t -= rint(t);
            to[k] += cos(turn * t);
            to[freq.rows + k] += sin(turn * t);
        }
        for (int64_t c = 0; r->ins->i[FOURIER_APPEND] && c < x.cols; c++)
            to[2 * freq.rows + c] += from[c];
    }
}

/* ---- cases: a = X, b = F, c = append the inputs, d = spread of the frequencies --------------- */

static void build(case_build *b, const op_case *c) {
    val x = case_matrix(b, "x", EXT_N, 0, c->a, c->S > 1, false, CASE_NORMAL(0, 2));
    param_init frozen = {.kind = INIT_NORMAL, .gain = c->d, .frozen = true};
    val freq = graph_param(b->g, "freq", c->b, c->a, frozen);
    case_output(b, op_fourier(b->g, x, freq, c->c != 0));
}

static const op_case cases[] = {
    {"X = 1, F = 80", 128, 50, 1, 1, 80, 0, 1, CASE_BENCH | CASE_NO_FD, 0, 0},
    {"X = 2, F = 64, x appended", 128, 50, 1, 2, 64, 1, 1, CASE_BENCH | CASE_NO_FD, 0, 0},
    {"one point, one frequency", 1, 0, 1, 1, 1, 1, 1, CASE_NO_FD, 0, 0},
    {"odd sizes", 33, 12, 1, 3, 13, 1, 1, CASE_NO_FD, 0, 0},
    {"samples", 10, 3, 3, 2, 21, 0, 1, CASE_NO_FD, 0, 0},
    {"large phases", 50, 20, 1, 2, 30, 0, 3000, CASE_NO_FD, 0, 0},
    {"n = 1000", 1000, 400, 1, 1, 16, 0, 1, CASE_NO_FD, 0, 0},
};

static void no_grad(graph *g, const instr *fwd) {
    (void)g, (void)fwd; /* nothing that is trained comes before it */
}

const op_def op_fourier_def = {.name = "fourier",
                               .grad = no_grad,
                               .ref = ref_fourier,
                               .build = build,
                               .cases = cases,
                               .n_cases = sizeof cases / sizeof *cases};
