/* study.h: studies of many runs. A study is a list of cells; a cell is one model trained on one
 * data set with one seed, scored under both protocols, and its result is kept as a file. A cell is
 * keyed by everything that fixes its result, so a study can be stopped and started at will:
 * finished cells are read back, and the one that was interrupted goes on from its checkpoint.
 *
 *     study.c    the list of cells, from flags; the files of a study
 *     cell.c     the key of a cell, and its file
 *     run.c      running one cell, and all of them with the time left
 *     trained.c  cells whose model is read from a file instead
 *     models.c   how each model is trained in a study, the paper's numbers, known ceilings
 *     table1/, ablation/, table2/, table3/   one study each: its cells, and its tables and
 *                pictures (write.c) */
#ifndef MNP_LAB_STUDY_H
#define MNP_LAB_STUDY_H

#include "cli/cli.h"
#include "cli/figure.h"

enum {
    REPRO_LIST = 16,   /* models, data sets                    */
    REPRO_SAMPLES = 4, /* numbers of importance samples        */
    REPRO_TIMES = 12,  /* context sizes whose cost is measured */
    REPRO_TEXT = 512,
    REPRO_PATH = 2048,
    REPRO_PROTOCOLS = 2
};

const char *repro_protocol(int protocol); /* mnp_protocol to "strict", "authors" */

typedef struct repro_names { /* they lie in `memory` */
    int count;
    const char *at[REPRO_LIST];
    char memory[REPRO_PATH];
} repro_names;

/* ---- cells ----------------------------------------------------------------------------------- */

typedef struct repro_task {
    const char *label; /* of its row */
    const char *model, *preset, *data;
    char model_options[REPRO_TEXT], train_options[REPRO_TEXT];
    uint64_t seed;
    double seconds; /* > 0: as many steps as fit in so many seconds */
    int64_t train_functions, functions;
    int n_samples;
    int64_t samples[REPRO_SAMPLES];
    int64_t law_functions;    /* for the conditional-consistency gap; 0: not measured    */
    int64_t cost_m;           /* largest context whose conditioning is timed; 0: no costs */
    char trained[REPRO_PATH]; /* the model is read from this file; "": it is trained */
    char made[REPRO_TEXT];    /* and how it was made, as a row of a table            */
    uint64_t weights;         /* a checksum of that file                             */
    char key[4 * REPRO_TEXT], stem[REPRO_PATH]; /* repro_task_name() */
} repro_task;

typedef struct repro_score {
    double loglik, se, elbo, kl;
} repro_score;

typedef struct repro_curve { /* the score by context size */
    int bins;
    int64_t lo[MNP_SCORE_BINS], hi[MNP_SCORE_BINS];
    double loglik[MNP_SCORE_BINS], se[MNP_SCORE_BINS]; /* NaN: no function with such a context */
} repro_curve;

typedef enum repro_state { REPRO_OPEN, REPRO_DONE, REPRO_ABSENT, REPRO_FAILED } repro_state;

typedef struct repro_result {
    repro_state state;
    char why[REPRO_TEXT]; /* REPRO_ABSENT: why there is no such model */
    int64_t steps, best_step, parameters;
    double seconds; /* training and scoring */
    repro_score scores[REPRO_PROTOCOLS][REPRO_SAMPLES];
    repro_curve curves[REPRO_PROTOCOLS]; /* of the first number of samples */
    double gap, gap_se;                  /* conditional consistency        */
    double step_seconds, memory;
    int n_times;
    double times_m[REPRO_TIMES], times[REPRO_TIMES]; /* seconds of conditioning on m points */
} repro_result;

typedef struct repro_study {
    cli *c;
    const char *name, *dir;
    bool quick;
    int count;
    repro_task *tasks;     /* [count] */
    repro_result *results; /* [count] */
    const char *trained;   /* folder of trained models, or NULL */
    /* of the run in progress */
    int current;
    double cell_started;
    char what[REPRO_TEXT];
} repro_study;

mnp_status repro_study_init(repro_study *s, cli *c, const char *name, int count);
void repro_study_free(repro_study *s);

/* Letters, digits and '.' of a name; anything else becomes '-'. */
void repro_plain_name(const char *name, char *out, size_t size);
/* Key and file stem, once every other field is set. */
void repro_task_name(const repro_study *s, repro_task *task);
/* The kept result of a cell; false where there is none with this very key. */
bool repro_cell_read(repro_study *s, const repro_task *task, repro_result *out);
mnp_status repro_cell_write(repro_study *s, const repro_task *task, const repro_result *r);
/* Ends the object begun by cli_json_begin() and writes it to STEM.json. */
mnp_status repro_cell_close(cli *c, cli_json *j, const char *stem);
/* Makes the study's folder, and checks that every cell's model can be made: a bad name or option is
 * found before hours of training. 0 or an exit status. */
int repro_prepare(repro_study *s);
/* 0, EXIT_INTERRUPTED, or EXIT_FAILED when some cell failed; each after one line on stderr. */
int repro_run(repro_study *s);

