/* geofluvial_set.c: see geofluvial_set.h. */
#include "data/geofluvial_set.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "comm/comm.h"
#include "util/json.h"
#include "util/npy.h"
#include "util/text.h"

static const char FORMAT[] = "mnp-geofluvial-", FORMAT_NUMBER[] = "1";

const char *geofluvial_split_name(data_split split) {
    static const char *const names[GEOFLUVIAL_SPLITS] = {"train", "valid", "test"};
    return names[split];
}

/* ---- the settings ---------------------------------------------------------------------------- */

static mnp_status settings_path(env *e, const char *dir, char path[GEOFLUVIAL_PATH]) {
    int length = snprintf(path, GEOFLUVIAL_PATH, "%s/geofluvial.json", dir);
    if (length >= GEOFLUVIAL_PATH) return env_fail(e, MNP_EINVAL, "%.60s...: too long a path", dir);
    return MNP_OK;
}

static void put_text(json_writer *w, const char *key, const char *text) {
    json_key(w, key);
    json_put_string(w, text);
}

static mnp_status write_settings(env *e, const geofluvial_set *s) {
    char path[GEOFLUVIAL_PATH], seed[24], format[32];
    MNP_TRY(settings_path(e, s->dir, path));
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)s->seed);
    buf options, text;
    json_writer w;
    buf_init(&options, e);
    buf_init(&text, e);
    geofluvial_options_print(&options, &s->o);
    json_writer_init(&w, &text, 2);
    json_object_begin(&w);
    snprintf(format, sizeof format, "%s%s", FORMAT, FORMAT_NUMBER);
    put_text(&w, "format", format);
    put_text(&w, "seed", seed); /* may exceed what a JSON number holds */
    put_text(&w, "options", buf_str(&options));
    for (int k = 0; k < GEOFLUVIAL_SPLITS; k++) {
        json_key(&w, geofluvial_split_name((data_split)k));
        json_put_integer(&w, s->images[k]);
    }
    json_key(&w, "complete");
    json_put_bool(&w, s->complete);
    json_object_end(&w);
    buf_text(&text, "\n");
    mnp_status status = options.status != MNP_OK ? options.status : text.status;
    if (status == MNP_OK) status = fsio_write(e, path, text.data, text.len);
    buf_free(&options);
    buf_free(&text);
    return status;
}

static mnp_status parse_settings(env *e, const json_value *root, geofluvial_set *out) {
    const char *format, *seed, *options;
    MNP_TRY(json_string(e, json_get(root, "format"), "format", &format));
    bool ours = strncmp(format, FORMAT, sizeof FORMAT - 1) == 0;
    MNP_TRY(format_check(e, "a folder of rivers", ours ? format + sizeof FORMAT - 1 : NULL,
                         FORMAT_NUMBER));
    MNP_TRY(json_string(e, json_get(root, "seed"), "seed", &seed));
    if (text_parse_uint64(seed, &out->seed) != TEXT_OK)
        return env_fail(e, MNP_EFORMAT, "'%.40s' is no seed", seed);
    MNP_TRY(json_string(e, json_get(root, "options"), "options", &options));
    MNP_TRY(geofluvial_options(e, options, &out->o));
    for (int k = 0; k < GEOFLUVIAL_SPLITS; k++) {
        const char *name = geofluvial_split_name((data_split)k);
        MNP_TRY(json_integer(e, json_get(root, name), name, &out->images[k]));
        if (out->images[k] < 0 || out->images[k] > INT32_MAX)
            return env_fail(e, MNP_EFORMAT, "%lld %s images", (long long)out->images[k], name);
    }
    return json_bool(e, json_get(root, "complete"), "complete", &out->complete);
}

mnp_status geofluvial_set_open(env *e, const char *dir, geofluvial_set *out) {
    char path[GEOFLUVIAL_PATH];
    json_doc *doc = NULL;
    *out = (geofluvial_set){0};
    MNP_TRY(settings_path(e, dir, path));
    memcpy(out->dir, dir, strlen(dir) + 1);
    MNP_TRY(json_read(e, path, SETTINGS_FILE_MAX, &doc));
    mnp_status status = parse_settings(e, json_root(doc), out);
    json_destroy(doc);
    return status == MNP_OK ? MNP_OK : env_context(e, status, "%s", path);
}

/* ---- files of images ------------------------------------------------------------------------- */

/* Images of one file: about 100 simulations, fewer where images are large. */
static int64_t file_images(const geofluvial_opts *o) {
    int64_t runs = 100 * 128 * 128 / (o->size * o->size);
    return o->crops * (runs < 1 ? 1 : runs > 100 ? 100 : runs);
}

static mnp_status file_path(env *e, const geofluvial_set *s, data_split split, int64_t file,
                            char path[GEOFLUVIAL_PATH]) {
    int length = snprintf(path, GEOFLUVIAL_PATH, "%s/%s-%05lld.npy", s->dir,
                          geofluvial_split_name(split), (long long)file);
    if (length >= GEOFLUVIAL_PATH)
        return env_fail(e, MNP_EINVAL, "%.60s...: too long a path", s->dir);
    return MNP_OK;
}

