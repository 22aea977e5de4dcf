/* ctx.c: contexts, status names, version. */
#include <string.h>

#include "api/api_internal.h"
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

static mnp_status check_ctx_opts(env *e, const mnp_ctx_opts *o) {
    MNP_TRY(check_range(e, o->threads, 0, POOL_THREADS_MAX, "mnp_ctx_opts.threads"));
    if (!o->allocator.alloc == !o->allocator.free) return MNP_OK;
    return env_fail(e, MNP_EINVAL, "an allocator needs alloc and free");
}

mnp_status mnp_ctx_create(const mnp_ctx_opts *opts, mnp_ctx **out) {
    if (!out) return MNP_EINVAL;
    *out = NULL;
    mnp_ctx_opts o;
    env e; /* without a context the text of a failure has no place: the status says it alone */
    env_init(&e);
    MNP_TRY(TAKE_OPTS(&e, mnp_ctx_opts, opts, &o));
    MNP_TRY(check_ctx_opts(&e, &o));
    if (o.allocator.alloc) e.allocator = o.allocator;
    e.log = o.log;
    e.log_user = o.log_user;
    e.cancel = o.cancel;
    e.cancel_user = o.cancel_user;
    mnp_ctx *ctx = env_alloc(&e, 1, sizeof *ctx, "a context");
    if (!ctx) return MNP_ENOMEM;
    ctx->env = e;
    ctx->threads = o.threads;
    users_more(&ctx->users);
    *out = ctx;
    return MNP_OK;
}

mnp_ctx *ctx_keep(mnp_ctx *ctx) {
    if (ctx) users_more(&ctx->users);
    return ctx;
}

void ctx_drop(mnp_ctx *ctx) {
    if (!ctx || !users_less(&ctx->users)) return;
    pool_destroy(ctx->pool);
    env e = ctx->env;
    env_free(&e, ctx);
}

void mnp_ctx_destroy(mnp_ctx *ctx) {
    if (!ctx) return;
    comm_close(&ctx->env); /* all ranks leave the job here, whatever handles are still there */
    ctx_drop(ctx);
}

const char *mnp_last_error(const mnp_ctx *ctx) {
    return ctx ? ctx->env.error : "";
}

mnp_status ctx_pool(mnp_ctx *ctx, pool **out) {
    if (!ctx->pool) MNP_TRY(pool_create(&ctx->env, ctx->threads, &ctx->pool));
    *out = ctx->pool;
    return MNP_OK;
}
