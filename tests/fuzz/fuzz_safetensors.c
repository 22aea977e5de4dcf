/* fuzz_safetensors.c: any bytes are refused, or give tensors that lie inside their memory. */
#include "base/safetensors.h"

#include <math.h>

#include "fuzz/fuzz.h"

size_t fuzz_seed(size_t i, uint8_t *out) {
    static const struct {
        const char *header;
        size_t data;
    } seeds[] = {
        {"{\"__metadata__\":{\"k\":\"v\"},\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],"
         "\"data_offsets\":[0,24]},\"u\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[24,27]}"
         "}",
         27},
        {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[16,24]},"
         "\"b\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,16]}}   ",
         24},
        {"{\"i\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
         "\"j\":{\"dtype\":\"I32\",\"shape\":[1,0],\"data_offsets\":[8,8]}}",
         8},
        {"{\"h\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[0,8]}}", 8},
        {"{}", 0},
    };
    if (i >= sizeof seeds / sizeof seeds[0]) return 0;
    uint64_t length = strlen(seeds[i].header);
    memcpy(out, &length, 8);
    memcpy(out + 8, seeds[i].header, length);
    memset(out + 8 + length, 0x3f, seeds[i].data);
    return 8 + length + seeds[i].data;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    env e;
    env_init(&e);
    safetensors_file *f = NULL;
    mnp_status status = safetensors_parse(&e, "fuzz", data, bytes, &f);
    /* A second look with the header length put right lets damaged headers reach the checks after.
     */
    if (status != MNP_OK && bytes > 16) {
        uint8_t *fixed = malloc(bytes);
        uint64_t length = bytes - 8 - data[0] % 32;
        FUZZ_CHECK(fixed && !f && e.error[0]);
        memcpy(fixed, data, bytes);
        if (length <= bytes - 8) memcpy(fixed, &length, 8);
        status = safetensors_parse(&e, "fuzz", fixed, bytes, &f);
        free(fixed);
    }
    if (status != MNP_OK) return 0;
    size_t total = 0;
    for (size_t i = 0; i < f->count; i++) {
        const safetensors_tensor *t = &f->tensors[i];
        double *v = malloc(t->count * sizeof *v + 1);
        FUZZ_CHECK(v && safetensors_find(f, t->name) == t && (uintptr_t)t->data % 8 == 0);
        FUZZ_CHECK(safetensors_doubles(&e, t, v, t->count) == MNP_OK); /* reads every element */
        if (safetensors_floats(&e, t, (float *)v, t->count) == MNP_OK)
            for (size_t k = 0; k < t->count; k++) FUZZ_CHECK(isfinite(((float *)v)[k]));
        free(v);
        total += t->count * safetensors_dtype_size(t->dtype);
    }
    FUZZ_CHECK(total < bytes);
    for (size_t i = 0; i < f->meta_count; i++)
        FUZZ_CHECK(safetensors_meta_get(f, f->meta[i].key) == f->meta[i].value);
    safetensors_destroy(f);
    return 0;
}
