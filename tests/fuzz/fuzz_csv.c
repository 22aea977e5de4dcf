/* fuzz_csv.c: any text is read or refused; a table that was read, written and read again is the
 * same. */
#include "fuzz/fuzz.h"
#include "util/csv.h"

size_t fuzz_seed(size_t i, uint8_t *out) {
    static const char *const seeds[] = {
        "x,y\n1,2.5\n-3e2,NA\n",
        "\xef\xbb\xbfname;\"a \"\"b\"\"; c\"\r\n\"two\r\nlines\";1\r\n\r\n x ;\r\n",
        "a\tb\tc\r1\t\t3\r\t\t\r",
        "only\n1\n\n2",
        "a;b;\n1,5;-2,25e1;\n3;4;\n",
    };
    if (i >= sizeof seeds / sizeof seeds[0]) return 0;
    memcpy(out, seeds[i], strlen(seeds[i]));
    return strlen(seeds[i]);
}

static void write_table(csv_writer *w, const csv_table *t) {
    for (size_t i = 0; i < (1 + t->rows) * t->columns; i++) {
        csv_put_text(w, t->cells[i]);
        if (i % t->columns == t->columns - 1) csv_end_row(w);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const char separators[] = {'\0', ',', ';', '\t'};
    env e;
    env_init(&e);
    csv_table *t = NULL, *again = NULL;
    const char *text = (const char *)data;
    if (csv_parse(&e, "fuzz", text, bytes, separators[bytes % 4], &t) != MNP_OK) {
        FUZZ_CHECK(!t && e.error[0]);
        return 0;
    }
    for (size_t i = 0; i < t->rows * t->columns; i++) {
        double v = 0;
        bool missing = false;
        mnp_status status = csv_number(&e, t, i / t->columns, i % t->columns, &v, &missing);
        FUZZ_CHECK(status == MNP_EFORMAT || missing == (v != v));
    }
    buf b;
    csv_writer w;
    buf_init(&b, &e);
    csv_writer_init(&w, &b, t->separator);
    write_table(&w, t);
    FUZZ_CHECK(csv_parse(&e, "again", b.data, b.len, t->separator, &again) == MNP_OK);
    FUZZ_CHECK(again->rows == t->rows && again->columns == t->columns);
    for (size_t i = 0; i < (1 + t->rows) * t->columns; i++)
        FUZZ_CHECK(strcmp(t->cells[i], again->cells[i]) == 0);
    csv_destroy(again);
    csv_destroy(t);
    buf_free(&b);
    return 0;
}
