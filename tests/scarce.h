/* scarce.h: an allocator that fails after so many allocations and counts what is still held: every
 * call must then fail cleanly and give back what it had. */
#ifndef MNP_TESTS_SCARCE_H
#define MNP_TESTS_SCARCE_H

#include <stdlib.h>

typedef struct scarce {
    long left, live;
} scarce;

static void *scarce_alloc(void *user, size_t bytes, size_t align) {
    scarce *m = user;
    if (m->left-- <= 0) return NULL;
    m->live++;
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void scarce_free(void *user, void *ptr) {
    ((scarce *)user)->live--;
    free(ptr);
}

#endif
