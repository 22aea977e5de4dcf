/* attention.c: multi-head attention with the projected query as residual.
 *
 *   per head h, columns of width D/H:   A = softmax_rows(q k^T / sqrt(D)),   o = q + A v
 *
 * q (nq,D) is a block of columns of qv, k and v (nk,D) are blocks of kv; only the first m or k rows
 * of each are used where the extent says so. The divisor is the square root of the full width. An
 * empty key set gives o = q. The log of the sum of exponentials, lse (nq,H), is kept: it gives the
 * weights back in the reverse pass, so that A is never stored.
 *
 * Reverse: with g = do,  dv += A^T g;  dA = g v^T,  dS = A * (dA - rowsum(A * dA)) / sqrt(D);
 * dq += g + dS k,  dk += dS^T q. In self-attention (qv is kv) all three go to the same gradient. */
#include "op/attention.h"

#include <math.h>

#include "op/op.h"

/* ---- recording ------------------------------------------------------------------------------- */

static bool disjoint(int32_t a, int32_t b, int32_t width) {
    return a + width <= b || b + width <= a;
}

static bool columns_fit(const value *v, int32_t col, int32_t width) {
    return col >= 0 && col + width <= v->cols;
}

static bool check(graph *g, val qv, val kv, const attention_opts *o) {
    const value *vq = graph_at(g, qv), *vk = graph_at(g, kv);
    if (qv == VAL_NONE || kv == VAL_NONE || o->heads < 1 || o->width < 1 ||
        o->width % o->heads != 0) {
        graph_fail(g, "attention: %d heads do not divide the width %d", o->heads, o->width);
        return false;
    }
    if (!columns_fit(vq, o->q_col, o->width) || !columns_fit(vk, o->k_col, o->width) ||
        !columns_fit(vk, o->v_col, o->width) || !disjoint(o->k_col, o->v_col, o->width) ||
        (qv == kv &&
         (!disjoint(o->q_col, o->k_col, o->width) || !disjoint(o->q_col, o->v_col, o->width)))) {
        graph_fail(g, "attention: width %d at columns %d, %d, %d of %s (%d) and %s (%d)", o->width,
                   o->q_col, o->k_col, o->v_col, vq->name, vq->cols, vk->name, vk->cols);
        return false;
    }
    if (!graph_has_rows(vq, o->queries) || !graph_has_rows(vk, o->keys)) {
        graph_fail(g, "attention: %s or %s does not have the rows asked for", vq->name, vk->name);
        return false;
    }
    return true;
}

val op_attention(graph *g, val qv, val kv, const attention_opts *o) {
    if (!graph_ok(g) || !check(g, qv, kv, o)) return VAL_NONE;
    value vq = *graph_at(g, qv);
    bool sampled = vq.sampled || graph_at(g, kv)->sampled;
    extent ext = o->queries == EXT_FIXED ? vq.ext : o->queries;
    val out = graph_matrix(g, "attention", ext, vq.rows, o->width, sampled);
    val lse = graph_matrix(g, "attention lse", ext, vq.rows, o->heads, sampled);
    instr *ins = graph_append(g, OP_attention);
    if (!ins) return VAL_NONE;
    g->values[lse].ld = o->heads; /* dense: nothing but attention_grad reads it */
    ins->in[ATTENTION_QV] = qv, ins->in[ATTENTION_KV] = kv;
    ins->out[ATTENTION_O] = out, ins->out[ATTENTION_LSE] = lse;
    ins->i[ATTENTION_WIDTH] = o->width, ins->i[ATTENTION_HEADS] = o->heads;
    ins->i[ATTENTION_QCOL] = o->q_col;
    ins->i[ATTENTION_KCOL] = o->k_col, ins->i[ATTENTION_VCOL] = o->v_col;
    ins->i[ATTENTION_QUERIES] = (int32_t)o->queries, ins->i[ATTENTION_KEYS] = (int32_t)o->keys;
    graph_done(g, ins);
    return out;
}

