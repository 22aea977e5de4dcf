/* test_fsio.c: numbers as text, the buffer, and files that are replaced whole or not at all. */
#include "util/fsio.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static env E;
static char folder[200];

static const char *in_folder(char *out, size_t room, const char *name) {
    snprintf(out, room, "%s/%s", folder, name);
    return out;
}
#define PATH(name) in_folder((char[300]){0}, 300, name)

static int files_in_folder(void) {
    DIR *d = opendir(folder);
    int n = 0;
    while (readdir(d)) n++;
    closedir(d);
    return n - 2;
}

static bool file_is(const char *path, const char *want) {
    char *data;
    size_t bytes;
    if (fsio_read(&E, path, 1 << 20, &data, &bytes) != MNP_OK) return false;
    bool same = bytes == strlen(want) && memcmp(data, want, bytes + 1) == 0;
    env_free(&E, data);
    return same;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static uint64_t xorshift(uint64_t *s) {
    *s ^= *s << 13;
    *s ^= *s >> 7;
    return *s ^= *s << 17;
}

static void doubles_read_back_exactly(void) {
    uint64_t s = 42;
    char text[FSIO_NUMBER_TEXT];
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = xorshift(&s);
        double v, back = 0;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v)) continue;
        fsio_format_double(v, text);
        CHECK(fsio_parse_double(text, strlen(text), &back) && memcmp(&v, &back, sizeof v) == 0);
    }
}

static void floats_read_back_exactly(void) {
    uint64_t s = 43;
    char text[FSIO_NUMBER_TEXT];
    for (int i = 0; i < 20000; i++) {
        uint32_t bits = (uint32_t)xorshift(&s);
        float v;
        double back = 0;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v)) continue;
        fsio_format_float(v, text);
        CHECK(strlen(text) <= 15); /* sign, 9 digits, point, e-38 */
        CHECK(fsio_parse_double(text, strlen(text), &back) && (float)back == v);
    }
}

static void numbers_are_short(void) {
    static const struct {
        double v;
        const char *text;
    } cases[] = {{0, "0"},       {0.1, "0.1"}, {1e6, "1000000"}, {1.0 / 3, "0.3333333333333333"},
                 {-2.5, "-2.5"}, {-0.0, "-0"}, {NAN, "nan"},     {-INFINITY, "-inf"}};
    char text[FSIO_NUMBER_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fsio_format_double(cases[i].v, text);
        STREQ(text, cases[i].text);
    }
    fsio_format_float(0.1f, text);
    STREQ(text, "0.1");
}

static void only_decimal_text_is_a_number(void) {
    static const char *const good[] = {"1", "-1", "+1", ".5", "5.", "1e5", "1E-5", "00.1", "1e999"};
    static const char *const wrong[] = {"",     "-",   ".",    "e5",  "1e",   "1e+",
                                        "0x10", "1 ",  " 1",   "1,5", "nan",  "inf",
                                        "1f",   "--1", "1..2", "1_0", "1e5.5"};
    double v;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CASE(good[i]);
        CHECK(fsio_parse_double(good[i], strlen(good[i]), &v));
    }
    CHECK(isinf(v)); /* the last of the good ones */
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CASE(wrong[i]);
        CHECK(!fsio_parse_double(wrong[i], strlen(wrong[i]), &v));
    }
    CHECK(fsio_parse_double("12345", 2, &v) && v == 12); /* the length counts, not a NUL */
    char digits[FSIO_NUMBER_MAX + 1];
    memset(digits, '1', sizeof digits);
    CHECK(!fsio_parse_double(digits, sizeof digits, &v));
}

/* A locale that writes 1,5: an installed one, or one compiled for the test. */
static bool use_decimal_comma(void) {
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ru_RU.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (setlocale(LC_ALL, names[i])) return true;
    char command[500];
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' >&2", folder);
    bool found = system(command) == 0 && setenv("LOCPATH", folder, 1) == 0 &&
                 setlocale(LC_ALL, "de_DE.UTF-8");
    // a localedef that fails leaves its folder too
    snprintf(command, sizeof command, "rm -rf '%s/de_DE.UTF-8'", folder);
    return system(command) == 0 && found;
}

static void a_decimal_comma_in_the_locale_changes_nothing(void) {
    if (!use_decimal_comma()) {
        SKIP("no locale with a decimal comma is installed");
        return;
    }
    char comma[8];
    snprintf(comma, sizeof comma, "%.1f", 0.5);
    STREQ(comma, "0,5"); /* the locale is what this test is about */
    double v = 0;
    char text[FSIO_NUMBER_TEXT];
    CHECK(fsio_parse_double("-1.25e1", 7, &v) && v == -12.5);
    CHECK(!fsio_parse_double("1,25", 4, &v));
    fsio_format_double(1.5e-7, text);
    STREQ(text, "1.5e-07");
    buf b;
    buf_init(&b, &E);
    buf_fixed(&b, 2.5, 2);
    STREQ(buf_str(&b), "2.50");
    buf_free(&b);
    setlocale(LC_ALL, "C");
}

