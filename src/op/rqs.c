/* rqs.c: the rational-quadratic spline flow (equations in rqs_math.h).
 *
 *   to_noise   out = f(y),      logdet_out = logdet + L         (the network parametrises f)
 *   to_data    out = f^-1(y),   logdet_out = logdet - L(out)
 *
 * Outside [-B, B] both are the identity. A NaN comes out as NaN in both outputs. For finite y and
 * raw both outputs and all gradients are finite.
 *
 * Reverse, with (G, H) = gradients of (out, logdet_out) and q any of the bin's quantities:
 *   to_noise   dy = G g + H L_x,                     dq = G y_q + H L_q
 *   to_data    dy = E / g,  E = G - H L_x,           dq = -(E / g) y_q - H L_q
 * the second by the implicit function theorem: the square root is never differentiated. */
#include "op/rqs.h"

#include "op/rqs_math.h"

static void check_opts(graph *g, int32_t op, const rqs_opts *o) {
    const double least = 1e-5; /* narrower bins vanish in the rounding of the knots */
    if (!graph_ok(g)) return;
    if (o->bins < 1 || o->bins > RQS_BINS_MAX)
        graph_fail(g, "%s: %d bins, not 1 to %d", op_name(op), o->bins, RQS_BINS_MAX);
    else if (!(o->bound > 0 && o->bound <= 1e4))
        graph_fail(g, "%s: the bound is %g, not in (0, 10000]", op_name(op), o->bound);
    else if (!(o->min_width >= least && o->bins * o->min_width < 1))
        graph_fail(g, "%s: the least width is %g with %d bins", op_name(op), o->min_width, o->bins);
    else if (!(o->min_height >= least && o->bins * o->min_height < 1))
        graph_fail(g, "%s: the least height is %g with %d bins", op_name(op), o->min_height,
                   o->bins);
    else if (!(o->min_derivative >= least && o->min_derivative < 1))
        graph_fail(g, "%s: the least derivative is %g", op_name(op), o->min_derivative);
}

static mapped record(graph *g, int32_t op, val y, val raw, val logdet, const rqs_opts *o) {
    check_opts(g, op, o);
    instr *ins;
    mapped out = map_record(g, op, y, raw, logdet, 3 * o->bins - 1, &ins);
    if (!ins) return out;
    ins->i[RQS_BINS] = o->bins;
    ins->f[RQS_BOUND] = o->bound;
    ins->f[RQS_MIN_WIDTH] = o->min_width;
    ins->f[RQS_MIN_HEIGHT] = o->min_height;
    ins->f[RQS_MIN_DERIVATIVE] = o->min_derivative;
    return out;
}

mapped op_rqs_to_noise(graph *g, val y, val raw, val logdet, const rqs_opts *o) {
    return record(g, OP_rqs_to_noise, y, raw, logdet, o);
}

mapped op_rqs_to_data(graph *g, val y, val raw, val logdet, const rqs_opts *o) {
    return record(g, OP_rqs_to_data, y, raw, logdet, o);
}

static void grad_to_noise(graph *g, const instr *fwd) {
    map_record_grad(g, OP_rqs_to_noise_grad, fwd);
}

static void grad_to_data(graph *g, const instr *fwd) {
    map_record_grad(g, OP_rqs_to_data_grad, fwd);
}

/* ---- reference ------------------------------------------------------------------------------- */

static rqs_opts opts_of(const instr *ins) {
    return (rqs_opts){.bins = ins->i[RQS_BINS],
                      .bound = ins->f[RQS_BOUND],
                      .min_width = ins->f[RQS_MIN_WIDTH],
                      .min_height = ins->f[RQS_MIN_HEIGHT],
                      .min_derivative = ins->f[RQS_MIN_DERIVATIVE]};
}

