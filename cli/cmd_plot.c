/* cmd_plot.c: mnp plot: pictures of a model's functions, of its chain, and of a training run. */
#include <math.h>
#include <string.h>

#include "cli/figure.h"
#include "cli/outputs.h"
#include "cli/run_files.h"
#include "util/npy.h"

enum { GRID_1D = 200, GRID_2D = 48, DRAWS = 12, CHAIN_DRAWS = 5, MAP_DRAWS = 2 };
enum { PANEL_DRAWS = 5 }; /* of each of several curves */
enum { SAMPLES = 200, MAP_SAMPLES = 50, SHEET_DRAWS = 24 };

static const flag_def flags[] = {
    {"context", "C.csv",
     "observed points; a panel for each curve of the file, and for each file of A.csv,B.csv"},
    {"truth", "T.csv", "held-out points of these curves, as open circles; maps: an image, F.npy"},
    {"prior", NULL, "functions without any observed point; with --context, a first panel of them"},
    {"chain", NULL, "the functions after each Markov step, from noise to data"},
    {"log", "M.log.csv", "training curves instead of functions; takes no model"},
    {"grid", "lo:hi:n",
     "where (default: the range of the training data, else -2:2:200); 128x128: maps"},
    {"at", "A=V,B=W", "of several inputs: where those stay that do not run along the axis"},
    {"samples", "S", "functions drawn for the bands (default 200; for maps 50)"},
    CONDITION_FLAGS("(default: what the model notes, else refine; network for several inputs)"),
    {"beside", "A,B",
     "further panels given the same points: network, refine, exact, or the file of another model"},
    HEADING("how it looks"),
    {"bands", "50,80,95", "shares of the measurements that the bands hold, in percent"},
    {"draws", "N",
     "functions drawn as lines (default 12, or 5 in each of several panels; --chain 5; maps 2)"},
    {"curves", "N", "training curves in grey (default 40 of the model's own table)"},
    {"title", "T", "a title above the picture"},
    {"xlabel", "T", "the text along x (default: the column's name)"},
    {"ylabel", "T", "the text along y"},
    {"xlim", "lo:hi", "from where to where x goes, in numbers or dates"},
    {"ylim", "lo:hi", "from where to where y goes"},
    {"ylog", NULL, "a logarithmic y axis"},
    {"out", "F.svg", "the picture; .png and .pdf need libcairo.so.2"},
    HEADING("maps, made by --grid ROWSxCOLS"),
    {"sheet", NULL, "maps: drawn functions instead of mean and standard deviation"},
    MAP_COLUMNS,
    MAP_FLAGS,
    {"honour", "on|off|R", "maps: functions pass through the measurements ('mnp help predict')"},
    HEADING("GPUs"),
    DEVICE_FLAGS,
};

/* Everything a figure of a model needs, read from the flags. */
typedef struct plot_inputs {
    question q;
    points at, contexts[FIGURE_CONTEXTS_MAX]; /* of maps and of the chain */
    map_frame frame;                          /* of a map; otherwise no rows */
    figure_request r;
    panels s; /* of curves */
    /* with --beside: the panels, of which the first is that of q */
    question loaded[FIGURE_CONTEXTS_MAX];
    condition_ask how[FIGURE_CONTEXTS_MAX];
    char *list; /* --beside, cut into its words */
} plot_inputs;

/* How the functions of each context were drawn; none for training curves. */
typedef struct plot_drawn {
    int contexts;
    drawn of[FIGURE_CONTEXTS_MAX];
} plot_drawn;

/* ---- contexts -------------------------------------------------------------------------------- */

static int add_context(cli *c, plot_inputs *in, const char *path) {
    if (in->r.contexts == FIGURE_CONTEXTS_MAX)
        return cli_fail(c, EXIT_USAGE, "at most %d contexts fit into a picture",
                        FIGURE_CONTEXTS_MAX);
    points *to = &in->contexts[in->r.contexts++];
    if (!path) return 0;
    return in->frame.rows ? map_measured(c, &in->q, &in->frame, path, to)
                          : points_read(c, &in->q.names, path, true, to);
}

static int read_contexts(cli *c, plot_inputs *in) {
    const char *list = cli_text(c, "context", NULL);
    int code = !list || cli_has(c, "prior") ? add_context(c, in, NULL) : 0;
    if (!list || code != 0) return code;
    char *copy = env_strdup(&c->env, list);
    if (!copy) return points_failed(c);
    for (char *at = copy; at && code == 0;) {
        char *comma = strchr(at, ',');
        if (comma) *comma++ = '\0';
        code = add_context(c, in, at);
        at = comma;
    }
    env_free(&c->env, copy);
    return code;
}

