/* ticks.h: round numbers for an axis. */
#ifndef MNP_PLOT_TICKS_H
#define MNP_PLOT_TICKS_H

#include <stdbool.h>

enum { TICKS_MAX = 24, TICK_TEXT = 64 };

typedef struct ticks {
    int count;
    double at[TICKS_MAX];
    char text[TICKS_MAX][TICK_TEXT]; /* all with the same number of decimals; U+2212 as the minus */
} ticks;

/* Multiples of 1, 2 or 5 times a power of ten in lo .. hi, about `wanted` of them. */
ticks ticks_linear(double lo, double hi, int wanted);
/* Powers of ten (every n-th where there are many) in lo .. hi, with 2 and 5 between them where
 * there are few. 0 < lo < hi. */
ticks ticks_log(double lo, double hi, int wanted);

/* Dates and times of day in lo .. hi, which count days or seconds since 1970-01-01: the first of
 * years or months, days, hours. A label leaves out what the label before it says: "1 Mar 2024",
 * "15 Mar"; "1 Mar 12:00", "18:00". */
ticks ticks_dates(double lo, double hi, int wanted, bool seconds);

#endif
