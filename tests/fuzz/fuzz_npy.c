/* fuzz_npy.c: any bytes are refused, or give an array of just the size they have. */
#include "fuzz/fuzz.h"
#include "util/npy.h"

size_t fuzz_seed(size_t i, uint8_t *out) {
    static const struct {
        uint8_t version;
        const char *header;
        size_t data;
    } seeds[] = {
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n", 24},
        {2, "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 2, 2), }\n", 96},
        {3, "{'descr': '|u1', 'fortran_order': False, 'shape': (5,), }\n", 5},
        {1, "{\"shape\": (), \"descr\": \"<i8\", \"fortran_order\": False}", 8},
        {1, "{'descr': '|b1', 'fortran_order': True, 'shape': (2, 0), }\n", 0},
    };
    if (i >= sizeof seeds / sizeof seeds[0]) return 0;
    size_t length = strlen(seeds[i].header), start = seeds[i].version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    memset(out + 6, 0, 6);
    out[6] = seeds[i].version;
    out[8] = (uint8_t)length;
    memcpy(out + start, seeds[i].header, length);
    memset(out + start + length, 1, seeds[i].data);
    return start + length + seeds[i].data;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    env e;
    env_init(&e);
    npy_array a;
    if (npy_parse(&e, "fuzz", data, bytes, &a) != MNP_OK) {
        FUZZ_CHECK(!a.data && e.error[0]);
        return 0;
    }
    FUZZ_CHECK(a.count * npy_size(a.type) < bytes && a.ndim <= NPY_DIMS_MAX);
    double *v = malloc(a.count * sizeof *v + 1);
    FUZZ_CHECK(v);
    npy_doubles(&a, v); /* reads every element */
    free(v);
    npy_free(&e, &a);
    return 0;
}
