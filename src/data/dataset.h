/* dataset.h: a collection of functions, each a set of points (x, y), held in memory. It comes from
 * a built-in family ("monotonic", "monotonic:alpha=0.5"), from a person's CSV file, or from arrays.
 *
 * Families draw function i of a split from its own counter-based stream, so the data depend on the
 * name, the seed, the split and i alone. Families of one seed are paired: rbf, matern and periodic
 * have the same inputs and noise, so that they can be compared function by function. A family is
 * one file and one line in families.def. */
#ifndef MNP_DATA_DATASET_H
#define MNP_DATA_DATASET_H

#include "base/gp_math.h"
#include "base/options.h"
#include "base/pool.h"
#include "base/rng.h"
#include "data/hyper.h"
#include "data/roles.h"

typedef enum data_split { DATA_TRAIN, DATA_VALID, DATA_TEST } data_split;

/* How a set was opened, for the notes of the model that is trained on it. */
typedef struct data_note {
    const char *key; /* "data.seed" and the like, static */
    char *value;
} data_note;
enum { DATA_NOTES = 12 };

/* How functions of a kind are trained and scored on, where a run does not say otherwise. Curves are
 * taken whole, and what is scored is the rest of the points: sizes of contexts, zeros otherwise. Of
 * an image a step takes some points only, and its targets stand apart from its context. */
typedef struct data_policy {
    int64_t context_lo, context_hi; /* usual context sizes                                       */
    int64_t targets_lo, targets_hi; /* numbers of targets, drawn with the context; 0: the rest   */
    int64_t step_points;            /* points of a function that suit a training step; 0: all    */
    int64_t step_seen;              /* of those, that the posterior should see at most; 0: all   */
    double p_region;                /* share of training contexts from a region (op/region.h)    */
    bool mirrors; /* a function mirrored in any input might be one of them too                   */
    double noise; /* sd of the noise that belongs on targets, in units of y                      */
    bool apart;   /* scoring: context and targets are separate sets, a proposal sees a part of   */
    /* the targets (run/eval_internal.h)                                              */
} data_policy;

typedef struct dataset {
    env env;       /* its own copy */
    char *name;    /* canonical name with the variant, or the path of the file        */
    bool builtin;  /* a family: unscaled; files are standardised inside the model     */
    uint64_t seed; /* that it was opened with: of a family's functions, or of a file's hold-out */
    data_note notes[DATA_NOTES];
    int n_notes; /* 0: made from arrays */
    int64_t functions, points;
    int32_t x_dim;
    int64_t *start; /* (functions + 1) */
    float *x;       /* (points, x_dim), or one function's where shared_x, minus x_origin */
    float *y;       /* (points), minus y_origin */
    double *x_origin,
        y_origin;   /* (x_dim): 0 unless single precision would blur a column (origin.h) */
    char **x_names; /* (x_dim)         */
    char *y_name;
    char *function_name; /* of the column that tells functions apart, in CSV files     */
    char **ids;          /* (functions) labels of a file's functions, or NULL          */
    int64_t longest;     /* points of the longest function                             */
    double rff_std;      /* frequency scale that suits its x range                     */
    bool shared_x;       /* all functions have one length and one x (longest, x_dim)   */
    bool raw_x, raw_y;   /* a model takes them as they are, not standardised           */
    int64_t rows, cols;  /* images: every function is such a grid, row by row; else 0  */
    data_policy policy;
    char *report;   /* what was read: functions, points, ranges, rows dropped     */
    char *warnings; /* a line for everything doubtful; NULL: nothing              */
    roles *roles;   /* of a person's table; NULL: it is none                      */
} dataset;

/* The inputs of function i. */
static inline const float *dataset_x(const dataset *d, int64_t i) {
    return d->shared_x ? d->x : d->x + d->start[i] * d->x_dim;
}

/* The input that is taken for time: the first that changes within a function and is no category. */
int32_t dataset_time(const dataset *d);

/* Input c of point j of function i, and a value y[at], in raw units. */
static inline double dataset_raw_x(const dataset *d, int64_t i, int64_t j, int32_t c) {
    return (double)dataset_x(d, i)[j * d->x_dim + c] + d->x_origin[c];
}
static inline double dataset_raw_y(const dataset *d, int64_t at) {
    return (double)d->y[at] + d->y_origin;
}

/* ---- families -------------------------------------------------------------------------------- */

struct truth_law; /* data/truth.h */

