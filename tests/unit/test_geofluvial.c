/* test_geofluvial.c: images of rivers: options, that an image depends on its place alone, painting,
 * shrinking and distances against plain loops over all pixels, the folder of images and how it goes
 * on after a stop, and failing memory. The simulator itself is in tests/golden. */
#include <dirent.h>
#include <unistd.h>

#include "check.h"
#include "data/geofluvial_set.h"
#include "data/meander_math.h"
#include "scarce.h"

static env E;
static char folder[200];

/* A short river on a small raster: a run takes about a millisecond. */
static const char small[] = "nit=120 n_bends=8 x=500:8500 y=-800:800 cell=20 crop=64 size=16";

static geofluvial_opts options(const char *more) {
    char text[512];
    geofluvial_opts o;
    snprintf(text, sizeof text, "%s %s", small, more);
    CHECK(geofluvial_options(&E, text, &o) == MNP_OK);
    return o;
}

/* ---- options --------------------------------------------------------------------------------- */

static void refused(const char *settings, const char *says) {
    geofluvial_opts o;
    CASE(settings);
    CHECK(geofluvial_options(&E, settings, &o) == MNP_EINVAL);
    CHECK(strstr(E.error, says));
}

static void options_are_checked(void) {
    geofluvial_opts o, again;
    CHECK(geofluvial_options(&E, "", &o) == MNP_OK);
    CHECK(o.rows == 800 && o.cols == 4000 && o.crops == 3 && o.size == 128);
    CHECK(o.river.crdist == 200 && o.river.pad1 == 10 && o.river.D == 6);
    CHECK(geofluvial_options(&E, "cell=8.875 x=0:35500 y=-3550:3550 pad=20 W=100", &o) == MNP_OK);
    CHECK(o.rows == 800 && o.cols == 4000 && o.river.crdist == 100 && o.river.pad1 == 5);
    buf a, b;
    buf_init(&a, &E);
    buf_init(&b, &E);
    CHECK(geofluvial_options_print(&a, &o) == MNP_OK);
    CHECK(geofluvial_options(&E, buf_str(&a), &again) == MNP_OK);
    CHECK(geofluvial_options_print(&b, &again) == MNP_OK);
    STREQ(buf_str(&a), buf_str(&b));
    CHECK(memcmp(&o.river, &again.river, sizeof o.river) == 0);
    buf_free(&a);
    buf_free(&b);
    refused("Gama=2", "Gamma");
    refused("picture=canal", "channel");
    refused("D=0", "D");
    refused("crop=900", "do not fit");
    refused("crops=6", "do not fit");
    refused("size=701", "larger than a crop");
    refused("cell=0.01", "raster");
    refused("x=5:5", "do not fit");
    refused("ds0=0.001", "nodes");
}

/* ---- the same everywhere --------------------------------------------------------------------- */

static void exp_and_log(void) {
    for (int i = 0; i <= 100000; i++) {
        double x = -60 + 1e-3 * i, y = exp(x);
        NEAR(meander_exp(x), y, 0, 1e-15);
        NEAR(meander_log(y), x, 1e-15, 1e-15);
    }
    CHECK(meander_exp(0) == 1 && meander_log(1) == 0 && meander_exp(-1e6) == 0);
    CHECK(isinf(meander_exp(1e6)));
}

static uint64_t hash(uint64_t h, const double *v, int64_t n) { /* FNV-1a, a word at a time */
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, v + i, sizeof bits);
        h = (h ^ bits) * 1099511628211u;
    }
    return h;
}

/* All bits of a line after 1500 steps, the same for gcc and clang, with optimisation or without,
 * whatever the C library. A change of this number means that a seed no longer means the same. */
static void a_seed_is_one_river(void) {
    geofluvial_opts o;
    CHECK(geofluvial_options(&E, "", &o) == MNP_OK);
    meander *m = NULL;
    rng_stream s = rng_stream_make((rng_key){1}, RNG_TEST, 0);
    CHECK(meander_create(&E, &o.river, &m) == MNP_OK && meander_start(m, &s) == MNP_OK);
    while (m->step < 1500) CHECK(meander_step(m) == MNP_OK);
    uint64_t h = 14695981039346656037u;
    for (int64_t i = 0; i < m->n; i++) h = hash(hash(h, m->x + i, 1), m->y + i, 1);
    CHECK(m->n == 1657 && h == 0x7425da4b3f10b4c1u);
    meander_destroy(m);
}

