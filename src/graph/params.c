/* params.c: see params.h. */
#include "graph/params.h"

#include <string.h>

void params_init(params *p) {
    *p = (params){0};
}

void params_free(env *e, params *p) {
    for (int32_t i = 0; i < p->count; i++) env_free(e, p->list[i].name);
    env_free(e, p->list);
    params_init(p);
}

int32_t params_find(const params *p, const char *name) {
    for (int32_t i = 0; i < p->count; i++)
        if (strcmp(p->list[i].name, name) == 0) return i;
    return -1;
}

static mnp_status append(env *e, params *p, const param *fresh) {
    if (p->count == p->cap) {
        int32_t cap = p->cap ? 2 * p->cap : 64;
        param *list = env_grow(e, p->list, (size_t)p->cap, (size_t)cap, sizeof *list, "weights");
        if (!list) return MNP_ENOMEM;
        p->list = list;
        p->cap = cap;
    }
    p->list[p->count++] = *fresh;
    return MNP_OK;
}

mnp_status params_get(env *e, params *p, const char *name, int32_t rows, int32_t cols,
                      param_init init, int32_t *index) {
    int32_t known = params_find(p, name);
    if (known >= 0) {
        const param *w = &p->list[known];
        if (w->rows != rows || w->cols != cols)
            return env_fail(e, MNP_EINVAL, "weight '%s' is %d x %d, not %d x %d", name, w->rows,
                            w->cols, rows, cols);
        *index = known;
        return MNP_OK;
    }
    if (p->sealed) return env_fail(e, MNP_EINVAL, "the model has no weight '%s'", name);
    if (rows < 1 || cols < 1)
        return env_fail(e, MNP_EINVAL, "weight '%s' has shape %d x %d", name, rows, cols);
    param w = {.rows = rows, .cols = cols, .ld = (cols + 15) / 16 * 16, .init = init};
    w.name = env_strdup(e, name);
    if (!w.name) return MNP_ENOMEM;
    mnp_status status = append(e, p, &w);
    if (status != MNP_OK) {
        env_free(e, w.name);
        return status;
    }
    *index = p->count - 1;
    return MNP_OK;
}

static int64_t place(params *p, bool frozen, int64_t at) {
    for (int32_t i = 0; i < p->count; i++) {
        param *w = &p->list[i];
        if (w->init.frozen != frozen) continue;
        w->offset = at;
        at += (int64_t)w->rows * w->ld;
    }
    return at;
}

void params_seal(params *p) {
    if (p->sealed) return;
    p->trainable = place(p, false, 0);
    p->words = place(p, true, p->trainable);
    p->sealed = true;
}

int64_t params_count(const params *p) {
    int64_t n = 0;
    for (int32_t i = 0; i < p->count; i++)
        if (!p->list[i].init.frozen) n += (int64_t)p->list[i].rows * p->list[i].cols;
    return n;
}

int64_t params_numbers(const params *p) {
    int64_t n = 0;
    for (int32_t i = 0; i < p->count; i++) n += (int64_t)p->list[i].rows * p->list[i].cols;
    return n;
}