static void utf8_is_checked(void) {
    CHECK(fsio_utf8_len("a", 1) == 1 && fsio_utf8_len("\0", 1) == 1 && fsio_utf8_len("", 0) == 0);
    CHECK(fsio_utf8_len("\xc3\xa9", 2) == 2 && fsio_utf8_len("\xe2\x82\xac", 3) == 3);
    CHECK(fsio_utf8_len("\xf0\x9f\x98\x80", 4) == 4 && fsio_utf8_len("\xf4\x8f\xbf\xbf", 4) == 4);
    CHECK(!fsio_utf8_len("\xc3", 1) && !fsio_utf8_len("\xc3(", 2) && !fsio_utf8_len("\x80", 1));
    CHECK(!fsio_utf8_len("\xc0\x80", 2) && !fsio_utf8_len("\xe0\x80\x80", 3)); /* overlong */
    CHECK(!fsio_utf8_len("\xed\xa0\x80", 3));                                  /* a surrogate */
    CHECK(!fsio_utf8_len("\xf4\x90\x80\x80", 4) && !fsio_utf8_len("\xff", 1));
    CHECK(!fsio_utf8_len("\xe2\x82(", 3) && !fsio_utf8_len("\xf0\x9f\x98", 3));
}

static void buf_grows_and_keeps_its_text(void) {
    buf b;
    buf_init(&b, &E);
    STREQ(buf_str(&b), "");
    for (int i = 0; i < 1000; i++) CHECK(buf_printf(&b, "%d,", i % 10) == MNP_OK);
    CHECK(b.len == 2000 && strlen(buf_str(&b)) == 2000);
    CHECK(memcmp(b.data + 1980, "0,1,2,3,4,5,6,7,8,9,", 20) == 0);
    buf_clear(&b);
    buf_double(&b, 0.1);
    buf_text(&b, " ");
    buf_float(&b, 0.1f);
    buf_append(&b, "\0x", 2);
    CHECK(b.len == 9 && memcmp(b.data, "0.1 0.1\0x", 10) == 0);
    buf_clear(&b);
    buf_fixed(&b, -1.005, 1);
    buf_text(&b, " ");
    buf_fixed(&b, 1e300, 20);
    CHECK(b.len == 5 + 301 + 18);
    buf_free(&b);
}

static void contexts_stand_before_the_error(void) {
    char longest[ENV_ERROR_MAX];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    env_fail(&E, MNP_EIO, "inner %d", 7);
    CHECK(env_context(&E, MNP_EIO, "outer %s", "file") == MNP_EIO);
    STREQ(E.error, "outer file: inner 7");
    CHECK(env_context(&E, MNP_EIO, "%s", E.error) == MNP_EIO); /* its own text as an argument */
    STREQ(E.error, "outer file: inner 7: outer file: inner 7");
    env_fail(&E, MNP_EIO, "%s", longest);
    env_context(&E, MNP_EIO, "a");
    CHECK(strlen(E.error) == ENV_ERROR_MAX - 1 && strncmp(E.error, "a: xxx", 6) == 0);
    for (int room = 0; room < 5; room++) { /* of the inner text only what fits is kept */
        env_fail(&E, MNP_EIO, "inner");
        env_context(&E, MNP_EIO, "%.*s", ENV_ERROR_MAX - 1 - room, longest);
        size_t kept = room > 2 ? (size_t)room : 0;
        CHECK(strlen(E.error) == (size_t)(ENV_ERROR_MAX - 1 - room) + kept);
    }
    E.error[0] = '\0';
}

/* ---- files ----------------------------------------------------------------------------------- */

static void a_file_is_replaced_whole(void) {
    const char *path = PATH("a.txt");
    CHECK(fsio_write(&E, path, "old", 3) == MNP_OK);
    CHECK(file_is(path, "old"));
    CHECK(fsio_write(&E, path, "newer", 5) == MNP_OK);
    CHECK(file_is(path, "newer"));
    CHECK(fsio_write(&E, path, NULL, 0) == MNP_OK);
    CHECK(file_is(path, ""));
    CHECK(files_in_folder() == 1);
    unlink(path);
}

