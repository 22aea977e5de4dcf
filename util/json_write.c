/* json_write.c: the writing half of json.h. Calls out of order are bugs and are asserted. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "util/json.h"
#include "util/text.h"

void json_writer_init(json_writer *w, buf *out, int indent) {
    *w = (json_writer){.out = out, .indent = indent};
}

static void new_line(json_writer *w) {
    buf_printf(w->out, "\n%*s", w->indent * w->depth, "");
}

/* What must stand between the item before and this one; a value after its key needs nothing. */
static void separate(json_writer *w, bool member) {
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (w->used[w->depth]) buf_text(w->out, w->indent && !member ? ", " : ",");
    w->used[w->depth] = true;
    if (w->indent && member) new_line(w);
}

static void begin(json_writer *w, const char *bracket) {
    separate(w, false);
    buf_text(w->out, bracket);
    assert(w->depth < JSON_DEPTH_MAX);
    w->used[++w->depth] = false;
}

void json_object_begin(json_writer *w) {
    begin(w, "{");
}

void json_array_begin(json_writer *w) {
    begin(w, "[");
}

void json_object_end(json_writer *w) {
    assert(w->depth > 0 && !w->after_key);
    bool used = w->used[w->depth--];
    if (used && w->indent) new_line(w);
    buf_text(w->out, "}");
}

void json_array_end(json_writer *w) {
    assert(w->depth > 0 && !w->after_key);
    w->depth--;
    buf_text(w->out, "]");
}

static void put_quoted(buf *b, const char *text, size_t left) {
    buf_text(b, "\"");
    while (left) {
        unsigned char c = (unsigned char)*text;
        size_t n = fsio_utf8_len(text, left);
        if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", c);
        else if (c == '\n')
            buf_text(b, "\\n");
        else if (n == 0)
            buf_text(b, "\xef\xbf\xbd");                    /* U+FFFD */
        else if (text_is_control(text_code_point(text, n))) /* all below U+10000 */
            buf_printf(b, "\\u%04x", (unsigned)text_code_point(text, n));
        else
            buf_append(b, text, n);
        text += n ? n : 1;
        left -= n ? n : 1;
    }
    buf_text(b, "\"");
}

void json_key(json_writer *w, const char *key) {
    assert(w->depth > 0 && !w->after_key);
    separate(w, true);
    put_quoted(w->out, key, strlen(key));
    buf_text(w->out, w->indent ? ": " : ":");
    w->after_key = true;
}

void json_put_string(json_writer *w, const char *text) {
    separate(w, false);
    put_quoted(w->out, text, strlen(text));
}

void json_put_raw(json_writer *w, const char *json) {
    separate(w, false);
    buf_text(w->out, json);
}

void json_put_lines(json_writer *w, const char *lines) {
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        separate(w, false);
        put_quoted(w->out, lines, length);
        lines += length + (lines[length] == '\n');
    }
}

void json_put_null(json_writer *w) {
    separate(w, false);
    buf_text(w->out, "null");
}

void json_put_bool(json_writer *w, bool v) {
    separate(w, false);
    buf_text(w->out, v ? "true" : "false");
}

void json_put_integer(json_writer *w, int64_t v) {
    separate(w, false);
    buf_printf(w->out, "%" PRId64, v);
}

void json_put_number(json_writer *w, double v) {
    if (!isfinite(v)) {
        json_put_null(w);
        return;
    }
    separate(w, false);
    buf_double(w->out, v);
}

void json_put_float(json_writer *w, float v) {
    if (!isfinite(v)) {
        json_put_null(w);
        return;
    }
    separate(w, false);
    buf_float(w->out, v);
}
