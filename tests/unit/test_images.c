/* test_images.c: images as data sets: arrays, folders of PNG files and of river images, their
 * splits, what is refused, and every allocation failing once. */
#include "data/images.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "data/geofluvial_set.h"
#include "scarce.h"
#include "util/npy.h"
#include "util/png.h"

static env E;
static char folder[200];

enum { COUNT = 10, ROWS = 3, COLS = 5, PIXELS = ROWS * COLS };

static const char *place(char out[300], const char *name) {
    snprintf(out, 300, "images:%s/%s", folder, name);
    return out;
}

static void write_stack(const char *name, npy_type type, int ndim, const void *data) {
    char what[300];
    npy_array a = {.type = type, .ndim = ndim, .shape = {COUNT, ROWS, COLS}};
    memcpy(&a.data, &data, sizeof data);
    CHECK(npy_write(&E, place(what, name) + strlen("images:"), &a) == MNP_OK);
}

static dataset *open_set(const char *name, data_source s) {
    char what[300];
    dataset *d = NULL;
    mnp_status status = dataset_open(&E, NULL, place(what, name), &s, &d);
    if (status != MNP_OK) check_bad(__FILE__, __LINE__, E.error);
    return d;
}

static bool refused(const char *name, const char *text) {
    char what[300];
    dataset *d = NULL;
    mnp_status status = dataset_open(&E, NULL, place(what, name), &(data_source){0}, &d);
    if (!strstr(E.error, text)) printf("     %s\n", E.error);
    return status != MNP_OK && !d && strstr(E.error, text);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static void an_array(void) {
    float y[COUNT * PIXELS];
    for (int i = 0; i < COUNT * PIXELS; i++) y[i] = (float)i / 7;
    write_stack("a.npy", NPY_F4, 3, y);
    dataset *d = open_set("a.npy", (data_source){0});
    if (!d) return;
    CHECK(d->functions == COUNT && d->points == COUNT * PIXELS && d->x_dim == 2 && d->shared_x);
    CHECK(d->rows == ROWS && d->cols == COLS && d->longest == PIXELS && d->policy.noise == 0);
    CHECK(!d->policy.mirrors && d->raw_x && !d->raw_y && !d->builtin);
    STREQ(d->x_names[0], "row");
    STREQ(d->x_names[1], "col");
    STREQ(d->y_name, "value");
    for (int i = 0; i < COUNT * PIXELS; i++) CHECK(d->y[i] == y[i]);
    for (int i = 0; i < PIXELS; i++) {
        const float *x = dataset_x(d, 4) + 2 * i;
        NEAR(x[0], (double)(i / COLS) - 1, 1e-7, 0);
        NEAR(x[1], (double)(i % COLS) / 2 - 1, 1e-7, 0);
    }
    CHECK(d->policy.context_hi == PIXELS / 2 && d->policy.step_points == PIXELS);
    CHECK(d->policy.step_seen == PIXELS / 2);
    dataset_destroy(d);
}

/* Every image is held out or trained on, never both; validation and test see the same. */
static void a_share_is_held_out(void) {
    uint8_t y[COUNT * PIXELS];
    for (int i = 0; i < COUNT * PIXELS; i++) y[i] = (uint8_t)(i / PIXELS);
    write_stack("b.npy", NPY_U1, 3, y);
    int seen[COUNT] = {0};
    int64_t sizes[3];
    for (int split = 0; split < 3; split++) {
        dataset *d = open_set("b.npy", (data_source){.split = (data_split)split, .holdout = 0.3});
        if (!d) return;
        sizes[split] = d->functions;
        for (int64_t i = 0; i < d->functions; i++) seen[(int)d->y[d->start[i]]] += split ? 10 : 1;
        dataset_destroy(d);
    }
    CHECK(sizes[DATA_TRAIN] == 7 && sizes[DATA_VALID] == 3 && sizes[DATA_TEST] == 3);
    for (int i = 0; i < COUNT; i++) CHECK(seen[i] == 1 || seen[i] == 20);
    dataset *d = open_set("b.npy", (data_source){.functions = 4});
    CHECK(d && d->functions == 4);
    dataset_destroy(d);
}

static void bad_arrays(void) {
    float y[COUNT * PIXELS] = {0};
    write_stack("flat.npy", NPY_F4, 2, y);
    CHECK(refused("flat.npy", "2 dimensions"));
    y[2 * PIXELS + COLS + 3] = NAN;
    write_stack("nan.npy", NPY_F4, 3, y);
    CHECK(refused("nan.npy", "image 2, row 1, column 3"));
    CHECK(refused("none.npy", "none.npy"));
    CHECK(refused("nowhere", "no such folder"));
}

/* ---- PNG files ------------------------------------------------------------------------------- */

static void write_png(const char *dir, const char *name, int64_t cols, uint8_t value) {
    char path[600];
    uint8_t pixels[PIXELS];
    memset(pixels, value, sizeof pixels);
    snprintf(path, sizeof path, "%s/%s", folder, dir);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", folder, dir, name);
    CHECK(png_write_gray(&E, path, cols, ROWS, 8, pixels) == MNP_OK);
}

static void a_folder_of_pictures(void) {
    write_png("pngs", "b.png", COLS, 51);
    write_png("pngs", "a.PNG", COLS, 0);
    write_png("pngs", "c.png", COLS, 255);
    write_png("pngs", "notes.txt", COLS, 7);
    dataset *d = open_set("pngs", (data_source){0});
    if (!d) return;
    CHECK(d->functions == 3 && d->rows == ROWS && d->cols == COLS);
    static const double want[] = {0, 0.2, 1};
    for (int i = 0; i < 3 * PIXELS; i++) NEAR(d->y[i], want[i / PIXELS], 1e-6, 0);
    dataset_destroy(d);
    write_png("pngs", "d.png", COLS - 1, 1);
    CHECK(refused("pngs", "d.png: 3 x 4 pixels"));
    char path[300];
    snprintf(path, sizeof path, "%s/empty", folder);
    mkdir(path, 0777);
    CHECK(refused("empty", ".png"));
}

/* ---- rivers ---------------------------------------------------------------------------------- */

static void write_rivers(const char *name) {
    geofluvial_set set = {.seed = 5, .images = {6, 3, 3}};
    int64_t drawn;
    snprintf(set.dir, sizeof set.dir, "%s/%s", folder, name);
    CHECK(geofluvial_options(&E, "nit=30 size=16", &set.o) == MNP_OK);
    CHECK(geofluvial_set_write(&E, NULL, &set, NULL, &drawn) == MNP_OK && drawn == 12);
}

/* A folder and images drawn on the way are the same functions; splits are the folder's own. */
static void rivers(void) {
    write_rivers("geo");
    for (int split = 0; split < 3; split++) {
        dataset *d = open_set("geo", (data_source){.split = (data_split)split}), *drawn = NULL;
        data_source s = {.split = (data_split)split, .seed = 5, .functions = split ? 3 : 6};
        CHECK(dataset_open(&E, NULL, "geofluvial:nit=30,size=16", &s, &drawn) == MNP_OK);
        if (!d || !drawn) return;
        CHECK(d->functions == s.functions && drawn->functions == s.functions);
        CHECK(d->policy.mirrors && d->policy.noise == 0.05 && d->rows == 16 && !d->raw_y);
        bool same = true, both = false;
        for (int64_t i = 0; i < d->points; i++) {
            same &= d->y[i] == drawn->y[i] && d->y[i] >= -1 && d->y[i] <= 1;
            both |= d->y[i] < 0;
        }
        CHECK(same && both);
        dataset_destroy(d);
        dataset_destroy(drawn);
    }
    dataset *d = NULL;
    CHECK(dataset_open(&E, NULL, "geofluvial", &(data_source){0}, &d) == MNP_EINVAL && !d);
    CHECK(strstr(E.error, "--functions") != NULL);
    CHECK(dataset_open(&E, NULL, "geofluvial:sise=3", &(data_source){0}, &d) == MNP_EINVAL);
    CHECK(strstr(E.error, "size") != NULL);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void every_allocation_may_fail(void) {
    static const char *const names[] = {"a.npy", "pics", "geo"};
    write_png("pics", "a.png", COLS, 9);
    write_png("pics", "b.png", COLS, 8);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CASE(names[i]);
        char what[300];
        mnp_status status = MNP_ENOMEM;
        for (long n = 0; status != MNP_OK && n < 2000; n++) {
            scarce memory = {.left = n};
            env e;
            env_init(&e);
            e.allocator = (mnp_allocator){scarce_alloc, scarce_free, &memory};
            dataset *d = NULL;
            status =
                dataset_open(&e, NULL, place(what, names[i]), &(data_source){.holdout = 0.3}, &d);
            CHECK(status == MNP_OK || (status == MNP_ENOMEM && !d));
            dataset_destroy(d);
            CHECK(memory.live == 0);
        }
        CHECK(status == MNP_OK);
    }
}

int main(void) {
    env_init(&E);
    const char *base = getenv("TEST_TMP");
    snprintf(folder, sizeof folder, "%.150s/images-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) return 1;
    RUN(an_array);
    RUN(a_share_is_held_out);
    RUN(bad_arrays);
    RUN(a_folder_of_pictures);
    RUN(rivers);
    RUN(every_allocation_may_fail);
    return check_done();
}