/* ---- painting, shrinking, distances ---------------------------------------------------------- */

static double to_segment(double px, double py, const double *x, const double *y) {
    double dx = x[1] - x[0], dy = y[1] - y[0], l = dx * dx + dy * dy;
    double t = l > 0 ? ((px - x[0]) * dx + (py - y[0]) * dy) / l : 0;
    t = fmin(fmax(t, 0), 1);
    return hypot(px - x[0] - t * dx, py - y[0] - t * dy);
}

static void a_band_around_the_line(void) {
    enum { ROWS = 30, COLS = 50, N = 6 };
    static uint8_t mask[ROWS * COLS];
    rng_stream s = rng_stream_make((rng_key){1}, RNG_TEST, 0);
    for (int trial = 0; trial < 20; trial++) {
        double x[N], y[N], reach = 5 + 40 * rng_u01(&s);
        for (int i = 0; i < N; i++) { /* also outside the raster */
            x[i] = 100 + 900 * rng_u01(&s);
            y[i] = -400 + 600 * rng_u01(&s);
        }
        x[3] = x[2], y[3] = y[2]; /* a segment without length */
        meander_raster r = {ROWS, COLS, 200, 100, 12.5, mask};
        memset(mask, 0, sizeof mask);
        meander_paint(&r, N, x, y, reach);
        for (int p = 0; p < ROWS * COLS; p++) {
            double nearest = INFINITY, px = 200 + (p % COLS + 0.5) * 12.5;
            for (int i = 0; i + 1 < N; i++)
                nearest =
                    fmin(nearest, to_segment(px, 100 - (p / COLS + 0.5) * 12.5, x + i, y + i));
            CHECK(mask[p] == (nearest <= reach) || fabs(nearest - reach) < 1e-9);
        }
    }
}

static void shrinking_keeps_areas(void) {
    enum { SIDE = 70, STRIDE = 75 };
    static uint8_t mask[SIDE * STRIDE];
    static float gray[SIDE * SIDE], half[SIDE * SIDE];
    int32_t sums[SIDE];
    rng_stream s = rng_stream_make((rng_key){2}, RNG_TEST, 0);
    for (int i = 0; i < SIDE * STRIDE; i++) mask[i] = rng_u01(&s) < 0.3;
    double total = 0;
    for (int r = 0; r < SIDE; r++)
        for (int c = 0; c < SIDE; c++) total += mask[r * STRIDE + c];
    meander_shrink(mask, STRIDE, SIDE, SIDE, sums, gray); /* nothing to do */
    for (int p = 0; p < SIDE * SIDE; p++) CHECK(gray[p] == mask[p / SIDE * STRIDE + p % SIDE]);
    for (int size = 2; size <= SIDE; size += 13) {
        double sum = 0;
        meander_shrink(mask, STRIDE, SIDE, size, sums, gray);
        for (int p = 0; p < size * size; p++) sum += gray[p];
        NEAR(sum / (size * size), total / (SIDE * SIDE), 1e-6, 0);
    }
    meander_shrink(mask, STRIDE, SIDE, 32, sums, gray); /* averages of averages */
    meander_shrink(mask, STRIDE, SIDE, 16, sums, half);
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 16; c++) {
            const float *g = gray + 2 * r * 32 + 2 * c;
            NEAR(half[r * 16 + c], (g[0] + g[1] + g[32] + g[33]) / 4, 1e-6, 0);
        }
}

static void check_distances(const uint8_t *mask, int size) {
    static double sdf[40 * 40];
    static int32_t scratch[42 * 40];
    int kinds[2] = {0, 0};
    for (int p = 0; p < size * size; p++) kinds[mask[p]]++;
    bool both = kinds[0] > 0 && kinds[1] > 0;
    CHECK(meander_signed_distance(mask, size, scratch, sdf) == both);
    for (int p = 0; both && p < size * size; p++) {
        int best = INT32_MAX;
        for (int q = 0; q < size * size; q++) {
            int dr = p / size - q / size, dc = p % size - q % size;
            if (mask[q] != mask[p] && dr * dr + dc * dc < best) best = dr * dr + dc * dc;
        }
        NEAR(sdf[p], (mask[p] ? -1 : 1) * sqrt(best) / size, 1e-15, 1e-14);
    }
}

