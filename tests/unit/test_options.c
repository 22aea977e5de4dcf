/* test_options.c: option tables (parse, print, help, errors) and the text helpers under them. */
#include "base/options.h"

#include <locale.h>

#include "check.h"
#include "options_check.h"
#include "util/text.h"

typedef struct toy {
    int64_t steps;
    double lr;
    bool clip;
    int transition;
    option_range x;
    option_span context;
} toy;

static const option_def toy_table[] = {
    OPTION_INT(toy, steps, "7", 1, 64, "number of transitions"),
    OPTION_REAL(toy, lr, "1e-3", 0, 1, "learning rate"),
    OPTION_BOOL(toy, clip, "off", "clip gradients"),
    OPTION_ENUM(toy, transition, "rqs", "affine|rqs|copula", "kind of step"),
    OPTION_RANGE(toy, x, "-2:2", 0, 0, "domain of x"),
    OPTION_SPAN(toy, context, "2:50", 0, 1e6, "context size"),
};

typedef struct extra {
    int64_t seed;
} extra;

static const option_def extra_table[] = {OPTION_INT(extra, seed, "0", 0, 0, "random seed")};

typedef struct fixture {
    env e;
    toy t;
    extra x;
    option_view views[2];
} fixture;

static void setup(fixture *f) {
    memset(f, 0, sizeof *f);
    env_init(&f->e);
    f->views[0] = (option_view){toy_table, OPTION_COUNT(toy_table), &f->t};
    f->views[1] = (option_view){extra_table, OPTION_COUNT(extra_table), &f->x};
    CHECK(options_check(&f->e, f->views, 2) == MNP_OK);
}

static void defaults_and_lists(void) {
    fixture f;
    setup(&f);
    CHECK(f.t.steps == 7 && f.t.lr == 1e-3 && !f.t.clip && f.t.transition == 1);
    CHECK(f.t.x.lo == -2 && f.t.x.hi == 2 && f.t.context.lo == 2 && f.t.context.hi == 50);
    CHECK(options_parse(&f.e, f.views, 2,
                        " steps=5\tlr=2.5e-4 clip=on  transition=affine seed=1e6\n"
                        "x=0:1.5 context=8 steps=6 ") == MNP_OK);
    CHECK(f.t.steps == 6 && f.t.lr == 2.5e-4 && f.t.clip && f.t.transition == 0);
    CHECK(f.x.seed == 1000000 && f.t.x.hi == 1.5 && f.t.context.lo == 8 && f.t.context.hi == 8);
    CHECK(options_parse(&f.e, f.views, 2, "") == MNP_OK);
    CHECK(options_find(f.views, 2, "seed") == &extra_table[0]);
    CHECK(options_find(f.views, 2, "sed") == NULL);
}

static void errors_say_what_to_do(void) {
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"stpes=3", "there is no option stpes; did you mean steps?"},
        {"trans=rqs", "there is no option trans; did you mean transition?"},
        {"zzzzzz=1", "there are: steps, lr, clip, transition, x, context, seed"},
        {"steps=65", "steps=65 is not in 1 .. 64"},
        {"steps=2.5", "steps=2.5: a whole number is wanted"},
        {"steps=", "steps=: a whole number is wanted"},
        {"steps=99999999999999999999", "too large"},
        {"lr=-1e-9", "lr=-1e-9 is not in 0 .. 1"},
        {"lr=1e999", "finite"},
        {"lr=nan", "finite"},
        {"x=inf", "finite"},
        {"lr=0,5", "lr=0,5: a number is wanted"},
        {"lr=0x1p-3", "a number is wanted"},
        {"clip=maybe", "on or off"},
        {"transition=affin", "is not one of affine|rqs|copula; did you mean affine?"},
        {"transition=", "is not one of affine|rqs|copula"},
        {"x=2:1", "lower end is above"},
        {"x=1:", "a number is wanted"},
        {"context=-1:3", "context=-1 is not in 0 .. 1000000"},
        {"steps", "name=value is wanted, not \"steps\""},
        {"=3", "name=value is wanted"},
        {"lr=\"0.1\"", "a number is wanted"},
        {"a_name_that_is_longer_than_any_name_of_an_option_may_be=1", "there is no option"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        setup(&f);
        toy before = f.t;
        CASE(cases[i].text);
        CHECK(options_parse(&f.e, f.views, 2, cases[i].text) == MNP_EINVAL);
        if (!strstr(f.e.error, cases[i].error)) STREQ(f.e.error, cases[i].error);
        CHECK(memcmp(&before, &f.t, sizeof before) == 0);
    }
    fixture f;
    setup(&f);
    char longest[OPTION_VALUE_MAX + 32] = "steps=";
    memset(longest + 6, '1', OPTION_VALUE_MAX);
    CHECK(options_parse(&f.e, f.views, 2, longest) == MNP_EINVAL);
    CHECK(strstr(f.e.error, "longer than 4095") != NULL);
}