/* ---- panels side by side --------------------------------------------------------------------- */

/* "out/truth.safetensors": truth. Cuts the ending off in place. */
static const char *name_of_file(char *path) {
    char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *dot = strrchr(name, '.');
    if (dot && strcmp(dot, ".safetensors") == 0) *dot = '\0';
    return name;
}

static int unknown_panel(cli *c, const char *word) {
    char meant[TEXT_NAMES];
    text_nearest near = text_nearest_to(word);
    text_nearest_choices(&near, "network|refine|exact");
    return cli_fail(
        c, EXIT_FAILED,
        "--beside takes network, refine, exact or the file of a model; there is no file "
        "'%s'%s",
        word, text_meant(meant, &near, ""));
}

/* The k-th panel: the model as before, drawn in another way, or another model. */
static int add_beside(cli *c, plot_inputs *in, char *word) {
    int k = in->s.count;
    if (k == FIGURE_CONTEXTS_MAX)
        return cli_fail(c, EXIT_USAGE, "at most %d panels fit into a picture", FIGURE_CONTEXTS_MAX);
    question *q = &in->loaded[k];
    panel *p = &in->s.panel[in->s.count++];
    int named = condition_named(word), code = 0;
    *p = in->s.panel[0];
    p->borrowed = true;
    p->name = NULL;
    p->q = q;
    if (named >= 0) {
        *q = (question){.model = in->q.model, .names = in->q.names, .how = &in->how[k]};
        in->how[k] = (condition_ask){.condition = (mnp_condition)named,
                                     .gradients = named ? in->how[0].gradients : 0,
                                     .given = true};
    } else if (!run_files_exist(word)) {
        return unknown_panel(c, word);
    } else {
        code = question_open_model(c, word, q);
        if (code == 0 && q->names.x_dim != 1)
            code =
                cli_fail(c, EXIT_FAILED, "%s: functions of one input can be drawn --beside", word);
    }
    p->name = env_strdup(&c->env, named >= 0 ? word : name_of_file(word));
    return code == 0 && !p->name ? points_failed(c) : code;
}

static int read_beside(cli *c, plot_inputs *in) {
    const char *list = cli_text(c, "beside", NULL);
    if (!list) return 0;
    panel *first = &in->s.panel[0];
    if (in->s.count != 1 || in->q.names.x_dim != 1)
        return cli_fail(c, EXIT_USAGE, "--beside takes one context of functions of one input");
    if (!question_condition(c, &in->q, &in->how[0])) return c->status;
    in->q.how = &in->how[0];
    in->list = env_strdup(&c->env, list);
    env_free(&c->env, first->name);
    first->name = env_strdup(&c->env, condition_name(in->how[0].condition));
    if (!in->list || !first->name) return points_failed(c);
    int code = 0;
    for (char *at = in->list; at && code == 0;) {
        char *comma = strchr(at, ',');
        if (comma) *comma++ = '\0';
        code = add_beside(c, in, at);
        at = comma;
    }
    return code;
}

/* What a panel has of its own. */
static void close_beside(cli *c, plot_inputs *in) {
    for (int k = 1; k < FIGURE_CONTEXTS_MAX && in->list; k++)
        if (!in->loaded[k].how) question_close(c, &in->loaded[k]);
    env_free(&c->env, in->list);
}

/* ---- places ---------------------------------------------------------------------------------- */

static int default_places(cli *c, plot_inputs *in) {
    int64_t x_dim = in->q.names.x_dim, n[2] = {GRID_1D, GRID_1D};
    places_span s = places_nothing();
    if (!places_of_data(c, in->q.model, x_dim, &s) || !(s.lo[0] < s.hi[0]))
        s = (places_span){{-2, -2}, {2, 2}};
    if (cli_bad(c)) return c->status;
    for (int k = 0; k < in->r.contexts; k++)
        for (int64_t i = 0; i < in->contexts[k].n; i++)
            places_widen(&s, x_dim, in->contexts[k].x + i * x_dim);
    places_round(&s, x_dim);
    if (x_dim == 2) n[0] = n[1] = GRID_2D;
    return points_span(c, x_dim, s.lo, s.hi, n, &in->at);
}

/* How many values each input takes: the second runs fastest. */
static void count_grid(plot_inputs *in) {
    int64_t up = 1;
    while (up < in->at.n && in->at.x[2 * up] == in->at.x[0]) up++;
    in->r.grid[0] = in->at.n / up;
    in->r.grid[1] = up;
}

