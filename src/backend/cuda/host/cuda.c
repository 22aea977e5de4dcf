/* cuda.c: the CUDA backend on the host: plans compiled and run. The kernels are in libmnp_cuda.so
 * (loader.c); a plan becomes a program (program/program.c) that one kernel interprets, a block per
 * function; memory.c has what lies where on the device and what is copied when. */
#include "backend/cuda/host/cuda.h"

#include "backend/cuda/host/exec_internal.h"
#include "backend/cuda/host/loader.h"
#include "comm/comm.h"
#include "op/update.h"
#include "util/text.h"

/* ---- making ---------------------------------------------------------------------------------- */

static void destroy(exec *x) {
    if (!x) return;
    env *e = x->env;
    if (x->api) {
        block *own[] = {&x->code,        &x->outer,  &x->products,   &x->terms,   &x->grad_spans,
                        &x->wgrad_tasks, &x->saved,  &x->run,        &x->act,     &x->slots,
                        &x->scratch,     &x->step,   &x->adam,       &x->scalars, &x->partial,
                        &x->culprit,     &x->clocks, &x->data_start, &x->data_x,  &x->data_y,
                        &x->lengths,     &x->fp16,   &x->fp16_at,    &x->drawn};
        if (x->queue) x->api->sync(x->queue);
        for (size_t k = 0; k < sizeof own / sizeof *own; k++) x->api->release(own[k]->at);
        for (int k = 0; k < MIRRORS; k++) x->api->release(x->mirror[k].at);
        for (int k = 0; k < EXEC_FEEDS; k++) x->api->release(x->feed[k].at);
        for (int k = 0; k < EXEC_EMITS; k++) x->api->release(x->emit[k].at);
        ranks_close(x->ranks, x->api);
        x->api->queue_destroy(x->queue);
    }
    program_free(e, &x->program);
    env_free(e, x->gradient);
    env_free(e, x->clocks_host);
    env_free(e, x->staging);
    env_free(e, x->stages);
    env_free(e, x);
}

static mnp_status send_program(exec *x) {
    const cuda_program *p = &x->program;
    MNP_TRY(exec_send(x, &x->code, p->code, (size_t)p->count * sizeof *p->code, "the program"));
    if (p->n_grad_spans > 0) {
        const size_t grad_spans = (size_t)p->n_grad_spans;
        MNP_TRY(exec_send(x, &x->grad_spans, p->grad_spans, grad_spans * sizeof *p->grad_spans,
                          "the program"));
        MNP_TRY(exec_alloc(x, &x->partial, grad_spans * sizeof(double), "reductions"));
    }
    MNP_TRY(exec_send(x, &x->wgrad_tasks, p->wgrad_tasks,
                      (size_t)p->n_wgrad_tasks * sizeof *p->wgrad_tasks, "the program"));
    MNP_TRY(exec_send(x, &x->products, p->products, (size_t)p->n_products * sizeof *p->products,
                      "the program"));
    MNP_TRY(
        exec_send(x, &x->terms, p->terms, (size_t)p->n_terms * sizeof *p->terms, "the program"));
    MNP_TRY(
        exec_send(x, &x->outer, p->outer, (size_t)p->n_outer * sizeof *p->outer, "the program"));
    if (p->reads_fp16) {
        const size_t fours = (size_t)(x->plan->params->words / 4);
        MNP_TRY(exec_alloc(x, &x->fp16, exec_mirror_bytes(x) / 2 + 64, "the weights"));
        MNP_TRY(exec_send(x, &x->fp16_at, p->fp16_at, fours * sizeof(int32_t), "the program"));
    }
    env_free(x->env, x->stages);
    x->stages = env_alloc(x->env, (size_t)p->n_stages + 1, sizeof *x->stages, "the program");
    return x->stages ? MNP_OK : MNP_ENOMEM;
}

