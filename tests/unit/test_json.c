/* test_json.c: what is JSON is read, what is not is refused with its place, what is written is
 * JSON again. */
#include "util/json.h"

#include "check.h"

static env E;

static json_doc *parse(const char *text) {
    json_doc *doc = NULL;
    json_parse(&E, "t.json", text, strlen(text), &doc);
    return doc;
}

static void good_texts_are_read(void) {
    static const char *const texts[] = {
        "null",
        " true ",
        "false\n",
        "0",
        "-0",
        "1.5e+3",
        "1E5",
        "\"\"",
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[1,[2,[3]]]",
        "{\"a\":{\"b\":[]}}",
        "\t\r\n[1 , 2]\r\n",
        "\"\\u0000\"",
        "\"\\/\"",
        "\"\x7f\"",
        "\"\\ud83d\\ude00\"",
        "[0.1, -1e-7, 123456789012]",
        "{\"\":1}",
        "1e-400",
        "\"\xf0\x9f\x98\x80\"",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CASE(texts[i]);
        json_doc *doc = parse(texts[i]);
        CHECK(doc != NULL);
        json_destroy(doc);
    }
}

static void bad_texts_are_refused(void) {
    static const char *const texts[] = {
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "[",
        "]",
        "{",
        "}",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "{'a':1}",
        "{\"a\":1 \"b\":2}",
        "01",
        "-",
        "-01",
        "+1",
        ".5",
        "5.",
        "1.e5",
        "1e",
        "1e+",
        "0x1",
        "NaN",
        "Infinity",
        "1e999",
        "-1e999",
        "\"",
        "\"a",
        "\"\\",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "\"\t\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "1 2",
        "[] []",
        "{} x",
        "// c\n1",
        "[1] // c",
        "\xef\xbb\xbf[]",
        "{\"a\":1,\"a\":2}",
        "{\"a\":1,\"b\":2,\"\\u0061\":3}",
        "'a'",
        "[\"a\",\n4\n,1,",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CASE(texts[i]);
        json_doc *doc = (json_doc *)&E;
        CHECK(json_parse(&E, "t.json", texts[i], strlen(texts[i]), &doc) == MNP_EFORMAT && !doc);
        CHECK(strncmp(E.error, "t.json:", 7) == 0);
    }
    json_doc *doc;
    CHECK(json_parse(&E, "t.json", "\0", 1, &doc) == MNP_EFORMAT);
    CHECK(json_parse(&E, "t.json", "[\0]", 3, &doc) == MNP_EFORMAT);
    CHECK(json_parse(&E, "t.json", "\"\\\0\"", 4, &doc) == MNP_EFORMAT);
    CHECK(json_parse(&E, "t.json", "[1]]", 3, &doc) == MNP_OK); /* the length counts */
    json_destroy(doc);
}

static void errors_say_where(void) {
    parse("{\n  \"a\": 1,\n  \"b\": tru\n}");
    CHECK(strncmp(E.error, "t.json:3:8: expected a value", 28) == 0);
    parse("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}");
    STREQ(E.error, "t.json:3:2: the key \"a\" appears twice in one object");
    parse("[1, 2");
    STREQ(E.error, "t.json:1:6: expected , or ] in an array");
}

static void depth_is_limited(void) {
    char text[2 * JSON_DEPTH_MAX + 3];
    for (int n = JSON_DEPTH_MAX; n <= JSON_DEPTH_MAX + 1; n++) {
        memset(text, '[', (size_t)n);
        memset(text + n, ']', (size_t)n);
        text[2 * n] = '\0';
        json_doc *doc = parse(text);
        CHECK((doc != NULL) == (n == JSON_DEPTH_MAX));
        json_destroy(doc);
    }
    CHECK(strstr(E.error, "too deep"));
}

