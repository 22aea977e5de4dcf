/* predictive.h: the study predictive: what models answer when they are given a few points of a
 * function. A cell is one model on one task with one context size; all models are asked about the
 * same functions, contexts and targets, and every function's scores are kept, so that differences
 * between models are paired. Of exact conditioning, all targets together have cells of their own.
 *
 *     predictive.c  rows, tasks and cells from the flags; model files
 *     made.c        training what is missing, where that was asked for
 *     ceiling.c     what the truth says, found once and kept in DIR/truth
 *     score.c       one cell: scoring, its file
 *     joint.c       the same of all targets together with exact conditioning, all sizes in one run
 *     paired.c      means, differences and their errors: pure arithmetic
 *     quoted.c      published numbers
 *     write.c       the tables as Markdown, JSON and CSV
 *     plot.c        pictures: short of the truth against the context size */
#ifndef MNP_LAB_PREDICTIVE_H
#define MNP_LAB_PREDICTIVE_H

#include "lab/predictive/paired.h"
#include "lab/study.h"

enum { SIZES_MAX = MNP_SCORE_BINS, OWN_SIZES = 0 };

/* What is kept of every function; NaN: not known, or not asked for. Log-densities are in nats per
 * target. */
typedef enum number {
    N_CONTEXT, /* points given           */
    N_TARGETS, /* points asked for       */
    N_JOINT,   /* log p(targets | context): bound, exact, or of particles; all at once */
    N_TURN,    /* by the chain rule: the mean over orders                              */
    N_ORDERS,  /* and their standard deviation                                         */
    N_MARGINAL,
    N_CRPS,
    N_COVERED, /* share of the targets in the 95 % band */
    N_KL,      /* KL(truth || normal with the draws' mean and sd) */
    /* of a joint score by particles: standard error, estimated bias, share of hurried runs */
    N_JOINT_ERROR,
    N_JOINT_BIAS,
    N_JOINT_HURRIED,
    NUMBERS
} number;
const char *number_name(number k);
bool number_is_of(bool joint, number k); /* does the file of such a cell have it? */

typedef struct predictive_row {
    char label[64];
    char stem[STUDY_TEXT]; /* STEM-TASK.safetensors; of a file its whole path; "": the truth */
    char kind[16];         /* the process that the file must hold; "": any                   */
    char options[64];      /* one that the file must have: "head=mixture"; "": none          */
    bool exact, file;
} predictive_row;

/* Of a row on a task. */
typedef struct predictive_model {
    char path[STUDY_PATH]; /* "": there is none */
    char why[STUDY_TEXT];
    uint64_t hash;
    bool factorises, network;
    int64_t parameters;
} predictive_model;

typedef struct predictive_cell {
    cell head;
    int row, task, size; /* places in the lists; a task of its own sizes has size 0 */
    bool joint;          /* all targets together, by particles; else the rest       */
    int64_t functions;   /* that were scored; 0: there is no such number            */
    double *number;      /* (NUMBERS, functions)                                    */
    double ms;           /* a function: its draws and their scores                  */
    double gap, gap_se;  /* conditional consistency, of the first size; or NaN      */
    double joint_ms;     /* of all targets together, a function and size; or NaN    */
    int64_t run;         /* functions times sizes of the run that found a joint one */
} predictive_cell;

/* The truth of one task and size, as a flat array: see ceiling.c. */
typedef struct ceiling {
    int task, size; /* -1: none is held */
    int64_t functions;
    double *flat;
    size_t count;
    double seconds; /* that it took; NaN: it was read */
} ceiling;

typedef struct predictive {
    study s;
    names tasks, models;
    const char *folder; /* of model files */
    int n_rows, n_sizes;
    predictive_row row[NAMES_MAX];
    int64_t sizes[SIZES_MAX];
    int64_t functions, exact_functions, draws, samples, orders, law_functions;
    int64_t joint, joint_functions, joint_particles; /* runs of each joint score; 0: none */
    bool trains;                                     /* what is missing */
    predictive_model *model;                         /* (rows, tasks) */
    mnp_data *test;                                  /* of test_task  */
    int test_task;
    ceiling ceiling;
} predictive;

static inline predictive_cell *predictive_at(const study *s, int k) {
    return (predictive_cell *)(void *)study_cell(s, k);
}
/* A finished cell, not one of all targets together, or NULL. */
const predictive_cell *predictive_done(const predictive *s, int row, int task, int size);
predictive_model *predictive_model_of(const predictive *s, int row, int task);
bool task_has_own_sizes(const char *task);
int task_sizes(const predictive *s, int task);        /* how many */
int64_t task_size(const predictive *s, int t, int k); /* OWN_SIZES: the task's */
bool row_is_truth(const predictive_row *r);
int predictive_truth_row(const predictive *s); /* -1: there is none */
/* Which number is the joint score: in turn for what predicts each point by itself. */
number joint_of(const predictive *s, const predictive_cell *c);
paired_mean mean_of(const predictive_cell *c, number k);
const double *numbers_of(const predictive_cell *c, number k); /* (functions) */
/* Groups of contexts of equal width, from the smallest to the largest there is; how many. */
enum { GROUPS = 8 };
int groups_of(const predictive_cell *c, double lo[GROUPS], double hi[GROUPS]);
/* b - a, function by function. */
paired_mean short_of(const predictive_cell *a, number ka, const predictive_cell *b, number kb);

/* Trains the row's model; where that cannot be, its `why` says so. */
int predictive_make(predictive *s, int row, int task, const char *path);
/* Was it trained as this command would train it? A file without a note on that is taken as it is.
 */
int predictive_check_made(predictive *s, int row, const char *path, const mnp_model *m);

mnp_status predictive_test(predictive *s, int task); /* s->test */
/* s->ceiling is that of the task and size; without functions where no truth is known. */
mnp_status ceiling_find(predictive *s, int task, int size);
void ceiling_free(predictive *s);
/* The k-th function of it: numbers, and (targets, 5): log-density, CRPS, mean, sd, entropy; NULL:
 * not known one by one. Functions come in turn: *at is 0 before the first. */
typedef struct true_function {
    double context, joint;
    int64_t targets;
    const double *target;
} true_function;
bool ceiling_next(const ceiling *c, size_t *at, true_function *out);

int predictive_score(study *s, void *cell);
/* Room for that many functions, all NaN. */
mnp_status predictive_numbers(predictive *s, predictive_cell *cell, int64_t functions);
/* All open cells of the group that begins with this one. */
mnp_status predictive_score_joint(predictive *s, predictive_cell *first);
/* What such cells found into the cells of the same row, task and size. */
void predictive_take_joint(predictive *s);
void predictive_put(cli_json *j, const study *s, const void *cell);
bool predictive_get(const json_value *root, const study *s, void *cell);
int predictive_files(study *s); /* functions-TASK.csv, then the pictures */
int predictive_pictures(predictive *s);
void predictive_markdown(buf *b, const study *s);
void predictive_json(cli_json *j, const study *s);

/* Published numbers of a task. */
typedef struct quoted {
    const char *task, *model, *what; /* "joint", "each by itself", "KL" */
    const char *value;               /* as it was printed               */
    const char *source;              /* the paper of the model          */
    const char *note;                /* how it is known, and of what it is */
} quoted;
const quoted *quoted_at(int k); /* NULL after the last */

#endif
