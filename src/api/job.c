/* job.c: many processes through the public interface. */
#include "mnp_job.h"

#include "api/api_internal.h"
#include "comm/comm.h"

mnp_status mnp_job_join(mnp_ctx *ctx, const mnp_job_opts *opts) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_job_opts o;
    MNP_TRY(TAKE_OPTS(e, mnp_job_opts, opts, &o));
    MNP_TRY(check_finite(e, o.timeout, "mnp_job_opts.timeout"));
    if (o.timeout < 0) return env_fail(e, MNP_EINVAL, "mnp_job_opts.timeout is negative");
    if (e->comm) return env_fail(e, MNP_EINVAL, "the context is in a job already");
    return comm_open(e, &(comm_opts){.timeout = o.timeout, .fast = o.fast});
}

void mnp_job_suspend(mnp_ctx *ctx) {
    if (ctx) comm_suspend(&ctx->env, true);
}

void mnp_job_resume(mnp_ctx *ctx) {
    if (ctx) comm_suspend(&ctx->env, false);
}

int mnp_job_rank(const mnp_ctx *ctx) {
    return ctx ? comm_job_rank(&ctx->env) : 0;
}

int mnp_job_size(const mnp_ctx *ctx) {
    return ctx ? comm_job_size(&ctx->env) : 1;
}

mnp_status mnp_job_barrier(mnp_ctx *ctx) {
    return ctx ? comm_barrier(&ctx->env, "a barrier") : MNP_EINVAL;
}

mnp_status mnp_job_broadcast(mnp_ctx *ctx, void *data, size_t bytes) {
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_bytes(&ctx->env, data, bytes, "data"));
    return comm_broadcast(&ctx->env, data, bytes, "numbers of rank 0");
}

/* `total` things in whole units. */
static mnp_status check_parts(env *e, int64_t total, int64_t unit) {
    MNP_TRY(check_range(e, total, 0, CHECK_COUNT_MAX, "total"));
    return check_range(e, unit, 1, CHECK_COUNT_MAX, "unit");
}

mnp_status mnp_job_gather(mnp_ctx *ctx, void *data, int64_t total, int64_t unit, size_t element) {
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_parts(&ctx->env, total, unit));
    if (element < 1) return env_fail(&ctx->env, MNP_EINVAL, "element is 0");
    MNP_TRY(check_bytes(&ctx->env, data, check_times((size_t)total, element), "data"));
    return comm_gather_parts(&ctx->env, data, total, unit, element, "parts of all ranks");
}

mnp_status mnp_job_split(mnp_ctx *ctx, int64_t total, int64_t unit, int64_t *lo, int64_t *hi) {
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_parts(&ctx->env, total, unit));
    MNP_TRY(check_given(&ctx->env, lo, "lo"));
    MNP_TRY(check_given(&ctx->env, hi, "hi"));
    comm_span own = comm_split(&ctx->env, total, unit);
    *lo = own.lo, *hi = own.hi;
    return MNP_OK;
}

void mnp_job_heartbeat(mnp_ctx *ctx) {
    if (ctx) comm_heartbeat(&ctx->env);
}

void mnp_job_leave(mnp_ctx *ctx) {
    if (ctx) comm_close(&ctx->env);
}

bool mnp_job_abort(mnp_ctx *ctx, const char *why) {
    return ctx ? comm_abort(&ctx->env, why ? why : "") : true;
}
