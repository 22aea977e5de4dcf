/* test_geofluvial.c: rivers from random starts, and the images cut from them, have the statistics
 * of the reference (meander/run_statistics.csv and image_two_point_grid1.csv, and the tables below:
 * 20 runs of an independent implementation). With m runs of ours a mean must lie within 3 sd
 * sqrt(1/20 + 1/m) of theirs; the seeds are fixed, so that the outcome is too. */
#include "check.h"
#include "data/geofluvial.h"
#include "util/csv.h"

enum { RUNS = 8, REFERENCE_RUNS = 20 };

static env E;
static geofluvial_opts O;

static void near_mean(const char *what, double got, double want, double sd) {
    check_near(__FILE__, __LINE__, what, got, want,
               3 * sd * sqrt(1.0 / REFERENCE_RUNS + 1.0 / RUNS), 1e-5);
}

static csv_table *load(const char *path) {
    char *text = NULL;
    size_t bytes = 0;
    csv_table *t = NULL;
    CHECK(fsio_read(&E, path, 1 << 20, &text, &bytes) == MNP_OK);
    const char *at = text;
    while (at && *at == '#') at = strchr(at, '\n') + 1;
    if (at) csv_parse(&E, path, at, bytes - (size_t)(at - text), ',', &t);
    env_free(&E, text);
    if (!t) exit(1);
    return t;
}

static double cell(const csv_table *t, size_t row, const char *name) {
    size_t k = 0;
    double v = NAN;
    CHECK(csv_find(&E, t, name, &k) == MNP_OK && csv_number(&E, t, row, k, &v, NULL) == MNP_OK);
    return v;
}

/* ---- rivers ---------------------------------------------------------------------------------- */

static const char *const series[] = {"n_points",    "sinuosity",  "mean_disp_m",
                                     "rms_disp_m",  "max_disp_m", "rms_curvature_per_m",
                                     "max_abs_y_m", "cutoffs"};
static const int checked[] = {0, 20, 60, 100, 200, 300, 500, 1000, 1480};
enum { SERIES = sizeof series / sizeof *series, CHECKED = sizeof checked / sizeof *checked };

/* What the table calls `final`, of the line after the last step. */
typedef struct last_line {
    double sinuosity, sd_y, widest, first_x, cutoffs, loop_nodes;
    double bends, bend_along, bend_straight; /* number; mean lengths, m                     */
    double curvature;                        /* rms of W kappa over the nodes that move     */
    double share, wide_share; /* of river in the usual window, and in one of the whole line */
} last_line;

typedef struct river_job {
    double seen[RUNS][CHECKED][SERIES];
    last_line last[RUNS];
    mnp_status status[RUNS];
} river_job;

static double widest(const meander *m) {
    double most = 0;
    for (int64_t i = 0; i < m->n; i++) most = fmax(most, fabs(m->y[i]));
    return most;
}

/* One step, and what the state before it and its displacements are. The curvature is that of the
 * nodes that move, as in the reference: its 1.403e-3 at step 0 is theirs, all nodes have 1.29e-3.
 */
static mnp_status watched_step(meander *m, double out[SERIES]) {
    int64_t n = m->n, moving = n - m->o.pad - m->o.pad1;
    double sum = 0, squares = 0, most = 0, curvature = 0;
    double per_kappa = m->o.kl / (365.0 * 24 * 3600) * m->o.W, seconds = m->o.dt * 365 * 24 * 3600;
    out[0] = (double)n;
    out[1] = meander_chord(m) / 35500;
    out[6] = widest(m);
    MNP_TRY(meander_migrate(m));
    for (int64_t i = m->o.pad1; i < m->o.pad1 + moving; i++) {
        double d = fabs(m->R1[i]) * seconds;
        sum += d;
        squares += d * d;
        most = fmax(most, d);
        curvature += pow(m->R0[i] / per_kappa, 2);
    }
    out[2] = sum / (double)moving;
    out[3] = sqrt(squares / (double)moving);
    out[4] = most;
    out[5] = sqrt(curvature / (double)moving);
    MNP_TRY(meander_cut(m));
    MNP_TRY(meander_resample(m));
    out[7] = (double)m->loops.count;
    m->step++;
    return MNP_OK;
}

