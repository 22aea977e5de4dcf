/* pool.c: the sum or the mean over the rows of a set, whole or in chunks.
 *
 *   y[s,0,:] = sum_{r < R} h[s,r,:]   or   (1/R) sum_{r < R} h[s,r,:]      h (.., C), y (1,C)
 *
 * over the first R rows: all of h, the points seen, or the context points. An empty set gives
 * zeros. Reverse: dh[s,r,:] += dy[s,0,:] (times 1/R for the mean) for r < R.
 *
 * In chunks: a state of C sums and a count, in double on every backend, since 80 000 additions in
 * float lose three to four digits. No gradient: this is for prediction and growing sets. */
#include "op/pool.h"

#include "op/op.h"

/* ---- whole ----------------------------------------------------------------------------------- */

val op_pool(graph *g, val h, extent over, bool mean) {
    if (!graph_ok(g)) return VAL_NONE;
    value vh = *graph_at(g, h);
    if (h == VAL_NONE || !graph_has_rows(&vh, over) || vh.ld != graph_pad(vh.cols)) {
        graph_fail(g, "pool: %s is not a matrix with the rows asked for", vh.name);
        return VAL_NONE;
    }
    val y = graph_matrix(g, "pool", EXT_FIXED, 1, vh.cols, vh.sampled);
    instr *ins = graph_append(g, OP_pool);
    if (!ins) return VAL_NONE;
    ins->in[POOL_H] = h;
    ins->out[POOL_Y] = y;
    ins->i[POOL_OVER] = (int32_t)over, ins->i[POOL_MEAN] = mean;
    graph_done(g, ins);
    return y;
}

static void grad_pool(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_pool_grad);
    if (!ins) return;
    ins->in[POOL_GRAD_G] = graph_grad(g, fwd->out[POOL_Y]);
    ins->i[POOL_OVER] = fwd->i[POOL_OVER], ins->i[POOL_MEAN] = fwd->i[POOL_MEAN];
    graph_wire_grad(g, ins, POOL_GH, fwd->in[POOL_H]);
}

static void ref_pool(ref_run *r) {
    ref_array h = ref_in(r, POOL_H), y = ref_out(r, POOL_Y);
    if (r->failed) return;
    const value *vh = &r->f->plan->values[r->ins->in[POOL_H]];
    int64_t rows = pool_rows(r->f, vh, r->ins->i[POOL_OVER]);
    double factor = r->ins->i[POOL_MEAN] && rows ? 1.0 / (double)rows : 1.0;
    for (int64_t s = 0; s < h.samples; s++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t c = 0; c < h.cols; c++)
                *ref_el(y, s, 0, c) += factor * *ref_el(h, s, i, c);
}

static void ref_pool_grad(ref_run *r) {
    ref_array gy = ref_in(r, POOL_GRAD_G), gh = ref_out(r, POOL_GH);
    if (r->failed || !gh.at) return;
    const value *vh = &r->f->plan->values[r->ins->out[POOL_GH]];
    int64_t rows = pool_rows(r->f, vh, r->ins->i[POOL_OVER]);
    double factor = r->ins->i[POOL_MEAN] && rows ? 1.0 / (double)rows : 1.0;
    for (int64_t s = 0; s < gh.samples; s++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t c = 0; c < gh.cols; c++)
                *ref_el(gh, s, i, c) += factor * *ref_el(gy, s, 0, c);
}

/* ---- in chunks ------------------------------------------------------------------------------- */

val op_pool_state(graph *g, const char *name, int32_t width) {
    return graph_state(g, name, 1, width + 1, TYPE_F64);
}

static bool is_state(graph *g, val state, int32_t width) {
    const value *v = graph_at(g, state);
    if (v->store == STORE_STATE && v->type == TYPE_F64 && (width < 0 || v->cols == width + 1))
        return true;
    graph_fail(g, "pool: %s is not a state for this width", v->name);
    return false;
}

void op_pool_reset(graph *g, val state) {
    if (!graph_ok(g) || !is_state(g, state, -1)) return;
    instr *ins = graph_append(g, OP_pool_reset);
    if (ins) ins->out[POOL_STATE] = state;
}

void op_pool_accumulate(graph *g, val state, val h) {
    if (!graph_ok(g) || !is_state(g, state, graph_at(g, h)->cols)) return;
    if (graph_at(g, h)->sampled) {
        graph_fail(g, "pool: a state takes no samples (%s)", graph_at(g, h)->name);
        return;
    }
    instr *ins = graph_append(g, OP_pool_accumulate);
    if (!ins) return;
    ins->in[POOL_H] = h;
    ins->out[POOL_STATE] = state;
    ins->acc = 1u << POOL_STATE;
    ins->i[POOL_OVER] = EXT_FIXED;
}

val op_pool_finish(graph *g, val state, bool mean) {
    if (!graph_ok(g) || !is_state(g, state, -1)) return VAL_NONE;
    val y = graph_matrix(g, "pool", EXT_FIXED, 1, graph_at(g, state)->cols - 1, false);
    instr *ins = graph_append(g, OP_pool_finish);
    if (!ins) return VAL_NONE;
    ins->in[POOL_STATE] = state;
    ins->out[POOL_Y] = y;
    ins->i[POOL_MEAN] = mean;
    return y;
}

