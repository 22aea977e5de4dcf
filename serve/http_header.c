/* http_header.c: see http_header.h. */
#include "serve/http_header.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- hosts and origins ----------------------------------------------------------------------- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Letters of names and addresses; no language's own letters, no escapes. */
static bool is_name_letter(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == '_';
}

static bool read_port(const char *text, int *out) {
    int port = 0, digits = 0;
    for (; is_digit(*text) && digits < 5; text++, digits++) port = 10 * port + (*text - '0');
    *out = port;
    return digits > 0 && *text == '\0' && port > 0 && port <= UINT16_MAX;
}

bool http_read_host(const char *text, http_host *out) {
    size_t n = *text == '[' ? strcspn(text, "]") + 1 : strcspn(text, ":");
    *out = (http_host){.port = 0};
    if (n == 0 || n >= sizeof out->name || strlen(text) < n) return false;
    for (size_t k = 0; k < n; k++)
        out->name[k] = (char)(text[k] >= 'A' && text[k] <= 'Z' ? text[k] + ('a' - 'A') : text[k]);
    if (*text == '[') {
        if (!http_is_address(out->name)) return false;
    } else {
        for (size_t k = 0; k < n; k++) {
            bool dot = out->name[k] == '.';
            if (!is_name_letter(out->name[k]) || (dot && (k == 0 || text[k - 1] == '.')))
                return false;
        }
        if (out->name[n - 1] == '.') out->name[n - 1] = '\0';
    }
    return text[n] == '\0' || (text[n] == ':' && read_port(text + n + 1, &out->port));
}

bool http_same_origin(const char *origin, const http_host *host) {
    http_host from;
    bool tls = strncmp(origin, "https://", 8) == 0;
    if (!tls && strncmp(origin, "http://", 7) != 0) return false;
    if (!http_read_host(origin + (tls ? 8 : 7), &from)) return false;
    int usual = tls ? 443 : 80;
    return strcmp(from.name, host->name) == 0 &&
           (from.port ? from.port : usual) == (host->port ? host->port : usual);
}

bool http_listed(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *at = list; at && *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        if (n == length && n > 0 && strncasecmp(at, name, n) == 0) return true;
        at += n;
    }
    return false;
}

/* The bytes of an address in numbers, 4 or 16; 0 where it is none. */
static size_t address_bytes(const char *name, unsigned char out[16]) {
    char inside[HTTP_NAME_MAX];
    size_t n = strlen(name);
    if (n > 2 && n < sizeof inside && name[0] == '[' && name[n - 1] == ']') {
        snprintf(inside, sizeof inside, "%.*s", (int)(n - 2), name + 1);
        return inet_pton(AF_INET6, inside, out) == 1 ? 16 : 0;
    }
    return inet_pton(AF_INET, name, out) == 1 ? 4 : 0;
}

bool http_is_address(const char *name) {
    unsigned char bytes[16];
    return address_bytes(name, bytes) > 0;
}

bool http_is_loopback(const char *name) {
    static const unsigned char one[16] = {[15] = 1};
    unsigned char bytes[16];
    size_t n = address_bytes(name, bytes);
    return strcmp(name, "localhost") == 0 || (n == 4 && bytes[0] == 127) ||
           (n == 16 && memcmp(bytes, one, sizeof one) == 0);
}

/* ---- lists of words -------------------------------------------------------------------------- */

static size_t blanks(const char *text) {
    return strspn(text, " \t");
}

/* The word at the start of `text`, up to one of `ends`, without the blanks around it. */
static bool word_is(const char *text, const char *ends, const char *word) {
    text += blanks(text);
    size_t n = strcspn(text, ends);
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t')) n--;
    return n == strlen(word) && strncasecmp(text, word, n) == 0;
}

bool http_is_json(const char *type) {
    if (!word_is(type, ";", "application/json")) return false;
    const char *more = strchr(type, ';');
    return !more || word_is(more + 1, ";", "charset=utf-8") ||
           word_is(more + 1, ";", "charset=\"utf-8\"") || word_is(more + 1, ";", "");
}

bool http_wants_lines(const char *accept) {
    for (const char *at = accept; *at; at += *at == ',') {
        if (word_is(at, ",;", "application/x-ndjson")) return true;
        at += strcspn(at, ",");
    }
    return false;
}

bool http_matches_tag(const char *field, const char *tag) {
    for (const char *at = field; *at; at += *at == ',') {
        const char *word = at + blanks(at);
        if (strncmp(word, "W/", 2) == 0) word += 2; /* a proxy that packs the reply weakens it */
        if (word_is(word, ",", tag)) return true;
        at += strcspn(at, ",");
    }
    return false;
}

/* ---- keys ------------------------------------------------------------------------------------ */

bool http_has_key(const char *authorization, const char *key) {
    if (strncasecmp(authorization, "Bearer ", 7) != 0) return false;
    const char *given = authorization + 7;
    given += blanks(given);
    size_t n = strlen(given), length = strlen(key);
    unsigned char a[HTTP_KEY_MAX] = {0}, b[HTTP_KEY_MAX] = {0};
    if (n >= sizeof a || length >= sizeof b) return false;
    memcpy(a, given, n);
    memcpy(b, key, length);
    volatile unsigned char differs = n != length; /* every byte is looked at, whatever it is */
    for (size_t k = 0; k < sizeof a; k++) differs = (unsigned char)(differs | (a[k] ^ b[k]));
    return differs == 0 && length > 0;
}
