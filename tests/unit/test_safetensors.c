/* test_safetensors.c: files are read back as written; hostile ones are refused before harm. */
#include "base/safetensors.h"

#include <inttypes.h>
#include <unistd.h>

#include "check.h"
#include "util/fsio.h"

static env E;
static char path[220];

/* A file made of a header text and data bytes 0, 1, 2, ... */
static mnp_status parse(const char *header, size_t data_bytes, safetensors_file **out) {
    buf b;
    buf_init(&b, &E);
    uint64_t length = strlen(header);
    buf_append(&b, &length, 8);
    buf_text(&b, header);
    for (size_t i = 0; i < data_bytes; i++) buf_append(&b, &(char){(char)i}, 1);
    mnp_status status = safetensors_parse(&E, "t.st", b.data, b.len, out);
    buf_free(&b);
    return status;
}

static const float w[6] = {1, -2.5f, 0.1f, 3e-38f, 0.25f, 7};
static const double d[2] = {0.1, -1e300};
static const int64_t big[1] = {INT64_MIN};
static const int32_t ints[3] = {-1, 0, INT32_MAX};
static const uint8_t bytes[5] = {0, 1, 2, 254, 255};
static const uint16_t half[2] = {0x3f80, 0xc040}; /* 1 and -3 */

static const safetensors_tensor tensors[] = {
    {.name = "u8", .dtype = SAFETENSORS_U8, .ndim = 1, .shape = {5}, .data = bytes},
    {.name = "t0.flow.w", .dtype = SAFETENSORS_F32, .ndim = 2, .shape = {2, 3}, .data = w},
    {.name = "half", .dtype = SAFETENSORS_BF16, .ndim = 1, .shape = {2}, .data = half},
    {.name = "empty \"\xc3\xa9\"", .dtype = SAFETENSORS_F64, .ndim = 2, .shape = {0, 4}},
    {.name = "d", .dtype = SAFETENSORS_F64, .ndim = 1, .shape = {2}, .data = d},
    {.name = "scalar", .dtype = SAFETENSORS_I64, .ndim = 0, .data = big},
    {.name = "i", .dtype = SAFETENSORS_I32, .ndim = 3, .shape = {1, 3, 1}, .data = ints},
};
enum { N = sizeof tensors / sizeof tensors[0] };
static const safetensors_meta meta[] = {{"options", "steps=7\nhidden=\"64\""}, {"a", ""}};

static void a_file_is_read_back(void) {
    safetensors_file *f = NULL;
    CHECK(safetensors_write(&E, path, meta, 2, tensors, N) == MNP_OK);
    CHECK(safetensors_read(&E, path, 1 << 20, &f) == MNP_OK);
    if (!f) return;
    CHECK(f->count == N && f->meta_count == 2);
    for (size_t i = 0; i < N; i++) {
        const safetensors_tensor *t = &f->tensors[i], *want = &tensors[i];
        CASE(want->name);
        STREQ(t->name, want->name); /* in the given order */
        CHECK(safetensors_find(f, want->name) == t);
        CHECK(t->dtype == want->dtype && t->ndim == want->ndim);
        CHECK(memcmp(t->shape, want->shape, sizeof t->shape) == 0);
        CHECK((uintptr_t)t->data % 8 == 0);
        if (t->count)
            CHECK(!memcmp(t->data, want->data, t->count * safetensors_dtype_size(t->dtype)));
    }
    STREQ(safetensors_meta_get(f, "options"), meta[0].value);
    STREQ(safetensors_meta_get(f, "a"), "");
    CHECK(!safetensors_meta_get(f, "b") && !safetensors_find(f, "w"));
    CHECK(f->tensors[2].dtype == SAFETENSORS_BF16);
    safetensors_destroy(f);
}

