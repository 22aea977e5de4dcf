/* csv.h: tables as text: a reader for people's own data and a writer for results.
 *
 * Reading: the first row names the columns. Fields follow RFC 4180: quotes "..." with "" for a
 * quote, rows end with LF, CRLF or CR, a UTF-8 byte order mark is skipped. The separator is given
 * or guessed from the first row among , ; and tab. Empty lines are skipped, blanks around an
 * unquoted field are dropped, there are no comments. Every row must have as many fields as the
 * header. Columns may lack a name; names must differ otherwise. Where the separator is not the
 * comma and no number has a decimal point, a comma is taken for it (1,5). Messages read "file:line:
 * what is wrong (what to do)". */
#ifndef MNP_BASE_CSV_H
#define MNP_BASE_CSV_H

#include "util/fsio.h"
#include "util/limits.h"

typedef struct csv_table {
    env *e;
    char *name; /* the file, for messages */
    char *text; /* private: the fields, cut in place */
    size_t columns, rows;
    char **cells;    /* (1 + rows, columns); the first row is the header */
    uint32_t *lines; /* (1 + rows): where each row starts in the file */
    size_t row_cap;  /* private: rows there is memory for */
    char separator;
    char decimal;  /* '.' or ',' */
    uint64_t hash; /* of the file's bytes (text_hash) */
} csv_table;

/* separator '\0': guess. Files over CSV_BYTES_MAX are refused. */
mnp_status csv_read(env *e, const char *path, char separator, csv_table **out);
/* The same from memory; the text is copied. */
mnp_status csv_parse(env *e, const char *name, const char *text, size_t bytes, char separator,
                     csv_table **out);
void csv_destroy(csv_table *t); /* accepts NULL */

const char *csv_header(const csv_table *t, size_t column);
const char *csv_cell(const csv_table *t, size_t row, size_t column); /* row 0: below the header */
/* The column of that name; where there is none the message lists those there are. */
mnp_status csv_find(env *e, const csv_table *t, const char *name, size_t *column);

/* An empty cell, NA, NaN, N/A, #N/A, NULL (any case) or a point alone. */
bool csv_missing(const char *cell);
/* Is the text a number of this table? Infinities and NaN are, as far as the text goes. */
bool csv_is_number(const csv_table *t, const char *cell, double *out);
/* A cell as a number. An empty cell, NA or NaN (any case) is missing: *missing is set and *out is a
 * NaN; with missing == NULL it is an error like any other text. Infinities are refused. */
mnp_status csv_number(env *e, const csv_table *t, size_t row, size_t column, double *out,
                      bool *missing);
/* A whole column: out (rows), missing (rows) or NULL. */
mnp_status csv_numbers(env *e, const csv_table *t, size_t column, double *out, bool *missing);

/* ---- writing ---------------------------------------------------------------------------------
 * Cells of a row one after the other, then csv_end_row. Failures stick to the buf. Numbers are the
 * shortest text that reads back exactly; NaN is written as NA. */
typedef struct csv_writer {
    buf *out;
    char separator;
    bool in_row;
} csv_writer;

void csv_writer_init(csv_writer *w, buf *out, char separator); /* '\0': a comma */
void csv_put_text(csv_writer *w, const char *text);
void csv_put_double(csv_writer *w, double v);
void csv_put_float(csv_writer *w, float v);
void csv_put_integer(csv_writer *w, int64_t v);
void csv_end_row(csv_writer *w);

#endif
