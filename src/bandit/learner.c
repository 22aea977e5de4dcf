/* learner.c: episodes and files, see learner.h. */
#include "bandit/learner.h"

#include <math.h>
#include <string.h>

#include "base/format.h"
#include "util/real.h"
#include "util/text.h"

/* ---- episodes -------------------------------------------------------------------------------- */

mnp_status episode_create(env *e, const dataset *d, episode *out) {
    *out = (episode){0};
    out->x = env_alloc(e, (size_t)(d->longest * d->x_dim), sizeof *out->x, "an episode");
    out->y = env_alloc(e, (size_t)d->longest, sizeof *out->y, "an episode");
    if (out->x && out->y) return MNP_OK;
    episode_free(e, out);
    return MNP_ENOMEM;
}

void episode_free(env *e, episode *ep) {
    env_free(e, ep->x);
    env_free(e, ep->y);
    *ep = (episode){0};
}

static int64_t within(int64_t v, int64_t lo, int64_t hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

void episode_draw(episode *ep, const dataset *d, const learner_scale *scale, uint64_t seed,
                  int64_t step, int64_t item) {
    rng_at at = {.purpose = RNG_SPLIT, .step = (uint32_t)step, .function = (uint32_t)item};
    rng_stream s = rng_stream_at((rng_key){seed}, at);
    int64_t f = (int64_t)rng_below(&s, (uint64_t)d->functions), first = d->start[f];
    int64_t n = d->start[f + 1] - first;
    int64_t hi = within(d->policy.context_hi, 1, n - 1), lo = within(d->policy.context_lo, 1, hi);
    ep->context = lo + (int64_t)rng_below(&s, (uint64_t)(hi - lo + 1));
    ep->points = within(ep->context + EPISODE_TARGETS, 0, n);
    at.sample = 1; /* a place of its own beside the stream's */
    rng_perm order = rng_perm_make((rng_key){seed}, at, (uint64_t)n);
    for (int64_t i = 0; i < ep->points; i++) {
        int64_t from = first + (int64_t)rng_perm_apply(&order, (uint64_t)i);
        for (int32_t k = 0; k < d->x_dim; k++)
            ep->x[i * d->x_dim + k] =
                learner_x(scale, k, (double)d->x[from * d->x_dim + k] + d->x_origin[k]);
        ep->y[i] = learner_y(scale, dataset_raw_y(d, from));
    }
}

/* ---- scales ---------------------------------------------------------------------------------- */

void learner_scale_none(learner_scale *s) {
    s->y[0] = 0;
    s->y[1] = 1;
    for (int k = 0; k < LEARNER_INPUTS_MAX; k++) s->x[k][0] = 0, s->x[k][1] = 1;
}

static void measure(const float *values, int64_t n, int64_t stride, double out[2]) {
    double sum = 0, squares = 0, count = (double)n;
    for (int64_t i = 0; i < n; i++) sum += (double)values[i * stride];
    for (int64_t i = 0; i < n; i++) {
        double off = (double)values[i * stride] - sum / count;
        squares += off * off;
    }
    out[0] = sum / count;
    out[1] = squares > 0 ? sqrt(squares / count) : 1;
}

mnp_status learner_scale_of(env *e, const dataset *d, learner_scale *out) {
    if (d->x_dim > LEARNER_INPUTS_MAX)
        return env_fail(e, MNP_EINVAL, "%d inputs are too many for this agent; %d are possible",
                        (int)d->x_dim, LEARNER_INPUTS_MAX);
    learner_scale_none(out);
    measure(d->y, d->points, 1, out->y);
    out->y[0] += d->y_origin;
    for (int32_t k = 0; k < d->x_dim && !d->builtin; k++) {
        measure(d->x + k, d->points, d->x_dim, out->x[k]);
        out->x[k][0] += d->x_origin[k];
    }
    return MNP_OK;
}

double learner_rate(double rate, int64_t step, int64_t steps) {
    return rate * 0.5 * (1 + cos(3.14159265358979323846 * (double)step / (double)steps));
}

/* ---- training -------------------------------------------------------------------------------- */

mnp_status learner_take(env *e, const dataset *d, const mlp *net, learner_scale *scale,
                        learner_origin *origin) {
    if (d->x_dim != net->width[0])
        return env_fail(e, MNP_EINVAL, "the agent has %d inputs, the data %d", (int)net->width[0],
                        (int)d->x_dim);
    MNP_TRY(learner_scale_of(e, d, scale));
    return learner_origin_of(e, d, origin);
}

mnp_status learner_run(env *e, int64_t steps, double (*step)(void *self, int64_t k), void *self,
                       const learner_watch *watch) {
    mnp_status status = MNP_OK;
    for (int64_t k = 0; k < steps && status == MNP_OK; k++) {
        double loss = step(self, k);
        if (env_cancelled(e)) status = env_fail(e, MNP_ECANCELLED, "cancelled");
        if (watch && watch->progress) watch->progress(watch->user, k + 1, steps, loss);
    }
    return status;
}

/* ---- origins --------------------------------------------------------------------------------- */

mnp_status learner_origin_of(env *e, const dataset *d, learner_origin *out) {
    buf names;
    buf_init(&names, e);
    learner_origin_free(e, out);
    for (int32_t k = 0; k < d->x_dim; k++) buf_printf(&names, "%s%s", k ? "," : "", d->x_names[k]);
    out->data = env_strdup(e, d->name);
    out->x_names = env_strdup(e, buf_str(&names));
    mnp_status status = names.status;
    buf_free(&names);
    return out->data && out->x_names ? status : MNP_ENOMEM;
}

void learner_origin_free(env *e, learner_origin *o) {
    env_free(e, o->data);
    env_free(e, o->x_names);
    *o = (learner_origin){0};
}

static mnp_status read_origin(env *e, const safetensors_file *file, learner_origin *out) {
    const char *data = safetensors_meta_get(file, "data");
    const char *names = safetensors_meta_get(file, "x_names");
    out->data = env_strdup(e, data ? data : "");
    out->x_names = env_strdup(e, names ? names : "");
    return out->data && out->x_names ? MNP_OK : MNP_ENOMEM;
}

/* ---- writing --------------------------------------------------------------------------------- */

enum { TENSORS_MAX = 2 * MLP_LAYERS_MAX + 2, TENSOR_NAME = 16, LOGARITHM_MAX = 80 };

static const char format_name[] = "mnp-agent";

/* Name, shape and place among the weights of the k-th matrix: w0, b0, w1, ... */
static int64_t matrix_of(const mlp *net, int k, char name[TENSOR_NAME], int64_t shape[2]) {
    int l = k / 2;
    bool bias = k % 2;
    snprintf(name, TENSOR_NAME, "%c%d", bias ? 'b' : 'w', l);
    shape[0] = bias ? 1 : net->width[l];
    shape[1] = net->width[l + 1];
    return bias ? net->bias[l] : net->weight[l];
}

static void write_meta(const learner_file *f, const buf *options, char inputs[32],
                       safetensors_meta meta[6]) {
    snprintf(inputs, 32, "%d", (int)f->net->width[0]);
    meta[0] = (safetensors_meta){"format", format_name};
    meta[1] = (safetensors_meta){"agent", f->kind};
    meta[2] = (safetensors_meta){"options", buf_str(options)};
    meta[3] = (safetensors_meta){"inputs", inputs};
    meta[4] = (safetensors_meta){"data", f->origin->data ? f->origin->data : ""};
    meta[5] = (safetensors_meta){"x_names", f->origin->x_names ? f->origin->x_names : ""};
}

mnp_status learner_write(env *e, const char *path, const learner_file *f) {
    safetensors_tensor tensors[TENSORS_MAX];
    safetensors_meta meta[6];
    char names[TENSORS_MAX][TENSOR_NAME], inputs[32];
    int count = 0;
    buf options;
    buf_init(&options, e);
    float *dense = env_alloc(e, (size_t)f->net->words, sizeof *dense, "the weights of a file"), *to;
    mnp_status status = dense ? options_print(&options, f->options, 1) : MNP_ENOMEM;
    if (status != MNP_OK) goto done;
    to = dense;
    for (; count < 2 * f->net->layers; count++) {
        int64_t shape[2], ld = f->net->ld[count / 2 + 1];
        const float *from = f->weights + matrix_of(f->net, count, names[count], shape);
        tensors[count] =
            (safetensors_tensor){names[count], SAFETENSORS_F32, 2, {shape[0], shape[1]}, to, 0};
        for (int64_t r = 0; r < shape[0]; r++, to += shape[1])
            memcpy(to, from + r * ld, (size_t)shape[1] * sizeof *to);
    }
    tensors[count++] = (safetensors_tensor){
        "scale", SAFETENSORS_F64, 2, {1 + f->net->width[0], 2}, (double *)f->scale, 0};
    tensors[count++] =
        (safetensors_tensor){"numbers", SAFETENSORS_F64, 1, {f->n_numbers}, f->numbers, 0};
    write_meta(f, &options, inputs, meta);
    status = safetensors_write(e, path, meta, 6, tensors, (size_t)count);
done:
    env_free(e, dense);
    buf_free(&options);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

static mnp_status open_any(env *e, const char *path, safetensors_file **file, const char **kind) {
    MNP_TRY(safetensors_read(e, path, AGENT_FILE_MAX, file));
    const char *format = safetensors_meta_get(*file, "format");
    *kind = safetensors_meta_get(*file, "agent");
    if (format && *kind && strcmp(format, format_name) == 0) return MNP_OK;
    safetensors_destroy(*file);
    *file = NULL;
    return env_fail(e, MNP_EFORMAT, "%s is not the file of a trained agent", path);
}

mnp_status learner_kind(env *e, const char *path, char out[OPTION_NAME_MAX],
                        char x_names[LEARNER_NAMES]) {
    safetensors_file *file = NULL;
    const char *kind;
    MNP_TRY(open_any(e, path, &file, &kind));
    snprintf(out, OPTION_NAME_MAX, "%s", kind);
    const char *names = safetensors_meta_get(file, "x_names");
    if (x_names) snprintf(x_names, LEARNER_NAMES, "%s", names ? names : "");
    safetensors_destroy(file);
    return MNP_OK;
}

mnp_status learner_open(env *e, const char *path, const char *kind, const option_view *options,
                        safetensors_file **file, int32_t *inputs) {
    const char *found, *text, *number;
    int64_t count = 0;
    MNP_TRY(open_any(e, path, file, &found));
    text = safetensors_meta_get(*file, "options");
    number = safetensors_meta_get(*file, "inputs");
    const char *version = safetensors_meta_get(*file, "version"); /* the first had none */
    mnp_status status = format_check(e, "an agent", version ? version : "1", "1");
    if (status == MNP_OK && strcmp(found, kind) != 0)
        status = env_fail(e, MNP_EFORMAT, "it holds an agent of kind %.40s, not %s", found, kind);
    else if (status == MNP_OK && (!text || !number || text_parse_int64(number, &count) != TEXT_OK ||
                                  count < 1 || count > LEARNER_INPUTS_MAX))
        status = env_fail(e, MNP_EFORMAT, "options or inputs are missing or wrong");
    if (status == MNP_OK) status = format_options(e, options, text);
    *inputs = (int32_t)count;
    if (status != MNP_OK) {
        env_context(e, status, "%s", path);
        safetensors_destroy(*file);
        *file = NULL;
    }
    return status;
}

static mnp_status find(env *e, const char *path, const safetensors_file *file, const char *name,
                       int64_t count, const safetensors_tensor **out) {
    *out = safetensors_find(file, name);
    if (*out && (*out)->count == (size_t)count) return MNP_OK;
    return env_fail(e, MNP_EFORMAT, "%s: the array %s is missing or has another size", path, name);
}

mnp_status learner_holds(env *e, const char *path, const safetensors_file *file, const mlp *net) {
    const safetensors_tensor *t;
    for (int k = 0; k < 2 * net->layers; k++) {
        char name[TENSOR_NAME];
        int64_t shape[2];
        (void)matrix_of(net, k, name, shape);
        MNP_TRY(find(e, path, file, name, shape[0] * shape[1], &t));
    }
    return MNP_OK;
}

/* Scales divide and rates are powers of e: neither may leave what a float holds. */
static mnp_status check_numbers(env *e, const char *path, const learner_file *f) {
    const double *scale = (const double *)f->scale;
    for (int32_t k = 0; k < 1 + f->net->width[0]; k++)
        if (!real_scales(scale[2 * k], scale[2 * k + 1]))
            return env_fail(e, MNP_EFORMAT,
                            "%s: the array scale holds the shift %g and the scale %g (a scale is "
                            "above 0, and both are finite)",
                            path, scale[2 * k], scale[2 * k + 1]);
    for (int64_t k = 0; k < f->n_numbers; k++)
        if (!(fabs(f->numbers[k]) <= LOGARITHM_MAX))
            return env_fail(e, MNP_EFORMAT, "%s: the array numbers holds %g, a logarithm beyond %d",
                            path, f->numbers[k], LOGARITHM_MAX);
    return MNP_OK;
}

mnp_status learner_read(env *e, const char *path, const safetensors_file *file, learner_file *f) {
    const safetensors_tensor *t;
    float *dense = env_alloc(e, (size_t)f->net->words, sizeof *dense, "the weights of a file");
    mnp_status status = dense ? MNP_OK : MNP_ENOMEM;
    for (int k = 0; k < 2 * f->net->layers && status == MNP_OK; k++) {
        char name[TENSOR_NAME];
        int64_t shape[2], ld = f->net->ld[k / 2 + 1];
        int64_t at = matrix_of(f->net, k, name, shape);
        status = find(e, path, file, name, shape[0] * shape[1], &t);
        if (status == MNP_OK && (status = safetensors_floats(e, t, dense, t->count)) != MNP_OK)
            env_context(e, status, "%s", path);
        for (int64_t r = 0; r < shape[0] && status == MNP_OK; r++)
            memcpy(f->weights + at + r * ld, dense + r * shape[1],
                   (size_t)shape[1] * sizeof *dense);
    }
    env_free(e, dense);
    if (status == MNP_OK) status = find(e, path, file, "scale", 2 * (1 + f->net->width[0]), &t);
    if (status == MNP_OK) status = safetensors_doubles(e, t, (double *)f->scale, t->count);
    if (status == MNP_OK) status = find(e, path, file, "numbers", f->n_numbers, &t);
    if (status == MNP_OK) status = safetensors_doubles(e, t, f->numbers, t->count);
    if (status == MNP_OK) status = check_numbers(e, path, f);
    return status == MNP_OK ? read_origin(e, file, f->origin) : status;
}
