/* season.c: a wave that all curves have in common, added to or taken from the outputs.
 *
 *   out_i = y_i + sign sum_k a_k cos(2 pi k f x_i) + b_k sin(2 pi k f x_i),  k = 1 .. K
 *
 * coefficients (1, 2K) = a_1 b_1 a_2 b_2 ...; pace (1, 1) = f, in turns for a unit of x.
 * Reverse: dy += dout; da, db and df are sums over points; x is data. */
#include <math.h>

#include "op/op.h"

enum { SEASON_X, SEASON_Y, SEASON_PACE, SEASON_C, SEASON_G }; /* in; G: of the grad */
enum { SEASON_GY, SEASON_GPACE, SEASON_GC };                  /* out of the grad    */
enum { SEASON_SIGN };                                         /* f */

#define TURN 6.28318530717958647693

val op_season(graph *g, val x, val y, val pace, val coefficients, double sign) {
    if (!graph_ok(g)) return VAL_NONE;
    const value *vx = graph_at(g, x), *vy = graph_at(g, y), *vp = graph_at(g, pace);
    const value *vc = graph_at(g, coefficients);
    if (vx->ext != EXT_N || vx->sampled || vx->cols != 1 || vy->ext != EXT_N || vy->ld != 1)
        graph_fail(g, "season: %s must be the one input of all points, %s a number per point",
                   vx->name, vy->name);
    else if (vp->ext != EXT_FIXED || vp->rows != 1 || vp->cols != 1 || vc->ext != EXT_FIXED ||
             vc->rows != 1 || vc->cols % 2)
        graph_fail(g, "season: %s must be a number, %s one row of pairs", vp->name, vc->name);
    val out = graph_scalars(g, "season", EXT_N, 1, vy->sampled);
    instr *ins = graph_append(g, OP_season);
    if (!ins) return VAL_NONE;
    ins->in[SEASON_X] = x, ins->in[SEASON_Y] = y, ins->in[SEASON_PACE] = pace;
    ins->in[SEASON_C] = coefficients, ins->out[0] = out, ins->f[SEASON_SIGN] = sign;
    graph_done(g, ins);
    return out;
}

static void grad_season(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_season_grad);
    if (!ins) return;
    for (int j = 0; j < SEASON_G; j++) ins->in[j] = fwd->in[j];
    ins->in[SEASON_G] = graph_grad(g, fwd->out[0]);
    ins->f[SEASON_SIGN] = fwd->f[SEASON_SIGN];
    graph_wire_grad(g, ins, SEASON_GY, fwd->in[SEASON_Y]);
    graph_wire_grad(g, ins, SEASON_GPACE, fwd->in[SEASON_PACE]);
    graph_wire_grad(g, ins, SEASON_GC, fwd->in[SEASON_C]);
}

/* ---- reference ------------------------------------------------------------------------------- */

static double wave_at(const ref_array *c, double turns) {
    double sum = 0;
    for (int64_t k = 0; k < c->cols / 2; k++) {
        const double t = TURN * (double)(k + 1) * turns;
        sum += c->at[2 * k] * cos(t) + c->at[2 * k + 1] * sin(t);
    }
    return sum;
}

static void ref_season(ref_run *r) {
    ref_array x = ref_in(r, SEASON_X), y = ref_in(r, SEASON_Y), c = ref_in(r, SEASON_C);
    ref_array pace = ref_in(r, SEASON_PACE), out = ref_out(r, 0);
    for (int64_t i = 0; i < x.rows; i++) {
        const double add = r->ins->f[SEASON_SIGN] * wave_at(&c, pace.at[0] * x.at[i]);
        for (int64_t s = 0; s < out.samples; s++)
            *ref_el(out, s, i, 0) += *ref_el(y, s, i, 0) + add;
    }
}

/* What one point with gradient `up` adds. */
static void add_point(double x, double pace, double up, const ref_array *c, const ref_array *gpace,
                      const ref_array *gc) {
    for (int64_t k = 0; k < c->cols / 2; k++) {
        const double each = TURN * (double)(k + 1), co = cos(each * pace * x);
        const double si = sin(each * pace * x);
        if (gc->at) gc->at[2 * k] += up * co, gc->at[2 * k + 1] += up * si;
        if (gpace->at) gpace->at[0] += up * each * x * (c->at[2 * k + 1] * co - c->at[2 * k] * si);
    }
}

static void ref_season_grad(ref_run *r) {
    ref_array x = ref_in(r, SEASON_X), up = ref_in(r, SEASON_G), c = ref_in(r, SEASON_C);
    ref_array pace = ref_in(r, SEASON_PACE), gy = ref_out(r, SEASON_GY);
    ref_array gpace = ref_out(r, SEASON_GPACE), gc = ref_out(r, SEASON_GC);
    for (int64_t i = 0; i < x.rows; i++) {
        double sum = 0;
        for (int64_t s = 0; s < up.samples; s++) {
            sum += *ref_el(up, s, i, 0);
            if (gy.at) *ref_el(gy, s, i, 0) += *ref_el(up, s, i, 0);
        }
        add_point(x.at[i], pace.at[0], r->ins->f[SEASON_SIGN] * sum, &c, &gpace, &gc);
    }
}

/* ---- cases: a = harmonics, b = sign; S > 1: y is sampled ------------------------------------- */

static void build(case_build *b, const op_case *c) {
    val x = case_matrix(b, "x", EXT_N, 0, 1, false, false, CASE_NORMAL(0, 1));
    val y = case_scalars(b, "y", EXT_N, c->S > 1, true, CASE_NORMAL(0, 1));
    val pace = case_weight(b, "pace", 1, 1, 0.7);
    val coefficients = case_weight(b, "coefficients", 1, 2 * c->a, 1);
    case_output(b, op_season(b->g, x, y, pace, coefficients, c->b));
}

static const op_case cases[] = {
    {"24 points", 24, 3, 1, 3, -1, 0, 0, CASE_BENCH, 0, 0},
    {"samples", 9, 4, 3, 1, 1, 0, 0, 0, 0, 0},
    {"one point", 1, 0, 1, 2, -1, 0, 0, 0, 0, 0},
};

const op_def op_season_def = {.name = "season",
                              .grad = grad_season,
                              .ref = ref_season,
                              .build = build,
                              .cases = cases,
                              .n_cases = sizeof cases / sizeof *cases};
const op_def op_season_grad_def = {.name = "season_grad", .ref = ref_season_grad};