static void distances_are_exact(void) {
    uint8_t mask[40 * 40];
    rng_stream s = rng_stream_make((rng_key){3}, RNG_TEST, 0);
    const double shares[] = {0, 0.002, 0.02, 0.3, 0.9, 0.998, 1};
    for (int size = 2; size <= 40; size = size * 3 / 2 + 1)
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
            for (int p = 0; p < size * size; p++) mask[p] = rng_u01(&s) < shares[k];
            check_distances(mask, size);
        }
    for (int p = 0; p < 40 * 40; p++) mask[p] = p == 40 * 40 - 1; /* one pixel in a corner */
    check_distances(mask, 40);
}

static void values_have_the_sign_of_land(void) {
    geofluvial_opts o;
    CHECK(geofluvial_options(&E, "", &o) == MNP_OK);
    static uint8_t mask[128 * 128];
    static float y[128 * 128];
    for (int p = 0; p < 128 * 128; p++) mask[p] = p / 128 >= 60 && p / 128 < 70;
    CHECK(geofluvial_values(&E, &o, mask, 1, y) == MNP_OK);
    NEAR(y[59 * 128 + 5], tanh(20.0 / 128), 1e-7, 0); /* next to the bank */
    NEAR(y[60 * 128 + 5], -tanh(100.0 / 128), 1e-7, 0);
    for (int p = 0; p < 128 * 128; p++) CHECK(mask[p] ? y[p] < -0.6f : y[p] > 0.1f && y[p] <= 1);
    NEAR(geofluvial_input(0, 128), -1, 0, 0);
    NEAR(geofluvial_input(127, 128), 1, 0, 0);
    memset(mask, 1, sizeof mask);
    CHECK(geofluvial_values(&E, &o, mask, 1, y) == MNP_EINVAL && strstr(E.error, "no land"));
}

/* ---- images ---------------------------------------------------------------------------------- */

enum { COUNT = 20, PIXELS = 16 * 16 };

static float whole[COUNT * PIXELS], other[COUNT * PIXELS];

static bool draw(const geofluvial_opts *o, int threads, uint64_t seed, data_split split,
                 int64_t first, int64_t count, float *gray) {
    pool *p = NULL;
    if (threads > 0) CHECK(pool_create(&E, threads, &p) == MNP_OK);
    memset(gray, 0xFF, (size_t)count * PIXELS * sizeof *gray);
    mnp_status status = geofluvial_draw(&E, p, o, seed, split, first, count, NULL, gray);
    pool_destroy(p);
    CHECK(status == MNP_OK);
    return status == MNP_OK;
}

static bool same(const float *a, const float *b, int64_t images) {
    return memcmp(a, b, (size_t)images * PIXELS * sizeof *a) == 0;
}

static void an_image_depends_on_its_place_alone(void) {
    geofluvial_opts o = options("");
    draw(&o, 0, 5, DATA_TRAIN, 0, COUNT, whole);
    for (int threads = 1; threads <= 4; threads++) {
        draw(&o, threads, 5, DATA_TRAIN, 0, COUNT, other);
        CHECK(same(whole, other, COUNT));
    }
    for (int64_t first = 0; first < COUNT; first += 3) { /* not at the first crop of a run */
        int64_t count = COUNT - first < 5 ? COUNT - first : 5;
        draw(&o, 2, 5, DATA_TRAIN, first, count, other);
        CHECK(same(whole + first * PIXELS, other, count));
    }
    for (int64_t i = 1; i < COUNT; i++) CHECK(!same(whole, whole + i * PIXELS, 1));
    draw(&o, 1, 6, DATA_TRAIN, 0, COUNT, other);
    for (int64_t i = 0; i < COUNT; i++) CHECK(!same(whole + i * PIXELS, other + i * PIXELS, 1));
    draw(&o, 1, 5, DATA_TEST, 0, COUNT, other);
    for (int64_t i = 0; i < COUNT; i++) CHECK(!same(whole + i * PIXELS, other + i * PIXELS, 1));
    float none;
    CHECK(geofluvial_draw(&E, NULL, &o, 0, DATA_TRAIN, -1, 1, NULL, &none) == MNP_EINVAL);
    CHECK(geofluvial_draw(&E, NULL, &o, 0, DATA_TRAIN, 0, 0, NULL, &none) == MNP_OK);
}

