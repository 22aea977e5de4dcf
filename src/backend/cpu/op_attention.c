/* op_attention.c: attention and its reverse pass, one kernel call per sample.
 *
 * The kernels take whole matrices with 16-column padding. A gradient that is a block of columns of
 * a wider matrix fits that when its width is a multiple of 16; otherwise (and where a gradient is
 * not wanted) the kernel writes to scratch, and the block is added from there. */
#include "op/attention.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"

/* Rows used of qv and kv, and of their gradients. */
typedef struct shape {
    int64_t nq, nk;
    int32_t width, heads, dh;
} shape;

static shape shape_of(const frame *f, const instr *ins) {
    const int32_t *i = ins->i;
    const value *qv = cpu_value(f, ins->in[ATTENTION_QV]);
    const value *kv = cpu_value(f, ins->in[ATTENTION_KV]);
    return (shape){.nq = attention_rows(f, qv, i[ATTENTION_QUERIES]),
                   .nk = attention_rows(f, kv, i[ATTENTION_KEYS]),
                   .width = i[ATTENTION_WIDTH],
                   .heads = i[ATTENTION_HEADS],
                   .dh = i[ATTENTION_WIDTH] / i[ATTENTION_HEADS]};
}

/* q, k and v of sample s; o and lse are the caller's. */
static attn_args operands(const frame *f, const instr *ins, const shape *t, int64_t s) {
    const int32_t *i = ins->i;
    const float *kv = cpu_sample(f, ins->in[ATTENTION_KV], s);
    return (attn_args){.nq = t->nq,
                       .nk = t->nk,
                       .heads = t->heads,
                       .dh = t->dh,
                       .scale = 1.0f / sqrtf((float)t->width),
                       .q = cpu_sample(f, ins->in[ATTENTION_QV], s) + i[ATTENTION_QCOL],
                       .ldq = cpu_value(f, ins->in[ATTENTION_QV])->ld,
                       .k = kv + i[ATTENTION_KCOL],
                       .v = kv + i[ATTENTION_VCOL],
                       .ldk = cpu_value(f, ins->in[ATTENTION_KV])->ld};
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Rows of a value at the plan's capacities, all samples. */
static int64_t most_rows(const plan *p, val v) {
    const value *vv = &p->values[v];
    return plan_rows(p, vv->ext, vv->rows);
}

static size_t round_64(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

static size_t kernel_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    const int heads = ins->i[ATTENTION_HEADS];
    return round_64(k->attn_scratch(most_rows(p, ins->in[ATTENTION_QV]),
                                    most_rows(p, ins->in[ATTENTION_KV]), heads,
                                    ins->i[ATTENTION_WIDTH] / heads));
}

size_t cpu_attention_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    return kernel_scratch(p, ins, k);
}

void cpu_attention(frame *f, const instr *ins) {
    const shape t = shape_of(f, ins);
    const value *o = cpu_value(f, ins->out[ATTENTION_O]);
    for (int64_t s = 0; s < frame_samples(f, o); s++) {
        attn_args a = operands(f, ins, &t, s);
        a.o = cpu_sample(f, ins->out[ATTENTION_O], s), a.ldo = o->ld;
        a.lse = cpu_sample(f, ins->out[ATTENTION_LSE], s);
        cpu_k(f)->attn(&a, f->scratch);
    }
}

/* ---- reverse --------------------------------------------------------------------------------- */

size_t cpu_attention_grad_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    const size_t ld = (size_t)graph_pad(ins->i[ATTENTION_WIDTH]);
    const size_t nq = (size_t)most_rows(p, ins->in[ATTENTION_QV]);
    const size_t nk = (size_t)most_rows(p, ins->in[ATTENTION_KV]);
    return kernel_scratch(p, ins, k) + (nq + 2 * nk) * ld * sizeof(float);
}

/* Where the kernel puts the gradients of one sample. */
typedef struct targets {
    float *q, *k, *v; /* blocks of the gradients, or scratch */
    int64_t ldq, ldk;
    bool q_away, k_away; /* in scratch */
} targets;

static targets targets_of(const frame *f, const instr *ins, const shape *t, float *room,
                          int64_t s) {
    const bool self = ins->in[ATTENTION_GRAD_QV] == ins->in[ATTENTION_GRAD_KV];
    const val gq = ins->out[ATTENTION_GQ], gk = self ? gq : ins->out[ATTENTION_GK];
    const int64_t ld = graph_pad(t->width);
    targets to = {.q = room, .ldq = ld, .q_away = gq == VAL_NONE || ld != t->width};
    to.k = to.q + t->nq * ld, to.v = to.k + t->nk * ld, to.ldk = ld;
    to.k_away = gk == VAL_NONE || ld != t->width;
    if (!to.q_away) {
        to.q = cpu_sample(f, gq, s) + ins->i[ATTENTION_QCOL];
        to.ldq = cpu_value(f, gq)->ld;
    }
    if (!to.k_away) {
        to.k = cpu_sample(f, gk, s) + ins->i[ATTENTION_KCOL];
        to.v = cpu_sample(f, gk, s) + ins->i[ATTENTION_VCOL];
        to.ldk = cpu_value(f, gk)->ld;
    }
    return to;
}

