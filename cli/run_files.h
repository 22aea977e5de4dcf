/* run_files.h: the files of a training run, and its log. */
#ifndef MNP_CLI_RUN_FILES_H
#define MNP_CLI_RUN_FILES_H

#include "cli/cli.h"

enum { RUN_PATH = 4096 };

typedef struct run_files {
    char best[RUN_PATH], last[RUN_PATH], train[RUN_PATH], log[RUN_PATH];
    out_lock lock;
    buf lines; /* of the log so far, header included */
    int64_t logged;
    double seconds; /* of earlier parts of the run */
} run_files;

/* From M.safetensors (the ending may be left out). 0, or an exit status where one of them cannot be
 * written or is an input of the run. */
int run_files_init(run_files *f, cli *c, const char *out);
/* Do two names, with or without the ending, mean one run? */
bool run_files_same(const char *a, const char *b);
/* Until run_files_free() no other process may have them; what killed ones left half-written goes.
 * In a job rank 0 does it. 0 or an exit status. */
int run_files_claim(run_files *f, cli *c);
void run_files_free(run_files *f);
bool run_files_exist(const char *path);
/* Another number after every write; 0: there is no such file. */
uint64_t run_files_stamp(const char *path);

/* The log has a row for every 1/500 of the schedule and for its end, wherever a run was stopped
 * and resumed in between. */
int64_t run_files_log_every(int64_t steps);
void run_files_log(run_files *f, const mnp_train_report *r, double seconds);
mnp_status run_files_write_log(run_files *f, cli *c);
/* Takes over the lines of an earlier part up to the step of `r`, and says so where some are not
 * there. */
void run_files_read_log(run_files *f, cli *c, const mnp_train_report *r);

#endif
