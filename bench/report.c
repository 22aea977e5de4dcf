/* report.c: see report.h. */
#include "bench/report.h"

#include <string.h>
#include <sys/resource.h>

void report_held(bench_report *r, const char *key, const char *what, double value, const char *unit,
                 report_sense sense, double bar) {
    if (r->count == REPORT_ROWS) return;
    r->rows[r->count++] = (report_row){key, what, unit, value, bar, sense};
}

void report_add(bench_report *r, const char *key, const char *what, double value,
                const char *unit) {
    report_held(r, key, what, value, unit, REPORT_PLAIN, 0.0);
}

bool report_pass(const report_row *row) {
    if (row->sense == REPORT_PLAIN) return true;
    return row->sense == REPORT_AT_LEAST ? row->value >= row->bar : row->value <= row->bar;
}

void report_print(const bench_report *r) {
    if (r->count == 0) return;
    fprintf(r->out, "\n%-58s %10s %-12s %s\n", "summary", "measured", "", "bar");
    for (int k = 0; k < r->count; k++) {
        const report_row *row = &r->rows[k];
        fprintf(r->out, "%-58s %10.4g %-12s", row->what, row->value, row->unit);
        if (row->sense != REPORT_PLAIN)
            fprintf(r->out, " %s %-8.4g %s", row->sense == REPORT_AT_LEAST ? ">=" : "<=", row->bar,
                    report_pass(row) ? "reached" : "FALLS SHORT");
        fprintf(r->out, "\n");
    }
}

void report_memory_reset(void) {
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (!f) return;
    fputs("5", f);
    fclose(f);
}

size_t report_memory_peak(void) {
    char line[256];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %llu", &kib) == 1) break;
    if (f) fclose(f);
    struct rusage usage;
    if (kib == 0 && getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_maxrss > 0)
        kib = (unsigned long long)usage.ru_maxrss;
    return (size_t)kib * 1024;
}
