/* map.c: what the pointwise maps (rqs, affine) have in common: shape rule, wiring, cases. */
#include "op/map.h"

static bool same_rows(const value *a, const value *b) {
    return a->ext == b->ext && a->rows == b->rows;
}

static bool shapes_fit(graph *g, int32_t op, val y, val raw, val logdet, int32_t cols) {
    const value *vy = graph_at(g, y), *vr = graph_at(g, raw), *vl = graph_at(g, logdet);
    if (vy->cols != 1 || vy->ld != 1)
        graph_fail(g, "%s: %s is not a number per row", op_name(op), vy->name);
    else if (vr->cols != cols || !same_rows(vy, vr))
        graph_fail(g, "%s: %s must have %d columns and the rows of %s", op_name(op), vr->name, cols,
                   vy->name);
    else if (logdet != VAL_NONE && (vl->cols != 1 || vl->ld != 1 || !same_rows(vy, vl)))
        graph_fail(g, "%s: %s is not a number per row of %s", op_name(op), vl->name, vy->name);
    return graph_ok(g);
}

mapped map_record(graph *g, int32_t op, val y, val raw, val logdet, int32_t cols, instr **ins) {
    const mapped none = {VAL_NONE, VAL_NONE};
    *ins = NULL;
    if (!graph_ok(g) || !shapes_fit(g, op, y, raw, logdet, cols)) return none;
    value vy = *graph_at(g, y);
    bool sampled = vy.sampled || graph_at(g, raw)->sampled || graph_at(g, logdet)->sampled;
    mapped out;
    out.y = graph_scalars(g, op_name(op), vy.ext, vy.rows, sampled);
    out.logdet = graph_scalars(g, "logdet", vy.ext, vy.rows, sampled);
    *ins = graph_append(g, op);
    if (!*ins) return none;
    (*ins)->in[MAP_Y] = y, (*ins)->in[MAP_RAW] = raw, (*ins)->in[MAP_LOGDET] = logdet;
    (*ins)->out[MAP_OUT] = out.y, (*ins)->out[MAP_LOGDET_OUT] = out.logdet;
    graph_done(g, *ins);
    return out;
}

void map_record_grad(graph *g, int32_t op, const instr *fwd) {
    instr *ins = graph_append(g, op);
    if (!ins) return;
    ins->in[MAP_GRAD_Y] = fwd->in[MAP_Y];
    ins->in[MAP_GRAD_RAW] = fwd->in[MAP_RAW];
    ins->in[MAP_GRAD_OUT] = graph_grad(g, fwd->out[MAP_OUT]);
    ins->in[MAP_GRAD_LOGDET] = graph_grad(g, fwd->out[MAP_LOGDET_OUT]);
    for (int k = 0; k < INSTR_INT; k++) ins->i[k] = fwd->i[k];
    for (int k = 0; k < INSTR_REAL; k++) ins->f[k] = fwd->f[k];
    graph_wire_grad(g, ins, MAP_GY, fwd->in[MAP_Y]);
    graph_wire_grad(g, ins, MAP_GRAW, fwd->in[MAP_RAW]);
    /* The log-derivatives just add up, so without a gradient of logdet_out there is none to pass.
     */
    if (ins->in[MAP_GRAD_LOGDET] != VAL_NONE)
        graph_wire_grad(g, ins, MAP_GLOGDET, fwd->in[MAP_LOGDET]);
}

void map_case_inputs(case_build *b, const op_case *c, int32_t cols, double y_sd, double raw_sd,
                     val in[3]) {
    in[MAP_Y] =
        case_scalars(b, "y", EXT_N, (c->b & MAP_SAMPLED_Y) != 0, true, CASE_NORMAL(0, y_sd));
    in[MAP_RAW] = case_matrix(b, "raw", EXT_N, 0, cols, (c->b & MAP_SAMPLED_RAW) != 0, true,
                              CASE_NORMAL(0, raw_sd));
    in[MAP_LOGDET] = c->b & MAP_NO_LOGDET
                         ? VAL_NONE
                         : case_scalars(b, "logdet", EXT_N, (c->b & MAP_SAMPLED_LOGDET) != 0, true,
                                        CASE_NORMAL(0, 1));
}

void map_case_outputs(case_build *b, const op_case *c, mapped out) {
    if (!(c->b & MAP_ONLY_LOGDET)) case_output(b, out.y);
    if (!(c->b & MAP_ONLY_OUT)) case_output(b, out.logdet);
}
