/* gen_images.c: see gen_images.h. Images go into a folder (one bit a pixel, all three splits,
 * resumable) or, those of one split, into one .npy file. */
#include "cli/gen_images.h"

#include <string.h>

#include "base/pool.h"
#include "cli/outputs.h"
#include "util/sheet.h"
#include "cli/wells.h"
#include "data/geofluvial_set.h"
#include "util/npy.h"

typedef struct job {
    cli *c;
    env e; /* the command's, with Ctrl-C */
    pool *pool;
    const char *out, *sheet;
    int64_t images;
    data_split split;
    bool one_split;
    int value;
    geofluvial_opts o;
    progress bar;
    int64_t shown; /* by the bar */
    double seconds;
} job;

void gen_images_help(FILE *to) {
    env e;
    buf text;
    env_init(&e);
    buf_init(&text, &e);
    if (geofluvial_options_help(&text) == MNP_OK)
        fprintf(to,
                "\nimages (train on them with --data images:DIR; options with --set KEY=VALUE):\n"
                "  geofluvial channels of simulated meandering rivers, 18:2:5 train:valid:test\n\n"
                "options of geofluvial:\n%s",
                buf_str(&text));
    buf_free(&text);
}

static bool cancelled(void *user) {
    (void)user;
    return cli_interrupted();
}

static int failed(job *j, mnp_status status) {
    if (status != MNP_ECANCELLED) return cli_fail(j->c, EXIT_FAILED, "%s", j->e.error);
    return cli_fail(j->c, EXIT_INTERRUPTED, "interrupted%s",
                    j->value < 0 ? "; the same command goes on from here" : "");
}

/* The error of a call of the library, for failed(). */
static mnp_status from_ctx(job *j, mnp_status status) {
    return status == MNP_OK ? status : env_fail(&j->e, status, "%s", mnp_last_error(j->c->ctx));
}

static void show_progress(void *user, int64_t done) {
    job *j = user;
    if (done > j->shown) progress_show(&j->bar, done, "");
    j->shown = done;
}

/* ---- a folder -------------------------------------------------------------------------------- */

/* The first images of the splits, one after the other, while there is room. */
static mnp_status folder_sheet(job *j, const geofluvial_set *set) {
    sheet s = {0};
    int64_t all = set->images[0] + set->images[1] + set->images[2], size = set->o.size, done = 0;
    uint8_t *mask = env_alloc(&j->e, (size_t)(size * size), 1, "an image");
    mnp_status status = mask ? sheet_begin(&j->e, all, size, size, &s) : MNP_ENOMEM;
    for (int split = 0; split < GEOFLUVIAL_SPLITS; split++)
        for (int64_t i = 0; i < set->images[split] && done < s.count && status == MNP_OK; i++) {
            status = geofluvial_set_read(&j->e, set, (data_split)split, i, 1, mask);
            for (int64_t p = 0; p < size * size && status == MNP_OK; p++)
                *sheet_pixel(&s, done, p / size, p % size) = mask[p] ? 255 : 0;
            done++;
        }
    if (status == MNP_OK) status = sheet_write(&j->e, j->sheet, &s);
    env_free(&j->e, mask);
    sheet_free(&j->e, &s);
    return status;
}

static mnp_status folder_pngs(job *j, const geofluvial_set *set, int64_t each) {
    char path[GEOFLUVIAL_PATH + 64];
    int64_t size = set->o.size;
    uint8_t *mask = env_alloc(&j->e, (size_t)(size * size), 1, "an image");
    mnp_status status = mask ? MNP_OK : MNP_ENOMEM;
    for (int split = 0; split < GEOFLUVIAL_SPLITS; split++)
        for (int64_t i = 0; i < set->images[split] && i < each && status == MNP_OK; i++) {
            status = geofluvial_set_read(&j->e, set, (data_split)split, i, 1, mask);
            snprintf(path, sizeof path, "%s/png/%s-%06lld.png", set->dir,
                     geofluvial_split_name((data_split)split), (long long)i);
            if (status == MNP_OK) status = png_write_gray(&j->e, path, size, size, 1, mask);
        }
    env_free(&j->e, mask);
    return status;
}

