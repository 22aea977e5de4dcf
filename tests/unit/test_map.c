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
    mnp_map out = {sizeof out, to->mean, to->sd, to->below, to->draws, NULL, NULL};
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

/* A quarter of a great circle on, realisations are those of the other seed. */
static void turned_realisations(void) {
    static layers there, turned;
    mnp_model *m = small_model("mnp");
    mnp_map_opts to = {.size = sizeof to, .samples = S, .seed = 9};
    mnp_map_opts o = {.size = sizeof o, .samples = S, .seed = 4, .towards = 9};
    o.angle = 1.57079632679489661923;
    make(m, &to, &there);
    make(m, &o, &turned);
    for (int i = 0; i < N; i++) NEAR(turned.mean[i], there.mean[i], 1e-5, 1e-5);
    for (int i = 0; i < S * N; i++)
        NEAR((double)turned.draws[i], (double)there.draws[i], 1e-5, 1e-5);
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

/* A known place comes back as its pixel and the other way round; x to the right, y upwards. */
static void coordinates(void) {
    const double extent[4] = {500000, 500600, 6100000, 6100400}; /* pixels of 100 m */
    const double known[][4] = {/* x, y, row, col: three corners and a place within */
                               {500000, 6100400, 0, 0},
                               {500600, 6100400, 0, COLS - 1},
                               {500000, 6100000, ROWS - 1, 0},
                               {500250, 6100300, 1, 2.5}};
    double got[2];
    for (int k = 0; k < 4; k++) {
        CHECK(mnp_map_pixels(ctx, &frame, extent, 1, known[k], got) == MNP_OK);
        NEAR(got[0], known[k][2], 1e-12, 0);
        NEAR(got[1], known[k][3], 1e-12, 0);
        CHECK(mnp_map_places(ctx, &frame, extent, 1, got, got) == MNP_OK);
        NEAR(got[0], known[k][0], 1e-6, 0);
        NEAR(got[1], known[k][1], 1e-6, 0);
    }
    const double outside[] = {500100, 6100200, 500100, 6100401}, exchanged[] = {6100100, 500100};
    CHECK(mnp_map_pixels(ctx, &frame, extent, 2, outside, well_x) == MNP_EINVAL);
    CHECK(strstr(mnp_last_error(ctx), "measurement 2 at 500100, 6100401 lies outside") != NULL);
    CHECK(!strstr(mnp_last_error(ctx), "exchanged"));
    CHECK(mnp_map_pixels(ctx, &frame, extent, 1, exchanged, got) == MNP_EINVAL);
    CHECK(strstr(mnp_last_error(ctx), "exchanged") != NULL);
}

/* Column c, row r from above of a turned map is row c, column R - 1 - r of one that is not. */
static void turned(void) {
    static float across[S * N], down[S * N];
    mnp_model *m = small_model("mnp");
    const double x[2] = {-0.4, 0.7}, y[1] = {0.9}; /* (first input, second): left, high */
    const mnp_set well = {1, x, y};
    const mnp_map_frame as_map = {ROWS, COLS, {1, -1}, {-1, 1}},
                        plain = {COLS, ROWS, {-1, -1}, {1, 1}};
    mnp_map_opts o = {.size = sizeof o, .samples = S, .seed = 4, .honour = &well, .range = 3};
    mnp_map to = {.size = sizeof to, .draws = down};
    CHECK(mnp_map_make(ctx, m, &plain, &well, &o, &to) == MNP_OK);
    o.turned = true, to.draws = across;
    double differ = 0, sum = 0;
    to.differ = &differ;
    CHECK(mnp_map_make(ctx, m, &as_map, &well, &o, &to) == MNP_OK);
    for (int i = 0; i < N; i++) { /* sd by the differences of all pairs */
        double pairs = 0;
        for (int s = 0; s < S; s++)
            for (int t = 0; t < s; t++)
                pairs += pow((double)across[s * N + i] - (double)across[t * N + i], 2);
        sum += sqrt(pairs / (S * (S - 1)));
    }
    NEAR(differ, sum / N, 1e-9, 1e-6);
    for (int s = 0; s < S; s++)
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLS; c++)
                NEAR(across[s * N + r * COLS + c], down[s * N + c * ROWS + ROWS - 1 - r], 1e-6, 0);
    mnp_model_destroy(m);
}

/* ---- what values mean ------------------------------------------------------------------------ */

static mnp_map_meaning meaning(const mnp_model *m, int64_t n, const double *y, const char *says) {
    char line[200];
    mnp_map_meaning is = mnp_map_meaning_of(m, n, y, line, sizeof line);
    CHECK(is == MNP_MAP_VALUES ? *line == '\0' : strstr(line, says) != NULL);
    return is;
}

static void meanings(void) {
    double lo = 7, hi = 7;
    const double signs[] = {1, -1, -1}, codes[] = {1, 0, 0, 1}, depths[] = {1, 2}, all[] = {1, 1};
    const double sdf[] = {0.4, 0.9}, gray[] = {0, 255, 0}, some[] = {0.2, 0.7, 12};
    mnp_model *m = small_model("mnp");
    CHECK(!mnp_map_rivers(m) && !mnp_map_values(m, &lo, &hi) && lo == 7);
    CHECK(meaning(m, 4, codes, "") == MNP_MAP_VALUES); /* no images: a table's own values */
    CHECK(mnp_model_set_note(ctx, m, "data", "images:rivers") == MNP_OK);
    CHECK(mnp_map_rivers(m) && mnp_map_values(m, &lo, &hi) && lo == -1 && hi == 1);
    CHECK(meaning(m, 3, signs, "") == MNP_MAP_VALUES);
    CHECK(meaning(m, 2, sdf, "") == MNP_MAP_VALUES);
    CHECK(meaning(m, 1, codes, "") == MNP_MAP_VALUES);
    CHECK(meaning(m, 4, codes, "the codes 0 and 1") == MNP_MAP_CODES);
    CHECK(meaning(m, 2, depths, "the codes 1 and 2") == MNP_MAP_CODES);
    CHECK(meaning(m, 2, all, "takes for land") == MNP_MAP_DOUBT);
    CHECK(meaning(m, 3, some, "from 0.2 to 12") == MNP_MAP_DOUBT);
    CHECK(mnp_model_set_note(ctx, m, "data.values", "0 1") == MNP_OK);
    CHECK(!mnp_map_rivers(m) && mnp_map_values(m, &lo, &hi) && lo == 0 && hi == 1);
    CHECK(meaning(m, 4, codes, "") == MNP_MAP_VALUES);
    CHECK(meaning(m, 3, signs, "the codes -1 and 1") == MNP_MAP_CODES);
    CHECK(meaning(m, 3, gray, "the codes 0 and 255") == MNP_MAP_CODES);
    CHECK(meaning(m, 2, gray, "from 0 to 255") == MNP_MAP_DOUBT);
    CHECK(mnp_model_set_note(ctx, m, "data.values", "0 one") == MNP_OK);
    CHECK(!mnp_map_values(m, &lo, &hi));
    mnp_model_destroy(m);
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
    RUN(turned_realisations);
    RUN(probability_below);
    RUN(gaussian_process);
    RUN(honoured_wells);
    RUN(places_and_wells);
    RUN(coordinates);
    RUN(turned);
    RUN(meanings);
    RUN(rivers);
    mnp_ctx_destroy(ctx);
    return check_done();
}
