/* date.h: dates and times of day as numbers, and back: ISO 8601 in the proleptic Gregorian
 * calendar, years 0001 to 9999. No time zones but UTC: a text without one is taken as it stands.
 *
 *     2024-03-01                     a day:    days since 1970-01-01
 *     2024-03-01T12:30[:15[.25]][Z]  a moment: seconds since 1970-01-01T00:00:00; a blank for T
 */
#ifndef MNP_UTIL_DATE_H
#define MNP_UTIL_DATE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum date_kind { DATE_NONE, DATE_DAY, DATE_MOMENT } date_kind;

#define DATE_DAY_SECONDS 86400.0
enum { DATE_TEXT = 48 };

/* What the text is, with its number: of days for DATE_DAY, of seconds for DATE_MOMENT. An offset
 * such as +02:00 is subtracted. DATE_NONE: no date, or one that no calendar has; *out is unchanged.
 */
date_kind date_parse(const char *text, double *out);

/* Does it look like a date that date_parse() does not read, such as 03/01/2024 or 1.3.24, of which
 * nobody knows which is the month, or like a time without a day, 12:30? Numbers that no calendar or
 * clock has, as in 1.0.2 or 1:160, do not, and neither does a ratio, 1:20. */
bool date_is_foreign(const char *text);

/* The text of a number of days or seconds, rounded to a day or a millisecond. A number of days that
 * is not whole is written as a moment. Returns out; "" where no such year exists. */
const char *date_print(char out[DATE_TEXT], date_kind kind, double value);

/* Days since 1970-01-01 of a day of the calendar, and back. Years 1 to 9999. */
int64_t date_number(int64_t year, int64_t month, int64_t day);
void date_calendar(int64_t number, int64_t *year, int64_t *month, int64_t *day);

#endif
