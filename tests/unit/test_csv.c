/* test_csv.c: people's tables are read, or refused with the line and a remedy. */
#include "util/csv.h"

#include <unistd.h>

#include "check.h"

static env E;

static csv_table *parse(const char *text) {
    csv_table *t = NULL;
    csv_parse(&E, "d.csv", text, strlen(text), '\0', &t);
    return t;
}

static void the_usual_dialects_mean_the_same(void) {
    static const char *const texts[] = {
        "x,y\n1,2.5\n-3e2,\n",
        "x;y\n1;2.5\n-3e2;\n",
        "x\ty\n1\t2.5\n-3e2\t\n",
        "x,y\r\n1,2.5\r\n-3e2,\r\n",
        "x,y\r1,2.5\r-3e2,\r",
        "x,y\n1,2.5\n-3e2,",
        "\xef\xbb\xbfx,y\n1,2.5\n-3e2,\n",
        "\n\nx,y\n\n1,2.5\n \n\n-3e2,\n\n\n  ",
        "\"x\",\"y\"\n\"1\",\"2.5\"\n\"-3e2\",\"\"\n",
        " x , y \n 1,\t2.5 \n-3e2 , \n",
        " \"x\" , \"y\" \n1,2.5\n-3e2,NA\n",
        "x,y\n1,2.5\n-3e2,nan\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CASE(texts[i]);
        csv_table *t = parse(texts[i]);
        CHECK(t != NULL);
        if (!t) continue;
        size_t x = 9, y = 9;
        double v[2] = {0}, u[2] = {0};
        bool missing[2] = {true, false};
        CHECK(t->columns == 2 && t->rows == 2);
        CHECK(csv_find(&E, t, "x", &x) == MNP_OK && x == 0);
        CHECK(csv_find(&E, t, "y", &y) == MNP_OK && y == 1);
        CHECK(csv_numbers(&E, t, x, v, NULL) == MNP_OK && v[0] == 1 && v[1] == -300);
        CHECK(csv_numbers(&E, t, y, u, missing) == MNP_OK && u[0] == 2.5 && isnan(u[1]));
        CHECK(!missing[0] && missing[1]);
        csv_destroy(t);
    }
}

static void quotes_hold_anything(void) {
    csv_table *t = parse("name,\"a \"\"b\"\", c\"\n\"two\nlines\",\"x;y\"\"\"\n\" kept \",\n");
    CHECK(t != NULL);
    if (!t) return;
    STREQ(csv_header(t, 1), "a \"b\", c");
    STREQ(csv_cell(t, 0, 0), "two\nlines");
    STREQ(csv_cell(t, 0, 1), "x;y\"");
    STREQ(csv_cell(t, 1, 0), " kept ");
    STREQ(csv_cell(t, 1, 1), "");
    CHECK(t->lines[1] == 2 && t->lines[2] == 4); /* a quoted newline counts */
    csv_destroy(t);
}

static void the_separator_can_be_given(void) {
    csv_table *t = NULL;
    CHECK(csv_parse(&E, "d", "a;b,c\n1;2,3\n", 12, ',', &t) == MNP_OK && t->columns == 2);
    if (t) STREQ(csv_header(t, 0), "a;b");
    csv_destroy(t);
    CHECK(csv_parse(&E, "d", "a|b\n1|2\n", 8, '|', &t) == MNP_OK && t->columns == 2);
    csv_destroy(t);
    CHECK(csv_parse(&E, "d", "a\"b\n", 4, '"', &t) == MNP_EINVAL && !t);
    t = parse("\"a,b,c\";d\n1;2\n"); /* commas inside quotes do not count */
    CHECK(t && t->separator == ';' && t->columns == 2);
    csv_destroy(t);
    t = parse("only\n1\n2\n");
    CHECK(t && t->columns == 1 && t->rows == 2);
    csv_destroy(t);
    t = parse("a\tb\n\t\n"); /* a row of missing cells, not an empty line */
    CHECK(t && t->rows == 1);
    csv_destroy(t);
    t = parse("x,y");
    CHECK(t && t->rows == 0 && t->columns == 2);
    csv_destroy(t);
}