static void a_stream_of_pieces_is_one_file(void) {
    enum { PIECES = 3000, BIG = 200000 };
    const char *path = PATH("stream");
    char *big = env_alloc(&E, BIG, 1, "test");
    memset(big, 'b', BIG);
    fsio_writer w;
    CHECK(fsio_begin(&E, path, &w) == MNP_OK);
    for (int i = 0; i < PIECES; i++)
        CHECK(fsio_append(&w, "0123456789abcdef0123456789", 26) == MNP_OK);
    CHECK(fsio_append(&w, big, BIG) == MNP_OK);
    CHECK(fsio_append(&w, "z", 1) == MNP_OK);
    CHECK(access(path, F_OK) != 0); /* nothing is seen before the end */
    CHECK(fsio_commit(&w) == MNP_OK);
    fsio_abort(&w); /* harmless now */
    char *data = NULL;
    size_t bytes = 0, wrong = 0;
    CHECK(fsio_read(&E, path, 1 << 20, &data, &bytes) == MNP_OK);
    CHECK(bytes == PIECES * 26 + BIG + 1);
    for (size_t i = 0; i < PIECES * 26; i++)
        wrong += data[i] != "0123456789abcdef0123456789"[i % 26];
    for (size_t i = 0; i < BIG; i++) wrong += data[PIECES * 26 + i] != 'b';
    CHECK(wrong == 0 && data[bytes - 1] == 'z' && data[bytes] == '\0');
    env_free(&E, data);
    env_free(&E, big);
    unlink(path);
}

static void an_aborted_stream_leaves_no_trace(void) {
    const char *path = PATH("aborted");
    CHECK(fsio_write(&E, path, "keep", 4) == MNP_OK);
    fsio_writer w;
    CHECK(fsio_begin(&E, path, &w) == MNP_OK);
    CHECK(files_in_folder() == 2);
    fsio_append(&w, "lost", 4);
    fsio_abort(&w);
    CHECK(file_is(path, "keep") && files_in_folder() == 1);
    unlink(path);
}

static void two_writers_of_one_file_do_not_mix(void) {
    const char *path = PATH("both");
    fsio_writer a, b;
    CHECK(fsio_begin(&E, path, &a) == MNP_OK && fsio_begin(&E, path, &b) == MNP_OK);
    fsio_append(&a, "aaaa", 4);
    fsio_append(&b, "bb", 2);
    CHECK(fsio_commit(&a) == MNP_OK && file_is(path, "aaaa"));
    CHECK(fsio_commit(&b) == MNP_OK && file_is(path, "bb"));
    CHECK(files_in_folder() == 1);
    unlink(path);
}

static void links_and_permissions_are_kept(void) {
    const char *path = PATH("target"), *link = PATH("link");
    struct stat st;
    CHECK(fsio_write(&E, path, "1", 1) == MNP_OK);
    CHECK(chmod(path, 0640) == 0 && symlink(path, link) == 0);
    CHECK(fsio_write(&E, link, "22", 2) == MNP_OK);
    CHECK(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0640);
    CHECK(file_is(path, "22"));
    unlink(link);
    unlink(path);
}

