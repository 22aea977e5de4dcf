/* attention_chunks.c: attention whose keys arrive in chunks, for sets that are not held at once.
 *
 * The state of a query and head is m, the largest score so far, and z and u, the sums of exp(x - m)
 * and of exp(x - m) v over the keys so far, x = q.k / sqrt(D) being the score of a key and v its
 * value. A key that comes in changes them to
 *
 *   m' = max(m, x),   z' = exp(m - m') z + exp(x - m'),   u' = exp(m - m') u + exp(x - m') v
 *
 * and after the last one o = q + u / z. An empty state is all zeros: with z = 0 m says nothing. All
 * of it in double, on every backend: thousands of chunks may pass. There is no gradient: this is
 * for prediction. */
#include <math.h>

#include "op/attention.h"
#include "op/op.h"

/* ---- recording ------------------------------------------------------------------------------- */

val op_attention_state(graph *g, const char *name, int32_t queries, int32_t width, int32_t heads) {
    return graph_state(g, name, queries, width + 2 * heads, TYPE_F64);
}

void op_attention_reset(graph *g, val state) {
    instr *ins = graph_append(g, OP_attention_reset);
    if (!ins) return;
    const value *v = graph_at(g, state);
    if (v->store != STORE_STATE || v->type != TYPE_F64)
        graph_fail(g, "attention: %s is not an attention state", v->name);
    ins->out[ATTENTION_STATE] = state;
}

static bool check(graph *g, val state, val qv, const attention_opts *o) {
    if (!graph_ok(g)) return false;
    const value *vs = graph_at(g, state), *vq = graph_at(g, qv);
    bool fits = vs->store == STORE_STATE && vs->type == TYPE_F64 && vq->ext == EXT_FIXED &&
                vq->rows == vs->rows && !vq->sampled && vs->cols == o->width + 2 * o->heads &&
                o->heads > 0 && o->width % o->heads == 0 && o->q_col >= 0 &&
                o->q_col + o->width <= vq->cols;
    if (!fits) graph_fail(g, "attention: the state %s does not fit %s", vs->name, vq->name);
    return fits;
}

static void note(instr *ins, const attention_opts *o) {
    ins->i[ATTENTION_WIDTH] = o->width, ins->i[ATTENTION_HEADS] = o->heads;
    ins->i[ATTENTION_QCOL] = o->q_col;
    ins->i[ATTENTION_KCOL] = o->k_col, ins->i[ATTENTION_VCOL] = o->v_col;
    ins->i[ATTENTION_QUERIES] = EXT_FIXED, ins->i[ATTENTION_KEYS] = (int32_t)o->keys;
}

void op_attention_accumulate(graph *g, val state, val qv, val kv, const attention_opts *o) {
    if (!check(g, state, qv, o)) return;
    const value *vk = graph_at(g, kv);
    if (kv == VAL_NONE || vk->sampled || o->k_col < 0 || o->k_col + o->width > vk->cols ||
        o->v_col < 0 || o->v_col + o->width > vk->cols ||
        (o->keys == EXT_M && vk->ext == EXT_FIXED)) {
        graph_fail(g, "attention: %s does not hold keys and values of width %d", vk->name,
                   o->width);
        return;
    }
    instr *ins = graph_append(g, OP_attention_accumulate);
    if (!ins) return;
    ins->in[ATTENTION_QV] = qv, ins->in[ATTENTION_KV] = kv;
    ins->out[ATTENTION_STATE] = state;
    ins->acc = 1u << ATTENTION_STATE;
    note(ins, o);
}

val op_attention_finish(graph *g, val state, val qv, const attention_opts *o) {
    if (!check(g, state, qv, o)) return VAL_NONE;
    val out = graph_matrix(g, "attention", EXT_FIXED, graph_at(g, qv)->rows, o->width, false);
    instr *ins = graph_append(g, OP_attention_finish);
    if (!ins) return VAL_NONE;
    ins->in[ATTENTION_FINISH_STATE] = state, ins->in[ATTENTION_FINISH_QV] = qv;
    ins->out[ATTENTION_O] = out;
    note(ins, o);
    graph_done(g, ins);
    return out;
}

/* ---- reference ------------------------------------------------------------------------------- */

static void ref_reset(ref_run *r) {
    ref_out(r, ATTENTION_STATE); /* zeros */
}

void attention_absorb(int64_t dh, double x, const double *v, double *u, double *m, double *z) {
    const double most = *z > 0.0 && *m > x ? *m : x;
    const double old = *z > 0.0 ? exp(*m - most) : 0.0, fresh = exp(x - most);
    for (int64_t c = 0; c < dh; c++) u[c] = old * u[c] + fresh * v[c];
    *z = old * *z + fresh;
    *m = most;
}