static size_t packed_row(const geofluvial_opts *o) {
    return (size_t)(o->size + 7) / 8;
}

/* The file as an array, refused where it does not hold `count` images of this size. */
static mnp_status read_file(env *e, const geofluvial_set *s, const char *path, int64_t count,
                            npy_array *a) {
    int64_t row = (int64_t)packed_row(&s->o);
    size_t limit = (size_t)(file_images(&s->o) * s->o.size * row) + 4096;
    MNP_TRY(npy_read(e, path, limit, a));
    if (a->type == NPY_U1 && a->ndim == 3 && a->shape[0] >= count && a->shape[1] == s->o.size &&
        a->shape[2] == row)
        return MNP_OK;
    npy_free(e, a);
    return env_fail(e, MNP_EFORMAT, "%s: not %lld images of %lld x %lld bits", path,
                    (long long)count, (long long)s->o.size, (long long)s->o.size);
}

static bool file_is_there(env *e, const geofluvial_set *s, const char *path, int64_t count) {
    npy_array a = {0};
    if (access(path, F_OK) != 0 || read_file(e, s, path, count, &a) != MNP_OK) return false;
    npy_free(e, &a);
    return true;
}

static void pack(const geofluvial_opts *o, const float *gray, int64_t count, uint8_t *bits) {
    size_t row = packed_row(o);
    for (int64_t r = 0; r < count * o->size; r++)
        for (int64_t c = 0; c < o->size; c++)
            if (gray[r * o->size + c] >= 0.5f)
                bits[(size_t)r * row + (size_t)c / 8] |= (uint8_t)(0x80 >> c % 8);
}

static mnp_status write_file(env *e, const geofluvial_set *s, const char *path, const float *gray,
                             int64_t count) {
    npy_array a = {
        .type = NPY_U1, .ndim = 3, .shape = {count, s->o.size, (int64_t)packed_row(&s->o)}};
    a.data = env_alloc(e, (size_t)(count * s->o.size) * packed_row(&s->o), 1, "packed images");
    if (!a.data) return MNP_ENOMEM;
    pack(&s->o, gray, count, a.data);
    mnp_status status = npy_write(e, path, &a);
    env_free(e, a.data);
    return status;
}

/* ---- writing all ----------------------------------------------------------------------------- */

typedef struct writing {
    env *e;
    pool *pool;
    geofluvial_set *set;
    const geofluvial_watch *watch;
    bool trust; /* files that are there belong to these settings */
    int64_t done, drawn;
    int64_t count; /* images of the present file */
    float *gray;
} writing;

static void tell(const writing *w, int64_t images) {
    if (w->watch) w->watch->done(w->watch->user, images);
}

static void run_done(void *user, int64_t runs) {
    const writing *w = user;
    int64_t images = runs * w->set->o.crops;
    tell(w, w->done + (images < w->count ? images : w->count));
}

static mnp_status write_split(writing *w, data_split split) {
    const geofluvial_set *s = w->set;
    int64_t each = file_images(&s->o), total = s->images[split];
    geofluvial_watch watch = {run_done, w};
    for (int64_t first = 0; first < total; first += each) {
        char path[GEOFLUVIAL_PATH];
        w->count = total - first < each ? total - first : each;
        MNP_TRY(file_path(w->e, s, split, first / each, path));
        bool own = s->parts < 2 || first / each % s->parts == s->part;
        if (own && (!w->trust || !file_is_there(w->e, s, path, w->count))) {
            MNP_TRY(geofluvial_draw(w->e, w->pool, &s->o, s->seed, split, first, w->count, &watch,
                                    w->gray));
            MNP_TRY(write_file(w->e, s, path, w->gray, w->count));
            w->drawn += w->count;
        }
        w->done += w->count;
        tell(w, w->done);
    }
    return MNP_OK;
}

/* Makes the folder, or looks whether what is in it belongs to the same images. */
static mnp_status enter_folder(env *e, const geofluvial_set *s, bool *trust) {
    char path[GEOFLUVIAL_PATH];
    MNP_TRY(settings_path(e, s->dir, path));
    if (mkdir(s->dir, 0777) != 0 && errno != EEXIST)
        return env_fail(e, MNP_EIO, "%s: cannot make the folder: %s", s->dir, strerror(errno));
    *trust = access(path, F_OK) == 0;
    if (!*trust) return MNP_OK;
    geofluvial_set old;
    buf was, is;
    buf_init(&was, e);
    buf_init(&is, e);
    mnp_status status = geofluvial_set_open(e, s->dir, &old);
    if (status == MNP_OK) status = geofluvial_options_print(&was, &old.o);
    if (status == MNP_OK) status = geofluvial_options_print(&is, &s->o);
    if (status == MNP_OK && (old.seed != s->seed || strcmp(buf_str(&was), buf_str(&is)) != 0))
        status = env_fail(e, MNP_EINVAL,
                          "%s holds images of %s (write to another folder, or remove this one)",
                          s->dir, old.seed != s->seed ? "another seed" : "other options");
    buf_free(&was);
    buf_free(&is);
    return status;
}

