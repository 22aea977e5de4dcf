/* fuzz_http_header.c: arbitrary text as header fields of a request. What is taken for a host is a
 * plain name or an address, reads back the same, and is of its own origin; a key is found only
 * where it is. */
#include <stdio.h>

#include "fuzz/fuzz.h"
#include "serve/http_header.h"

size_t fuzz_seed(size_t i, uint8_t *out) {
    static const char *const seeds[] = {
        "models.example.org:8350",         "[2001:db8::1]:443",
        "http://127.0.0.1:8350",           "https://localhost",
        "application/json; charset=utf-8", "text/html, application/x-ndjson;q=0.9, */*",
        "Bearer 0123456789abcdef",         "W/\"12-34\", \"56-78\"",
    };
    if (i >= sizeof seeds / sizeof seeds[0]) return 0;
    memcpy(out, seeds[i], strlen(seeds[i]));
    return strlen(seeds[i]);
}

static void check_host(const char *text) {
    http_host h, again;
    char written[HTTP_NAME_MAX + 32];
    if (!http_read_host(text, &h)) return;
    FUZZ_CHECK(*h.name && strlen(h.name) < HTTP_NAME_MAX && h.port >= 0 && h.port < 65536);
    for (const char *at = h.name; *at; at++)
        FUZZ_CHECK(*at > ' ' && *at < 127 && !strchr("/@\"'<>\\,", *at));
    snprintf(written, sizeof written, h.port ? "%s:%d" : "%s", h.name, h.port);
    FUZZ_CHECK(http_read_host(written, &again));
    FUZZ_CHECK(strcmp(h.name, again.name) == 0 && h.port == again.port);
    char origin[HTTP_NAME_MAX + 48];
    snprintf(origin, sizeof origin, "https://%s", written);
    FUZZ_CHECK(http_same_origin(origin, &h));
    FUZZ_CHECK(!http_is_loopback(h.name) || http_is_address(h.name) ||
               strcmp(h.name, "localhost") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    http_host own;
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    check_host(text);
    FUZZ_CHECK(http_read_host("127.0.0.1:8350", &own));
    if (http_same_origin(text, &own))
        FUZZ_CHECK(strstr(text, "://127.0.0.1") &&
                   (strstr(text, ":8350") || strstr(text, ":08350")));
    if (http_has_key(text, "0123456789abcdef")) FUZZ_CHECK(strstr(text, "0123456789abcdef"));
    http_is_json(text);
    http_wants_lines(text);
    http_matches_tag(text, "\"12-34\"");
    http_listed(text, "models.example.org");
    free(text);
    return 0;
}
