/* test_calls.c: every function of the public headers with every argument wrong in turn: NULL, not
 * finite, negative, too large, an enumeration's unknown value, a struct of a wrong size. Each is
 * refused with MNP_EINVAL and one line of text, hands out nothing and changes nothing; functions
 * without a status answer as mnp.h says. A function or an argument that is missing here fails. */
#include <unistd.h>

#include "contract/calls.h"
#include "mnp_check.h"
#include "mnp_plot.h"

enum { POINTS = 4, ACTIONS = 2 };

static const double xs[POINTS] = {-1, 0, 0.5, 1}, ys[POINTS] = {0.3, 1, -0.2, 0};
static const double bad_numbers[] = {NAN, INFINITY, -INFINITY};
static const char small[] = "T=2 rff=2 d_z=3 d_r=3 enc_width=4 head_hidden=4 flow_hidden=5 bins=3";
static const char *folder;

/* One of each. */
static struct {
    mnp_ctx *ctx;
    mnp_data *data;
    mnp_model *model, *decider;
    mnp_trainer *trainer;
    mnp_predictor *predictor;
    mnp_player *player;
    mnp_fit *fit;
} w;

static const char *path_of(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void open_world(void) {
    mnp_ctx_opts o = {.size = sizeof o, .threads = 1};
    mnp_set set = {POINTS, xs, ys};
    mnp_train_opts train = {.size = sizeof train, .options = "steps=2 batch=1 valid_functions=1"};
    CHECK(mnp_ctx_create(&o, &w.ctx) == MNP_OK);
    calls.ctx = w.ctx;
    CHECK(mnp_data_from_sets(w.ctx, &set, 1, 1, &w.data) == MNP_OK);
    CHECK(mnp_model_create(w.ctx, "mnp", "tiny", small, w.data, 1, &w.model) == MNP_OK);
    CHECK(mnp_model_create(w.ctx, "mnp", "wheel", "x_dim=3 d_z=3 d_r=3 enc_width=4 flow_hidden=5",
                           NULL, 1, &w.decider) == MNP_OK);
    CHECK(mnp_trainer_create(w.ctx, w.model, w.data, NULL, &train, &w.trainer) == MNP_OK);
    CHECK(mnp_predictor_create(w.ctx, w.model, NULL, &w.predictor) == MNP_OK);
    CHECK(mnp_player_create(w.ctx, w.decider, NULL, 1, ACTIONS, &w.player) == MNP_OK);
}

static void close_world(void) {
    mnp_ctx_destroy(w.ctx);
    mnp_data_destroy(w.data);
    mnp_model_destroy(w.model);
    mnp_model_destroy(w.decider);
    mnp_trainer_destroy(w.trainer);
    mnp_predictor_destroy(w.predictor);
    mnp_player_destroy(w.player);
}

/* A place that a failing call has to clear. */
#define NOT_NULL ((void *)(uintptr_t)1)
#define CLEARED(out)                                                                               \
    do {                                                                                           \
        CHECK((out) == NULL);                                                                      \
        (out) = NOT_NULL;                                                                          \
    } while (0)

/* ---- contexts -------------------------------------------------------------------------------- */

static void contexts(void) {
    ROOMY(mnp_ctx_opts, o);
    mnp_ctx *made = NOT_NULL;
    CALL(mnp_ctx_create);
    for (int k = 0; k < WRONG_SIZES; k++) {
        o.s.size = wrong_sizes[k];
        MUTE(0, mnp_ctx_create(&o.s, &made));
        CLEARED(made);
    }
    o.s.size = mnp_ctx_opts_first - 1;
    MUTE(0, mnp_ctx_create(&o.s, &made));
    o.s.size = sizeof o;
    o.bytes[sizeof o - 1] = 1;
    MUTE(0, mnp_ctx_create(&o.s, &made));
    o.bytes[sizeof o - 1] = 0;
    for (int k = 0; k < 3; k++) {
        o.s.threads = (int[]){-1, -5, INT32_MAX}[k];
        MUTE(0, mnp_ctx_create(&o.s, &made));
    }
    o.s.threads = 1;
    o.s.allocator.alloc = w.ctx->env.allocator.alloc;
    MUTE(0, mnp_ctx_create(&o.s, &made));
    o.s.allocator = (mnp_allocator){.free = w.ctx->env.allocator.free};
    MUTE(0, mnp_ctx_create(&o.s, &made));
    o.s.allocator.free = NULL;
    MUTE(1, mnp_ctx_create(&o.s, NULL));
    GIVES(0, mnp_ctx_create(&o.s, &made) == MNP_OK); /* larger, and its tail is zero */
    mnp_ctx_destroy(made);
    GIVES(0, mnp_ctx_create(NULL, &made) == MNP_OK);
    CALL(mnp_ctx_destroy);
    RETURNS(0, mnp_ctx_destroy(NULL));
    mnp_ctx_destroy(made);
    CALL(mnp_last_error);
    GIVES(0, *mnp_last_error(NULL) == '\0');
    CALL(mnp_status_name);
    GIVES(0, *mnp_status_name((mnp_status)77) && *mnp_status_name((mnp_status)-1));
    CALL(mnp_version);
    CHECK(strcmp(mnp_version(), MNP_VERSION) == 0);
}

static void jobs(void) {
    ROOMY(mnp_job_opts, o);
    int64_t lo = 7, hi = 7;
    double numbers[POINTS] = {0};
    CALL(mnp_job_join);
    MUTE(0, mnp_job_join(NULL, NULL));
    BAD_OPTS(1, mnp_job_opts, o, mnp_job_join(w.ctx, &o.s));
    for (int k = 0; k < 3; k++) BAD_FIELD(1, o, timeout, bad_numbers[k], mnp_job_join(w.ctx, &o.s));
    BAD_FIELD(1, o, timeout, -1, mnp_job_join(w.ctx, &o.s));
    CALL(mnp_job_rank);
    GIVES(0, mnp_job_rank(NULL) == 0);
    CALL(mnp_job_size);
    GIVES(0, mnp_job_size(NULL) == 1);
    CALL(mnp_job_suspend);
    RETURNS(0, mnp_job_suspend(NULL));
    CALL(mnp_job_resume);
    RETURNS(0, mnp_job_resume(NULL));
    CALL(mnp_job_barrier);
    MUTE(0, mnp_job_barrier(NULL));
    CALL(mnp_job_broadcast);
    MUTE(0, mnp_job_broadcast(NULL, numbers, sizeof numbers));
    BAD(1, mnp_job_broadcast(w.ctx, NULL, 8));
    BAD(2, mnp_job_broadcast(w.ctx, numbers, SIZE_MAX));
    CALL(mnp_job_split);
    MUTE(0, mnp_job_split(NULL, 4, 1, &lo, &hi));
    BAD(1, mnp_job_split(w.ctx, -5, 1, &lo, &hi));
    BAD(1, mnp_job_split(w.ctx, INT64_MAX, 1, &lo, &hi));
    BAD(2, mnp_job_split(w.ctx, 4, 0, &lo, &hi));
    BAD(2, mnp_job_split(w.ctx, 4, -1, &lo, &hi));
    BAD(2, mnp_job_split(w.ctx, 4, INT64_MAX, &lo, &hi));
    BAD(3, mnp_job_split(w.ctx, 4, 1, NULL, &hi));
    BAD(4, mnp_job_split(w.ctx, 4, 1, &lo, NULL));
    CHECK(lo == 7 && hi == 7);
    CALL(mnp_job_gather);
    MUTE(0, mnp_job_gather(NULL, numbers, 4, 1, 8));
    BAD(1, mnp_job_gather(w.ctx, NULL, 4, 1, 8));
    BAD(2, mnp_job_gather(w.ctx, numbers, -1, 1, 8));
    BAD(3, mnp_job_gather(w.ctx, numbers, 4, 0, 8));
    BAD(3, mnp_job_gather(w.ctx, numbers, 4, -2, 8));
    BAD(4, mnp_job_gather(w.ctx, numbers, 4, 1, 0));
    BAD(4, mnp_job_gather(w.ctx, numbers, 4, 1, SIZE_MAX));
    CALL(mnp_job_heartbeat);
    RETURNS(0, mnp_job_heartbeat(NULL));
    CALL(mnp_job_leave);
    RETURNS(0, mnp_job_leave(NULL));
    CALL(mnp_job_abort);
    GIVES(0, mnp_job_abort(NULL, "why"));
    GIVES(1, mnp_job_abort(w.ctx, NULL));
}

/* ---- data ------------------------------------------------------------------------------------ */

static void opening_data(void) {
    ROOMY(mnp_data_opts, o);
    mnp_data *made = NOT_NULL;
    CALL(mnp_data_open);
    MUTE(0, mnp_data_open(NULL, "rbf", NULL, &made));
    CLEARED(made);
    BAD(1, mnp_data_open(w.ctx, NULL, NULL, &made));
    CLEARED(made);
    BAD(1, mnp_data_open(w.ctx, "", NULL, &made));
    BAD(1, mnp_data_open(w.ctx, "no-such-family", NULL, &made));
    BAD_OPTS(2, mnp_data_opts, o, mnp_data_open(w.ctx, "rbf", &o.s, &made));
    CLEARED(made);
    BAD_FIELD(2, o, split, (mnp_split)9, mnp_data_open(w.ctx, "rbf", &o.s, &made));
    BAD_FIELD(2, o, split, (mnp_split)-1, mnp_data_open(w.ctx, "rbf", &o.s, &made));
    BAD_FIELD(2, o, functions, -1, mnp_data_open(w.ctx, "rbf", &o.s, &made));
    BAD_FIELD(2, o, functions, INT64_MAX, mnp_data_open(w.ctx, "rbf", &o.s, &made));
    for (int k = 0; k < 3; k++) {
        BAD_FIELD(2, o, holdout, bad_numbers[k], mnp_data_open(w.ctx, "rbf", &o.s, &made));
        BAD_FIELD(2, o, test, bad_numbers[k], mnp_data_open(w.ctx, "rbf", &o.s, &made));
    }
    BAD(3, mnp_data_open(w.ctx, "rbf", NULL, NULL));
    o.s.functions = 2;
    o.s.size = sizeof o;
    CHECK(mnp_data_open(w.ctx, "rbf", &o.s, &made) == MNP_OK); /* its tail is zero */
    mnp_data_destroy(made);
    made = NOT_NULL;
    const char text[] = "id,x,y\na,0,1\na,1,2\nb,0,3\nb,1,5\n";
    CALL(mnp_data_open_memory);
    MUTE(0, mnp_data_open_memory(NULL, text, sizeof text - 1, NULL, &made));
    CLEARED(made);
    BAD(1, mnp_data_open_memory(w.ctx, NULL, 1, NULL, &made));
    CLEARED(made);
    GIVES(2, mnp_data_open_memory(w.ctx, text, 0, NULL, &made) == MNP_EFORMAT);
    GIVES(2, mnp_data_open_memory(w.ctx, text, SIZE_MAX, NULL, &made) == MNP_EFORMAT);
    CLEARED(made);
    BAD_OPTS(3, mnp_data_opts, o, mnp_data_open_memory(w.ctx, text, sizeof text - 1, &o.s, &made));
    BAD(4, mnp_data_open_memory(w.ctx, text, sizeof text - 1, NULL, NULL));
    mnp_data_opts all = {.size = sizeof all, .holdout = -1};
    CHECK(mnp_data_open_memory(w.ctx, text, sizeof text - 1, &all, &made) == MNP_OK);
    CHECK(mnp_data_functions(made) == 2 && strcmp(mnp_data_group_name(made), "id") == 0);
    mnp_data_destroy(made);
    made = NOT_NULL;
    CALL(mnp_data_reopen);
    MUTE(0, mnp_data_reopen(NULL, w.model, MNP_TEST, 2, NULL, &made));
    CLEARED(made);
    BAD(1, mnp_data_reopen(w.ctx, NULL, MNP_TEST, 2, NULL, &made));
    BAD(1, mnp_data_reopen(w.ctx, w.model, MNP_TEST, 2, NULL, &made)); /* made from arrays */
    CLEARED(made);
    BAD(2, mnp_data_reopen(w.ctx, w.model, (mnp_split)9, 2, NULL, &made));
    BAD(3, mnp_data_reopen(w.ctx, w.model, MNP_TEST, -1, NULL, &made));
    BAD(3, mnp_data_reopen(w.ctx, w.model, MNP_TEST, INT64_MAX, NULL, &made));
    GIVES(4, mnp_data_reopen(w.ctx, w.model, MNP_TEST, 2, "", &made) == MNP_EINVAL);
    BAD(5, mnp_data_reopen(w.ctx, w.model, MNP_TEST, 2, NULL, NULL));
    CHECK(mnp_data_open(w.ctx, "rbf", &o.s, &made) == MNP_OK);
    CALL(mnp_data_destroy);
    RETURNS(0, mnp_data_destroy(NULL));
    mnp_data_destroy(made);
}

static void data_from_sets(void) {
    mnp_data *made = NOT_NULL;
    mnp_set good = {POINTS, xs, ys};
    CALL(mnp_data_from_sets);
    MUTE(0, mnp_data_from_sets(NULL, &good, 1, 1, &made));
    CLEARED(made);
    BAD(1, mnp_data_from_sets(w.ctx, NULL, 1, 1, &made));
    CLEARED(made);
    const mnp_set wrong[] = {{0, xs, ys},         {-1, xs, ys},       {INT64_MAX, xs, ys},
                             {POINTS, NULL, ys},  {POINTS, xs, NULL}, {POINTS, bad_numbers, ys},
                             {3, xs, bad_numbers}};
    for (int k = 0; k < 7; k++) {
        mnp_set set = wrong[k];
        if (set.x == bad_numbers) set.n = 3;
        BAD(1, mnp_data_from_sets(w.ctx, &set, 1, 1, &made));
        CLEARED(made);
    }
    BAD(2, mnp_data_from_sets(w.ctx, &good, 0, 1, &made));
    BAD(2, mnp_data_from_sets(w.ctx, &good, -1, 1, &made));
    BAD(2, mnp_data_from_sets(w.ctx, &good, INT64_MAX, 1, &made));
    BAD(3, mnp_data_from_sets(w.ctx, &good, 1, 0, &made));
    BAD(3, mnp_data_from_sets(w.ctx, &good, 1, -1, &made));
    BAD(3, mnp_data_from_sets(w.ctx, &good, 1, INT64_MAX, &made));
    BAD(4, mnp_data_from_sets(w.ctx, &good, 1, 1, NULL));
}

static void cells_of_a_table(const mnp_table *t) {
    CALL(mnp_table_columns);
    GIVES(0, mnp_table_columns(NULL) == 0 && mnp_table_columns(t) == 2);
    CALL(mnp_table_column);
    GIVES(0, !mnp_table_column(NULL, 0));
    GIVES(1,
          !mnp_table_column(t, -1) && !mnp_table_column(t, 2) && mnp_table_column(t, 1)[0] == 'y');
    CALL(mnp_table_column_is);
    GIVES(0, mnp_table_column_is(NULL, 0) == MNP_COLUMN_OTHER);
    GIVES(1, mnp_table_column_is(t, -1) == MNP_COLUMN_OTHER &&
                 mnp_table_column_is(t, 0) == MNP_COLUMN_NUMBER &&
                 mnp_table_column_is(t, 1) == MNP_COLUMN_Y);
    CALL(mnp_table_cell);
    GIVES(0, !mnp_table_cell(NULL, 0, 0));
    GIVES(1, !mnp_table_cell(t, -1, 0) && !mnp_table_cell(t, 2, 0));
    GIVES(2, !mnp_table_cell(t, 0, -1) && !mnp_table_cell(t, 0, 2) &&
                 mnp_table_cell(t, 1, 1)[0] == '2');
    CALL(mnp_table_x_column);
    GIVES(0, mnp_table_x_column(NULL, 0) == -1);
    GIVES(1, mnp_table_x_column(t, -1) == -1 && mnp_table_x_column(t, 1) == -1 &&
                 mnp_table_x_column(t, 0) == 0);
}

static void tables_for_a_model(void) {
    ROOMY(mnp_data_opts, o);
    mnp_table *made = NOT_NULL;
    const char *csv = path_of("points.csv");
    FILE *f = fopen(csv, "w");
    CHECK(f && fputs("x,y\n0,1\n1,2\n", f) >= 0 && fclose(f) == 0);
    CALL(mnp_table_open);
    MUTE(0, mnp_table_open(NULL, w.model, csv, true, NULL, &made));
    CLEARED(made);
    BAD(1, mnp_table_open(w.ctx, NULL, csv, true, NULL, &made));
    CLEARED(made);
    BAD(2, mnp_table_open(w.ctx, w.model, NULL, true, NULL, &made));
    GIVES(3, mnp_table_open(w.ctx, w.model, csv, false, NULL, &made) == MNP_OK);
    CHECK(mnp_table_rows(made) == 2 && !mnp_table_y(made) && mnp_table_x(made)[1] == 1);
    mnp_table_destroy(made);
    made = NOT_NULL;
    BAD_OPTS(4, mnp_data_opts, o, mnp_table_open(w.ctx, w.model, csv, true, &o.s, &made));
    CLEARED(made);
    BAD(5, mnp_table_open(w.ctx, w.model, csv, true, NULL, NULL));
    CHECK(mnp_table_open(w.ctx, w.model, csv, true, NULL, &made) == MNP_OK);
    const char text[] = "x,y\n0,1\n1,2\n3,4\n";
    mnp_table *other = NOT_NULL;
    CALL(mnp_table_open_memory);
    MUTE(0, mnp_table_open_memory(NULL, w.model, "t", text, 16, true, NULL, &other));
    CLEARED(other);
    BAD(1, mnp_table_open_memory(w.ctx, NULL, "t", text, 16, true, NULL, &other));
    BAD(2, mnp_table_open_memory(w.ctx, w.model, NULL, text, 16, true, NULL, &other));
    BAD(3, mnp_table_open_memory(w.ctx, w.model, "t", NULL, 16, true, NULL, &other));
    CLEARED(other);
    GIVES(4,
          mnp_table_open_memory(w.ctx, w.model, "t", text, 0, true, NULL, &other) == MNP_EFORMAT);
    GIVES(4, mnp_table_open_memory(w.ctx, w.model, "t", text, SIZE_MAX, true, NULL, &other) ==
                 MNP_EFORMAT);
    CLEARED(other);
    GIVES(5, mnp_table_open_memory(w.ctx, w.model, "t", text, 16, false, NULL, &other) == MNP_OK);
    CHECK(mnp_table_rows(other) == 3 && !mnp_table_y(other) && mnp_table_x(other)[2] == 3);
    mnp_table_destroy(other);
    BAD_OPTS(6, mnp_data_opts, o,
             mnp_table_open_memory(w.ctx, w.model, "t", text, 16, true, &o.s, &other));
    BAD(7, mnp_table_open_memory(w.ctx, w.model, "t", text, 16, true, NULL, NULL));
    CHECK(mnp_table_open_memory(w.ctx, w.model, "t", text, 12, true, NULL, &other) == MNP_OK);
    CHECK(mnp_table_rows(other) == 2 && mnp_table_y(other)[1] == 2); /* it ends where it is told */
    mnp_table_destroy(other);
    CALL(mnp_table_rows);
    GIVES(0, mnp_table_rows(NULL) == 0);
    CALL(mnp_table_x);
    GIVES(0, !mnp_table_x(NULL));
    CALL(mnp_table_y);
    GIVES(0, !mnp_table_y(NULL) && mnp_table_y(made)[1] == 2);
    CALL(mnp_table_groups);
    GIVES(0, mnp_table_groups(NULL) == 0 && mnp_table_groups(made) == 1);
    CALL(mnp_table_group);
    GIVES(0, mnp_table_group(NULL, 0) == -1);
    GIVES(1, mnp_table_group(made, -1) == -1 && mnp_table_group(made, 2) == -1);
    CALL(mnp_table_group_name);
    GIVES(0, !mnp_table_group_name(NULL, 0));
    GIVES(1, !mnp_table_group_name(made, -1) && !mnp_table_group_name(made, 1));
    CALL(mnp_table_find);
    GIVES(0, mnp_table_find(NULL, "") == -1);
    GIVES(1, mnp_table_find(made, NULL) == -1 && mnp_table_find(made, "a") == -1 &&
                 mnp_table_find(made, "") == 0);
    CALL(mnp_table_group_rows);
    GIVES(0, mnp_table_group_rows(NULL, 0) == 0);
    GIVES(1, mnp_table_group_rows(made, -1) == 0 && mnp_table_group_rows(made, 1) == 0 &&
                 mnp_table_group_rows(made, 0) == 2);
    CALL(mnp_table_raw);
    GIVES(0, isnan(mnp_table_raw(NULL, 0, 1)));
    GIVES(1, isnan(mnp_table_raw(made, -1, 1)) && isnan(mnp_table_raw(made, 2, 1)));
    GIVES(2, isnan(mnp_table_raw(made, 0, NAN)) && mnp_table_raw(made, 1, 3) == 3);
    CALL(mnp_table_warnings);
    GIVES(0, *mnp_table_warnings(NULL) == '\0');
    CALL(mnp_table_report);
    GIVES(0, *mnp_table_report(NULL) == '\0');
    cells_of_a_table(made);
    CALL(mnp_table_destroy);
    RETURNS(0, mnp_table_destroy(NULL));
    mnp_table_destroy(made);
    unlink(csv);
}

static void data_answers(void) {
    int64_t rows = 7, cols = 7;
    const char *help = "unset";
    CALL(mnp_data_functions);
    GIVES(0, mnp_data_functions(NULL) == 0);
    CALL(mnp_data_points);
    GIVES(0, mnp_data_points(NULL) == 0);
    CALL(mnp_data_x_dim);
    GIVES(0, mnp_data_x_dim(NULL) == 0);
    CALL(mnp_data_grid);
    RETURNS(0, mnp_data_grid(NULL, &rows, &cols));
    CHECK(rows == 0 && cols == 0);
    RETURNS(1, mnp_data_grid(w.data, NULL, &cols));
    RETURNS(2, mnp_data_grid(w.data, &rows, NULL));
    CALL(mnp_data_noise);
    GIVES(0, isnan(mnp_data_noise(NULL)));
    CALL(mnp_data_seed);
    GIVES(0, mnp_data_seed(NULL) == 0 && mnp_data_seed(w.data) == 0);
    CALL(mnp_data_preset);
    GIVES(0, strcmp(mnp_data_preset(NULL), "paper") == 0);
    CALL(mnp_data_path);
    GIVES(0, !mnp_data_path(NULL) && !mnp_data_path(""));
    CALL(mnp_data_name);
    GIVES(0, *mnp_data_name(NULL) == '\0');
    CALL(mnp_data_report);
    GIVES(0, *mnp_data_report(NULL) == '\0');
    CALL(mnp_data_warnings);
    GIVES(0, *mnp_data_warnings(NULL) == '\0');
    CHECK(*mnp_data_warnings(w.data) == '\0');
    CALL(mnp_data_x_name);
    GIVES(0, mnp_data_x_name(NULL, 0) == NULL);
    GIVES(1, !mnp_data_x_name(w.data, -1) && !mnp_data_x_name(w.data, 1) &&
                 !mnp_data_x_name(w.data, INT64_MAX));
    CALL(mnp_data_group_name);
    GIVES(0, *mnp_data_group_name(NULL) == '\0' && *mnp_data_group_name(w.data) == '\0');
    CALL(mnp_data_y_name);
    GIVES(0, *mnp_data_y_name(NULL) == '\0');
    CALL(mnp_data_x_origin);
    GIVES(0, mnp_data_x_origin(NULL, 0) == 0);
    GIVES(1, mnp_data_x_origin(w.data, -1) == 0 && mnp_data_x_origin(w.data, INT64_MAX) == 0);
    CALL(mnp_data_y_origin);
    GIVES(0, mnp_data_y_origin(NULL) == 0);
    CALL(mnp_data_family);
    GIVES(0, mnp_data_family(-1, &help) == NULL && !help);
    help = "unset";
    GIVES(0, mnp_data_family(INT32_MAX, &help) == NULL && !help);
    GIVES(1, mnp_data_family(0, NULL) != NULL);
}

static void data_calls(void) {
    int64_t n = 7;
    const float *x = NULL, *y = NULL;
    CALL(mnp_data_function);
    MUTE(0, mnp_data_function(NULL, w.data, 0, &n, &x, &y));
    BAD(1, mnp_data_function(w.ctx, NULL, 0, &n, &x, &y));
    BAD(2, mnp_data_function(w.ctx, w.data, -1, &n, &x, &y));
    BAD(2, mnp_data_function(w.ctx, w.data, 1, &n, &x, &y));
    BAD(2, mnp_data_function(w.ctx, w.data, INT64_MAX, &n, &x, &y));
    BAD(3, mnp_data_function(w.ctx, w.data, 0, NULL, &x, &y));
    BAD(4, mnp_data_function(w.ctx, w.data, 0, &n, NULL, &y));
    BAD(5, mnp_data_function(w.ctx, w.data, 0, &n, &x, NULL));
    CHECK(n == 7 && !x && !y);
    CALL(mnp_data_write_csv);
    MUTE(0, mnp_data_write_csv(NULL, w.data, path_of("d.csv")));
    BAD(1, mnp_data_write_csv(w.ctx, NULL, path_of("d.csv")));
    BAD(2, mnp_data_write_csv(w.ctx, w.data, NULL));
    CALL(mnp_data_write_npz);
    MUTE(0, mnp_data_write_npz(NULL, w.data, 0, path_of("d.npz")));
    BAD(1, mnp_data_write_npz(w.ctx, NULL, 0, path_of("d.npz")));
    BAD(3, mnp_data_write_npz(w.ctx, w.data, 0, NULL));
    BAD(1, mnp_data_write_npz(w.ctx, w.data, 0, path_of("d.npz"))); /* no built-in family */
    CHECK(access(path_of("d.npz"), F_OK) != 0);
    mnp_data *drawn = NULL;
    mnp_data_opts few = {.size = sizeof few, .functions = 1};
    CHECK(mnp_data_open(w.ctx, "rbf", &few, &drawn) == MNP_OK);
    GIVES(2, mnp_data_write_npz(w.ctx, drawn, UINT64_MAX, path_of("d.npz")) == MNP_OK);
    mnp_data_destroy(drawn);
    unlink(path_of("d.npz"));
    CHECK(access(path_of("d.csv"), F_OK) != 0);
}

/* ---- models ---------------------------------------------------------------------------------- */

static void models(void) {
    mnp_model *made = NOT_NULL;
    CALL(mnp_model_create);
    MUTE(0, mnp_model_create(NULL, "mnp", NULL, NULL, NULL, 1, &made));
    CLEARED(made);
    BAD(1, mnp_model_create(w.ctx, "no-such-process", NULL, NULL, NULL, 1, &made));
    CLEARED(made);
    BAD(2, mnp_model_create(w.ctx, "mnp", "no-such-preset", NULL, NULL, 1, &made));
    BAD(3, mnp_model_create(w.ctx, "mnp", "tiny", "T=nan", NULL, 1, &made));
    BAD(3, mnp_model_create(w.ctx, "mnp", "tiny", "no-such-option=1", NULL, 1, &made));
    BAD(4, mnp_model_create(w.ctx, "oracle", NULL, NULL, NULL, 1, &made)); /* it needs a family */
    BAD(4, mnp_model_create(w.ctx, "oracle", NULL, NULL, w.data, 1, &made));
    CLEARED(made);
    GIVES(5, mnp_model_create(w.ctx, NULL, "tiny", small, NULL, UINT64_MAX, &made) == MNP_OK);
    BAD(6, mnp_model_create(w.ctx, "mnp", "tiny", small, NULL, 1, NULL));
    mnp_model *other = NOT_NULL;
    CALL(mnp_model_create_from);
    MUTE(0, mnp_model_create_from(NULL, w.model, w.data, &other));
    CLEARED(other);
    BAD(1, mnp_model_create_from(w.ctx, NULL, w.data, &other));
    CLEARED(other);
    BAD(2, mnp_model_create_from(w.ctx, w.model, NULL, &other));
    BAD(3, mnp_model_create_from(w.ctx, w.model, w.data, NULL));
    CALL(mnp_model_extend);
    other = NOT_NULL;
    MUTE(0, mnp_model_extend(NULL, w.model, NULL, w.data, 1, &other));
    CLEARED(other);
    BAD(1, mnp_model_extend(w.ctx, NULL, NULL, w.data, 1, &other));
    CLEARED(other);
    BAD(2, mnp_model_extend(w.ctx, w.model, "d_z=nan", w.data, 1, &other));
    CLEARED(other);
    BAD(3, mnp_model_extend(w.ctx, w.model, NULL, NULL, 1, &other));
    GIVES(4, mnp_model_extend(w.ctx, w.model, NULL, w.data, UINT64_MAX, &other) == MNP_OK);
    mnp_model_destroy(other);
    BAD(5, mnp_model_extend(w.ctx, w.model, NULL, w.data, 1, NULL));
    CALL(mnp_model_destroy);
    RETURNS(0, mnp_model_destroy(NULL));
    mnp_model_destroy(made);
    CALL(mnp_model_load);
    made = NOT_NULL;
    MUTE(0, mnp_model_load(NULL, path_of("m"), &made));
    CLEARED(made);
    BAD(1, mnp_model_load(w.ctx, NULL, &made));
    CLEARED(made);
    BAD(2, mnp_model_load(w.ctx, path_of("m"), NULL));
    static const char no_model[] = "{}, and no model at all";
    CALL(mnp_model_load_memory);
    MUTE(0, mnp_model_load_memory(NULL, no_model, sizeof no_model, &made));
    CLEARED(made);
    BAD(1, mnp_model_load_memory(w.ctx, NULL, sizeof no_model, &made));
    BAD(1, mnp_model_load_memory(w.ctx, NULL, 0, &made));
    CLEARED(made);
    BAD(2, mnp_model_load_memory(w.ctx, no_model, SIZE_MAX, &made));
    BAD(3, mnp_model_load_memory(w.ctx, no_model, sizeof no_model, NULL));
    CHECK(mnp_model_load_memory(w.ctx, no_model, sizeof no_model, &made) == MNP_EFORMAT);
    CLEARED(made);
    char bytes[8] = "unset";
    size_t length = 7;
    CALL(mnp_model_save_memory);
    MUTE(0, mnp_model_save_memory(NULL, w.model, NULL, 0, &length));
    BAD(1, mnp_model_save_memory(w.ctx, NULL, NULL, 0, &length));
    BAD(2, mnp_model_save_memory(w.ctx, w.model, NULL, 8, &length));
    BAD(3, mnp_model_save_memory(w.ctx, w.model, bytes, sizeof bytes, &length)); /* too few */
    BAD(3, mnp_model_save_memory(w.ctx, w.model, bytes, SIZE_MAX, &length));
    BAD(4, mnp_model_save_memory(w.ctx, w.model, NULL, 0, NULL));
    CHECK(length == 7 && strcmp(bytes, "unset") == 0);
    CALL(mnp_model_save);
    MUTE(0, mnp_model_save(NULL, w.model, path_of("m")));
    BAD(1, mnp_model_save(w.ctx, NULL, path_of("m")));
    BAD(2, mnp_model_save(w.ctx, w.model, NULL));
    CALL(mnp_model_save_half);
    MUTE(0, mnp_model_save_half(NULL, w.model, path_of("m")));
    BAD(1, mnp_model_save_half(w.ctx, NULL, path_of("m")));
    BAD(2, mnp_model_save_half(w.ctx, w.model, NULL));
    CHECK(access(path_of("m"), F_OK) != 0);
}

static void tensors(void) {
    ROOMY(mnp_tensor, t);
    const char *name = mnp_model_tensor_name(w.model, 0);
    CALL(mnp_model_tensor_name);
    GIVES(0, mnp_model_tensor_name(NULL, 0) == NULL);
    GIVES(1, name && !mnp_model_tensor_name(w.model, -1) &&
                 !mnp_model_tensor_name(w.model, INT64_MAX));
    CALL(mnp_model_tensor);
    MUTE(0, mnp_model_tensor(NULL, w.model, name, &t.s));
    BAD(1, mnp_model_tensor(w.ctx, NULL, name, &t.s));
    BAD(2, mnp_model_tensor(w.ctx, w.model, NULL, &t.s));
    BAD(2, mnp_model_tensor(w.ctx, w.model, "no-such-tensor", &t.s));
    BAD(3, mnp_model_tensor(w.ctx, w.model, name, NULL));
    BAD_SIZES(3, mnp_tensor, t, mnp_model_tensor(w.ctx, w.model, name, &t.s));
    CHECK(!t.s.data && mnp_model_tensor(w.ctx, w.model, name, &t.s) == MNP_OK && t.s.data);
}

static void model_answers(void) {
    CALL(mnp_model_parameters);
    GIVES(0, mnp_model_parameters(NULL) == 0);
    CALL(mnp_model_x_dim);
    GIVES(0, mnp_model_x_dim(NULL) == 0);
    CALL(mnp_model_steps);
    GIVES(0, mnp_model_steps(NULL) == 0);
    CALL(mnp_model_latent);
    GIVES(0, mnp_model_latent(NULL) == 0);
    CALL(mnp_model_factorises);
    GIVES(0, !mnp_model_factorises(NULL));
    CALL(mnp_model_attends);
    GIVES(0, !mnp_model_attends(NULL));
    double lo = 7, hi = 7;
    char number[16] = "kept";
    CALL(mnp_model_range);
    GIVES(0, !mnp_model_range(NULL, 0, &lo, &hi));
    GIVES(1, !mnp_model_range(w.model, -1, &lo, &hi) && !mnp_model_range(w.model, 99, &lo, &hi));
    GIVES(2, !mnp_model_range(w.model, 0, NULL, &hi));
    GIVES(3, !mnp_model_range(w.model, 0, &lo, NULL) && lo == 7 && hi == 7);
    CALL(mnp_model_context_max);
    GIVES(0, mnp_model_context_max(NULL) == 0);
    CALL(mnp_model_noise);
    GIVES(0, isnan(mnp_model_noise(NULL)));
    CALL(mnp_model_learned);
    char learned[64];
    GIVES(0, mnp_model_learned(NULL, learned, sizeof learned) == 0 && learned[0] == '\0');
    GIVES(1, mnp_model_learned(w.model, NULL, sizeof learned) == 0); /* a network */
    GIVES(2, mnp_model_learned(w.model, learned, 0) == 0);
    CALL(mnp_model_text);
    GIVES(0, (mnp_model_text(NULL, 0, 1.5, number, sizeof number), strcmp(number, "1.5") == 0));
    GIVES(1, (mnp_model_text(w.model, -1, 2.5, number, sizeof number), strcmp(number, "2.5") == 0));
    RETURNS(2, mnp_model_text(w.model, 0, NAN, number, sizeof number));
    RETURNS(3, mnp_model_text(w.model, 0, 1, NULL, sizeof number));
    RETURNS(4, mnp_model_text(w.model, 0, 1, number, 0));
    CALL(mnp_model_distance);
    GIVES(0, isnan(mnp_model_distance(NULL, 0, 0)));
    GIVES(1, isnan(mnp_model_distance(w.model, -1, 0)) && isnan(mnp_model_distance(w.model, 2, 0)));
    GIVES(2, isnan(mnp_model_distance(w.model, 0, NAN)) && mnp_model_distance(w.model, 0, 9) > 0);
    CALL(mnp_model_options);
    GIVES(0, *mnp_model_options(NULL) == '\0');
    CALL(mnp_model_note);
    GIVES(0, mnp_model_note(NULL, "seed") == NULL);
    GIVES(1, mnp_model_note(w.model, NULL) == NULL);
    CALL(mnp_model_note_key);
    GIVES(0, mnp_model_note_key(NULL, 0) == NULL);
    GIVES(1, !mnp_model_note_key(w.model, -1) && !mnp_model_note_key(w.model, INT32_MAX));
    CALL(mnp_model_set_note);
    MUTE(0, mnp_model_set_note(NULL, w.model, "who", "me"));
    BAD(1, mnp_model_set_note(w.ctx, NULL, "who", "me"));
    BAD(2, mnp_model_set_note(w.ctx, w.model, NULL, "me"));
    BAD(2, mnp_model_set_note(w.ctx, w.model, "", "me"));
    BAD(2, mnp_model_set_note(w.ctx, w.model, "mnp.options", "T=3")); /* the file's own */
    GIVES(3, mnp_model_set_note(w.ctx, w.model, "who", NULL) == MNP_OK);
}

/* The length of a plan is 0 where an argument is wrong, with a line of text. */
static size_t plan_of(mnp_ctx *ctx, const mnp_model *m, int64_t points, int64_t context, char *out,
                      size_t size) {
    size_t length = mnp_model_plan(ctx, m, points, context, out, size);
    CHECK(length > 0 || calls_one_line());
    return length;
}

static void plans(void) {
    char text[64] = "unset";
    CALL(mnp_model_plan);
    GIVES(0, mnp_model_plan(NULL, w.model, 10, 5, text, sizeof text) == 0 && !*text);
    GIVES(1, plan_of(w.ctx, NULL, 10, 5, text, sizeof text) == 0);
    GIVES(2, plan_of(w.ctx, w.model, 0, 0, text, sizeof text) == 0);
    GIVES(2, plan_of(w.ctx, w.model, -1, 0, text, sizeof text) == 0);
    GIVES(2, plan_of(w.ctx, w.model, INT64_MAX, 0, text, sizeof text) == 0);
    GIVES(3, plan_of(w.ctx, w.model, 10, -1, text, sizeof text) == 0);
    GIVES(3, plan_of(w.ctx, w.model, 10, 11, text, sizeof text) == 0);
    GIVES(4, plan_of(w.ctx, w.model, 10, 5, NULL, sizeof text) == 0);
    GIVES(5, plan_of(w.ctx, w.model, 10, 5, NULL, 0) > 0);
    GIVES(5, plan_of(w.ctx, w.model, 10, 5, text, 1) > 0 && !*text);
}

/* ---- training -------------------------------------------------------------------------------- */

static void trainers(void) {
    ROOMY(mnp_train_opts, o);
    mnp_trainer *made = NOT_NULL;
    CALL(mnp_trainer_create);
    MUTE(0, mnp_trainer_create(NULL, w.model, w.data, NULL, NULL, &made));
    CLEARED(made);
    BAD(1, mnp_trainer_create(w.ctx, NULL, w.data, NULL, NULL, &made));
    CLEARED(made);
    BAD(1, mnp_trainer_create(w.ctx, w.decider, w.data, NULL, NULL, &made)); /* 3 inputs */
    BAD(2, mnp_trainer_create(w.ctx, w.model, NULL, NULL, NULL, &made));
    GIVES(3, mnp_trainer_create(w.ctx, w.model, w.data, w.data, NULL, &made) == MNP_OK);
    CALL(mnp_trainer_destroy);
    RETURNS(0, mnp_trainer_destroy(NULL));
    mnp_trainer_destroy(made);
    CALL(mnp_trainer_create);
    made = NOT_NULL;
    BAD_OPTS(4, mnp_train_opts, o, mnp_trainer_create(w.ctx, w.model, w.data, NULL, &o.s, &made));
    CLEARED(made);
    static const char *const options[] = {"steps=-1", "steps=nan", "lr=inf", "no=1", "batch"};
    for (int k = 0; k < 5; k++)
        BAD_FIELD(4, o, options, options[k],
                  mnp_trainer_create(w.ctx, w.model, w.data, NULL, &o.s, &made));
    static const char *const devices[] = {
        "gpu",         "",          "cpu:tf32",           "cpu:bf16",      "cpu:", "cuda:fp8",
        "cpu:general", "cpu:fused", "auto:general:fused", "auto:tf32:fp32"};
    for (int k = 0; k < 6; k++)
        BAD_FIELD(4, o, device, devices[k],
                  mnp_trainer_create(w.ctx, w.model, w.data, NULL, &o.s, &made));
    CLEARED(made);
    BAD(5, mnp_trainer_create(w.ctx, w.model, w.data, NULL, NULL, NULL));
}

static void training(void) {
    ROOMY(mnp_train_report, r);
    const char *path = path_of("t");
    CALL(mnp_trainer_run);
    MUTE(0, mnp_trainer_run(NULL, 1, &r.s));
    BAD(1, mnp_trainer_run(w.trainer, -5, &r.s));
    BAD(1, mnp_trainer_run(w.trainer, INT64_MIN, &r.s));
    BAD_SIZES(2, mnp_train_report, r, mnp_trainer_run(w.trainer, 1, &r.s));
    GIVES(2, mnp_trainer_run(w.trainer, 0, NULL) == MNP_OK);
    CALL(mnp_trainer_report);
    MUTE(0, mnp_trainer_report(NULL, &r.s));
    BAD(1, mnp_trainer_report(w.trainer, NULL));
    BAD_SIZES(1, mnp_train_report, r, mnp_trainer_report(w.trainer, &r.s));
    CHECK(r.s.step == 0 && mnp_trainer_report(w.trainer, &r.s) == MNP_OK && r.s.step == 0);
    CALL(mnp_trainer_save);
    MUTE(0, mnp_trainer_save(NULL, path));
    BAD(1, mnp_trainer_save(w.trainer, NULL));
    CALL(mnp_trainer_resume);
    MUTE(0, mnp_trainer_resume(NULL, path, false));
    BAD(1, mnp_trainer_resume(w.trainer, NULL, false));
    GIVES(2, mnp_trainer_resume(w.trainer, path, true) == MNP_EIO); /* there is no such file */
    CALL(mnp_trainer_save_best);
    MUTE(0, mnp_trainer_save_best(NULL, path));
    BAD(1, mnp_trainer_save_best(w.trainer, NULL));
    CALL(mnp_trainer_save_last);
    MUTE(0, mnp_trainer_save_last(NULL, path));
    BAD(1, mnp_trainer_save_last(w.trainer, NULL));
    CALL(mnp_trainer_take_best);
    MUTE(0, mnp_trainer_take_best(NULL));
    CALL(mnp_trainer_memory);
    GIVES(0, mnp_trainer_memory(NULL) == 0);
    char text[8] = "kept";
    CALL(mnp_trainer_warnings);
    GIVES(0, (mnp_trainer_warnings(NULL, text, sizeof text), *text == '\0'));
    RETURNS(1, mnp_trainer_warnings(w.trainer, NULL, sizeof text));
    RETURNS(2, mnp_trainer_warnings(w.trainer, text, 0));
    CHECK(access(path, F_OK) != 0);
}

/* ---- scoring --------------------------------------------------------------------------------- */

static void evaluating(void) {
    ROOMY(mnp_eval_opts, o);
    ROOMY(mnp_scores, r);
#define EVALUATE mnp_evaluate(w.ctx, w.model, w.data, &o.s, &r.s)
    CALL(mnp_evaluate);
    MUTE(0, mnp_evaluate(NULL, w.model, w.data, NULL, &r.s));
    BAD(1, mnp_evaluate(w.ctx, NULL, w.data, NULL, &r.s));
    BAD(1, mnp_evaluate(w.ctx, w.decider, w.data, NULL, &r.s));
    BAD(2, mnp_evaluate(w.ctx, w.model, NULL, NULL, &r.s));
    BAD_OPTS(3, mnp_eval_opts, o, EVALUATE);
    BAD_FIELD(3, o, functions, -1, EVALUATE);
    BAD_FIELD(3, o, samples, -1, EVALUATE);
    BAD_FIELD(3, o, samples, INT64_MAX, EVALUATE);
    BAD_FIELD(3, o, draws, INT64_MAX, EVALUATE);
    BAD_FIELD(3, o, protocol, (mnp_protocol)9, EVALUATE);
    BAD_FIELD(3, o, context_lo, -1, EVALUATE);
    BAD_FIELD(3, o, context_lo, 2, EVALUATE); /* above context_hi */
    BAD_FIELD(3, o, context_hi, -1, EVALUATE);
    BAD_FIELD(3, o, context_hi, INT64_MAX, EVALUATE);
    BAD_FIELD(3, o, orders, -1, EVALUATE);
    BAD_FIELD(3, o, orders, INT64_MAX, EVALUATE);
    BAD_FIELD(3, o, order, (mnp_order)2, EVALUATE);
    BAD_FIELD(3, o, targets, -1, EVALUATE);
    BAD_FIELD(3, o, targets, INT64_MAX, EVALUATE);
    BAD_FIELD(3, o, proposal, -1, EVALUATE);
    BAD_FIELD(3, o, proposal, INT64_MAX, EVALUATE);
    BAD_FIELD(3, o, seen, -1, EVALUATE);
    BAD_FIELD(3, o, seen, INT64_MAX, EVALUATE);
    for (int k = 0; k < 3; k++) BAD_FIELD(3, o, noise, bad_numbers[k], EVALUATE);
    static const char *const devices[] = {"gpu",      "",      "cpu:tf32",    "cpu:x",
                                          "cuda:fp8", "auto:", "cpu:general", "auto:general:"};
    for (int k = 0; k < 6; k++) BAD_FIELD(3, o, device, devices[k], EVALUATE);
    BAD_FIELD(3, o, device, "auto:auto", EVALUATE); /* a precision for training alone */
    static const char *const contexts[] = {
        "", "uniform", "uniform:-1", "top", "uniform:2:1", "uniform:0:9223372036854775807", "x"};
    for (int k = 0; k < 7; k++) BAD_FIELD(3, o, context, contexts[k], EVALUATE);
    BAD_FIELD(3, o, n_sizes, -1, EVALUATE);
    BAD_FIELD(3, o, n_sizes, 1, EVALUATE); /* without the sizes */
    static const int64_t falling[] = {2, 1}, negative[] = {-1, 2}, equal[] = {1, 1};
    const int64_t *const lists[] = {falling, negative, equal};
    for (int k = 0; k < 3; k++) {
        o.s.n_sizes = 2;
        BAD_FIELD(3, o, sizes, lists[k], EVALUATE);
    }
    o.s.n_sizes = 0;
    BAD(4, mnp_evaluate(w.ctx, w.model, w.data, NULL, NULL));
    BAD_SIZES(4, mnp_scores, r, EVALUATE);
    CHECK(r.s.functions == 0);
    /* a struct from a newer header: what is not known here comes back as zero */
    r.s.size = sizeof r;
    r.bytes[sizeof r - 1] = 1;
    o.s.size = sizeof o;
    CHECK(EVALUATE == MNP_OK);
    CHECK(r.s.size == sizeof r && r.s.functions == 1 && r.bytes[sizeof r - 1] == 0);
#undef EVALUATE
}

static void evaluating_draws(void) {
    enum { ROWS = 3 };
    mnp_predictive r[ROWS] = {0};
    ROOMY(mnp_eval_opts, o);
    ROOMY(mnp_predictive_opts, how);
    for (int k = 0; k < ROWS; k++) r[k].size = sizeof *r;
#define EVALUATE mnp_evaluate_draws(w.ctx, w.model, w.data, &o.s, &how.s, r, ROWS)
    CALL(mnp_evaluate_draws);
    MUTE(0, mnp_evaluate_draws(NULL, w.model, w.data, NULL, NULL, r, ROWS));
    BAD(1, mnp_evaluate_draws(w.ctx, NULL, w.data, NULL, NULL, r, ROWS));
    BAD(1, mnp_evaluate_draws(w.ctx, w.decider, w.data, NULL, NULL, r, ROWS));
    BAD(2, mnp_evaluate_draws(w.ctx, w.model, NULL, NULL, NULL, r, ROWS));
    BAD_OPTS(3, mnp_eval_opts, o, EVALUATE);
    BAD_FIELD(3, o, functions, -1, EVALUATE);
    BAD_OPTS(4, mnp_predictive_opts, how, EVALUATE);
    BAD_FIELD(4, how, draws, -1, EVALUATE);
    BAD_FIELD(4, how, draws, 1, EVALUATE);
    BAD_FIELD(4, how, draws, INT64_MAX, EVALUATE);
    BAD_FIELD(4, how, condition, (mnp_condition)9, EVALUATE);
    BAD_FIELD(4, how, gradients, -1, EVALUATE);
    BAD_FIELD(4, how, gradients, INT64_MAX, EVALUATE);
    BAD_FIELD(4, how, replicates, -1, EVALUATE);
    BAD_FIELD(4, how, replicates, 1, EVALUATE);
    BAD_FIELD(4, how, replicates, INT64_MAX, EVALUATE);
    BAD_FIELD(4, how, particles, -1, EVALUATE);
    BAD_FIELD(4, how, particles, INT64_MAX, EVALUATE);
    BAD(5, mnp_evaluate_draws(w.ctx, w.model, w.data, NULL, NULL, NULL, ROWS));
    for (int k = 0; k < WRONG_SIZES; k++) {
        r[0].size = wrong_sizes[k];
        BAD(5, EVALUATE);
    }
    r[0].size = sizeof *r, r[1].size = 8;
    BAD(5, EVALUATE); /* rows of different sizes */
    r[1].size = sizeof *r;
    for (int k = 0; k < 2; k++)
        BAD(6, mnp_evaluate_draws(w.ctx, w.model, w.data, NULL, NULL, r, -k));
    CHECK(r[0].functions == 0);
    how.s.draws = 3, o.s.sizes = (const int64_t[]){0, 1}, o.s.n_sizes = 2;
    CHECK(EVALUATE == MNP_OK);
    CHECK(r[0].functions == r[1].functions + r[2].functions && r[0].functions > 0);
    CHECK(r[0].size == sizeof *r && r[2].context_hi == 1 && isfinite(r[0].marginal));
#undef EVALUATE
}

static void evaluating_the_truth(void) {
    enum { ROWS = 2 };
    mnp_truth r[ROWS] = {0};
    mnp_data *rbf = NULL, *table = NULL;
    ROOMY(mnp_eval_opts, o);
    mnp_data_opts from = {.size = sizeof from, .functions = 3};
    for (int k = 0; k < ROWS; k++) r[k].size = sizeof *r;
    CHECK(mnp_data_open(w.ctx, "rbf:points=9", &from, &rbf) == MNP_OK);
    CHECK(mnp_data_open(w.ctx, "convex", &from, &table) == MNP_OK);
#define EVALUATE mnp_evaluate_truth(w.ctx, rbf, &o.s, r, ROWS)
    CALL(mnp_evaluate_truth);
    MUTE(0, mnp_evaluate_truth(NULL, rbf, NULL, r, ROWS));
    BAD(1, mnp_evaluate_truth(w.ctx, NULL, NULL, r, ROWS));
    BAD(1, mnp_evaluate_truth(w.ctx, table, NULL, r, ROWS)); /* whose density is not known */
    BAD_OPTS(2, mnp_eval_opts, o, EVALUATE);
    BAD_FIELD(2, o, functions, -1, EVALUATE);
    BAD(3, mnp_evaluate_truth(w.ctx, rbf, NULL, NULL, ROWS));
    for (int k = 0; k < WRONG_SIZES; k++) {
        r[0].size = wrong_sizes[k];
        BAD(3, EVALUATE);
    }
    r[0].size = sizeof *r;
    for (int k = 0; k < 2; k++) BAD(4, mnp_evaluate_truth(w.ctx, rbf, NULL, r, -k));
    CHECK(r[0].functions == 0);
    CHECK(EVALUATE == MNP_OK);
    CHECK(r[0].functions == 3 && isfinite(r[0].joint) && isfinite(r[0].marginal_pooled));
    mnp_data_destroy(rbf);
    mnp_data_destroy(table);
#undef EVALUATE
}

static void noted_scores(void) {
    ROOMY(mnp_noted_score, s);
    s.s.loglik = 1.5, s.s.se = 0.25, s.s.functions = 10, s.s.samples = 3, s.s.seed = UINT64_MAX;
#define SET mnp_model_set_score(w.ctx, w.model, MNP_STRICT, &s.s)
    CALL(mnp_model_set_score);
    MUTE(0, mnp_model_set_score(NULL, w.model, MNP_STRICT, &s.s));
    BAD(1, mnp_model_set_score(w.ctx, NULL, MNP_STRICT, &s.s));
    BAD(2, mnp_model_set_score(w.ctx, w.model, (mnp_protocol)9, &s.s));
    BAD_OPTS(3, mnp_noted_score, s, SET);
    for (int k = 0; k < 3; k++) {
        BAD_FIELD(3, s, loglik, bad_numbers[k], SET);
        BAD_FIELD(3, s, functions, -k, SET);
    }
    s.s.functions = 10, s.s.loglik = 1.5;
    BAD_FIELD(3, s, samples, -1, SET);
    s.s.samples = 3;
    BAD_FIELD(3, s, loglik, -1e300, SET);
    s.s.loglik = 1.5;
    BAD_FIELD(3, s, se, -0.25, SET);
    s.s.se = 0.25;
    CHECK(!mnp_model_note(w.model, "score.strict"));
    s.s.loglik = -1.23456, s.s.samples = 3;
    CHECK(SET == MNP_OK);
    STREQ(mnp_model_note(w.model, "score.strict"),
          "-1.2346 +- 0.2500 on 10 functions, 3 samples, seed 18446744073709551615");
#undef SET
    ROOMY(mnp_noted_score, r);
    CALL(mnp_model_score);
    MUTE(0, mnp_model_score(NULL, w.model, MNP_STRICT, &r.s));
    BAD(1, mnp_model_score(w.ctx, NULL, MNP_STRICT, &r.s));
    BAD(2, mnp_model_score(w.ctx, w.model, (mnp_protocol)-1, &r.s));
    BAD(3, mnp_model_score(w.ctx, w.model, MNP_STRICT, NULL));
    BAD_SIZES(3, mnp_noted_score, r, mnp_model_score(w.ctx, w.model, MNP_STRICT, &r.s));
    CHECK(r.s.functions == 0 && mnp_model_score(w.ctx, w.model, MNP_STRICT, &r.s) == MNP_OK);
    CHECK(r.s.loglik == -1.2346 && r.s.se == 0.25 && r.s.functions == 10 && r.s.samples == 3 &&
          r.s.seed == UINT64_MAX);
    CHECK(mnp_model_score(w.ctx, w.model, MNP_AUTHORS, &r.s) == MNP_OK && r.s.functions == 0);
    static const char *const none[] = {"", "2.3 +- 0.1 on 5 functions, 2 samples, seed 0 or so",
                                       "2.3 +- x on 5 functions, 2 samples, seed 0", "2.3"};
    for (int k = 0; k < 4; k++) {
        CHECK(mnp_model_set_note(w.ctx, w.model, "score.authors", none[k]) == MNP_OK);
        CHECK(mnp_model_score(w.ctx, w.model, MNP_AUTHORS, &r.s) == MNP_EFORMAT);
    }
    CHECK(mnp_model_set_score(w.ctx, w.model, MNP_AUTHORS, NULL) == MNP_OK);
    CHECK(!mnp_model_note(w.model, "score.authors"));
}

static void scoring_sets(void) {
    double bound = 7, prior = 7;
    mnp_set good = {POINTS, xs, ys};
    CALL(mnp_score_set);
    MUTE(0, mnp_score_set(NULL, w.model, NULL, &good, 2, 1, &bound, &prior));
    BAD(1, mnp_score_set(w.ctx, NULL, NULL, &good, 2, 1, &bound, &prior));
    const mnp_set wrong[] = {{-1, xs, ys},       {INT64_MAX, xs, ys},  {POINTS, NULL, ys},
                             {POINTS, xs, NULL}, {3, bad_numbers, ys}, {3, xs, bad_numbers}};
    for (int k = 0; k < 6; k++) {
        BAD(2, mnp_score_set(w.ctx, w.model, &wrong[k], &good, 2, 1, &bound, &prior));
        BAD(3, mnp_score_set(w.ctx, w.model, NULL, &wrong[k], 2, 1, &bound, &prior));
    }
    mnp_set none = {0, NULL, NULL};
    BAD(3, mnp_score_set(w.ctx, w.model, NULL, &none, 2, 1, &bound, &prior));
    BAD(3, mnp_score_set(w.ctx, w.model, NULL, NULL, 2, 1, &bound, &prior));
    BAD(4, mnp_score_set(w.ctx, w.model, NULL, &good, 0, 1, &bound, &prior));
    BAD(4, mnp_score_set(w.ctx, w.model, NULL, &good, -1, 1, &bound, &prior));
    BAD(4, mnp_score_set(w.ctx, w.model, NULL, &good, (1 << 17) + 1, 1, &bound, &prior));
    BAD(4, mnp_score_set(w.ctx, w.model, NULL, &good, INT64_MAX, 1, &bound, &prior));
    CHECK(bound == 7 && prior == 7);
    GIVES(5, mnp_score_set(w.ctx, w.model, &none, &good, 2, UINT64_MAX, &bound, &prior) == MNP_OK);
    GIVES(6, mnp_score_set(w.ctx, w.model, NULL, &good, 2, 1, NULL, &prior) == MNP_OK);
    GIVES(7, mnp_score_set(w.ctx, w.model, NULL, &good, 2, 1, &bound, NULL) == MNP_OK);
}

static void in_turn(void) {
    double scores[2] = {7, 7}, y[2 * POINTS];
    mnp_set good = {POINTS, xs, ys}, none = {0, NULL, NULL};
    const mnp_set wrong[] = {{-1, xs, ys},       {INT64_MAX, xs, ys},  {POINTS, NULL, ys},
                             {POINTS, xs, NULL}, {3, bad_numbers, ys}, {3, xs, bad_numbers}};
    ROOMY(mnp_turn_opts, o);
    mnp_model *gp = NULL;
    CHECK(mnp_model_create(w.ctx, "gp", NULL, NULL, w.data, 1, &gp) == MNP_OK);
#define SCORE  mnp_score_in_turn(w.ctx, gp, NULL, &good, &o.s, scores)
#define SAMPLE mnp_sample_in_turn(w.ctx, gp, NULL, xs, POINTS, &o.s, 2, y)
    CALL(mnp_score_in_turn);
    MUTE(0, mnp_score_in_turn(NULL, gp, NULL, &good, NULL, scores));
    BAD(1, mnp_score_in_turn(w.ctx, NULL, NULL, &good, NULL, scores));
    for (int k = 0; k < 6; k++) {
        BAD(2, mnp_score_in_turn(w.ctx, gp, &wrong[k], &good, NULL, scores));
        BAD(3, mnp_score_in_turn(w.ctx, gp, NULL, &wrong[k], NULL, scores));
    }
    BAD(3, mnp_score_in_turn(w.ctx, gp, NULL, &none, NULL, scores));
    BAD(3, mnp_score_in_turn(w.ctx, gp, NULL, NULL, NULL, scores));
    BAD_OPTS(4, mnp_turn_opts, o, SCORE);
    BAD_FIELD(4, o, order, (mnp_order)2, SCORE);
    BAD_FIELD(4, o, orders, -1, SCORE);
    BAD_FIELD(4, o, orders, INT64_MAX, SCORE);
    BAD_FIELD(4, o, device, "abacus", SCORE);
    BAD(5, mnp_score_in_turn(w.ctx, gp, NULL, &good, NULL, NULL));
    CHECK(scores[0] == 7 && scores[1] == 7);
    GIVES(5, mnp_score_in_turn(w.ctx, gp, &none, &good, NULL, scores) == MNP_OK);
    CHECK(scores[0] != 7 && scores[1] == 7);
    CALL(mnp_sample_in_turn);
    MUTE(0, mnp_sample_in_turn(NULL, gp, NULL, xs, POINTS, NULL, 2, y));
    BAD(1, mnp_sample_in_turn(w.ctx, NULL, NULL, xs, POINTS, NULL, 2, y));
    for (int k = 0; k < 6; k++)
        BAD(2, mnp_sample_in_turn(w.ctx, gp, &wrong[k], xs, POINTS, NULL, 2, y));
    BAD(3, mnp_sample_in_turn(w.ctx, gp, NULL, NULL, POINTS, NULL, 2, y));
    BAD(3, mnp_sample_in_turn(w.ctx, gp, NULL, bad_numbers, 3, NULL, 2, y));
    BAD(4, mnp_sample_in_turn(w.ctx, gp, NULL, xs, 0, NULL, 2, y));
    BAD(4, mnp_sample_in_turn(w.ctx, gp, NULL, xs, INT64_MAX, NULL, 2, y));
    BAD_OPTS(5, mnp_turn_opts, o, SAMPLE);
    BAD_FIELD(5, o, order, (mnp_order)2, SAMPLE);
    BAD(6, mnp_sample_in_turn(w.ctx, gp, NULL, xs, POINTS, NULL, 0, y));
    BAD(6, mnp_sample_in_turn(w.ctx, gp, NULL, xs, POINTS, NULL, INT64_MAX, y));
    BAD(7, mnp_sample_in_turn(w.ctx, gp, NULL, xs, POINTS, NULL, 2, NULL));
    GIVES(7, mnp_sample_in_turn(w.ctx, gp, &none, xs, POINTS, NULL, 2, y) == MNP_OK);
#undef SCORE
#undef SAMPLE
    mnp_model_destroy(gp);
}

static void checking(void) {
    ROOMY(mnp_laws, r);
    CALL(mnp_check);
    MUTE(0, mnp_check(NULL, w.model, w.data, 1, 2, 1, &r.s));
    BAD(1, mnp_check(w.ctx, NULL, w.data, 1, 2, 1, &r.s));
    BAD(1, mnp_check(w.ctx, w.decider, w.data, 1, 2, 1, &r.s));
    BAD(2, mnp_check(w.ctx, w.model, NULL, 1, 2, 1, &r.s));
    BAD(3, mnp_check(w.ctx, w.model, w.data, 0, 2, 1, &r.s));
    BAD(3, mnp_check(w.ctx, w.model, w.data, -1, 2, 1, &r.s));
    BAD(4, mnp_check(w.ctx, w.model, w.data, 1, 0, 1, &r.s));
    BAD(4, mnp_check(w.ctx, w.model, w.data, 1, -1, 1, &r.s));
    BAD(4, mnp_check(w.ctx, w.model, w.data, 1, INT64_MAX, 1, &r.s));
    GIVES(5, mnp_check(w.ctx, w.model, w.data, INT64_MAX, 2, UINT64_MAX, &r.s) == MNP_OK);
    r.s.functions = 0;
    BAD(6, mnp_check(w.ctx, w.model, w.data, 1, 2, 1, NULL));
    BAD_SIZES(6, mnp_laws, r, mnp_check(w.ctx, w.model, w.data, 1, 2, 1, &r.s));
    CHECK(r.s.functions == 0);
}

static void checking_laws(void) {
    ROOMY(mnp_laws, r);
    const mnp_laws_opts good = {
        .size = sizeof good, .functions = 1, .samples = 2, .gradients = 20, .targets = 2};
    CALL(mnp_check_laws);
    MUTE(0, mnp_check_laws(NULL, w.model, w.data, &good, &r.s));
    BAD(1, mnp_check_laws(w.ctx, NULL, w.data, &good, &r.s));
    BAD(1, mnp_check_laws(w.ctx, w.decider, w.data, &good, &r.s));
    BAD(2, mnp_check_laws(w.ctx, w.model, NULL, &good, &r.s));
    mnp_laws_opts bad[12];
    for (int k = 0; k < 12; k++) bad[k] = good;
    bad[0].condition = MNP_REFINE;
    bad[1].condition = (mnp_condition)3;
    bad[2].functions = -1;
    bad[3].samples = -1;
    bad[4].samples = (1 << 17) + 1;
    bad[5].gradients = -1;
    bad[6].replicates = 1;
    bad[7].replicates = 1025;
    bad[8].context = 127;
    bad[9].targets = 1;
    bad[10].device = "gpu";
    bad[11].size = 8;
    for (int k = 0; k < 12; k++) BAD(3, mnp_check_laws(w.ctx, w.model, w.data, &bad[k], &r.s));
    r.s.functions = 0;
    BAD(4, mnp_check_laws(w.ctx, w.model, w.data, &good, NULL));
    BAD_SIZES(4, mnp_laws, r, mnp_check_laws(w.ctx, w.model, w.data, &good, &r.s));
    CHECK(r.s.functions == 0);
    GIVES(3, mnp_check_laws(w.ctx, w.model, w.data, &good, &r.s) == MNP_OK);
    CHECK(r.s.functions == 1 && r.s.samples == 2 && r.s.half_samples == 1);
}

static void calibrating(void) {
    ROOMY(mnp_calibration, r);
    int64_t ranks[2];
    const mnp_calibration_opts good = {
        .size = sizeof good, .functions = 2, .draws = 3, .context = 1};
    CALL(mnp_calibrate);
    MUTE(0, mnp_calibrate(NULL, w.model, w.data, &good, ranks, &r.s));
    BAD(1, mnp_calibrate(w.ctx, NULL, w.data, &good, ranks, &r.s));
    BAD(1, mnp_calibrate(w.ctx, w.decider, w.data, &good, ranks, &r.s));
    BAD(2, mnp_calibrate(w.ctx, w.model, NULL, &good, ranks, &r.s));
    mnp_calibration_opts bad[9];
    for (int k = 0; k < 9; k++) bad[k] = good;
    bad[0].condition = (mnp_condition)3;
    bad[1].functions = 10001;
    bad[2].functions = -1;
    bad[3].draws = 1001;
    bad[4].draws = -1;
    bad[5].context = 1000000; /* more points than any function has */
    bad[6].gradients = -1;
    bad[7].device = "gpu";
    bad[8].size = 8;
    for (int k = 0; k < 9; k++) BAD(3, mnp_calibrate(w.ctx, w.model, w.data, &bad[k], ranks, &r.s));
    BAD(4, mnp_calibrate(w.ctx, w.model, w.data, &good, NULL, &r.s));
    r.s.functions = 0;
    BAD(5, mnp_calibrate(w.ctx, w.model, w.data, &good, ranks, NULL));
    BAD_SIZES(5, mnp_calibration, r, mnp_calibrate(w.ctx, w.model, w.data, &good, ranks, &r.s));
    CHECK(r.s.functions == 0);
    GIVES(3, mnp_calibrate(w.ctx, w.model, w.data, &good, ranks, &r.s) == MNP_OK);
    CHECK(r.s.functions == 2 && r.s.draws == 3 && r.s.context == 1);
}

static void rank_bands(void) {
    const int64_t ranks[2] = {0, 1}, far[2] = {0, 2};
    double difference[3], lo[3], hi[3];
    CALL(mnp_rank_band);
    MUTE(0, mnp_rank_band(NULL, 2, 1, 0.9, ranks, difference, lo, hi));
    BAD(1, mnp_rank_band(w.ctx, 0, 1, 0.9, ranks, difference, lo, hi));
    BAD(1, mnp_rank_band(w.ctx, 10001, 1, 0.9, ranks, difference, lo, hi));
    BAD(2, mnp_rank_band(w.ctx, 2, 0, 0.9, ranks, difference, lo, hi));
    BAD(2, mnp_rank_band(w.ctx, 2, 1001, 0.9, ranks, difference, lo, hi));
    BAD(3, mnp_rank_band(w.ctx, 2, 1, 0, ranks, difference, lo, hi));
    BAD(3, mnp_rank_band(w.ctx, 2, 1, 1, ranks, difference, lo, hi));
    BAD(3, mnp_rank_band(w.ctx, 2, 1, NAN, ranks, difference, lo, hi));
    BAD(4, mnp_rank_band(w.ctx, 2, 1, 0.9, NULL, difference, lo, hi));
    BAD(4, mnp_rank_band(w.ctx, 2, 1, 0.9, far, difference, lo, hi));
    BAD(5, mnp_rank_band(w.ctx, 2, 1, 0.9, ranks, NULL, lo, hi));
    BAD(6, mnp_rank_band(w.ctx, 2, 1, 0.9, ranks, difference, NULL, hi));
    BAD(7, mnp_rank_band(w.ctx, 2, 1, 0.9, ranks, difference, lo, NULL));
    GIVES(4, mnp_rank_band(w.ctx, 2, 1, 0.9, NULL, NULL, lo, hi) == MNP_OK);
    GIVES(4, mnp_rank_band(w.ctx, 2, 1, 0.9, ranks, difference, lo, hi) == MNP_OK);
    CHECK(difference[0] == 0 && difference[1] == 0 && difference[2] == 0);
    CHECK(lo[1] == -0.5 && hi[1] == 0.5);
}

/* ---- prediction ------------------------------------------------------------------------------ */

static void predictors(void) {
    mnp_predictor *made = NOT_NULL;
    CALL(mnp_predictor_create);
    MUTE(0, mnp_predictor_create(NULL, w.model, NULL, &made));
    CLEARED(made);
    BAD(1, mnp_predictor_create(w.ctx, NULL, NULL, &made));
    CLEARED(made);
    static const char *const devices[] = {"gpu",      "",      "cpu:tf32",    "cpu:x",
                                          "cuda:fp8", "auto:", "cpu:general", "auto:general:"};
    for (int k = 0; k < 6; k++) {
        BAD(2, mnp_predictor_create(w.ctx, w.model, devices[k], &made));
        CLEARED(made);
    }
    BAD(3, mnp_predictor_create(w.ctx, w.model, NULL, NULL));
    CALL(mnp_predictor_destroy);
    RETURNS(0, mnp_predictor_destroy(NULL));
    CALL(mnp_level);
    GIVES(0, isnan(mnp_level(-1)) && isnan(mnp_level(MNP_LEVELS)) && mnp_level(0) == 0);
}

/* Wrong options leave the functions that were drawn before; doubtful points still get an answer. */
static void drawing(void) {
    ROOMY(mnp_draw_opts, o);
    ROOMY(mnp_draw_report, r);
    static const int64_t gradients[] = {-1, (1 << 20) + 1, INT64_MAX};
    static const int64_t samples[] = {-1, (1 << 17) + 1, INT64_MAX};
    double before[2 * POINTS], after[2 * POINTS];
    CHECK(mnp_predictor_predict(w.predictor, xs, POINTS, MNP_BASE_ZERO, before) == MNP_OK);
    CALL(mnp_predictor_draw);
    MUTE(0, mnp_predictor_draw(NULL, &o.s, &r.s));
    BAD_OPTS(1, mnp_draw_opts, o, mnp_predictor_draw(w.predictor, &o.s, &r.s));
    BAD_FIELD(1, o, condition, (mnp_condition)3, mnp_predictor_draw(w.predictor, &o.s, &r.s));
    BAD_FIELD(1, o, condition, (mnp_condition)-1, mnp_predictor_draw(w.predictor, &o.s, &r.s));
    for (int k = 0; k < 3; k++) {
        BAD_FIELD(1, o, gradients, gradients[k], mnp_predictor_draw(w.predictor, &o.s, &r.s));
        BAD_FIELD(1, o, samples, samples[k], mnp_predictor_draw(w.predictor, &o.s, &r.s));
        BAD_FIELD(1, o, angle, bad_numbers[k], mnp_predictor_draw(w.predictor, &o.s, &r.s));
    }
    o.s.condition = MNP_EXACT;
    o.s.towards = 1;
    BAD_FIELD(1, o, angle, 0.5, mnp_predictor_draw(w.predictor, &o.s, &r.s));
    o.s.condition = MNP_NETWORK;
    o.s.seed = 1;
    BAD_FIELD(1, o, angle, 0.5, mnp_predictor_draw(w.predictor, &o.s, &r.s));
    BAD_SIZES(2, mnp_draw_report, r, mnp_predictor_draw(w.predictor, &o.s, &r.s));
    CHECK(mnp_predictor_predict(w.predictor, xs, POINTS, MNP_BASE_ZERO, after) == MNP_OK);
    CHECK(memcmp(before, after, sizeof before) == 0 && r.s.particles == 0);
    o.s = (mnp_draw_opts){.size = sizeof o.s, .condition = MNP_EXACT, .samples = 2};
    CHECK(mnp_predictor_draw(w.predictor, &o.s, &r.s) == MNP_OK && r.s.condition == MNP_EXACT);
    CHECK(mnp_predictor_draw(w.predictor, &o.s, NULL) == MNP_OK);
}

static void conditioning(void) {
    const mnp_set wrong[] = {{-1, xs, ys},       {INT64_MAX, xs, ys},  {POINTS, NULL, ys},
                             {POINTS, xs, NULL}, {3, bad_numbers, ys}, {3, xs, bad_numbers}};
    mnp_set good = {POINTS, xs, ys};
    CHECK(mnp_predictor_condition(w.predictor, &good) == MNP_OK);
    CALL(mnp_predictor_condition);
    MUTE(0, mnp_predictor_condition(NULL, &good));
    for (int k = 0; k < 6; k++) BAD(1, mnp_predictor_condition(w.predictor, &wrong[k]));
    CALL(mnp_predictor_observe);
    MUTE(0, mnp_predictor_observe(NULL, xs, 1));
    BAD(1, mnp_predictor_observe(w.predictor, NULL, 1));
    for (int k = 0; k < 3; k++) {
        BAD(1, mnp_predictor_observe(w.predictor, &bad_numbers[k], 1));
        BAD(2, mnp_predictor_observe(w.predictor, xs, bad_numbers[k]));
    }
    CHECK(mnp_predictor_observed(w.predictor) == POINTS);
    CALL(mnp_predictor_observed);
    GIVES(0, mnp_predictor_observed(NULL) == 0);
    CALL(mnp_predictor_draw_latents);
    MUTE(0, mnp_predictor_draw_latents(NULL, 1, 2));
    GIVES(1, mnp_predictor_draw_latents(w.predictor, UINT64_MAX, 2) == MNP_OK);
    for (int k = 0; k < 3; k++)
        BAD(2, mnp_predictor_draw_latents(w.predictor, 1, (int64_t[]){0, -1, INT64_MAX}[k]));
    drawing();
    CALL(mnp_predictor_reset);
    RETURNS(0, mnp_predictor_reset(NULL));
}

/* The three queries that take targets alone have the same arguments. */
static void query_targets(void) {
    double out[MNP_LEVELS * 2 * POINTS];
    const int64_t counts[] = {0, -1, INT64_MAX, INT64_MAX / 8};
    CALL(mnp_predictor_predict);
    MUTE(0, mnp_predictor_predict(NULL, xs, POINTS, MNP_BASE_ZERO, out));
    BAD(1, mnp_predictor_predict(w.predictor, NULL, POINTS, MNP_BASE_ZERO, out));
    BAD(1, mnp_predictor_predict(w.predictor, bad_numbers, 3, MNP_BASE_ZERO, out));
    for (int k = 0; k < 4; k++)
        BAD(2, mnp_predictor_predict(w.predictor, xs, counts[k], MNP_BASE_ZERO, out));
    BAD(3, mnp_predictor_predict(w.predictor, xs, POINTS, (mnp_base)77, out));
    BAD(3, mnp_predictor_predict(w.predictor, xs, POINTS, (mnp_base)-1, out));
    BAD(4, mnp_predictor_predict(w.predictor, xs, POINTS, MNP_BASE_ZERO, NULL));
    CALL(mnp_predictor_path);
    MUTE(0, mnp_predictor_path(NULL, xs, POINTS, MNP_BASE_ZERO, out));
    BAD(1, mnp_predictor_path(w.predictor, NULL, POINTS, MNP_BASE_ZERO, out));
    BAD(1, mnp_predictor_path(w.predictor, bad_numbers, 3, MNP_BASE_ZERO, out));
    for (int k = 0; k < 4; k++)
        BAD(2, mnp_predictor_path(w.predictor, xs, counts[k], MNP_BASE_ZERO, out));
    BAD(3, mnp_predictor_path(w.predictor, xs, POINTS, (mnp_base)77, out));
    BAD(4, mnp_predictor_path(w.predictor, xs, POINTS, MNP_BASE_ZERO, NULL));
    /* small enough for x, too many for S functions at each */
    BAD(4, mnp_predictor_path(w.predictor, xs, CHECK_COUNT_MAX, MNP_BASE_ZERO, out));
    CALL(mnp_predictor_levels);
    MUTE(0, mnp_predictor_levels(NULL, xs, POINTS, out));
    BAD(1, mnp_predictor_levels(w.predictor, NULL, POINTS, out));
    BAD(1, mnp_predictor_levels(w.predictor, bad_numbers, 3, out));
    for (int k = 0; k < 4; k++) BAD(2, mnp_predictor_levels(w.predictor, xs, counts[k], out));
    BAD(3, mnp_predictor_levels(w.predictor, xs, POINTS, NULL));
}

/* Wrong summaries, in the argument that `call` fills from s.s. */
#define BAD_SUMMARY(argument, s, call)                                                             \
    do {                                                                                           \
        const double wild_[] = {-0.1, 1.1, NAN};                                                   \
        BAD_OPTS(argument, mnp_summary, s, call);                                                  \
        BAD_FIELD(argument, s, levels, -1, call);                                                  \
        BAD_FIELD(argument, s, levels, INT64_MAX, call);                                           \
        BAD_FIELD(argument, s, levels, 2, call); /* level is NULL */                               \
        for (int k_ = 0; k_ < 3; k_++) {                                                           \
            (s).s.levels = 1, (s).s.level = &wild_[k_];                                            \
            BAD(argument, call);                                                                   \
        }                                                                                          \
        (s).s.levels = 0, (s).s.level = NULL;                                                      \
    } while (0)

static void summaries(void) {
    ROOMY(mnp_summary, s);
    double mean[POINTS];
    const int64_t counts[] = {0, -1, INT64_MAX, INT64_MAX / 8};
    s.s.mean = mean;
    CALL(mnp_predictor_summary);
    MUTE(0, mnp_predictor_summary(NULL, xs, POINTS, MNP_BASE_ZERO, &s.s));
    BAD(1, mnp_predictor_summary(w.predictor, NULL, POINTS, MNP_BASE_ZERO, &s.s));
    BAD(1, mnp_predictor_summary(w.predictor, bad_numbers, 3, MNP_BASE_ZERO, &s.s));
    for (int k = 0; k < 4; k++)
        BAD(2, mnp_predictor_summary(w.predictor, xs, counts[k], MNP_BASE_ZERO, &s.s));
    BAD(3, mnp_predictor_summary(w.predictor, xs, POINTS, (mnp_base)7, &s.s));
    BAD(4, mnp_predictor_summary(w.predictor, xs, POINTS, MNP_BASE_ZERO, NULL));
    BAD_SUMMARY(4, s, mnp_predictor_summary(w.predictor, xs, POINTS, MNP_BASE_ZERO, &s.s));
    CHECK(mnp_predictor_summary(w.predictor, xs, POINTS, MNP_BASE_ZERO, &s.s) == MNP_OK);
    CALL(mnp_predictor_bands);
    MUTE(0, mnp_predictor_bands(NULL, xs, POINTS, &s.s));
    BAD(1, mnp_predictor_bands(w.predictor, NULL, POINTS, &s.s));
    BAD(1, mnp_predictor_bands(w.predictor, bad_numbers, 3, &s.s));
    for (int k = 0; k < 4; k++) BAD(2, mnp_predictor_bands(w.predictor, xs, counts[k], &s.s));
    BAD(3, mnp_predictor_bands(w.predictor, xs, POINTS, NULL));
    BAD_SUMMARY(3, s, mnp_predictor_bands(w.predictor, xs, POINTS, &s.s));
    CHECK(mnp_predictor_bands(w.predictor, xs, POINTS, &s.s) == MNP_OK);
    CALL(mnp_summarise);
    MUTE(0, mnp_summarise(NULL, ys, 2, 2, &s.s));
    BAD(1, mnp_summarise(w.ctx, NULL, 2, 2, &s.s));
    BAD(1, mnp_summarise(w.ctx, bad_numbers, 1, 3, &s.s));
    for (int k = 0; k < 4; k++) {
        BAD(2, mnp_summarise(w.ctx, ys, counts[k], 2, &s.s));
        BAD(3, mnp_summarise(w.ctx, ys, 2, counts[k], &s.s));
    }
    BAD(4, mnp_summarise(w.ctx, ys, 2, 2, NULL));
    BAD_SUMMARY(4, s, mnp_summarise(w.ctx, ys, 2, 2, &s.s));
    CHECK(mnp_summarise(w.ctx, ys, 2, 2, &s.s) == MNP_OK);
}

static void many_contexts(void) {
    ROOMY(mnp_many_opts, o);
    ROOMY(mnp_summary, s);
    double mean[2 * POINTS];
    const mnp_set good[] = {{0, NULL, NULL}, {POINTS, xs, ys}}, at = {POINTS, xs, NULL};
    const mnp_set wrong[] = {{-1, xs, ys},       {INT64_MAX, xs, ys},  {POINTS, NULL, ys},
                             {POINTS, xs, NULL}, {3, bad_numbers, ys}, {3, xs, bad_numbers}};
    s.s.mean = mean;
    o.s.samples = 2;
#define MANY(contexts, count, targets, sets)                                                       \
    mnp_predict_many(w.ctx, w.model, contexts, count, targets, sets, &o.s, &s.s)
    CALL(mnp_predict_many);
    MUTE(0, mnp_predict_many(NULL, w.model, good, 2, &at, 1, &o.s, &s.s));
    BAD(1, mnp_predict_many(w.ctx, NULL, good, 2, &at, 1, &o.s, &s.s));
    BAD(2, MANY(NULL, 2, &at, 1));
    for (int k = 0; k < 6; k++) BAD(2, MANY(&wrong[k], 1, &at, 1));
    for (int k = 0; k < 3; k++) BAD(3, MANY(good, ((int64_t[]){0, -1, INT64_MAX})[k], &at, 1));
    BAD(4, MANY(good, 2, NULL, 1));
    BAD(4, MANY(good, 2, &good[0], 1));
    for (int k = 0; k < 5; k++)
        if (k != 3) BAD(4, MANY(good, 2, &wrong[k], 1));
    BAD(5, MANY(good, 2, &at, 0));
    BAD(5, MANY(good, 2, &at, 3));
    BAD_OPTS(6, mnp_many_opts, o, MANY(good, 2, &at, 1));
    BAD_FIELD(6, o, samples, -1, MANY(good, 2, &at, 1));
    BAD_FIELD(6, o, samples, INT64_MAX, MANY(good, 2, &at, 1));
    BAD_FIELD(6, o, base, (mnp_base)9, MANY(good, 2, &at, 1));
    BAD_FIELD(6, o, device, "gpu", MANY(good, 2, &at, 1));
    BAD_FIELD(6, o, condition, (mnp_condition)3, MANY(good, 2, &at, 1));
    BAD_FIELD(6, o, gradients, -1, MANY(good, 2, &at, 1));
    BAD_FIELD(6, o, gradients, (1 << 20) + 1, MANY(good, 2, &at, 1));
    mnp_draw_report reports[2] = {{.size = sizeof *reports}};
    BAD_FIELD(6, o, reports, reports, MANY(good, 2, &at, 1)); /* the second has no size */
    BAD_FIELD(6, o, reports, &reports[1], MANY(good, 2, &at, 1));
    BAD(7, mnp_predict_many(w.ctx, w.model, good, 2, &at, 1, &o.s, NULL));
    BAD_SUMMARY(7, s, MANY(good, 2, &at, 1));
    o.s.samples = 2;
    CHECK(MANY(good, 2, &at, 1) == MNP_OK);
#undef MANY
}

/* Two curves, what is known of them, and places without a curve. */
static void forecasts_of_curves(void) {
    ROOMY(mnp_groups_opts, o);
    ROOMY(mnp_summary, s);
    double mean[6];
    char text[64];
    mnp_condition how = MNP_EXACT;
    mnp_table *seen = NULL, *grid = NOT_NULL, *made = NOT_NULL;
    const char *csv = path_of("curves.csv");
    FILE *f = fopen(csv, "w");
    CHECK(f && fputs("id,x,y\na,0,1\nb,1,2\n", f) >= 0 && fclose(f) == 0);
    BAD(2, mnp_table_open(w.ctx, w.model, csv, true, NULL, &seen)); /* the model has no group */
    mnp_data_opts by_id = {.size = sizeof by_id, .function_column = "id"};
    CHECK(mnp_table_open(w.ctx, w.model, csv, true, &by_id, &seen) == MNP_OK);
    CALL(mnp_table_open_targets);
    MUTE(0, mnp_table_open_targets(NULL, w.model, csv, seen, &by_id, &made));
    CLEARED(made);
    BAD(1, mnp_table_open_targets(w.ctx, NULL, csv, seen, &by_id, &made));
    BAD(2, mnp_table_open_targets(w.ctx, w.model, NULL, seen, &by_id, &made));
    BAD(3, mnp_table_open_targets(w.ctx, w.decider, csv, seen, &by_id, &made));
    BAD(4, mnp_table_open_targets(w.ctx, w.model, csv, seen, &(mnp_data_opts){0}, &made));
    BAD(5, mnp_table_open_targets(w.ctx, w.model, csv, seen, &by_id, NULL));
    CHECK(mnp_table_open_targets(w.ctx, w.model, csv, seen, &by_id, &made) == MNP_OK);
    CHECK(mnp_table_rows(made) == 2 && mnp_table_y(made)[1] == 2);
    mnp_table_destroy(made);
    CALL(mnp_table_grid);
    MUTE(0, mnp_table_grid(NULL, w.model, "0:1:3", &grid));
    CLEARED(grid);
    BAD(1, mnp_table_grid(w.ctx, NULL, "0:1:3", &grid));
    BAD(2, mnp_table_grid(w.ctx, w.model, NULL, &grid));
    const char *const bad[] = {"", "0:1", "1:0:3", "0:1:0", "0:nan:3", "0:1e300:3", "0:1:3,0:1:3"};
    for (int k = 0; k < 7; k++) BAD(2, mnp_table_grid(w.ctx, w.model, bad[k], &grid));
    CLEARED(grid);
    BAD(3, mnp_table_grid(w.ctx, w.model, "0:1:3", NULL));
    CHECK(mnp_table_grid(w.ctx, w.model, "0:1:3", &grid) == MNP_OK && mnp_table_rows(grid) == 3);
    CALL(mnp_table_spread);
    MUTE(0, mnp_table_spread(NULL, w.model, grid, seen, &made));
    CLEARED(made);
    BAD(1, mnp_table_spread(w.ctx, NULL, grid, seen, &made));
    BAD(2, mnp_table_spread(w.ctx, w.model, NULL, seen, &made));
    BAD(2, mnp_table_spread(w.ctx, w.model, seen, seen, &made));
    BAD(3, mnp_table_spread(w.ctx, w.model, grid, NULL, &made));
    BAD(3, mnp_table_spread(w.ctx, w.model, grid, grid, &made));
    BAD(4, mnp_table_spread(w.ctx, w.model, grid, seen, NULL));
    CHECK(mnp_table_spread(w.ctx, w.model, grid, seen, &made) == MNP_OK);
    CHECK(mnp_table_rows(made) == 6 && mnp_table_groups(made) == 2);
    s.s.mean = mean;
    o.s.samples = 2;
#define GROUPS(context, places) mnp_predict_groups(w.ctx, w.model, context, places, &o.s, &s.s)
    CALL(mnp_predict_groups);
    MUTE(0, mnp_predict_groups(NULL, w.model, seen, made, &o.s, &s.s));
    BAD(1, mnp_predict_groups(w.ctx, NULL, seen, made, &o.s, &s.s));
    BAD(2, GROUPS(seen, grid)); /* one has curves, the other not */
    BAD(2, GROUPS(grid, grid)); /* without y */
    BAD(3, GROUPS(seen, NULL));
    BAD_OPTS(4, mnp_groups_opts, o, GROUPS(seen, made));
    BAD_FIELD(4, o, samples, -1, GROUPS(seen, made));
    BAD_FIELD(4, o, samples, INT64_MAX, GROUPS(seen, made));
    BAD_FIELD(4, o, device, "gpu", GROUPS(seen, made));
    BAD_FIELD(4, o, condition, (mnp_condition)3, GROUPS(seen, made));
    BAD_FIELD(4, o, gradients, -1, GROUPS(seen, made));
    BAD_FIELD(4, o, work_max, -1, GROUPS(seen, made));
    BAD_FIELD(4, o, smooth, 2, GROUPS(seen, made));
    mnp_draw_report reports[2] = {{.size = sizeof *reports}};
    BAD_FIELD(4, o, reports, reports, GROUPS(seen, made)); /* the second has no size */
    BAD(5, mnp_predict_groups(w.ctx, w.model, seen, made, &o.s, NULL));
    BAD_SUMMARY(5, s, GROUPS(seen, made));
    o.s.samples = 2;
    CHECK(GROUPS(seen, made) == MNP_OK && GROUPS(NULL, made) == MNP_OK);
#undef GROUPS
    CALL(mnp_table_match);
    GIVES(0, mnp_table_match(NULL, seen, made, text, sizeof text) == 0 && !*text);
    GIVES(1, mnp_table_match(w.ctx, NULL, made, text, sizeof text) == 0);
    GIVES(2, mnp_table_match(w.ctx, seen, NULL, text, sizeof text) == 0);
    GIVES(3, mnp_table_match(w.ctx, seen, made, NULL, 0) == 0);
    GIVES(4, mnp_table_match(w.ctx, seen, made, text, 0) == 0);
    CALL(mnp_model_condition);
    GIVES(0, !mnp_model_condition(NULL, &how));
    GIVES(1, !mnp_model_condition(w.model, NULL) && !mnp_model_condition(w.model, &how));
    CHECK(how == MNP_EXACT);
    mnp_table_destroy(made);
    mnp_table_destroy(grid);
    mnp_table_destroy(seen);
    unlink(csv);
}

static void query_densities(void) {
    double out[2 * POINTS];
    mnp_set good = {POINTS, xs, ys};
    const mnp_set wrong[] = {{0, xs, ys},         {-1, xs, ys},       {INT64_MAX, xs, ys},
                             {POINTS, NULL, ys},  {POINTS, xs, NULL}, {3, bad_numbers, ys},
                             {3, xs, bad_numbers}};
    CALL(mnp_predictor_logp);
    MUTE(0, mnp_predictor_logp(NULL, &good, out));
    BAD(1, mnp_predictor_logp(w.predictor, NULL, out));
    for (int k = 0; k < 7; k++) BAD(1, mnp_predictor_logp(w.predictor, &wrong[k], out));
    BAD(2, mnp_predictor_logp(w.predictor, &good, NULL));
    CHECK(mnp_predictor_draw_latents(w.predictor, 1, 2) == MNP_OK);
    CHECK(mnp_predictor_logp(w.predictor, &good, out) == MNP_OK); /* it still works */
    /* and without a set: nothing is added to a pointer that is NULL */
    mnp_predictor_reset(w.predictor);
    CHECK(mnp_predictor_draw_latents(w.predictor, 1, 2) == MNP_OK);
    CHECK(mnp_predictor_predict(w.predictor, xs, POINTS, MNP_BASE_NORMAL, out) == MNP_OK);
}

/* ---- fitting --------------------------------------------------------------------------------- */

enum { FIT_CURVES = 6, FIT_POINTS = 5 };

/* A handful of short curves. */
static mnp_data *some_curves(void) {
    double x[FIT_CURVES][FIT_POINTS], y[FIT_CURVES][FIT_POINTS];
    mnp_set sets[FIT_CURVES];
    mnp_data *data = NULL;
    for (int i = 0; i < FIT_CURVES; i++) {
        for (int j = 0; j < FIT_POINTS; j++) {
            x[i][j] = j + 0.1 * i;
            y[i][j] = 0.3 * i + 0.5 * x[i][j] + 0.1 * ((3 * i + 5 * j) % 7);
        }
        sets[i] = (mnp_set){FIT_POINTS, x[i], y[i]};
    }
    CHECK(mnp_data_from_sets(w.ctx, sets, FIT_CURVES, 1, &data) == MNP_OK);
    return data;
}

static int scored_rows;
static void count_scored(void *user, const mnp_fit_score *s, int64_t rows) {
    (void)user;
    CHECK(s[0].task == MNP_FIT_FIRST && s[rows - 1].task == MNP_FIT_RANDOM);
    scored_rows += (int)rows;
}

static void fitting(void) {
    ROOMY(mnp_fit_opts, o);
    mnp_data *data = some_curves();
    mnp_fit *made = NOT_NULL;
    CALL(mnp_fit_run);
    MUTE(0, mnp_fit_run(NULL, data, NULL, &made));
    CLEARED(made);
    BAD(1, mnp_fit_run(w.ctx, NULL, NULL, &made));
    BAD(1, mnp_fit_run(w.ctx, w.data, NULL, &made)); /* one curve */
    CLEARED(made);
    BAD_OPTS(2, mnp_fit_opts, o, mnp_fit_run(w.ctx, data, &o.s, &made));
    BAD_FIELD(2, o, folds, -1, mnp_fit_run(w.ctx, data, &o.s, &made));
    BAD_FIELD(2, o, folds, 1001, mnp_fit_run(w.ctx, data, &o.s, &made));
    BAD_FIELD(2, o, effort, 1001, mnp_fit_run(w.ctx, data, &o.s, &made));
    BAD_FIELD(2, o, seconds, -1, mnp_fit_run(w.ctx, data, &o.s, &made));
    for (int k = 0; k < 3; k++) {
        BAD_FIELD(2, o, effort, bad_numbers[k], mnp_fit_run(w.ctx, data, &o.s, &made));
        BAD_FIELD(2, o, seconds, bad_numbers[k], mnp_fit_run(w.ctx, data, &o.s, &made));
    }
    BAD(3, mnp_fit_run(w.ctx, data, NULL, NULL));
    o.s.folds = 2, o.s.effort = -1;
    o.s.scored = count_scored;
    CHECK(mnp_fit_run(w.ctx, data, &o.s, &w.fit) == MNP_OK);
    CHECK(scored_rows == mnp_fit_rows(w.fit));
    mnp_data_destroy(data);
}

static void fit_answers(void) {
    ROOMY(mnp_fit_score, s);
    char path[600];
    CALL(mnp_fit_candidate);
    GIVES(0, !mnp_fit_candidate(-1, NULL) && !mnp_fit_candidate(100, NULL));
    GIVES(1, strcmp(mnp_fit_candidate(0, NULL), "offset") == 0);
    CALL(mnp_fit_rows);
    GIVES(0, mnp_fit_rows(NULL) == 0);
    CHECK(mnp_fit_rows(w.fit) == 2 * mnp_fit_models(w.fit));
    CALL(mnp_fit_row);
    GIVES(0, !mnp_fit_row(NULL, 0, &s.s));
    GIVES(1, !mnp_fit_row(w.fit, -1, &s.s) && !mnp_fit_row(w.fit, mnp_fit_rows(w.fit), &s.s));
    GIVES(2, !mnp_fit_row(w.fit, 0, NULL));
    s.s.size = 3;
    GIVES(2, !mnp_fit_row(w.fit, 0, &s.s));
    s.s.size = sizeof s.s;
    CHECK(mnp_fit_row(w.fit, 1, &s.s) && s.s.curves == FIT_CURVES && s.s.crps > 0);
    CALL(mnp_fit_models);
    GIVES(0, mnp_fit_models(NULL) == 0);
    CALL(mnp_fit_name);
    GIVES(0, !mnp_fit_name(NULL, 0));
    GIVES(1, !mnp_fit_name(w.fit, -1) && !mnp_fit_name(w.fit, mnp_fit_models(w.fit)));
    CALL(mnp_fit_model);
    GIVES(0, !mnp_fit_model(NULL, 0));
    GIVES(1, !mnp_fit_model(w.fit, -1) && !mnp_fit_model(w.fit, mnp_fit_models(w.fit)));
    CHECK(mnp_model_x_dim(mnp_fit_model(w.fit, 0)) == 1);
    CALL(mnp_fit_best);
    GIVES(0, mnp_fit_best(NULL) == -1 && mnp_fit_name(w.fit, mnp_fit_best(w.fit)));
    CALL(mnp_fit_why);
    GIVES(0, *mnp_fit_why(NULL) == '\0' && *mnp_fit_why(w.fit));
    CALL(mnp_fit_warnings);
    GIVES(0, *mnp_fit_warnings(NULL) == '\0' && strstr(mnp_fit_warnings(w.fit), "few"));
    CALL(mnp_fit_curves);
    GIVES(0, mnp_fit_curves(NULL) == 0 && mnp_fit_curves(w.fit) == FIT_CURVES);
    CALL(mnp_fit_folds);
    GIVES(0, mnp_fit_folds(NULL) == 0 && mnp_fit_folds(w.fit) == 2);
    CALL(mnp_fit_effort);
    GIVES(0, isnan(mnp_fit_effort(NULL)) && mnp_fit_effort(w.fit) == -1);
    int64_t other = mnp_fit_best(w.fit) ? 0 : 1;
    CALL(mnp_fit_path);
    mnp_fit_path(w.fit, mnp_fit_best(w.fit), "a/m.safetensors", path, sizeof path);
    CHECK(strcmp(path, "a/m.safetensors") == 0);
    mnp_fit_path(w.fit, other, "m", path, sizeof path);
    CHECK(strncmp(path, "m.", 2) == 0 && strstr(path, mnp_fit_name(w.fit, other)));
    GIVES(0, (mnp_fit_path(NULL, 0, "m", path, sizeof path), *path == '\0'));
    GIVES(1, (mnp_fit_path(w.fit, -1, "m", path, sizeof path), *path == '\0'));
    GIVES(2, (mnp_fit_path(w.fit, 0, NULL, path, sizeof path), *path == '\0'));
    RETURNS(3, mnp_fit_path(w.fit, 0, "m", NULL, 0));
    GIVES(4, (mnp_fit_path(w.fit, 0, "m", path, 2), strcmp(path, "m") == 0));
}

static void saving_a_fit(void) {
    char path[600];
    mnp_model *again = NULL;
    snprintf(path, sizeof path, "%s", path_of("fit.safetensors"));
    CALL(mnp_fit_save);
    MUTE(0, mnp_fit_save(NULL, w.fit, path));
    BAD(1, mnp_fit_save(w.ctx, NULL, path));
    BAD(2, mnp_fit_save(w.ctx, w.fit, NULL));
    CHECK(mnp_fit_save(w.ctx, w.fit, "/no/such/folder/m") == MNP_EIO);
    CHECK(mnp_fit_save(w.ctx, w.fit, path) == MNP_OK);
    CHECK(mnp_model_load(w.ctx, path, &again) == MNP_OK);
    BAD(2, mnp_fit_save(w.ctx, w.fit, path)); /* they exist */
    mnp_model_destroy(again);
    CALL(mnp_fit_picture);
    snprintf(path, sizeof path, "%s", path_of("fit.svg"));
    MUTE(0, mnp_fit_picture(NULL, w.fit, path));
    BAD(1, mnp_fit_picture(w.ctx, NULL, path));
    BAD(2, mnp_fit_picture(w.ctx, w.fit, NULL));
    BAD(2, mnp_fit_picture(w.ctx, w.fit, path_of("fit.bmp")));
    CHECK(mnp_fit_picture(w.ctx, w.fit, path) == MNP_OK && access(path, F_OK) == 0);
    ROOMY(mnp_fit_report_opts, o);
    CALL(mnp_fit_report);
    snprintf(path, sizeof path, "%s", path_of("fit.html"));
    MUTE(0, mnp_fit_report(NULL, w.fit, NULL, NULL, path));
    BAD(1, mnp_fit_report(w.ctx, NULL, NULL, NULL, path));
    RETURNS(2, mnp_fit_report(w.ctx, w.fit, NULL, NULL, "/no/such/folder/fit.html"));
    BAD_OPTS(3, mnp_fit_report_opts, o, mnp_fit_report(w.ctx, w.fit, NULL, &o.s, path));
    BAD(4, mnp_fit_report(w.ctx, w.fit, NULL, NULL, NULL));
    CHECK(mnp_fit_report(w.ctx, w.fit, NULL, NULL, path) == MNP_OK && access(path, F_OK) == 0);
    CALL(mnp_fit_destroy);
    RETURNS(0, mnp_fit_destroy(NULL));
    mnp_fit_destroy(w.fit);
}

/* ---- bandits --------------------------------------------------------------------------------- */

/* Fields that all calls with these options check. */
#define BAD_PLAY(argument, o, call)                                                                \
    do {                                                                                           \
        BAD_OPTS(argument, mnp_bandit_opts, o, call);                                              \
        for (int k_ = 0; k_ < 3; k_++) BAD_FIELD(argument, o, width, bad_numbers[k_], call);       \
        BAD_FIELD(argument, o, width, -1, call);                                                   \
        BAD_FIELD(argument, o, draws, -1, call);                                                   \
        BAD_FIELD(argument, o, draws, INT64_MAX, call);                                            \
        BAD_FIELD(argument, o, initial_pulls, INT64_MAX, call);                                    \
        BAD_FIELD(argument, o, refresh, -1, call);                                                 \
        BAD_FIELD(argument, o, policy, "no-such-policy", call);                                    \
        BAD_FIELD(argument, o, agent, "no-such-agent", call);                                      \
    } while (0)

static void wheels(void) {
    ROOMY(mnp_bandit_opts, o);
    ROOMY(mnp_bandit_scores, r);
    double x[2 * POINTS];
#define WHEEL mnp_bandit_wheel(w.ctx, NULL, &o.s, &r.s)
    CALL(mnp_bandit_wheel);
    MUTE(0, mnp_bandit_wheel(NULL, NULL, &o.s, &r.s));
    BAD(1, WHEEL);                                          /* the agent mnp needs a model */
    BAD(1, mnp_bandit_wheel(w.ctx, w.decider, &o.s, &r.s)); /* and 7 inputs                */
    BAD_PLAY(2, o, WHEEL);
    for (int k = 0; k < 3; k++) BAD_FIELD(2, o, delta, bad_numbers[k], WHEEL);
    BAD_FIELD(2, o, delta, -0.1, WHEEL);
    BAD_FIELD(2, o, delta, 1, WHEEL);
    BAD_FIELD(2, o, trials, -1, WHEEL);
    BAD_FIELD(2, o, trials, INT64_MAX, WHEEL);
    BAD_FIELD(2, o, steps, -1, WHEEL);
    BAD_FIELD(2, o, steps, INT64_MAX, WHEEL);
    BAD_FIELD(2, o, last, -1, WHEEL);
    BAD(3, mnp_bandit_wheel(w.ctx, NULL, &o.s, NULL));
    BAD_SIZES(3, mnp_bandit_scores, r, WHEEL);
#undef WHEEL
    CALL(mnp_bandit_wheel_contexts);
    MUTE(0, mnp_bandit_wheel_contexts(NULL, 0.5, 1, 0, POINTS, x));
    for (int k = 0; k < 3; k++)
        BAD(1, mnp_bandit_wheel_contexts(w.ctx, bad_numbers[k], 1, 0, POINTS, x));
    BAD(1, mnp_bandit_wheel_contexts(w.ctx, 2, 1, 0, POINTS, x));
    GIVES(2, mnp_bandit_wheel_contexts(w.ctx, 0.5, UINT64_MAX, 0, POINTS, x) == MNP_OK);
    BAD(3, mnp_bandit_wheel_contexts(w.ctx, 0.5, 1, -1, POINTS, x));
    BAD(3, mnp_bandit_wheel_contexts(w.ctx, 0.5, 1, INT64_MAX, POINTS, x));
    BAD(4, mnp_bandit_wheel_contexts(w.ctx, 0.5, 1, 0, 0, x));
    BAD(4, mnp_bandit_wheel_contexts(w.ctx, 0.5, 1, 0, -1, x));
    BAD(4, mnp_bandit_wheel_contexts(w.ctx, 0.5, 1, 0, INT64_MAX, x));
    BAD(5, mnp_bandit_wheel_contexts(w.ctx, 0.5, 1, 0, POINTS, NULL));
    const char *help = "unset";
    CALL(mnp_bandit_agent);
    GIVES(0, mnp_bandit_agent(-1, &help) == NULL && !help);
    GIVES(0, mnp_bandit_agent(INT32_MAX, &help) == NULL);
    GIVES(1, mnp_bandit_agent(0, NULL) != NULL);
}

static void players(void) {
    ROOMY(mnp_bandit_opts, o);
    mnp_player *made = NOT_NULL;
    int64_t action = 7;
    CALL(mnp_player_create);
    MUTE(0, mnp_player_create(NULL, w.decider, NULL, 1, ACTIONS, &made));
    CLEARED(made);
    BAD(1, mnp_player_create(w.ctx, NULL, NULL, 1, ACTIONS, &made));
    BAD(1, mnp_player_create(w.ctx, w.model, NULL, 1, ACTIONS, &made));
    CLEARED(made);
    BAD_PLAY(2, o, mnp_player_create(w.ctx, w.decider, &o.s, 1, ACTIONS, &made));
    const int64_t counts[] = {0, -1, INT64_MAX, 1};
    for (int k = 0; k < 4; k++) {
        if (k < 3) BAD(3, mnp_player_create(w.ctx, w.decider, NULL, counts[k], ACTIONS, &made));
        BAD(4, mnp_player_create(w.ctx, w.decider, NULL, 1, counts[k], &made));
    }
    CLEARED(made);
    BAD(5, mnp_player_create(w.ctx, w.decider, NULL, 1, ACTIONS, NULL));
    CALL(mnp_player_destroy);
    RETURNS(0, mnp_player_destroy(NULL));
    CALL(mnp_player_act);
    MUTE(0, mnp_player_act(NULL, xs, &action));
    BAD(1, mnp_player_act(w.player, NULL, &action));
    for (int k = 0; k < 3; k++) BAD(1, mnp_player_act(w.player, &bad_numbers[k], &action));
    BAD(2, mnp_player_act(w.player, xs, NULL));
    CHECK(action == 7);
    CALL(mnp_player_observe);
    MUTE(0, mnp_player_observe(NULL, xs, 0, 1));
    BAD(1, mnp_player_observe(w.player, NULL, 0, 1));
    for (int k = 0; k < 3; k++) {
        BAD(1, mnp_player_observe(w.player, &bad_numbers[k], 0, 1));
        BAD(3, mnp_player_observe(w.player, xs, 0, bad_numbers[k]));
    }
    BAD(2, mnp_player_observe(w.player, xs, -1, 1));
    BAD(2, mnp_player_observe(w.player, xs, ACTIONS, 1));
    BAD(2, mnp_player_observe(w.player, xs, INT64_MAX, 1));
}

static void agents(void) {
    ROOMY(mnp_agent_train_opts, o);
    char name[16] = "unset";
    const char *path = path_of("a");
    CALL(mnp_agent_trains);
    GIVES(0, !mnp_agent_trains(NULL) && !mnp_agent_trains("") && !mnp_agent_trains("mnp"));
    CALL(mnp_agent_train);
    MUTE(0, mnp_agent_train(NULL, "maml", w.data, NULL, path));
    BAD(1, mnp_agent_train(w.ctx, NULL, w.data, NULL, path));
    BAD(1, mnp_agent_train(w.ctx, "mnp", w.data, NULL, path));
    BAD(2, mnp_agent_train(w.ctx, "maml", NULL, NULL, path));
    BAD_OPTS(3, mnp_agent_train_opts, o, mnp_agent_train(w.ctx, "maml", w.data, &o.s, path));
    BAD_FIELD(3, o, options, "steps=-1", mnp_agent_train(w.ctx, "maml", w.data, &o.s, path));
    BAD(4, mnp_agent_train(w.ctx, "maml", w.data, NULL, NULL));
    CHECK(access(path, F_OK) != 0);
    CALL(mnp_agent_file);
    GIVES(0, !mnp_agent_file(NULL, path, name, sizeof name) && !*name);
    GIVES(1, !mnp_agent_file(w.ctx, NULL, name, sizeof name));
    GIVES(2, !mnp_agent_file(w.ctx, path, NULL, sizeof name));
    GIVES(3, !mnp_agent_file(w.ctx, path, NULL, 0));
}

static void replays(void) {
    ROOMY(mnp_bandit_opts, o);
    ROOMY(mnp_log_opts, l);
    ROOMY(mnp_replay_scores, r);
    const char *log = path_of("log.csv");
    FILE *f = fopen(log, "w");
    CHECK(f != NULL);
    if (f) fputs("x,action,reward\n0.1,a,1\n0.2,b,0\n0.3,a,1\n0.4,b,1\n", f), fclose(f);
    o.s.agent = "uniform";
#define REPLAY mnp_bandit_replay(w.ctx, log, NULL, &o.s, &l.s, &r.s)
    CALL(mnp_bandit_replay);
    MUTE(0, mnp_bandit_replay(NULL, log, NULL, &o.s, &l.s, &r.s));
    BAD(1, mnp_bandit_replay(w.ctx, NULL, NULL, &o.s, &l.s, &r.s));
    BAD(2, mnp_bandit_replay(w.ctx, log, NULL, NULL, &l.s, &r.s)); /* mnp needs a model */
    BAD(2, mnp_bandit_replay(w.ctx, log, w.model, NULL, &l.s, &r.s));
    BAD_PLAY(3, o, REPLAY);
    o.s.agent = "uniform";
    BAD_OPTS(4, mnp_log_opts, l, REPLAY);
    BAD_FIELD(4, l, passes, -1, REPLAY);
    BAD_FIELD(4, l, passes, INT64_MAX, REPLAY);
    BAD_FIELD(4, l, action_column, "no-such-column", REPLAY);
    BAD(5, mnp_bandit_replay(w.ctx, log, NULL, &o.s, NULL, NULL));
    BAD_SIZES(5, mnp_replay_scores, r, REPLAY);
#undef REPLAY
    unlink(log);
}

/* ---- options --------------------------------------------------------------------------------- */

static void lists(void) {
    const char *help = "unset";
    char text[32] = "unset";
    CALL(mnp_model_process);
    GIVES(0, !mnp_model_process(-1, &help) && !help && !mnp_model_process(INT32_MAX, &help));
    GIVES(1, mnp_model_process(0, NULL) != NULL);
    CALL(mnp_model_preset);
    help = "unset";
    GIVES(0, !mnp_model_preset(-1, &help) && !help && !mnp_model_preset(INT32_MAX, &help));
    GIVES(1, mnp_model_preset(0, NULL) != NULL);
    CALL(mnp_device);
    GIVES(0, !mnp_device(NULL, 0, text, sizeof text) && !*text);
    GIVES(1, !mnp_device(w.ctx, -1, text, sizeof text) &&
                 !mnp_device(w.ctx, INT32_MAX, text, sizeof text) && !*text);
    GIVES(2, !mnp_device(w.ctx, 0, NULL, sizeof text));
    GIVES(3, mnp_device(w.ctx, 0, NULL, 0) && mnp_device(w.ctx, 0, text, 4) && strlen(text) == 3);
    CHECK(!*mnp_last_error(w.ctx));
    CALL(mnp_device_precision);
    help = "unset";
    MUTE(0, mnp_device_precision(NULL, "cpu", &help));
    CHECK(!help);
    help = "unset";
    BAD(1, mnp_device_precision(w.ctx, "no-such-device", &help));
    CHECK(!help);
    BAD(2, mnp_device_precision(w.ctx, "cpu", NULL));
}

static void single_options(void) {
    ROOMY(mnp_option, o);
    CALL(mnp_options_table);
    GIVES(0, !mnp_options_table(-1) && !mnp_options_table(INT32_MAX) && mnp_options_table(0));
    CALL(mnp_options_at);
    GIVES(0, !mnp_options_at(NULL, 0, &o.s) && !mnp_options_at("no-such-table", 0, &o.s));
    GIVES(1, !mnp_options_at("model", -1, &o.s) && !mnp_options_at("model", INT32_MAX, &o.s));
    GIVES(2, !mnp_options_at("model", 0, NULL));
    for (int k = 0; k < WRONG_SIZES; k++) {
        o.s.size = wrong_sizes[k];
        GIVES(2, !mnp_options_at("model", 0, &o.s));
    }
    o.s.size = mnp_option_first - 1;
    GIVES(2, !mnp_options_at("model", 0, &o.s) && !o.s.name);
}

static void option_tables(void) {
    char text[32] = "unset";
    CALL(mnp_options_has);
    GIVES(0, !mnp_options_has(NULL, "T") && !mnp_options_has("no-such-table", "T"));
    GIVES(1, !mnp_options_has("model", NULL) && !mnp_options_has("model", "no-such-option"));
    CHECK(mnp_options_has("model", "T") && mnp_options_has("train", "lr"));
    CALL(mnp_options_help);
    GIVES(0, mnp_options_help(NULL, text, sizeof text) == 0 && !*text);
    GIVES(0, mnp_options_help("no-such-table", text, sizeof text) == 0);
    GIVES(1, mnp_options_help("model", NULL, sizeof text) > sizeof text);
    GIVES(2, mnp_options_help("model", text, 0) > sizeof text);
    GIVES(2, mnp_options_help("model", text, sizeof text) > sizeof text && strlen(text) == 31);
}

/* ---- maps ------------------------------------------------------------------------------------ */

static void map_places(void) {
    const mnp_map_frame good = {.rows = 3, .cols = 3, .lo = {-1, -1}, .hi = {1, 1}};
    mnp_map_frame wrong[] = {good, good, good, good, good};
    wrong[0].rows = 1, wrong[1].cols = INT64_MAX, wrong[2].lo[0] = NAN;
    wrong[3].hi[1] = INFINITY, wrong[4].hi[0] = -1;
    double x[4] = {7};
    int64_t pixel[4];
    CALL(mnp_map_images);
    GIVES(0, !mnp_map_images(NULL) && !mnp_map_images(w.model));
    CALL(mnp_map_inputs);
    MUTE(0, mnp_map_inputs(NULL, &good, 2, xs, x));
    BAD(1, mnp_map_inputs(w.ctx, NULL, 2, ys, x));
    for (int k = 0; k < 5; k++) BAD(1, mnp_map_inputs(w.ctx, &wrong[k], 1, ys, x));
    BAD(2, mnp_map_inputs(w.ctx, &good, -1, ys, x));
    BAD(2, mnp_map_inputs(w.ctx, &good, INT64_MAX, ys, x));
    BAD(3, mnp_map_inputs(w.ctx, &good, 1, NULL, x));
    BAD(3, mnp_map_inputs(w.ctx, &good, 1, bad_numbers, x));
    BAD(4, mnp_map_inputs(w.ctx, &good, 1, ys, NULL));
    CHECK(x[0] == 7);
    const double extent[4] = {0, 10, 0, 10}, flipped[4] = {0, 10, 10, 0};
    CALL(mnp_map_rivers);
    GIVES(0, !mnp_map_rivers(NULL) && !mnp_map_rivers(w.model));
    CALL(mnp_map_values);
    GIVES(0, !mnp_map_values(NULL, &x[0], &x[1]));
    GIVES(1, !mnp_map_values(w.model, NULL, &x[1]));
    GIVES(2, !mnp_map_values(w.model, &x[0], NULL));
    CALL(mnp_map_size);
    GIVES(0, !mnp_map_size(NULL, &pixel[0], &pixel[1]));
    GIVES(1, !mnp_map_size(w.model, NULL, &pixel[1]));
    GIVES(2, !mnp_map_size(w.model, &pixel[0], NULL));
    char line[8] = "?";
    CALL(mnp_map_meaning_of);
    GIVES(0, mnp_map_meaning_of(NULL, 2, ys, line, 8) == MNP_MAP_VALUES && *line == '\0');
    GIVES(1, mnp_map_meaning_of(w.model, -1, ys, line, 8) == MNP_MAP_VALUES);
    GIVES(2, mnp_map_meaning_of(w.model, 2, NULL, line, 8) == MNP_MAP_VALUES);
    GIVES(3, mnp_map_meaning_of(w.model, 2, ys, NULL, 8) == MNP_MAP_VALUES);
    GIVES(4, mnp_map_meaning_of(w.model, 2, ys, line, 0) == MNP_MAP_VALUES);
    CALL(mnp_map_pixels);
    MUTE(0, mnp_map_pixels(NULL, &good, extent, 1, ys, x));
    BAD(1, mnp_map_pixels(w.ctx, NULL, extent, 1, ys, x));
    for (int k = 0; k < 5; k++) BAD(1, mnp_map_pixels(w.ctx, &wrong[k], extent, 1, ys, x));
    BAD(2, mnp_map_pixels(w.ctx, &good, NULL, 1, ys, x));
    BAD(2, mnp_map_pixels(w.ctx, &good, flipped, 1, ys, x));
    BAD(3, mnp_map_pixels(w.ctx, &good, extent, -1, ys, x));
    BAD(4, mnp_map_pixels(w.ctx, &good, extent, 1, NULL, x));
    BAD(4, mnp_map_pixels(w.ctx, &good, extent, 1, bad_numbers, x));
    BAD(5, mnp_map_pixels(w.ctx, &good, extent, 1, ys, NULL));
    CALL(mnp_map_places);
    MUTE(0, mnp_map_places(NULL, &good, extent, 1, ys, x));
    BAD(1, mnp_map_places(w.ctx, NULL, extent, 1, ys, x));
    BAD(2, mnp_map_places(w.ctx, &good, NULL, 1, ys, x));
    BAD(2, mnp_map_places(w.ctx, &good, flipped, 1, ys, x));
    BAD(3, mnp_map_places(w.ctx, &good, extent, -1, ys, x));
    BAD(4, mnp_map_places(w.ctx, &good, extent, 1, NULL, x));
    BAD(5, mnp_map_places(w.ctx, &good, extent, 1, ys, NULL));
    CHECK(x[0] == 7);
    CALL(mnp_map_wells);
    MUTE(0, mnp_map_wells(NULL, 3, 3, 2, 1, pixel));
    for (int k = 0; k < 3; k++) {
        const int64_t sides[] = {0, -1, INT64_MAX};
        BAD(1, mnp_map_wells(w.ctx, sides[k], 3, 2, 1, pixel));
        BAD(2, mnp_map_wells(w.ctx, 3, sides[k], 2, 1, pixel));
        BAD(3, mnp_map_wells(w.ctx, 3, 3, sides[k], 1, pixel));
    }
    GIVES(4, mnp_map_wells(w.ctx, 3, 3, 2, UINT64_MAX, pixel) == MNP_OK);
    BAD(5, mnp_map_wells(w.ctx, 3, 3, 2, 1, NULL));
}

static void maps(void) {
    ROOMY(mnp_map_opts, o);
    ROOMY(mnp_map, m);
    const mnp_map_frame good = {.rows = 2, .cols = 2, .lo = {-1, -1}, .hi = {1, 1}};
    const mnp_set seen = {2, xs, ys};
    const mnp_set wrong[] = {{-1, xs, ys},  {INT64_MAX, xs, ys},  {2, NULL, ys},
                             {2, xs, NULL}, {1, bad_numbers, ys}, {1, xs, bad_numbers}};
    double mean[POINTS];
    mnp_model *two = NULL;
    CHECK(mnp_model_create(w.ctx, "np", "tiny", "x_dim=2", NULL, 1, &two) == MNP_OK);
    m.s.mean = mean;
    o.s.samples = 2;
#define MAP mnp_map_make(w.ctx, two, &good, &seen, &o.s, &m.s)
    CALL(mnp_map_make);
    MUTE(0, mnp_map_make(NULL, two, &good, &seen, &o.s, &m.s));
    BAD(1, mnp_map_make(w.ctx, NULL, &good, &seen, &o.s, &m.s));
    BAD(1, mnp_map_make(w.ctx, w.model, &good, &seen, &o.s, &m.s)); /* one input */
    BAD(2, mnp_map_make(w.ctx, two, NULL, &seen, &o.s, &m.s));
    BAD(2, mnp_map_make(w.ctx, two, &(mnp_map_frame){.rows = 2}, &seen, &o.s, &m.s));
    for (int k = 0; k < 6; k++) {
        BAD(3, mnp_map_make(w.ctx, two, &good, &wrong[k], &o.s, &m.s));
        BAD_FIELD(4, o, honour, &wrong[k], MAP);
    }
    BAD_OPTS(4, mnp_map_opts, o, MAP);
    BAD_FIELD(4, o, samples, -1, MAP);
    BAD_FIELD(4, o, samples, INT64_MAX, MAP);
    BAD_FIELD(4, o, device, "gpu", MAP);
    BAD_FIELD(4, o, range, -1, MAP);
    BAD_FIELD(4, o, condition, (mnp_condition)3, MAP);
    BAD_FIELD(4, o, gradients, -1, MAP);
    for (int k = 0; k < 3; k++) {
        BAD_FIELD(4, o, range, bad_numbers[k], MAP);
        BAD_FIELD(4, o, threshold, bad_numbers[k], MAP);
        BAD_FIELD(4, o, angle, bad_numbers[k], MAP);
    }
    BAD(5, mnp_map_make(w.ctx, two, &good, &seen, &o.s, NULL));
    BAD_OPTS(5, mnp_map, m, MAP);
    BAD_FIELD(5, m, report, &(mnp_draw_report){.size = 7}, MAP);
    o.s.samples = 2;
    CHECK(MAP == MNP_OK);
#undef MAP
    mnp_model_destroy(two);
}

static void rivers(void) {
    ROOMY(mnp_rivers_opts, o);
    float y[4] = {0};
    uint8_t mask[256] = {0};
    int64_t side = 7, drawn = 7;
    const int64_t images[3] = {1, 0, 0}, wrong[3] = {1, -1, 0};
    const char *dir = path_of("rivers");
    CALL(mnp_rivers_side);
    MUTE(0, mnp_rivers_side(NULL, &o.s, &side));
    BAD_OPTS(1, mnp_rivers_opts, o, mnp_rivers_side(w.ctx, &o.s, &side));
    BAD_FIELD(1, o, options, "nit=x", mnp_rivers_side(w.ctx, &o.s, &side));
    BAD(2, mnp_rivers_side(w.ctx, &o.s, NULL));
    CALL(mnp_rivers_draw);
    MUTE(0, mnp_rivers_draw(NULL, MNP_TRAIN, 1, MNP_RIVERS_SDF, &o.s, y));
    BAD(1, mnp_rivers_draw(w.ctx, (mnp_split)9, 1, MNP_RIVERS_SDF, &o.s, y));
    for (int k = 0; k < 3; k++)
        BAD(2, mnp_rivers_draw(w.ctx, MNP_TRAIN, ((int64_t[]){0, -1, INT64_MAX})[k], MNP_RIVERS_SDF,
                               &o.s, y));
    BAD(3, mnp_rivers_draw(w.ctx, MNP_TRAIN, 1, (mnp_rivers_value)9, &o.s, y));
    BAD_OPTS(4, mnp_rivers_opts, o, mnp_rivers_draw(w.ctx, MNP_TRAIN, 1, MNP_RIVERS_SDF, &o.s, y));
    BAD_FIELD(4, o, options, "no=1", mnp_rivers_draw(w.ctx, MNP_TRAIN, 1, MNP_RIVERS_SDF, &o.s, y));
    BAD(5, mnp_rivers_draw(w.ctx, MNP_TRAIN, 1, MNP_RIVERS_SDF, &o.s, NULL));
    CALL(mnp_rivers_write);
    MUTE(0, mnp_rivers_write(NULL, dir, images, &o.s, &drawn));
    BAD(1, mnp_rivers_write(w.ctx, NULL, images, &o.s, &drawn));
    BAD(2, mnp_rivers_write(w.ctx, dir, NULL, &o.s, &drawn));
    BAD(2, mnp_rivers_write(w.ctx, dir, wrong, &o.s, &drawn));
    BAD_OPTS(3, mnp_rivers_opts, o, mnp_rivers_write(w.ctx, dir, images, &o.s, &drawn));
    BAD(4, mnp_rivers_write(w.ctx, dir, images, &o.s, NULL));
    CHECK(access(dir, F_OK) != 0 && side == 7 && drawn == 7);
    CALL(mnp_rivers_read);
    o.s.options = "nit=40 size=16";
    CHECK(mnp_rivers_write(w.ctx, dir, images, &o.s, &drawn) == MNP_OK && drawn == 1);
    MUTE(0, mnp_rivers_read(NULL, dir, MNP_TRAIN, 0, 1, mask));
    BAD(1, mnp_rivers_read(w.ctx, NULL, MNP_TRAIN, 0, 1, mask));
    BAD(2, mnp_rivers_read(w.ctx, dir, (mnp_split)7, 0, 1, mask));
    BAD(3, mnp_rivers_read(w.ctx, dir, MNP_TRAIN, -1, 1, mask));
    BAD(3, mnp_rivers_read(w.ctx, dir, MNP_TRAIN, 1, 1, mask));
    BAD(4, mnp_rivers_read(w.ctx, dir, MNP_TRAIN, 0, -1, mask));
    BAD(4, mnp_rivers_read(w.ctx, dir, MNP_TRAIN, 0, INT64_MAX, mask));
    BAD(5, mnp_rivers_read(w.ctx, dir, MNP_TRAIN, 0, 1, NULL));
    CHECK(mnp_rivers_read(w.ctx, dir, MNP_TRAIN, 0, 1, mask) == MNP_OK);
    char command[600];
    snprintf(command, sizeof command, "rm -r '%s'", dir);
    CHECK(system(command) == 0);
}

/* ---- figures --------------------------------------------------------------------------------- */

/* Calls without a status: a wrong argument sticks to the figure, and saving reports it. */
#define STICKS(argument, call)                                                                     \
    do {                                                                                           \
        mnp_plot *f_ = NULL;                                                                       \
        CHECK(mnp_plot_create(w.ctx, 1, 1, &f_) == MNP_OK);                                        \
        mnp_panel *panel = mnp_plot_panel(f_, 0, 0);                                               \
        (void)panel;                                                                               \
        calls_try(argument);                                                                       \
        call;                                                                                      \
        BAD(argument, mnp_plot_save(f_, path_of("f.svg")));                                        \
        mnp_plot_destroy(f_);                                                                      \
    } while (0)

static void figures(void) {
    mnp_plot *made = NOT_NULL;
    CALL(mnp_plot_create);
    MUTE(0, mnp_plot_create(NULL, 1, 1, &made));
    CLEARED(made);
    for (int k = 0; k < 3; k++) {
        const int sides[] = {0, -1, MNP_PLOT_SIDE_MAX + 1};
        BAD(1, mnp_plot_create(w.ctx, sides[k], 1, &made));
        BAD(2, mnp_plot_create(w.ctx, 1, sides[k], &made));
    }
    CLEARED(made);
    BAD(3, mnp_plot_create(w.ctx, 1, 1, NULL));
    CHECK(mnp_plot_create(w.ctx, 1, 1, &made) == MNP_OK);
    CALL(mnp_plot_title);
    RETURNS(0, mnp_plot_title(NULL, "t"));
    RETURNS(1, mnp_plot_title(made, NULL));
    CALL(mnp_plot_size);
    RETURNS(0, mnp_plot_size(NULL, 9, 9));
    for (int k = 0; k < 3; k++) {
        STICKS(1, mnp_plot_size(f_, bad_numbers[k], 9));
        STICKS(2, mnp_plot_size(f_, 9, bad_numbers[k]));
    }
    STICKS(1, mnp_plot_size(f_, -1, 9));
    STICKS(2, mnp_plot_size(f_, 9, 1e9));
    CALL(mnp_plot_share);
    RETURNS(0, mnp_plot_share(NULL, true, true));
    RETURNS(1, mnp_plot_share(made, true, false));
    RETURNS(2, mnp_plot_share(made, false, false));
    CALL(mnp_plot_same);
    RETURNS(0, mnp_plot_same(NULL, true, true));
    RETURNS(1, mnp_plot_same(made, true, false));
    RETURNS(2, mnp_plot_same(made, false, false));
    CALL(mnp_plot_legend_below);
    RETURNS(0, mnp_plot_legend_below(NULL, true));
    RETURNS(1, mnp_plot_legend_below(made, false));
    CALL(mnp_plot_panel);
    GIVES(0, mnp_plot_panel(NULL, 0, 0) == NULL);
    GIVES(1, mnp_plot_panel(made, -1, 0) == mnp_plot_panel(made, 7, 0));
    GIVES(2, mnp_plot_panel(made, 0, INT32_MAX) == mnp_plot_panel(made, 0, 0));
    CALL(mnp_plot_save);
    MUTE(0, mnp_plot_save(NULL, path_of("f.svg")));
    BAD(1, mnp_plot_save(made, NULL));
    BAD(1, mnp_plot_save(made, path_of("f.bmp")));
    CHECK(access(path_of("f.svg"), F_OK) != 0 && access(path_of("f.bmp"), F_OK) != 0);
    CALL(mnp_plot_destroy);
    RETURNS(0, mnp_plot_destroy(NULL));
    mnp_plot_destroy(made);
}

static void panels(void) {
    const char *names[] = {"a", "b"};
    const mnp_plot_axis none = (mnp_plot_axis)7;
    CALL(mnp_panel_title);
    RETURNS(0, mnp_panel_title(NULL, "t"));
    RETURNS(1, mnp_panel_title(NULL, NULL));
    CALL(mnp_panel_labels);
    RETURNS(0, mnp_panel_labels(NULL, "x", "y"));
    RETURNS(1, mnp_panel_labels(NULL, NULL, "y"));
    RETURNS(2, mnp_panel_labels(NULL, "x", NULL));
    CALL(mnp_panel_limits);
    RETURNS(0, mnp_panel_limits(NULL, MNP_PLOT_X, 0, 1));
    STICKS(1, mnp_panel_limits(panel, none, 0, 1));
    RETURNS(2, mnp_panel_limits(NULL, MNP_PLOT_X, NAN, 1));
    RETURNS(3, mnp_panel_limits(NULL, MNP_PLOT_X, 0, INFINITY));
    CALL(mnp_panel_log);
    RETURNS(0, mnp_panel_log(NULL, MNP_PLOT_X));
    STICKS(1, mnp_panel_log(panel, none));
    CALL(mnp_panel_dates);
    RETURNS(0, mnp_panel_dates(NULL, MNP_PLOT_X, MNP_PLOT_DAYS));
    STICKS(1, mnp_panel_dates(panel, none, MNP_PLOT_DAYS));
    STICKS(2, mnp_panel_dates(panel, MNP_PLOT_X, (mnp_plot_time)7));
    CALL(mnp_panel_names);
    RETURNS(0, mnp_panel_names(NULL, MNP_PLOT_X, 2, names));
    STICKS(1, mnp_panel_names(panel, none, 2, names));
    STICKS(2, mnp_panel_names(panel, MNP_PLOT_X, -1, names));
    STICKS(3, mnp_panel_names(panel, MNP_PLOT_X, 2, NULL));
    CALL(mnp_panel_bare);
    RETURNS(0, mnp_panel_bare(NULL));
    CALL(mnp_panel_rule);
    RETURNS(0, mnp_panel_rule(NULL, NULL, MNP_PLOT_X, 0));
    STICKS(1, mnp_panel_rule(panel, &(mnp_plot_style){.dash = (mnp_plot_dash)9}, MNP_PLOT_X, 0));
    STICKS(2, mnp_panel_rule(panel, NULL, none, 0));
    RETURNS(3, mnp_panel_rule(NULL, NULL, MNP_PLOT_X, NAN));
    CALL(mnp_panel_shade);
    RETURNS(0, mnp_panel_shade(NULL, NULL, MNP_PLOT_X, 0, 1));
    STICKS(1, mnp_panel_shade(panel, &(mnp_plot_style){.alpha = NAN}, MNP_PLOT_X, 0, 1));
    STICKS(2, mnp_panel_shade(panel, NULL, none, 0, 1));
    STICKS(3, mnp_panel_shade(panel, NULL, MNP_PLOT_X, NAN, 1));
    STICKS(4, mnp_panel_shade(panel, NULL, MNP_PLOT_X, 0, NAN));
    CALL(mnp_panel_forecast);
    RETURNS(0, mnp_panel_forecast(NULL, &(mnp_plot_forecast){.n = 0}));
    STICKS(1, mnp_panel_forecast(panel, NULL));
    STICKS(1, mnp_panel_forecast(panel, &(mnp_plot_forecast){.n = -1}));
    STICKS(1, mnp_panel_forecast(panel, &(mnp_plot_forecast){.n = 2}));
    STICKS(1, mnp_panel_forecast(panel, &(mnp_plot_forecast){.n = 2, .x = xs, .bands = 1}));
    STICKS(1, mnp_panel_forecast(panel, &(mnp_plot_forecast){.n = 2, .x = xs, .draws = 1}));
    STICKS(1, mnp_panel_forecast(panel, &(mnp_plot_forecast){.held = {.n = 2, .x = xs}}));
    STICKS(1, mnp_panel_forecast(panel, &(mnp_plot_forecast){.curves = 1}));
    CALL(mnp_panel_heatmap);
    RETURNS(0, mnp_panel_heatmap(NULL, &(mnp_plot_heatmap){.rows = 2, .cols = 2, .values = xs}));
    STICKS(1, mnp_panel_heatmap(panel, NULL));
    STICKS(1, mnp_panel_heatmap(panel, &(mnp_plot_heatmap){.rows = 2, .cols = 2}));
    STICKS(1, mnp_panel_heatmap(panel, &(mnp_plot_heatmap){.rows = -1, .cols = 2, .values = xs}));
}

/* Lines, bands, points and bars: a style, a count, arrays. */
static void series(void) {
    const mnp_plot_style bad[] = {{.hue = (mnp_plot_hue)99}, {.alpha = NAN}, {.size = INFINITY}};
    CALL(mnp_panel_line);
    RETURNS(0, mnp_panel_line(NULL, NULL, POINTS, xs, ys));
    for (int k = 0; k < 3; k++) STICKS(1, mnp_panel_line(panel, &bad[k], POINTS, xs, ys));
    RETURNS(2, mnp_panel_line(NULL, NULL, 0, xs, ys));
    STICKS(3, mnp_panel_line(panel, NULL, POINTS, NULL, ys));
    STICKS(4, mnp_panel_line(panel, NULL, POINTS, xs, NULL));
    CALL(mnp_panel_band);
    RETURNS(0, mnp_panel_band(NULL, NULL, POINTS, xs, ys, ys));
    STICKS(1, mnp_panel_band(panel, &bad[0], POINTS, xs, ys, ys));
    RETURNS(2, mnp_panel_band(NULL, NULL, 0, NULL, NULL, NULL));
    STICKS(3, mnp_panel_band(panel, NULL, POINTS, NULL, ys, ys));
    STICKS(4, mnp_panel_band(panel, NULL, POINTS, xs, NULL, ys));
    STICKS(5, mnp_panel_band(panel, NULL, POINTS, xs, ys, NULL));
    CALL(mnp_panel_points);
    RETURNS(0, mnp_panel_points(NULL, NULL, POINTS, xs, ys, NULL));
    STICKS(1, mnp_panel_points(panel, &bad[1], POINTS, xs, ys, NULL));
    RETURNS(2, mnp_panel_points(NULL, NULL, 0, NULL, NULL, NULL));
    STICKS(3, mnp_panel_points(panel, NULL, POINTS, NULL, ys, ys));
    STICKS(4, mnp_panel_points(panel, NULL, POINTS, xs, NULL, ys));
    RETURNS(5, mnp_panel_points(NULL, NULL, POINTS, xs, ys, NULL));
    CALL(mnp_panel_bars);
    RETURNS(0, mnp_panel_bars(NULL, NULL, POINTS, xs, ys, NULL));
    STICKS(1, mnp_panel_bars(panel, &bad[2], POINTS, xs, ys, NULL));
    RETURNS(2, mnp_panel_bars(NULL, NULL, 0, NULL, NULL, NULL));
    STICKS(3, mnp_panel_bars(panel, NULL, POINTS, NULL, ys, ys));
    STICKS(4, mnp_panel_bars(panel, NULL, POINTS, xs, NULL, ys));
    RETURNS(5, mnp_panel_bars(NULL, NULL, POINTS, xs, ys, NULL));
}

int main(void) {
    folder = getenv("TEST_TMP") ? getenv("TEST_TMP") : "/tmp";
    RUN(open_world);
    if (!w.player) return check_done();
    RUN(contexts);
    RUN(jobs);
    RUN(opening_data);
    RUN(data_from_sets);
    RUN(tables_for_a_model);
    RUN(data_answers);
    RUN(data_calls);
    RUN(models);
    RUN(tensors);
    RUN(model_answers);
    RUN(plans);
    RUN(trainers);
    RUN(training);
    RUN(evaluating);
    RUN(evaluating_draws);
    RUN(evaluating_the_truth);
    RUN(noted_scores);
    RUN(scoring_sets);
    RUN(in_turn);
    RUN(checking);
    RUN(checking_laws);
    RUN(calibrating);
    RUN(rank_bands);
    RUN(predictors);
    RUN(conditioning);
    RUN(query_targets);
    RUN(summaries);
    RUN(many_contexts);
    RUN(forecasts_of_curves);
    RUN(query_densities);
    RUN(fitting);
    RUN(fit_answers);
    RUN(saving_a_fit);
    RUN(wheels);
    RUN(players);
    RUN(agents);
    RUN(replays);
    RUN(lists);
    RUN(single_options);
    RUN(option_tables);
    RUN(map_places);
    RUN(maps);
    RUN(rivers);
    RUN(figures);
    RUN(panels);
    RUN(series);
    RUN(calls_cover_headers);
    close_world();
    return check_done();
}
