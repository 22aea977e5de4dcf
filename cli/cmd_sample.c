/* cmd_sample.c: mnp sample MODEL: coherent function draws, prior or posterior, as CSV rows
 * function,x,y. */
#include "cli/points.h"
#include "util/csv.h"

static const flag_def flags[] = {
    {"context", "C.csv", "observed points (default: none, the prior over functions)"},
    {"at", "X.csv", "where to draw: a file with the x columns"},
    {"grid", "lo:hi:n", "where to draw: n places from lo to hi; lo:hi:n,lo:hi:n for two inputs"},
    {"n", "N", "how many functions (default 20); also -n N"},
    CONDITION_FLAGS("(default refine; network for several inputs)"),
    {"base", "B", "zero: smooth functions; normal: with the noise of measurements (default zero)"},
    {"out", "F.csv", "where to write (default: stdout)"},
};

/* y (count, n) as long rows. */
static int write_table(cli *c, const question *q, const double *y, int64_t count) {
    int64_t n = q->targets.n, x_dim = q->names.x_dim;
    buf table;
    csv_writer w;
    buf_init(&table, &c->env);
    csv_writer_init(&w, &table, '\0');
    csv_put_text(&w, "function");
    for (int64_t k = 0; k < x_dim; k++) csv_put_text(&w, q->names.x[k]);
    csv_put_text(&w, q->names.y);
    csv_end_row(&w);
    for (int64_t s = 0; s < count; s++)
        for (int64_t i = 0; i < n; i++) {
            csv_put_integer(&w, s);
            for (int64_t k = 0; k < x_dim; k++) csv_put_double(&w, q->targets.x[i * x_dim + k]);
            csv_put_double(&w, y[s * n + i]);
            csv_end_row(&w);
        }
    int code = points_write(c, &table);
    buf_free(&table);
    return code;
}

static int sample(cli *c, const question *q, int64_t count, mnp_base base, drawn *how) {
    int64_t n = q->targets.n;
    if (n > SAMPLE_VALUES_MAX / count)
        return cli_fail(c, EXIT_USAGE,
                        "%lld places times %lld functions are too many values for one run (the "
                        "most is %d)",
                        (long long)n, (long long)count, SAMPLE_VALUES_MAX);
    double *y;
    int code = question_values(c, q, count, base, how, &y);
    if (code == 0) code = write_table(c, q, y, count);
    env_free(&c->env, y);
    return code;
}

static void report(cli *c, const question *q, int64_t count, mnp_base base, const drawn *how) {
    const char *out = cli_text(c, "out", NULL), *name = base == MNP_BASE_ZERO ? "zero" : "normal";
    cli_note(c, "%s: %lld functions at %lld places given %lld points, base %s, seed %llu",
             out ? out : "stdout", (long long)count, (long long)q->targets.n,
             (long long)q->context.n, name, (unsigned long long)c->seed);
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_put(&j, INTEGER("functions", count), INTEGER("points", q->targets.n), TEXT("out", out),
                 INTEGER("context", q->context.n), TEXT("base", name), INTEGER("seed", c->seed),
                 NUMBER("seconds", how->seconds));
    condition_json(&j, how);
    cli_json_end(c, &j);
}

static int run(cli *c) {
    int64_t count = cli_int(c, "n", 20, 1, 100000);
    mnp_base base = cli_choice(c, "base", "zero|normal", 0) ? MNP_BASE_NORMAL : MNP_BASE_ZERO;
    if (cli_bad(c)) return c->status;
    int code = points_check_out(c);
    if (code != 0) return code;
    question q;
    drawn how;
    code = question_open(c, &q);
    if (code == 0) code = question_targets(c, &q);
    if (code == 0) code = sample(c, &q, count, base, &how);
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
        "data. 'mnp help predict' says how context files are read.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .min_args = 1,
    .max_args = 1,
    .run = run};
