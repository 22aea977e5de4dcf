/* cmd_sample.c: mnp sample MODEL: coherent function draws, prior or posterior, as CSV rows
 * function,x,y, after the group column where the places have curves. */
#include <string.h>

#include "cli/points.h"
#include "cli/turns.h"

static const flag_def flags[] = {
    {"context", "C.csv", "observed points (default: none, the prior over functions)"},
    {"at", "A.csv", "where to draw: a file with the x columns, and the group of each row"},
    {"grid", "lo:hi:n", "where to draw: n places from lo to hi; lo:hi:n,lo:hi:n for two inputs"},
    POINTS_FLAGS,
    {"n", "N", "how many functions of each curve (default 20); also -n N"},
    CONDITION_FLAGS("(default: what the model notes, else refine; network for several inputs)"),
    {"base", "B", "zero: smooth functions; normal: with the noise of measurements (default zero)"},
    TURN_ORDER_FLAG("draw the places of a curve"),
    {"out", "F.csv", "where to write (default: stdout)"},
};

static bool is_taken(const question *q, const int64_t *column, int64_t columns, const char *name) {
    bool same = strcmp(name, q->names.y) == 0;
    for (int64_t k = 0; k < columns; k++) {
        int64_t i = points_number(q->places, column[k]);
        same |= strcmp(name, i >= 0 ? q->names.x[i] : mnp_table_column(q->places, column[k])) == 0;
    }
    return same;
}

/* The column of the draw: "function", or "draw" where a column is called so already. */
static void put_draw_name(csv_writer *w, const question *q, const int64_t *column,
                          int64_t columns) {
    char name[64] = "draw";
    if (!is_taken(q, column, columns, "function")) {
        csv_put_text(w, "function");
        return;
    }
    for (size_t k = strlen(name); k + 1 < sizeof name && is_taken(q, column, columns, name); k++)
        name[k] = '_';
    csv_put_text(w, name);
}

/* y (count, rows) as long rows: function after function, and within it the places. */
static void put_rows(csv_writer *w, const question *q, const double *y, int64_t count,
                     int64_t *column) {
    int64_t n = mnp_table_rows(q->places), groups = points_columns(q, MNP_COLUMN_GROUP, column);
    int64_t columns = groups + points_columns(q, MNP_COLUMN_NUMBER, column + groups);
    for (int64_t k = 0; k < groups; k++) points_put_name(w, q, column[k]);
    put_draw_name(w, q, column, columns);
    for (int64_t k = groups; k < columns; k++) points_put_name(w, q, column[k]);
    csv_put_text(w, q->names.y);
    csv_end_row(w);
    for (int64_t s = 0; s < count; s++)
        for (int64_t i = 0; i < n; i++) {
            for (int64_t k = 0; k < groups; k++) points_put_cell(w, q, i, column[k]);
            csv_put_integer(w, s);
            for (int64_t k = groups; k < columns; k++) points_put_cell(w, q, i, column[k]);
            csv_put_double(w, y[s * n + i]);
            csv_end_row(w);
        }
}

static int write_table(cli *c, const question *q, const double *y, int64_t count) {
    buf table;
    csv_writer w;
    size_t columns = (size_t)mnp_table_columns(q->places) + 1;
    int64_t *column = env_alloc(&c->env, columns, sizeof *column, "columns");
    if (!column) return points_failed(c);
    buf_init(&table, &c->env);
    csv_writer_init(&w, &table, '\0');
    put_rows(&w, q, y, count, column);
    int code = points_write(c, &table);
    buf_free(&table);
    env_free(&c->env, column);
    return code;
}

/* ---- in turn --------------------------------------------------------------------------------- */

/* Curve g of the places: its columns of y (count, all rows). */
static int sample_curve(cli *c, const question *q, int64_t g, const mnp_turn_opts *o, int64_t count,
                        double *y) {
    points context = {0}, at = {0};
    int64_t own = question_context_of(q, g), all = mnp_table_rows(q->places), x = q->names.x_dim;
    int code = own < 0 ? 0 : points_of_curve(c, q->seen, own, 0, x, &context);
    if (code == 0) code = points_of_curve(c, q->places, g, 0, x, &at);
    double *drawn = env_alloc(&c->env, (size_t)(count * at.n) + 1, sizeof *drawn, "the draws");
    if (code == 0 && !drawn) code = points_failed(c);
    mnp_set given = {context.n, context.x, context.y};
    if (code == 0 && at.n > 0) {
        mnp_status status =
            mnp_sample_in_turn(c->ctx, q->model, &given, at.x, at.n, o, count, drawn);
        if (status != MNP_OK) code = cli_failed(c, status);
    }
    for (int64_t i = 0, k = 0; code == 0 && k < at.n && i < all; i++) {
        if (mnp_table_group(q->places, i) != g) continue;
        for (int64_t s = 0; s < count; s++) y[s * all + i] = drawn[s * at.n + k];
        k++;
    }
    env_free(&c->env, drawn);
    points_free(c, &context);
    points_free(c, &at);
    return code;
}

