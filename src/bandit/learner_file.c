/* learner_file.c: the files of learner.h: the matrices w0, b0, w1, ... as F32, the scales and the
 * kind's own numbers as F64, options and origin as metadata. docs/dev/formats.md has the format. */
#include <math.h>
#include <string.h>

#include "bandit/learner.h"
#include "base/format.h"
#include "base/safetensors.h"
#include "util/real.h"
#include "util/text.h"

enum { TENSORS_MAX = 2 * MLP_LAYERS_MAX + 2, TENSOR_NAME = 16, LOGARITHM_MAX = 80 };

static const char format_name[] = "mnp-agent";

/* ---- matrices -------------------------------------------------------------------------------- */

/* Is the weight one of those whose columns make up the matrix: "w2" itself, or "w2.spline"? */
static bool belongs(const param *p, const char *matrix) {
    size_t length = strlen(matrix);
    return strncmp(p->name, matrix, length) == 0 &&
           (p->name[length] == '\0' || p->name[length] == '.');
}

/* Name and shape of the k-th matrix of the file: w0, b0, w1, ... */
static void matrix_at(const learner *l, int k, char name[TENSOR_NAME], int64_t shape[2]) {
    snprintf(name, TENSOR_NAME, "%c%d", k % 2 ? 'b' : 'w', k / 2);
    shape[0] = shape[1] = 0;
    for (int32_t i = 0; i < l->params.count; i++) {
        const param *p = &l->params.list[i];
        if (!belongs(p, name)) continue;
        shape[0] = p->rows;
        shape[1] += p->cols;
    }
}

/* Between the weights and the dense matrix. */
static void copy_matrix(const learner *l, const char *name, const int64_t shape[2], float *dense,
                        bool reading) {
    int64_t column = 0;
    for (int32_t i = 0; i < l->params.count; i++) {
        const param *p = &l->params.list[i];
        if (!belongs(p, name)) continue;
        for (int64_t r = 0; r < p->rows; r++) {
            float *in = l->weights + p->offset + r * p->ld, *out = dense + r * shape[1] + column;
            memcpy(reading ? in : out, reading ? out : in, (size_t)p->cols * sizeof *in);
        }
        column += p->cols;
    }
}

/* One stream of normals fills the matrices row by row. */
mnp_status learner_start(learner *l, uint64_t seed) {
    rng_stream s = rng_stream_make((rng_key){seed}, RNG_INIT, 0);
    size_t words = (size_t)l->params.words;
    l->weights = env_alloc(l->e, words, sizeof *l->weights, "an agent's weights");
    float *dense = env_alloc(l->e, words, sizeof *dense, "an agent's first weights");
    int last = 2 * (int)l->opts.layers - 2;
    for (int k = 0; l->weights && dense && k <= last; k += 2) {
        char name[TENSOR_NAME];
        int64_t shape[2];
        matrix_at(l, k, name, shape);
        double scale = sqrt(2.0 / (double)shape[0]) * (k == last ? 0.1 : 1);
        for (int64_t i = 0; i < shape[0] * shape[1]; i++)
            dense[i] = (float)(scale * rng_normal(&s));
        copy_matrix(l, name, shape, dense, true);
    }
    bool whole = l->weights && dense;
    env_free(l->e, dense);
    return whole ? MNP_OK : MNP_ENOMEM;
}

/* ---- writing --------------------------------------------------------------------------------- */

