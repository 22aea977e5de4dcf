/* cmd_gen.c: mnp gen DATASET: functions of a built-in family as CSV or .npz; images of rivers in a
 * folder (one bit a pixel, all three splits, resumable) or, those of one split, in one .npy file.
 */
#include <string.h>

#include "cli/cli.h"
#include "cli/outputs.h"
#include "mnp_job.h"
#include "mnp_map.h"
#include "util/csv.h"
#include "util/limits.h"
#include "util/npy.h"
#include "util/sheet.h"

enum { PATH = 4096, SPLITS = 3 };
static const char *const split_names[SPLITS] = {"train", "valid", "test"};

static const flag_def flags[] = {
    {"functions", "N", "how many functions (default 100)"},
    {"split", "S", "train|valid|test: sets that share no function (default train)"},
    {"out", "F",
     "F.csv, or F.npz with contexts and targets as mnp eval splits them (default: CSV to stdout); "
     "geofluvial: DIR or F.npy"},
    HEADING("images of rivers, geofluvial"),
    {"images", "N", "geofluvial: how many images (default 100)"},
    {"size", "PIXELS", "geofluvial: side of an image (default 128)"},
    {"value", "V", "geofluvial to F.npy: sdf|gray|mask (default sdf)"},
    {"wells", "K", "geofluvial to F.npy: K random pixels of the first image as F-wells.csv"},
    {"png", "K", "geofluvial to DIR: the first K images of each split as PNG too"},
    {"sheet", "F.png",
     "geofluvial: one picture of many images (default for a folder: DIR/sheet.png)"},
    SET_FLAG("geofluvial"),
    HEADING("clusters"),
    RANK_FLAGS,
};
static const char *const of_images[] = {"images", "size", "value", "png", "sheet", "wells"};

typedef struct rivers {
    cli *c;
    const char *out, *sheet;
    int64_t images, side;
    mnp_split split;
    bool one_split, array;
    mnp_rivers_value value; /* of an array */
    mnp_rivers_opts o;
    progress bar;
    int64_t shown; /* by the bar */
    double seconds;
} rivers;

static const char RIVERS[] = "geofluvial";

/* "geofluvial" or "geofluvial:key=value,..." */
static bool names_rivers(const char *what) {
    size_t length = sizeof RIVERS - 1;
    return strncmp(what, RIVERS, length) == 0 && (!what[length] || what[length] == ':');
}

static void list_data(FILE *to) {
    fprintf(to, "\nfamilies (constants as NAME:key=value,key=value):\n");
    const char *name, *help;
    for (int k = 0; (name = mnp_data_family(k, &help)); k++)
        fprintf(to, "  %-18s %s\n", name, help);
    char options[8192];
    mnp_options_help(RIVERS, options, sizeof options);
    fprintf(
        to,
        "\nimages (train on them with --data images:DIR; options with --set KEY=VALUE):\n"
        "  geofluvial         channels of simulated meandering rivers, 18:2:5 train:valid:test\n\n"
        "options of geofluvial:\n%s",
        options);
}

static int failed(rivers *r, mnp_status status) {
    if (status == MNP_ECANCELLED && !r->array)
        return cli_fail(r->c, EXIT_INTERRUPTED, "interrupted; the same command goes on from here");
    return cli_failed(r->c, status);
}

static void show_progress(void *user, int64_t done, int64_t total) {
    rivers *r = user;
    r->bar.total = total;
    if (done > r->shown) progress_show(&r->bar, done, "");
    r->shown = done;
}

/* What both kinds of output report first; more follows, then report_end(). */
static void report_begin(rivers *r, cli_json *w) {
    cli_json_begin(r->c, w);
    cli_json_put(w, TEXT("data", RIVERS), INTEGER("images", r->images));
}

static void report_end(rivers *r, cli_json *w) {
    cli_json_put(w, INTEGER("size", r->side), INTEGER("seed", r->c->seed),
                 NUMBER("seconds", r->seconds), TEXT("out", r->out), TEXT("sheet", r->sheet));
    cli_json_end(r->c, w);
}

