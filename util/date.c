/* date.c: see date.h. */
#include "util/date.h"

#include <math.h>
#include <stdio.h>

/* ---- the calendar ---------------------------------------------------------------------------- */

enum { DAY_THOUSANDTHS = 86400000 };
enum { ERA_YEARS = 400, ERA_DAYS = 146097, EPOCH = 719468 }; /* EPOCH: 0000-03-01 to 1970-01-01 */

/* A year is counted from March, so that a leap day is its last. */
int64_t date_number(int64_t year, int64_t month, int64_t day) {
    year -= month <= 2;
    int64_t era = year / ERA_YEARS, of_era = year % ERA_YEARS;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH;
}

void date_calendar(int64_t number, int64_t *year, int64_t *month, int64_t *day) {
    int64_t n = number + EPOCH, era = n / ERA_DAYS, rest = n % ERA_DAYS;
    int64_t of_era = (rest - rest / 1460 + rest / 36524 - rest / 146096) / 365;
    int64_t of_year = rest - (365 * of_era + of_era / 4 - of_era / 100);
    int64_t m = (5 * of_year + 2) / 153;
    *day = of_year - (153 * m + 2) / 5 + 1;
    *month = m + (m < 10 ? 3 : -9);
    *year = of_era + era * ERA_YEARS + (*month <= 2);
}

