/* ticks_dates.c: ticks of a time axis. Steps are those of calendars and clocks; labels say what has
 * changed since the one before. See ticks.h. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "plot/ticks.h"
#include "util/date.h"

typedef enum step_unit { STEP_SECONDS, STEP_DAYS, STEP_MONTHS } step_unit;

typedef struct date_step {
    step_unit unit;
    int64_t count;
} date_step;

/* From fine to coarse; beyond the last come 1, 2, 5 times powers of ten years. */
static const date_step steps[] = {
    {STEP_SECONDS, 1},
    {STEP_SECONDS, 2},
    {STEP_SECONDS, 5},
    {STEP_SECONDS, 10},
    {STEP_SECONDS, 15},
    {STEP_SECONDS, 30},
    {STEP_SECONDS, 60},
    {STEP_SECONDS, 2 * 60},
    {STEP_SECONDS, 5 * 60},
    {STEP_SECONDS, 10 * 60},
    {STEP_SECONDS, 15 * 60},
    {STEP_SECONDS, 30 * 60},
    {STEP_SECONDS, 3600},
    {STEP_SECONDS, 2 * 3600},
    {STEP_SECONDS, 3 * 3600},
    {STEP_SECONDS, 6 * 3600},
    {STEP_SECONDS, 12 * 3600},
    {STEP_DAYS, 1},
    {STEP_DAYS, 2},
    {STEP_DAYS, 7},
    {STEP_DAYS, 14},
    {STEP_MONTHS, 1},
    {STEP_MONTHS, 2},
    {STEP_MONTHS, 3},
    {STEP_MONTHS, 6},
    {STEP_MONTHS, 12},
    {STEP_MONTHS, 2 * 12},
    {STEP_MONTHS, 5 * 12},
    {STEP_MONTHS, 10 * 12},
    {STEP_MONTHS, 20 * 12},
    {STEP_MONTHS, 50 * 12},
    {STEP_MONTHS, 100 * 12},
    {STEP_MONTHS, 200 * 12},
    {STEP_MONTHS, 500 * 12},
    {STEP_MONTHS, 1000 * 12},
    {STEP_MONTHS, 2000 * 12},
};
enum { STEPS = sizeof steps / sizeof *steps };

static const double unit_seconds[] = {1, DATE_DAY_SECONDS, 30.44 * DATE_DAY_SECONDS};

/* The finest step with no more than about `wanted` ticks. */
static date_step step_for(double span, int wanted) {
    for (int i = 0; i < STEPS; i++)
        if (span / ((double)steps[i].count * unit_seconds[steps[i].unit]) <= wanted)
            return steps[i];
    return steps[STEPS - 1];
}

static int64_t floor_to(int64_t v, int64_t step) {
    int64_t rest = v % step;
    return v - (rest < 0 ? rest + step : rest);
}

/* A moment, in seconds, and what the calendar calls it. */
typedef struct moment {
    double at;
    int64_t year, month, day, second; /* second of the day */
} moment;

static moment moment_of(double at) {
    moment m = {.at = at};
    int64_t day = (int64_t)floor(at / DATE_DAY_SECONDS);
    date_calendar(day, &m.year, &m.month, &m.day);
    m.second = (int64_t)llround(at - (double)day * DATE_DAY_SECONDS);
    return m;
}

/* The last tick at or before `at`. Weeks begin on Mondays: 1969-12-29 was one. */
static double first_tick(date_step s, double at) {
    if (s.unit == STEP_SECONDS) return (double)floor_to((int64_t)floor(at), s.count);
    if (s.unit == STEP_DAYS) {
        int64_t shift = s.count % 7 == 0 ? -3 : 0, day = (int64_t)floor(at / DATE_DAY_SECONDS);
        return (double)(floor_to(day - shift, s.count) + shift) * DATE_DAY_SECONDS;
    }
    moment m = moment_of(at);
    int64_t months = floor_to(m.year * 12 + m.month - 1, s.count);
    if (months < 12) months = 12; /* there is no year 0 */
    return (double)date_number(months / 12, months % 12 + 1, 1) * DATE_DAY_SECONDS;
}

