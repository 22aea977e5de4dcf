/* cuda.c: the CUDA backend on the host: what lies where on the device, what is copied when. The
 * kernels are in libmnp_cuda.so (loader.c); a plan becomes a program (program.c) that one kernel
 * interprets, a block per function.
 *
 * Weights, moments and averages are mirrored: push() sends the caller's, pull() brings them back. A
 * plan that updates works on the mirrors alone between the two (the first run pushes by itself); a
 * plan that does not update sends the weights with every run. */
#include "backend/cuda/cuda.h"

#include <string.h>

#include "backend/cuda/loader.h"
#include "backend/cuda/program.h"
#include "backend/cuda/share.h"
#include "comm/comm.h"
#include "op/update.h"

enum { MIRRORS = 4 }; /* weights, first and second moment, average */

/* A device block that grows. */
typedef struct block {
    void *at;
    size_t bytes;
} block;

struct exec {
    env *env;
    const plan *plan;
    exec_opts opts;
    const cuda_api *api;
    cuda_device_info device;
    cuda_queue *queue;
    cuda_program program;
    block code, outer, outer_of, kept, run, act, slots, scratch, step, adam, scalars, partial,
        state, culprit, clocks;
    block mirror[MIRRORS], data_start, data_x, data_y, lengths;
    block feed[EXEC_FEEDS], emit[EXEC_EMITS];
    dev_run image;        /* what `run` holds on the device      */
    data_view data;       /* the data set that is on the device  */
    bool pushed;          /* the mirrors hold the caller's words */
    int64_t slot_words;   /* stride of a slot                    */
    float *gradient;      /* host copy of slot 0                 */
    int64_t *clocks_host; /* (instructions)                      */
    double *staging;      /* of emitted numbers                  */
    size_t staging_count;
    float milliseconds;
    cuda_share *share; /* with the ranks of a job; NULL: this process computes every step alone */
    int64_t own_lo, own_hi; /* functions of the batch that this process computes */
};

/* ---- small helpers --------------------------------------------------------------------------- */

static mnp_status device_check(exec *x, int error, const char *what) {
    if (!error) return MNP_OK;
    return env_fail(x->env, MNP_EDEVICE, "the GPU failed in %s: %s", what,
                    x->api->error_text(error));
}

