/* table2.h: the study table2: agents on the wheel bandit. A cell is one agent on one wheel's radius
 * with one horizon, all its trials in parallel; the bytes of its model are part of its key.
 *
 *     table2.c  rows, flags, files of models
 *     cell.c    one cell: playing it, its file
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
    cell head;
    int row, delta, horizon;
    mnp_bandit_scores scores;
    int n_curve;
    double step[TABLE2_CURVE], regret[TABLE2_CURVE], sd[TABLE2_CURVE]; /* percent, as the table */
    char decisions[TABLE2_SHOWN + 1]; /* digits: the actions of the first trial's last steps */
} table2_cell;

typedef struct table2 {
    study s;
    const char *models;
    int n_rows, n_deltas;
    table2_row rows[TABLE2_ROWS];
    char file[TABLE2_ROWS][STUDY_PATH]; /* where the row's model lies; "": there is none */
    uint64_t hash[TABLE2_ROWS];         /* of its bytes */
    char why[TABLE2_ROWS][STUDY_TEXT];  /* why a row is absent; "": it is not */
    double delta[TABLE2_DELTAS];
    bool shown[TABLE2_HORIZONS];
    int64_t steps[TABLE2_HORIZONS], trials[TABLE2_HORIZONS];
} table2;

/* The cell, or NULL where the study has none; and only if it is finished. */
const table2_cell *table2_find(const table2 *s, int row, int delta, int horizon);
const table2_cell *table2_done(const table2 *s, int row, int delta, int horizon);
/* Has a horizon's table this row? */
bool table2_has(const table2 *s, int row, int horizon);

/* Parts of the study_def. */
int table2_play(study *s, void *cell);
void table2_put(cli_json *j, const study *s, const void *cell);
bool table2_get(const json_value *root, const study *s, void *cell);
int table2_pictures(study *s);
void table2_markdown(buf *b, const study *s);
void table2_json(cli_json *j, const study *s);
/* Its scores as fields of a JSON object. */
void table2_put_scores(cli_json *j, const mnp_bandit_scores *v);

#endif
