/* date.c: see date.h. */
#include "util/date.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* ---- writing --------------------------------------------------------------------------------- */

/* Up to `most` digits, 1 or more; returns what follows them, NULL where there are none. */
static const char *skip_digits(const char *s, size_t most) {
    size_t n = strspn(s, "0123456789");
    return n >= 1 && n <= most ? s + n : NULL;
}

/* Three numbers with the same sign between them, then nothing or a time. */
static bool is_three(const char *s) {
    const char *a = skip_digits(s, 4),
               *b = a && *a && strchr("/.-", *a) ? skip_digits(a + 1, 2) : NULL;
    const char *c = b && *b == *a ? skip_digits(b + 1, 4) : NULL;
    return c && (*c == '\0' || *c == ' ' || *c == 'T');
}

static bool is_clock(const char *s) {
    const char *a = skip_digits(s, 2), *b = a && *a == ':' ? skip_digits(a + 1, 2) : NULL;
    if (b && *b == ':') b = skip_digits(b + 1, 2);
    return b && (*b == '\0' || *b == '.' || *b == ' ');
}

bool date_is_foreign(const char *text) {
    double ignored;
    return date_parse(text, &ignored) == DATE_NONE && (is_three(text) || is_clock(text));
}

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
