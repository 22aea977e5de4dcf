/* csv.c: the table reader and writer. See csv.h for the contract.
 *
 * The reader keeps the text of the file and cuts it in place: a field is unquoted where it lies and
 * ends with a NUL, which takes the place of a blank, a quote or the separator after it. */
#include "util/csv.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "util/text.h"

static const char byte_order_mark[] = "\xef\xbb\xbf";

typedef struct parser {
    env *e;
    csv_table *t;
    char *at, *end;
    uint32_t line;
} parser;

static mnp_status bad(parser *p, uint32_t line, const char *what) {
    return env_fail(p->e, MNP_EFORMAT, "%s:%" PRIu32 ": %s", p->t->name, line, what);
}

static bool is_blank(const parser *p, char c) {
    return (c == ' ' || c == '\t') && c != p->t->separator;
}

static bool is_end(const parser *p, const char *s) {
    return s == p->end || *s == '\n' || *s == '\r';
}

static void skip_blanks(parser *p) {
    while (p->at < p->end && is_blank(p, *p->at)) p->at++;
}

/* After the LF, CRLF or CR at p->at. */
static void next_line(parser *p) {
    if (p->at == p->end) return;
    if (*p->at == '\r' && p->at + 1 < p->end && p->at[1] == '\n') p->at++;
    p->at++;
    p->line++;
}

/* p->at stands on the opening quote. Newlines inside are kept as they are. */
static mnp_status quoted_field(parser *p, char **cell) {
    uint32_t line = p->line;
    char *dst = ++p->at;
    *cell = dst;
    for (;; p->at++) {
        if (p->at == p->end)
            return bad(p, line, "a quote \" is opened and never closed (add the closing quote)");
        if (*p->at == '"') {
            if (p->at + 1 == p->end || p->at[1] != '"') break;
            p->at++;
        } else if (*p->at == '\n' || (*p->at == '\r' && p->at[1] != '\n')) {
            p->line++;
        }
        *dst++ = *p->at;
    }
    p->at++;
    skip_blanks(p);
    if (!is_end(p, p->at) && *p->at != p->t->separator)
        return bad(p, p->line, "text after a closing quote (write a quote inside a field as \"\")");
    *dst = '\0'; /* at or before the closing quote */
    return MNP_OK;
}

static mnp_status plain_field(parser *p, char **cell, char **cut) {
    *cell = p->at;
    while (!is_end(p, p->at) && *p->at != p->t->separator) {
        if (*p->at == '"')
            return bad(p, p->line, "a quote \" inside a field (put the whole field in quotes)");
        p->at++;
    }
    *cut = p->at;
    while (*cut > *cell && is_blank(p, (*cut)[-1])) (*cut)--;
    return MNP_OK;
}

/* One field and the separator or line end after it; *last where the row ends with it. */
static mnp_status read_field(parser *p, char **cell, bool *last) {
    char *cut = NULL;
    skip_blanks(p);
    if (p->at < p->end && *p->at == '"')
        MNP_TRY(quoted_field(p, cell));
    else
        MNP_TRY(plain_field(p, cell, &cut));
    *last = is_end(p, p->at);
    if (*last)
        next_line(p);
    else
        p->at++;
    if (cut) *cut = '\0'; /* only now: it may lie on the separator */
    return MNP_OK;
}

static bool blank_line(const parser *p) {
    const char *s = p->at;
    while (s < p->end && is_blank(p, *s)) s++;
    return s < p->end && is_end(p, s);
}

