/* train_model.c: a run's options, and the models that come out of it, with notes on how they were
 * made. */
#include <string.h>

#include "run/train_internal.h"

mnp_status train_read_options(env *e, const model *m, const char *text, train_spec *out) {
    option_view view = train_view(out);
    MNP_TRY(options_defaults(e, &view, 1));
    MNP_TRY(options_parse(e, &view, 1, process_at(m->spec.kind)->train));
    return text ? options_parse(e, &view, 1, text) : MNP_OK;
}

/* How the weights were made, for the model file. */
static mnp_status note_run(trainer *t, int64_t step) {
    env *e = t->env;
    buf options;
    buf_init(&options, e);
    option_view view = train_view(&t->asked);
    char text[64];
    mnp_status status = options_print(&options, &view, 1);
    if (status == MNP_OK) status = model_note_set(e, t->m, "train", buf_str(&options));
    snprintf(text, sizeof text, "%llu", (unsigned long long)t->seed);
    if (status == MNP_OK) status = model_note_set(e, t->m, "seed", text);
    snprintf(text, sizeof text, "%lld", (long long)step);
    if (status == MNP_OK) status = model_note_set(e, t->m, "steps", text);
    snprintf(text, sizeof text, "%lld", (long long)t->data->functions);
    if (status == MNP_OK) status = model_note_set(e, t->m, "train_functions", text);
    buf_free(&options);
    return status;
}

mnp_status trainer_save_best(trainer *t, const char *path) {
    train_state s = trainer_state(t);
    char text[64];
    snprintf(text, sizeof text, "%.6f", s.best_valid);
    MNP_TRY(note_run(t, s.best_step));
    MNP_TRY(model_note_set(t->env, t->m, "best_valid", text));
    return model_save(t->env, t->m, trainer_best(t), path);
}

mnp_status trainer_save_last(trainer *t, const char *path) {
    MNP_TRY(trainer_intact(t));
    MNP_TRY(note_run(t, trainer_state(t).step));
    MNP_TRY(model_note_set(t->env, t->m, "best_valid", NULL));
    return model_save(t->env, t->m, NULL, path);
}

mnp_status trainer_take_best(trainer *t) {
    memcpy(t->m->weights, trainer_best(t), (size_t)t->m->params.words * sizeof(float));
    return note_run(t, trainer_state(t).best_step);
}
