/* cmd_predict.c: mnp predict MODEL: mean, spread and quantiles at given places, of every curve
 * given its own points, as CSV. They are taken over joint draws with the noise of measurements.
 * --grid ROWSxCOLS makes maps (map.h). */
#include <string.h>

#include "cli/map.h"

static const flag_def flags[] = {
    {"context", "C.csv", "observed points, of one or many curves (default: none, the population)"},
    {"at", "A.csv", "where to predict: a file with the x columns, and the group of each row"},
    {"grid", "lo:hi:n",
     "where to predict: n inputs from lo to hi; lo:hi:n,lo:hi:n for two; 128x128: a map"},
    POINTS_FLAGS,
    {"quantiles", "P,P", "columns q0.025, ... for these probabilities (default q05 to q95)"},
    {"samples", "S", "functions drawn for the numbers (default 200; for a map 100)"},
    CONDITION_FLAGS("(default: what the model notes, else refine; network for several inputs)"),
    {"draws", NULL, "add draw1 .. drawS, the functions drawn, with the noise of measurements"},
    {"out", "P.csv",
     "where to write (default: stdout); for a map the first part of its files' names"},
    HEADING("maps"),
    MAP_FLAGS,
    {"threshold", "V",
     "maps: p_below is the probability of a value below V (default: 0; images: the middle of their "
     "values)"},
    {"honour", "on|off|R",
     "maps: functions pass through the measurements, felt up to R pixels away (default: on for "
     "images, R a tenth of the longer side)"},
    HEADING("GPUs"),
    DEVICE_FLAGS,
};

/* ---- quantiles ------------------------------------------------------------------------------- */

typedef struct wanted_levels {
    int64_t count;
    double of[QUANTILES_MAX];
    char name[QUANTILES_MAX][40];
} wanted_levels;

static void usual_levels(wanted_levels *l) {
    static const double of[] = {0.05, 0.25, 0.5, 0.75, 0.95};
    for (l->count = 0; l->count < (int64_t)(sizeof of / sizeof *of); l->count++) {
        l->of[l->count] = of[l->count];
        snprintf(l->name[l->count], sizeof *l->name, "q%02.0f", 100 * of[l->count]);
    }
}

static int bad_levels(cli *c, const char *text) {
    return cli_fail(c, EXIT_USAGE,
                    "--quantiles wants up to %d different probabilities from 0 to 1, as "
                    "0.025,0.5,0.975, not '%s'",
                    QUANTILES_MAX, text);
}

/* "0.025,0.5": columns are named as they were typed. */
static int read_levels(cli *c, wanted_levels *l) {
    const char *text = cli_text(c, "quantiles", NULL), *at = text;
    l->count = 0;
    if (!text) usual_levels(l);
    while (at) {
        char word[32];
        size_t length = strcspn(at, ",");
        double *p = &l->of[l->count];
        if (length >= sizeof word || l->count == QUANTILES_MAX) return bad_levels(c, text);
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (text_parse_double(word, p) != TEXT_OK || !(*p >= 0 && *p <= 1))
            return bad_levels(c, text);
        for (int64_t k = 0; k < l->count; k++)
            if (l->of[k] == *p) return bad_levels(c, text);
        snprintf(l->name[l->count++], sizeof *l->name, "q%s", word);
        at = at[length] ? at + length + 1 : NULL;
    }
    return 0;
}

/* ---- the table of results -------------------------------------------------------------------- */

typedef struct results {
    const question *q;
    wanted_levels levels;
    mnp_summary s;
    int64_t samples, draws; /* draws: how many are written */
    int64_t *column;        /* (columns): those of the places that are written, in order */
    int64_t columns;
} results;

static bool is_result(const results *r, const char *name) {
    bool same = strcmp(name, "mean") == 0 || strcmp(name, "sd") == 0;
    for (int64_t k = 0; k < r->levels.count; k++) same |= strcmp(name, r->levels.name[k]) == 0;
    return same || (r->draws && strncmp(name, "draw", 4) == 0 && name[4] >= '0' && name[4] <= '9');
}

/* With a group column that one, then the columns of the file; without, the inputs of the model. */
static void choose_columns(cli *c, results *r) {
    const mnp_table *t = r->q->places;
    if (!points_grouped(t)) {
        r->columns = points_columns(r->q, MNP_COLUMN_NUMBER, r->column);
        return;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int64_t k = 0; k < mnp_table_columns(t); k++) {
            const char *name = mnp_table_column(t, k);
            bool group = mnp_table_column_is(t, k) == MNP_COLUMN_GROUP;
            if (!*name || group != (pass == 0)) continue;
            if (is_result(r, name))
                cli_warn(c,
                         "the column %s of the places is left out: the forecast has one of that "
                         "name",
                         name);
            else
                r->column[r->columns++] = k;
        }
}

