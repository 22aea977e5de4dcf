/* images.c: see images.h. Whatever the source, an image is rows x cols floats in d->y. */
#include "data/images.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "data/dataset_internal.h"
#include "data/geofluvial_set.h"
#include "data/images_png.h"
#include "util/npy.h"
#include "util/text.h"

static const char PREFIX[] = "images:", RIVERS[] = "geofluvial";
enum { STEP_POINTS = 512, STEP_SEEN = 256, CONTEXT_LO = 5, CONTEXT_HI = 180, BLOCK = 300 };
enum { SIDE_MIN = 2 };
static const double REGIONS = 0.3;     /* share of training contexts that are regions        */
static const double FREQUENCIES = 1.0; /* [-1, 1] holds about two periods of a standard draw */

bool images_drawn(const char *what) {
    size_t length = sizeof RIVERS - 1;
    return strncmp(what, RIVERS, length) == 0 && (what[length] == '\0' || what[length] == ':');
}

bool images_named(const char *what) {
    return strncmp(what, PREFIX, sizeof PREFIX - 1) == 0 || images_drawn(what);
}

/* ---- the grid -------------------------------------------------------------------------------- */

static mnp_status check_sides(env *e, const char *what, int64_t count, int64_t rows, int64_t cols) {
    if (rows < SIDE_MIN || cols < SIDE_MIN || rows > IMAGE_SIDE_MAX || cols > IMAGE_SIDE_MAX)
        return env_fail(e, MNP_EFORMAT, "%s: images of %lld x %lld pixels; sides are %d to %d",
                        what, (long long)rows, (long long)cols, SIDE_MIN, IMAGE_SIDE_MAX);
    if (count < 1) return env_fail(e, MNP_EFORMAT, "%s: there is no image", what);
    if (count > INT32_MAX)
        return env_fail(e, MNP_EFORMAT, "%s: more than %d images", what, INT32_MAX);
    int64_t pixels = count * rows * cols;
    if (pixels > IMAGE_VALUES_MAX)
        return env_fail(e, MNP_EFORMAT,
                        "%s: %lld images of %lld x %lld have %lld pixels; the limit is %lld (take "
                        "fewer)",
                        what, (long long)count, (long long)rows, (long long)cols, (long long)pixels,
                        (long long)IMAGE_VALUES_MAX);
    return MNP_OK;
}

int64_t images_context_max(int64_t pixels) {
    return pixels / 2 < CONTEXT_HI ? pixels / 2 : CONTEXT_HI;
}

/* A set of `count` images whose values are still to be filled in. */
static mnp_status make_set(env *e, const char *what, int64_t count, int64_t rows, int64_t cols,
                           dataset **out) {
    static const char *const inputs[] = {"row", "col"};
    int64_t pixels = rows * cols;
    dataset *d = NULL;
    MNP_TRY(check_sides(e, what, count, rows, cols));
    MNP_TRY(dataset_new_shared(e, what, count, count * pixels, 2, true, &d));
    for (int64_t i = 0; i <= count; i++) d->start[i] = i * pixels;
    for (int64_t i = 0; i < pixels; i++) {
        d->x[2 * i] = (float)geofluvial_input(i / cols, rows);
        d->x[2 * i + 1] = (float)geofluvial_input(i % cols, cols);
    }
    d->rows = rows, d->cols = cols;
    d->longest = pixels;
    d->raw_x = true;
    int64_t most = images_context_max(pixels);
    d->policy = (data_policy){.context_lo = most < CONTEXT_LO ? most : CONTEXT_LO,
                              .context_hi = most,
                              .step_points = pixels < STEP_POINTS ? pixels : STEP_POINTS,
                              .step_seen = pixels / 2 < STEP_SEEN ? pixels / 2 : STEP_SEEN,
                              .p_region = REGIONS,
                              .apart = true};
    d->rff_std = FREQUENCIES;
    mnp_status status = dataset_name_columns(e, d, inputs, "value", "image");
    if (status == MNP_OK)
        *out = d;
    else
        dataset_destroy(d);
    return status;
}

bool images_noted_values(const char *note, double *lo, double *hi) {
    char first[FSIO_NUMBER_TEXT];
    size_t length = strcspn(note, " ");
    if (length >= sizeof first || !note[length]) return false;
    snprintf(first, sizeof first, "%.*s", (int)length, note);
    return text_parse_double(first, lo) == TEXT_OK &&
           text_parse_double(note + length + 1, hi) == TEXT_OK && isfinite(*lo) && isfinite(*hi) &&
           *lo <= *hi;
}

