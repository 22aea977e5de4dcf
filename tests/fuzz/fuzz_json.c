/* fuzz_json.c: any text is read or refused; what was read is written and read again as the same. */
#include "fuzz/fuzz.h"
#include "util/json.h"

size_t fuzz_seed(size_t i, uint8_t *out) {
    static const char *const seeds[] = {
        "{\"a\": [1, -2.5e-3, true, false, null], \"b\": {\"c\": \"\\u00e9\\n\\ud83d\\ude00\"}}",
        "[[[[[]]]], {}, \"\\\"\\\\\\/\\b\\f\\n\\r\\t\", 0, -0.0, 1E+10]",
        "  \"\xc3\xa9 \xf0\x9f\x98\x80\" \n",
        "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}",
    };
    if (i >= sizeof seeds / sizeof seeds[0]) return 0;
    memcpy(out, seeds[i], strlen(seeds[i]));
    return strlen(seeds[i]);
}

static bool has_nul(const json_value *v) {
    return memchr(v->string, '\0', v->count) != NULL;
}

/* False where a string holds a NUL, which the writer (of C strings) has no way to say. */
static bool write_value(json_writer *w, const json_value *v) {
    bool whole = true;
    switch (v->kind) {
    case JSON_NULL:
        json_put_null(w);
        break;
    case JSON_BOOL:
        json_put_bool(w, v->boolean);
        break;
    case JSON_NUMBER:
        json_put_number(w, v->number);
        break;
    case JSON_STRING:
        whole = !has_nul(v);
        json_put_string(w, v->string);
        break;
    case JSON_ARRAY:
        json_array_begin(w);
        for (size_t i = 0; i < v->count; i++) whole &= write_value(w, json_at(v, i));
        json_array_end(w);
        break;
    case JSON_OBJECT:
        json_object_begin(w);
        for (size_t i = 0; i < v->count; i++) {
            const json_value *key = json_key_at(v, i);
            whole &= !has_nul(key);
            if (!has_nul(key)) FUZZ_CHECK(json_get(v, key->string) == json_value_at(v, i));
            json_key(w, key->string);
            whole &= write_value(w, json_value_at(v, i));
        }
        json_object_end(w);
        break;
    }
    return whole;
}

static bool same(const json_value *a, const json_value *b) {
    if (a->kind != b->kind || a->count != b->count) return false;
    if (a->kind == JSON_BOOL) return a->boolean == b->boolean;
    if (a->kind == JSON_NUMBER) return memcmp(&a->number, &b->number, sizeof a->number) == 0;
    if (a->kind == JSON_STRING) return memcmp(a->string, b->string, a->count) == 0;
    size_t items = a->kind == JSON_OBJECT ? 2 * a->count : a->count;
    for (size_t i = 0; i < items; i++)
        if (!same(&a->items[i], &b->items[i])) return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    env e;
    env_init(&e);
    json_doc *doc = NULL, *again = NULL;
    if (json_parse(&e, "fuzz", (const char *)data, bytes, &doc) != MNP_OK) {
        FUZZ_CHECK(!doc && e.error[0]);
        return 0;
    }
    buf b;
    json_writer w;
    buf_init(&b, &e);
    json_writer_init(&w, &b, bytes % 2 ? 2 : 0);
    if (write_value(&w, json_root(doc))) {
        FUZZ_CHECK(json_parse(&e, "again", b.data, b.len, &again) == MNP_OK);
        FUZZ_CHECK(same(json_root(doc), json_root(again)));
    }
    json_destroy(again);
    json_destroy(doc);
    buf_free(&b);
    return 0;
}
