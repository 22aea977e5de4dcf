/* syslib.c: see syslib.h. */
#include "base/syslib.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifdef MNP_PORTABLE

bool syslib_load(const char *const *files, const char *const *names, void *table,
                 char why[SYSLIB_WHY]) {
    (void)files, (void)names, (void)table;
    if (why) snprintf(why, SYSLIB_WHY, "a build with PORTABLE=1 loads no library");
    return false;
}

#else

/* Every function of the table, or false. */
static bool find_all(void *handle, const char *const *names, char *table) {
    for (; *names; names++, table += sizeof(void *)) {
        void *found = dlsym(handle, *names);
        if (!found) return false;
        memcpy(table, &found, sizeof found); /* ISO C has no cast from data to function pointers */
    }
    return true;
}

bool syslib_load(const char *const *files, const char *const *names, void *table,
                 char why[SYSLIB_WHY]) {
    for (; *files; files++) {
        void *handle = dlopen(*files, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        bool found = handle && find_all(handle, names, table);
        if (!found && why) snprintf(why, SYSLIB_WHY, "%.255s", dlerror());
        if (handle) dlclose(handle); /* counts down; RTLD_NODELETE keeps the library */
        if (found) return true;
    }
    return false;
}

#endif