bool images_noted_size(const char *note, int64_t *rows, int64_t *cols) {
    char first[TEXT_NUMBER];
    int64_t size[2];
    size_t length = strcspn(note, "x");
    if (length >= sizeof first || !note[length]) return false;
    snprintf(first, sizeof first, "%.*s", (int)length, note);
    bool good = text_parse_int64(first, &size[0]) == TEXT_OK &&
                text_parse_int64(note + length + 1, &size[1]) == TEXT_OK && size[0] >= SIDE_MIN &&
                size[1] >= SIDE_MIN && size[0] <= IMAGE_SIDE_MAX && size[1] <= IMAGE_SIDE_MAX;
    if (good) *rows = size[0], *cols = size[1];
    return good;
}

/* Of all pixels, as a note; lo < hi, so that it is a scale for pictures too. */
static mnp_status note_values(env *e, const data_source *s, dataset *d) {
    char lo[FSIO_NUMBER_TEXT], hi[FSIO_NUMBER_TEXT], text[2 * FSIO_NUMBER_TEXT];
    float least = d->y[0], most = d->y[0];
    for (int64_t i = 0; i < d->points; i++)
        least = fminf(least, d->y[i]), most = fmaxf(most, d->y[i]);
    fsio_format_double((double)least, lo);
    fsio_format_double((double)(most > least ? most : least + 1), hi);
    snprintf(text, sizeof text, "%s %s", lo, hi);
    MNP_TRY(dataset_note_source(e, d, s));
    return dataset_note(e, d, IMAGES_VALUES, text);
}

static mnp_status report(env *e, dataset *d, const char *kind) {
    float lo = d->y[0], hi = d->y[0];
    double below = 0;
    for (int64_t i = 0; i < d->points; i++) {
        if (!isfinite(d->y[i]))
            return env_fail(e, MNP_EFORMAT, "%s: image %lld, row %lld, column %lld is no number",
                            d->name, (long long)(i / d->longest),
                            (long long)(i % d->longest / d->cols), (long long)(i % d->cols));
        lo = fminf(lo, d->y[i]);
        hi = fmaxf(hi, d->y[i]);
        below += d->y[i] < 0;
    }
    buf b;
    buf_init(&b, e);
    buf_plain(&b, d->name);
    buf_printf(&b, ": %lld %s images of %lld x %lld pixels; values from ", (long long)d->functions,
               kind, (long long)d->rows, (long long)d->cols);
    buf_float(&b, lo);
    buf_text(&b, " to ");
    buf_float(&b, hi);
    buf_text(&b, ", ");
    buf_fixed(&b, 100 * below / (double)d->points, 1);
    buf_text(&b, "% below 0\n");
    mnp_status status = b.status;
    if (status == MNP_OK && !(d->report = env_strdup(e, buf_str(&b)))) status = MNP_ENOMEM;
    buf_free(&b);
    return status;
}

static const char *split_word(data_split split) {
    return split == DATA_TRAIN ? "training" : split == DATA_VALID ? "validation" : "test";
}

static mnp_status note_size(env *e, const data_source *s, dataset *d) {
    char text[64];
    snprintf(text, sizeof text, "%lldx%lld", (long long)d->rows, (long long)d->cols);
    if (d->n_notes == 0) MNP_TRY(dataset_note_source(e, d, s));
    return dataset_note(e, d, IMAGES_SIZE, text);
}

static mnp_status finish(env *e, mnp_status status, const data_source *s, dataset *d,
                         const char *kind, dataset **out) {
    if (status == MNP_OK) status = note_size(e, s, d);
    if (status == MNP_OK) status = report(e, d, kind);
    if (status == MNP_OK)
        *out = d;
    else
        dataset_destroy(d);
    return status;
}

/* ---- rivers ---------------------------------------------------------------------------------- */

static void mark_rivers(dataset *d, uint64_t seed) {
    d->policy.noise = IMAGES_RIVER_NOISE;
    d->policy.mirrors =
        true; /* no bank is preferred; mirrored in the columns the water runs the other way */
    d->seed = seed;
}

static mnp_status fill_from_folder(env *e, const geofluvial_set *set, data_split split,
                                   dataset *d) {
    uint8_t *mask = env_alloc(e, (size_t)(BLOCK * d->longest), 1, "masks of images");
    mnp_status status = mask ? MNP_OK : MNP_ENOMEM;
    for (int64_t first = 0; first < d->functions && status == MNP_OK; first += BLOCK) {
        int64_t count = d->functions - first < BLOCK ? d->functions - first : BLOCK;
        status = geofluvial_set_read(e, set, split, first, count, mask);
        if (status == MNP_OK)
            status = geofluvial_values(e, &set->o, mask, count, d->y + first * d->longest);
    }
    env_free(e, mask);
    return status;
}

