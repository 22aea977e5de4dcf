/* study.h: studies of many runs (mnp repro). A study is a list of cells; a cell is one run with one
 * result, which is kept as a file under a key of everything that fixes it. So a study can be
 * stopped and started at will: finished cells are read back, and cells that were run elsewhere
 * count when their files are copied into the folder. From the cells come tables and pictures.
 *
 *     studies.def   the list: one line for each study
 *     study.c       from flags to tables: what all studies do alike
 *     cell.c        the cells one after the other, shared by the ranks of a job; their files
 *     runs.h        cells that are one model trained on one data set (table 1, ablation)
 *     table1/, table2/, table3/, ablation/, predictive/   one study each;  kriging/  a peer of
 *                                                         table 3
 *
 * Texts are made with %f and %g: the command never sets a locale. */
#ifndef MNP_LAB_STUDY_H
#define MNP_LAB_STUDY_H

#include "cli/figure.h"

enum { STUDY_TEXT = 512, STUDY_PATH = 2048 };

/* ---- cells ----------------------------------------------------------------------------------- */

typedef enum cell_state { CELL_OPEN, CELL_DONE, CELL_ABSENT, CELL_FAILED } cell_state;
const char *cell_state_name(cell_state state);

/* What every cell begins with. */
typedef struct cell {
    cell_state state;
    const char *label;        /* cells of one label take about as long */
    char key[6 * STUDY_TEXT]; /* all that fixes the result             */
    char stem[STUDY_PATH];    /* of its file, STEM.json                */
    double seconds;
    int group;   /* cells of one group follow each other, and one run() of a rank is for all of them
                  * that are open; 0: alone */
    bool scored; /* said by a run() for a group, of each cell whose result it has, even where it was
                  * interrupted or failed */
} cell;

/* ---- studies --------------------------------------------------------------------------------- */

typedef struct study study;

/* What differs between studies. Calls that return int return an exit status: anything but 0 has
 * printed its one line, except EXIT_INTERRUPTED of run(). */
typedef struct study_def {
    const char *name;
    const char *help;    /* in `mnp help repro`                                 */
    const char *refused; /* flags that are not for it, "data seeds"; may be NULL */
    size_t bytes;        /* of its own struct, which begins with a study         */
    /* From flags to cells (study_cells); the folder is claimed (study_claim). */
    int (*prepare)(study *s);
    /* One cell, or the first open one of a group: its name, the run itself; of each cell what is
     * said of the result. */
    void (*title)(const study *s, const void *cell, char *text, size_t size);
    int (*run)(study *s, void *cell);
    void (*say)(const study *s, const void *cell, char *text, size_t size);
    /* Its result in a file, and back; false: the file is not what it should be. */
    void (*put)(cli_json *j, const study *s, const void *cell);
    bool (*get)(const json_value *root, const study *s, void *cell);
    void (*drop)(const void *cell); /* what only resuming needs goes; may be NULL */
    /* The tables, from all cells; pictures first. */
    int (*pictures)(study *s); /* may be NULL */
    void (*markdown)(buf *b, const study *s);
    void (*json)(cli_json *j, const study *s);
    const char *files;       /* what there is to see: "t.md, t.json and t.svg are the table" */
    void (*close)(study *s); /* may be NULL; also after a failure of prepare() */
} study_def;

struct study {
    const study_def *def;
    cli *c;
    const char *dir;
    const char *precision; /* of networks on the device of the run: "fp32", "tf32" ... */
    bool quick;
    int count;
    char *cells; /* (count, cell_bytes) */
    size_t cell_bytes;
    /* of the cell that runs */
    int current;
    double started;
    char what[STUDY_TEXT];
    char usual_dir[64];
};

const study_def *study_at(int k); /* NULL after the last */
int study_run(const study_def *d, cli *c);

/* For prepare(): memory for the cells; the folder, which is made, looked at and locked; the name of
 * a cell, once its key is set; and find(s, k) for every k, by rank 0 first, since it may have to
 * train a model that the others then find. */
int study_cells(study *s, int count, size_t bytes);
int study_claim(study *s);
void cell_name(const study *s, cell *c, const char *fmt, ...) MNP_PRINTF(3, 4);
int study_find(study *s, int count, int (*find)(study *s, int k));
int study_meet(study *s); /* all ranks wait for each other */

/* The cells. */
cell *study_cell(const study *s, int k);
int study_run_cells(study *s);
/* Seconds that all open cells take, `running` for one like the current one. */
double study_time_left(const study *s, double running);

void study_plain(char *name); /* anything but letters, digits and '.' becomes '-' */
/* The error of the command's own memory and files as one line. */
int study_failed(const study *s);
mnp_status study_hash_file(env *e, const char *path, uint64_t *out); /* of all its bytes */
void study_progress(void *user, int64_t done, int64_t total);        /* user: a progress */

/* ---- lists of names -------------------------------------------------------------------------- */

enum { NAMES_MAX = 16 };
typedef struct names { /* they lie in `memory` */
    int count;
    const char *at[NAMES_MAX];
    char memory[STUDY_PATH];
} names;
/* "a,b:k=v,l=w,c" are three names: a piece with '=' and without ':' belongs to the one before. */
int names_split(cli *c, const char *flag, const char *text, names *out);

/* ---- files, tables and pictures -------------------------------------------------------------- */

/* Numbers of a struct as fields of a JSON object, and back. */
typedef struct field {
    const char *name;
    size_t offset; /* of a double, or an int64_t */
    bool whole;    /* the latter: not negative   */
} field;
void fields_put(cli_json *j, const field *f, size_t count, const void *from);
bool fields_get(const json_value *root, const field *f, size_t count, void *to);
double field_number(const json_value *object, const char *key); /* NaN was written as null */
void numbers_put(cli_json *j, const char *key, const double *v, int count);
int numbers_get(const json_value *root, const char *key, double *v, int most); /* how many */
void list_begin(cli_json *j, const char *key); /* "key": [ ; json_array_end() ends it */

/* "# TITLE (quick)", and a paragraph of what quick settings mean. */
void md_title(buf *b, const study *s, const char *title, const char *quick);
void md_rule(buf *b, int columns);                   /* "|---|---|" */
void md_pm(buf *b, double v, double se, int digits); /* "1.234 ± 0.005", "1.234", "—" */

/* Saves DIR/NAME.svg, and .png too if `png` and the build can; the figure is destroyed. */
int study_save(study *s, mnp_plot *f, bool png, const char *fmt, ...) MNP_PRINTF(4, 5);

#endif