mnp_status geofluvial_set_write(env *e, pool *pool, geofluvial_set *set,
                                const geofluvial_watch *watch, int64_t *drawn) {
    writing w = {.e = e, .pool = pool, .set = set, .watch = watch};
    *drawn = 0;
    MNP_TRY(enter_folder(e, set, &w.trust));
    set->complete = false;
    if (set->part == 0) MNP_TRY(write_settings(e, set));
    w.gray = env_alloc(e, (size_t)(file_images(&set->o) * set->o.size * set->o.size),
                       sizeof *w.gray, "images");
    mnp_status status = w.gray ? MNP_OK : MNP_ENOMEM;
    for (int k = 0; k < GEOFLUVIAL_SPLITS && status == MNP_OK; k++)
        status = write_split(&w, (data_split)k);
    env_free(e, w.gray);
    *drawn = w.drawn;
    if (status != MNP_OK || set->parts > 1) return status;
    set->complete = true;
    return write_settings(e, set);
}

mnp_status geofluvial_set_share(env *e, pool *pool, geofluvial_set *set,
                                const geofluvial_watch *watch, int64_t *drawn) {
    int rank = comm_rank(e), ranks = comm_size(e);
    if (ranks == 1) return geofluvial_set_write(e, pool, set, watch, drawn);
    int64_t *made = env_alloc(e, (size_t)ranks, sizeof *made, "a job's ranks"), more = 0;
    if (!made) return MNP_ENOMEM;
    set->part = rank, set->parts = ranks;
    mnp_status status = geofluvial_set_write(e, pool, set, watch, &made[rank]);
    set->part = set->parts = 0;
    if (status == MNP_OK)
        status = comm_gather_parts(e, made, ranks, 1, sizeof *made, "images of all ranks");
    if (status == MNP_OK && rank == 0) status = geofluvial_set_write(e, pool, set, watch, &more);
    *drawn = more;
    for (int r = 0; r < ranks; r++) *drawn += made[r];
    env_free(e, made);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void unpack(const geofluvial_opts *o, const uint8_t *bits, uint8_t *mask) {
    size_t row = packed_row(o);
    for (int64_t r = 0; r < o->size; r++)
        for (int64_t c = 0; c < o->size; c++)
            mask[r * o->size + c] = bits[(size_t)r * row + (size_t)c / 8] >> (7 - c % 8) & 1;
}

mnp_status geofluvial_set_check(env *e, const geofluvial_set *set, data_split split,
                                int64_t count) {
    int64_t each = file_images(&set->o);
    for (int64_t first = 0; first < count; first += each) {
        char path[GEOFLUVIAL_PATH];
        struct stat there;
        int64_t here = count - first < each ? count - first : each;
        int64_t need = here * set->o.size * (int64_t)packed_row(&set->o);
        MNP_TRY(file_path(e, set, split, first / each, path));
        if (stat(path, &there) != 0) return env_fail(e, MNP_EIO, "%s: %s", path, strerror(errno));
        if ((int64_t)there.st_size < need)
            return env_fail(e, MNP_EFORMAT,
                            "%s: %lld bytes, where %lld images of %lld x %lld need %lld", path,
                            (long long)there.st_size, (long long)here, (long long)set->o.size,
                            (long long)set->o.size, (long long)need);
    }
    return MNP_OK;
}

mnp_status geofluvial_set_read(env *e, const geofluvial_set *set, data_split split, int64_t first,
                               int64_t count, uint8_t *mask) {
    if (first < 0 || count < 0 || first + count > set->images[split])
        return env_fail(e, MNP_EINVAL, "%s: images %lld .. +%lld of %lld %s images", set->dir,
                        (long long)first, (long long)count, (long long)set->images[split],
                        geofluvial_split_name(split));
    int64_t each = file_images(&set->o), pixels = set->o.size * set->o.size;
    for (int64_t i = first; i < first + count;) {
        char path[GEOFLUVIAL_PATH];
        npy_array a = {0};
        int64_t begin = i / each * each, left = set->images[split] - begin;
        int64_t here = left < each ? left : each;
        MNP_TRY(file_path(e, set, split, i / each, path));
        MNP_TRY(read_file(e, set, path, here, &a));
        for (; i < first + count && i < begin + here; i++)
            unpack(&set->o,
                   (const uint8_t *)a.data +
                       (size_t)((i - begin) * set->o.size) * packed_row(&set->o),
                   mask + (i - first) * pixels);
        npy_free(e, &a);
    }
    return MNP_OK;
}
