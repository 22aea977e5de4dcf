/* checkpoint.c: the state of a training run in one file, so that no two files can disagree after a
 * kill at any moment. */
#include <math.h>
#include <string.h>

#include "base/format.h"
#include "base/object.h"
#include "base/safetensors.h"
#include "comm/comm.h"
#include "run/train_internal.h"
#include "util/text.h"

/* Where products were rounded there are also numbers on that. */
static const char rounding_name[] = "rounding";
enum { PROGRAM_LIMIT = 1 << 30, BLOCKS = 5 };
enum { NUMBER_STEP, NUMBER_VALID, NUMBER_BEST, NUMBER_BEST_STEP, NUMBERS };
#define REMEDY "the file is damaged: use a copy of it, or train anew"
static const char format_key[] = "mnp.train", format_number[] = "1";
static const char *const block_names[BLOCKS] = {"weights", "moment1", "moment2", "best", "average"};

static void blocks_of(trainer *t, float *out[BLOCKS]) {
    out[0] = t->m->weights;
    out[1] = t->moment1;
    out[2] = t->moment2;
    out[3] = t->best;
    out[4] = t->average; /* NULL without ema */
}

/* What a run is: two runs with the same description and step have the same state. */
typedef struct description {
    buf model, train;
    char data[1024], seed[32];
} description;

static mnp_status describe(trainer *t, description *d) {
    buf_init(&d->model, t->env);
    buf_init(&d->train, t->env);
    option_view view = train_view(&t->spec);
    snprintf(d->data, sizeof d->data, "%.900s (%lld functions, %lld points)", t->data->name,
             (long long)t->data->functions, (long long)t->data->points);
    snprintf(d->seed, sizeof d->seed, "%llu", (unsigned long long)t->seed);
    MNP_TRY(model_options_text(t->env, t->m, &d->model));
    return options_print(&d->train, &view, 1);
}

static void forget(description *d) {
    buf_free(&d->model);
    buf_free(&d->train);
}

mnp_status trainer_save(trainer *t, const char *path) {
    MNP_TRY(trainer_intact(t));
    description d;
    mnp_status status = describe(t, &d);
    double numbers[NUMBERS] = {[NUMBER_STEP] = (double)t->step.step,
                               [NUMBER_VALID] = t->last_valid,
                               [NUMBER_BEST] = t->best_valid,
                               [NUMBER_BEST_STEP] = (double)t->best_step};
    float *blocks[BLOCKS];
    blocks_of(t, blocks);
    double rounding[ROUNDING_NUMBERS];
    rounding_write(&t->rounding, rounding);
    safetensors_tensor tensors[BLOCKS + 2];
    size_t count = 0;
    for (int k = 0; k < BLOCKS; k++)
        if (blocks[k])
            tensors[count++] = (safetensors_tensor){block_names[k],       SAFETENSORS_F32, 1,
                                                    {t->m->params.words}, blocks[k],       0};
    tensors[count++] = (safetensors_tensor){"numbers", SAFETENSORS_F64, 1, {NUMBERS}, numbers, 0};
    if (t->rounding.checks > 0)
        tensors[count++] = (safetensors_tensor){rounding_name,      SAFETENSORS_F64, 1,
                                                {ROUNDING_NUMBERS}, rounding,        0};
    safetensors_meta meta[] = {{format_key, format_number},
                               {"model", buf_str(&d.model)},
                               {"train", buf_str(&d.train)},
                               {"data", d.data},
                               {"seed", d.seed}};
    if (status == MNP_OK)
        status = safetensors_write(t->env, path, meta, sizeof meta / sizeof *meta, tensors, count);
    forget(&d);
    return status;
}

/* ---- the ranks of a job ---------------------------------------------------------------------- */

static mnp_status same_data(env *e, const char *what, const dataset *d) {
    if (!d) return comm_same(e, what, "none");
    size_t points = (size_t)d->points, inputs = d->shared_x ? (size_t)d->longest : points;
    uint64_t h = text_hash(0, d->start, ((size_t)d->functions + 1) * sizeof *d->start);
    h = text_hash(h, d->x, inputs * (size_t)d->x_dim * sizeof *d->x);
    h = text_hash(h, d->y, points * sizeof *d->y);
    h = text_hash(h, d->x_origin, (size_t)d->x_dim * sizeof *d->x_origin);
    h = text_hash(h, &d->y_origin, sizeof d->y_origin);
    char text[320];
    snprintf(text, sizeof text, "%.200s with %lld points, checksum %016llx", d->name,
             (long long)d->points, (unsigned long long)h);
    return comm_same(e, what, text);
}

/* Two builds of one version may round differently. */
static mnp_status same_program(env *e) {
    char path[4096], text[128], *bytes = NULL;
    size_t size = 0;
    uint64_t hash = 0;
    if (object_own_path(path, sizeof path) &&
        fsio_read(e, path, PROGRAM_LIMIT, &bytes, &size) == MNP_OK)
        hash = text_hash(0, bytes, size);
    env_free(e, bytes);
    snprintf(text, sizeof text, "%s, checksum %016llx", MNP_VERSION, (unsigned long long)hash);
    return comm_same(e, "version of mnp", text);
}

