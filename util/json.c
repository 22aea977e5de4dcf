/* json.c: the JSON reader and writer. See json.h for the contract.
 *
 * The reader is a recursive descent over the text. The items of an open container wait on a stack
 * and move into the document's arena, in one piece, when it closes. */
#include "util/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the arena of a document ----------------------------------------------------------------- */

enum { BLOCK_FIRST = 4096, BLOCK_LARGE = 1 << 20 };

typedef struct block {
    struct block *next;
    size_t used, cap; /* bytes after this header */
} block;

struct json_doc {
    env *e;
    block *blocks;
    json_value root;
};

static void *take(json_doc *doc, size_t bytes) {
    bytes = (bytes + 7) & ~(size_t)7;
    block *b = doc->blocks;
    if (!b || b->cap - b->used < bytes) {
        size_t cap = !b ? BLOCK_FIRST : b->cap < BLOCK_LARGE ? b->cap * 2 : BLOCK_LARGE;
        if (cap < bytes) cap = bytes;
        b = env_alloc(doc->e, sizeof(block) + cap, 1, "a JSON tree");
        if (!b) return NULL;
        *b = (block){.next = doc->blocks, .cap = cap};
        doc->blocks = b;
    }
    void *p = (char *)(b + 1) + b->used;
    b->used += bytes;
    return p;
}

void json_destroy(json_doc *doc) {
    if (!doc) return;
    for (block *b = doc->blocks, *next; b; b = next) {
        next = b->next;
        env_free(doc->e, b);
    }
    env_free(doc->e, doc);
}

