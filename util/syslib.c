/* syslib.c: see syslib.h. */
#include "util/syslib.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifdef MNP_PORTABLE

bool syslib_load(const syslib_word *words, void *table, char why[SYSLIB_WHY]) {
    (void)words, (void)table;
    if (why) snprintf(why, SYSLIB_WHY, "a build with PORTABLE=1 loads no library");
    return false;
}

#else

/* Every function of the table, or false. */
static bool find_all(void *handle, const syslib_word *words, char *table) {
    for (; words->file || words->name; words++) {
        if (words->file) continue;
        void *found = dlsym(handle, words->name);
        if (!found) return false;
        memcpy(table, &found, sizeof found); /* ISO C has no cast from data to function pointers */
        table += sizeof found;
    }
    return true;
}

bool syslib_load(const syslib_word *words, void *table, char why[SYSLIB_WHY]) {
    for (const syslib_word *w = words; w->file || w->name; w++) {
        if (!w->file) continue;
        void *handle = dlopen(w->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        bool found = handle && find_all(handle, words, table);
        if (!found && why) snprintf(why, SYSLIB_WHY, "%.255s", dlerror());
        if (handle) dlclose(handle); /* counts down; RTLD_NODELETE keeps the library */
        if (found) return true;
    }
    return false;
}

#endif
