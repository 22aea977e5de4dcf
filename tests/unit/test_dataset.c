/* test_dataset.c: data sets from arrays and names, the way out to CSV and back, the cache of
 * generated sets, and every allocation failing once. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "data/dataset.h"
#include "scarce.h"
#include "util/fsio.h"

static env E;
static char folder[200], path[300];

/* ---- arrays ---------------------------------------------------------------------------------- */

static void arrays_are_copied(void) {
    const int64_t n[] = {2, 1, 4};
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    const double y[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7};
    dataset *d = NULL;
    CHECK(dataset_from_arrays(&E, "mine", 3, n, 2, x, y, &d) == MNP_OK);
    CHECK(d->functions == 3 && d->points == 7 && d->x_dim == 2 && d->longest == 4);
    CHECK(d->start[0] == 0 && d->start[1] == 2 && d->start[2] == 3 && d->start[3] == 7);
    for (int i = 0; i < 14; i++) CHECK(d->x[i] == (float)x[i]);
    for (int i = 0; i < 7; i++) CHECK(d->y[i] == (float)y[i]);
    STREQ(d->name, "mine");
    STREQ(d->x_names[0], "x1");
    STREQ(d->x_names[1], "x2");
    STREQ(d->y_name, "y");
    STREQ(d->report, "3 functions, 7 points\n");
    CHECK(!d->builtin && !d->ids && d->policy.context_lo == 0 && d->policy.context_hi == 1 &&
          d->rff_std == 1);
    dataset_destroy(d);
    dataset_destroy(NULL);
}

