/* score.c: one cell of table 3, and the file that keeps it. */
#include <math.h>
#include <string.h>

#include "lab/table3/table3.h"
#include "util/text.h"

enum { PROPOSAL = 2048 };

int table3_fail(table3 *t, mnp_status status) {
    if (status == MNP_ECANCELLED || cli_interrupted())
        return cli_fail(t->s.c, EXIT_INTERRUPTED,
                        "interrupted; the same command goes on from there (finished cells are in "
                        "%s/cells)",
                        t->s.dir);
    const char *text = *t->e.error ? t->e.error : *t->s.c->env.error ? t->s.c->env.error : NULL;
    return text ? cli_fail(t->s.c, EXIT_FAILED, "%s", text) : cli_failed(t->s.c, status);
}

const table3_cell *table3_at(const table3 *t, int size, int model, int context) {
    int k = (size * TABLE3_MODELS + model) * TABLE3_CONTEXTS + context;
    return (const table3_cell *)(const void *)study_cell(&t->s, k);
}

/* ---- keys and files -------------------------------------------------------------------------- */

void table3_name(const table3 *t, table3_cell *c) {
    const table3_size *s = &t->size[c->size];
    char how[128];
    c->head.label = table3_models[c->model];
    if (c->model < TABLE3_NETS)
        snprintf(how, sizeof how, " %016llx, in %s, %lld samples, proposal %d, seen %d",
                 (unsigned long long)s->hash[c->model], t->s.precision, (long long)t->samples,
                 PROPOSAL, TABLE3_SEEN);
    else
        snprintf(how, sizeof how, ", fitted to %lld images with %lld points",
                 (long long)t->fit_images, (long long)t->fit_points);
    snprintf(c->head.key, sizeof c->head.key,
             "mnp %s; %.900s of %lld pixels, seed %llu, %lld images; context %s; %s%s",
             mnp_version(), s->source, (long long)s->side, (unsigned long long)t->s.c->seed,
             (long long)t->functions, table3_contexts[c->context].option, c->head.label, how);
    cell_name(&t->s, &c->head, "%lld-%s-%s", (long long)s->side, c->head.label,
              table3_contexts[c->context].name);
}

enum { NUMBERS = 2 * TABLE3_SCORINGS * TABLE3_LAWS }; /* loglik, se, loglik ... */

void table3_put(cli_json *j, const study *s, const void *cell) {
    const table3_cell *c = cell;
    double v[NUMBERS];
    (void)s;
    for (int k = 0; k < NUMBERS / 2; k++) {
        v[2 * k] = c->loglik[k / TABLE3_LAWS][k % TABLE3_LAWS];
        v[2 * k + 1] = c->se[k / TABLE3_LAWS][k % TABLE3_LAWS];
    }
    cli_json_put(j, NUMBER("seconds", c->head.seconds));
    numbers_put(j, "loglik_se", v, NUMBERS);
}