/* Scores a model on the cell's test functions. */
mnp_status repro_score_model(repro_study *s, const repro_task *task, const mnp_model *m,
                             repro_result *r);

/* ---- trained models (--trained DIR) ---------------------------------------------------------- */

/* Fills `trained` of every cell whose file is there: DIR/MODEL-DATA-sSEED.safetensors, or, for seed
 * 0, DIR/MODEL-DATA.safetensors. */
void repro_trained_find(const char *dir, repro_task *task);
/* How many seeds, from `first` on, there are files for; 0: none at all. */
int repro_trained_seeds(const char *dir, const repro_names *models, const repro_names *data,
                        uint64_t first);
/* Reads the file of a cell: its data are the cell's, its weights part of the key. Where there is no
 * file, a network is REPRO_ABSENT (it would take hours), and anything else is trained. */
int repro_trained_check(repro_study *s, repro_task *task, repro_result *r);
mnp_status repro_trained_run(repro_study *s, const repro_task *task, repro_result *r);

/* In a job ranks share cells: is cell k this one's? And: wait until all have run theirs; from then
 * on rank 0 alone writes. 0 or an exit status. */
bool repro_mine(const cli *c, int k);
/* Makes the folder of a study and DIR/cells, looks whether its tables NAME.md, .json and .svg can
 * be written, and takes it for this process, or for the job: its ranks call it in the same place.
 * What killed processes left half-written goes. */
int repro_claim(cli *c, const char *dir, const char *name);
/* Of all bytes of a file. */
mnp_status repro_hash_file(env *e, const char *path, uint64_t *out);
int repro_meet(cli *c);

/* ---- models and the paper -------------------------------------------------------------------- */

typedef struct repro_model {
    const char *name;
    const char *full, *quick; /* options of the training */
    bool fixed;               /* --steps and --seconds are not for it              */
    bool some;                /* there is not one for every data set               */
    bool network;             /* with --trained it comes from a file or not at all */
} repro_model;

const repro_model *repro_model_find(const char *name); /* an unlisted one has a row of its own */
const char *repro_models(void);                        /* those of table 1, "a,b" */

/* The paper's score (all points), with its standard error over five runs; false: none. */
bool repro_paper_score(const char *model, const char *data, double *score, double *se);
/* Where the paper's data or model differ from ours; NULL: they do not. */
const char *repro_paper_data_note(const char *data);
const char *repro_paper_model_note(const char *model);
/* The expected score of the true density, or a bound on every score; NaN: none is known. `what`
 * says which. */
double repro_ceiling(const char *data, mnp_protocol protocol, const char **what);

/* ---- flags and files of a study -------------------------------------------------------------- */

/* Names from a flag or its fallback. 0 or an exit status. */
int repro_models_flag(cli *c, const char *fallback, repro_names *out);
/* Data sets by their canonical names: "periodic:noise_var=1e-3" is "periodic:noise_var=0.001". */
int repro_data_flag(cli *c, const char *fallback, repro_names *out);
/* A cell with all that the flags say; `options` of the training come first, so flags win. */
repro_task repro_task_make(repro_study *s, const char *model, const char *data, uint64_t seed,
                           const char *options);
/* Makes DIR and DIR/cells, and looks whether the tables NAME.md, .json and .svg can be written
 * there. 0 or an exit status. */
int repro_check_out(cli *c, const char *dir, const char *name);
mnp_status repro_write(repro_study *s, const char *ending, const buf *text);
/* STUDY.json; with --json the same on one line of stdout. */
typedef void (*repro_put)(cli_json *j, const repro_study *s, const void *arg);
mnp_status repro_write_json(repro_study *s, repro_put put, const void *arg);
void repro_put_head(cli_json *j, const repro_study *s); /* which study, by which version, quick? */
void repro_path(const repro_study *s, const char *ending, char out[REPRO_PATH]);

int repro_table1(cli *c);
int repro_table2(cli *c); /* table2/table2.h */
int repro_ablation(cli *c);
int repro_table3(cli *c); /* table3/table3.h */

typedef struct repro_grid { /* table 1: the cells are tasks[(model * data + d) * seeds + k] */
    repro_names models, data;
    int seeds;
    bool shown[REPRO_PROTOCOLS];
} repro_grid;
int repro_table1_write(repro_study *s, const repro_grid *g);
/* Model m on data set d: the mean curve of its seeds; as JSON, as Markdown, as a picture. */
repro_curve repro_curve_of(const repro_study *s, const repro_grid *g, int m, int d, int protocol);
void repro_curve_json(cli_json *j, const repro_curve *c);
void repro_curves_markdown(buf *b, const repro_study *s, const repro_grid *g, int protocol);
mnp_status repro_curves_picture(repro_study *s, const repro_grid *g, int protocol);
int repro_ablation_base(const repro_study *s); /* steps T of the model the others vary */
int repro_ablation_write(repro_study *s, int seeds);

#endif
