/* table2.h: the study table2: agents on the wheel bandit. A cell is one agent on one wheel's radius
 * with one horizon, all its trials in parallel; its result is kept as a file under a key of
 * everything that fixes it, the bytes of its model included. So a study can be stopped and started,
 * and cells that were run elsewhere count when their files are copied into the folder.
 *
 *     table2.c  rows, flags, files of models; all cells with the time left
 *     cell.c    one cell: its key, playing it, its file
 *     write.c   the tables as Markdown and JSON
 *     plot.c    regret along the steps, and the wheel with the decisions */
#ifndef MNP_LAB_TABLE2_H
#define MNP_LAB_TABLE2_H

#include "lab/study.h"
#include "mnp_bandit.h"

enum {
    TABLE2_ROWS = 16,
    TABLE2_DELTAS = 8,
    TABLE2_HORIZONS = 2, /* short: several Markov steps; long: the running sum of one */
    TABLE2_CURVE = 80,   /* places of a regret curve */
    TABLE2_SHOWN = 400   /* decisions of the first trial that are kept: its last */
};

typedef struct table2_row {
    const char *label;
    const char *agent;
    const char *file;    /* of the model: FILE.safetensors; NULL: it has none    */
    const char *options; /* of the model, when --quick trains it; NULL: it does not */
    bool on[TABLE2_HORIZONS];
} table2_row;

typedef struct table2_cell {
    int row, delta, horizon;
    repro_state state;
    char key[REPRO_TEXT], stem[REPRO_PATH];
    mnp_bandit_scores scores;
    int n_curve;
    double step[TABLE2_CURVE], regret[TABLE2_CURVE], sd[TABLE2_CURVE]; /* percent, as the table */
    char decisions[TABLE2_SHOWN + 1]; /* digits: the actions of the first trial's last steps */
} table2_cell;

typedef struct table2 {
    cli *c;
    const char *dir, *models;
    bool quick;
    int n_rows, n_deltas, count;
    table2_row rows[TABLE2_ROWS];
    char file[TABLE2_ROWS][REPRO_PATH]; /* where the row's model lies; "": there is none */
    uint64_t hash[TABLE2_ROWS];         /* of its bytes */
    char why[TABLE2_ROWS][REPRO_TEXT];  /* why a row is absent; "": it is not */
    double delta[TABLE2_DELTAS];
    bool shown[TABLE2_HORIZONS];
    int64_t steps[TABLE2_HORIZONS], trials[TABLE2_HORIZONS];
    table2_cell *cells; /* [count] */
} table2;

/* The cell, or NULL where the study has none. */
const table2_cell *table2_find(const table2 *s, int row, int delta, int horizon);

void table2_cell_name(const table2 *s, table2_cell *cell);
bool table2_cell_read(table2 *s, table2_cell *cell);
mnp_status table2_cell_write(table2 *s, const table2_cell *cell);
/* Plays it and keeps the result; 0, EXIT_INTERRUPTED or EXIT_FAILED after one line on stderr. */
int table2_cell_run(table2 *s, table2_cell *cell, const char *what);

int table2_write(table2 *s);
mnp_status table2_plot(table2 *s);

#endif
