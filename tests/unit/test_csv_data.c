/* test_csv_data.c: people's own tables: which column is what, ragged and scattered functions,
 * missing values, the report, the hold-out, and messages for what cannot be read. */
#include <unistd.h>

#include "check.h"
#include "data/dataset.h"
#include "util/fsio.h"

static env E;
static char path[200];

static mnp_status open_text(const char *text, data_source s, dataset **d) {
    CHECK(fsio_write(&E, path, text, strlen(text)) == MNP_OK);
    mnp_status status = dataset_open(&E, NULL, path, &s, d);
    unlink(path);
    return status;
}

static dataset *read_text(const char *text, data_source s) {
    dataset *d = NULL;
    CHECK(open_text(text, s, &d) == MNP_OK);
    if (!d) {
        fprintf(stderr, "%s\n", E.error);
        exit(1);
    }
    return d;
}

static const data_source whole = {.split = DATA_TRAIN, .holdout = -1};

static bool says(const dataset *d, const char *text) {
    if (strstr(d->report, text)) return true;
    fprintf(stderr, "not in the report: \"%s\"\n%s", text, d->report);
    return false;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void scattered_ragged_functions(void) {
    dataset *d = read_text("curve,x,y\n"
                           "b,1,10\na,1,1\nb,2,20\na,3,3\nb,0.5,30\na,2,\nc,7,7\nb,1,10\n",
                           whole);
    const float bx[] = {1, 2, 0.5f, 1}, by[] = {10, 20, 30, 10}, ax[] = {1, 3}, ay[] = {1, 3};
    CHECK(d->functions == 2 && d->points == 6 && d->x_dim == 1 && !d->builtin && d->longest == 4);
    CHECK(d->start[0] == 0 && d->start[1] == 4 && d->start[2] == 6);
    STREQ(d->ids[0], "b");
    STREQ(d->ids[1], "a");
    CHECK(memcmp(d->x, bx, sizeof bx) == 0 && memcmp(d->y, by, sizeof by) == 0);
    CHECK(memcmp(d->x + 4, ax, sizeof ax) == 0 && memcmp(d->y + 4, ay, sizeof ay) == 0);
    STREQ(d->x_names[0], "x");
    STREQ(d->y_name, "y");
    STREQ(d->function_name, "curve");
    STREQ(d->name, path);
    CHECK(says(d, "2 curves, 6 points; points per curve: least 2, median 2, most 4"));
    CHECK(says(d, "ranges: x from 0.5 to 3, y from 1 to 30"));
    CHECK(says(d, "dropped: 1 row without y, 1 curve with fewer than 2 observed points (1 row)"));
    CHECK(d->policy.context_lo == 0 && d->policy.context_hi == 1 && d->rff_std == 1);
    dataset_destroy(d);
}

static void missing_cells_are_counted(void) {
    dataset *d = read_text("id,x,y\n"
                           "1,0,0\n1,,1\n1,2,NaN\n1,3,NA\n1,4,4\n,5,5\n1,,\n2,1,1\n2,,1\n3,1,\n",
                           whole);
    CHECK(d->functions == 1 && d->points == 2);
    CHECK(says(d, "dropped: 3 rows without y, 3 rows without x, 1 row without a curve's name, 2 "
                  "curves with fewer than 2 observed points (1 row)"));
    dataset_destroy(d);
    d = read_text("id,x,y\n1,0,0\n1,1,1\n", whole);
    CHECK(says(d, "dropped: nothing"));
    CHECK(!strstr(d->report, "split"));
    dataset_destroy(d);
}

static void without_a_function_column_it_is_one_function(void) {
    dataset *d = read_text("time,temp\n0,1\n1,2\n2,4\n3,8\n", whole);
    CHECK(d->functions == 1 && d->points == 4 && !d->ids && d->policy.context_hi == 2);
    CHECK(says(d, "no group column, all rows are one curve"));
    CHECK(says(d, "1 curve, 4 points"));
    dataset_destroy(d);
}

static void several_inputs(void) {
    dataset *d = read_text("id;lon;lat;value\na;1;2;3\na;4;5;6\nb;7;8;9\nb;10;11;12\n", whole);
    CHECK(d->x_dim == 2 && d->functions == 2);
    CHECK(d->x[0] == 1 && d->x[1] == 2 && d->x[6] == 10 && d->x[7] == 11 && d->y[3] == 12);
    STREQ(d->x_names[0], "lon");
    STREQ(d->x_names[1], "lat");
    STREQ(d->y_name, "value");
    dataset_destroy(d);
}

static void an_offset_is_noted(void) {
    dataset *d = read_text("x,y\n1600000000,0\n1600000300,1\n1600000600,2\n", whole);
    CHECK(says(d, "note: x is counted from 1600000000: single precision would blur it"));
    dataset_destroy(d);
}

/* ---- columns --------------------------------------------------------------------------------- */

static void columns_are_guessed(void) {
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"x,Function,y\n1,a,2\n2,a,3\n", "group \"Function\" (guessed from its name); x \"x\""},
        {"series,t,height\n1,1,2\n1,2,3\n", "y \"height\" (guessed: the last column)"},
        {"target,x,group\n5,1,2\n6,2,2\n", "group \"group\" (guessed from its name); x \"x\" "
                                           "(what is left); y \"target\" (guessed from its name)"},
        {"plant,day,height\nfern,1,2\nfern,2,3\n",
         "group \"plant\" (guessed: its words repeat); x \"day\""},
        {"when,plant,height\n1.5,7,2\n2,7,3\n",
         "group \"plant\" (guessed: its whole numbers repeat)"},
        {"day,plant,height\n1,1.0,2\n2,1.0,3\n1,2.0,3\n2.5,2.0,9\n",
         "group \"plant\" (guessed: its whole numbers repeat); x \"day\""},
        {"height,plant\n1.5,fern\n2,fern\n", "no group column"}, /* x and y take both */
        {"day,height\n1,2\n1,3\n1,4\n", "no group column"},
        {"x1,x2,height\n1,1,2\n1,2,3\n2,1,1\n2,2,5\n", "no group column"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CASE(cases[i].text);
        dataset *d = NULL;
        mnp_status status = open_text(cases[i].text, whole, &d);
        if (i == 6) { /* a column of words that is not the function's is not a number */
            CHECK(status == MNP_EFORMAT && strstr(E.error, "\"fern\" is not a number"));
            continue;
        }
        CHECK(status == MNP_OK && d && says(d, cases[i].said));
        dataset_destroy(d);
    }
}

