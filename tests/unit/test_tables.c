/* test_tables.c: tables as people have them: row numbers, keys of several columns, categories,
 * dates, constant columns, one curve in a row, several outputs; what is refused and with which
 * words; the split in three; what a model keeps of its table, and later tables read by that. */
#include <unistd.h>

#include "check.h"
#include "data/asked.h"
#include "scarce.h"
#include "util/date.h"
#include "util/fsio.h"

static env E;
static char path[200];

static mnp_status open_text(const char *text, data_source s, dataset **d) {
    FILE *f = fopen(path, "w");
    CHECK(f && fwrite(text, 1, strlen(text), f) == strlen(text) && fclose(f) == 0);
    mnp_status status = dataset_open(&E, NULL, path, &s, d);
    unlink(path);
    return status;
}

static dataset *read_text(const char *text, data_source s) {
    dataset *d = NULL;
    CHECK(open_text(text, s, &d) == MNP_OK);
    if (!d) {
        fprintf(stderr, "%s\n%s", E.error, text);
        exit(1);
    }
    return d;
}

static bool has(const char *in, const char *text) {
    if (in && strstr(in, text)) return true;
    fprintf(stderr, "not there: \"%s\"\n%s\n", text, in ? in : "(nothing)");
    return false;
}

static void refused(const char *text, data_source s, const char *why) {
    dataset *d = NULL;
    CASE(text);
    CHECK(open_text(text, s, &d) != MNP_OK && !d);
    CHECK(has(E.error, why));
}

static const char *note(const dataset *d, const char *key) {
    for (int k = 0; k < d->n_notes; k++)
        if (strcmp(d->notes[k].key, key) == 0) return d->notes[k].value;
    return NULL;
}

static const data_source whole = {.split = DATA_TRAIN, .holdout = -1};

/* ---- which column is what -------------------------------------------------------------------- */

static void row_numbers_are_dropped(void) {
    dataset *d = read_text("\"\",subject,weight,day\n1,a,5,0\n2,a,6,1\n3,b,5,0\n4,b,7,1\n", whole);
    CHECK(d->x_dim == 1 && d->functions == 2);
    STREQ(d->x_names[0], "day");
    STREQ(d->y_name, "weight");
    CHECK(has(d->report, "not used: \"\" (has no name)\n"));
    dataset_destroy(d);
    d = read_text("X,id,when,y\n1,a,0,5\n2,a,1,6\n3,b,0,5\n4,b,1,7\n", whole);
    CHECK(d->x_dim == 1 && has(d->report, "not used: \"X\" (counts the rows)\n"));
    dataset_destroy(d);
    /* from 0 as well; not where a row is left out, nor where it begins again with each curve */
    d = read_text("n,id,when,y\n0,a,0,5\n1,a,1,6\n2,b,0,5\n3,b,1,7\n", whole);
    CHECK(d->x_dim == 1);
    dataset_destroy(d);
    d = read_text("n,id,when,y\n1,a,0,5\n2,a,1,6\n4,b,0,5\n5,b,1,7\n", whole);
    CHECK(d->x_dim == 2);
    dataset_destroy(d);
    d = read_text("n,id,z,y\n1,a,9,5\n2,a,3,6\n1,b,9,5\n2,b,4,7\n", whole);
    CHECK(d->x_dim == 2);
    dataset_destroy(d);
    /* it is the time of a single curve, stays where there is no other x, and where it is named */
    d = read_text("n,y\n1,5\n2,6\n3,7\n", whole);
    CHECK(d->x_dim == 1 && d->points == 3);
    dataset_destroy(d);
    d = read_text("id,n,y\na,1,5\na,2,6\nb,3,7\nb,4,7\n", whole);
    CHECK(d->x_dim == 1);
    STREQ(d->x_names[0], "n");
    dataset_destroy(d);
    data_source s = whole;
    s.x_columns = "n,when";
    d = read_text("n,id,when,y\n1,a,0,5\n2,a,1,6\n3,b,0,5\n4,b,1,7\n", s);
    CHECK(d->x_dim == 2);
    dataset_destroy(d);
}

