/* memory.c: see exec_internal.h.
 *
 * Weights, moments and averages are mirrored: push sends the caller's, pull copies them back. A
 * plan that updates works on the mirrors alone between the two (the first run pushes by itself); a
 * plan that does not update sends the weights with every run. */
#include <string.h>

#include "backend/cuda/host/exec_internal.h"
#include "backend/cuda/wide/attention.h"
#include "backend/cuda/wide/linear.h"
#include "backend/cuda/wide/weights.h"
#include "comm/comm.h"
#include "op/update.h"

/* ---- memory of the device -------------------------------------------------------------------- */

mnp_status exec_check(exec *x, int error, const char *what) {
    if (!error) return MNP_OK;
    return env_fail(x->env, MNP_EDEVICE, "the GPU failed in %s: %s", what,
                    x->api->error_text(error));
}

mnp_status exec_alloc(exec *x, block *b, size_t bytes, const char *what) {
    if (b->at && b->bytes >= bytes) return MNP_OK;
    x->api->release(b->at);
    *b = (block){0};
    int error = x->api->alloc(&b->at, bytes);
    if (error)
        return env_fail(x->env, MNP_ENOMEM, "%.1f MB on the GPU for %s: %s", (double)bytes / 1e6,
                        what, x->api->error_text(error));
    b->bytes = bytes;
    return MNP_OK;
}

mnp_status exec_send(exec *x, block *b, const void *from, size_t bytes, const char *what) {
    MNP_TRY(exec_alloc(x, b, bytes, what));
    return bytes ? exec_check(x, x->api->upload(x->queue, b->at, from, bytes), what) : MNP_OK;
}

mnp_status exec_fetch(exec *x, void *to, const block *b, size_t bytes, const char *what) {
    return bytes ? exec_check(x, x->api->download(x->queue, to, b->at, bytes), what) : MNP_OK;
}

mnp_status exec_wait(exec *x) {
    return exec_check(x, x->api->sync(x->queue), "a kernel");
}

size_t exec_mirror_bytes(const exec *x) {
    return (size_t)x->plan->params->words * sizeof(float);
}

/* ---- mirrors --------------------------------------------------------------------------------- */

static void mirrors_of(const exec_io *io, void *out[MIRRORS]) {
    out[0] = io->weights, out[1] = io->moment1, out[2] = io->moment2, out[3] = io->average;
}

mnp_status exec_push_fp16(exec *x) {
    if (!x->program.reads_fp16) return MNP_OK;
    return exec_check(x,
                      x->api->to_fp16(x->queue, x->mirror[0].at, x->fp16.at, x->fp16_at.at,
                                      x->plan->params->words),
                      "a launch");
}

mnp_status exec_push(exec *x, exec_io *io) {
    void *from[MIRRORS];
    mirrors_of(io, from);
    for (int k = 0; k < MIRRORS; k++)
        if (from[k] && x->mirror[k].at)
            MNP_TRY(exec_send(x, &x->mirror[k], from[k], exec_mirror_bytes(x), "the weights"));
    if (io->weights) MNP_TRY(exec_push_fp16(x));
    x->pushed = true;
    return exec_wait(x);
}