static double next_tick(date_step s, double at) {
    if (s.unit != STEP_MONTHS) return at + (double)s.count * unit_seconds[s.unit];
    moment m = moment_of(at);
    int64_t months = m.year * 12 + m.month - 1 + s.count;
    return (double)date_number(months / 12, months % 12 + 1, 1) * DATE_DAY_SECONDS;
}

/* before NULL: the first label, which says all. */
static void label(char out[TICK_TEXT], date_step s, const moment *m, const moment *before) {
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const char *month = months[m->month - 1];
    bool new_year = !before || before->year != m->year;
    bool new_day = new_year || before->month != m->month || before->day != m->day;
    int64_t hour = m->second / 3600, minute = m->second / 60 % 60;
    char clock[16];
    if (s.unit == STEP_SECONDS && s.count < 60)
        snprintf(clock, sizeof clock, "%02d:%02d:%02d", (int)hour, (int)minute,
                 (int)(m->second % 60));
    else
        snprintf(clock, sizeof clock, "%02d:%02d", (int)hour, (int)minute);
    if (s.unit == STEP_MONTHS && s.count % 12 == 0)
        snprintf(out, TICK_TEXT, "%d", (int)m->year);
    else if (s.unit == STEP_MONTHS && new_year)
        snprintf(out, TICK_TEXT, "%s %d", month, (int)m->year);
    else if (s.unit == STEP_MONTHS)
        snprintf(out, TICK_TEXT, "%s", month);
    else if (s.unit == STEP_DAYS && new_year)
        snprintf(out, TICK_TEXT, "%d %s %d", (int)m->day, month, (int)m->year);
    else if (s.unit == STEP_DAYS)
        snprintf(out, TICK_TEXT, "%d %s", (int)m->day, month);
    else if (new_day)
        snprintf(out, TICK_TEXT, "%d %s %s", (int)m->day, month, clock);
    else
        snprintf(out, TICK_TEXT, "%s", clock);
}

/* Less than two seconds: numbers, counted from the whole second before. */
static ticks ticks_below_seconds(double from, double to, int wanted, double unit) {
    double whole = floor(from);
    moment m = moment_of(whole);
    ticks t = ticks_linear(from - whole, to - whole, wanted);
    for (int k = 0; k < t.count; k++) {
        char clock[TICK_TEXT] = "", number[TICK_TEXT];
        if (k == 0) label(clock, (date_step){STEP_SECONDS, 1}, &m, NULL);
        snprintf(number, sizeof number, "%s", t.text[k]);
        snprintf(t.text[k], TICK_TEXT, "%.30s%s+%.24s s", clock, k ? "" : " ", number);
        t.at[k] = (whole + t.at[k]) / unit;
    }
    return t;
}

ticks ticks_dates(double lo, double hi, int wanted, bool seconds) {
    ticks t = {.count = 0};
    double unit = seconds ? 1 : DATE_DAY_SECONDS, from = lo * unit, to = hi * unit;
    double earliest = (double)date_number(1, 1, 1) * DATE_DAY_SECONDS;
    double latest = (double)date_number(9999, 12, 31) * DATE_DAY_SECONDS;
    if (!(hi > lo) || wanted < 1) return t;
    if (!(from >= earliest && to <= latest)) return ticks_linear(lo, hi, wanted);
    if (to - from < 2) return ticks_below_seconds(from, to, wanted, unit);
    date_step s = step_for(to - from, wanted);
    double slack = 1e-9 * (to - from);
    moment before = {0};
    for (double at = first_tick(s, from); at <= to + slack && t.count < TICKS_MAX;
         at = next_tick(s, at)) {
        if (at < from - slack) continue;
        moment m = moment_of(at);
        label(t.text[t.count], s, &m, t.count ? &before : NULL);
        t.at[t.count++] = at / unit;
        before = m;
    }
    return t;
}
