/* inflate.c: see inflate.h. Codes are decoded bit by bit with counts per length (canonical Huffman
 * codes): slow and small, for pictures that are read once. */
#include "util/inflate.h"

#include <string.h>

enum { CODE_BITS = 15, LITERALS = 288, DISTANCES = 30, END_OF_BLOCK = 256 };

typedef struct source {
    const uint8_t *in;
    size_t bytes, at;
    uint32_t bits;
    int held; /* bits not yet taken */
    uint8_t *out;
    size_t size, made;
    bool bad;
} source;

static uint32_t take(source *s, int count) {
    while (s->held < count) {
        if (s->at == s->bytes) {
            s->bad = true;
            return 0;
        }
        s->bits |= (uint32_t)s->in[s->at++] << s->held;
        s->held += 8;
    }
    uint32_t v = s->bits & ((1u << count) - 1);
    s->bits >>= count;
    s->held -= count;
    return v;
}

/* ---- codes ----------------------------------------------------------------------------------- */

typedef struct code {
    uint16_t count[CODE_BITS + 1]; /* codes of each length                 */
    uint16_t symbol[LITERALS];     /* symbols ordered by length and number */
} code;

/* False where there are more codes than fit. */
static bool make_code(code *c, const uint8_t *length, int symbols) {
    uint16_t first[CODE_BITS + 2] = {0};
    memset(c, 0, sizeof *c);
    for (int k = 0; k < symbols; k++) c->count[length[k]]++;
    c->count[0] = 0;
    int left = 1;
    for (int k = 1; k <= CODE_BITS; k++) {
        left = 2 * left - c->count[k];
        if (left < 0) return false;
        first[k + 1] = (uint16_t)(first[k] + c->count[k]);
    }
    for (int k = 0; k < symbols; k++)
        if (length[k]) c->symbol[first[length[k]]++] = (uint16_t)k;
    return true;
}

static int decode(source *s, const code *c) {
    int word = 0, first = 0, index = 0;
    for (int k = 1; k <= CODE_BITS && !s->bad; k++) {
        word |= (int)take(s, 1);
        int count = c->count[k];
        if (word - first < count) return c->symbol[index + word - first];
        index += count;
        first = (first + count) << 1;
        word <<= 1;
    }
    s->bad = true;
    return END_OF_BLOCK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void put(source *s, uint8_t byte) {
    if (s->made == s->size)
        s->bad = true;
    else
        s->out[s->made++] = byte;
}

static void stored(source *s) {
    s->bits = 0;
    s->held = 0;
    if (s->bytes - s->at < 4) {
        s->bad = true;
        return;
    }
    const uint8_t *head = s->in + s->at;
    uint32_t length = head[0] | (uint32_t)head[1] << 8, check = head[2] | (uint32_t)head[3] << 8;
    s->at += 4;
    if ((length ^ check) != 0xFFFF || s->bytes - s->at < length || s->size - s->made < length) {
        s->bad = true;
        return;
    }
    memcpy(s->out + s->made, s->in + s->at, length);
    s->at += length;
    s->made += length;
}

static void copy_back(source *s, int symbol, const code *distances) {
    static const uint16_t base[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                    31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t more[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                   2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t far[] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                   33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                   1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    int k = symbol - END_OF_BLOCK - 1;
    if (k >= (int)(sizeof base / sizeof *base)) {
        s->bad = true;
        return;
    }
    size_t length = base[k] + take(s, more[k]);
    int d = decode(s, distances);
    if (s->bad || d >= DISTANCES) {
        s->bad = true;
        return;
    }
    size_t back = far[d] + take(s, d < 2 ? 0 : d / 2 - 1);
    if (back > s->made) s->bad = true;
    for (; length > 0 && !s->bad; length--) put(s, s->out[s->made - back]);
}

static void coded(source *s, const code *literals, const code *distances) {
    for (;;) {
        int symbol = decode(s, literals);
        if (s->bad || symbol == END_OF_BLOCK) return;
        if (symbol < END_OF_BLOCK)
            put(s, (uint8_t)symbol);
        else
            copy_back(s, symbol, distances);
    }
}

static void fixed_codes(code *literals, code *distances) {
    uint8_t length[LITERALS];
    for (int k = 0; k < LITERALS; k++) length[k] = k < 144 ? 8 : k < 256 ? 9 : k < 280 ? 7 : 8;
    make_code(literals, length, LITERALS);
    for (int k = 0; k < DISTANCES; k++) length[k] = 5;
    make_code(distances, length, DISTANCES);
}

/* The lengths of both codes are themselves coded. */
static void own_codes(source *s, code *literals, code *distances) {
    static const uint8_t order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                    11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t length[LITERALS + 32] = {0};
    int n_literals = (int)take(s, 5) + 257, n_distances = (int)take(s, 5) + 1;
    int n_lengths = (int)take(s, 4) + 4, at = 0;
    for (int k = 0; k < n_lengths; k++) length[order[k]] = (uint8_t)take(s, 3);
    if (!make_code(literals, length, 19) || n_literals > LITERALS) s->bad = true;
    memset(length, 0, sizeof length);
    while (at < n_literals + n_distances && !s->bad) {
        int symbol = decode(s, literals), repeat = 1;
        uint8_t value = (uint8_t)symbol;
        if (symbol == 16) value = at ? length[at - 1] : 0, repeat = 3 + (int)take(s, 2);
        if (symbol == 17) value = 0, repeat = 3 + (int)take(s, 3);
        if (symbol == 18) value = 0, repeat = 11 + (int)take(s, 7);
        if (symbol > 18 || at + repeat > n_literals + n_distances) s->bad = true;
        while (repeat-- > 0 && !s->bad) length[at++] = value;
    }
    if (s->bad) return;
    s->bad = !make_code(literals, length, n_literals) ||
             !make_code(distances, length + n_literals, n_distances);
}

static uint32_t adler(const uint8_t *bytes, size_t count) {
    uint32_t a = 1, b = 0;
    for (size_t k = 0; k < count; k++) {
        a = (a + bytes[k]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

bool inflate_zlib(const uint8_t *in, size_t bytes, uint8_t *out, size_t size) {
    source s = {.in = in, .bytes = bytes, .at = 2, .out = out, .size = size};
    if (bytes < 6 || (in[0] & 15) != 8 || (in[0] * 256 + in[1]) % 31 != 0 || in[1] & 32)
        return false;
    for (bool last = false; !last && !s.bad;) {
        code literals, distances;
        last = take(&s, 1);
        uint32_t kind = take(&s, 2);
        if (kind == 1) fixed_codes(&literals, &distances);
        if (kind == 2) own_codes(&s, &literals, &distances);
        if (kind == 3) s.bad = true;
        if (s.bad) break;
        if (kind == 0)
            stored(&s);
        else
            coded(&s, &literals, &distances);
    }
    if (s.bad || s.made != size || bytes - s.at < 4) return false;
    const uint8_t *sum = in + s.at;
    return adler(out, size) ==
           ((uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 | (uint32_t)sum[2] << 8 | sum[3]);
}