typedef struct family_def {
    const char *name, *help;
    const option_def *options; /* constants, settable in the name as name:key=value,key=value */
    size_t n_options, opts_size;
    int32_t x_dim;              /* numbers of one input; 0 = 1                            */
    const char *const *x_names; /* (x_dim), or NULL: x, or x1 x2 ...                      */
    const char *y_name;         /* NULL: y                                                */
    int64_t train_functions;    /* the usual number to train on; 0 = family_functions()   */
    int64_t (*points)(const void *opts);
    option_span (*context)(const void *opts);
    option_span (*targets)(const void *opts); /* NULL or 0:0: all points outside the context */
    double (*rff_std)(const void *opts);
    option_range (*range)(const void *opts); /* of every input; NULL: they differ */
    /* Functions first .. first + count - 1 of the split: x (count, points, x_dim) ascending or in
     * any order, y (count, points). Draws only from streams (seed, RNG_DATA, step = split, function
     * = i
     * ...), so a function is the same whatever range it is asked in. e is for scratch memory. */
    mnp_status (*draw)(env *e, const void *opts, uint64_t seed, data_split split, int64_t first,
                       int64_t count, float *x, float *y);
    int64_t group; /* functions that share work (the same x): first is a multiple; 1 = none */
    mnp_status (*check)(env *e, const void *opts); /* what the table cannot say; may be NULL */
    /* What a model can reach: the Gaussian process the functions are drawn from, or the most nats
     * per point that the noise allows (NAN: no limit). Either may be NULL. */
    void (*oracle)(const void *opts, gp_kernel *out);
    /* Or its own density of targets given a context, and their laws one by one, as truth_ask()
     * asks for them; either may be NULL. */
    mnp_status (*logp)(env *e, const void *opts, const double *x, const double *y, int64_t n,
                       int64_t m, double *out);
    mnp_status (*law)(env *e, const void *opts, const double *x, const double *y, int64_t n,
                      int64_t m, struct truth_law *out);
    double (*ceiling)(const void *opts);
    /* Or the law given numbers that every function draws anew (hyper.h); may be NULL. */
    void (*hyper)(const void *opts, hyper_law *out);
} family_def;

const family_def *family_find(const char *name); /* without the variant; NULL: none */
const family_def *family_at(int index);          /* NULL after the last            */

/* A family with its constants: "periodic:noise_var=1e-3". An unknown family or constant is refused
 * with the nearest valid name. */
typedef struct family {
    const family_def *def;
    void *opts;
    char *name; /* canonical: only the constants that differ from the default, in table order */
} family;

mnp_status family_parse(env *e, const char *what, family *out);
void family_free(env *e, family *f);
/* The usual number of functions of a split. */
int64_t family_functions(data_split split);
/* Numbers of one input. */
int32_t family_x_dim(const family_def *def);
/* Functions first .. first + count - 1 of the split, over the pool (NULL: this thread alone), the
 * same bits for any number of threads. x (count, points, x_dim), y (count, points). */
mnp_status family_draw(env *e, pool *pool, const family *f, uint64_t seed, data_split split,
                       int64_t first, int64_t count, float *x, float *y);

#define DATA_HOLDOUT    0.2
#define DATA_TEST_SHARE 0.2

typedef struct data_source {
    data_split split;
    int64_t functions; /* families: 0 = 50 000 / 5 000 / 5 000                             */
    uint64_t seed;
    /* files: shares of the functions held out by a seeded permutation, for valid and for test; the
     * rest is for train. holdout 0 or less gives all to each; test 0 or less, or a table of fewer
     * than SPLIT_TEST_LEAST curves, makes test the same as valid. Images have no test of their own.
     */
    double holdout; /* usually DATA_HOLDOUT */
    double test;    /* usually DATA_TEST_SHARE */
    /* files: names of columns, as "a,b"; NULL = guessed where that is unambiguous, and said in the
     * report. Several of function_column make one key; several of y_column are several outputs.
     * function_column "": there is none, the file is one function */
    const char *function_column, *x_columns, *y_column;
    bool wide;              /* files: one curve a row (melt.h)                       */
    const roles_like *like; /* files: read as a model's own table was; NULL = anew   */
    bool asked;             /* tables of points for a model (asked.h): no group is guessed */
    bool without_y;         /* and those to ask about have no y                      */
    bool fillable;          /* with y; what is constant in a curve may be left out   */
    /* files: a column of names or numbers that becomes one input per value, 1 or 0 (a bandit's
     * action: inputs are then [x, one-hot(action)]); NULL = none */
    const char *action_column;
    const char *cache; /* families: folder for generated sets; NULL = none                 */
    const char *text;  /* files: read this instead, `bytes` of it; or NULL                 */
    size_t bytes;
} data_source;

/* `what`: a family's name with variant, "images:PATH" (images.h), "geofluvial:key=value,..."
 * (images drawn anew), or the path of a CSV file: a header, then one row a point, in any order. A
 * row without y (empty, NA, NaN) was not observed. The report says what was read, which columns
 * were taken for what, and what was dropped and why. pool may be NULL. */
mnp_status dataset_open(env *e, pool *pool, const char *what, const data_source *s, dataset **out);
/* The file or folder it would read, a part of `what`; NULL: a family or images drawn here. */
const char *dataset_path(const char *what);
/* The source that a set's notes speak of; get() answers NULL where a note is not there. Texts are
 * the notes' own. MNP_EFORMAT names a note that cannot be read. */
mnp_status dataset_noted_source(env *e, const char *(*get)(const void *of, const char *key),
                                const void *of, data_source *out);
/* Names of sets that cannot be opened again. */
#define DATASET_ARRAYS "arrays"
#define DATASET_TABLE  "a table in memory"
/* Points of `functions` sets, one after the other, lengths in n. */
mnp_status dataset_from_arrays(env *e, const char *name, int64_t functions, const int64_t *n,
                               int32_t x_dim, const double *x, const double *y, dataset **out);
/* Curves which[0 .. count - 1] of d in that order, of each the points that `keep` (d->points) is
 * true for, all where it is NULL. Notes and roles are those of the whole; it has no report. */
mnp_status dataset_part(env *e, const dataset *d, const int64_t *which, int64_t count,
                        const bool *keep, dataset **out);
void dataset_destroy(dataset *d);
/* Rows function,x..,y. */
mnp_status dataset_write_csv(env *e, const dataset *d, const char *path);

#endif