static void forward(ref_run *r, bool to_noise) {
    ref_array y = ref_in(r, MAP_Y), raw = ref_in(r, MAP_RAW), logdet = ref_in(r, MAP_LOGDET);
    ref_array out = ref_out(r, MAP_OUT), logdet_out = ref_out(r, MAP_LOGDET_OUT);
    if (r->failed) return;
    rqs_opts o = opts_of(r->ins);
    rqs_spline f;
    for (int64_t s = 0; s < out.samples; s++)
        for (int64_t i = 0; i < out.rows; i++) {
            double v = *ref_el(y, s, i, 0), L = isnan(v) ? v : 0.0;
            rqs_build(&o, ref_el(raw, s, i, 0), &f);
            rqs_place a = to_noise ? rqs_place_x(&f, v) : rqs_place_y(&f, v);
            if (a.inside) {
                v = to_noise ? rqs_y_of(&f, &a) : rqs_x_of(&f, &a);
                L = to_noise ? rqs_log_slope(&a) : -rqs_log_slope(&a);
            }
            *ref_el(out, s, i, 0) += v;
            *ref_el(logdet_out, s, i, 0) += L + (logdet.at ? *ref_el(logdet, s, i, 0) : 0.0);
        }
}

/* a Y + b L for each quantity of the bin. */
static rqs_partials combine(double a, const rqs_partials *y, double b, const rqs_partials *L) {
    return (rqs_partials){.x = a * y->x + b * L->x,
                          .xk = a * y->xk + b * L->xk,
                          .yk = a * y->yk + b * L->yk,
                          .w = a * y->w + b * L->w,
                          .h = a * y->h + b * L->h,
                          .d0 = a * y->d0 + b * L->d0,
                          .d1 = a * y->d1 + b * L->d1};
}

static void backward(ref_run *r, bool to_noise) {
    ref_array y = ref_in(r, MAP_GRAD_Y), raw = ref_in(r, MAP_GRAD_RAW);
    ref_array up = ref_in(r, MAP_GRAD_OUT), up_log = ref_in(r, MAP_GRAD_LOGDET);
    ref_array gy = ref_out(r, MAP_GY), graw = ref_out(r, MAP_GRAW), glog = ref_out(r, MAP_GLOGDET);
    if (r->failed) return;
    rqs_opts o = opts_of(r->ins);
    rqs_spline f;
    int64_t samples = up.at ? up.samples : up_log.samples;
    for (int64_t s = 0; s < samples; s++)
        for (int64_t i = 0; i < y.rows; i++) {
            double v = *ref_el(y, s, i, 0);
            double G = up.at ? *ref_el(up, s, i, 0) : 0.0;
            double H = up_log.at ? *ref_el(up_log, s, i, 0) : 0.0;
            if (glog.at) *ref_el(glog, s, i, 0) += H;
            rqs_build(&o, ref_el(raw, s, i, 0), &f);
            rqs_place a = to_noise ? rqs_place_x(&f, v) : rqs_place_y(&f, v);
            double dv = G;
            if (a.inside) {
                rqs_partials dy, dL;
                rqs_derive(&a, &dy, &dL);
                double E = (G - H * dL.x) / dy.x;
                rqs_partials q = to_noise ? combine(G, &dy, H, &dL) : combine(-E, &dy, -H, &dL);
                dv = to_noise ? q.x : E;
                if (graw.at) rqs_raw_grad(&f, a.k, &q, ref_el(graw, s, i, 0));
            }
            if (gy.at) *ref_el(gy, s, i, 0) += dv;
        }
}

static void ref_to_noise(ref_run *r) {
    forward(r, true);
}
static void ref_to_data(ref_run *r) {
    forward(r, false);
}
static void ref_to_noise_grad(ref_run *r) {
    backward(r, true);
}
static void ref_to_data_grad(ref_run *r) {
    backward(r, false);
}

/* ---- cases: a = K, b = bits of map.h, c = raw spread in tenths ------------------------------- */