/* Of two columns the one that is x, whatever their order. */
static void x_is_told_from_y(void) {
    static const struct {
        const char *text, *x, *why;
    } cases[] = {
        {"subject,reaction,days\na,5,0\na,4,1\nb,7,0\nb,9,1\n", "days",
         "y \"reaction\" (guessed: the other one is named like an input)"},
        {"days,reaction,subject\n0,5.5,3\n1,4,3\n0,7,4\n1,9,4\n", "days", "group \"subject\""},
        {"height,age,Seed\n4.5,3,301\n9,5,301\n4,3,303\n8.5,5,303\n", "age",
         "group \"Seed\" (guessed: its whole numbers repeat)"},
        {"w,temp,when\na,5,2024-01-01\na,4,2024-01-02\nb,7,2024-01-01\nb,9,2024-01-02\n", "when",
         "(guessed: the other one holds dates)"},
        {"w,temp,step\na,5,1\na,4,2\na,6,3\nb,7,1\nb,9,2\nb,1,3\n", "step",
         "(guessed: the other one increases within every curve)"},
        {"w,step,temp\na,1,5\na,2,4\na,3,6\nb,1,7\nb,2,9\nb,3,1\n", "step",
         "(guessed: the last column)"},
        {"w,p,q\na,1,5\na,2,6\nb,1,7\nb,2,9\n", "p", "y \"q\" (guessed: the last column)"},
        {"visit_score,dose,who\n5,1,a\n4,2,a\n7,1,b\n9,2,b\n", "dose",
         "y \"visit_score\" (guessed: the other one increases within every curve)"},
        {"temp,age-yrs,who\n5,1,a\n4,2,a\n7,3,b\n9,2,b\n", "age-yrs",
         "y \"temp\" (guessed: the other one is named like an input)"},
        {"day_care,p,q\n1,1,5\n1,2,6\n2,1.5,7\n2,2.5,9\n", "p",
         "group \"day_care\" (guessed: its whole numbers repeat)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CASE(cases[i].text);
        dataset *d = read_text(cases[i].text, whole);
        CHECK(d->x_dim == 1);
        STREQ(d->x_names[0], cases[i].x);
        CHECK(has(d->report, cases[i].why));
        dataset_destroy(d);
    }
}

static void the_group_is_the_finest(void) {
    static const char co2[] = "Plant,Type,conc,uptake\nQ1,Q,95,16\nQ1,Q,175,30\nQ2,Q,95,14\n"
                              "Q2,Q,175,28\nM1,M,95,10\nM1,M,175,19\n";
    data_source s = whole;
    s.y_column = "uptake";
    dataset *d = read_text(co2, s);
    CHECK(d->functions == 3 && d->x_dim == 3);
    STREQ(d->function_name, "Plant");
    dataset_destroy(d);
    /* numbers within words; but not numbers that are the same in every curve, in any order */
    s.y_column = "w";
    d = read_text("diet,chick,t,w\nc,1,0,4\nc,1,1,5\nc,2,0,4\nc,2,1,6\no,3,0,4\no,3,1,7\n", s);
    STREQ(d->function_name, "chick");
    dataset_destroy(d);
    d = read_text("who,trial,w\na,1,4\nb,1,5\na,2,4\nb,2,6\na,3,4\nb,3,7\n", s);
    STREQ(d->function_name, "who");
    dataset_destroy(d);
    /* a number that each has for its own is a covariate, whichever column comes first */
    s.y_column = "y";
    d = read_text("name,t,weight,y\na,0,70,4\na,1,70,5\nb,0,81,4\nb,1,81,6\nc,0,65,4\nc,1,65,7\n",
                  s);
    STREQ(d->function_name, "name");
    CHECK(d->x_dim == 2);
    dataset_destroy(d);
    /* of numbers that are finer than words the finest */
    d = read_text("diet,pen,chick,t,y\nc,1,11,0,4\nc,1,11,1,5\nc,1,12,0,4\nc,1,12,1,6\n"
                  "c,2,13,0,4\nc,2,13,1,6\no,3,14,0,4\no,3,14,1,7\n",
                  s);
    STREQ(d->function_name, "chick");
    dataset_destroy(d);
}

/* The curve's number in the last column, after times that repeat as whole numbers too. */
static void a_group_that_comes_last(void) {
    static const char *const times[] = {"time_h", "Time (days)", "delay"};
    for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
        char text[256];
        CASE(times[k]);
        snprintf(text, sizeof text,
                 "%s,conc,subj\n0,4.5,1\n1,3.5,1\n2,2.5,1\n0,4,2\n1,3,2\n2,2,2\n0,5,3\n1,4,3\n"
                 "2,3.1,3\n",
                 times[k]);
        dataset *d = read_text(text, whole);
        STREQ(d->function_name, "subj");
        STREQ(d->y_name, "conc");
        STREQ(d->x_names[0], times[k]);
        dataset_destroy(d);
    }
    CASE(NULL);
}

static void columns_must_be_named(void) {
    refused("weight,Time,Chick,Diet\n42,0,1,1\n51,2,1,1\n42,0,2,1\n60,2,2,1\n42,0,3,2\n50,2,3,2\n",
            whole,
            "which column is the output must be said; add: --group Chick --x Time --y weight");
    refused("Plant,Type,conc,uptake\nQ1,Q,95,16\nQ1,Q,175,30\nM1,M,95,10\nM1,M,175,19\n", whole,
            "add: --group Plant --x conc --y uptake");
    refused("soil,day,plant,height\n7,1,p,16\n7,2,p,30\n9,1,q,10\n9,2,q,19\n", whole,
            "add: --group plant --x day --y height");
    refused("id,t,dose,conc\n1,1,5,BLQ\n1,2,5,3.5\n1,3,5,2\n2,1,9,3\n2,2,9,4\n2,3,9,BLQ\n", whole,
            "add: --group id --x t --y conc");
    refused("id,a b,c,d e\n1,1,2,3\n1,2,4,3.5\n2,1,2,3\n2,2,9,4\n", whole,
            "add: --group id --x 'a b' --y 'd e'");
    refused("id,day's,c,cow's $(milk)\n1,1,2,3\n1,2,4,3.5\n2,1,2,3\n2,2,9,4\n", whole,
            "add: --group id --x 'day'\\''s' --y 'cow'\\''s $(milk)'");
    refused("boy,age2,age3,age4,age5\na,80,90,95,99\nb,82,91,96,99\n", whole,
            "this looks like a table with one curve in a row; add: --wide");
    refused("PK\x03\x04\x14", whole, "this is a spreadsheet or another archive");
    refused("\xd0\xcf\x11\xe0\xa1\xb1", whole, "save the sheet as CSV");
}

/* Dates that no one can read for sure are no categories. */
static void dates_in_another_order(void) {
    data_source s = whole;
    refused("id,day,y\na,03/01/2024,1\na,03/02/2024,2\nb,03/01/2024,1\nb,03/02/2024,3\n", s,
            ":2: column \"day\": \"03/01/2024\" looks like a date or a time (write dates as "
            "2024-03-01");
    refused("id,at,y\na,08:30,1\na,09:30,2\nb,08:30,1\nb,09:30,3\n", s, "\"08:30\" looks like");
    refused("id,at,y\na,2:30,1\na,3:30,2\nb,2:30,1\nb,3:30,3\n", s,
            "a letter in front of each keeps the column as a category");
}

/* Dilutions and versions look a little like times and dates. */
static void ratios_and_versions_are_categories(void) {
    static const struct {
        const char *text, *levels;
    } cases[] = {
        {"id,mix,t,y\na,1:10,0,1\na,1:10,1,2\nb,1:20,0,1\nb,1:20,1,3\n", "1:10, 1:20"},
        {"id,mix,t,y\na,1.0.2,0,1\na,1.0.2,1,2\nb,1.0.3,0,1\nb,1.0.3,1,3\n", "1.0.2, 1.0.3"},
        {"id,mix,t,y\na,r2:30,0,1\na,r2:30,1,2\nb,r3:30,0,1\nb,r3:30,1,3\n", "r2:30, r3:30"},
    };
    data_source s = whole;
    s.function_column = "id", s.y_column = "y";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[64];
        CASE(cases[i].text);
        snprintf(expected, sizeof expected, "mix is a category (%s)", cases[i].levels);
        dataset *d = read_text(cases[i].text, s);
        CHECK(d->x_dim == 3 && has(d->report, expected));
        dataset_destroy(d);
    }
    CASE(NULL);
}

