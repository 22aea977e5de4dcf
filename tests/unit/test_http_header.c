/* test_http_header.c: what the server reads out of header fields. */
#include "check.h"
#include "serve/http_header.h"

static void reads_hosts(void) {
    http_host h;
    CHECK(http_read_host("Example.ORG:8350", &h) && h.port == 8350);
    STREQ(h.name, "example.org");
    CHECK(http_read_host("[2001:DB8::1]", &h) && h.port == 0);
    STREQ(h.name, "[2001:db8::1]");
    CHECK(http_read_host("localhost.", &h));
    STREQ(h.name, "localhost");
    static const char *const wrong[] = {
        "",     "..",  "a..b", ".a",   ".",  ":80", "a:",  "a:0",   "a:65536", "a:1x",    "a b",
        "a\tb", "a/b", "u@a",  "[::1", "[]", "[x]", "::1", "a:1:2", "a%41",    "\xc3\xa9"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        CASE(wrong[k]);
        CHECK(!http_read_host(wrong[k], &h));
    }
    char text[600];
    memset(text, 'a', sizeof text);
    text[255] = '\0';
    CHECK(http_read_host(text, &h));
    text[255] = 'a', text[256] = '\0';
    CHECK(!http_read_host(text, &h));
}

static void compares_origins(void) {
    http_host h;
    CHECK(http_read_host("models.example.org", &h));
    CHECK(http_same_origin("http://models.example.org", &h));
    CHECK(http_same_origin("https://Models.example.org:443", &h));
    CHECK(!http_same_origin("https://models.example.org:80", &h));
    CHECK(!http_same_origin("https://example.org", &h));
    CHECK(!http_same_origin("null", &h) && !http_same_origin("", &h));
    CHECK(!http_same_origin("file://models.example.org", &h));
    CHECK(!http_same_origin("http://models.example.org/", &h));
    CHECK(http_read_host("127.0.0.1:8350", &h));
    CHECK(http_same_origin("http://127.0.0.1:8350", &h));
    CHECK(!http_same_origin("http://127.0.0.1", &h));
}

static void knows_addresses(void) {
    CHECK(http_is_loopback("localhost") && http_is_loopback("127.9.8.7") &&
          http_is_loopback("[::1]"));
    CHECK(!http_is_loopback("128.0.0.1") && !http_is_loopback("[::2]") && !http_is_loopback("::1"));
    CHECK(!http_is_loopback("localhost.example") && !http_is_loopback("127.0.0.1.example"));
    CHECK(!http_is_loopback("0177.0.0.1") && !http_is_loopback("2130706433"));
    CHECK(http_is_address("10.0.0.1") && http_is_address("[fe80::1]") && !http_is_address("a"));
}

static void reads_lists(void) {
    CHECK(http_listed("a.b,c.d", "a.b") && http_listed("a.b,c.d", "C.D"));
    CHECK(!http_listed("a.b,c.d", "a") && !http_listed("a.b,c.d", "b,c") && !http_listed("a", ""));
    CHECK(!http_listed(NULL, "a") && !http_listed("", "") && !http_listed(",,", ""));
    CHECK(http_is_json("application/json") && http_is_json("Application/JSON ; charset=UTF-8"));
    CHECK(!http_is_json("application/json; charset=latin1") && !http_is_json("text/plain"));
    CHECK(!http_is_json("application/jsonx") && !http_is_json(""));
    CHECK(http_wants_lines("text/html, application/x-ndjson;q=0.9"));
    CHECK(!http_wants_lines("application/x-ndjson2") && !http_wants_lines("*/*"));
    CHECK(http_matches_tag("\"1\", W/\"2-3\"", "\"2-3\"") && !http_matches_tag("\"1\"", "\"2\""));
}

static void compares_keys(void) {
    const char *key = "0123456789abcdef";
    char text[600] = "Bearer ";
    CHECK(http_has_key("Bearer 0123456789abcdef", key) &&
          http_has_key("bearer  0123456789abcdef", key));
    CHECK(!http_has_key("Bearer 0123456789abcdeF", key) &&
          !http_has_key("Bearer 0123456789abcde", key));
    CHECK(!http_has_key("Bearer 0123456789abcdef0", key) && !http_has_key("Bearer ", key));
    CHECK(!http_has_key("0123456789abcdef", key) && !http_has_key("", key));
    CHECK(!http_has_key("Bearer ", ""));
    memset(text + 7, 'a', 500);
    CHECK(!http_has_key(text, key));
}

int main(void) {
    RUN(reads_hosts);
    RUN(compares_origins);
    RUN(knows_addresses);
    RUN(reads_lists);
    RUN(compares_keys);
    return check_done();
}