static void report_folder(job *j, const geofluvial_set *set, int64_t drawn) {
    const int64_t *n = set->images;
    cli_say(j->c,
            "%s: %lld train, %lld valid, %lld test images of %lld x %lld, seed %llu; %lld new",
            j->out, (long long)n[0], (long long)n[1], (long long)n[2], (long long)set->o.size,
            (long long)set->o.size, (unsigned long long)set->seed, (long long)drawn);
    cli_json w;
    cli_json_begin(j->c, &w);
    cli_json_text(&w, "data", "geofluvial");
    cli_json_integer(&w, "images", n[0] + n[1] + n[2]);
    cli_json_integer(&w, "train", n[0]);
    cli_json_integer(&w, "valid", n[1]);
    cli_json_integer(&w, "test", n[2]);
    cli_json_integer(&w, "drawn", drawn);
    cli_json_integer(&w, "size", set->o.size);
    cli_json_integer(&w, "seed", (int64_t)set->seed);
    cli_json_number(&w, "seconds", j->seconds);
    cli_json_text(&w, "out", j->out);
    cli_json_text(&w, "sheet", j->sheet);
    cli_json_end(j->c, &w);
}

/* In a job every rank makes some of the files; then the first one looks whether all are there. */
static mnp_status share_files(job *j, geofluvial_set *set, const geofluvial_watch *watch,
                              int64_t *drawn) {
    if (!j->c->joined) return geofluvial_set_write(&j->e, j->pool, set, watch, drawn);
    int64_t *made = env_alloc(&j->e, (size_t)j->c->ranks, sizeof *made, "a job's ranks"), more = 0;
    if (!made) return MNP_ENOMEM;
    set->part = j->c->rank, set->parts = j->c->ranks;
    mnp_status status = geofluvial_set_write(&j->e, j->pool, set, watch, &made[j->c->rank]);
    set->part = set->parts = 0;
    if (status == MNP_OK) status = from_ctx(j, mnp_job_gather(j->c->ctx, made, j->c->ranks, 1, 8));
    if (status == MNP_OK && j->c->rank == 0)
        status = geofluvial_set_write(&j->e, j->pool, set, watch, &more);
    *drawn = more;
    for (int r = 0; r < j->c->ranks; r++) *drawn += made[r];
    env_free(&j->e, made);
    return status;
}

/* The folders are made here, so that a place where they cannot be is found before any image. */
static int check_folder(job *j, bool pngs) {
    char path[GEOFLUVIAL_PATH + 64];
    int code = cli_output_folder(j->c, j->out);
    snprintf(path, sizeof path, "%s/png", j->out);
    if (code == 0 && pngs) code = cli_output_folder(j->c, path);
    return code ? code : cli_output(j->c, j->sheet);
}

/* The folder is this process's, or this job's, alone. */
static int claim_folder(job *j, bool pngs) {
    int code = j->c->rank == 0 ? check_folder(j, pngs) : 0;
    if (code == 0) code = lock_take(&j->c->lock, j->c, j->out);
    mnp_status status = mnp_job_broadcast(j->c->ctx, &code, sizeof code);
    return status == MNP_OK ? code : cli_failed(j->c, status);
}

static int to_folder(job *j) {
    geofluvial_set set = {.o = j->o, .seed = j->c->seed};
    char sheet_path[GEOFLUVIAL_PATH + 64];
    int64_t drawn = 0, pngs = cli_int(j->c, "png", 0, 0, 1000000);
    if (cli_bad(j->c)) return j->c->status;
    if (strlen(j->out) >= sizeof set.dir - 64) return cli_fail(j->c, EXIT_USAGE, "--out: too long");
    snprintf(set.dir, sizeof set.dir, "%s", j->out);
    snprintf(sheet_path, sizeof sheet_path, "%s/sheet.png", set.dir);
    if (!j->sheet) j->sheet = sheet_path;
    if (j->one_split)
        set.images[j->split] = j->images;
    else
        geofluvial_shares(j->images, set.images);
    geofluvial_watch watch = {show_progress, j};
    int code = claim_folder(j, pngs > 0);
    if (code) return code;
    progress_begin(&j->bar, j->c, "images", 0, j->images);
    mnp_status status = share_files(j, &set, &watch, &drawn);
    progress_end(&j->bar);
    j->seconds = cli_now() - j->bar.started;
    if (status == MNP_OK && j->c->rank > 0) return 0;
    if (status == MNP_OK && lock_held(&j->c->lock)) fsio_sweep_folder(set.dir);
    if (status == MNP_OK) status = folder_sheet(j, &set);
    if (status == MNP_OK && pngs > 0) status = folder_pngs(j, &set, pngs);
    if (status != MNP_OK) return failed(j, status);
    report_folder(j, &set, drawn);
    return 0;
}

/* ---- one array ------------------------------------------------------------------------------- */

enum { VALUE_FOLDER = -1, VALUE_SDF, VALUE_GRAY, VALUE_MASK };