static int64_t days_of(int64_t year, int64_t month) {
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return lengths[month - 1] + (month == 2 && leap);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Exactly `digits` digits at *s, which moves on; -1 where there are fewer. */
static int64_t take(const char **s, int digits) {
    int64_t v = 0;
    for (int i = 0; i < digits; i++) {
        if (**s < '0' || **s > '9') return -1;
        v = 10 * v + (*(*s)++ - '0');
    }
    return v;
}

static bool take_day(const char **s, int64_t *out) {
    int64_t year = take(s, 4);
    if (year < 1 || *(*s)++ != '-') return false;
    int64_t month = take(s, 2);
    if (month < 1 || month > 12 || *(*s)++ != '-') return false;
    int64_t day = take(s, 2);
    if (day < 1 || day > days_of(year, month)) return false;
    *out = date_number(year, month, day);
    return true;
}

/* hh:mm, hh:mm:ss or hh:mm:ss.fff; a second 60 is a leap second and counts as the next minute. */
static bool take_clock(const char **s, double *out) {
    int64_t hour = take(s, 2);
    if (hour < 0 || hour > 24 || *(*s)++ != ':') return false;
    int64_t minute = take(s, 2), second = 0;
    if (minute < 0 || minute > 59) return false;
    double part = 0, unit = 0.1;
    if (**s == ':') {
        ++*s;
        second = take(s, 2);
        if (second < 0 || second > 60) return false;
        if (**s == '.' || **s == ',') {
            for (++*s; **s >= '0' && **s <= '9'; unit /= 10) part += unit * (*(*s)++ - '0');
            if (unit == 0.1) return false;
        }
    }
    *out = 3600.0 * (double)hour + 60.0 * (double)minute + (double)second + part;
    return hour < 24 || *out == DATE_DAY_SECONDS; /* 24:00 is the end of the day */
}

/* Z, +hh:mm, +hhmm, +hh, or nothing. */
static bool take_zone(const char **s, double *offset) {
    *offset = 0;
    if (**s == 'Z' || **s == 'z') return ++*s, true;
    if (**s != '+' && **s != '-') return true;
    double sign = *(*s)++ == '-' ? -1 : 1;
    int64_t hour = take(s, 2), minute = 0;
    if (**s == ':') ++*s;
    if (**s) minute = take(s, 2);
    *offset = sign * (3600.0 * (double)hour + 60.0 * (double)minute);
    return hour >= 0 && hour <= 23 && minute >= 0 && minute <= 59;
}

date_kind date_parse(const char *text, double *out) {
    int64_t day;
    double clock, offset;
    if (!take_day(&text, &day)) return DATE_NONE;
    if (!*text) {
        *out = (double)day;
        return DATE_DAY;
    }
    if (*text != 'T' && *text != 't' && *text != ' ') return DATE_NONE;
    text++;
    if (!take_clock(&text, &clock) || !take_zone(&text, &offset) || *text) return DATE_NONE;
    *out = (double)day * DATE_DAY_SECONDS + clock - offset;
    return DATE_MOMENT;
}

/* ---- dates of other habits ------------------------------------------------------------------- */

typedef struct number {
    int64_t value;
    int digits;
} number;

/* A number of one to four digits at *s, which moves on; without any it has no digits. */
static number take_number(const char **s) {
    number n = {0};
    for (; n.digits < 4 && **s >= '0' && **s <= '9'; n.digits++)
        n.value = 10 * n.value + (*(*s)++ - '0');
    return n;
}

static bool is_up_to(number n, int64_t most) {
    return (n.digits == 1 || n.digits == 2) && n.value >= 1 && n.value <= most;
}

static bool are_day_and_month(number a, number b) {
    return (is_up_to(a, 12) && is_up_to(b, 31)) || (is_up_to(a, 31) && is_up_to(b, 12));
}

/* A day, a month and a year with the same sign between them, then nothing or a time. The year comes
 * first with four digits, or last with four or two: 1.0.2 is a version, not a date. */
static bool is_three(const char *s) {
    number a = take_number(&s);
    char between = *s;
    if (between != '/' && between != '.' && between != '-') return false;
    s++;
    number b = take_number(&s);
    if (*s++ != between) return false;
    number c = take_number(&s);
    if (*s != '\0' && *s != ' ' && *s != 'T') return false;
    if (a.digits == 4) return is_up_to(b, 12) && is_up_to(c, 31);
    return (c.digits == 4 || c.digits == 2) && are_day_and_month(a, b);
}

/* 7:05, 12:30, 08:15:30. A plain 1:20 is a ratio, as of a dilution, rather than twenty past one. */
static bool is_clock(const char *s) {
    number hour = take_number(&s);
    if (hour.digits < 1 || hour.digits > 2 || hour.value > 23 || *s++ != ':') return false;
    int64_t minute = take(&s, 2), second = 0;
    if (minute < 0 || minute > 59) return false;
    if (hour.digits == 1 && hour.value == 1 && *s == '\0') return false;
    if (*s == ':') s++, second = take(&s, 2);
    return second >= 0 && second <= 60 && (*s == '\0' || *s == '.' || *s == ' ');
}

bool date_is_foreign(const char *text) {
    double ignored;
    return date_parse(text, &ignored) == DATE_NONE && (is_three(text) || is_clock(text));
}

/* ---- writing --------------------------------------------------------------------------------- */

const char *date_print(char out[DATE_TEXT], date_kind kind, double value) {
    int64_t year, month, day;
    bool moment = kind == DATE_MOMENT || value != floor(value);
    double seconds = kind == DATE_MOMENT ? value : value * DATE_DAY_SECONDS;
    double least = (double)date_number(1, 1, 1) * DATE_DAY_SECONDS,
           end = ((double)date_number(9999, 12, 31) + 1) * DATE_DAY_SECONDS;
    out[0] = '\0';
    if (!(seconds >= least && seconds < end - 0.001)) return out;
    int64_t thousandths = (int64_t)floor((seconds - least) * 1000 + 0.5);
    int64_t of_day = thousandths % DAY_THOUSANDTHS;
    date_calendar(date_number(1, 1, 1) + thousandths / DAY_THOUSANDTHS, &year, &month, &day);
    int used = snprintf(out, DATE_TEXT, "%04d-%02d-%02d", (int)year, (int)month, (int)day);
    if (!moment) return out;
    int rest = (int)(of_day % 60000);
    used += snprintf(out + used, DATE_TEXT - (size_t)used, "T%02d:%02d:%02d",
                     (int)(of_day / 3600000), (int)(of_day / 60000 % 60), rest / 1000);
    if (rest % 1000) snprintf(out + used, DATE_TEXT - (size_t)used, ".%03d", rest % 1000);
    return out;
}
