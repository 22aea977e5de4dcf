/* test_curves.c: forecasts of many curves: a curve's answer has the same bits alone and among
 * others; quantiles and draws are those of the model's own density, noise included; tables with
 * dates, categories, what is constant in a curve and several outputs give the forecasts of the same
 * numbers asked by hand. */
#include <math.h>

#include "check.h"
#include "mnp.h"
#include "scarce.h"

enum { CURVES = 14, POINTS = 8, SAMPLES = 40 };

static mnp_ctx *ctx;
static char folder[300];

/* ---- files ----------------------------------------------------------------------------------- */

static const char *path_of(const char *name) {
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static FILE *begin(const char *name) {
    FILE *f = fopen(path_of(name), "w");
    CHECK(f != NULL);
    return f;
}

static void write_file(const char *name, const char *text) {
    FILE *f = begin(name);
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Growth that differs from curve to curve, with some noise, by a rule that needs no library. */
static double height(int curve, double day) {
    double noise = fmod(sin(12.9898 * curve + 78.233 * day) * 43758.5453, 1.0);
    return 3 + 0.2 * curve + (1 + 0.1 * (curve % 5)) * sqrt(day + 1) + 0.2 * noise;
}

static mnp_model *model_of(const char *name, const char *process, const char *options,
                           const mnp_data_opts *o) {
    mnp_data *data = NULL;
    mnp_model *m = NULL;
    CHECK(mnp_data_open(ctx, path_of(name), o, &data) == MNP_OK);
    CHECK(mnp_model_create(ctx, process, "tiny", options, data, 3, &m) == MNP_OK);
    mnp_data_destroy(data);
    return m;
}

static void write_plants(void) {
    FILE *f = begin("plants.csv");
    fprintf(f, "plant,day,height\n");
    for (int c = 0; c < CURVES; c++)
        for (int i = 0; i < POINTS; i++) fprintf(f, "p%d,%d,%.6g\n", c, 3 * i, height(c, 3 * i));
    CHECK(fclose(f) == 0);
}

static const mnp_data_opts plants = {.size = sizeof plants,
                                     .function_column = "plant",
                                     .x_columns = "day",
                                     .y_column = "height",
                                     .holdout = -1};

static mnp_table *table(const mnp_model *m, const char *name, bool with_y) {
    mnp_table *t = NULL;
    mnp_status status = mnp_table_open(ctx, m, path_of(name), with_y, NULL, &t);
    if (status != MNP_OK) printf("%s\n", mnp_last_error(ctx));
    CHECK(status == MNP_OK);
    return t;
}

/* ---- alone and among others ------------------------------------------------------------------ */

static void ask(const mnp_model *m, const mnp_table *seen, const mnp_table *places,
                mnp_condition how, double *mean, double *draws) {
    mnp_groups_opts o = {
        .size = sizeof o, .samples = SAMPLES, .seed = 5, .condition = how, .gradients = 10};
    mnp_summary s = {.size = sizeof s, .mean = mean, .draws = draws};
    CHECK(mnp_predict_groups(ctx, m, seen, places, &o, &s) == MNP_OK);
}

/* Rows of the places by curve, in two orders, and each curve from files of its own. */
static void alone_is_together(const char *process, const char *options, mnp_condition how) {
    CASE(process);
    mnp_model *m = model_of("plants.csv", process, options, &plants);
    write_file("seen.csv", "plant,day,height\nb,3,6\na,0,4\nb,6,7\na,9,8\n");
    write_file("asked.csv", "plant,day\nc,4\na,12\nb,12\na,21\nb,1\n");
    mnp_table *seen = table(m, "seen.csv", true), *asked = table(m, "asked.csv", false);
    double mean[5], draws[SAMPLES * 5], one[2], few[SAMPLES * 2];
    ask(m, seen, asked, how, mean, draws);
    static const struct {
        const char *seen, *asked;
        int rows, at[2];
    } own[] = {{"plant,day,height\na,0,4\na,9,8\n", "plant,day\na,12\na,21\n", 2, {1, 3}},
               {"plant,day,height\nb,3,6\nb,6,7\n", "plant,day\nb,12\nb,1\n", 2, {2, 4}},
               {"plant,day,height\nb,3,6\n", "plant,day\nc,4\n", 1, {0, 0}}}; /* the population */
    for (int k = 0; k < 3; k++) {
        write_file("seen1.csv", own[k].seen);
        write_file("asked1.csv", own[k].asked);
        mnp_table *s = table(m, "seen1.csv", true), *a = table(m, "asked1.csv", false);
        ask(m, s, a, how, one, few);
        for (int i = 0; i < own[k].rows; i++) {
            CHECK(one[i] == mean[own[k].at[i]]);
            for (int d = 0; d < SAMPLES; d++)
                CHECK(few[d * own[k].rows + i] == draws[d * 5 + own[k].at[i]]);
        }
        mnp_table_destroy(s);
        mnp_table_destroy(a);
    }
    char text[400];
    mnp_table_match(ctx, seen, asked, text, sizeof text);
    CHECK(strstr(text, "1 of the 3 curves of") && strstr(text, "gets the population: c"));
    mnp_table_destroy(seen);
    mnp_table_destroy(asked);
    mnp_model_destroy(m);
}

static void a_curve_does_not_see_the_others(void) {
    alone_is_together("lmm", NULL, MNP_NETWORK);
    alone_is_together("gp", "gp_mean=spline gp_periodic=off", MNP_NETWORK);
    alone_is_together("mnp", NULL, MNP_REFINE);
    alone_is_together("np", NULL, MNP_EXACT);
}

/* A table without a group column is one curve, with the numbers of a predictor. */
static void one_curve_is_a_predictor(void) {
    mnp_model *m = model_of("plants.csv", "mnp", NULL, &plants);
    write_file("seen.csv", "day,height\n3,6\n6,7\n");
    mnp_table *seen = table(m, "seen.csv", true), *grid = NULL;
    CHECK(mnp_table_grid(ctx, m, "0:20:3", &grid) == MNP_OK);
    double mean[3], draws[SAMPLES * 3], want[SAMPLES * 3];
    const double x[] = {3, 6}, y[] = {6, 7}, at[] = {0, 10, 20};
    ask(m, seen, grid, MNP_REFINE, mean, draws);
    mnp_predictor *p = NULL;
    mnp_draw_opts o = {
        .size = sizeof o, .condition = MNP_REFINE, .samples = SAMPLES, .gradients = 10, .seed = 5};
    CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
    CHECK(mnp_predictor_condition(p, &(mnp_set){2, x, y}) == MNP_OK);
    CHECK(mnp_predictor_draw(p, &o, NULL) == MNP_OK);
    CHECK(mnp_predictor_predict(p, at, 3, MNP_BASE_NORMAL, want) == MNP_OK);
    for (int i = 0; i < SAMPLES * 3; i++) CHECK(draws[i] == want[i]);
    mnp_predictor_destroy(p);
    mnp_table_destroy(seen);
    mnp_table_destroy(grid);
    mnp_model_destroy(m);
}

/* ---- quantiles and noise against the density ------------------------------------------------- */

enum { MANY = 20000, CELLS = 800 };

/* log p(y | two points) at x = 12, of a predictor that never draws. */
static void densities(const mnp_model *m, double lo, double hi, double out[CELLS]) {
    static double at[CELLS], y[CELLS];
    const double x[] = {0, 9}, seen[] = {4, 8};
    mnp_predictor *p = NULL;
    CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
    CHECK(mnp_predictor_condition(p, &(mnp_set){2, x, seen}) == MNP_OK);
    for (int i = 0; i < CELLS; i++) at[i] = 12, y[i] = lo + (hi - lo) * (i + 0.5) / CELLS;
    for (int i = 0; i < CELLS; i++) /* one at a time: its density, not that of all together */
        CHECK(mnp_predictor_logp(p, &(mnp_set){1, at + i, y + i}, out + i) == MNP_OK);
    mnp_predictor_destroy(p);
}

/* The share of the density below each quantile is its probability; the share of the smooth
 * functions' spread is less. */
static void quantiles_are_those_of_the_density(const char *process, const char *options) {
    CASE(process);
    static const double level[] = {0.025, 0.25, 0.5, 0.975};
    mnp_model *m = model_of("plants.csv", process, options, &plants);
    write_file("seen.csv", "plant,day,height\na,0,4\na,9,8\n");
    write_file("asked.csv", "plant,day\na,12\n");
    mnp_table *seen = table(m, "seen.csv", true), *asked = table(m, "asked.csv", false);
    double mean, sd, quantile[4], smooth_sd, logp[CELLS], first = 0, second = 0, total = 0;
    mnp_groups_opts o = {.size = sizeof o, .samples = MANY, .seed = 1};
    mnp_summary s = {.size = sizeof s,
                     .levels = 4,
                     .level = level,
                     .mean = &mean,
                     .sd = &sd,
                     .quantiles = quantile};
    CHECK(mnp_predict_groups(ctx, m, seen, asked, &o, &s) == MNP_OK);
    double lo = mean - 8 * sd, hi = mean + 8 * sd, cell = (hi - lo) / CELLS;
    densities(m, lo, hi, logp);
    for (int i = 0; i < CELLS; i++) {
        double y = lo + cell * (i + 0.5), p = cell * exp(logp[i]);
        total += p, first += p * y, second += p * y * y;
    }
    NEAR(total, 1, 1e-3, 0);
    NEAR(mean, first, 4 * sd / sqrt(MANY), 0);
    NEAR(sd, sqrt(second - first * first), 0.03 * sd, 0);
    for (int k = 0; k < 4; k++) {
        double below = 0;
        for (int i = 0; i < CELLS; i++)
            below += cell * exp(logp[i]) * fmin(1, fmax(0, (quantile[k] - lo) / cell - i));
        NEAR(below, level[k], 4 * sqrt(level[k] * (1 - level[k]) / MANY), 0);
    }
    o.smooth = 1;
    s = (mnp_summary){.size = sizeof s, .sd = &smooth_sd};
    CHECK(mnp_predict_groups(ctx, m, seen, asked, &o, &s) == MNP_OK);
    CHECK(smooth_sd > 0 && smooth_sd < 0.999 * sd);
    mnp_table_destroy(seen);
    mnp_table_destroy(asked);
    mnp_model_destroy(m);
}

static void quantiles_and_noise(void) {
    quantiles_are_those_of_the_density("lmm", NULL);
    quantiles_are_those_of_the_density("gp", "gp_mean=spline gp_periodic=off");
}

/* ---- tables as people have them -------------------------------------------------------------- */

static const mnp_data_opts cows = {.size = sizeof cows,
                                   .function_column = "farm,cow",
                                   .x_columns = "date,breed",
                                   .y_column = "milk,fat",
                                   .holdout = -1};

static void write_cows(void) {
    FILE *f = begin("cows.csv");
    fprintf(f, "farm,cow,date,breed,milk,fat\n");
    for (int c = 0; c < CURVES; c++)
        for (int i = 0; i < POINTS; i++)
            fprintf(f, "f%d,%d,2024-03-%02d,%s,%.6g,%.6g\n", c % 2, c / 2, 1 + 3 * i,
                    i       ? ""
                    : c % 3 ? "red"
                            : "black",
                    height(c, 3 * i), 0.01 * height(c + 50, 3 * i));
    CHECK(fclose(f) == 0);
}

/* The same asked in numbers: x is days, then red? and black?, then which output. */
static void rich_tables_are_the_same_numbers(void) {
    mnp_model *m = model_of("cows.csv", "lmm", NULL, &cows);
    write_file("seen.csv", "farm,cow,date,breed,milk,fat\nf9,1,2024-03-01,red,4.5,0.045\n"
                           "f9,1,2024-03-10,,7.5,\nf8,1,2024-03-10,black,7,0.07\n");
    write_file("asked.csv", "cow,farm,date\n1,f9,2024-03-20\n1,f8,2024-03-20\n");
    mnp_table *seen = table(m, "seen.csv", true), *asked = table(m, "asked.csv", false);
    CHECK(mnp_table_rows(seen) == 5 && mnp_table_groups(seen) == 2);
    CHECK(mnp_table_rows(asked) == 4 && mnp_table_groups(asked) == 2); /* each of two outputs */
    STREQ(mnp_table_cell(asked, 1, 3), "fat");
    CHECK(isnan(mnp_table_x(asked)[1])); /* the breed stands in the context */
    double mean[4], draws[SAMPLES * 4], by_hand[SAMPLES * 2];
    ask(m, seen, asked, MNP_NETWORK, mean, draws);
    const double *x = mnp_table_x(seen), *y = mnp_table_y(seen);
    double at[2][5]; /* date, black, red, milk, fat */
    CHECK(mnp_model_x_dim(m) == 5 && x[0] == 19783 && x[1] == 0 && x[2] == 1);
    for (int k = 0; k < 2; k++) {
        memcpy(at[k], x, sizeof at[k]);
        at[k][0] = 19783 + 19, at[k][3] = k == 0, at[k][4] = k == 1;
    }
    mnp_summary s = {.size = sizeof s, .draws = by_hand};
    mnp_many_opts o = {.size = sizeof o, .samples = SAMPLES, .base = MNP_BASE_NORMAL};
    uint64_t hash = 1469598103934665603u; /* FNV-1a of the curve's name, beside the seed */
    for (const char *c = "f9/1"; *c; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    o.seed = 5 + hash;
    mnp_set set = {3, x, y}, places = {2, at[0], NULL};
    CHECK(mnp_predict_many(ctx, m, &set, 1, &places, 1, &o, &s) == MNP_OK);
    for (int d = 0; d < SAMPLES; d++)
        for (int k = 0; k < 2; k++)
            CHECK(draws[d * 4 + k] == mnp_table_raw(asked, k, by_hand[d * 2 + k]));
    CHECK(mean[0] > 20 * mean[1]); /* in units of their own */
    mnp_table_destroy(seen);
    mnp_table_destroy(asked);
    mnp_model_destroy(m);
}

/* ---- what is doubtful ------------------------------------------------------------------------ */

static void warns(const mnp_model *m, const char *text, bool with_y, const char *line) {
    write_file("doubtful.csv", text);
    mnp_table *t = table(m, "doubtful.csv", with_y);
    CASE(line);
    if (!strstr(mnp_table_warnings(t), line)) printf("%s", mnp_table_warnings(t));
    CHECK(*line ? strstr(mnp_table_warnings(t), line) != NULL : !*mnp_table_warnings(t));
    mnp_table_destroy(t);
}

static void doubtful_tables(void) {
    mnp_model *m = model_of("plants.csv", "lmm", NULL, &plants);
    warns(m, "plant,day,height\na,0,4\na,21,9\n", true, "");
    warns(m, "plant,day\na,4\na,60\nb,70\n", false,
          ":3: day is 60, 39 beyond the training curves (0 to 21); 2 of 3 rows lie outside");
    warns(m, "plant,day,height\na,0,4\na,5,33\n", true, ":3: height is 33, ");
    warns(m, "plant,day,height\na,0,400\na,5,700\n", true, "height is about");
    warns(m, "plant,day,height\na,0,0.04\na,5,0.07\n", true, "times smaller than");
    warns(m, "plant,day,cm\na,0,4\na,5,7\n", true, "the column cm is taken for the model's height");
    warns(m, "id,day,height\na,0,4\na,5,7\nb,3,5\n", true,
          "the column id is taken for the model's plant");
    mnp_model_destroy(m);
    m = model_of("cows.csv", "lmm", NULL, &cows);
    warns(m, "farm,cow,date,breed,milk,fat\nf9,1,2024-03-01,blue,4.5,0.045\n", true,
          ":2: breed is blue, a category that the model has not seen (2 of 2 rows");
    warns(m, "farm,cow,date\nf9,1,2025-03-01\n", false,
          ":2: date is 2025-03-01, 344 days beyond the training curves (2024-03-01 to 2024-03-22)");
    mnp_model_destroy(m);
}

/* ---- points to score ------------------------------------------------------------------------- */

/* The breed of each cow stands in the context alone, in another order; said among the targets it is
 * theirs. */
static void targets_take_constants_of_the_context(void) {
    mnp_model *m = model_of("cows.csv", "lmm", "lmm_random=1", &cows);
    mnp_table *seen = NULL, *scored = NULL, *said = NULL;
    char path[2][400];
    write_file("seen.csv", "farm,cow,date,breed,milk,fat\nf9,1,2024-03-01,red,4.5,0.045\n"
                           "f8,1,2024-03-10,blue,7,0.07\n");
    write_file("scored.csv", "cow,farm,date,milk,fat\n1,f8,2024-03-20,5,0.05\n"
                             "1,f9,2024-03-21,6,0.06\n");
    write_file("said.csv", "cow,farm,date,breed,milk,fat\n1,f8,2024-03-20,blue,5,0.05\n"
                           "1,f9,2024-03-21,red,6,0.06\n");
    CHECK(mnp_table_open(ctx, m, path_of("seen.csv"), true, NULL, &seen) == MNP_OK);
    snprintf(path[0], sizeof path[0], "%s", path_of("scored.csv"));
    snprintf(path[1], sizeof path[1], "%s", path_of("said.csv"));
    CHECK(mnp_table_open_targets(ctx, m, path[0], seen, NULL, &scored) == MNP_OK);
    CHECK(mnp_table_open_targets(ctx, m, path[1], NULL, NULL, &said) == MNP_OK);
    size_t numbers = (size_t)mnp_table_rows(said) * (size_t)mnp_model_x_dim(m);
    CHECK(mnp_table_rows(scored) == 4 && mnp_table_rows(said) == 4);
    CHECK(memcmp(mnp_table_x(scored), mnp_table_x(said), numbers * sizeof(double)) == 0);
    CHECK(memcmp(mnp_table_y(scored), mnp_table_y(said), 4 * sizeof(double)) == 0);
    mnp_table_destroy(scored);
    CHECK(mnp_table_open_targets(ctx, m, path[0], NULL, NULL, &scored) == MNP_EFORMAT && !scored);
    CHECK(strstr(mnp_last_error(ctx), "breed is not given for the curve \"f8/1\""));
    mnp_table_destroy(seen);
    mnp_table_destroy(said);
    mnp_model_destroy(m);
}

/* ---- the way of drawing that a model notes --------------------------------------------------- */

static void the_noted_condition(void) {
    mnp_model *m = model_of("plants.csv", "np", NULL, &plants);
    mnp_condition how = MNP_NETWORK;
    CHECK(!mnp_model_condition(m, &how));
    CHECK(mnp_model_set_note(ctx, m, "condition", "exact") == MNP_OK);
    CHECK(mnp_model_condition(m, &how) && how == MNP_EXACT);
    CHECK(mnp_model_set_note(ctx, m, "condition", "best") == MNP_OK);
    CHECK(!mnp_model_condition(m, &how) && how == MNP_EXACT);
    mnp_model_destroy(m);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static mnp_status all_of_it(mnp_ctx *c, const mnp_model *m, mnp_table *t[5]) {
    char path[3][400];
    snprintf(path[0], sizeof path[0], "%s", path_of("seen.csv"));
    snprintf(path[1], sizeof path[1], "%s", path_of("asked.csv"));
    snprintf(path[2], sizeof path[2], "%s", path_of("scored.csv"));
    double mean[12], draws[24];
    mnp_groups_opts o = {.size = sizeof o, .samples = 2};
    mnp_summary s = {.size = sizeof s, .mean = mean, .draws = draws};
    mnp_status status = mnp_table_open(c, m, path[0], true, NULL, &t[0]);
    if (status == MNP_OK) status = mnp_table_open(c, m, path[1], false, NULL, &t[1]);
    if (status == MNP_OK) status = mnp_table_grid(c, m, "2024-03-01:2024-03-09:3", &t[2]);
    if (status == MNP_OK) status = mnp_table_spread(c, m, t[2], t[0], &t[3]);
    if (status == MNP_OK) status = mnp_predict_groups(c, m, t[0], t[3], &o, &s);
    if (status == MNP_OK) status = mnp_table_open_targets(c, m, path[2], t[0], NULL, &t[4]);
    return status;
}

static void every_allocation_may_fail(void) {
    mnp_model *m = model_of("cows.csv", "lmm", "lmm_random=1", &cows);
    write_file("seen.csv", "farm,cow,date,breed,milk,fat\nf9,1,2024-03-01,red,4.5,0.045\n"
                           "f8,1,2024-03-10,blue,7,0.07\n");
    write_file("asked.csv", "cow,farm,date\n1,f9,2024-03-20\n");
    write_file("scored.csv", "cow,farm,date,milk,fat\n1,f9,2024-03-20,5,0.05\n");
    mnp_status status = MNP_ENOMEM;
    for (long n = 0; status != MNP_OK && n < 20000; n++) {
        scarce memory = {.left = n};
        mnp_ctx_opts o = {
            .size = sizeof o, .threads = 1, .allocator = {scarce_alloc, scarce_free, &memory}};
        mnp_ctx *c = NULL;
        mnp_table *t[5] = {NULL};
        status = mnp_ctx_create(&o, &c);
        if (status == MNP_OK) status = all_of_it(c, m, t);
        CHECK(status == MNP_OK || status == MNP_ENOMEM);
        for (int k = 0; k < 5; k++) mnp_table_destroy(t[k]);
        mnp_ctx_destroy(c);
        CHECK(memory.live == 0);
    }
    CHECK(status == MNP_OK);
    mnp_model_destroy(m);
}

int main(void) {
    const char *tmp = getenv("TEST_TMP");
    snprintf(folder, sizeof folder, "%s", tmp ? tmp : "/tmp");
    CHECK(mnp_ctx_create(&(mnp_ctx_opts){.size = sizeof(mnp_ctx_opts), .threads = 2}, &ctx) ==
          MNP_OK);
    write_plants();
    write_cows();
    RUN(a_curve_does_not_see_the_others);
    RUN(one_curve_is_a_predictor);
    RUN(quantiles_and_noise);
    RUN(rich_tables_are_the_same_numbers);
    RUN(doubtful_tables);
    RUN(targets_take_constants_of_the_context);
    RUN(the_noted_condition);
    RUN(every_allocation_may_fail);
    mnp_ctx_destroy(ctx);
    return check_done();
}