static int read_places(cli *c, plot_inputs *in) {
    const char *grid = cli_text(c, "grid", NULL);
    int64_t x_dim = in->q.names.x_dim, most = x_dim == 1 ? 5000 : 65536;
    if (x_dim > 2)
        return cli_fail(c, EXIT_FAILED,
                        "functions of %lld inputs cannot be drawn; 'mnp predict' writes numbers",
                        (long long)x_dim);
    int code = grid ? points_grid(c, &in->q.names, grid, &in->at) : default_places(c, in);
    if (code == 0 && (in->at.n < 2 || in->at.n > most))
        code = cli_fail(c, EXIT_USAGE, "a picture wants from 2 to %lld places, not %lld",
                        (long long)most, (long long)in->at.n);
    for (int64_t k = 0; k < x_dim && code == 0; k++)
        if (!(in->at.x[k] < in->at.x[(in->at.n - 1) * x_dim + k]))
            code = cli_fail(c, EXIT_USAGE, "a picture wants a range of %s, not one value",
                            in->q.names.x[k]);
    if (code == 0 && x_dim == 2) count_grid(in);
    return code;
}

/* ---- maps on a grid of rows and columns ------------------------------------------------------ */

/* (rows, cols), or the first of a stack; env memory. */
static int read_truth(cli *c, const map_frame *f, double **out) {
    const char *path = cli_text(c, "truth", NULL);
    npy_array a = {0};
    *out = NULL;
    if (!path) return 0;
    int code = cli_input(c, path);
    if (code) return code;
    if (npy_read(&c->env, path, NPY_FILE_MAX, &a) != MNP_OK) return points_failed(c);
    bool fits = a.ndim >= 2 && a.ndim <= 3 && a.shape[a.ndim - 2] == f->rows &&
                a.shape[a.ndim - 1] == f->cols;
    code = fits ? 0
                : cli_fail(c, EXIT_FAILED, "%s: wanted an array of %lld x %lld, as --grid says",
                           path, (long long)f->rows, (long long)f->cols);
    if (code == 0) *out = env_alloc(&c->env, a.count, sizeof **out, "an image");
    if (code == 0 && !*out) code = points_failed(c);
    if (code == 0) npy_doubles(&a, *out);
    npy_free(&c->env, &a);
    return code;
}

static int make_maps(cli *c, plot_inputs *in, const map_frame *f, map *maps) {
    int code = 0;
    for (int k = 0; k < in->r.contexts && code == 0; k++) {
        map_ask ask = {
            .context = &in->contexts[k], .samples = in->r.samples, .device = cli_device(c)};
        code = map_honour(c, f, &ask);
        if (code == 0) code = map_make(c, &in->q, &ask, f, &maps[k]);
        in->r.drawn[k] = maps[k].drawn;
    }
    return code;
}