/* ---- a folder -------------------------------------------------------------------------------- */

/* 18 : 2 : 5 of the images for training, validation and test; 25 000 are 18 000, 2 000, 5 000. */
static void share_images(const rivers *r, int64_t n[SPLITS]) {
    if (r->one_split) {
        n[r->split] = r->images;
        return;
    }
    n[MNP_TRAIN] = (r->images * 18 + 12) / 25;
    n[MNP_VALID] = (r->images * 2 + 12) / 25;
    n[MNP_TEST] = r->images - n[MNP_TRAIN] - n[MNP_VALID];
}

/* The first images of the splits one after the other on a sheet, while there is room, and the
 * first `pngs` of each split as files of their own. */
static int folder_pictures(rivers *r, const int64_t n[SPLITS], int64_t pngs) {
    env *e = &r->c->env;
    sheet s = {0};
    int64_t side = r->side, pixels = side * side, done = 0;
    char path[PATH + 64];
    uint8_t *mask = env_alloc(e, (size_t)pixels, 1, "an image");
    mnp_status status = mask ? sheet_begin(e, r->images, side, side, &s) : MNP_ENOMEM;
    int code = status == MNP_OK ? 0 : cli_fail(r->c, EXIT_FAILED, "%s", e->error);
    for (int split = 0; split < SPLITS; split++)
        for (int64_t i = 0; i < n[split] && (done < s.count || i < pngs) && code == 0; i++) {
            status = mnp_rivers_read(r->c->ctx, r->out, (mnp_split)split, i, 1, mask);
            if (status != MNP_OK) code = cli_failed(r->c, status);
            for (int64_t p = 0; p < pixels && code == 0 && done < s.count; p++)
                *sheet_pixel(&s, done, p / side, p % side) = mask[p] ? 255 : 0;
            done++;
            snprintf(path, sizeof path, "%s/png/%s-%06lld.png", r->out, split_names[split],
                     (long long)i);
            if (code == 0 && i < pngs && png_write_gray(e, path, side, side, 1, mask) != MNP_OK)
                code = cli_fail(r->c, EXIT_FAILED, "%s", e->error);
        }
    if (code == 0 && sheet_write(e, r->sheet, &s) != MNP_OK)
        code = cli_fail(r->c, EXIT_FAILED, "%s", e->error);
    env_free(e, mask);
    sheet_free(e, &s);
    return code;
}

static void report_folder(rivers *r, const int64_t n[SPLITS], int64_t drawn) {
    cli_say(r->c,
            "%s: %lld train, %lld valid, %lld test images of %lld x %lld, seed %llu; %lld new",
            r->out, (long long)n[0], (long long)n[1], (long long)n[2], (long long)r->side,
            (long long)r->side, (unsigned long long)r->c->seed, (long long)drawn);
    cli_json w;
    report_begin(r, &w);
    for (int k = 0; k < SPLITS; k++) cli_json_put(&w, INTEGER(split_names[k], n[k]));
    cli_json_put(&w, INTEGER("drawn", drawn));
    report_end(r, &w);
}

/* The folders are made here, so that a place where they cannot be is found before any image. */
static int check_folder(rivers *r, bool pngs) {
    char path[PATH];
    int code = cli_output_folder(r->c, r->out);
    snprintf(path, sizeof path, "%s/png", r->out);
    if (code == 0 && pngs) code = cli_output_folder(r->c, path);
    return code ? code : cli_output(r->c, r->sheet);
}

/* The folder is this process's, or this job's, alone. */
static int claim_folder(rivers *r, bool pngs) {
    int code = r->c->rank == 0 ? check_folder(r, pngs) : 0;
    if (code == 0) code = lock_take(&r->c->lock, r->c, r->out);
    mnp_status status = mnp_job_broadcast(r->c->ctx, &code, sizeof code);
    return status == MNP_OK ? code : cli_failed(r->c, status);
}