static void put_header(csv_writer *w, const results *r) {
    for (int64_t k = 0; k < r->columns; k++) points_put_name(w, r->q, r->column[k]);
    csv_put_text(w, "mean");
    csv_put_text(w, "sd");
    for (int64_t k = 0; k < r->levels.count; k++) csv_put_text(w, r->levels.name[k]);
    for (int64_t s = 1; s <= r->draws; s++) {
        char name[32];
        snprintf(name, sizeof name, "draw%lld", (long long)s);
        csv_put_text(w, name);
    }
    csv_end_row(w);
}

static void put_row(csv_writer *w, const results *r, int64_t row) {
    int64_t n = mnp_table_rows(r->q->places);
    for (int64_t k = 0; k < r->columns; k++) points_put_cell(w, r->q, row, r->column[k]);
    csv_put_double(w, r->s.mean[row]);
    csv_put_double(w, r->s.sd[row]);
    for (int64_t k = 0; k < r->levels.count; k++) csv_put_double(w, r->s.quantiles[k * n + row]);
    for (int64_t d = 0; d < r->draws; d++) csv_put_double(w, r->s.draws[d * n + row]);
    csv_end_row(w);
}

static int write_table(cli *c, results *r) {
    buf table;
    csv_writer w;
    r->column = env_alloc(&c->env, (size_t)mnp_table_columns(r->q->places) + 1, sizeof *r->column,
                          "columns");
    if (!r->column) return points_failed(c);
    choose_columns(c, r);
    buf_init(&table, &c->env);
    csv_writer_init(&w, &table, '\0');
    put_header(&w, r);
    for (int64_t i = 0; i < mnp_table_rows(r->q->places); i++) put_row(&w, r, i);
    int code = points_write(c, &table);
    buf_free(&table);
    env_free(&c->env, r->column);
    return code;
}

/* ---- curves ---------------------------------------------------------------------------------- */

/* All draws are held only where they are written; else those of one curve. */
static int check_size(cli *c, const results *r) {
    const mnp_table *t = r->q->places;
    int64_t n = r->draws ? mnp_table_rows(t) : 0;
    for (int64_t g = 0; g < mnp_table_groups(t); g++)
        if (mnp_table_group_rows(t, g) > n) n = mnp_table_group_rows(t, g);
    if (n <= PREDICT_VALUES_MAX / r->samples) return 0;
    return cli_fail(c, EXIT_USAGE,
                    "%lld targets times %lld samples are too many values for one run (the most is "
                    "%d): lower --samples or split the targets",
                    (long long)n, (long long)r->samples, PREDICT_VALUES_MAX);
}

static int predict(cli *c, question *q, int64_t samples, drawn *how) {
    results r = {.q = q, .samples = samples, .draws = cli_has(c, "draws") ? samples : 0};
    int64_t n = mnp_table_rows(q->places);
    int code = read_levels(c, &r.levels);
    if (code == 0) code = check_size(c, &r);
    if (code != 0) return code;
    size_t each = (size_t)(2 + r.levels.count + r.draws);
    double *space = env_alloc(&c->env, (size_t)n * each, sizeof *space, "the draws");
    if (!space) return points_failed(c);
    r.s = (mnp_summary){.size = sizeof r.s,
                        .levels = r.levels.count,
                        .level = r.levels.of,
                        .mean = space,
                        .sd = space + n,
                        .quantiles = space + 2 * n,
                        .draws = r.draws ? space + (2 + r.levels.count) * n : NULL};
    code = question_forecast(c, q, samples, false, &r.s, how);
    if (code == 0) code = write_table(c, &r);
    env_free(&c->env, space);
    return code;
}

static void report(cli *c, const question *q, int64_t samples, const drawn *how) {
    const char *out = cli_text(c, "out", NULL);
    int64_t rows = mnp_table_rows(q->places), points = mnp_table_rows(q->seen);
    char curves[64] = "";
    if (points_grouped(q->places))
        snprintf(curves, sizeof curves, " of %lld curve%s", (long long)mnp_table_groups(q->places),
                 mnp_table_groups(q->places) == 1 ? "" : "s");
    cli_note(c, "%s: %lld points%s given %lld, %lld samples, seed %llu", out ? out : "stdout",
             (long long)rows, curves, (long long)points, (long long)samples,
             (unsigned long long)c->seed);
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_put(&j, INTEGER("points", rows), TEXT("out", out), INTEGER("context", points),
                 INTEGER("samples", samples), INTEGER("seed", c->seed),
                 NUMBER("seconds", how->seconds));
    question_json(&j, q);
    condition_json(c, &j, how);
    cli_json_end(c, &j);
}

/* ---- maps ------------------------------------------------------------------------------------ */

static int write_map(cli *c, const map *m) {
    const char *out = cli_text(c, "out", NULL);
    if (out) return map_write(c, m, out);
    buf table;
    buf_init(&table, &c->env);
    int code = map_table(c, m, &table);
    if (code == 0) code = points_write(c, &table);
    buf_free(&table);
    return code;
}