static mnp_status open_rivers(env *e, const char *what, const char *dir, const data_source *s,
                              dataset **out) {
    geofluvial_set set;
    dataset *d = NULL;
    MNP_TRY(geofluvial_set_open(e, dir, &set));
    if (!set.complete)
        return env_fail(e, MNP_EINVAL,
                        "%s: not all images are there yet; repeat the 'mnp gen geofluvial' that "
                        "made it",
                        dir);
    int64_t have = set.images[s->split];
    if (have < 1)
        return env_fail(e, MNP_EINVAL, "%s: it has no %s images", dir, split_word(s->split));
    int64_t count = s->functions > 0 && s->functions < have ? s->functions : have;
    MNP_TRY(geofluvial_set_check(e, &set, s->split, count));
    MNP_TRY(make_set(e, what, count, set.o.size, set.o.size, &d));
    mark_rivers(d, set.seed);
    return finish(e, fill_from_folder(e, &set, s->split, d), s, d, split_word(s->split), out);
}

/* "geofluvial:size=32,nit=400". */
static mnp_status drawn_options(env *e, const char *what, geofluvial_opts *o) {
    char settings[1024];
    const char *after = what[sizeof RIVERS - 1] ? what + sizeof RIVERS : "";
    snprintf(settings, sizeof settings, "%s", after);
    for (char *c = settings; *c; c++)
        if (*c == ',') *c = ' ';
    return geofluvial_options(e, settings, o);
}

bool images_drawn_size(env *e, const char *what, int64_t *rows, int64_t *cols) {
    geofluvial_opts o;
    if (!images_drawn(what) || drawn_options(e, what, &o) != MNP_OK) return false;
    *rows = *cols = o.size;
    return true;
}

/* Images drawn here. */
static mnp_status draw_rivers(env *e, pool *pool, const char *what, const data_source *s,
                              dataset **out) {
    geofluvial_opts o;
    dataset *d = NULL;
    MNP_TRY(drawn_options(e, what, &o));
    int64_t count = s->functions;
    if (count < 1)
        return env_fail(e, MNP_EINVAL,
                        "%s: a simulation takes 0.2 s for three images: say how many to draw "
                        "(--functions), or draw a folder once with 'mnp gen geofluvial' and use "
                        "images:DIR",
                        what);
    MNP_TRY(make_set(e, what, count, o.size, o.size, &d));
    mark_rivers(d, s->seed);
    mnp_status status = MNP_OK;
    uint8_t *mask = env_alloc(e, (size_t)(BLOCK * d->longest), 1, "masks of images");
    if (!mask) status = MNP_ENOMEM;
    for (int64_t first = 0; first < count && status == MNP_OK; first += BLOCK) {
        int64_t here = count - first < BLOCK ? count - first : BLOCK;
        float *y = d->y + first * d->longest;
        status = geofluvial_draw(e, pool, &o, s->seed, s->split, first, here, NULL, y);
        if (status != MNP_OK) break;
        geofluvial_mask(y, here * d->longest, mask);
        status = geofluvial_values(e, &o, mask, here, y);
    }
    env_free(e, mask);
    return finish(e, status, s, d, split_word(s->split), out);
}

/* ---- a person's images ----------------------------------------------------------------------- */

/* Numbers of the images that belong to the split, upwards; returns how many. `index` has room for
 * all. Which are held out is the luck of the seed, as with CSV files. */
static int64_t choose_split(const data_source *s, int64_t count, int64_t *index) {
    int64_t held =
        s->holdout > 0 && count > 1 ? (int64_t)floor(s->holdout * (double)count + 0.5) : 0;
    if (s->holdout > 0 && count > 1 && held < 1) held = 1;
    if (held > count - 1) held = count - 1;
    rng_perm p = rng_perm_make((rng_key){s->seed}, (rng_at){.purpose = RNG_DATA}, (uint64_t)count);
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        bool out = (int64_t)rng_perm_apply(&p, (uint64_t)i) < held;
        if (held == 0 || out == (s->split != DATA_TRAIN)) index[kept++] = i;
    }
    return s->functions > 0 && s->functions < kept ? s->functions : kept;
}

static const char *part_word(const data_source *s) {
    return !(s->holdout > 0) ? "" : s->split == DATA_TRAIN ? "training" : "held-out";
}