static void print_round_trips(void) {
    static const char *const texts[] = {
        "steps=7 lr=0.001 clip=off transition=rqs x=-2:2 context=2:50 seed=0",
        "steps=64 lr=0.1 clip=on transition=copula x=-0.3333333333333333:1e-300 "
        "context=0:1000000 seed=9007199254740993",
        "steps=1 lr=0.30000000000000004 clip=on transition=affine "
        "x=5:1.7976931348623157e+308 context=3:3 seed=12",
        "steps=1 lr=0 clip=on transition=affine x=-5e-300:0 context=3:3 seed=12",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fixture f;
        setup(&f);
        buf out;
        buf_init(&out, &f.e);
        CHECK(options_parse(&f.e, f.views, 2, texts[i]) == MNP_OK);
        CHECK(options_print(&out, f.views, 2) == MNP_OK);
        STREQ(buf_str(&out), texts[i]);
        fixture g;
        setup(&g);
        CHECK(options_parse(&g.e, g.views, 2, buf_str(&out)) == MNP_OK);
        CHECK(memcmp(&f.t, &g.t, sizeof f.t) == 0 && f.x.seed == g.x.seed);
        buf_free(&out);
    }
}

static void help_comes_from_the_table(void) {
    fixture f;
    setup(&f);
    buf out;
    buf_init(&out, &f.e);
    CHECK(options_help(&out, f.views, 2) == MNP_OK);
    const char *help = buf_str(&out);
    CHECK(strstr(help, "  steps=INT               number of transitions, 1 .. 64 [7]\n") != NULL);
    CHECK(strstr(help, "kind of step: affine, rqs, copula [rqs]\n") != NULL);
    CHECK(strstr(help, "domain of x [-2:2]\n") != NULL);
    buf_free(&out);
}

static void broken_tables_are_found(void) {
    env e;
    env_init(&e);
    toy t;
    memset(&t, 0, sizeof t);
    option_def bad[] = {
        {"Bad name", OPTION_TYPE_INT, "1", 0, 0, NULL, "h", offsetof(toy, steps), 8},
        {"steps", OPTION_TYPE_INT, "1", 0, 0, NULL, "h", offsetof(toy, clip), 1},
        {"steps", OPTION_TYPE_INT, "0", 1, 9, NULL, "h", offsetof(toy, steps), 8},
        {"steps", OPTION_TYPE_INT, "1", 0, 0, NULL, "", offsetof(toy, steps), 8},
        {"kind", OPTION_TYPE_ENUM, "a", 0, 0, NULL, "h", offsetof(toy, transition), sizeof(int)},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        option_view v = {&bad[i], 1, &t};
        CHECK(options_check(&e, &v, 1) == MNP_EINVAL);
    }
    option_view twice[2] = {{toy_table, 1, &t}, {toy_table, 1, &t}};
    option_def copy = toy_table[0];
    twice[1].defs = &copy;
    CHECK(options_check(&e, twice, 2) == MNP_EINVAL);
    CHECK(strstr(e.error, "two options steps") != NULL);
}

static void numbers_parse_whole(void) {
    int64_t i = 5;
    uint64_t u = 5;
    double d = 5;
    CHECK(text_parse_int64("-9223372036854775808", &i) == TEXT_OK && i == INT64_MIN);
    CHECK(text_parse_int64("9223372036854775807", &i) == TEXT_OK && i == INT64_MAX);
    CHECK(text_parse_int64("9223372036854775808", &i) == TEXT_RANGE && i == INT64_MAX);
    CHECK(text_parse_int64("+12", &i) == TEXT_OK && i == 12);
    CHECK(text_parse_int64("2e3", &i) == TEXT_OK && i == 2000);
    CHECK(text_parse_int64("1e300", &i) == TEXT_RANGE);
    static const char *const no[] = {"", "-", "1 ", " 1", "1x", "--1", "+-1", "1.5", "0x10", "nan"};
    for (size_t k = 0; k < sizeof no / sizeof *no; k++) {
        CASE(no[k]);
        CHECK(text_parse_int64(no[k], &i) == TEXT_SYNTAX && i == 2000);
    }
    CASE(NULL);
    CHECK(text_parse_uint64("18446744073709551615", &u) == TEXT_OK && u == UINT64_MAX);
    CHECK(text_parse_uint64("18446744073709551616", &u) == TEXT_RANGE);
    CHECK(text_parse_uint64("-1", &u) == TEXT_SYNTAX);
    CHECK(text_parse_double("-1.5e-3", &d) == TEXT_OK && d == -1.5e-3);
    CHECK(text_parse_double("-inf", &d) == TEXT_OK && isinf(d) && d < 0);
    CHECK(text_parse_double("nan", &d) == TEXT_OK && isnan(d));
    CHECK(text_parse_double("1e400", &d) == TEXT_RANGE);
    CHECK(text_parse_double("1,5", &d) == TEXT_SYNTAX);
    CHECK(text_parse_double("", &d) == TEXT_SYNTAX);
    bool b = false;
    CHECK(text_parse_bool("yes", &b) == TEXT_OK && b);
    CHECK(text_parse_bool("0", &b) == TEXT_OK && !b);
    CHECK(text_parse_bool("TRUE", &b) == TEXT_SYNTAX);
}