/* Where the crops fill the raster there is one way to place them: in order, side by side. */
static void crops_do_not_share_columns(void) {
    geofluvial_opts o = options("crop=80 crops=5");
    CHECK(o.rows == 80 && o.cols == 400);
    static float crops[5 * PIXELS], want[PIXELS];
    int32_t sums[16];
    meander_raster r;
    CHECK(geofluvial_run(&E, &o, 1, DATA_TRAIN, 0, crops) == MNP_OK);
    CHECK(geofluvial_river(&E, &o, 1, DATA_TRAIN, 0, &r) == MNP_OK);
    for (int k = 0; k < 5; k++) {
        meander_shrink(r.mask + 80 * k, r.cols, 80, 16, sums, want);
        CHECK(same(crops + k * PIXELS, want, 1));
    }
    env_free(&E, r.mask);
}

static void pictures_grow(void) {
    const char *const names[] = {"nit=300", "nit=300 picture=channel+oxbows oxbow_age=5",
                                 "nit=300 picture=channel+oxbows", "nit=300 picture=belt"};
    meander_raster r[4];
    int64_t river[4] = {0};
    for (int k = 0; k < 4; k++) {
        geofluvial_opts o = options(names[k]);
        CHECK(geofluvial_river(&E, &o, 3, DATA_TRAIN, 0, &r[k]) == MNP_OK);
        for (int64_t p = 0; p < r[k].rows * r[k].cols; p++) {
            river[k] += r[k].mask[p];
            CHECK(k == 0 || r[k - 1].mask[p] <= r[k].mask[p]);
        }
    }
    CHECK(0 < river[0] && river[0] < river[1] && river[1] < river[2] && river[2] < river[3]);
    for (int k = 0; k < 4; k++) env_free(&E, r[k].mask);
}

static void trouble_is_told(void) {
    float gray[3 * PIXELS];
    geofluvial_opts away = options("y=5000:7000");
    CHECK(geofluvial_run(&E, &away, 1, DATA_TRAIN, 4, gray) == MNP_ENUMERIC);
    CHECK(strstr(E.error, "simulation 4") && strstr(E.error, "window"));
    geofluvial_opts wild = options("kl=1e6 dt=1000");
    CHECK(geofluvial_run(&E, &wild, 1, DATA_TRAIN, 0, gray) == MNP_ENUMERIC);
    meander *m = NULL;
    double line[3] = {0, 1, 2};
    CHECK(meander_create(&E, &away.river, &m) == MNP_OK);
    CHECK(meander_set_line(m, 3, line, line) == MNP_EINVAL);
    meander_destroy(m);
}

/* ---- the folder ------------------------------------------------------------------------------ */

static void clear_folder(void) {
    DIR *d = opendir(folder);
    for (struct dirent *f; d && (f = readdir(d));) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", folder, f->d_name);
        if (f->d_name[0] != '.') CHECK(unlink(path) == 0);
    }
    if (d) closedir(d);
    rmdir(folder);
}

static geofluvial_set set_of(const char *more, uint64_t seed, int64_t images) {
    geofluvial_set s = {.o = options(more), .seed = seed};
    snprintf(s.dir, sizeof s.dir, "%s", folder);
    s.images[DATA_TRAIN] = images * 18 / 25, s.images[DATA_VALID] = images * 2 / 25;
    s.images[DATA_TEST] = images - s.images[DATA_TRAIN] - s.images[DATA_VALID];
    return s;
}

/* Everything in the folder is what drawing gives. */
static void check_folder(const geofluvial_set *want) {
    geofluvial_set s;
    CHECK(geofluvial_set_open(&E, folder, &s) == MNP_OK && s.complete && s.seed == want->seed);
    for (int k = 0; k < GEOFLUVIAL_SPLITS; k++) {
        int64_t n = s.images[k], pixels = n * PIXELS;
        CHECK(n == want->images[k]);
        float *gray = env_alloc(&E, (size_t)pixels, sizeof *gray, "images");
        uint8_t *mask = env_alloc(&E, (size_t)pixels, 2, "images"), *got = mask + pixels;
        CHECK(geofluvial_draw(&E, NULL, &s.o, s.seed, (data_split)k, 0, n, NULL, gray) == MNP_OK);
        geofluvial_mask(gray, pixels, mask);
        CHECK(geofluvial_set_read(&E, &s, (data_split)k, 0, n, got) == MNP_OK);
        CHECK(memcmp(mask, got, (size_t)pixels) == 0);
        CHECK(geofluvial_set_read(&E, &s, (data_split)k, n - 1, 1, got) == MNP_OK);
        CHECK(memcmp(mask + pixels - PIXELS, got, PIXELS) == 0);
        CHECK(geofluvial_set_read(&E, &s, (data_split)k, n, 1, got) == MNP_EINVAL);
        env_free(&E, gray);
        env_free(&E, mask);
    }
}

