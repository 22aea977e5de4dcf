/* run_files.h: the files of a training run, and its log. */
#ifndef MNP_CLI_RUN_FILES_H
#define MNP_CLI_RUN_FILES_H

#include "cli/cli.h"

enum { RUN_PATH = 4096 };

typedef struct run_files {
    char best[RUN_PATH], last[RUN_PATH], train[RUN_PATH], log[RUN_PATH];
    buf lines; /* of the log so far, header included */
    int64_t logged;
    double seconds; /* of earlier parts of the run */
} run_files;

/* From M.safetensors (the ending may be left out). 0 or an exit status. */
int run_files_init(run_files *f, cli *c, const char *out);
void run_files_free(run_files *f);
bool run_files_exist(const char *path);

void run_files_log(run_files *f, const mnp_train_report *r, double seconds);
mnp_status run_files_write_log(run_files *f, cli *c);
/* Takes over the lines of an earlier part up to `step`; a missing or bad log starts anew. */
void run_files_read_log(run_files *f, cli *c, int64_t step);

#endif