/* gray (images, size, size) to what the file holds, in place where it is smaller. */
static mnp_status to_values(job *j, float *gray, npy_array *a) {
    int64_t pixels = j->o.size * j->o.size;
    uint8_t *bytes = (uint8_t *)gray, *mask = NULL;
    mnp_status status = MNP_OK;
    switch (j->value) {
    case VALUE_GRAY: /* 8 bits: 255 is all river */
        a->type = NPY_U1;
        for (int64_t i = 0; i < j->images * pixels; i++)
            bytes[i] = (uint8_t)(255 * gray[i] + 0.5f); /* byte i lies at or before float i */
        break;
    case VALUE_MASK:
        a->type = NPY_B1;
        for (int64_t i = 0; i < j->images * pixels; i++) bytes[i] = gray[i] >= 0.5f;
        break;
    default:
        a->type = NPY_F4;
        mask = env_alloc(&j->e, (size_t)pixels, 1, "an image");
        status = mask ? MNP_OK : MNP_ENOMEM;
        for (int64_t k = 0; k < j->images && status == MNP_OK; k++) {
            geofluvial_mask(gray + k * pixels, pixels, mask);
            status = geofluvial_values(&j->e, &j->o, mask, 1, gray + k * pixels);
        }
        env_free(&j->e, mask);
    }
    a->data = gray;
    return status;
}

static uint8_t brightness(const npy_array *a, int64_t i) {
    if (a->type == NPY_F4)
        return (uint8_t)(127.5 * (1 - (double)((const float *)a->data)[i]) + 0.5);
    uint8_t v = ((const uint8_t *)a->data)[i];
    return a->type == NPY_U1 ? v : v ? 255 : 0;
}

static mnp_status array_sheet(job *j, const npy_array *a) {
    sheet s = {0};
    int64_t size = j->o.size;
    MNP_TRY(sheet_begin(&j->e, j->images, size, size, &s));
    for (int64_t k = 0; k < s.count; k++)
        for (int64_t p = 0; p < size * size; p++)
            *sheet_pixel(&s, k, p / size, p % size) = brightness(a, k * size * size + p);
    mnp_status status = sheet_write(&j->e, j->sheet, &s);
    sheet_free(&j->e, &s);
    return status;
}

static void report_array(job *j) {
    cli_say(j->c, "%s: %lld %s images of %lld x %lld, seed %llu", j->out, (long long)j->images,
            geofluvial_split_name(j->split), (long long)j->o.size, (long long)j->o.size,
            (unsigned long long)j->c->seed);
    cli_json w;
    cli_json_begin(j->c, &w);
    cli_json_text(&w, "data", "geofluvial");
    cli_json_integer(&w, "images", j->images);
    cli_json_text(&w, "split", geofluvial_split_name(j->split));
    cli_json_integer(&w, "size", j->o.size);
    cli_json_integer(&w, "seed", (int64_t)j->c->seed);
    cli_json_number(&w, "seconds", j->seconds);
    cli_json_text(&w, "out", j->out);
    cli_json_text(&w, "sheet", j->sheet);
    cli_json_end(j->c, &w);
}

/* F-wells.csv beside F.npy. */
static void wells_path(const job *j, char path[GEOFLUVIAL_PATH]) {
    snprintf(path, GEOFLUVIAL_PATH, "%.*s-wells.csv", (int)strlen(j->out) - 4, j->out);
}

static mnp_status array_wells(job *j, const npy_array *a) {
    char path[GEOFLUVIAL_PATH];
    int64_t count = cli_int(j->c, "wells", 1, 1, 1 << 24);
    wells_path(j, path);
    return wells_write(&j->e, path, a->data, j->o.size, j->o.size, count, j->c->seed);
}

static int check_array(job *j) {
    char path[GEOFLUVIAL_PATH];
    if (strlen(j->out) >= sizeof path - 16) return cli_fail(j->c, EXIT_USAGE, "--out: too long");
    if (j->sheet && strcmp(j->sheet, j->out) == 0)
        return cli_fail(j->c, EXIT_USAGE, "--out and --sheet are one file, %s", j->out);
    wells_path(j, path);
    int code = cli_output(j->c, j->out);
    if (code == 0 && j->sheet) code = cli_output(j->c, j->sheet);
    if (code == 0 && cli_has(j->c, "wells")) code = cli_output(j->c, path);
    return code;
}