static void grad_attention(graph *g, const instr *fwd) {
    instr *ins = graph_append(g, OP_attention_grad);
    if (!ins) return;
    ins->in[ATTENTION_GRAD_QV] = fwd->in[ATTENTION_QV];
    ins->in[ATTENTION_GRAD_KV] = fwd->in[ATTENTION_KV];
    ins->in[ATTENTION_GRAD_O] = fwd->out[ATTENTION_O];
    ins->in[ATTENTION_GRAD_LSE] = fwd->out[ATTENTION_LSE];
    ins->in[ATTENTION_GRAD_G] = graph_grad(g, fwd->out[ATTENTION_O]);
    for (int j = 0; j < INSTR_INT; j++) ins->i[j] = fwd->i[j];
    graph_wire_grad(g, ins, ATTENTION_GQ, fwd->in[ATTENTION_QV]);
    if (fwd->in[ATTENTION_KV] != fwd->in[ATTENTION_QV])
        graph_wire_grad(g, ins, ATTENTION_GK, fwd->in[ATTENTION_KV]);
}

/* ---- reference ------------------------------------------------------------------------------- */

/* The rows of one head of one sample, as the loops below address them. */
typedef struct head {
    int64_t s, nq, nk, dh;
    int32_t q, k, v, o; /* first columns */
    double scale;
} head;

static head head_of(const ref_run *r, int64_t s, int32_t h) {
    const int32_t *i = r->ins->i;
    const value *values = r->f->plan->values;
    int32_t dh = i[ATTENTION_WIDTH] / i[ATTENTION_HEADS];
    return (head){.s = s,
                  .nq =
                      attention_rows(r->f, &values[r->ins->in[ATTENTION_QV]], i[ATTENTION_QUERIES]),
                  .nk = attention_rows(r->f, &values[r->ins->in[ATTENTION_KV]], i[ATTENTION_KEYS]),
                  .dh = dh,
                  .q = i[ATTENTION_QCOL] + h * dh,
                  .k = i[ATTENTION_KCOL] + h * dh,
                  .v = i[ATTENTION_VCOL] + h * dh,
                  .o = h * dh,
                  .scale = 1.0 / sqrt((double)i[ATTENTION_WIDTH])};
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0.0;
    for (int64_t c = 0; c < n; c++) sum += a[c] * b[c];
    return sum;
}

/* scores[j] = q_i . k_j / sqrt(D) over all keys; returns the log of the sum of exponentials */
static double score(const head *t, ref_array qv, ref_array kv, int64_t i, double *scores) {
    double most = -INFINITY, sum = 0.0;
    for (int64_t j = 0; j < t->nk; j++) {
        scores[j] = t->scale * dot(ref_el(qv, t->s, i, t->q), ref_el(kv, t->s, j, t->k), t->dh);
        if (scores[j] > most) most = scores[j];
    }
    for (int64_t j = 0; j < t->nk; j++) sum += exp(scores[j] - most);
    return t->nk ? most + log(sum) : -INFINITY;
}

static void ref_attention(ref_run *r) {
    ref_array qv = ref_in(r, ATTENTION_QV), kv = ref_in(r, ATTENTION_KV);
    ref_array o = ref_out(r, ATTENTION_O), lse = ref_out(r, ATTENTION_LSE);
    double *p = ref_scratch(r, kv.rows);
    if (r->failed) return;
    for (int64_t s = 0; s < o.samples; s++)
        for (int32_t h = 0; h < r->ins->i[ATTENTION_HEADS]; h++) {
            head t = head_of(r, s, h);
            for (int64_t i = 0; i < t.nq; i++) {
                double l = score(&t, qv, kv, i, p);
                *ref_el(lse, s, i, h) += l;
                double *to = ref_el(o, s, i, t.o);
                for (int64_t c = 0; c < t.dh; c++) to[c] += ref_el(qv, s, i, t.q)[c];
                for (int64_t j = 0; j < t.nk; j++)
                    for (int64_t c = 0; c < t.dh; c++)
                        to[c] += exp(p[j] - l) * ref_el(kv, s, j, t.v)[c];
            }
        }
}

