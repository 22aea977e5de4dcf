/* score.c: one cell of table 3, and the file that keeps it. */
#include <math.h>
#include <string.h>

#include "cli/points.h"
#include "lab/table3/table3.h"
#include "util/text.h"

enum { PROPOSAL = 2048 };

int table3_fail(table3 *t, mnp_status status) {
    if (status == MNP_ECANCELLED || cli_interrupted())
        return cli_fail(t->c, EXIT_INTERRUPTED,
                        "interrupted; the same command goes on from there (finished cells are in "
                        "%s/cells)",
                        t->dir);
    const char *text = *t->e.error ? t->e.error : *t->c->env.error ? t->c->env.error : NULL;
    return text ? cli_fail(t->c, EXIT_FAILED, "%s", text) : cli_failed(t->c, status);
}

const table3_cell *table3_at(const table3 *t, int size, int model, int context) {
    return &t->cells[(size * TABLE3_MODELS + model) * TABLE3_CONTEXTS + context];
}

/* ---- keys and files -------------------------------------------------------------------------- */

void table3_name(const table3 *t, table3_cell *cell) {
    const table3_size *s = &t->size[cell->size];
    int used = snprintf(cell->key, sizeof cell->key,
                        "mnp %s; %.900s of %lld pixels, seed %llu, %lld images; context %s; %s",
                        mnp_version(), s->source, (long long)s->side,
                        (unsigned long long)t->c->seed, (long long)t->functions,
                        table3_contexts[cell->context].option, table3_models[cell->model]);
    if (used > 0 && (size_t)used < sizeof cell->key) {
        if (cell->model < TABLE3_NETS)
            snprintf(cell->key + used, sizeof cell->key - (size_t)used,
                     " %016llx, %lld samples, proposal %d, seen %d",
                     (unsigned long long)s->hash[cell->model], (long long)t->samples, PROPOSAL,
                     TABLE3_SEEN);
        else
            snprintf(cell->key + used, sizeof cell->key - (size_t)used,
                     ", fitted to %lld images with %lld points", (long long)t->fit_images,
                     (long long)t->fit_points);
    }
    snprintf(cell->path, sizeof cell->path, "%.1500s/cells/%lld-%s-%s-%08llx.json", t->dir,
             (long long)s->side, table3_models[cell->model], table3_contexts[cell->context].name,
             (unsigned long long)(text_hash(0, cell->key, strlen(cell->key)) >> 32));
}

mnp_status table3_keep(table3 *t, const table3_cell *cell) {
    cli_json j;
    cli_json_begin(t->c, &j);
    cli_json_text(&j, "key", cell->key);
    cli_json_number(&j, "seconds", cell->seconds);
    json_key(&j.w, "loglik_se");
    json_array_begin(&j.w);
    for (int s = 0; s < TABLE3_SCORINGS; s++)
        for (int l = 0; l < TABLE3_LAWS; l++) {
            json_put_number(&j.w, cell->loglik[s][l]);
            json_put_number(&j.w, cell->se[s][l]);
        }
    json_array_end(&j.w);
    json_object_end(&j.w);
    buf_text(&j.text, "\n");
    mnp_status status = j.text.status;
    if (status == MNP_OK) status = fsio_write(&t->c->env, cell->path, j.text.data, j.text.len);
    buf_free(&j.text);
    return status;
}

bool table3_read(table3 *t, table3_cell *cell) {
    env quiet = t->c->env; /* a cell that is not there is no error */
    json_doc *doc = NULL;
    if (json_read(&quiet, cell->path, 1 << 20, &doc) != MNP_OK) return false;
    const json_value *root = json_root(doc), *key = json_get(root, "key");
    const json_value *list = json_get(root, "loglik_se"), *seconds = json_get(root, "seconds");
    bool good = key && key->kind == JSON_STRING && strcmp(key->string, cell->key) == 0;
    for (int k = 0; k < TABLE3_SCORINGS * TABLE3_LAWS && good; k++) {
        size_t at = 2 * (size_t)k;
        const json_value *a = json_at(list, at), *b = json_at(list, at + 1);
        good = a && b;
        if (!good) break;
        cell->loglik[k / TABLE3_LAWS][k % TABLE3_LAWS] = a->kind == JSON_NUMBER ? a->number : NAN;
        cell->se[k / TABLE3_LAWS][k % TABLE3_LAWS] = b->kind == JSON_NUMBER ? b->number : NAN;
    }
    if (good && seconds && seconds->kind == JSON_NUMBER) cell->seconds = seconds->number;
    json_destroy(doc);
    return good;
}

/* ---- scores ---------------------------------------------------------------------------------- */

static void on_progress(void *user, int64_t done, int64_t total) {
    (void)total;
    progress_show(user, done, "");
}