/* 99999 where a value is missing, as some programs write it. */
static void a_value_far_from_all_others(void) {
    data_source s = whole;
    dataset *d =
        read_text("id,t,y\na,0,1\na,1,2\nb,0,3\nb,1,4\nc,0,99999\nc,1,6\nc,2,7\nc,3,8\n", s);
    CHECK(has(d->warnings, ":6: y is 99999, far from all others (half of them lie from 2 to 7): "
                           "is it a slip?"));
    dataset_destroy(d);
    d = read_text("id,t,y\na,0,1\na,1,2\nb,0,3\nb,1,4\nc,0,300\nc,1,6\nc,2,7\nc,3,8\n", s);
    CHECK(!d->warnings || !strstr(d->warnings, "far from"));
    dataset_destroy(d);
    d = read_text("id,t,y\na,0,1\na,1,2\nb,0,3\nb,1,-9999\nc,0,4\nc,1,-9999\nc,2,7\nc,3,8\nc,4,9\n"
                  "c,5,9.5\nc,6,8.5\nc,7,7.5\n",
                  s);
    CHECK(has(d->warnings, ":5: y is -9999, far from all others (half of them lie from 1 to 8), 2 "
                           "times: does it stand for a missing value?"));
    dataset_destroy(d);
}

/* Growth by factors goes as far, step by step: no slip, and its logarithm is what to look at. */
static void growth_by_factors(void) {
    data_source s = whole;
    const char *text = "id,t,y\na,0,1\na,1,2\na,2,4\na,3,8\na,4,9\na,5,10\n"
                       "b,0,1\nb,1,5\nb,2,25\nb,3,125\nb,4,625\nb,5,3125\n";
    dataset *d = read_text(text, s);
    CHECK(d->warnings && !strstr(d->warnings, "far from"));
    CHECK(has(d->warnings, "y is above 0 everywhere and at most 391 times its median: on a "
                           "logarithmic scale it may be easier to forecast (the average "
                           "of mixed models tries such scales itself; for other models add"));
    dataset_destroy(d);
}

/* Curves one after the other, and no column that says so. */
static void curves_without_a_group(void) {
    dataset *d = read_text("t,y\n0,1\n1,2\n2,4\n0,2\n1,3\n2,3\n0,1\n1,2\n2,3\n", whole);
    CHECK(has(d->report, "note: t begins anew 2 times: if these are 3 curves, add a column that "
                         "numbers them\n"));
    dataset_destroy(d);
    d = read_text("t,y\n3,1\n1,2\n4,4\n0,2\n2,3\n", whole); /* in no order */
    CHECK(!strstr(d->report, "begins anew"));
    dataset_destroy(d);
}

/* Plots are numbered anew at every site, and time begins anew with each. */
static void a_key_that_is_too_short(void) {
    data_source s = whole;
    const char *note = "note: \"plot\" may tell curves apart together with \"site\": then add "
                       "--group site,plot\n";
    const char *text = "site,plot,t,y\nN,1,0,1\nN,1,1,2\nN,2,0,2\nN,2,1,3\n"
                       "S,1,0,1\nS,1,1,2\nS,2,0,2\nS,2,1,3\n";
    dataset *d = read_text(text, s);
    STREQ(d->function_name, "site");
    CHECK(has(d->report, note));
    dataset_destroy(d);
    s.function_column = "site"; /* said, not guessed */
    d = read_text(text, s);
    CHECK(!strstr(d->report, "note: \"plot\""));
    dataset_destroy(d);
    s.function_column = NULL; /* a dose that changes with time is an input */
    d = read_text("site,dose,t,y\nN,1,0,1\nN,1,1,2\nN,2,2,2\nN,2,3,3\n"
                  "S,1,0,1\nS,1,1,2\nS,2,2,2\nS,2,3,3\n",
                  s);
    CHECK(!strstr(d->report, "may tell curves apart"));
    dataset_destroy(d);
}

/* ---- keys of several columns ----------------------------------------------------------------- */

static void several_columns_make_a_key(void) {
    data_source s = whole;
    s.function_column = "farm,cow";
    dataset *d = read_text("farm,cow,week,y\na,1,0,1\na,2,0,2\nb,1,0,3\na,1,1,4\na,2,1,5\nb,1,1,6\n"
                           "b,,1,6\n",
                           s);
    CHECK(d->functions == 3 && d->points == 6 && d->x_dim == 1);
    STREQ(d->ids[0], "a/1");
    STREQ(d->ids[2], "b/1");
    STREQ(d->function_name, "farm/cow");
    CHECK(d->y[0] == 1 && d->y[1] == 4 && d->y[2] == 2);
    CHECK(has(d->report, "1 row without a curve's name"));
    dataset_destroy(d);
    /* no two keys meet */
    d = read_text("farm,cow,week,y\nx/y,z,0,1\nx,y/z,0,2\nx/y,z,1,3\nx,y/z,1,4\n", s);
    CHECK(d->functions == 2);
    dataset_destroy(d);
    s.function_column = "farm,farm";
    refused("farm,cow,week,y\na,1,0,1\n", s, "\"farm\" is named twice, now as the group");
}

/* ---- categories ------------------------------------------------------------------------------ */

static void text_is_a_category(void) {
    data_source s = whole;
    s.function_column = "id", s.x_columns = "soil,t", s.y_column = "y";
    dataset *d = read_text("id,soil,t,y\n1,sand,0,1\n1,clay,1,2\n2,10,0,3\n2,sand,1,4\n2,,2,4\n"
                           "2,9,2,5\n3,sand,1,1\n3,clay,2,1\n",
                           s);
    /* numbers by value, then words */
    static const char *const names[] = {"soil=9", "soil=10", "soil=clay", "soil=sand", "t"};
    const float first[] = {0, 0, 0, 1, 0}, last[] = {1, 0, 0, 0, 2};
    CHECK(d->x_dim == 5 && d->functions == 3);
    for (int k = 0; k < 5; k++) STREQ(d->x_names[k], names[k]);
    CHECK(memcmp(d->x, first, sizeof first) == 0);
    CHECK(memcmp(d->x + (size_t)(d->start[2] - 1) * 5, last, sizeof last) == 0);
    CHECK(has(d->report, "soil is a category (9, 10, clay, sand)"));
    CHECK(has(d->report, "1 row without x"));
    dataset_destroy(d);

    char many[4000];
    size_t used = (size_t)snprintf(many, sizeof many, "id,soil,t,y\n");
    for (int i = 0; i < 65; i++)
        used += (size_t)snprintf(many + used, sizeof many - used, "1,kind%d,%d,1\n", i, i);
    refused(many, s, "has 65 different texts; a category has at most 64");
    /* a slip among numbers is an error, not a category */
    s.x_columns = "t";
    refused("id,t,y\n1,0,1\n1,O,2\n1,2,3\n", s, ":3: column \"t\": \"O\" is not a number");
}