/* Share of river pixels on a raster of 800 x 4000. */
static double river_share(env *e, const meander *m, double x0, double y1, double cell_m) {
    meander_raster r = {.rows = 800, .cols = 4000, .x0 = x0, .y1 = y1, .cell = cell_m};
    r.mask = env_alloc(e, (size_t)(r.rows * r.cols), 1, "raster");
    double river = 0;
    meander_paint(&r, m->n, m->x, m->y, m->o.W / 2);
    for (int64_t i = 0; i < r.rows * r.cols; i++) river += r.mask[i];
    env_free(e, r.mask);
    return river / (double)(r.rows * r.cols);
}

/* Reaches between sign changes of the curvature in 2500 < x < 29000 m; those shorter than 150 m do
 * not count. kappa (n). A reach is as long as the way to the first node of the next one; straight
 * it goes from its own first node to its own last. (The reference does not name the nodes: to the
 * next reach's first it would be 341 m and not its 317.) */
static void describe_bends(const meander *m, const double *kappa, last_line *l) {
    int64_t start = -1;
    for (int64_t i = 1; i < m->n; i++) {
        bool inside = m->x[i] > 2500 && m->x[i] < 29000;
        if (!inside || kappa[i] * kappa[i - 1] > 0) {
            if (!inside) start = -1;
            continue;
        }
        double along = 0;
        for (int64_t j = start; start >= 0 && j < i; j++)
            along += hypot(m->x[j + 1] - m->x[j], m->y[j + 1] - m->y[j]);
        if (along >= 150) {
            l->bends++;
            l->bend_along += along;
            l->bend_straight += hypot(m->x[i - 1] - m->x[start], m->y[i - 1] - m->y[start]);
        }
        start = i;
    }
    l->bend_along /= l->bends;
    l->bend_straight /= l->bends;
}

static double slope(const double *f, int64_t n, int64_t i) {
    return i == 0 ? f[1] - f[0] : i == n - 1 ? f[n - 1] - f[n - 2] : (f[i + 1] - f[i - 1]) / 2;
}

static void describe_curvature(const meander *m, last_line *l) {
    int64_t n = m->n, first = m->o.pad1, last = n - m->o.pad;
    double *dx = env_alloc(m->e, 3 * (size_t)n, sizeof *dx, "curvature"), squares = 0;
    double *dy = dx + n, *kappa = dy + n;
    for (int64_t i = 0; i < n; i++) dx[i] = slope(m->x, n, i), dy[i] = slope(m->y, n, i);
    for (int64_t i = 0; i < n; i++) {
        double ds2 = dx[i] * dx[i] + dy[i] * dy[i];
        kappa[i] = (dx[i] * slope(dy, n, i) - dy[i] * slope(dx, n, i)) / pow(ds2, 1.5);
        if (i >= first && i < last) squares += kappa[i] * kappa[i];
    }
    l->curvature = m->o.W * sqrt(squares / (double)(last - first));
    describe_bends(m, kappa, l);
    env_free(m->e, dx);
}

static last_line describe(const meander *m) {
    last_line l = {.sinuosity = meander_chord(m) / 35500, .widest = widest(m), .first_x = NAN};
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < m->n; i++) {
        sum += m->y[i];
        squares += m->y[i] * m->y[i];
        if (isnan(l.first_x) && fabs(m->y[i]) > 50) l.first_x = m->x[i];
    }
    sum /= (double)m->n;
    l.sd_y = sqrt(squares / (double)m->n - sum * sum);
    l.share = river_share(m->e, m, 500, 3000, 7.5);
    l.wide_share = river_share(m->e, m, 0, 3550, 8.875);
    l.cutoffs = (double)m->loops.count;
    l.loop_nodes = (double)m->loops.nodes / l.cutoffs;
    describe_curvature(m, &l);
    return l;
}