/* One query's part of the reverse pass; p (nk) becomes the weights A, da (nk) is room for dA. */
static void query_grad(const head *t, ref_array qv, ref_array kv, const double *g, ref_array gq,
                       ref_array gk, int64_t i, double *p, double *da) {
    double l = score(t, qv, kv, i, p), mean = 0.0;
    const double *q = ref_el(qv, t->s, i, t->q);
    for (int64_t j = 0; j < t->nk; j++) {
        p[j] = exp(p[j] - l);
        da[j] = dot(g, ref_el(kv, t->s, j, t->v), t->dh);
        mean += p[j] * da[j];
    }
    for (int64_t c = 0; gq.at && c < t->dh; c++) ref_el(gq, t->s, i, t->q)[c] += g[c];
    for (int64_t j = 0; j < t->nk; j++) {
        double ds = p[j] * (da[j] - mean) * t->scale;
        for (int64_t c = 0; c < t->dh; c++) {
            if (gq.at) ref_el(gq, t->s, i, t->q)[c] += ds * ref_el(kv, t->s, j, t->k)[c];
            if (!gk.at) continue;
            ref_el(gk, t->s, j, t->k)[c] += ds * q[c];
            ref_el(gk, t->s, j, t->v)[c] += p[j] * g[c];
        }
    }
}

static void ref_attention_grad(ref_run *r) {
    ref_array qv = ref_in(r, ATTENTION_GRAD_QV), kv = ref_in(r, ATTENTION_GRAD_KV);
    ref_array gy = ref_in(r, ATTENTION_GRAD_G), gq = ref_out(r, ATTENTION_GQ);
    bool self = r->ins->in[ATTENTION_GRAD_QV] == r->ins->in[ATTENTION_GRAD_KV];
    ref_array gk = self ? gq : ref_out(r, ATTENTION_GK);
    double *p = ref_scratch(r, kv.rows), *da = ref_scratch(r, kv.rows);
    if (r->failed) return;
    for (int64_t s = 0; s < gy.samples; s++)
        for (int32_t h = 0; h < r->ins->i[ATTENTION_HEADS]; h++) {
            head t = head_of(r, s, h);
            for (int64_t i = 0; i < t.nq; i++)
                query_grad(&t, qv, kv, ref_el(gy, s, i, t.o), gq, gk, i, p, da);
        }
}

/* ---- cases: a = D, b = H, c = who attends to whom, d = fixed rows ----------------------------
 * TWICE: gradients of two readers meet; FIXED_QUERIES, FIXED_KEYS: one side gets no gradient.
 * GRADIENTS: those that come in are near 10^d; KEYS: keys and values are, and queries so small
 * that scores are not far from one. */

enum {
    SELF,
    SELF_CONTEXT,
    TO_CONTEXT,
    SEEDS,
    SEEDS_CONTEXT,
    TO_FIXED,
    SHARED_KEYS,
    GAPS,
    TWICE,
    FIXED_QUERIES,
    FIXED_KEYS,
    SELF_SEEN,
    SEEDS_SEEN,
    GRADIENTS,
    KEYS
};

/* Numbers of other sizes than one, as some arithmetic has a range as well as digits. */
static void build_sizes(case_build *b, const op_case *c) {
    const double size = pow(10, c->d);
    attention_opts o = {.width = c->a, .heads = c->b, .k_col = c->a, .v_col = 2 * c->a};
    o.queries = o.keys = EXT_N;
    if (c->c == KEYS) {
        o.k_col = 0, o.v_col = c->a;
        val q = case_matrix(b, "q", EXT_N, 0, c->a, false, true, CASE_NORMAL(0, fmin(1, 1 / size)));
        val kv = case_matrix(b, "kv", EXT_N, 0, 2 * c->a, false, true, CASE_NORMAL(0, size));
        case_output(b, op_attention(b->g, q, kv, &o));
        return;
    }
    val qkv = case_matrix(b, "qkv", EXT_N, 0, 3 * c->a, false, true, CASE_NORMAL(0, size));
    qkv = op_scale(b->g, qkv, 1 / size, 0);
    case_output(b, op_scale(b->g, op_attention(b->g, qkv, qkv, &o), size, 0));
}

