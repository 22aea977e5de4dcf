/* set_conv.c: the context's points spread over a grid, t_g = lo + g spacing, by a Gaussian kernel.
 *
 *   w_gj = exp(-(t_g - x_j)^2 / 2 l^2),  l = exp(length)         x (n,1), y (n), length (1,1)
 *   D_g = sum_{j < m} w_gj,   F_g = sum_{j < m} w_gj y_j / (D_g + 1e-6)         out (G,2) = [D F]
 *
 * Reverse, with u_gj = (t_g - x_j) / l and upstream (d, f):
 *   dy_j += sum_g f_g w_gj / (D_g + 1e-6)
 *   d length += sum_gj w_gj u_gj^2 (d_g + f_g (y_j - F_g) / (D_g + 1e-6));  x gets none. */
#include "op/grid.h"
#include "op/op.h"

val op_set_conv(graph *g, val x, val y, val length, const grid_opts *o) {
    if (!graph_ok(g)) return VAL_NONE;
    value vx = *graph_at(g, x), vy = *graph_at(g, y), vl = *graph_at(g, length);
    if (vx.ext != EXT_N || vx.cols != 1 || vy.ext != EXT_N || vy.ld != 1 || vl.rows != 1 ||
        vl.cols != 1 || vx.sampled || vy.sampled || o->points < 1 || !(o->spacing > 0)) {
        graph_fail(g, "set_conv: %s, %s and %s are no points of one input and a length", vx.name,
                   vy.name, vl.name);
        return VAL_NONE;
    }
    val out = graph_matrix(g, "grid", EXT_FIXED, o->points, SET_CONV_COLS, false);
    instr *ins = graph_append(g, OP_set_conv);
    if (!ins) return VAL_NONE;
    ins->in[SET_CONV_X] = x, ins->in[SET_CONV_Y] = y, ins->in[SET_CONV_LENGTH] = length;
    ins->out[0] = out;
    ins->f[GRID_LO] = o->lo, ins->f[GRID_SPACING] = o->spacing;
    graph_done(g, ins);
    return out;
}

static void grad_set_conv(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_set_conv_grad);
    if (!ins) return;
    for (int k = SET_CONV_X; k <= SET_CONV_LENGTH; k++) ins->in[k] = fwd->in[k];
    ins->in[SET_CONV_G] = graph_grad(g, fwd->out[0]);
    ins->f[GRID_LO] = fwd->f[GRID_LO], ins->f[GRID_SPACING] = fwd->f[GRID_SPACING];
    graph_wire_grad(g, ins, SET_CONV_GY, fwd->in[SET_CONV_Y]);
    graph_wire_grad(g, ins, SET_CONV_GLENGTH, fwd->in[SET_CONV_LENGTH]);
}

/* ---- reference ------------------------------------------------------------------------------- */

/* u of a point of the grid and one of the context. */
static double apart(const ref_run *r, int64_t at, double x, double length) {
    return (r->ins->f[GRID_LO] + (double)at * r->ins->f[GRID_SPACING] - x) / exp(length);
}

static void sums(const ref_run *r, int64_t at, ref_array x, ref_array y, double length,
                 double *density, double *data) {
    *density = *data = 0;
    for (int64_t j = 0; j < r->f->m; j++) {
        double u = apart(r, at, x.at[j], length), w = exp(-0.5 * u * u);
        *density += w, *data += w * y.at[j];
    }
    *data /= *density + SET_CONV_LEAST;
}

static void ref_set_conv(ref_run *r) {
    ref_array x = ref_in(r, SET_CONV_X), y = ref_in(r, SET_CONV_Y);
    ref_array length = ref_in(r, SET_CONV_LENGTH), out = ref_out(r, 0);
    if (r->failed) return;
    for (int64_t i = 0; i < out.rows; i++) {
        double density, data;
        sums(r, i, x, y, length.at[0], &density, &data);
        *ref_el(out, 0, i, SET_CONV_DENSITY) += density;
        *ref_el(out, 0, i, SET_CONV_DATA) += data;
    }
}

static void ref_set_conv_grad(ref_run *r) {
    ref_array x = ref_in(r, SET_CONV_X), y = ref_in(r, SET_CONV_Y);
    ref_array length = ref_in(r, SET_CONV_LENGTH), up = ref_in(r, SET_CONV_G);
    ref_array gy = ref_out(r, SET_CONV_GY), glength = ref_out(r, SET_CONV_GLENGTH);
    if (r->failed) return;
    for (int64_t i = 0; i < up.rows; i++) {
        double density, data, d = *ref_el(up, 0, i, SET_CONV_DENSITY);
        sums(r, i, x, y, length.at[0], &density, &data);
        double f = *ref_el(up, 0, i, SET_CONV_DATA) / (density + SET_CONV_LEAST);
        for (int64_t j = 0; j < r->f->m; j++) {
            double u = apart(r, i, x.at[j], length.at[0]), w = exp(-0.5 * u * u);
            if (gy.at) gy.at[j] += f * w;
            if (glength.at) glength.at[0] += w * u * u * (d + f * (y.at[j] - data));
        }
    }
}

/* ---- cases: a = points of the grid, b = 1: gradients of two readers meet ----------------------
 */

static void build(case_build *b, const op_case *c) {
    const grid_opts o = {c->a, -2, 4.0 / c->a};
    val x = case_matrix(b, "x", EXT_N, 0, 1, false, false, CASE_NORMAL(0, 1));
    val y = case_scalars(b, "y", EXT_N, false, true, CASE_NORMAL(0, 1));
    val length = case_weight(b, "length", 1, 1, 0.5);
    if (c->b) case_output(b, op_set_conv(b->g, x, y, length, &(grid_opts){5, -1, 0.5}));
    case_output(b, op_set_conv(b->g, x, y, length, &o));
}

static const op_case cases[] = {
    {"128 places", 128, 50, 1, 128, 0, 0, 0, CASE_BENCH, 0, 1e-4},
    {"one place, one point", 1, 1, 1, 1, 0, 0, 0, 0, 0, 0},
    {"no context", 6, 0, 1, 9, 0, 0, 0, 0, 0, 0},
    {"context is all", 7, 7, 1, 20, 0, 0, 0, 0, 0, 0},
    {"two readers", 9, 4, 1, 17, 1, 0, 0, 0, 0, 0},
};

const op_def op_set_conv_def = {.name = "set_conv",
                                .grad = grad_set_conv,
                                .ref = ref_set_conv,
                                .build = build,
                                .cases = cases,
                                .n_cases = sizeof cases / sizeof *cases};
const op_def op_set_conv_grad_def = {.name = "set_conv_grad", .ref = ref_set_conv_grad};