static void bad_tables_are_refused_with_line_and_remedy(void) {
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "d.csv:1: the file is empty (the first row must name the columns)"},
        {"\n  \n", "d.csv:1: the file is empty (the first row must name the columns)"},
        {"x,y\n1,2\n\n3\n", "d.csv:4: 1 field where the header has 2 (fix this row; a field that "
                            "contains ',' must stand in quotes)"},
        {"x,y\n1,2,3\n", "d.csv:2: 3 fields where the header has 2 (fix this row; a field that "
                         "contains ',' must stand in quotes)"},
        {"x,y\n1,\"2\n3,4\n", "d.csv:2: a quote \" is opened and never closed (add the closing "
                              "quote)"},
        {"x,y\n1,\"2\"3\n", "d.csv:2: text after a closing quote (write a quote inside a field as "
                            "\"\")"},
        {"x,y\n1,2\"\n", "d.csv:2: a quote \" inside a field (put the whole field in quotes)"},
        {"x,x\n1,2\n", "d.csv:1: two columns are called \"x\" (rename one)"},
        {"\n1,2\n3,4\n", "d.csv:2: the first row holds only numbers (put a row with the names of "
                         "the columns, such as x,y, above it)"},
        {"0,0,1.5\n3,4,5\n",
         "d.csv:1: the first row holds only numbers (put a row with the names of "
         "the columns, such as x,y, above it)"},
        {"# spring\nx,y\n1,2\n", "d.csv:2: 2 fields where line 1 has 1 (the first line must name "
                                 "the columns: delete what stands above their names)"},
        {"x,y\n1,\xe9\n", "d.csv:2: not UTF-8 text (save the file as CSV UTF-8)"},
        {"\xff\xfex", "d.csv:1: the file is UTF-16 (save it as CSV UTF-8)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CASE(cases[i].text);
        csv_table *t = (csv_table *)&E;
        CHECK(csv_parse(&E, "d.csv", cases[i].text, strlen(cases[i].text), '\0', &t) ==
              MNP_EFORMAT);
        CHECK(t == NULL);
        STREQ(E.error, cases[i].error);
    }
    csv_table *t;
    CHECK(csv_parse(&E, "d.csv", "x\n\0\n", 4, '\0', &t) == MNP_EFORMAT);
    STREQ(E.error, "d.csv:2: a NUL byte (this is not a text file)");
}

/* What people write where a value is missing or a number is not plain. */
static void words_and_signs_in_cells(void) {
    static const struct {
        const char *cell, *hint;
    } cases[] = {{"NA", NULL},
                 {"n/a", NULL},
                 {"#N/A", NULL},
                 {"null", NULL},
                 {".", NULL},
                 {"-", "leave the cell empty or write NA"},
                 {"..", "leave the cell empty or write NA"},
                 {"26.5%", "write the number without the sign %"},
                 {"\"26,507\"", "write it without the comma, or with a point"},
                 {"\"2,5\"", "write 1.5, not 1,5"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[64];
        double v;
        bool missing = false;
        CASE(cases[k].cell);
        snprintf(text, sizeof text, "x,y\n1,%s\n", cases[k].cell);
        csv_table *t = parse(text);
        mnp_status status = csv_number(&E, t, 0, 1, &v, &missing);
        CHECK(cases[k].hint ? status == MNP_EFORMAT && strstr(E.error, cases[k].hint) != NULL
                            : status == MNP_OK && missing);
        csv_destroy(t);
    }
}

static void cells_that_are_no_numbers_are_named(void) {
    csv_table *t = parse("x;y\n1,5;2.5\nabc;\n1e999;NA\n inf;0x1\n");
    CHECK(t != NULL);
    if (!t) return;
    double v;
    bool missing;
    CHECK(csv_number(&E, t, 0, 0, &v, &missing) == MNP_EFORMAT);
    STREQ(E.error, "d.csv:2: column \"x\": \"1,5\" is not a number (write 1.5, not 1,5; "
                   "other numbers of the table have a point)");
    CHECK(csv_number(&E, t, 1, 0, &v, NULL) == MNP_EFORMAT);
    STREQ(E.error, "d.csv:3: column \"x\": \"abc\" is not a number (leave the cell empty or write "
                   "NA where a value is missing)");
    CHECK(csv_number(&E, t, 1, 1, &v, NULL) == MNP_EFORMAT);
    CHECK(strstr(E.error, "a value is needed here"));
    CHECK(csv_number(&E, t, 2, 0, &v, &missing) == MNP_EFORMAT && strstr(E.error, "too large"));
    CHECK(csv_number(&E, t, 2, 1, &v, &missing) == MNP_OK && missing && isnan(v));
    CHECK(csv_number(&E, t, 3, 0, &v, &missing) == MNP_EFORMAT);
    CHECK(csv_number(&E, t, 3, 1, &v, &missing) == MNP_EFORMAT);
    size_t column;
    CHECK(csv_find(&E, t, "z", &column) == MNP_EINVAL);
    STREQ(E.error, "d.csv: there is no column \"z\" (it has: x, y)");
    csv_destroy(t);
}

static void many_columns_and_rows_are_kept(void) {
    enum { COLUMNS = 200, ROWS = 500 };
    buf b;
    csv_writer w;
    buf_init(&b, &E);
    csv_writer_init(&w, &b, '\0');
    char name[20];
    for (int c = 0; c < COLUMNS; c++) {
        snprintf(name, sizeof name, "c%d", c);
        csv_put_text(&w, name);
    }
    csv_end_row(&w);
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLUMNS; c++) csv_put_integer(&w, r * COLUMNS + c);
        csv_end_row(&w);
    }
    csv_table *t = parse(buf_str(&b));
    CHECK(t && t->columns == COLUMNS && t->rows == ROWS);
    double v[ROWS], wrong = 0;
    for (size_t c = 0; t && c < COLUMNS; c++) {
        CHECK(csv_numbers(&E, t, c, v, NULL) == MNP_OK);
        for (size_t r = 0; r < ROWS; r++) wrong += v[r] != (double)(r * COLUMNS + c);
    }
    CHECK(wrong == 0);
    csv_destroy(t);
    buf_clear(&b);
    for (int c = 0; c <= CSV_COLUMNS_MAX; c++) buf_printf(&b, "c%d,", c);
    CHECK(!parse(buf_str(&b)) && strstr(E.error, "too many columns"));
    buf_clear(&b);
    for (int i = 0; i < CSV_NAME_MAX; i++) buf_text(&b, "n");
    t = parse(buf_str(&b));
    CHECK(t != NULL);
    csv_destroy(t);
    buf_text(&b, "n");
    CHECK(!parse(buf_str(&b)) &&
          strstr(E.error, "a column's name of 1025 bytes; the limit is 1024"));
    buf_free(&b);
}

