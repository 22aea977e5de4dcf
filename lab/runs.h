/* runs.h: cells that are one model on one data set with one seed, scored under both protocols:
 * trained here, or read from a file (--trained DIR). The interrupted one goes on from its
 * checkpoint.
 *
 *     runs.c     the cell from flags, its training, scores and costs, its file
 *     trained.c  cells whose model is read from a file instead
 *     models.c   how each model is trained, the paper's numbers, known ceilings */
#ifndef MNP_LAB_RUNS_H
#define MNP_LAB_RUNS_H

#include "lab/study.h"

enum {
    RUN_SAMPLES = 4, /* numbers of importance samples        */
    RUN_TIMES = 12,  /* context sizes whose cost is measured */
    PROTOCOLS = 2
};
const char *protocol_name(int protocol); /* mnp_protocol to "strict", "authors" */

typedef struct curve { /* the score by context size */
    int bins;
    int64_t lo[MNP_SCORE_BINS], hi[MNP_SCORE_BINS];
    double loglik[MNP_SCORE_BINS], se[MNP_SCORE_BINS]; /* NaN: no function with such a context */
} curve;
void curve_put(cli_json *j, const curve *c);

typedef struct run_score {
    double loglik, se, elbo, kl;
} run_score;

typedef struct run_result {
    int64_t steps, best_step, parameters;
    double seconds; /* training and scoring */
    run_score scores[PROTOCOLS][RUN_SAMPLES];
    curve curves[PROTOCOLS]; /* of the first number of samples */
    double gap, gap_se;      /* conditional consistency        */
    double step_seconds, memory;
    int n_times;
    double times_m[RUN_TIMES], times[RUN_TIMES]; /* seconds of conditioning on m points */
} run_result;

typedef struct run {
    cell head;
    const char *model, *preset, *data;
    char model_options[STUDY_TEXT], train_options[STUDY_TEXT];
    uint64_t seed;
    double budget; /* > 0: as many steps as fit in so many seconds */
    int64_t train_functions, functions;
    int n_samples;
    int64_t samples[RUN_SAMPLES];
    int64_t law_functions;    /* for the conditional-consistency gap; 0: not measured     */
    int64_t cost_m;           /* largest context whose conditioning is timed; 0: no costs */
    char trained[STUDY_PATH]; /* the model is read from this file; "": it is trained      */
    char made[STUDY_TEXT];    /* and how it was made, as a row of a table                 */
    uint64_t weights;         /* a checksum of that file                                  */
    char why[STUDY_TEXT];     /* CELL_ABSENT: why there is no such model                  */
    run_result r;
} run;

/* A study of runs: all seeds of one model on one data set lie side by side. */
typedef struct runs {
    study s;
    names models, data;
    int seeds;
    bool shown[PROTOCOLS];
    const char *trained; /* folder of trained models, or NULL */
} runs;

static inline run *run_at(const study *s, int k) {
    return (run *)(void *)study_cell(s, k);
}

/* Data sets of --data by their canonical names: "periodic:noise_var=1e-3" is
 * "periodic:noise_var=0.001". */
int runs_data(cli *c, const char *fallback, names *out);
/* A cell with all that the flags say; `options` of the training come first, so flags win. */
run run_make(const study *s, const char *model, const char *data, uint64_t seed,
             const char *options);
/* Names every cell and checks that its model can be made: a bad name or option is found before
 * hours of training. Then claims the folder. */
int runs_prepare(runs *s);
/* Mean and standard error of a score over the finished seeds from cell `first` on; with one seed
 * the error is that over functions. Returns how many seeds. */
int runs_average(const runs *s, int first, int protocol, int sample, double *mean, double *se);

void times_put(cli_json *j, const run_result *r);

/* Scores a model on the cell's test functions. */
mnp_status run_scores(const study *s, run *t, const mnp_model *m);

/* Parts of a study_def. */
void run_title(const study *s, const void *cell, char *text, size_t size);
int run_cell(study *s, void *cell);
void run_say(const study *s, const void *cell, char *text, size_t size);
void run_put(cli_json *j, const study *s, const void *cell);
bool run_get(const json_value *root, const study *s, void *cell);
void run_drop(const void *cell);
#define RUN_CELLS                                                                                  \
    .title = run_title, .run = run_cell, .say = run_say, .put = run_put, .get = run_get,           \
    .drop = run_drop
/* Fields that the JSON of these studies begins with. */
void runs_json(cli_json *j, const runs *s);

/* ---- trained models (--trained DIR) ---------------------------------------------------------- */

/* Fills t->trained where the file is there: DIR/MODEL-DATA-sSEED.safetensors, or, for seed 0,
 * DIR/MODEL-DATA.safetensors. */
void trained_find(const char *dir, run *t);
/* How many seeds, from `first` on, there are files for; 0: none at all. */
int trained_seeds(const char *dir, const names *models, const names *data, uint64_t first);
/* Reads the file of a cell: its data are the cell's, its weights part of the key. Where there is no
 * file, a network is absent (it would take hours), and anything else is trained. */
int trained_check(const runs *s, run *t);
mnp_status trained_run(const study *s, run *t);

/* ---- models and the paper -------------------------------------------------------------------- */

typedef struct recipe {
    const char *name;
    const char *full, *quick; /* options of the training */
    bool fixed;               /* --steps and --seconds are not for it              */
    bool some;                /* there is not one for every data set               */
    bool network;             /* with --trained it comes from a file or not at all */
} recipe;

const recipe *recipe_of(const char *model); /* an unlisted one has a row of its own */

/* The paper's score (all points), with its standard error over five runs; NaN: none. */
double paper_score(const char *model, const char *data, double *se);
/* Where the paper's data or model differ from ours; NULL: they do not. */
const char *paper_data_note(const char *data);
const char *paper_model_note(const char *model);
/* The expected score of the true density, or a bound on every score; NaN: none is known. `what`
 * says which. */
double ceiling_of(const char *data, mnp_protocol protocol, const char **what);

#endif