static void constant_columns_are_filled(void) {
    data_source s = whole;
    s.function_column = "id", s.x_columns = "t,dose,sex", s.y_column = "y";
    dataset *d = read_text(
        "id,t,dose,sex,y\na,0,5,f,1\na,1,,,2\nb,0,,,3\nb,1,7,m,4\nc,0,,f,1\nc,1,,f,2\n", s);
    const float want[] = {0, 5, 1, 0, 1, 5, 1, 0, 0, 7, 0, 1, 1, 7, 0, 1};
    CHECK(d->functions == 2 && d->x_dim == 4); /* c has no dose */
    CHECK(memcmp(d->x, want, sizeof want) == 0);
    CHECK(has(d->report, "filled: 4 empty cells with the value that is constant in the curve"));
    CHECK(has(d->report, "2 rows without x"));
    dataset_destroy(d);
    /* one that changes is not filled; neither is x where nothing else changes */
    d = read_text("id,t,dose,sex,y\na,0,5,f,1\na,1,6,f,2\na,2,,f,3\nb,0,7,f,4\nb,1,7,f,4\n", s);
    CHECK(d->points == 4 && !strstr(d->report, "filled"));
    dataset_destroy(d);
    s.x_columns = "t";
    d = read_text("id,t,y\na,0,1\na,,2\na,0,3\nb,1,1\nb,1,2\n", s);
    CHECK(d->points == 4);
    dataset_destroy(d);
}

/* ---- dates ----------------------------------------------------------------------------------- */

static void dates_are_numbers(void) {
    dataset *d = read_text(
        "id,day,y\na,2024-02-28,1\na,2024-03-01,2\nb,1969-12-31,3\nb,1970-01-02,4\n", whole);
    double day;
    CHECK(date_parse("2024-02-28", &day) == DATE_DAY);
    CHECK(d->roles->x[0].unit == ROLE_DAYS);
    CHECK((double)d->x[0] + d->x_origin[0] == day && (double)d->x[1] + d->x_origin[0] == day + 2);
    CHECK((double)d->x[2] + d->x_origin[0] == -1 && (double)d->x[3] + d->x_origin[0] == 1);
    CHECK(has(d->report, "day from 1969-12-31 to 2024-03-01"));
    dataset_destroy(d);
    /* one time of day makes the whole column seconds */
    d = read_text("id,at,y\na,2024-02-28,1\na,2024-02-28T12:00,2\na,2024-02-29 00:00:30,3\n",
                  whole);
    CHECK(d->roles->x[0].unit == ROLE_SECONDS);
    CHECK(d->x[1] - d->x[0] == 43200 && d->x[2] - d->x[0] == 86430);
    CHECK(has(d->report, "at from 2024-02-28T00:00:00 to 2024-02-29T00:00:30"));
    CHECK(!strstr(d->report, "is counted from"));
    dataset_destroy(d);
    refused("id,day,y\na,2024-02-28,1\na,2024-02-30,2\na,2024-03-01,2\n", whole,
            ":3: column \"day\": \"2024-02-30\" is not a date (write 2024-03-01");
    data_source s = whole;
    s.function_column = "id", s.y_column = "day";
    refused("id,t,day\na,1,2024-02-28\na,2,2024-02-29\n", s, "is not a number");
}

static void a_decimal_comma_is_read(void) {
    dataset *d = read_text("id;t;y\na;0,5;1\na;1,25;-2,5e1\nb;0;0\nb;1;1\n", whole);
    CHECK(d->x[0] == 0.5f && d->x[1] == 1.25f && d->y[1] == -25.0f);
    dataset_destroy(d);
    d = read_text("id\tt\ty\na\t0,5\t1\na\t1,25\t2\n", whole);
    CHECK(d->x[1] == 1.25f);
    dataset_destroy(d);
}

/* ---- other shapes ---------------------------------------------------------------------------- */

/* R writes NA for what it does not know: such rows are of no curve, not of one called NA. */
static void a_missing_group_is_no_curve(void) {
    dataset *d = read_text("id,t,y\nNA,0,1\nNA,1,2\na,0,1\na,1,3\nb,0,2\n,5,5\nb,1,1\n", whole);
    CHECK(d->functions == 2 && d->points == 4);
    STREQ(d->ids[0], "a");
    dataset_destroy(d);
}

static void a_wide_table_is_turned(void) {
    data_source s = whole;
    s.wide = true;
    dataset *d = read_text("boy,sex,age2,age3.5,age10\np,m,80,91,140\nq,f,,90,138\n", s);
    CHECK(d->functions == 2 && d->points == 5 && d->x_dim == 3);
    STREQ(d->x_names[2], "age");
    STREQ(d->y_name, "y");
    STREQ(d->function_name, "boy");
    const float want[] = {0, 1, 2, 0, 1, 3.5f, 0, 1, 10, 1, 0, 3.5f, 1, 0, 10};
    const float y[] = {80, 91, 140, 90, 138};
    CHECK(memcmp(d->x, want, sizeof want) == 0 && memcmp(d->y, y, sizeof y) == 0);
    CHECK(d->roles->wide && has(note(d, "data.wide"), "1"));
    dataset_destroy(d);

    s.x_columns = "hour", s.y_column = "glucose";
    d = read_text("t_0,t_1,t_2,t_4\n5,6,7,8\n1,2,3,\n", s); /* rows without a name are numbered */
    CHECK(d->functions == 2 && d->points == 7 && d->x_dim == 1 && d->x[0] == 0 && d->x[3] == 4);
    STREQ(d->x_names[0], "hour");
    STREQ(d->y_name, "glucose");
    STREQ(d->ids[1], "2");
    dataset_destroy(d);

    s.x_columns = s.y_column = NULL;
    d = read_text("w,-1,0,1.5\na,1,2,3\nb,4,5,6\n", s);
    CHECK(d->x[0] == -1 && d->x[2] == 1.5f);
    STREQ(d->x_names[0], "x");
    dataset_destroy(d);
    d = read_text("w;0,25;0,5;1,5\na;1,5;2;3\nb;4;5;6\n", s); /* a decimal comma in names too */
    CHECK(d->x[0] == 0.25f && d->x[1] == 0.5f && d->x[2] == 1.5f && d->y[0] == 1.5f);
    dataset_destroy(d);
    d = read_text("w,2024-01-01,2024-01-03,2024-01-02\na,1,2,3\nb,4,5,6\n", s);
    CHECK(d->roles->x[0].unit == ROLE_DAYS && d->x[1] - d->x[0] == 2);
    dataset_destroy(d);
    refused("id,a,b,c\n1,2,3,4\n", s,
            "a table with one curve in a row needs at least 3 columns named by their x");
}