static void simulate(void *arg, int64_t run, int worker) {
    river_job *job = arg;
    (void)worker;
    env own;
    env_init(&own);
    meander *m = NULL;
    rng_stream s = rng_stream_make((rng_key){11}, RNG_TEST, (uint32_t)run);
    job->status[run] = meander_create(&own, &O.river, &m);
    if (job->status[run] == MNP_OK) job->status[run] = meander_start(m, &s);
    int row = 0;
    while (job->status[run] == MNP_OK && m->step < O.river.nit)
        if (row < CHECKED && m->step == checked[row])
            job->status[run] = watched_step(m, job->seen[run][row++]);
        else
            job->status[run] = meander_step(m);
    if (job->status[run] == MNP_OK) job->last[run] = describe(m);
    meander_destroy(m);
}

static void compare_series(const river_job *job, const csv_table *t) {
    for (int k = 0; k < CHECKED; k++) {
        size_t row = (size_t)checked[k] / 20;
        CHECK(cell(t, row, "step") == checked[k]);
        for (int q = 0; q < SERIES; q++) {
            char mean[64], sd[64], what[96];
            snprintf(mean, sizeof mean, "%s_mean", series[q]);
            snprintf(sd, sizeof sd, "%s_sd", series[q]);
            snprintf(what, sizeof what, "%s at step %d", series[q], checked[k]);
            double got = 0;
            for (int r = 0; r < RUNS; r++) got += job->seen[r][k][q] / RUNS;
            near_mean(what, got, cell(t, row, mean), cell(t, row, sd));
        }
    }
}

static void rivers(void) {
    river_job *job = env_alloc(&E, 1, sizeof *job, "runs");
    pool *p = NULL;
    CHECK(pool_create(&E, 0, &p) == MNP_OK);
    pool_run(p, RUNS, simulate, job);
    pool_destroy(p);
    last_line mean = {0};
    for (int r = 0; r < RUNS; r++) {
        CHECK(job->status[r] == MNP_OK);
        mean.sinuosity += job->last[r].sinuosity / RUNS;
        mean.sd_y += job->last[r].sd_y / RUNS;
        mean.widest += job->last[r].widest / RUNS;
        mean.first_x += job->last[r].first_x / RUNS;
        mean.cutoffs += job->last[r].cutoffs / RUNS;
        mean.loop_nodes += job->last[r].loop_nodes / RUNS;
        mean.bends += job->last[r].bends / RUNS;
        mean.bend_along += job->last[r].bend_along / RUNS;
        mean.bend_straight += job->last[r].bend_straight / RUNS;
        mean.curvature += job->last[r].curvature / RUNS;
        mean.share += job->last[r].share / RUNS;
        mean.wide_share += job->last[r].wide_share / RUNS;
    }
    csv_table *t = load("tests/golden/meander/run_statistics.csv");
    compare_series(job, t);
    near_mean("sinuosity", mean.sinuosity, 2.42, 0.15);
    near_mean("sd of y", mean.sd_y, 740, 132);
    near_mean("largest |y|", mean.widest, 2114, 410);
    near_mean("first x with |y| > 50", mean.first_x, 3913, 908);
    near_mean("cutoffs", mean.cutoffs, 1524, 40);
    near_mean("nodes of a loop", mean.loop_nodes, 30.2, 0.3);
    near_mean("bends", mean.bends, 131, 7);
    near_mean("length of a bend along the channel", mean.bend_along, 553, 20);
    near_mean("length of a bend, straight", mean.bend_straight, 317, 8);
    near_mean("rms of W kappa", mean.curvature, 1.079, 0.022);
    near_mean("river share, 7.5 m pixels", mean.share, 0.0883, 0.0057);
    near_mean("river share, 8.875 m pixels", mean.wide_share, 0.0676, 0.0041);
    csv_destroy(t);
    env_free(&E, job);
}