/* Prepares gradient number `output`, of which `blocks` blocks of columns receive something in their
 * first `rows` rows. Returns whether the kernel has to add: the gradient holds something already,
 * or was zeroed here because the blocks leave some of it out. */
static bool prepare(frame *f, const instr *ins, int output, int64_t rows, int64_t blocks,
                    bool overwrite) {
    const val g = ins->out[output];
    if (g == VAL_NONE) return false;
    if (cpu_acc(ins, output)) return true;
    const value *v = cpu_value(f, g);
    const int64_t all = frame_rows(f, v), samples = frame_samples(f, v);
    if (overwrite && blocks * ins->i[ATTENTION_WIDTH] == v->ld) {
        for (int64_t s = 0; s < samples; s++)
            memset(cpu_sample(f, g, s) + rows * v->ld, 0,
                   (size_t)((all - rows) * v->ld) * sizeof(float));
        return false;
    }
    memset(cpu_f32(f, g), 0, (size_t)(samples * all * v->ld) * sizeof(float));
    return true;
}

static void add_block(int64_t rows, int32_t width, const float *from, int64_t ldf, float *to,
                      int64_t ldt) {
    for (int64_t r = 0; r < rows; r++)
        for (int32_t c = 0; c < width; c++) to[r * ldt + c] += from[r * ldf + c];
}

/* Brings what the kernel left in scratch to the gradients that are wanted. */
static void fetch(const frame *f, const instr *ins, const shape *t, const targets *to, int64_t s) {
    const bool self = ins->in[ATTENTION_GRAD_QV] == ins->in[ATTENTION_GRAD_KV];
    const val gq = ins->out[ATTENTION_GQ], gk = self ? gq : ins->out[ATTENTION_GK];
    if (to->q_away && gq != VAL_NONE)
        add_block(t->nq, t->width, to->q, to->ldq, cpu_sample(f, gq, s) + ins->i[ATTENTION_QCOL],
                  cpu_value(f, gq)->ld);
    if (!to->k_away || gk == VAL_NONE) return;
    const int64_t ld = cpu_value(f, gk)->ld;
    add_block(t->nk, t->width, to->k, to->ldk, cpu_sample(f, gk, s) + ins->i[ATTENTION_KCOL], ld);
    add_block(t->nk, t->width, to->v, to->ldk, cpu_sample(f, gk, s) + ins->i[ATTENTION_VCOL], ld);
}

/* After the first sample, samples that share a gradient add to it. */
static bool shared_after(const frame *f, val g, int64_t s) {
    return s > 0 && g != VAL_NONE && !cpu_value(f, g)->sampled;
}

void cpu_attention_grad(frame *f, const instr *ins) {
    const shape t = shape_of(f, ins);
    const bool self = ins->in[ATTENTION_GRAD_QV] == ins->in[ATTENTION_GRAD_KV];
    const bool whole = graph_pad(t.width) == t.width;
    const value *o = cpu_value(f, ins->in[ATTENTION_GRAD_O]);
    float *room = f->scratch;
    char *work = (char *)(room + (t.nq + 2 * t.nk) * graph_pad(t.width));
    const val gk = self ? ins->out[ATTENTION_GQ] : ins->out[ATTENTION_GK];
    const bool add_q =
        prepare(f, ins, ATTENTION_GQ, t.nq, self ? 3 : 1, whole && (!self || t.nq == t.nk));
    const bool add_k = self ? add_q : prepare(f, ins, ATTENTION_GK, t.nk, 2, whole);
    for (int64_t s = 0; s < frame_samples(f, o); s++) {
        const targets to = targets_of(f, ins, &t, room, s);
        attn_grad_args a = {.fwd = operands(f, ins, &t, s)};
        a.fwd.o = cpu_sample(f, ins->in[ATTENTION_GRAD_O], s), a.fwd.ldo = o->ld;
        a.fwd.lse = cpu_sample(f, ins->in[ATTENTION_GRAD_LSE], s);
        a.go = cpu_sample(f, ins->in[ATTENTION_GRAD_G], s), a.ldgo = o->ld;
        a.gq = to.q, a.ldgq = to.ldq;
        a.gk = to.k, a.gv = to.v, a.ldgk = to.ldk;
        a.acc_q = !to.q_away && (add_q || shared_after(f, ins->out[ATTENTION_GQ], s));
        a.acc_k = !to.k_away && (add_k || shared_after(f, gk, s));
        cpu_k(f)->attn_grad(&a, work);
        fetch(f, ins, &t, &to, s);
    }
}
