/* object.c: see object.h. */
#define _GNU_SOURCE
#include "base/object.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#ifndef MNP_LIBDIR
#define MNP_LIBDIR "/usr/local/lib"
#endif

enum { PATH_SIZE = 4096 };

/* Does this line of /proc/self/maps, "from-to rights offset device inode path", hold the address?
 * Then its path, which the kernel gives absolute and free of links. */
static const char *mapped_from(char *line, const void *address) {
    unsigned long from, to;
    int at = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &from, &to, &at) != 2 || at == 0) return NULL;
    unsigned long here = (unsigned long)(uintptr_t)address;
    return from <= here && here < to && line[at] == '/' ? line + at : NULL;
}

/* Neither argv[0] nor the loader's name of a library is asked: both may be relative to a folder
 * that is no longer the current one, or go through a link. */
bool object_own_path(char *out, size_t size) {
    static const char anchor; /* an address inside this file's object */
    char line[PATH_SIZE + 128];
    const char *path = NULL;
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps) return false;
    bool whole = true; /* a line that does not fit is of no file we could open */
    while (!path && fgets(line, sizeof line, maps)) {
        bool ends = strchr(line, '\n') != NULL;
        if (whole && ends) path = mapped_from(line, &anchor);
        whole = ends;
    }
    fclose(maps);
    if (!path || strlen(path) >= size) return false;
    memcpy(out, path, strlen(path) + 1);
    return true;
}

/* The k-th folder that is searched: beside this code, the lib that goes with a bin, the one of the
 * installation. false: there is no such folder here. */
enum { PLACES = 3 };
static bool place(int k, char out[PATH_SIZE]) {
    if (k == 2) return snprintf(out, PATH_SIZE, "%s", MNP_LIBDIR) < PATH_SIZE;
    char *slash = object_own_path(out, PATH_SIZE) ? strrchr(out, '/') : NULL;
    if (!slash) return false;
    *slash = '\0';
    if (k == 0) return true;
    slash = strrchr(out, '/');
    if (!slash || strcmp(slash, "/bin") != 0) return false;
    memcpy(slash, "/lib", 5);
    return true;
}

/* "A, B" for the error text; a folder that was just named is not named again. */
enum { TRIED_SIZE = 640 };
static void note_tried(char tried[TRIED_SIZE], const char *folder) {
    size_t used = strlen(tried), n = strlen(folder);
    if (used >= n && strcmp(tried + used - n, folder) == 0) return;
    snprintf(tried + used, TRIED_SIZE - used, "%s%.200s", used ? ", " : "", folder);
}

/* `why` gets what is wrong with an object that is there. */
static void *open_object(const char *file, char tried[TRIED_SIZE], char why[256]) {
    char folder[PATH_SIZE], path[PATH_SIZE + 64], *real = NULL;
    tried[0] = why[0] = '\0';
    for (int k = 0; k < PLACES && !real; k++) {
        if (!place(k, folder)) continue;
        note_tried(tried, folder);
        snprintf(path, sizeof path, "%s/%s", folder, file);
        real = realpath(path, NULL);
    }
    if (!real) return NULL;
    void *handle = dlopen(real, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) snprintf(why, 256, "%.255s", dlerror());
    free(real);
    return handle;
}

mnp_status object_load(env *e, const char *file, const char *symbol, const char *remedy,
                       object_fn *out) {
    char tried[TRIED_SIZE], why[256];
    *out = NULL;
    void *handle = open_object(file, tried, why);
    if (!handle && why[0]) return env_fail(e, MNP_EUNSUPPORTED, "%s does not load (%s)", file, why);
    if (!handle)
        return env_fail(e, MNP_EUNSUPPORTED, "there is no %s in %s; %s", file, tried, remedy);
    void *found = dlsym(handle, symbol);
    memcpy(out, &found, sizeof found); /* ISO C has no cast from data to function pointers */
    if (!*out) return env_fail(e, MNP_EUNSUPPORTED, "%s belongs to another version", file);
    return MNP_OK;
}