static void numbers_for_people(void) {
    char t[TEXT_NUMBER];
    STREQ(text_count(t, 0), "0");
    STREQ(text_count(t, 950), "950");
    STREQ(text_count(t, 999.9), "1.00k");
    STREQ(text_count(t, 12345), "12.3k");
    STREQ(text_count(t, -1.5e6), "-1.50M");
    STREQ(text_count(t, 3.14159), "3.14");
    STREQ(text_count(t, 999999), "1.00M");
    STREQ(text_count(t, NAN), "nan");
    STREQ(text_count(t, 1e300), "huge");
    STREQ(text_bytes(t, 512), "512 B");
    STREQ(text_bytes(t, 12.34e6), "12.3 MB");
    STREQ(text_time(t, 0.0124), "12 ms");
    STREQ(text_time(t, 0.9999), "1.00 s");
    STREQ(text_time(t, 12.34), "12.3 s");
    STREQ(text_time(t, 59.96), "1:00");
    STREQ(text_time(t, 83), "1:23");
    STREQ(text_time(t, 7384.4), "2:03:04");
    STREQ(text_time(t, -1), "?");
    STREQ(text_time(t, NAN), "?");
}

static void names_are_near(void) {
    CHECK(text_distance("", "") == 0);
    CHECK(text_distance("abc", "") == 3);
    CHECK(text_distance("kitten", "sitting") == 3);
    CHECK(text_distance("batch", "bacth") == 1);
    CHECK(text_distance("flaw", "lawn") == 2);
    char longer[200];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    CHECK(text_distance(longer, "x") == 62);
    text_nearest n = text_nearest_to("lerning_rate");
    text_nearest_try(&n, "batch");
    text_nearest_try(&n, "learning_rate");
    text_nearest_try(&n, "warming_rate");
    STREQ(n.best, "learning_rate");
    n = text_nearest_to("foo");
    text_nearest_try(&n, "bar");
    CHECK(!*n.best);
    char said[TEXT_NAMES];
    STREQ(text_meant(said, &n, "--"), "");
    STREQ(text_meant_or_all(said, &n), "; there are: bar");
    text_nearest_choices(&n, "baz|fooo");
    STREQ(text_meant(said, &n, "--"), "; did you mean --fooo?");
    STREQ(text_meant_or_all(said, &n), "; did you mean fooo?");
    n = text_nearest_to("nothing");
    for (int k = 0; k < 100; k++) text_nearest_try(&n, "a_long_name_of_some_option");
    CHECK(strlen(text_meant_or_all(said, &n)) < sizeof said && strlen(said) > 400);
}

/* With a comma locale, where the machine has one, nothing changes. */
static void locale_does_not_matter(void) {
    bool comma = setlocale(LC_ALL, "de_DE.UTF-8") || setlocale(LC_ALL, "fr_FR.UTF-8");
    fixture f;
    setup(&f);
    buf out;
    buf_init(&out, &f.e);
    CHECK(options_parse(&f.e, f.views, 2, "lr=0.25") == MNP_OK && f.t.lr == 0.25);
    CHECK(options_print(&out, f.views, 1) == MNP_OK);
    CHECK(strstr(buf_str(&out), "lr=0.25 ") != NULL);
    buf_free(&out);
    if (comma) setlocale(LC_ALL, "C");
}

static void *no_memory(void *user, size_t bytes, size_t align) {
    (void)user, (void)bytes, (void)align;
    return NULL;
}

static void memory_that_is_not_there_is_told_in_words(void) {
    env e;
    env_init(&e);
    e.allocator.alloc = no_memory;
    CHECK(!env_alloc(&e, 10, 4, "a list"));
    STREQ(e.error, "out of memory: 40 B for a list could not be had");
    CHECK(!env_alloc(&e, 3 << 20, 4, "the arena"));
    STREQ(e.error, "out of memory: 12.6 MB for the arena could not be had");
    CHECK(!env_alloc(&e, SIZE_MAX / 2, 4, "a table"));
    STREQ(e.error, "out of memory: far too much for a table could not be had");
}

int main(void) {
    RUN(defaults_and_lists);
    RUN(errors_say_what_to_do);
    RUN(print_round_trips);
    RUN(help_comes_from_the_table);
    RUN(broken_tables_are_found);
    RUN(numbers_parse_whole);
    RUN(numbers_for_people);
    RUN(names_are_near);
    RUN(locale_does_not_matter);
    RUN(memory_that_is_not_there_is_told_in_words);
    return check_done();
}
