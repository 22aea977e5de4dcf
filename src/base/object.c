/* object.c: see object.h. */
#define _GNU_SOURCE
#include "base/object.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

bool object_own_path(char *out, size_t size) {
    static const char anchor; /* an address inside this file's object */
    Dl_info info;
    if (dladdr(&anchor, &info) && info.dli_fname && strchr(info.dli_fname, '/')) {
        snprintf(out, size, "%s", info.dli_fname);
        return true;
    }
    ssize_t length = readlink("/proc/self/exe", out, size - 1);
    if (length <= 0) return false;
    out[length] = '\0';
    return true;
}

/* The folder of that file; "." where it is not known. */
static void own_folder(char out[PATH_SIZE]) {
    char *slash = object_own_path(out, PATH_SIZE) ? strrchr(out, '/') : NULL;
    if (slash)
        *slash = '\0';
    else
        snprintf(out, PATH_SIZE, ".");
}

static void *open_object(const char *file, char folder[PATH_SIZE], char why[256]) {
    static const char *const places[] = {"", "/../lib", "/..", "/../.."};
    char path[PATH_SIZE + 64];
    why[0] = '\0';
    own_folder(folder);
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        snprintf(path, sizeof path, "%s%s/%s", folder, places[k], file);
        if (access(path, R_OK) != 0) continue;
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!handle) snprintf(why, 256, "%.255s", dlerror());
        return handle;
    }
    return dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

mnp_status object_load(env *e, const char *file, const char *symbol, const char *remedy,
                       object_fn *out) {
    char folder[PATH_SIZE], why[256];
    *out = NULL;
    void *handle = open_object(file, folder, why);
    if (!handle && why[0]) return env_fail(e, MNP_EUNSUPPORTED, "%s does not load (%s)", file, why);
    if (!handle)
        return env_fail(e, MNP_EUNSUPPORTED, "there is no %s in %.300s; %s", file, folder, remedy);
    void *found = dlsym(handle, symbol);
    memcpy(out, &found, sizeof found); /* ISO C has no cast from data to function pointers */
    if (!*out) return env_fail(e, MNP_EUNSUPPORTED, "%s belongs to another version", file);
    return MNP_OK;
}