static void columns_may_be_named(void) {
    const char *text = "a,b,c,d\n1,2,3,p\n4,5,6,p\n7,8,9,q\n1,1,2,q\n";
    data_source s = whole;
    s.function_column = "d";
    s.x_columns = "c, a";
    s.y_column = "b";
    dataset *d = read_text(text, s);
    CHECK(d->x_dim == 2 && d->x[0] == 3 && d->x[1] == 1 && d->y[0] == 2 && d->functions == 2);
    CHECK(says(d, "columns: group \"d\"; x \"c\", \"a\"; y \"b\"\n"));
    dataset_destroy(d);

    s = whole;
    s.x_columns = "c";
    s.y_column = "b";
    d = read_text(text, s);
    CHECK(says(d, "group \"d\" (guessed: its words repeat); x \"c\"; y \"b\"\n"));
    CHECK(says(d, "not used: \"a\"\n"));
    dataset_destroy(d);

    s = whole;
    s.function_column = ""; /* none */
    d = read_text("id,col,value\n0,0,1\n0,1,2\n1,0,3\n1,1,4\n", s);
    CHECK(d->functions == 1 && d->x_dim == 2);
    dataset_destroy(d);

    s = whole;
    s.function_column = "y"; /* an odd name is no obstacle */
    d = read_text("y,a,b\n0,0,1\n0,1,2\n", s);
    STREQ(d->function_name, "y");
    STREQ(d->y_name, "b");
    dataset_destroy(d);
}