static mnp_status prepare(exec *x) {
    MNP_TRY(exec_check(x, x->api->queue_make(&x->queue, x->set), "setting up"));
    MNP_TRY(send_program(x));
    MNP_TRY(exec_alloc(x, &x->run, sizeof(dev_run), "the program"));
    MNP_TRY(exec_alloc(x, &x->step, sizeof(dev_step), "the step"));
    MNP_TRY(exec_alloc(x, &x->adam, sizeof(dev_adam), "the step"));
    MNP_TRY(exec_alloc(x, &x->culprit, 2 * sizeof(int32_t), "the program"));
    for (int k = 0; k < MIRRORS; k++)
        if (k == 0 || x->program.updates)
            MNP_TRY(exec_alloc(x, &x->mirror[k], exec_mirror_bytes(x) + 64, "the weights"));
    if (x->opts.profile) {
        const size_t count = (size_t)x->program.count + 3;
        MNP_TRY(exec_alloc(x, &x->clocks, count * sizeof(int64_t), "the profile"));
        x->clocks_host = env_alloc(x->env, count, sizeof(int64_t), "the profile");
        if (!x->clocks_host) return MNP_ENOMEM;
    }
    if (!x->program.has_grad) return MNP_OK;
    const int64_t trainable = x->plan->params->trainable;
    x->slot_words = (trainable + 31) / 32 * 32;
    x->gradient = env_alloc(x->env, (size_t)x->slot_words + 1, sizeof(float), "the gradient");
    if (!x->gradient) return MNP_ENOMEM;
    if (!x->program.updates || (comm_size(x->env) < 2 && !x->opts.linked)) return MNP_OK;
    return ranks_open(x->env, &x->ranks);
}

static int set_for(const cuda_device_info *device, const exec_opts *o) {
    if (cuda_has_full(device) && !o->general) return CUDA_FULL;
    return o->math == MATH_FP32 || o->math == MATH_MIXED ? CUDA_GENERAL_FP32 : CUDA_GENERAL_16;
}

