/* text.c: see text.h for the contract. */
#include "util/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/fsio.h"

/* ---- parsing --------------------------------------------------------------------------------- */

text_parse text_parse_uint64(const char *text, uint64_t *out) {
    uint64_t v = 0;
    if (!*text) return TEXT_SYNTAX;
    for (const char *p = text; *p; p++)
        if (*p < '0' || *p > '9') return TEXT_SYNTAX;
    for (const char *p = text; *p; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (v > (UINT64_MAX - digit) / 10) return TEXT_RANGE;
        v = v * 10 + digit;
    }
    *out = v;
    return TEXT_OK;
}

text_parse text_parse_double(const char *text, double *out) {
    const char *bare = text + (*text == '-' || *text == '+');
    double v;
    if (strcmp(bare, "inf") == 0)
        v = *text == '-' ? -INFINITY : INFINITY;
    else if (strcmp(text, "nan") == 0)
        v = NAN;
    else if (!fsio_parse_double(text, strlen(text), &v))
        return TEXT_SYNTAX;
    else if (isinf(v))
        return TEXT_RANGE;
    *out = v;
    return TEXT_OK;
}

text_parse text_parse_int64(const char *text, int64_t *out) {
    bool negative = *text == '-';
    uint64_t size;
    text_parse parsed = text_parse_uint64(text + (negative || *text == '+'), &size);
    if (parsed == TEXT_OK) {
        if (size > (uint64_t)INT64_MAX + negative) return TEXT_RANGE;
        *out = negative ? (int64_t)(0 - size) : (int64_t)size;
        return TEXT_OK;
    }
    double v;
    if (parsed == TEXT_RANGE) return TEXT_RANGE;
    parsed = text_parse_double(text, &v);
    if (parsed != TEXT_OK) return parsed;
    if (isnan(v) || isinf(v) || v != floor(v)) return TEXT_SYNTAX;
    if (fabs(v) > 0x1p53) return TEXT_RANGE; /* beyond, a real form does not name one integer */
    *out = (int64_t)v;
    return TEXT_OK;
}

text_parse text_parse_bool(const char *text, bool *out) {
    static const char *const words[2][4] = {{"false", "no", "off", "0"},
                                            {"true", "yes", "on", "1"}};
    for (int v = 0; v < 2; v++)
        for (int i = 0; i < 4; i++)
            if (strcmp(text, words[v][i]) == 0) {
                *out = v == 1;
                return TEXT_OK;
            }
    return TEXT_SYNTAX;
}

/* ---- numbers for people ---------------------------------------------------------------------- */

/* Three significant digits of 0 <= v < 1000, without printf's locale: 1.23, 12.3, 123. */
static void three_digits(char out[TEXT_NUMBER], double v, const char *unit) {
    int decimals = v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
    static const int scale[3] = {1, 10, 100};
    long n = lround(v * scale[decimals]);
    if (decimals == 0)
        snprintf(out, TEXT_NUMBER, "%ld%s", n, unit);
    else
        snprintf(out, TEXT_NUMBER, "%ld.%0*ld%s", n / scale[decimals], decimals,
                 n % scale[decimals], unit);
}

static const char *with_unit(char out[TEXT_NUMBER], double n, const char *const units[5]) {
    char *tail = out;
    if (n < 0) *tail++ = '-', n = -n;
    char body[TEXT_NUMBER];
    int k = 0;
    while (n >= 999.5 && k < 4) n /= 1000, k++;
    if (!(n < 1e6)) { /* also catches NaN */
        snprintf(out, TEXT_NUMBER, "%s", isnan(n) ? "nan" : "huge");
        return out;
    }
    if (k == 0 && n == floor(n))
        snprintf(body, sizeof body, "%d%s", (int)n, units[0]);
    else
        three_digits(body, n, units[k]);
    memcpy(tail, body, strlen(body) + 1);
    return out;
}

const char *text_count(char out[TEXT_NUMBER], double n) {
    static const char *const units[5] = {"", "k", "M", "G", "T"};
    return with_unit(out, n, units);
}

const char *text_bytes(char out[TEXT_NUMBER], double n) {
    static const char *const units[5] = {" B", " kB", " MB", " GB", " TB"};
    return with_unit(out, n, units);
}

const char *text_time(char out[TEXT_NUMBER], double seconds) {
    if (!(seconds >= 0) || seconds > 1e11) {
        snprintf(out, TEXT_NUMBER, "?");
    } else if (seconds < 0.9995) {
        snprintf(out, TEXT_NUMBER, "%ld ms", lround(seconds * 1000));
    } else if (seconds < 59.95) {
        three_digits(out, seconds, " s");
    } else {
        long long s = llround(seconds), h = s / 3600;
        int m = (int)(s / 60 % 60), r = (int)(s % 60);
        if (h)
            snprintf(out, TEXT_NUMBER, "%lld:%02d:%02d", h, m, r);
        else
            snprintf(out, TEXT_NUMBER, "%d:%02d", m, r);
    }
    return out;
}

