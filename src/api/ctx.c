/* ctx.c: contexts, status names, version. */
#include <string.h>

#include "api/handles.h"

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
                                        [MNP_ECANCELLED] = "cancelled"};
    return (unsigned)s < sizeof names / sizeof *names ? names[s] : "unknown status";
}

mnp_status mnp_ctx_create(const mnp_ctx_opts *opts, mnp_ctx **out) {
    if (!out) return MNP_EINVAL;
    *out = NULL;
    mnp_ctx_opts o;
    OPTS_COPY(o, opts);
    env e;
    env_init(&e);
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

/* ---- option tables -----------------------------------------------------------------------------
 */

typedef struct both_specs {
    model_spec model;
    train_spec train;
} both_specs;

static option_view view_of(const char *table, both_specs *s) {
    return strcmp(table, "train") == 0 ? train_view(&s->train) : spec_view(&s->model);
}

bool mnp_options_has(const char *table, const char *name) {
    both_specs s;
    option_view view = view_of(table, &s);
    return options_find(&view, 1, name) != NULL;
}

size_t mnp_options_help(const char *table, char *out, size_t size) {
    env e;
    env_init(&e);
    buf text;
    buf_init(&text, &e);
    both_specs s;
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