static void report_map(cli *c, const question *q, const map *m, double seconds) {
    const char *out = cli_text(c, "out", NULL);
    cli_note(c, "%s: a map of %lld x %lld given %lld%s, %lld realisations, %.1f s, seed %llu",
             out ? out : "stdout", (long long)m->at.rows, (long long)m->at.cols,
             (long long)q->context.n, m->honoured ? ", honoured" : "", (long long)m->samples,
             seconds, (unsigned long long)c->seed);
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_put(&j, INTEGER("rows", m->at.rows), INTEGER("cols", m->at.cols), TEXT("out", out),
                 INTEGER("context", q->context.n), INTEGER("samples", m->samples),
                 INTEGER("seed", c->seed), INTEGER("honoured", m->honoured),
                 NUMBER("seconds", seconds));
    if (!m->at.rivers) cli_json_put(&j, NUMBER("threshold", m->at.threshold));
    if (m->at.coords)
        cli_json_put(&j, NUMBER("x0", m->at.extent[0]), NUMBER("x1", m->at.extent[1]),
                     NUMBER("y0", m->at.extent[2]), NUMBER("y1", m->at.extent[3]));
    condition_json(c, &j, &m->drawn);
    cli_json_end(c, &j);
}

static int predict_map(cli *c, question *q, const char *grid, int64_t samples) {
    map_frame frame;
    map m = {0};
    if (cli_has(c, "at") || cli_has(c, "draws"))
        return cli_fail(c, EXIT_USAGE, "--%s is not for maps (--grid %s)",
                        cli_has(c, "at") ? "at" : "draws", grid);
    const char *out = cli_text(c, "out", NULL);
    int code = map_frame_read(c, q, grid, &frame);
    if (code == 0 && out) code = map_check_out(c, &frame, out);
    const char *wells = cli_text(c, "context", NULL);
    if (code == 0 && wells) code = map_measured(c, q, &frame, wells, &q->context);
    double start = cli_now();
    map_ask ask = {.context = &q->context, .samples = samples, .device = cli_device(c)};
    if (code == 0) code = map_honour(c, &frame, &ask);
    if (code == 0) code = map_make(c, q, &ask, &frame, &m);
    double seconds = cli_now() - start;
    if (code == 0) code = write_map(c, &m);
    if (code == 0) report_map(c, q, &m, seconds);
    map_free(c, &m);
    return code;
}

static int run(cli *c) {
    const char *grid = cli_text(c, "grid", NULL);
    bool maps = grid && map_named(grid);
    static const char *const of_maps[] = {"honour", "extent", "codes", "threshold"};
    for (size_t k = 0; k < sizeof of_maps / sizeof *of_maps && !maps; k++)
        if (cli_has(c, of_maps[k]))
            return cli_fail(c, EXIT_USAGE, "--%s is for maps (--grid ROWSxCOLS)", of_maps[k]);
    int64_t samples = cli_int(c, "samples", maps ? 100 : 200, 1, 100000);
    if (cli_bad(c)) return c->status;
    int code = maps && cli_has(c, "out") ? 0 : points_check_out(c); /* a map has names of its own */
    if (code != 0) return code;
    question q;
    code = maps ? question_open_model(c, c->args[0], &q) : question_open(c, &q);
    if (code == 0 && maps) {
        code = predict_map(c, &q, grid, samples);
    } else if (code == 0) {
        drawn how;
        code = question_places(c, &q);
        if (code == 0) code = predict(c, &q, samples, &how);
        if (code == 0) report(c, &q, samples, &how);
    }
    question_close(c, &q);
    return code;
}

const command command_predict = {
    .name = "predict",
    .args = "MODEL [--context C.csv] (--at A.csv | --grid lo:hi:n) [--samples S] [--out P.csv]",
    .summary = "mean, sd and quantiles at given places, for one curve or many",
    .details =
        "Files are read as the training table was: its columns, dates, categories, outputs (x and\n"
        "y for the built-in families). Several curves in --context are predicted each, by the\n"
        "group column: the result has that column and the rows of --at in their order. A curve\n"
        "of --at without points gets the population. Rows without a group, and a --grid, are\n"
        "asked of every curve. What is constant in a curve may be left out of --at.\n"
        "Rows of the context without y are dropped; a header alone is an empty context. After the\n"
        "columns of the places come mean, sd, q05, q25, q50, q75, q95. All of these, and --draws,\n"
        "include the noise of measurements; 'mnp sample' draws without it. A curve's draws depend\n"
        "on --seed and its name alone, not on the other curves.\n"
        "Functions of one input are drawn by the network and then refined with 30 gradients\n"
        "each: the best answer in about a second. --condition exact is more accurate,\n"
        "--condition network is there at once. Many points (points times functions above\n"
        "20000) are left to the network, unless --condition or the model says otherwise.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .min_args = 1,
    .max_args = 1,
    .run = run};
