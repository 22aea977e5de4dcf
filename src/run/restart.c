/* restart.c: where a training run begins (train_internal.h): with weights that the data give at
 * once, and with the best of several starts. Each start is a model of its own, trained for a few
 * steps at a constant rate on the run's data and judged by the run's validation; without held-out
 * functions, by the training functions. */
#include <math.h>
#include <string.h>

#include "run/train_internal.h"

enum { TRIAL_STEPS = 100 };

static train_spec trial_spec(const train_spec *run) {
    train_spec s = *run;
    s.steps = s.valid_every = TRIAL_STEPS;
    s.warmup = -1;
    s.schedule = 0;
    s.ema = 0;
    return s;
}

/* Trains the k-th start; its score is -inf where it comes to nothing. */
static mnp_status try_start(trainer *t, int k, model **out, double *score) {
    model_spec spec = t->m->spec;
    train_spec steps = trial_spec(&t->spec);
    trainer *trial = NULL;
    *score = -INFINITY;
    process_at(spec.kind)->start(&spec, k);
    MNP_TRY(model_create(t->env, &spec, t->seed, out));
    (*out)->scaling = t->m->scaling;
    MNP_TRY(trainer_create(t->env, *out, t->data, t->held_out ? t->held_out : t->data, &steps,
                           t->seed, t->pool, t->device, &trial));
    trial->rule.every = 0;
    mnp_status status = trainer_run(trial, steps.steps);
    if (status == MNP_OK) *score = trainer_state(trial).best_valid;
    trainer_destroy(trial);
    return status == MNP_ENUMERIC ? MNP_OK : status;
}

mnp_status trainer_take_data(trainer *t) {
    const process_def *p = process_at(t->m->spec.kind);
    if (!p->from_data) return MNP_OK;
    double loglik = NAN;
    MNP_TRY(p->from_data(t->env, &t->m->spec, &t->view, t->seed, &t->m->params, t->m->weights,
                         &loglik));
    if (!t->exec) t->step.loglik = loglik / (double)t->data->points;
    if (!t->exec) t->step.loss = -t->step.loglik;
    size_t bytes = (size_t)t->m->params.words * sizeof(float);
    memcpy(t->best, t->m->weights, bytes);
    if (t->average) memcpy(t->average, t->m->weights, bytes);
    return MNP_OK;
}

mnp_status trainer_choose_start(trainer *t) {
    const process_def *p = process_at(t->m->spec.kind);
    int starts = p->starts ? p->starts(&t->m->spec) : 1;
    double best = -INFINITY;
    for (int k = 0; k < starts && starts > 1; k++) {
        model *trial = NULL;
        double score;
        mnp_status status = try_start(t, k, &trial, &score);
        if (status == MNP_OK && score > best) {
            best = score;
            memcpy(t->m->weights, trial->weights, (size_t)t->m->params.words * sizeof(float));
        }
        model_destroy(trial);
        MNP_TRY(status);
        if (env_cancelled(t->env))
            return env_fail(t->env, MNP_ECANCELLED, "training was cancelled");
    }
    size_t bytes = (size_t)t->m->params.words * sizeof(float);
    memcpy(t->best, t->m->weights, bytes);
    if (t->average) memcpy(t->average, t->m->weights, bytes);
    return MNP_OK;
}
