/* ceiling.c: what the process that made the data says, function by function and target by target.
 * Where numbers are integrated out that takes up to a second of a core for each function, so it is
 * kept in a file, DIR/truth/TASK-SIZE-KEY.npy: a row of numbers,
 *
 *     functions, then for each: context, targets, joint, known (0 or 1), and where it is known
 *     for each target: log-density, CRPS, mean, sd, entropy. */
#include <math.h>
#include <string.h>

#include "lab/predictive/predictive.h"
#include "util/npy.h"
#include "util/text.h"

enum { HEAD = 4, EACH = 5, LIMIT = 1 << 30 };

bool ceiling_next(const ceiling *c, size_t *at, true_function *out) {
    if (*at == 0) *at = 1;
    if (c->functions == 0 || *at + HEAD > c->count) return false;
    const double *v = c->flat + *at;
    if (!(v[1] >= 0 && v[1] < 1e9)) return false; /* the file may have been edited */
    *out = (true_function){v[0], v[2], (int64_t)v[1], v[3] != 0 ? v + HEAD : NULL};
    *at += HEAD + (v[3] != 0 ? EACH * (size_t)out->targets : 0);
    return *at <= c->count;
}

void ceiling_free(predictive *s) {
    env_free(&s->s.c->env, s->ceiling.flat);
    s->ceiling = (ceiling){.task = -1, .size = -1, .seconds = NAN};
}

/* ---- finding it ------------------------------------------------------------------------------ */

typedef struct found {
    buf bytes; /* of doubles */
    progress bar;
} found;

static void note(void *user, const mnp_function_scores *f) {
    found *to = user;
    double head[HEAD] = {(double)f->context, (double)f->targets, f->joint, f->marginal != NULL};
    buf_append(&to->bytes, head, sizeof head);
    for (int64_t i = 0; f->marginal && i < f->targets; i++) {
        double v[EACH] = {f->marginal[i], f->crps[i], f->mean[i], f->sd[i], f->entropy[i]};
        buf_append(&to->bytes, v, sizeof v);
    }
}

static void show(void *user, int64_t done, int64_t total) {
    study_progress(&((found *)user)->bar, done, total);
}

static mnp_status find(predictive *s, found *to) {
    cli *c = s->s.c;
    ceiling *v = &s->ceiling;
    int64_t size = task_size(s, v->task, v->size);
    mnp_eval_opts o = {.size = sizeof o,
                       .seed = c->seed,
                       .functions = s->functions,
                       .context_lo = size,
                       .context_hi = size,
                       .progress = show,
                       .progress_user = to,
                       .each = note,
                       .each_user = to};
    mnp_truth all = {.size = sizeof all};
    double functions = (double)s->functions;
    MNP_TRY(predictive_test(s, v->task));
    buf_append(&to->bytes, &functions, sizeof functions);
    double began = cli_now();
    progress_begin(&to->bar, c, "the truth", 0, s->functions);
    mnp_status status = mnp_evaluate_truth(c->ctx, s->test, &o, &all, 1);
    progress_end(&to->bar);
    v->seconds = cli_now() - began;
    if (status == MNP_EINVAL) { /* no density is known: said by an empty array */
        buf_clear(&to->bytes);
        functions = 0;
        return buf_append(&to->bytes, &functions, sizeof functions);
    }
    return status == MNP_OK ? to->bytes.status : status;
}

/* ---- keeping it ------------------------------------------------------------------------------ */

static void path_of(const predictive *s, int task, int size, char path[STUDY_PATH]) {
    char key[STUDY_TEXT], name[2 * 64];
    int64_t points = task_size(s, task, size);
    snprintf(key, sizeof key, "mnp %s; %.200s; %lld functions, context %lld, seed %llu",
             mnp_version(), s->tasks.at[task], (long long)s->functions, (long long)points,
             (unsigned long long)s->s.c->seed);
    snprintf(name, sizeof name, "%.63s-%lld", s->tasks.at[task], (long long)points);
    study_plain(name);
    snprintf(path, STUDY_PATH, "%.1500s/truth/%s-%08llx.npy", s->s.dir, name,
             (unsigned long long)(text_hash(0, key, strlen(key)) >> 32));
}

/* The whole array must be there. */
static bool is_whole(const ceiling *c) {
    size_t at = 0;
    true_function f;
    int64_t functions = 0;
    if (c->count == 0 || !(c->flat[0] >= 0 && c->flat[0] < 1e9)) return false;
    while (ceiling_next(c, &at, &f)) functions++;
    return functions == c->functions && (functions == 0 ? c->count == 1 : at == c->count);
}

static bool read_file(predictive *s, const char *path) {
    env quiet = s->s.c->env; /* a file that is not there is no error */
    npy_array a = {0};
    ceiling *v = &s->ceiling;
    if (npy_read(&quiet, path, LIMIT, &a) != MNP_OK) return false;
    v->flat = env_alloc(&s->s.c->env, a.count + 1, sizeof *v->flat, "the truth");
    if (v->flat && a.type == NPY_F8) {
        v->count = a.count;
        npy_doubles(&a, v->flat);
        v->functions = a.count ? (int64_t)fmin(fmax(v->flat[0], 0), 1e9) : 0;
    }
    npy_free(&quiet, &a);
    return is_whole(v);
}

static mnp_status keep(predictive *s, const char *path, const buf *bytes) {
    ceiling *v = &s->ceiling;
    env *e = &s->s.c->env;
    v->count = bytes->len / sizeof(double);
    v->flat = env_alloc(e, v->count, sizeof *v->flat, "the truth");
    if (!v->flat) return MNP_ENOMEM;
    memcpy(v->flat, bytes->data, v->count * sizeof *v->flat);
    v->functions = (int64_t)v->flat[0];
    npy_array a = {.type = NPY_F8, .ndim = 1, .shape = {(int64_t)v->count}, .data = v->flat};
    return npy_write(e, path, &a);
}

mnp_status ceiling_find(predictive *s, int task, int size) {
    char path[STUDY_PATH];
    if (s->ceiling.task == task && s->ceiling.size == size) return MNP_OK;
    ceiling_free(s);
    path_of(s, task, size, path);
    if (!read_file(s, path)) {
        found f = {0};
        ceiling_free(s);
        s->ceiling.task = task, s->ceiling.size = size;
        buf_init(&f.bytes, &s->s.c->env);
        mnp_status status = find(s, &f);
        if (status == MNP_OK) {
            status = keep(s, path, &f.bytes);
            if (status != MNP_OK) s->s.c->status = study_failed(&s->s); /* nor could others be */
        }
        buf_free(&f.bytes);
        if (status != MNP_OK) {
            ceiling_free(s);
            return status;
        }
    }
    s->ceiling.task = task, s->ceiling.size = size;
    return MNP_OK;
}