static int to_folder(rivers *r) {
    char sheet_path[PATH];
    int64_t n[SPLITS] = {0}, drawn = 0, pngs = cli_int(r->c, "png", 0, 0, 1000000);
    if (cli_bad(r->c)) return r->c->status;
    if (strlen(r->out) >= PATH - 64) return cli_fail(r->c, EXIT_USAGE, "--out: too long");
    snprintf(sheet_path, sizeof sheet_path, "%s/sheet.png", r->out);
    if (!r->sheet) r->sheet = sheet_path;
    share_images(r, n);
    int code = claim_folder(r, pngs > 0);
    if (code) return code;
    progress_begin(&r->bar, r->c, "images", 0, r->images);
    mnp_status status = mnp_rivers_write(r->c->ctx, r->out, n, &r->o, &drawn);
    progress_end(&r->bar);
    r->seconds = cli_now() - r->bar.started;
    if (status != MNP_OK) return failed(r, status);
    if (r->c->rank > 0) return 0;
    if (lock_held(&r->c->lock)) fsio_sweep_folder(r->out);
    code = folder_pictures(r, n, pngs);
    if (code == 0) report_folder(r, n, drawn);
    return code;
}

/* ---- one array ------------------------------------------------------------------------------- */

/* What the file holds: floats, or bytes, which take the place of the floats. */
static void to_values(rivers *r, float *y, npy_array *a) {
    uint8_t *bytes = (uint8_t *)y;
    a->data = y;
    a->type = NPY_F4;
    if (r->value == MNP_RIVERS_SDF) return;
    float most = r->value == MNP_RIVERS_GRAY ? 255 : 1; /* 8 bits: 255 is all river */
    a->type = r->value == MNP_RIVERS_GRAY ? NPY_U1 : NPY_B1;
    for (int64_t i = 0; i < r->images * r->side * r->side; i++)
        bytes[i] = (uint8_t)(most * y[i] + 0.5f); /* byte i lies at or before float i */
}

static uint8_t brightness(const npy_array *a, int64_t i) {
    if (a->type == NPY_F4)
        return (uint8_t)(127.5 * (1 - (double)((const float *)a->data)[i]) + 0.5);
    uint8_t v = ((const uint8_t *)a->data)[i];
    return a->type == NPY_U1 ? v : v ? 255 : 0;
}

static mnp_status array_sheet(rivers *r, const npy_array *a) {
    sheet s = {0};
    int64_t side = r->side;
    MNP_TRY(sheet_begin(&r->c->env, r->images, side, side, &s));
    for (int64_t k = 0; k < s.count; k++)
        for (int64_t p = 0; p < side * side; p++)
            *sheet_pixel(&s, k, p / side, p % side) = brightness(a, k * side * side + p);
    mnp_status status = sheet_write(&r->c->env, r->sheet, &s);
    sheet_free(&r->c->env, &s);
    return status;
}

static void report_array(rivers *r) {
    cli_say(r->c, "%s: %lld %s images of %lld x %lld, seed %llu", r->out, (long long)r->images,
            split_names[r->split], (long long)r->side, (long long)r->side,
            (unsigned long long)r->c->seed);
    cli_json w;
    report_begin(r, &w);
    cli_json_put(&w, TEXT("split", split_names[r->split]));
    report_end(r, &w);
}

/* F-wells.csv beside F.npy. */
static void wells_path(const rivers *r, char path[PATH]) {
    snprintf(path, PATH, "%.*s-wells.csv", (int)strlen(r->out) - 4, r->out);
}

/* Random pixels of the image y, as the table row,col,value that mnp predict reads. */
static mnp_status write_wells(rivers *r, const float *y, const int64_t *pixel, int64_t count) {
    char path[PATH];
    buf table;
    csv_writer w;
    wells_path(r, path);
    buf_init(&table, &r->c->env);
    csv_writer_init(&w, &table, '\0');
    csv_put_text(&w, "row");
    csv_put_text(&w, "col");
    csv_put_text(&w, "value");
    csv_end_row(&w);
    for (int64_t i = 0; i < count; i++) {
        csv_put_integer(&w, pixel[i] / r->side);
        csv_put_integer(&w, pixel[i] % r->side);
        csv_put_float(&w, y[pixel[i]]);
        csv_end_row(&w);
    }
    mnp_status status = table.status;
    if (status == MNP_OK) status = fsio_write(&r->c->env, path, table.data, table.len);
    buf_free(&table);
    return status;
}