/* The posterior sees part of the pixels; the others are scored one by one as well. */
static int64_t proposal_of(int64_t pixels) {
    return pixels / 4 < PROPOSAL ? pixels / 4 : PROPOSAL;
}

static int score_net(table3 *t, table3_cell *cell, progress *p) {
    const table3_size *s = &t->size[cell->size];
    for (int k = 0; k < TABLE3_SCORINGS; k++) {
        mnp_eval_opts o = {.size = sizeof o,
                           .functions = t->functions,
                           .samples = t->samples,
                           .draws = -1,
                           .protocol = MNP_AUTHORS,
                           .seed = t->c->seed,
                           .device = t->device,
                           .context = table3_contexts[cell->context].option,
                           .proposal = proposal_of(s->side * s->side),
                           .seen = TABLE3_SEEN,
                           .noise = k == TABLE3_NOISY ? table3_noise : -1,
                           .progress = on_progress,
                           .progress_user = p};
        mnp_scores r = {.size = sizeof r};
        mnp_status status = mnp_evaluate(t->c->ctx, s->net[cell->model], s->test, &o, &r);
        if (status != MNP_OK) return table3_fail(t, status);
        cell->loglik[k][TABLE3_JOINT] = r.loglik;
        cell->se[k][TABLE3_JOINT] = r.se;
        cell->loglik[k][TABLE3_ALONE] = r.loglik_pixels;
        cell->se[k][TABLE3_ALONE] = r.se_pixels;
    }
    return 0;
}

/* The values of all test images, borrowed. */
static mnp_status images_of(table3 *t, const mnp_data *data, int64_t count, const float **out) {
    mnp_status status = MNP_OK;
    for (int64_t i = 0; i < count && status == MNP_OK; i++) {
        const float *x;
        int64_t n;
        status = mnp_data_function(t->c->ctx, data, i, &n, &x, &out[i]);
    }
    return status;
}

static int score_kriging(table3 *t, table3_cell *cell, progress *p) {
    table3_size *s = &t->size[cell->size];
    int code = table3_fit(t, cell->size);
    if (code) return code;
    int64_t count = t->functions; /* as many as the networks are scored on */
    const float **image = env_alloc(&t->e, (size_t)count, sizeof *image, "images");
    mnp_status status = image ? images_of(t, s->test, count, image) : MNP_ENOMEM;
    krige_eval_opts o = {.context = table3_contexts[cell->context].kind,
                         .wells = table3_contexts[cell->context].wells,
                         .seed = t->c->seed,
                         .noise = table3_noise,
                         .threads = t->threads,
                         .progress = on_progress,
                         .user = p};
    krige_score r;
    if (status == MNP_OK)
        status = krige_evaluate(&t->e, &s->fit[cell->model - TABLE3_NETS], image, count, &o, &r);
    env_free(&t->e, image);
    if (status != MNP_OK) return table3_fail(t, status);
    memcpy(cell->loglik, r.loglik, sizeof cell->loglik);
    memcpy(cell->se, r.se, sizeof cell->se);
    return 0;
}

int table3_fit(table3 *t, int size) {
    table3_size *s = &t->size[size];
    if (s->fitted) return 0;
    mnp_data_opts o = {
        .size = sizeof o, .split = MNP_TRAIN, .functions = t->fit_images, .seed = t->c->seed};
    mnp_data *data = NULL;
    const float *x, *y = NULL;
    int64_t n;
    mnp_status status = mnp_data_open(t->c->ctx, s->source, &o, &data);
    if (status == MNP_OK) status = mnp_data_function(t->c->ctx, data, 0, &n, &x, &y);
    for (int kind = 0; kind < 2 && status == MNP_OK; kind++) {
        int64_t count = mnp_data_functions(data);
        krige_fit_opts f = {.kind = (krige_kind)kind,
                            .rows = s->side,
                            .cols = s->side,
                            .count = count < t->fit_images ? count : t->fit_images,
                            .points = t->fit_points,
                            .noise = table3_noise,
                            .seed = t->c->seed};
        status = krige_fit(&t->e, t->threads, &f, y, &s->fit[kind]);
    }
    mnp_data_destroy(data);
    s->fitted = status == MNP_OK;
    return s->fitted ? 0 : table3_fail(t, status);
}

int table3_score(table3 *t, table3_cell *cell) {
    progress p;
    char what[128];
    snprintf(what, sizeof what, "%lld %s, %s", (long long)t->size[cell->size].side,
             table3_models[cell->model], table3_contexts[cell->context].name);
    double start = cli_now();
    progress_begin(&p, t->c, what, 0, t->functions);
    int code = cell->model < TABLE3_NETS ? score_net(t, cell, &p) : score_kriging(t, cell, &p);
    progress_end(&p);
    cell->seconds = cli_now() - start;
    if (code == 0 && table3_keep(t, cell) != MNP_OK) code = points_failed(t->c);
    cell->done = code == 0;
    return code;
}