/* At least so many bytes; what was there is lost when it grows. */
static mnp_status room(exec *x, block *b, size_t bytes, const char *what) {
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

static mnp_status send(exec *x, block *b, const void *from, size_t bytes, const char *what) {
    MNP_TRY(room(x, b, bytes, what));
    return bytes ? device_check(x, x->api->upload(x->queue, b->at, from, bytes), what) : MNP_OK;
}

static mnp_status fetch(exec *x, void *to, const block *b, size_t bytes, const char *what) {
    return bytes ? device_check(x, x->api->download(x->queue, to, b->at, bytes), what) : MNP_OK;
}

static mnp_status wait_for(exec *x) {
    return device_check(x, x->api->sync(x->queue), "a kernel");
}

static size_t block_bytes(const exec *x) {
    return (size_t)x->plan->params->words * sizeof(float);
}

/* ---- making ---------------------------------------------------------------------------------- */

static void destroy(exec *x) {
    if (!x) return;
    env *e = x->env;
    if (x->api) {
        block *own[] = {&x->code,       &x->outer,   &x->outer_of, &x->kept,    &x->run,
                        &x->act,        &x->slots,   &x->scratch,  &x->step,    &x->adam,
                        &x->scalars,    &x->partial, &x->state,    &x->culprit, &x->clocks,
                        &x->data_start, &x->data_x,  &x->data_y,   &x->lengths};
        if (x->queue) x->api->sync(x->queue);
        for (size_t k = 0; k < sizeof own / sizeof *own; k++) x->api->release(own[k]->at);
        for (int k = 0; k < MIRRORS; k++) x->api->release(x->mirror[k].at);
        for (int k = 0; k < EXEC_FEEDS; k++) x->api->release(x->feed[k].at);
        for (int k = 0; k < EXEC_EMITS; k++) x->api->release(x->emit[k].at);
        share_close(x->share, x->api);
        x->api->queue_destroy(x->queue);
    }
    program_free(e, &x->program);
    env_free(e, x->gradient);
    env_free(e, x->clocks_host);
    env_free(e, x->staging);
    env_free(e, x);
}

static mnp_status send_program(exec *x) {
    const cuda_program *p = &x->program;
    MNP_TRY(send(x, &x->code, p->code, (size_t)p->count * sizeof *p->code, "the program"));
    if (p->n_outer == 0) return MNP_OK;
    const int64_t pieces = x->plan->params->trainable / DEV_OUTER_WORDS + 1;
    MNP_TRY(send(x, &x->outer, p->outer, (size_t)p->n_outer * sizeof *p->outer, "the program"));
    return send(x, &x->outer_of, p->outer_of, (size_t)pieces * sizeof *p->outer_of, "the program");
}

static mnp_status prepare(exec *x) {
    MNP_TRY(device_check(x, x->api->queue_make(&x->queue), "setting up"));
    MNP_TRY(send_program(x));
    MNP_TRY(room(x, &x->run, sizeof(dev_run), "the program"));
    MNP_TRY(room(x, &x->step, sizeof(dev_step), "the step"));
    MNP_TRY(room(x, &x->adam, sizeof(dev_adam), "the step"));
    MNP_TRY(room(x, &x->culprit, 2 * sizeof(int32_t), "the program"));
    for (int k = 0; k < MIRRORS; k++)
        if (k == 0 || x->program.updates)
            MNP_TRY(room(x, &x->mirror[k], block_bytes(x) + 64, "the weights"));
    if (x->opts.profile) {
        const size_t count = (size_t)x->program.count + 1;
        MNP_TRY(room(x, &x->clocks, count * sizeof(int64_t), "the profile"));
        x->clocks_host = env_alloc(x->env, count, sizeof(int64_t), "the profile");
        if (!x->clocks_host) return MNP_ENOMEM;
    }
    if (!x->program.has_grad) return MNP_OK;
    const int64_t trainable = x->plan->params->trainable;
    x->slot_words = (trainable + 31) / 32 * 32;
    const size_t ranges = (size_t)(x->plan->params->words / DEV_STEP_WORDS) + 1;
    MNP_TRY(room(x, &x->partial, ranges * sizeof(double), "reductions"));
    x->gradient = env_alloc(x->env, (size_t)x->slot_words + 1, sizeof(float), "the gradient");
    if (!x->gradient) return MNP_ENOMEM;
    if (!x->program.updates || (comm_size(x->env) < 2 && !x->opts.linked)) return MNP_OK;
    return share_open(x->env, &x->share);
}

static mnp_status compile(env *e, const plan *p, const exec_opts *o, exec **out) {
    *out = NULL;
    exec *x = env_alloc(e, 1, sizeof *x, "a compiled plan");
    if (!x) return MNP_ENOMEM;
    x->env = e;
    x->plan = p;
    x->opts = *o;
    const cuda_api *api = NULL;
    mnp_status status = cuda_load(e, &api, &x->device);
    if (status == MNP_OK && comm_job_size(e) > 1)
        status = cuda_select(e, api, comm_local(e), &x->device);
    if (status == MNP_OK) {
        x->api = api;
        status = program_make(e, p, o->math, PROGRAM_FUSE_ALL, &x->program);
    }
    if (status == MNP_OK) status = prepare(x);
    if (status != MNP_OK) {
        destroy(x);
        return status;
    }
    *out = x;
    return MNP_OK;
}

static mnp_status usable(env *e) {
    const cuda_api *api = NULL;
    cuda_device_info info;
    return cuda_load(e, &api, &info);
}

/* ---- mirrors --------------------------------------------------------------------------------- */

static void blocks_of(const exec_io *io, void *out[MIRRORS]) {
    out[0] = io->weights, out[1] = io->moment1, out[2] = io->moment2, out[3] = io->average;
}

static mnp_status push(exec *x, exec_io *io) {
    void *from[MIRRORS];
    blocks_of(io, from);
    for (int k = 0; k < MIRRORS; k++)
        if (from[k] && x->mirror[k].at)
            MNP_TRY(send(x, &x->mirror[k], from[k], block_bytes(x), "the weights"));
    x->pushed = true;
    return wait_for(x);
}

static mnp_status pull(exec *x, exec_io *io) {
    void *to[MIRRORS];
    blocks_of(io, to);
    if (!x->program.updates || !x->pushed) return MNP_OK;
    for (int k = 0; k < MIRRORS; k++)
        if (to[k]) MNP_TRY(fetch(x, to[k], &x->mirror[k], block_bytes(x), "the weights"));
    return wait_for(x);
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* A block per multiprocessor at most: each takes all of its shared memory. */
static mnp_status place_blocks(exec *x, int64_t items, int *blocks) {
    const comm_span own = x->share ? comm_own(x->env, items, 1) : (comm_span){0, items};
    int64_t count = x->device.processors;
    if (own.hi - own.lo < count) count = own.hi > own.lo ? own.hi - own.lo : 1;
    const size_t act = (size_t)(x->program.act_words + 31) / 32 * 32;
    const size_t scratch = (size_t)(x->program.scratch_words + 31) / 32 * 32;
    MNP_TRY(room(x, &x->act, (size_t)count * act * sizeof(float), "the activations"));
    MNP_TRY(room(x, &x->scratch, (size_t)count * scratch * sizeof(int32_t) + 64, "scratch"));
    MNP_TRY(
        room(x, &x->slots, (size_t)(count * x->slot_words) * sizeof(float), "the gradient slots"));
    const size_t kept = (size_t)(own.hi - own.lo) * (size_t)x->program.kept_words;
    MNP_TRY(room(x, &x->kept, kept * sizeof(float), "the rows of gradients"));
    const size_t reports = (size_t)(items + 1) * REPORT_COUNT;
    MNP_TRY(room(x, &x->scalars, reports * sizeof(double), "the scores"));
    x->image.item_lo = x->own_lo = own.lo, x->image.item_hi = x->own_hi = own.hi;
    x->image.act = x->act.at, x->image.act_words = (int64_t)act;
    x->image.scratch = x->scratch.at, x->image.scratch_words = (int64_t)scratch;
    x->image.slots = x->slots.at, x->image.slot_words = x->slot_words;
    x->image.n_slots = count;
    x->image.kept = x->kept.at, x->image.kept_words = x->program.kept_words;
    x->image.outer = x->outer.at;
    x->image.outer_of = x->program.n_outer ? x->outer_of.at : NULL;
    x->image.item_scalars = x->scalars.at;
    *blocks = (int)count;
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
        MNP_TRY(send(x, &x->data_start, d->start, (size_t)(d->functions + 1) * sizeof(int64_t),
                     "the data set"));
        const size_t inputs = d->shared_x ? (size_t)d->start[1] : points;
        MNP_TRY(
            send(x, &x->data_x, d->x, inputs * (size_t)d->x_dim * sizeof(float), "the data set"));
        MNP_TRY(send(x, &x->data_y, d->y, points * sizeof(float), "the data set"));
        MNP_TRY(wait_for(x));
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
    MNP_TRY(room(x, &x->lengths, 3 * bytes, "the lengths"));
    x->image.n = x->lengths.at;
    MNP_TRY(device_check(x, x->api->upload(x->queue, x->lengths.at, io->n, bytes), "the lengths"));
    if (io->m) {
        char *second = (char *)x->lengths.at + bytes;
        x->image.m = (const int64_t *)(const void *)second;
        MNP_TRY(device_check(x, x->api->upload(x->queue, second, io->m, bytes), "the lengths"));
    }
    if (!io->k) return MNP_OK;
    char *third = (char *)x->lengths.at + 2 * bytes;
    x->image.k = (const int64_t *)(const void *)third;
    return device_check(x, x->api->upload(x->queue, third, io->k, bytes), "the lengths");
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
            MNP_TRY(send(x, &x->feed[b], io->feed[b], (size_t)span * sizeof(double), "inputs"));
            x->image.feed[b] = x->feed[b].at, x->image.feed_stride[b] = io->feed_stride[b];
        } else if (ins->op == OP_emit) {
            x->image.emit[b] = NULL;
            if (!io->emit[b]) continue;
            int64_t span = bound_span(x, io, ins->in[0], io->emit_stride[b], items);
            if (span < 0) return env_fail(x->env, MNP_EINVAL, "an output has no length");
            MNP_TRY(room(x, &x->emit[b], (size_t)span * sizeof(double), "outputs"));
            x->image.emit[b] = x->emit[b].at, x->image.emit_stride[b] = io->emit_stride[b];
        }
    }
    return MNP_OK;
}