static void build(case_build *b, const op_case *c) {
    if (c->c == GRADIENTS || c->c == KEYS) {
        build_sizes(b, c);
        return;
    }
    const case_fill unit = CASE_NORMAL(0, 1);
    bool sampled = c->S > 1;
    attention_opts o = {.width = c->a, .heads = c->b, .q_col = 0, .k_col = c->a, .v_col = 2 * c->a};
    val qv, kv;
    if (c->c == SELF || c->c == SELF_CONTEXT || c->c == TO_CONTEXT || c->c == TWICE ||
        c->c == SELF_SEEN) {
        qv = kv = case_matrix(b, "qkv", EXT_N, 0, 3 * c->a, sampled, true, unit);
        o.queries = c->c == SELF_CONTEXT ? EXT_M : EXT_N;
        o.keys = c->c == SELF ? EXT_N : EXT_M;
        if (c->c == TWICE) case_output(b, op_attention(b->g, qv, kv, &o)), o.keys = EXT_N;
        if (c->c == SELF_SEEN) { /* as a training step has it: the context is a part of it */
            o.queries = o.keys = EXT_K;
            case_output(b, op_attention(b->g, qv, kv, &o));
            o.queries = o.keys = EXT_M;
        }
    } else if (c->c == GAPS) { /* unused columns before, between and after the blocks */
        qv = kv = case_matrix(b, "qkv", EXT_N, 0, 3 * c->a + 8, sampled, true, unit);
        o.v_col = 1, o.q_col = c->a + 3, o.k_col = 2 * c->a + 5;
        o.queries = EXT_N, o.keys = EXT_M;
    } else {
        bool fixed_q = c->c == SEEDS || c->c == SEEDS_CONTEXT || c->c == SEEDS_SEEN;
        qv = case_matrix(b, "q", fixed_q ? EXT_FIXED : EXT_N, c->d, c->a, sampled && !fixed_q,
                         c->c != FIXED_QUERIES, unit);
        kv = case_matrix(b, "kv", c->c == TO_FIXED ? EXT_FIXED : EXT_N, c->d, 2 * c->a,
                         sampled && c->c != SHARED_KEYS, c->c != FIXED_KEYS, unit);
        o.k_col = 0, o.v_col = c->a;
        o.queries = fixed_q ? EXT_FIXED : EXT_N;
        o.keys = c->c == TO_FIXED        ? EXT_FIXED
                 : c->c == SEEDS_CONTEXT ? EXT_M
                 : c->c == SEEDS_SEEN    ? EXT_K
                                         : EXT_N;
    }
    case_output(b, op_attention(b->g, qv, kv, &o));
}