static void bad_arrays_are_refused(void) {
    const int64_t n[] = {2, 1}, none[] = {2, 0};
    double x[] = {1, 2, 3}, y[] = {1, 2, 3};
    dataset *d = NULL;
    CHECK(dataset_from_arrays(&E, "a", 0, n, 1, x, y, &d) == MNP_EINVAL && !d);
    CHECK(dataset_from_arrays(&E, "a", 2, n, 0, x, y, &d) == MNP_EINVAL && !d);
    CHECK(dataset_from_arrays(&E, "a", 2, none, 1, x, y, &d) == MNP_EINVAL && !d);
    CHECK(strstr(E.error, "function 1 has 0 points") != NULL);
    y[2] = NAN;
    CHECK(dataset_from_arrays(&E, "a", 2, n, 1, x, y, &d) == MNP_EINVAL && !d);
    STREQ(E.error, "y of point 0 of function 1 is not a number");
    y[2] = 1e300;
    CHECK(dataset_from_arrays(&E, "a", 2, n, 1, x, y, &d) == MNP_EINVAL && !d);
    STREQ(E.error, "y of point 0 of function 1 is infinite or too large for single precision");
    x[1] = -INFINITY;
    CHECK(dataset_from_arrays(&E, "a", 2, n, 1, x, y, &d) == MNP_EINVAL && !d);
    CHECK(strstr(E.error, "x of point 1 of function 0 is infinite") != NULL);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void a_name_is_a_family_or_a_file(void) {
    static const struct {
        const char *what;
        mnp_status status;
        const char *error;
    } cases[] = {
        {"monotnic", MNP_EINVAL,
         "no file is called \"monotnic\": there is no family monotnic; did "
         "you mean monotonic?"},
        {"monotonic:alfa=1", MNP_EINVAL, "monotonic: there is no option alfa"},
        {"nothing.csv", MNP_EIO, "nothing.csv: cannot open"},
        {"/no/such/rbf", MNP_EIO, "/no/such/rbf: cannot open"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dataset *d = NULL;
        CASE(cases[i].what);
        CHECK(dataset_open(&E, NULL, cases[i].what, &(data_source){.functions = 2}, &d) ==
              cases[i].status);
        CHECK(!d && strstr(E.error, cases[i].error));
        if (!strstr(E.error, cases[i].error)) fprintf(stderr, "%s\n", E.error);
    }
    dataset *d = NULL;
    CHECK(dataset_open(&E, NULL, "rbf", &(data_source){.split = (data_split)7}, &d) == MNP_EINVAL);
    CHECK(dataset_open(&E, NULL, "convex:noise=1e-2", &(data_source){.functions = 4, .seed = 9},
                       &d) == MNP_OK);
    STREQ(d->name, "convex:noise=0.01");
    CHECK(strstr(d->report, "convex:noise=0.01: 4 training functions of 128 points, seed 9; y "));
    dataset_destroy(d);
}

/* ---- out and back ---------------------------------------------------------------------------- */

static void written_tables_read_back_exactly(void) {
    dataset *d = NULL, *back = NULL;
    data_source s = {.functions = 25, .seed = 2}, all = {.holdout = -1};
    CHECK(dataset_open(&E, NULL, "matern", &s, &d) == MNP_OK);
    CHECK(dataset_write_csv(&E, d, path) == MNP_OK);
    CHECK(dataset_open(&E, NULL, path, &all, &back) == MNP_OK);
    CHECK(back->functions == 25 && back->points == d->points && back->x_dim == 1);
    CHECK(memcmp(d->x, back->x, (size_t)d->points * sizeof *d->x) == 0);
    CHECK(memcmp(d->y, back->y, (size_t)d->points * sizeof *d->y) == 0);
    CHECK(memcmp(d->start, back->start, 26 * sizeof *d->start) == 0);
    STREQ(back->function_name, "function");
    STREQ(back->ids[24], "24");
    dataset_destroy(d);
    dataset_destroy(back);
    unlink(path);
}

static void names_survive_the_way_out(void) {
    const char *text = "\"name, full\",a b,y\n\"x, y\",1,2\n\"x, y\",3,4\nw,1,0.1\nw,2,-1e-20\n";
    char *bytes = NULL;
    size_t length;
    dataset *d = NULL;
    CHECK(fsio_write(&E, path, text, strlen(text)) == MNP_OK);
    CHECK(dataset_open(&E, NULL, path, &(data_source){.holdout = -1}, &d) == MNP_OK);
    CHECK(dataset_write_csv(&E, d, path) == MNP_OK);
    CHECK(fsio_read(&E, path, 10000, &bytes, &length) == MNP_OK);
    STREQ(bytes, text);
    env_free(&E, bytes);
    dataset_destroy(d);
    /* no function column, and an input that has its usual name */
    text = "function,y\n1,2\n3,4\n";
    CHECK(fsio_write(&E, path, text, strlen(text)) == MNP_OK);
    CHECK(dataset_open(&E, NULL, path, &(data_source){.function_column = "", .holdout = -1}, &d) ==
          MNP_OK);
    CHECK(dataset_write_csv(&E, d, path) == MNP_OK);
    CHECK(fsio_read(&E, path, 10000, &bytes, &length) == MNP_OK);
    STREQ(bytes, "function_id,function,y\n0,1,2\n0,3,4\n");
    env_free(&E, bytes);
    CHECK(dataset_write_csv(&E, d, "/no/such/folder/a.csv") == MNP_EIO);
    dataset_destroy(d);
    unlink(path);
}

/* ---- the cache ------------------------------------------------------------------------------- */

typedef struct log_lines {
    int count;
    char last[400];
} log_lines;

static void keep_line(void *user, mnp_log_level level, const char *text) {
    log_lines *l = user;
    l->count += level == MNP_LOG_WARN;
    snprintf(l->last, sizeof l->last, "%s", text);
}

/* The only file of the folder, into path. */
static int files_in(const char *where) {
    DIR *dir = opendir(where);
    int count = 0;
    for (struct dirent *f; dir && (f = readdir(dir));)
        if (f->d_name[0] != '.') {
            count++;
            snprintf(path, sizeof path, "%.150s/%.120s", where, f->d_name);
        }
    if (dir) closedir(dir);
    return count;
}

static dataset *draw_cached(const char *name, data_source s) {
    dataset *d = NULL;
    CHECK(dataset_open(&E, NULL, name, &s, &d) == MNP_OK);
    if (!d) exit(1);
    return d;
}

static void check_same(const dataset *a, const dataset *b) {
    CHECK(a->points == b->points);
    CHECK(memcmp(a->x, b->x, (size_t)a->points * sizeof *a->x) == 0);
    CHECK(memcmp(a->y, b->y, (size_t)a->points * sizeof *a->y) == 0);
    STREQ(a->report, b->report);
}

static void flip_byte(const char *file, size_t back) {
    char *bytes = NULL;
    size_t length = 0;
    CHECK(fsio_read(&E, file, 1 << 24, &bytes, &length) == MNP_OK);
    bytes[length - back] ^= 1;
    CHECK(fsio_write(&E, file, bytes, length) == MNP_OK);
    env_free(&E, bytes);
}

static void generated_sets_are_kept(void) {
    char cache[250];
    log_lines lines = {0};
    snprintf(cache, sizeof cache, "%s/cache", folder);
    data_source s = {.functions = 30, .seed = 6, .cache = cache}, plain = s;
    plain.cache = NULL;
    E.log = keep_line;
    E.log_user = &lines;
    dataset *fresh = draw_cached("sde", plain), *first = draw_cached("sde", s);
    CHECK(files_in(cache) == 1 && lines.count == 0);
    char file[300];
    memcpy(file, path, sizeof file);
    dataset *second = draw_cached("sde:points=128", s); /* the same canonical name */
    CHECK(files_in(cache) == 1);
    check_same(fresh, first);
    check_same(fresh, second);
    dataset_destroy(first);
    dataset_destroy(second);

    for (size_t back = 1; back < 30 * 128 * 8 + 200; back += 997) { /* data, then the header */
        lines.count = 0;
        flip_byte(file, back);
        dataset *again = draw_cached("sde", s);
        check_same(fresh, again);
        CHECK(lines.count == 1 && strstr(lines.last, "is damaged: the set is drawn again"));
        dataset_destroy(again);
    }
    CHECK(truncate(file, 1000) == 0);
    dataset *again = draw_cached("sde", s);
    check_same(fresh, again);
    dataset_destroy(again);
    dataset_destroy(fresh);

    lines.count = 0; /* whatever the numbers depend on is another file */
    data_source other = s;
    other.seed = 7;
    dataset_destroy(draw_cached("sde", other));
    other = s;
    other.split = DATA_TEST;
    dataset_destroy(draw_cached("sde", other));
    other = s;
    other.functions = 31;
    dataset_destroy(draw_cached("sde", other));
    dataset_destroy(draw_cached("sde:a=0.2", s));
    dataset_destroy(draw_cached("rbf", s));
    CHECK(files_in(cache) == 6 && lines.count == 0);
    while (files_in(cache) > 0) CHECK(unlink(path) == 0);
    rmdir(cache);

    s.cache = "/no/such/folder/cache"; /* costs a warning, not the data */
    dataset_destroy(draw_cached("sde", s));
    CHECK(lines.count == 1 && strstr(lines.last, "the data set was not kept"));
    E.log = NULL;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static mnp_status some_work(env *e, const char *what) {
    dataset *d = NULL;
    data_source s = {.functions = 21, .holdout = 0.3};
    MNP_TRY(dataset_open(e, NULL, what, &s, &d));
    dataset_destroy(d);
    return MNP_OK;
}

static void every_allocation_may_fail(void) {
    static const char *const whats[] = {"rbf:points=4", "convex:points=4,noise=0.01",
                                        "sde:points=4", "examples/data/plants.csv"};
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
        CASE(whats[i]);
        mnp_status status = MNP_ENOMEM;
        for (long n = 0; status != MNP_OK && n < 20000; n++) {
            scarce memory = {.left = n};
            env e;
            env_init(&e);
            e.allocator = (mnp_allocator){scarce_alloc, scarce_free, &memory};
            status = some_work(&e, whats[i]);
            CHECK(status == MNP_OK || status == MNP_ENOMEM);
            CHECK(status == MNP_OK || strstr(e.error, "out of memory"));
            CHECK(memory.live == 0);
        }
        CHECK(status == MNP_OK);
    }
}

int main(void) {
    env_init(&E);
    const char *base = getenv("TEST_TMP");
    snprintf(folder, sizeof folder, "%.150s/dataset-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/a.csv", folder);
    RUN(arrays_are_copied);
    RUN(bad_arrays_are_refused);
    RUN(a_name_is_a_family_or_a_file);
    RUN(written_tables_read_back_exactly);
    RUN(names_survive_the_way_out);
    RUN(generated_sets_are_kept);
    RUN(every_allocation_may_fail);
    rmdir(folder);
    return check_done();
}
