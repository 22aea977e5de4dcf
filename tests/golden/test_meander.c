/* test_meander.c: the river simulator against reference runs (meander/NAME.csv: an independent
 * implementation in Python, numbers of 12 digits or more): one step in all its parts, a hundred
 * steps to 1e-5 m, counts of nodes and cutoffs through 200 steps, cutoffs alone, the picture's
 * values; and, over random starts, the statistics of runs and images within their error. */
#include "check.h"
#include "data/geofluvial.h"
#include "data/meander_raster.h"
#include "util/csv.h"

static env E;
static const double PI = 3.14159265358979323846;

/* ---- tables ---------------------------------------------------------------------------------- */

/* meander/NAME.csv below its comment lines. */
static csv_table *load(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "tests/golden/meander/%s.csv", name);
    CASE(name);
    char *text = NULL;
    size_t bytes = 0;
    csv_table *t = NULL;
    CHECK(fsio_read(&E, path, 1 << 20, &text, &bytes) == MNP_OK);
    if (!text) exit(1);
    const char *at = text;
    while (*at == '#') at = strchr(at, '\n') + 1;
    CHECK(csv_parse(&E, path, at, bytes - (size_t)(at - text), ',', &t) == MNP_OK);
    if (!t) exit(1);
    env_free(&E, text);
    return t;
}

static double *column(const csv_table *t, const char *name) {
    size_t k = 0;
    double *v = env_alloc(&E, t->rows, sizeof *v, name);
    CHECK(csv_find(&E, t, name, &k) == MNP_OK && csv_numbers(&E, t, k, v, NULL) == MNP_OK);
    return v;
}

static void near_column(const csv_table *t, const char *name, const double *got, double at,
                        double rt) {
    double *want = column(t, name), largest = 0;
    for (size_t i = 0; i < t->rows; i++) largest = fmax(largest, fabs(want[i]));
    for (size_t i = 0; i < t->rows; i++)
        check_near(__FILE__, __LINE__, name, got[i], want[i], at + rt * largest, 0);
    env_free(&E, want);
}

static meander *river(void) {
    meander_opts o;
    option_view v = meander_view(&o);
    meander *m = NULL;
    CHECK(options_defaults(&E, &v, 1) == MNP_OK && meander_settle(&E, &o) == MNP_OK);
    CHECK(meander_create(&E, &o, &m) == MNP_OK);
    return m;
}

static void set_line(meander *m, const char *name) {
    csv_table *t = load(name);
    double *x = column(t, "x"), *y = column(t, "y");
    CHECK(meander_set_line(m, (int64_t)t->rows, x, y) == MNP_OK);
    env_free(&E, x);
    env_free(&E, y);
    csv_destroy(t);
}

/* ---- one step -------------------------------------------------------------------------------- */

static void the_parts_of_a_step(void) {
    meander *m = river();
    set_line(m, "one_step_before");
    csv_table *before = load("one_step_before"), *after = load("one_step_after");
    CHECK(m->n == 711);
    for (int64_t i = 0; i < m->n; i++) { /* the line is a formula */
        double x = 50.0 * (double)i, v = fmin(fmax((x - 500) / 30000, 0), 1);
        NEAR(m->y[i], 200 * pow(sin(PI * v), 2) * sin(2 * PI * (x - 500) / 1500), 1e-10, 0);
    }
    CHECK(meander_migrate(m) == MNP_OK);
    NEAR(m->sinuosity, 1.0505910111241616, 0, 1e-14);
    double *s = env_alloc(&E, (size_t)m->n, sizeof *s, "s");
    for (int64_t i = 1; i < m->n; i++) s[i] = s[i - 1] + m->ds[i];
    near_column(before, "dx", m->dx, 0, 1e-12);
    near_column(before, "dy", m->dy, 0, 1e-12);
    near_column(before, "ds", m->ds, 0, 1e-12);
    near_column(before, "s", s, 0, 1e-12);
    near_column(before, "R0", m->R0, 0, 1e-12);
    near_column(before, "R1", m->R1, 0, 1e-12);
    near_column(before, "x_migrated", m->x, 1e-9, 0);
    near_column(before, "y_migrated", m->y, 1e-9, 0);
    CHECK(meander_cut(m) == MNP_OK && m->loops.count == 0 && m->n == 711);
    CHECK(meander_resample(m) == MNP_OK && m->n == 748 && (size_t)m->n == after->rows);
    near_column(after, "x", m->x, 1e-8, 0);
    near_column(after, "y", m->y, 1e-8, 0);
    env_free(&E, s);
    csv_destroy(before);
    csv_destroy(after);
    meander_destroy(m);
}