static mnp_status collect_emits(exec *x, const exec_io *io, int64_t items) {
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
        MNP_TRY(fetch(x, x->staging, &x->emit[b], span * sizeof(double), "outputs"));
        MNP_TRY(wait_for(x));
        for (int64_t i = 0; i < items; i++) /* between items the caller's memory is not ours */
            memcpy(io->emit[b] + i * stride, x->staging + i * stride,
                   (size_t)bound_count(x, io, ins->in[0], i) * sizeof(double));
    }
    return MNP_OK;
}

static mnp_status place_state(exec *x, const exec_io *io) {
    const size_t bytes = (size_t)x->plan->state_words * sizeof(float);
    if (!bytes || !io->state) return MNP_OK;
    MNP_TRY(send(x, &x->state, io->state, bytes, "the state"));
    x->image.state = x->state.at;
    return MNP_OK;
}

static mnp_status place_step(exec *x, const exec_io *io) {
    step_block none = {.bad_item = -1};
    MNP_TRY(send(x, &x->step, io->step ? io->step : &none, sizeof(dev_step), "the step"));
    x->image.step = x->step.at, x->image.adam = x->adam.at, x->image.partial = x->partial.at;
    return wait_for(x); /* `none` is on this stack */
}

static mnp_status place(exec *x, exec_io *io, int64_t items, int *blocks) {
    const plan *p = x->plan;
    dev_run *r = &x->image;
    *r = (dev_run){.code = x->code.at, .n_code = x->program.count, .items = items};
    r->samples = io->samples, r->chunks = io->chunks;
    r->first_function = io->first_function, r->first_row = io->first_row;
    r->cap_n = p->opts.n, r->cap_m = p->opts.m;
    r->words = p->params->words, r->trainable = p->params->trainable;
    r->culprit = x->culprit.at, r->clocks = x->clocks.at;
    MNP_TRY(place_blocks(x, items, blocks));
    if (!x->program.updates || !x->pushed) MNP_TRY(push(x, io));
    r->weights = x->mirror[0].at, r->moment1 = x->mirror[1].at, r->moment2 = x->mirror[2].at;
    r->average = io->average ? x->mirror[3].at : NULL;
    MNP_TRY(place_data(x, io));
    MNP_TRY(place_lengths(x, io, items));
    MNP_TRY(place_bindings(x, io, items));
    MNP_TRY(place_state(x, io));
    MNP_TRY(place_step(x, io));
    return send(x, &x->run, r, sizeof *r, "the program");
}

