/* dlfcn.h: no shared objects. See pthread.h beside it. */
#ifndef MNP_WASI_DLFCN_H
#define MNP_WASI_DLFCN_H

#include <stddef.h>

enum { RTLD_NOW = 1, RTLD_LOCAL = 2, RTLD_NODELETE = 4 };

static inline void *dlopen(const char *file, int mode) {
    (void)file, (void)mode;
    return NULL;
}
static inline void *dlsym(void *handle, const char *name) {
    (void)handle, (void)name;
    return NULL;
}
static inline int dlclose(void *handle) {
    (void)handle;
    return 0;
}
static inline const char *dlerror(void) {
    return "WebAssembly loads no shared objects";
}

#endif
