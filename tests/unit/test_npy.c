/* test_npy.c: arrays are read back as written, in NumPy's own bytes; damaged ones are refused. */
#include "util/npy.h"

#include <unistd.h>

#include "check.h"
#include "util/fsio.h"

static env E;
static char path[200];

/* A file of that version with that header and data bytes 0, 1, 2, ... */
static mnp_status parse(int version, const char *header, size_t data_bytes, npy_array *out) {
    buf b;
    buf_init(&b, &E);
    size_t n = strlen(header);
    buf_append(&b, "\x93NUMPY", 6);
    char rest[6] = {(char)version, 0, (char)(n & 0xff), (char)(n >> 8), 0, 0};
    buf_append(&b, rest, version == 1 ? 4 : 6);
    buf_text(&b, header);
    for (size_t i = 0; i < data_bytes; i++) buf_append(&b, &(char){(char)i}, 1);
    mnp_status status = npy_parse(&E, "a.npy", b.data, b.len, out);
    buf_free(&b);
    return status;
}

static void every_type_is_read_back(void) {
    static const float f4[6] = {1, -2, 0.1f, INFINITY, 0, 5};
    static const double f8[6] = {1, -2, 0.1, 1e300, 0, 5};
    static const int32_t i4[6] = {1, -2, INT32_MAX, INT32_MIN, 0, 5};
    static const int64_t i8[6] = {1, -2, 1ll << 40, -(1ll << 40), 0, 5};
    static const uint8_t u1[6] = {1, 2, 255, 128, 0, 5}, b1[6] = {1, 0, 1, 1, 0, 1};
    const void *const data[] = {f4, f8, i4, i8, u1, b1};
    for (int type = NPY_F4; type <= NPY_B1; type++)
        for (int ndim = 0; ndim <= 3; ndim++) {
            npy_array a = {
                .type = (npy_type)type, .ndim = ndim, .data = (void *)(uintptr_t)data[type]};
            npy_array b;
            static const int64_t shapes[4][3] = {{0}, {6}, {2, 3}, {3, 1, 2}};
            memcpy(a.shape, shapes[ndim], sizeof shapes[ndim]);
            size_t count = ndim ? 6 : 1;
            CHECK(npy_write(&E, path, &a) == MNP_OK);
            CHECK(npy_read(&E, path, 1 << 20, &b) == MNP_OK);
            CHECK(b.type == a.type && b.ndim == ndim && b.count == count);
            CHECK(memcmp(b.shape, a.shape, sizeof a.shape) == 0);
            CHECK(b.data && memcmp(b.data, data[type], count * npy_size(b.type)) == 0);
            double v[6];
            npy_doubles(&b, v);
            CHECK(v[0] == 1 && (count == 1 || v[5] == (type == NPY_B1 ? 1 : 5)));
            npy_free(&E, &b);
        }
}

static void the_bytes_are_numpys(void) {
    /* What numpy.save writes for numpy.arange(2, dtype='<f4'). */
    static const char head[] =
        "\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    char want[128 + 8];
    memset(want, ' ', sizeof want);
    memcpy(want, head, sizeof head - 1);
    memcpy(want + 127, "\n\0\0\0\0\0\0\x80\x3f", 9);
    float data[2] = {0, 1};
    npy_array a = {.type = NPY_F4, .ndim = 1, .shape = {2}, .data = data};
    char *bytes = NULL;
    size_t size = 0;
    CHECK(npy_write(&E, path, &a) == MNP_OK);
    CHECK(fsio_read(&E, path, 1 << 20, &bytes, &size) == MNP_OK);
    CHECK(size == sizeof want && memcmp(bytes, want, size) == 0);
    env_free(&E, bytes);
}

static void the_longest_header_fits(void) {
    npy_array a = {.type = NPY_U1, .ndim = 8}, b;
    for (int i = 0; i < 7; i++) a.shape[i] = 1000000000000000000 / (i + 1);
    CHECK(npy_write(&E, path, &a) == MNP_EINVAL); /* the product overflows */
    for (int i = 0; i < 7; i++) a.shape[i] = i == 0 ? 1000000000000000000 : 1;
    CHECK(npy_write(&E, path, &a) == MNP_OK);
    CHECK(npy_read(&E, path, 1 << 20, &b) == MNP_OK && b.count == 0);
    CHECK(b.shape[0] == 1000000000000000000);
    npy_free(&E, &b);
}