static void elements_are_converted(void) {
    safetensors_file *f = NULL;
    float x[6] = {0};
    double y[6] = {0};
    CHECK(safetensors_write(&E, path, meta, 2, tensors, N) == MNP_OK);
    CHECK(safetensors_read(&E, path, 1 << 20, &f) == MNP_OK);
    if (!f) return;
    CHECK(safetensors_floats(&E, safetensors_find(f, "half"), x, 2) == MNP_OK);
    CHECK(x[0] == 1 && x[1] == -3);
    CHECK(safetensors_floats(&E, safetensors_find(f, "t0.flow.w"), x, 6) == MNP_OK);
    CHECK(memcmp(x, w, sizeof w) == 0);
    ((float *)(uintptr_t)safetensors_find(f, "t0.flow.w")->data)[4] = INFINITY;
    CHECK(safetensors_floats(&E, safetensors_find(f, "t0.flow.w"), x, 6) == MNP_EFORMAT);
    CHECK(strstr(E.error, "tensor \"t0.flow.w\": number 5 of 6 is inf, not finite") != NULL);
    CHECK(safetensors_floats(&E, safetensors_find(f, "d"), x, 2) == MNP_EFORMAT); /* no float */
    CHECK(strstr(E.error, "number 2 of 2 is -1e+300") != NULL);
    CHECK(safetensors_doubles(&E, safetensors_find(f, "t0.flow.w"), y, 6) == MNP_OK);
    CHECK(y[0] == 1 && y[4] == INFINITY && y[5] == 7);
    CHECK(safetensors_doubles(&E, safetensors_find(f, "i"), y, 3) == MNP_OK && y[2] == 2147483647);
    CHECK(safetensors_doubles(&E, safetensors_find(f, "scalar"), y, 1) == MNP_OK &&
          y[0] == -0x1p63);
    CHECK(safetensors_doubles(&E, safetensors_find(f, "u8"), y, 5) == MNP_OK && y[4] == 255);
    CHECK(safetensors_floats(&E, safetensors_find(f, "u8"), x, 5) == MNP_EFORMAT);
    STREQ(E.error, "tensor \"u8\" holds U8 where real numbers are expected");
    CHECK(safetensors_floats(&E, safetensors_find(f, "d"), x, 3) == MNP_EFORMAT);
    safetensors_destroy(f);
}

/* One 16-bit number as a float. */
static mnp_status widen(safetensors_dtype dtype, uint16_t bits, float *out) {
    safetensors_tensor t = {
        .name = "h", .dtype = dtype, .ndim = 1, .shape = {1}, .data = &bits, .count = 1};
    return safetensors_floats(&E, &t, out, 1);
}

static void half_precision_is_exact(void) {
    static const struct {
        safetensors_dtype dtype;
        uint16_t bits;
        float value;
    } known[] = {
        {SAFETENSORS_F16, 0x0000, 0},
        {SAFETENSORS_F16, 0x0001, 0x1p-24f},
        {SAFETENSORS_F16, 0x03ff, 0x1.ff8p-15},
        {SAFETENSORS_F16, 0x0400, 0x1p-14f},
        {SAFETENSORS_F16, 0x3555, 0x1.554p-2f},
        {SAFETENSORS_F16, 0x3c00, 1},
        {SAFETENSORS_F16, 0xc000, -2},
        {SAFETENSORS_F16, 0x7bff, 65504},
        {SAFETENSORS_F16, 0x83ff, -0x1.ff8p-15},
        {SAFETENSORS_BF16, 0x0001, 0x1p-133f},
        {SAFETENSORS_BF16, 0x007f, 0x1.fcp-127f},
        {SAFETENSORS_BF16, 0x0080, 0x1p-126f},
        {SAFETENSORS_BF16, 0x3eab, 0x1.56p-2f},
        {SAFETENSORS_BF16, 0x7f7f, 0x1.fep127f},
        {SAFETENSORS_BF16, 0xff7f, -0x1.fep127f},
    };
    float v = 7, last;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        CHECK(widen(known[k].dtype, known[k].bits, &v) == MNP_OK);
        CHECK(v == known[k].value);
    }
    CHECK(widen(SAFETENSORS_F16, 0x8000, &v) == MNP_OK && v == 0 && signbit(v));
    /* all others lie between: upwards, and mirrored below zero */
    for (uint16_t bits = 1; bits < 0x7c00; bits++) {
        bool good = widen(SAFETENSORS_F16, (uint16_t)(bits - 1), &last) == MNP_OK &&
                    widen(SAFETENSORS_F16, bits, &v) == MNP_OK && v > last &&
                    widen(SAFETENSORS_F16, bits | 0x8000, &last) == MNP_OK && last == -v;
        if (!good) CHECK(bits == 0);
    }
    static const uint16_t none[] = {0x7c00, 0xfc00, 0x7c01, 0x7e00, 0xffff};
    for (size_t k = 0; k < sizeof none / sizeof *none; k++) {
        CHECK(widen(SAFETENSORS_F16, none[k], &v) == MNP_EFORMAT);
        CHECK(strstr(E.error, "not finite") != NULL);
    }
    CHECK(widen(SAFETENSORS_BF16, 0x7f80, &v) == MNP_EFORMAT);
    CHECK(widen(SAFETENSORS_BF16, 0x7fc0, &v) == MNP_EFORMAT);
}

