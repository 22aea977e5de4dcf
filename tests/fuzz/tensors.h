/* tensors.h: puts a damaged safetensors file in order: the length of its header is that of the
 * header, offsets follow from types and shapes, and there is as much data as they say. */
#ifndef MNP_TESTS_FUZZ_TENSORS_H
#define MNP_TESTS_FUZZ_TENSORS_H

#include <stdbool.h>
#include <stdio.h>

#include "fuzz/fuzz.h"

enum { TENSORS_HEADER = 1 << 16 };

/* Bytes up to the brace that closes the first one; 0 where there is none. */
static size_t tensors_header(const uint8_t *text, size_t bytes) {
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < bytes; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && text[i] == '{')
            depth++;
        else if (!quoted && text[i] == '}' && depth > 0 && --depth == 0)
            return i + 1;
    }
    return 0;
}

static bool tensors_at(const uint8_t *text, size_t left, const char *word) {
    return left >= strlen(word) && memcmp(text, word, strlen(word)) == 0;
}

static size_t tensors_count(const uint8_t *text, size_t left) {
    size_t count = 1, number = 0;
    for (size_t i = 0; i < left && text[i] != ']'; i++) {
        if (text[i] >= '0' && text[i] <= '9' && number < 1 << 16)
            number = 10 * number + (size_t)(text[i] - '0');
        if (i + 1 == left || text[i + 1] == ',' || text[i + 1] == ']') {
            count = count > 1 << 16 ? count : count * number;
            number = 0;
        }
    }
    return count;
}

static size_t tensors_mend(uint8_t *data, size_t bytes, size_t max) {
    static char header[TENSORS_HEADER];
    static uint8_t values[TENSORS_HEADER];
    if (bytes <= 8) return bytes;
    const uint8_t *text = data + 8;
    size_t length = tensors_header(text, bytes - 8), to = 0, at = 0, size = 4, count = 0;
    if (length == 0 || length > sizeof header / 2) return bytes;
    for (size_t i = 0; i < length;) {
        const uint8_t *here = text + i;
        size_t left = length - i;
        if (to + 64 > sizeof header) return bytes;
        if (tensors_at(here, left, "\"dtype\":\"")) {
            size = left > 12 && here[10] == '6'   ? 8
                   : left > 12 && here[10] == '3' ? 4
                   : here[9] == 'U'               ? 1
                                                  : 2;
        } else if (tensors_at(here, left, "\"shape\":[")) {
            count = tensors_count(here + 9, left - 9);
        } else if (tensors_at(here, left, "\"data_offsets\":[")) {
            const uint8_t *end = memchr(here, ']', left);
            if (!end) return bytes;
            to += (size_t)snprintf(header + to, sizeof header - to, "\"data_offsets\":[%zu,%zu]",
                                   at, at + count * size);
            at += count * size;
            i = (size_t)(end + 1 - text);
            continue;
        }
        header[to++] = (char)text[i++];
    }
    if (8 + to + at > max || at > sizeof values) return bytes;
    size_t have = bytes - 8 - length;
    memset(values, 0, sizeof values);
    memcpy(values, text + length, have < at ? have : at);
    uint64_t word = to;
    memcpy(data, &word, 8);
    memcpy(data + 8, header, to);
    memcpy(data + 8 + to, values, at);
    return 8 + to + at;
}

#endif