static void cutoffs_alone(void) {
    meander *m = river();
    set_line(m, "cutoff_before");
    csv_table *after = load("cutoff_after"), *loops = load("cutoff_loops");
    CHECK(m->n == 233 && meander_cut(m) == MNP_OK);
    CHECK(m->n == 81 && m->loops.count == 4 && m->loops.nodes == 160);
    CHECK(after->rows == 81 && loops->rows == 160);
    near_column(after, "x", m->x, 0, 0);
    near_column(after, "y", m->y, 0, 0);
    near_column(loops, "x", m->loops.x, 0, 0);
    near_column(loops, "y", m->loops.y, 0, 0);
    for (int64_t k = 0; k <= 4; k++) CHECK(m->loops.start[k] == 40 * k);
    csv_destroy(after);
    csv_destroy(loops);
    meander_destroy(m);
}

/* The cell search finds what looking at all pairs finds, on lines that coil up. */
static void cutoffs_as_by_all_pairs(void) {
    meander *m = river();
    rng_stream s = rng_stream_make((rng_key){5}, RNG_TEST, 0);
    enum { N = 400 };
    for (int trial = 0; trial < 20; trial++) {
        double x[N], y[N], turn = 0;
        x[0] = y[0] = 0;
        for (int i = 1; i < N; i++) {
            turn += 0.35 * rng_normal(&s);
            x[i] = x[i - 1] + 50 * cos(turn);
            y[i] = y[i - 1] + 50 * sin(turn);
        }
        CHECK(meander_set_line(m, N, x, y) == MNP_OK && meander_cut(m) == MNP_OK);
        int n = N, cuts = 0;
        for (int i = 0; i < n; i++)
            for (int j = i + 25; j < n; j++) {
                if (hypot(x[i] - x[j], y[i] - y[j]) > 200) continue;
                memmove(x + i + 1, x + j, (size_t)(n - j) * sizeof *x);
                memmove(y + i + 1, y + j, (size_t)(n - j) * sizeof *y);
                n -= j - i - 1;
                j = i + 24; /* search again */
                cuts++;
            }
        CHECK(m->n == n && m->loops.count == cuts);
        if (m->n != n) continue;
        for (int i = 0; i < n; i++) CHECK(m->x[i] == x[i] && m->y[i] == y[i]);
    }
    meander_destroy(m);
}

/* ---- many steps ------------------------------------------------------------------------------ */

/* The rows of step m->step in a table step,i,x,y; false where it has none. */
static void compare_step(const meander *m, const csv_table *t, const double *step, const double *x,
                         const double *y) {
    int64_t i = 0;
    for (size_t row = 0; row < t->rows; row++) {
        if ((int64_t)step[row] != m->step) continue;
        if (i < m->n) {
            NEAR(m->x[i], x[row], 1e-5, 0);
            NEAR(m->y[i], y[row], 1e-5, 0);
        }
        i++;
    }
    CHECK(i == 0 || i == m->n);
}