static void the_bytes_are_the_format(void) {
    static const char want[] =
        "\x88\0\0\0\0\0\0\0"
        "{\"__metadata__\":{\"k\":\"v\"},\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,"
        "5]"
        "},\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}      "
        "\0\0\x80\x3f\x07";
    float one = 1;
    uint8_t seven = 7;
    safetensors_tensor two[] = {
        {.name = "b", .dtype = SAFETENSORS_U8, .ndim = 1, .shape = {1}, .data = &seven},
        {.name = "a", .dtype = SAFETENSORS_F32, .ndim = 0, .data = &one}};
    safetensors_meta kv = {"k", "v"};
    char *data = NULL;
    size_t size = 0;
    CHECK(safetensors_write(&E, path, &kv, 1, two, 2) == MNP_OK);
    CHECK(fsio_read(&E, path, 1000, &data, &size) == MNP_OK);
    CHECK(size == sizeof want - 1 && memcmp(data, want, size) == 0);
    buf memory;
    buf_init(&memory, &E);
    CHECK(safetensors_print(&memory, &kv, 1, two, 2) == MNP_OK);
    CHECK(memory.len == size && memcmp(memory.data, want, size) == 0);
    buf_free(&memory);
    env_free(&E, data);
}

static void odd_but_valid_files_are_read(void) {
    safetensors_file *f = NULL;
    CHECK(parse("{}", 0, &f) == MNP_OK && f->count == 0);
    safetensors_destroy(f);
    CHECK(parse("{\"__metadata__\":{}}   ", 0, &f) == MNP_OK && f->meta_count == 0);
    safetensors_destroy(f);
    /* Data in another order than the header, at odd places, with an empty tensor in between. */
    CHECK(parse("{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[3,7]},"
                "\"z\":{\"dtype\":\"I64\",\"shape\":[9007199254740991,0],\"data_offsets\":[3,3]},"
                "\"a\":{\"shape\":[3],\"data_offsets\":[0,3],\"dtype\":\"U8\"}}",
                7, &f) == MNP_OK);
    if (!f) return;
    CHECK(memcmp(safetensors_find(f, "b")->data, "\3\4\5\6", 4) == 0);
    CHECK((uintptr_t)safetensors_find(f, "b")->data % 8 == 0);
    CHECK(safetensors_find(f, "z")->count == 0);
    safetensors_destroy(f);
}

static void hostile_headers_are_refused(void) {
#define T(dtype, shape, offsets)                                                                   \
    "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
    static const struct {
        const char *header, *why;
    } cases[] = {
        {T("F32", "[2]", "[0,8]") "x", "after the end"},
        {T("C64", "[4]", "[0,32]"), "dtype C64 is not supported"},
        {T("F32", "[3]", "[0,8]"), "8 bytes of data where the shape needs 12"},
        {T("F32", "[2]", "[0,12]"), "outside the file"},
        {T("F32", "[2]", "[8,0]"), "outside the file"},
        {T("F32", "[2]", "[-8,0]"), "outside the file"},
        {T("F32", "[1]", "[0,4]"), "4 bytes after the last tensor"},
        {T("F32", "[1]", "[4,8]"), "leaves a gap"},
        {T("F32", "[-2]", "[0,8]"), "negative or too large"},
        {T("F32", "[1.5]", "[0,8]"), "whole number"},
        {T("F32", "[4294967296,4294967296]", "[0,8]"), "too large"},
        {T("F32", "[0,4294967296,4294967296]", "[0,0]"), "too large"},
        {T("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), "9 dimensions"},
        {T("F32", "2", "[0,8]"), "shape must be an array"},
        {T("F32", "[2]", "[0]"), "data_offsets"},
        {T("F32", "[2]", "[0,8,8]"), "data_offsets"},
        {T("F32", "[2]", "[0,1e300]"), "whole number"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[8]}}", "data_offsets is missing"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8],\"x\":1}}", "exactly"},
        {"{\"a\":7}", "dtype is missing"},
        {"{\"__metadata__\":[]}", "not an object"},
        {"{\"__metadata__\":{\"a\":1}}", "must be a string"},
        {"{\"a\\u0000\":1}", "NUL"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,5]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
         "\"b\" overlaps"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}",
         "overlaps"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
         "appears twice"},
        {"[]", "not an object"},
        {" {}", "not an object"},
        {"", "not an object"},
        {"{", "expected a key"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        safetensors_file *f = (safetensors_file *)&E;
        CASE(cases[i].header);
        mnp_status status = parse(cases[i].header, 8, &f);
        CHECK((status == MNP_EFORMAT || status == MNP_EUNSUPPORTED) && f == NULL);
        CHECK(strncmp(E.error, "t.st: ", 6) == 0);
        CHECK(strstr(E.error, cases[i].why) || (fprintf(stderr, "%s\n", E.error), false));
    }
}

