/* training.h: one training run as `mnp train` and `mnp repro` do it: the model and its trainer from
 * option texts, a loop with progress, log and checkpoints, and files that can be resumed.
 *
 *     training t;  training_init(&t, c);
 *     set process, preset, seed, device, train, valid, the options and files
 *     training_make_model(&t);  training_make_trainer(&t);  perhaps training_resume()
 *     training_run(&t);  training_free(&t); */
#ifndef MNP_CLI_TRAINING_H
#define MNP_CLI_TRAINING_H

#include "cli/run_files.h"

enum { TRAINING_WARNINGS = 4096 };

typedef struct training {
    cli *c;
    /* what is trained; the data are owned, the texts are not */
    const char *process, *preset, *device;
    uint64_t seed;
    mnp_model *init; /* the weights to start from, owned; NULL: random ones */
    mnp_data *train, *valid;
    buf model_options, train_options;
    run_files files;
    int64_t stop_at; /* end after this step of the schedule; 0 = its end */
    double limit;    /* seconds after which it ends, wherever it is; 0 = none */
    bool late;       /* it did */
    /* the name of the progress, and what stands after its line; more may be NULL */
    const char *what;
    void (*more)(void *user, const mnp_train_report *r, char *text, size_t size);
    void *user;
    /* made from it */
    mnp_model *model;
    mnp_trainer *trainer;
    double started, saved;
    double save_every; /* seconds between checkpoints */
    int64_t saved_best;
    int64_t saved_step; /* of the state on disk, as far as this rank knows; -1: none of this run */
    uint64_t state_stamp;         /* of the file of the state, before the run */
    bool resumed;                 /* an earlier state is part of the run */
    const char *again;            /* the command that goes on; NULL: mnp train --resume M */
    char said[TRAINING_WARNINGS]; /* warnings that were said while it ran, each a line */
    char why[512];                /* in a job: " (why it was interrupted)", or "" */
} training;

void training_init(training *t, cli *c);
void training_free(training *t);

/* "key=value" after an option text. */
void training_option(buf *to, const char *key, const char *value);
/* Each --set goes to the table that knows its name. */
void training_settings(training *t);

mnp_status training_make_model(training *t); /* from `init`, or of the process and preset */
mnp_status training_make_trainer(training *t);
/* Goes on from the state and the log on disk. */
mnp_status training_resume(training *t, bool new_schedule);
/* Adds steps=N to the training options so that the run takes about so many seconds: a few trial
 * steps on a model that is then thrown away. */
mnp_status training_calibrate(training *t, double seconds, int64_t *steps);

/* Where the trainer stands. */
mnp_train_report training_report(const training *t);

/* Warnings about the data and the run, a line each, into out; "" where there are none. */
void training_warnings(const training *t, char out[TRAINING_WARNINGS]);

/* Runs to stop_at or the end and saves; 0, EXIT_INTERRUPTED (all saved, nothing said yet) or
 * EXIT_FAILED after one line on stderr. */
int training_run(training *t);
/* What is doubtful about the run, and was not said while it ran; the data's were when they were
 * read. */
void training_say_warnings(training *t);
/* The last line of a run that stopped: why, and what is there to go on from. Returns `code`. */
int training_stopped(training *t, int code, const char *why);
/* Seconds of this run, its earlier parts included. */
double training_seconds(const training *t);

#endif
