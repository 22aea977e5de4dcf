/* normal.c: densities and draws of single points; every result is a number per row.
 *
 *   normal_logp   -y^2/2 - log(2 pi)/2 + logdet
 *   base_noise    standard normals by position (purpose, function, sample, row), or zeros
 */
#include "op/normal.h"

#include <math.h>

#include "base/rng_normal.h"

static bool is_numbers(const value *v, const value *like) {
    return v->cols == 1 && v->ld == 1 && v->ext == like->ext && v->rows == like->rows;
}

/* ---- record ---------------------------------------------------------------------------------- */

val op_normal_logp(graph *g, val y, val logdet) {
    if (!graph_ok(g)) return VAL_NONE;
    value vy = *graph_at(g, y), vl = *graph_at(g, logdet);
    if (!is_numbers(&vy, &vy) || (logdet != VAL_NONE && !is_numbers(&vl, &vy))) {
        graph_fail(g, "normal_logp: %s and %s must be numbers per row", vy.name, vl.name);
        return VAL_NONE;
    }
    val out = graph_scalars(g, "logp", vy.ext, vy.rows, vy.sampled || vl.sampled);
    instr *ins = graph_append(g, OP_normal_logp);
    if (!ins) return VAL_NONE;
    ins->in[NORMAL_Y] = y, ins->in[NORMAL_LOGDET] = logdet;
    ins->out[0] = out;
    graph_done(g, ins);
    return out;
}

val op_base_noise(graph *g, extent ext, bool sampled, int32_t purpose, bool zero) {
    if (graph_ok(g) && (purpose < 0 || purpose >= RNG_PURPOSES))
        graph_fail(g, "base_noise: there is no purpose %d", purpose);
    val out = graph_scalars(g, "base noise", ext, 1, sampled);
    instr *ins = graph_append(g, OP_base_noise);
    if (!ins) return VAL_NONE;
    ins->out[0] = out;
    ins->i[BASE_PURPOSE] = purpose, ins->i[BASE_ZERO] = zero;
    return out;
}

/* ---- reverse rules --------------------------------------------------------------------------- */

static void grad_normal_logp(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_normal_logp_grad);
    if (!ins) return;
    ins->in[NORMAL_GRAD_Y] = fwd->in[NORMAL_Y];
    ins->in[NORMAL_GRAD_G] = graph_grad(g, fwd->out[0]);
    graph_wire_grad(g, ins, NORMAL_GY, fwd->in[NORMAL_Y]);
    graph_wire_grad(g, ins, NORMAL_GLOGDET, fwd->in[NORMAL_LOGDET]);
}

/* ---- reference ------------------------------------------------------------------------------- */

static void ref_normal_logp(ref_run *r) {
    ref_array y = ref_in(r, NORMAL_Y), logdet = ref_in(r, NORMAL_LOGDET), out = ref_out(r, 0);
    if (r->failed) return;
    for (int64_t s = 0; s < out.samples; s++)
        for (int64_t i = 0; i < out.rows; i++) {
            double v = *ref_el(y, s, i, 0);
            *ref_el(out, s, i, 0) +=
                -0.5 * v * v - NORMAL_HALF_LOG_2PI + (logdet.at ? *ref_el(logdet, s, i, 0) : 0.0);
        }
}

static void ref_normal_logp_grad(ref_run *r) {
    ref_array y = ref_in(r, NORMAL_GRAD_Y), up = ref_in(r, NORMAL_GRAD_G);
    ref_array gy = ref_out(r, NORMAL_GY), glog = ref_out(r, NORMAL_GLOGDET);
    if (r->failed) return;
    for (int64_t s = 0; s < up.samples; s++)
        for (int64_t i = 0; i < up.rows; i++) {
            if (gy.at) *ref_el(gy, s, i, 0) -= *ref_el(up, s, i, 0) * *ref_el(y, s, i, 0);
            if (glog.at) *ref_el(glog, s, i, 0) += *ref_el(up, s, i, 0);
        }
}