/* The general set for fp32, which also has programs in mixed precision, has no wide kernels. */
static exec_wide wide_for(int set, const exec_opts *o) {
    return set == CUDA_GENERAL_FP32 ? WIDE_NEVER : o->wide;
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
        x->set = set_for(&x->device, o);
        status = program_make(e, p, o->math, x->set == CUDA_FULL ? PROGRAM_FUSE_ALL : 0,
                              wide_for(x->set, o), &x->program);
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

static const char *kernels(const exec *x) {
    return x && x->set != CUDA_FULL ? "gpu, general kernels" : "gpu";
}

static mnp_status describe(env *e, char *out, size_t size) {
    const cuda_api *api = NULL;
    cuda_device_info info;
    char memory[TEXT_NUMBER];
    MNP_TRY(cuda_load(e, &api, &info));
    snprintf(out, size, "%s, %s%s", info.name, text_bytes(memory, (double)info.memory),
             cuda_has_full(&info) ? "" : ", general kernels");
    return MNP_OK;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void give_back(exec *x, block *b) {
    x->api->release(b->at);
    *b = (block){0};
}

/* Another program of the same plan, which needs an arena for a block alone. It may have more
 * instructions than a profile has room for, so that ends. */
static mnp_status make_again(exec *x, uint32_t kinds) {
    program_free(x->env, &x->program);
    give_back(x, &x->act);
    give_back(x, &x->clocks);
    env_free(x->env, x->clocks_host);
    x->clocks_host = NULL;
    MNP_TRY(program_make(x->env, x->plan, x->opts.math, kinds, WIDE_NEVER, &x->program));
    MNP_TRY(send_program(x));
    return x->pushed ? exec_push_fp16(x) : MNP_OK;
}

/* The same program op by op, function by function: inside a part, or in a kernel for all functions,
 * nobody can tell which of them it was. */
static mnp_status unfuse(exec *x) {
    if (x->program.n_fused == 0 && x->program.n_stages == 1) return MNP_OK;
    MNP_TRY(make_again(x, 0));
    x->image.code = x->code.at, x->image.n_code = x->program.count;
    x->image.clocks = NULL;
    return exec_size_blocks(x, x->image.items);
}

/* Runs the functions again, which changes nothing, and names the first op that went wrong. */
static mnp_status name_culprit(exec *x, int64_t item) {
    if (item < 0) return env_fail(x->env, MNP_ENUMERIC, "the gradient of the batch is not finite");
    int32_t found[2] = {-1, -1};
    MNP_TRY(unfuse(x));
    MNP_TRY(exec_send(x, &x->culprit, found, sizeof found, "the program"));
    x->image.diagnose = 1;
    x->image.item_lo = 0, x->image.item_hi = x->image.items;
    MNP_TRY(exec_send(x, &x->run, &x->image, sizeof x->image, "the program"));
    exec_size_stages(x, 0, x->image.items);
    MNP_TRY(exec_check(x, x->api->functions(x->queue, x->run.at, x->stages, x->program.n_stages),
                       "a launch"));
    MNP_TRY(exec_fetch(x, found, &x->culprit, sizeof found, "the program"));
    MNP_TRY(exec_wait(x));
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

static mnp_status bind_ranks(exec *x, int64_t items) {
    if (x->own_lo == x->own_hi)
        return env_fail(x->env, MNP_EINVAL, "%d ranks share a batch of %lld functions",
                        comm_size(x->env), (long long)items);
    bool go;
    MNP_TRY(comm_all(x->env, !env_cancelled(x->env), &go, "the next steps"));
    if (!go) return env_fail(x->env, MNP_ECANCELLED, "the ranks were asked to stop");
    return ranks_bind(x->ranks, x->env, x->api, x->queue, items, (size_t)x->slot_words, x->slots.at,
                      x->scalars.at);
}

static mnp_status run_updates(exec *x, exec_io *io, int64_t steps) {
    if (x->ranks) MNP_TRY(bind_ranks(x, x->image.items));
    exec_size_stages(x, x->own_lo, x->own_hi);
    MNP_TRY(exec_check(x,
                       x->api->steps(x->queue, x->run.at, &x->shape, x->stages, x->program.n_stages,
                                     steps, !x->opts.uncaptured),
                       "a launch"));
    MNP_TRY(exec_fetch(x, io->step, &x->step, sizeof *io->step, "the step"));
    if (x->ranks) MNP_TRY(ranks_wait(x->ranks, x->env, x->api, x->queue));
    MNP_TRY(exec_wait(x));
    MNP_TRY(exec_check(x, x->api->elapsed(x->queue, &x->milliseconds), "timing"));
    return update_ok(io->step) ? MNP_OK : name_culprit(x, io->step->bad_item);
}

/* All functions once; where there are several stages, as many at a time as have an arena. */
static mnp_status run_functions(exec *x) {
    const int64_t most = x->program.n_stages > 1 ? x->arenas : x->own_hi - x->own_lo;
    for (int64_t lo = x->own_lo; lo < x->own_hi; lo += most) {
        exec_size_stages(x, lo, lo + most < x->own_hi ? lo + most : x->own_hi);
        MNP_TRY(exec_check(
            x, x->api->functions(x->queue, x->run.at, x->stages, x->program.n_stages), "a launch"));
    }
    return MNP_OK;
}

/* Where there is no memory for all functions at once, the program goes on without stages. All ranks
 * have the same one: their sums of squares are to have the same bits. */
static mnp_status make_room(exec *x, int64_t items) {
    if (x->program.n_stages == 1) return MNP_OK;
    const mnp_status status = exec_stages_fit(x, items) ? exec_size_blocks(x, items) : MNP_ENOMEM;
    if (status != MNP_OK && status != MNP_ENOMEM) return status;
    bool room = status == MNP_OK;
    if (x->ranks) MNP_TRY(comm_all(x->env, room, &room, "memory for the next steps"));
    return room ? MNP_OK : make_again(x, x->set == CUDA_FULL ? PROGRAM_FUSE_ALL : 0);
}

static mnp_status run(exec *x, exec_io *io, int64_t items, int64_t steps) {
    if (steps < 1 || items < 1) return MNP_OK;
    MNP_TRY(backend_check_lengths(x->env, x->plan, io, items));
    MNP_TRY(make_room(x, items));
    MNP_TRY(exec_upload(x, io, items));
    if (x->program.updates) return run_updates(x, io, steps);
    for (int64_t s = 0; s < steps; s++) MNP_TRY(run_functions(x));
    MNP_TRY(exec_wait(x));
    MNP_TRY(exec_collect(x, io, items));
    return exec_wait(x);
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
    const block *own[] = {&x->code,    &x->act,    &x->saved,  &x->slots, &x->scratch,
                          &x->scalars, &x->data_x, &x->data_y, &x->fp16};
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
    *out = (cuda_cost){x->program.from[k], x->program.fused_name[k], x->program.code[k].together,
                       x->clocks_host[k]};
    return true;
}

const backend backend_cuda = {.name = "cuda",
                              .element = sizeof(float),
                              .modes = true,
                              .kernels = kernels,
                              .compile = compile,
                              .run = run,
                              .usable = usable,
                              .describe = describe,
                              .push = exec_push,
                              .pull = exec_pull,
                              .gradient = gradient,
                              .memory = memory,
                              .destroy = destroy};