#define FLOP(nq, nk, d) (4.0 * (nq) * (nk) * (d))
static const op_case cases[] = {
    {"self, 64", 128, 50, 1, 64, 4, SELF, 0, CASE_BENCH, FLOP(128, 128, 64), 0},
    {"self, context", 128, 50, 1, 64, 4, SELF_CONTEXT, 0, CASE_BENCH, FLOP(50, 50, 64), 0},
    {"one seed", 128, 50, 1, 64, 4, SEEDS, 1, CASE_BENCH, FLOP(1, 128, 64), 0},
    {"one point", 1, 0, 1, 8, 2, SELF, 0, 0, 0, 0},
    {"no context", 5, 0, 2, 8, 2, TO_CONTEXT, 0, 0, 0, 0},
    {"no context, self", 5, 0, 1, 16, 2, SELF_CONTEXT, 0, 0, 0, 0},
    {"no context, seeds", 5, 0, 2, 12, 3, SEEDS_CONTEXT, 2, 0, 0, 0},
    {"context is all", 7, 7, 1, 16, 1, SELF_CONTEXT, 0, 0, 0, 0},
    {"seen", 17, 6, 2, 12, 2, SELF_SEEN, 0, 0, 0, 0},
    {"seen, no context", 9, 0, 1, 8, 2, SELF_SEEN, 0, 0, 0, 0},
    {"seen, seeds", 19, 8, 2, 12, 3, SEEDS_SEEN, 3, 0, 0, 0},
    {"odd head width", 17, 9, 2, 21, 3, SELF, 0, 0, 0, 0},
    {"gaps between the blocks", 11, 6, 2, 10, 2, GAPS, 0, 0, 0, 0},
    {"to the context, samples", 20, 13, 3, 16, 4, TO_CONTEXT, 0, 0, 0, 0},
    {"shared seeds", 19, 8, 3, 16, 2, SEEDS, 5, 0, 0, 0},
    {"to fixed rows", 19, 8, 3, 20, 2, TO_FIXED, 6, 0, 0, 0},
    {"shared keys", 9, 4, 3, 16, 2, SHARED_KEYS, 0, 0, 0, 0},
    {"two readers", 9, 4, 2, 16, 2, TWICE, 0, 0, 0, 0},
    {"two readers, odd", 9, 4, 2, 10, 1, TWICE, 0, 0, 0, 0},
    {"no gradient to the queries", 7, 4, 2, 16, 2, FIXED_QUERIES, 0, 0, 0, 0},
    {"no gradient to the keys", 7, 4, 2, 16, 2, FIXED_KEYS, 0, 0, 0, 0},
    {"heads of 16, samples", 37, 13, 2, 32, 2, TO_CONTEXT, 0, 0, 0, 0},
    {"heads of 16, two readers", 40, 21, 2, 32, 2, TWICE, 0, 0, 0, 0},
    {"heads of 16, no context", 5, 0, 2, 16, 1, SELF_CONTEXT, 0, 0, 0, 0},
    {"heads of 16, shared seed", 19, 8, 3, 32, 2, SEEDS, 1, 0, 0, 0},
    {"heads of 16, seed and no context", 5, 0, 2, 32, 2, SEEDS_CONTEXT, 1, 0, 0, 0},
    {"heads of 16, shared seeds", 19, 8, 3, 32, 2, SEEDS, 5, 0, 0, 0},
    {"heads of 16, shared keys", 18, 4, 3, 16, 1, SHARED_KEYS, 0, 0, 0, 0},
    {"heads of 16, seen", 40, 13, 2, 32, 2, SELF_SEEN, 0, 0, 0, 0},
    {"heads of 16, seen, seed", 40, 13, 2, 32, 2, SEEDS_SEEN, 1, 0, 0, 0},
    {"heads of 16, seen, seeds", 150, 40, 1, 64, 4, SEEDS_SEEN, 16, CASE_NO_FD, 0, 0},
    {"six heads of 16", 70, 33, 1, 96, 6, SELF, 0, CASE_NO_FD, 0, 0},
    {"eight heads of 16", 128, 50, 1, 128, 8, TO_CONTEXT, 0, CASE_NO_FD, 0, 0},
    {"heads of 8", 128, 50, 1, 32, 4, SELF, 0, CASE_NO_FD, 0, 0},
    {"heads of 8, seen", 200, 61, 1, 16, 2, SELF_SEEN, 0, CASE_NO_FD, 0, 0},
    {"heads of 24", 128, 128, 1, 96, 4, TO_CONTEXT, 0, CASE_NO_FD, 0, 0},
    {"heads of 24, inducing points", 200, 90, 1, 48, 2, SEEDS_CONTEXT, 16, CASE_NO_FD, 0, 0},
    {"heads of 24, to inducing points", 130, 7, 2, 48, 2, TO_FIXED, 19, CASE_NO_FD, 0, 0},
    {"heads of 32", 128, 50, 1, 128, 4, SELF, 0, CASE_NO_FD, 0, 0},
    {"heads of 32, one point", 1, 1, 2, 64, 2, SELF_CONTEXT, 0, 0, 0, 0},
    {"heads of 32, no context", 5, 0, 2, 64, 2, TO_CONTEXT, 0, CASE_NO_FD, 0, 0},
    {"heads of 32, shared seed", 300, 37, 2, 64, 2, SEEDS, 1, CASE_NO_FD, 0, 0},
    {"heads of 40", 200, 17, 1, 80, 2, TO_CONTEXT, 0, CASE_NO_FD, 0, 0},
    {"heads of 40, two readers", 37, 21, 2, 40, 1, TWICE, 0, CASE_NO_FD, 0, 0},
    {"heads of 64", 128, 50, 1, 128, 2, SELF_SEEN, 0, CASE_NO_FD, 0, 0},
    {"heads of 64, many heads, seed", 70, 33, 1, 1024, 16, SEEDS_CONTEXT, 1, CASE_NO_FD, 0, 0},
    {"heads of 64, shared keys", 18, 4, 3, 64, 1, SHARED_KEYS, 0, CASE_NO_FD, 0, 0},
    {"heads of 8, shared seed", 19, 8, 2, 24, 3, SEEDS, 1, 0, 0, 0},
    {"heads of 24, seed of the context", 150, 70, 1, 96, 4, SEEDS_CONTEXT, 1, CASE_NO_FD, 0, 0},
    {"heads of 12", 70, 33, 1, 36, 3, TO_CONTEXT, 0, CASE_NO_FD, 0, 0},
    {"heads of 64, n = 150", 150, 70, 1, 192, 3, SELF, 0, CASE_NO_FD, 0, 0},
    {"heads of 129", 40, 13, 2, 129, 1, SELF, 0, CASE_NO_FD, 0, 0},
    {"heads of 200, seeds", 70, 33, 2, 400, 2, SEEDS_SEEN, 3, CASE_NO_FD, 0, 0},
    {"heads of 37, gaps", 70, 33, 1, 74, 2, GAPS, 0, CASE_NO_FD, 0, 0},
    {"heads of 16, gradients of 1e-7", 70, 33, 1, 32, 2, GRADIENTS, -7, CASE_NO_FD, 0, 0},
    {"heads of 16, gradients of 1e4", 70, 33, 1, 32, 2, GRADIENTS, 4, CASE_NO_FD, 0, 0},
    {"heads of 16, keys of 1e3", 70, 33, 1, 32, 2, KEYS, 3, CASE_NO_FD, 0, 0},
    {"heads of 16, keys of 1e-4", 70, 33, 1, 32, 2, KEYS, -4, CASE_NO_FD, 0, 0},
    {"heads of 40, gradients of 1e-7", 70, 33, 1, 80, 2, GRADIENTS, -7, CASE_NO_FD, 0, 0},
    {"heads of 40, gradients of 1e4", 70, 33, 1, 80, 2, GRADIENTS, 4, CASE_NO_FD, 0, 0},
    {"heads of 40, keys of 1e3", 70, 33, 1, 80, 2, KEYS, 3, CASE_NO_FD, 0, 0},
    {"heads of 40, keys of 1e-4", 70, 33, 1, 80, 2, KEYS, -4, CASE_NO_FD, 0, 0},
    {"heads of 24, n = 300", 300, 120, 1, 48, 2, SELF_SEEN, 0, CASE_NO_FD | CASE_LARGE, 0, 0},
    {"heads of 16, n = 400", 400, 120, 1, 48, 3, SELF, 0, CASE_NO_FD | CASE_LARGE, 0, 0},
    {"n = 300", 300, 120, 1, 32, 2, SELF, 0, CASE_NO_FD | CASE_LARGE, 0, 0},
    {"n = 1000", 1000, 400, 1, 16, 2, SELF, 0, CASE_NO_FD | CASE_LARGE, 0, 0},
    {"n = 8192, seeds", 8192, 4096, 1, 64, 4, SEEDS_CONTEXT, 4, CASE_NO_FD | CASE_LARGE, 0, 0},
};

const op_def op_attention_def = {.name = "attention",
                                 .grad = grad_attention,
                                 .ref = ref_attention,
                                 .build = build,
                                 .cases = cases,
                                 .n_cases = sizeof cases / sizeof *cases};
const op_def op_attention_grad_def = {.name = "attention_grad", .ref = ref_attention_grad};