static void ref_pool_reset(ref_run *r) {
    ref_out(r, POOL_STATE); /* zeros */
}

static void ref_pool_accumulate(ref_run *r) {
    ref_array h = ref_in(r, POOL_H), state = ref_out(r, POOL_STATE);
    if (r->failed) return;
    for (int64_t i = 0; i < h.rows; i++)
        for (int64_t c = 0; c < h.cols; c++) state.at[c] += h.at[i * h.cols + c];
    state.at[h.cols] += (double)h.rows;
}

static void ref_pool_finish(ref_run *r) {
    ref_array state = ref_in(r, POOL_STATE), y = ref_out(r, POOL_Y);
    if (r->failed) return;
    double count = state.at[y.cols];
    for (int64_t c = 0; c < y.cols; c++)
        y.at[c] += r->ins->i[POOL_MEAN] && count > 0.0 ? state.at[c] / count : state.at[c];
}

/* ---- cases: a = C, b = 1 for the mean, c = extent or chunks, d = 1 for two readers ----------- */

static void build(case_build *b, const op_case *c) {
    val h = case_matrix(b, "h", EXT_N, 0, c->a, c->S > 1, true, CASE_NORMAL(0.1, 1));
    if (c->d) case_output(b, op_pool(b->g, h, EXT_N, true));
    case_output(b, op_pool(b->g, h, (extent)c->c, c->b != 0));
}

static const op_case cases[] = {
    {"mean, 64", 128, 50, 1, 64, 1, EXT_N, 0, CASE_BENCH, 128.0 * 64, 0},
    {"sum, context", 128, 50, 1, 64, 0, EXT_M, 0, 0, 0, 0},
    {"one point, one column", 1, 0, 1, 1, 1, EXT_N, 0, 0, 0, 0},
    {"mean, seen", 128, 50, 1, 64, 1, EXT_K, 0, 0, 0, 0},
    {"sum, seen, no context", 6, 0, 2, 20, 0, EXT_K, 0, 0, 0, 0},
    {"no context", 5, 0, 2, 9, 1, EXT_M, 0, 0, 0, 0},
    {"context is all", 6, 6, 1, 17, 1, EXT_M, 0, 0, 0, 0},
    {"samples, all rows", 33, 12, 3, 21, 0, EXT_FIXED, 0, 0, 0, 0},
    {"samples, context", 33, 12, 3, 21, 1, EXT_M, 0, 0, 0, 0},
    {"two readers", 9, 4, 2, 18, 0, EXT_M, 1, 0, 0, 0},
    {"two readers, seen", 9, 4, 2, 18, 0, EXT_K, 1, 0, 0, 0},
    {"n = 1000", 1000, 400, 1, 48, 1, EXT_N, 0, CASE_NO_FD, 0, 0},
    {"n = 8192", 8192, 4096, 1, 16, 1, EXT_M, 0, CASE_NO_FD, 0, 0},
    {"100 000 points", 100000, 50000, 1, 16, 1, EXT_N, 0, CASE_NO_FD | CASE_LARGE, 0, 0},
};

static void build_chunks(case_build *b, const op_case *c) {
    val state = op_pool_state(b->g, "state", c->a);
    op_pool_reset(b->g, state);
    for (int32_t k = 0; k < c->c; k++)
        op_pool_accumulate(
            b->g, state,
            case_matrix(b, "h", k % 2 ? EXT_M : EXT_N, 0, c->a, false, false, CASE_NORMAL(0.1, 1)));
    case_output(b, op_pool_finish(b->g, state, c->b != 0));
}

static const op_case chunk_cases[] = {
    {"no chunk", 3, 0, 1, 8, 1, 0, 0, CASE_NO_FD, 0, 0},
    {"one point", 1, 0, 1, 5, 1, 1, 0, CASE_NO_FD, 0, 0},
    {"an empty chunk between", 9, 0, 1, 16, 1, 3, 0, CASE_NO_FD, 0, 0},
    {"sum of three chunks", 33, 12, 1, 21, 0, 3, 0, CASE_NO_FD, 0, 0},
    {"chunks of 8192", 8192, 4096, 1, 64, 1, 2, 0, CASE_BENCH | CASE_NO_FD, 0, 0},
    {"a chunk of 100 000", 100000, 0, 1, 16, 0, 1, 0, CASE_NO_FD | CASE_LARGE, 0, 0},
};

const op_def op_pool_def = {.name = "pool",
                            .grad = grad_pool,
                            .ref = ref_pool,
                            .build = build,
                            .cases = cases,
                            .n_cases = sizeof cases / sizeof *cases};
const op_def op_pool_grad_def = {.name = "pool_grad", .ref = ref_pool_grad};
const op_def op_pool_reset_def = {.name = "pool_reset", .ref = ref_pool_reset};
const op_def op_pool_accumulate_def = {.name = "pool_accumulate", .ref = ref_pool_accumulate};
const op_def op_pool_finish_def = {.name = "pool_finish",
                                   .ref = ref_pool_finish,
                                   .build = build_chunks,
                                   .cases = chunk_cases,
                                   .n_cases = sizeof chunk_cases / sizeof *chunk_cases};