static int to_array(job *j) {
    if (cli_has(j->c, "png"))
        return cli_fail(j->c, EXIT_USAGE, "--png needs a folder: --out DIR instead of %s", j->out);
    int code = check_array(j);
    if (code) return code;
    int64_t runs = (j->images + j->o.crops - 1) / j->o.crops;
    npy_array a = {.ndim = 3, .shape = {j->images, j->o.size, j->o.size}};
    geofluvial_watch watch = {show_progress, j};
    float *gray = env_alloc(&j->e, (size_t)(j->images * j->o.size * j->o.size), sizeof *gray,
                            "images (a folder takes them one bit a pixel: --out DIR)");
    mnp_status status = gray ? MNP_OK : MNP_ENOMEM;
    progress_begin(&j->bar, j->c, "simulations", 0, runs);
    int64_t lo = 0, hi = 0, pixels = j->o.size * j->o.size; /* each rank draws whole simulations */
    if (status == MNP_OK)
        status = from_ctx(j, mnp_job_split(j->c->ctx, j->images, j->o.crops, &lo, &hi));
    if (status == MNP_OK)
        status = geofluvial_draw(&j->e, j->pool, &j->o, j->c->seed, j->split, lo, hi - lo, &watch,
                                 gray + lo * pixels);
    if (status == MNP_OK)
        status = from_ctx(j, mnp_job_gather(j->c->ctx, gray, j->images, j->o.crops,
                                            (size_t)pixels * sizeof *gray));
    progress_end(&j->bar);
    j->seconds = cli_now() - j->bar.started;
    if (status == MNP_OK && j->c->rank > 0) {
        env_free(&j->e, gray);
        return 0;
    }
    if (status == MNP_OK) status = to_values(j, gray, &a);
    if (status == MNP_OK) status = npy_write(&j->e, j->out, &a);
    if (status == MNP_OK && j->sheet) status = array_sheet(j, &a);
    if (status == MNP_OK && cli_has(j->c, "wells")) status = array_wells(j, &a);
    env_free(&j->e, gray);
    if (status != MNP_OK) return failed(j, status);
    report_array(j);
    return 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Constants of the name, then --set, then --size. */
static mnp_status read_options(job *j, int64_t size) {
    buf text;
    buf_init(&text, &j->e);
    const char *name = j->c->args[0] + strlen("geofluvial");
    for (const char *at = *name ? name + 1 : name; *at; at++)
        buf_append(&text, *at == ',' ? " " : at, 1);
    buf_printf(&text, " %s", buf_str(&j->c->settings));
    if (size > 0) buf_printf(&text, " size=%lld", (long long)size);
    mnp_status status = text.status;
    if (status == MNP_OK) status = geofluvial_options(&j->e, buf_str(&text), &j->o);
    buf_free(&text);
    return status;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

int gen_images(cli *c) {
    job j = {.c = c, .e = c->env};
    j.e.cancel = cancelled;
    j.out = cli_text(c, "out", NULL);
    j.sheet = cli_text(c, "sheet", NULL);
    j.images = cli_int(c, "images", 100, 1, 10000000);
    j.split = (data_split)cli_choice(c, "split", "train|valid|test", 0);
    j.one_split = cli_has(c, "split");
    j.value = cli_choice(c, "value", "sdf|gray|mask", VALUE_SDF);
    cli_int(c, "wells", 1, 1, 1 << 24);
    int64_t size = cli_int(c, "size", 0, 2, IMAGE_SIDE_MAX),
            threads = cli_int(c, "threads", 0, 0, POOL_THREADS_MAX);
    if (cli_bad(c)) return c->status;
    if (!j.out) return cli_fail(c, EXIT_USAGE, "geofluvial needs --out DIR or --out F.npy");
    if (cli_has(c, "functions"))
        return cli_fail(c, EXIT_USAGE, "geofluvial makes images: --images instead of --functions");
    if (read_options(&j, size) != MNP_OK) return cli_fail(c, EXIT_USAGE, "%s", j.e.error);
    bool array = ends_with(j.out, ".npy");
    if (!array && cli_has(c, "value"))
        return cli_fail(c, EXIT_USAGE, "a folder holds masks: --value needs --out F.npy");
    if (cli_has(c, "wells") && (!array || j.value != VALUE_SDF))
        return cli_fail(c, EXIT_USAGE,
                        "--wells measures values: it needs --out F.npy, --value sdf");
    if (!array) j.value = VALUE_FOLDER;
    if (pool_create(&j.e, (int)threads, &j.pool) != MNP_OK) return failed(&j, MNP_ENOMEM);
    int code = array ? to_array(&j) : to_folder(&j);
    pool_destroy(j.pool);
    return code;
}
