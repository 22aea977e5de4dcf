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

/* ---- cases: a = C, b = 1 for the mean, c = extent, d = 1 for two readers ----------- */

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

const op_def op_pool_def = {.name = "pool",
                            .grad = grad_pool,
                            .ref = ref_pool,
                            .build = build,
                            .cases = cases,
                            .n_cases = sizeof cases / sizeof *cases};
const op_def op_pool_grad_def = {.name = "pool_grad", .ref = ref_pool_grad};
