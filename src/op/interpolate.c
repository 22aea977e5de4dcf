/* interpolate.c: a grid read at points, by cubic convolution (grid.h); outside it is zero.
 *
 *   y[r,:] = sum_j w_j(x_r) grid[first(x_r) + j, :]         grid (G,C), x (n,1), y (n,C)
 *
 * Reverse: d grid[first + j, :] += w_j dy[r,:]; x gets none. */
#include "op/grid.h"
#include "op/op.h"

val op_interpolate(graph *g, val grid, val x, const grid_opts *o) {
    if (!graph_ok(g)) return VAL_NONE;
    value vg = *graph_at(g, grid), vx = *graph_at(g, x);
    if (vg.ext != EXT_FIXED || vg.rows != o->points || vg.ld != graph_pad(vg.cols) || vg.sampled ||
        vx.cols != 1 || vx.sampled) {
        graph_fail(g, "interpolate: %s is no grid of %d places, or %s are no places", vg.name,
                   o->points, vx.name);
        return VAL_NONE;
    }
    val y = graph_matrix(g, "interpolate", vx.ext, vx.rows, vg.cols, false);
    instr *ins = graph_append(g, OP_interpolate);
    if (!ins) return VAL_NONE;
    ins->in[INTERPOLATE_GRID] = grid, ins->in[INTERPOLATE_X] = x;
    ins->out[0] = y;
    ins->f[GRID_LO] = o->lo, ins->f[GRID_SPACING] = o->spacing;
    graph_done(g, ins);
    return y;
}

static void grad_interpolate(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_interpolate_grad);
    if (!ins) return;
    ins->in[INTERPOLATE_G] = graph_grad(g, fwd->out[0]);
    ins->in[INTERPOLATE_GRAD_X] = fwd->in[INTERPOLATE_X];
    ins->f[GRID_LO] = fwd->f[GRID_LO], ins->f[GRID_SPACING] = fwd->f[GRID_SPACING];
    graph_wire_grad(g, ins, 0, fwd->in[INTERPOLATE_GRID]);
}

/* ---- reference ------------------------------------------------------------------------------- */

static void ref_interpolate(ref_run *r) {
    ref_array grid = ref_in(r, INTERPOLATE_GRID), x = ref_in(r, INTERPOLATE_X), y = ref_out(r, 0);
    if (r->failed) return;
    for (int64_t i = 0; i < y.rows; i++) {
        double w[GRID_AROUND];
        int64_t at = grid_around(r->ins->f[GRID_LO], r->ins->f[GRID_SPACING], x.at[i], w);
        for (int j = 0; j < GRID_AROUND; j++, at++)
            for (int64_t c = 0; at >= 0 && at < grid.rows && c < y.cols; c++)
                *ref_el(y, 0, i, c) += w[j] * *ref_el(grid, 0, at, c);
    }
}

static void ref_interpolate_grad(ref_run *r) {
    ref_array up = ref_in(r, INTERPOLATE_G), x = ref_in(r, INTERPOLATE_GRAD_X);
    ref_array to = ref_out(r, 0);
    if (r->failed || !to.at) return;
    for (int64_t i = 0; i < up.rows; i++) {
        double w[GRID_AROUND];
        int64_t at = grid_around(r->ins->f[GRID_LO], r->ins->f[GRID_SPACING], x.at[i], w);
        for (int j = 0; j < GRID_AROUND; j++, at++)
            for (int64_t c = 0; at >= 0 && at < to.rows && c < up.cols; c++)
                *ref_el(to, 0, at, c) += w[j] * *ref_el(up, 0, i, c);
    }
}

/* ---- cases: a = columns, b = points of the grid, c = 1: two readers ---------------------------
 */

static void build(case_build *b, const op_case *c) {
    const grid_opts o = {c->b, -1, 2.0 / c->b};
    val grid = case_matrix(b, "grid", EXT_FIXED, c->b, c->a, false, true, CASE_NORMAL(0, 1));
    val x = case_matrix(b, "x", EXT_N, 0, 1, false, false, CASE_NORMAL(0, 1));
    if (c->c) case_output(b, op_unfold(b->g, grid, 1, 1));
    case_output(b, op_interpolate(b->g, grid, x, &o));
}

static const op_case cases[] = {
    {"128 points, 32 wide", 128, 50, 1, 32, 128, 0, 0, CASE_BENCH | CASE_NO_FD, 0, 1e-4},
    {"one place", 5, 2, 1, 3, 1, 0, 0, 0, 0, 0},
    {"one point", 1, 0, 1, 17, 9, 0, 0, 0, 0, 0},
    {"within and without", 20, 3, 1, 5, 8, 0, 0, 0, 0, 0},
    {"two readers", 6, 3, 1, 4, 7, 1, 0, 0, 0, 0},
};

const op_def op_interpolate_def = {.name = "interpolate",
                                   .grad = grad_interpolate,
                                   .ref = ref_interpolate,
                                   .build = build,
                                   .cases = cases,
                                   .n_cases = sizeof cases / sizeof *cases};
const op_def op_interpolate_grad_def = {.name = "interpolate_grad", .ref = ref_interpolate_grad};
