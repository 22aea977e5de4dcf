/* text.h: small text helpers: numbers from text with a full-string check, numbers for people, and
 * "did you mean". None depends on the locale. */
#ifndef MNP_BASE_TEXT_H
#define MNP_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- parsing: the whole text must be the number, without spaces -------------------------------
 */

typedef enum text_parse { TEXT_OK, TEXT_SYNTAX, TEXT_RANGE } text_parse;

/* Decimal, optional sign. An integral real form such as 1e5 or 2.0 is accepted for an integer too.
 * TEXT_RANGE where it does not fit; *out is written on TEXT_OK only. */
text_parse text_parse_int64(const char *text, int64_t *out);
text_parse text_parse_uint64(const char *text, uint64_t *out); /* digits only: seeds */
/* Also "inf", "-inf", "nan". TEXT_RANGE where a finite text exceeds the largest double. */
text_parse text_parse_double(const char *text, double *out);
/* true/false, yes/no, on/off, 1/0 */
text_parse text_parse_bool(const char *text, bool *out);

/* ---- numbers for people -----------------------------------------------------------------------
 */

enum { TEXT_NUMBER = 32 };

/* Return out, so that a call can be an argument of printf. */
const char *text_count(char out[TEXT_NUMBER], double n);      /* 7, 950, 12.3k, 1.50M, 2.00G */
const char *text_bytes(char out[TEXT_NUMBER], double n);      /* 512 B, 12.3 MB              */
const char *text_time(char out[TEXT_NUMBER], double seconds); /* 850 ms, 12.3 s, 1:23, 2:03:04 */

/* ---- foreign text -----------------------------------------------------------------------------
 */

/* Text from a file or a command line as one line for a person to read: control characters (C0, DEL,
 * C1), ends of lines, marks that turn the direction of writing, and bytes that are no UTF-8 become
 * \n, \t, \r, \x1b or \u202e. All else stays, letters of any script too, so a text that went
 * through once is not changed again. Works as snprintf does: `out` gets whole characters while
 * there is room and a NUL (`out` may be NULL where size is 0); the length of the whole is returned.
 */
size_t text_plain(char *out, size_t size, const char *text);
/* The code point of the well-formed UTF-8 sequence of `bytes` bytes at `text`, and whether it is
 * one of those that text_plain() does not let through. */
uint32_t text_code_point(const char *text, size_t bytes);
bool text_is_control(uint32_t code_point);

/* ---- names ------------------------------------------------------------------------------------
 */

/* Edit distance (insert, delete, replace, swap of neighbours each cost 1); texts are looked at up
 * to 63 bytes. */
int text_distance(const char *a, const char *b);

/* Text of the i-th choice of "a|b|c" into out (`size` bytes); false where there is none. */
bool text_choice(const char *choices, int i, char *out, size_t size);

/* FNV-1a of some bytes, going on from `hash`; 0 begins. */
uint64_t text_hash(uint64_t hash, const void *data, size_t bytes);

/* For a name that is none: feed the names there are; `best` is then the nearest, or "" where none
 * is near enough to be a slip of the hand (distance above a third of the length, at least 1; or a
 * common prefix). */
enum { TEXT_NAME = 64, TEXT_NAMES = 512 };
typedef struct text_nearest {
    const char *wanted;
    int distance;
    char best[TEXT_NAME], names[TEXT_NAMES]; /* names: "a, b, c", as many as there is room for */
} text_nearest;

text_nearest text_nearest_to(const char *wanted);
void text_nearest_try(text_nearest *n, const char *candidate);
void text_nearest_choices(text_nearest *n, const char *choices); /* "a|b|c" */
/* The end of a refusal, for printf: "; did you mean --best?" with `before` in front of the name, or
 * "". And the same, but "; there are: a, b, c" where no name is near. Both return out. */
const char *text_meant(char out[TEXT_NAMES], const text_nearest *n, const char *before);
const char *text_meant_or_all(char out[TEXT_NAMES], const text_nearest *n);

#endif
