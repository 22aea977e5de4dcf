/* joint.c: the cells of predictive with all targets together, of rows with exact conditioning. Most
 * of the work is the evidence of whole functions, which all context sizes share: one run scores all
 * sizes of a model and a task that are open. The draws have cells of their own, so that neither has
 * to be scored again when the other's settings change. */
#include <math.h>

#include "lab/predictive/predictive.h"

typedef struct hearing {
    predictive *s;
    predictive_cell *cell[SIZES_MAX];
    int64_t size[SIZES_MAX], heard[SIZES_MAX];
    int count;
    char what[STUDY_TEXT];
    progress bar;
    double began;
    int64_t total; /* functions times sizes, as the library counts them */
} hearing;

static void hear(void *user, const mnp_function_scores *f) {
    hearing *h = user;
    int k = 0;
    while (k + 1 < h->count && h->size[k] != f->context) k++;
    predictive_cell *cell = h->cell[k];
    double value[NUMBERS] = {0};
    value[N_CONTEXT] = (double)f->context, value[N_TARGETS] = (double)f->targets;
    value[N_JOINT] = f->joint, value[N_JOINT_ERROR] = f->joint_error;
    value[N_JOINT_BIAS] = f->joint_bias, value[N_JOINT_HURRIED] = f->joint_hurried;
    for (int j = 0; j < NUMBERS; j++)
        if (number_is_of(true, (number)j))
            cell->number[(int64_t)j * cell->functions + f->function] = value[j];
    h->heard[k]++;
}

static void show(void *user, int64_t done, int64_t total) {
    hearing *h = user;
    h->total = total;
    study_progress(&h->bar, done, total);
}

/* The open cells of the group that begins with `first`. */
static mnp_status gather(predictive *s, predictive_cell *first, hearing *h) {
    *h = (hearing){.s = s};
    for (int k = s->s.current; k < s->s.count; k++) {
        predictive_cell *cell = predictive_at(&s->s, k);
        if (cell->head.group != first->head.group) break;
        if (cell->head.state != CELL_OPEN) continue;
        MNP_TRY(predictive_numbers(s, cell, s->joint_functions));
        h->size[h->count] = task_size(s, cell->task, cell->size);
        h->cell[h->count++] = cell;
    }
    snprintf(h->what, sizeof h->what, "%.*s (sizes: %d)", (int)sizeof h->what - 32, s->s.what,
             h->count);
    return MNP_OK;
}

static mnp_status score(predictive *s, const mnp_model *m, hearing *h, bool network) {
    cli *c = s->s.c;
    bool own = h->size[0] == OWN_SIZES;
    mnp_eval_opts o = {.size = sizeof o,
                       .functions = s->joint_functions,
                       .sizes = own ? NULL : h->size,
                       .n_sizes = own ? 0 : h->count,
                       .seed = c->seed,
                       .device = network ? cli_device(c) : "cpu",
                       .progress = show,
                       .progress_user = h,
                       .each = hear,
                       .each_user = h,
                       .no_truth = true};
    /* the network's draws cost nothing, and the joint score does not depend on them */
    mnp_predictive_opts how = {.size = sizeof how,
                               .draws = 2,
                               .condition = MNP_NETWORK,
                               .replicates = s->joint,
                               .particles = s->joint_particles};
    mnp_predictive all = {.size = sizeof all};
    progress_begin(&h->bar, c, h->what, 0, s->joint_functions * h->count);
    h->began = cli_now();
    mnp_status status = mnp_evaluate_draws(c->ctx, m, s->test, &o, &how, &all, 1);
    progress_end(&h->bar);
    return status;
}

mnp_status predictive_score_joint(predictive *s, predictive_cell *first) {
    const predictive_model *at = predictive_model_of(s, first->row, first->task);
    mnp_model *m = NULL;
    hearing h;
    MNP_TRY(gather(s, first, &h));
    MNP_TRY(mnp_model_load(s->s.c->ctx, at->path, &m));
    mnp_status status = score(s, m, &h, at->network);
    mnp_model_destroy(m);
    double took = cli_now() - h.began, scores = 0;
    for (int k = 0; k < h.count; k++) scores += (double)h.heard[k];
    for (int k = 0; k < h.count; k++) {
        predictive_cell *cell = h.cell[k];
        cell->head.seconds = took * (double)h.heard[k] / fmax(scores, 1);
        cell->ms = 1000 * took / fmax(scores, 1);
        cell->run = h.total;
        cell->head.scored = h.heard[k] == cell->functions;
    }
    return status;
}

void predictive_take_joint(predictive *s) {
    for (int k = 0; k < s->s.count; k++) {
        const predictive_cell *from = predictive_at(&s->s, k);
        if (!from->joint || from->head.state != CELL_DONE) continue;
        for (int j = 0; j < s->s.count; j++) {
            predictive_cell *to = predictive_at(&s->s, j);
            if (to->joint || to->head.state != CELL_DONE || to->row != from->row ||
                to->task != from->task || to->size != from->size)
                continue;
            for (int v = N_JOINT; v < NUMBERS; v++)
                for (int64_t i = 0; i < from->functions && i < to->functions; i++)
                    if (number_is_of(true, (number)v))
                        to->number[(int64_t)v * to->functions + i] = numbers_of(from, (number)v)[i];
            to->joint_ms = from->ms;
        }
    }
}