static void devices_are_written_through(void) {
    struct stat st;
    CHECK(fsio_write(&E, "/dev/null", "x", 1) == MNP_OK);
    CHECK(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
    if (access("/dev/full", W_OK) != 0) return;
    CHECK(fsio_write(&E, "/dev/full", "x", 1) == MNP_EIO);
    CHECK(strstr(E.error, "/dev/full: cannot write") && strstr(E.error, "disk is full"));
}

static void a_bare_name_is_written_here(void) {
    char here[1000];
    CHECK(getcwd(here, sizeof here) && chdir(folder) == 0);
    CHECK(fsio_write(&E, "bare", "x", 1) == MNP_OK && file_is("bare", "x"));
    CHECK(unlink("bare") == 0 && chdir(here) == 0);
}

static void refusals_name_the_file_and_the_reason(void) {
    char *data;
    size_t bytes;
    CHECK(fsio_read(&E, PATH("none"), 10, &data, &bytes) == MNP_EIO && !data);
    CHECK(strstr(E.error, "/none: cannot open: ") && strstr(E.error, strerror(ENOENT)));
    CHECK(strstr(E.error, "(check the spelling)"));
    CHECK(fsio_read(&E, folder, 10, &data, &bytes) == MNP_EIO && strstr(E.error, "directory"));
    CHECK(fsio_write(&E, folder, "x", 1) == MNP_EIO && strstr(E.error, "directory"));
    CHECK(fsio_write(&E, PATH("no/such"), "x", 1) == MNP_EIO && strstr(E.error, "no/such"));
    CHECK(strstr(E.error, "directories are not created"));

    const char *path = PATH("eleven");
    CHECK(fsio_write(&E, path, "hello world", 11) == MNP_OK);
    CHECK(fsio_read(&E, path, 10, &data, &bytes) == MNP_EFORMAT && !data);
    CHECK(strstr(E.error, "eleven: 11 bytes, more than the 10 allowed"));
    CHECK(fsio_read(&E, path, 11, &data, &bytes) == MNP_OK && bytes == 11);
    env_free(&E, data);
    CHECK(fsio_read(&E, "/dev/zero", 1000, &data, &bytes) == MNP_EFORMAT && !data);
    CHECK(fsio_read(&E, "/proc/self/stat", 1 << 16, &data, &bytes) == MNP_OK && bytes > 10);
    env_free(&E, data);
    unlink(path);
    CHECK(files_in_folder() == 0);
}

/* What could not be written is known without writing, and asking leaves no trace. */
static void asking_before_the_work_changes_nothing(void) {
    const char *path = PATH("asked");
    CHECK(fsio_check(&E, path) == MNP_OK && files_in_folder() == 0);
    CHECK(fsio_write(&E, path, "earlier", 7) == MNP_OK);
    CHECK(fsio_check(&E, path) == MNP_OK && file_is(path, "earlier") && files_in_folder() == 1);
    CHECK(fsio_check(&E, folder) == MNP_EIO && strstr(E.error, strerror(EISDIR)));
    CHECK(fsio_check(&E, PATH("no/such")) == MNP_EIO && strstr(E.error, strerror(ENOENT)));
    CHECK(fsio_check(&E, PATH("asked/under")) == MNP_EIO && strstr(E.error, strerror(ENOTDIR)));
    unlink(path);
    CHECK(fsio_check(&E, "/dev/null") == MNP_OK && fsio_check(&E, "/dev/full") == MNP_OK);
    CHECK(mkfifo(path, 0600) == 0 && fsio_check(&E, path) == MNP_OK); /* nobody reads: no waiting */
    unlink(path);
    CHECK(fsio_check(&E, "/dev/stdout") == MNP_OK);
    int reading = open("/dev/null", O_RDONLY);
    char name[32];
    snprintf(name, sizeof name, "/dev/fd/%d", reading);
    CHECK(fsio_check(&E, name) == MNP_EIO && strstr(E.error, "not open for writing"));
    close(reading);
    CHECK(fsio_check(&E, name) == MNP_EIO && strstr(E.error, "it is closed"));
    CHECK(files_in_folder() == 0);
}

/* The name of a descriptor is written through, also when an unlinked file is behind it: renaming
 * over /dev/stdout would take it from every program of the machine. */
static void a_descriptor_is_never_replaced(void) {
    struct stat before, after;
    CHECK(lstat("/dev/stdout", &before) == 0);
    int saved = dup(STDOUT_FILENO);
    FILE *gone = tmpfile();
    fflush(stdout);
    CHECK(dup2(fileno(gone), STDOUT_FILENO) == STDOUT_FILENO);
    mnp_status status = fsio_write(&E, "/dev/stdout", "through", 7);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    CHECK(status == MNP_OK);
    char text[8] = "";
    CHECK(pread(fileno(gone), text, 7, 0) == 7);
    STREQ(text, "through");
    fclose(gone);
    CHECK(lstat("/dev/stdout", &after) == 0 && after.st_ino == before.st_ino &&
          after.st_mode == before.st_mode);
}

int main(void) {
    env_init(&E);
    const char *base = getenv("TEST_TMP");
    snprintf(folder, sizeof folder, "%s/fsio-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) return 1;
    RUN(doubles_read_back_exactly);
    RUN(floats_read_back_exactly);
    RUN(numbers_are_short);
    RUN(only_decimal_text_is_a_number);
    RUN(a_decimal_comma_in_the_locale_changes_nothing);
    RUN(utf8_is_checked);
    RUN(buf_grows_and_keeps_its_text);
    RUN(contexts_stand_before_the_error);
    RUN(a_file_is_replaced_whole);
    RUN(a_stream_of_pieces_is_one_file);
    RUN(an_aborted_stream_leaves_no_trace);
    RUN(two_writers_of_one_file_do_not_mix);
    RUN(links_and_permissions_are_kept);
    RUN(devices_are_written_through);
    RUN(a_bare_name_is_written_here);
    RUN(refusals_name_the_file_and_the_reason);
    RUN(asking_before_the_work_changes_nothing);
    rmdir(folder);
    RUN(a_descriptor_is_never_replaced);
    return check_done();
}