/* The same program op by op: inside a part nobody can tell which of them it was. It has more
 * instructions than a profile has room for, so that ends. */
static mnp_status unfuse(exec *x, int *blocks) {
    if (x->program.n_fused == 0) return MNP_OK;
    program_free(x->env, &x->program);
    x->api->release(x->clocks.at);
    x->clocks = (block){0};
    env_free(x->env, x->clocks_host);
    x->clocks_host = NULL;
    MNP_TRY(program_make(x->env, x->plan, x->opts.math, 0, &x->program));
    MNP_TRY(send_program(x));
    x->image.code = x->code.at, x->image.n_code = x->program.count;
    x->image.clocks = NULL;
    return place_blocks(x, x->image.items, blocks);
}

/* Runs the functions again, which changes nothing, and names the first op that went wrong. */
static mnp_status name_culprit(exec *x, int64_t item, int blocks) {
    if (item < 0) return env_fail(x->env, MNP_ENUMERIC, "the gradient of the batch is not finite");
    int32_t found[2] = {-1, -1};
    MNP_TRY(unfuse(x, &blocks));
    MNP_TRY(send(x, &x->culprit, found, sizeof found, "the program"));
    x->image.diagnose = 1;
    x->image.item_lo = 0, x->image.item_hi = x->image.items;
    MNP_TRY(send(x, &x->run, &x->image, sizeof x->image, "the program"));
    MNP_TRY(device_check(x, x->api->functions(x->queue, x->run.at, blocks), "a launch"));
    MNP_TRY(fetch(x, found, &x->culprit, sizeof found, "the program"));
    MNP_TRY(wait_for(x));
    if (found[0] < 0)
        return env_fail(x->env, MNP_ENUMERIC,
                        "the loss of function %lld of the batch is not finite", (long long)item);
    const int32_t at = x->program.from[found[0]];
    const instr *ins = &x->plan->instrs[at];
    return env_fail(x->env, MNP_ENUMERIC,
                    "function %lld of the batch: op '%s' gave a NaN or an infinity in '%s' "
                    "(instruction %d)",
                    (long long)item, op_name(ins->op), x->plan->values[ins->out[found[1]]].name,
                    at);
}