/* y of each output is standardised by the mean and sd of the curves trained on. */
static void several_outputs(void) {
    char text[4000];
    enum { COWS = 20, WEEKS = 3 };
    double milk[COWS][WEEKS], fat[COWS][WEEKS];
    size_t used = (size_t)snprintf(text, sizeof text, "cow,week,milk,fat\n");
    for (int i = 0; i < COWS; i++)
        for (int j = 0; j < WEEKS; j++) {
            milk[i][j] = 20 + i + 3 * j, fat[i][j] = 4 - 0.01 * i * j;
            used += (size_t)snprintf(text + used, sizeof text - used, "c%d,%d,%.2f,%.2f\n", i, j,
                                     milk[i][j], fat[i][j]);
        }
    data_source s = {.split = DATA_TRAIN, .holdout = 0.2, .test = 0.2, .seed = 5};
    s.function_column = "cow", s.x_columns = "week", s.y_column = "milk,fat";
    dataset *d = read_text(text, s);
    CHECK(d->functions == 12 && d->points == 12 * 6 && d->x_dim == 3 && d->roles->n_outputs == 2);
    STREQ(d->x_names[1], "output=milk");
    STREQ(d->x_names[2], "output=fat");
    STREQ(d->y_name, "y");
    double sum = 0, squares = 0, n = 12 * WEEKS;
    for (int64_t i = 0; i < 12; i++)
        for (int j = 0; j < WEEKS; j++) sum += milk[atoi(d->ids[i] + 1)][j];
    for (int64_t i = 0; i < 12; i++)
        for (int j = 0; j < WEEKS; j++) squares += pow(milk[atoi(d->ids[i] + 1)][j] - sum / n, 2);
    double mean = sum / n, sd = sqrt(squares / n);
    NEAR(d->roles->outputs[0].shift, mean, 1e-9, 0);
    NEAR(d->roles->outputs[0].scale, sd, 1e-9, 0);
    int first = atoi(d->ids[0] + 1);
    CHECK(d->x[1] == 1 && d->x[2] == 0 && d->x[4] == 0 && d->x[5] == 1);
    NEAR((double)d->y[0], (milk[first][0] - mean) / sd, 1e-6, 0);
    role_output fats = d->roles->outputs[1];
    NEAR((double)d->y[1], (fat[first][0] - fats.shift) / fats.scale, 1e-6, 0);
    double shift = d->roles->outputs[0].shift;
    dataset_destroy(d);
    s.split = DATA_VALID; /* in the units of those trained on */
    d = read_text(text, s);
    CHECK(d->functions == 4 && d->roles->outputs[0].shift == shift);
    dataset_destroy(d);
}

/* ---- the split ------------------------------------------------------------------------------- */

static const char *curves(int count) {
    static char text[4000];
    size_t used = (size_t)snprintf(text, sizeof text, "id,x,y\n");
    for (int i = 0; i < count; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "f%d,0,%d\nf%d,1,%d\n", i, i, i, i);
    return text;
}

static uint64_t part(int count, data_split split, double holdout, double test, uint64_t seed,
                     const roles_like *like) {
    data_source s = {.split = split, .holdout = holdout, .test = test, .seed = seed, .like = like};
    dataset *d = read_text(curves(count), s);
    uint64_t bits = 0;
    for (int64_t i = 0; i < d->functions; i++) bits |= (uint64_t)1 << atoi(d->ids[i] + 1);
    dataset_destroy(d);
    return bits;
}

static void three_parts_have_no_curve_in_common(void) {
    uint64_t all = ((uint64_t)1 << 50) - 1;
    for (uint64_t seed = 0; seed < 5; seed++) {
        uint64_t train = part(50, DATA_TRAIN, 0.2, 0.3, seed, NULL),
                 valid = part(50, DATA_VALID, 0.2, 0.3, seed, NULL),
                 test = part(50, DATA_TEST, 0.2, 0.3, seed, NULL);
        CHECK((train | valid | test) == all);
        CHECK(!(train & valid) && !(train & test) && !(valid & test));
        CHECK(__builtin_popcountll(valid) == 10 && __builtin_popcountll(test) == 15);
        /* the curves that choose the weights are those of a split in two */
        CHECK(part(50, DATA_VALID, 0.2, 0, seed, NULL) == valid);
        CHECK(part(50, DATA_TRAIN, 0.2, 0, seed, NULL) == (train | test));
        CHECK(part(50, DATA_TEST, 0.2, 0, seed, NULL) == valid);
    }
    /* too few for a test */
    CHECK(part(9, DATA_TEST, 0.2, 0.2, 1, NULL) == part(9, DATA_VALID, 0.2, 0.2, 1, NULL));
    CHECK(part(10, DATA_TEST, 0.2, 0.2, 1, NULL) != part(10, DATA_VALID, 0.2, 0.2, 1, NULL));
    CHECK(part(50, DATA_TEST, -1, 0.2, 1, NULL) == all);
    /* one is always left to train on */
    CHECK(__builtin_popcountll(part(10, DATA_TRAIN, 0.9, 0.9, 1, NULL)) == 1);
    data_source s = {.holdout = 0.2, .test = 1};
    refused(curves(10), s, "the share held out must be below 1");
}

static void each_curve_is_tested_as_often(void) {
    enum { SEEDS = 200, COUNT = 20 };
    int count[COUNT] = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        uint64_t bits = part(COUNT, DATA_TEST, 0.2, 0.2, seed, NULL);
        for (int i = 0; i < COUNT; i++) count[i] += (int)(bits >> i & 1);
    }
    /* mean 40, sd 5.7; 4.5 sd is a level of 7e-6 for each */
    for (int i = 0; i < COUNT; i++) NEAR(count[i], 40, 4.5 * sqrt(SEEDS * 0.2 * 0.8), 0);
}

