/* damaged.h: a file of tensors with other numbers in one of them. Bytes are changed, since the
 * writer refuses numbers that are not finite. */
#ifndef MNP_TEST_DAMAGED_H
#define MNP_TEST_DAMAGED_H

#include "check.h"
#include "util/fsio.h"

/* v (n) takes the place of the numbers of `name` from number `first` on. */
static void write_damaged(env *e, const char *from, const char *to, const char *name, size_t first,
                          const double *v, size_t n) {
    char *bytes = NULL, key[100];
    size_t size = 0;
    uint64_t header = 0;
    CHECK(fsio_read(e, from, 1 << 26, &bytes, &size) == MNP_OK);
    snprintf(key, sizeof key, "\"%s\":{\"dtype\":\"F", name);
    const char *entry = bytes ? strstr(bytes + sizeof header, key) : NULL;
    const char *offsets = entry ? strstr(entry, "offsets\":[") : NULL;
    CHECK(offsets != NULL);
    if (offsets) {
        memcpy(&header, bytes, sizeof header);
        char *at = bytes + sizeof header + header + atol(offsets + strlen("offsets\":["));
        bool single = entry[strlen(key)] == '3'; /* F32 */
        for (size_t i = first; i < first + n; i++)
            if (single)
                memcpy(at + i * sizeof(float), &(float){(float)v[i - first]}, sizeof(float));
            else
                memcpy(at + i * sizeof(double), &v[i - first], sizeof(double));
        CHECK(fsio_write(e, to, bytes, size) == MNP_OK);
    }
    env_free(e, bytes);
}

#endif