const json_value *json_root(const json_doc *doc) {
    return &doc->root;
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct parser {
    env *e;
    json_doc *doc;
    const char *name, *at, *end;
    const char *line_start;
    uint32_t line;
    int depth;
    json_value *stack;
    size_t count, cap;
} parser;

static mnp_status bad(parser *p, const char *what) {
    return env_fail(p->e, MNP_EFORMAT, "%s:%" PRIu32 ":%zu: %s", p->name, p->line,
                    (size_t)(p->at - p->line_start) + 1, what);
}

/* A newline can only stand between tokens: strings may not contain a raw one. */
static void skip_space(parser *p) {
    for (; p->at < p->end; p->at++) {
        if (*p->at == '\n') {
            p->line++;
            p->line_start = p->at + 1;
        } else if (*p->at != ' ' && *p->at != '\t' && *p->at != '\r') {
            return;
        }
    }
}

static bool accept(parser *p, char c) {
    skip_space(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static mnp_status push(parser *p, const json_value *v) {
    if (p->count == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 64;
        json_value *more = env_grow(p->e, p->stack, p->cap, cap, sizeof *more, "a JSON tree");
        if (!more) return MNP_ENOMEM;
        p->stack = more;
        p->cap = cap;
    }
    p->stack[p->count++] = *v;
    return MNP_OK;
}

/* The values above `base` become the items of the container that just closed. */
static mnp_status pop_items(parser *p, size_t base, json_value *out) {
    size_t n = p->count - base;
    if (n == 0) return MNP_OK;
    json_value *items = take(p->doc, n * sizeof *items);
    if (!items) return MNP_ENOMEM;
    memcpy(items, p->stack + base, n * sizeof *items);
    p->count = base;
    out->items = items;
    out->count = n;
    return MNP_OK;
}

static bool digits(parser *p) {
    const char *first = p->at;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9') p->at++;
    return p->at > first;
}

static mnp_status parse_number(parser *p, json_value *out) {
    const char *first = p->at;
    if (*p->at == '-') p->at++;
    const char *lead = p->at;
    if (!digits(p)) return bad(p, "a digit is missing here");
    if (*lead == '0' && p->at - lead > 1) {
        p->at = lead;
        return bad(p, "a number may not start with a superfluous 0");
    }
    if (p->at < p->end && *p->at == '.') {
        p->at++;
        if (!digits(p)) return bad(p, "a digit is missing after the decimal point");
    }
    if (p->at < p->end && (*p->at == 'e' || *p->at == 'E')) {
        p->at++;
        if (p->at < p->end && (*p->at == '+' || *p->at == '-')) p->at++;
        if (!digits(p)) return bad(p, "a digit is missing in the exponent");
    }
    out->kind = JSON_NUMBER;
    size_t bytes = (size_t)(p->at - first);
    bool read = fsio_parse_double(first, bytes, &out->number);
    if (read && isfinite(out->number)) return MNP_OK;
    p->at = first;
    return bad(p, read ? "a number too large for a double" : "a number with too many digits");
}

/* The four hexadecimal digits after "\u"; -1 where they are not. */
static int32_t hex4(const char *s, const char *end) {
    int32_t v = 0;
    if (end - s < 4) return -1;
    for (int i = 0; i < 4; i++) {
        char c = s[i];
        int32_t d = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

static char *put_utf8(char *out, int32_t c) {
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | (c >> 6));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | (c >> 12));
        *out++ = (char)(0x80 | ((c >> 6) & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else {
        *out++ = (char)(0xf0 | (c >> 18));
        *out++ = (char)(0x80 | ((c >> 12) & 0x3f));
        *out++ = (char)(0x80 | ((c >> 6) & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    }
    return out;
}

/* p->at stands after "\u"; characters past U+FFFF come as a pair of surrogates. */
static mnp_status parse_unicode(parser *p, char **dst) {
    int32_t c = hex4(p->at, p->end);
    if (c < 0) return bad(p, "\\u needs four hexadecimal digits");
    p->at += 4;
    if (c >= 0xdc00 && c <= 0xdfff) return bad(p, "a low surrogate without a high one before it");
    if (c >= 0xd800 && c <= 0xdbff) {
        bool escape = p->end - p->at >= 2 && p->at[0] == '\\' && p->at[1] == 'u';
        int32_t low = escape ? hex4(p->at + 2, p->end) : -1;
        if (low < 0xdc00 || low > 0xdfff)
            return bad(p, "a high surrogate without a low one after it");
        p->at += 6;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    *dst = put_utf8(*dst, c);
    return MNP_OK;
}

static mnp_status parse_escape(parser *p, char **dst) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (p->end - p->at < 2) return bad(p, "the text ends inside a string");
    const char *which = p->at[1] ? strchr(from, p->at[1]) : NULL;
    if (!which && p->at[1] != 'u') return bad(p, "an unknown \\ escape");
    p->at += 2;
    if (!which) return parse_unicode(p, dst);
    *(*dst)++ = to[which - from];
    return MNP_OK;
}

/* Decoding never makes a string longer, so the raw length is room enough. */
static mnp_status parse_string(parser *p, json_value *out) {
    const char *close = ++p->at;
    while (close < p->end && *close != '"') close += *close == '\\' && close + 1 < p->end ? 2 : 1;
    char *text = take(p->doc, (size_t)(close - p->at) + 1), *dst = text;
    if (!text) return MNP_ENOMEM;
    for (;;) {
        if (p->at == p->end) return bad(p, "the text ends inside a string");
        if (*p->at == '"') break;
        if (*p->at == '\\') {
            MNP_TRY(parse_escape(p, &dst));
            continue;
        }
        if ((unsigned char)*p->at < 0x20)
            return bad(p, "a control character in a string (write it as an escape)");
        size_t n = fsio_utf8_len(p->at, (size_t)(p->end - p->at));
        if (n == 0) return bad(p, "not UTF-8");
        memcpy(dst, p->at, n);
        dst += n;
        p->at += n;
    }
    p->at++;
    *dst = '\0';
    out->kind = JSON_STRING;
    out->string = text;
    out->count = (size_t)(dst - text);
    return MNP_OK;
}

static mnp_status parse_value(parser *p, json_value *out);

static mnp_status parse_array(parser *p, json_value *out) {
    size_t base = p->count;
    p->at++;
    out->kind = JSON_ARRAY;
    if (accept(p, ']')) return MNP_OK;
    do {
        json_value item;
        MNP_TRY(parse_value(p, &item));
        MNP_TRY(push(p, &item));
    } while (accept(p, ','));
    if (!accept(p, ']')) return bad(p, "expected , or ] in an array");
    return pop_items(p, base, out);
}

static int compare_text(const char *a, size_t na, const char *b, size_t nb) {
    int order = memcmp(a, b, na < nb ? na : nb);
    return order ? order : (na > nb) - (na < nb);
}

static int compare_keys(const void *a, const void *b) {
    const json_value *ka = *(const json_value *const *)a, *kb = *(const json_value *const *)b;
    return compare_text(ka->string, ka->count, kb->string, kb->count);
}

static mnp_status sort_keys(parser *p, json_value *v) {
    v->count /= 2;
    v->order = take(p->doc, v->count * sizeof *v->order);
    if (!v->order) return MNP_ENOMEM;
    for (size_t i = 0; i < v->count; i++) v->order[i] = &v->items[2 * i];
    qsort(v->order, v->count, sizeof *v->order, compare_keys);
    for (size_t i = 1; i < v->count; i++) {
        const json_value *a = v->order[i - 1], *b = v->order[i];
        if (compare_keys(&a, &b) != 0) continue;
        const json_value *later = a > b ? a : b;
        return env_fail(p->e, MNP_EFORMAT,
                        "%s:%" PRIu32 ":%" PRIu32 ": the key \"%.80s\" appears "
                        "twice in one object",
                        p->name, later->line, later->column, later->string);
    }
    return MNP_OK;
}

static mnp_status parse_object(parser *p, json_value *out) {
    size_t base = p->count;
    p->at++;
    out->kind = JSON_OBJECT;
    if (accept(p, '}')) return MNP_OK;
    do {
        json_value item;
        skip_space(p);
        if (p->at == p->end || *p->at != '"') return bad(p, "expected a key in double quotes");
        MNP_TRY(parse_value(p, &item));
        MNP_TRY(push(p, &item));
        if (!accept(p, ':')) return bad(p, "expected : after a key");
        MNP_TRY(parse_value(p, &item));
        MNP_TRY(push(p, &item));
    } while (accept(p, ','));
    if (!accept(p, '}')) return bad(p, "expected , or } in an object");
    MNP_TRY(pop_items(p, base, out));
    return sort_keys(p, out);
}

static bool word(parser *p, const char *text) {
    size_t n = strlen(text);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, text, n) != 0) return false;
    p->at += n;
    return true;
}

static mnp_status parse_value(parser *p, json_value *out) {
    skip_space(p);
    *out = (json_value){.line = p->line, .column = (uint32_t)(p->at - p->line_start) + 1};
    if (p->at == p->end) return bad(p, "the text ends where a value should be");
    char c = *p->at;
    if (c == '"') return parse_string(p, out);
    if (c == '-' || (c >= '0' && c <= '9')) return parse_number(p, out);
    if (c == '{' || c == '[') {
        if (p->depth == JSON_DEPTH_MAX) return bad(p, "nested too deep");
        p->depth++;
        mnp_status status = c == '{' ? parse_object(p, out) : parse_array(p, out);
        p->depth--;
        return status;
    }
    if (word(p, "null")) return MNP_OK;
    out->kind = JSON_BOOL;
    out->boolean = c == 't';
    if (word(p, "true") || word(p, "false")) return MNP_OK;
    return bad(p, "expected a value: an object, an array, a string, a number, true, false or null");
}

mnp_status json_parse(env *e, const char *name, const char *text, size_t bytes, json_doc **out) {
    *out = NULL;
    json_doc *doc = env_alloc(e, 1, sizeof *doc, "a JSON tree");
    if (!doc) return MNP_ENOMEM;
    doc->e = e;
    parser p = {.e = e, .doc = doc, .name = name, .at = text, .end = text + bytes, .line = 1};
    p.line_start = text;
    mnp_status status = parse_value(&p, &doc->root);
    skip_space(&p);
    if (status == MNP_OK && p.at < p.end) status = bad(&p, "text after the end of the value");
    env_free(e, p.stack);
    if (status == MNP_OK)
        *out = doc;
    else
        json_destroy(doc);
    return status;
}

mnp_status json_read(env *e, const char *path, size_t limit, json_doc **out) {
    char *text;
    size_t bytes;
    *out = NULL;
    MNP_TRY(fsio_read(e, path, limit, &text, &bytes));
    mnp_status status = json_parse(e, path, text, bytes, out);
    env_free(e, text);
    return status;
}

/* ---- looking into the tree ------------------------------------------------------------------- */

const json_value *json_get(const json_value *v, const char *key) {
    if (!v || v->kind != JSON_OBJECT) return NULL;
    size_t low = 0, high = v->count, length = strlen(key);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const json_value *k = v->order[mid];
        int order = compare_text(key, length, k->string, k->count);
        if (order == 0) return k + 1; /* the value lies after its key */
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

const json_value *json_at(const json_value *v, size_t i) {
    return v && v->kind == JSON_ARRAY && i < v->count ? &v->items[i] : NULL;
}

const json_value *json_key_at(const json_value *v, size_t i) {
    return v && v->kind == JSON_OBJECT && i < v->count ? &v->items[2 * i] : NULL;
}

const json_value *json_value_at(const json_value *v, size_t i) {
    return v && v->kind == JSON_OBJECT && i < v->count ? &v->items[2 * i + 1] : NULL;
}

static mnp_status expect(env *e, const json_value *v, json_kind kind, const char *what) {
    static const char *const names[] = {"null",     "true or false", "a number",
                                        "a string", "an array",      "an object"};
    if (v && v->kind == kind) return MNP_OK;
    if (!v) return env_fail(e, MNP_EFORMAT, "%s is missing", what);
    return env_fail(e, MNP_EFORMAT, "line %" PRIu32 ": %s must be %s, not %s", v->line, what,
                    names[kind], names[v->kind]);
}

mnp_status json_number(env *e, const json_value *v, const char *what, double *out) {
    MNP_TRY(expect(e, v, JSON_NUMBER, what));
    *out = v->number;
    return MNP_OK;
}

mnp_status json_integer(env *e, const json_value *v, const char *what, int64_t *out) {
    MNP_TRY(expect(e, v, JSON_NUMBER, what));
    if (floor(v->number) != v->number || fabs(v->number) >= 0x1p53)
        return env_fail(e, MNP_EFORMAT, "line %" PRIu32 ": %s must be a whole number below 2^53",
                        v->line, what);
    *out = (int64_t)v->number;
    return MNP_OK;
}

mnp_status json_bool(env *e, const json_value *v, const char *what, bool *out) {
    MNP_TRY(expect(e, v, JSON_BOOL, what));
    *out = v->boolean;
    return MNP_OK;
}

mnp_status json_string(env *e, const json_value *v, const char *what, const char **out) {
    MNP_TRY(expect(e, v, JSON_STRING, what));
    if (memchr(v->string, '\0', v->count))
        return env_fail(e, MNP_EFORMAT, "line %" PRIu32 ": %s contains a NUL character", v->line,
                        what);
    *out = v->string;
    return MNP_OK;
}

mnp_status json_array(env *e, const json_value *v, const char *what, size_t *count) {
    MNP_TRY(expect(e, v, JSON_ARRAY, what));
    *count = v->count;
    return MNP_OK;
}

mnp_status json_numbers(env *e, const json_value *v, const char *what, double *out, size_t count) {
    MNP_TRY(expect(e, v, JSON_ARRAY, what));
    if (v->count != count)
        return env_fail(e, MNP_EFORMAT, "line %" PRIu32 ": %s has %zu items, not %zu", v->line,
                        what, v->count, count);
    for (size_t i = 0; i < count; i++) MNP_TRY(json_number(e, &v->items[i], what, &out[i]));
    return MNP_OK;
}