static void columns_in_doubt_are_refused(void) {
    static const struct {
        const char *text, *function, *x, *y, *error;
    } cases[] = {
        {"plant,bed,height\n1,1,2.5\n1,2,3\n2,1,2\n2,2,2\n1,1,7\n", NULL, NULL, NULL,
         "\"plant\" or \"bed\" could be the group column"},
        {"id,group,x,y\n1,1,1,1\n", NULL, NULL, NULL, "\"id\" or \"group\" could be the group"},
        {"a,y,value\n1,2,3\n", NULL, NULL, NULL, "\"y\" or \"value\" could be the y column"},
        {"a,b,c\n1,2,3\n", "z", NULL, NULL, "there is no column \"z\" (it has: a, b, c)"},
        {"a,b,c\n1,2,3\n", NULL, "a,z", NULL, "there is no column \"z\""},
        {"a,b,c\n1,2,3\n", NULL, "a,,b", NULL, "columns are named a,b,c, not"},
        {"a,b,c\n1,2,3\n", NULL, "a,a", NULL, "\"a\" is named twice, now as x"},
        {"a,b,c\n1,2,3\n", NULL, "a,c", "c", "\"c\" is named twice, now as y"},
        {"a,b,c\n1,2,3\n", "a", "a", "c", "\"a\" is named twice, now as the group"},
        {"a,b,c\n1,2,3\n", "c", "a", "c", "\"c\" is named twice, now as the group"},
        {"y\n1\n2\n", NULL, NULL, NULL, "a column for x and one for y are needed"},
        {"id,y\n1,1\n1,2\n", "id", NULL, NULL, "a column for x and one for y are needed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CASE(cases[i].error);
        dataset *d = NULL;
        data_source s = whole;
        s.function_column = cases[i].function;
        s.x_columns = cases[i].x;
        s.y_column = cases[i].y;
        CHECK(open_text(cases[i].text, s, &d) != MNP_OK && !d);
        CHECK(strstr(E.error, cases[i].error) != NULL);
        if (!strstr(E.error, cases[i].error)) fprintf(stderr, "%s\n", E.error);
    }
}

/* ---- bad cells ------------------------------------------------------------------------------- */

static void bad_cells_name_their_line(void) {
    static const struct {
        const char *text, *where, *error;
    } cases[] = {
        {"x,y\n1,2\n2,inf\n", ":3: column \"y\": \"inf\"", "leave the cell empty"},
        {"x,y\n1,2\n-Infinity,3\n", ":3: column \"x\"", "is not a number"},
        {"x,y\n1,1e400\n", ":2: column \"y\"", "too large"},
        {"x,y\n1,1e39\n2,2\n", ":2: column \"y\"", "too large for single precision"},
        {"x;y\n1;2,5\n2.5;1\n", ":2: column \"y\"", "write 1.5, not 1,5"},
        {"x;y\n1;1.234,5\n2;2,5\n", ":2: column \"y\"", "write 1234,5, not 1.234,5"},
        {"time,height\n1,2\n1,3\nx,4\n", ":4: column \"time\"", "is not a number"},
        {"id,x,y\n1,1,2\n1,oops,\n", ":3: column \"x\"", "\"oops\" is not a number"},
        {"x,y\n1,2\n1\n", ":3: 1 field", "where the header has 2"},
        {"id,x,y\n1,1,2\n2,2,3\n", "no curve has 2 observed points", "is the group column"},
        {"x,y\n1,\n", "no curve has 2 observed points", "at least two rows"},
        {"x,y\n", "no rows", "below the names of the columns"},
        {"1,2\n3,4\n", ":1:", "names of the columns"},
        {"", ":1:", "the file is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CASE(cases[i].text);
        dataset *d = NULL;
        CHECK(open_text(cases[i].text, whole, &d) == MNP_EFORMAT && !d);
        CHECK(strstr(E.error, cases[i].where) && strstr(E.error, cases[i].error));
        CHECK(strstr(E.error, path) == E.error);
        if (!strstr(E.error, cases[i].error)) fprintf(stderr, "%s\n", E.error);
    }
}

/* ---- the hold-out ---------------------------------------------------------------------------- */

enum { CURVES = 50 };

static const char *many_curves(void) {
    static char text[CURVES * 40];
    size_t used = (size_t)snprintf(text, sizeof text, "id,x,y\n");
    for (int i = 0; i < CURVES; i++)
        for (int j = 0; j < 3; j++)
            used += (size_t)snprintf(text + used, sizeof text - used, "f%d,%d,%d\n", i, j, i);
    return text;
}

/* Which curves a split has, as bits. */
static uint64_t curves_of(const char *text, double holdout, data_split split, uint64_t seed) {
    data_source s = {.split = split, .holdout = holdout, .seed = seed};
    dataset *d = read_text(text, s);
    uint64_t bits = 0;
    int before = -1;
    for (int64_t i = 0; i < d->functions; i++) {
        int curve = (int)d->y[d->start[i]];
        char id[16];
        snprintf(id, sizeof id, "f%d", curve);
        STREQ(d->ids[i], id);
        CHECK(curve > before); /* in the order of the file */
        before = curve;
        bits |= (uint64_t)1 << curve;
    }
    dataset_destroy(d);
    return bits;
}

static void the_holdout_is_a_partition(void) {
    const char *text = many_curves();
    const uint64_t all = ((uint64_t)1 << CURVES) - 1;
    uint64_t train = curves_of(text, 0.2, DATA_TRAIN, 4),
             valid = curves_of(text, 0.2, DATA_VALID, 4);
    CHECK((train | valid) == all && (train & valid) == 0);
    CHECK(__builtin_popcountll(valid) == 10);
    CHECK(curves_of(text, 0.2, DATA_TEST, 4) == valid);
    CHECK(curves_of(text, 0.2, DATA_VALID, 4) == valid);
    CHECK(curves_of(text, 0.2, DATA_VALID, 5) != valid);
    CHECK(curves_of(text, 0, DATA_TRAIN, 4) == all && curves_of(text, 0, DATA_VALID, 4) == all);
    CHECK(curves_of(text, -1, DATA_TEST, 4) == all);
    CHECK(__builtin_popcountll(curves_of(text, 1e-9, DATA_VALID, 4)) == 1);
    CHECK(__builtin_popcountll(curves_of(text, 0.999, DATA_TRAIN, 4)) == 1);
    /* over many seeds each curve is held out as often as the next: 200 seeds, sd 5.7; 4.5 sd is a
     * level of 7e-6 for each of the 50 */
    int count[CURVES] = {0};
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint64_t bits = curves_of(text, 0.2, DATA_VALID, seed);
        for (int i = 0; i < CURVES; i++) count[i] += (int)(bits >> i & 1);
    }
    for (int i = 0; i < CURVES; i++) NEAR(count[i], 40, 4.5 * sqrt(200 * 0.2 * 0.8), 0);
}

static void the_holdout_is_told(void) {
    data_source s = {.split = DATA_VALID, .holdout = 0.2, .seed = 4};
    dataset *d = read_text(many_curves(), s);
    CHECK(says(d, "50 curves, 150 points"));
    CHECK(says(d, "split: 40 curves to train on, 10 held out (seed 4); this is the held-out"));
    dataset_destroy(d);
    d = read_text("x,y\n1,2\n2,3\n", s);
    CHECK(d->functions == 1 && says(d, "a single curve cannot be held out"));
    dataset_destroy(d);
    s.holdout = 1;
    CHECK(open_text(many_curves(), s, &d) == MNP_EINVAL && !d);
}

/* ---- the example ----------------------------------------------------------------------------- */

static void the_example_is_read(void) {
    dataset *d = NULL;
    data_source s = {.split = DATA_TRAIN, .holdout = 0.2};
    CHECK(dataset_open(&E, NULL, "examples/data/plants.csv", &s, &d) == MNP_OK);
    if (!d) return;
    CHECK(d->functions == 48 && d->x_dim == 1);
    CHECK(says(d, "60 curves") && says(d, "group \"plant\""));
    CHECK(says(d, "rows without y"));
    STREQ(d->x_names[0], "day");
    STREQ(d->y_name, "height_cm");
    dataset_destroy(d);
}

int main(void) {
    env_init(&E);
    const char *base = getenv("TEST_TMP");
    snprintf(path, sizeof path, "%.150s/csv-data-%ld.csv", base ? base : "/tmp", (long)getpid());
    RUN(scattered_ragged_functions);
    RUN(missing_cells_are_counted);
    RUN(without_a_function_column_it_is_one_function);
    RUN(several_inputs);
    RUN(an_offset_is_noted);
    RUN(columns_are_guessed);
    RUN(columns_may_be_named);
    RUN(columns_in_doubt_are_refused);
    RUN(bad_cells_name_their_line);
    RUN(the_holdout_is_a_partition);
    RUN(the_holdout_is_told);
    RUN(the_example_is_read);
    return check_done();
}