/* ---- images ---------------------------------------------------------------------------------- */

enum { SIZE = 128, PIXELS = SIZE * SIZE, IMAGES = 3 * RUNS };

static uint8_t masks[IMAGES][PIXELS];
static float gray[IMAGES][PIXELS], values[IMAGES][PIXELS];

/* Share of pixel pairs at (down, right) of each other that are both river. */
static double two_point(int down, int right) {
    double both = 0;
    for (int k = 0; k < IMAGES; k++)
        for (int r = 0; r + down < SIZE; r++)
            for (int c = 0; c + right < SIZE; c++)
                both += masks[k][r * SIZE + c] & masks[k][(r + down) * SIZE + c + right];
    return both / (IMAGES * (SIZE - down) * (SIZE - right));
}

/* Share of neighbours at (down, right) that differ. */
static double crossings(int down, int right) {
    double differ = 0;
    for (int k = 0; k < IMAGES; k++)
        for (int r = 0; r + down < SIZE; r++)
            for (int c = 0; c + right < SIZE; c++)
                differ += masks[k][r * SIZE + c] != masks[k][(r + down) * SIZE + c + right];
    return differ / (IMAGES * (SIZE - down) * (SIZE - right));
}

/* River parts, 8 neighbours; the mask is used up. */
static int parts(uint8_t *mask) {
    static int stack[PIXELS];
    int count = 0;
    for (int start = 0; start < PIXELS; start++) {
        if (!mask[start]) continue;
        int depth = 0;
        stack[depth++] = start;
        mask[start] = 0;
        count++;
        while (depth > 0) {
            int p = stack[--depth], r0 = p / SIZE, c0 = p % SIZE;
            for (int r = r0 - 1; r <= r0 + 1; r++)
                for (int c = c0 - 1; c <= c0 + 1; c++) {
                    if (r < 0 || c < 0 || r >= SIZE || c >= SIZE || !mask[r * SIZE + c]) continue;
                    mask[r * SIZE + c] = 0;
                    stack[depth++] = r * SIZE + c;
                }
        }
    }
    return count;
}

static void compare_values(void) {
    double mean = 0, sd = 0, grey = 0;
    for (int k = 0; k < IMAGES; k++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < PIXELS; i++) {
            sum += values[k][i];
            squares += (double)values[k][i] * values[k][i];
            grey += gray[k][i] > 0 && gray[k][i] < 1;
        }
        mean += sum / PIXELS / IMAGES;
        sd += sqrt(squares / PIXELS - pow(sum / PIXELS, 2)) / IMAGES;
    }
    near_mean("mean value", mean, 0.703, 0.029);
    near_mean("sd of the values of an image", sd, 0.560, 0.025);
    /* Neither black nor white; grey_pixels() compares it with the reference, by its filter. */
    CHECK(grey / IMAGES / PIXELS > 0.04 && grey / IMAGES / PIXELS < 0.06);
}

/* ---- grey pixels, with the filter of the reference ------------------------------------------- */

enum { CROP = 700 };

/* The cubic of Keys with a = -1/2, stretched by the shrinking so that it averages. */
static double cubic(double t) {
    t = fabs(t);
    if (t < 1) return (1.5 * t - 2.5) * t * t + 1;
    return t < 2 ? ((-0.5 * t + 2.5) * t - 4) * t + 2 : 0;
}

static double tap[SIZE][CROP]; /* weights of the inputs of an output pixel */

static void make_taps(void) {
    double scale = (double)CROP / SIZE;
    for (int i = 0; i < SIZE; i++) {
        double sum = 0;
        for (int k = 0; k < CROP; k++)
            sum += tap[i][k] = cubic((k + 0.5 - (i + 0.5) * scale) / scale);
        for (int k = 0; k < CROP; k++) tap[i][k] /= sum;
    }
}