static void copy_pixels(const npy_array *a, int64_t image, int64_t pixels, float *y) {
    npy_array one = *a;
    double v;
    one.count = 1;
    for (int64_t i = 0; i < pixels; i++) {
        one.data = (char *)a->data + (size_t)(image * pixels + i) * npy_size(a->type);
        npy_doubles(&one, &v);
        y[i] = (float)v;
    }
}

static mnp_status open_stack(env *e, const char *what, const char *path, const data_source *s,
                             dataset **out) {
    npy_array a = {0};
    dataset *d = NULL;
    const size_t most = (size_t)(NPY_FILE_MAX < PTRDIFF_MAX ? NPY_FILE_MAX : PTRDIFF_MAX);
    MNP_TRY(npy_read(e, path, most, &a));
    mnp_status status = MNP_OK;
    if (a.ndim != 3)
        status = env_fail(e, MNP_EFORMAT,
                          "%s: an array of %d dimensions; images are (number, rows, columns)", path,
                          a.ndim);
    if (status == MNP_OK) status = check_sides(e, path, a.shape[0], a.shape[1], a.shape[2]);
    int64_t *index = NULL, count = 0, pixels = 0;
    if (status == MNP_OK) {
        pixels = a.shape[1] * a.shape[2];
        index = env_alloc(e, (size_t)a.shape[0], sizeof *index, "a list of images");
        status = index ? MNP_OK : MNP_ENOMEM;
    }
    if (status == MNP_OK) {
        count = choose_split(s, a.shape[0], index);
        status = make_set(e, what, count, a.shape[1], a.shape[2], &d);
    }
    for (int64_t k = 0; k < count && status == MNP_OK; k++)
        copy_pixels(&a, index[k], pixels, d->y + k * pixels);
    env_free(e, index);
    npy_free(e, &a);
    if (status == MNP_OK) status = note_values(e, s, d);
    return finish(e, status, s, d, part_word(s), out);
}

static mnp_status fill_from_png(env *e, const png_list *list, const int64_t *index, dataset *d) {
    for (int64_t k = 0; k < d->functions; k++)
        MNP_TRY(png_list_read(e, list, index[k], d->y + k * d->longest));
    return MNP_OK;
}

static mnp_status open_pngs(env *e, const char *what, const char *dir, const data_source *s,
                            dataset **out) {
    png_list list;
    dataset *d = NULL;
    int64_t *index = NULL, count = 0;
    MNP_TRY(png_list_open(e, dir, &list));
    mnp_status status = MNP_OK;
    index = env_alloc(e, (size_t)list.count, sizeof *index, "a list of images");
    if (!index) status = MNP_ENOMEM;
    if (status == MNP_OK) {
        count = choose_split(s, list.count, index);
        for (int64_t k = 0; k < count && status == MNP_OK; k++)
            status = png_list_check(e, &list, index[k]);
    }
    if (status == MNP_OK) status = make_set(e, what, count, list.rows, list.cols, &d);
    if (status == MNP_OK) status = fill_from_png(e, &list, index, d);
    env_free(e, index);
    png_list_close(e, &list);
    if (status == MNP_OK) status = note_values(e, s, d);
    return finish(e, status, s, d, part_word(s), out);
}

/* ---- which ----------------------------------------------------------------------------------- */

mnp_status images_open(env *e, pool *pool, const char *what, const data_source *s, dataset **out) {
    *out = NULL;
    if (s->holdout >= 1)
        return env_fail(e, MNP_EINVAL, "the share held out must be below 1 (0.2 is usual)");
    if (strncmp(what, PREFIX, sizeof PREFIX - 1) != 0) return draw_rivers(e, pool, what, s, out);
    const char *path = what + sizeof PREFIX - 1;
    size_t length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, ".npy") == 0)
        return open_stack(e, what, path, s, out);
    struct stat there;
    char settings[GEOFLUVIAL_PATH];
    int written = snprintf(settings, sizeof settings, "%s/geofluvial.json", path);
    if (written >= (int)sizeof settings)
        return env_fail(e, MNP_EINVAL, "%.60s...: too long a path", path);
    if (stat(path, &there) != 0 || !S_ISDIR(there.st_mode))
        return env_fail(e, MNP_EIO,
                        "%s: no such folder; images are a folder of 'mnp gen geofluvial', a folder "
                        "of PNG files, or a file .npy",
                        path);
    if (stat(settings, &there) == 0) return open_rivers(e, what, path, s, out);
    return open_pngs(e, what, path, s, out);
}