static int draw_grid(cli *c, plot_inputs *in, mnp_plot **out) {
    map maps[FIGURE_CONTEXTS_MAX] = {0};
    const map_frame *f = &in->frame;
    double *truth = NULL;
    bool sheet = cli_has(c, "sheet");
    figure_request *r = &in->r;
    if (r->draws < 0) r->draws = SHEET_DRAWS;
    if (r->samples == 0) r->samples = sheet ? r->draws : MAP_SAMPLES;
    if (cli_has(c, "chain")) return cli_fail(c, EXIT_USAGE, "--chain draws functions of one input");
    if (sheet && (r->contexts != 1 || r->draws < 1))
        return cli_fail(c, EXIT_USAGE, "--sheet shows realisations of one context");
    int code = read_truth(c, f, &truth);
    if (code == 0) code = make_maps(c, in, f, maps);
    panel_request p = {.count = r->contexts,
                       .maps = maps,
                       .seen = in->contexts,
                       .truth = truth,
                       .title = cli_text(c, "title", NULL)};
    if (code == 0)
        code = sheet ? figure_sheet(c, maps, in->contexts, r->draws, p.title, out)
                     : figure_panel(c, &p, out);
    for (int k = 0; k < FIGURE_CONTEXTS_MAX; k++) map_free(c, &maps[k]);
    env_free(&c->env, truth);
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Maps over two inputs, or the chain of functions of one. */
static int draw_places(cli *c, plot_inputs *in, mnp_plot **out) {
    figure_request *r = &in->r;
    bool chain = cli_has(c, "chain");
    int code = read_contexts(c, in);
    if (code == 0) code = read_places(c, in);
    r->q = &in->q, r->context = in->contexts, r->at = &in->at;
    r->title = cli_text(c, "title", NULL);
    if (r->samples == 0) r->samples = chain ? SAMPLES : MAP_SAMPLES;
    if (r->draws < 0) r->draws = chain ? CHAIN_DRAWS : MAP_DRAWS;
    if (code == 0 && chain && in->q.names.x_dim > 1)
        code = cli_fail(c, EXIT_FAILED, "--chain draws functions of one input; this model has %lld",
                        (long long)in->q.names.x_dim);
    if (code == 0) code = chain ? figure_chain(c, r, out) : figure_maps(c, r, out);
    return code;
}

static int draw_curves(cli *c, plot_inputs *in, mnp_plot **out) {
    panels *s = &in->s;
    s->q = &in->q;
    s->truth = cli_text(c, "truth", NULL);
    int code = panels_units(c, s);
    if (code == 0) code = panels_at(c, s);
    if (code == 0) code = panels_contexts(c, s);
    if (code == 0) code = panels_truth(c, s);
    if (code == 0) code = read_beside(c, in);
    if (code == 0) code = panels_along(c, s);
    if (code == 0) code = panels_look(c, s);
    if (code == 0) code = panels_places(c, s);
    if (code == 0) code = panels_curves(c, s);
    s->samples = in->r.samples ? in->r.samples : SAMPLES;
    s->draws = in->r.draws >= 0 ? in->r.draws : s->count > 1 ? PANEL_DRAWS : DRAWS;
    if (code == 0 && s->left_out)
        cli_note(c, "note: %d curves are drawn, and %d are left out: give fewer in --context",
                 s->count, s->left_out);
    if (code == 0) code = figure_functions(c, s, out);
    for (int k = 0; k < s->count; k++) in->r.drawn[k] = s->panel[k].drawn;
    in->r.contexts = s->count;
    return code;
}

/* Two numbers as inputs are a map, unless one of them is to stay. */
static bool is_map(const plot_inputs *in, const cli *c) {
    const point_names *n = &in->q.names;
    return n->x_dim == 2 && !strchr(n->x[0], '=') && !strchr(n->x[1], '=') && !cli_has(c, "at");
}

/* Flags that the other kinds of pictures do not look at. */
static int check_kind(cli *c, bool rows, bool curves) {
    static const char *const of_maps[] = {"sheet", "honour", "x", "y", "extent", "codes"};
    static const char *const of_curves[] = {"at",   "bands", "curves", "xlabel", "ylabel",
                                            "xlim", "ylim",  "ylog",   "beside"};
    for (size_t k = 0; k < sizeof of_maps / sizeof *of_maps && !rows; k++)
        if (cli_has(c, of_maps[k]))
            return cli_fail(c, EXIT_USAGE, "--%s needs --grid ROWSxCOLS", of_maps[k]);
    for (size_t k = 0; k < sizeof of_curves / sizeof *of_curves && !curves; k++)
        if (cli_has(c, of_curves[k]))
            return cli_fail(c, EXIT_USAGE, "--%s is for curves, not for maps or the chain",
                            of_curves[k]);
    if (cli_has(c, "truth") && !rows && !curves)
        return cli_fail(c, EXIT_USAGE, "--truth needs curves, or --grid ROWSxCOLS");
    return 0;
}

static int draw_model(cli *c, plot_drawn *how, mnp_plot **out) {
    plot_inputs *in = env_alloc(&c->env, 1, sizeof *in, "a figure");
    const char *grid = cli_text(c, "grid", NULL);
    if (!in) return points_failed(c);
    in->r.drawn = how->of;
    in->r.samples = cli_int(c, "samples", 0, 1, 10000);               /* 0: not given */
    in->r.draws = cli_int(c, "draws", -1, cli_has(c, "chain"), 1000); /* -1: not given */
    bool rows = grid && map_named(grid);
    int code = cli_bad(c) ? c->status : question_open_model(c, c->args[0], &in->q);
    bool curves = code == 0 && !rows && !cli_has(c, "chain") && !is_map(in, c);
    if (code == 0) code = check_kind(c, rows, curves);
    if (code == 0 && rows) code = map_frame_read(c, &in->q, grid, &in->frame);
    if (code == 0 && rows) code = read_contexts(c, in);
    if (code == 0)
        code = rows     ? draw_grid(c, in, out)
               : curves ? draw_curves(c, in, out)
                        : draw_places(c, in, out);
    how->contexts = in->r.contexts;
    close_beside(c, in);
    panels_free(c, &in->s);
    points_free(c, &in->at);
    for (int k = 0; k < FIGURE_CONTEXTS_MAX; k++) points_free(c, &in->contexts[k]);
    question_close(c, &in->q);
    env_free(&c->env, in);
    return code;
}

static int check_flags(cli *c) {
    static const char *const of_models[] = {
        "context",   "prior",     "chain",  "grid",  "samples", "draws",
        "condition", "gradients", "beside", "truth", "curves",  "at",
        "xlabel",    "ylabel",    "xlim",   "ylim",  "ylog",    "bands"};
    const char *out = cli_text(c, "out", NULL), *dot = out ? strrchr(out, '.') : NULL;
    if (!out) return cli_fail(c, EXIT_USAGE, "say where the picture goes: --out F.svg");
    bool known =
        dot && (strcmp(dot, ".svg") == 0 || strcmp(dot, ".png") == 0 || strcmp(dot, ".pdf") == 0);
    if (!known) return cli_fail(c, EXIT_USAGE, "--out %s: a picture is .svg, .png or .pdf", out);
    if (!cli_has(c, "log"))
        return c->n_args ? 0
                         : cli_fail(c, EXIT_USAGE,
                                    "what shall be drawn? mnp plot MODEL, or mnp "
                                    "plot --log M.log.csv");
    if (c->n_args) return cli_fail(c, EXIT_USAGE, "--log takes no model ('%s')", c->args[0]);
    for (size_t k = 0; k < sizeof of_models / sizeof *of_models; k++)
        if (cli_has(c, of_models[k]))
            return cli_fail(c, EXIT_USAGE, "--log and --%s exclude each other", of_models[k]);
    return 0;
}

static void put_contexts(const cli *c, cli_json *j, const plot_drawn *how) {
    cli_json_warnings(j, buf_str(&c->warnings));
    json_key(&j->w, "contexts");
    json_array_begin(&j->w);
    for (int k = 0; k < how->contexts; k++) {
        json_object_begin(&j->w);
        cli_json_put(j, NUMBER("seconds", how->of[k].seconds));
        condition_members(&j->w, &how->of[k], "");
        json_object_end(&j->w);
    }
    json_array_end(&j->w);
}

/* The members of one context stand by themselves, those of several in an array, with what is
 * doubtful about their drawing; what is doubtful about files and places stands beside it. */
static void report(cli *c, const char *out, const plot_drawn *how) {
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_put(&j, TEXT("out", out), INTEGER("seed", c->seed));
    if (how->contexts == 1) {
        cli_json_put(&j, NUMBER("seconds", how->of[0].seconds));
        condition_json(c, &j, &how->of[0]);
    }
    if (how->contexts > 1) put_contexts(c, &j, how);
    cli_json_end(c, &j);
}

static int run(cli *c) {
    int code = check_flags(c);
    if (code != 0) return code;
    plot_drawn how = {0};
    mnp_plot *picture = NULL;
    const char *log = cli_text(c, "log", NULL), *out = cli_text(c, "out", NULL);
    code = cli_output(c, out);
    if (code != 0) return code;
    code = log ? figure_log(c, log, cli_text(c, "title", NULL), &picture)
               : draw_model(c, &how, &picture);
    if (code == 0 && figure_save(c, picture, out) != MNP_OK) code = points_failed(c);
    mnp_plot_destroy(picture);
    if (code != 0) return code;
    cli_say(c, "%s, seed %llu", out, (unsigned long long)c->seed);
    report(c, out, &how);
    return 0;
}

const command command_plot = {
    .name = "plot",
    .args = "MODEL [--context C.csv] [--chain] [--grid lo:hi:n] --out F.svg | --log M.log.csv",
    .summary = "pictures: functions given points, the chain, training curves",
    .details =
        "Bands hold 50, 80 and 95 % of what would be measured, noise included; draws are whole\n"
        "functions without noise. A context of several curves, told apart by the group column, "
        "gets\n"
        "a panel for each; 12 at most. With several inputs one runs along the axis; the others "
        "stay\n"
        "where --at says, or where the curve's own rows have them. Two inputs of numbers: maps of\n"
        "the mean, the standard deviation and draws, unless --at fixes one.\n"
        "--grid ROWSxCOLS: mean above sd for each context, measurements marked, or a --sheet of\n"
        "realisations; 'mnp help predict' says what rows and columns are.\n"
        "'mnp help predict' says how context files are read.\n"
        "  mnp plot m.safetensors --context points.csv --out functions.svg\n"
        "  mnp plot m.safetensors --context first.csv --truth all.csv --out forecasts.svg\n"
        "  mnp plot m.safetensors --context points.csv --at temp=20,soil=clay --out clay.svg\n"
        "  mnp plot m.safetensors --context points.csv --beside network,exact --out ways.svg\n"
        "  mnp plot m.safetensors --context points.csv --chain --out chain.svg\n"
        "  mnp plot --log m.log.csv --out training.svg",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .min_args = 0,
    .max_args = 1,
    .run = run};