static int sample_in_turn(cli *c, const question *q, const mnp_turn_opts *o, int64_t count,
                          double *y, drawn *how) {
    int64_t groups = mnp_table_groups(q->places);
    double start = cli_now();
    int code = 0;
    question_warn(c, q, question_most(q), NULL);
    *how = (drawn){0};
    for (int64_t g = 0; g < groups && code == 0; g++) code = sample_curve(c, q, g, o, count, y);
    how->seconds = cli_now() - start;
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* turns NULL: all places at once. */
static int sample(cli *c, question *q, int64_t count, mnp_base base, const mnp_turn_opts *turns,
                  drawn *how) {
    int64_t n = mnp_table_rows(q->places);
    if (n > SAMPLE_VALUES_MAX / count)
        return cli_fail(c, EXIT_USAGE,
                        "%lld places times %lld functions are too many values for one run (the "
                        "most is %d)",
                        (long long)n, (long long)count, SAMPLE_VALUES_MAX);
    double *y = env_alloc(&c->env, (size_t)(n * count), sizeof *y, "the draws");
    if (!y) return points_failed(c);
    mnp_summary s = {.size = sizeof s, .draws = y};
    int code = turns ? sample_in_turn(c, q, turns, count, y, how)
                     : question_forecast(c, q, count, base == MNP_BASE_ZERO, &s, how);
    if (code == 0) code = write_table(c, q, y, count);
    env_free(&c->env, y);
    return code;
}

static void report(cli *c, const question *q, int64_t count, mnp_base base, const drawn *how) {
    const char *out = cli_text(c, "out", NULL), *name = base == MNP_BASE_ZERO ? "zero" : "normal";
    int64_t rows = mnp_table_rows(q->places), points = mnp_table_rows(q->seen);
    cli_note(c, "%s: %lld functions at %lld places given %lld points, base %s, seed %llu",
             out ? out : "stdout", (long long)count, (long long)rows, (long long)points, name,
             (unsigned long long)c->seed);
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_put(&j, INTEGER("functions", count), INTEGER("points", rows), TEXT("out", out),
                 INTEGER("context", points), TEXT("base", name), INTEGER("seed", c->seed),
                 NUMBER("seconds", how->seconds));
    question_json(&j, q);
    condition_json(c, &j, how);
    cli_json_end(c, &j);
}

static int run(cli *c) {
    int64_t count = cli_int(c, "n", 20, 1, 100000);
    mnp_base base = cli_choice(c, "base", "zero|normal", 0) ? MNP_BASE_NORMAL : MNP_BASE_ZERO;
    mnp_turn_opts turns;
    bool in_turn = turns_read_order(c, &turns);
    if (cli_bad(c)) return c->status;
    if (in_turn && cli_has(c, "base") && base == MNP_BASE_ZERO)
        return cli_fail(c, EXIT_USAGE,
                        "what is drawn in turn has the noise of measurements: leave out --base");
    if (in_turn) base = MNP_BASE_NORMAL;
    int code = points_check_out(c);
    if (code != 0) return code;
    question q;
    drawn how;
    code = question_open(c, &q);
    if (code == 0) code = question_places(c, &q);
    if (code == 0) code = sample(c, &q, count, base, in_turn ? &turns : NULL, &how);
    if (code == 0) report(c, &q, count, base, &how);
    question_close(c, &q);
    return code;
}

const command command_sample = {
    .name = "sample",
    .args = "MODEL [--context C.csv] (--at X.csv | --grid lo:hi:n) [-n N] [--base zero|normal]",
    .summary = "draw whole functions, given points or from the prior",
    .details =
        "One row per function and place: function,x,y, the columns named as in the training\n"
        "data, and the group column in front where there are several curves. Where a column of "
        "the\n"
        "data is called function, that of the draws is called draw. Functions are smooth, without\n"
        "the noise of measurements, unless --base normal is given. cnp, tnp and convcnp predict "
        "each\n"
        "place by itself; --order draws their places in turn, each given those before it, with\n"
        "noise. 'mnp help predict' says how files are read.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .min_args = 1,
    .max_args = 1,
    .run = run};