static const char *device_of(const trainer *t) {
    return t->b->kernels ? t->b->kernels(t->exec) : t->b->name;
}

mnp_status trainer_compare(trainer *t) {
    env *e = t->env;
    if (comm_size(e) < 2) return MNP_OK;
    description d;
    char at[32];
    snprintf(at, sizeof at, "%lld", (long long)t->step.step);
    mnp_status status = describe(t, &d);
    if (status == MNP_OK) status = same_program(e);
    if (status == MNP_OK) status = comm_same(e, "device", device_of(t));
    if (status == MNP_OK) status = comm_same(e, "precision", backend_precision(&t->device));
    if (status == MNP_OK) status = comm_same(e, "reduction", comm_fast(e) ? "fast" : "ordered");
    if (status == MNP_OK) status = comm_same(e, "seed", d.seed);
    if (status == MNP_OK) status = comm_same(e, "model", buf_str(&d.model));
    if (status == MNP_OK) status = comm_same(e, "training", buf_str(&d.train));
    if (status == MNP_OK) status = same_data(e, "training data", t->data);
    if (status == MNP_OK) status = same_data(e, "validation data", t->held_out);
    if (status == MNP_OK) status = comm_same(e, "step", at);
    float *blocks[BLOCKS];
    blocks_of(t, blocks);
    for (int k = 0; k < BLOCKS && status == MNP_OK; k++)
        if (blocks[k])
            status = comm_same_bytes(e, block_names[k], blocks[k],
                                     (size_t)t->m->params.words * sizeof(float));
    forget(&d);
    return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Names the first option in which two texts differ. */
static mnp_status same_text(env *e, const char *what, const char *stored, const char *now) {
    if (!stored) return env_fail(e, MNP_EFORMAT, "it says nothing of the run's %s", what);
    if (strcmp(stored, now) == 0) return MNP_OK;
    size_t at = 0;
    while (stored[at] && stored[at] == now[at]) at++;
    while (at > 0 && stored[at - 1] != ' ') at--;
    if (strcmp(what, "data") == 0 || strcmp(what, "seed") == 0) at = 0;
    size_t there = at ? strcspn(stored + at, " ") : strlen(stored);
    size_t here = at ? strcspn(now + at, " ") : strlen(now);
    return env_fail(e, MNP_EINVAL, "that run has %s %.*s, this one %.*s: resume with the same %s",
                    what, (int)there, stored + at, (int)here, now + at, what);
}

/* The stored options as this version writes them: the state may be older than some of them. */
static mnp_status same_options(env *e, const char *what, const safetensors_file *f,
                               option_view view, buf *now) {
    const char *text = safetensors_meta_get(f, what);
    buf stored;
    buf_init(&stored, e);
    mnp_status status = text ? format_options(e, &view, text) : MNP_OK;
    if (status == MNP_OK && text) status = options_print(&stored, &view, 1);
    if (status == MNP_OK) status = same_text(e, what, text ? buf_str(&stored) : NULL, buf_str(now));
    buf_free(&stored);
    return status;
}

static mnp_status check_description(trainer *t, const safetensors_file *f, bool new_schedule) {
    description d;
    model_spec model;
    train_spec train;
    MNP_TRY(format_check(t->env, "the state of a run", safetensors_meta_get(f, format_key),
                         format_number));
    mnp_status status = describe(t, &d);
    if (status == MNP_OK) status = same_options(t->env, "model", f, spec_view(&model), &d.model);
    if (status == MNP_OK)
        status = same_text(t->env, "data", safetensors_meta_get(f, "data"), d.data);
    if (status == MNP_OK)
        status = same_text(t->env, "seed", safetensors_meta_get(f, "seed"), d.seed);
    if (status == MNP_OK && !new_schedule)
        status = same_options(t->env, "train", f, train_view(&train), &d.train);
    forget(&d);
    return status;
}

/* A damaged or foreign file shows itself in numbers that no run has. */
static mnp_status check_block(env *e, const safetensors_tensor *tensor, bool squares) {
    const float *v = tensor->data;
    for (size_t i = 0; i < tensor->count; i++)
        if (!isfinite(v[i]) || (squares && v[i] < 0))
            return env_fail(e, MNP_EFORMAT, "'%s' holds %g, which no run can have; " REMEDY,
                            tensor->name, (double)v[i]);
    return MNP_OK;
}

/* All are looked at before the first is taken, so that a bad file changes nothing. */
static mnp_status load_blocks(trainer *t, const safetensors_file *f) {
    float *blocks[BLOCKS];
    const safetensors_tensor *tensors[BLOCKS];
    blocks_of(t, blocks);
    for (int k = 0; k < BLOCKS; k++) {
        tensors[k] = safetensors_find(f, block_names[k]);
        if (!blocks[k]) continue;
        if (!tensors[k] || tensors[k]->count != (size_t)t->m->params.words ||
            tensors[k]->dtype != SAFETENSORS_F32)
            return env_fail(t->env, MNP_EFORMAT, "'%s' is missing or has the wrong size or type",
                            block_names[k]);
        MNP_TRY(check_block(t->env, tensors[k], blocks[k] == t->moment2));
    }
    for (int k = 0; k < BLOCKS; k++)
        if (blocks[k])
            MNP_TRY(safetensors_floats(t->env, tensors[k], blocks[k], tensors[k]->count));
    return MNP_OK;
}

/* A step as a double: a whole number from 0 to `most`. Asked before it becomes an integer. */
static mnp_status check_step(env *e, const char *what, double v, int64_t most) {
    if (v >= 0 && v <= (double)most && v == floor(v)) return MNP_OK;
    return env_fail(e, MNP_EFORMAT, "the %s is %g, not a whole number from 0 to %lld; " REMEDY,
                    what, v, (long long)most);
}

/* A new schedule forgets the steps, and with them how long the old schedule was. */
static mnp_status check_numbers(const trainer *t, const double n[NUMBERS], bool new_schedule) {
    env *e = t->env;
    double valid = n[NUMBER_VALID], best = n[NUMBER_BEST];
    MNP_TRY(check_step(e, "step", n[NUMBER_STEP], new_schedule ? UINT32_MAX : t->spec.steps));
    MNP_TRY(
        check_step(e, "step of the best weights", n[NUMBER_BEST_STEP], (int64_t)n[NUMBER_STEP]));
    if (isnan(best) || best == INFINITY || (isfinite(valid) && valid > best))
        return env_fail(e, MNP_EFORMAT,
                        "the validation scores, last %g and best %g, cannot be; " REMEDY, valid,
                        best);
    return MNP_OK;
}

static mnp_status read_numbers(const trainer *t, const safetensors_file *f, bool new_schedule,
                               double numbers[NUMBERS]) {
    const safetensors_tensor *tensor = safetensors_find(f, "numbers");
    if (!tensor || tensor->count != NUMBERS || tensor->dtype != SAFETENSORS_F64)
        return env_fail(t->env, MNP_EFORMAT, "'numbers' is missing or has the wrong size or type");
    MNP_TRY(safetensors_doubles(t->env, tensor, numbers, NUMBERS));
    return check_numbers(t, numbers, new_schedule);
}

/* States of older versions, and of runs with exact products, have none. */
static mnp_status read_rounding(const trainer *t, const safetensors_file *f, rounding_record *out) {
    const safetensors_tensor *tensor = safetensors_find(f, rounding_name);
    double numbers[ROUNDING_NUMBERS];
    rounding_begin(out);
    if (!tensor) return MNP_OK;
    if (tensor->count != ROUNDING_NUMBERS || tensor->dtype != SAFETENSORS_F64)
        return env_fail(t->env, MNP_EFORMAT, "'%s' has the wrong size or type", rounding_name);
    MNP_TRY(safetensors_doubles(t->env, tensor, numbers, ROUNDING_NUMBERS));
    if (rounding_read(out, numbers)) return MNP_OK;
    return env_fail(t->env, MNP_EFORMAT, "'%s' holds numbers that no run can have; " REMEDY,
                    rounding_name);
}

/* A run that stopped before its first step has its starts to compare yet. */
static bool untouched(const trainer *t) {
    for (int64_t i = 0; i < t->m->params.words; i++)
        if (t->moment2[i] != 0) return false;
    return true;
}

static void set_numbers(trainer *t, const double numbers[NUMBERS], bool new_schedule) {
    t->unjudged = t->torn = false;
    t->step.step = new_schedule ? 0 : (int64_t)numbers[NUMBER_STEP];
    t->last_valid = numbers[NUMBER_VALID];
    t->best_valid = numbers[NUMBER_BEST];
    t->best_step = new_schedule ? 0 : (int64_t)numbers[NUMBER_BEST_STEP];
    t->fresh = t->step.step == 0 && untouched(t);
}

mnp_status trainer_load(trainer *t, const char *path, bool new_schedule) {
    safetensors_file *f = NULL;
    double numbers[NUMBERS];
    rounding_record rounding;
    size_t tensors = BLOCKS * (size_t)t->m->params.words * sizeof(float);
    MNP_TRY(safetensors_read(t->env, path, tensors + STATE_FILE_EXTRA, &f));
    mnp_status status = check_description(t, f, new_schedule);
    if (status == MNP_OK) status = read_numbers(t, f, new_schedule, numbers);
    if (status == MNP_OK) status = read_rounding(t, f, &rounding);
    if (status == MNP_OK) status = load_blocks(t, f);
    if (status == MNP_OK) set_numbers(t, numbers, new_schedule);
    if (status == MNP_OK) {
        if (new_schedule && rounding.verdict > 0) rounding.verdict = 1; /* from the start */
        t->rounding = rounding;
        status = trainer_watch_resume(t);
    }
    safetensors_destroy(f);
    return status == MNP_OK ? MNP_OK : env_context(t->env, status, "%s", path);
}