/* ---- what a model keeps ---------------------------------------------------------------------- */

static roles kept(const dataset *d) {
    roles r;
    CHECK(roles_parse(&E, note(d, "table"), &r) == MNP_OK);
    return r;
}

static const char trees[] = "plot,when,kind,h\n1,2024-01-01,oak,1\n1,2024-01-09,oak,2\n"
                            "2,2024-01-01,fir,3\n2,2024-01-09,fir,5\n";
static const data_source named = {
    .holdout = -1, .function_column = "plot", .x_columns = "when,kind", .y_column = "h"};

static void a_note_holds_it_all(void) {
    data_source s = named;
    s.y_column = "h", s.function_column = "plot";
    dataset *d = read_text(trees, s);
    roles r = kept(d);
    buf again;
    buf_init(&again, &E);
    CHECK(roles_print(&r, &again) == MNP_OK);
    STREQ(buf_str(&again), note(d, "table"));
    CHECK(r.n_x == 2 && r.x[0].unit == ROLE_DAYS && r.x[1].n_levels == 2 && r.x[1].constant);
    STREQ(r.x[1].levels[0], "fir");
    CHECK(r.y.lo == 1 && r.y.hi == 5 && r.x[0].hi - r.x[0].lo == 8);
    CHECK(roles_at(&r, 0) == &r.x[0] && roles_at(&r, 1) == &r.x[1] && roles_at(&r, 2) == &r.x[1]);
    CHECK(roles_at(&r, 3) == &r.y && !roles_at(&r, 4) && !roles_at(&r, -1));
    buf_free(&again);
    roles_free(&r);
    dataset_destroy(d);
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"group\":[],\"x\":[],\"y\":{}}",
        "{\"group\":[],\"x\":[{\"name\":\"a\",\"unit\":\"miles\"}],\"y\":{\"name\":\"y\",\"unit\":"
        "\"number\"}}",
        "{\"group\":[1],\"x\":[],\"y\":{\"name\":\"y\",\"unit\":\"number\"}}",
        "{\"group\":[],\"x\":[{\"name\":\"a\",\"unit\":\"category\"}],\"y\":{\"name\":\"y\","
        "\"unit\":"
        "\"number\"}}",
        "{\"group\":[],\"x\":[],\"y\":{\"name\":\"y\",\"unit\":\"number\"},\"outputs\":[{\"name\":"
        "\"a\",\"shift\":0,\"scale\":0}]}"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        CASE(bad[k]);
        CHECK(roles_parse(&E, bad[k], &r) == MNP_EFORMAT && !r.e);
    }
}

static void later_tables_are_read_by_it(void) {
    dataset *d = read_text(trees, named);
    roles r = kept(d);
    roles_like like = {.roles = &r, .hash = 1, .split_too = true, .holdout = 0.2};
    data_source s = {.like = &like, .split = DATA_TEST, .holdout = 0.2, .test = 0.2};
    dataset_destroy(d);
    /* one kind of tree alone, columns in another order and one more, a time of day */
    d = read_text("h,note,kind,when,plot\n1,x,oak,2024-01-02T12:00,1\n4,x,oak,2024-01-08,1\n", s);
    CHECK(d->x_dim == 3 && d->x[1] == 0 && d->x[2] == 1 && !strstr(d->report, "split"));
    NEAR((double)d->x[3] - (double)d->x[0], 5.5, 1e-9, 0);
    CHECK(!strstr(d->warnings, "goes from"));
    dataset_destroy(d);
    /* a category that it does not know: the mean of those it knows, to score; not to train */
    const char *elm = "plot,when,kind,h\n1,2024-01-02,elm,1\n1,2024-01-03,oak,1\n";
    d = read_text(elm, s);
    CHECK(d->x[1] == 0.5F && d->x[2] == 0.5F && d->x[4] == 0 && d->x[5] == 1);
    CHECK(has(d->warnings, ":2: kind is elm, a category that the model has not seen (1 of 2 rows "
                           "have such)"));
    dataset_destroy(d);
    s.split = DATA_TRAIN;
    refused(elm, s, "\"elm\" is a category that the model does not know (it has: fir, oak)");
    s.split = DATA_TEST;
    refused("plot,when,kind,h\n1,17,oak,1\n", s, "\"17\" is not a date");
    refused("plot,when,h\n1,2024-01-02,1\n", s, "1 input column where the model has 2");
    /* other names, x and y out of range */
    s.x_columns = "day,kind", s.y_column = "height";
    d = read_text("plot,day,kind,height\n1,2023-06-01,oak,1\n1,2024-01-09,oak,500\n", s);
    CHECK(has(d->warnings, "the column day is taken for the model's when\n"));
    CHECK(has(d->warnings, "day goes from 2023-06-01 to 2024-01-09, and the model was trained from "
                           "2024-01-01 to 2024-01-09"));
    CHECK(has(d->warnings, "height is about 1e+02 times larger than in the training curves (1 to "
                           "5): are the units the same?"));
    dataset_destroy(d);
    d = read_text("plot,day,kind,height\n1,2024-01-02,oak,1\n1,2024-01-09,oak,20\n", s);
    CHECK(has(d->warnings, "height goes from 1 to 20, and the model was trained from 1 to 5 (are "
                           "the units the same?)"));
    dataset_destroy(d);
    roles_free(&r);
}

/* ---- points for a model ---------------------------------------------------------------------- */

static mnp_status ask(const char *text, const roles *model, data_source s, asked **out) {
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
    roles_like like = {.roles = model};
    s.like = &like;
    mnp_status status = asked_open(&E, path, &s, out);
    unlink(path);
    return status;
}