static void follow(const char *start, const char *steps, const char *summary) {
    meander *m = river();
    set_line(m, start);
    csv_table *t = load(steps), *sum = load(summary);
    double *step = column(t, "step"), *x = column(t, "x"), *y = column(t, "y");
    double *at = column(sum, "step"), *nodes = column(sum, "n_points");
    double *cutoffs = column(sum, "cutoffs_so_far"), *chord = column(sum, "sinuosity_chord");
    double *widest = column(sum, "max_abs_y");
    for (size_t row = 0; row < sum->rows && at[row] <= 300; row++) {
        while (m->step < (int64_t)at[row]) CHECK(meander_step(m) == MNP_OK);
        double most = 0;
        for (int64_t i = 0; i < m->n; i++) most = fmax(most, fabs(m->y[i]));
        CHECK(m->n == (int64_t)nodes[row] && m->loops.count == (int64_t)cutoffs[row]);
        NEAR(meander_chord(m) / 35500, chord[row], 0, at[row] <= 200 ? 1e-8 : 1e-6);
        NEAR(most, widest[row], at[row] <= 200 ? 1e-4 : 1e-2, 0);
        compare_step(m, t, step, x, y);
    }
    double *all[] = {step, x, y, at, nodes, cutoffs, chord, widest};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) env_free(&E, all[k]);
    csv_destroy(t);
    csv_destroy(sum);
    meander_destroy(m);
}

static void many_steps(void) {
    follow("one_step_before", "analytic_steps", "analytic_steps_summary");
    follow("noise_start", "noise_steps", "noise_steps_summary");
}

/* ---- values of a picture --------------------------------------------------------------------- */

static void values_of_a_picture(void) {
    enum { SIDE = 700, SIZE = 128 };
    uint8_t *mask = env_alloc(&E, SIDE * SIDE, 1, "mask"),
            *small = env_alloc(&E, SIZE * SIZE, 1, "");
    float *gray = env_alloc(&E, SIZE * SIZE, sizeof *gray, "gray");
    float *y = env_alloc(&E, SIZE * SIZE, sizeof *y, "y");
    double *sdf = env_alloc(&E, SIZE * SIZE, sizeof *sdf, "sdf"), mean = 0, square = 0, river = 0;
    int32_t *scratch = env_alloc(&E, (SIZE + 2) * SIZE, sizeof *scratch, "scratch");
    for (int r = 0; r < SIDE; r++)
        for (int c = 0; c < SIDE; c++)
            mask[r * SIDE + c] = fabs(r - 350 - 150 * sin(2 * PI * c / 350)) <= 30;
    meander_shrink(mask, SIDE, SIDE, SIZE, scratch, gray);
    geofluvial_opts o;
    CHECK(geofluvial_options(&E, "", &o) == MNP_OK);
    geofluvial_mask(gray, SIZE * SIZE, small);
    CHECK(meander_signed_distance(small, SIZE, scratch, sdf));
    CHECK(geofluvial_values(&E, &o, small, 1, y) == MNP_OK);
    csv_table *t = load("resize_sdf");
    double *row = column(t, "row"), *col = column(t, "col"), *g = column(t, "gray");
    double *d = column(t, "sdf"), *v = column(t, "y"), lowest = 0, highest = 0;
    for (size_t i = 0; i < t->rows; i++) {
        int at = (int)row[i] * SIZE + (int)col[i];
        NEAR(gray[at], g[i], 1e-6, 0);
        NEAR(sdf[at], d[i], 1e-6, 0);
        NEAR(y[at], v[i], 1e-6, 0);
    }
    for (int i = 0; i < SIZE * SIZE; i++) {
        river += small[i];
        mean += y[i] / (double)(SIZE * SIZE);
        square += (double)y[i] * y[i] / (SIZE * SIZE);
        lowest = fmin(lowest, sdf[i]);
        highest = fmax(highest, sdf[i]);
    }
    NEAR(river / (SIZE * SIZE), 0.0859375, 1e-12, 0);
    NEAR(mean, 0.7152299, 2e-7, 0);
    NEAR(sqrt(square - mean * mean), 0.5243153, 2e-7, 0);
    NEAR(lowest, -0.0390625, 1e-12, 0);
    NEAR(highest, 0.4271230, 1e-6, 0);
    void *all[] = {mask, small, gray, y, sdf, scratch, row, col, g, d, v};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) env_free(&E, all[k]);
    csv_destroy(t);
}

int main(void) {
    env_init(&E);
    RUN(the_parts_of_a_step);
    RUN(cutoffs_alone);
    RUN(cutoffs_as_by_all_pairs);
    RUN(many_steps);
    RUN(values_of_a_picture);
    return check_done();
}
