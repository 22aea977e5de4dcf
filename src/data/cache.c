/* cache.c: generated sets kept as safetensors files, so that they are drawn once.
 *
 * A file is named by a hash of everything the numbers depend on, says it again in its metadata, and
 * carries a checksum of its bytes. What does not agree is drawn again and replaced. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/safetensors.h"
#include "data/dataset_internal.h"

#define CACHE_FORMAT "mnp-functions-1" /* a change of any generator's numbers is a new format */

static const uint64_t fnv_start = 0xCBF29CE484222325u;

static uint64_t fnv(uint64_t h, const void *data, size_t bytes) {
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++) h = (h ^ p[i]) * 0x100000001B3u;
    return h;
}

/* Eight bytes at a time: a checksum of 50 MB must cost nothing beside reading it. */
static uint64_t checksum(uint64_t h, const float *v, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        h = (h ^ bits) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return h;
}

typedef struct entry {
    char what[512]; /* everything the numbers depend on */
    char sum[24];
    char *path;
    size_t count, dims; /* points; floats of x per point */
} entry;

static mnp_status entry_make(env *e, const char *folder, const family *f, uint64_t seed,
                             data_split split, int64_t functions, entry *out) {
    int n = snprintf(out->what, sizeof out->what,
                     CACHE_FORMAT " %s seed=%" PRIu64 " split=%d functions=%" PRId64, f->name, seed,
                     (int)split, functions);
    out->path = NULL;
    if (n < 0 || (size_t)n >= sizeof out->what)
        return env_fail(e, MNP_EINVAL, "the name of the data set is too long for the cache");
    out->count = (size_t)(functions * f->def->points(f->opts));
    out->dims = (size_t)family_x_dim(f->def);
    buf path;
    buf_init(&path, e);
    buf_printf(&path, "%s/%s-%016" PRIx64 ".safetensors", folder, f->def->name,
               fnv(fnv_start, out->what, strlen(out->what)));
    mnp_status status = path.status;
    if (status == MNP_OK && !(out->path = env_strdup(e, buf_str(&path)))) status = MNP_ENOMEM;
    buf_free(&path);
    return status;
}

static void sum_of(entry *c, const float *x, const float *y) {
    snprintf(c->sum, sizeof c->sum, "%016" PRIx64,
             checksum(checksum(fnv_start, x, c->count * c->dims), y, c->count));
}

static bool same_text(const char *a, const char *b) {
    return a && b && strcmp(a, b) == 0;
}

static bool take(env *e, const safetensors_file *file, const char *name, size_t count, float *out) {
    const safetensors_tensor *t = safetensors_find(file, name);
    return t && t->dtype == SAFETENSORS_F32 && t->count == count &&
           safetensors_floats(e, t, out, count) == MNP_OK;
}

bool cache_load(env *e, const char *folder, const family *f, uint64_t seed, data_split split,
                int64_t functions, float *x, float *y) {
    entry c;
    struct stat there;
    safetensors_file *file = NULL;
    bool good = false;
    if (entry_make(e, folder, f, seed, split, functions, &c) == MNP_OK &&
        stat(c.path, &there) == 0) {
        size_t limit = (1 + c.dims) * c.count * sizeof *x + 65536;
        if (safetensors_read(e, c.path, limit, &file) == MNP_OK &&
            same_text(safetensors_meta_get(file, "what"), c.what) &&
            take(e, file, "x", c.count * c.dims, x) && take(e, file, "y", c.count, y)) {
            sum_of(&c, x, y);
            good = same_text(safetensors_meta_get(file, "checksum"), c.sum);
        }
        if (!good) env_log(e, MNP_LOG_WARN, "%s is damaged: the set is drawn again", c.path);
    }
    safetensors_destroy(file);
    env_free(e, c.path);
    return good;
}

static mnp_status store(env *e, const char *folder, entry *c, int64_t functions, const float *x,
                        const float *y) {
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return env_fail(e, MNP_EIO, "%s: cannot make the folder: %s", folder, strerror(errno));
    sum_of(c, x, y);
    int64_t points = (int64_t)c->count / functions, wide = points * (int64_t)c->dims;
    safetensors_meta meta[] = {{"what", c->what}, {"checksum", c->sum}};
    safetensors_tensor tensors[] = {{"x", SAFETENSORS_F32, 2, {functions, wide}, x, 0},
                                    {"y", SAFETENSORS_F32, 2, {functions, points}, y, 0}};
    return safetensors_write(e, c->path, meta, 2, tensors, 2);
}

void cache_store(env *e, const char *folder, const family *f, uint64_t seed, data_split split,
                 int64_t functions, const float *x, const float *y) {
    entry c;
    mnp_status status = entry_make(e, folder, f, seed, split, functions, &c);
    if (status == MNP_OK) status = store(e, folder, &c, functions, x, y);
    if (status != MNP_OK) env_log(e, MNP_LOG_WARN, "the data set was not kept: %s", e->error);
    env_free(e, c.path);
}