static int array_wells(rivers *r, const float *y) {
    env *e = &r->c->env;
    int64_t count = cli_int(r->c, "wells", 1, 1, 1 << 24);
    int64_t *pixel = env_alloc(e, (size_t)count, sizeof *pixel, "wells");
    int code = 0;
    mnp_status status = MNP_OK;
    if (pixel) status = mnp_map_wells(r->c->ctx, r->side, r->side, count, r->c->seed, pixel);
    if (status != MNP_OK)
        code = cli_failed(r->c, status);
    else if (!pixel || write_wells(r, y, pixel, count) != MNP_OK)
        code = cli_fail(r->c, EXIT_FAILED, "%s", e->error);
    env_free(e, pixel);
    return code;
}

static int check_array(rivers *r) {
    char path[PATH];
    if (strlen(r->out) >= sizeof path - 16) return cli_fail(r->c, EXIT_USAGE, "--out: too long");
    if (r->sheet && strcmp(r->sheet, r->out) == 0)
        return cli_fail(r->c, EXIT_USAGE, "--out and --sheet are one file, %s", r->out);
    wells_path(r, path);
    int code = cli_output(r->c, r->out);
    if (code == 0 && r->sheet) code = cli_output(r->c, r->sheet);
    if (code == 0 && cli_has(r->c, "wells")) code = cli_output(r->c, path);
    return code;
}

/* The files of finished images. */
static int write_array(rivers *r, float *y) {
    npy_array a = {.ndim = 3, .shape = {r->images, r->side, r->side}};
    to_values(r, y, &a);
    mnp_status status = npy_write(&r->c->env, r->out, &a);
    if (status == MNP_OK && r->sheet) status = array_sheet(r, &a);
    if (status != MNP_OK) return cli_fail(r->c, EXIT_FAILED, "%s", r->c->env.error);
    int code = cli_has(r->c, "wells") ? array_wells(r, y) : 0;
    if (code == 0) report_array(r);
    return code;
}

static int to_array(rivers *r) {
    if (cli_has(r->c, "png"))
        return cli_fail(r->c, EXIT_USAGE, "--png needs a folder: --out DIR instead of %s", r->out);
    int code = check_array(r);
    if (code) return code;
    float *y = env_alloc(&r->c->env, (size_t)(r->images * r->side * r->side), sizeof *y,
                         "images (a folder takes them one bit a pixel: --out DIR)");
    if (!y) return cli_fail(r->c, EXIT_FAILED, "%s", r->c->env.error);
    progress_begin(&r->bar, r->c, "simulations", 0, r->images);
    mnp_status status = mnp_rivers_draw(r->c->ctx, r->split, r->images, r->value, &r->o, y);
    progress_end(&r->bar);
    r->seconds = cli_now() - r->bar.started;
    if (status != MNP_OK)
        code = failed(r, status);
    else if (r->c->rank == 0)
        code = write_array(r, y);
    env_free(&r->c->env, y);
    return code;
}

/* ---- rivers ---------------------------------------------------------------------------------- */