mnp_status exec_pull(exec *x, exec_io *io) {
    void *to[MIRRORS];
    mirrors_of(io, to);
    if (!x->program.updates || !x->pushed) return MNP_OK;
    for (int k = 0; k < MIRRORS; k++)
        if (to[k])
            MNP_TRY(exec_fetch(x, to[k], &x->mirror[k], exec_mirror_bytes(x), "the weights"));
    return exec_wait(x);
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* Products of rows go by chunks of the functions, whose number depends on theirs alone: so does the
 * order of sums. */
static int32_t chunks_of(int64_t functions) {
    const int64_t chunks = (functions + DEV_CHUNK - 1) / DEV_CHUNK;
    return chunks < 1 ? 1 : chunks > DEV_CHUNKS ? DEV_CHUNKS : (int32_t)chunks;
}

/* ---- stages ---------------------------------------------------------------------------------- */

static bool staged(const exec *x) {
    return x->program.n_stages > 1;
}

static comm_span own_items(const exec *x, int64_t items) {
    return x->ranks ? comm_split(x->env, items, 1) : (comm_span){0, items};
}

/* Words from one arena to the next, and from one block's scratch. */
static int64_t arena_words(const exec *x) {
    return (x->program.act_words + 31) / 32 * 32;
}
static int64_t scratch_words(const exec *x) {
    return (x->program.scratch_words + 31) / 32 * 32;
}

/* In half of the memory that was free when the device was found. A step needs one for each of its
 * functions; others are done by and by, as many at a time as keep the device busy. */
static int64_t most_arenas(const exec *x) {
    const int64_t arena = arena_words(x) * (int64_t)sizeof(float);
    const int64_t fit = arena > 0 ? (int64_t)(x->device.spare / 2) / arena : INT64_MAX;
    const int64_t busy = 2 * (int64_t)x->device.processors;
    const int64_t most = x->program.updates || fit < busy ? fit : busy;
    return most > 0 ? most : 1;
}

bool exec_stages_fit(const exec *x, int64_t items) {
    const comm_span own = own_items(x, items);
    if (!staged(x)) return true;
    /* a step's sums are of all its functions */
    return most_arenas(x) >= (x->program.updates ? own.hi - own.lo : 1);
}

static int32_t blocks_of(int32_t kind, const wide_op *op, const wide_launch *l) {
    switch (kind) {
    case STAGE_LINEAR:
        return wide_linear_blocks(op, l->items);
    case STAGE_LINEAR_TO_X:
        return wide_linear_to_x_blocks(op, l->items);
    case STAGE_LINEAR_TO_W:
        return wide_weights_blocks(op, l->chunks);
    case STAGE_ATTENTION:
        return wide_attention_blocks(op, l->items);
    default:
        return wide_attention_grad_blocks(op, l->items);
    }
}

/* slots: which of a weight's gradient (dev_instr.wide). */
static wide_operand operand_of(const exec *x, const dev_operand *o, int32_t slots,
                               const wide_launch *l) {
    if (!o->present) return (wide_operand){0};
    wide_operand w = {
        .rows = o->rows, .cols = o->cols, .ld = o->ld, .ext = o->ext, .sampled = o->sampled};
    w.most = wide_rows(&w, (int32_t)x->image.cap_n, (int32_t)x->image.cap_n,
                       (int32_t)x->image.cap_m, l->samples);
    if (o->store == DEV_STORE_PARAM) {
        w.p = x->mirror[0].at;
    } else if (o->store == DEV_STORE_PGRAD) {
        w.p = x->slots.at, w.stride = x->slot_words;
        w.p += (int64_t)slots * l->chunks * w.stride;
    } else {
        w.p = x->act.at, w.stride = x->image.act_words;
    }
    w.p += o->offset;
    return w;
}

static wide_op op_of(const exec *x, const dev_instr *ins, const wide_launch *l) {
    wide_op op = {.adds = ins->acc & ~ins->fresh};
    memcpy(op.i, ins->i, sizeof op.i);
    for (int j = 0; j < DEV_IN; j++) op.in[j] = operand_of(x, &ins->in[j], ins->wide, l);
    for (int j = 0; j < DEV_OUT; j++) op.out[j] = operand_of(x, &ins->out[j], ins->wide, l);
    return op;
}

/* For functions [lo, lo + items). */
static wide_launch launch_of(const exec *x, const dev_stage *s) {
    const dev_run *r = &x->image;
    wide_launch l = {.count = s->count,
                     .items = s->items,
                     .samples = r->samples > 0 ? (int32_t)r->samples : 1,
                     .chunks = r->wide_chunks,
                     .stage_first = s->first};
    l.drawn = r->drawn ? r->drawn + 4 * s->lo : NULL;
    l.n = r->n ? r->n + s->lo : NULL;
    l.k = r->k ? r->k + s->lo : NULL;
    l.m = r->m ? r->m + s->lo : NULL;
    l.clocks = r->clocks, l.last = r->clocks ? r->clocks + r->n_code + 1 : NULL;
    for (int32_t j = 0; j < s->count; j++) {
        l.op[j] = op_of(x, &x->program.code[s->first + j], &l);
        l.blocks[j + 1] = l.blocks[j] + blocks_of(s->kind, &l.op[j], &l);
    }
    return l;
}

void exec_size_stages(exec *x, int64_t lo, int64_t hi) {
    for (int32_t k = 0; k < x->program.n_stages; k++) {
        dev_stage *s = &x->stages[k].stage;
        *s = x->program.stages[k];
        s->lo = lo, s->items = (int32_t)(hi - lo);
        s->blocks = (int32_t)x->image.n_slots;
        if (s->kind != STAGE_FUNCTIONS) x->stages[k].wide = launch_of(x, s);
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Parts of the functions, each summed by itself: enough that all multiprocessors have work, few
 * enough that the sums are little to read. They depend on the batch alone. */
static int32_t wide_chunks_of(const exec *x, int64_t functions) {
    enum { MOST = 25 };
    if (!x->program.updates || functions < 1) return 1;
    return functions < MOST ? (int32_t)functions : MOST;
}

/* What `run` says of the blocks and of the program. `blocks`: of the functions' kernel. */
static void place_blocks(exec *x, comm_span own, int64_t blocks, int32_t chunks) {
    const cuda_program *p = &x->program;
    dev_run *r = &x->image;
    r->item_lo = x->own_lo = own.lo, r->item_hi = x->own_hi = own.hi;
    r->act = x->act.at, r->act_words = arena_words(x);
    r->scratch = x->scratch.at, r->scratch_words = scratch_words(x);
    r->slots = x->slots.at, r->slot_words = x->slot_words, r->n_slots = blocks;
    r->saved = x->saved.at, r->saved_words = p->saved_words;
    r->saves_late = p->saved_words > 0 && p->n_milestones == 0;
    r->grad_spans = x->grad_spans.at, r->n_grad_spans = p->n_grad_spans;
    r->outer = x->outer.at, r->products = x->products.at, r->terms = x->terms.at;
    r->product_chunks = chunks, r->wgrad_tasks = x->wgrad_tasks.at;
    r->item_scalars = x->scalars.at;
    const bool draws = p->count > 0 && p->code[0].op == OPCODE_draw;
    r->drawn = staged(x) && draws ? x->drawn.at : NULL;
    x->shape = (step_shape){.words = x->plan->params->words,
                            .wgrad_tasks = p->n_wgrad_tasks * chunks,
                            .grad_spans = p->n_grad_spans,
                            .task_spans = p->task_spans};
}

/* A block per multiprocessor at most: each takes all of its shared memory. Of several stages the
 * arenas are those of functions, else those of blocks. */
mnp_status exec_size_blocks(exec *x, int64_t items) {
    const comm_span own = own_items(x, items);
    const int64_t functions = own.hi > own.lo ? own.hi - own.lo : 1;
    const int64_t blocks = functions < x->device.processors ? functions : x->device.processors;
    const int64_t most = staged(x) ? most_arenas(x) : blocks;
    x->arenas = functions < most ? functions : most;
    x->image.wide_chunks = wide_chunks_of(x, own.hi - own.lo);
    const size_t act = (size_t)(x->arenas * arena_words(x)) * sizeof(float);
    MNP_TRY(exec_alloc(x, &x->act, act, "the activations"));
    if (staged(x))
        MNP_TRY(exec_alloc(x, &x->drawn, (size_t)items * 4 * sizeof(int32_t), "the lengths"));
    const size_t scratch = (size_t)(blocks * scratch_words(x)) * sizeof(int32_t);
    MNP_TRY(exec_alloc(x, &x->scratch, scratch + 64, "scratch"));
    const int32_t chunks = chunks_of(own.hi - own.lo);
    const int64_t sums = (int64_t)chunks * x->program.product_pieces;
    int64_t slots = blocks > sums ? blocks : sums;
    if (staged(x) && slots < 2 * x->image.wide_chunks) slots = 2 * x->image.wide_chunks;
    MNP_TRY(exec_alloc(x, &x->slots, (size_t)(slots * x->slot_words) * sizeof(float),
                       "the gradient slots"));
    const size_t saved = (size_t)(own.hi - own.lo) * (size_t)x->program.saved_words;
    MNP_TRY(exec_alloc(x, &x->saved, saved * sizeof(float), "the rows of gradients"));
    const size_t reports = (size_t)(items + 1) * REPORT_COUNT;
    MNP_TRY(exec_alloc(x, &x->scalars, reports * sizeof(double), "the scores"));
    place_blocks(x, own, blocks, chunks);
    return MNP_OK;
}

static bool same_data(const data_view *a, const data_view *b) {
    return a->functions == b->functions && a->x_dim == b->x_dim && a->start == b->start &&
           a->x == b->x && a->y == b->y && a->shared_x == b->shared_x;
}

static mnp_status place_data(exec *x, const exec_io *io) {
    const data_view *d = io->data;
    if (!d) return MNP_OK;
    if (!same_data(d, &x->data)) {
        const size_t points = (size_t)d->start[d->functions];
        MNP_TRY(exec_send(x, &x->data_start, d->start, (size_t)(d->functions + 1) * sizeof(int64_t),
                          "the data set"));
        const size_t inputs = d->shared_x ? (size_t)d->start[1] : points;
        MNP_TRY(exec_send(x, &x->data_x, d->x, inputs * (size_t)d->x_dim * sizeof(float),
                          "the data set"));
        MNP_TRY(exec_send(x, &x->data_y, d->y, points * sizeof(float), "the data set"));
        MNP_TRY(exec_wait(x));
        x->data = *d;
    }
    x->image.data_functions = d->functions, x->image.data_x_dim = d->x_dim;
    x->image.data_start = x->data_start.at, x->image.data_shared_x = d->shared_x;
    x->image.data_x = x->data_x.at, x->image.data_y = x->data_y.at;
    return MNP_OK;
}

static mnp_status place_lengths(exec *x, const exec_io *io, int64_t items) {
    x->image.n = x->image.k = x->image.m = NULL;
    if (!io->n) return MNP_OK;
    const size_t bytes = (size_t)items * sizeof(int64_t);
    MNP_TRY(exec_alloc(x, &x->lengths, 3 * bytes, "the lengths"));
    x->image.n = x->lengths.at;
    MNP_TRY(exec_check(x, x->api->upload(x->queue, x->lengths.at, io->n, bytes), "the lengths"));
    if (io->m) {
        char *second = (char *)x->lengths.at + bytes;
        x->image.m = (const int64_t *)(const void *)second;
        MNP_TRY(exec_check(x, x->api->upload(x->queue, second, io->m, bytes), "the lengths"));
    }
    if (!io->k) return MNP_OK;
    char *third = (char *)x->lengths.at + 2 * bytes;
    x->image.k = (const int64_t *)(const void *)third;
    return exec_check(x, x->api->upload(x->queue, third, io->k, bytes), "the lengths");
}

/* Numbers of item i that a binding carries; -1: the host cannot know (a draw sets the length). */
static int64_t bound_count(const exec *x, const exec_io *io, val v, int64_t i) {
    const value *at = &x->plan->values[v];
    if (at->ext != EXT_FIXED && !io->n) return -1;
    int64_t rows = at->ext == EXT_N   ? io->n[i]
                   : at->ext == EXT_M ? (io->m ? io->m[i] : 0)
                   : at->ext == EXT_K ? (io->k ? io->k[i] : io->n[i])
                                      : at->rows;
    return rows * at->cols * (at->sampled && io->samples > 0 ? io->samples : 1);
}

static int64_t bound_span(const exec *x, const exec_io *io, val v, int64_t stride, int64_t items) {
    int64_t end = 0;
    for (int64_t i = 0; i < items; i++) {
        int64_t count = bound_count(x, io, v, i);
        if (count < 0) return -1;
        if (i * stride + count > end) end = i * stride + count;
    }
    return end;
}

static mnp_status place_bindings(exec *x, const exec_io *io, int64_t items) {
    for (int32_t k = 0; k < x->plan->n_function; k++) {
        const instr *ins = &x->plan->instrs[k];
        const int b = ins->i[0];
        if (ins->op == OP_feed) {
            int64_t span = bound_span(x, io, ins->out[0], io->feed_stride[b], items);
            if (span < 0) return env_fail(x->env, MNP_EINVAL, "an input has no length");
            MNP_TRY(
                exec_send(x, &x->feed[b], io->feed[b], (size_t)span * sizeof(double), "inputs"));
            x->image.feed[b] = x->feed[b].at, x->image.feed_stride[b] = io->feed_stride[b];
        } else if (ins->op == OP_emit) {
            x->image.emit[b] = NULL;
            if (!io->emit[b]) continue;
            int64_t span = bound_span(x, io, ins->in[0], io->emit_stride[b], items);
            if (span < 0) return env_fail(x->env, MNP_EINVAL, "an output has no length");
            MNP_TRY(exec_alloc(x, &x->emit[b], (size_t)span * sizeof(double), "outputs"));
            x->image.emit[b] = x->emit[b].at, x->image.emit_stride[b] = io->emit_stride[b];
        }
    }
    return MNP_OK;
}

mnp_status exec_collect(exec *x, const exec_io *io, int64_t items) {
    for (int32_t k = 0; k < x->plan->n_function; k++) {
        const instr *ins = &x->plan->instrs[k];
        const int b = ins->i[0];
        if (ins->op != OP_emit || !io->emit[b]) continue;
        const int64_t stride = io->emit_stride[b];
        const size_t span = (size_t)bound_span(x, io, ins->in[0], stride, items);
        if (span == 0) continue; /* no context */
        if (span > x->staging_count) {
            env_free(x->env, x->staging);
            x->staging_count = 0;
            x->staging = env_alloc(x->env, span, sizeof *x->staging, "outputs");
            if (!x->staging) return MNP_ENOMEM;
            x->staging_count = span;
        }
        MNP_TRY(exec_fetch(x, x->staging, &x->emit[b], span * sizeof(double), "outputs"));
        MNP_TRY(exec_wait(x));
        for (int64_t i = 0; i < items; i++) /* between items the caller's memory is not ours */
            memcpy(io->emit[b] + i * stride, x->staging + i * stride,
                   (size_t)bound_count(x, io, ins->in[0], i) * sizeof(double));
    }
    return MNP_OK;
}

static mnp_status place_step(exec *x, const exec_io *io) {
    static const step_block none = {.bad_item = -1};
    x->image.step = x->step.at, x->image.adam = x->adam.at, x->image.partial = x->partial.at;
    return exec_send(x, &x->step, io->step ? io->step : &none, sizeof(dev_step), "the step");
}

mnp_status exec_upload(exec *x, exec_io *io, int64_t items) {
    const plan *p = x->plan;
    dev_run *r = &x->image;
    *r = (dev_run){.code = x->code.at, .n_code = x->program.count, .items = items};
    r->samples = io->samples, r->chunks = io->chunks;
    r->first_function = io->first_function, r->first_row = io->first_row;
    r->cap_n = p->opts.n, r->cap_m = p->opts.m;
    r->words = p->params->words, r->trainable = p->params->trainable;
    r->culprit = x->culprit.at, r->clocks = x->clocks.at;
    MNP_TRY(exec_size_blocks(x, items));
    if (!x->program.updates || !x->pushed) MNP_TRY(exec_push(x, io));
    r->weights = x->mirror[0].at, r->moment1 = x->mirror[1].at, r->moment2 = x->mirror[2].at;
    r->average = io->average ? x->mirror[3].at : NULL;
    r->fp16 = x->program.reads_fp16 ? x->fp16.at : NULL, r->fp16_at = x->fp16_at.at;
    MNP_TRY(place_data(x, io));
    MNP_TRY(place_lengths(x, io, items));
    MNP_TRY(place_bindings(x, io, items));
    MNP_TRY(place_step(x, io));
    return exec_send(x, &x->run, r, sizeof *r, "the program");
}