static void points_are_read_by_it(void) {
    dataset *d = read_text(trees, named);
    roles r = kept(d);
    double day;
    asked *a = NULL;
    data_source plain = {0}, places = {.without_y = true};
    dataset_destroy(d);
    date_parse("2024-01-05", &day);
    /* several curves in any order; the category of a curve once; a row without y is dropped */
    CHECK(ask("kind,h,when,plot\noak,2,2024-01-05,7\nfir,3,2024-01-06,8\n,,2024-01-07,7\n"
              ",5,2024-01-07,7\n",
              &r, plain, &a) == MNP_OK);
    const double want[] = {day, 0, 1, day + 1, 1, 0, day + 2, 0, 1};
    CHECK(a && a->rows == 3 && a->dims == 3 && a->groups == 2);
    CHECK(memcmp(a->x, want, sizeof want) == 0);
    CHECK(a->y[0] == 2 && a->y[1] == 3 && a->y[2] == 5);
    CHECK(a->group[0] == 0 && a->group[1] == 1 && a->group[2] == 0);
    STREQ(a->names[1], "8");
    STREQ(a->warnings, "");
    asked_destroy(a);
    /* places: no y, no group; outside the range */
    CHECK(ask("when,kind\n2025-01-05,oak\n", &r, places, &a) == MNP_OK);
    CHECK(a && a->rows == 1 && !a->y && a->groups == 1 && a->group[0] == 0);
    STREQ(a->names[0], "");
    CHECK(has(a->warnings, ":2: when is 2025-01-05, 362 days beyond the training curves "
                           "(2024-01-01 to 2024-01-09); 1 of 1 rows lie outside"));
    asked_destroy(a);
    /* what is constant in a curve is for the context to say, in a cell or in a whole column */
    CHECK(ask("when,kind\n2024-01-05,\n", &r, places, &a) == MNP_OK);
    CHECK(a && a->x[0] == day && isnan(a->x[1]) && isnan(a->x[2]));
    asked_destroy(a);
    CHECK(ask("when\n2024-01-05\n", &r, places, &a) == MNP_OK);
    CHECK(a && a->x[0] == day && isnan(a->x[1]) && isnan(a->x[2]));
    asked_destroy(a);
    CHECK(ask("when,kind,h\n2024-01-05,,3\n", &r, plain, &a) == MNP_EFORMAT && !a);
    CHECK(has(E.error, ":2: an input is missing"));
    /* a category that the model does not know is the mean of the two that it knows */
    CHECK(ask("when,kind,h\n2024-01-05,elm,3\n", &r, plain, &a) == MNP_OK);
    CHECK(a && a->x[1] == 0.5 && a->x[2] == 0.5 && has(a->warnings, ":2: kind is elm, a category"));
    asked_destroy(a);
    CHECK(ask("when,kind\n2024-01-05,oak\n", &r, plain, &a) != MNP_OK && !a); /* no h */
    roles_free(&r);
}

/* One known point of a new curve is enough, in a row or in the columns of one row a point. */
static void few_points_of_a_wide_table(void) {
    data_source s = whole, plain = {0};
    s.wide = true;
    dataset *d = read_text("boy,age2,age3,age4\np,80,91,140\nq,70,90,138\n", s);
    roles r = kept(d);
    asked *a = NULL;
    dataset_destroy(d);
    CHECK(ask("boy,age3\nz,88\n", &r, plain, &a) == MNP_OK);
    CHECK(a && a->rows == 1 && a->x[0] == 3 && a->y[0] == 88);
    asked_destroy(a);
    CHECK(ask("boy,age2,age4\nz,,120\nw,80,\n", &r, plain, &a) == MNP_OK);
    CHECK(a && a->rows == 2 && a->x[0] == 4 && a->x[1] == 2);
    CHECK(a && has(a->said, "2 of 4 values are missing and were dropped"));
    asked_destroy(a);
    CHECK(ask("boy,age,y\nz,3.5,88\n", &r, plain, &a) == MNP_OK);
    CHECK(a && a->rows == 1 && a->x[0] == 3.5);
    asked_destroy(a);
    CHECK(ask("boy,height\nz,88\n", &r, plain, &a) == MNP_EFORMAT && !a);
    CHECK(has(E.error, "needs at least 1 column named by its x"));
    roles_free(&r);
}

/* What is constant in a curve is no time, nor is a category; without one the first input is. */
static void which_input_is_time(void) {
    data_source s = whole;
    s.function_column = "id", s.y_column = "h";
    dataset *d = read_text("id,kind,dose,t,h\na,u,1,3,1\na,v,1,2,2\nb,u,2,1,3\nb,v,2,5,4\n", s);
    CHECK(d->x_dim == 4 && dataset_time(d) == 3);
    dataset_destroy(d);
    d = read_text("id,kind,h\na,u,1\na,v,2\nb,u,3\nb,v,4\n", s);
    CHECK(d->x_dim == 2 && dataset_time(d) == 0);
    dataset_destroy(d);
}

static void points_of_several_outputs(void) {
    data_source s = whole, plain = {0}, places = {.without_y = true};
    s.function_column = "cow", s.x_columns = "week", s.y_column = "milk,fat";
    dataset *d = read_text("cow,week,milk,fat\na,0,10,4\na,1,20,5\nb,0,30,3\nb,1,20,4\n", s);
    roles r = kept(d);
    asked *a = NULL;
    dataset_destroy(d);
    /* milk has mean 20 and variance 50, fat 4 and 0.5 */
    CHECK(ask("week,milk,fat\n0,20,\n1,,4.5\n", &r, plain, &a) == MNP_OK);
    CHECK(a && a->rows == 2 && a->dims == 3 && a->x[1] == 1 && a->x[3 + 2] == 1);
    NEAR(a->y[0], 0, 1e-12, 0);
    NEAR(a->y[1], 0.5 / sqrt(0.5), 1e-12, 0);
    NEAR(a->shift[1] + a->scale[1] * a->y[1], 4.5, 1e-12, 0);
    asked_destroy(a);
    CHECK(ask("week,output\n0,fat\n3,milk\n", &r, places, &a) == MNP_OK);
    CHECK(a && a->rows == 2 && a->x[2] == 1 && a->x[4] == 1);
    NEAR(a->shift[0], 4, 1e-12, 0);
    NEAR(a->scale[1], sqrt(50), 1e-12, 0);
    asked_destroy(a);
    /* without saying which, of each */
    CHECK(ask("week\n0\n", &r, places, &a) == MNP_OK);
    CHECK(a && a->rows == 2 && a->x[1] == 1 && a->x[3 + 2] == 1 && a->shift[0] == 20);
    asked_destroy(a);
    roles_free(&r);
}

