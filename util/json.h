/* json.h: a strict JSON (RFC 8259) reader into a tree, and a writer into a buf.
 *
 * The reader refuses what is not JSON to the letter: comments, trailing commas, text after the end,
 * bad UTF-8, a key that appears twice in one object, nesting deeper than JSON_DEPTH_MAX, a number
 * that no finite double holds. Its messages name the source and line:column (columns in bytes). */
#ifndef MNP_BASE_JSON_H
#define MNP_BASE_JSON_H

#include "util/fsio.h"
#include "util/limits.h"

typedef enum json_kind {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} json_kind;

typedef struct json_value json_value;
struct json_value {
    json_kind kind;
    uint32_t line, column; /* where it starts in the text, from 1 */
    size_t count;          /* bytes of a string, items of an array, members of an object */
    union {
        bool boolean;
        double number;
        const char *string;      /* UTF-8 with a NUL after it; may hold NULs inside */
        const json_value *items; /* array: count values; object: key, value, key, value ... */
    };
    const json_value **order; /* object: its keys sorted, for json_get */
};

typedef struct json_doc json_doc; /* owns a tree and all its strings */

/* `name` is what messages call the text. */
mnp_status json_parse(env *e, const char *name, const char *text, size_t bytes, json_doc **out);
mnp_status json_read(env *e, const char *path, size_t limit, json_doc **out);
void json_destroy(json_doc *doc); /* accepts NULL */
const json_value *json_root(const json_doc *doc);

/* The member of an object, the item of an array; NULL where there is none (or v is NULL or of
 * another kind). In file order: json_key_at and json_value_at. */
const json_value *json_get(const json_value *v, const char *key);
const json_value *json_at(const json_value *v, size_t i);
const json_value *json_key_at(const json_value *v, size_t i);
const json_value *json_value_at(const json_value *v, size_t i);

/* Typed reading. NULL or another kind is an MNP_EFORMAT error that calls the value `what`. */
mnp_status json_number(env *e, const json_value *v, const char *what, double *out);
mnp_status json_integer(env *e, const json_value *v, const char *what, int64_t *out); /* < 2^53 */
mnp_status json_bool(env *e, const json_value *v, const char *what, bool *out);
mnp_status json_string(env *e, const json_value *v, const char *what, const char **out);
mnp_status json_array(env *e, const json_value *v, const char *what, size_t *count);
/* An array of exactly `count` numbers. */
mnp_status json_numbers(env *e, const json_value *v, const char *what, double *out, size_t count);

/* ---- writing ---------------------------------------------------------------------------------
 * Commas and line breaks come by themselves; failures stick to the buf. Text that is not UTF-8 is
 * written with U+FFFD in place of each bad byte, NaN and infinities as null, so the result is
 * always JSON. */
typedef struct json_writer {
    buf *out;
    int indent; /* spaces per level for the members of objects; 0: all on one line */
    int depth;
    bool after_key;
    bool used[JSON_DEPTH_MAX + 1]; /* the container at this depth has an item already */
} json_writer;

void json_writer_init(json_writer *w, buf *out, int indent);
void json_object_begin(json_writer *w);
void json_object_end(json_writer *w);
void json_array_begin(json_writer *w);
void json_array_end(json_writer *w);
void json_key(json_writer *w, const char *key);
void json_put_null(json_writer *w);
void json_put_bool(json_writer *w, bool v);
void json_put_integer(json_writer *w, int64_t v);
void json_put_number(json_writer *w, double v);
void json_put_float(json_writer *w, float v); /* with the digits of a float */
void json_put_string(json_writer *w, const char *text);
void json_put_raw(json_writer *w, const char *json);    /* text that is JSON already */
void json_put_lines(json_writer *w, const char *lines); /* each line of a text as a string */

#endif
