/* test_set.c: see test_set.h. */
#include "run/test_set.h"

#include "op/permute.h"
#include "run/split.h"
#include "util/npz.h"

enum { X, Y, CONTEXT, TARGETS, MASK, MEMBERS };

static void fill(const dataset *d, uint64_t seed, int32_t *memory, const npz_member *m) {
    float *x = m[X].array.data, *y = m[Y].array.data;
    int64_t *context = m[CONTEXT].array.data, *targets = m[TARGETS].array.data;
    uint8_t *mask = m[MASK].array.data;
    split_sizes sizes = split_usual(d);
    for (int64_t i = 0; i < d->functions; i++) {
        curve_split s = split_curve(d, &sizes, seed, i, memory);
        context[i] = s.m;
        targets[i] = s.n - s.m;
        for (int64_t k = 0; k < s.n; k++) {
            int64_t to = i * d->longest + k;
            for (int32_t c = 0; c < d->x_dim; c++)
                x[to * d->x_dim + c] = (float)dataset_raw_x(d, i, s.order[k], c);
            y[to] = (float)dataset_raw_y(d, d->start[i] + s.order[k]);
            mask[to] = k < s.m ? 1 : 2;
        }
    }
}

mnp_status test_set_write(env *e, const dataset *d, uint64_t seed, const char *path) {
    int64_t F = d->functions, n = d->longest;
    npz_member m[MEMBERS] = {
        [X] = {"x", {.type = NPY_F4, .ndim = 3, .shape = {F, n, d->x_dim}}},
        [Y] = {"y", {.type = NPY_F4, .ndim = 2, .shape = {F, n}}},
        [CONTEXT] = {"context", {.type = NPY_I8, .ndim = 1, .shape = {F}}},
        [TARGETS] = {"targets", {.type = NPY_I8, .ndim = 1, .shape = {F}}},
        [MASK] = {"mask", {.type = NPY_U1, .ndim = 2, .shape = {F, n}}},
    };
    if (d->rows > 0) return env_fail(e, MNP_EINVAL, "%s: images have no .npz file", d->name);
    if (!d->builtin) /* its floats would blur times, which are counted from an origin */
        return env_fail(e, MNP_EINVAL,
                        "%s: only a built-in family has an .npz file: write a .csv file", d->name);
    int32_t *memory = env_alloc(e, (size_t)permute_words(n), sizeof *memory, "a split");
    bool made = memory != NULL;
    for (int k = 0; k < MEMBERS; k++) {
        size_t count = 1;
        for (int c = 0; c < m[k].array.ndim; c++) count *= (size_t)m[k].array.shape[c];
        m[k].array.data = env_alloc(e, count, npy_size(m[k].array.type), "a test set");
        made = made && m[k].array.data;
    }
    mnp_status status = MNP_ENOMEM;
    if (made) {
        fill(d, seed, memory, m);
        status = npz_write(e, path, m, MEMBERS);
    }
    for (int k = 0; k < MEMBERS; k++) env_free(e, m[k].array.data);
    env_free(e, memory);
    return status;
}