bool table3_get(const json_value *root, const study *s, void *cell) {
    table3_cell *c = cell;
    double v[NUMBERS];
    (void)s;
    if (numbers_get(root, "loglik_se", v, NUMBERS) != NUMBERS) return false;
    for (int k = 0; k < NUMBERS / 2; k++) {
        c->loglik[k / TABLE3_LAWS][k % TABLE3_LAWS] = v[2 * k];
        c->se[k / TABLE3_LAWS][k % TABLE3_LAWS] = v[2 * k + 1];
    }
    c->head.seconds = field_number(root, "seconds");
    return true;
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* The posterior sees part of the pixels; the others are scored one by one as well. */
static int64_t proposal_of(int64_t pixels) {
    return pixels / 4 < PROPOSAL ? pixels / 4 : PROPOSAL;
}

static mnp_status score_net(table3 *t, table3_cell *cell, progress *p) {
    const table3_size *s = &t->size[cell->size];
    for (int k = 0; k < TABLE3_SCORINGS; k++) {
        mnp_eval_opts o = {.size = sizeof o,
                           .functions = t->functions,
                           .samples = t->samples,
                           .draws = -1,
                           .protocol = MNP_AUTHORS,
                           .seed = t->s.c->seed,
                           .device = t->device,
                           .context = table3_contexts[cell->context].option,
                           .proposal = proposal_of(s->side * s->side),
                           .seen = TABLE3_SEEN,
                           .noise = k == TABLE3_NOISY ? table3_noise : -1,
                           .progress = study_progress,
                           .progress_user = p};
        mnp_scores r = {.size = sizeof r};
        MNP_TRY(mnp_evaluate(t->s.c->ctx, s->net[cell->model], s->test, &o, &r));
        cell->loglik[k][TABLE3_JOINT] = r.loglik;
        cell->se[k][TABLE3_JOINT] = r.se;
        cell->loglik[k][TABLE3_ALONE] = r.loglik_pixels;
        cell->se[k][TABLE3_ALONE] = r.se_pixels;
    }
    return MNP_OK;
}

/* The values of all test images, borrowed. */
static mnp_status images_of(table3 *t, const mnp_data *data, int64_t count, const float **out) {
    mnp_status status = MNP_OK;
    for (int64_t i = 0; i < count && status == MNP_OK; i++) {
        const float *x;
        int64_t n;
        status = mnp_data_function(t->s.c->ctx, data, i, &n, &x, &out[i]);
    }
    return status;
}

static mnp_status fit(table3 *t, int size) {
    table3_size *s = &t->size[size];
    if (s->fitted) return MNP_OK;
    mnp_data_opts o = {
        .size = sizeof o, .split = MNP_TRAIN, .functions = t->fit_images, .seed = t->s.c->seed};
    mnp_data *data = NULL;
    const float *x, *y = NULL;
    int64_t n;
    mnp_status status = mnp_data_open(t->s.c->ctx, s->source, &o, &data);
    if (status == MNP_OK) status = mnp_data_function(t->s.c->ctx, data, 0, &n, &x, &y);
    for (int kind = 0; kind < 2 && status == MNP_OK; kind++) {
        int64_t count = mnp_data_functions(data);
        krige_fit_opts f = {.kind = (krige_kind)kind,
                            .rows = s->side,
                            .cols = s->side,
                            .count = count < t->fit_images ? count : t->fit_images,
                            .points = t->fit_points,
                            .noise = table3_noise,
                            .seed = t->s.c->seed};
        status = krige_fit(&t->e, t->threads, &f, y, &s->fit[kind]);
    }
    mnp_data_destroy(data);
    s->fitted = status == MNP_OK;
    return status;
}

int table3_fit(table3 *t, int size) {
    mnp_status status = fit(t, size);
    return status == MNP_OK ? 0 : table3_fail(t, status);
}

static mnp_status score_kriging(table3 *t, table3_cell *cell, progress *p) {
    table3_size *s = &t->size[cell->size];
    MNP_TRY(fit(t, cell->size));
    int64_t count = t->functions; /* as many as the networks are scored on */
    const float **image = env_alloc(&t->e, (size_t)count, sizeof *image, "images");
    mnp_status status = image ? images_of(t, s->test, count, image) : MNP_ENOMEM;
    krige_eval_opts o = {.context = table3_contexts[cell->context].kind,
                         .wells = table3_contexts[cell->context].wells,
                         .seed = t->s.c->seed,
                         .noise = table3_noise,
                         .threads = t->threads,
                         .progress = study_progress,
                         .user = p};
    krige_score r;
    if (status == MNP_OK)
        status = krige_evaluate(&t->e, &s->fit[cell->model - TABLE3_NETS], image, count, &o, &r);
    env_free(&t->e, image);
    if (status != MNP_OK) return status;
    memcpy(cell->loglik, r.loglik, sizeof cell->loglik);
    memcpy(cell->se, r.se, sizeof cell->se);
    return MNP_OK;
}

int table3_score(study *s, void *cell) {
    table3 *t = (table3 *)s;
    table3_cell *c = cell;
    progress p;
    progress_begin(&p, s->c, s->what, 0, t->functions);
    mnp_status status = c->model < TABLE3_NETS ? score_net(t, c, &p) : score_kriging(t, c, &p);
    progress_end(&p);
    c->head.seconds = cli_now() - s->started;
    if (status == MNP_ECANCELLED || cli_interrupted()) return EXIT_INTERRUPTED;
    return status == MNP_OK ? 0 : table3_fail(t, status);
}