static void what_is_written_is_read_back(void) {
    static const char *const texts[] = {"plain",   "",           "a,b",      "say \"hi\"",
                                        " blank ", "two\nlines", "\xc3\xa9", "\xef\xbb\xbfmark",
                                        "cr\r",    "semi;colon", "tab\there"};
    enum { N = sizeof texts / sizeof texts[0] };
    static const char separators[] = {',', ';', '\t'};
    for (int s = 0; s < 3; s++) {
        buf b;
        csv_writer w;
        buf_init(&b, &E);
        csv_writer_init(&w, &b, separators[s]);
        csv_put_text(&w, "text");
        csv_put_text(&w, "double");
        csv_put_text(&w, "float");
        csv_end_row(&w);
        for (int i = 0; i < N; i++) {
            csv_put_text(&w, texts[i]);
            csv_put_double(&w, i ? 1.0 / i : NAN);
            csv_put_float(&w, i ? 1.0f / (float)i : NAN);
            csv_end_row(&w);
        }
        CHECK(b.status == MNP_OK);
        csv_table *t = parse(buf_str(&b));
        CHECK(t && t->rows == N && t->separator == separators[s]);
        for (size_t i = 0; t && i < N; i++) {
            double x = 0, y = 0;
            bool none = false;
            STREQ(csv_cell(t, i, 0), texts[i]);
            CHECK(csv_number(&E, t, i, 1, &x, &none) == MNP_OK && none == (i == 0));
            CHECK(csv_number(&E, t, i, 2, &y, &none) == MNP_OK && none == (i == 0));
            if (i) CHECK(x == 1.0 / (double)i && (float)y == 1.0f / (float)i);
        }
        csv_destroy(t);
        buf_free(&b);
    }
}

static void the_text_is_plain(void) {
    buf b;
    csv_writer w;
    buf_init(&b, &E);
    csv_writer_init(&w, &b, '\0');
    csv_put_text(&w, "");
    csv_put_text(&w, "");
    csv_put_double(&w, 0.1);
    csv_put_float(&w, 0.1f);
    csv_put_double(&w, -INFINITY);
    csv_put_integer(&w, -7);
    csv_end_row(&w);
    STREQ(buf_str(&b), "\"\",,0.1,0.1,-inf,-7\n");
    buf_free(&b);
}

static void a_byte_order_mark_in_a_name_is_kept(void) {
    buf b;
    csv_writer w;
    buf_init(&b, &E);
    csv_writer_init(&w, &b, '\0');
    csv_put_text(&w, "\xef\xbb\xbfx");
    csv_end_row(&w);
    csv_table *t = parse(buf_str(&b));
    CHECK(t != NULL);
    if (t) STREQ(csv_header(t, 0), "\xef\xbb\xbfx");
    csv_destroy(t);
    buf_free(&b);
}

static void a_file_is_read(void) {
    char path[200];
    const char *base = getenv("TEST_TMP");
    snprintf(path, sizeof path, "%.150s/csv-%ld.csv", base ? base : "/tmp", (long)getpid());
    csv_table *t = NULL;
    CHECK(fsio_write(&E, path, "x,y\n1,2\n", 8) == MNP_OK);
    CHECK(csv_read(&E, path, '\0', &t) == MNP_OK && t && t->rows == 1);
    csv_destroy(t);
    unlink(path);
    CHECK(csv_read(&E, path, '\0', &t) == MNP_EIO && !t && strstr(E.error, "cannot open"));
}

int main(void) {
    env_init(&E);
    RUN(the_usual_dialects_mean_the_same);
    RUN(quotes_hold_anything);
    RUN(the_separator_can_be_given);
    RUN(bad_tables_are_refused_with_line_and_remedy);
    RUN(words_and_signs_in_cells);
    RUN(cells_that_are_no_numbers_are_named);
    RUN(many_columns_and_rows_are_kept);
    RUN(what_is_written_is_read_back);
    RUN(the_text_is_plain);
    RUN(a_byte_order_mark_in_a_name_is_kept);
    RUN(a_file_is_read);
    return check_done();
}