/* ---- foreign text ---------------------------------------------------------------------------- */

uint32_t text_code_point(const char *text, size_t bytes) {
    const unsigned char *s = (const unsigned char *)text;
    if (bytes == 1) return s[0];
    uint32_t c = s[0] & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) c = c << 6 | (s[i] & 0x3f);
    return c;
}

/* What moves the cursor, ends a line or turns the direction of writing. */
bool text_is_control(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* The character at `s` as it is shown; returns how many bytes of `s` it takes. */
static size_t show_character(const char *s, size_t left, char shown[8]) {
    static const char letters[] = "\n\r\t", names[] = "nrt";
    size_t bytes = fsio_utf8_len(s, left);
    uint32_t c = bytes ? text_code_point(s, bytes) : (unsigned char)*s;
    const char *letter = c && c < 0x80 ? strchr(letters, (int)c) : NULL;
    if (letter)
        snprintf(shown, 8, "\\%c", names[letter - letters]);
    else if (bytes == 0 || (text_is_control(c) && c < 0x80))
        snprintf(shown, 8, "\\x%02x", (unsigned)c & 0xff);
    else if (text_is_control(c))
        snprintf(shown, 8, "\\u%04x", (unsigned)c & 0xffff);
    else
        snprintf(shown, 8, "%.*s", (int)bytes, s);
    return bytes ? bytes : 1;
}

size_t text_plain(char *out, size_t size, const char *text) {
    size_t left = strlen(text), used = 0, whole = 0;
    while (left > 0) {
        char shown[8];
        size_t took = show_character(text, left, shown), bytes = strlen(shown);
        if (used == whole && used + bytes < size) {
            memcpy(out + used, shown, bytes);
            used += bytes;
        }
        whole += bytes;
        text += took;
        left -= took;
    }
    if (size > 0) out[used] = '\0';
    return whole;
}

/* ---- names ----------------------------------------------------------------------------------- */

enum { NAME_MAX_BYTES = 63 };

static int least(int a, int b) {
    return a < b ? a : b;
}

int text_distance(const char *a, const char *b) {
    int na = (int)strnlen(a, NAME_MAX_BYTES), nb = (int)strnlen(b, NAME_MAX_BYTES);
    int rows[3][NAME_MAX_BYTES + 1]; /* rows i - 2, i - 1, i of the table, reused in turn */
    for (int j = 0; j <= nb; j++) rows[0][j] = j;
    for (int i = 1; i <= na; i++) {
        int *now = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= nb; j++) {
            int replace = up[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = least(replace, least(up[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], up2[j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

text_nearest text_nearest_to(const char *wanted) {
    return (text_nearest){.wanted = wanted, .distance = 1 << 20};
}

void text_nearest_try(text_nearest *n, const char *candidate) {
    size_t length = strlen(n->wanted), used = strlen(n->names), room = sizeof n->names - used;
    if (strlen(candidate) + sizeof ", " + sizeof "; there are: " < room)
        snprintf(n->names + used, room, "%s%s", used ? ", " : "", candidate);
    int distance = text_distance(n->wanted, candidate), near = length < 6 ? 1 : (int)length / 3;
    bool prefix = length >= 2 && strncmp(n->wanted, candidate, length) == 0;
    if (prefix && distance > near) distance = near; /* an abbreviation counts as near */
    if (distance > near || distance >= n->distance) return;
    snprintf(n->best, sizeof n->best, "%s", candidate);
    n->distance = distance;
}

void text_nearest_choices(text_nearest *n, const char *choices) {
    char name[TEXT_NAME];
    for (int k = 0; text_choice(choices, k, name, sizeof name); k++) text_nearest_try(n, name);
}

const char *text_meant(char out[TEXT_NAMES], const text_nearest *n, const char *before) {
    *out = '\0';
    if (*n->best) snprintf(out, TEXT_NAMES, "; did you mean %s%s?", before, n->best);
    return out;
}

const char *text_meant_or_all(char out[TEXT_NAMES], const text_nearest *n) {
    if (*n->best) return text_meant(out, n, "");
    snprintf(out, TEXT_NAMES, "; there are: %.*s", TEXT_NAMES - 16, n->names);
    return out;
}

bool text_choice(const char *choices, int i, char *out, size_t size) {
    for (; i > 0; i--) {
        choices = strchr(choices, '|');
        if (!choices) return false;
        choices++;
    }
    size_t length = strcspn(choices, "|");
    if (length == 0 || length >= size) return false;
    memcpy(out, choices, length);
    out[length] = '\0';
    return true;
}

uint64_t text_hash(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *p = data;
    uint64_t h = hash ? hash : 1469598103934665603u;
    for (size_t i = 0; i < bytes; i++) h = (h ^ p[i]) * 1099511628211u;
    return h;
}