static mapped build(case_build *b, const op_case *c,
                    mapped (*op)(graph *, val, val, val, const rqs_opts *)) {
    const rqs_opts o = {c->a, c->a == 4 ? 3.0 : 5.0, 1e-3, 1e-3, 1e-3};
    val in[3];
    map_case_inputs(b, c, 3 * c->a - 1, 2.0, c->c / 10.0, in);
    return op(b->g, in[MAP_Y], in[MAP_RAW], in[MAP_LOGDET], &o);
}

static void build_to_noise(case_build *b, const op_case *c) {
    map_case_outputs(b, c, build(b, c, op_rqs_to_noise));
}

static void build_to_data(case_build *b, const op_case *c) {
    map_case_outputs(b, c, build(b, c, op_rqs_to_data));
}

enum { ALL_SAMPLED = MAP_SAMPLED_Y | MAP_SAMPLED_RAW | MAP_SAMPLED_LOGDET };
/* Single precision is as good as the conditioning allows: next to a narrow bin the log-derivative
 * changes by thousands per unit of y, hence the tolerances. */
static const op_case cases[] = {
    {"128 points", 128, 50, 1, 10, 0, 10, 0, CASE_BENCH, 0, 5e-4},
    {"128 points, 8 samples", 128, 50, 8, 10, ALL_SAMPLED, 10, 0, CASE_BENCH | CASE_NO_FD, 0, 5e-4},
    {"one point", 1, 0, 1, 10, 0, 10, 0, 0, 0, 5e-4},
    {"small raw", 37, 37, 1, 10, MAP_NO_LOGDET, 1, 0, 0, 0, 5e-4},
    {"wild raw", 65, 9, 1, 10, 0, 40, 0, CASE_NO_FD, 0, 1e-2},
    {"one bin", 16, 3, 1, 1, 0, 10, 0, 0, 0, 5e-4},
    {"4 bins", 15, 3, 1, 4, 0, 15, 0, 0, 0, 5e-4},
    {"17 bins", 31, 3, 1, 17, 0, 10, 0, 0, 0, 5e-4},
    {"all sampled", 21, 5, 3, 10, ALL_SAMPLED, 10, 0, 0, 0, 5e-4},
    {"shared y", 19, 0, 4, 10, MAP_SAMPLED_RAW | MAP_NO_LOGDET, 10, 0, 0, 0, 5e-4},
    {"shared raw", 17, 17, 4, 10, MAP_SAMPLED_Y, 10, 0, 0, 0, 5e-4},
    {"sampled logdet", 17, 17, 3, 10, MAP_SAMPLED_LOGDET, 10, 0, 0, 0, 5e-4},
    {"only out", 40, 9, 2, 10, MAP_SAMPLED_RAW | MAP_ONLY_OUT, 10, 0, 0, 0, 5e-4},
    {"only logdet", 40, 9, 2, 10, MAP_SAMPLED_Y | MAP_ONLY_LOGDET, 10, 0, 0, 0, 5e-4},
    {"n = 1000", 1000, 400, 1, 10, 0, 10, 0, CASE_NO_FD, 0, 1e-3},
    {"n = 8192", 8192, 4096, 1, 10, 0, 10, 0, CASE_NO_FD, 0, 1e-3},
};

const op_def op_rqs_to_noise_def = {.name = "rqs_to_noise",
                                    .grad = grad_to_noise,
                                    .ref = ref_to_noise,
                                    .build = build_to_noise,
                                    .cases = cases,
                                    .n_cases = sizeof cases / sizeof *cases};
const op_def op_rqs_to_data_def = {.name = "rqs_to_data",
                                   .grad = grad_to_data,
                                   .ref = ref_to_data,
                                   .build = build_to_data,
                                   .cases = cases,
                                   .n_cases = sizeof cases / sizeof *cases};
const op_def op_rqs_to_noise_grad_def = {.name = "rqs_to_noise_grad", .ref = ref_to_noise_grad};
const op_def op_rqs_to_data_grad_def = {.name = "rqs_to_data_grad", .ref = ref_to_data_grad};
