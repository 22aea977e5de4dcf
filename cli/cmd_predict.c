/* cmd_predict.c: mnp predict MODEL: mean, spread and quantiles at given places, as CSV. They are
 * taken over joint draws with the process's own noise. --grid ROWSxCOLS makes maps (map.h). */
#include "cli/map.h"
#include "util/csv.h"

static const flag_def flags[] = {
    {"context", "C.csv", "observed points (default: none, the prior over functions)"},
    {"at", "X.csv", "where to predict: a file with the x columns"},
    {"grid", "lo:hi:n",
     "where to predict: n inputs from lo to hi; lo:hi:n,lo:hi:n for two; 128x128: a map"},
    {"samples", "S", "functions drawn for the numbers (default 200; for a map 100)"},
    CONDITION_FLAGS("(default refine; network for several inputs and for maps)"),
    {"draws", NULL, "add the drawn functions as columns draw1 .. drawS"},
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

static const double levels[] = {0.05, 0.25, 0.5, 0.75, 0.95};
static const char *const level_names[] = {"q05", "q25", "q50", "q75", "q95"};
enum { LEVELS = sizeof levels / sizeof *levels };

static void put_header(csv_writer *w, const point_names *names, int64_t draws) {
    for (int64_t k = 0; k < names->x_dim; k++) csv_put_text(w, names->x[k]);
    csv_put_text(w, "mean");
    csv_put_text(w, "sd");
    for (int k = 0; k < LEVELS; k++) csv_put_text(w, level_names[k]);
    for (int64_t s = 1; s <= draws; s++) {
        char name[32];
        snprintf(name, sizeof name, "draw%lld", (long long)s);
        csv_put_text(w, name);
    }
    csv_end_row(w);
}

/* The rows of a finished summary. */
static int write_table(cli *c, const question *q, const mnp_summary *s, int64_t samples) {
    int64_t n = q->targets.n, x_dim = q->names.x_dim, draws = cli_has(c, "draws") ? samples : 0;
    buf table;
    csv_writer w;
    buf_init(&table, &c->env);
    csv_writer_init(&w, &table, '\0');
    put_header(&w, &q->names, draws);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < x_dim; k++) csv_put_double(&w, q->targets.x[i * x_dim + k]);
        csv_put_double(&w, s->mean[i]);
        csv_put_double(&w, s->sd[i]);
        for (int k = 0; k < LEVELS; k++) csv_put_double(&w, s->quantiles[k * n + i]);
        for (int64_t d = 0; d < draws; d++) csv_put_double(&w, s->draws[d * n + i]);
        csv_end_row(&w);
    }
    int code = points_write(c, &table);
    buf_free(&table);
    return code;
}

static int predict(cli *c, const question *q, int64_t samples, drawn *how) {
    int64_t n = q->targets.n;
    if (n > PREDICT_VALUES_MAX / samples)
        return cli_fail(c, EXIT_USAGE,
                        "%lld targets times %lld samples are too many values for one run (the most "
                        "is %d): lower --samples or split the targets",
                        (long long)n, (long long)samples, PREDICT_VALUES_MAX);
    mnp_predictor *p = NULL;
    int code = question_draw(c, q, samples, how, &p);
    if (code != 0) return code;
    double *space =
        env_alloc(&c->env, (size_t)(n * (2 + LEVELS + samples)), sizeof *space, "the draws");
    mnp_summary s = {.size = sizeof s, .levels = LEVELS, .level = levels};
    if (space) {
        s.mean = space, s.sd = space + n;
        s.quantiles = space + 2 * n, s.draws = s.quantiles + LEVELS * n;
        mnp_status status = mnp_predictor_summary(p, q->targets.x, n, MNP_BASE_NORMAL, &s);
        code = status == MNP_OK ? write_table(c, q, &s, samples) : cli_failed(c, status);
    } else {
        code = points_failed(c);
    }
    env_free(&c->env, space);
    mnp_predictor_destroy(p);
    return code;
}

static void report(cli *c, const question *q, int64_t samples, const drawn *how) {
    const char *out = cli_text(c, "out", NULL);
    cli_note(c, "%s: %lld points given %lld, %lld samples, seed %llu", out ? out : "stdout",
             (long long)q->targets.n, (long long)q->context.n, (long long)samples,
             (unsigned long long)c->seed);
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_put(&j, INTEGER("points", q->targets.n), TEXT("out", out),
                 INTEGER("context", q->context.n), INTEGER("samples", samples),
                 INTEGER("seed", c->seed), NUMBER("seconds", how->seconds));
    condition_json(&j, how);
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
    condition_json(&j, &m->drawn);
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
    if (code == 0) question_warn(c, q);
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
        code = question_targets(c, &q);
        if (code == 0) code = predict(c, &q, samples, &how);
        if (code == 0) report(c, &q, samples, &how);
    }
    question_close(c, &q);
    return code;
}

const command command_predict = {
    .name = "predict",
    .args = "MODEL [--context C.csv] (--at X.csv | --grid lo:hi:n) [--samples S] [--out P.csv]",
    .summary = "mean, sd and quantiles at given places",
    .details =
        "The columns of files are those of the training data (x and y for the built-in\n"
        "families); a file with other names and exactly as many numeric columns is read in\n"
        "order. Rows of the context without y are dropped; a header alone is an empty\n"
        "context. The table has the x columns, then mean, sd, q05, q25, q50, q75, q95.\n"
        "Functions of one input are drawn by the network and then refined with 30 gradients\n"
        "each: the best answer in about a second. --condition exact is more accurate,\n"
        "--condition network is there at once. Many points (points times functions above\n"
        "20000) are left to the network, unless --condition says otherwise.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .min_args = 1,
    .max_args = 1,
    .run = run};