static void numbers_are_exact(void) {
    static const struct {
        const char *text;
        double v;
    } cases[] = {{"0.1", 0.1},
                 {"1.7976931348623157e308", 1.7976931348623157e308},
                 {"4.9406564584124654e-324", 4.9406564584124654e-324},
                 {"9007199254740993", 9007199254740992.0}, /* a tie goes to the even one */
                 {"2.2250738585072011e-308", 2.2250738585072011e-308},
                 {"1e-400", 0},
                 {"-0", -0.0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CASE(cases[i].text);
        json_doc *doc = parse(cases[i].text);
        CHECK(doc && memcmp(&json_root(doc)->number, &cases[i].v, sizeof(double)) == 0);
        json_destroy(doc);
    }
}

static void strings_are_decoded(void) {
    json_doc *doc = parse("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u00e9\\u20AC\\ud83d\\ude00\", "
                          "\"a\\u0000b\"]");
    const json_value *root = json_root(doc);
    const char *s = NULL;
    CHECK(json_string(&E, json_at(root, 0), "s", &s) == MNP_OK);
    STREQ(s, "\"\\/\b\f\n\r\t");
    CHECK(json_string(&E, json_at(root, 1), "s", &s) == MNP_OK);
    STREQ(s, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    CHECK(json_at(root, 2)->count == 3 && memcmp(json_at(root, 2)->string, "a\0b", 4) == 0);
    CHECK(json_string(&E, json_at(root, 2), "s", &s) == MNP_EFORMAT); /* no use as a C string */
    json_destroy(doc);
}

static void members_are_found_and_typed(void) {
    json_doc *doc = parse("{\"zeta\": [1, 2.5], \"n\": 7, \"yes\": true,\n \"s\": \"x\", \"none\": "
                          "null, \"half\": 0.5, \"big\": 9007199254740992}");
    const json_value *root = json_root(doc);
    double pair[2] = {0}, d = 0;
    int64_t n = 0;
    bool b = false;
    size_t count = 0;
    CHECK(root->count == 7 && strcmp(json_key_at(root, 0)->string, "zeta") == 0);
    CHECK(json_value_at(root, 1)->number == 7 && !json_key_at(root, 7) && !json_value_at(root, 7));
    CHECK(json_numbers(&E, json_get(root, "zeta"), "zeta", pair, 2) == MNP_OK && pair[1] == 2.5);
    CHECK(json_array(&E, json_get(root, "zeta"), "zeta", &count) == MNP_OK && count == 2);
    CHECK(json_numbers(&E, json_get(root, "zeta"), "zeta", pair, 1) == MNP_EFORMAT);
    CHECK(json_integer(&E, json_get(root, "n"), "n", &n) == MNP_OK && n == 7);
    CHECK(json_number(&E, json_get(root, "half"), "half", &d) == MNP_OK && d == 0.5);
    CHECK(json_integer(&E, json_get(root, "half"), "half", &n) == MNP_EFORMAT);
    CHECK(json_integer(&E, json_get(root, "big"), "big", &n) == MNP_EFORMAT);
    CHECK(json_bool(&E, json_get(root, "yes"), "yes", &b) == MNP_OK && b);
    CHECK(json_get(root, "none")->kind == JSON_NULL);
    CHECK(!json_get(root, "ze") && !json_get(root, "zetas") && !json_get(json_get(root, "n"), "a"));
    CHECK(!json_get(NULL, "a") && !json_at(root, 0) && !json_at(json_get(root, "zeta"), 2));
    CHECK(json_number(&E, json_get(root, "steps"), "steps", &d) == MNP_EFORMAT);
    STREQ(E.error, "steps is missing");
    CHECK(json_number(&E, json_get(root, "s"), "s", &d) == MNP_EFORMAT);
    STREQ(E.error, "line 2: s must be a number, not a string");
    json_destroy(doc);
}

static void large_objects_are_searched(void) {
    enum { N = 20000 };
    buf b;
    buf_init(&b, &E);
    for (int i = 0; i < N; i++) buf_printf(&b, "%s\"k%d\": %d", i ? "," : "{", i * 7919 % N, i);
    buf_text(&b, "}");
    json_doc *doc = parse(buf_str(&b));
    CHECK(doc != NULL);
    for (int i = 0; doc && i < N; i += 997) {
        char key[20];
        snprintf(key, sizeof key, "k%d", i * 7919 % N);
        const json_value *v = json_get(json_root(doc), key);
        CHECK(v && v->number == i);
    }
    json_destroy(doc);
    buf_free(&b);
}

static void written_text_is_compact_or_indented(void) {
    for (int indent = 0; indent <= 2; indent += 2) {
        buf b;
        json_writer w;
        buf_init(&b, &E);
        json_writer_init(&w, &b, indent);
        json_object_begin(&w);
        json_key(&w, "a");
        json_array_begin(&w);
        json_put_integer(&w, -3);
        json_put_number(&w, 0.1);
        json_put_number(&w, NAN);
        json_put_number(&w, INFINITY);
        json_array_end(&w);
        json_key(&w, "o");
        json_object_begin(&w);
        json_key(&w, "t");
        json_put_bool(&w, true);
        json_object_end(&w);
        json_key(&w, "e");
        json_object_begin(&w);
        json_object_end(&w);
        json_object_end(&w);
        CHECK(b.status == MNP_OK);
        if (indent)
            STREQ(b.data, "{\n  \"a\": [-3, 0.1, null, null],\n  \"o\": {\n    \"t\": true\n  "
                          "},\n  \"e\": {}\n}");
        else
            STREQ(b.data, "{\"a\":[-3,0.1,null,null],\"o\":{\"t\":true},\"e\":{}}");
        buf_free(&b);
    }
}

static void any_text_survives_writing(void) {
    char all[256];
    for (int i = 1; i < 128; i++) all[i - 1] = (char)i;
    strcpy(all + 127, "\xc3\xa9 \xf0\x9f\x98\x80");
    buf b;
    json_writer w;
    buf_init(&b, &E);
    json_writer_init(&w, &b, 0);
    json_array_begin(&w);
    json_put_string(&w, all);
    json_put_string(&w, "bad \xff\xc3(");
    json_array_end(&w);
    json_doc *doc = parse(buf_str(&b));
    CHECK(doc != NULL);
    STREQ(json_at(json_root(doc), 0)->string, all);
    STREQ(json_at(json_root(doc), 1)->string, "bad \xef\xbf\xbd\xef\xbf\xbd(");
    json_destroy(doc);
    buf_free(&b);
}

int main(void) {
    env_init(&E);
    RUN(good_texts_are_read);
    RUN(bad_texts_are_refused);
    RUN(errors_say_where);
    RUN(depth_is_limited);
    RUN(numbers_are_exact);
    RUN(strings_are_decoded);
    RUN(members_are_found_and_typed);
    RUN(large_objects_are_searched);
    RUN(written_text_is_compact_or_indented);
    RUN(any_text_survives_writing);
    return check_done();
}
