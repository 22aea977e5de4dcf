/* digits.c: see digits.h.
 *
 * v = m 2^e. With p digits after the point, v 10^p = m 5^p 2^(e+p) = N / 2^s, where N = m 5^p is
 * whole and has at most 128 bits. So its nearest whole number d, and how far d is from it, are
 * exact. d / 10^p reads back as v where that is less than half the gap between neighbours of v: of
 * the numbers m of one exponent 5^p / 2, in units of 2^-s. */
#include "util/digits.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __SIZEOF_INT128__

__extension__ typedef unsigned __int128 wide;

/* A positive number, and the digits that are tried. */
typedef struct decimal {
    uint64_t m;
    int e, bits; /* m has so many bits */
    int least, most;
    uint64_t d; /* digits of the answer */
    int count;  /* of them */
    int first;  /* power of ten of the first */
} decimal;

static const uint64_t power5[] = {UINT64_C(1),
                                  UINT64_C(5),
                                  UINT64_C(25),
                                  UINT64_C(125),
                                  UINT64_C(625),
                                  UINT64_C(3125),
                                  UINT64_C(15625),
                                  UINT64_C(78125),
                                  UINT64_C(390625),
                                  UINT64_C(1953125),
                                  UINT64_C(9765625),
                                  UINT64_C(48828125),
                                  UINT64_C(244140625),
                                  UINT64_C(1220703125),
                                  UINT64_C(6103515625),
                                  UINT64_C(30517578125),
                                  UINT64_C(152587890625),
                                  UINT64_C(762939453125),
                                  UINT64_C(3814697265625),
                                  UINT64_C(19073486328125),
                                  UINT64_C(95367431640625),
                                  UINT64_C(476837158203125),
                                  UINT64_C(2384185791015625),
                                  UINT64_C(11920928955078125),
                                  UINT64_C(59604644775390625),
                                  UINT64_C(298023223876953125),
                                  UINT64_C(1490116119384765625),
                                  UINT64_C(7450580596923828125)};
static const uint64_t power10[] = {UINT64_C(1),
                                   UINT64_C(10),
                                   UINT64_C(100),
                                   UINT64_C(1000),
                                   UINT64_C(10000),
                                   UINT64_C(100000),
                                   UINT64_C(1000000),
                                   UINT64_C(10000000),
                                   UINT64_C(100000000),
                                   UINT64_C(1000000000),
                                   UINT64_C(10000000000),
                                   UINT64_C(100000000000),
                                   UINT64_C(1000000000000),
                                   UINT64_C(10000000000000),
                                   UINT64_C(100000000000000),
                                   UINT64_C(1000000000000000),
                                   UINT64_C(10000000000000000),
                                   UINT64_C(100000000000000000),
                                   UINT64_C(1000000000000000000),
                                   UINT64_C(10000000000000000000)};
enum { FIVES = sizeof power5 / sizeof *power5 };

static wide fives(int k) {
    return k < FIVES ? power5[k] : (wide)power5[FIVES - 1] * power5[k - FIVES + 1];
}

/* The number with `count` digits, the first of them at 10^first; halves go to the even digit, as
 * printf rounds. Does it read back? */
static bool round_to(decimal *x, int count, int first) {
    int p = count - 1 - first, s = -(x->e + p);
    wide five = fives(p), n = x->m * five, one = (wide)1 << s, rest = n & (one - 1);
    uint64_t d = (uint64_t)(n >> s);
    bool up = rest > one / 2 || (rest == one / 2 && d % 2);
    wide off = up ? one - rest : rest, gap = five;
    bool below = !up && x->m == (uint64_t)1 << (x->bits - 1); /* neighbours there are nearer */
    x->d = d + up;
    x->count = count;
    x->first = first;
    off *= below ? 4 : 2;
    return off < gap || (off == gap && x->m % 2 == 0);
}

/* The fewest digits that read back. */
static void shorten(decimal *x, int floor10) {
    for (int count = x->least; count <= x->most; count++) {
        bool good = round_to(x, count, floor10);
        if (x->d >= power10[count]) good = round_to(x, count, floor10 + 1);
        if (good) return;
    }
}

static char *put_digits(char *out, const char *text, int from, int count) {
    memcpy(out, text + from, (size_t)count);
    return out + count;
}

/* As %g: without zeros at the end, and with an exponent below -4 or beyond the digits. */
static void print(const decimal *x, char *out) {
    char text[24];
    int count = x->count, first = x->first;
    uint64_t d = x->d;
    for (int k = count; k-- > 0; d /= 10) text[k] = (char)('0' + d % 10);
    bool power = first < -4 || first >= count;
    while (count > 1 && text[count - 1] == '0') count--;
    if (power) {
        *out++ = text[0];
        if (count > 1) *out++ = '.';
        out = put_digits(out, text, 1, count - 1);
        int size = first < 0 ? -first : first;
        *out++ = 'e';
        *out++ = first < 0 ? '-' : '+';
        *out++ = (char)('0' + size / 10);
        *out++ = (char)('0' + size % 10);
    } else if (first < 0) {
        *out++ = '0';
        *out++ = '.';
        for (int k = -1; k > first; k--) *out++ = '0';
        out = put_digits(out, text, 0, count);
    } else {
        int whole = first + 1;
        out = put_digits(out, text, 0, count < whole ? count : whole);
        for (int k = count; k < whole; k++) *out++ = '0';
        if (count > whole) {
            *out++ = '.';
            out = put_digits(out, text, whole, count - whole);
        }
    }
    *out = '\0';
}

/* Numbers below `most`, so that none has digits left of the point that are not its own. */
static bool format(double v, double most, decimal *x, char out[DIGITS_TEXT]) {
    double size = fabs(v);
    uint64_t bits;
    if (!(size == 0 || (size >= 1e-15 && size < most))) return false;
    if (signbit(v)) *out++ = '-';
    if (size == 0) {
        strcpy(out, "0");
        return true;
    }
    memcpy(&bits, &size, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023; /* 2^exponent <= size */
    x->m = ((bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52) >> (53 - x->bits);
    x->e = exponent + 1 - x->bits;
    int tenth = exponent * 30103; /* times log10(2) and 100000; exact enough for |exponent| < 100 */
    shorten(x, tenth >= 0 ? tenth / 100000 : -((-tenth + 99999) / 100000));
    print(x, out);
    return true;
}

bool digits_double(double v, char out[DIGITS_TEXT]) {
    decimal x = {.bits = 53, .least = 15, .most = 17};
    return format(v, 1e14, &x, out);
}

bool digits_float(float v, char out[DIGITS_TEXT]) {
    decimal x = {.bits = 24, .least = 6, .most = 9};
    return format((double)v, 1e5, &x, out);
}

#else

bool digits_double(double v, char out[DIGITS_TEXT]) {
    (void)v, (void)out;
    return false;
}

bool digits_float(float v, char out[DIGITS_TEXT]) {
    (void)v, (void)out;
    return false;
}

#endif
