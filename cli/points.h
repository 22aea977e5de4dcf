/* points.h: what predict, sample, score and plot have in common: a model, the names of its columns,
 * observed points from a CSV file, and the places that are asked about (a CSV file or a grid).
 *
 * Calls return an exit status; anything but 0 has already printed its one line. */
#ifndef MNP_CLI_POINTS_H
#define MNP_CLI_POINTS_H

#include "cli/condition.h"
#include "util/csv.h"
#include "util/limits.h"

/* Names of the columns in files: the model's notes, or x (x1, x2 ...) and y. */
typedef struct point_names {
    int64_t x_dim;
    char *text; /* owns the x names */
    const char *x[POINTS_DIMS_MAX];
    const char *y;
    const mnp_model *model; /* theirs */
} point_names;

typedef struct points {
    int64_t n;
    double *x; /* (n, x_dim) */
    double *y; /* (n), or NULL */
} points;

/* A loaded model and what is asked of it. */
typedef struct question {
    mnp_model *model;
    point_names names;
    mnp_table *seen;          /* --context, of one or several curves; NULL: none */
    mnp_table *places;        /* --at or --grid; where the context has curves, of each of them */
    points context;           /* of one curve; n = 0: none */
    points targets;           /* of somebody else, to warn of those far away; n = 0: none */
    const condition_ask *how; /* functions are drawn; NULL: as the flags say */
} question;

/* The flags of commands that read points, beside --context and --at. */
#define POINTS_FLAGS                                                                               \
    {"group", "A,B",                                                                               \
     "the column that tells curves apart, or several, where the model does not know its name"},    \
        {"x", "A,B",                                                                               \
         "columns of inputs called otherwise than in training; maps: easting,northing"},           \
    {                                                                                              \
        "y", "A,B", "the column of the output, likewise"                                           \
    }

/* Loads the model c->args[0] and, where the flag is given, the table --context. */
int question_open(cli *c, question *q);
int question_open_model(cli *c, const char *path, question *q); /* without a context */
/* Places from --at or --grid, exactly one of which must be given. */
int question_places(cli *c, question *q);
/* Points with y from --targets, whose constants the context may say. */
int question_targets(cli *c, question *q);
/* Says which curves have no points in the context, or are not asked about. */
int question_match(cli *c, question *q);
/* The context as points, for what takes one curve: several are refused. */
int question_one(cli *c, question *q);
/* Warns of more points than in training, and of places outside the training data (NULL: of none).
 */
void question_warn(cli *c, const question *q, int64_t given, const points *asked);
/* The most points that one of the curves is given that are asked about. */
int64_t question_most(const question *q);
/* How the functions are drawn: --condition, or what the model notes, or the default. */
bool question_condition(cli *c, const question *q, condition_ask *out); /* false: cli_bad() */
/* Forecasts of all curves at once, as mnp_predict_groups() gives them. */
int question_forecast(cli *c, question *q, int64_t samples, bool smooth, const mnp_summary *out,
                      drawn *how);
/* ---- columns of the places, for tables of results: the groups, and the inputs as the model has
 * them (kind MNP_COLUMN_NUMBER), into out (columns); returns how many. A number is written as it
 * was read, anything else as it stands in the file. */
bool points_grouped(const mnp_table *t); /* has it a group column? */
int64_t points_columns(const question *q, mnp_column kind, int64_t *out);
int64_t points_number(const mnp_table *t, int64_t column); /* which number of x it is, or -1 */
void points_put_name(csv_writer *w, const question *q, int64_t column);
void points_put_cell(csv_writer *w, const question *q, int64_t row, int64_t column);

/* "groups": [{"group", "context", "rows"}, ...] and "rows". */
void question_json(cli_json *j, const question *q);
/* The curve of the context that curve g of the places is, by its name, or the only one there is;
 * -1: none. */
int64_t question_context_of(const question *q, int64_t g);
/* A predictor conditioned on the context, with S functions drawn by --seed as --condition says: by
 * default refined for functions of one input. */
int question_draw(cli *c, const question *q, int64_t samples, drawn *how, mnp_predictor **out);
void question_close(cli *c, question *q); /* accepts a question of zeros */

/* Numbers beyond the model's reach (MNP_REACH) are refused with file and line. */

/* A CSV file as mnp_table_open() reads it, what is doubtful about it said. `group`: NULL, as
 * --group says. */
int points_open(cli *c, const mnp_model *m, const char *path, bool with_y, const char *group,
                mnp_table **out);
/* The rows of the k-th curve of a table, as numbers; none for a number that it has not. They are
 * looked for from row `from` on: 0, or where the curve begins. */
int points_of_curve(cli *c, const mnp_table *t, int64_t k, int64_t from, int64_t x_dim,
                    points *out);
/* Where the curves begin, into first (curves). */
void points_first_rows(const mnp_table *t, int64_t *first);
/* A file of one curve, as numbers. */
int points_read(cli *c, const point_names *names, const char *path, bool with_y, points *out);
/* "lo:hi:n[,lo:hi:n]": the last input runs fastest. */
int points_grid(cli *c, const point_names *names, const char *text, points *out);
/* n values evenly from lo to hi in each of x_dim inputs: n^x_dim points. */
int points_span(cli *c, int64_t x_dim, const double *lo, const double *hi, const int64_t *n,
                points *out);
void points_free(cli *c, points *p);

/* The error of c->env (files and memory of the command itself) as one line. */
int points_failed(cli *c);
/* Writes a finished table to --out, or to stdout. */
int points_write(cli *c, const buf *table);
/* Before any work: can --out be written? --json without --out would mix a table and an object on
 * stdout: refused. */
int points_check_out(cli *c);

/* ---- the range of a model's inputs, from the data it was trained on ---------------------------
 */

typedef struct places_span { /* of two inputs at most; lo > hi: nothing seen yet */
    double lo[2], hi[2];
} places_span;

places_span places_nothing(void);
void places_widen(places_span *s, int64_t x_dim, const double *x);
/* The x range of a few functions of the model's own data, where they can still be had. */
bool places_of_data(cli *c, const mnp_model *m, int64_t x_dim, places_span *s);
/* That range, or -2 .. 2, outwards to round numbers. */
void places_round(places_span *s, int64_t x_dim);

#endif
