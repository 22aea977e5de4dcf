/* test_map.c: maps through the public calls: their layers against arithmetic on the functions they
 * summarise, a Gaussian process against its variance, honoured wells, places and random wells. */
#include "check.h"
#include "mnp_map.h"

enum { ROWS = 5, COLS = 7, N = ROWS * COLS, S = 6, WELLS = 3 };
static const mnp_map_frame frame = {.rows = ROWS, .cols = COLS, .lo = {-1, -1}, .hi = {1, 1}};
static const double pixel[2 * WELLS] = {1, 1, 3, 5, 0, 6}, value[WELLS] = {0.8, -1, 0.3};
static double well_x[2 * WELLS];
static const mnp_set wells = {WELLS, well_x, value};
static mnp_ctx *ctx;

typedef struct layers {
    double mean[N], sd[N], below[N];
    float draws[S * N];
} layers;

static mnp_model *small_model(const char *process) {
    mnp_model *m = NULL;
    CHECK(mnp_model_create(ctx, process, "tiny",
                           *process == 'g' ? "x_dim=2"
                                           : "x_dim=2 T=2 rff=2 d_z=3 d_r=3 enc_width=4 "
                                             "head_hidden=4 flow_hidden=5 bins=3",
                           NULL, 7, &m) == MNP_OK);
    return m;
}

static void make(const mnp_model *m, const mnp_map_opts *o, layers *to) {
    mnp_map out = {sizeof out, to->mean, to->sd, to->below, to->draws, NULL};
    memset(to, 0, sizeof *to);
    CHECK(mnp_map_make(ctx, m, &frame, &wells, o, &out) == MNP_OK);
}

/* The functions themselves: y (MNP_LEVELS, S, N). */
static void functions(const mnp_model *m, double *y) {
    double x[2 * N];
    mnp_predictor *p = NULL;
    for (int i = 0; i < N; i++) {
        x[2 * i] = -1 + 2.0 * (i / COLS) / (ROWS - 1);
        x[2 * i + 1] = -1 + 2.0 * (i % COLS) / (COLS - 1);
    }
    CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
    CHECK(mnp_predictor_condition(p, &wells) == MNP_OK);
    CHECK(mnp_predictor_draw_latents(p, 4, S) == MNP_OK);
    CHECK(mnp_predictor_levels(p, x, N, y) == MNP_OK);
    mnp_predictor_destroy(p);
}

static void layers_of_functions(void) {
    static double y[MNP_LEVELS * S * N];
    static layers got;
    mnp_model *m = small_model("mnp");
    mnp_map_opts o = {.size = sizeof o, .samples = S, .seed = 4};
    functions(m, y);
    make(m, &o, &got);
    for (int i = 0; i < N; i++) {
        double sum = 0, squares = 0, count = (MNP_LEVELS - 1) * S;
        for (int k = S; k < MNP_LEVELS * S; k++) sum += y[k * N + i];
        for (int k = S; k < MNP_LEVELS * S; k++)
            squares += (y[k * N + i] - sum / count) * (y[k * N + i] - sum / count);
        NEAR(got.mean[i], sum / count, 1e-13, 0);
        NEAR(got.sd[i], sqrt(squares / (count - 1)), 1e-13, 0);
        CHECK(got.below[i] >= 0 && got.below[i] <= 1);
        for (int s = 0; s < S; s++) CHECK(got.draws[s * N + i] == (float)y[s * N + i]);
    }
    mnp_model_destroy(m);
}

/* One function: the probability to lie below its value at a level of the noise is that of the
 * noise. */
static void probability_below(void) {
    static double y[MNP_LEVELS * S * N];
    double below[N];
    mnp_model *m = small_model("mnp");
    mnp_map out = {.size = sizeof out, .below = below};
    functions(m, y);
    mnp_predictor *p = NULL;
    double x[2] = {-1, -1}, one[MNP_LEVELS];
    CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
    CHECK(mnp_predictor_draw_latents(p, 4, 1) == MNP_OK);
    CHECK(mnp_predictor_levels(p, x, 1, one) == MNP_OK);
    for (int k = 1; k < MNP_LEVELS; k++) {
        mnp_map_opts o = {.size = sizeof o, .samples = 1, .seed = 4, .threshold = one[k]};
        CHECK(mnp_map_make(ctx, m, &frame, NULL, &o, &out) == MNP_OK);
        NEAR(below[0], 0.5 * erfc(-mnp_level(k) / sqrt(2.0)), 1e-12, 0);
    }
    mnp_predictor_destroy(p);
    mnp_model_destroy(m);
}

