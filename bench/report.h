/* report.h: the outcome of a bench: one row per number, with the bar it is held against. Parts of
 * the bench write their tables to `out` while they run and leave their headline numbers here. */
#ifndef MNP_BENCH_REPORT_H
#define MNP_BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { REPORT_ROWS = 64 };

typedef enum report_sense { REPORT_PLAIN, REPORT_AT_LEAST, REPORT_AT_MOST } report_sense;

typedef struct report_row {
    const char *key;  /* of the JSON object                 */
    const char *what; /* for people                         */
    const char *unit;
    double value, bar;
    report_sense sense; /* REPORT_PLAIN: there is no bar      */
} report_row;

typedef struct bench_report {
    FILE *out;
    report_row rows[REPORT_ROWS];
    int count;
} bench_report;

/* The texts must outlive the report. */
void report_add(bench_report *r, const char *key, const char *what, double value, const char *unit);
void report_held(bench_report *r, const char *key, const char *what, double value, const char *unit,
                 report_sense sense, double bar);
bool report_pass(const report_row *row);
/* All rows with bars and marks. */
void report_print(const bench_report *r);

/* Peak resident memory in bytes since the last reset (where the system can reset it, else since the
 * start of the process); 0 when it is not known. */
void report_memory_reset(void);
size_t report_memory_peak(void);

#endif