mnp_status learner_save(env *e, const learner *l, const char *path) {
    learner copy = *l;
    option_view view = learner_view(l->def, &copy.opts);
    safetensors_tensor tensors[TENSORS_MAX];
    char names[TENSORS_MAX][TENSOR_NAME], inputs[32];
    size_t count = 0;
    buf options;
    buf_init(&options, e);
    float *dense = env_alloc(e, (size_t)l->params.words, sizeof *dense, "the weights of a file");
    mnp_status status = dense ? options_print(&options, &view, 1) : MNP_ENOMEM;
    for (float *to = dense; status == MNP_OK && (int64_t)count < 2 * l->opts.layers; count++) {
        int64_t shape[2];
        matrix_at(l, (int)count, names[count], shape);
        copy_matrix(l, names[count], shape, to, false);
        tensors[count] =
            (safetensors_tensor){names[count], SAFETENSORS_F32, 2, {shape[0], shape[1]}, to, 0};
        to += shape[0] * shape[1];
    }
    tensors[count++] = (safetensors_tensor){
        "scale", SAFETENSORS_F64, 2, {1 + l->inputs, 2}, (double *)&copy.scale, 0};
    tensors[count++] = (safetensors_tensor){
        "numbers", SAFETENSORS_F64, 1, {l->def->n_numbers(&l->opts)}, copy.numbers, 0};
    snprintf(inputs, sizeof inputs, "%d", (int)l->inputs);
    const safetensors_meta meta[] = {
        {"format", format_name},          {"agent", l->def->kind},
        {"options", buf_str(&options)},   {"inputs", inputs},
        {"data", l->data ? l->data : ""}, {"x_names", l->x_names ? l->x_names : ""}};
    if (status == MNP_OK)
        status = safetensors_write(e, path, meta, sizeof meta / sizeof *meta, tensors, count);
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

static mnp_status read_options(env *e, const safetensors_file *file, const learner_def *def,
                               const char *found, learner_opts *o, int32_t *inputs) {
    const char *text = safetensors_meta_get(file, "options");
    const char *number = safetensors_meta_get(file, "inputs");
    const char *version = safetensors_meta_get(file, "version"); /* the first had none */
    option_view view = learner_view(def, o);
    int64_t count = 0;
    MNP_TRY(format_check(e, "an agent", version ? version : "1", "1"));
    if (strcmp(found, def->kind) != 0)
        return env_fail(e, MNP_EFORMAT, "it holds an agent of kind %.40s, not %s", found,
                        def->kind);
    if (!text || !number || text_parse_int64(number, &count) != TEXT_OK || count < 1 ||
        count > LEARNER_INPUTS_MAX)
        return env_fail(e, MNP_EFORMAT, "options or inputs are missing or wrong");
    *inputs = (int32_t)count;
    return format_options(e, &view, text);
}

static mnp_status find(env *e, const safetensors_file *file, const char *name, int64_t count,
                       const safetensors_tensor **out) {
    *out = safetensors_find(file, name);
    if (*out && (*out)->count == (size_t)count) return MNP_OK;
    return env_fail(e, MNP_EFORMAT, "the array %s is missing or has another size", name);
}

/* Scales divide and rates are powers of e: neither may leave what a float holds. */
static mnp_status check_numbers(env *e, const learner *l, int n_numbers) {
    const double *scale = (const double *)&l->scale;
    for (int32_t k = 0; k < 1 + l->inputs; k++)
        if (!real_scales(scale[2 * k], scale[2 * k + 1]))
            return env_fail(e, MNP_EFORMAT,
                            "the array scale holds the shift %g and the scale %g (a scale is "
                            "above 0, and both are finite)",
                            scale[2 * k], scale[2 * k + 1]);
    for (int k = 0; k < n_numbers; k++)
        if (!(fabs(l->numbers[k]) <= LOGARITHM_MAX))
            return env_fail(e, MNP_EFORMAT, "the array numbers holds %g, a logarithm beyond %d",
                            l->numbers[k], LOGARITHM_MAX);
    return MNP_OK;
}

/* Every array must have its size before memory is taken for the weights. */
static mnp_status read_weights(env *e, const safetensors_file *file, learner *l) {
    const safetensors_tensor *t[TENSORS_MAX];
    char name[TENSOR_NAME];
    int64_t shape[2];
    int matrices = 2 * (int)l->opts.layers;
    for (int k = 0; k < matrices; k++) {
        matrix_at(l, k, name, shape);
        MNP_TRY(find(e, file, name, shape[0] * shape[1], &t[k]));
    }
    MNP_TRY(learner_start(l, 0));
    float *dense = env_alloc(e, (size_t)l->params.words, sizeof *dense, "the weights of a file");
    mnp_status status = dense ? MNP_OK : MNP_ENOMEM;
    for (int k = 0; k < matrices && status == MNP_OK; k++) {
        matrix_at(l, k, name, shape);
        status = safetensors_floats(e, t[k], dense, t[k]->count);
        if (status == MNP_OK) copy_matrix(l, name, shape, dense, true);
    }
    env_free(e, dense);
    return status;
}

static mnp_status read_rest(env *e, const safetensors_file *file, learner *l) {
    const safetensors_tensor *t;
    int n_numbers = l->def->n_numbers(&l->opts);
    MNP_TRY(find(e, file, "scale", 2 * (1 + l->inputs), &t));
    MNP_TRY(safetensors_doubles(e, t, (double *)&l->scale, t->count));
    MNP_TRY(find(e, file, "numbers", n_numbers, &t));
    MNP_TRY(safetensors_doubles(e, t, l->numbers, t->count));
    MNP_TRY(check_numbers(e, l, n_numbers));
    const char *data = safetensors_meta_get(file, "data");
    const char *names = safetensors_meta_get(file, "x_names");
    l->data = env_strdup(e, data ? data : "");
    l->x_names = env_strdup(e, names ? names : "");
    return l->data && l->x_names ? MNP_OK : MNP_ENOMEM;
}

mnp_status learner_load(env *e, const char *path, const learner_def *def, learner **out) {
    learner_opts o;
    safetensors_file *file = NULL;
    const char *found;
    int32_t inputs = 0;
    *out = NULL;
    MNP_TRY(open_any(e, path, &file, &found));
    mnp_status status = read_options(e, file, def, found, &o, &inputs);
    if (status == MNP_OK) status = learner_declare(e, def, &o, inputs, out);
    if (status == MNP_OK) status = read_weights(e, file, *out);
    if (status == MNP_OK) status = read_rest(e, file, *out);
    safetensors_destroy(file);
    if (status == MNP_OK) return MNP_OK;
    learner_destroy(*out);
    *out = NULL;
    return env_context(e, status, "%s", path);
}
