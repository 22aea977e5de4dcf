/* turns.c: targets one after the other, through the public interface. */
#include <string.h>

#include "api/api_internal.h"
#include "run/turns.h"

static mnp_status take_opts(env *e, const mnp_turn_opts *from, mnp_turn_opts *o,
                            backend_choice *where) {
    MNP_TRY(TAKE_OPTS(e, mnp_turn_opts, from, o));
    MNP_TRY(check_enum(e, o->order, MNP_ORDER_X + 1, "mnp_turn_opts.order"));
    MNP_TRY(check_range(e, o->orders, 0, ORDERS_MAX, "mnp_turn_opts.orders"));
    if (o->orders == 0) o->orders = 1;
    if (o->order == MNP_ORDER_X && o->orders > 1)
        return env_fail(e, MNP_EINVAL, "by x there is one order, not %lld", (long long)o->orders);
    return backend_choose(e, o->device, where);
}

/* The context and n places, with y where there are some, as the model sees them. */
typedef struct rows {
    double *x, *y;
    int64_t n, m;
} rows;

static mnp_status make_rows(env *e, const model *model, const mnp_set *context, const double *x,
                            const double *y, int64_t n, rows *r) {
    int64_t X = model->spec.x_dim, m = context ? context->n : 0;
    *r = (rows){.n = m + n, .m = m};
    r->x = env_alloc(e, (size_t)((m + n) * (X + 1)), sizeof *r->x, "a set");
    if (!r->x) return MNP_ENOMEM;
    r->y = r->x + (m + n) * X;
    if (m) MNP_TRY(runner_check_points(e, model, context->x, context->y, m, "point"));
    MNP_TRY(runner_check_points(e, model, x, y, n, "target"));
    if (m) runner_scale_x(model, context->x, m, r->x);
    if (m) runner_scale_y(model, context->y, m, r->y);
    runner_scale_x(model, x, n, r->x + m * X);
    if (y) runner_scale_y(model, y, n, r->y + m);
    return MNP_OK;
}

/* Both, and what runs them. */
static mnp_status begin(mnp_ctx *ctx, const mnp_model *model, const mnp_set *context,
                        const double *x, const double *y, int64_t n, backend_choice where, rows *r,
                        turns **out) {
    env *e = &ctx->env;
    pool *workers = NULL;
    *out = NULL;
    mnp_status status = make_rows(e, model->m, context, x, y, n, r);
    if (status == MNP_OK) status = ctx_pool(ctx, &workers);
    if (status == MNP_OK) status = turns_create(e, model->m, workers, where, r->n, out);
    return status;
}

static void end(mnp_ctx *ctx, rows *r, turns *t) {
    turns_destroy(t);
    env_free(&ctx->env, r->x);
}

mnp_status mnp_score_in_turn(mnp_ctx *ctx, const mnp_model *model, const mnp_set *context,
                             const mnp_set *targets, const mnp_turn_opts *opts, double *scores) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_turn_opts o;
    backend_choice where;
    MNP_TRY(check_given(e, model, "model"));
    int64_t dims = model->m->spec.x_dim;
    if (context) MNP_TRY(check_set(e, context, 0, dims, "the context"));
    MNP_TRY(check_set(e, targets, 1, dims, "targets"));
    MNP_TRY(take_opts(e, opts, &o, &where));
    MNP_TRY(check_given(e, scores, "scores"));
    rows r = {0};
    turns *t;
    mnp_status status =
        begin(ctx, model, context, targets->x, targets->y, targets->n, where, &r, &t);
    for (int64_t k = 0; k < o.orders && status == MNP_OK; k++) {
        turn_order order = {.kind = o.order, .seed = o.seed, .number = k};
        status = turns_score(t, NULL, r.x, r.y, r.n, r.m, &order, &scores[k]);
    }
    end(ctx, &r, t);
    return status;
}

mnp_status mnp_sample_in_turn(mnp_ctx *ctx, const mnp_model *model, const mnp_set *context,
                              const double *x, int64_t n, const mnp_turn_opts *opts,
                              int64_t samples, double *y) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_turn_opts o;
    backend_choice where;
    MNP_TRY(check_given(e, model, "model"));
    int64_t dims = model->m->spec.x_dim;
    if (context) MNP_TRY(check_set(e, context, 0, dims, "the context"));
    MNP_TRY(check_range(e, n, 1, CHECK_COUNT_MAX, "n"));
    MNP_TRY(check_array(e, x, n, dims, "x"));
    MNP_TRY(take_opts(e, opts, &o, &where));
    MNP_TRY(check_range(e, samples, 1, SAMPLES_MAX, "samples"));
    MNP_TRY(check_given(e, y, "y"));
    rows r = {0};
    turns *t;
    mnp_status status = begin(ctx, model, context, x, NULL, n, where, &r, &t);
    if (status == MNP_OK) status = turns_draw(t, r.x, r.y, r.n, r.m, o.order, o.seed, samples, y);
    end(ctx, &r, t);
    return status;
}
