/* test_date.c: dates as numbers and back, against the C library's own calendar. */
#include <time.h>

#include "check.h"
#include "util/date.h"

static void known_dates(void) {
    static const struct {
        const char *text;
        date_kind kind;
        double value;
    } cases[] = {
        {"1970-01-01", DATE_DAY, 0},
        {"2000-02-29", DATE_DAY, 11016},
        {"1969-12-31", DATE_DAY, -1},
        {"2024-03-01T00:00", DATE_MOMENT, 1709251200},
        {"2024-03-01 12:30:15.25", DATE_MOMENT, 1709296215.25},
        {"2024-03-01T12:30:15Z", DATE_MOMENT, 1709296215},
        {"2024-03-01T12:30:15+02:00", DATE_MOMENT, 1709289015},
        {"2024-03-01T12:30:15-0130", DATE_MOMENT, 1709301615},
        {"2024-02-29T24:00", DATE_MOMENT, 1709251200},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double v = -7;
        CASE(cases[i].text);
        CHECK(date_parse(cases[i].text, &v) == cases[i].kind);
        NEAR(v, cases[i].value, 1e-6, 0);
    }
}

static void what_is_no_date(void) {
    static const char *const texts[] = {
        "",           "2024",       "2024-13-01",       "2024-00-10",        "2023-02-29",
        "1900-02-29", "2024-3-1",   "2024-03-01x",      "2024-03-01T",       "2024-03-01T25:00",
        "20240301",   "0000-01-01", "2024-03-01T12:60", "2024-03-01T12:00+", "2024-03-01T12:00:00.",
        "01.03.2024", "3/1/2024",   "-2024-03-01",      "2024-03-01T24:01",  "2024-03-01T12:00:61",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double v = 42;
        CASE(texts[i]);
        CHECK(date_parse(texts[i], &v) == DATE_NONE && v == 42);
    }
}

/* Every day from 0001 to 9999 in steps, as gmtime_r() of the C library names it. */
static void the_calendar_is_that_of_libc(void) {
    char text[DATE_TEXT];
    int64_t wrong = 0;
    for (int64_t day = -719162; day < 2932896; day += 37) {
        time_t seconds = (time_t)(day * 86400);
        struct tm t;
        char expected[64];
        double back = 0;
        if (!gmtime_r(&seconds, &t)) continue;
        snprintf(expected, sizeof expected, "%04d-%02d-%02d", t.tm_year + 1900, t.tm_mon + 1,
                 t.tm_mday);
        date_print(text, DATE_DAY, (double)day);
        wrong += strcmp(text, expected) != 0;
        wrong += date_parse(text, &back) != DATE_DAY || back != (double)day;
    }
    CHECK(wrong == 0);
}

static void moments_are_written(void) {
    char text[DATE_TEXT];
    STREQ(date_print(text, DATE_MOMENT, 1709296215.25), "2024-03-01T12:30:15.250");
    STREQ(date_print(text, DATE_MOMENT, 1709296215), "2024-03-01T12:30:15");
    STREQ(date_print(text, DATE_MOMENT, -0.5), "1969-12-31T23:59:59.500");
    STREQ(date_print(text, DATE_DAY, 0.5), "1970-01-01T12:00:00");
    STREQ(date_print(text, DATE_DAY, 1e9), "");
    STREQ(date_print(text, DATE_DAY, -1e9), "");
    STREQ(date_print(text, DATE_DAY, (double)NAN), "");
    STREQ(date_print(text, DATE_MOMENT, (double)INFINITY), "");
    STREQ(date_print(text, DATE_MOMENT, 253402300799.9999), "");
}

/* Which is the month nobody knows: such texts are no words either. */
static void foreign_dates_are_noticed(void) {
    static const char *const yes[] = {
        "03/01/2024", "1.3.24",           "01-03-2024", "2024/03/01", "12:30",
        "08:15:30",   "03/01/2024 12:30", "7:05 pm",    "13/1/24",    "2024-3-1",
        "0:30",       "1:20 pm",          "01:20",      "1:20:00",
    };
    static const char *const no[] = {"2024-03-01", "2024-03-01T12:30",
                                     "1.5",        "a/b/c",
                                     "1/2",        "12",
                                     "",           "1:2:3x",
                                     "10.1.2.3",   "1.2-3",
                                     "1.0.2",      "1.2.3",
                                     "13.13.2024", "32/1/2024",
                                     "2024/13/01", "1.0.24",
                                     "1:10",       "1:20",
                                     "1:160",      "1:2",
                                     "24:30",      "12:60",
                                     "12:5",       "3:100",
                                     "1/1/124"};
    for (size_t k = 0; k < sizeof yes / sizeof *yes; k++) {
        CASE(yes[k]);
        CHECK(date_is_foreign(yes[k]));
    }
    for (size_t k = 0; k < sizeof no / sizeof *no; k++) {
        CASE(no[k]);
        CHECK(!date_is_foreign(no[k]));
    }
}

int main(void) {
    RUN(known_dates);
    RUN(what_is_no_date);
    RUN(the_calendar_is_that_of_libc);
    RUN(moments_are_written);
    RUN(foreign_dates_are_noticed);
    return check_done();
}