/* Share of pixels between 2 and 98 % of a crop shrunk by the cubic. */
static double grey_share(const uint8_t *mask, int64_t stride) {
    static double rows[CROP][SIZE];
    int reach = 2 * CROP / SIZE + 2, grey = 0;
    for (int r = 0; r < CROP; r++)
        for (int j = 0; j < SIZE; j++) {
            int mid = (2 * j + 1) * CROP / (2 * SIZE);
            rows[r][j] = 0;
            for (int k = mid - reach < 0 ? 0 : mid - reach; k < CROP && k <= mid + reach; k++)
                if (mask[r * stride + k]) rows[r][j] += tap[j][k];
        }
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            int mid = (2 * i + 1) * CROP / (2 * SIZE);
            double v = 0;
            for (int k = mid - reach < 0 ? 0 : mid - reach; k < CROP && k <= mid + reach; k++)
                v += tap[i][k] * rows[k][j];
            grey += v > 0.02 && v < 0.98;
        }
    return (double)grey / PIXELS;
}

static void grey_pixels(void) {
    double share = 0;
    make_taps();
    for (int run = 0; run < RUNS; run++) {
        meander_raster r = {0};
        CHECK(geofluvial_river(&E, &O, 7, DATA_TRAIN, run, &r) == MNP_OK);
        rng_stream s = rng_stream_make((rng_key){12}, RNG_TEST, (uint32_t)run);
        int64_t slack = r.cols - 3 * CROP, at = 0;
        int64_t gap[3]; /* uniform over placements without common columns: sorted cuts */
        for (int k = 0; k < 3; k++) gap[k] = (int64_t)rng_below(&s, (uint64_t)slack + 1);
        for (int k = 0; k < 3; k++)
            for (int j = k + 1; j < 3; j++)
                if (gap[j] < gap[k]) at = gap[k], gap[k] = gap[j], gap[j] = at;
        for (int k = 0; k < 3; k++) {
            int64_t row = (int64_t)rng_below(&s, (uint64_t)(r.rows - CROP + 1));
            share += grey_share(r.mask + row * r.cols + gap[k] + k * CROP, r.cols) / IMAGES;
        }
        env_free(&E, r.mask);
    }
    near_mean("grey pixels", share, 0.048, 0.005);
}

static void images(void) {
    pool *p = NULL;
    CHECK(pool_create(&E, 0, &p) == MNP_OK);
    CHECK(geofluvial_draw(&E, p, &O, 7, DATA_TRAIN, 0, IMAGES, NULL, gray[0]) == MNP_OK);
    pool_destroy(p);
    geofluvial_mask(gray[0], IMAGES * PIXELS, masks[0]);
    CHECK(geofluvial_values(&E, &O, masks[0], IMAGES, values[0]) == MNP_OK);
    compare_values();
    csv_table *t = load("tests/golden/meander/image_two_point_grid1.csv");
    for (size_t row = 0; row < t->rows; row++) {
        int lag = (int)cell(t, row, "lag_px");
        near_mean("P2 downstream", two_point(0, lag), cell(t, row, "p2_downstream_mean"),
                  cell(t, row, "p2_downstream_sd"));
        near_mean("P2 across", two_point(lag, 0), cell(t, row, "p2_cross_mean"),
                  cell(t, row, "p2_cross_sd"));
    }
    csv_destroy(t);
    /* the reference gives no sd: that of the river fraction, 11 %, stands in for it */
    near_mean("crossings along rows", crossings(0, 1), 0.0254, 0.0028);
    near_mean("crossings along columns", crossings(1, 0), 0.0232, 0.0026);
    double connected = 0;
    for (int k = 0; k < IMAGES; k++) connected += (double)parts(masks[k]) / IMAGES;
    near_mean("connected parts", connected, 1.48, 0.38);
}

int main(void) {
    env_init(&E);
    CHECK(geofluvial_options(&E, "", &O) == MNP_OK);
    RUN(rivers);
    RUN(images);
    RUN(grey_pixels);
    return check_done();
}
