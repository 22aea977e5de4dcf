/* backend.c: the list of backends. */
#include "backend/backend.h"

#include <string.h>

#define BACKEND(name) extern const backend backend_##name;
#include "backend/backends.def"
#undef BACKEND

const backend *backend_find(const char *name) {
    static const backend *const table[] = {
#define BACKEND(name) &backend_##name,
#include "backend/backends.def"
#undef BACKEND
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!name || strcmp(table[i]->name, name) == 0) return table[i];
    return NULL;
}
