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

/* ---- many processes -------------------------------------------------------------------------- */

mnp_status mnp_ctx_join(mnp_ctx *ctx, const mnp_job_opts *opts) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_job_opts o;
    MNP_TRY(TAKE_OPTS(e, mnp_job_opts, opts, &o));
    MNP_TRY(check_finite(e, o.timeout, "mnp_job_opts.timeout"));
    if (o.timeout < 0) return env_fail(e, MNP_EINVAL, "mnp_job_opts.timeout is negative");
    if (e->comm) return env_fail(e, MNP_EINVAL, "the context is in a job already");
    return comm_open(e, &(comm_opts){.timeout = o.timeout, .fast = o.fast});
}

void mnp_ctx_alone(mnp_ctx *ctx, bool on) {
    if (ctx) comm_alone(&ctx->env, on);
}

int mnp_ctx_rank(const mnp_ctx *ctx) {
    return ctx ? comm_job_rank(&ctx->env) : 0;
}

int mnp_ctx_ranks(const mnp_ctx *ctx) {
    return ctx ? comm_job_size(&ctx->env) : 1;
}

mnp_status mnp_ctx_meet(mnp_ctx *ctx) {
    return ctx ? comm_barrier(&ctx->env, "a meeting of all ranks") : MNP_EINVAL;
}

mnp_status mnp_ctx_share(mnp_ctx *ctx, void *data, size_t bytes) {
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_bytes(&ctx->env, data, bytes, "data"));
    return comm_broadcast(&ctx->env, data, bytes, "numbers of rank 0");
}

/* `total` things in whole units. */
static mnp_status check_parts(env *e, int64_t total, int64_t unit) {
    MNP_TRY(check_range(e, total, 0, CHECK_COUNT_MAX, "total"));
    return check_range(e, unit, 1, CHECK_COUNT_MAX, "unit");
}

mnp_status mnp_ctx_gather(mnp_ctx *ctx, void *data, int64_t total, int64_t unit, size_t element) {
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_parts(&ctx->env, total, unit));
    if (element < 1) return env_fail(&ctx->env, MNP_EINVAL, "element is 0");
    MNP_TRY(check_bytes(&ctx->env, data, check_times((size_t)total, element), "data"));
    return comm_gather_parts(&ctx->env, data, total, unit, element, "parts of all ranks");
}

mnp_status mnp_ctx_part(mnp_ctx *ctx, int64_t total, int64_t unit, int64_t *lo, int64_t *hi) {
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_parts(&ctx->env, total, unit));
    MNP_TRY(check_given(&ctx->env, lo, "lo"));
    MNP_TRY(check_given(&ctx->env, hi, "hi"));
    comm_span own = comm_own(&ctx->env, total, unit);
    *lo = own.lo, *hi = own.hi;
    return MNP_OK;
}

void mnp_ctx_beat(mnp_ctx *ctx) {
    if (ctx) comm_beat(&ctx->env);
}

void mnp_ctx_leave(mnp_ctx *ctx) {
    if (ctx) comm_close(&ctx->env);
}

bool mnp_ctx_tell(mnp_ctx *ctx, const char *why) {
    return ctx ? comm_tell(&ctx->env, why ? why : "") : true;
}

/* ---- option tables -----------------------------------------------------------------------------
 */

typedef struct all_specs {
    model_spec model;
    train_spec train;
    maml_opts maml;
    bruno_opts bruno;
} all_specs;

/* False: there is no such table. */
static bool view_of(const char *table, all_specs *s, option_view *out) {
    if (!table) return false;
    if (strcmp(table, "maml") == 0)
        *out = maml_view(&s->maml);
    else if (strcmp(table, "c-bruno") == 0)
        *out = bruno_view(&s->bruno);
    else if (strcmp(table, "train") == 0)
        *out = train_view(&s->train);
    else if (strcmp(table, "model") == 0)
        *out = spec_view(&s->model);
    else
        return false;
    return true;
}

bool mnp_options_has(const char *table, const char *name) {
    all_specs s;
    option_view view;
    return name && view_of(table, &s, &view) && options_find(&view, 1, name) != NULL;
}

size_t mnp_options_help(const char *table, char *out, size_t size) {
    env e;
    env_init(&e);
    buf text;
    buf_init(&text, &e);
    all_specs s;
    option_view view;
    if (view_of(table, &s, &view)) options_help(&text, &view, 1);
    size_t length = text.status == MNP_OK ? text.len : 0;
    check_print(out, size, length ? buf_str(&text) : "");
    buf_free(&text);
    return length;
}