static mnp_status share_steps(exec *x, int64_t items) {
    if (x->own_lo == x->own_hi)
        return env_fail(x->env, MNP_EINVAL, "%d ranks share a batch of %lld functions",
                        comm_size(x->env), (long long)items);
    bool go;
    MNP_TRY(comm_all(x->env, !env_cancelled(x->env), &go, "the next steps"));
    if (!go) return env_fail(x->env, MNP_ECANCELLED, "the ranks were asked to stop");
    return share_place(x->share, x->env, x->api, x->queue, items, (size_t)x->slot_words,
                       x->slots.at, x->scalars.at);
}

static mnp_status run_updates(exec *x, exec_io *io, int64_t steps, int blocks) {
    if (x->share) MNP_TRY(share_steps(x, x->image.items));
    MNP_TRY(device_check(x,
                         x->api->steps(x->queue, x->run.at, blocks, x->plan->params->words, steps,
                                       !x->opts.uncaptured),
                         "a launch"));
    MNP_TRY(fetch(x, io->step, &x->step, sizeof *io->step, "the step"));
    if (x->share) MNP_TRY(share_wait(x->share, x->env, x->api, x->queue));
    MNP_TRY(wait_for(x));
    MNP_TRY(device_check(x, x->api->elapsed(x->queue, &x->milliseconds), "timing"));
    return update_ok(io->step) ? MNP_OK : name_culprit(x, io->step->bad_item, blocks);
}

static mnp_status run(exec *x, exec_io *io, int64_t items, int64_t steps) {
    if (steps < 1 || items < 1) return MNP_OK;
    int blocks = 1;
    MNP_TRY(backend_check_lengths(x->env, x->plan, io, items));
    MNP_TRY(place(x, io, items, &blocks));
    if (x->program.updates) return run_updates(x, io, steps, blocks);
    for (int64_t s = 0; s < steps; s++)
        MNP_TRY(device_check(x, x->api->functions(x->queue, x->run.at, blocks), "a launch"));
    MNP_TRY(wait_for(x));
    MNP_TRY(collect_emits(x, io, items));
    const size_t state = (size_t)x->plan->state_words * sizeof(float);
    if (state && io->state) MNP_TRY(fetch(x, io->state, &x->state, state, "the state"));
    return wait_for(x);
}

/* ---- what was found -------------------------------------------------------------------------- */

static const void *gradient(const exec *x) {
    exec *own = (exec *)(uintptr_t)x;
    if (!x->gradient || !x->slots.at) return NULL;
    const size_t bytes = (size_t)x->plan->params->trainable * sizeof(float);
    if (x->api->download(own->queue, x->gradient, x->slots.at, bytes)) return NULL;
    return x->api->sync(own->queue) ? NULL : x->gradient;
}

static size_t memory(const exec *x) {
    const block *own[] = {&x->code,  &x->act,     &x->kept,   &x->slots, &x->scratch,
                          &x->state, &x->scalars, &x->data_x, &x->data_y};
    size_t sum = 0;
    for (size_t k = 0; k < sizeof own / sizeof *own; k++) sum += own[k]->bytes;
    for (int k = 0; k < MIRRORS; k++) sum += x->mirror[k].bytes;
    return sum;
}

double cuda_milliseconds(const exec *x) {
    return (double)x->milliseconds;
}

bool cuda_profile(exec *x, int32_t k, cuda_cost *out) {
    if (!x->clocks_host || k >= x->program.count) return false;
    const size_t bytes = (size_t)x->program.count * sizeof(int64_t);
    if (k == 0 &&
        (x->api->download(x->queue, x->clocks_host, x->clocks.at, bytes) || x->api->sync(x->queue)))
        return false;
    *out = (cuda_cost){x->program.from[k], x->program.part[k], x->program.code[k].together,
                       x->clocks_host[k]};
    return true;
}

const backend backend_cuda = {.name = "cuda",
                              .element = sizeof(float),
                              .compile = compile,
                              .run = run,
                              .usable = usable,
                              .push = push,
                              .pull = pull,
                              .gradient = gradient,
                              .memory = memory,
                              .destroy = destroy};