static void all_versions_and_spellings_are_read(void) {
    npy_array a;
    for (int version = 1; version <= 3; version++) {
        CHECK(parse(version, "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2), }   \n", 8,
                    &a) == MNP_OK);
        CHECK(a.ndim == 2 && a.shape[1] == 2 && ((int32_t *)a.data)[1] == 0x07060504);
        CHECK((uintptr_t)a.data % 64 == 0);
        npy_free(&E, &a);
    }
    CHECK(parse(1, "{\"shape\":(3,),\"descr\":\"<u1\",\"fortran_order\":True}", 3, &a) == MNP_OK);
    CHECK(a.type == NPY_U1 && a.count == 3);
    npy_free(&E, &a);
    CHECK(parse(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }", 1, &a) == MNP_OK);
    CHECK(a.ndim == 0 && a.count == 1);
    npy_free(&E, &a);
    CHECK(parse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 7 ,), }", 0, &a) ==
          MNP_OK);
    CHECK(a.count == 0 && a.shape[1] == 7);
    npy_free(&E, &a);
}

static void fortran_order_is_turned(void) {
    npy_array a;
    CHECK(parse(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", 6, &a) == MNP_OK);
    CHECK(a.data && memcmp(a.data, "\0\2\4\1\3\5", 6) == 0);
    npy_free(&E, &a);
    CHECK(parse(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }", 12, &a) ==
          MNP_OK);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 2; k++)
                CHECK(a.data && ((uint8_t *)a.data)[(i * 3 + j) * 2 + k] == i + 2 * j + 6 * k);
    npy_free(&E, &a);
}

static void damaged_files_are_refused(void) {
    static const struct {
        const char *header, *why;
    } cases[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "big-endian"},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (4,), }", "type <f2 cannot be read"},
        {"{'descr': '<', 'fortran_order': False, 'shape': (4,), }", "type < cannot"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "type |O cannot"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "records"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "cut short"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "8 bytes of data"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2), }", "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 1), }", "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "whole number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (,), }", "whole number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 2, }", "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
         "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
         "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2), }", "dimensions"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }", "neither True nor False"},
        {"{'descr': '<f4', 'fortran_order': False, }", "missing"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "twice"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", "unknown key"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (2,), }", "comma"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x", "after the dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), ", "key is missing"},
        {"{'descr: ", "key is missing"},
        {"", "not a dict"},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': (8,), }", "neither 0 nor 1"},
    };
    npy_array a;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CASE(cases[i].header);
        mnp_status status = parse(1, cases[i].header, 8, &a);
        CHECK((status == MNP_EFORMAT || status == MNP_EUNSUPPORTED) && !a.data);
        CHECK(strncmp(E.error, "a.npy: ", 7) == 0 && strstr(E.error, cases[i].why));
    }
    CHECK(parse(4, "{}", 0, &a) == MNP_EUNSUPPORTED && strstr(E.error, "version 4.0"));
    CHECK(npy_parse(&E, "a.npy", "PK\3\4abcdefgh", 12, &a) == MNP_EFORMAT);
    STREQ(E.error, "a.npy: not a .npy file");
}

static void every_cut_is_refused(void) {
    float data[2] = {0, 1};
    npy_array a = {.type = NPY_F4, .ndim = 1, .shape = {2}, .data = data}, b;
    char *bytes = NULL;
    size_t size = 0;
    CHECK(npy_write(&E, path, &a) == MNP_OK);
    CHECK(fsio_read(&E, path, 1 << 20, &bytes, &size) == MNP_OK);
    for (size_t n = 0; n < size; n++) CHECK(npy_parse(&E, "cut", bytes, n, &b) == MNP_EFORMAT);
    env_free(&E, bytes);
    a.shape[0] = -1;
    CHECK(npy_write(&E, path, &a) == MNP_EINVAL);
    CHECK(npy_read(&E, path, 10, &b) == MNP_EFORMAT); /* over the limit */
}

int main(void) {
    env_init(&E);
    const char *base = getenv("TEST_TMP");
    snprintf(path, sizeof path, "%.150s/npy-%ld.npy", base ? base : "/tmp", (long)getpid());
    RUN(every_type_is_read_back);
    RUN(the_bytes_are_numpys);
    RUN(the_longest_header_fits);
    RUN(all_versions_and_spellings_are_read);
    RUN(fortran_order_is_turned);
    RUN(damaged_files_are_refused);
    RUN(every_cut_is_refused);
    unlink(path);
    return check_done();
}