/* The prior of a Gaussian process, fresh: its variance is the same everywhere. */
static void gaussian_process(void) {
    enum { DRAWS = 8000 };
    double mean[N], sd[N], below[N];
    mnp_model *m = small_model("gp");
    mnp_predictor *p = NULL;
    double zero = 0, x[2] = {0, 0}, logp;
    CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
    mnp_set at = {1, x, &zero};
    CHECK(mnp_predictor_logp(p, &at, &logp) == MNP_OK); /* log N(0; 0, v) says what v is */
    double v = exp(-2 * logp) / (2 * 3.14159265358979323846);
    mnp_map out = {.size = sizeof out, .mean = mean, .sd = sd, .below = below};
    mnp_map_opts o = {.size = sizeof o, .samples = DRAWS, .threshold = sqrt(v)};
    CHECK(mnp_map_make(ctx, m, &frame, NULL, &o, &out) == MNP_OK);
    for (int i = 0; i < N; i++) { /* five standard errors */
        NEAR(mean[i], 0, 5 * sqrt(v / DRAWS), 0);
        NEAR(sd[i], sqrt(v), 5 * sqrt(v / (2.0 * DRAWS)), 0);
        NEAR(below[i], 0.841344746068543, 5 * sqrt(0.84 * 0.16 / DRAWS), 0);
    }
    mnp_predictor_destroy(p);
    mnp_model_destroy(m);
}

static void honoured_wells(void) {
    static layers plain, through;
    mnp_model *m = small_model("mnp");
    mnp_map_opts o = {.size = sizeof o, .samples = S, .seed = 4};
    make(m, &o, &plain);
    o.honour = &wells;
    o.range = 2;
    make(m, &o, &through);
    for (int i = 0; i < N; i++) {
        int well = -1;
        double nearest = INFINITY;
        for (int k = 0; k < WELLS; k++) {
            double d = hypot(pixel[2 * k] - i / COLS, pixel[2 * k + 1] - i % COLS);
            if (d < nearest) nearest = d, well = k;
        }
        for (int s = 0; s < S; s++) {
            float before = plain.draws[s * N + i], after = through.draws[s * N + i];
            if (nearest >= 2)
                CHECK(before == after);
            else if (nearest == 0)
                NEAR(after, value[well], 1e-6 + 0.01 * fabs((double)before - value[well]), 0);
        }
        if (nearest == 0) CHECK(through.sd[i] < 0.2 * plain.sd[i]);
    }
    mnp_model_destroy(m);
}

static void places_and_wells(void) {
    double x[4], corner[] = {0, 0, ROWS - 1, 1.5}, outside[] = {2, 2, 1, COLS};
    CHECK(mnp_map_inputs(ctx, &frame, 2, corner, x) == MNP_OK);
    CHECK(x[0] == -1 && x[1] == -1 && x[2] == 1 && x[3] == -0.5);
    CHECK(mnp_map_inputs(ctx, &frame, 2, outside, x) == MNP_EINVAL && x[0] == -1);
    CHECK(strstr(mnp_last_error(ctx), "measurement 2 at row 1, col 7 lies outside") != NULL);
    int64_t some[20], all[N], seen[N] = {0};
    for (uint64_t seed = 0; seed < 2000; seed++) {
        CHECK(mnp_map_wells(ctx, ROWS, COLS, 20, seed, some) == MNP_OK);
        for (int k = 0; k < 20; k++) {
            CHECK(some[k] < N && (k ? some[k] > some[k - 1] : some[k] >= 0));
            seen[some[k]]++;
        }
    }
    for (int i = 0; i < N; i++) /* each as often as the others: five standard errors */
        NEAR(seen[i], 2000 * 20.0 / N, 5 * sqrt(2000 * (20.0 / N) * (1 - 20.0 / N)), 0);
    CHECK(mnp_map_wells(ctx, ROWS, COLS, N, 1, all) == MNP_OK && all[0] == 0 &&
          all[N - 1] == N - 1);
}

