/* trainer.c: trainer handles. */
#include "api/api_internal.h"

mnp_status mnp_trainer_create(mnp_ctx *ctx, mnp_model *model, const mnp_data *train,
                              const mnp_data *valid, const mnp_train_opts *opts,
                              mnp_trainer **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_train_opts o;
    train_spec spec;
    backend_choice where;
    pool *workers = NULL;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_given(e, train, "train"));
    MNP_TRY(check_given(e, out, "out"));
    MNP_TRY(TAKE_OPTS(e, mnp_train_opts, opts, &o));
    MNP_TRY(train_read_options(e, model->m, o.options, &spec));
    MNP_TRY(backend_choose_training(e, o.device, &where));
    MNP_TRY(ctx_pool(ctx, &workers));
    mnp_trainer *t = env_alloc(e, 1, sizeof *t, "a trainer handle");
    if (!t) return MNP_ENOMEM;
    *t = (mnp_trainer){.ctx = ctx_keep(ctx),
                       .model = model_keep(model),
                       .train = data_keep(train),
                       .valid = data_keep(valid)};
    mnp_status status = trainer_create(e, model->m, train->d, valid ? valid->d : NULL, &spec,
                                       o.seed, workers, where, &t->t);
    if (status == MNP_OK)
        *out = t;
    else
        mnp_trainer_destroy(t);
    return status;
}

void mnp_trainer_destroy(mnp_trainer *t) {
    if (!t) return;
    mnp_ctx *ctx = t->ctx;
    trainer_destroy(t->t);
    model_drop(t->model);
    data_drop(t->train);
    data_drop(t->valid);
    env_free(&ctx->env, t);
    ctx_drop(ctx);
}

static void give_report(const mnp_trainer *t, mnp_train_report *out) {
    train_state s = trainer_state(t->t);
    GIVE_RESULT(mnp_train_report, out, .step = s.step, .steps = s.steps, .loss = s.loss, .kl = s.kl,
                .loglik = s.loglik, .grad_norm = s.grad_norm, .rate = s.rate, .valid = s.valid,
                .best_valid = s.best_valid, .best_step = s.best_step,
                .rounding = s.rounding.distance, .sampling = s.rounding.sampling,
                .shift = s.rounding.shift, .rounding_at = s.rounding_at,
                .exact_from = s.exact_from);
}

mnp_status mnp_trainer_report(const mnp_trainer *t, mnp_train_report *out) {
    if (!t) return MNP_EINVAL;
    MNP_TRY(CHECK_RESULT(&t->ctx->env, mnp_train_report, out));
    give_report(t, out);
    return MNP_OK;
}

mnp_status mnp_trainer_run(mnp_trainer *t, int64_t steps, mnp_train_report *report) {
    if (!t) return MNP_EINVAL;
    MNP_TRY(check_range(&t->ctx->env, steps, 0, INT64_MAX, "steps"));
    if (report) MNP_TRY(CHECK_RESULT(&t->ctx->env, mnp_train_report, report));
    mnp_status status = trainer_run(t->t, steps);
    if (report) give_report(t, report);
    return status;
}

static mnp_status check_path(const mnp_trainer *t, const char *path) {
    return t ? check_given(&t->ctx->env, path, "path") : MNP_EINVAL;
}

mnp_status mnp_trainer_save(mnp_trainer *t, const char *path) {
    MNP_TRY(check_path(t, path));
    return trainer_save(t->t, path);
}

mnp_status mnp_trainer_resume(mnp_trainer *t, const char *path, bool new_schedule) {
    MNP_TRY(check_path(t, path));
    return trainer_load(t->t, path, new_schedule);
}

mnp_status mnp_trainer_save_best(mnp_trainer *t, const char *path) {
    MNP_TRY(check_path(t, path));
    return trainer_save_best(t->t, path);
}

mnp_status mnp_trainer_save_last(mnp_trainer *t, const char *path) {
    MNP_TRY(check_path(t, path));
    return trainer_save_last(t->t, path);
}

mnp_status mnp_trainer_take_best(mnp_trainer *t) {
    return t ? trainer_take_best(t->t) : MNP_EINVAL;
}

size_t mnp_trainer_memory(const mnp_trainer *t) {
    return t ? trainer_memory(t->t) : 0;
}

void mnp_trainer_warnings(const mnp_trainer *t, char *out, size_t size) {
    buf text;
    check_print(out, size, "");
    if (!t) return;
    buf_init(&text, &t->ctx->env);
    trainer_warnings(t->t, &text);
    check_print(out, size, buf_str(&text));
    buf_free(&text);
}