static void ref_accumulate(ref_run *r) {
    const int32_t *a = r->ins->i;
    const int64_t width = a[ATTENTION_WIDTH], heads = a[ATTENTION_HEADS], dh = width / heads;
    ref_array qv = ref_in(r, ATTENTION_QV), kv = ref_in(r, ATTENTION_KV);
    ref_array state = ref_out(r, ATTENTION_STATE);
    if (r->failed) return;
    const value *vk = &r->f->plan->values[r->ins->in[ATTENTION_KV]];
    const int64_t nk = attention_rows(r->f, vk, a[ATTENTION_KEYS]);
    for (int64_t i = 0; i < qv.rows; i++)
        for (int64_t h = 0; h < heads; h++) {
            const double *q = ref_el(qv, 0, i, a[ATTENTION_QCOL] + h * dh);
            double *u = ref_el(state, 0, i, h * dh), *m = ref_el(state, 0, i, width + h);
            double *z = ref_el(state, 0, i, width + heads + h);
            for (int64_t j = 0; j < nk; j++) {
                const double *k = ref_el(kv, 0, j, a[ATTENTION_KCOL] + h * dh);
                const double *v = ref_el(kv, 0, j, a[ATTENTION_VCOL] + h * dh);
                double x = 0.0;
                for (int64_t c = 0; c < dh; c++) x += q[c] * k[c];
                attention_absorb(dh, x / sqrt((double)width), v, u, m, z);
            }
        }
}

static void ref_finish(ref_run *r) {
    const int64_t width = r->ins->i[ATTENTION_WIDTH], heads = r->ins->i[ATTENTION_HEADS];
    ref_array state = ref_in(r, ATTENTION_FINISH_STATE), qv = ref_in(r, ATTENTION_FINISH_QV);
    ref_array o = ref_out(r, ATTENTION_O);
    if (r->failed) return;
    for (int64_t i = 0; i < o.rows; i++)
        for (int64_t c = 0; c < o.cols; c++) {
            double z = *ref_el(state, 0, i, width + heads + c * heads / width);
            *ref_el(o, 0, i, c) += *ref_el(qv, 0, i, r->ins->i[ATTENTION_QCOL] + c);
            if (z > 0.0) *ref_el(o, 0, i, c) += *ref_el(state, 0, i, c) / z;
        }
}

/* ---- cases: a = D, b = H, c = chunks, d = queries -------------------------------------------- */

static void build(case_build *b, const op_case *c) {
    const case_fill unit = CASE_NORMAL(0, 1);
    attention_opts o = {.width = c->a, .heads = c->b, .v_col = c->a, .queries = EXT_FIXED};
    val q = case_matrix(b, "q", EXT_FIXED, c->d, c->a, false, false, unit);
    val state = op_attention_state(b->g, "state", c->d, c->a, c->b);
    op_attention_reset(b->g, state);
    for (int32_t k = 0; k < c->c; k++) {
        val kv = case_matrix(b, "kv", EXT_N, 0, 2 * c->a, false, false, unit);
        o.keys = k % 2 ? EXT_M : EXT_N;
        op_attention_accumulate(b->g, state, q, kv, &o);
    }
    case_output(b, op_attention_finish(b->g, state, q, &o));
}

static const op_case cases[] = {
    {"no chunk", 3, 0, 1, 8, 2, 0, 2, CASE_NO_FD, 0, 0},
    {"one key", 1, 0, 1, 8, 2, 1, 1, CASE_NO_FD, 0, 0},
    {"an empty chunk between", 9, 0, 1, 8, 2, 3, 3, CASE_NO_FD, 0, 0},
    {"three chunks", 33, 12, 1, 16, 4, 3, 5, CASE_NO_FD, 0, 0},
    {"odd widths", 20, 7, 1, 21, 3, 2, 2, CASE_NO_FD, 0, 0},
    {"three chunks of 1000", 1000, 400, 1, 64, 4, 3, 1, CASE_NO_FD, 0, 0},
    {"a chunk of 8192", 8192, 4096, 1, 64, 4, 2, 1, CASE_BENCH | CASE_NO_FD, 0, 0},
};

const op_def op_attention_reset_def = {.name = "attention_reset", .ref = ref_reset};
const op_def op_attention_accumulate_def = {.name = "attention_accumulate", .ref = ref_accumulate};
const op_def op_attention_finish_def = {.name = "attention_finish",
                                        .ref = ref_finish,
                                        .build = build,
                                        .cases = cases,
                                        .n_cases = sizeof cases / sizeof *cases};