/* ---- rivers ---------------------------------------------------------------------------------- */

enum { SIDE = 16, IMAGES = 4, PIXELS = SIDE * SIDE };

static void count_up(void *user, int64_t done, int64_t total) {
    int64_t *most = user;
    CHECK(done >= 0 && done <= total);
    if (done > *most) *most = done;
}

/* Drawn by themselves, opened as data, written to a folder and read again: the same images. */
static void rivers(void) {
    static float sdf[IMAGES * PIXELS], gray[IMAGES * PIXELS], mask[IMAGES * PIXELS];
    static uint8_t from_folder[IMAGES * PIXELS];
    int64_t side = 0, most = 0, drawn = 0, n;
    mnp_rivers_opts o = {.size = sizeof o,
                         .options = "nit=40 size=16",
                         .seed = 6,
                         .progress = count_up,
                         .progress_user = &most};
    CHECK(mnp_rivers_side(ctx, &o, &side) == MNP_OK && side == SIDE);
    CHECK(mnp_rivers_draw(ctx, MNP_VALID, IMAGES, MNP_RIVERS_SDF, &o, sdf) == MNP_OK && most > 0);
    CHECK(mnp_rivers_draw(ctx, MNP_VALID, IMAGES, MNP_RIVERS_GRAY, &o, gray) == MNP_OK);
    CHECK(mnp_rivers_draw(ctx, MNP_VALID, IMAGES, MNP_RIVERS_MASK, &o, mask) == MNP_OK);
    mnp_data *data = NULL;
    mnp_data_opts open = {.size = sizeof open, .split = MNP_VALID, .functions = IMAGES, .seed = 6};
    CHECK(mnp_data_open(ctx, "geofluvial:nit=40,size=16", &open, &data) == MNP_OK);
    char dir[512];
    snprintf(dir, sizeof dir, "%s/rivers", getenv("TEST_TMP") ? getenv("TEST_TMP") : "/tmp");
    const int64_t images[3] = {1, IMAGES, 0};
    CHECK(mnp_rivers_write(ctx, dir, images, &o, &drawn) == MNP_OK && drawn == 1 + IMAGES);
    CHECK(mnp_rivers_write(ctx, dir, images, &o, &drawn) == MNP_OK && drawn == 0);
    CHECK(mnp_rivers_read(ctx, dir, MNP_VALID, 0, IMAGES, from_folder) == MNP_OK);
    for (int64_t i = 0; i < IMAGES; i++) {
        const float *x, *y = NULL;
        CHECK(mnp_data_function(ctx, data, i, &n, &x, &y) == MNP_OK && n == PIXELS);
        CHECK(y && memcmp(y, sdf + i * PIXELS, PIXELS * sizeof *y) == 0);
    }
    for (int64_t i = 0; i < IMAGES * PIXELS; i++) {
        CHECK(gray[i] >= 0 && gray[i] <= 1 && mask[i] == (gray[i] >= 0.5f));
        CHECK((sdf[i] < 0) == (mask[i] > 0) && from_folder[i] == mask[i]);
    }
    o.seed = 7; /* another folder's */
    CHECK(mnp_rivers_write(ctx, dir, images, &o, &drawn) == MNP_EINVAL);
    mnp_data_destroy(data);
    char command[600];
    snprintf(command, sizeof command, "rm -r '%s'", dir);
    CHECK(system(command) == 0);
}

int main(void) {
    mnp_ctx_opts o = {.size = sizeof o, .threads = 2};
    CHECK(mnp_ctx_create(&o, &ctx) == MNP_OK);
    CHECK(mnp_map_inputs(ctx, &frame, WELLS, pixel, well_x) == MNP_OK);
    RUN(layers_of_functions);
    RUN(probability_below);
    RUN(gaussian_process);
    RUN(honoured_wells);
    RUN(places_and_wells);
    RUN(rivers);
    mnp_ctx_destroy(ctx);
    return check_done();
}
