/* test_text.c: foreign text as one line for people. */
#include "util/text.h"

#include "check.h"
#include "util/env.h"
#include "util/fsio.h"
#include "util/json.h"

static const char *plain(const char *text) {
    static char out[256];
    size_t length = text_plain(out, sizeof out, text);
    CHECK(length == strlen(out));
    return out;
}

static void letters_stay(void) {
    static const char *const texts[] = {
        "",          "plain text\\ with \"signs\"", "Søren Ærø", "日本語 αβγ", "\xf0\x9f\x8c\x8a",
        "a\xc2\xa0z"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) STREQ(plain(texts[k]), texts[k]);
}

static void controls_are_escaped(void) {
    STREQ(plain("a\nb\rc\td"), "a\\nb\\rc\\td");
    STREQ(plain("\033[31mred\007\177"), "\\x1b[31mred\\x07\\x7f");
    STREQ(plain("\xc2\x80 \xc2\x9b 2J \xc2\x9f"), "\\u0080 \\u009b 2J \\u009f"); /* C1 */
    STREQ(plain("\xe2\x80\xa8\xe2\x80\xa9"), "\\u2028\\u2029");                  /* ends of lines */
    STREQ(plain("\xe2\x80\xae cba \xe2\x81\xa6 x \xd8\x9c\xe2\x80\x8f"),
          "\\u202e cba \\u2066 x \\u061c\\u200f");
}

static void bytes_that_are_no_text_are_escaped(void) {
    STREQ(plain("\xff\xfe"), "\\xff\\xfe");
    STREQ(plain("\x9b 2J"), "\\x9b 2J"); /* the C1 control of an 8-bit terminal */
    STREQ(plain("\xc0\x80\xed\xa0\x80"), "\\xc0\\x80\\xed\\xa0\\x80");
    STREQ(plain("cut \xe6\x97"), "cut \\xe6\\x97");
}

static void twice_is_as_once(void) {
    static const char raw[] = "a\033\n\xff\xc2\x85\xe2\x80\xae\\n z";
    char once[128];
    text_plain(once, sizeof once, raw);
    STREQ(plain(once), once);
}

/* Whole characters while there is room, and the length of all. */
static void it_is_cut_between_characters(void) {
    char out[16];
    for (size_t size = 1; size <= sizeof out; size++) {
        memset(out, 'Q', sizeof out);
        CHECK(text_plain(out, size, "a\033\xc3\xb8z") == 8);
        static const char *const shown[] = {"", "a", "a\\x1b", "a\\x1b\xc3\xb8", "a\\x1b\xc3\xb8z"};
        size_t k = size >= 9 ? 4 : size >= 8 ? 3 : size >= 6 ? 2 : size >= 2 ? 1 : 0;
        STREQ(out, shown[k]);
        for (size_t i = size; i < sizeof out; i++) CHECK(out[i] == 'Q');
    }
    CHECK(text_plain(NULL, 0, "\n\n") == 4);
}

static void errors_and_logs_are_one_line(void) {
    env e;
    env_init(&e);
    env_fail(&e, MNP_EINVAL, "%s: there is no column '%s'", "a\nb.csv", "x\033[2J");
    STREQ(e.error, "a\\nb.csv: there is no column 'x\\x1b[2J'");
    env_context(&e, MNP_EINVAL, "while reading %s", "\r");
    STREQ(e.error, "while reading \\r: a\\nb.csv: there is no column 'x\\x1b[2J'");
    env_fail(&e, MNP_EINVAL, "again: %s", e.error); /* its own text may be a part of it */
    CHECK(strncmp(e.error, "again: while reading \\r: a", 26) == 0);
}

static char logged[256];

static void keep_log(void *user, mnp_log_level level, const char *text) {
    (void)user, (void)level;
    snprintf(logged, sizeof logged, "%s", text);
}

static void so_are_logs(void) {
    env e;
    env_init(&e);
    e.log = keep_log;
    env_log(&e, MNP_LOG_WARN, "%s is damaged", "\033c");
    STREQ(logged, "\\x1bc is damaged");
}

static void buffers_take_it_too(void) {
    env e;
    buf b;
    env_init(&e);
    buf_init(&b, &e);
    for (int k = 0; k < 200; k++) CHECK(buf_plain(&b, "\033x") == MNP_OK);
    CHECK(b.len == 1000 && strlen(b.data) == 1000 && strncmp(b.data, "\\x1bx\\x1b", 9) == 0);
    buf_free(&b);
}

/* The same characters in JSON, where they read back as they were. */
static void json_escapes_them(void) {
    static const char raw[] = "\033 \177 \xc2\x9b \xe2\x80\xae \xc3\xb8";
    env e;
    buf b;
    json_writer w;
    json_doc *doc = NULL;
    env_init(&e);
    buf_init(&b, &e);
    json_writer_init(&w, &b, 0);
    json_object_begin(&w);
    json_key(&w, "k");
    json_put_string(&w, raw);
    json_object_end(&w);
    STREQ(buf_str(&b), "{\"k\":\"\\u001b \\u007f \\u009b \\u202e \xc3\xb8\"}");
    CHECK(json_parse(&e, "text", b.data, b.len, &doc) == MNP_OK);
    const char *read = "";
    CHECK(json_string(&e, json_get(json_root(doc), "k"), "k", &read) == MNP_OK);
    STREQ(read, raw);
    json_destroy(doc);
    buf_free(&b);
}

int main(void) {
    RUN(letters_stay);
    RUN(controls_are_escaped);
    RUN(bytes_that_are_no_text_are_escaped);
    RUN(twice_is_as_once);
    RUN(it_is_cut_between_characters);
    RUN(errors_and_logs_are_one_line);
    RUN(so_are_logs);
    RUN(buffers_take_it_too);
    RUN(json_escapes_them);
    return check_done();
}
