/* ctx.c: contexts, status names, version. */
#include <string.h>

#include "api/handles.h"
#include "bandit/bruno.h"
#include "bandit/maml.h"
#include "comm/comm.h"

const char *mnp_version(void) {
    return MNP_VERSION;
}

const char *mnp_status_name(mnp_status s) {
    static const char *const names[] = {[MNP_OK] = "ok",
                                        [MNP_EINVAL] = "invalid argument",
                                        [MNP_ENOMEM] = "out of memory",
                                        [MNP_EIO] = "input/output error",
                                        [MNP_EFORMAT] = "bad file",
                                        [MNP_EUNSUPPORTED] = "not supported",
                                        [MNP_EDEVICE] = "device error",
                                        [MNP_ENUMERIC] = "not a finite number",
                                        [MNP_ECANCELLED] = "cancelled",
                                        [MNP_EPEER] = "another process failed"};
    return (unsigned)s < sizeof names / sizeof *names ? names[s] : "unknown status";
}

mnp_status mnp_ctx_create(const mnp_ctx_opts *opts, mnp_ctx **out) {
    if (!out) return MNP_EINVAL;
    *out = NULL;
    mnp_ctx_opts o;
    env e; /* without a context the text of a failure has no place: the status says it alone */
    env_init(&e);
    MNP_TRY(TAKE_OPTS(&e, mnp_ctx_opts, opts, &o));
    if (o.allocator.alloc && o.allocator.free) e.allocator = o.allocator;
    e.log = o.log;
    e.log_user = o.log_user;
    e.cancel = o.cancel;
    e.cancel_user = o.cancel_user;
    mnp_ctx *ctx = env_alloc(&e, 1, sizeof *ctx, "a context");
    if (!ctx) return MNP_ENOMEM;
    ctx->env = e;
    ctx->threads = o.threads;
    *out = ctx;
    return MNP_OK;
}

void mnp_ctx_destroy(mnp_ctx *ctx) {
    if (!ctx) return;
    comm_close(&ctx->env);
    pool_destroy(ctx->pool);
    env e = ctx->env;
    env_free(&e, ctx);
}

const char *mnp_last_error(const mnp_ctx *ctx) {
    return ctx ? ctx->env.error : "";
}

mnp_status ctx_pool(mnp_ctx *ctx, pool **out) {
    if (!ctx->pool) MNP_TRY(pool_create(&ctx->env, ctx->threads, &ctx->pool));
    *out = ctx->pool;
    return MNP_OK;
}

/* ---- many processes -------------------------------------------------------------------------- */

mnp_status mnp_ctx_join(mnp_ctx *ctx, const mnp_job_opts *opts) {
    if (!ctx) return MNP_EINVAL;
    mnp_job_opts o;
    MNP_TRY(TAKE_OPTS(&ctx->env, mnp_job_opts, opts, &o));
    if (ctx->env.comm) return env_fail(&ctx->env, MNP_EINVAL, "the context is in a job already");
    return comm_open(&ctx->env, &(comm_opts){.timeout = o.timeout, .fast = o.fast});
}

void mnp_ctx_alone(mnp_ctx *ctx, bool on) {
    comm_alone(&ctx->env, on);
}

int mnp_ctx_rank(const mnp_ctx *ctx) {
    return comm_job_rank(&ctx->env);
}

int mnp_ctx_ranks(const mnp_ctx *ctx) {
    return comm_job_size(&ctx->env);
}

mnp_status mnp_ctx_meet(mnp_ctx *ctx) {
    return comm_barrier(&ctx->env, "a meeting of all ranks");
}

mnp_status mnp_ctx_share(mnp_ctx *ctx, void *data, size_t bytes) {
    return comm_broadcast(&ctx->env, data, bytes, "numbers of rank 0");
}

mnp_status mnp_ctx_gather(mnp_ctx *ctx, void *data, int64_t total, int64_t unit, size_t element) {
    return comm_gather_parts(&ctx->env, data, total, unit, element, "parts of all ranks");
}

mnp_status mnp_ctx_part(mnp_ctx *ctx, int64_t total, int64_t unit, int64_t *lo, int64_t *hi) {
    comm_span own = comm_own(&ctx->env, total, unit);
    *lo = own.lo, *hi = own.hi;
    return MNP_OK;
}

void mnp_ctx_beat(mnp_ctx *ctx) {
    comm_beat(&ctx->env);
}

void mnp_ctx_leave(mnp_ctx *ctx) {
    comm_close(&ctx->env);
}

bool mnp_ctx_tell(mnp_ctx *ctx, const char *why) {
    return comm_tell(&ctx->env, why);
}

/* ---- option tables -----------------------------------------------------------------------------
 */

typedef struct all_specs {
    model_spec model;
    train_spec train;
    maml_opts maml;
    bruno_opts bruno;
} all_specs;

static option_view view_of(const char *table, all_specs *s) {
    if (strcmp(table, "maml") == 0) return maml_view(&s->maml);
    if (strcmp(table, "c-bruno") == 0) return bruno_view(&s->bruno);
    return strcmp(table, "train") == 0 ? train_view(&s->train) : spec_view(&s->model);
}

bool mnp_options_has(const char *table, const char *name) {
    all_specs s;
    option_view view = view_of(table, &s);
    return options_find(&view, 1, name) != NULL;
}

size_t mnp_options_help(const char *table, char *out, size_t size) {
    env e;
    env_init(&e);
    buf text;
    buf_init(&text, &e);
    all_specs s;
    option_view view = view_of(table, &s);
    options_help(&text, &view, 1);
    size_t length = text.len;
    if (size > 0) {
        size_t keep = length < size - 1 ? length : size - 1;
        if (keep) memcpy(out, buf_str(&text), keep);
        out[keep] = '\0';
    }
    buf_free(&text);
    return length;
}