/* The model's own table is known by its bytes, and split as it was; of another all is scored. */
static void the_own_table_is_known(void) {
    data_source s = {.split = DATA_TRAIN, .holdout = 0.25, .test = 0.15, .seed = 9};
    dataset *d = read_text(curves(40), s);
    STREQ(note(d, "data.test"), "0.15");
    STREQ(note(d, "data.split"),
          "24 curves to train on, 10 to choose the weights by, 6 to test on");
    roles r = kept(d);
    roles_like like = {.roles = &r,
                       .hash = strtoull(note(d, "data.hash"), NULL, 16),
                       .split_too = true,
                       .seed = 9,
                       .holdout = 0.25,
                       .test = 0.15};
    dataset_destroy(d);
    uint64_t test = part(40, DATA_TEST, 0.25, 0.15, 9, NULL);
    CHECK(part(40, DATA_TEST, 0.2, 0.2, 0, &like) == test);
    CHECK(part(41, DATA_TEST, 0.2, 0.2, 0, &like) == ((uint64_t)1 << 41) - 1);
    like.split_too = false;
    CHECK(part(40, DATA_TEST, 0.2, 0.2, 0, &like) == part(40, DATA_TEST, 0.2, 0.2, 0, NULL));
    /* a model of before has no test of its own; a table that changed is no longer the same */
    like.split_too = true, like.test = 0;
    s = (data_source){.split = DATA_TEST, .like = &like};
    d = read_text(curves(40), s);
    CHECK(d->functions == 10 && has(d->warnings, "these 10 curves chose the model's weights"));
    dataset_destroy(d);
    like.own = true;
    d = read_text(curves(41), s);
    CHECK(has(d->warnings, "the table has changed since the model was trained"));
    dataset_destroy(d);
    like.holdout = 0;
    d = read_text(curves(40), s);
    CHECK(has(d->warnings, "the model was trained on these curves"));
    dataset_destroy(d);
    roles_free(&r);
}

/* ---- doubtful tables ------------------------------------------------------------------------- */

static void doubts_are_said(void) {
    data_source s = {.split = DATA_TRAIN, .holdout = 0.2, .test = 0.2};
    dataset *d = read_text("t,y\n0,1\n1,2\n1,3\n", s);
    CHECK(has(d->warnings, "there is one curve only"));
    CHECK(has(d->report, "note: 1 point is at the same x as another of the same curve"));
    dataset_destroy(d);
    d = read_text(curves(9), s);
    CHECK(has(d->warnings, "with 9 curves no honest test is possible"));
    CHECK(!note(d, "data.test"));
    dataset_destroy(d);
    d = read_text(curves(10), s);
    CHECK(!d->warnings);
    dataset_destroy(d);
    s.holdout = -1;
    d = read_text("id,t,y\na,0,1\na,1,1\nb,0,1\nb,1,1\n", s);
    CHECK(has(d->warnings, "y is the same number everywhere: there is nothing to learn"));
    dataset_destroy(d);
    refused("id,t,y\n", s, "no rows below the names of the columns");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static mnp_status some_work(env *e, const data_source *s) {
    dataset *d = NULL;
    roles r;
    MNP_TRY(dataset_open(e, NULL, path, s, &d));
    mnp_status status = roles_parse(e, note(d, "table"), &r);
    if (status == MNP_OK) {
        roles_like like = {.roles = &r, .split_too = true};
        data_source again = *s;
        dataset *second = NULL;
        again.like = &like;
        status = dataset_open(e, NULL, path, &again, &second);
        dataset_destroy(second);
        asked *a = NULL;
        if (status == MNP_OK) status = asked_open(e, path, &again, &a);
        asked_destroy(a);
        roles_free(&r);
    }
    dataset_destroy(d);
    return status;
}

static void every_allocation_may_fail(void) {
    static const struct {
        const char *text;
        data_source s;
    } cases[] = {
        {trees, {.holdout = 0.5, .function_column = "plot", .x_columns = "when,kind"}},
        {"f,c,t,dose,a,b\n1,1,0,2,1,2\n1,1,1,,3,4\n2,1,0,3,5,6\n2,1,1,,7,8\n",
         {.holdout = -1, .function_column = "f,c", .x_columns = "t,dose", .y_column = "a,b"}},
        {"boy,sex,age2,age3,age4\np,m,80,91,140\nq,f,,90,138\n", {.holdout = -1, .wide = true}},
        {"t2,t3,t4\n80,91,140\n70,90,138\n", {.holdout = -1, .wide = true}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CASE(cases[i].text);
        FILE *f = fopen(path, "w");
        CHECK(f && fputs(cases[i].text, f) >= 0 && fclose(f) == 0);
        mnp_status status = MNP_ENOMEM;
        for (long n = 0; status != MNP_OK && n < 20000; n++) {
            scarce memory = {.left = n};
            env e;
            env_init(&e);
            e.allocator = (mnp_allocator){scarce_alloc, scarce_free, &memory};
            status = some_work(&e, &cases[i].s);
            CHECK(status == MNP_OK || status == MNP_ENOMEM);
            CHECK(status == MNP_OK || strstr(e.error, "out of memory"));
            CHECK(memory.live == 0);
        }
        CHECK(status == MNP_OK);
        unlink(path);
    }
}

int main(void) {
    env_init(&E);
    const char *base = getenv("TEST_TMP");
    snprintf(path, sizeof path, "%.150s/tables-%ld.csv", base ? base : "/tmp", (long)getpid());
    RUN(row_numbers_are_dropped);
    RUN(x_is_told_from_y);
    RUN(the_group_is_the_finest);
    RUN(a_group_that_comes_last);
    RUN(columns_must_be_named);
    RUN(several_columns_make_a_key);
    RUN(text_is_a_category);
    RUN(constant_columns_are_filled);
    RUN(dates_are_numbers);
    RUN(a_decimal_comma_is_read);
    RUN(a_missing_group_is_no_curve);
    RUN(a_wide_table_is_turned);
    RUN(several_outputs);
    RUN(three_parts_have_no_curve_in_common);
    RUN(each_curve_is_tested_as_often);
    RUN(a_note_holds_it_all);
    RUN(later_tables_are_read_by_it);
    RUN(points_are_read_by_it);
    RUN(dates_in_another_order);
    RUN(ratios_and_versions_are_categories);
    RUN(a_value_far_from_all_others);
    RUN(growth_by_factors);
    RUN(curves_without_a_group);
    RUN(a_key_that_is_too_short);
    RUN(few_points_of_a_wide_table);
    RUN(which_input_is_time);
    RUN(points_of_several_outputs);
    RUN(the_own_table_is_known);
    RUN(doubts_are_said);
    RUN(every_allocation_may_fail);
    return check_done();
}