static void ref_base_noise(ref_run *r) {
    ref_array out = ref_out(r, 0);
    if (r->failed || r->ins->i[BASE_ZERO]) return;
    bool sampled = r->f->plan->values[r->ins->out[0]].sampled;
    for (int64_t s = 0; s < out.samples; s++)
        for (int64_t i = 0; i < out.rows; i++) {
            rng_at at = gauss_place(r->f, r->ins->i[BASE_PURPOSE], sampled ? r->f->sample0 + s : 0);
            at.point = (uint32_t)(r->f->io->first_row + i);
            *ref_el(out, s, i, 0) += (double)rng_normal_at(gauss_key(r->f), at);
        }
}

/* ---- cases: a = sampled inputs and the like -------------------------------------------------- */

enum { SAMPLED_Y = 1, SAMPLED_OTHER = 2, NO_LOGDET = 4 };

static val points(case_build *b, const op_case *c) {
    return case_scalars(b, "y", EXT_N, (c->a & SAMPLED_Y) != 0, true, CASE_NORMAL(0, 1));
}

static void build_normal_logp(case_build *b, const op_case *c) {
    val y = points(b, c), logdet = VAL_NONE;
    if (!(c->a & NO_LOGDET))
        logdet =
            case_scalars(b, "logdet", EXT_N, (c->a & SAMPLED_OTHER) != 0, true, CASE_NORMAL(0, 1));
    case_output(b, op_normal_logp(b->g, y, logdet));
}

static void build_base_noise(case_build *b, const op_case *c) {
    bool sampled = (c->a & SAMPLED_Y) != 0, zero = (c->a & NO_LOGDET) != 0;
    case_output(b,
                op_base_noise(b->g, c->a & SAMPLED_OTHER ? EXT_M : EXT_N, sampled, RNG_BASE, zero));
}

static const op_case cases[] = {
    {"128 points", 128, 50, 1, 0, 0, 0, 0, CASE_BENCH, 0, 0},
    {"one point", 1, 0, 1, 0, 0, 0, 0, 0, 0, 0},
    {"all sampled", 21, 5, 3, SAMPLED_Y | SAMPLED_OTHER, 0, 0, 0, 0, 0, 0},
    {"shared y", 19, 19, 4, SAMPLED_OTHER, 0, 0, 0, 0, 0, 0},
    {"sampled y", 17, 0, 4, SAMPLED_Y, 0, 0, 0, 0, 0, 0},
    {"no logdet", 13, 7, 2, SAMPLED_Y | NO_LOGDET, 0, 0, 0, 0, 0, 0},
    {"n = 1000", 1000, 400, 1, 0, 0, 0, 0, 0, 0, 0},
    {"n = 8192", 8192, 4096, 1, 0, 0, 0, 0, CASE_NO_FD, 0, 0},
};
static const op_case draw_cases[] = {
    {"128 points", 128, 50, 1, 0, 0, 0, 0, CASE_BENCH | CASE_NO_FD, 0, 0},
    {"one point", 1, 0, 1, 0, 0, 0, 0, CASE_NO_FD, 0, 0},
    {"all sampled", 21, 5, 3, SAMPLED_Y | SAMPLED_OTHER, 0, 0, 0, CASE_NO_FD, 0, 0},
    {"shared first", 19, 19, 4, SAMPLED_OTHER, 0, 0, 0, CASE_NO_FD, 0, 0},
    {"sampled first", 17, 3, 4, SAMPLED_Y | NO_LOGDET, 0, 0, 0, CASE_NO_FD, 0, 0},
};

#define CASES(list) .cases = list, .n_cases = sizeof list / sizeof *list
const op_def op_normal_logp_def = {.name = "normal_logp",
                                   .grad = grad_normal_logp,
                                   .ref = ref_normal_logp,
                                   .build = build_normal_logp,
                                   CASES(cases)};
const op_def op_base_noise_def = {
    .name = "base_noise", .ref = ref_base_noise, .build = build_base_noise, CASES(draw_cases)};
const op_def op_normal_logp_grad_def = {.name = "normal_logp_grad", .ref = ref_normal_logp_grad};