static int64_t stop_after;
static bool stop(void *user) {
    (void)user;
    return stop_after-- <= 0;
}

static int64_t last_done;
static void note_done(void *user, int64_t done) {
    (void)user;
    CHECK(done >= last_done);
    last_done = done;
}

static void a_folder_goes_on(void) {
    geofluvial_watch watch = {note_done, NULL};
    int64_t drawn = 0;
    geofluvial_set s = set_of("nit=40", 9, 600); /* 432 train: two files; 48; 120 */
    clear_folder();
    E.cancel = stop;
    stop_after = 130; /* runs: within the second file */
    CHECK(geofluvial_set_write(&E, NULL, &s, &watch, &drawn) == MNP_ECANCELLED && drawn == 300);
    E.cancel = NULL;
    geofluvial_set half;
    CHECK(geofluvial_set_open(&E, folder, &half) == MNP_OK && !half.complete);
    last_done = 0;
    CHECK(geofluvial_set_write(&E, NULL, &s, &watch, &drawn) == MNP_OK && drawn == 300);
    CHECK(last_done == 600);
    check_folder(&s);
    CHECK(geofluvial_set_write(&E, NULL, &s, NULL, &drawn) == MNP_OK && drawn == 0);
    char path[300];
    snprintf(path, sizeof path, "%s/valid-00000.npy", folder);
    CHECK(truncate(path, 200) == 0); /* damaged: drawn again */
    CHECK(geofluvial_set_write(&E, NULL, &s, NULL, &drawn) == MNP_OK && drawn == 48);
    check_folder(&s);
    s = set_of("nit=40", 9, 625); /* 450, 50, 125: the last file of each split grows */
    CHECK(geofluvial_set_write(&E, NULL, &s, NULL, &drawn) == MNP_OK && drawn == 150 + 50 + 125);
    check_folder(&s);
    geofluvial_set wrong = set_of("nit=40", 10, 25);
    CHECK(geofluvial_set_write(&E, NULL, &wrong, NULL, &drawn) == MNP_EINVAL);
    CHECK(strstr(E.error, "another seed"));
    wrong = set_of("nit=41", 9, 25);
    CHECK(geofluvial_set_write(&E, NULL, &wrong, NULL, &drawn) == MNP_EINVAL);
    CHECK(strstr(E.error, "other options"));
    check_folder(&s);
    clear_folder();
    CHECK(geofluvial_set_open(&E, folder, &half) == MNP_EIO);
}

/* ---- failing memory -------------------------------------------------------------------------- */

static void memory_may_fail(void) {
    geofluvial_opts o = options("nit=150 picture=belt");
    pool *p = NULL;
    CHECK(pool_create(&E, 2, &p) == MNP_OK);
    bool done = false;
    for (long n = 0; n < 200 && !done; n++) {
        env e = E;
        scarce f = {.left = n};
        e.allocator = (mnp_allocator){scarce_alloc, scarce_free, &f};
        mnp_status status = geofluvial_draw(&e, p, &o, 5, DATA_TRAIN, 0, 6, NULL, other);
        done = status == MNP_OK;
        CHECK((done || status == MNP_ENOMEM) && f.live == 0);
    }
    CHECK(done);
    pool_destroy(p);
}

int main(void) {
    env_init(&E);
    const char *tmp = getenv("TEST_TMP");
    snprintf(folder, sizeof folder, "%s/geofluvial-%ld", tmp ? tmp : "/tmp", (long)getpid());
    RUN(options_are_checked);
    RUN(exp_and_log);
    RUN(a_seed_is_one_river);
    RUN(a_band_around_the_line);
    RUN(shrinking_keeps_areas);
    RUN(distances_are_exact);
    RUN(values_have_the_sign_of_land);
    RUN(an_image_depends_on_its_place_alone);
    RUN(crops_do_not_share_columns);
    RUN(pictures_grow);
    RUN(trouble_is_told);
    RUN(a_folder_goes_on);
    RUN(memory_may_fail);
    return check_done();
}