static void every_cut_and_every_length_is_refused(void) {
    char *data = NULL;
    size_t size = 0;
    safetensors_file *f;
    CHECK(safetensors_write(&E, path, meta, 2, tensors, N) == MNP_OK);
    CHECK(fsio_read(&E, path, 1 << 20, &data, &size) == MNP_OK);
    for (size_t n = 0; n < size; n++)
        CHECK(safetensors_parse(&E, "cut", data, n, &f) == MNP_EFORMAT && !f);
    static const uint64_t lengths[] = {0, 1, 100000001, UINT64_MAX, UINT64_MAX - 7, 1ull << 63};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        memcpy(data, &lengths[i], 8);
        CHECK(safetensors_parse(&E, "length", data, size, &f) == MNP_EFORMAT && !f);
    }
    env_free(&E, data);
}

static void impossible_tensors_are_not_written(void) {
    unlink(path);
    safetensors_tensor t[2] = {tensors[0], tensors[0]};
    CHECK(safetensors_write(&E, path, NULL, 0, t, 2) == MNP_EINVAL &&
          strstr(E.error, "two tensors"));
    t[0].name = "__metadata__";
    CHECK(safetensors_write(&E, path, NULL, 0, t, 1) == MNP_EINVAL);
    t[0].name = "\xff";
    CHECK(safetensors_write(&E, path, NULL, 0, t, 1) == MNP_EINVAL);
    t[0] = tensors[0];
    t[0].shape[0] = -1;
    CHECK(safetensors_write(&E, path, NULL, 0, t, 1) == MNP_EINVAL);
    safetensors_meta twice[2] = {{"a", "1"}, {"a", "2"}}, wrong = {"a", "\xff"};
    CHECK(safetensors_write(&E, path, twice, 2, tensors, N) == MNP_EINVAL);
    CHECK(safetensors_write(&E, path, &wrong, 1, tensors, N) == MNP_EINVAL);
    CHECK(access(path, F_OK) != 0);
}

/* Every half, the number in the middle of two neighbours, and those beside the middle. */
static void the_nearest_half(void) {
    float a = 0, b = 0;
    for (uint16_t bits = 0; bits < 0x7bff; bits++) {
        uint16_t next = (uint16_t)(bits + 1), even = bits % 2 ? next : bits;
        CHECK(widen(SAFETENSORS_F16, bits, &a) == MNP_OK);
        CHECK(widen(SAFETENSORS_F16, next, &b) == MNP_OK);
        float middle = a + (b - a) / 2; /* exact */
        bool good = safetensors_f16(a) == bits && safetensors_f16(-b) == (next | 0x8000) &&
                    safetensors_f16(middle) == even &&
                    safetensors_f16(nextafterf(middle, 0)) == bits &&
                    safetensors_f16(nextafterf(middle, INFINITY)) == next;
        if (!good) CHECK(good);
    }
    CHECK(safetensors_f16(nextafterf(65520, 0)) == 0x7bff && safetensors_f16(65520) == 0x7c00);
    CHECK(safetensors_f16(-INFINITY) == 0xfc00 && safetensors_f16(-0.0f) == 0x8000);
    CHECK((safetensors_f16(NAN) & 0x7fff) == 0x7e00 && safetensors_f16(1e-45f) == 0);
}

int main(void) {
    env_init(&E);
    const char *base = getenv("TEST_TMP");
    snprintf(path, sizeof path, "%.150s/st-%ld.safetensors", base ? base : "/tmp", (long)getpid());
    RUN(a_file_is_read_back);
    RUN(elements_are_converted);
    RUN(half_precision_is_exact);
    RUN(the_nearest_half);
    RUN(the_bytes_are_the_format);
    RUN(odd_but_valid_files_are_read);
    RUN(hostile_headers_are_refused);
    RUN(every_cut_and_every_length_is_refused);
    RUN(impossible_tensors_are_not_written);
    unlink(path);
    return check_done();
}
