/* exchangeable.c: the log-density of numbers that may change places: they share a random mean.
 *
 *   u_i = h + e_i,  h ~ N(0, c),  e_i ~ N(0, a),  so u ~ N(0, a I + c 1 1^T)        u (n), n >= 1
 *   law = (log v, logit(c / v)),  v = a + c
 *
 * With b = a + n c, S = sum u, Q = sum u^2:
 *   log p = -(n log 2 pi + (n - 1) log a + log b + Q / a - c S^2 / (a b)) / 2
 *   du_i  = -(u_i - c S / b) / a
 * in O(n) and in double on every backend. */
#include <math.h>

#include "op/op.h"

enum { EXCHANGEABLE_U, EXCHANGEABLE_LAW, EXCHANGEABLE_G }; /* in; G: of the grad */
enum { EXCHANGEABLE_GU, EXCHANGEABLE_GLAW };               /* out of the grad    */

val op_exchangeable_logp(graph *g, val u, val law) {
    if (!graph_ok(g)) return VAL_NONE;
    const value *vu = graph_at(g, u), *vl = graph_at(g, law);
    if (vu->ld != 1 || vu->sampled || vl->ext != EXT_FIXED || vl->rows != 1 || vl->cols != 2) {
        graph_fail(g, "exchangeable_logp: %s must be numbers per row, %s 1 x 2", vu->name,
                   vl->name);
        return VAL_NONE;
    }
    val logp = graph_scalar(g, "exchangeable", false);
    instr *ins = graph_append(g, OP_exchangeable_logp);
    if (!ins) return VAL_NONE;
    ins->in[EXCHANGEABLE_U] = u, ins->in[EXCHANGEABLE_LAW] = law, ins->out[0] = logp;
    graph_done(g, ins);
    return logp;
}

static void grad_logp(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_exchangeable_logp_grad);
    if (!ins) return;
    ins->in[EXCHANGEABLE_U] = fwd->in[EXCHANGEABLE_U];
    ins->in[EXCHANGEABLE_LAW] = fwd->in[EXCHANGEABLE_LAW];
    ins->in[EXCHANGEABLE_G] = graph_grad(g, fwd->out[0]);
    graph_wire_grad(g, ins, EXCHANGEABLE_GU, fwd->in[EXCHANGEABLE_U]);
    graph_wire_grad(g, ins, EXCHANGEABLE_GLAW, fwd->in[EXCHANGEABLE_LAW]);
}

/* ---- reference ------------------------------------------------------------------------------- */

typedef struct sums {
    double n, a, b, c, S, Q;
} sums;

static sums sums_of(ref_array u, ref_array law) {
    const double v = exp(law.at[0]), n = (double)u.rows;
    sums t = {.n = n, .a = v / (1 + exp(law.at[1])), .c = v / (1 + exp(-law.at[1]))};
    t.b = t.a + n * t.c;
    for (int64_t i = 0; i < u.rows; i++) t.S += u.at[i], t.Q += u.at[i] * u.at[i];
    return t;
}

static void ref_logp(ref_run *r) {
    ref_array u = ref_in(r, EXCHANGEABLE_U), law = ref_in(r, EXCHANGEABLE_LAW), y = ref_out(r, 0);
    if (r->failed) return;
    const sums t = sums_of(u, law);
    y.at[0] -= 0.5 * (t.n * log(2 * 3.14159265358979323846) + (t.n - 1) * log(t.a) + log(t.b) +
                      t.Q / t.a - t.c * t.S * t.S / (t.a * t.b));
}

static void ref_logp_grad(ref_run *r) {
    ref_array u = ref_in(r, EXCHANGEABLE_U), law = ref_in(r, EXCHANGEABLE_LAW);
    ref_array up = ref_in(r, EXCHANGEABLE_G);
    ref_array gu = ref_out(r, EXCHANGEABLE_GU), glaw = ref_out(r, EXCHANGEABLE_GLAW);
    if (r->failed) return;
    const sums t = sums_of(u, law);
    const double a = t.a, b = t.b, c = t.c, S2 = t.S * t.S, g = up.at[0];
    for (int64_t i = 0; gu.at && i < u.rows; i++) gu.at[i] -= g * (u.at[i] - c * t.S / b) / a;
    if (!glaw.at) return;
    const double by_a =
        -0.5 * ((t.n - 1) / a + 1 / b - t.Q / (a * a) + c * S2 * (a + b) / (a * a * b * b));
    const double by_c = -0.5 * (t.n / b - S2 / (a * b) + c * S2 * t.n / (a * b * b));
    glaw.at[0] += g * (by_a * a + by_c * c);
    glaw.at[1] += g * (by_c - by_a) * a * c / (a + c); /* d c = -d a = a c / v d logit */
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void build(case_build *b, const op_case *c) {
    (void)c;
    val u = case_scalars(b, "u", EXT_N, false, true, CASE_NORMAL(0.5, 1));
    case_output(b, op_exchangeable_logp(b->g, u, case_weight(b, "law", 1, 2, 0.5)));
}

static const op_case cases[] = {
    {"one number", 1, 0, 1, 0, 0, 0, 0, CASE_DOUBLE, 0, 0},
    {"7 numbers", 7, 3, 1, 0, 0, 0, 0, CASE_DOUBLE, 0, 0},
    {"128 numbers", 128, 50, 1, 0, 0, 0, 0, CASE_DOUBLE, 0, 0},
    {"n = 1000", 1000, 400, 1, 0, 0, 0, 0, CASE_DOUBLE | CASE_NO_FD, 0, 0},
};

const op_def op_exchangeable_logp_def = {.name = "exchangeable_logp",
                                         .grad = grad_logp,
                                         .ref = ref_logp,
                                         .build = build,
                                         .cases = cases,
                                         .n_cases = sizeof cases / sizeof *cases};
const op_def op_exchangeable_logp_grad_def = {.name = "exchangeable_logp_grad",
                                              .ref = ref_logp_grad};