/* Constants of the name, then --set, then --size. */
static mnp_status read_options(rivers *r, int64_t size, buf *text) {
    const char *name = r->c->args[0] + sizeof RIVERS - 1;
    for (const char *at = *name ? name + 1 : name; *at; at++)
        buf_append(text, *at == ',' ? " " : at, 1);
    buf_printf(text, " %s", buf_str(&r->c->settings));
    if (size > 0) buf_printf(text, " size=%lld", (long long)size);
    r->o = (mnp_rivers_opts){.size = sizeof r->o,
                             .options = buf_str(text),
                             .seed = r->c->seed,
                             .progress = show_progress,
                             .progress_user = r};
    return mnp_rivers_side(r->c->ctx, &r->o, &r->side);
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

static int make_images(cli *c) {
    rivers r = {.c = c, .out = cli_text(c, "out", NULL), .sheet = cli_text(c, "sheet", NULL)};
    r.images = cli_int(c, "images", 100, 1, 10000000);
    r.split = (mnp_split)cli_choice(c, "split", "train|valid|test", 0);
    r.one_split = cli_has(c, "split");
    r.value = (mnp_rivers_value)cli_choice(c, "value", "sdf|gray|mask", MNP_RIVERS_SDF);
    cli_int(c, "wells", 1, 1, 1 << 24);
    int64_t size = cli_int(c, "size", 0, 2, IMAGE_SIDE_MAX);
    if (cli_bad(c)) return c->status;
    if (!r.out) return cli_fail(c, EXIT_USAGE, "geofluvial needs --out DIR or --out F.npy");
    if (cli_has(c, "functions"))
        return cli_fail(c, EXIT_USAGE, "geofluvial makes images: --images instead of --functions");
    r.array = ends_with(r.out, ".npy");
    buf text;
    buf_init(&text, &c->env);
    int code = 0;
    if (read_options(&r, size, &text) != MNP_OK)
        code = cli_fail(c, EXIT_USAGE, "%s", mnp_last_error(c->ctx));
    else if (!r.array && cli_has(c, "value"))
        code = cli_fail(c, EXIT_USAGE, "a folder holds masks: --value needs --out F.npy");
    else if (cli_has(c, "wells") && (!r.array || r.value != MNP_RIVERS_SDF))
        code =
            cli_fail(c, EXIT_USAGE, "--wells measures values: it needs --out F.npy, --value sdf");
    else
        code = r.array ? to_array(&r) : to_folder(&r);
    buf_free(&text);
    return code;
}

/* ---- families -------------------------------------------------------------------------------- */

static int run(cli *c) {
    if (names_rivers(c->args[0])) return make_images(c);
    for (size_t k = 0; k < sizeof of_images / sizeof *of_images; k++)
        if (cli_has(c, of_images[k]))
            return cli_fail(c, EXIT_USAGE, "--%s is for images: mnp gen geofluvial", of_images[k]);
    mnp_data_opts o = {.size = sizeof o, .seed = c->seed};
    o.functions = cli_int(c, "functions", 100, 1, 100000000);
    o.split = (mnp_split)cli_choice(c, "split", "train|valid|test", 0);
    if (cli_bad(c)) return c->status;
    const char *out = cli_text(c, "out", "/dev/stdout");
    int code = cli_input_data(c, c->args[0]);
    if (code == 0) code = cli_output(c, out);
    if (code) return code;
    mnp_data *data = NULL;
    mnp_status status = mnp_data_open(c->ctx, c->args[0], &o, &data);
    if (status == MNP_OK && cli_writes(c))
        status = ends_with(out, ".npz") ? mnp_data_write_npz(c->ctx, data, c->seed, out)
                                        : mnp_data_write_csv(c->ctx, data, out);
    code = status == MNP_OK ? 0 : cli_failed(c, status);
    if (code == 0 && cli_has(c, "out"))
        cli_say(c, "%s: %lld functions, %lld points of %s, seed %llu", out,
                (long long)mnp_data_functions(data), (long long)mnp_data_points(data),
                mnp_data_name(data), (unsigned long long)c->seed);
    if (code == 0) {
        cli_json_all(
            c, TEXT("data", mnp_data_name(data)), INTEGER("functions", mnp_data_functions(data)),
            INTEGER("points", mnp_data_points(data)), INTEGER("seed", c->seed), TEXT("out", out));
    }
    mnp_data_destroy(data);
    return code;
}

const command command_gen = {
    .name = "gen",
    .args = "DATASET [--functions N | --images N] [--seed S] [--out F]",
    .summary = "write functions of a built-in family, or images of rivers",
    .details = "Families drawn with one seed share what they can: function i of rbf,\n"
               "matern and periodic has the same inputs and the same noise. Scores on\n"
               "them are paired, not independent; use other seeds where that matters.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .min_args = 1,
    .max_args = 1,
    .spreads = true,
    .run = run,
    .more_help = list_data};
