/* digits.h: the shortest decimal text that reads back as the same number, in whole-number
 * arithmetic: many times as fast as printing and reading back. */
#ifndef MNP_BASE_DIGITS_H
#define MNP_BASE_DIGITS_H

#include <stdbool.h>

enum { DIGITS_TEXT = 40 };

/* As printf("%.15g") writes it, or with 16 or 17 digits where fewer do not read back; of floats 6
 * to 9. False: the number is none of 0 and 1e-15 .. 1e14 (of floats 1e5), or the compiler has no
 * wide integers; out is then untouched. */
bool digits_double(double v, char out[DIGITS_TEXT]);
bool digits_float(float v, char out[DIGITS_TEXT]);

#endif
