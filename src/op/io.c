/* io.c: what enters and leaves a function: feed (dense doubles from the caller), emit (dense
 * doubles to the caller), zeros, and the one that starts the reverse pass. */
#include "op/op.h"

enum { IO_BINDING = 0 }; /* i[]: number of the feed or emit */

/* ---- feed ------------------------------------------------------------------------------------ */

static val record_feed(graph *g, val v, bool wants_grad) {
    instr *ins = graph_append(g, OP_feed);
    if (!ins || v == VAL_NONE) return VAL_NONE;
    if (g->n_feeds == EXEC_FEEDS) {
        graph_fail(g, "more than %d inputs", EXEC_FEEDS);
        return VAL_NONE;
    }
    ins->out[0] = v;
    ins->i[IO_BINDING] = g->n_feeds++;
    g->values[v].needs_grad = wants_grad;
    return v;
}

val op_feed(graph *g, const char *name, extent ext, int32_t rows, int32_t cols, bool sampled,
            bool wants_grad) {
    return record_feed(g, graph_matrix(g, name, ext, rows, cols, sampled), wants_grad);
}

val op_feed_scalars(graph *g, const char *name, extent ext, bool sampled, bool wants_grad) {
    return record_feed(g, graph_scalars(g, name, ext, 1, sampled), wants_grad);
}

static void no_grad(graph *g, const instr *fwd) {
    (void)g, (void)fwd; /* the gradient stays where it is, to be emitted */
}

static void ref_feed(ref_run *r) {
    ref_array out = ref_out(r, 0);
    int32_t k = r->ins->i[IO_BINDING];
    const int64_t count = out.at ? out.samples * out.rows * out.cols : 0;
    if (count == 0) return; /* of an empty set there is no array */
    const double *from = r->f->io->feed[k] + r->f->item * r->f->io->feed_stride[k];
    for (int64_t i = 0; i < count; i++) out.at[i] += from[i];
}

const op_def op_feed_def = {.name = "feed", .grad = no_grad, .ref = ref_feed};

/* ---- emit ------------------------------------------------------------------------------------ */

int32_t op_emit(graph *g, val v) {
    instr *ins = graph_append(g, OP_emit);
    if (!ins) return -1;
    if (v == VAL_NONE || g->n_emits == EXEC_EMITS) {
        graph_fail(g, v == VAL_NONE ? "nothing to emit" : "too many outputs");
        return -1;
    }
    ins->in[0] = v;
    ins->i[IO_BINDING] = g->n_emits;
    return g->n_emits++;
}

static void ref_emit(ref_run *r) {
    ref_array in = ref_in(r, 0);
    int32_t k = r->ins->i[IO_BINDING];
    double *to = r->f->io->emit[k];
    if (!to) return; /* the caller does not want it this time */
    to += r->f->item * r->f->io->emit_stride[k];
    for (int64_t i = 0; in.at && i < in.samples * in.rows * in.cols; i++) to[i] = in.at[i];
}

const op_def op_emit_def = {.name = "emit", .ref = ref_emit};

/* ---- zeros, one ------------------------------------------------------------------------------ */

val op_zeros(graph *g, const char *name, extent ext, int32_t rows, int32_t cols, bool sampled) {
    val v = cols == 1 ? graph_scalars(g, name, ext, rows, sampled)
                      : graph_matrix(g, name, ext, rows, cols, sampled);
    instr *ins = graph_append(g, OP_zeros);
    if (!ins) return VAL_NONE;
    ins->out[0] = v;
    return v;
}

static void ref_zeros(ref_run *r) {
    ref_out(r, 0);
}

const op_def op_zeros_def = {.name = "zeros", .grad = no_grad, .ref = ref_zeros};

static void ref_fill_one(ref_run *r) {
    ref_array out = ref_out(r, 0);
    for (int64_t i = 0; out.at && i < out.samples * out.rows * out.cols; i++) out.at[i] += 1.0;
}

const op_def op_fill_one_def = {.name = "fill_one", .ref = ref_fill_one};