/* Skips empty lines; false at the end of the text. */
static bool find_row(parser *p) {
    while (p->at < p->end && blank_line(p)) {
        skip_blanks(p);
        next_line(p);
    }
    const char *s = p->at;
    while (s < p->end && is_blank(p, *s)) s++;
    return s < p->end;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* The separator that the first row has most of, outside quotes. Beside another one, a comma between
 * digits is a decimal comma: "id;0,25;0,5". */
static char guess_separator(const char *s, const char *end) {
    static const char choices[] = {',', ';', '\t'};
    size_t counts[3] = {0}, decimal = 0;
    bool quoted = false;
    for (const char *from = s; s < end && (quoted || (*s != '\n' && *s != '\r')); s++) {
        if (*s == '"') quoted = !quoted;
        for (int i = 0; i < 3; i++) counts[i] += !quoted && *s == choices[i];
        decimal +=
            !quoted && *s == ',' && s > from && is_digit(s[-1]) && s + 1 < end && is_digit(s[1]);
    }
    if (counts[1] + counts[2] > 0) counts[0] -= decimal;
    int best = 0;
    for (int i = 1; i < 3; i++)
        if (counts[i] > counts[best]) best = i;
    return choices[best];
}

static mnp_status read_header(parser *p) {
    csv_table *t = p->t;
    size_t cap = 0;
    if (!find_row(p)) return bad(p, 1, "the file is empty (the first row must name the columns)");
    uint32_t line = p->line;
    for (bool last = false; !last; t->columns++) {
        if (t->columns == CSV_COLUMNS_MAX) return bad(p, line, "too many columns");
        if (t->columns == cap) {
            size_t more = cap ? cap * 2 : 16;
            char **cells = env_grow(p->e, t->cells, cap, more, sizeof *cells, "a table");
            if (!cells) return MNP_ENOMEM;
            t->cells = cells;
            cap = more;
        }
        MNP_TRY(read_field(p, &t->cells[t->columns], &last));
    }
    t->lines = env_alloc(p->e, 1, sizeof *t->lines, "a table");
    if (!t->lines) return MNP_ENOMEM;
    t->lines[0] = line;
    return MNP_OK;
}

static mnp_status check_header(parser *p) {
    const csv_table *t = p->t;
    size_t numbers = 0;
    double ignored;
    for (size_t i = 0; i < t->columns; i++)
        numbers += fsio_parse_double(t->cells[i], strlen(t->cells[i]), &ignored);
    if (numbers == t->columns)
        return bad(p, t->lines[0],
                   "the first row holds only numbers (put a row with the names of the columns, "
                   "such as x,y, above it)");
    for (size_t i = 0; i < t->columns; i++) {
        if (strlen(t->cells[i]) > CSV_NAME_MAX)
            return env_fail(p->e, MNP_EFORMAT,
                            "%s:%" PRIu32 ": a column's name of %zu bytes; the limit is %d (is the "
                            "first row the names of the columns?)",
                            t->name, t->lines[0], strlen(t->cells[i]), CSV_NAME_MAX);
        for (size_t j = 0; j < i; j++)
            if (*t->cells[i] && strcmp(t->cells[i], t->cells[j]) == 0)
                return env_fail(p->e, MNP_EFORMAT,
                                "%s:%" PRIu32 ": two columns are called \"%.80s\" (rename one)",
                                t->name, t->lines[0], t->cells[i]);
    }
    return MNP_OK;
}

static mnp_status reserve_row(parser *p) {
    csv_table *t = p->t;
    if (t->rows < t->row_cap) return MNP_OK;
    size_t cap = t->row_cap ? t->row_cap * 2 : 64, n = t->columns;
    char **cells =
        env_grow(p->e, t->cells, (1 + t->rows) * n, (1 + cap) * n, sizeof *cells, "a table");
    if (!cells) return MNP_ENOMEM;
    t->cells = cells;
    uint32_t *lines = env_grow(p->e, t->lines, 1 + t->rows, 1 + cap, sizeof *lines, "a table");
    if (!lines) return MNP_ENOMEM;
    t->lines = lines;
    t->row_cap = cap;
    return MNP_OK;
}

static mnp_status read_row(parser *p) {
    csv_table *t = p->t;
    MNP_TRY(reserve_row(p));
    uint32_t line = t->lines[1 + t->rows] = p->line;
    char **row = t->cells + (1 + t->rows) * t->columns;
    size_t fields = 0;
    for (bool last = false; !last; fields++) {
        char *extra;
        MNP_TRY(read_field(p, fields < t->columns ? &row[fields] : &extra, &last));
    }
    if (fields != t->columns && t->columns == 1)
        return env_fail(p->e, MNP_EFORMAT,
                        "%s:%" PRIu32 ": %zu fields where line %" PRIu32 " has 1 (the first line "
                        "must name the columns: delete what stands above their names)",
                        t->name, line, fields, t->lines[0]);
    if (fields != t->columns)
        return env_fail(p->e, MNP_EFORMAT,
                        "%s:%" PRIu32 ": %zu field%s where the header has %zu (fix this row; a "
                        "field that contains '%s' must stand in quotes)",
                        t->name, line, fields, fields == 1 ? "" : "s", t->columns,
                        t->separator == '\t' ? "tab" : (char[]){t->separator, '\0'});
    t->rows++;
    return MNP_OK;
}

static mnp_status check_text(parser *p) {
    uint32_t line = 1;
    size_t n = (size_t)(p->end - p->at);
    if (n >= 2 && (memcmp(p->at, "\xff\xfe", 2) == 0 || memcmp(p->at, "\xfe\xff", 2) == 0))
        return bad(p, 1, "the file is UTF-16 (save it as CSV UTF-8)");
    if (n >= 4 && (memcmp(p->at, "PK\3\4", 4) == 0 || memcmp(p->at, "\xd0\xcf\x11\xe0", 4) == 0))
        return env_fail(p->e, MNP_EFORMAT,
                        "%s: this is a spreadsheet or another archive, not a text file (open it in "
                        "the program that made it and save the sheet as CSV UTF-8)",
                        p->t->name);
    for (const char *s = p->at; s < p->end;) {
        size_t length = fsio_utf8_len(s, (size_t)(p->end - s));
        if (length == 0) return bad(p, line, "not UTF-8 text (save the file as CSV UTF-8)");
        if (*s == '\0') return bad(p, line, "a NUL byte (this is not a text file)");
        line += *s == '\n';
        s += length;
    }
    return MNP_OK;
}

/* Digits, the sign, digits: "1,5", "-0.25", "1,2e3". */
static bool has_decimals(const char *s, char sign) {
    s += *s == '+' || *s == '-';
    size_t before = strspn(s, "0123456789");
    if (s[before] != sign) return false;
    s += before + 1;
    size_t after = strspn(s, "0123456789");
    return before > 0 && after > 0 && (!s[after] || s[after] == 'e' || s[after] == 'E');
}

/* A comma, where it is in numbers and the point is in none of them. */
static char find_decimal(const csv_table *t) {
    bool comma = false;
    for (size_t i = t->columns; t->separator != ',' && i < (1 + t->rows) * t->columns; i++) {
        if (has_decimals(t->cells[i], '.')) return '.';
        comma |= has_decimals(t->cells[i], ',');
    }
    return comma ? ',' : '.';
}

static mnp_status parse_table(parser *p, char separator) {
    if (separator == '"' || separator == '\n' || separator == '\r')
        return env_fail(p->e, MNP_EINVAL, "a quote or a line end cannot separate fields");
    MNP_TRY(check_text(p));
    if (p->end - p->at >= 3 && memcmp(p->at, byte_order_mark, 3) == 0) p->at += 3;
    while (p->at < p->end && is_end(p, p->at)) next_line(p);
    p->t->separator = separator ? separator : guess_separator(p->at, p->end);
    MNP_TRY(read_header(p));
    MNP_TRY(check_header(p));
    while (find_row(p)) MNP_TRY(read_row(p));
    p->t->decimal = find_decimal(p->t);
    return MNP_OK;
}

/* Takes over `text`, which has a NUL after its last byte. */
static mnp_status parse_owned(env *e, const char *name, char *text, size_t bytes, char separator,
                              csv_table **out) {
    csv_table *t = env_alloc(e, 1, sizeof *t, "a table");
    if (!t) {
        env_free(e, text);
        return MNP_ENOMEM;
    }
    *t = (csv_table){
        .e = e, .text = text, .name = env_strdup(e, name), .hash = text_hash(0, text, bytes)};
    parser p = {.e = e, .t = t, .at = text, .end = text + bytes, .line = 1};
    mnp_status status = t->name ? parse_table(&p, separator) : MNP_ENOMEM;
    if (status == MNP_OK)
        *out = t;
    else
        csv_destroy(t);
    return status;
}

mnp_status csv_read(env *e, const char *path, char separator, csv_table **out) {
    char *text;
    size_t bytes;
    *out = NULL;
    MNP_TRY(fsio_read(e, path, CSV_BYTES_MAX, &text, &bytes));
    return parse_owned(e, path, text, bytes, separator, out);
}

mnp_status csv_parse(env *e, const char *name, const char *text, size_t bytes, char separator,
                     csv_table **out) {
    *out = NULL;
    if (bytes > CSV_BYTES_MAX)
        return env_fail(e, MNP_EFORMAT, "%s: larger than the %d bytes allowed here", name,
                        CSV_BYTES_MAX);
    char *copy = env_alloc(e, bytes + 1, 1, "a table");
    if (!copy) return MNP_ENOMEM;
    if (bytes) memcpy(copy, text, bytes);
    return parse_owned(e, name, copy, bytes, separator, out);
}

void csv_destroy(csv_table *t) {
    if (!t) return;
    env_free(t->e, t->name);
    env_free(t->e, t->text);
    env_free(t->e, t->cells);
    env_free(t->e, t->lines);
    env_free(t->e, t);
}

/* ---- looking into the table ------------------------------------------------------------------ */

const char *csv_header(const csv_table *t, size_t column) {
    return t->cells[column];
}

const char *csv_cell(const csv_table *t, size_t row, size_t column) {
    return t->cells[(1 + row) * t->columns + column];
}

mnp_status csv_find(env *e, const csv_table *t, const char *name, size_t *column) {
    for (size_t i = 0; i < t->columns; i++)
        if (strcmp(t->cells[i], name) == 0) {
            *column = i;
            return MNP_OK;
        }
    char list[256];
    size_t used = 0;
    list[0] = '\0';
    for (size_t i = 0; i < t->columns && used + 1 < sizeof list; i++) {
        int n = snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", t->cells[i]);
        used += (size_t)n;
    }
    return env_fail(e, MNP_EINVAL, "%s: there is no column \"%.80s\" (it has: %s%s)", t->name, name,
                    list, used >= sizeof list ? "..." : "");
}

bool csv_missing(const char *cell) {
    static const char *const words[] = {"NA", "NaN", "N/A", "#N/A", "NULL", "."};
    bool missing = !*cell;
    for (size_t k = 0; k < sizeof words / sizeof *words && !missing; k++)
        missing = strcasecmp(cell, words[k]) == 0;
    return missing;
}

bool csv_is_number(const csv_table *t, const char *cell, double *out) {
    char text[FSIO_NUMBER_MAX];
    size_t n = strlen(cell);
    const char *comma = t->decimal == ',' ? strchr(cell, ',') : NULL;
    if (!comma) return fsio_parse_double(cell, n, out);
    if (n >= sizeof text || strchr(cell, '.')) return false;
    memcpy(text, cell, n);
    text[comma - cell] = '.';
    return fsio_parse_double(text, n, out);
}

/* "26,507": is it 26507, or 26.507? */
static bool may_be_thousands(const char *cell) {
    const char *comma = strchr(cell, ',');
    return comma && has_decimals(cell, ',') && strspn(comma + 1, "0123456789") == 3;
}

static const char *number_hint(const csv_table *t, const char *cell, bool none, bool number) {
    size_t digits = strspn(cell, "0123456789,.+-"), n = strlen(cell);
    if (none) return "a value is needed here";
    if (number) return "too large";
    if (digits + 1 == n && cell[digits] == '%') return "write the number without the sign %";
    if (digits < n || strcspn(cell, "0123456789") == n)
        return "leave the cell empty or write NA where a value is missing";
    if (t->decimal == '.' && may_be_thousands(cell))
        return "write it without the comma, or with a point where the comma is one";
    return t->decimal == ',' ? "write 1234,5, not 1.234,5"
           : t->separator != ',' && has_decimals(cell, ',')
               ? "write 1.5, not 1,5; other numbers of the table have a point"
               : "write 1.5, not 1,5";
}

mnp_status csv_number(env *e, const csv_table *t, size_t row, size_t column, double *out,
                      bool *missing) {
    const char *text = csv_cell(t, row, column);
    bool none = csv_missing(text);
    if (missing) *missing = none;
    *out = NAN;
    if (none && missing) return MNP_OK;
    bool number = csv_is_number(t, text, out);
    if (number && isfinite(*out)) return MNP_OK;
    return env_fail(e, MNP_EFORMAT,
                    "%s:%" PRIu32 ": column \"%.80s\": \"%.40s\" is not a number (%s)", t->name,
                    t->lines[1 + row], t->cells[column], text, number_hint(t, text, none, number));
}

mnp_status csv_numbers(env *e, const csv_table *t, size_t column, double *out, bool *missing) {
    for (size_t i = 0; i < t->rows; i++)
        MNP_TRY(csv_number(e, t, i, column, &out[i], missing ? &missing[i] : NULL));
    return MNP_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

void csv_writer_init(csv_writer *w, buf *out, char separator) {
    *w = (csv_writer){.out = out, .separator = separator ? separator : ','};
}

static void separate(csv_writer *w) {
    if (w->in_row) buf_append(w->out, &w->separator, 1);
    w->in_row = true;
}

/* Quotes are needed around what the reader would cut, trim or skip. */
static bool needs_quotes(const csv_writer *w, const char *text, bool first) {
    const char special[] = {'"', '\r', '\n', w->separator, '\0'};
    size_t n = strlen(text);
    if (n == 0) return first; /* a lone empty cell would be an empty line */
    if (strncmp(text, byte_order_mark, 3) == 0) return true;
    return text[strcspn(text, special)] || strchr(" \t", text[0]) || strchr(" \t", text[n - 1]);
}

void csv_put_text(csv_writer *w, const char *text) {
    bool quotes = needs_quotes(w, text, !w->in_row);
    separate(w);
    if (!quotes) {
        buf_text(w->out, text);
        return;
    }
    buf_text(w->out, "\"");
    for (; *text; text++) {
        if (*text == '"') buf_text(w->out, "\"");
        buf_append(w->out, text, 1);
    }
    buf_text(w->out, "\"");
}

void csv_put_double(csv_writer *w, double v) {
    separate(w);
    if (isnan(v))
        buf_text(w->out, "NA");
    else
        buf_double(w->out, v);
}

void csv_put_float(csv_writer *w, float v) {
    separate(w);
    if (isnan(v))
        buf_text(w->out, "NA");
    else
        buf_float(w->out, v);
}

void csv_put_integer(csv_writer *w, int64_t v) {
    separate(w);
    buf_printf(w->out, "%" PRId64, v);
}

void csv_end_row(csv_writer *w) {
    buf_text(w->out, "\n");
    w->in_row = false;
}
